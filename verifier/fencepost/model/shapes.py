"""Shapes: on which concrete parameter values is a kernel tried, smallest first?

The shapes are the boundary ones: zero, one, around the depth, around the capacity, alone and combined, in the order of
the sum of absolute values and then of the parameters, so that the first failure is the smallest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from fencepost import ir
from fencepost.model.functions import FunctionTable
from fencepost.model.issue import evaluate
from fencepost.model.program import Compiled

_AXIS = 36  # values along one parameter alone: twice the capacity of a channel with two ids, and a few more
_SUMS = {1: _AXIS, 2: 14, 3: 9, 4: 6}
_CANDIDATES = 60_000


@dataclass(frozen=True, slots=True)
class Shape:
    """Parameter values in the order of `Compiled.parameters`, and how unknown functions are filled in."""

    values: tuple[int, ...]
    default: int = 1
    seed: int | None = None

    def table(self) -> FunctionTable:
        return FunctionTable(default=self.default, seed=self.seed)


_TABLES: tuple[tuple[int, int | None], ...] = (
    (1, None), (2, None), (0, None), (3, None), (-1, None), (0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5),
)  # fmt: skip


def uses_functions(kernel: ir.Kernel) -> bool:
    return any(isinstance(n, ir.Call) and n.function not in ir.INTERPRETED for n in ir.walk(kernel))


def allowed(compiled: Compiled, values: tuple[int, ...], table: FunctionTable | None = None) -> bool:
    """Whether the values satisfy every assume of the kernel (and `block >= 0`)."""
    function = table if table is not None else FunctionTable()
    if "block" in compiled.parameters and values[compiled.parameters.index("block")] < 0:
        return False
    return all(evaluate(compiled, a, values, function) for a in compiled.kernel.assumes)


def shapes(compiled: Compiled) -> Iterator[Shape]:
    """All shapes to try, smallest first; each with every filling of the unknown functions."""
    tables = _TABLES if uses_functions(compiled.kernel) else _TABLES[:1]
    for values in _values(compiled):
        for default, seed in tables:
            shape = Shape(values, default, seed)
            if allowed(compiled, values, shape.table()):
                yield shape


def _values(compiled: Compiled) -> list[tuple[int, ...]]:
    ranges = [bounds(compiled, p) for p in compiled.parameters]
    count = len(ranges)
    if count == 0:
        return [()]
    limit = _SUMS.get(count, 4)
    axes = [_axis(low, high) for low, high in ranges]
    offsets = [min(abs(v) for v in axis) for axis in axes]
    found = set(_sums(axes, offsets, limit))
    for i, axis in enumerate(axes):
        for others in product(*([_near(axes[j])[:3] for j in range(count) if j != i])):
            for value in axis:
                row = list(others)
                row.insert(i, value)
                found.add(tuple(row))
                if len(found) > _CANDIDATES:
                    break
    return sorted(found, key=lambda v: (sum(map(abs, v)), v))


def _sums(axes: list[list[int]], offsets: list[int], limit: int) -> Iterator[tuple[int, ...]]:
    """Every combination whose excess over the smallest values sums to at most `limit`."""

    def extend(prefix: tuple[int, ...], left: int) -> Iterator[tuple[int, ...]]:
        if len(prefix) == len(axes):
            yield prefix
            return
        for value in axes[len(prefix)]:
            excess = abs(value) - offsets[len(prefix)]
            if excess <= left:
                yield from extend((*prefix, value), left - excess)

    yield from extend((), limit)


def _near(axis: list[int]) -> list[int]:
    return sorted(axis, key=lambda v: (abs(v), v))


def _axis(low: int | None, high: int | None) -> list[int]:
    """Up to `_AXIS` values from the smallest allowed absolute value on, and the ends of a finite range."""
    start = low if low is not None else (min(-2, high) if high is not None else -2)
    end = start + _AXIS if high is None else min(high, start + _AXIS)
    values = list(range(start, end + 1))
    if high is not None and high > end:
        values += [high - 1, high]
    return values


def bounds(compiled: Compiled, parameter: str) -> tuple[int | None, int | None]:
    """The constant bounds that the assumes put on one parameter, as far as they are plain comparisons."""
    low: int | None = 0 if parameter == "block" else None
    high: int | None = None
    facts = list(compiled.kernel.assumes)
    while facts:
        fact = facts.pop()
        if isinstance(fact, ir.Logic) and fact.op == "and":
            facts += fact.operands
        if not isinstance(fact, ir.Compare):
            continue
        left = fact.first
        for op, right in fact.rest:
            a, b = _constant(compiled, left), _constant(compiled, right)
            if isinstance(left, ir.Name) and left.id == parameter and b is not None:
                low, high = _tighten(low, high, op, b)
            if isinstance(right, ir.Name) and right.id == parameter and a is not None:
                low, high = _tighten(low, high, _FLIP[op], a)
            left = right
    return low, high


_FLIP = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _tighten(low: int | None, high: int | None, op: str, c: int) -> tuple[int | None, int | None]:
    if op in (">=", ">", "=="):
        at = c + 1 if op == ">" else c
        low = at if low is None else max(low, at)
    if op in ("<=", "<", "=="):
        at = c - 1 if op == "<" else c
        high = at if high is None else min(high, at)
    return low, high


def _constant(compiled: Compiled, expr: ir.Expr) -> int | None:
    match expr:
        case ir.Int(value=value):
            return value
        case ir.Unary(op="-", operand=ir.Int(value=value)):
            return -value
        case ir.Name(id=name) if name in compiled.scalars and name not in compiled.parameters:
            return _constant(compiled, compiled.scalars[name])
    return None
