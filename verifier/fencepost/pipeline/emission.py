"""Which program does the compiler emit for a given number of trips: statements, commits and waits in order?

The trip count is a constant when the compiler places waits, so the program is built for one count at a time.  The
prologue and the epilogue are unrolled steps; the steady part is a loop if it runs more or less than once.  A step at
time t runs each statement for iteration t - stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from fencepost.pipeline.schedule import Plan, Slot


@dataclass(frozen=True, slots=True)
class Run:
    """A statement, for the iteration that its step gives it."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class Commit:
    """Asynchronous statements followed by a commit: what they started becomes one group."""

    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Blocks until at most `pending` groups are unfinished."""

    pending: int


Item: TypeAlias = Run | Commit | Wait


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the emitted program: `items` run at the times `start`, `start` + 1, ..., `count` times in all.

    `loop`: emitted as a loop and not as a single step.
    """

    name: Literal["prologue", "body", "epilogue"]
    start: int
    count: int
    loop: bool
    items: tuple[Item, ...]


@dataclass(slots=True)
class _Stage:
    """What is known about one async stage within one part."""

    groups: list[list[int]] = field(default_factory=list)  # places of the statements of each commit group
    named: dict[int, int] = field(default_factory=dict)  # annotated group -> place in `groups`
    head: int | None = None  # iteration that is being fetched
    consumed: bool = False
    waits: dict[int, tuple[int, int]] = field(default_factory=dict)  # group -> (place to wait before, count)


@dataclass(slots=True)
class _Seen:
    """What is known about one async stage from the parts emitted so far."""

    group: dict[str, int] = field(default_factory=dict)  # buffer -> commit group
    groups: int = 0
    head: int | None = -1


def emit(plan: Plan, trips: int) -> list[Part]:
    """The emitted program of an accepted loop for `trips` iterations."""
    if not plan.rewritten:
        return [Part("body", 0, trips, True, tuple(Run(slot) for slot in plan.slots))]
    return _relaxed(plan, _Emitter(plan, trips).parts())


