"""Refutation: which rows do the runs refute, and how is that told?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fencepost.findings import Finding, Row, Severity
from fencepost.row_result import codes, smallest
from fencepost.search import Outcome, Seen
from fencepost.trace import Replays, trace
from fencepost_rules.registry import rule

_HANGS = ("301", "306", "606", "601", "702", "703", "708", "707", "802", "803")
_LEFTOVERS = ("302", "206", "404", "703", "708", "707", "803")


@dataclass(frozen=True, slots=True)
class Refutation:
    """All findings of a search, and for each refuted row what to say about it."""

    findings: tuple[Finding, ...]
    rows: dict[Row, str]


def refutation(outcome: Outcome) -> Refutation:
    """Word the facts of a search; a row is refuted if an error was found in it."""
    seen = [*outcome.facts, *boundary_facts(outcome)]
    replays = Replays()
    findings = tuple(finding(s, replays) for s in sorted(seen, key=lambda s: s.fact.code))
    errors = [f for f in findings if f.severity is Severity.ERROR]
    rows = {row: codes([f for f in errors if f.row is row]) for row in Row if any(f.row is row for f in errors)}
    boundary = [s for s in outcome.facts if s.boundary and rule(s.fact.code).severity is Severity.ERROR]
    if boundary and Row.BOUNDARY not in rows:
        named = ", ".join(dict.fromkeys(f"FP{s.fact.code}" for s in boundary))
        witness = smallest(s.witness for s in boundary) or boundary[0].witness
        rows[Row.BOUNDARY] = f"fails only at boundary values: see {named} ({witness})"
    return Refutation(findings, rows)


def finding(seen: Seen, replays: Replays | None = None) -> Finding:
    """Word one fact, with its witness and the steps that show it."""
    worded = rule(seen.fact.code).finding(seen.fact)
    witness = seen.witness
    if witness is None:
        return worded
    steps = trace(seen.runs, seen.fact, replays)
    return replace(worded, witness=witness, replayed=True, trace=steps.steps, links=steps.links)


def boundary_facts(outcome: Outcome) -> Iterator[Seen]:
    """501 and 502: a hang or a leftover that only boundary values show, unless 503 or 504 names the cause."""
    named = {s.fact.cause for s in outcome.facts if s.fact.code in ("503", "504")}
    told: set[object] = set()
    for code, kind, own in (("501", "hang", _HANGS), ("502", "leftover", _LEFTOVERS)):
        sources = [s for s in outcome.facts if s.boundary and s.kind == kind and s.fact.code in own]
        for source in sorted(sources, key=lambda s: own.index(s.fact.code)):
            fact = source.fact
            if fact.cause in named or (code, fact.cause) in told:
                continue
            told.add((code, fact.cause))
            values = (("detail", rule(fact.code).finding(fact).message), ("when", str(source.witness)))
            yield replace(source, fact=replace(fact, code=code, values=values, severity=None))


__all__ = ["Refutation", "finding", "refutation"]
