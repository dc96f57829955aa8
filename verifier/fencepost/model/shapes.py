"""Shapes: on which concrete parameter values is a kernel tried, smallest first?

The shapes are the boundary ones: zero, one, around the depth, around the capacity, alone and combined, in the order of
the sum of absolute values and then of the parameters, so that the first failure is the smallest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import comb

from fencepost import ir
from fencepost.model.functions import FunctionTable, Point
from fencepost.model.inputs import function_thresholds, function_units, thresholds, units, used_names
from fencepost.model.issue import assumed
from fencepost.model.program import Compiled

AXIS = 36  # values along one parameter alone: twice the capacity of a channel with two ids, and a few more
_SUMS = {1: AXIS, 2: 14, 3: 9, 4: 6, 5: 4}
_MANY = 10  # parameters beyond which only sums up to 2 are tried
_COMBINED = 81  # combinations of the other parameters along one axis
_ALL = 6_000  # values below a failing one that are looked through
_BEYOND, _CONSTANTS = 4, 4  # constants from here on that functions are compared with, and how many of them are tried
_FUNCTIONS = 3  # unknown functions that may grow at different rates
_FEW = 8  # small values of a parameter, where not all can be looked through


@dataclass(frozen=True, slots=True)
class Shape:
    """Parameter values in the order of `Compiled.parameters`, and how unknown functions are filled in.

    `functions` fixes single points; the others follow `default`, `seed`, `slope`, `slopes` and `units` (see
    `FunctionTable`).
    """

    values: tuple[int, ...]
    default: int = 1
    seed: int | None = None
    functions: tuple[tuple[Point, int], ...] = ()
    slope: int = 0
    units: tuple[tuple[str, int], ...] = ()
    slopes: tuple[tuple[str, int], ...] = ()

    def table(self) -> FunctionTable:
        return FunctionTable(
            dict(self.functions),
            self.default,
            self.seed,
            slope=self.slope,
            slopes=dict(self.slopes),
            units=dict(self.units),
        )

    @property
    def size(self) -> tuple[int, tuple[int, ...]]:
        """The order of shapes: the sum of absolute values, then the parameters."""
        return sum(map(abs, self.values)), self.values


@dataclass(frozen=True, slots=True)
class Filling:
    """How unknown functions are filled in: a default and a slope (or one for each function), or a seed."""

    default: int = 0
    slope: int = 0
    seed: int | None = None
    slopes: tuple[tuple[str, int], ...] = ()


FILLINGS: tuple[Filling, ...] = (
    Filling(1), Filling(1, 1), Filling(2), Filling(0, 1), Filling(0), Filling(0, 2), Filling(3), Filling(-1),
    *(Filling(seed=seed) for seed in range(8)),
)  # fmt: skip
"""Fillings of the unknown functions; with a slope, a function of a growing index grows."""


class Shapes:
    """The shapes of one kernel, by values and filling."""

    def __init__(self, compiled: Compiled) -> None:
        self._units = tuple(sorted(function_units(compiled).items()))
        self.fillings = FILLINGS if uses_functions(compiled.kernel) else FILLINGS[:1]
        self.fillings += tuple(Filling(c) for c in function_thresholds(compiled, _BEYOND)[:_CONSTANTS])

    def at(self, values: tuple[int, ...], filling: Filling) -> Shape:
        """One shape."""
        return Shape(
            values, filling.default, filling.seed, slope=filling.slope, units=self._units, slopes=filling.slopes
        )


def unequal_fillings(compiled: Compiled) -> tuple[Filling, ...]:
    """Fillings in which functions grow at different rates; none if there are too many functions, or one only."""
    calls = (n for n in ir.walk(compiled.kernel) if isinstance(n, ir.Call) and n.function not in ir.INTERPRETED)
    names = sorted({call.function for call in calls})
    if not 1 < len(names) <= _FUNCTIONS:
        return ()
    rates = (r for r in product((1, 2, 3), repeat=len(names)) if len({*r}) > 1)
    return tuple(Filling(slopes=tuple(zip(names, r, strict=True))) for r in rates)


def uses_functions(kernel: ir.Kernel) -> bool:
    return any(isinstance(n, ir.Call) and n.function not in ir.INTERPRETED for n in ir.walk(kernel))


def allowed(compiled: Compiled, values: tuple[int, ...], table: FunctionTable | None = None) -> bool:
    """Whether the values satisfy every assume of the kernel (and `block >= 0`)."""
    function = table if table is not None else FunctionTable()
    if "block" in compiled.parameters and values[compiled.parameters.index("block")] < 0:
        return False
    return assumed(compiled, values, function)


def shapes(compiled: Compiled, also: Collection[str] = ()) -> Iterator[Shape]:
    """All shapes to try, smallest first; each with every filling of the unknown functions.

    Parameters that the text does not mention stay put, unless `also` names them.
    """
    made = Shapes(compiled)
    for values in candidates(compiled, also):
        for filling in made.fillings:
            shape = made.at(values, filling)
            if allowed(compiled, values, shape.table()):
                yield shape


def candidates(compiled: Compiled, also: Collection[str] = ()) -> list[tuple[int, ...]]:
    """Parameter values to try, smallest first, whether or not the assumes allow them; `also` as for `shapes`."""
    ranges = [bounds(compiled, p) for p in compiled.parameters]
    count = len(ranges)
    if count == 0:
        return [()]
    used, steps, edges = used_names(compiled).union(also), units(compiled), thresholds(compiled, AXIS)
    axes, near, run, far = [], [], [], []
    for parameter, (low, high) in zip(compiled.parameters, ranges, strict=True):
        axis = _axis(low, high)
        few = sorted(axis, key=lambda v: (abs(v), v))[:3]
        if parameter not in used:
            axis = few = few[:1]
        mine = steps.get(parameter, ()) if parameter in used else ()
        multiples = [k * u + r for u in mine for k in (1, 2, 3, 4, 5) for r in (-1, 0, 1)]
        multiples += [c + r for c in edges.get(parameter, ()) for r in (-1, 0, 1, 2)] if parameter in used else []
        multiples = [v for v in multiples if (low is None or v >= low) and (high is None or v <= high)]
        axes.append(axis)
        near.append(few)
        far.append(multiples)
        run.append([v for v in multiples if v in (mine[0], 2 * mine[0])] if mine else [])
        run[-1] = run[-1] or few
    count = sum(parameter in used for parameter in compiled.parameters)
    limit = _SUMS.get(max(count, 1), 3 if count <= _MANY else 2)
    offsets = [abs(few[0]) if few else 0 for few in near]
    found = set(_sums(axes, offsets, limit))
    for i in range(len(axes)):
        for values, rest in ((axes[i], near), (far[i], run)):
            for others in _others(rest[:i] + rest[i + 1 :]):
                found |= {(*others[:i], value, *others[i:]) for value in values}
    return sorted(found, key=lambda v: (sum(map(abs, v)), v))


def smaller(compiled: Compiled, values: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Parameter values before `values` in the order of shapes, from -2 on where no assume bounds them below.

    All of them if they are not too many, else those at which something may change: small ones, those around the units
    of a parameter, and those of `values`.
    """
    total = sum(map(abs, values))
    axes: list[Sequence[int]] = []
    used, steps = used_names(compiled), units(compiled)
    for parameter, value in zip(compiled.parameters, values, strict=True):
        if parameter not in used:
            axes.append(range(value, value + 1))
            continue
        low, high = bounds(compiled, parameter)
        start = low if low is not None else (min(-2, high) if high is not None else -2)
        axes.append(range(max(start, -total), min(total if high is None else high, total) + 1))
    moving = sum(len(axis) > 1 for axis in axes)
    if comb(total + moving, moving) > _ALL:
        names = zip(compiled.parameters, values, axes, strict=True)
        axes = [_notable(axis, value, steps.get(p, ())) for p, value, axis in names]
        found = sorted(_within(axes, total), key=lambda v: (sum(map(abs, v)), v))
        yield from (v for v in found if (sum(map(abs, v)), v) < (total, values))
        return
    for sum_ in range(total + 1):
        for one in _exactly(axes, sum_):
            if (sum_, one) >= (total, values):
                return
            yield one


