"""Which codes can findings have?  Those of the rules, and those of what is said about suppressions."""

from __future__ import annotations

from functools import cache

UNDECIDED = "000"
"""Stands for undecided rows where a format has findings only; it is no finding."""

NO_REASON = ("001", "suppression without a reason")
UNUSED = ("002", "suppression of nothing")


def code_of(text: str) -> str:
    """Normalise a code or the beginning of one: "FP206", "fp206" and "206" are "206".

    Raises ValueError for another text, and for a code that no finding can have.
    """
    code = text.strip().upper().removeprefix("FP")
    if not (code.isascii() and code.isdigit() and len(code) <= 3):
        raise ValueError(f"{text!r} is not a code such as FP206, nor the beginning of one")
    if not any(known.startswith(code) for known in codes()):
        raise ValueError(unknown_code(code))
    return code


@cache
def codes() -> frozenset[str]:
    """All codes, without "FP"."""
    from fencepost_rules.registry import rules

    return frozenset((NO_REASON[0], UNUSED[0], *(rule.code for rule in rules())))


def unknown_code(code: str) -> str:
    """A sentence about a code that no finding has, with the nearest one."""
    from fencepost_rules.registry import nearest

    if code == UNDECIDED:
        return f"FP{UNDECIDED} stands for undecided rows; no finding has this code"
    near = nearest(code)
    return f"no rule has the code FP{code}; did you mean FP{near.code} ({near.title})?"