class _Emitter:
    def __init__(self, plan: Plan, trips: int) -> None:
        self.plan = plan
        self.trips = trips
        self.seen: dict[int, _Seen] = {}
        # An iteration number counts from the first value of the loop variable; the compiler's own numbers start there.
        self.base = plan.loop.start
        self.group: dict[str, int] = {}  # buffer -> commit group in the part at hand

    def parts(self) -> list[Part]:
        last, trips = self.plan.last_stage, self.trips
        parts = self._unrolled("prologue", 0, last)
        parts.append(self._part("body", last, trips - last, bounds=False))
        parts += self._unrolled("epilogue", trips, last)
        return parts

    def _unrolled(self, name: Literal["prologue", "epilogue"], start: int, steps: int) -> list[Part]:
        if steps < 1:
            # Emitted as a loop that never runs; it still tells the compiler which buffers are async.
            return [self._part(name, start, steps, bounds=True)]
        return [self._part(name, t, 1, bounds=True) for t in range(start, start + steps)]

    def _part(self, name: Literal["prologue", "body", "epilogue"], t: int, count: int, bounds: bool) -> Part:
        chosen = [s for s in self.plan.emitted if not bounds or 0 <= t - s.stage < self.trips]
        stages: dict[int, _Stage] = {}
        self.group = {}
        for place, slot in enumerate(chosen):
            self._visit(place, slot, t, stages)
        committed: dict[int, int] = {}
        for place, slot in enumerate(chosen):
            if not slot.is_async:
                self._wait_before(place, slot, t, stages, committed)
            elif (group := self._completes(place, stages[slot.stage])) is not None:
                committed[slot.stage] = group
        loop = count != 1
        return Part(name, t, count, loop, tuple(_items(chosen, stages)))

    def _visit(self, place: int, slot: Slot, t: int, stages: dict[int, _Stage]) -> None:
        if slot.is_async:
            stage = stages.setdefault(slot.stage, _Stage())
            group = self._group(place, slot, stage)
            seen = self.seen.setdefault(slot.stage, _Seen())
            for access in self.plan.statement(slot).writes:
                seen.group[access.buffer] = self.group[access.buffer] = group
                seen.groups = max(seen.groups, len(stage.groups))
            stage.head = t - slot.stage
            seen.head = stage.head
        for number, seen in self.seen.items():
            if number <= slot.stage and self._reads(slot) & seen.group.keys():
                stages.setdefault(number, _Stage()).consumed = True

    @staticmethod
    def _group(place: int, slot: Slot, stage: _Stage) -> int:
        """Put a producer into a commit group: its annotated one, else the current one unless that was consumed."""
        if slot.group >= 0:
            known = slot.group in stage.named
            group = stage.named.setdefault(slot.group, len(stage.groups))
        else:
            known = bool(stage.groups) and not stage.consumed
            group = len(stage.groups) - 1 if known else len(stage.groups)
        if not known:
            stage.groups.append([])
        stage.groups[group].append(place)
        return group

    def _reads(self, slot: Slot) -> frozenset[str]:
        return self.plan.seen[slot.number][1]

    @staticmethod
    def _completes(place: int, stage: _Stage) -> int | None:
        return next((g for g, places in enumerate(stage.groups) if places[-1] == place), None)

    def _wait_before(
        self, place: int, slot: Slot, t: int, stages: dict[int, _Stage], committed: dict[int, int]
    ) -> None:
        reads, used = self._read_order(slot), self._reads(slot)
        producer = next((p for p, s in self.seen.items() if p <= slot.stage and s.group.keys() & used), None)
        if producer is None:
            return
        stage = stages.setdefault(producer, _Stage())
        seen = self.seen[producer]
        iteration = t - slot.stage
        if stage.groups:
            latest, head = committed.get(producer), stage.head
            assert head is not None
            if latest is None:
                latest, head = len(stage.groups) - 1, head - 1
            count, valid = len(stage.groups), self._not_negative(head)
        elif iteration >= self.trips - self.plan.last_stage and seen.groups:
            latest, head, count, valid = seen.groups - 1, self.trips - 1, seen.groups, True
        else:
            wait = seen.head - iteration if seen.head is not None and self._not_negative(seen.head) else 0
            _record(stage, -1, place, wait)
            return
        groups = self.group if stage.groups else seen.group
        for group in dict.fromkeys(groups[b] for b in reads if b in seen.group):
            wait = (head - iteration) * count + latest - group
            _record(stage, group, place, wait if valid and wait >= 0 else 0)

    def _read_order(self, slot: Slot) -> tuple[str, ...]:
        return self.plan.seen[slot.number][0]

    def _not_negative(self, iteration: int) -> bool:
        """The compiler tests the loop variable, not the iteration number; an unknown start decides nothing."""
        return self.base is not None and self.base + iteration >= 0


def _record(stage: _Stage, group: int, place: int, count: int) -> None:
    old = stage.waits.get(group)
    stage.waits[group] = (place, count) if old is None else (old[0], min(old[1], count))


def _items(chosen: list[Slot], stages: dict[int, _Stage]) -> Iterator[Item]:
    before: dict[int, dict[int, int]] = {}
    group_of: dict[int, tuple[int, int]] = {}
    for number, stage in sorted(stages.items()):
        for group, places in enumerate(stage.groups):
            group_of.update((place, (number, group)) for place in places)
        for place, count in stage.waits.values():
            counts = before.setdefault(place, {})
            counts[number] = min(counts.get(number, count), count)
    place = 0
    while place < len(chosen):
        for _, count in sorted(before.get(place, {}).items()):
            yield Wait(count)
        tag = group_of.get(place)
        if tag is None:
            yield Run(chosen[place])
            place += 1
            continue
        runs = []
        while place < len(chosen) and group_of.get(place) == tag:
            runs.append(Run(chosen[place]))
            place += 1
        yield Commit(tuple(runs))


