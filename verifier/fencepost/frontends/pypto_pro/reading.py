"""The state of one reading of a kernel: what do its names hold, and which statements have been produced?

Every assignment of a device integer, of a tile slot or of a ring slot also produces a scalar of the IR, so that values
which differ between control-flow paths meet in that scalar.  Scalars that nobody reads are removed later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic
from fencepost.frontends.pypto_pro.context import Context, Core
from fencepost.frontends.pypto_pro.environment import Environment
from fencepost.frontends.pypto_pro.evaluate import Evaluator, bound_names
from fencepost.frontends.pypto_pro.values import (
    Choice,
    DType,
    FieldArray,
    Function,
    Group,
    Member,
    OneOf,
    Opaque,
    Poison,
    Record,
    RingSlot,
    Scalar,
    Tile,
    Unknown,
    Unreadable,
    Value,
    names_in,
    nodes_in,
)

Names: TypeAlias = dict[str, Value]
Valid: TypeAlias = dict[tuple[str, ir.Expr | None], tuple[Value, ...]]
"""The valid shapes of tiles, by buffer and slot."""


@dataclass(slots=True)
class Loop:
    """A loop being read: what the names hold where it is left or continued."""

    breaks: list[Names] = field(default_factory=list)
    continues: list[Names] = field(default_factory=list)


@dataclass(slots=True)
class Frame:
    """A function being read, inlined into the kernel."""

    function: ast.FunctionDef
    scope: Environment
    names: Names
    via: tuple[ir.Span, ...] = ()
    loops: list[Loop] = field(default_factory=list)


class Reading(Evaluator):
    """State and emission; the subclasses know the language."""

    def __init__(self, context: Context, scope: Environment, core: Core) -> None:
        super().__init__(context.source)
        self.context = context
        self.core: Core = core
        self.frames = [Frame(context.kernel, scope, {})]
        self.out: list[ir.Stmt] = []
        self.nesting = 0  # loops around the current statement, through all frames
        self.sites = 0
        self.valid: Valid = {}
        self.bound: dict[ast.FunctionDef, frozenset[str]] = {}

    # ---------------------------------------------------------------------------------------------------- positions

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    def span(self, node: ast.AST) -> ir.Span:
        return self.frame.scope.source.span(node, self.frame.via)

    def emit(self, stmt: ir.Stmt) -> None:
        self.out.append(stmt)

    @contextmanager
    def collecting(self) -> Iterator[list[ir.Stmt]]:
        """Statements produced inside go to a list of their own."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    # --------------------------------------------------------------------------------------------------------- names

    def key(self, name: str) -> object:
        """What tells a variable of the current function from all others."""
        return (id(self.frame.function), name)

    def variable(self, name: str) -> str:
        """The scalar of the IR for a variable of the current function."""
        return self.context.variable(self.key(name), name)

    def lookup(self, node: ast.Name) -> Value:
        names = self.frame.names
        if node.id in names:
            return names[node.id]
        if node.id in self._locals():
            raise Unreadable(f"what {node.id} holds here is not known: it is assigned elsewhere in the function", node)
        try:
            value = self.frame.scope.find(node.id)
        except KeyError:
            return self.builtin(node)
        return value

    def _locals(self) -> frozenset[str]:
        """The names that the current function binds somewhere, which therefore never mean those of the module."""
        function = self.frame.function
        if function not in self.bound:
            found = set(bound_names(function.body))
            for node in ast.walk(function):
                match node:
                    case ast.Import(names=names) | ast.ImportFrom(names=names):
                        found |= {(alias.asname or alias.name).split(".")[0] for alias in names}
            for node in ast.walk(function):
                if isinstance(node, (ast.Global, ast.Nonlocal)):
                    found -= set(node.names)
            self.bound[function] = frozenset(found)
        return self.bound[function]

    def known(self, value: Value, node: ast.AST) -> Value:
        return self.operand(value, node)

    def operand(self, value: Value, node: ast.AST) -> Value:
        """An operand of arithmetic: what is unknown at compile time becomes a parameter of the kernel."""
        if not isinstance(value, (Unknown, OneOf)) or not value.name:
            return value
        key = ("unknown", value.name, value.origin)
        if isinstance(value, Unknown):
            note = f"{value.name} may be any integer: {value.reason}"
            name = self.context.parameter(key, value.name, origin=value.name, note=note)
            return Scalar(ir.Name(name, span=self.span(node)))
        if not all(isinstance(v, int) for v in value.values):
            return value
        allowed = tuple(sorted({int(v) for v in value.values}))
        name = self.context.parameter(key, value.name, values=allowed, origin=value.name)
        return Scalar(ir.Name(name, span=self.span(node)), truth=all(isinstance(v, bool) for v in value.values))

    def binary(self, op: ast.operator, left: Value, right: Value, node: ast.expr) -> Value:
        if not isinstance(left, (Scalar, Opaque)) and not isinstance(right, (Scalar, Opaque)):
            value = super().binary(op, left, right, node)
            if not isinstance(value, (Unknown, OneOf)):
                return value
        return super().binary(op, self.operand(left, node), self.operand(right, node), node)

    def compared(self, left: Value, ops: list[ast.cmpop], rights: list[Value], node: ast.Compare) -> Value:
        values = [left, *rights]
        if not any(isinstance(v, (Scalar, Opaque)) for v in values):
            value = super().compared(left, ops, rights, node)
            if isinstance(value, bool):
                return value
        if len(values) == 2 and isinstance(ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
            choice, other = values if isinstance(left, OneOf) else reversed(values)
            if isinstance(choice, OneOf) and choice.name and isinstance(other, (DType, Member, str)):
                word = other if isinstance(other, str) else other.name
                equal = self.operand(OneOf((False, True), f"{choice.name}_is_{word}", choice.origin), node)
                negative = isinstance(ops[0], (ast.NotEq, ast.IsNot))
                return arithmetic.negate(equal, node, self.span(node)) if negative else equal
        if not any(isinstance(v, (DType, Member, str)) or v is None for v in values):
            values = [self.operand(v, node) for v in values]
        return super().compared(values[0], ops, values[1:], node)

    def condition(self, value: Value, node: ast.AST) -> bool | ir.Expr:
        """The truth of a value on the device."""
        if isinstance(value, (Unknown, OneOf)) and not value.name:
            return self._unknown_condition(node)
        return arithmetic.condition(self.operand(value, node), node, self.span(node))

    def _unknown_condition(self, node: ast.AST) -> ir.Expr:
        """A condition that nothing is known of: it is the same where its text, and all that it refers to, are."""
        text = ast.unparse(node)
        name = "".join(c if c.isalnum() else "_" for c in text)[:40].strip("_") or "condition"
        used: list[object] = []
        arguments: list[ir.Expr] = []
        for word in dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name)):
            value = self.lookup(ast.copy_location(ast.Name(word, ast.Load()), node))
            match value:
                case Scalar(expr=expr):
                    arguments.append(expr)
                    value = word
                case Opaque(name=function, arguments=more, varies=False):
                    arguments += more
                    value = (word, function, len(more))
                case Tile(buffer=buffer):
                    value = buffer
                case Opaque() | dict() | RingSlot() | FieldArray():
                    raise Unreadable(f"the condition depends on {arithmetic.describe(value)}", node)
                case tuple() | Record() | Choice() if not self.settled(value):
                    raise Unreadable(f"the condition depends on {word}, which changes", node)
            if isinstance(value, (Unknown, OneOf)) and not value.name and word in self.frame.names:
                raise Unreadable(f"the condition depends on {word}, of which nothing is known", node)
            used.append((type(value), value))
        key = (text, tuple(used), self.frame.via and (id(node), self.frame.via))
        try:
            hash(key)
        except TypeError:
            raise Unreadable("the condition depends on something unknown", node) from None
        span = self.span(node)
        if not arguments:
            parameter = self.context.parameter(("condition", key), name, values=(0, 1), origin=name)
            return ir.Name(parameter, span=span)
        function = self.context.function(("condition", key), name, f"whether {text} holds")
        return ir.Compare(ir.Call(function, tuple(arguments), span=span), (("!=", ir.Int(0, span=span)),), span=span)

    def decided(self, value: Value, node: ast.expr) -> Value:
        if isinstance(value, (Unknown, OneOf)) and not value.name:
            return Scalar(self._unknown_condition(node), truth=True)
        return value

    def test(self, node: ast.expr) -> bool | ir.Expr:
        return self.condition(self.truth(node), node)

    def perhaps(self, node: ast.expr, reached: Value, test: bool = False) -> Value:
        valid = dict(self.valid)
        with self.collecting() as effects:
            value = super().perhaps(node, reached, test)
        if not effects:
            return value
        condition = True if reached is True else self._reached_on_device(reached, node)
        if condition is True:
            self.out += effects
            return value
        self.valid = {k: v for k, v in self.valid.items() if valid.get(k) == v}
        if condition is not False:
            span = self.span(node)
            made = {e.name for e in effects if isinstance(e, (ir.Assign, ir.Cursor))}
            # what the value is held in is not looked at unless it is evaluated, but must be set on every path
            unset = tuple(ir.Assign(n, ir.Int(0, span=span), span=span) for n in sorted(made & set(names_in(value))))
            self.emit(ir.If(((condition, tuple(effects)),), unset, span=span))
        return value

    def _reached_on_device(self, reached: Value, node: ast.expr) -> bool | ir.Expr:
        """The condition under which an expression with effects is evaluated."""
        if isinstance(reached, (Unknown, OneOf)):
            raise Unreadable("this has effects, and whether it is evaluated cannot be told", node)
        return arithmetic.condition(reached, node, self.span(node))

    def integer(self, value: Value, node: ast.AST) -> ir.Expr:
        """A device integer."""
        return arithmetic.expression(self.operand(value, node), node, self.span(node))

    def unread_call(self, result: Unknown, node: ast.Call) -> Value:
        """On the device, what is not read may synchronise, move data or change what it is given."""
        raise Unreadable(f"the call of {ast.unparse(node.func)[:60]} is not read: {result.reason}", node)

    # --------------------------------------------------------------------------------------------------- assignments

    def assign(self, name: str, value: Value, node: ast.AST) -> None:
        """Bind a name of the current function."""
        self.frame.names[name] = self.held(self.key(name), name, value, node)

    def held(self, key: object, hint: str, value: Value, node: ast.AST) -> Value:
        """The value as a variable holds it, after producing the scalars that it needs."""
        match value:
            case bool() | int():
                self.store(key, hint, ir.Int(int(value), span=self.span(node)), node)
                return value
            case Scalar(expr=expr, truth=truth):
                name = self.store(key, hint, expr, node)
                if self._steady(expr):
                    return value
                return Scalar(ir.Name(name, span=self.span(node)), truth)
            case Tile(buffer=buffer, index=index, partial=partial):
                return self._hold_tile(key, hint, Tile(buffer, index, partial), node)
            case Choice(selector=selector, tiles=tiles):
                name = self.store((key, "which"), f"{hint}_which", selector, node)
                held = tuple(
                    t
                    if t.index is None or self._steady(t.index)
                    else Tile(t.buffer, self._copy((key, "slot", i), f"{hint}_{i}", t.index, node), t.partial)
                    for i, t in enumerate(tiles)
                )
                return Choice(ir.Name(name, span=self.span(node)), held)
            case RingSlot(ring=ring, index=index):
                return RingSlot(ring, self._copy(key, hint, index, node))
            case FieldArray(ring=array, offset=offset, length=length):
                return FieldArray(array, self._copy(key, hint, offset, node), length)
            case tuple():
                return tuple(self.held((key, i), f"{hint}_{i}", v, node) for i, v in enumerate(value))
            case Record(fields=fields):
                return Record(tuple((f, self.held((key, f), f"{hint}_{f}", v, node)) for f, v in fields))
            case Opaque(name=function, arguments=arguments, varies=False):
                kept = tuple(self._copy((key, i), f"{hint}_{i}", a, node) for i, a in enumerate(arguments))
                return Opaque(function, kept)
        return value

    def _hold_tile(self, key: object, hint: str, tile: Tile, node: ast.AST) -> Value:
        alternatives = self.context.selectors.get(key)
        if alternatives is not None:
            return self._select(key, hint, tile, alternatives, node)
        if tile.index is None:
            return tile
        name = self.store(key, hint, tile.index, node)
        if isinstance(tile.index, ir.Int):
            return tile
        return Tile(tile.buffer, ir.Name(name, span=self.span(node)), tile.partial)

    def _select(self, key: object, hint: str, tile: Tile, alternatives: list[str], node: ast.AST) -> Value:
        """The tile of a variable that holds tiles of different buffers on different paths."""
        span = self.span(node)
        if tile.buffer not in alternatives:
            alternatives.append(tile.buffer)
            self.context.restart()
        number = alternatives.index(tile.buffer)
        gathered = self.context.buffers.gather(tuple(Tile(b) for b in alternatives), hint, span)
        if gathered is not None:
            self.store(key, hint, ir.Int(number, span=span), node)
            return Tile(gathered, ir.Int(number, span=span), tile.partial)
        which = self.store((key, "which"), f"{hint}_which", ir.Int(number, span=span), node)
        slot = self.store(key, hint, tile.index or ir.Int(0, span=span), node)
        found = self.context.buffers.found
        tiles = tuple(
            Tile(b, None if found[b].depth is None else ir.Name(slot, span=span), tile.partial) for b in alternatives
        )
        return Choice(ir.Name(which, span=span), tiles)

    def _copy(self, key: object, hint: str, expr: ir.Expr, node: ast.AST) -> ir.Expr:
        name = self.store(key, hint, expr, node)
        return expr if self._steady(expr) else ir.Name(name, span=self.span(node))

    def store(self, key: object, hint: str, expr: ir.Expr, node: ast.AST) -> str:
        """Produce `variable = expr`; returns the variable's name in the IR."""
        name = self.context.variable(key, hint)
        if not (isinstance(expr, ir.Name) and expr.id == name):
            self.emit(ir.Assign(name, expr, span=self.span(node)))
        return name

    def _steady(self, expr: ir.Expr) -> bool:
        """Whether the expression is short and keeps its value wherever it is used."""
        match expr:
            case ir.Int():
                return True
            case ir.Name(id=name):
                return self.context.stable(name)
        return False

    def settled(self, value: Value) -> bool:
        """Whether nothing that a value refers to changes."""
        return all(self.context.stable(name) for name in names_in(value))

    def is_shared(self, value: Value) -> bool:
        """Whether a value refers to fields of records, which helpers can change."""
        return any(
            isinstance(n, ir.Field) or (isinstance(n, ir.Name) and n.id in self.context.record_fields)
            for n in nodes_in(value)
        )

    # ------------------------------------------------------------------------------------------------- meeting paths

    def meet(self, key: object, hint: str, a: Value, b: Value) -> Value:
        """What a variable holds where two paths meet."""
        if a == b and type(a) is type(b):
            return a
        match a, b:
            case ((bool() | int() | Scalar()), (bool() | int() | Scalar())):
                truth = _truth(a) and _truth(b)
                return Scalar(ir.Name(self.context.variable(key, hint)), truth)
            case Tile(), Tile() if a.buffer == b.buffer:
                return Tile(a.buffer, ir.Name(self.context.variable(key, hint)), a.partial or b.partial)
            case ((Tile() | Choice()), (Tile() | Choice())):
                return self._meet_tiles(key, a, b)
            case tuple(), tuple() if len(a) == len(b):
                return tuple(
                    self.meet((key, i), f"{hint}_{i}", x, y) for i, (x, y) in enumerate(zip(a, b, strict=True))
                )
            case Record(), Record() if [f for f, _ in a.fields] == [f for f, _ in b.fields]:
                parts = zip(a.fields, b.fields, strict=True)
                return Record(tuple((f, self.meet((key, f), f"{hint}_{f}", x, y)) for (f, x), (_, y) in parts))
            case RingSlot(), RingSlot() if a.ring == b.ring:
                return RingSlot(a.ring, ir.Name(self.context.variable(key, hint)))
            case ((DType() | OneOf()), (DType() | OneOf())) if _dtypes(a) and _dtypes(b):
                return OneOf(tuple(dict.fromkeys((*_dtypes(a), *_dtypes(b)))), hint)
            case Group(), Group():
                return Poison(f"{hint} is a different tile group on different paths")
            case Poison(), _:
                return a
            case _, Poison():
                return b
        if isinstance(a, (Opaque, float)) or isinstance(b, (Opaque, float)):
            return Opaque("", (), varies=True)
        words = "the result of the call" if hint.startswith("<") else hint
        kinds = [type(v).__name__.lower() for v in (a, b)]
        return Poison(f"{words} is a {kinds[0]} on one path and another {kinds[1]} on the other")

    def _meet_tiles(self, key: object, a: Tile | Choice, b: Tile | Choice) -> Value:
        alternatives = self.context.selectors.setdefault(key, [])
        before = len(alternatives)
        for value in (a, b):
            for tile in (value,) if isinstance(value, Tile) else value.tiles:
                members = self.context.buffers.found[tile.buffer].members
                for buffer in members or (tile.buffer,):
                    if buffer not in alternatives:
                        alternatives.append(buffer)
        if len(alternatives) != before or isinstance(a, Tile) or isinstance(b, Tile):
            self.context.restart()
        return a

    def joined(self, a: Names, b: Names) -> Names:
        """The names after two paths meet.  A name that only one path binds keeps that path's value."""
        result: Names = {}
        for name in {**a, **b}:
            if name in a and name in b:
                result[name] = self.meet(self.key(name), name, a[name], b[name])
            else:
                result[name] = a.get(name, b.get(name))
        return result

    def unreadable(self, problem: Unreadable) -> None:
        """Leave a mark in the IR where something could not be read."""
        self.emit(ir.Unsupported(problem.reason, span=self.span(problem.node)))

    def function_named(self, value: Value) -> str:
        return value.node.name if isinstance(value, Function) else "?"


def _truth(value: Value) -> bool:
    return isinstance(value, bool) or (isinstance(value, Scalar) and value.truth)


def _dtypes(value: DType | OneOf) -> tuple[DType, ...]:
    """The element types that a value may be; none if it may be something else."""
    values = value.values if isinstance(value, OneOf) else (value,)
    return values if all(isinstance(v, DType) for v in values) else ()
