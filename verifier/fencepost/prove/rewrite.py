"""Rewriting: what does a term become when symbols get values, or when facts are known?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fencepost.prove.terms import (
    FALSE,
    TRUE,
    Atom,
    Cond,
    Interval,
    Lin,
    apply,
    bound,
    choose,
    conjoin,
    const,
    disjoin,
    div,
    eq,
    le,
    mod,
    negate,
    pos,
)

Rewriter = Callable[[str, tuple[Lin, ...]], Lin]


def substitute(term: Lin, values: Mapping[str, Lin], rebuild: Rewriter = apply) -> Lin:
    """The term with symbols replaced; `rebuild` makes applied functions anew."""
    return Substitution(values, rebuild).lin(term)


class Substitution:
    """A simultaneous replacement of symbols, with a memory of what was rewritten."""

    def __init__(self, values: Mapping[str, Lin], rebuild: Rewriter = apply) -> None:
        self.values = values
        self.names = frozenset(values)
        self.rebuild = rebuild
        self._lins: dict[str, Lin] = {}
        self._conds: dict[str, Cond] = {}

    def touches(self, symbols: frozenset[str]) -> bool:
        """Whether a term with these symbols can change."""
        return not self.names.isdisjoint(symbols)

    def lin(self, term: Lin) -> Lin:
        if not self.touches(term.symbols):
            return term
        text = term.text
        found = self._lins.get(text)
        if found is None:
            found = const(term.constant)
            for atom, k in term.parts:
                found = found + self.atom(atom) * k
            self._lins[text] = found
        return found

    def atom(self, atom: Atom) -> Lin:
        if not self.touches(atom.symbols):
            return Lin(0, ((atom, 1),))
        match atom.kind:
            case "symbol":
                return self.values.get(atom.name, Lin(0, ((atom, 1),)))
            case "div":
                return div(self.lin(atom.terms[0]), atom.number)
            case "mod":
                return mod(self.lin(atom.terms[0]), atom.number)
            case "pos":
                return self.positive(self.lin(atom.terms[0]))
            case "choice":
                assert atom.condition is not None
                return choose(self.cond(atom.condition), self.lin(atom.terms[0]), self.lin(atom.terms[1]))
        return self.rebuild(atom.name, tuple(map(self.lin, atom.terms)))

    def positive(self, term: Lin) -> Lin:
        return pos(term)

    def cond(self, cond: Cond) -> Cond:
        if not self.touches(cond.symbols):
            return cond
        found = self._conds.get(cond.text)
        if found is None:
            match cond.kind:
                case "and":
                    found = conjoin(map(self.cond, cond.parts))
                case "or":
                    found = disjoin(map(self.cond, cond.parts))
                case _:
                    assert cond.term is not None
                    found = self.compare(cond.kind, self.lin(cond.term))
            self._conds[cond.text] = found
        return found

    def compare(self, kind: str, term: Lin) -> Cond:
        """`term` <= 0, = 0 or /= 0."""
        return le(term) if kind == "le" else eq(term) if kind == "eq" else negate(eq(term))


class Replacement(Substitution):
    """One atom replaced by a term, wherever it stands."""

    def __init__(self, atom: Atom, by: Lin, rebuild: Rewriter = apply) -> None:
        super().__init__({}, rebuild)
        self.target = atom
        self.by = by

    def touches(self, symbols: frozenset[str]) -> bool:
        return self.target.symbols <= symbols

    def atom(self, atom: Atom) -> Lin:
        return self.by if atom.text == self.target.text else super().atom(atom)


class Known(Substitution):
    """Facts that hold where a term is used; rewriting removes what they decide.

    The reasoning is cheap and incomplete: bounds of atoms, and sums of at most two facts.
    """

    def __init__(self, facts: Iterable[Cond] = ()) -> None:
        super().__init__({})
        self._low: dict[str, int] = {}
        self._high: dict[str, int] = {}
        self.facts: list[Cond] = []
        self._forms: list[Lin] = []  # each <= 0
        self._texts: set[str] = set()
        for fact in facts:
            self.add(fact)

    def touches(self, symbols: frozenset[str]) -> bool:
        return bool(symbols)

    def add(self, fact: Cond) -> None:
        """Assume a condition; disjunctions are kept but not reasoned with."""
        if fact.kind == "and":
            for part in fact.parts:
                self.add(part)
            return
        if fact.kind == "true" or fact.text in self._texts:
            return
        self._lins.clear()
        self._conds.clear()
        self.facts.append(fact)
        self._texts.add(fact.text)
        if fact.term is None or fact.kind == "ne":
            return
        self._form(fact.term)
        if fact.kind == "eq":
            self._form(-fact.term)

    def extended(self, facts: Iterable[Cond]) -> Known:
        """These facts and more."""
        found = Known()
        found._low, found._high = dict(self._low), dict(self._high)
        found.facts, found._forms, found._texts = list(self.facts), list(self._forms), set(self._texts)
        for fact in facts:
            found.add(fact)
        return found

    def _form(self, term: Lin) -> None:
        self._forms.append(term)
        if len(term.parts) == 1:
            (atom, k), c = term.parts[0], term.constant
            if k > 0:
                high = -c // k
                self._high[atom.text] = min(high, self._high.get(atom.text, high))
            else:
                low = _ceil(c, -k)  # -|k| atom + c <= 0
                self._low[atom.text] = max(low, self._low.get(atom.text, low))

    def bounds(self, term: Lin) -> Interval:
        """Bounds of a term from bounds of its atoms."""
        return bound(term, self._bounds)

    def _bounds(self, atom: Atom) -> Interval:
        low, high = atom.bounds
        known_low, known_high = self._low.get(atom.text), self._high.get(atom.text)
        if known_low is not None:
            low = known_low if low is None else max(low, known_low)
        if known_high is not None:
            high = known_high if high is None else min(high, known_high)
        if atom.kind == "pos" and high is None:
            above = self.bounds(atom.terms[0])[1]
            high = None if above is None else max(above, 0)
        if atom.kind == "div":
            a, b = self.bounds(atom.terms[0])
            low = a // atom.number if low is None and a is not None else low
            high = b // atom.number if high is None and b is not None else high
        return low, high

    def nonpositive(self, term: Lin) -> bool:
        """Whether the facts imply `term` <= 0."""
        high = self.bounds(term)[1]
        if high is not None and high <= 0:
            return True
        near = [f for f in self._forms if _share(f, term)]
        rests = [term - f for f in near]
        if any((high := self.bounds(rest)[1]) is not None and high <= 0 for rest in rests):
            return True
        for rest in rests:
            if not rest.parts or len(rest.parts) > len(term.parts) + 1:
                continue
            for other in self._forms:
                if _share(other, rest):
                    high = self.bounds(rest - other)[1]
                    if high is not None and high <= 0:
                        return True
        return False

    def implies(self, cond: Cond) -> bool:
        """Whether the facts imply the condition, as far as cheap reasoning sees."""
        return self.cond(cond).kind == "true"

    def positive(self, term: Lin) -> Lin:
        if self.nonpositive(-term):
            return term
        if self.nonpositive(term):
            return const(0)
        return pos(term)

    def compare(self, kind: str, term: Lin) -> Cond:
        plain = super().compare(kind, term)
        if plain.text in self._texts:
            return TRUE
        if plain.kind in ("true", "false", "and", "or"):
            return plain
        if negate(plain).text in self._texts:
            return FALSE
        assert plain.term is not None
        term = plain.term
        if kind == "le":
            return TRUE if self.nonpositive(term) else FALSE if self.nonpositive(-term + 1) else plain
        apart = self.nonpositive(term + 1) or self.nonpositive(-term + 1)
        if apart:
            return FALSE if kind == "eq" else TRUE
        if self.nonpositive(term) and self.nonpositive(-term):
            return TRUE if kind == "eq" else FALSE
        return plain


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _share(one: Lin, other: Lin) -> bool:
    texts = {a.text for a, _ in other.parts}
    return any(a.text in texts for a, _ in one.parts)
