"""Tails: which last trips of a nest only drain what came before?  They become a loop of their own behind the nest.

`for w in range(n): ...; for k in range(size + drain): if k < size: A; B`, with a drain in the last trip of `w` alone,
does A and B `size` times in each trip of `w`, and after all of them B for each trip of the drain.  Said that way, the
nest is one of equal trips.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast, get_args

from fencepost import ir
from fencepost.model.program import compile_kernel
from fencepost.passes.aliases import changes
from fencepost.passes.slices import jumps, reads
from fencepost.passes.strides import add, polynomial
from fencepost.prove.ranges import Ranges
from fencepost.prove.structure import analyse
from fencepost.rewrite import rebuild

Block = tuple[ir.Stmt, ...]
_SCALAR = ir.Assign | ir.If | ir.For | ir.Pass


@dataclass(frozen=True, slots=True)
class Tails:
    """The pass: the same operations in the same order; loop variables are taken to be unknown after their loop."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel with drains behind the nests that they end."""
        compiled = compile_kernel(kernel)
        items: list[ir.Section | ir.Stmt] = []
        for item in kernel.body:
            if isinstance(item, ir.Section):
                programs = [p for p in compiled.programs if (p.agent == "aic") == (item.core == "cube")]
                ranges = [Ranges(analyse(compiled, p)) for p in programs]
                item = replace(item, body=_Program(item.body, ranges).run())
            items.append(item)
        return replace(kernel, body=tuple(items))


@dataclass(frozen=True, slots=True)
class _Tail:
    """What comes after a loop where all conditions hold; `some`: those that say that the loops around make trips.

    `outer` and `inner`, as the program has them: the outermost of these loops, and the one that was longer.  `same`:
    whether the loops make trips in all rows if they make some in the last one.
    """

    outer: ir.For
    inner: ir.For
    body: Block
    conditions: tuple[ir.Expr, ...]
    some: tuple[ir.Expr, ...] = ()
    same: bool = True


@dataclass(slots=True)
class _Program:
    """One program; `made` counts the loops made."""

    body: Block
    ranges: list[Ranges]
    made: int = 0

    def run(self) -> Block:
        return self._block(self.body)

    def _block(self, body: Block) -> Block:
        found, tail = self._open(body)
        return self._closed(found, tail)

    def _open(self, body: Block) -> tuple[list[ir.Stmt], _Tail | None]:
        """A block, and what its last statement leaves for later."""
        found: list[ir.Stmt] = []
        tail: _Tail | None = None
        for k, stmt in enumerate(body):
            found, tail = list(self._closed(found, tail)), None
            match stmt:
                case ir.For():
                    inner, left = self._open(stmt.body)
                    tail = None if left is None or any(map(jumps, inner)) else _raised(stmt, left)
                    if tail is None:
                        inner = list(self._closed(inner, left))
                    loop = replace(stmt, body=_without_continue(tuple(inner)))
                    if tail is None:
                        loop, tail = self._divided(loop, stmt, body[:k])
                    found.append(loop)
                case ir.If(branches=branches, orelse=orelse):
                    arms = tuple((condition, self._block(arm)) for condition, arm in branches)
                    found.append(replace(stmt, branches=arms, orelse=self._block(orelse)))
                case _:
                    found.append(stmt)
        return found, tail

    def _closed(self, found: list[ir.Stmt], tail: _Tail | None) -> Block:
        """A block with its tail: where that says only that loops make trips, they need not be there otherwise."""
        if tail is None:
            return tuple(found)
        *others, loop = found
        if tail.conditions or not (len(tail.some) == 1 or self._inside(tail)):
            return (*found, *_where((*tail.conditions, *tail.some), tail.body))
        return (*others, *_where(tail.some, (loop, *tail.body)))

    def _inside(self, tail: _Tail) -> bool:
        """Whether outer loops only work out scalars, which nobody reads but the loops themselves."""
        outside = list(_without(tail.outer, tail.inner))
        worked = changes(tail.outer) | {n.value for n in outside if isinstance(n, ir.Pop)}
        if any(isinstance(n, get_args(ir.Stmt)) and not isinstance(n, _SCALAR) for n in outside):
            return False
        if not tail.same or any(reads(condition) & worked for condition in tail.some):
            return False
        worked = {n.name for n in outside if isinstance(n, ir.Assign)}
        rest = (n for s in self.body for n in _without(s, tail.outer))
        return not any(isinstance(n, ir.Name) and n.id in worked for n in rest)

    def _divided(self, loop: ir.For, original: ir.For, before: Block) -> tuple[ir.For, _Tail | None]:
        """A loop over `size + drain`, as one over `size` and, where there is a drain, one over its trips."""
        if loop.start != ir.Int(0) or loop.step != ir.Int(1) or any(map(_leaves, loop.body)):
            return loop, None
        given = _extended(before, loop.stop)
        if given is None:
            return loop, None
        size, conditions, trips = given
        changed = {name for stmt in loop.body for name in changes(stmt)}
        if changed & reads(loop.stop, size, *conditions) or not any(_asks(s, loop.var, size) for s in loop.body):
            return loop, None
        first = _Place(loop.var, size, None)
        var = f"drain~{self.made}"
        last = _Place(loop.var, size, var)
        self.made += 1
        lows = [r.of(size)[0] for r in self.ranges]
        start: ir.Expr = ir.Int(0)
        if any(low is None or low < 0 for low in lows):
            start = ir.Call("max", (ir.Binary("-", ir.Int(0), size), ir.Int(0)))
        draining = replace(loop, var=var, start=start, stop=ir.Int(trips), body=last.block(loop.body))
        main = replace(loop, stop=size, body=_without_continue(first.block(loop.body)))
        return main, _Tail(original, original, (draining,), conditions)


