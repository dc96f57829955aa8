"""Which loop of the IR does a loop of the source become, and what do names hold at its head and after it?"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, TypeAlias

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic, expressions
from fencepost.frontends.pypto_pro.calls import Calls
from fencepost.frontends.pypto_pro.context import Context, Core
from fencepost.frontends.pypto_pro.environment import Environment
from fencepost.frontends.pypto_pro.evaluate import bound_names
from fencepost.frontends.pypto_pro.reading import Loop, Names
from fencepost.frontends.pypto_pro.values import (
    Choice,
    FieldArray,
    Module,
    Opaque,
    Poison,
    Record,
    RingSlot,
    Scalar,
    Tile,
    Unreadable,
    Value,
    is_integer,
    names_in,
)

Exit: TypeAlias = Literal["break", "continue", "return"] | None
"""How control leaves a block of statements, if not at its end."""


class Loops(Calls):
    """Reading of `for` statements."""

    def __init__(self, context: Context, scope: Environment, core: Core) -> None:
        super().__init__(context, scope, core)
        self.trips: list[str] = []
        self.heads: dict[object, Names] = {}

    @abstractmethod
    def body(self, body: Sequence[ast.stmt]) -> Exit:
        """Read statements until one leaves the block; says how."""

    def loop_variables(self) -> tuple[str, ...]:
        return tuple(self.trips)

    def loop(self, stmt: ast.For) -> None:
        if stmt.orelse:
            raise Unreadable("else on a loop is not supported", stmt)
        if not isinstance(stmt.target, ast.Name):
            raise Unreadable("the loop variable must be one name", stmt.target)
        start, stop, step = self._range(stmt.iter)
        if isinstance(step, int) and step == 0:
            raise Unreadable("the step of a loop must not be 0", stmt.iter)
        if all(isinstance(v, int) for v in (start, stop, step)) and not range(start, stop, step):
            return
        span = self.span(stmt)
        name = stmt.target.id
        variable = self.variable(name)
        low, high = self.integer(start, stmt.iter), self.integer(stop, stmt.iter)
        if isinstance(step, int):
            body = self._loop(stmt, variable, [])
            self.emit(ir.For(variable, low, high, ir.Int(step, span=span), body, span=span))
            return
        stride = self.integer(step, stmt.iter)
        factors, rest = expressions.linear(stride)
        if rest <= 0 and all(factor < 0 for factor in factors.values()):
            raise Unreadable("a loop with a negative step that is not known is not supported", stmt.iter)
        if not isinstance(stride, ir.Name) or self.context.parameters.get(stride.id) is None:
            self.context.assume(f"the step of the loop at line {stmt.lineno} is positive")
        count = self.context.variable((self.key(name), "trips"), f"{name}_trips")
        trip = self.context.variable((self.key(name), "trip"), f"{name}_trip")
        distance = expressions.subtract(
            expressions.add(expressions.subtract(high, low, span), stride, span), ir.Int(1), span
        )
        positive = ir.Call("max", (distance, ir.Int(0)), span=span)
        self.emit(ir.Assign(count, ir.Binary("//", positive, stride, span=span), span=span))
        value = expressions.add(low, expressions.multiply(ir.Name(trip), stride, span), span)
        body = self._loop(stmt, variable, [ir.Assign(variable, value, span=span)], trip)
        if _changes(body, (low, stride)):
            first = self.store((self.key(name), "first"), f"{name}_first", low, stmt)
            by = self.store((self.key(name), "step"), f"{name}_step", stride, stmt)
            value = expressions.add(ir.Name(first), expressions.multiply(ir.Name(trip), ir.Name(by), span), span)
            body = (ir.Assign(variable, value, span=span), *body[1:])
        self.emit(ir.For(trip, ir.Int(0), ir.Name(count), ir.Int(1), body, span=span))

    def _range(self, node: ast.expr) -> tuple[Value, Value, Value]:
        if not isinstance(node, ast.Call) or node.keywords or not 1 <= len(node.args) <= 3:
            raise Unreadable("a loop runs over pl.range(...)", node)
        target = self.evaluate(node.func)
        if not isinstance(target, Module) or target.path not in ("pl.range", "builtins.range"):
            raise Unreadable("a loop runs over pl.range(...)", node)
        values = [self.operand(self.evaluate(a), a) for a in node.args]
        for value, argument in zip(values, node.args, strict=True):
            if not is_integer(value) and not isinstance(value, Opaque):
                raise Unreadable(f"a bound of the loop is {arithmetic.describe(value)}", argument)
        if len(values) == 1:
            return 0, values[0], 1
        return values[0], values[1], values[2] if len(values) == 3 else 1

    def _loop(
        self, stmt: ast.For, variable: str, prologue: list[ir.Stmt], trip: str | None = None
    ) -> tuple[ir.Stmt, ...]:
        """The body of a loop, read until what the names hold at its head is stable."""
        assert isinstance(stmt.target, ast.Name)
        frame = self.frame
        entry = frame.names
        site = self.site(stmt)
        head = dict(entry)
        for name in bound_names(stmt.body):
            if name in head:
                head[name] = self._blurred(self.key(name), name, head[name])
        for name, value in self.heads.get(site, {}).items():
            if name in head:
                head[name] = value
        while True:
            frame.names = dict(head)
            frame.names[stmt.target.id] = Scalar(ir.Name(variable, span=self.span(stmt.target)))
            self.valid = {}
            loop = Loop()
            frame.loops.append(loop)
            self.nesting += 1
            self.trips.append(trip or variable)
            try:
                with self.collecting() as out:
                    for extra in prologue:
                        self.emit(extra)
                    exit_ = self.body(stmt.body)
            finally:
                frame.loops.pop()
                self.nesting -= 1
                self.trips.pop()
            ends = [*loop.continues, *([] if exit_ is not None else [frame.names])]
            changed = self._raise_head(head, ends, out, stmt.target.id)
            if not changed:
                break
            self.heads[site] = {n: v for n, v in head.items() if n not in entry or entry[n] != v}
        after = dict(head)
        for names in [*loop.breaks, *ends]:
            for name, value in names.items():
                after[name] = self.meet(self.key(name), name, after[name], value) if name in after else value
        after[stmt.target.id] = Poison("it is the variable of a loop that has ended")
        frame.names = after
        self.valid = {}
        return tuple(out)

    def _raise_head(self, head: Names, ends: list[Names], out: list[ir.Stmt], target: str) -> bool:
        """Generalise what the names hold at the head of a loop to what its body leaves in them."""
        changed = False
        assigned = _assigned(out)
        for name in list(head):
            if name == target:
                continue
            for names in ends:
                met = self.meet(self.key(name), name, head[name], names.get(name, head[name]))
                if met != head[name] or type(met) is not type(head[name]):
                    head[name] = met
                    changed = True
            own = self.own_scalars(self.key(name), head[name])
            stale = {n for n in names_in(head[name]) if n in assigned and n not in own and not self.context.stable(n)}
            if stale and not isinstance(head[name], Poison):
                head[name] = Poison(f"{name} refers to {sorted(stale)[0]}, which has changed since")
                changed = True
        return changed

    def own_scalars(self, key: object, value: Value) -> set[str]:
        """The scalars that hold a variable's own value (see `held`)."""
        match value:
            case Scalar() | RingSlot() | FieldArray() | Tile():
                keys: list[object] = [key]
            case Choice(tiles=tiles):
                keys = [key, (key, "which"), *((key, "slot", i) for i in range(len(tiles)))]
            case Opaque(arguments=arguments):
                keys = [(key, i) for i in range(len(arguments))]
            case tuple():
                return {n for i, v in enumerate(value) for n in self.own_scalars((key, i), v)}
            case Record(fields=fields):
                return {n for f, v in fields for n in self.own_scalars((key, f), v)}
            case _:
                return set()
        known = self.context.keys
        return {known["variable", k] for k in keys if ("variable", k) in known}

    def _blurred(self, key: object, hint: str, value: Value) -> Value:
        """What a variable that a loop assigns holds at the head of the loop."""
        match value:
            case bool() | int() | Scalar():
                truth = isinstance(value, bool) or (isinstance(value, Scalar) and value.truth)
                return Scalar(ir.Name(self.context.variable(key, hint)), truth)
            case tuple() if all(is_integer(v) for v in value):
                return tuple(self._blurred((key, i), f"{hint}_{i}", v) for i, v in enumerate(value))
        return value


def _changes(body: Sequence[ir.Stmt], values: Sequence[ir.Expr]) -> bool:
    """Whether statements of the IR change something that values refer to."""
    nodes = [node for value in values for node in ir.walk(value)]
    rings = {n.ring for stmt in body for n in ir.walk(stmt) if isinstance(n, ir.StoreField)}
    return bool(_assigned(body) & {n.id for n in nodes if isinstance(n, ir.Name)}) or any(
        isinstance(n, ir.Field) and n.ring in rings for n in nodes
    )


def _assigned(body: Sequence[ir.Stmt]) -> set[str]:
    """The scalars that statements of the IR assign."""
    found: set[str] = set()
    for stmt in body:
        for node in ir.walk(stmt):
            if isinstance(node, (ir.Assign, ir.Cursor)):
                found.add(node.name)
            elif isinstance(node, ir.For):
                found.add(node.var)
    return found
