"""Plain terms: SMT-LIB terms as nested tuples, for the checker of certificates, which shares nothing with the prover.

A term is an integer, a symbol, or a tuple of an operator and its operands.  Only constants are folded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Term = Any  # int | str | tuple[str, Term, ...]; recursive types of this shape are not worth their noise

_TOKEN = re.compile(r"\(|\)|[^\s()]+")
_NAME = re.compile(r"[A-Za-z$][A-Za-z0-9_.@!$]*")
OPERATORS = {"+": 99, "-": 99, "*": 2, "div": 2, "mod": 2, "ite": 3, "<=": 2, "=": 2, "not": 1, "and": 99, "or": 99}


class Malformed(Exception):
    """A text is not a term."""


def parse(text: str) -> Term:
    """Read one term.

    Raises:
        Malformed: the text holds anything but one term over the operators and names that certificates use.
    """
    stack: list[list[Term]] = [[]]
    for token in _TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                raise Malformed(f"unbalanced: {text}")
            items = stack.pop()
            stack[-1].append(_form(items))
        elif token.isdigit():
            stack[-1].append(int(token))
        elif _NAME.fullmatch(token) or token in OPERATORS:
            stack[-1].append(token)
        else:
            raise Malformed(f"'{token}' in {text}")
    if len(stack) != 1 or len(stack[0]) != 1 or stack[0][0] in OPERATORS:
        raise Malformed(f"not one term: {text}")
    return stack[0][0]


def _form(items: list[Term]) -> Term:
    if not items or not isinstance(items[0], str) or len(items) < 2:
        raise Malformed(f"not an application: {items}")
    head, operands = items[0], items[1:]
    if any(isinstance(o, str) and o in OPERATORS for o in operands):
        raise Malformed(f"an operator where a term belongs: {items}")
    if head in ("div", "mod") and not (isinstance(operands[-1], int) and operands[-1] > 0):
        raise Malformed(f"a divisor must be a positive constant: {items}")
    most = OPERATORS.get(head)
    if most is not None and not (len(operands) == most or (most == 99)):
        raise Malformed(f"wrong number of operands: {items}")
    if head == "-" and len(operands) == 1 and isinstance(operands[0], int):
        return -operands[0]
    return (head, *operands)


def text(term: Term) -> str:
    """A term as SMT-LIB."""
    if isinstance(term, int):
        return str(term) if term >= 0 else f"(- {-term})"
    return term if isinstance(term, str) else f"({' '.join((term[0], *map(text, term[1:])))})"


def leaves(terms: Iterable[Term], symbols: set[str], functions: dict[str, int]) -> None:
    """Collect the symbols and the functions (with their numbers of operands) of some terms."""
    seen: set[int] = set()
    stack = list(terms)
    while stack:
        term = stack.pop()
        if isinstance(term, str):
            if term not in ("true", "false"):
                symbols.add(term)
        elif isinstance(term, tuple) and id(term) not in seen:
            seen.add(id(term))
            if term[0] not in OPERATORS:
                functions[term[0]] = len(term) - 1
            stack.extend(term[1:])


def applications(terms: Iterable[Term], names: Mapping[str, object]) -> dict[Term, None]:
    """Every application of one of the named functions."""
    found: dict[Term, None] = {}
    stack = list(terms)
    while stack:
        term = stack.pop()
        if isinstance(term, tuple):
            if term[0] in names:
                found[term] = None
            stack.extend(term[1:])
    return found


class Renaming:
    """Replaces symbols by terms; folds constants on the way."""

    def __init__(self, values: Mapping[str, Term]) -> None:
        self.values = values
        self._known: dict[Term, Term] = {}

    def __call__(self, term: Term) -> Term:
        if isinstance(term, int):
            return term
        if isinstance(term, str):
            return self.values.get(term, term)
        found = self._known.get(term)
        if found is None:
            found = self._known[term] = make(term[0], *map(self, term[1:]))
        return found


# ------------------------------------------------------------------------------------------------ construction


def make(head: str, *operands: Term) -> Term:
    """An application, folded if it is constant."""
    maker = _MAKERS.get(head)
    return (head, *operands) if maker is None else maker(*operands)


def add(*terms: Term) -> Term:
    constant = sum(t for t in terms if isinstance(t, int))
    rest = [t for t in terms if not isinstance(t, int)]
    items = [*rest, *([constant] if constant or not rest else [])]
    return items[0] if len(items) == 1 else ("+", *items)


def minus(*terms: Term) -> Term:
    if len(terms) == 1:
        return -terms[0] if isinstance(terms[0], int) else ("-", terms[0])
    return add(terms[0], *(minus(t) for t in terms[1:]))


def times(a: Term, b: Term) -> Term:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return b if a == 1 else a if b == 1 else ("*", a, b)


def div(a: Term, m: Term) -> Term:
    return a // m if isinstance(a, int) else ("div", a, m)


def mod(a: Term, m: Term) -> Term:
    return a % m if isinstance(a, int) else ("mod", a, m)


def le(a: Term, b: Term) -> Term:
    return _truth(a <= b) if isinstance(a, int) and isinstance(b, int) else "true" if a == b else ("<=", a, b)


def lt(a: Term, b: Term) -> Term:
    return le(add(a, 1), b)


def eq(a: Term, b: Term) -> Term:
    if isinstance(a, int) and isinstance(b, int):
        return _truth(a == b)
    return "true" if a == b else ("=", a, b)


def no(a: Term) -> Term:
    if a in ("true", "false"):
        return "false" if a == "true" else "true"
    return a[1] if isinstance(a, tuple) and a[0] == "not" else ("not", a)


def both(*terms: Term) -> Term:
    return _junction("and", "true", "false", terms)


def either(*terms: Term) -> Term:
    return _junction("or", "false", "true", terms)


def _junction(head: str, neutral: str, absorbing: str, terms: Iterable[Term]) -> Term:
    found: dict[Term, None] = {}
    for term in terms:
        for part in term[1:] if isinstance(term, tuple) and term[0] == head else (term,):
            if part == absorbing:
                return absorbing
            if part != neutral:
                found[part] = None
    items = tuple(found)
    return neutral if not items else items[0] if len(items) == 1 else (head, *items)


def ite(condition: Term, a: Term, b: Term) -> Term:
    if a == b or condition == "true":
        return a
    return b if condition == "false" else ("ite", condition, a, b)


def _truth(value: bool) -> str:
    return "true" if value else "false"


_MAKERS: dict[str, Callable[..., Term]] = {
    "+": add,
    "-": minus,
    "*": times,
    "div": div,
    "mod": mod,
    "<=": le,
    "=": eq,
    "not": no,
    "and": both,
    "or": either,
    "ite": ite,
}
