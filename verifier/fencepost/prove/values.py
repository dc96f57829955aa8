"""Values and knowledge: what is known about the integers of a kernel whose parameters are not fixed?

A value is a plain integer, or a linear form over *symbols*: parameters and values of unknown functions.  Knowledge is
an interval per linear form and a residue per symbol; it only ever narrows along a path, by case splits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from math import gcd, lcm
from operator import itemgetter
from typing import Literal, TypeAlias

Level: TypeAlias = tuple[Hashable, ...]
"""Which run of a counter a comparison belongs to.

("L", depth): one entry of a loop around synchronisation, shared by all agents; ("X", agent, loop): of a private loop.
("C", depth): one trip of the loop of that depth, for counters that run through several entries of inner loops.
"""


_RESIDUES = 5_000  # remainders that a path is split into at once

TRIPS = "trips~"
"""The unknown number of trips of a loop whose variable nobody reads, named like a function of its bounds."""

OPAQUE = frozenset({"//", "%", "*"})
"""Operations whose result is an unknown number of its own, named like an unknown function of the operands."""


def lower_bound(function: str) -> int | None:
    """The least value of an unknown function whose name ends with `~from~` and a number."""
    _, found, number = function.rpartition("~from~")
    return int(number) if found and number.isdecimal() else None


class Symbol:
    """An unknown integer; equal only to itself, made by a `Symbols` table.

    `kind` "p": the parameter `name`.  "f": the value of the unknown function `name` at `arguments`, asked for at
    `level` in run `epoch`.  "c": what comparisons at `level` in run `epoch` know of `base`.  `family` names the
    unknown numbers that one expression may give: of a quotient or product, those with the same operands.
    """

    __slots__ = ("arguments", "base", "epoch", "family", "kind", "level", "name", "number")

    def __init__(
        self,
        number: int,
        kind: Literal["p", "f", "c"],
        name: str,
        arguments: tuple[Value, ...],
        base: Symbol | None,
        level: Level | None,
        epoch: int,
    ) -> None:
        self.number = number
        self.kind = kind
        self.name = name
        self.family = f"{name}({', '.join(map(_described, arguments))})" if kind == "f" and name in OPAQUE else name
        self.arguments = arguments
        self.base = base if base is not None else self
        self.level = level
        self.epoch = epoch

    def __repr__(self) -> str:
        if self.kind == "p":
            return self.name
        at = "" if self.level is None else f"@{self.level}#{self.epoch}"
        if self.kind == "c":
            return f"{self.base!r}{at}"
        return f"{self.name}({', '.join(map(repr, self.arguments))}){at}"


@dataclass(frozen=True, slots=True)
class Linear:
    """`constant` plus the sum of coefficient times symbol; `terms` are sorted and have no zero coefficient."""

    constant: int
    terms: tuple[tuple[Symbol, int], ...]


Value: TypeAlias = int | Linear


class Symbols:
    """The symbols of one exploration: the same description gives the same object."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Symbol] = {}

    def _get(
        self,
        kind: Literal["p", "f", "c"],
        name: str,
        arguments: tuple[Value, ...],
        base: Symbol | None,
        level: Level | None,
        epoch: int,
    ) -> Symbol:
        key = (kind, name, arguments, base, level, epoch)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Symbol(len(self._known), kind, name, arguments, base, level, epoch)
        return found

    def parameter(self, name: str) -> Symbol:
        return self._get("p", name, (), None, None, 0)

    def function(self, name: str, arguments: tuple[Value, ...], level: Level | None, epoch: int) -> Symbol:
        return self._get("f", name, arguments, None, level, epoch)

    def copy(self, base: Symbol, level: Level, epoch: int) -> Symbol:
        return self._get("c", base.name, (), base, level, epoch)


def described(constant: int, terms: Iterable[tuple[str, int]]) -> str:
    """A linear form over families as text, the same for equal forms."""
    return " + ".join([*(f"{c}*{name}" for name, c in sorted(terms)), str(constant)])


def _described(value: Value) -> str:
    if not isinstance(value, Linear):
        return str(value)
    terms: dict[str, int] = {}
    for symbol, c in value.terms:
        terms[symbol.family] = terms.get(symbol.family, 0) + c
    return described(value.constant, [(name, c) for name, c in terms.items() if c])


def _number(term: tuple[Symbol, int]) -> int:
    return term[0].number


def linear(constant: int, terms: dict[Symbol, int]) -> Value:
    """The simplest value with these terms."""
    kept = [(s, c) for s, c in terms.items() if c]
    if not kept:
        return constant
    if len(kept) > 1:
        kept.sort(key=_number)
    return Linear(constant, tuple(kept))


def add(a: Value, b: Value, factor: int = 1) -> Value:
    """`a + factor * b`."""
    if type(a) is int:
        if type(b) is int:
            return a + factor * b
        if factor == 1:
            assert isinstance(b, Linear)
            return Linear(b.constant + a, b.terms)
    elif type(b) is int:
        assert isinstance(a, Linear)
        return Linear(a.constant + factor * b, a.terms)
    constant, terms = 0, dict[Symbol, int]()
    for value, times in ((a, 1), (b, factor)):
        if isinstance(value, Linear):
            constant += times * value.constant
            for symbol, coefficient in value.terms:
                terms[symbol] = terms.get(symbol, 0) + times * coefficient
        else:
            constant += times * value
    return linear(constant, terms)


def scale(a: Value, factor: int) -> Value:
    """`factor * a`."""
    return add(0, a, factor)


