"""Which rules are there?  Every module of this package that is not listed below as machinery defines one."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import fencepost_rules
from fencepost_rules.rule import Rule

_NUMBER = re.compile(r"(?:fp)?([0-9]+)")
_MACHINERY = frozenset({"document", "page", "registry", "rule"})


class UnknownRule(LookupError):
    """No rule has this code or name; the message tells the nearest one."""

    def __str__(self) -> str:
        return str(self.args[0])


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, sorted by code."""
    names = sorted(module.name for module in iter_modules(fencepost_rules.__path__))
    found = [_load(name) for name in names if name not in _MACHINERY]
    return tuple(sorted(found, key=lambda rule: rule.code))


def _load(name: str) -> Rule:
    rule = getattr(import_module(f"fencepost_rules.{name}"), "RULE", None)
    if not isinstance(rule, Rule):
        raise TypeError(f"module fencepost_rules.{name} defines no RULE")
    return rule


def rule(code: str) -> Rule:
    """Return the rule with this code ("206", "FP206") or name ("release-not-awaited").

    Raises UnknownRule, with the nearest rule in its message.
    """
    known = _index()
    wanted = _normal(code)
    if wanted not in known:
        near = nearest(code)
        raise UnknownRule(f"no rule {code!r}; did you mean FP{near.code} ({near.title})?")
    return known[wanted]


@cache
def _index() -> dict[str, Rule]:
    return {key: known for known in rules() for key in (known.code, known.name)}


def nearest(code: str) -> Rule:
    """The rule whose code (or name) is most like `code`."""
    wanted = _normal(code)
    number = _NUMBER.match(wanted)
    if number is not None:
        return min(rules(), key=lambda known: _distance(number[1], known.code))
    from difflib import SequenceMatcher

    return max(rules(), key=lambda known: SequenceMatcher(None, wanted, known.name).ratio())


def _distance(code: str, other: str) -> tuple[int, int]:
    """First how many digits differ, then how far apart the numbers are."""
    wanted = code[:3].ljust(3, "0")
    return sum(a != b for a, b in zip(wanted, other, strict=True)), abs(int(wanted) - int(other))


def _normal(code: str) -> str:
    text = code.strip().lower()
    return text.removeprefix("fp") if text.removeprefix("fp").isdecimal() else text
