"""Uninterpreted functions: which integer does `f(args)` stand for in one concrete run?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

Point = tuple[str, tuple[int, ...]]


@dataclass(slots=True)
class FunctionTable:
    """One arbitrary but fixed integer per function and arguments, the same on every agent.

    `values` fixes single points.  Other points take `default` and `slope` times the sum of the arguments (functions in
    `slopes` that slope), or with `seed` a repeatable pseudo-random integer from `low..high`.  A function in `units`
    counts in units: 1 is one value of the first unit, 2 one of the second.  `used` records every point that was read,
    in first-use order.
    """

    values: Mapping[Point, int] = field(default_factory=dict)
    default: int = 1
    seed: int | None = None
    low: int = -1
    high: int = 4
    slope: int = 0
    slopes: Mapping[str, int] = field(default_factory=dict)
    units: Mapping[str, int] = field(default_factory=dict)
    used: dict[Point, int] = field(default_factory=dict)

    def __call__(self, name: str, arguments: tuple[int, ...]) -> int:
        point = (name, arguments)
        found = self.used.get(point)
        if found is None:
            if point in self.values:
                found = self.values[point]
            else:
                if self.seed is None:
                    found = self.default + self.slopes.get(name, self.slope) * sum(arguments)
                else:
                    found = Random(f"{self.seed} {name} {arguments}").randint(self.low, self.high)
                if found > 1 and name in self.units:
                    found = (found - 1) * self.units[name] + 1
            self.used[point] = found
        return found


def show(point: Point) -> str:
    """`need(0)`: a point as kernel IR text."""
    return f"{point[0]}({', '.join(map(str, point[1]))})"
