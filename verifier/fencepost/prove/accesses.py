"""Accesses: are all uses of memory ordered, and does every read find its value?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.prove.events import Event, Instance, Operand, pair
from fencepost.prove.expressions import smt_name
from fencepost.prove.kernels import Closed
from fencepost.prove.obligations import Obligation, Order, Relation, Source, at
from fencepost.prove.rewrite import Substitution
from fencepost.prove.terms import (
    FALSE,
    TRUE,
    Atom,
    Cond,
    Lin,
    apply,
    conjoin,
    const,
    disjoin,
    eq,
    negate,
    symbol,
)

PAIRS = 400
"""Overlapping slots of two buffers beyond which it counts as unknown which of them overlap."""


def accesses(kernel: Closed) -> Iterator[Obligation]:
    """All obligations about memory."""
    memory = Memory(kernel)
    events = [e for trace in kernel.traces.values() for e in trace.events if e.operands]
    for i, one in enumerate(events):
        for other in events[i + 1 :]:
            if one.agent == other.agent and one.pipe == other.pipe:
                continue
            relation = memory.conflict(one, other)
            if relation is not None:
                lanes = {one.agent, other.agent} == {"aiv0", "aiv1"}
                name = f"order of {at(one)} and {at(other)}"
                need = Order(one, other, relation, either=True)
                yield Obligation(name, "lanes" if lanes else "order", other.stmt.span, need=need)
    for event in events:
        yield from memory.sources(event, events)
    yield from memory.blocks(events)


@dataclass(slots=True)
class Memory:
    """Which operands meet in memory."""

    kernel: Closed
    _written: dict[str, bool] = field(default_factory=dict)
    _overlaps: dict[object, list[tuple[int, int, int, int]] | None] = field(default_factory=dict)

    def conflict(self, one: Event, other: Event) -> Relation | None:
        """When two operations meet in memory and one of them writes; None if never."""
        meetings = [
            (a, b)
            for a in one.operands
            for b in other.operands
            if (a.writes or b.writes) and self.table(one, a, other, b) != []
        ]
        if not meetings:
            return None
        return lambda x, y: disjoin(self.overlap(x, a, y, b) for a, b in meetings)

    def overlap(self, one: Instance, a: Operand, other: Instance, b: Operand) -> Cond:
        """When two operands may share a byte."""
        return self._meet(one.event, a, (one.lin(a.slot), one.lin(a.part)), other.event, b,
                          (other.lin(b.slot), other.lin(b.part)))  # fmt: skip

    def same(self, one: Instance, a: Operand, other: Instance, b: Operand) -> Cond:
        """When two operands surely share a byte; where there are too many slots, that of whole slots of one buffer."""
        if self.table(one.event, a, other.event, b) is not None:
            return self.overlap(one, a, other, b)
        if a.access.name != b.access.name or not a.parts == b.parts == 1:
            return FALSE
        lanes = {*self.lanes(one.event, a)} & {*self.lanes(other.event, b)}
        return eq(one.lin(a.slot), other.lin(b.slot)) if lanes else FALSE

    def _meet(
        self, one: Event, a: Operand, where: tuple[Lin, Lin], other: Event, b: Operand, there: tuple[Lin, Lin]
    ) -> Cond:
        table = self.table(one, a, other, b)
        if table is None:
            return TRUE
        if a.parts == b.parts == 1 and all(i == j for i, _, j, _ in table):
            depths = self.kernel.resolver.layout.depths
            if len(table) == depths[a.access.name] == depths[b.access.name]:
                return eq(where[0], there[0])  # both are in range, by obligations of their own
        return disjoin(conjoin(eq(t, const(n)) for t, n in zip((*where, *there), row, strict=True)) for row in table)

    def table(self, one: Event, a: Operand, other: Event, b: Operand) -> list[tuple[int, int, int, int]] | None:
        """The (slot, part, slot, part) that overlap; None if they are too many to be told apart."""
        sides = tuple((o.access.name, o.parts, self.lanes(e, o)) for e, o in ((one, a), (other, b)))
        if sides not in self._overlaps:
            self._overlaps[sides] = self._compare(*sides)
        return self._overlaps[sides]

    def _compare(
        self, one: tuple[str, int, tuple[int, ...]], other: tuple[str, int, tuple[int, ...]]
    ) -> list[tuple[int, int, int, int]] | None:
        layout = self.kernel.resolver.layout
        holders: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for slot in range(layout.depths[other[0]]):
            for part in range(other[1]):
                for lane in other[2]:
                    for cell in layout.cells(other[0], slot, lane, part, other[1]):
                        holders[cell].append((slot, part))
        found: dict[tuple[int, int, int, int], None] = {}
        for slot in range(layout.depths[one[0]]):
            for part in range(one[1]):
                for lane in one[2]:
                    for cell in layout.cells(one[0], slot, lane, part, one[1]):
                        for theirs in holders.get(cell, ()):
                            found[slot, part, *theirs] = None
        return None if len(found) > PAIRS else list(found)

    def lanes(self, event: Event, operand: Operand) -> tuple[int, ...]:
        """The sub-cores whose copy of a buffer an operand touches."""
        if event.agent != "aic":
            return (int(event.agent[-1]),)
        if self.kernel.resolver.layout.spaces[operand.access.name] != "Vec":
            return (0,)
        assert isinstance(event.stmt, ir.DataOp)
        return {"both": (0, 1), "0": (0,), "1": (1,)}[event.stmt.lanes]

    # -------------------------------------------------------------------------------------------- values

    def sources(self, reader: Event, events: list[Event]) -> Iterator[Obligation]:
        """Every read of a buffer that the kernel writes is preceded by a write."""
        for i, read in enumerate(reader.operands):
            if read.writes or not self._is_written(read.access.name):
                continue
            writers = [
                (e, [w for w in e.operands if w.writes and self.table(reader, read, e, w) != []]) for e in events
            ]
            writers = [(e, ws) for e, ws in writers if ws]
            table = dict(writers)

            def relation(
                here: Instance, there: Instance, read: Operand = read, table: dict[Event, list[Operand]] = table
            ) -> Cond:
                return disjoin(self.same(here, read, there, w) for w in table.get(there.event, ()))

            name = f"written before read: operand {i} of {at(reader)}"
            need = Source(reader, tuple(e for e, _ in writers), relation)
            yield Obligation(name, "written", reader.stmt.span, need=need)

    def _is_written(self, buffer: str) -> bool:
        if buffer not in self._written:
            layout = self.kernel.resolver.layout
            nodes = (n for n in ir.walk(self.kernel.compiled.kernel) if isinstance(n, ir.DataOp))
            names = {a.name for n in nodes for a in n.writes if a.name in layout.depths}
            self._written[buffer] = layout.overlapping(buffer, names)
        return self._written[buffer]

    # -------------------------------------------------------------------------------------------- blocks

    def blocks(self, events: list[Event]) -> Iterator[Obligation]:
        """Two blocks never touch the same slot of a shared buffer, unless both only read it."""
        shared = {b.name for b in self.kernel.compiled.kernel.buffers if b.shared}
        for i, one in enumerate(events):
            for other in events[i:]:
                for a in (o for o in one.operands if o.access.name in shared):
                    for b in (o for o in other.operands if o.access.name in shared):
                        if a.writes or b.writes:
                            yield self._apart(one, a, other, b)

    def _apart(self, one: Event, a: Operand, other: Event, b: Operand) -> Obligation:
        """The second block has its own number; parameters are common, and so is what is read from memory."""
        x, y = pair(one, other, self.kernel.sums)
        theirs = _OtherBlock({smt_name("block"): symbol("block!2")})
        there = theirs.lin(y.lin(b.slot)), theirs.lin(y.lin(b.part))
        meet = self._meet(one, a, (x.lin(a.slot), x.lin(a.part)), other, b, there)
        facts = [x.domain, theirs.cond(y.domain), *map(theirs.cond, self.kernel.assumptions), meet]
        if "block" in self.kernel.compiled.parameters:
            facts.append(negate(eq(symbol(smt_name("block")), symbol("block!2"))))
        name = f"blocks share {a.access.name}: {at(one)}, {at(other)}"
        return Obligation(name, "blocks", other.stmt.span, tuple(facts))


class _OtherBlock(Substitution):
    """Renames the block; functions that this prover made up may depend on it without saying so."""

    def touches(self, symbols: frozenset[str]) -> bool:
        return bool(symbols)

    def atom(self, atom: Atom) -> Lin:
        if atom.kind == "apply" and not atom.name.startswith(("f.", "op.")):
            return apply(f"{atom.name}!2", tuple(map(self.lin, atom.terms)))
        return super().atom(atom)
