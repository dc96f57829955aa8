"""Which value has a Python expression of a TileLang program, as far as the text tells?"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fencepost import ir
from fencepost.frontends.tilelang.names import site
from fencepost.frontends.tilelang.operations import SETTLED
from fencepost.frontends.tilelang.regions import dimension, index_dim
from fencepost.frontends.tilelang.signs import bounds_of
from fencepost.frontends.tilelang.syntax import children, compared, ends, is_test, names_in, returned
from fencepost.frontends.tilelang.traits import (
    holds,
    is_changeable,
    is_list,
    is_static,
    only_index,
    touched,
    truth_of,
)
from fencepost.frontends.tilelang.unknowns import Unknowns
from fencepost.frontends.tilelang.values import (
    UNTOLD,
    Dim,
    Either,
    Full,
    Function,
    Number,
    Opaque,
    Plain,
    Region,
    Several,
    Tensor,
    Unread,
    Vague,
    Value,
    mentioned,
)

_POINTERS = frozenset({"access_ptr", "address_of", "tvm_access_ptr"})
SCALARS = frozenset({"len", "int", "float", "bool", "abs", "str", "repr", "isinstance", "hasattr", "print", "range"})
"""Functions of Python that give no tensor and nothing that holds one."""

_BINARY: dict[type[ast.operator], Literal["+", "-", "*", "//", "%"]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_BITS: dict[type[ast.operator], str] = {
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.RShift: "shift_right",
}
"""Operations that give no negative number if their operands are none; for the first, one such operand is enough."""

_COMPARE: dict[type[ast.cmpop], Literal["<", "<=", ">", ">=", "==", "!="]] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


@dataclass(slots=True)
class Evaluator(Unknowns):
    """Evaluates expressions in a scope.

    `escapes` says how deep the things of some names may change: such lists have no known items.  `given` are the names
    of what may have been given a tensor to keep.

    `rebound` are the names that the text binds anywhere, so that they are no functions of Python; None: any may be.
    `frame` is the call whose names are in scope, None while the text around the kernel is read; then the names that are
    not steady, or all others if `loose`, may stand for something else each time.
    """

    escapes: Mapping[str, float] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    rebound: Collection[str] | None = ()
    frame: int | None = None
    loose: bool = False

    # ------------------------------------------------------------------------------------------------ entry points

    def value(self, node: ast.expr) -> Value:
        """The value of an expression; never fails, an unknown value is an unknown number."""
        match node:
            case ast.Constant(value):
                return Plain(value)
            case ast.Name(name):
                return self._name(node, name)
            case ast.Tuple(items) | ast.List(items):
                return self._several(node, items)
            case ast.UnaryOp(op, operand):
                return self._unary(node, op, operand)
            case ast.BinOp(left, op, right):
                return self._binary(node, left, op, right)
            case ast.BoolOp(op, operands):
                return self._logic(node, op, operands)
            case ast.Compare(left, ops, rights):
                return self._compare(node, left, ops, rights)
            case ast.IfExp(test, body, orelse):
                return self._choice(node, test, body, orelse)
            case ast.Subscript(base, index):
                return self._subscript(node, base, index)
            case ast.Attribute(base, name):
                return self._attribute(node, base, name)
            case ast.Call():
                return self._call(node)
            case ast.Dict(keys, entries):
                return self._object("a dictionary", self._unknown(node, [*filter(None, keys), *entries]))
            case ast.Lambda(arguments, body):
                given = ast.copy_location(ast.Return(body), body)
                named = ast.FunctionDef(name="lambda", args=arguments, body=[given], decorator_list=[])
                return self.function(ast.copy_location(named, node), is_macro=False)
            case ast.Set() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp() | ast.JoinedStr():
                found = self._unknown(node, list(children(node)))
                return found if found.static else self._object("an object", found)
            case _:
                return self._unknown(node, list(children(node)))

    def number(self, node: ast.expr) -> Number:
        """The value of an expression as a number."""
        return self.as_number(node, self.value(node))

    def as_number(self, node: ast.expr, value: Value) -> Number:
        """A value as a number; what is none becomes an unknown one."""
        match value:
            case Number():
                return value
            case Plain(bool(flag)):
                return Number(ir.Int(int(flag)), True)
            case Plain(int(number)):
                return Number(ir.Int(number), True)
            case Region():
                return self._load(value)
            case Tensor(scalar=True):
                return self._load(Region(value))
            case Tensor():
                return Number(self._somewhere(), False, (Region(value),))
            case Opaque(_, Number() as made):
                return made
            case Function():
                return self._made_of(node, [value])
            case Plain() | Opaque():
                return Number(self._fresh(node, True), True)
            case Either():
                return Number(self._fresh(node, False, True), False, tuple(touched(value)))
            case Several():
                loads = tuple(touched(value))
                return Number(self._fresh(node, not loads, bool(loads)), not loads, loads)
            case _:
                return self._unknown(node, list(children(node)))

    def settled(self, *nodes: ast.expr) -> bool:
        """Whether some expressions have values that are the same in all rounds of the loops, and read from nothing."""
        return all(is_static(value) and not touched(value) for value in map(self.value, nodes))

    # ------------------------------------------------------------------------------------------------ parts

    def _name(self, node: ast.Name, name: str) -> Value:
        found = self.scope.get(name)
        host = self.frame is None
        match found:
            case Unread(_, scope, steady, _, default) if steady or not host:
                number = self.symbol((name, scope), name)
                if default is not None and isinstance(number.expr, ir.Name):
                    self.names.defaults[number.expr.id] = default
                return number
            case None if name in self.language:
                return Opaque(name)
            case None if not host or not self.loose:
                return self.symbol(("name", name), name)
            case None | Unread():
                return Number(self._fresh(node, True), True)
            case _ if is_changeable(found, self.escapes.get(name, math.inf)):
                return self.untold(touched(found))
            case _:
                return found

    def untold(self, loads: Iterable[Region] = ()) -> Number:
        """What may be or hold tensors of which the text does not tell more, besides those that `loads` tell."""
        return Number(self._somewhere(), False, tuple(dict.fromkeys((*loads, UNTOLD))))

    def builtin(self, node: ast.expr) -> str | None:
        """The name of a function of Python, None for anything else."""
        known = isinstance(node, ast.Name) and self.rebound is not None and node.id not in self.rebound
        return node.id if isinstance(node, ast.Name) and known else None

    def function(self, node: ast.FunctionDef, is_macro: bool) -> Function:
        """A function that is defined here."""
        given = node.args
        names = [a.arg for a in (*given.posonlyargs, *given.args)]
        pairs = [*zip(reversed(names), reversed(given.defaults), strict=False)]
        pairs += [(a.arg, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None]
        return Function(node, self.scope, is_macro, {name: self.value(d) for name, d in pairs}, self.frame)

    def _several(self, node: ast.Tuple | ast.List, parts: list[ast.expr]) -> Value:
        items: list[Value] = []
        for part in parts:
            found = self.value(part.value if isinstance(part, ast.Starred) else part)
            if not isinstance(part, ast.Starred):
                items.append(found)
            elif isinstance(found, Several):
                items += found.items
            else:  # which item stands where is not known
                return self._object("a list", self._unknown(node, parts))
        return Several(tuple(items), isinstance(node, ast.List))

    def _object(self, text: str, made: Number) -> Value:
        """An object of Python, made of values that are known as far as `made` tells; it is no value of the program."""
        return self.untold(made.loads) if made.loads else Opaque(text, None if made.static else made)

    def _not(self, node: ast.expr, operand: ast.expr) -> Value:
        value = self.truth(operand)
        if isinstance(value, Plain):
            return Plain(not value.value)
        number = self.as_number(operand, value)
        return self._sized(node, ir.Unary("not", number.expr), (number,))

    def _unary(self, node: ast.expr, op: ast.unaryop, operand: ast.expr) -> Value:
        if isinstance(op, ast.Not):
            return self._not(node, operand)
        value = self.value(operand)
        if isinstance(value, Plain) and isinstance(value.value, (int, float)):
            match op:
                case ast.USub():
                    return Plain(-value.value)
                case ast.UAdd():
                    return Plain(+value.value)
        number = self.as_number(operand, value)
        match op:
            case ast.USub():
                return self._sized(node, ir.Unary("-", number.expr), (number,))
            case _:
                return self._unknown(node, [operand])

    def _binary(self, node: ast.expr, left: ast.expr, op: ast.operator, right: ast.expr) -> Value:
        a, b = self.value(left), self.value(right)
        if isinstance(a, Plain) and isinstance(b, Plain):
            return self._computed(node, op, a.value, b.value)
        if isinstance(a, Several) and isinstance(b, Several) and isinstance(op, ast.Add):
            return Several(a.items + b.items, a.changeable)
        symbol = _BINARY.get(type(op))
        x, y = self.as_number(left, a), self.as_number(right, b)
        if symbol is None:
            return self._bounded(self._unknown(node, [left, right]), _BITS.get(type(op), ""), (x, y))
        return self.arithmetic(node, symbol, x, y)

    def _bounded(self, found: Number, word: str, parts: Iterable[Number]) -> Number:
        """A value that is not computed, but is not negative because of those that it is made of."""
        known = self.names.bounds()
        natural = [low is not None and low >= 0 for low, _ in (bounds_of(p.expr, known) for p in parts)]
        if not found.loads and word and (any(natural) if word == "bitwise_and" else all(natural)):
            match found.expr:
                case ir.Name(name) | ir.Call(name):
                    self.names.ranges[name] = 0, None
        return found

    def arithmetic(self, node: ast.expr, op: Literal["+", "-", "*", "//", "%"], a: Number, b: Number) -> Number:
        """`a op b`; a quotient by something that is not a positive constant becomes an unknown function."""
        if op in ("//", "%") and not (isinstance(b.expr, ir.Int) and b.expr.value > 0):
            name = "floordiv" if op == "//" else "floormod"
            return self._sized(node, ir.Call(name, (a.expr, b.expr)), (a, b))
        return self._sized(node, ir.Binary(op, a.expr, b.expr), (a, b))

    def _computed(self, node: ast.expr, op: ast.operator, a: object, b: object) -> Value:
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            try:
                match op:
                    case ast.Add():
                        return Plain(a + b)
                    case ast.Sub():
                        return Plain(a - b)
                    case ast.Mult():
                        return Plain(a * b)
                    case ast.FloorDiv():
                        return Plain(a // b)
                    case ast.Mod():
                        return Plain(a % b)
                    case ast.Div():
                        return Plain(a / b)
                    case ast.LShift() if isinstance(a, int) and isinstance(b, int) and 0 <= b < 64:
                        return Plain(a << b)
                    case ast.Pow() if abs(b) < 64 and abs(a) < 1 << 20:
                        return Plain(a**b)
            except (ArithmeticError, ValueError):
                pass
        return Number(self._fresh(node, True), True)

    def truth(self, node: ast.expr) -> Value:
        """The value of an expression of which only the truth matters."""
        match node:
            case ast.BoolOp(op, operands):
                return self._connected(node, op, operands)
            case ast.UnaryOp(ast.Not(), operand):
                return self._not(node, operand)
            case _:
                return self.value(node)

    def _logic(self, node: ast.expr, op: ast.boolop, operands: list[ast.expr]) -> Value:
        """`a and b`, `a or b`: the operand that decides."""
        rest = list(operands)
        while len(rest) > 1:
            first = self.truth(rest[0])
            known = truth_of(first)
            if known is None:
                break
            if known is isinstance(op, ast.Or):
                return self.value(rest[0])
            del rest[0]
        if len(rest) == 1:
            return self.value(rest[0])
        if all(is_test(o) for o in rest):
            return self._connected(node, op, rest)
        first, others = self.value(rest[0]), self._logic(node, op, rest[1:])
        if any(isinstance(v, (Tensor, Region, Several, Either, Opaque, Function)) for v in (first, others)):
            return self._unknown(node, rest)
        x, y = self.as_number(rest[0], first), self.as_number(node, others)
        pair = (x.expr, y.expr) if isinstance(op, ast.Or) else (y.expr, x.expr)
        return self._sized(node, ir.Choose(x.expr, *pair), (x, y))

    def _connected(self, node: ast.expr, op: ast.boolop, operands: list[ast.expr]) -> Value:
        values = [self.truth(o) for o in operands]
        if all(isinstance(v, Plain) for v in values):
            truths = [bool(v.value) for v in values if isinstance(v, Plain)]
            return Plain(all(truths) if isinstance(op, ast.And) else any(truths))
        numbers = [self.as_number(o, v) for o, v in zip(operands, values, strict=True)]
        word: Literal["and", "or"] = "and" if isinstance(op, ast.And) else "or"
        return self._sized(node, ir.Logic(word, tuple(n.expr for n in numbers)), numbers)

    def _compare(self, node: ast.expr, left: ast.expr, ops: list[ast.cmpop], rights: list[ast.expr]) -> Value:
        values = [self.value(left), *(self.value(r) for r in rights)]
        if all(isinstance(v, Plain) for v in values):
            plain = [v.value for v in values if isinstance(v, Plain)]
            try:
                return Plain(all(compared(o, a, b) for o, a, b in zip(ops, plain, plain[1:], strict=False)))
            except (TypeError, KeyError):
                return Number(self._fresh(node, True), True)
        numbers = [self.as_number(n, v) for n, v in zip((left, *rights), values, strict=True)]
        symbols = [_COMPARE.get(type(o)) for o in ops]
        if any(s is None for s in symbols):
            return self._unknown(node, [left, *rights])
        rest = tuple((s, n.expr) for s, n in zip(symbols, numbers[1:], strict=True) if s is not None)
        return self._sized(node, ir.Compare(numbers[0].expr, rest), numbers)

    def _choice(self, node: ast.expr, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Value:
        condition = self.truth(test)
        if isinstance(condition, Plain):
            return self.value(body if condition.value else orelse)
        a, b = self.value(body), self.value(orelse)
        if any(isinstance(v, Tensor) and v.scalar for v in (a, b)):
            return self._unknown(node, [test, body, orelse])
        if isinstance(a, (Tensor, Several, Either)) or isinstance(b, (Tensor, Several, Either)):
            return Either((a, b), tuple(touched(condition)), mentioned((condition,)))
        c, x, y = self.as_number(test, condition), self.as_number(body, a), self.as_number(orelse, b)
        return self._sized(node, ir.Choose(c.expr, x.expr, y.expr), (c, x, y))

    def _subscript(self, node: ast.Subscript, base: ast.expr, index: ast.expr) -> Value:
        owner = self.value(base)
        match owner:
            case Tensor():
                return self.region(owner, index)
            case Region(tensor):
                inner = self.region(tensor, index)
                return Region(tensor, None, tuple(dict.fromkeys((*owner.at, *inner.at))))
            case Several(items):
                place = self.value(index)
                chosen = place.value if isinstance(place, Plain) else None
                if isinstance(chosen, int) and -len(items) <= chosen < len(items):
                    return items[chosen]
                if any(isinstance(i, (Tensor, Region, Several, Either)) for i in items):
                    return Either(items, tuple(touched(place)), mentioned((place,)))
                return self._unknown(node, [base, index])
            case Either(items, loads, names):
                parts = tuple(i for item in items for i in (item.items if is_list(item) else (item,)))
                place = self.value(index)
                return Either(parts, (*loads, *touched(place)), (*names, *mentioned((place,))))
            case _:
                return self._reached(base, self._unknown(node, [base, index]), owner)

    def _reached(self, base: ast.expr, found: Number, owner: Value) -> Number:
        """What is found in an object of Python: it may be or hold a tensor, if the object was given one."""
        root = base
        while isinstance(root, (ast.Subscript, ast.Attribute, ast.Call)):
            root = root.func if isinstance(root, ast.Call) else root.value
        given = isinstance(root, ast.Name) and root.id in self.given and not isinstance(owner, (Plain, Region))
        holds = isinstance(owner, Number) and bool(owner.loads)
        return self.untold(found.loads) if given or holds else found

    def region(self, tensor: Tensor, index: ast.expr) -> Region:
        """`tensor[index]`: one entry per dimension."""
        entries = index.elts if isinstance(index, ast.Tuple) else [index]
        element = not any(isinstance(n, ast.Slice) for n in entries)
        parts = (e for entry in entries for e in (ends(entry) if isinstance(entry, ast.Slice) else [entry]))
        if any(isinstance(e, ast.Starred) or (isinstance(e, ast.Constant) and e.value is ...) for e in entries):
            at = tuple(dict.fromkeys(load for e in parts for load in touched(self.value(e))))
            return Region(tensor, tuple(Vague() for _ in entries), at)
        dims: list[Dim] = []
        loads: dict[Region, None] = {}
        known = self.names.bounds()
        for place, entry in enumerate(entries):
            size = tensor.shape[place] if tensor.shape is not None and place < len(tensor.shape) else None
            if isinstance(entry, ast.Slice):
                low = self.number(entry.lower) if entry.lower is not None else Number(ir.Int(0), True)
                high = self.number(entry.upper) if entry.upper is not None else None
                step = self.number(entry.step) if entry.step is not None else Number(ir.Int(1), True)
                numbers = [low, *([high] if high is not None else ()), step]
                whole = dimension(low.expr, high.expr if high is not None else size, size, known)
                dims.append(whole if step.expr == ir.Int(1) else Vague())
            else:
                numbers = [self.number(entry)]
                dims.append(index_dim(numbers[0].expr, size, known, self.names.is_read(numbers[0].expr)))
            loads.update((load, None) for n in numbers for load in n.loads)
        if tensor.shape is None and tensor.memory != "global":  # seen in another shape: what is where is not known
            dims = [d if isinstance(d, Full) else Vague() for d in dims]
        return Region(tensor, tuple(dims), tuple(loads), element)

    def _load(self, region: Region) -> Number:
        """The value of one element."""
        tensor = region.tensor
        indices = tuple(i for i in map(only_index, region.dims or (None,)) if i is not None)
        if tensor.memory == "global" and region.element and len(indices) == len(region.dims or (None,)):
            return Number(ir.Call(f"value_of_{tensor.name}", indices), False, (region,))
        found = Number(self._somewhere(), False, (region,))
        self.names.running.add(self.loaded)
        self.names.read.add(self.loaded)
        return found

    def _attribute(self, node: ast.Attribute, base: ast.expr, name: str) -> Value:
        owner = self.value(base)
        match owner:
            case Tensor() if name == "shape" and owner.shape is not None:
                return Several(tuple(Number(e, True) for e in owner.shape))
            case Tensor() if name == "data":
                return owner
            case Tensor():
                return Opaque(f"{owner.name}.{name}")
            case Opaque(text, made) if not (isinstance(base, ast.Name) and base.id in self.given):
                return Opaque(f"{text}.{name}", made)
            case _:
                return self._reached(base, self._unknown(node, [base]), owner)

    def _call(self, node: ast.Call) -> Value:
        word = self.called(node.func)
        if word is None and self.builtin(node.func) in ("min", "max", "int", "bool", "len", "abs"):
            word = self.builtin(node.func)
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if word is None:
            match node.func:
                case ast.Attribute(owner):
                    arguments.append(owner)
                case ast.Name(name) if isinstance(self.scope.get(name, Unread(name, 0)), Unread):
                    pass
                case called:
                    arguments.append(called)
        settled = self.called(node.func) is None or word in SETTLED
        match arguments:
            case [ast.GeneratorExp() | ast.ListComp() as items] if self.builtin(node.func) in ("sum", "any", "all"):
                return self._unknown(node, list(children(items)))  # computed from the items at once
        if word is None and self.builtin(node.func) not in SCALARS:
            given = self._unknown(node, arguments)
            return self.untold(given.loads) if self._is_handed(node, arguments, given) else given
        if word in _POINTERS:  # what it leads to is used where the pointer is
            return self.untold(self._unknown(node, arguments).loads)
        if word is None or not node.args:
            return self._unknown(node, arguments, settled)
        match word:
            case "min" | "max" if len(node.args) > 1 and not node.keywords:
                values = [self.value(a) for a in node.args]
                plain = [v.value for v in values if isinstance(v, Plain) and isinstance(v.value, (int, float))]
                if len(plain) == len(values):
                    return Plain(min(plain) if word == "min" else max(plain))
                numbers = [self.as_number(a, v) for a, v in zip(node.args, values, strict=True)]
                return self._sized(node, ir.Call(word, tuple(n.expr for n in numbers)), numbers)
            case "ceildiv" if len(node.args) == 2:
                return self._ceildiv(node)
            case "floordiv" | "indexdiv" if len(node.args) == 2:
                return self.arithmetic(node, "//", self.number(node.args[0]), self.number(node.args[1]))
            case "floormod" | "indexmod" if len(node.args) == 2:
                return self.arithmetic(node, "%", self.number(node.args[0]), self.number(node.args[1]))
            case "if_then_else" | "Select" if len(node.args) == 3:
                return self._choice(node, node.args[0], node.args[1], node.args[2])
            case "len":
                found = self.value(node.args[0])
                return Plain(len(found.items)) if isinstance(found, Several) else self._unknown(node, arguments)
            case "int" | "bool" if len(arguments) == 1:
                return self._converted(node, word, self.value(node.args[0]))
            case "const" | "dynamic" | "symbolic":
                return self._declared(node)
            case "let":
                return self._unknown(node, arguments)
            case "int32" | "int64" | "Int32":
                return self.number(node.args[-1])
            case "cast" if len(node.args) == 2 and self._is_wide(node.args[1]):
                return self.number(node.args[0])
            case _:
                found = self._unknown(node, arguments, settled)
                bits = word in _BITS.values() and len(arguments) == 2
                return self._bounded(found, word, map(self.number, arguments)) if bits else found

    def _is_handed(self, node: ast.Call, arguments: list[ast.expr], found: Number) -> bool:
        """Whether what a call of Python gives may be a tensor, or hold one."""
        called = self.scope.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if isinstance(called, Function):
            passed = [*map(self.value, arguments), *self._free(called), *called.defaults.values()]
            return any(map(holds, passed)) and not all(map(self._is_scalar, returned(called.node)))
        names = (n.id for n in ast.walk(node.func) if isinstance(n, ast.Name))
        return UNTOLD in found.loads or any(holds(self.value(a)) for a in arguments) or not self.given.isdisjoint(names)

    def _is_scalar(self, node: ast.expr | None) -> bool:
        """Whether an expression of some function is computed, and so no tensor and no object that holds one."""
        match node:
            case None | ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.Compare():
                return True
            case ast.IfExp(_, one, other):
                return self._is_scalar(one) and self._is_scalar(other)
            case ast.Subscript(ast.Name(name), index) if not isinstance(index, ast.Slice):
                return isinstance(self.scope.get(name), Tensor)
            case ast.Call(func):
                return self.called(func) in SETTLED
            case _:
                return False

    def _is_wide(self, node: ast.expr) -> bool:
        """Whether a type of data holds all integers that a program computes with."""
        match self.value(node):
            case Plain(str(text)) | Opaque(text):
                return text.rpartition(".")[2] in ("int32", "int64")
            case _:
                return False

    def _converted(self, node: ast.Call, word: str, value: Value) -> Value:
        """`int(x)` and `bool(x)` of Python."""
        match value:
            case Plain(int() | float() as known) if math.isfinite(known):
                return Plain(int(known) if word == "int" else bool(known))
            case Number(expr) if word == "int" and not self.names.unknowns.keys() & names_in(expr):
                return value  # an integer already; what is not computed may be any other number
            case Number(expr) if word == "bool":
                return self._sized(node, ir.Compare(expr, (("!=", ir.Int(0)),)), (value,))
            case _:
                return self._unknown(node, node.args)

    def _declared(self, node: ast.Call) -> Value:
        """`T.const("M, N")`: integers that the caller chooses."""
        first = self.value(node.args[0])
        if isinstance(first, Plain) and isinstance(first.value, str):
            names = first.value.replace(",", " ").split()
            word = self.called(node.func)  # `T.const` names one size, each of the others makes a new one
            key = ("const",) if word == "const" else (word, site(node), self.names.part)
            numbers = tuple(self.symbol((*key, name), name, natural=True) for name in names if name.isidentifier())
            return numbers[0] if len(numbers) == 1 else Several(numbers)
        return self._unknown(node, node.args)

    def _ceildiv(self, node: ast.Call) -> Value:
        a, b = self.number(node.args[0]), self.number(node.args[1])
        if isinstance(a.expr, ir.Int) and isinstance(b.expr, ir.Int) and b.expr.value:
            return Plain(-(-a.expr.value // b.expr.value))
        return self._sized(node, ir.Call("ceildiv", (a.expr, b.expr)), (a, b))
