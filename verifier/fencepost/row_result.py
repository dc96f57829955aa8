"""What was decided about one row of a kernel's report?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fencepost.findings import Finding, Undecided, Verdict, Witness


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row's verdict, evidence, findings, and what could not be decided."""

    verdict: Verdict
    evidence: str
    findings: tuple[Finding, ...] = ()
    unknown: tuple[Undecided, ...] = ()


def codes(errors: Sequence[Finding]) -> str:
    """The evidence of a refuted row: "FP206, FP302 (n = 3)", with the smallest witness that has values."""
    names = ", ".join(dict.fromkeys(f"FP{f.code}" for f in errors))
    witness = smallest(f.witness for f in errors)
    return names if witness is None else f"{names} ({witness})"


def smallest(witnesses: Iterable[Witness | None]) -> Witness | None:
    """The witness with the smallest values, in the order of shapes; None if none has values."""
    valued = [w for w in witnesses if w is not None and w.values]
    return min(valued, key=_size, default=None)


def _size(witness: Witness) -> tuple[int, tuple[int, ...]]:
    values = tuple(value for _, value in witness.values)
    return sum(map(abs, values)), values
