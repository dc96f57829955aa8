"""Causes: which of the facts seen on all shapes are one fault?

Within a row one cause is told once, under the name that its smallest shape gave it; facts of other rows with the same
cause point to the most telling one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from fencepost.facts import Fact
from fencepost.findings import Related, Severity

_GROUPS = (
    ("101",),
    ("102", "103"),
    ("201", "202", "203", "204", "205", "207"),
    ("301", "306"),
    ("303", "305"),
    ("401", "403"),
    ("503", "504"),
    ("702", "703", "708"),
    ("801", "802", "803"),
)
"""Codes of one row that are names of different precision for one thing."""

_LEADS = (
    "503", "504", "103", "102", "303", "305", "304", "403", "204", "205", "207", "801", "602", "601", "606", "206",
    "301", "306", "302", "401",
)  # fmt: skip
"""Which of several codes with one cause says most about it."""

_GROUP_OF = {code: group[0] for group in _GROUPS for code in group}


class Observed(Protocol):
    """A fact with what shows it."""

    fact: Fact


Seen = TypeVar("Seen", bound=Observed)


class Causes:
    """Causes that turned out to be one, and what follows for the facts."""

    def __init__(self) -> None:
        self._parent: dict[Hashable, Hashable] = {}

    def join(self, pairs: Iterable[tuple[Hashable, Hashable]]) -> None:
        """Note that the causes of each pair are one; the second is the better name."""
        for one, other in pairs:
            if self.root(one) != self.root(other):
                self._parent[self.root(one)] = self.root(other)

    def root(self, cause: Hashable) -> Hashable:
        """The one name of a cause."""
        while cause in self._parent:
            cause = self._parent[cause]
        return cause

    def settle(self, seen: Sequence[Seen]) -> list[Seen]:
        """One entry per cause and group of codes, the first one each; facts of one cause are related to each other."""
        kept: dict[Hashable, Seen] = {}
        faults: dict[Hashable, set[Hashable]] = {}
        errors = {self.key(s.fact) for s in seen if s.fact.severity in (None, Severity.ERROR)}
        for one in seen:
            key = self.key(one.fact)
            if one.fact.severity not in (None, Severity.ERROR) and key in errors:
                continue  # a larger shape shows that it is an error
            kept.setdefault(key, one)
            faults.setdefault(key, set()).update(one.fact.faults)
        families: dict[Hashable, list[Seen]] = {}
        for one in kept.values():
            families.setdefault(self._cause(one.fact), []).append(one)
        leads = {cause: min(members, key=_rank) for cause, members in families.items()}
        return [self._linked(one, leads[self._cause(one.fact)], frozenset(faults[key])) for key, one in kept.items()]

    def _cause(self, fact: Fact) -> Hashable:
        return fact.span if fact.cause is None else self.root(fact.cause)

    def key(self, fact: Fact) -> Hashable:
        """Equal for facts of one cause that are named by one group of codes."""
        return _GROUP_OF.get(fact.code, fact.code), self._cause(fact)

    def _linked(self, one: Seen, lead: Seen, faults: frozenset[Hashable]) -> Seen:
        """The entry with its one cause and all its faults, and a place that leads to the fact that tells most."""
        fact = one.fact
        places = fact.related
        if lead is not one:
            places = (*places, Related(lead.fact.span, f"same cause: FP{lead.fact.code}"))
        settled = replace(fact, cause=self._cause(fact), related=places, faults=faults)
        return replace(one, fact=settled)  # type: ignore[type-var]


def _rank(one: Observed) -> tuple[int, str]:
    code = one.fact.code
    return (_LEADS.index(code) if code in _LEADS else len(_LEADS)), code
