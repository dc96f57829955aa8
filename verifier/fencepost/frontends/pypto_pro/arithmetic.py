"""What is the value of an operation on compile-time and device integers, in the smallest form?

Constants are folded as Python folds them.  On device integers `//` and `%` are the floor forms of the IR.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any, Literal

from fencepost import ir
from fencepost.frontends.pypto_pro import expressions
from fencepost.frontends.pypto_pro.values import OneOf, Opaque, Poison, Scalar, Unknown, Unreadable, Value

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Div: ("/", operator.truediv),
    ast.Pow: ("**", operator.pow),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor),
}

_COMPARE: dict[type[ast.cmpop], tuple[Literal["<", "<=", ">", ">=", "==", "!="], Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Is: ("==", operator.is_),
    ast.IsNot: ("!=", operator.is_not),
}

_NAMES = {"<<": "shift_left", "&": "bit_and", "|": "bit_or", "^": "bit_xor", "/": "quotient", "**": "power"}
_FOREIGN = {">>": "shift_right", **_NAMES}

_BOUND = 1 << 20  # bits or elements of a computed value


def constant(value: Value) -> bool:
    """Whether the value is a plain Python constant."""
    if isinstance(value, tuple):
        return all(constant(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str, bytes))


def expression(value: Value, node: ast.AST, span: ir.Span) -> ir.Expr:
    """The value as an integer expression of the IR.

    Raises:
        Unreadable: it is no integer.
    """
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise Unreadable("this number is too large for the device", node)
        return ir.Int(int(value), span=span)
    if isinstance(value, Scalar):
        return value.expr
    if isinstance(value, Opaque) and not value.varies:
        return ir.Call(value.name, value.arguments, span=span)
    if isinstance(value, float) and _finite(value) and value.is_integer():
        return ir.Int(int(value), span=span)
    raise Unreadable(f"an integer is needed here, not {describe(value)}", node)


def condition(value: Value, node: ast.AST, span: ir.Span) -> bool | ir.Expr:
    """The truth of a value: a bool when it is known, else an expression of the IR."""
    if isinstance(value, Scalar):
        return value.expr if value.truth else ir.Compare(value.expr, (("!=", ir.Int(0, span=span)),), span=span)
    if isinstance(value, Opaque) and not value.varies:
        return ir.Compare(ir.Call(value.name, value.arguments, span=span), (("!=", ir.Int(0, span=span)),), span=span)
    if constant(value) or isinstance(value, (tuple, dict)):
        return bool(value)
    raise Unreadable(f"the condition depends on {describe(value)}", node)


def nameless(value: Unknown | OneOf) -> Unknown:
    """What is computed from an unknown value."""
    return Unknown("", f"it depends on {describe(value)}" if value.name else "it depends on something unknown")


def describe(value: Value) -> str:
    """The value in words, for a reason."""
    match value:
        case Unknown(name=name, reason=reason):
            return f"{name}: {reason}" if name else f"something unknown: {reason}"
        case OneOf(name=name):
            return f"{name}, which is one of several values" if name else "one of several values"
        case Poison(reason=reason):
            return f"a value that could not be read: {reason}"
        case Opaque():
            return "a value that is no integer"
        case str() | float():
            return repr(value)[:60]
        case None:
            return "None"
    return f"a {type(value).__name__.lower()}"


def binary(op: ast.operator, left: Value, right: Value, node: ast.AST, span: ir.Span) -> Value:
    """`left op right`."""
    symbol, function = _BINARY.get(type(op), ("?", None))
    if function is None:
        raise Unreadable(f"the operator {type(op).__name__} is not supported", node)
    if not isinstance(left, (Scalar, Opaque)) and not isinstance(right, (Scalar, Opaque)):
        return _fold(symbol, function, left, right, node)
    if isinstance(left, (float, Opaque)) or isinstance(right, (float, Opaque)) or symbol in ("/", "**"):
        return opaque(
            _FOREIGN.get(symbol, {"+": "sum", "-": "difference", "*": "product"}.get(symbol, "ratio")),
            (left, right),
            node,
            span,
        )
    a, b = expression(left, node, span), expression(right, node, span)
    match symbol:
        case "+" | "-":
            return scalar(expressions.add(a, b, span) if symbol == "+" else expressions.subtract(a, b, span))
        case "*":
            return scalar(expressions.multiply(a, b, span))
        case "//":
            return scalar(expressions.divide(a, b, span))
        case "%":
            return scalar(expressions.modulo(a, b, span))
        case "<<" if isinstance(b, ir.Int) and 0 <= b.value < 64:
            return scalar(expressions.multiply(a, ir.Int(1 << b.value, span=span), span))
        case ">>" if isinstance(b, ir.Int) and 0 <= b.value < 64:
            return scalar(expressions.divide(a, ir.Int(1 << b.value, span=span), span))
        case "&" if isinstance(b, ir.Int) and b.value >= 0 and (b.value + 1) & b.value == 0:
            return scalar(expressions.modulo(a, ir.Int(b.value + 1, span=span), span))
        case "&" if _is_truth(left) and _is_truth(right):
            return logic("and", (left, right), node, span)
        case "|" if _is_truth(left) and _is_truth(right):
            return logic("or", (left, right), node, span)
    return Scalar(ir.Call(_FOREIGN[symbol], (a, b), span=span))


def _is_truth(value: Value) -> bool:
    return isinstance(value, bool) or (isinstance(value, Scalar) and value.truth)


def _fold(symbol: str, function: Callable[[Any, Any], Any], left: Value, right: Value, node: ast.AST) -> Value:
    if isinstance(left, OneOf) or isinstance(right, OneOf):
        found: list[Value] = []
        for a in left.values if isinstance(left, OneOf) else (left,):
            for b in right.values if isinstance(right, OneOf) else (right,):
                value = _fold(symbol, function, a, b, node)
                if value not in found:
                    found.append(value)
        return found[0] if len(found) == 1 else OneOf(tuple(found))
    for value in (left, right):
        if isinstance(value, Unknown):
            return nameless(value)
        if isinstance(value, Poison):
            raise Unreadable(value.reason, node)
    if _length(symbol, left, right) > _BOUND or (symbol == "%" and isinstance(left, (str, bytes))):
        raise Unreadable("the value is too large to be computed here", node)
    try:
        return function(left, right)
    except (ArithmeticError, ValueError) as error:
        raise Unreadable(f"the expression cannot be evaluated: {error}", node) from None
    except TypeError:
        raise Unreadable(
            f"the operator {symbol} does not apply to {describe(left)} and {describe(right)}", node
        ) from None


def _length(symbol: str, left: Value, right: Value) -> int:
    """About how many bits or elements the result has."""
    sizes = [
        v.bit_length() if isinstance(v, int) else len(v) if isinstance(v, (str, bytes, tuple)) else 0
        for v in (left, right)
    ]
    match symbol:
        case "**" | "<<" if isinstance(left, int) and isinstance(right, int):
            return sizes[0] * abs(right) if symbol == "**" else sizes[0] + abs(right)
        case "*" if isinstance(left, (str, bytes, tuple)) or isinstance(right, (str, bytes, tuple)):
            count, size = (right, sizes[0]) if isinstance(left, (str, bytes, tuple)) else (left, sizes[1])
            return size * abs(count) if isinstance(count, int) else 0
    return sum(sizes)


def opaque(name: str, operands: tuple[Value, ...], node: ast.AST, span: ir.Span) -> Opaque:
    """A named device value computed from `operands`.

    The name tells the whole shape: values computed in different ways have different names.  Its last word says of each
    operand whether it is an integer (i), a constant (f) or another such value (o), of how many words and arguments.
    That word is left out where the name can be taken apart in one way only.
    """
    if any(isinstance(o, Opaque) and o.varies for o in operands):
        return Opaque("", (), varies=True)
    words = [name]
    kinds: list[str] = []
    arguments: list[ir.Expr] = []
    for operand in operands:
        if isinstance(operand, Opaque):
            words.append(operand.name)
            arguments += operand.arguments
            kinds.append(f"o{len(operand.name.split('_'))}x{len(operand.arguments)}")
        elif isinstance(operand, float):
            words.append(repr(operand).replace("-", "m").replace("+", "p").replace(".", "_"))
            kinds.append(f"f{len(words[-1].split('_'))}")
        else:
            arguments.append(expression(operand, node, span))
            kinds.append("i")
    if not _plain(words[1:], kinds):
        words.append("".join(kinds))
    return Opaque("_".join(words), tuple(arguments))


def _plain(words: list[str], kinds: list[str]) -> bool:
    """Whether the operands in the name of a value show in what way it was computed."""
    match kinds:
        case [str() as left, "f2"] if left == "i" or left.endswith("x0"):
            return re.fullmatch("[0-9]+_[0-9]+", words[-1]) is not None
        case [str() as left, str() as right] if left[0] == "o" and left == right:
            return all(re.search("_([if]|o[0-9]|[0-9]+_[0-9])[0-9ifox]*$", "_" + word) is None for word in words)
    return all(kind == "i" for kind in kinds)


def _finite(value: Value) -> bool:
    return isinstance(value, float) and abs(value) < 1e18


def compare(left: Value, ops: list[ast.cmpop], rights: list[Value], node: ast.AST, span: ir.Span) -> Value:
    """A chained comparison."""
    parts: list[Value] = []
    for op, right in zip(ops, rights, strict=True):
        parts.append(_compare(op, left, right, node, span))
        left = right
    return parts[0] if len(parts) == 1 else logic("and", tuple(parts), node, span)


def _compare(op: ast.cmpop, left: Value, right: Value, node: ast.AST, span: ir.Span) -> Value:
    if isinstance(op, (ast.In, ast.NotIn)):
        return _member(op, left, right, node, span)
    symbol, function = _COMPARE[type(op)]
    for value in (left, right):
        if isinstance(value, Poison):
            raise Unreadable(value.reason, node)
    if not isinstance(left, (Scalar, Opaque)) and not isinstance(right, (Scalar, Opaque)):
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return nameless(left if isinstance(left, Unknown) else right)
        if isinstance(left, OneOf) or isinstance(right, OneOf):
            found = {
                _compare(op, a, b, node, span)
                for a in (left.values if isinstance(left, OneOf) else (left,))
                for b in (right.values if isinstance(right, OneOf) else (right,))
            }
            if not all(isinstance(truth, bool) for truth in found):
                return nameless(left if isinstance(left, OneOf) else right)
            return found.pop() if len(found) == 1 else OneOf((False, True))
        if isinstance(op, (ast.Is, ast.IsNot)):
            return (
                (left is right) == isinstance(op, ast.Is)
                if left is None or right is None
                else bool(function(left, right))
            )
        try:
            return bool(function(left, right))
        except TypeError:
            raise Unreadable(f"{describe(left)} and {describe(right)} cannot be compared", node) from None
    if left is None or right is None:
        return isinstance(op, (ast.IsNot, ast.NotEq))
    if isinstance(left, (float, Opaque)) or isinstance(right, (float, Opaque)):
        name = {"<": "less", "<=": "at_most", ">": "more", ">=": "at_least", "==": "equal", "!=": "differ"}[symbol]
        return opaque(name, (left, right), node, span)
    a, b = expression(left, node, span), expression(right, node, span)
    difference = expressions.subtract(a, b, span)
    if isinstance(difference, ir.Int):
        return bool(function(difference.value, 0))
    low, high = expressions.bounds(difference)
    if (low is not None and high is not None) or low is not None or high is not None:
        decided = _decide(symbol, low, high)
        if decided is not None:
            return decided
    return Scalar(ir.Compare(a, ((symbol, b),), span=span), truth=True)


def _decide(symbol: str, low: int | None, high: int | None) -> bool | None:
    """The comparison of a value in [low, high] with 0, if that range decides it."""
    if symbol in (">", ">="):
        symbol, low, high = (
            {">": "<", ">=": "<="}[symbol],
            None if high is None else -high,
            None if low is None else -low,
        )
    match symbol:
        case "<" if high is not None and high < 0:
            return True
        case "<" if low is not None and low >= 0:
            return False
        case "<=" if high is not None and high <= 0:
            return True
        case "<=" if low is not None and low > 0:
            return False
        case "==" | "!=" if (low is not None and low > 0) or (high is not None and high < 0):
            return symbol == "!="
    return None


def _member(op: ast.In | ast.NotIn, left: Value, right: Value, node: ast.AST, span: ir.Span) -> Value:
    if isinstance(right, dict):
        right = tuple(right)
    if not isinstance(right, (tuple, str)):
        raise Unreadable(f"membership in {describe(right)} is not supported", node)
    if isinstance(right, str):
        found: Value = left in right if isinstance(left, str) else Unknown()
    else:
        found = logic("or", tuple(_compare(ast.Eq(), left, item, node, span) for item in right), node, span)
    return negate(found, node, span) if isinstance(op, ast.NotIn) else found


def logic(op: Literal["and", "or"], operands: tuple[Value, ...], node: ast.AST, span: ir.Span) -> Value:
    """`and` / `or` over truth values."""
    kept: list[ir.Expr] = []
    unknown: Value = None
    for operand in operands:
        if isinstance(operand, (Unknown, OneOf)):
            unknown = operand
            continue
        truth = condition(operand, node, span)
        if isinstance(truth, bool):
            if truth == (op == "or"):
                return truth
            continue
        if isinstance(truth, ir.Logic) and truth.op == op:
            kept += truth.operands
        else:
            kept.append(truth)
    if unknown is not None:
        return nameless(unknown)
    if not kept:
        return op == "and"
    return Scalar(kept[0] if len(kept) == 1 else ir.Logic(op, tuple(kept), span=span), truth=True)


def negate(value: Value, node: ast.AST, span: ir.Span) -> Value:
    """`not value`."""
    if isinstance(value, Unknown):
        return nameless(value)
    if isinstance(value, OneOf):
        return OneOf(tuple({not v for v in value.values}))
    truth = condition(value, node, span)
    if isinstance(truth, bool):
        return not truth
    return Scalar(expressions.opposite(truth, span), truth=True)


def minus(value: Value, node: ast.AST, span: ir.Span) -> Value:
    """`-value`."""
    if isinstance(value, (Scalar,)):
        return scalar(expressions.subtract(ir.Int(0, span=span), value.expr, span))
    if isinstance(value, Opaque):
        return opaque("minus", (value,), node, span)
    if isinstance(value, (int, float)):
        return -value
    if isinstance(value, (Unknown, OneOf)):
        return nameless(value)
    raise Unreadable(f"{describe(value)} cannot be negated", node)


def extreme(name: Literal["min", "max"], operands: tuple[Value, ...], node: ast.AST, span: ir.Span) -> Value:
    """`min` / `max` of values."""
    if all(isinstance(v, (bool, int, float)) for v in operands) and operands:
        return (min if name == "min" else max)(operands)
    for operand in operands:
        if isinstance(operand, (Unknown, OneOf)):
            return nameless(operand)
    if any(isinstance(v, (float, Opaque)) for v in operands):
        return opaque(name, operands, node, span)
    known = [int(v) for v in operands if isinstance(v, int)]
    kept = [expression(v, node, span) for v in operands if not isinstance(v, int)]
    if known:
        best = min(known) if name == "min" else max(known)
        kept = [e for e in kept if not _dominated(name, e, best)]
        if not any(_dominates(name, e, best) for e in kept):
            kept.append(ir.Int(best, span=span))
    unique = list(dict.fromkeys(kept))
    return scalar(unique[0] if len(unique) == 1 else ir.Call(name, tuple(unique), span=span))


def _dominated(name: str, expr: ir.Expr, best: int) -> bool:
    """Whether the constant `best` always wins against `expr`."""
    low, high = expressions.bounds(expr)
    return (name == "min" and low is not None and low >= best) or (name == "max" and high is not None and high <= best)


def _dominates(name: str, expr: ir.Expr, best: int) -> bool:
    low, high = expressions.bounds(expr)
    return (name == "min" and high is not None and high <= best) or (name == "max" and low is not None and low >= best)


def choose(truth: bool | ir.Expr, then: Value, other: Value, node: ast.AST, span: ir.Span) -> Value:
    """`then if truth else other`."""
    if isinstance(truth, bool):
        return then if truth else other
    if then == other:
        return then
    if isinstance(then, (float, Opaque)) or isinstance(other, (float, Opaque)):
        return opaque("choice", (Scalar(truth), then, other), node, span)
    return Scalar(ir.Choose(truth, expression(then, node, span), expression(other, node, span), span=span))


def scalar(expr: ir.Expr) -> int | Scalar:
    """A plain int for a constant, else a device integer."""
    return expr.value if isinstance(expr, ir.Int) else Scalar(expr)
