"""Do verdicts add up to the right kernel verdict and exit status?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.findings import (
    Check,
    Finding,
    InputError,
    KernelReport,
    Report,
    Row,
    Severity,
    Undecided,
    Verdict,
)
from fencepost.ir import NOWHERE
from fencepost.verdicts import ExitStatus, exit_status, overall, row_accepted, row_of

P, R, U, V, N = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN, Verdict.VACUOUS, Verdict.NOT_APPLICABLE
ERROR = Finding("206", "name", Row.EVENT_POSITION, Severity.ERROR, "message", NOWHERE)


def kernel(*verdicts: Verdict, findings: tuple[Finding, ...] = ()) -> KernelReport:
    checks = tuple(Check(row, verdict, "") for row, verdict in zip(Row, verdicts, strict=False))
    return KernelReport("k", "f", 1, "a5", overall(checks), 0.0, (), (), checks, findings)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [((), P), ((N, N), P), ((P, N), P), ((P, U), U), ((U, R), R), ((V, U), V), ((V, R), R), ((N, V), V)],
)
def test_the_worst_row_decides(verdicts: tuple[Verdict, ...], expected: Verdict) -> None:
    assert overall(kernel(*verdicts).checks) is expected


@pytest.mark.parametrize(
    ("report", "status"),
    [
        (Report(), ExitStatus.CLEAN),
        (Report((kernel(P, N),)), ExitStatus.CLEAN),
        (Report((kernel(P, P, findings=(replace(ERROR, severity=Severity.WARNING),)),)), ExitStatus.CLEAN),
        (Report((kernel(P, R, findings=(ERROR,)),)), ExitStatus.FINDINGS),
        (Report((kernel(P, R, findings=(replace(ERROR, suppressed="why"),)),)), ExitStatus.CLEAN),
        (Report((kernel(U, R, findings=(replace(ERROR, suppressed="why"),)),)), ExitStatus.UNDECIDED),
        (Report((kernel(U, R, findings=(ERROR,)),)), ExitStatus.FINDINGS),
        (Report((kernel(U),)), ExitStatus.UNDECIDED),
        (Report((kernel(V),)), ExitStatus.UNDECIDED),
        (Report((replace(kernel(P), unknown=(Undecided(Row.COUNTS, "why"),)),)), ExitStatus.UNDECIDED),
        (Report((kernel(U), kernel(P, R, findings=(ERROR,)))), ExitStatus.FINDINGS),
        (Report((kernel(P, R, findings=(ERROR,)),), (InputError("f", 1, 1, "m"),)), ExitStatus.FAILED),
    ],
)
def test_exit_status(report: Report, status: ExitStatus) -> None:
    assert exit_status(report) is status
    assert report.proved == (status is ExitStatus.CLEAN and bool(report.kernels))


def test_the_row_of_a_code() -> None:
    without_codes = (Row.SKEW, Row.TRANSLATION)
    assert [row_of(f"{n}01") for n in range(1, 10)] == [row for row in Row if row not in without_codes]
    assert row_of("001") is None


def test_a_row_without_findings_of_its_own_stands_for_the_kernel() -> None:
    boundary = Check(Row.BOUNDARY, R, "")
    assert not row_accepted(kernel(P, R, findings=(ERROR,)), boundary)
    assert row_accepted(kernel(P, R, findings=(replace(ERROR, suppressed="why"),)), boundary)
    assert not row_accepted(kernel(P, R), boundary)
