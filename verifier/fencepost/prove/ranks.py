"""Ranks: how often was something executed before the trip `x` of a loop, as a formula in x?

`Summation.before(body, x)` finds the sum of `body` over the trips 0..x-1.  Counts over residues and intervals have
closed forms; sums along a running counter telescope (the flattening of loop nests); what is left gets a name, an
*opaque sum*, of which only the recurrence S(0) = 0, S(x + 1) = S(x) + body(x) is known.  Nothing here needs to be
trusted: every formula is proved by induction afterwards (`closed_form`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import lcm

from fencepost.prove.rewrite import Known, Replacement, Substitution, substitute
from fencepost.prove.terms import (
    ZERO,
    Cond,
    Lin,
    apply,
    choose,
    conjoin,
    const,
    disjoin,
    div,
    eq,
    indicator,
    largest,
    le,
    lt,
    negate,
    smallest,
    symbol,
)

_PERIOD = 60  # the largest period of a guard that is counted residue by residue
_NEAR = 4  # how far a sum is unfolded
_SPLITS = 6  # how often a disjunction or inequality in one guard is split


@dataclass(frozen=True, slots=True)
class Sum:
    """An opaque sum: `name(x, *others)` is the sum of `body` over its first symbol from 0 to x - 1."""

    name: str
    symbols: tuple[str, ...]
    body: Lin

    @property
    def grows(self) -> bool:
        """Whether no summand is ever negative, by its form alone."""
        low = self.body.bounds[0]
        return low is not None and low >= 0


@dataclass(slots=True)
class Sums:
    """The opaque sums of one kernel; equal bodies share a name, also across agents."""

    by_name: dict[str, Sum] = field(default_factory=dict)
    _by_text: dict[str, Sum] = field(default_factory=dict)

    def name(self, body: Lin, index: str) -> Lin:
        """The sum of `body` over `index` from 0 to `index` - 1, as an applied function."""
        others = sorted(s for s in body.symbols if is_index(s) and s != index)
        formal = tuple(f"${i}" for i in range(len(others) + 1))
        renamed = substitute(body, dict(zip((index, *others), map(symbol, formal), strict=True)), self.rebuild)
        found = self._by_text.get(renamed.text)
        if found is None:
            found = Sum(f"sum.{len(self.by_name)}", formal, renamed)
            self._by_text[renamed.text] = self.by_name[found.name] = found
        return apply(found.name, tuple(map(symbol, (index, *others))))

    def step(self, name: str, terms: tuple[Lin, ...]) -> Lin:
        """The summand at `terms`."""
        found = self.by_name[name]
        return substitute(found.body, dict(zip(found.symbols, terms, strict=True)), self.rebuild)

    def rebuild(self, name: str, terms: tuple[Lin, ...]) -> Lin:
        """An applied function; a sum at x + 1 or x - 1 is written as the sum at x and a summand."""
        if name not in self.by_name:
            return apply(name, terms)
        at, others = terms[0], terms[1:]
        extra = ZERO
        for _ in range(_NEAR):
            if at.value == 0:
                return extra
            if at.constant > 0:
                at = at - 1
                extra = extra + self.step(name, (at, *others))
            elif at.constant < 0:
                extra = extra - self.step(name, (at, *others))
                at = at + 1
        return apply(name, (at, *others)) + extra


def is_index(name: str) -> bool:
    """Whether a symbol is a loop index or stands for a value at the start of a trip; parameters are neither."""
    return "@" in name or name.startswith("$")


@dataclass(slots=True)
class Summation:
    """Sums over the trips of loops."""

    sums: Sums
    _memory: dict[tuple[str, str, str], Lin] = field(default_factory=dict)

    def before(self, body: Lin, index: str, inside: Known, outside: Known) -> Lin:
        """The sum of `body` over the trips 0..`index` - 1, as a term in `index`.

        `inside` holds facts about every trip, `outside` facts about every value of `index` up to the trip count.
        """
        body = inside.lin(body)
        if body.value is not None:
            return symbol(index) * body.value
        key = (body.text, index, " ".join(f.text for f in outside.facts))
        found = self._memory.get(key)
        if found is None:
            found = self._memory[key] = outside.lin(self._before(body, index, inside, outside))
        return found

    def _before(self, body: Lin, index: str, inside: Known, outside: Known) -> Lin:
        at = symbol(index)
        body = _lifted(body, index)
        result = at * body.constant
        rest = ZERO
        queue = list(body.parts)
        while queue:
            atom, k = queue.pop()
            if atom.kind != "choice" or atom.condition is None:
                rest = rest + Lin(0, ((atom, k),))
                continue
            condition, (one, other) = atom.condition, atom.terms
            pinned = None if (one - other).value is not None else _pinned(condition, index, inside)
            if pinned is not None:
                condition, one, other = pinned[0], *((one, other) if pinned[1] else (other, one))
            difference = one - other
            if index not in condition.symbols:
                parts = (self.before(t, index, inside.extended([c]), outside) for t, c in
                         ((one, condition), (other, negate(condition))))  # fmt: skip
                result = result + choose(condition, *parts) * k
                continue
            found: Lin | None = None
            found = self._at_point(condition, difference, index)
            if found is None and difference.value is not None:
                counted = self.count(_settled(condition, inside), index, outside)
                found = None if counted is None else counted * difference.value
            if found is None:
                rest = rest + Lin(0, ((atom, k),))
                continue
            result = result + found * k + at * (other.constant * k)
            queue += [(a, j * k) for a, j in other.parts]
        return result + self._rest(rest, index, inside)

    def _at_point(self, condition: Cond, value: Lin, index: str) -> Lin | None:
        """The sum of `value` over the trips that satisfy a condition, if it contains an equation for the index."""
        for part in _parts(condition):
            where = _solved(part, index)
            if where is not None:
                there = Substitution({index: where}, self.sums.rebuild)
                holds = conjoin((le(-where), lt(where, symbol(index)), there.cond(condition)))
                return choose(holds, there.lin(value), ZERO)
        return None

    # -------------------------------------------------------------------------------------------- telescoping

    def _rest(self, rest: Lin, index: str, inside: Known) -> Lin:
        """What has no closed form of its own: differences F(x + 1) - F(x), then opaque sums."""
        result = ZERO
        following = Substitution({index: symbol(index) + 1}, self.sums.rebuild)
        start = Substitution({index: ZERO}, self.sums.rebuild)
        while True:
            best: tuple[Lin, Lin] | None = None
            for atom, k in rest.parts:
                if index not in atom.symbols:
                    continue
                here = Lin(0, ((atom, 1),))
                shorter = rest + (inside.lin(following.lin(here)) - here) * k
                if len(shorter.parts) < len(rest.parts if best is None else best[1].parts):
                    best = (here - start.lin(here)) * k, shorter
            if best is None:
                break
            result, rest = result - best[0], best[1]
        result = result + symbol(index) * rest.constant
        for atom, k in rest.parts:
            result = result + self.sums.name(Lin(0, ((atom, 1),)), index) * k
        return result

    # -------------------------------------------------------------------------------------------- counting

    def count(self, condition: Cond, index: str, outside: Known) -> Lin | None:
        """How many trips before `index` satisfy the condition; None without a closed form."""
        return self._count(_parts(condition), index, outside, _SPLITS)

    def _count(self, parts: tuple[Cond, ...], index: str, outside: Known, splits: int) -> Lin | None:
        fixed = [p for p in parts if index not in p.symbols]
        if any(a.kind == "apply" and index in a.symbols for p in parts for a in p.atoms()):
            return self._clocked(parts, index, outside)
        low, high = list[Lin](), list[Lin]()
        cyclic: list[Cond] = []
        for part in (p for p in parts if index in p.symbols):
            sides = _interval(part, index)
            if sides is not None:
                low += sides[0]
                high += sides[1]
            elif _cycles(part, index):
                cyclic.append(part)
            elif part.kind in ("or", "ne"):
                return self._split(part, parts, index, outside, splits)
            else:
                return None
        found = self._lattice(cyclic, low, high, index, outside)
        return None if found is None else choose(conjoin(fixed), found, ZERO)

    def _split(self, part: Cond, parts: tuple[Cond, ...], index: str, outside: Known, splits: int) -> Lin | None:
        """Count a disjunction as disjoint cases, an inequality as everything but the equal case."""
        if splits == 0:
            return None
        others = tuple(p for p in parts if p is not part)
        if part.kind == "ne":
            all_ = self._count(others, index, outside, splits - 1)
            equal = self._count((*others, negate(part)), index, outside, splits - 1)
            return None if all_ is None or equal is None else all_ - equal
        first, rest = part.parts[0], part.parts[1:]
        one = self._joined(others, (first,), index, outside, splits - 1)
        two = self._joined(others, (negate(first), disjoin(rest)), index, outside, splits - 1)
        return None if one is None or two is None else one + two

    def _joined(
        self, one: tuple[Cond, ...], two: tuple[Cond, ...], index: str, outside: Known, splits: int
    ) -> Lin | None:
        joined = conjoin((*one, *two))
        return ZERO if joined.kind == "false" else self._count(_parts(joined), index, outside, splits)

    def _lattice(self, cyclic: list[Cond], low: list[Lin], high: list[Lin], index: str, outside: Known) -> Lin | None:
        """The points below the index of an interval whose residues satisfy the cyclic conditions.

        The count is F(index) - F(0) for a function F of the position in the interval, so that counts of nested loops
        telescope.
        """
        found = residues(cyclic, index, self.sums) if cyclic else (1, ZERO, [0])
        if found is None:
            return None
        bottom = _extreme(low, outside, largest)
        top = _extreme(high, outside, smallest)
        if bottom is not None and top is not None and not outside.nonpositive(bottom - top):
            top = outside.lin(largest(top, bottom))
        period, offset, good = found
        total = ZERO
        for r in good:
            for at, sign in ((symbol(index), 1), (ZERO, -1)):
                place = at if bottom is None else bottom + outside.positive(at - bottom)
                place = place if top is None else place - outside.positive(at - top)
                total = total + div(place + offset - r + (period - 1), period) * sign
        return total

    def _clocked(self, parts: tuple[Cond, ...], index: str, outside: Known) -> Lin | None:
        """Trips on which an opaque guard holds, as trips of the counter of that guard."""
        dependent = [p for p in parts if index in p.symbols]
        fixed = conjoin(p for p in parts if index not in p.symbols)
        counted = [p for p in dependent if any(a.name in self.sums.by_name and index in a.symbols for a in p.atoms())]
        guard = conjoin(p for p in dependent if p not in counted)
        if guard.kind == "true":
            return None
        clock = self.sums.name(indicator(guard), index).parts[0][0]
        counter = "$clock"
        change = Replacement(clock, symbol(counter), self.sums.rebuild)
        changed = conjoin(map(change.cond, counted))
        if index in changed.symbols:
            return None
        found = self._count(_parts(changed), counter, outside.extended([le(-symbol(counter))]), _SPLITS)
        if found is None:
            return None
        return choose(fixed, substitute(found, {counter: Lin(0, ((clock, 1),))}, self.sums.rebuild), ZERO)


# ------------------------------------------------------------------------------------------------ shapes of guards


def _parts(condition: Cond) -> tuple[Cond, ...]:
    return condition.parts if condition.kind == "and" else () if condition.kind == "true" else (condition,)


def _solved(condition: Cond, index: str) -> Lin | None:
    """The value of `index` where an equation holds, if it is one for a plain `index`."""
    if condition.kind != "eq" or condition.term is None:
        return None
    slope, rest = _slope(condition.term, index)
    return None if slope not in (1, -1) or rest is None else rest * -slope


def _settled(condition: Cond, inside: Known) -> Cond:
    """A conjunction whose comparisons were used to simplify the rest."""
    parts = _parts(condition)
    plain = [p for p in parts if p.kind in ("le", "eq")]
    rest = [p for p in parts if p.kind not in ("le", "eq")] + [p for p in plain if _composite(p)]
    plain = [p for p in plain if not _composite(p)]
    if not plain or not rest:
        return condition
    known = inside.extended(plain)
    return conjoin((*plain, *map(known.cond, rest)))


def _composite(condition: Cond) -> bool:
    """Whether a comparison is about more than symbols."""
    return condition.term is not None and any(a.kind not in ("symbol", "apply") for a, _ in condition.term.parts)


def _pinned(condition: Cond, index: str, inside: Known) -> tuple[Cond, bool] | None:
    """A comparison that holds on one trip only (True), or on all but one (False), with the equation of that trip."""
    if condition.kind != "le" or condition.term is None or index not in condition.symbols:
        return None
    if inside.nonpositive(-condition.term):
        return eq(condition.term), True
    if inside.nonpositive(condition.term - 1):
        return eq(condition.term - 1), False
    return None


def _slope(term: Lin, index: str) -> tuple[int, Lin | None]:
    """Coefficient of `index` and the rest, None if the rest depends on the index too."""
    slope, parts = 0, []
    for atom, k in term.parts:
        if atom.kind == "symbol" and atom.name == index:
            slope = k
        elif index in atom.symbols:
            return 0, None
        else:
            parts.append((atom, k))
    return slope, Lin(term.constant, tuple(parts))


def _interval(condition: Cond, index: str) -> tuple[list[Lin], list[Lin]] | None:
    """Lower bounds and exclusive upper bounds of the index that a comparison means."""
    if condition.kind not in ("le", "eq") or condition.term is None:
        return None
    term = condition.term
    if condition.kind == "le" and len(term.parts) == 1 and term.parts[0][0].kind == "div":
        (atom, k), c = term.parts[0], term.constant
        # k * (y // m) + c <= 0  iff  y <= m * ((-c) // k) + m - 1, or for k < 0  y >= m * ceil(c / -k)
        y, m = atom.terms[0], atom.number
        term = y - (m * (-c // k) + m - 1) if k > 0 else const(m * -(-c // -k)) - y
    slope, rest = _slope(term, index)
    if rest is None or slope == 0:
        return None
    if condition.kind == "eq":
        if slope not in (1, -1):
            return None
        point = rest * -slope
        return [point], [point + 1]
    if slope > 0:
        return [], [div(-rest, slope) + 1]
    return [div(rest - slope - 1, -slope)], []


def _cycles(condition: Cond, index: str) -> bool:
    """Whether the condition depends on the index through remainders only."""
    return _period(condition, index) is not None


def _period(condition: Cond, index: str) -> int | None:
    period = 1
    for atom in condition.atoms():
        if index in atom.symbols and atom.kind in ("mod", "div"):
            period = lcm(period, atom.number)
            if atom.kind == "div" or any(index in a.symbols and a.kind != "symbol" for a in atom.terms[0].atoms()):
                period *= atom.number
    if period == 1 or period > _PERIOD * 4:
        return None
    for candidate in _divisors(period):
        if candidate <= _PERIOD and Substitution({index: symbol(index) + candidate}).cond(condition) == condition:
            return candidate
    return None


def _divisors(n: int) -> list[int]:
    return [d for d in range(2, n + 1) if n % d == 0]


def residues(conditions: list[Cond], index: str, sums: Sums) -> tuple[int, Lin, list[int]] | None:
    """(period, offset, residues): the conditions hold iff (index + offset) % period is one of the residues."""
    periods = [_period(c, index) for c in conditions]
    if any(p is None for p in periods):
        return None
    period = lcm(*(p for p in periods if p is not None))
    if period > _PERIOD:
        return None
    both = conjoin(conditions)
    offset = ZERO
    for atom in both.atoms():
        if atom.kind == "mod" and index in atom.symbols:
            slope, rest = _slope(atom.terms[0], index)
            if rest is not None and slope in (1, atom.number - 1):
                offset = rest - rest.constant if slope == 1 else -(rest - rest.constant)
                break
    good = []
    for r in range(period):
        value = Substitution({index: const(r) - offset}, sums.rebuild).cond(both)
        if value.kind == "true":
            good.append(r)
        elif value.kind != "false":
            return None
    return period, offset, good


def _extreme(terms: list[Lin], known: Known, join: Callable[[Lin, Lin], Lin]) -> Lin | None:
    found: Lin | None = None
    for term in terms:
        found = term if found is None else known.lin(join(found, term))
    return found


def _lifted(term: Lin, index: str) -> Lin:
    """The term with choices that depend on the index taken out of quotients, remainders and positive parts."""
    result = const(term.constant)
    for atom, k in term.parts:
        inside = atom.terms[0].atoms() if atom.kind in ("div", "mod", "pos") else ()
        choice = next((a for a in inside if a.condition is not None and index in a.condition.symbols), None)
        if choice is None or choice.condition is None:
            result = result + Lin(0, ((atom, k),))
            continue
        one, other = (_lifted(Replacement(choice, branch).lin(Lin(0, ((atom, 1),))), index) for branch in choice.terms)
        result = result + (other + choose(choice.condition, one - other, ZERO)) * k
    return result


__all__ = ["Sum", "Summation", "Sums", "is_index", "residues"]
