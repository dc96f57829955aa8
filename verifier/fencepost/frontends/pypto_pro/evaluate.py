"""What is the value of an expression of the source?

The rules shared by host code (constant evaluation) and kernel code (lowering); each of them decides what a name and a
call mean.
"""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Literal

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic
from fencepost.frontends.pypto_pro.library import BUILTINS, builtin, mathematics, module_member
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.pypto_pro.values import (
    Class,
    Decorated,
    DType,
    Fixed,
    Function,
    Member,
    Method,
    Module,
    OneOf,
    Opaque,
    Poison,
    Scalar,
    Unknown,
    Unreadable,
    Value,
)

_MAX_TEXT = 1 << 20
_TEXT_METHODS = ("lower", "upper", "strip", "replace", "startswith", "endswith", "split", "join")

_QUERIES = ("get", "keys", "values", "items", "index", "count")  # methods of dictionaries and lists without effect

_CONVERSIONS: dict[str, Callable[[object], str]] = {"s": str, "r": repr, "a": ascii}


class Evaluator(ABC):
    """Evaluates expressions of one text."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def span(self, node: ast.AST) -> ir.Span:
        return self.source.span(node)

    @abstractmethod
    def lookup(self, node: ast.Name) -> Value:
        """The value of a name."""

    @abstractmethod
    def call_function(self, function: Function, node: ast.Call) -> Value:
        """The result of a call of a function of the user's module."""

    @abstractmethod
    def call_language(self, function: Module, node: ast.Call) -> Value:
        """The result of a call of the kernel language."""

    def builtin(self, node: ast.Name) -> Value:
        """A name that no scope defines."""
        if node.id in BUILTINS:
            return Module(f"builtins.{node.id}")
        if node.id == "vf":  # the language knows its vector functions by this name, imported or not
            return Module("vf")
        raise Unreadable(f"the name {node.id} is not defined in this file", node)

    def evaluate(self, node: ast.expr) -> Value:
        """The value of an expression.

        Raises:
            Unreadable: it has none that can be known or expressed.
        """
        span = self.span(node)
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name():
                value = self.lookup(node)
                if isinstance(value, Poison):
                    raise Unreadable(f"{node.id} could not be read: {value.reason}", node)
                return respan(value, span)
            case ast.Tuple(elts=elts):
                return Fixed(self._elements(elts))
            case ast.List(elts=elts):
                return tuple(self._elements(elts))
            case ast.Dict():
                return self._dict(node)
            case ast.BinOp():
                left, right = self.evaluate(node.left), self.evaluate(node.right)
                return self.binary(node.op, left, right, node)
            case ast.UnaryOp(op=ast.USub()):
                return arithmetic.minus(self.known(self.evaluate(node.operand), node), node, span)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.evaluate(node.operand)
            case ast.UnaryOp(op=ast.Not()):
                return arithmetic.negate(self.known(self.truth(node.operand), node), node, span)
            case ast.UnaryOp(op=ast.Invert()):
                value = self.evaluate(node.operand)
                if isinstance(value, int):
                    return ~value
                return arithmetic.minus(self.binary(ast.Add(), value, 1, node), node, span)
            case ast.BoolOp(op=op, values=values):
                return self._logic("and" if isinstance(op, ast.And) else "or", values, node)
            case ast.Compare(left=first, ops=ops, comparators=[second, *later]):
                left, rights = self.evaluate(first), [self.evaluate(second)]
                for operand in later:
                    reached = self.compared(left, ops[: len(rights)], rights, node)
                    rights.append(self.perhaps(operand, reached))
                return self.compared(left, ops, rights, node)
            case ast.IfExp():
                return self._choice(node)
            case ast.Attribute():
                return self.attribute(self.evaluate(node.value), node.attr, node)
            case ast.Subscript():
                return self.subscript(self.evaluate(node.value), node)
            case ast.Call():
                return self.call(node)
            case ast.JoinedStr():
                return self._formatted(node)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return self._comprehension(node)
            case ast.Lambda():
                return Unknown("", "a lambda is not read")
            case ast.NamedExpr():
                raise Unreadable("an assignment inside an expression is not supported", node)
        raise Unreadable(f"this expression ({type(node).__name__}) is not supported", node)

    def known(self, value: Value, node: ast.AST) -> Value:
        """The value, or a device integer that stands for one that is not known here."""
        return value

    def binary(self, op: ast.operator, left: Value, right: Value, node: ast.expr) -> Value:
        return arithmetic.binary(op, left, right, node, self.span(node))

    def compared(self, left: Value, ops: list[ast.cmpop], rights: list[Value], node: ast.Compare) -> Value:
        return arithmetic.compare(left, ops, rights, node, self.span(node))

    def _elements(self, elts: list[ast.expr]) -> Iterable[Value]:
        for elt in elts:
            if isinstance(elt, ast.Starred):
                inner = self.evaluate(elt.value)
                if not isinstance(inner, tuple):
                    raise Unreadable("the unpacked value is not a known sequence", elt)
                yield from inner
            else:
                yield self.element(elt)

    def element(self, node: ast.expr) -> Value:
        """An element of a tuple or list."""
        return self.evaluate(node)

    def _dict(self, node: ast.Dict) -> Value:
        found: dict[Value, Value] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.evaluate(item)
                if not isinstance(inner, dict):
                    raise Unreadable("the unpacked value is not a known dictionary", item)
                found |= inner
                continue
            known = self.evaluate(key)
            if not arithmetic.constant(known) and not isinstance(known, (DType, Member)):
                raise Unreadable("a dictionary key is not constant", key)
            try:
                found[known] = self.evaluate(item)
            except Unreadable as problem:
                found[known] = Unknown("", problem.reason)
        return found

    def _logic(self, op: Literal["and", "or"], nodes: list[ast.expr], node: ast.expr, test: bool = False) -> Value:
        """`and` / `or`.  `test`: only the truth of the result matters."""
        values: list[Value] = []
        for operand in nodes:
            value = self.known(self.perhaps(operand, self._reached(op, values, node), test), operand)
            if test:
                value = self.decided(value, operand)
            if _open(value):
                values.append(value)
            elif bool(value) == (op == "or"):
                values.append(value)
                break
            elif operand is nodes[-1] and not (test and values):
                values.append(value)
        if len(values) == 1:
            return values[0]
        if any(isinstance(v, (Scalar, Opaque)) for v in values) and any(
            isinstance(v, (Unknown, OneOf)) for v in values
        ):
            raise Unreadable("the result depends on something unknown", node)
        if test or all(isinstance(v, (bool, OneOf)) or (isinstance(v, Scalar) and v.truth) for v in values):
            return arithmetic.logic(op, tuple(values), node, self.span(node))
        result = values.pop()
        for value in reversed(values):
            if isinstance(value, (Unknown, OneOf)):
                return arithmetic.nameless(value)
            if isinstance(result, (Unknown, OneOf)):
                return arithmetic.nameless(result)
            truth = arithmetic.condition(value, node, self.span(node))
            then, other = (result, value) if op == "and" else (value, result)
            result = arithmetic.choose(truth, then, other, node, self.span(node))
        return result

    def _reached(self, op: Literal["and", "or"], values: list[Value], node: ast.expr) -> Value:
        """Whether the operand after those with `values`, none of which is known, is evaluated."""
        if not values:
            return True
        truth = arithmetic.logic(op, tuple(values), node, self.span(node))
        return truth if op == "and" else arithmetic.negate(truth, node, self.span(node))

    def _choice(self, node: ast.IfExp) -> Value:
        test = self.test(node.test)
        if isinstance(test, bool):
            return self.evaluate(node.body if test else node.orelse)
        reached = Scalar(test, truth=True)
        then = self.perhaps(node.body, reached)
        other = self.perhaps(node.orelse, arithmetic.negate(reached, node, self.span(node)))
        return self.choose(test, then, other, node)

    def perhaps(self, node: ast.expr, reached: Value, test: bool = False) -> Value:
        """The value of an expression that is evaluated only if `reached` holds.

        `test`: only its truth matters.
        """
        return self.truth(node) if test else self.evaluate(node)

    def decided(self, value: Value, node: ast.expr) -> Value:
        """A truth value, or a device integer that stands for one that is not known."""
        return value

    def truth(self, node: ast.expr) -> Value:
        """A value that has the truth of an expression's value."""
        if isinstance(node, ast.BoolOp):
            return self._logic("and" if isinstance(node.op, ast.And) else "or", node.values, node, test=True)
        return self.evaluate(node)

    def test(self, node: ast.expr) -> bool | ir.Expr:
        """The truth of a condition."""
        return arithmetic.condition(self.truth(node), node, self.span(node))

    def choose(self, test: ir.Expr, then: Value, other: Value, node: ast.IfExp) -> Value:
        """`then if test else other` for a test that is not known."""
        return arithmetic.choose(test, then, other, node, self.span(node))

    def _formatted(self, node: ast.JoinedStr) -> Value:
        parts = []
        for item in node.values:
            text = self._field(item) if isinstance(item, ast.FormattedValue) else self.evaluate(item)
            if not isinstance(text, str):
                return Unknown("", "a formatted text")
            parts.append(text)
        return "".join(parts)

    def _field(self, item: ast.FormattedValue) -> Value:
        """The text of a field of a formatted text; not a text where it is not known."""
        value = self.evaluate(item.value)
        if not isinstance(value, (str, int, float)) or (isinstance(value, int) and value.bit_length() > 1000):
            return Unknown()
        form = "" if item.format_spec is None else self.evaluate(item.format_spec)
        if not isinstance(form, str) or any(len(digits) > 3 for digits in re.findall("[0-9]+", form)):
            return Unknown()
        if item.conversion != -1:
            value = _CONVERSIONS[chr(item.conversion)](value)
        try:
            return format(value, form)
        except (ValueError, TypeError, OverflowError) as error:
            raise Unreadable(f"the format cannot be applied: {error}", item) from None

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
        raise Unreadable("a comprehension is not supported", node)

    # ------------------------------------------------------------------------------------------- attributes and items

    def attribute(self, owner: Value, name: str, node: ast.expr) -> Value:
        """`owner.name`."""
        match owner:
            case Module(path=path):
                return module_member(path, name)
            case Member(family=family, name="") if family:
                return Member(family, name)
            case Class():
                return self._class_member(owner, name, node)
            case str() | dict() | tuple():
                return Method(owner, name)
            case Unknown():
                return _part(owner, name)
            case OneOf():
                return arithmetic.nameless(owner)
        raise Unreadable(f"{arithmetic.describe(owner)} has no attribute {name} that is understood", node)

    def _class_member(self, owner: Class, name: str, node: ast.expr) -> Value:
        if owner.opaque is not None:
            return Unknown(f"{owner.node.name}_{name}", owner.opaque, owner)
        if name in owner.scope.names:
            return owner.scope.member(owner.node.name, name)
        raise Unreadable(f"{owner.node.name} has no constant {name}", node)

    def subscript(self, owner: Value, node: ast.Subscript) -> Value:
        """`owner[...]` of compile-time values."""
        if isinstance(owner, (Module, Decorated)):
            return Unknown("", "a subscript of the language")
        if isinstance(node.slice, ast.Slice):
            return self._sliced(owner, node)
        index = self.evaluate(node.slice)
        if isinstance(owner, OneOf):
            parts = tuple(self.item(v, index, node) for v in owner.values)
            return parts[0] if all(p == parts[0] for p in parts) else OneOf(parts)
        return self.item(owner, index, node)

    def item(self, owner: Value, index: Value, node: ast.Subscript) -> Value:
        """`owner[index]` for an index whose value is at hand."""
        if isinstance(owner, Unknown):
            return _part(owner, index)
        if isinstance(owner, dict):
            if isinstance(index, (Unknown, OneOf)):
                keys = [k for k in index.values if k in owner] if isinstance(index, OneOf) else list(owner)
                return OneOf(tuple(owner[k] for k in keys)) if len(keys) > 1 else owner[keys[0]] if keys else Unknown()
            if not hashable(index):
                raise Unreadable(f"{arithmetic.describe(index)} is no key of a dictionary", node)
            if index in owner:
                return owner[index]
            raise Unreadable("the dictionary has no such key", node)
        if isinstance(owner, (tuple, str)):
            if isinstance(index, int):
                if -len(owner) <= index < len(owner):
                    return owner[index]
                raise Unreadable(f"index {index} is outside of a sequence of {len(owner)}", node)
            if isinstance(index, (Unknown, OneOf)) and owner:
                return OneOf(tuple(owner)) if len(owner) > 1 else owner[0]
        raise Unreadable(f"{arithmetic.describe(owner)} cannot be indexed here", node)

    def _sliced(self, owner: Value, node: ast.Subscript) -> Value:
        assert isinstance(node.slice, ast.Slice)
        parts = [None if p is None else self.evaluate(p) for p in (node.slice.lower, node.slice.upper, node.slice.step)]
        if isinstance(owner, (tuple, str)) and all(p is None or isinstance(p, int) for p in parts):
            if parts[2] == 0:
                raise Unreadable("the step of this slice is 0", node)
            return owner[slice(*parts)]
        raise Unreadable("this slice is not supported", node)

    # ---------------------------------------------------------------------------------------------------------- calls

    def call(self, node: ast.Call) -> Value:
        """The result of a call."""
        target = self.evaluate(node.func)
        match target:
            case Function():
                return self.call_function(target, node)
            case Module() if target.is_language:
                return self.call_language(target, node)
            case Module(path=path) if path.startswith("builtins."):
                arguments = [self.known(a, node) for a in self._elements(node.args)]
                keywords = {k.arg or "**": self.evaluate(k.value) for k in node.keywords}
                return builtin(path[9:], arguments, node, self.span(node), keywords)
            case Module(path=path) if path.startswith("math."):
                if node.keywords:
                    raise Unreadable(f"keyword arguments of {path}() are not supported", node)
                return mathematics(path[5:], [self.evaluate(a) for a in node.args], node)
            case Method():
                return self.call_method(target, node)
            case Module():
                return self.call_foreign(target, node)
            case Class():
                return self.unread_call(Unknown("", f"an instance of {target.node.name}"), node)
            case Unknown():
                return self.unread_call(arithmetic.nameless(target), node)
        raise Unreadable(f"{ast.unparse(node.func)} cannot be called here", node)

    def call_foreign(self, target: Module, node: ast.Call) -> Value:
        """A call of some other library."""
        if target.path.endswith("TilingKeyField"):
            return self.call_language(target, node)
        return self.unread_call(Unknown("", f"the result of {target.path}"), node)

    def unread_call(self, result: Unknown, node: ast.Call) -> Value:
        """A call of something whose body is not read: host code of that kind only computes a value."""
        return result

    def call_method(self, target: Method, node: ast.Call) -> Value:
        """A method of a compile-time value."""
        owner, name = target.owner, target.name
        if node.keywords:
            raise Unreadable(f"keyword arguments of .{name}() are not supported", node)
        arguments = [self.evaluate(a) for a in node.args]
        if isinstance(owner, dict):
            match name, arguments:
                case "get", [key, *rest] if arithmetic.constant(key):
                    return owner.get(key, rest[0] if rest else None)
                case "keys", []:
                    return tuple(owner)
                case "values", []:
                    return tuple(owner.values())
                case "items", []:
                    return tuple(owner.items())
                case "copy", []:
                    return owner
        if isinstance(owner, str) and name in _TEXT_METHODS and all(isinstance(a, (str, int)) for a in arguments):
            if name == "replace" and len(owner) * sum(len(a) for a in arguments if isinstance(a, str)) > _MAX_TEXT:
                return Unknown("", "a long text")
            try:
                result = getattr(owner, name)(*arguments)
            except (TypeError, ValueError, OverflowError):
                return Unknown("", f"the result of .{name}()")
            return tuple(result) if isinstance(result, list) else result
        if isinstance(owner, tuple) and name in ("index", "count") and len(arguments) == 1 and arguments[0] in owner:
            return getattr(owner, name)(arguments[0])
        if isinstance(owner, tuple) and name == "copy" and not arguments:
            return owner
        if isinstance(owner, (dict, tuple)) and name not in _QUERIES:
            return self.unread_call(Unknown("", f"the result of .{name}()"), node)
        return Unknown("", f"the result of .{name}()")


