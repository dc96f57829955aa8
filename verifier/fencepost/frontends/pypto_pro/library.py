"""What do Python's built-in functions, and members of modules, give for compile-time values?"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic
from fencepost.frontends.pypto_pro.values import (
    DType,
    Dynamic,
    Member,
    Module,
    OneOf,
    Opaque,
    Scalar,
    Unknown,
    Unreadable,
    Value,
)

_LAYOUTS = ("ND", "DN", "NZ", "ZN", "NN", "ZZ")
_MAX_ITEMS = 100_000
_PLAIN = {"int": int, "float": float, "bool": bool, "str": str, "abs": abs, "round": round, "divmod": divmod}

_NAMES = """
    abs all any bool dict divmod enumerate float int isinstance len list max min range reversed round set sorted str sum
    tuple zip
"""
_SECOND = {"sum": "start", "enumerate": "start", "int": "base", "round": "ndigits"}  # keyword of the second argument
_FLAGS = {"sorted": "reverse", "zip": "strict"}
BUILTINS = frozenset(_NAMES.split())
"""Built-in functions whose names are known."""


def builtin(
    name: str, arguments: list[Value], node: ast.AST, span: ir.Span, keywords: Mapping[str, Value] | None = None
) -> Value:
    """The result of a built-in function.

    Raises:
        Unreadable: it is not supported for these arguments.
    """
    given = dict(keywords or {})
    if len(arguments) == 1 and name in _SECOND and _SECOND[name] in given:
        arguments = [*arguments, given.pop(_SECOND[name])]
    flag = given.pop(_FLAGS[name], False) if name in _FLAGS else False
    if given or not isinstance(flag, bool):
        word = next(iter(given), _FLAGS.get(name, ""))
        raise Unreadable(f"{name}() with the keyword argument {word} is not supported", node)
    if name in ("min", "max") and arguments:
        items = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], tuple) else tuple(arguments)
        return arithmetic.extreme("min" if name == "min" else "max", items, node, span)
    for argument in arguments:
        if isinstance(argument, (Unknown, OneOf)):
            return arithmetic.nameless(argument)
    match name, arguments:
        case "int", [Scalar() as value]:
            return Scalar(value.expr)
        case "int" | "float" | "bool" | "str", [Opaque() as value]:
            return value
        case "bool", [Scalar() as value]:
            truth = arithmetic.condition(value, node, span)
            return truth if isinstance(truth, bool) else Scalar(truth, truth=True)
        case "float", [Scalar() as value]:
            return Opaque("float", (value.expr,))
        case "abs", [Scalar() as value]:
            negative = arithmetic.compare(value, [ast.Lt()], [0], node, span)
            truth = arithmetic.condition(negative, node, span)
            return arithmetic.choose(truth, arithmetic.minus(value, node, span), value, node, span)
        case "sum", [tuple() as items, *rest]:
            total: Value = rest[0] if rest else 0
            for item in items:
                total = arithmetic.binary(ast.Add(), total, item, node, span)
            return total
        case "range", _ if arguments and all(isinstance(a, int) for a in arguments):
            try:
                numbers = range(*arguments)
                if len(numbers) > _MAX_ITEMS:
                    raise Unreadable("the range is too long", node)
            except (TypeError, ValueError, OverflowError) as error:
                raise Unreadable(f"this range cannot be read: {error}", node) from None
            return tuple(numbers)
        case "set", [tuple() | str() | dict() as sequence]:
            return _distinct(tuple(sequence), node)
        case "tuple" | "list", [tuple() | str() | dict() as sequence]:
            return tuple(sequence)
        case "tuple" | "list" | "dict" | "set", []:
            return dict[Value, Value]() if name == "dict" else ()
        case "len", [tuple() | str() | dict() as sequence]:
            return len(sequence)
        case "enumerate", [tuple() as items]:
            return tuple(enumerate(items))
        case "enumerate", [tuple() as items, int() as start]:
            return tuple(enumerate(items, start))
        case "zip", _ if all(isinstance(a, tuple) for a in arguments):
            if flag and len({len(a) for a in arguments}) > 1:
                raise Unreadable("zip() of sequences of different lengths", node)
            return tuple(zip(*arguments, strict=False))
        case "sorted", [tuple() as items] if arithmetic.constant(items):
            try:
                return tuple(sorted(items, reverse=flag))
            except TypeError as error:
                raise Unreadable(f"sorted() cannot be evaluated: {error}", node) from None
        case "reversed", [tuple() as items] if arithmetic.constant(items):
            return tuple(reversed(items))
        case "int" | "float" | "bool" | "str" | "abs" | "round" | "divmod", _ if arguments and all(
            isinstance(a, (bool, int, float, str)) for a in arguments
        ):
            if name == "round" and len(arguments) > 1 and isinstance(arguments[1], int) and abs(arguments[1]) > 1000:
                raise Unreadable("round() to so many digits is not supported", node)
            try:
                return _PLAIN[name](*arguments)  # type: ignore[operator]
            except (TypeError, ValueError, ArithmeticError) as error:
                raise Unreadable(f"{name}() cannot be evaluated: {error}", node) from None
        case "all" | "any", [tuple() as items] if arithmetic.constant(items):
            return all(items) if name == "all" else any(items)
    raise Unreadable(f"{name}() is not supported here", node)


def _distinct(items: tuple[Value, ...], node: ast.AST) -> Value:
    """The elements of a set; integers stand in the order in which Python gives them."""
    if not all(arithmetic.constant(i) or isinstance(i, (DType, Member)) for i in items):
        raise Unreadable("the elements of a set must be known", node)
    return tuple(set(items)) if all(isinstance(i, int) for i in items) else tuple(dict.fromkeys(items))


def mathematics(name: str, arguments: list[Value], node: ast.AST) -> Value:
    """The result of a function of the math module."""
    function = getattr(math, name, None)
    if not callable(function) or not all(isinstance(a, (int, float)) for a in arguments):
        return Unknown("", f"the result of math.{name}")
    if name in ("factorial", "comb", "perm", "pow") and any(abs(a) > 1000 for a in arguments):
        return Unknown("", f"the result of math.{name}")
    try:
        return function(*arguments)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise Unreadable(f"math.{name}() cannot be evaluated: {error}", node) from None


def module_member(path: str, name: str) -> Value:
    """What `name` is in the module or namespace `path`."""
    if path == "pl":
        if name.startswith("DT_"):
            return DType(name[3:])
        if name in ("DYNAMIC", "STATIC"):
            return Dynamic()
        if name in _LAYOUTS:
            return Member("TensorLayout", name)
        if name == "Vf":
            return Module("vf")
        if name[:1].isupper() and name not in ("Tensor", "Tile", "TileType", "Ptr", "Scalar"):
            return Member(name, "")
    if path == "pl.DataType":
        return DType(name)
    if path == "math" and isinstance(getattr(math, name, None), float):
        return getattr(math, name)
    if path == "pypto_pro" and name == "language":
        return Module("pl")
    return Module(f"{path}.{name}")
