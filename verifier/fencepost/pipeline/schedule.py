"""What does the compiler make of the annotations: which statements run where, and how many versions has a buffer?

`resolve` gives every scheduled statement its stage, order and async marks; `Plan` holds them together with what
follows from them.  Nothing here asks whether the result is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from fencepost.pipeline.model import Access, Loop, Statement


@dataclass(frozen=True, slots=True)
class Slot:
    """Where the annotations put statement `number` (its place in the source)."""

    number: int
    stage: int
    order: int
    is_async: bool = False
    group: int = -1


@dataclass(frozen=True)
class Plan:
    """The schedule of an accepted loop.

    `slots` are the scheduled statements in source order.  `replayed` are the binds that have no place of their own:
    they are emitted again before each consumer.  `retain_stages` is the number of stages that the compiler assumes
    when it relaxes waits.  `like`: a plan whose versions count for this one too.
    """

    loop: Loop
    slots: tuple[Slot, ...]
    replayed: frozenset[int]
    retain_stages: int | None
    like: Plan | None = None

    def altered(self, loop: Loop) -> Plan:
        """The same schedule and versions for statements with other conditions or slots."""
        return Plan(loop, self.slots, self.replayed, self.retain_stages, self)

    @cached_property
    def rewritten(self) -> bool:
        """False if all statements share one stage: the loop is kept as it is and `order` has no effect."""
        return len({slot.stage for slot in self.slots}) > 1

    @cached_property
    def last_stage(self) -> int:
        return max(-1, max(slot.stage for slot in self.slots))

    @property
    def depth(self) -> int:
        return self.last_stage + 1

    @cached_property
    def slot(self) -> dict[int, Slot]:
        return {slot.number: slot for slot in self.slots}

    @cached_property
    def emitted(self) -> tuple[Slot, ...]:
        """The slots in the order in which one step of the pipeline runs them."""
        return tuple(sorted(self.slots, key=lambda slot: slot.order)) if self.rewritten else self.slots

    def statement(self, slot: Slot) -> Statement:
        return self.loop.statements[slot.number]

    @cached_property
    def replays(self) -> dict[int, tuple[int, ...]]:
        """Scheduled statement -> the binds that are emitted again before it, dependencies first."""
        return {slot.number: self._needed(slot.number) for slot in self.slots}

    def _needed(self, number: int) -> tuple[int, ...]:
        order: list[int] = []
        stack = [(name, False) for name in reversed(self.loop.statements[number].uses)]
        while stack:
            name, done = stack.pop()
            definition = self.loop.definition.get(name)
            if definition is None or definition not in self.replayed or definition in order:
                continue
            if done:
                order.append(definition)
                continue
            stack.append((name, True))
            stack.extend((n, False) for n in reversed(self.loop.statements[definition].uses) if n != name)
        return tuple(order)

    @cached_property
    def seen(self) -> dict[int, tuple[tuple[str, ...], frozenset[str]]]:
        """Scheduled statement -> the buffers that it and its replayed binds read, as the compiler sees it."""
        result = {}
        for slot in self.slots:
            texts = (*self.replays[slot.number], slot.number)
            order = tuple(a.buffer for t in texts for a in self.loop.statements[t].seen)
            result[slot.number] = order, frozenset(order)
        return result

    @cached_property
    def scalars(self) -> dict[int, tuple[int, ...]]:
        """Scheduled statement -> the scheduled binds whose value it uses, directly or through replayed binds."""
        result = {}
        for slot in self.slots:
            texts = (slot.number, *self.replays[slot.number])
            names = [n for t in texts for n in self.loop.statements[t].uses]
            found = (self.loop.definition.get(n) for n in names)
            binds = dict.fromkeys(d for d in found if d is not None and d not in self.replayed and d != slot.number)
            result[slot.number] = tuple(binds)
        return result

    @cached_property
    def written_later(self) -> tuple[Access, ...]:
        """What is written, other than asynchronously, once the loop has ended."""
        again = (s for s in self.slots if self.loop.repeated and not s.is_async)
        own = dict.fromkeys(Access(a.buffer) for s in again for a in self.statement(s).writes)
        return (*self.loop.written_later, *own)

    @cached_property
    def changing(self) -> frozenset[str]:
        """The buffers that the loop writes, or whoever comes after it while asynchronous statements still use them."""
        late = self.written_later if any(slot.is_async for slot in self.slots) else ()
        return self.loop.written | {a.buffer for a in late}

    @cached_property
    def visible(self) -> tuple[frozenset[str], tuple[Slot, ...]]:
        """The buffers whose contents may reach something visible after the loop, and the statements that do that.

        Other statements have no effect on what the loop computes.
        """
        buffers = {b.name for b in self.loop.buffers if not b.local} | {a.buffer for a in self.loop.after}
        numbers: set[int] = set()
        while True:
            new = {
                slot.number
                for slot in self.slots
                if any(a.buffer in buffers for a in self.statement(slot).writes)
                or any(slot.number in self.scalars[n] for n in numbers)
            } - numbers
            if not new:
                return frozenset(buffers), tuple(slot for slot in self.slots if slot.number in numbers)
            numbers |= new
            buffers |= {a.buffer for n in new for a in self.loop.statements[n].reads}

    @cached_property
    def versions(self) -> dict[str, int]:
        """Copies that the compiler keeps of each local buffer that the loop uses."""
        if self.like is not None:
            return self.like.versions
        used = {a.buffer for s in self.loop.statements for a in (*s.reads, *s.writes)}
        split = (b.name for b in self.loop.buffers if b.local and not b.inner)
        return {name: self._versions(name) for name in split if name in used}

    def _versions(self, buffer: str) -> int:
        writers = [s for s in self.slots if any(a.buffer == buffer for a in self.statement(s).writes)]
        readers = [s for s in self.slots if any(a.buffer == buffer for a in self.statement(s).seen)]
        first = min((s.stage for s in writers), default=-1)
        # The compiler marks "not seen" by -1, so a stage of -1 counts as no writer, or no reader.
        if not self.rewritten or first == -1:
            return 1
        count = max((s.stage for s in readers), default=-1)
        count = max(count, -1) - first + 1
        if count >= 2 and not any(self._needs_all(w, r, buffer) for w in writers for r in readers):
            count -= 1
        return max(count, 1)

    def _needs_all(self, writer: Slot, reader: Slot, buffer: str) -> bool:
        """A reader in a later stage that is also ordered after a writer of overlapping cells keeps all versions."""
        if not (writer.stage < reader.stage and writer.order < reader.order):
            return False
        writes = [a for a in self.statement(writer).writes if a.buffer == buffer]
        reads = [a for a in self.statement(reader).seen if a.buffer == buffer]
        return self.loop.may_overlap(writes, reads)

    def version(self, buffer: str, iteration: int) -> int:
        """The version that iteration `iteration` uses (0 for a buffer with one version)."""
        count = self.versions.get(buffer, 1)
        return iteration % count if count > 1 else 0

    def instances(self, trips: int) -> Iterator[tuple[str, int, Slot, int]]:
        """All executed statements for `trips` iterations, in order: part, step, slot, iteration.

        The part is "prologue", "body" or "epilogue"; the step counts from 0 through all three.  Only the steady part
        runs without a bound check, so a negative stage makes it leave the range of iterations.
        """
        if not self.rewritten:
            for iteration in range(trips):
                for slot in self.slots:
                    yield "body", iteration, slot, iteration
            return
        last = self.last_stage
        steps = [("prologue", t) for t in range(last)]
        steps += [("body", t) for t in range(last, trips)]
        steps += [("epilogue", t) for t in range(trips, trips + last)]
        for step, (part, t) in enumerate(steps):
            for slot in self.emitted:
                iteration = t - slot.stage
                if part == "body" or 0 <= iteration < trips:
                    yield part, step, slot, iteration


def body_extent(plan: Plan, trips: int) -> int:
    """Trips of the steady loop (0 if there are none)."""
    return max(0, trips - plan.last_stage) if plan.rewritten else trips
