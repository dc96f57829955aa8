"""Neighbours: which shapes around a failing one tell something about the failure?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from random import Random

from fencepost.model.inputs import loop_inputs, thresholds, units
from fencepost.model.program import Compiled
from fencepost.model.shapes import Shape, allowed, bounds

_TAIL, _TAIL_LENGTH = 21, 12  # large values: far beyond any depth, and one of each residue up to 12


def nearest(compiled: Compiled, parameter: str, k: int) -> int:
    """The k-th value of a parameter from its smallest absolute value on."""
    low, high = bounds(compiled, parameter)
    value = (max(low, 0) if low is not None else min(0, high) if high is not None else 0) + k
    return value if high is None else min(value, high)


def reductions(shape: Shape, steps: Mapping[str, tuple[int, ...]], parameters: tuple[str, ...]) -> Iterator[Shape]:
    """Smaller shapes, boldest first; `steps` are the units of the parameters."""
    for i, (parameter, value) in enumerate(zip(parameters, shape.values, strict=True)):
        for new in _toward_zero(value, steps.get(parameter, ())):
            yield replace(shape, values=(*shape.values[:i], new, *shape.values[i + 1 :]))
    for i, (point, value) in enumerate(shape.functions):
        for new in _toward_zero(value, ()):
            yield replace(shape, functions=(*shape.functions[:i], (point, new), *shape.functions[i + 1 :]))

    yield from _joined(shape)
    yield from _exchanged(shape)


def _exchanged(shape: Shape) -> Iterator[Shape]:
    """Much less of one parameter for some more of another: what counts may be a sum in which they weigh differently."""
    for (i, falling), (j, rising) in permutations(enumerate(shape.values), 2):
        for new in (0, 1, falling // 2) if rising >= 0 else ():
            more = 1
            while new + more < falling:
                values = list(shape.values)
                values[i], values[j] = new, rising + more
                yield replace(shape, values=tuple(values))
                more *= 2


def _joined(shape: Shape) -> Iterator[Shape]:
    """One less of a parameter, and what the last call of an unknown function counted is added to an earlier call.

    That is one that counted, too, or the call before.
    """
    calls = dict(shape.functions)
    last = {point[0]: point for point, value in calls.items() if value > 0}
    before = {
        name: next((p for p in reversed(calls) if p[0] == name and p < ending), None) for name, ending in last.items()
    }
    for i, number in enumerate(shape.values):
        for point, value in calls.items():
            ending = last.get(point[0])
            if number > 0 and ending not in (None, point) and (value > 0 or point == before[point[0]]):
                functions = tuple((calls | {point: value + calls[ending], ending: 0}).items())
                yield replace(
                    shape, values=(*shape.values[:i], number - 1, *shape.values[i + 1 :]), functions=functions
                )


def _toward_zero(value: int, steps: tuple[int, ...]) -> Iterator[int]:
    """Values nearer to 0, farthest first."""
    near = [(value - 1) // u * u + r for u in steps for r in (0, 1)] if value > 0 else []
    for new in dict.fromkeys((0, 1, value // 2, *near, value - 1 if value > 0 else value + 1)):
        if abs(new) < abs(value) or (value < 0 and new == -value):
            yield new


def samples(compiled: Compiled, witness: Shape) -> list[Shape]:
    """A few shapes beside the witness on which a repaired kernel must be clean too."""
    rows = [tuple(v + 4 for v in witness.values)]
    rows += [tuple(max(v, extra) for v in witness.values) for extra in (1, 2, 3, 5)]
    rows += [tuple(nearest(compiled, p, k) for p in compiled.parameters) for k in (0, 1, 2)]
    rows.append(scaled(compiled, 2))
    found: list[Shape] = []
    for values in dict.fromkeys(rows):
        shape = replace(witness, values=values)
        if values != witness.values and allowed(compiled, values, shape.table()):
            found.append(shape)
    return found


def scaled(compiled: Compiled, k: int) -> tuple[int, ...]:
    """Every parameter at k of its largest units (or at k); `block` says which block, so it stays the first."""
    steps = units(compiled)
    return tuple(nearest(compiled, p, 0 if p == "block" else k * max(steps.get(p, (1,)))) for p in compiled.parameters)


def distant(compiled: Compiled, random: Random, top: int) -> tuple[int, ...]:
    """Some values up to about `top`: few are small, and some are equal."""
    values: list[int] = []
    for parameter in compiled.parameters:
        kind = random.random()
        if parameter == "block" or kind < 0.2:
            k = 0 if parameter == "block" else random.randrange(_TAIL)
        elif kind < 0.4 and values:
            k = random.choice(values) + random.randint(-1, 1)
        else:
            k = round(top ** random.uniform(0.5, 1))
        values.append(nearest(compiled, parameter, max(k, 0)))
    return tuple(values)


def longer(compiled: Compiled, shape: Shape, trips: int) -> Shape | None:
    """The shape with `trips` more units of every parameter, if the assumes allow it."""
    steps = units(compiled)
    pairs = zip(compiled.parameters, shape.values, strict=True)
    found = replace(shape, values=tuple(v + trips * max(steps.get(p, (1,))) for p, v in pairs))
    return found if found.values and allowed(compiled, found.values, found.table()) else None


def tails(compiled: Compiled, shape: Shape) -> Iterator[Shape]:
    """Large values of each parameter of a trip count, and of the unknown functions of one.

    Everything else is unchanged, or the other loops have at least one trip.
    """
    trips, steps, edges = loop_inputs(compiled), units(compiled), thresholds(compiled, _TAIL)
    ones = tuple(
        max(value, one) if p in trips else value
        for p, value, one in zip(compiled.parameters, shape.values, scaled(compiled, 1), strict=True)
    )
    found: list[Shape] = []
    for i, parameter in enumerate(compiled.parameters):
        low, high = bounds(compiled, parameter)
        if high is not None or parameter not in trips:
            continue
        step = max(steps.get(parameter, (1,)))
        start = max((low or 0) + _TAIL * step, shape.values[i] + 8 * step)
        large = [*range(start, start + _TAIL_LENGTH * step, step)]
        far = max(edges.get(parameter, (0,))) + sum(map(abs, shape.values)) + step  # beyond what it is compared with
        large += [far, far + step] if far > start else []
        rows = dict.fromkeys((*base[:i], v, *base[i + 1 :]) for base in (shape.values, ones) for v in large)
        found += (replace(shape, values=row) for row in rows)
    if trips - set(compiled.parameters):
        values = range(_TAIL, _TAIL + _TAIL_LENGTH)
        found += (Shape(shape.values, v, slope=slope) for v in values for slope in (0, v))
    yield from (s for s in found if allowed(compiled, s.values, s.table()))
