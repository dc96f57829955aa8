"""Nests: how do the loops of a program hang together, and how are their positions and trips told apart?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from fencepost import ir
from fencepost.passes.slices import jumps, reads
from fencepost.passes.strides import add, polynomial

Path: TypeAlias = tuple[int, ...]
"""Where a statement stands: its number in the block, then the number of the branch, its number there, and so on.

-1 is the place before the first statement.
"""

_TRIP = "@trip"


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops that hold nothing but scalars and each other, and at last something that acts.

    `acting` is the innermost loop, or the only branch in it that acts: `body` is what stands there, at `path` from the
    first loop on.
    """

    loops: tuple[ir.For, ...]
    acting: ir.For | ir.If
    path: Path

    @property
    def body(self) -> tuple[ir.Stmt, ...]:
        return self.acting.body if isinstance(self.acting, ir.For) else self.acting.branches[0][1]

    @property
    def scalars(self) -> list[ir.Stmt]:
        """The statements of the loops that only work out scalars."""
        inside = self.loops if isinstance(self.acting, ir.If) else self.loops[:-1]
        return [s for loop in inside for s in loop.body if _scalar(s)]


def nest_of(loop: ir.For) -> Nest | None:
    """The nest that begins with a loop; None where trips may end early."""
    loops, path = [loop], list[int]()
    while True:
        if any(_scalar(s) and jumps(s) for s in loops[-1].body):
            return None
        acting = [(k, s) for k, s in enumerate(loops[-1].body) if not _scalar(s)]
        if len(acting) == 1:
            ((k, inner),) = acting
            match inner:
                case ir.For():
                    loops.append(inner)
                    path += [0, k]
                    continue
                case ir.If(branches=((_, body),), orelse=()) if not any(jumps(s) for s in body):
                    return Nest(tuple(loops), inner, (*path, 0, k))
        if any(jumps(s) for s in loops[-1].body):
            return None
        return Nest(tuple(loops), loops[-1], tuple(path))


def _scalar(stmt: ir.Stmt) -> bool:
    """Whether a statement does nothing but work out scalars."""
    plain = ir.Assign | ir.If | ir.For | ir.Break | ir.Continue | ir.Pass
    nodes = [stmt]
    while nodes:
        node = nodes.pop()
        if not isinstance(node, plain):
            return False
        match node:
            case ir.For(body=body):
                nodes += body
            case ir.If(branches=branches, orelse=orelse):
                nodes += [s for arm in (*(b for _, b in branches), orelse) for s in arm]
    return True


def read_later(program: tuple[ir.Stmt, ...], path: Path, nest: Nest) -> set[str]:
    """What may be read after the nest at `path`, or in it again, its own scalars, bounds and conditions aside."""
    found: set[str] = set()
    passed = {id(s) for s in nest.scalars}
    around = {id(loop) for loop in nest.loops}
    stack = _later(program, path)
    while stack:
        stmt = stack.pop()
        if stmt is nest.acting or id(stmt) in passed:
            continue
        match stmt:
            case ir.For(body=body):
                if id(stmt) not in around:
                    found |= reads(stmt.start, stmt.stop, stmt.step)
                stack += body
            case ir.If(branches=branches, orelse=orelse):
                found |= reads(*(condition for condition, _ in branches))
                stack += [s for arm in (*(b for _, b in branches), orelse) for s in arm]
            case ir.Assign(name=name, value=value):
                found |= reads(value) - {name}
            case _:
                found |= reads(stmt)
    return found


def _later(body: tuple[ir.Stmt, ...], path: Path) -> list[ir.Stmt]:
    """The statements that may follow, or hold, the one at `path`."""
    k, *inner = path
    stmt, after = body[k], list(body[k + 1 :])
    if not inner:
        return [stmt, *after]
    match stmt:
        case ir.If(branches=branches, orelse=orelse):
            arm, *rest = inner
            return [*after, *_later(orelse if arm == len(branches) else branches[arm][1], tuple(rest))]
    return [stmt, *after]


def sources(program: tuple[ir.Stmt, ...], names: set[str]) -> set[str]:
    """The names that the values of other names are worked out from, conditions aside."""
    assigned: dict[str, set[str]] = {}
    for stmt in program:
        for node in ir.walk(stmt):
            match node:
                case ir.Assign(name=name, value=value):
                    assigned.setdefault(name, set()).update(reads(value))
                case ir.StoreField(ring=ring, field=name, value=value):
                    assigned.setdefault(f"{ring}.{name}", set()).update(reads(value))
    found, work = set(names), list(names)
    while work:
        for name in assigned.get(work.pop(), ()):
            if name not in found:
                found.add(name)
                work.append(name)
    return found


@dataclass(frozen=True, slots=True)
class Trips:
    """Positions `start + var` of a loop over trip numbers; inside it, `stop` is `start + trips`."""

    var: str
    start: ir.Expr
    stop: ir.Expr
    trips: str

    def compared(self, node: ir.Node) -> ir.Node:
        """Comparisons of a position with the end, as comparisons of trip numbers (still called positions)."""
        if not isinstance(node, ir.Compare) or len(node.rest) != 1:
            return node
        ((op, other),) = node.rest
        left, right, stop = (polynomial(e, {}) for e in (node.first, other, self.stop))
        if left is None or right is None or stop is None:
            return node
        difference = add(left, right, -1)
        for sign in (1, -1):
            distance = add(difference, add({(self.var,): 1}, stop, -1), -sign)
            if not set(distance) - {()}:
                ahead = distance.get((), 0)
                here: ir.Expr = ir.Binary("-", ir.Name(_TRIP), ir.Name(self.trips))
                if sign < 0:
                    here = ir.Binary("-", ir.Name(self.trips), ir.Name(_TRIP))
                return ir.Compare(here, ((op, ir.Int(-ahead)),), span=node.span)
        return node

    def position(self, node: ir.Node) -> ir.Node:
        """Positions as sums; trip numbers by the name of the loop variable."""
        if isinstance(node, ir.Name) and node.id == self.var:
            return ir.Binary("+", node, self.start, span=node.span)
        return node

    def trip(self, node: ir.Node) -> ir.Node:
        """Trip numbers are what the loop counts now."""
        return replace(node, id=self.var) if isinstance(node, ir.Name) and node.id == _TRIP else node
