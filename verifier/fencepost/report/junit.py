"""How does a report look as JUnit XML: one test case per kernel and row?"""

from __future__ import annotations

import re
from typing import assert_never
from xml.sax.saxutils import escape, quoteattr

from fencepost.findings import Check, InputError, KernelReport, Report, Verdict
from fencepost.report import wording
from fencepost.verdicts import row_accepted

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """Return the XML document.  Refuted and undecided rows are failures, rows with nothing to check are skipped."""
    suites = [_suite(kernel) for kernel in report.kernels]
    tests = sum(len(kernel.checks) for kernel in report.kernels) + len(report.errors)
    bad = sum(_failed(kernel, check) for kernel in report.kernels for check in kernel.checks)
    if report.errors:
        suites.append(_errors(report.errors))
    head = f'<testsuites name="fencepost" tests="{tests}" failures="{bad}" errors="{len(report.errors)}">'
    return "\n".join(('<?xml version="1.0" encoding="utf-8"?>', head, *suites, "</testsuites>")) + "\n"


def _failed(kernel: KernelReport, check: Check) -> bool:
    match check.verdict:
        case Verdict.PROVED | Verdict.NOT_APPLICABLE:
            return False
        case Verdict.REFUTED:
            return not row_accepted(kernel, check)
        case Verdict.UNKNOWN | Verdict.VACUOUS:
            return True
        case _:
            assert_never(check.verdict)


def _suite(kernel: KernelReport) -> str:
    bad = sum(_failed(kernel, check) for check in kernel.checks)
    skipped = sum(check.verdict is Verdict.NOT_APPLICABLE for check in kernel.checks)
    head = (
        f'  <testsuite name={_attribute(kernel.name)} file={_attribute(kernel.file)} tests="{len(kernel.checks)}" '
        f'failures="{bad}" errors="0" skipped="{skipped}" time="{kernel.seconds:.3f}">'
    )
    return "\n".join((head, *(_case(kernel, check) for check in kernel.checks), "  </testsuite>"))


def _case(kernel: KernelReport, check: Check) -> str:
    head = (
        f"    <testcase classname={_attribute(f'{kernel.file}.{kernel.name}')} "
        f'name={_attribute(wording.row_label(check))} file={_attribute(kernel.file)} line="{kernel.line}"'
    )
    if check.verdict is Verdict.NOT_APPLICABLE:
        return f"{head}><skipped message={_attribute(check.evidence)}/></testcase>"
    if not _failed(kernel, check):
        return f"{head}><system-out>{_text(check.evidence)}</system-out></testcase>"
    details = [
        f"{wording.place(f.span)}: {wording.code(f)} {f.severity.value}: {f.message} [{wording.witness(f)}]"
        for f in wording.of_row(kernel.findings, check.row)
        if f.suppressed is None
    ]
    details.extend(u.reason for u in wording.undecided_of_row(kernel, check.row))
    body = _text("\n".join(details) or check.evidence)
    failure = f"<failure type={_attribute(check.verdict.value)} message={_attribute(check.evidence)}>{body}</failure>"
    return f"{head}>{failure}</testcase>"


def _errors(errors: tuple[InputError, ...]) -> str:
    cases = [
        f"    <testcase classname={_attribute(e.file)} name={_attribute(f'input, line {e.line}')}>"
        f'<error type="input" message={_attribute(e.message)}/></testcase>'
        for e in errors
    ]
    head = f'  <testsuite name="input" tests="{len(errors)}" failures="0" errors="{len(errors)}">'
    return "\n".join((head, *cases, "  </testsuite>"))


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})
