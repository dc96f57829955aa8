"""How are integer expressions of the IR written in their smallest form, and what range do their values lie in?"""

from __future__ import annotations

from typing import Literal, TypeAlias

from fencepost import ir

_OPPOSITE: dict[str, Literal["<", "<=", ">", ">=", "==", "!="]] = {
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "==": "!=",
    "!=": "==",
}


def opposite(truth: ir.Expr, span: ir.Span) -> ir.Expr:
    """The negation of a condition."""
    if isinstance(truth, ir.Compare) and len(truth.rest) == 1:
        symbol, right = truth.rest[0]
        return ir.Compare(truth.first, ((_OPPOSITE[symbol], right),), span=span)
    if isinstance(truth, ir.Unary) and truth.op == "not":
        return truth.operand
    return ir.Unary("not", truth, span=span)


def add(a: ir.Expr, b: ir.Expr, span: ir.Span) -> ir.Expr:
    if isinstance(a, ir.Int) and isinstance(b, ir.Int):
        return ir.Int(a.value + b.value, span=span)
    if isinstance(a, ir.Int):
        a, b = b, a
    if isinstance(b, ir.Int):
        if b.value < 0:
            return subtract(a, ir.Int(-b.value, span=b.span), span)
        if b.value == 0:
            return a
        match a:
            case ir.Binary(op="+", left=left, right=ir.Int(value=c)):
                return add(left, ir.Int(c + b.value, span=b.span), span)
            case ir.Binary(op="-", left=left, right=ir.Int(value=c)):
                return add(left, ir.Int(b.value - c, span=b.span), span)
    return ir.Binary("+", a, b, span=span)


def subtract(a: ir.Expr, b: ir.Expr, span: ir.Span) -> ir.Expr:
    if isinstance(a, ir.Int) and isinstance(b, ir.Int):
        return ir.Int(a.value - b.value, span=span)
    if a == b:
        return ir.Int(0, span=span)
    if isinstance(b, ir.Int):
        if b.value < 0:
            return add(a, ir.Int(-b.value, span=b.span), span)
        if b.value == 0:
            return a
        match a:
            case ir.Binary(op="+", left=left, right=ir.Int(value=c)):
                return add(left, ir.Int(c - b.value, span=b.span), span)
            case ir.Binary(op="-", left=left, right=ir.Int(value=c)):
                return subtract(left, ir.Int(c + b.value, span=b.span), span)
    match a, b:
        case ir.Binary(op="+", left=left, right=right), _ if right == b:
            return left
        case ir.Binary(op="+", left=left, right=right), _ if left == b:
            return right
        case ir.Binary(op="+" | "-" as op, left=left, right=ir.Int(value=value)), _ if left == b:
            return ir.Int(value if op == "+" else -value, span=span)
        case ir.Int(value=0), ir.Name() | ir.Item() | ir.Field() | ir.Call():
            return ir.Unary("-", b, span=span)
    return ir.Binary("-", a, b, span=span)


def multiply(a: ir.Expr, b: ir.Expr, span: ir.Span) -> ir.Expr:
    if isinstance(a, ir.Int) and isinstance(b, ir.Int):
        return ir.Int(a.value * b.value, span=span)
    if isinstance(a, ir.Int):
        a, b = b, a
    if isinstance(b, ir.Int):
        if b.value in (0, 1):
            return a if b.value else b
        match a:
            case ir.Binary(op="*", left=left, right=ir.Int(value=c)):
                return ir.Binary("*", left, ir.Int(c * b.value, span=b.span), span=span)
    return ir.Binary("*", a, b, span=span)


