"""How does a report look with one line per finding, for editors and grep?"""

from __future__ import annotations

from fencepost.findings import Report
from fencepost.report import wording
from fencepost.report.style import safe


def render(report: Report) -> str:
    """Return lines ``file:line:column: FP206 error: message [n = 0]``, undecided rows, input errors, and a summary."""
    lines = []
    for kernel in report.kernels:
        for finding in kernel.findings:
            if finding.suppressed is not None:
                continue
            head = f"{wording.place(finding.span)}: {wording.code(finding)} {finding.severity.value}: "
            values = f" [{wording.witness(finding)}]" if finding.witness is not None else ""
            lines.append(head + finding.message + values)
        for span, reason, titles in wording.undecided_together(kernel):
            lines.append(f"{wording.place(span)}: undecided: {kernel.name}: {titles}: {reason}")
    for error in report.errors:
        where = f"{error.file}:{error.line}:{error.column}" if error.line else error.file
        lines.append(f"{where}: error: {error.message}")
    lines.append(wording.summary(report))
    return "\n".join(map(safe, lines)) + "\n"
