"""How does a report look to a program?  The format is fixed by `reports/schema/report.schema.json`."""

from __future__ import annotations

import json

from fencepost import __version__
from fencepost.findings import Check, Finding, InputError, KernelReport, Report, Step, Undecided
from fencepost.ir import Span
from fencepost.report.wording import check_id


def render(report: Report) -> str:
    """Return the report as indented JSON."""
    return json.dumps(to_dict(report), indent=2, ensure_ascii=False) + "\n"


def to_dict(report: Report) -> dict[str, object]:
    """Return the report as plain dictionaries and lists."""
    return {
        "tool": {"name": "fencepost", "version": __version__},
        "kernels": [_kernel(kernel) for kernel in report.kernels],
        "errors": [_error(error) for error in report.errors],
    }


def _kernel(kernel: KernelReport) -> dict[str, object]:
    return {
        "name": kernel.name,
        "file": kernel.file,
        "line": kernel.line,
        "target": kernel.target,
        "verdict": kernel.verdict.value,
        "seconds": round(kernel.seconds, 4),
        "parameters": list(kernel.parameters),
        "assumptions": list(kernel.assumptions),
        "checks": [_check(check) for check in kernel.checks],
        "findings": [_finding(finding) for finding in kernel.findings],
        "unknown": [_undecided(undecided, kernel) for undecided in kernel.unknown],
    }


def _check(check: Check) -> dict[str, object]:
    row = check.row
    return {"id": check_id(row), "name": row.title, "verdict": check.verdict.value, "evidence": check.evidence}


def _finding(finding: Finding) -> dict[str, object]:
    values = finding.witness
    return {
        "code": finding.code,
        "name": finding.name,
        "check": check_id(finding.row),
        "severity": finding.severity.value,
        "message": finding.message,
        **_place(finding.span),
        "via": [_place(site) for site in finding.span.via],
        "related": [{**_place(related.span), "message": related.message} for related in finding.related],
        "witness": None if values is None else dict(values.values),
        "functions": {} if values is None else dict(values.functions),
        "replayed": finding.replayed,
        "trace": [_step(step) for step in finding.trace],
        "suppressed": finding.suppressed,
    }


def _place(span: Span) -> dict[str, object]:
    return {
        "file": span.file,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def _step(step: Step) -> dict[str, object]:
    return {
        "agent": step.agent,
        "pipe": step.pipe,
        "text": step.text,
        "file": step.span.file,
        "line": step.span.line,
        "column": step.span.column,
        "state": step.state,
    }


def _undecided(undecided: Undecided, kernel: KernelReport) -> dict[str, object]:
    known = undecided.span.line > 0
    return {
        "check": check_id(undecided.row),
        "reason": undecided.reason,
        "file": undecided.span.file if known else kernel.file,
        "line": undecided.span.line if known else kernel.line,
    }


def _error(error: InputError) -> dict[str, object]:
    return {"file": error.file, "line": error.line, "column": error.column, "message": error.message}
