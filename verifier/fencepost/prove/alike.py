"""Alike: what have two relative states in common, as one state that covers both?

Terms that differ are made terms over new symbols, as few as possible: what moved together moves by one symbol.  Facts
of either state are said of the new symbols in every way that comes to mind, and those that hold in both are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from math import lcm

from fencepost.prove.plainterms import Term, applications, le, make, minus, subst
from fencepost.prove.simplest import known, linear, norm
from fencepost.prove.statetable import State

_WAYS = 8  # in which a fact may be said of other symbols


def symbols_in(terms: list[Term]) -> set[str]:
    return {name for name, *_ in applications(terms) if name[0] == "x" or name.startswith("any.")}


@dataclass
class Union:
    """What two states have in common: terms over new symbols, each with its value in the one and in the other."""

    general: State
    s: State
    steps: list[int]  # by which symbols may count, largest first
    implied: Callable[[tuple[Term, ...], Term], bool]
    decided: Callable[[State, Term], bool]  # whether a fact is a decision that somebody will ask for
    groups: list[tuple[str, Term, Term, int]] = field(default_factory=list)

    def unify(self, a: Term, b: Term) -> Term:
        """A term that is `a` in the one state and `b` in the other."""
        if a == b and not symbols_in([a]):
            return a
        for symbol, one, other, steps in self.groups:
            for factor in self._factors(a, b, one, other, steps):
                away = norm(minus(a, ("*", factor, one)))
                if away == norm(minus(b, ("*", factor, other))) and not symbols_in([away]):
                    return norm(("+", ("*", factor, symbol), away))
        if isinstance(a, tuple) and isinstance(b, tuple) and a[0] == b[0] in ("<=", "="):
            return norm((a[0], self.unify(norm(minus(*a[1:])), norm(minus(*b[1:]))), 0))
        if isinstance(a, tuple) and isinstance(b, tuple) and a[0] == b[0] and len(a) == len(b) and a[0] != "*":
            kinds, others = ([(x[0] if isinstance(x, tuple) else type(x)) for x in t[1:]] for t in (a, b))
            if a[0] != "+" or (kinds == others and {*kinds} - {str, int, "*"}):
                return norm((a[0], *(self.unify(x, y) for x, y in zip(a[1:], b[1:], strict=True))))
        symbol = f"xn{len(self.groups)}"
        (parts, k), (theirs, other) = linear(a), linear(b)
        factors = [*parts.values(), *theirs.values()]
        for steps in self.steps:
            rest = k % steps
            if other % steps == rest and not any(c % steps for c in factors):
                break
        self.groups.append((symbol, divided(a, rest, steps), divided(b, rest, steps), steps))
        return norm(("+", ("*", steps, symbol), rest))

    @staticmethod
    def _factors(a: Term, b: Term, one: Term, other: Term, steps: int) -> dict[int, None]:
        """By which factors a term may follow another."""
        found = dict.fromkeys((1, -1, steps, -steps))
        grown, by = norm(minus(b, a)), norm(minus(other, one))
        if isinstance(grown, int) and isinstance(by, int) and by and grown % by == 0:
            found[grown // by] = None
        for (parts, _), (others, _) in ((linear(a), linear(one)), (linear(b), linear(other))):
            found |= {parts[x] // c: None for x, c in others.items() if x in parts and parts[x] % c == 0}
        found.pop(0, None)
        return found

    def facts(self, theirs: tuple[Term, ...], learns: bool) -> tuple[Term, ...] | None:
        """The facts that hold in both; None if what is decided of unknown functions differs."""
        sides = ({z: a for z, a, *_ in self.groups}, {z: b for z, _, b, _ in self.groups})
        known_ = (self.general.facts, theirs)
        found: dict[Term, None] = {}
        for z, a, b, _ in self.groups:
            for bound in (norm(le(k, z)) for k in ((a, b, 0) if learns else (0,)) if isinstance(k, int)):
                held = zip(known_, sides, strict=True)
                if all(self.implied(some, subst(side)(bound)) for some, side in held):
                    found[bound] = None
        for state, side, some, other, there in (
            (self.general, sides[0], self.general.facts, theirs, sides[1]),
            (self.s, sides[1], theirs, self.general.facts, sides[0]),
        ):
            for fact in some:
                kept = [c for c in self._said(fact, side) if self.implied(other, subst(there)(c))]
                if not kept and self.decided(state, fact):
                    return None
                if learns or some is not theirs:
                    found |= dict.fromkeys(kept)
        facts: tuple[Term, ...] = ()
        for fact in found:
            if not known(fact, facts):
                facts = (*(f for f in facts if not known(f, (fact,))), fact)
        return facts

    def _said(self, fact: Term, side: dict[str, Term]) -> Iterator[Term]:
        """A fact about one of the states in the words of both."""
        choices: dict[str, list[tuple[Term, int]]] = {}
        for symbol, value in side.items():
            parts, constant = linear(value)
            if len(parts) == 1 and (old := next(iter(parts)))[0] == "x":
                choices.setdefault(old, []).append((minus(symbol, constant), parts[old]))
        about = sorted(symbols_in([fact]))
        for chosen in islice(product(*(choices.get(old, ()) for old in about)), _WAYS):
            said = rewritten(fact, dict(zip(about, chosen, strict=True)))
            if said is None:
                continue
            groups = [(z, steps) for z, _, _, steps in self.groups if isinstance(side[z], int)]
            ways = [("*", steps, minus(symbol, side[symbol])) for symbol, steps in groups]
            for form in dict.fromkeys([said, *(norm(called(said, away)) for away in ways)]):
                yield form
                for away in ways:
                    yield from moved(form, away)


def rewritten(fact: Term, values: dict[str, tuple[Term, int]]) -> Term | None:
    """A fact in which symbols are quotients, without a rest; None if it cannot be written so."""
    if all(divisor in (1, -1) for _, divisor in values.values()):
        return norm(subst({old: norm(("*", divisor, term)) for old, (term, divisor) in values.items()})(fact))
    if fact[0] != "<=":
        return None
    by = lcm(*(divisor for _, divisor in values.values()))
    total: list[Term] = []
    for atom, factor in linear(fact[1])[0].items():
        term, divisor = values.get(atom, (atom, 1))
        if atom not in values and symbols_in([atom]):
            return None
        total.append(("*", factor * by // divisor, term))
    return norm(("<=", ("+", *total), by * fact[2]))


def called(term: Term, away: Term) -> Term:
    """A term in which unknown functions are called for numbers that are `away`."""
    if isinstance(term, tuple) and term[0][:2] == "f.":
        return (term[0], *(("+", t, away) if isinstance(t, int) else t for t in term[1:]))
    return (term[0], *(called(t, away) for t in term[1:])) if isinstance(term, tuple) else term


def moved(fact: Term, away: Term) -> Iterator[Term]:
    """A comparison with a number, taken to be one with its distance to something that is `away`."""
    inner = fact[1] if fact[0] == "not" else fact
    if inner[0] in ("<=", "="):
        for factor in (1, -1):
            other = (inner[0], inner[1], ("+", inner[2], ("*", factor, away)))
            if len(linear(minus(*other[1:]))[0]) <= max(3, len(linear(inner[1])[0])):
                yield norm(("not", other) if fact[0] == "not" else other)


def valued(term: Term, values: dict[str, int]) -> Term:
    """A term for some values of its symbols."""
    if isinstance(term, tuple):
        return make(term[0], *(valued(part, values) for part in term[1:]))
    return values.get(term, term)


def divided(a: Term, rest: int, modulus: int) -> Term:
    parts, constant = linear(a)
    return norm(("+", *(("*", c // modulus, p) for p, c in parts.items()), (constant - rest) // modulus))
