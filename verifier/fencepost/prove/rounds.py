"""Rounds: does a read that says which round it means (`task =`) find what was written for this round?

Asked where the other core writes with rounds.  Rounds grow from write to write, or fall where a text counts down.  A
write of the read's round comes before the read and those of later rounds come after it, so that the last one before it
is of its round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.prove.accesses import PAIRS, Memory
from fencepost.prove.events import Event, Instance, Operand, pair, precedes
from fencepost.prove.kernels import Closed
from fencepost.prove.obligations import Obligation, Order, Relation, Source, at
from fencepost.prove.terms import FALSE, Cond, Lin, conjoin, const, disjoin, div, eq, lt, negate, symbol

Row = tuple[int, int, int, int]
"""Slot and part of a read, slot and part of a write that covers one cell of it."""


def rounds(kernel: Closed) -> Iterator[Obligation]:
    """All obligations about rounds."""
    events = (e for trace in kernel.traces.values() for e in trace.events)
    found = _Rounds(Memory(kernel), [e for e in events if e.operands and e.task is not None])
    yield from found.reads()
    yield from found.writes()


@dataclass(slots=True)
class _Rounds:
    """The operations with rounds of one kernel."""

    memory: Memory
    events: list[Event]
    ordered: dict[tuple[Event, Event, bool], None] = field(default_factory=dict)  # two writers; whether rounds fall

    def reads(self) -> Iterator[Obligation]:
        """Every read finds its round, provided that writes come in the order of their rounds."""
        for reader in self.events:
            for i, read in enumerate(reader.operands):
                writers = [] if read.writes else self._writers(reader, read)
                if not writers:
                    continue
                down = any(map(_counts_down, writers))
                self.ordered |= dict.fromkeys((e, f, down) for e in writers for f in writers)
                name, span = f"round of operand {i} of {at(reader)}", reader.stmt.span
                for writer in writers:
                    yield from self._same_slot(writer, reader, read)
                    need = Order(reader, writer, self._later(read, down))
                    yield Obligation(f"{name}: later than {at(writer)}", "round", span, need=need)
                for cell, tables in enumerate(self._covers(reader, read, writers)):
                    source = Source(reader, (*writers,), self._of_round(read, tables), self._place)
                    yield Obligation(f"{name}, cell {cell}", "round", span, need=source)

    def writes(self) -> Iterator[Obligation]:
        """Of two writes of one cell, that of the earlier round comes first."""
        for one, other, down in self.ordered:

            def relation(x: Instance, y: Instance, down: bool = down) -> Cond:
                ends = ((a, b) for a in _writes(x.event) for b in _writes(y.event))
                return conjoin((disjoin(self.memory.overlap(x, a, y, b) for a, b in ends), _earlier(x, y, down)))

            name, span = f"rounds of {at(one)} before {at(other)}", other.stmt.span
            if (one.agent, one.pipe) != (other.agent, other.pipe):
                yield Obligation(name, "round", span, need=Order(one, other, relation))
            else:
                x, y = pair(one, other, self.memory.kernel.sums)
                late = negate(precedes(x.place, y.place))
                yield Obligation(name, "round", span, (x.domain, y.domain, relation(x, y), late))

    def _writers(self, reader: Event, read: Operand) -> list[Event]:
        """The operations of the other core whose writes a read may find."""
        others = (e for e in self.events if (e.agent == "aic") != (reader.agent == "aic"))
        return [e for e in others if any(self.memory.table(reader, read, e, w) != [] for w in _writes(e))]

    def _same_slot(self, writer: Event, reader: Event, read: Operand) -> Iterator[Obligation]:
        """A write and a read for one round touch the same bytes of their buffer."""
        for write in (o for o in _writes(writer) if o.access.name == read.access.name):
            one, other = pair(writer, reader, self.memory.kernel.sums)
            apart = negate(self.memory.same(one, write, other, read))
            name = f"slots of {write.access.name} for one task: {at(writer)}, {at(reader)}"
            conditions = (one.domain, other.domain, eq(_task(one), _task(other)), apart)
            yield Obligation(name, "round", reader.stmt.span, conditions)

    def _later(self, read: Operand, down: bool) -> Relation:
        """A write of what is read, of a later round than that of the read."""

        def relation(here: Instance, there: Instance) -> Cond:
            meet = disjoin(self.memory.overlap(here, read, there, w) for w in _writes(there.event))
            return conjoin((meet, _earlier(here, there, down)))

        return relation

    def _of_round(self, read: Operand, tables: dict[tuple[Event, int], list[Row] | None]) -> Relation:
        """A write, of the round of a read, that covers a certain cell of what is read."""

        def relation(here: Instance, there: Instance) -> Cond:
            covers = (
                _covered(here, read, there, w, tables[there.event, n]) for n, w in enumerate(_writes(there.event))
            )
            return conjoin((disjoin(covers), eq(_task(here), _task(there))))

        return relation

    def _place(self, reader: Instance, writer: Event) -> Instance | None:
        """The execution of a writer that has a reader's round, if the writer's rounds are linear in its one loop."""
        assert writer.task is not None
        if len(writer.indices) != 1:
            return None
        (index,) = writer.indices
        slope = next((k for atom, k in writer.task.parts if atom.text == index), 0)
        rest = writer.task - symbol(index) * slope
        if slope == 0 or index in rest.symbols:
            return None
        term = (_task(reader) - rest) * (1 if slope > 0 else -1)
        return Instance(writer, (div(term, abs(slope)),), self.memory.kernel.sums)

    def _covers(
        self, reader: Event, read: Operand, writers: list[Event]
    ) -> list[dict[tuple[Event, int], list[Row] | None]]:
        """For each cell of what is read: which slots and parts of each write cover it; None: those of the same slot."""
        cells = self._cells(reader, read)
        depth = self.memory.kernel.resolver.layout.depths[read.access.name]
        found: list[dict[tuple[Event, int], list[Row] | None]] = []
        for k in range(max(map(len, cells.values()))):
            tables: dict[tuple[Event, int], list[Row] | None] = {}
            for writer in writers:
                for n, write in enumerate(_writes(writer)):
                    rows = [
                        (*place, *there)
                        for there, covered in self._cells(writer, write).items()
                        for place, needed in cells.items()
                        if k >= len(needed) or needed[k] in covered
                    ]
                    whole = read.access.name == write.access.name and read.parts == write.parts == 1
                    whole = whole and rows == [(s, 0, s, 0) for s in range(depth)]
                    tables[writer, n] = None if whole else rows if len(rows) <= PAIRS else []
            found.append(tables)
        return found

    def _cells(self, event: Event, operand: Operand) -> dict[tuple[int, int], list[int]]:
        """Slot and part -> the cells that an operand touches there."""
        layout, name = self.memory.kernel.resolver.layout, operand.access.name
        lanes = self.memory.lanes(event, operand)
        return {
            (slot, part): list(
                dict.fromkeys(c for lane in lanes for c in layout.cells(name, slot, lane, part, operand.parts))
            )
            for slot in range(layout.depths[name])
            for part in range(operand.parts)
        }


def _covered(here: Instance, read: Operand, there: Instance, write: Operand, rows: list[Row] | None) -> Cond:
    """Whether the slots and parts of a read and a write are among `rows`; None: whenever the slots are equal."""
    if rows is None:
        return eq(here.lin(read.slot), there.lin(write.slot))
    if not rows:
        return FALSE
    terms = here.lin(read.slot), here.lin(read.part), there.lin(write.slot), there.lin(write.part)
    return disjoin(conjoin(eq(t, const(n)) for t, n in zip(terms, row, strict=True)) for row in rows)


def _writes(event: Event) -> list[Operand]:
    return [o for o in event.operands if o.writes]


def _task(instance: Instance) -> Lin:
    assert instance.event.task is not None
    return instance.lin(instance.event.task)


def _earlier(one: Instance, other: Instance, down: bool) -> Cond:
    """Whether the round of one execution is earlier than that of another; `down`: the greater round is the earlier."""
    first, second = (other, one) if down else (one, other)
    return lt(_task(first), _task(second))


def _counts_down(event: Event) -> bool:
    """Whether the round of an event falls as its loops go round."""
    assert event.task is not None
    return any(k < 0 and atom.text in event.indices for atom, k in event.task.parts)
