"""What does a nest of loops do as a single operation?

Inside a pipelined loop a statement runs as a whole, so only what goes in and out of it matters: the reads that it does
not fill itself, and its writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.frontends.tilelang.regions import Extents, blurred, filled, spread
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
    """What operations do together, so far; `lets` are the scalars that they define.

    `surely` are the writes that are not open to doubt, each with the loops around it.
    """

    others: list[Region]
    reads: list[Region] = field(default_factory=list)
    writes: list[Region] = field(default_factory=list)
    surely: list[tuple[Region, Extents]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    lets: set[str] = field(default_factory=set)
    barrier: bool = False
    conditional: bool = False
    tile: bool = False
    computes: bool = False
    names_read: dict[str, None] = field(default_factory=dict)

    def operation(self, op: Op, doubts: _Doubts, ranges: Extents) -> None:
        """`doubts`: the variables that may take no value, as in `merged`."""
        self.names.add(op.name)
        self.mention(op.names)
        self.barrier = self.barrier or op.barrier
        self.conditional = self.conditional or op.conditional
        self.tile = self.tile or op.tile
        self.computes = self.computes or op.computes
        self.reads += self._exposed(op.reads, ranges)
        self.read(op.others, ranges)
        targets = [(region, spread(region, ranges), self._places(region.at, ranges)) for region in op.writes]
        for region, wide, at in targets:
            # no round of a loop over all entries of a dimension: then it has no entries
            surely = doubts is not None and (not doubts or doubts <= filled(region, ranges))
            self.writes.append(replace(wide, at=at) if surely else Region(wide.tensor, (Vague(),), at))
            self.surely += [(region, ranges)] if surely else ()

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
            if region.at or _vague(wide) or not any(_covers(w, around, region, ranges) for w, around in self.surely):
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
            self.computes,
        )

    def _kept(self, regions: Iterable[Region]) -> tuple[Region, ...]:
        """What comes from outside."""
        kept = (r for r in regions if r.tensor.memory != "value" or r.tensor.name not in self.lets)
        return tuple(dict.fromkeys(replace(r, at=self._kept(r.at)) if r.at else r for r in kept))


def _covers(written: Region, around: Extents, read: Region, inside: Extents) -> bool:
    """Whether a write fills all that is read later; of the loops around both, only one round has passed between."""
    ended = {var: extent for var, extent in around.items() if var not in inside}
    begun = {var: extent for var, extent in inside.items() if var not in around}
    return spread(written, ended) == spread(read, begun)


def _vague(region: Region) -> bool:
    return any(isinstance(d, Vague) for d in region.dims or ())


def simplified(nodes: Iterable[Node], around: Collection[str] = ()) -> tuple[Node, ...]:
    """The nodes with every loop that holds no pipelined loop as a single operation.

    `around` are the variables of the loops around the nodes, up to the nearest pipelined one.
    """
    result: list[Node] = []
    for node in nodes:
        match node:
            case Op():
                result.append(_blurred(node, around))
            case Branch():
                arms = tuple((c, simplified(body, around)) for c, body in node.arms)
                result.append(replace(node, arms=arms, orelse=simplified(node.orelse, around)))
            case Loop() if not _holds_pipe(node.body):
                whole = merged((node,), {}, node.span)
                result.append(_blurred(whole, around) if isinstance(whole, Op) else whole)
            case Loop():
                result.append(replace(node, body=simplified(node.body, (*around, node.var))))
            case Pipe():
                result.append(replace(node, body=simplified(node.body)))
            case _:
                result.append(node)
    return tuple(result)


def _blurred(op: Op, variables: Collection[str]) -> Op:
    """An operation in some loops: which entries it touches that depend on their variables is not told."""
    reads, writes, others = (tuple(blurred(r, variables) for r in part) for part in (op.reads, op.writes, op.others))
    return replace(op, reads=reads, writes=writes, others=others)


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