def _without(root: ir.Node, left_out: ir.Node) -> Iterable[ir.Node]:
    """A tree without one of its parts."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node is not left_out:
            yield node
            stack += ir.children(node)


def _where(conditions: tuple[ir.Expr, ...], body: Block) -> Block:
    for condition in reversed(conditions):
        body = (ir.If(((condition, body),), span=body[0].span),)
    return body


def _raised(outer: ir.For, tail: _Tail) -> _Tail | None:
    """What the last trip of a loop alone leaves for later, as something that comes after the loop; else None."""
    last = [c for c in tail.conditions if _is_last(c, outer)]
    changed = {name for stmt in outer.body for name in changes(stmt)}
    if outer.step != ir.Int(1) or not last or reads(outer.start, outer.stop) & changed:
        return None
    end = ir.Binary("-", outer.stop, ir.Int(1))

    def moved(node: ir.Node) -> ir.Node:
        return rebuild(node, lambda n: end if isinstance(n, ir.Name) and n.id == outer.var else n)

    rest = [moved(c) for c in tail.conditions if c not in last]
    some = [*(moved(c) for c in tail.some), ir.Compare(outer.start, (("<", outer.stop),), span=outer.span)]
    same = tail.same and not any(outer.var in reads(c) for c in tail.some)
    body = [moved(s) for s in tail.body]
    return _Tail(outer, tail.inner, tuple(body), tuple(rest), tuple(some), same)  # type: ignore[arg-type]


def _is_last(condition: ir.Expr, loop: ir.For) -> bool:
    """Whether a condition holds in the last trip of a loop and in no other."""
    if not isinstance(condition, ir.Compare) or len(condition.rest) != 1:
        return False
    ((op, other),) = condition.rest
    left, right, stop = (polynomial(e, {}) for e in (condition.first, other, loop.stop))
    if left is None or right is None or stop is None:
        return False
    for sign, holds in ((1, {"==": -1, ">=": -1, ">": -2}), (-1, {"==": 1, "<=": 1, "<": 2})):
        rest = add(add(left, right, -1), add({(loop.var,): 1}, stop, -1), -sign)
        if not set(rest) - {()}:  # sign * (var - stop) + rest, compared with 0
            return holds.get(op) == -rest.get((), 0)
    return False


def _extended(before: Block, stop: ir.Expr) -> tuple[ir.Expr, tuple[ir.Expr, ...], int] | None:
    """The end of a loop as (size, conditions, n): it is `size`, and n more where all conditions hold."""
    match stop:
        case ir.Name(id=name):
            size: ir.Expr | None = None
        case ir.Binary(op="+", left=size, right=ir.Name(id=name)):
            pass
        case ir.Binary(op="+", left=ir.Name(id=name), right=size):
            pass
        case _:
            return None
    base: ir.Expr | None = None
    more: tuple[tuple[ir.Expr, ...], int] | None = None
    for stmt in before:
        changed = changes(stmt)
        if name not in changed:
            needed = reads(base, *(() if more is None else more[0]))
            if needed & changed:
                base = more = None
            continue
        conditions, value = _only(stmt, name)
        trips = None if base is None or value is None else _longer(base, value, name)
        if isinstance(stmt, ir.Assign):
            base, more = None if name in reads(stmt.value) else stmt.value, None
        elif trips is not None and more is None:
            more = conditions, trips
        else:
            base = more = None
    if base is None or more is None or (size is not None and base != ir.Int(0)):
        return None
    return base if size is None else size, *more


def _only(stmt: ir.Stmt, name: str) -> tuple[tuple[ir.Expr, ...], ir.Expr | None]:
    """The conditions under which a statement assigns a scalar, and what, if it does nothing else."""
    conditions: list[ir.Expr] = []
    while True:
        match stmt:
            case ir.If(branches=((condition, (inner,)),), orelse=()):
                conditions.append(condition)
                stmt = inner
            case ir.Assign(name=assigned, value=value) if assigned == name:
                return tuple(conditions), value
            case _:
                return (), None


def _longer(base: ir.Expr, value: ir.Expr, name: str) -> int | None:
    """How much larger a value is than `base`, which the scalar `name` held before; None if it is no number above 0."""
    old, new = polynomial(base, {}), polynomial(value, {name: base})
    if old is None or new is None:
        return None
    if name in reads(value):
        old, new = {(name,): 1}, polynomial(value, {})
        if new is None:
            return None
    difference = add(new, old, -1)
    trips = difference.get((), 0)
    return trips if trips > 0 and not set(difference) - {()} else None


def _leaves(stmt: ir.Stmt) -> bool:
    """Whether a statement of a loop may end the loop."""
    match stmt:
        case ir.Break():
            return True
        case ir.If(branches=branches, orelse=orelse):
            return any(_leaves(s) for arm in (*(b for _, b in branches), orelse) for s in arm)
    return False


def _asks(stmt: ir.Stmt, var: str, size: ir.Expr) -> bool:
    """Whether a statement asks where `var` is, seen from `size`."""
    return any(isinstance(n, ir.Compare) and _distance(n, var, size) is not None for n in ir.walk(stmt))


def _distance(node: ir.Compare, var: str, size: ir.Expr) -> tuple[int, int] | None:
    """(sign, rest) of a comparison of `sign * (var - size) + rest` with 0."""
    if len(node.rest) != 1:
        return None
    left, right, at = (polynomial(e, {}) for e in (node.first, node.rest[0][1], size))
    if left is None or right is None or at is None:
        return None
    for sign in (1, -1):
        rest = add(add(left, right, -1), add({(var,): 1}, at, -1), -sign)
        if not set(rest) - {()}:
            return sign, rest.get((), 0)
    return None


@dataclass(frozen=True, slots=True)
class _Place:
    """The body of a loop where its variable is below `size` (no `drain`), or `size + drain` (a loop variable)."""

    var: str
    size: ir.Expr
    drain: str | None

    def block(self, body: Block) -> Block:
        return tuple(_settled(cast(ir.Stmt, rebuild(rebuild(s, self._compared), self._position)) for s in body))

    def _compared(self, node: ir.Node) -> ir.Node:
        if not isinstance(node, ir.Compare):
            return node
        found = _distance(node, self.var, self.size)
        if found is None:
            return node
        sign, rest = found
        op = node.rest[0][0]
        place: ir.Expr = ir.Name(self.drain) if self.drain is not None else ir.Int(-1)
        answers = {_answer(op, sign * at + rest) for at in ((0, 10**9) if self.drain is not None else (-1, -(10**9)))}
        monotonic = op not in ("==", "!=") or rest * sign * (1 if self.drain is not None else -1) > 0
        if len(answers) == 1 and monotonic:
            return ir.Int(int(answers.pop()), span=node.span)
        if self.drain is None:
            return node
        value = place if sign > 0 else ir.Binary("-", ir.Int(0), place)
        return ir.Compare(value, ((op, ir.Int(-rest)),), span=node.span)

    def _position(self, node: ir.Node) -> ir.Node:
        if self.drain is not None and isinstance(node, ir.Name) and node.id == self.var:
            return ir.Binary("+", self.size, ir.Name(self.drain), span=node.span)
        return node


def _answer(op: str, value: int) -> bool:
    return {"<": value < 0, "<=": value <= 0, ">": value > 0, ">=": value >= 0, "==": value == 0, "!=": value != 0}[op]


def _settled(body: Iterable[ir.Stmt]) -> Iterable[ir.Stmt]:
    """Statements without branches whose conditions are plain numbers."""
    for stmt in body:
        if not isinstance(stmt, ir.If):
            yield replace(stmt, body=tuple(_settled(stmt.body))) if isinstance(stmt, ir.For) else stmt
            continue
        arms: list[tuple[ir.Expr, Block]] = []
        rest = stmt.orelse
        for condition, arm in stmt.branches:
            if isinstance(condition, ir.Int):
                if condition.value:
                    rest = arm
                    break
                continue
            arms.append((condition, tuple(_settled(arm))))
        if arms:
            yield replace(stmt, branches=tuple(arms), orelse=tuple(_settled(rest)))
        else:
            yield from _settled(rest)


def _without_continue(body: Block) -> Block:
    """The body of a loop in which trips that end early do nothing from there on."""
    for k, stmt in enumerate(body):
        match stmt:
            case ir.If(branches=((condition, (ir.Continue(),)),), orelse=()):
                rest = _without_continue(body[k + 1 :])
                denied = ir.Compare(condition, (("==", ir.Int(0)),), span=condition.span)
                return (*body[:k], *((ir.If(((denied, rest),), span=stmt.span),) if rest else ()))
    return body
