"""What do the verdicts of rows and findings add up to: for a kernel, for a row's code, for the exit status?"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import assert_never

from fencepost.findings import Check, KernelReport, Report, Row, Severity, Verdict

_FAMILIES = {
    "1": Row.SLOT_MAPPING,
    "2": Row.EVENT_POSITION,
    "3": Row.PAIRING,
    "4": Row.COUNTS,
    "5": Row.BOUNDARY,
    "6": Row.PARTICIPANTS,
    "7": Row.FIFO,
    "8": Row.PHASES,
    "9": Row.PIPELINE,
}


class ExitStatus(IntEnum):
    """Exit statuses of `fencepost check`; scripts rely on them."""

    CLEAN = 0  # every row proved or not applicable; warnings allowed
    FINDINGS = 1  # at least one error that is not suppressed
    FAILED = 2  # could not run: usage, unreadable or malformed input, defect of the tool
    UNDECIDED = 3  # no error, but something is unknown or vacuous
    INTERRUPTED = 130


def row_of(code: str) -> Row | None:
    """Return the row that a code ("206", "206" without FP) belongs to, or None for codes about the report itself."""
    return _FAMILIES.get(code[:1])


def overall(checks: Iterable[Check]) -> Verdict:
    """Return a kernel's verdict: refuted if any row is, else vacuous or unknown if any row is, else proved."""
    found = {check.verdict for check in checks}
    for verdict in (Verdict.REFUTED, Verdict.VACUOUS, Verdict.UNKNOWN):
        if verdict in found:
            return verdict
    return Verdict.PROVED


def has_errors(kernel: KernelReport) -> bool:
    """Whether the kernel has an error-level finding that is not suppressed."""
    return any(f.severity is Severity.ERROR and f.suppressed is None for f in kernel.findings)


def is_undecided(kernel: KernelReport) -> bool:
    """Whether anything about the kernel is unknown or vacuous, whatever else was found."""
    if kernel.unknown:
        return True
    for verdict in (kernel.verdict, *(check.verdict for check in kernel.checks)):
        match verdict:
            case Verdict.UNKNOWN | Verdict.VACUOUS:
                return True
            case Verdict.PROVED | Verdict.REFUTED | Verdict.NOT_APPLICABLE:
                pass
            case _:
                assert_never(verdict)
    return False


def exit_status(report: Report) -> ExitStatus:
    """Return the exit status of a report.

    Bad input and defects of the tool come first: they mean that the run says less than was asked.  A row that is
    refuted only by suppressed findings does not fail the run.
    """
    if report.errors:
        return ExitStatus.FAILED
    if any(has_errors(kernel) for kernel in report.kernels):
        return ExitStatus.FINDINGS
    if any(is_undecided(kernel) for kernel in report.kernels):
        return ExitStatus.UNDECIDED
    return ExitStatus.CLEAN


def row_accepted(kernel: KernelReport, check: Check) -> bool:
    """Whether a refuted row fails nobody: every finding behind it is suppressed or not an error.

    A row without findings of its own (row 5 is also refuted by what other rows found) stands for the whole kernel.
    """
    own = [f for f in kernel.findings if f.row is check.row]
    behind = own or kernel.findings
    return bool(behind) and all(f.severity is not Severity.ERROR or f.suppressed is not None for f in behind)
