"""Plain terms: what is a formula, for a checker that shares nothing with the prover?

A term is an integer, a symbol, or a tuple of an operator or function and its operands; conditions are terms too.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any


class Rejected(Exception):
    """The certificate does not fit the kernel; the message says where."""


Term = Any  # int | str | tuple[str, Term, ...]
_SYMBOL = re.compile(r"\$[A-Za-z0-9_!]+|x[0-9]+|any\.[A-Za-z0-9_.!]+|(f|op)\.[A-Za-z0-9_.!]+")
_FUNCTION = re.compile(r"(f|op)\.[A-Za-z0-9_.!]+")
"""Names that certificates use; none that a solver might give a meaning of its own."""
_OPERANDS = {"+": 0, "and": 0, "or": 0, "-": 1, "not": 1, "*": 2, "div": 2, "mod": 2, "<=": 2, "=": 2, "ite": 3}
"""The operators, with their numbers of operands; 0 for any number."""
_NEUTRAL = {"+": 0, "and": "true", "or": "false"}
_BITS, _LONGEST = 4_096, 50_000  # of the largest number that is worked out, and of the longest term of a value
_WORKED = {"*": operator.mul, "div": operator.floordiv, "mod": operator.mod, "<=": operator.le, "=": operator.eq}


def read(data: Any) -> Term:
    """The term that JSON data means: a list is an application.

    Raises:
        ValueError: it is no term in simplest form over the operators and the names that certificates use.
    """
    if type(data) is int or (isinstance(data, str) and _SYMBOL.fullmatch(data)):
        return data
    if not isinstance(data, list) or len(data) < 2 or not isinstance(data[0], str):
        raise ValueError(f"not a term: {data!r}")
    head, operands = data[0], tuple(map(read, data[1:]))
    count = _OPERANDS.get(head, 0 if _FUNCTION.fullmatch(head) else None)
    divides = head not in ("div", "mod") or (type(operands[-1]) is int and operands[-1] > 0)
    if count not in (0, len(operands)) or not divides or make(head, *operands) != (head, *operands):
        raise ValueError(f"not a term in its simplest form: {data!r}")
    return (head, *operands)


def text(term: Term) -> str:
    """A term as SMT-LIB."""
    if isinstance(term, int):
        return str(term) if term >= 0 else f"(- {-term})"
    return term if isinstance(term, str) else f"({' '.join((term[0], *map(text, term[1:])))})"


def short(term: Term) -> Term:
    """A term; ValueError if it is too long, written out."""
    stack, known = [term], dict[int, int]()
    while stack:
        parts = top if isinstance(top := stack[-1], tuple) else ()
        if new := [p for p in parts if isinstance(p, tuple) and id(p) not in known]:
            stack += new
        else:
            known[id(stack.pop())] = 1 + sum(known.get(id(p), 1) for p in parts)
    if known[id(term)] > _LONGEST:
        raise ValueError("a value is written by too long a term")
    return term


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


def subst(values: Mapping[Any, Term]) -> Callable[[Term], Term]:
    """The function that replaces symbols (or whole applications) by terms, all at once."""
    known: dict[Term, Term] = dict(values)

    def change(term: Term) -> Term:
        if isinstance(term, tuple) and term not in known:
            known[term] = make(term[0], *map(change, term[1:]))
        return known.get(term, term)

    return change


def conjuncts(condition: Term) -> tuple[Term, ...]:
    """The conditions of which one is the conjunction."""
    return condition[1:] if condition[0] == "and" else () if condition == "true" else (condition,)


def make(head: str, *operands: Term) -> Term:
    """An application; what is plain from the form of its operands is worked out."""
    match head, operands:
        case (("+" | "and" | "or"), _):
            flat = [p for o in operands for p in (o[1:] if isinstance(o, tuple) and o[0] == head else (o,))]
            kept = _sum(flat) if head == "+" else [p for p in dict.fromkeys(flat) if p != _NEUTRAL[head]]
            if (absorbing := no(_NEUTRAL[head])) in kept:
                return absorbing
            return (head, *kept) if len(kept) > 1 else kept[0] if kept else _NEUTRAL[head]
        case "ite", ("true" | "false" as condition, one, other):
            return one if condition == "true" else other
        case "ite", (_, one, other) if one == other:
            return one
        case "not", ("true" | "false" as known,):
            return "false" if known == "true" else "true"
        case ("not", (("not", inner),)) | ("-", (("-", inner),)) | ("*", (1, inner)) | ("*" | "div", (inner, 1)):
            return inner
        case "-", (("+", *parts),):
            return add(*map(minus, parts))
        case "-", (int(a),):
            return -a
        case _, (int(a), int(b)) if head in _WORKED:
            if (value := _WORKED[head](a, b)).bit_length() > _BITS:
                raise ValueError("a number is too large")
            return str(value).lower() if isinstance(value, bool) else value
        case (("<=" | "="), (one, other)) if one == other:
            return "true"
    return (head, *operands)


def _sum(parts: list[Term]) -> list[Term]:
    """Summands without those that cancel; the constant stands last."""
    kept, constant = list[Term](), sum(p for p in parts if isinstance(p, int))
    for part in parts:
        if minus(part) in kept:
            kept.remove(minus(part))
        elif not isinstance(part, int):
            kept.append(part)
    return [*kept, constant] if constant else kept


add, both, either, mod = (partial(make, head) for head in ("+", "and", "or", "mod"))
le, eq, no, ite = (partial(make, head) for head in ("<=", "=", "not", "ite"))


def minus(a: Term, b: Term = None) -> Term:
    """`-a`, or `a - b`."""
    return make("-", a) if b is None else add(a, make("-", b))


def lt(a: Term, b: Term) -> Term:
    """`a < b`, of integers."""
    return le(add(a, 1), b)
