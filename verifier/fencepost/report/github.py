"""How does a report annotate a pull request on GitHub (workflow commands)?"""

from __future__ import annotations

from fencepost.findings import Report, Severity
from fencepost.ir import Span
from fencepost.report import wording

_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(report: Report) -> str:
    """Return one workflow command per finding, undecided row and input error."""
    lines = []
    for kernel in report.kernels:
        for finding in kernel.findings:
            if finding.suppressed is None:
                values = f" ({wording.witness(finding)})" if finding.witness is not None else ""
                title = f"{wording.code(finding)} {finding.name}"
                lines.append(_command(_LEVEL[finding.severity], finding.span, title, finding.message + values))
        for span, reason, titles in wording.undecided_together(kernel):
            lines.append(_command("warning", span, f"undecided: {titles}", f"{kernel.name}: {reason}"))
    for error in report.errors:
        lines.append(_command("error", Span(error.file, error.line, error.column), "fencepost", error.message))
    return "".join(line + "\n" for line in lines)


def _command(level: str, span: Span, title: str, message: str) -> str:
    properties = {"file": span.file}
    if span.line:
        properties["line"] = str(span.line)
        if span.end_line:
            properties["endLine"] = str(span.end_line)
        if span.column and span.end_line in (0, span.line):  # GitHub takes columns for one line only
            properties["col"] = str(span.column)
            if span.end_column > span.column:
                properties["endColumn"] = str(span.end_column - 1)
    properties["title"] = title
    inside = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{level} {inside}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
