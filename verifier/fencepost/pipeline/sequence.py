"""How does a number, or a condition, change from one iteration of a loop to the next?

Iterations are counted from 0.  A `Sequence` is an integer that repeats with a constant gain: ``3*i + 1``, ``i % 4``,
``(i + 2) // 3`` and their sums are all of this form, and nothing else is needed for slot numbers.  A `Guard` is a
condition on the iteration; from some iteration on, and up to some distance from the last one, it repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import gcd, lcm
from typing import Literal, TypeAlias

from fencepost.ir import Expr, Name, walk
from fencepost.pipeline.setting import ITERATION, Evaluation, Setting, compiled

MAX_PERIOD = 1 << 12


class TooLong(Exception):
    """A period that is too long to be written out."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """``f(i) = values[i % P] + gain * (i // P)`` with P = len(values)."""

    values: tuple[int, ...]
    gain: int = 0

    @staticmethod
    def constant(value: int) -> Sequence:
        return Sequence((value,))

    @staticmethod
    def linear(scale: int, offset: int) -> Sequence:
        return Sequence((offset,), scale)

    @property
    def period(self) -> int:
        return len(self.values)

    def __call__(self, i: int) -> int:
        turn, phase = divmod(i, len(self.values))
        return self.values[phase] + self.gain * turn

    def _stretched(self, period: int) -> Sequence:
        if period > MAX_PERIOD:
            raise TooLong
        return Sequence(tuple(self(i) for i in range(period)), self.gain * (period // self.period))

    def _reduced(self) -> Sequence:
        for period in range(1, self.period):
            if self.period % period == 0 and self.gain % (self.period // period) == 0:
                short = Sequence(self.values[:period], self.gain // (self.period // period))
                if all(short(i) == self.values[i] for i in range(self.period)):
                    return short
        return self

    def shifted(self, distance: int) -> Sequence:
        """The sequence i -> self(i + distance)."""
        return Sequence(tuple(self(i + distance) for i in range(self.period)), self.gain)

    def plus(self, other: Sequence) -> Sequence:
        period = lcm(self.period, other.period)
        a, b = self._stretched(period), other._stretched(period)
        return Sequence(tuple(x + y for x, y in zip(a.values, b.values, strict=True)), a.gain + b.gain)._reduced()

    def times(self, factor: int) -> Sequence:
        return Sequence(tuple(v * factor for v in self.values), self.gain * factor)._reduced()

    def floor_divided(self, divisor: int) -> Sequence:
        """``self // divisor``, rounding down; `divisor` is not 0."""
        whole = self._stretched(self.period * abs(divisor) // gcd(self.gain, divisor)) if self.gain else self
        return Sequence(tuple(v // divisor for v in whole.values), whole.gain // divisor)._reduced()

    def modulo(self, divisor: int) -> Sequence:
        """``self % divisor`` with the sign of the divisor; `divisor` is not 0."""
        return self.plus(self.floor_divided(divisor).times(-divisor))

    def vanishes(self) -> bool:
        """Whether the sequence is 0 at some iteration."""
        return any(self(i) == 0 for i in range(self.settled() if self.gain else self.period))

    def settled(self) -> int:
        """The least iteration from which on the sign of the sequence repeats with its period."""
        if self.gain == 0:
            return 0
        last = 0
        for phase, value in enumerate(self.values):
            # The sign at `phase` is final once value + gain * turn has the sign of gain.
            turn = max(0, -value // self.gain + 1) if self.gain > 0 else max(0, value // -self.gain + 1)
            last = max(last, phase + turn * self.period)
        return last


Comparison: TypeAlias = Literal["<", "<=", ">", ">=", "==", "!="]

_COMPARE: dict[str, Callable[[int], bool]] = {
    "<": lambda d: d < 0,
    "<=": lambda d: d <= 0,
    ">": lambda d: d > 0,
    ">=": lambda d: d >= 0,
    "==": lambda d: d == 0,
    "!=": lambda d: d != 0,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a guard needs for repeating: with `period`, from iteration `head` on, until `tail` before the end."""

    period: int = 1
    head: int = 0
    tail: int = 0
    regular: bool = True

    def joined(self, other: Shape) -> Shape:
        return Shape(
            lcm(self.period, other.period),
            max(self.head, other.head),
            max(self.tail, other.tail),
            self.regular and other.regular,
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """``difference(i) OP 0``; with `from_end`, i counts back from the last iteration."""

    difference: Sequence
    op: Comparison
    from_end: bool = False

    def holds(self, i: int, trips: int, setting: Setting) -> bool:
        return _COMPARE[self.op](self.difference(trips - 1 - i if self.from_end else i))

    def shape(self) -> Shape:
        period, settled = self.difference.period, self.difference.settled()
        if self.difference.gain == 0:
            # Counted from the end, the pattern would shift with the number of trips.
            return Shape(period, regular=not self.from_end or period == 1)
        return Shape(1, 0 if self.from_end else settled, settled if self.from_end else 0)


@dataclass(frozen=True)
class Opaque:
    """A condition that is no comparison of sequences; it is true where the value of `expr` is not 0."""

    expr: Expr

    @cached_property
    def _value(self) -> Evaluation:
        return compiled(self.expr)

    def holds(self, i: int, trips: int, setting: Setting) -> bool:
        return self._value(setting, i) != 0

    def shape(self) -> Shape:
        return Shape(regular=False)

    @property
    def invariant(self) -> bool:
        """Whether the condition is the same in all iterations."""
        return all(n.id != ITERATION for n in walk(self.expr) if isinstance(n, Name))


@dataclass(frozen=True, slots=True)
class Not:
    operand: Guard

    def holds(self, i: int, trips: int, setting: Setting) -> bool:
        return not self.operand.holds(i, trips, setting)

    def shape(self) -> Shape:
        return self.operand.shape()


@dataclass(frozen=True, slots=True)
class All:
    """True if all operands are (no operands: always)."""

    operands: tuple[Guard, ...] = ()

    def holds(self, i: int, trips: int, setting: Setting) -> bool:
        return all(o.holds(i, trips, setting) for o in self.operands)

    def shape(self) -> Shape:
        shape = Shape()
        for operand in self.operands:
            shape = shape.joined(operand.shape())
        return shape


Guard: TypeAlias = Compared | Opaque | Not | All

ALWAYS = All()


def opaque_parts(guard: Guard) -> set[Opaque]:
    """The parts of a guard that are not known."""
    match guard:
        case Opaque():
            return {guard}
        case Not(operand):
            return opaque_parts(operand)
        case All(operands):
            return {u for o in operands for u in opaque_parts(o)}
        case Compared():
            return set()
