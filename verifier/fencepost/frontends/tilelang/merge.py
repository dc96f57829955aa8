"""What does a nest of loops do as a single operation?

Inside a pipelined loop a statement runs as a whole, so only what goes in and out of it matters: the reads that it does
not fill itself, and its writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fencepost import ir
from fencepost.frontends.tilelang.regions import spread
from fencepost.frontends.tilelang.values import Branch, Gap, Let, Loop, Node, Op, Pipe, Region, Vague

Extents = dict[str, tuple[ir.Expr, ir.Expr]]
"""Loop variables and their ranges: (start, stop)."""


def merged(nodes: Iterable[Node], extents: Extents, span: ir.Span) -> Node:
    """One operation that does everything that `nodes` do, for all values of the parallel variables."""
    reads: list[Region] = []
    writes: list[Region] = []
    names: list[str] = []
    barrier = False
    uses: dict[str, None] = {}
    conditional = tile = False
    work: list[tuple[Node, bool, Extents]] = [(n, True, extents) for n in nodes]
    while work:
        node, surely, ranges = work.pop(0)
        match node:
            case Op():
                names.append(node.name)
                barrier = barrier or node.barrier
                uses.update(dict.fromkeys(node.uses))
                tile = tile or node.tile
                for region in node.reads:
                    wide = spread(region, ranges)
                    if not any(w == wide and not _vague(w) for w in writes):
                        reads.append(wide)
                for region in node.writes:
                    wide = spread(region, ranges)
                    writes.append(wide if surely else Region(wide.tensor, (Vague(),)))
            case Let(_, value):
                reads += [spread(r, ranges) for r in value.loads]
            case Branch(arms, orelse):
                conditions = [c for c, _ in arms if c is not None]
                uses.update(dict.fromkeys(node.uses))
                conditional = conditional or bool(conditions)
                reads += [spread(r, ranges) for c in conditions for r in c.loads]
                inner = [n for _, body in arms for n in body] + list(orelse)
                work = [(n, surely and not conditions, ranges) for n in inner] + work
            case Loop() | Pipe():
                inside = {**ranges, node.var: (node.start, node.stop)}
                work = [(n, surely and node.sure, inside) for n in node.body] + work
            case Gap():
                return node
    single = set(names)
    name = single.pop() if len(single) == 1 else "parallel"
    return Op(
        name, tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)), span, barrier, tuple(uses), conditional, tile
    )


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
                reads = tuple(spread(r, extents) for r in node.reads)
                result.append(replace(node, reads=reads, writes=tuple(spread(w, extents) for w in node.writes)))
            case Branch():
                arms = tuple((c, simplified(body, extents, in_pipe)) for c, body in node.arms)
                result.append(replace(node, arms=arms, orelse=simplified(node.orelse, extents, in_pipe)))
            case Loop():
                if not _holds_pipe(node.body):
                    result.append(merged((node,), extents, node.span))
                else:
                    inside = {**extents, node.var: (node.start, node.stop)}
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
