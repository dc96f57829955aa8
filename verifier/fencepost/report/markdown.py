"""How does a report look as a comment on a pull request (Markdown)?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fencepost.findings import Finding, KernelReport, Report, Verdict
from fencepost.report import wording
from fencepost.report.excerpt import excerpt
from fencepost.report.lanes import lanes
from fencepost.report.style import Style, safe

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#])")
_MARK = {
    Verdict.PROVED: "✅",
    Verdict.REFUTED: "❌",
    Verdict.UNKNOWN: "❔",
    Verdict.VACUOUS: "⚠️",
    Verdict.NOT_APPLICABLE: "➖",
}


def render(report: Report) -> str:
    """Return a table of kernels, then per kernel its rows and findings."""
    parts = [f"### Fencepost: {_escape(wording.summary(report))}"]
    if report.kernels:
        rows = [
            f"| {_MARK[k.verdict]} {_escape(k.name)} | {_code(f'{k.file}:{k.line}')} | {k.target} "
            f"| {_escape(wording.headline(k))} | {wording.seconds(k.seconds)} |"
            for k in report.kernels
        ]
        parts.append("\n".join(("| kernel | place | target | verdict | time |", "|---|---|---|---|---:|", *rows)))
    parts.extend("\n\n".join(_kernel(kernel)) for kernel in report.kernels)
    if report.errors:
        errors = [f"- {_code(f'{e.file}:{e.line}:{e.column}')} {_escape(e.message)}" for e in report.errors]
        parts.append("\n".join(("#### Input errors", "", *errors)))
    return "\n\n".join(parts) + "\n"


def _kernel(kernel: KernelReport) -> Iterator[str]:
    opened = " open" if kernel.verdict is not Verdict.PROVED else ""
    yield f"<details{opened}><summary>{_html(kernel.name)}: {_html(wording.headline(kernel))}</summary>"
    for assumption in wording.further_assumptions(kernel):
        yield f"Assuming {_escape(assumption)}"
    rows = [
        f"| {_escape(wording.row_label(c))} | {_MARK[c.verdict]} {c.verdict.value} | {_escape(c.evidence)} |"
        for c in kernel.checks
    ]
    if rows:
        yield "\n".join(("| check | verdict | evidence |", "|---|---|---|", *rows))
    for span, reason, titles in wording.undecided_together(kernel):
        yield f"Undecided at {_code(wording.place(span))}, {titles}: {_escape(reason)}"
    for finding in kernel.findings:
        yield from _finding(finding, kernel)
    yield "</details>"


def _finding(finding: Finding, kernel: KernelReport) -> Iterator[str]:
    state = f" (suppressed: {_escape(finding.suppressed)})" if finding.suppressed is not None else ""
    values = f" Smallest: {_escape(wording.witness(finding))}." if finding.witness is not None else ""
    place = _code(wording.place(finding.span))
    message = _escape(wording.sentence(finding.message))
    yield f"**{wording.code(finding)}** {finding.severity.value} at {place}{state}: {message}{values}"
    plain = Style()
    block = [*excerpt(finding, kernel.file, kernel.source, plain)]
    if finding.trace:
        block += ["", *lanes(finding.trace, plain)]
    if block:
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", "\n".join(block))), default=0))
        yield "\n".join((f"{fence}text", *block, fence))


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", safe(" ".join(text.split())))


def _html(text: str) -> str:
    return safe(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _code(text: str) -> str:
    return "`" + safe(text).replace("`", "'").replace("|", "\\|") + "`"
