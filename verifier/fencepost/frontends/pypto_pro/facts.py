"""What is known about the scalars of a program: their values per sub-core, divisors, ranges?

All facts hold at every moment: they look at every value that a scalar is ever given, in no particular order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import gcd

from fencepost import ir
from fencepost.frontends.pypto_pro.simplify import Body

BOTH = frozenset((0, 1))


@dataclass(frozen=True, slots=True)
class Given:
    """A value that a scalar is given, and the sub-cores that may give it."""

    value: ir.Expr
    active: frozenset[int]


@dataclass(slots=True)
class Facts:
    """Facts about the scalars of one program (of one kind of core)."""

    values: dict[str, list[Given]] = field(default_factory=dict)
    fields: dict[tuple[str, str], list[Given]] = field(default_factory=dict)
    loops: dict[str, list[ir.For]] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)  # cursors
    active: dict[int, frozenset[int]] = field(default_factory=dict)  # operation -> sub-cores that run it
    tuples: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _multiples: dict[str, int] = field(default_factory=dict)
    _known: dict[tuple[str, int], int | None] = field(default_factory=dict)
    _ranges: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)
    _dependent: set[str] = field(default_factory=set)
    _dependent_fields: set[tuple[str, str]] = field(default_factory=set)

    @staticmethod
    def of(body: Body, constants: Iterable[ir.Constant], vector: bool) -> Facts:
        """The facts about a program; on the cube core there is no sub-core to tell apart."""
        facts = Facts()
        for constant in constants:
            if isinstance(constant.value, tuple):
                facts.tuples[constant.name] = tuple(e.value for e in constant.value if isinstance(e, ir.Int))
            else:
                facts.values.setdefault(constant.name, []).append(Given(constant.value, BOTH))
        facts._collect(body)
        if vector:
            for _ in range(3):  # guards may use scalars that guards tell apart
                facts._watch(body, BOTH)
        facts._divide()
        facts._depend()
        return facts

    def _collect(self, body: Body) -> None:
        for stmt in body:
            for node in ir.walk(stmt):
                match node:
                    case ir.Assign(name=name, value=value):
                        self.values.setdefault(name, []).append(Given(value, BOTH))
                    case ir.StoreField(ring=ring, field=name, value=value):
                        self.fields.setdefault((ring, name), []).append(Given(value, BOTH))
                    case ir.For(var=var):
                        self.loops.setdefault(var, []).append(node)
                    case ir.Cursor(name=name):
                        self.opaque.add(name)

    def _watch(self, body: Body, active: frozenset[int]) -> None:
        """Note which sub-cores can reach each statement."""
        fresh_values: dict[str, list[Given]] = {}
        fresh_fields: dict[tuple[str, str], list[Given]] = {}
        self._visit(body, active, fresh_values, fresh_fields)
        kept = {n: g for n, g in self.values.items() if n not in fresh_values}
        self.values = {**kept, **fresh_values}
        self.fields = fresh_fields
        self._known.clear()

    def _visit(
        self,
        body: Body,
        active: frozenset[int],
        values: dict[str, list[Given]],
        fields: dict[tuple[str, str], list[Given]],
    ) -> None:
        for stmt in body:
            match stmt:
                case ir.Assign(name=name, value=value):
                    values.setdefault(name, []).append(Given(value, active))
                case ir.StoreField(ring=ring, field=name, value=value):
                    fields.setdefault((ring, name), []).append(Given(value, active))
                case ir.For():
                    self._visit(stmt.body, active, values, fields)
                case ir.If():
                    rest = active
                    for condition, branch in stmt.branches:
                        outcome = {s: self.at(condition, s) for s in rest}
                        self._visit(branch, frozenset(s for s in rest if outcome[s] != 0), values, fields)
                        rest = frozenset(s for s in rest if outcome[s] is None or outcome[s] == 0)
                    self._visit(stmt.orelse, rest, values, fields)
                case ir.DataOp():
                    self.active[id(stmt)] = active

    # ---------------------------------------------------------------------------------------------- values per sub-core

    def at(self, expr: ir.Expr, sub: int) -> int | None:
        """The value of an expression on sub-core `sub`, if it has the same one always."""
        match expr:
            case ir.Int(value=number):
                return number
            case ir.Name(id="sub"):
                return sub
            case ir.Name(id=name):
                return self._name_at(name, sub)
            case ir.Unary(op=op, operand=operand):
                inner = self.at(operand, sub)
                return None if inner is None else -inner if op == "-" else int(inner == 0)
            case ir.Binary(op=op, left=left, right=right):
                return self._binary(op, self.at(left, sub), self.at(right, sub))
            case ir.Compare(first=first, rest=rest):
                value = self.at(first, sub)
                for symbol, operand in rest:
                    other = self.at(operand, sub)
                    if value is None or other is None:
                        return None
                    if not _holds(symbol, value, other):
                        return 0
                    value = other
                return 1
            case ir.Logic(op=op, operands=operands):
                parts = [self.at(o, sub) for o in operands]
                if op == "and":
                    return 0 if any(p == 0 for p in parts) else None if None in parts else 1
                return 1 if any(p not in (0, None) for p in parts) else None if None in parts else 0
            case ir.Choose(condition=condition, then=then, other=alternative):
                test = self.at(condition, sub)
                return None if test is None else self.at(then if test else alternative, sub)
            case ir.Call(function="min" | "max" as name, arguments=arguments):
                known = [self.at(a, sub) for a in arguments]
                numbers = [k for k in known if k is not None]
                return None if len(numbers) != len(known) else min(numbers) if name == "min" else max(numbers)
            case ir.Item(name=name, index=index):
                place = self.at(index, sub)
                items = self.tuples.get(name, ())
                return items[place] if place is not None and 0 <= place < len(items) else None
        return None

    def _name_at(self, name: str, sub: int) -> int | None:
        if name in self.loops or name in self.opaque or name not in self.values:
            return None
        key = (name, sub)
        if key not in self._known:
            self._known[key] = None  # what depends on itself has no steady value
            found = {self.at(g.value, sub) for g in self.values[name] if sub in g.active}
            self._known[key] = found.pop() if len(found) == 1 else None
        return self._known[key]

    @staticmethod
    def _binary(op: str, a: int | None, b: int | None) -> int | None:
        if op == "*" and 0 in (a, b):
            return 0
        if a is None or b is None:
            return None
        if op in ("//", "%") and b == 0:
            return None
        return {"+": a + b, "-": a - b, "*": a * b}[op] if op in "+-*" else a // b if op == "//" else a % b

    # -------------------------------------------------------------------------------------------------------- divisors

    def multiple(self, expr: ir.Expr) -> int:
        """A number that always divides the expression; 0 for an expression that is always 0."""
        match expr:
            case ir.Int(value=value):
                return abs(value)
            case ir.Name(id=name):
                return self._multiples.get(name, 1)
            case ir.Unary(op="-", operand=operand):
                return self.multiple(operand)
            case ir.Binary(op="+" | "-", left=left, right=right):
                return gcd(self.multiple(left), self.multiple(right))
            case ir.Binary(op="*", left=left, right=right):
                return self.multiple(left) * self.multiple(right)
            case ir.Binary(op="%", left=left, right=right):
                return gcd(self.multiple(left), self.multiple(right))
            case ir.Choose(then=then, other=other):
                return gcd(self.multiple(then), self.multiple(other))
            case ir.Call(function="min" | "max", arguments=arguments):
                return gcd(*(self.multiple(a) for a in arguments))
        return 1

    def _divide(self) -> None:
        known = {n: 0 for n in (*self.values, *self.loops) if n not in self.opaque}
        self._multiples = known
        for _ in range(64):
            changed = False
            for name in known:
                new = 0
                for given in self.values.get(name, ()):
                    new = gcd(new, self.multiple(given.value))
                for loop in self.loops.get(name, ()):
                    new = gcd(new, self.multiple(loop.start), self.multiple(loop.step))
                if new != known[name]:
                    known[name] = new
                    changed = True
            if not changed:
                return
        self._multiples = {}

    # ----------------------------------------------------------------------------------------------------------- ranges

    def highest(self, expr: ir.Expr) -> int | None:
        """An upper bound of the expression, if one is known."""
        return self._range(expr)[1]

    def _range(self, expr: ir.Expr) -> tuple[int | None, int | None]:
        match expr:
            case ir.Int(value=value):
                return value, value
            case ir.Name(id="sub"):
                return 0, 1
            case ir.Name(id=name):
                return self._name_range(name)
            case ir.Binary(op="%", right=ir.Int(value=k)) if k > 0:
                return 0, k - 1
            case ir.Binary(op="+" | "-" as op, left=left, right=right):
                (a, b), (c, d) = self._range(left), self._range(right)
                if op == "-":
                    return None if a is None or d is None else a - d, None if b is None or c is None else b - c
                return None if a is None or c is None else a + c, None if b is None or d is None else b + d
            case ir.Binary(op="*", left=left, right=ir.Int(value=k)) if k >= 0:
                a, b = self._range(left)
                return None if a is None else a * k, None if b is None else b * k
            case ir.Binary(op="//", left=left, right=ir.Int(value=k)) if k > 0:
                a, b = self._range(left)
                return None if a is None else a // k, None if b is None else b // k
            case ir.Choose(then=then, other=other):
                return _hull([self._range(then), self._range(other)])
            case ir.Call(function="min", arguments=arguments):
                parts = [self._range(a) for a in arguments]
                highs = [h for _, h in parts if h is not None]
                return _hull(parts)[0], min(highs, default=None)
            case ir.Item(name=name):
                items = self.tuples.get(name, ())
                return (min(items), max(items)) if items else (None, None)
        return None, None

    def _name_range(self, name: str) -> tuple[int | None, int | None]:
        if name not in self._ranges:
            self._ranges[name] = (None, None)  # what depends on itself has no known range
            parts = [self._range(g.value) for g in self.values.get(name, ())]
            for loop in self.loops.get(name, ()):
                if not isinstance(loop.step, ir.Int) or loop.step.value <= 0:
                    return None, None
                stop = self._range(loop.stop)[1]
                parts.append((self._range(loop.start)[0], None if stop is None else stop - 1))
            if parts and name not in self.opaque:
                self._ranges[name] = _hull(parts)
        return self._ranges[name]

    # ------------------------------------------------------------------------------------------------------- dependence

    def depends(self, expr: ir.Expr) -> bool:
        """Whether the expression may have different values on the two sub-cores."""
        return any(
            (isinstance(n, ir.Name) and (n.id == "sub" or n.id in self._dependent))
            or (isinstance(n, ir.Field) and (n.ring, n.field) in self._dependent_fields)
            for n in ir.walk(expr)
        )

    def _depend(self) -> None:
        while True:
            before = len(self._dependent) + len(self._dependent_fields)
            for name, given in self.values.items():
                if any(g.active != BOTH or self.depends(g.value) for g in given):
                    self._dependent.add(name)
            for key, given in self.fields.items():
                if any(g.active != BOTH or self.depends(g.value) for g in given):
                    self._dependent_fields.add(key)
            for name, loops in self.loops.items():
                if any(self.depends(x.start) or self.depends(x.step) for x in loops):
                    self._dependent.add(name)
            if len(self._dependent) + len(self._dependent_fields) == before:
                return


def _hull(parts: list[tuple[int | None, int | None]]) -> tuple[int | None, int | None]:
    lows, highs = [p[0] for p in parts], [p[1] for p in parts]
    low = None if any(x is None for x in lows) else min(x for x in lows if x is not None)
    high = None if any(x is None for x in highs) else max(x for x in highs if x is not None)
    return low, high


def _holds(symbol: str, a: int, b: int) -> bool:
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[symbol]