# ------------------------------------------------------------------------------------------------ relaxing of waits


def _relaxed(plan: Plan, parts: list[Part]) -> list[Part]:
    """Weaken waits for zero groups, first in the steady loop, then in the last steps of the epilogue."""
    retain = 1 if plan.retain_stages is None else max(0, plan.retain_stages - 1)
    if retain == 0:
        return parts
    result: list[Part] = []
    outstanding = 0
    for part in parts:
        if part.loop and len(part.items) > 1:
            part = replace(part, items=_relax_loop(plan, part.items, retain, outstanding))
        result.append(part)
        if any(isinstance(item, Wait) for item in part.items):
            outstanding = 0
        elif not part.loop and len(part.items) == 1 and isinstance(part.items[0], Commit):
            outstanding += 1
        else:
            commits = _sure_commits(plan, part.items)
            if commits is not None and part.count >= 0:
                outstanding += commits * part.count
    return _relax_tail(result, retain)


def _plain(plan: Plan, item: Item) -> bool:
    match item:
        case Run(slot):
            return all(plan.loop.statements[t].plain for t in (slot.number, *plan.replays[slot.number]))
        case Commit(runs):
            return all(_plain(plan, run) for run in runs)
        case Wait():
            return True


def _sure_commits(plan: Plan, items: tuple[Item, ...]) -> int | None:
    """How many groups the items commit, if that can be told from the text."""
    if not all(_plain(plan, item) for item in items):
        return None
    return sum(isinstance(item, Commit) for item in items)


def _relax_loop(plan: Plan, items: tuple[Item, ...], retain: int, outstanding: int) -> tuple[Item, ...]:
    body = list(items)
    since_wait, waited = 0, False
    for place, item in enumerate(body):
        match item:
            case Commit():
                outstanding += 1
                since_wait += 1
            case Wait(pending):
                if pending == 0:
                    at_head = since_wait == 0 and not waited
                    candidate = retain * (1 if at_head else since_wait)
                    enough = not at_head or (
                        outstanding >= candidate + 1 and _commits_before_wait(plan, body[place + 1 :]) > 0
                    )
                    if candidate > 0 and enough:
                        pending = candidate
                        body[place] = Wait(candidate)
                waited = True
                outstanding = min(outstanding, pending)
                since_wait = 0
            case Run() if not _plain(plan, item):
                outstanding = since_wait = 0
    return tuple(body)


def _commits_before_wait(plan: Plan, items: list[Item]) -> int:
    commits = 0
    for item in items:
        if isinstance(item, Wait):
            break
        if isinstance(item, Commit):
            if not _plain(plan, item):
                break
            commits += 1
    return commits


def _relax_tail(parts: list[Part], retain: int) -> list[Part]:
    """The last steps wait for 0 groups each: let all but the last of them leave some pending."""
    places: list[int] = []
    for place in reversed(range(len(parts))):
        items = parts[place].items
        first = next((item for item in items if isinstance(item, Wait)), None)
        if parts[place].loop or any(isinstance(i, Commit) for i in items) or first is None or first.pending:
            break
        places.append(place)
    for distance, place in enumerate(places[1:], 1):
        items = parts[place].items
        first_wait = next(n for n, item in enumerate(items) if isinstance(item, Wait))
        relaxed = (*items[:first_wait], Wait(min(retain, distance)), *items[first_wait + 1 :])
        parts[place] = replace(parts[place], items=relaxed)
    return parts


# --------------------------------------------------------------------------------------------------------- execution


def steps(parts: list[Part]) -> Iterator[tuple[Part, int, tuple[Item, ...]]]:
    """Every step that is executed: its part, its time, and its items."""
    for part in parts:
        for t in range(part.start, part.start + part.count):
            yield part, t, part.items
