"""Which of its tiles does a vector function read and write, and which bytes of them?

A `@pl.vector_function` runs as one operation on pipe V.  Its body is scanned for loads and stores; a tile that is
stored before it is loaded is written only.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from math import gcd
from typing import Literal

from fencepost.frontends.pypto_pro.arguments import bind_arguments
from fencepost.frontends.pypto_pro.tiles import Footprint
from fencepost.frontends.pypto_pro.values import Choice, Function, Group, Module, Tile, Unreadable, Value

_REGISTER = 256  # bytes of one vector register
_TARGETS = ("dst", "dst_ptr", "base_ptr")  # what vector stores call the tile that they write
_MAX_DEPTH = 20
_MAX_STEPS = 50_000


@dataclass(frozen=True, slots=True)
class Offsets:
    """Element offsets `low, low + step, ..., high`."""

    low: int
    high: int
    step: int


@dataclass(slots=True)
class Uses:
    """How a vector function uses one of its tiles.  `offsets` is None where they are not simple."""

    reads: bool = False
    writes: bool = False
    settled: bool = False  # written on every path so far
    offsets: list[Offsets] | None = field(default_factory=list)

    def footprint(self, width: int) -> Footprint | None:
        """The bytes touched in a tile with elements of `width` bytes, or None for all of them."""
        if not self.offsets:
            return None
        pitch = 0
        for part in self.offsets:
            pitch = gcd(pitch, gcd(part.step, part.low))
        if pitch * width <= _REGISTER:
            return None
        return Footprint(_REGISTER, pitch * width, max(p.high for p in self.offsets) // pitch + 1)


@dataclass(frozen=True, slots=True)
class _Pointer:
    """A tile parameter plus an offset (None: not known)."""

    parameter: str
    offset: Offsets | None


@dataclass(frozen=True, slots=True)
class _Lost:
    """A name that may hold different tiles."""


class VectorScan:
    """One scan of a vector function for given arguments."""

    def __init__(self, arguments: dict[str, Value], tiles: set[str]) -> None:
        """`tiles` names the parameters that hold tiles; known integer arguments decide branches and offsets."""
        self.uses: dict[str, Uses] = {t: Uses() for t in tiles}
        self.arguments = arguments
        self.tiles = tiles
        self.depth = 0
        self.steps = 0

    def run(self, function: Function) -> dict[str, Uses]:
        """The uses of each tile parameter.

        Raises:
            Unreadable: the body holds something that cannot be scanned.
        """
        names: dict[str, object] = {}
        for name, value in self.arguments.items():
            if name in self.tiles:
                names[name] = _Pointer(name, Offsets(0, 0, 0))
            elif isinstance(value, (bool, int)):
                names[name] = Offsets(int(value), int(value), 0)
        self._body(function.node.body, names, function, certain=True)
        return self.uses

    def _body(self, body: list[ast.stmt], names: dict[str, object], function: Function, certain: bool) -> None:
        for stmt in body:
            self.steps += 1
            if self.steps > _MAX_STEPS:
                raise Unreadable("the vector function is too large to be scanned", stmt)
            self._statement(stmt, names, function, certain)
            if isinstance(stmt, (ast.If, ast.For, ast.While, ast.With)):
                certain = certain and not any(
                    isinstance(n, (ast.Return, ast.Break, ast.Continue)) for n in ast.walk(stmt)
                )

    def _statement(self, stmt: ast.stmt, names: dict[str, object], function: Function, certain: bool) -> None:
        match stmt:
            case ast.Assign(targets=targets, value=value):
                self._bind(targets, value, names, function, certain)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self._bind([target], value, names, function, certain)
            case ast.AugAssign(target=target, op=op, value=value):
                whole = ast.BinOp(_loaded(target), op, value)
                self._bind([target], ast.copy_location(whole, stmt), names, function, certain)
            case ast.For():
                self._expression(stmt.iter, names, function, certain)
                trips = self._range(stmt.iter, names, function)
                before = dict(names)
                for name in _assigned([stmt]):
                    names.pop(name, None)
                if isinstance(stmt.target, ast.Name):
                    names[stmt.target.id] = trips
                if isinstance(trips, Offsets) and trips.high < trips.low:
                    names.clear()
                    names.update(before)
                    return
                self._loop(stmt, before, names, function, certain and isinstance(trips, Offsets))
            case ast.While():
                self._expression(stmt.test, names, function, certain=False)
                self._loop(stmt, dict(names), names, function, certain=False)
            case ast.If():
                self._expression(stmt.test, names, function, certain)
                test = self._test(stmt.test, names, function)
                if test is not None:
                    self._body(stmt.body if test else stmt.orelse, names, function, certain)
                else:
                    other = dict(names)
                    self._body(stmt.body, names, function, certain=False)
                    self._body(stmt.orelse, other, function, certain=False)
                    self._join(_assigned([stmt]), names, other)
            case ast.Return(value=value):
                if value is not None:
                    self._expression(value, names, function, certain)
                    if isinstance(self._value(value, names, function), _Pointer):
                        raise Unreadable("a vector function that returns a tile is not supported", stmt)
            case ast.Expr(value=value):
                self._expression(value, names, function, certain)
            case ast.Assert(test=value):
                self._expression(value, names, function, certain)
            case ast.With(items=items, body=body):
                for item in items:
                    self._expression(item.context_expr, names, function, certain)
                self._body(body, names, function, certain)
            case ast.Pass() | ast.Break() | ast.Continue() | ast.Import() | ast.ImportFrom():
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                raise Unreadable("a definition inside a vector function is not supported", stmt)
            case _:
                raise Unreadable(f"{type(stmt).__name__.lower()} inside a vector function is not supported", stmt)

    def _bind(
        self, targets: list[ast.expr], node: ast.expr, names: dict[str, object], function: Function, certain: bool
    ) -> None:
        """Assign the value of an expression to targets."""
        pairs: list[tuple[ast.expr, ast.expr]] = []
        for target in targets:
            match target, node:
                case ((ast.Tuple(elts=to) | ast.List(elts=to)), (ast.Tuple(elts=of) | ast.List(elts=of))):
                    if len(to) != len(of) or any(isinstance(e, ast.Starred) for e in (*to, *of)):
                        raise Unreadable("this assignment is not supported", target)
                    pairs += zip(to, of, strict=True)
                case _:
                    pairs.append((target, node))
        for part in {id(part): part for _, part in pairs}.values():
            self._expression(part, names, function, certain)
        values = [self._value(part, names, function) for _, part in pairs]
        for (target, _), value in zip(pairs, values, strict=True):
            if isinstance(target, ast.Name):
                names[target.id] = value
                continue
            for name in _stored(target):
                names.pop(name, None)
            held = self._value(target, names, function)
            if isinstance(held, _Pointer):
                self._touch(held, "R", None, certain)
                self._touch(held, "W", None, certain=False)
            if isinstance(value, _Pointer):
                raise Unreadable("a tile is assigned in a way that is not supported", target)
            if not isinstance(held, _Pointer):
                self._expression(target, names, function, certain)

    def _loop(
        self,
        stmt: ast.For | ast.While,
        before: dict[str, object],
        names: dict[str, object],
        function: Function,
        certain: bool,
    ) -> None:
        """The body of a loop, for all its trips; `before` is what names held before the loop."""
        changed = _assigned(stmt.body)
        for name in changed:
            old = before.get(name)
            names.pop(name, None)
            if isinstance(old, _Pointer):
                names[name] = _Pointer(old.parameter, None)
        head = dict(names)
        self._body(stmt.body, names, function, certain)
        for name in changed:  # a second trip must find the tiles of the first
            old, new = head.get(name), names.get(name)
            if isinstance(old, _Pointer) and (not isinstance(new, _Pointer) or new.parameter != old.parameter):
                raise Unreadable(f"{name} is another tile in each trip of a loop", stmt)
        self._join(changed, names, head)
        self._body(stmt.orelse, names, function, certain=False)

    @staticmethod
    def _join(changed: set[str], names: dict[str, object], other: dict[str, object]) -> None:
        """What names that may change hold where two paths meet; a pointer still points into its tile."""
        for name in changed:
            a, b = names.pop(name, None), other.get(name)
            if isinstance(a, _Pointer) and isinstance(b, _Pointer) and a.parameter == b.parameter:
                names[name] = a if a == b else _Pointer(a.parameter, None)
            elif isinstance(a, (_Pointer, _Lost)) or isinstance(b, (_Pointer, _Lost)):
                names[name] = _Lost()

    # ------------------------------------------------------------------------------------------------------ accesses

    def _expression(self, node: ast.expr, names: dict[str, object], function: Function, certain: bool) -> None:
        """Scan an expression whose value, if it is a tile, is looked at by the caller."""
        self._check(node, names, function)
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        for call in reversed(calls):  # inner calls first
            self._call(call, names, function, certain)

    def _check(self, node: ast.expr, names: dict[str, object], function: Function) -> None:
        """Refuse an expression in which a tile stands where its use cannot be told."""
        stack: list[tuple[ast.AST, bool]] = [(node, True)]
        while stack:
            current, understood = stack.pop()
            if isinstance(current, ast.NamedExpr):
                raise Unreadable("an assignment inside an expression is not supported", current)
            deferred = isinstance(current, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.Lambda))
            if deferred and any(isinstance(n, ast.Call) for n in ast.walk(current)):
                raise Unreadable("calls in a comprehension or lambda are not supported", current)
            if isinstance(current, ast.expr) and isinstance(self._value(current, names, function), _Pointer):
                if not understood:
                    raise Unreadable("a tile is used in a way that is not understood", current)
                if isinstance(current, ast.Name):
                    continue
                parts = [current.left, current.right] if isinstance(current, ast.BinOp) else [_base(current)]
                stack += [(part, True) for part in parts]
                if isinstance(current, ast.Subscript):
                    stack.append((current.slice, False))
            elif isinstance(current, ast.Call):
                stack.append((current.func, False))
                stack += [(argument, True) for argument in current.args]
                stack += [(keyword.value, True) for keyword in current.keywords if keyword.arg is not None]
                stack += [(keyword.value, False) for keyword in current.keywords if keyword.arg is None]
            elif isinstance(current, ast.Subscript) and isinstance(current.value, ast.Call):
                stack += [(current.value, True), (current.slice, False)]
            else:
                stack += [(child, False) for child in ast.iter_child_nodes(current)]

    def _call(self, call: ast.Call, names: dict[str, object], function: Function, certain: bool) -> None:
        target = self._target(call.func, function)
        pointers = [
            (i, p) for i, a in enumerate(call.args) if isinstance(p := self._value(a, names, function), _Pointer)
        ]
        pointers += [
            (0 if k.arg in _TARGETS else -1, p)
            for k in call.keywords
            if isinstance(p := self._value(k.value, names, function), _Pointer)
        ]
        if isinstance(target, Function):
            self._inner(target, call, names, function, certain)
            return
        name = target.path[3:] if isinstance(target, Module) and target.path.startswith("vf.") else ""
        if not pointers:
            if name.startswith(("load", "store", "scatter")) and not name.endswith("_init"):
                raise Unreadable(f"which tile vf.{name} accesses is not known", call)
            return
        if name.startswith(("load", "gather")):
            for i, pointer in pointers:
                self._touch(pointer, "R", self._reached(call, pointer, i, name, names, function), certain)
        elif name.startswith(("store", "scatter")):
            for i, pointer in pointers:
                role: Literal["R", "W"] = "W" if i == 0 else "R"
                self._touch(pointer, role, self._reached(call, pointer, i, name, names, function), certain)
        else:
            for _, pointer in pointers:
                self._touch(pointer, "R", None, certain)
                self._touch(pointer, "W", None, certain=False)

    def _reached(
        self, call: ast.Call, pointer: _Pointer, place: int, name: str, names: dict[str, object], function: Function
    ) -> Offsets | None:
        """The offsets that a plain aligned load or store reaches, or None."""
        if name not in ("load_align", "store_align") or place != 0 or pointer.offset is None:
            return None
        if any(k.arg not in ("dtype",) for k in call.keywords):
            return None
        if name == "store_align" or len(call.args) < 2:
            return pointer.offset
        more = self._value(call.args[1], names, function)
        return _plus(pointer.offset, more) if isinstance(more, Offsets) else None

    def _touch(self, pointer: _Pointer, role: Literal["R", "W"], reached: Offsets | None, certain: bool) -> None:
        uses = self.uses[pointer.parameter]
        if role == "R":
            uses.reads |= not uses.settled
        else:
            uses.writes = True
            uses.settled |= certain
        if reached is None:
            uses.offsets = None
        elif uses.offsets is not None:
            uses.offsets.append(reached)

    def _inner(
        self, target: Function, call: ast.Call, names: dict[str, object], function: Function, certain: bool
    ) -> None:
        if self.depth >= _MAX_DEPTH:
            raise Unreadable("vector functions call each other too deeply", call)
        bound = bind_arguments(
            target.node,
            call,
            lambda node: self._value(node, names, function),
            lambda node: _number(target.scope.default(node)),
        )
        self.depth += 1
        self._body(target.node.body, {n: v for n, v in bound.items() if v is not None}, target, certain)
        self.depth -= 1

    # -------------------------------------------------------------------------------------------------------- values

    def _target(self, node: ast.expr, function: Function) -> object:
        path: list[str] = []
        while isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        try:
            found = function.scope.find(node.id)
        except KeyError:
            found = Module("vf") if node.id == "vf" else None
        if path and isinstance(found, Module):
            full = f"{found.path}.{'.'.join(path)}"
            return Module(full.replace("pl.Vf.", "vf.", 1))
        return found if not path else None

    def _value(self, node: ast.expr, names: dict[str, object], function: Function) -> object:
        """A pointer, known offsets, or None."""
        match node:
            case ast.Constant(value=bool() | int() as value):
                return Offsets(int(value), int(value), 0)
            case ast.Name(id=name):
                if name in names:
                    if isinstance(names[name], _Lost):
                        raise Unreadable(f"{name} may be one of several tiles", node)
                    return names[name]
                try:
                    found = function.scope.find(name)
                except KeyError:
                    return None
                if isinstance(found, (Tile, Choice, Group)):
                    raise Unreadable(f"the tile {name} is used without being an argument", node)
                return Offsets(found, found, 0) if isinstance(found, int) and not isinstance(found, bool) else None
            case ast.BinOp():
                return self._binary(node, names, function)
            case ast.UnaryOp(op=ast.USub()):
                inner = self._value(node.operand, names, function)
                return _times(inner, Offsets(-1, -1, 0)) if isinstance(inner, Offsets) else None
            case ast.Subscript() | ast.Attribute():
                base = self._value(node.value, names, function)
                return _Pointer(base.parameter, None) if isinstance(base, _Pointer) else None
        return None

    def _binary(self, node: ast.BinOp, names: dict[str, object], function: Function) -> object:
        left, right = self._value(node.left, names, function), self._value(node.right, names, function)
        if isinstance(right, _Pointer) and isinstance(node.op, ast.Add):
            left, right = right, left
        if isinstance(left, _Pointer):
            if isinstance(node.op, ast.Add) and isinstance(right, Offsets) and left.offset is not None:
                return _Pointer(left.parameter, _plus(left.offset, right))
            return _Pointer(left.parameter, None)
        if not isinstance(left, Offsets) or not isinstance(right, Offsets):
            return None
        match node.op:
            case ast.Add():
                return _plus(left, right)
            case ast.Sub():
                return _plus(left, Offsets(-right.high, -right.low, right.step))
            case ast.Mult():
                return _times(left, right)
            case ast.FloorDiv() if left.low == left.high and right.low == right.high != 0:
                return Offsets(left.low // right.low, left.low // right.low, 0)
            case ast.Mod() if left.low == left.high and right.low == right.high != 0:
                return Offsets(left.low % right.low, left.low % right.low, 0)
        return None

    def _range(self, node: ast.expr, names: dict[str, object], function: Function) -> Offsets | None:
        if not isinstance(node, ast.Call):
            return None
        parts = [self._value(a, names, function) for a in node.args]
        numbers = [p.low for p in parts if isinstance(p, Offsets) and p.low == p.high]
        if not numbers or len(numbers) != len(parts):
            return None
        start, stop, step = (
            (0, numbers[0], 1) if len(numbers) == 1 else (numbers[0], numbers[1], (numbers[2:] or [1])[0])
        )
        if step <= 0:
            return None
        if stop <= start:
            return Offsets(0, -1, 0)
        last = start + (stop - start - 1) // step * step
        return Offsets(start, last, step if last > start else 0)

    def _test(self, node: ast.expr, names: dict[str, object], function: Function) -> bool | None:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                a, b = self._value(left, names, function), self._value(right, names, function)
                if isinstance(a, Offsets) and isinstance(b, Offsets) and a.low == a.high and b.low == b.high:
                    x, y = a.low, b.low
                    table = {
                        ast.Eq: x == y,
                        ast.NotEq: x != y,
                        ast.Lt: x < y,
                        ast.LtE: x <= y,
                        ast.Gt: x > y,
                        ast.GtE: x >= y,
                    }
                    return table.get(type(op))
                return None
            case ast.UnaryOp(op=ast.Not()):
                inner = self._test(node.operand, names, function)
                return None if inner is None else not inner
        value = self._value(node, names, function)
        return bool(value.low) if isinstance(value, Offsets) and value.low == value.high else None


def _number(value: Value) -> Offsets | None:
    return Offsets(int(value), int(value), 0) if isinstance(value, int) else None


def _plus(a: Offsets, b: Offsets) -> Offsets:
    return Offsets(a.low + b.low, a.high + b.high, gcd(a.step, b.step))


def _times(a: Offsets, b: Offsets) -> Offsets | None:
    if a.low == a.high:
        a, b = b, a
    if b.low != b.high:
        return None
    low, high = sorted((a.low * b.low, a.high * b.low))
    return Offsets(low, high, abs(a.step * b.low))


def _assigned(body: list[ast.stmt]) -> set[str]:
    return {name for stmt in body for name in _stored(stmt)}


def _stored(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _loaded(target: ast.expr) -> ast.expr:
    """The target of an assignment as an expression."""
    return ast.copy_location(ast.Name(target.id, ast.Load()), target) if isinstance(target, ast.Name) else target


def _base(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, (ast.Subscript, ast.Attribute)) else node