Form: TypeAlias = tuple[tuple[Symbol, int], ...]
"""A linear form without its constant, divided by the gcd of its coefficients, the first one positive."""


def normal(value: Linear) -> tuple[Form, int, int]:
    """`value = factor * form + constant` with a normal form; `factor` is not 0 and may be negative."""
    terms = value.terms
    if len(terms) == 1:
        symbol, factor = terms[0]
        return ((symbol, 1),), factor, value.constant
    factor = gcd(*map(itemgetter(1), terms))
    if terms[0][1] < 0:
        factor = -factor
    return tuple((s, c // factor) for s, c in terms), factor, value.constant


Interval: TypeAlias = tuple[int | None, int | None]
EVERYTHING: Interval = (None, None)
Residue: TypeAlias = tuple[int, int]
"""(modulus, rest)"""


class TooManyResidues(Exception):
    """The remainders by some number are too many to be followed one by one."""


@dataclass(frozen=True, slots=True)
class Undecided(Exception):
    """A comparison or residue that knowledge does not decide; the path must split.

    `choices` are the ways out: each narrows `form` to an interval, or fixes a residue of the single symbol `form`.
    """

    form: Form
    choices: tuple[tuple[Interval, Residue | None], ...]


@dataclass(slots=True)
class Knowledge:
    """What is known on one path."""

    intervals: dict[Form, Interval] = field(default_factory=dict)
    residues: dict[Symbol, Residue] = field(default_factory=dict)

    def copy(self) -> Knowledge:
        return Knowledge(dict(self.intervals), dict(self.residues))

    def interval(self, form: Form) -> Interval:
        """The tightest known interval of a form; sums of single symbols are used as well."""
        known = self.intervals.get(form, EVERYTHING)
        if len(form) == 1:
            return known
        low: int | None = 0
        high: int | None = 0
        for symbol, coefficient in form:
            a, b = self.intervals.get(((symbol, 1),), EVERYTHING)
            if coefficient < 0:
                a, b = b, a
            low = None if low is None or a is None else low + coefficient * a
            high = None if high is None or b is None else high + coefficient * b
        if known[0] is not None:
            low = known[0] if low is None else max(low, known[0])
        if known[1] is not None:
            high = known[1] if high is None else min(high, known[1])
        return low, high

    def bounds(self, value: Linear) -> Interval:
        """The interval of a value."""
        form, factor, constant = normal(value)
        low, high = self.interval(form)
        if factor < 0:
            low, high = high, low
        a = None if low is None else factor * low + constant
        b = None if high is None else factor * high + constant
        return a, b

    def sign(self, value: Value, op: str) -> bool:
        """Whether `value op 0` holds.

        Raises:
            Undecided: both are possible.
        """
        if not isinstance(value, Linear):
            return _compare(value, op)
        a, b = self.bounds(value)
        match op:
            case "<":
                if b is not None and b < 0:
                    return True
                if a is not None and a >= 0:
                    return False
                self._split(value)
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
                return op == "=="  # 0 <= value < 1
        raise AssertionError(op)

    def _split(self, value: Linear) -> None:
        """Split `value < 0` on the form."""
        form, factor, constant = normal(value)
        low, high = self.intervals.get(form, EVERYTHING)
        if factor > 0:  # form < -constant / factor
            at = -(constant // factor)  # smallest integer form that is not below
            below, above = (low, at - 1), (at, high)
        else:  # form > constant / -factor
            at = constant // -factor  # largest integer form that is not above
            below, above = (low, at), (at + 1, high)
        raise Undecided(form, ((below, None), (above, None)))

    def residue(self, value: Value, modulus: int) -> int:
        """`value % modulus` for a positive modulus.

        Raises:
            Undecided: the residue of some symbol must be known first.
        """
        if not isinstance(value, Linear):
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
                if refined > known * _RESIDUES:
                    raise TooManyResidues(f"a remainder by {modulus} has too many values to be told apart")
                choices = tuple(((low, high), (refined, r)) for r in range(rest, refined, known))
                raise Undecided(((symbol, 1),), choices)
            total += coefficient * rest
        return total % modulus

    def learn(self, form: Form, interval: Interval, residue: Residue | None) -> bool:
        """Narrow the knowledge; False if nothing is left."""
        low, high = self.intervals.get(form, EVERYTHING)
        low = interval[0] if low is None else low if interval[0] is None else max(low, interval[0])
        high = interval[1] if high is None else high if interval[1] is None else min(high, interval[1])
        if len(form) == 1:
            symbol = form[0][0]
            modulus, rest = self.residues.get(symbol, (1, 0))
            if residue is not None:
                joined = _joined((modulus, rest), residue)
                if joined is None:
                    return False
                modulus, rest = self.residues[symbol] = joined
            if modulus > 1:
                if low is not None:
                    low += (rest - low) % modulus
                if high is not None:
                    high -= (high - rest) % modulus
        if low is not None and high is not None and low > high:
            return False
        self.intervals[form] = (low, high)
        return True


def _joined(a: Residue, b: Residue) -> Residue | None:
    """Both residues at once; None if they exclude each other."""
    common = gcd(a[0], b[0])
    if (b[1] - a[1]) % common:
        return None
    steps = (b[1] - a[1]) // common * pow(a[0] // common, -1, b[0] // common) % (b[0] // common)
    return lcm(a[0], b[0]), (a[1] + a[0] * steps) % lcm(a[0], b[0])


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
