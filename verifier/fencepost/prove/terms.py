"""Terms: how are integers and conditions over parameters and loop indices written, so that equal ones look equal?

An integer term is a linear form over *atoms* (a symbol, a floor quotient or remainder by a constant, the positive part
of a term, a choice, an applied function).  A condition is a comparison of a linear form with 0, or a conjunction or
disjunction.  Construction normalises; every term carries its SMT-LIB text, and two terms are equal exactly if their
texts are.  Quotients and remainders have positive constant divisors only, where SMT-LIB's Euclidean forms, Python's
floor forms and the device's agree for non-negative operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import gcd

Interval = tuple[int | None, int | None]
_FREE: Interval = (None, None)


class Atom:
    """A non-linear constituent of a linear form; compared by `text`.

    `kind`: "symbol" (`name`), "div" and "mod" (`terms[0]` by `number`), "pos" (`terms[0]` or 0, whichever is larger),
    "choice" (`terms[0]` if `condition` else `terms[1]`), "apply" (`name` of `terms`).  A function whose name holds a
    "?" stands for something yet to be found; its name counts as a symbol.
    """

    __slots__ = ("_bounds", "condition", "kind", "name", "number", "symbols", "terms", "text")

    def __init__(
        self, kind: str, text: str, *, name: str = "", number: int = 0, terms: tuple[Lin, ...] = (),
        condition: Cond | None = None,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.text = text
        self.name = name
        self.number = number
        self.terms = terms
        self.condition = condition
        self._bounds: Interval | None = None
        found: frozenset[str] = frozenset((name,)) if kind == "symbol" or "?" in name else frozenset()
        for term in terms:
            found |= term.symbols
        self.symbols = found if condition is None else found | condition.symbols

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text

    @property
    def bounds(self) -> Interval:
        """Bounds that hold whatever the symbols are."""
        if self._bounds is None:
            self._bounds = self._find_bounds()
        return self._bounds

    def _find_bounds(self) -> Interval:
        match self.kind:
            case "mod":
                return 0, self.number - 1
            case "div":
                low, high = self.terms[0].bounds
                return (
                    None if low is None else low // self.number,
                    None if high is None else high // self.number,
                )
            case "pos":
                low, high = self.terms[0].bounds
                return max(low or 0, 0), None if high is None else max(high, 0)
            case "choice":
                (a, b), (c, d) = self.terms[0].bounds, self.terms[1].bounds
                return (
                    None if a is None or c is None else min(a, c),
                    None if b is None or d is None else max(b, d),
                )
        return _FREE


class Lin:
    """A linear form: `constant` plus the sum of coefficient times atom; compared by `text`."""

    __slots__ = ("_bounds", "_text", "constant", "parts", "symbols")

    def __init__(self, constant: int, parts: tuple[tuple[Atom, int], ...]) -> None:
        self.constant = constant
        self.parts = parts
        self._text: str | None = None
        self._bounds: Interval | None = None
        if not parts:
            self.symbols: frozenset[str] = frozenset()
        elif len(parts) == 1:
            self.symbols = parts[0][0].symbols
        else:
            self.symbols = frozenset().union(*(a.symbols for a, _ in parts))

    @property
    def text(self) -> str:
        if self._text is None:
            items = [_scaled(atom.text, k) for atom, k in self.parts]
            if self.constant or not items:
                items.append(number_text(self.constant))
            self._text = items[0] if len(items) == 1 else f"(+ {' '.join(items)})"
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lin) and other.constant == self.constant and other.parts == self.parts

    def __hash__(self) -> int:
        return hash((self.constant, self.parts))

    def __repr__(self) -> str:
        return self.text

    def __add__(self, other: Lin | int) -> Lin:
        if isinstance(other, int):
            return Lin(self.constant + other, self.parts) if other else self
        if not other.parts:
            return self + other.constant
        if not self.parts:
            return other + self.constant
        return linear(self.constant + other.constant, (*self.parts, *other.parts))

    def __neg__(self) -> Lin:
        return self * -1

    def __sub__(self, other: Lin | int) -> Lin:
        return self + (-other)

    def __mul__(self, factor: int) -> Lin:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Lin(self.constant * factor, tuple((a, k * factor) for a, k in self.parts))

    @property
    def value(self) -> int | None:
        """The value of a constant form, else None."""
        return None if self.parts else self.constant

    @property
    def bounds(self) -> Interval:
        """Bounds that hold whatever the symbols are."""
        if self._bounds is None:
            self._bounds = bound(self, lambda atom: atom.bounds)
        return self._bounds

    def atoms(self) -> Iterator[Atom]:
        """Every atom inside, outer ones first, each once."""
        return _atoms([a for a, _ in self.parts])


class Cond:
    """A condition; compared by `text`.

    `kind`: "true", "false", "le" (`term` <= 0), "eq" (`term` = 0), "ne", "and", "or" (`parts`).
    """

    __slots__ = ("_negation", "kind", "parts", "symbols", "term", "text")

    def __init__(self, kind: str, text: str, *, term: Lin | None = None, parts: tuple[Cond, ...] = ()) -> None:
        self.kind = kind
        self.text = text
        self._term_check(term)
        self.term = term
        self.parts = parts
        self._negation: Cond | None = None
        if term is not None:
            self.symbols = term.symbols
        else:
            self.symbols = frozenset().union(*(p.symbols for p in parts)) if parts else frozenset()

    def _term_check(self, term: Lin | None) -> None:
        assert (term is not None) == (self.kind in ("le", "eq", "ne"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cond) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text

    def atoms(self) -> Iterator[Atom]:
        """Every atom inside, each once."""
        return _atoms([a for t in self.terms() for a, _ in t.parts])

    def terms(self) -> Iterator[Lin]:
        """The linear forms that the condition compares with 0."""
        stack = [self]
        while stack:
            cond = stack.pop()
            if cond.term is not None:
                yield cond.term
            stack.extend(cond.parts)


def _atoms(start: list[Atom]) -> Iterator[Atom]:
    seen: set[str] = set()
    stack = start
    while stack:
        atom = stack.pop()
        if atom.text in seen:
            continue
        seen.add(atom.text)
        yield atom
        for term in atom.terms:
            stack.extend(a for a, _ in term.parts)
        if atom.condition is not None:
            stack.extend(a for t in atom.condition.terms() for a, _ in t.parts)


def number_text(value: int) -> str:
    """An integer as SMT-LIB text."""
    return str(value) if value >= 0 else f"(- {-value})"


def _scaled(text: str, k: int) -> str:
    return text if k == 1 else f"(- {text})" if k == -1 else f"(* {number_text(k)} {text})"


# ------------------------------------------------------------------------------------------------ integer terms


def linear(constant: int, parts: Iterable[tuple[Atom, int]]) -> Lin:
    """The linear form with these parts, like ones joined."""
    joined: dict[str, tuple[Atom, int]] = {}
    for atom, k in parts:
        known = joined.get(atom.text)
        joined[atom.text] = (atom, k if known is None else known[1] + k)
    return Lin(constant, tuple(joined[text] for text in sorted(joined) if joined[text][1]))


def const(value: int) -> Lin:
    return Lin(value, ())


ZERO, ONE = const(0), const(1)


def _single(atom: Atom) -> Lin:
    return Lin(0, ((atom, 1),))


def symbol(name: str) -> Lin:
    return _single(Atom("symbol", name, name=name))


def apply(name: str, terms: tuple[Lin, ...]) -> Lin:
    """An uninterpreted function of some terms."""
    text = f"({name} {' '.join(t.text for t in terms)})" if terms else name
    return _single(Atom("apply", text, name=name, terms=terms))


def bound(term: Lin, of: Callable[[Atom], Interval]) -> Interval:
    """Interval arithmetic over a linear form, given an interval for each atom."""
    low: int | None = term.constant
    high: int | None = term.constant
    for atom, k in term.parts:
        a, b = of(atom)
        if k < 0:
            a, b = b, a
        low = None if low is None or a is None else low + k * a
        high = None if high is None or b is None else high + k * b
        if low is None and high is None:
            break
    return low, high


def div(term: Lin, m: int) -> Lin:
    """`term // m` for a positive constant m."""
    assert m > 0
    if m == 1:
        return term
    outside = linear(term.constant // m, ((a, k // m) for a, k in term.parts if k // m))
    inside = Lin(term.constant % m, tuple((a, k % m) for a, k in term.parts if k % m))
    low, high = inside.bounds
    if low is not None and high is not None and low // m == high // m:
        return outside + low // m
    if len(inside.parts) == 1:
        atom, k = inside.parts[0]
        if atom.kind == "div" and k == 1:
            return outside + div(atom.terms[0] + inside.constant * atom.number, m * atom.number)
    return outside + _single(Atom("div", f"(div {inside.text} {m})", number=m, terms=(inside,)))


def mod(term: Lin, m: int) -> Lin:
    """`term % m` for a positive constant m."""
    assert m > 0
    if m == 1:
        return ZERO
    inside = _reduce(term, m)
    low, high = inside.bounds
    if low is not None and high is not None and low // m == high // m:
        return inside - low // m * m
    return _single(Atom("mod", f"(mod {inside.text} {m})", number=m, terms=(inside,)))


def _reduce(term: Lin, m: int) -> Lin:
    """A smaller form with the same remainder by m."""
    parts: list[tuple[Atom, int]] = []
    constant = term.constant
    again = False
    for atom, k in term.parts:
        if k % m == 0:
            continue
        if atom.kind == "mod" and (k * atom.number) % m == 0:
            inner = atom.terms[0] * k
            constant += inner.constant
            parts += inner.parts
            again = True
        else:
            parts.append((atom, k % m))
    found = linear(constant, parts)
    if again:
        return _reduce(found, m)
    return Lin(found.constant % m, tuple((a, k % m) for a, k in found.parts if k % m))


def pos(term: Lin) -> Lin:
    """`max(term, 0)`; of `pos(x)` and `pos(-x)` only one form exists."""
    low, high = term.bounds
    if low is not None and low >= 0:
        return term
    if high is not None and high <= 0:
        return ZERO
    if term.parts[0][1] < 0:
        return term + pos(-term)
    if len(term.parts) == 1 and term.parts[0][1] == 1 and term.constant <= 0 and term.parts[0][0].kind == "pos":
        return pos(term.parts[0][0].terms[0] + term.constant)
    text = f"(ite (<= {term.text} 0) 0 {term.text})"
    return _single(Atom("pos", text, terms=(term,)))


def largest(a: Lin, b: Lin) -> Lin:
    return b + pos(a - b)


def smallest(a: Lin, b: Lin) -> Lin:
    return a - pos(a - b)


def choose(condition: Cond, a: Lin, b: Lin) -> Lin:
    """`a if condition else b`."""
    if condition.kind == "true" or a == b:
        return a
    if condition.kind == "false":
        return b
    difference = a - b
    if condition.kind == "le" and condition.term is not None and difference.parts:
        for test, minimum in ((difference, True), (-difference, False)):
            gap = condition.term - test
            if gap.value is not None and 0 <= gap.value <= 1:
                return smallest(a, b) if minimum else largest(a, b)
    if difference.value is not None:
        return b + indicator(condition) * difference.value
    if condition.kind == "ne":
        condition, a, b = negate(condition), b, a
    if all(_indicates(atom) for atom, _ in (*a.parts, *b.parts)):
        return _distributed(condition, a) + _distributed(negate(condition), b)
    theirs = {atom.text: k for atom, k in b.parts}
    shared = Lin(0, tuple((atom, k) for atom, k in a.parts if theirs.get(atom.text) == k))
    return shared + _choice(condition, a - shared, b - shared)


def indicator(condition: Cond) -> Lin:
    """1 where the condition holds, else 0."""
    if condition.kind == "true":
        return ONE
    if condition.kind == "false":
        return ZERO
    return _choice(condition, ONE, ZERO)


def _indicates(atom: Atom) -> bool:
    return atom.kind == "choice" and atom.terms[0] == ONE and atom.terms[1] == ZERO


def _distributed(condition: Cond, term: Lin) -> Lin:
    """A sum of indicators where the condition holds, else 0."""
    found = indicator(condition) * term.constant
    for atom, k in term.parts:
        assert atom.condition is not None
        found = found + indicator(conjoin((condition, atom.condition))) * k
    return found


def _choice(condition: Cond, a: Lin, b: Lin) -> Lin:
    text = f"(ite {condition.text} {a.text} {b.text})"
    return _single(Atom("choice", text, terms=(a, b), condition=condition))


# ------------------------------------------------------------------------------------------------ conditions

TRUE, FALSE = Cond("true", "true"), Cond("false", "false")


def le(term: Lin) -> Cond:
    """`term <= 0`."""
    low, high = term.bounds
    if high is not None and high <= 0:
        return TRUE
    if low is not None and low > 0:
        return FALSE
    single = _lifted(term, le)
    if single is not None:
        return single
    g = gcd(*(k for _, k in term.parts))
    if g > 1:
        term = Lin(-(-term.constant // g), tuple((a, k // g) for a, k in term.parts))
    return Cond("le", f"(<= {term.text} 0)", term=term)


def lt(a: Lin, b: Lin) -> Cond:
    return le(a - b + 1)


def eq(a: Lin, b: Lin = ZERO) -> Cond:
    term = a - b
    low, high = term.bounds
    if low == high == 0:
        return TRUE
    if (low is not None and low > 0) or (high is not None and high < 0):
        return FALSE
    single = _lifted(term, eq)
    if single is not None:
        return single
    if _apart(term):
        return FALSE
    g = gcd(*(k for _, k in term.parts))
    if term.constant % g:
        return FALSE
    if term.parts[0][1] < 0:
        g = -g
    if g != 1:
        term = Lin(term.constant // g, tuple((a, k // g) for a, k in term.parts))
    return Cond("eq", f"(= {term.text} 0)", term=term)


def _apart(term: Lin) -> bool:
    """Whether `term` is the difference of two remainders by one number whose operands never agree."""
    if len(term.parts) != 2 or term.constant:
        return False
    (one, j), (two, k) = term.parts
    if one.kind != "mod" or two.kind != "mod" or one.number != two.number or j != -k:
        return False
    distance = (one.terms[0] - two.terms[0]).value
    return distance is not None and abs(j) == 1 and distance % one.number != 0


def _lifted(term: Lin, make: Callable[[Lin], Cond]) -> Cond | None:
    """A comparison of a lone choice between constants, decided per branch."""
    if len(term.parts) != 1:
        return None
    atom, k = term.parts[0]
    if atom.kind != "choice" or atom.condition is None:
        return None
    a, b = (make(t * k + term.constant) for t in atom.terms)
    if a.kind in ("true", "false") or b.kind in ("true", "false"):
        return disjoin((conjoin((atom.condition, a)), conjoin((negate(atom.condition), b))))
    return None


def negate(cond: Cond) -> Cond:
    """The negation, with negations pushed down to the comparisons."""
    if cond._negation is None:
        cond._negation = found = _negate(cond)
        if found._negation is None and found.kind not in ("true", "false"):
            found._negation = cond
    return cond._negation


def _negate(cond: Cond) -> Cond:
    match cond.kind:
        case "true":
            return FALSE
        case "false":
            return TRUE
        case "and":
            return disjoin(tuple(negate(p) for p in cond.parts))
        case "or":
            return conjoin(tuple(negate(p) for p in cond.parts))
    assert cond.term is not None
    if cond.kind == "le":
        return le(-cond.term + 1)
    kind, text = ("ne", f"(not {cond.text})") if cond.kind == "eq" else ("eq", f"(= {cond.term.text} 0)")
    return Cond(kind, text, term=cond.term)


def conjoin(conds: Iterable[Cond]) -> Cond:
    return _join(conds, "and", TRUE, FALSE)


def disjoin(conds: Iterable[Cond]) -> Cond:
    return _join(conds, "or", FALSE, TRUE)


def _join(conds: Iterable[Cond], kind: str, neutral: Cond, absorbing: Cond) -> Cond:
    found: dict[str, Cond] = {}
    nested = False
    for cond in conds:
        for part in cond.parts if cond.kind == kind else (cond,):
            if part.kind == absorbing.kind:
                return absorbing
            if part.kind != neutral.kind:
                found[part.text] = part
                nested |= part.kind in ("and", "or")
    if not found:
        return neutral
    if len(found) == 1:
        return next(iter(found.values()))
    parts = tuple(found.values())
    if any(p.kind in ("le", "eq", "ne") and negate(p).text in found for p in parts):
        return absorbing
    if nested:
        simpler = [_resolved(p, found) for p in parts]
        if any(a is not b for a, b in zip(simpler, parts, strict=True)):
            return _join((p for p in simpler if p is not None), kind, neutral, absorbing)
    return Cond(kind, f"({kind} {' '.join(found)})", parts=parts)


def _resolved(part: Cond, others: dict[str, Cond]) -> Cond | None:
    """A nested part without what the parts beside it decide; None if they decide it."""
    if part.kind not in ("and", "or"):
        return part
    if any(p.text in others for p in part.parts):
        return None
    kept = tuple(p for p in part.parts if p.kind in ("and", "or") or negate(p).text not in others)
    if len(kept) == len(part.parts):
        return part
    return disjoin(kept) if part.kind == "or" else conjoin(kept)
