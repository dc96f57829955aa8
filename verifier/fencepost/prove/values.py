"""Values and knowledge: what is known about the integers of a kernel whose parameters are not fixed?

A value is a plain integer, or a linear form over *symbols*: parameters and values of unknown functions.  Knowledge is
an interval per linear form and a residue per symbol; it only ever narrows along a path, by case splits.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import gcd, lcm
from typing import TypeAlias

Symbol: TypeAlias = tuple[Hashable, ...]
"""("p", name) or ("f", name, arguments, level, epoch); as a *copy* of one: ("c", symbol, level, epoch)."""


@dataclass(frozen=True, slots=True)
class Linear:
    """`constant` plus the sum of coefficient times symbol; `terms` are sorted and have no zero coefficient."""

    constant: int
    terms: tuple[tuple[Symbol, int], ...]


Value: TypeAlias = int | Linear


def linear(constant: int, terms: dict[Symbol, int]) -> Value:
    """The simplest value with these terms."""
    kept = tuple(sorted(((s, c) for s, c in terms.items() if c), key=repr))
    return Linear(constant, kept) if kept else constant


def add(a: Value, b: Value, factor: int = 1) -> Value:
    """`a + factor * b`."""
    if isinstance(a, int) and isinstance(b, int):
        return a + factor * b
    constant, terms = 0, dict[Symbol, int]()
    for value, times in ((a, 1), (b, factor)):
        if isinstance(value, int):
            constant += times * value
        else:
            constant += times * value.constant
            for symbol, coefficient in value.terms:
                terms[symbol] = terms.get(symbol, 0) + times * coefficient
    return linear(constant, terms)


def scale(a: Value, factor: int) -> Value:
    return add(0, a, factor)


Form: TypeAlias = tuple[tuple[Symbol, int], ...]
"""A linear form without its constant, divided by the gcd of its coefficients, the first one positive."""


def normal(value: Linear) -> tuple[Form, int, int]:
    """`value = factor * form + constant` with a normal form; `factor` is not 0 and may be negative."""
    factor = gcd(*(c for _, c in value.terms))
    if value.terms[0][1] < 0:
        factor = -factor
    return tuple((s, c // factor) for s, c in value.terms), factor, value.constant


Interval: TypeAlias = tuple[int | None, int | None]
EVERYTHING: Interval = (None, None)


@dataclass(frozen=True, slots=True)
class Undecided(Exception):
    """A comparison or residue that knowledge does not decide; the path must split.

    `choices` are the ways out: each narrows `form` to an interval, or fixes a residue of the single symbol `form`.
    """

    form: Form
    choices: tuple[tuple[Interval, tuple[int, int] | None], ...]


@dataclass(slots=True)
class Knowledge:
    """What is known on one path."""

    intervals: dict[Form, Interval] = field(default_factory=dict)
    residues: dict[Symbol, tuple[int, int]] = field(default_factory=dict)

    def copy(self) -> Knowledge:
        return Knowledge(dict(self.intervals), dict(self.residues))

    def interval(self, form: Form) -> Interval:
        """Bounds of a form, from what is known of it and of its symbols."""
        low, high = self.intervals.get(form, EVERYTHING)
        if len(form) > 1:
            low2: int | None = 0
            high2: int | None = 0
            for symbol, coefficient in form:
                a, b = self.intervals.get(((symbol, 1),), EVERYTHING)
                if coefficient < 0:
                    a, b = b, a
                low2 = None if low2 is None or a is None else low2 + coefficient * a
                high2 = None if high2 is None or b is None else high2 + coefficient * b
            low = low2 if low is None else low if low2 is None else max(low, low2)
            high = high2 if high is None else high if high2 is None else min(high, high2)
        return low, high

    def sign(self, value: Value, op: str) -> bool:
        """Whether `value op 0` holds.

        Raises:
            Undecided: both outcomes are possible.
        """
        if isinstance(value, int):
            return _compare(value, op)
        form, factor, constant = normal(value)
        low, high = self.interval(form)
        if factor < 0:
            a = None if high is None else factor * high + constant
            b = None if low is None else factor * low + constant
        else:
            a = None if low is None else factor * low + constant
            b = None if high is None else factor * high + constant
        # value lies in [a, b]
        match op:
            case "<":
                if b is not None and b < 0:
                    return True
                if a is not None and a >= 0:
                    return False
                self._split(form, factor, constant, 0)
            case ">=":
                return not self.sign(value, "<")
            case "<=":
                return self.sign(add(value, -1), "<")
            case ">":
                return not self.sign(add(value, -1), "<")
            case "==" | "!=":
                if a is not None and a == b:
                    return (a == 0) == (op == "==")
                if self.sign(value, "<") or not self.sign(add(value, -1), "<"):
                    return op == "!="
                # 0 <= value < 1, so value is 0
                return op == "=="
        raise AssertionError(op)

    def _split(self, form: Form, factor: int, constant: int, bound: int) -> None:
        """Split `factor * form + constant < bound` on the form."""
        low, high = self.intervals.get(form, EVERYTHING)
        if factor > 0:  # form < (bound - constant) / factor
            at = -((constant - bound) // factor)  # smallest integer form that is not below
            below, above = (low, at - 1), (at, high)
        else:  # form > (bound - constant) / factor, both negative
            at = (constant - bound) // -factor  # largest integer form that is not above
            below, above = (low, at), (at + 1, high)
        raise Undecided(form, ((below, None), (above, None)))

    def residue(self, value: Value, modulus: int) -> int:
        """`value % modulus` for a positive modulus.

        Raises:
            Undecided: the residue of some symbol must be known first.
        """
        if isinstance(value, int):
            return value % modulus
        total = value.constant
        for symbol, coefficient in value.terms:
            needed = modulus // gcd(coefficient, modulus)
            if needed == 1:
                continue
            low, high = self.intervals.get(((symbol, 1),), EVERYTHING)
            if low is not None and low == high:
                total += coefficient * low
                continue
            known, rest = self.residues.get(symbol, (1, 0))
            if known % needed:
                refined = lcm(known, needed)
                choices = tuple(((low, high), (refined, r)) for r in range(rest, refined, known))
                raise Undecided(((symbol, 1),), choices)
            total += coefficient * rest
        return total % modulus

    def learn(self, form: Form, interval: Interval, residue: tuple[int, int] | None) -> bool:
        """Narrow the knowledge; False if nothing is left."""
        low, high = self.intervals.get(form, EVERYTHING)
        low = interval[0] if low is None else low if interval[0] is None else max(low, interval[0])
        high = interval[1] if high is None else high if interval[1] is None else min(high, interval[1])
        if len(form) == 1:
            symbol = form[0][0]
            if residue is not None:
                self.residues[symbol] = residue
            modulus, rest = self.residues.get(symbol, (1, 0))
            if low is not None:
                low += (rest - low) % modulus
            if high is not None:
                high -= (high - rest) % modulus
        if low is not None and high is not None and low > high:
            return False
        self.intervals[form] = (low, high)
        return True


def _compare(value: int, op: str) -> bool:
    match op:
        case "<":
            return value < 0
        case "<=":
            return value <= 0
        case ">":
            return value > 0
        case ">=":
            return value >= 0
        case "==":
            return value == 0
    return value != 0
