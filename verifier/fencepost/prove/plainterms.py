"""Plain terms: what is a formula, for a checker that shares nothing with the prover?

A term is an integer, a symbol, or a tuple of an operator or function and its operands; conditions are terms too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

Term = Any  # int | str | tuple[str, Term, ...]

_NAME = re.compile(r"[A-Za-z$][A-Za-z0-9_.@!$]*")
_OPERANDS = {"+": 0, "and": 0, "or": 0, "-": 1, "not": 1, "*": 2, "div": 2, "mod": 2, "<=": 2, "=": 2, "ite": 3}
"""The operators, with their numbers of operands; 0 for any number."""


class Malformed(Exception):
    """Something is not a term."""


def read(data: Any) -> Term:
    """The term that JSON data means: a list is an application.

    Raises:
        Malformed: it is no term over the operators and the names that certificates use.
    """
    if type(data) is int or (isinstance(data, str) and _NAME.fullmatch(data)):
        return data
    if not isinstance(data, list) or len(data) < 2 or not isinstance(data[0], str):
        raise Malformed(f"not a term: {data!r}")
    head, operands = data[0], tuple(map(read, data[1:]))
    if head not in _OPERANDS and not _NAME.fullmatch(head):
        raise Malformed(f"no such operator: {head}")
    if _OPERANDS.get(head, 0) not in (0, len(operands)):
        raise Malformed(f"wrong number of operands: {data!r}")
    if head in ("div", "mod") and not (type(operands[1]) is int and operands[1] > 0):
        raise Malformed(f"a divisor must be a positive constant: {data!r}")
    if make(head, *operands) != (head, *operands):
        raise Malformed(f"not in its simplest form: {data!r}")
    return (head, *operands)


def text(term: Term) -> str:
    """A term as SMT-LIB."""
    if isinstance(term, int):
        return str(term) if term >= 0 else f"(- {-term})"
    return term if isinstance(term, str) else f"({' '.join((term[0], *map(text, term[1:])))})"


def applications(terms: Iterable[Term]) -> Iterator[tuple[str, ...]]:
    """Every application of a function in some terms, each once; symbols are functions of nothing."""
    seen: set[Term] = set()
    stack = list(terms)
    while stack:
        term = stack.pop()
        if not isinstance(term, int) and term not in seen:
            seen.add(term)
            head, *operands = term if isinstance(term, tuple) else (term,)
            stack += operands
            if head not in _OPERANDS and head not in ("true", "false"):
                yield (head, *operands)


class Renaming:
    """Replaces symbols by terms."""

    def __init__(self, values: Mapping[str, Term]) -> None:
        self.values = values
        self._known: dict[Term, Term] = {}

    def __call__(self, term: Term) -> Term:
        if not isinstance(term, tuple):
            return self.values.get(term, term) if isinstance(term, str) else term
        if term not in self._known:
            self._known[term] = make(term[0], *map(self, term[1:]))
        return self._known[term]


def given(facts: tuple[Term, ...], term: Term) -> Term:
    """A term without the case distinctions that the facts decide."""
    match term:
        case ("+", *parts):
            return add(*(given(facts, p) for p in parts))
        case ("ite", condition, one, other):
            needed = conjuncts(condition)
            if all(c in facts for c in needed):
                return given(facts, one)
            return given(facts, other) if any(no(c) in facts for c in needed) else term
    return term


def conjuncts(condition: Term) -> tuple[Term, ...]:
    """The conditions of which one is the conjunction."""
    return _parts("and", (condition,))


def _parts(head: str, operands: Iterable[Term]) -> tuple[Term, ...]:
    """The operands of nested applications of one operator, without what changes nothing."""
    flat = (p for o in operands for p in (o[1:] if isinstance(o, tuple) and o[0] == head else (o,)))
    return tuple(p for p in flat if p != {"and": "true", "or": "false"}.get(head))


def make(head: str, *operands: Term) -> Term:
    """An application; what is plain from the form of its operands is worked out."""
    match head, operands:
        case "+", _:
            flat, kept = _parts(head, operands), list[Term]()
            constant = sum(p for p in flat if isinstance(p, int))
            for part in (p for p in flat if not isinstance(p, int)):
                if (opposite := minus(part)) in kept:
                    kept.remove(opposite)
                else:
                    kept.append(part)
            kept += [constant] if constant else []
            return ("+", *kept) if len(kept) > 1 else kept[0] if kept else 0
        case (("and" | "or"), _):
            kept = list(dict.fromkeys(_parts(head, operands)))
            neutral, absorbing = ("true", "false") if head == "and" else ("false", "true")
            if absorbing in kept:
                return absorbing
            return (head, *kept) if len(kept) > 1 else kept[0] if kept else neutral
        case "ite", ("true" | "false" as condition, one, other):
            return one if condition == "true" else other
        case "ite", (condition, one, ("ite", again, _, other)) if again == condition:
            return make("ite", condition, one, other)
        case "ite", (_, one, other) if one == other:
            return one
        case "not", ("true" | "false" as known,):
            return _truth(known == "false")
        case ("not", (("not", inner),)) | ("-", (("-", inner),)) | ("*", (1, inner)) | ("*" | "div", (inner, 1)):
            return inner
        case "-", (("+", *parts),):
            return add(*map(minus, parts))
        case "-", (int(a),):
            return -a
        case (("*" | "div" | "mod"), (int(a), int(b))):
            return a * b if head == "*" else a // b if head == "div" else a % b
        case (("<=" | "="), (int(a), int(b))):
            return _truth(a <= b if head == "<=" else a == b)
        case (("<=" | "="), (one, other)) if one == other:
            return "true"
        case "=", (("ite", condition, 1, 0), 0):
            return no(condition)
    return (head, *operands)


add, both, either = partial(make, "+"), partial(make, "and"), partial(make, "or")
times, div, mod, ite = partial(make, "*"), partial(make, "div"), partial(make, "mod"), partial(make, "ite")
le, eq, no = partial(make, "<="), partial(make, "="), partial(make, "not")


def minus(a: Term, b: Term | None = None) -> Term:
    """`-a`, or `a - b`."""
    return make("-", a) if b is None else add(a, make("-", b))


def lt(a: Term, b: Term) -> Term:
    return le(add(a, 1), b)


def _truth(value: bool) -> str:
    return "true" if value else "false"