def _open(value: Value) -> bool:
    """Whether the truth of a value is not known here."""
    return isinstance(value, (Scalar, Opaque, Unknown, OneOf))


def hashable(value: Value) -> bool:
    """Whether a value can be the key of a dictionary."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _part(owner: Unknown, key: Value) -> Unknown:
    """A member or element of an unknown value."""
    if owner.name and isinstance(key, (str, int)):
        return Unknown(f"{owner.name}_{key}", owner.reason, owner.origin)
    return arithmetic.nameless(owner)


def respan(value: Value, span: ir.Span) -> Value:
    """The value of a name, standing where the name is used."""
    if isinstance(value, Scalar) and isinstance(value.expr, ir.Name):
        return Scalar(ir.Name(value.expr.id, span=span), value.truth)
    return value


def bound_names(body: Iterable[ast.AST]) -> list[str]:
    """Names that statements bind, in nested blocks too, but not in nested functions."""
    found: dict[str, None] = {}
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found[name] = None
                continue
            case ast.Lambda():
                continue
            case ast.comprehension(iter=over, ifs=conditions):  # its target is a name of its own
                stack += [over, *conditions]
                continue
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found[name] = None
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                found[name] = None
            case ast.MatchMapping(rest=str() as name) | ast.ExceptHandler(name=str() as name):
                found[name] = None
            case ast.alias(name=name, asname=other) if name != "*":
                found[(other or name).split(".")[0]] = None
        stack.extend(ast.iter_child_nodes(node))
    return list(found)
