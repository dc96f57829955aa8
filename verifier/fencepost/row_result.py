"""What was decided about one row of a kernel's report?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.findings import Finding, Undecided, Verdict


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row's verdict, evidence, findings, and what could not be decided."""

    verdict: Verdict
    evidence: str
    findings: tuple[Finding, ...] = ()
    unknown: tuple[Undecided, ...] = ()


def codes(errors: Sequence[Finding]) -> str:
    """The evidence of a refuted row: "FP206, FP302 (n = 3)", with the first witness that has values."""
    names = ", ".join(dict.fromkeys(f"FP{f.code}" for f in errors))
    witness = next((f.witness for f in errors if f.witness is not None), None)
    return names if witness is None or not witness.values else f"{names} ({witness})"
