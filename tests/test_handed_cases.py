"""Does the tool decide the handed kernels as `expected.json` says: verdict, rows, codes, smallest witness?"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fencepost
from fencepost.findings import Finding, KernelReport, Severity, Verdict

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases" / "kir"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the handed cases (../shared/cases/kir) are not here")


def expected() -> dict[str, dict[str, Any]]:
    if not CASES.is_dir():
        return {}
    found: dict[str, dict[str, Any]] = json.loads((CASES / "expected.json").read_text("utf-8"))
    return found


def names(verdict: str) -> list[str]:
    return [name for name, case in expected().items() if case["verdict"] == verdict]


@cache
def report(name: str) -> KernelReport:
    result = fencepost.check(CASES / name, timeout=120)
    assert not result.errors
    (kernel,) = result.kernels
    return kernel


def test_every_file_has_an_expectation() -> None:
    assert {p.name for p in CASES.glob("*.kir")} == set(expected())


@pytest.mark.parametrize("name", names("refuted"))
def test_faulty_kernels_are_refuted(name: str) -> None:
    case, kernel = expected()[name], report(name)
    assert kernel.verdict is Verdict.REFUTED
    verdicts = {check.row.id: check.verdict.value for check in kernel.checks}
    assert {row: verdicts[row] for row in case["rows"]} == case["rows"]
    errors = {f.code for f in kernel.findings if f.severity is Severity.ERROR}
    assert set(case["codes"]) <= errors
    assert not case.get("any_of") or errors & set(case["any_of"])


@pytest.mark.parametrize("name", [n for n in names("refuted") if expected()[n].get("smallest") is not None])
def test_the_witness_is_the_smallest(name: str) -> None:
    case, kernel = expected()[name], report(name)
    codes = case["codes"] or case["any_of"]
    witnesses = [f.witness for f in kernel.findings if f.code in codes and f.witness is not None]
    smallest = tuple(case["smallest"].items())
    assert smallest in [w.values for w in witnesses]
    for finding in kernel.findings:
        if finding.witness is not None:
            assert weight(finding) >= sum(abs(v) for v in case["smallest"].values()), finding.message


def weight(finding: Finding) -> int:
    assert finding.witness is not None
    return sum(abs(value) for _, value in finding.witness.values)


@pytest.mark.parametrize("name", names("refuted"))
def test_witnesses_were_replayed(name: str) -> None:
    for finding in report(name).findings:
        assert finding.witness is None or finding.replayed


@pytest.mark.parametrize("name", names("proved"))
def test_right_kernels_are_proved_without_a_finding(name: str) -> None:
    kernel = report(name)
    assert not kernel.findings
    assert {c.verdict for c in kernel.checks} <= {Verdict.PROVED, Verdict.NOT_APPLICABLE}, kernel.unknown
    assert kernel.verdict is Verdict.PROVED
