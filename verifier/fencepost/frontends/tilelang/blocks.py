"""What do names stand for behind the blocks of a TileLang kernel?

The compiler traces the body of a loop and of a branch that the program makes itself once, as a part of one Python
function: what is bound there stays bound.  A choice that Python makes leaves one of two values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from fencepost import ir
from fencepost.frontends.rebinding import bindings
from fencepost.frontends.tilelang.annotations import PipelineNotes
from fencepost.frontends.tilelang.traits import holds, is_static, touched
from fencepost.frontends.tilelang.values import (
    Either,
    Function,
    Node,
    Number,
    Opaque,
    Plain,
    Several,
    Tensor,
    Unread,
    Value,
)

_ARITHMETIC = frozenset({"min", "max", "ceildiv", "floordiv", "floormod"})


@dataclass(slots=True)
class Blocks(PipelineNotes):
    """Lowers blocks, and keeps the scope as they leave it."""

    def _inner(self, statements: Iterable[ast.stmt]) -> tuple[Node, ...]:
        """A block, which does not hold statements of the pipeline; its definitions are `left` and not in the scope."""
        outer, in_pipeline = self.evaluator.scope, self.in_pipeline
        self.evaluator.scope, self.in_pipeline = dict(outer), False
        nodes = tuple(self._maybe(statements))
        self.left = self.scope
        self.evaluator.scope, self.in_pipeline = outer, in_pipeline
        return nodes

    def _maybe(self, statements: Iterable[ast.stmt]) -> list[Node]:
        """Statements that may run any number of times."""
        self.choices += 1
        nodes = self.body(statements)
        self.choices -= 1
        return nodes

    def _choose(
        self, node: ast.If, condition: Number, body: list[ast.stmt], orelse: list[ast.stmt]
    ) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """The two arms of a branch."""
        if self.is_running(condition.expr):  # both are traced, one after the other
            arms: list[tuple[Node, ...]] = []
            for arm in (body, orelse):
                arms.append(self._inner(arm))
                self._outlive(bindings(arm))
            return arms[0], arms[1]
        before = dict(self.scope)
        first, one = self._inner(body), self.left
        used = {n.id for s in orelse for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if not used.isdisjoint(bindings(body)):
            self._meet(node, before, one)
        second, other = self._inner(orelse), self.left
        self.scope.clear()
        self.scope.update(before)
        self._meet(node, one, other)
        return first, second

    def _meet(self, node: ast.AST, one: dict[str, Value], other: dict[str, Value]) -> None:
        """What names stand for after a choice that the program does not make itself, or of which no more is known."""
        for name in dict.fromkeys((*one, *other)):
            given = (s[name] for s in (one, other) if name in s)
            values = tuple(dict.fromkeys(v for v in given if not isinstance(v, Unread) or v.bound))
            if all(isinstance(v, (Tensor, Either)) for v in values):
                self.scope[name] = values[0] if len(values) == 1 else Either(values, names=self.evaluator.variables)
            elif any(v != self.scope.get(name) for v in values):
                self.scope[name] = self.evaluator.anything(node, name, [load for v in values for load in touched(v)])

    # ------------------------------------------------------------------------------------------------ behind a block

    def _outlive(self, names: Iterable[str]) -> None:
        """Give names that a block binds which is traced once what it has left them with."""
        for name in dict.fromkeys(names):
            found = self.left.get(name)
            if found is not None and found is not self.scope.get(name) and not isinstance(found, Unread):
                self.scope[name] = self._lasting(found)

    def _lasting(self, value: Value, inside: bool = False) -> Value:
        """A value behind the block that has made it; the compiler accepts no buffer and no scalar of its program there.

        `inside`: it is an item of a tuple or a list, which Python keeps as it is.
        """
        match value:
            case Plain() | Function():
                return value
            case Number() | Opaque() if is_static(value):
                return value
            case Several(items, changeable):
                return Several(tuple(self._lasting(i, True) for i in items), changeable)
            case Tensor() if inside:
                return value
            case _:
                return self.evaluator.untold(touched(value) if holds(value) else ())

    def _undecided(self, node: ast.AST, names: Iterable[str]) -> None:
        """Names that a block binds which may be traced any number of times, or run by Python: any of its values."""
        for name in dict.fromkeys(names):
            found, old = self.left.get(name), self.scope.get(name)
            if found is None or found is old or isinstance(found, Unread):
                continue
            if any(v is not None and touched(v) for v in (found, old)):
                self.scope[name] = self.evaluator.untold()
            elif found != old:
                self.scope[name] = self.evaluator.anything(node, name)

    def _forget(self, names: Iterable[str]) -> None:
        """Names that are bound again and again: one that stands for a buffer or holds one may be any."""
        for name in dict.fromkeys(names):
            old = self.scope.get(name)
            if old is not None and holds(old) and not (isinstance(old, Tensor) and old.scalar):
                self.scope[name] = self.evaluator.untold(touched(old))

    # ------------------------------------------------------------------------------------------------ what runs

    def is_running(self, expr: ir.Expr) -> bool:
        """Whether a scalar is surely one of the program, and not one that Python computes: then `if` is a branch."""
        running = self.names.running
        match expr:
            case ir.Name(name):
                return name in running
            case ir.Unary(_, operand):
                return self.is_running(operand)
            case ir.Binary(_, left, right):
                return self.is_running(left) or self.is_running(right)
            case ir.Compare(left, [(_, right)]):
                return self.is_running(left) or self.is_running(right)
            case ir.Logic(_, parts):  # Python decides by the first operand that it knows
                return all(map(self.is_running, parts))
            case ir.Call("somewhere", (ir.Int(number), *_)):
                return number in running
            case ir.Call(function, parts):
                return function.startswith("value_of_") or (
                    function in _ARITHMETIC and any(map(self.is_running, parts))
                )
            case _:
                return False
