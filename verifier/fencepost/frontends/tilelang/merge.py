"""What does a nest of loops do as a single operation?

Inside a pipelined loop a statement runs as a whole, so only what goes in and out of it matters: the reads that it does
not fill itself, and its writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.frontends.tilelang.regions import Extents, filled, spread
from fencepost.frontends.tilelang.values import Branch, Gap, Let, Loop, Node, Op, Pipe, Region, Vague, names_of

_Doubts = frozenset[str] | None
"""The loop variables that may take no value at all; None if something else decides whether an operation runs."""


def merged(
    nodes: Iterable[Node],
    extents: Extents,
    span: ir.Span,
    doubts: _Doubts = frozenset(),
    loads: tuple[Region, ...] = (),
    names: tuple[str, ...] = (),
) -> Node:
    """One operation that does everything that `nodes` do, for all values of the parallel variables.

    `doubts` are the variables that may take no value, None if it is not known whether the nodes run.  `loads` are read
    before, and `names` are those in the bounds of the parallel variables.
    """
    work: list[tuple[Node, _Doubts, Extents]] = [(n, doubts, extents) for n in nodes]
    effects = _Effects(others=list(loads), names_read=dict.fromkeys(names))
    while work:
        node, unsure, ranges = work.pop(0)
        match node:
            case Op():
                effects.operation(node, unsure, ranges)
            case Let(name, value):
                effects.read(value.loads, ranges)
                effects.lets.add(name)
            case Branch(arms, orelse):
                conditions = [c for c, _ in arms if c is not None]
                effects.conditional = effects.conditional or bool(conditions)
                for condition in conditions:
                    effects.read(condition.loads, ranges)
                effects.mention(names_of(c.expr for c in conditions))
                inner = [n for _, body in arms for n in body] + list(orelse)
                work = [(n, None if conditions else unsure, ranges) for n in inner] + work
            case Loop() | Pipe():
                effects.read(node.loads, ranges)
                effects.mention(names_of((node.start, node.stop, None if isinstance(node, Pipe) else node.step)))
                whole = isinstance(node, Pipe) or node.step == ir.Int(1)
                inside = {**ranges, node.var: (node.start, node.stop) if whole else None}
                below = unsure if node.sure or unsure is None else unsure | {node.var}
                work = [(n, below, inside) for n in node.body] + work
            case Gap():
                return node
    return effects.result(span)


@dataclass(slots=True)
class _Effects:
    """What operations do together, so far; `lets` are the scalars that they define."""

    others: list[Region]
    reads: list[Region] = field(default_factory=list)
    writes: list[Region] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    lets: set[str] = field(default_factory=set)
    barrier: bool = False
    conditional: bool = False
    tile: bool = False
    names_read: dict[str, None] = field(default_factory=dict)

    def operation(self, op: Op, doubts: _Doubts, ranges: Extents) -> None:
        """`doubts`: the variables that may take no value, as in `merged`."""
        self.names.add(op.name)
        self.mention(op.names)
        self.barrier = self.barrier or op.barrier
        self.conditional = self.conditional or op.conditional
        self.tile = self.tile or op.tile
        self.reads += self._exposed(op.reads, ranges)
        self.read(op.others, ranges)
        targets = [(region, spread(region, ranges), self._places(region.at, ranges)) for region in op.writes]
        for region, wide, at in targets:
            # no round of a loop over all entries of a dimension: then it has no entries
            surely = doubts is not None and (not doubts or doubts <= filled(region, ranges))
            self.writes.append(replace(wide, at=at) if surely else Region(wide.tensor, (Vague(),), at))

    def mention(self, names: Iterable[str]) -> None:
        """Depend on scalars that hold these names."""
        self.names_read |= dict.fromkeys(names)

    def read(self, regions: Iterable[Region], ranges: Extents) -> None:
        """Read something that is no operand."""
        self.others += self._exposed(regions, ranges)

    def _exposed(self, regions: Iterable[Region], ranges: Extents) -> Iterator[Region]:
        """Without what is surely written before; elements whose place is read from memory may be others by then."""
        for region in regions:
            wide = replace(spread(region, ranges), at=self._places(region.at, ranges))
            if region.at or _vague(wide) or not any(w == wide for w in self.writes):
                yield wide

    def _places(self, regions: tuple[Region, ...], ranges: Extents) -> tuple[Region, ...]:
        return tuple(dict.fromkeys(self._exposed(regions, ranges)))

    def result(self, span: ir.Span) -> Op:
        """All as one operation."""
        name = self.names.pop() if len(self.names) == 1 else "parallel"
        return Op(
            name,
            self._kept(self.reads),
            self._kept(self.writes),
            span,
            self.barrier,
            self.conditional,
            self.tile,
            self._kept(self.others),
            tuple(self.names_read),
        )

    def _kept(self, regions: Iterable[Region]) -> tuple[Region, ...]:
        """What comes from outside."""
        kept = (r for r in regions if r.tensor.memory != "value" or r.tensor.name not in self.lets)
        return tuple(dict.fromkeys(replace(r, at=self._kept(r.at)) if r.at else r for r in kept))


def _vague(region: Region) -> bool:
    return any(isinstance(d, Vague) for d in region.dims or ())


def simplified(nodes: Iterable[Node], extents: Extents, in_pipe: bool = False) -> tuple[Node, ...]:
    """The nodes with every loop that holds no pipelined loop as a single operation.

    `extents` are the loops around the nodes, up to the nearest pipelined one.
    """
    result: list[Node] = []
    for node in nodes:
        match node:
            case Op():
                reads, writes, others = (
                    tuple(spread(r, extents) for r in found) for found in (node.reads, node.writes, node.others)
                )
                result.append(replace(node, reads=reads, writes=writes, others=others))
            case Branch():
                arms = tuple((c, simplified(body, extents, in_pipe)) for c, body in node.arms)
                result.append(replace(node, arms=arms, orelse=simplified(node.orelse, extents, in_pipe)))
            case Loop():
                if not _holds_pipe(node.body):
                    result.append(merged((node,), extents, node.span))
                else:
                    inside = {**extents, node.var: (node.start, node.stop) if node.step == ir.Int(1) else None}
                    result.append(replace(node, body=simplified(node.body, inside, in_pipe)))
            case Pipe():
                result.append(replace(node, body=simplified(node.body, {}, True)))
            case _:
                result.append(node)
    return tuple(result)


def _holds_pipe(nodes: Iterable[Node]) -> bool:
    stack = list(nodes)
    while stack:
        node = stack.pop()
        match node:
            case Pipe():
                return True
            case Loop():
                stack += node.body
            case Branch():
                stack += [n for _, body in node.arms for n in body] + list(node.orelse)
    return False
