"""Simplest forms: when do two plain terms certainly mean the same, and what follows at once from known conditions?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import gcd

from fencepost.prove.plainterms import Term, both, conjuncts, either, make, no

_PAIRS = {"and": "or", "or": "and"}


@lru_cache(maxsize=200_000)
def norm(term: Term) -> Term:
    """An equal term: sums are collected, remainders and quotients reduced, comparisons brought to `sum <= k`."""
    if not isinstance(term, tuple):
        return term
    head, *operands = term
    match head, operands:
        case (("+" | "-" | "*"), _):
            return _total(*linear(term))
        case ("op.product", [int(a), b]) | ("op.product", [b, int(a)]):
            return norm(("*", a, b))
        case (("mod" | "div"), [a, int(m)]) if m > 0:
            parts, constant = linear(a)
            kept = {atom: c % m for atom, c in parts.items()}
            if head == "mod":
                return make("mod", _total(kept, constant % m), m)
            whole = _total({atom: (c - kept[atom]) // m for atom, c in parts.items()}, constant // m)
            rest = make("div", _total(kept, constant % m), m)
            return rest if whole == 0 else norm(("+", whole, rest))
        case (("<=" | "="), [a, b]):
            return _compared(head, *linear(("+", a, ("-", b))))
        case "not", [a]:
            return _negated(norm(a))
        case (("and" | "or"), _):
            found = make(head, *map(norm, operands))
            some = found[1:] if found[0] == head else ()
            return no(make(head)) if any(_negated(part) in some for part in some) else found
    return make(head, *map(norm, operands))


def _negated(condition: Term) -> Term:
    match condition:
        case ("<=", a, int(k)):
            return norm(("<=", ("+", k, 1), a))
        case (("and" | "or") as head, *parts):
            return make(_PAIRS[head], *map(_negated, parts))
    return no(condition)


def linear(term: Term) -> tuple[dict[Term, int], int]:
    """A sum as the factors of its atoms and a constant."""
    parts, constant, stack = dict[Term, int](), 0, [(term, 1)]
    while stack:
        part, factor = stack.pop()
        match part:
            case int():
                constant += factor * part
            case ("+", *operands):
                stack += [(o, factor) for o in operands]
            case ("-", operand):
                stack.append((operand, -factor))
            case ("*", int(k), operand) | ("*", operand, int(k)):
                stack.append((operand, factor * k))
            case _:
                atom = norm(part)
                if isinstance(atom, int) or atom[0] in ("+", "*"):
                    stack.append((atom, factor))
                else:
                    parts[atom] = parts.get(atom, 0) + factor
    return parts, constant


def _total(parts: dict[Term, int], constant: int) -> Term:
    some = [a if c == 1 else ("*", c, a) for a, c in sorted(parts.items(), key=repr) if c]
    return make("+", *some, constant)


def _compared(head: str, parts: dict[Term, int], constant: int) -> Term:
    """`parts + constant <= 0`, or `= 0`."""
    parts = {atom: c for atom, c in sorted(parts.items(), key=repr) if c}
    if not parts:
        return make(head, constant, 0)
    if len(parts) == 1:
        ((atom, factor),) = parts.items()
        if atom[0] == "ite":  # a comparison for each case
            one, other = (_compared(head, *linear(("+", ("*", factor, a), constant))) for a in atom[2:])
            return norm(either(both(atom[1], one), both(_negated(atom[1]), other)))
    by = gcd(*parts.values())
    if head == "=" and constant % by:
        return "false"
    if head == "=" and next(iter(parts.values())) < 0:
        by = -by
    return make(head, _total({atom: c // by for atom, c in parts.items()}, 0), -constant // by)


def known(condition: Term, facts: Iterable[Term]) -> bool:
    """Whether a condition in simplest form follows at once from others; False says nothing."""
    match condition:
        case "true":
            return True
        case ("and", *parts):
            return all(known(part, facts) for part in parts)
        case ("or", *parts):
            return condition in facts or any(known(part, facts) for part in parts)
        case ("<=", total, int(k)):
            return any(f[0] in ("<=", "=") and f[1] == total and f[2] <= k for f in facts)
        case ("not", ("=", total, int(k))):
            around = norm(("<=", total, k - 1)), norm(("<=", ("-", total), -k - 1))
            return condition in facts or any(known(c, facts) for c in around)
    return condition in facts


def gathered(facts: tuple[Term, ...], condition: Term) -> tuple[Term, ...]:
    """Facts together with one more; what follows from others is left out."""
    for new in conjuncts(norm(condition)):
        if not known(new, facts):
            facts = (*(f for f in facts if not known(f, (new,))), new)
    return facts