def _notable(axis: Sequence[int], value: int, steps: tuple[int, ...]) -> list[int]:
    """The values of an axis at which something may change."""
    around = {k * u + r for u in steps for k in (1, 2, 3) for r in (0, 1)}
    small = sorted(axis, key=lambda v: (abs(v), v))[:_FEW]
    return sorted({*small, value, *(v for v in around if v in axis)})


def _within(axes: list[Sequence[int]], total: int) -> Iterator[tuple[int, ...]]:
    """Combinations whose absolute values sum to at most `total`; not more than `_ALL`."""

    def extend(prefix: tuple[int, ...], left: int) -> Iterator[tuple[int, ...]]:
        if len(prefix) == len(axes):
            yield prefix
            return
        for value in axes[len(prefix)]:
            if abs(value) <= left:
                yield from extend((*prefix, value), left - abs(value))

    yield from islice(extend((), total), _ALL)


def _exactly(axes: list[Sequence[int]], total: int) -> Iterator[tuple[int, ...]]:
    """Every combination whose absolute values sum to `total`, in lexicographic order."""

    def extend(prefix: tuple[int, ...], left: int) -> Iterator[tuple[int, ...]]:
        if len(prefix) == len(axes):
            if left == 0:
                yield prefix
            return
        axis = axes[len(prefix)]
        if len(prefix) == len(axes) - 1:
            yield from ((*prefix, v) for v in sorted({-left, left}) if v in axis)
            return
        for value in axis:
            if abs(value) <= left:
                yield from extend((*prefix, value), left - abs(value))

    yield from extend((), total)


def _others(near: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """What the other parameters take while one goes along its axis: every combination, or, of many, equal ranks."""
    combinations = 1
    for few in near:
        combinations *= len(few)
    if combinations <= _COMBINED:
        yield from product(*near)
    else:
        for rank in range(3):
            yield tuple(few[min(rank, len(few) - 1)] for few in near)


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


def _axis(low: int | None, high: int | None) -> list[int]:
    """Up to `AXIS` values from the smallest allowed absolute value on, and the ends of a finite range."""
    start = low if low is not None else (min(-2, high) if high is not None else -2)
    end = start + AXIS if high is None else min(high, start + AXIS)
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
