"""Which mistake in the annotations makes the pipelined loop differ, and which two statement instances show it?

Both programs have been run for some trip count and left different values.  Walking back from those values through the
serial program leads to the reads that got their value from somewhere else: the causes.  A cause is named after the way
in which the read went wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fencepost.pipeline.cells import Cell, Instance
from fencepost.pipeline.decide import Failure
from fencepost.pipeline.model import Whole
from fencepost.pipeline.order import repeats
from fencepost.pipeline.schedule import Plan, Slot
from fencepost.pipeline.values import Execution, Source, identity, instance_of


@dataclass(frozen=True, slots=True)
class Cause:
    """A value that came from the wrong place.

    `reader` read `cell` from `found` instead of `wanted`; None stands for the code after the loop.  `missing`: the
    reader did not run at all.  `overwrites`: it did not read but write the cell, which `found` may still use.
    `statements` are the places in the source to show, the main one first.
    """

    code: str
    reason: str
    buffer: str
    reader: Instance | None
    wanted: Source
    found: Source
    trips: int
    statements: tuple[int, ...]
    missing: bool = False
    overwrites: bool = False


def causes(plan: Plan, failures: tuple[Failure, ...]) -> list[Cause]:
    """The causes that show in some of the runs, each with the smallest trip count that shows it.

    There is one cause per code and buffer, and one per statement that waits too little.
    """
    found: dict[tuple[object, ...], Cause] = {}
    for failure in failures:
        for cause in (*_values(plan, failure), *_waits(plan, failure)):
            found.setdefault(_key(cause), cause)
    # With few trips everything is blamed on statements that run twice; more trips may show another reason.
    named = {_places(c) for c in found.values() if c.code != "926"}
    early = {_places(c): c for c in found.values() if c.code == "926"}
    result: dict[tuple[object, ...], Cause] = {}
    for cause in found.values():
        key: tuple[object, ...] = cause.code, cause.buffer
        if cause.code == "926":
            if _places(cause) in named:
                continue
            key = (cause.code,)
        elif (first := early.get(_places(cause))) is not None:
            cause = replace(cause, reader=first.reader, wanted=first.wanted, found=first.found, trips=first.trips)
        if cause.code in _WAITS:
            key = cause.code, cause.statements[-1]
        if key not in result or cause.trips < result[key].trips:
            result[key] = cause
    return sorted(result.values(), key=lambda c: (c.trips, c.code))


_WAITS = ("928", "929", "930", "931", "932")


def _key(cause: Cause) -> tuple[object, ...]:
    return cause.code, *_places(cause)


def _places(cause: Cause) -> tuple[object, ...]:
    """What was read by whom from where, whatever the iteration."""
    instances = (cause.reader, instance_of(cause.wanted), instance_of(cause.found))
    return cause.buffer, *(None if i is None else i[0] for i in instances)


def _values(plan: Plan, failure: Failure) -> Iterator[Cause]:
    result = failure.outcome
    before = {e.instance: e for e in result.before.executions}
    after: dict[Instance, list[Execution]] = {}
    for e in result.after.executions:
        after.setdefault(e.instance, []).append(e)
    seeds = []
    for cell in result.differs:
        wanted = result.before.final.get(cell, (0, cell))[1]
        got = result.after.final.get(cell, (0, cell))[1]
        seeds.append(wanted)
        if identity(plan.loop, wanted) != identity(plan.loop, got):
            yield _name(plan, failure, None, cell, wanted, got)
    for instance in sorted(_needed(before, seeds), key=lambda i: (i[1], i[0])):
        if instance not in after:
            yield _not_run(plan, failure, instance)
        for execution in after.get(instance, ()):
            for want, have in zip(before[instance].reads, execution.reads, strict=True):
                if identity(plan.loop, want.source) != identity(plan.loop, have.source):
                    yield _name(plan, failure, instance, want.cell, want.source, have.source)


def _needed(before: dict[Instance, Execution], seeds: list[Source]) -> set[Instance]:
    stack = [i for i in map(instance_of, seeds) if i is not None]
    found = set(stack)
    while stack:
        for read in before[stack.pop()].reads:
            source = instance_of(read.source)
            if source is not None and source not in found:
                found.add(source)
                stack.append(source)
    return found


# ------------------------------------------------------------------------------------------------ naming of a cause


def _not_run(plan: Plan, failure: Failure, instance: Instance) -> Cause:
    slot = plan.slot[instance[0]]
    text = plan.statement(slot)
    reason = _past_the_end(plan, slot)
    buffer = text.writes[0].buffer if text.writes else ""
    return Cause("927", reason, buffer, instance, None, None, failure.outcome.trips, (instance[0],), missing=True)


def _name(plan: Plan, failure: Failure, reader: Instance | None, cell: Cell, wanted: Source, found: Source) -> Cause:
    """Find the most specific code for one read that went wrong."""
    read = _Misread(plan, failure.outcome.trips, reader, cell[0], instance_of(wanted), instance_of(found))
    code, reason = read.code()
    numbers = tuple(dict.fromkeys(i[0] for i in read.instances))
    return Cause(code, reason, cell[0].removeprefix("="), reader, wanted, found, failure.outcome.trips, numbers)


@dataclass(frozen=True, slots=True)
class _Misread:
    """`reader` (None: the code after the loop) read `buffer` from `found` instead of `wanted`."""

    plan: Plan
    trips: int
    reader: Instance | None
    buffer: str
    wanted: Instance | None
    found: Instance | None

    @property
    def instances(self) -> list[Instance]:
        return [i for i in (self.reader, self.wanted, self.found) if i is not None]

    def _label(self, instance: Instance) -> str:
        return self.plan.loop.statements[instance[0]].label

    def code(self) -> tuple[str, str]:
        plan, buffer = self.plan, self.buffer
        stages = {i: plan.slot[i[0]].stage for i in self.instances}
        for i in self.instances:
            if stages[i] < 0:
                return "927", _past_the_end(plan, plan.slot[i[0]])
        if self.trips < plan.last_stage and (twice := repeats(plan)):
            numbers = {slot.number for slot in twice}
            slot = next((plan.slot[i[0]] for i in self.instances if i[0] in numbers), twice[0])
            return "926", (
                f"{plan.statement(slot).label} is in stage {slot.stage} of 0 to {plan.last_stage} and runs twice for "
                f"one iteration when there are fewer than {plan.last_stage} trips"
            )
        if buffer.startswith("="):
            return "933", f"bind {buffer[1:]} is scheduled, and a bind computed again from it is used in a later stage"
        versions = plan.versions.get(buffer, 1)
        if versions > 1 and self.reader is None:
            return "925", f"{buffer} has {versions} versions and is read after the loop, where only the first is seen"
        if versions > 1 and self.reader is not None and (self.wanted is None or self.wanted[1] != self.reader[1]):
            return self._split(self.reader, versions)
        return self._reordered()

    def _split(self, reader: Instance, versions: int) -> tuple[str, str]:
        """The serial program reads what an earlier iteration left, but iterations have versions of their own."""
        buffer, label = self.buffer, self._label(reader)
        if any(a.buffer == buffer for a in self.plan.loop.statements[reader[0]].writes):
            return "922", f"{label} accumulates into {buffer}, which is split into {versions} versions"
        for slot in self.plan.slots:
            writer = self.plan.statement(slot)
            writes = [a for a in writer.writes if a.buffer == buffer]
            if writes and slot.number < reader[0]:
                partly = any(not isinstance(a.index, Whole) for a in writes)
                how = f"writes only part of {buffer}" if partly else f"writes {buffer} only in some iterations"
                return "924", f"{writer.label} {how}, which has {versions} versions"
        return "921", f"{label} reads what the previous iteration left in {buffer}, which has {versions} versions"

    def _reordered(self) -> tuple[str, str]:
        reader, wanted, found = self.reader, self.wanted, self.found
        overlap = (
            reader is not None
            and wanted is not None
            and found is not None
            and wanted[1] == reader[1]
            and wanted[0] < reader[0] < found[0]
            and self.plan.slot[reader[0]].stage != self.plan.slot[found[0]].stage
        )
        if overlap:
            return "923", f"{self.buffer} is used twice in each iteration, and the two uses overlap across stages"
        if len({i[1] for i in self.instances}) == 1:
            moved = wanted if reader is None or (found and wanted and found[0] < wanted[0]) else reader
            labels = [self._label(i) for i in sorted({i for i in (found, moved) if i is not None})]
            return "920", f"the order of {' and '.join(labels)} within an iteration is changed"
        return "921", f"a dependence on {self.buffer} from one iteration to another is not kept"


def _past_the_end(plan: Plan, slot: Slot) -> str:
    label = plan.statement(slot).label
    return f"{label} is in the negative stage {slot.stage}: it skips the first iterations and runs past the last one"


# ----------------------------------------------------------------------------------------------- asynchronous copies


def _waits(plan: Plan, failure: Failure) -> Iterator[Cause]:
    history = failure.outcome.after
    early = [(e.instance, cell, writer) for e in history.executions for cell, writer in e.early]
    late = [(None, cell, writer) for cell, writer in history.late]
    for reader, cell, writer in (*early, *late):
        producer = plan.slot[writer[0]]
        consumer = plan.slot[reader[0]] if reader is not None else None
        code, reason = _wait_reason(plan, producer, consumer, cell[0])
        numbers = tuple(dict.fromkeys((writer[0], *((reader[0],) if reader else ()))))
        yield Cause(code, reason, cell[0], reader, writer, writer, failure.outcome.trips, numbers)
    overtaken = [(e.instance, cell, user) for e in history.executions for cell, user in e.overtaken]
    still_open = [(None, cell, user) for cell, user in history.open]
    for by, cell, user in (*overtaken, *still_open):
        source = plan.statement(plan.slot[user[0]]).label
        overwriting = "the code after the loop" if by is None else plan.statement(plan.slot[by[0]]).label
        reason = f"no wait covers the asynchronous {source} before {overwriting} overwrites {cell[0]}"
        numbers = tuple(dict.fromkeys((user[0], *((by[0],) if by else ()))))
        yield Cause("931", reason, cell[0], by, user, user, failure.outcome.trips, numbers, overwrites=True)


def _wait_reason(plan: Plan, producer: Slot, consumer: Slot | None, buffer: str) -> tuple[str, str]:
    source = plan.statement(producer).label
    if consumer is None:
        return "931", f"no wait covers the asynchronous {source} before {buffer} is read after the loop"
    reader = plan.statement(consumer).label
    if consumer.is_async:
        return "929", f"{reader} is asynchronous itself, so the compiler places no wait for {source} before it"
    if producer.stage == consumer.stage:
        return "928", f"{source} is asynchronous and {reader} reads {buffer} in the same stage {consumer.stage}"
    if consumer.stage < producer.stage:
        return "931", (
            f"{reader} in stage {consumer.stage} reads {buffer}, which {source} fills asynchronously in the later "
            f"stage {producer.stage}; the compiler waits in later stages only"
        )
    if plan.retain_stages != plan.depth:
        assumed = "1" if plan.retain_stages is None else str(plan.retain_stages)
        return (
            "930",
            f"waits for the asynchronous {source} are made for {assumed} stages, but the depth is {plan.depth}",
        )
    stages = {s.stage for s in plan.slots if any(a.buffer == buffer for a in plan.statement(s).reads)}
    later = sorted(s for s in stages if s > producer.stage)
    if len(later) > 1:
        return "931", f"the asynchronous {source} fills {buffer}, which is read in stages {_and(later)}"
    group = [s for s in plan.slots if s.is_async and s.stage == producer.stage]
    if len(group) > 1 and any(consumer.order < s.order for s in group):
        return "932", f"of {len(group)} asynchronous copies in one stage, {reader} is ordered before at least one"
    return "932", f"the wait before {reader} leaves the asynchronous {source} pending"


def _and(numbers: list[int]) -> str:
    return " and ".join((", ".join(map(str, numbers[:-1])), str(numbers[-1]))) if len(numbers) > 1 else str(numbers[0])