def divide(a: ir.Expr, b: ir.Expr, span: ir.Span) -> ir.Expr:
    if isinstance(b, ir.Int) and b.value > 0:
        if isinstance(a, ir.Int):
            return ir.Int(a.value // b.value, span=span)
        if b.value == 1:
            return a
        whole, rest = split(a, b.value, span)
        low, high = bounds(rest)
        if low is not None and high is not None and low >= 0 and high < b.value:
            return whole
    return ir.Binary("//", a, b, span=span)


def modulo(a: ir.Expr, b: ir.Expr, span: ir.Span) -> ir.Expr:
    if isinstance(b, ir.Int) and b.value > 0:
        if isinstance(a, ir.Int):
            return ir.Int(a.value % b.value, span=span)
        if b.value == 1:
            return ir.Int(0, span=span)
        _, rest = split(a, b.value, span)
        low, high = bounds(rest)
        if low is not None and high is not None and low >= 0 and high < b.value:
            return rest
    return ir.Binary("%", a, b, span=span)


Linear: TypeAlias = tuple[dict[ir.Expr, int], int]
"""A sum of atoms with integer factors, and a constant."""


def linear(expr: ir.Expr) -> Linear:
    """The expression as a sum of atoms (names, products, quotients, ...) with constant factors."""
    terms: dict[ir.Expr, int] = {}
    total = 0
    stack = [(expr, 1)]
    while stack:
        current, factor = stack.pop()
        match current:
            case ir.Int(value=value):
                total += factor * value
            case ir.Binary(op="+", left=left, right=right):
                stack += [(left, factor), (right, factor)]
            case ir.Binary(op="-", left=left, right=right):
                stack += [(left, factor), (right, -factor)]
            case ir.Unary(op="-", operand=operand):
                stack.append((operand, -factor))
            case ir.Binary(op="*", left=left, right=ir.Int(value=c)):
                stack.append((left, factor * c))
            case ir.Binary(op="*", left=ir.Int(value=c), right=right):
                stack.append((right, factor * c))
            case _:
                terms[current] = terms.get(current, 0) + factor
    return {atom: factor for atom, factor in terms.items() if factor}, total


def from_linear(form: Linear, span: ir.Span) -> ir.Expr:
    """The expression of a sum."""
    terms, total = form
    result: ir.Expr | None = None
    for atom, factor in terms.items():
        if result is not None and factor < 0:
            result = subtract(result, multiply(atom, ir.Int(-factor, span=span), span), span)
            continue
        term = multiply(atom, ir.Int(factor, span=span), span)
        result = term if result is None else add(result, term, span)
    return ir.Int(total, span=span) if result is None else add(result, ir.Int(total, span=span), span)


def split(expr: ir.Expr, divisor: int, span: ir.Span) -> tuple[ir.Expr, ir.Expr]:
    """(q, r) with expr == q * divisor + r, as far as factors show it."""
    terms, total = linear(expr)
    whole = {atom: factor // divisor for atom, factor in terms.items() if factor % divisor == 0}
    rest = {atom: factor for atom, factor in terms.items() if factor % divisor}
    return from_linear((whole, total // divisor), span), from_linear((rest, total % divisor), span)


def bounds(expr: ir.Expr) -> tuple[int | None, int | None]:
    """A range that holds for every value of the names in the expression; None: no bound known."""
    match expr:
        case ir.Int(value=value):
            return value, value
        case ir.Name(id="sub"):
            return 0, 1
        case ir.Name(id="block"):
            return 0, None
        case ir.Compare() | ir.Logic() | ir.Unary(op="not"):
            return 0, 1
        case ir.Binary(op="%", right=ir.Int(value=k)) if k > 0:
            return 0, k - 1
        case ir.Binary(op="+" | "-" as op, left=left, right=right):
            (a, b), (c, d) = bounds(left), bounds(right)
            if op == "-":
                return (None if a is None or d is None else a - d), (None if b is None or c is None else b - c)
            return (None if a is None or c is None else a + c), (None if b is None or d is None else b + d)
        case ir.Binary(op="*", left=left, right=ir.Int(value=k)) if k >= 0:
            a, b = bounds(left)
            return (None if a is None else a * k), (None if b is None else b * k)
        case ir.Binary(op="//", left=left, right=ir.Int(value=k)) if k > 0:
            a, b = bounds(left)
            return (None if a is None else a // k), (None if b is None else b // k)
        case ir.Call(function="min" | "max" as name, arguments=arguments):
            pairs = [bounds(a) for a in arguments]
            lows, highs = [p[0] for p in pairs], [p[1] for p in pairs]
            known_lows, known_highs = [x for x in lows if x is not None], [x for x in highs if x is not None]
            if name == "min":
                return (min(known_lows) if len(known_lows) == len(lows) else None), min(known_highs, default=None)
            return max(known_lows, default=None), (max(known_highs) if len(known_highs) == len(highs) else None)
        case ir.Choose(then=then, other=other):
            (a, b), (c, d) = bounds(then), bounds(other)
            return (None if a is None or c is None else min(a, c)), (None if b is None or d is None else max(b, d))
    return None, None
