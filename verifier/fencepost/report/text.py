"""How does a report look on a terminal: the six points of each kernel, findings below the row that they refute?"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from fencepost.findings import Finding, InputError, KernelReport, Report
from fencepost.report import wording
from fencepost.report.excerpt import call_path, caret, excerpt
from fencepost.report.lanes import lanes
from fencepost.report.style import Style, safe
from fencepost.verdicts import has_errors, is_undecided

_INDENT = " " * 6
_STEPS = 12


def render(
    report: Report, *, colour: bool = False, quiet: bool = False, verbose: bool = False, columns: int = 120
) -> str:
    """Return the text report.

    `quiet` leaves out clean kernels and the rows of the others, `verbose` shows whole traces and suppressed findings
    in full; `columns` is the width of the terminal.
    """
    style = Style(colour)
    blocks = []
    for kernel in report.kernels:
        if not quiet or has_errors(kernel) or is_undecided(kernel):
            blocks.append("\n".join(_kernel(kernel, style, quiet, verbose, columns)))
    blocks.extend("\n".join(error_lines(error, style)) for error in report.errors)
    if not quiet or blocks:
        blocks.append(wording.summary(report))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def error_lines(error: InputError, style: Style) -> Iterator[str]:
    """An input error: place, message, source line and caret."""
    where = error.file
    if error.line:
        where += f":{error.line}" + (f":{error.column}" if error.column else "")
    yield f"{style.paint(safe(where), 'bold')}: {style.paint('error', 'bold', 'red')}: {safe(error.message)}"
    for line in caret(error.excerpt, error.column):
        yield "    " + line


def _kernel(kernel: KernelReport, style: Style, quiet: bool, verbose: bool, columns: int) -> Iterator[str]:
    yield "   ".join(
        (
            style.paint(safe(kernel.name), "bold"),
            safe(f"{kernel.file}:{kernel.line}"),
            kernel.target,
            style.verdict(kernel.verdict, safe(wording.headline(kernel))),
            wording.seconds(kernel.seconds),
        )
    )
    for assumption in wording.further_assumptions(kernel):
        yield from _wrapped("  assuming ", safe(assumption), columns)
    printed: list[Finding] = []
    for check in kernel.checks:
        if not quiet:
            row = check.row
            number = row.id if row.id.isdigit() else " "
            head = f"  {number} {row.title:<14}  {check.verdict.value:<9}  "
            painted = f"  {number} {row.title:<14}  {style.verdict(check.verdict, f'{check.verdict.value:<9}')}  "
            yield from _wrapped(head, safe(check.evidence), columns, painted)
        for undecided in wording.undecided_of_row(kernel, check.row):
            where = "" if undecided.span.line in (0, kernel.line) else f" ({safe(wording.place(undecided.span))})"
            if quiet or undecided.reason != check.evidence:
                yield from _wrapped(_INDENT + "undecided: ", safe(undecided.reason) + where, columns)
            elif where:
                yield _INDENT + "undecided" + where
        for finding in wording.of_row(kernel.findings, check.row):
            yield from _finding(finding, printed, kernel, style, verbose, columns)
            printed.append(finding)
    for finding in kernel.findings:
        if not any(finding is other for other in printed):
            yield from _finding(finding, printed, kernel, style, verbose, columns)
    shown = {check.row for check in kernel.checks}
    for undecided in kernel.unknown:
        if undecided.row not in shown:
            yield from _wrapped(_INDENT + f"undecided: {undecided.row.title}: ", safe(undecided.reason), columns)


def _finding(
    finding: Finding, printed: list[Finding], kernel: KernelReport, style: Style, verbose: bool, columns: int
) -> Iterator[str]:
    """One finding; its place and trace are not repeated if one of those `printed` before has them too."""
    title = f"{wording.code(finding)} {finding.severity.value}: "
    if finding.suppressed is not None and not verbose:
        text = f"{wording.code(finding)} suppressed at line {finding.span.line}: {safe(finding.suppressed)}"
        yield style.paint(_INDENT + text, "dim")
        return
    painted = _INDENT + style.severity(finding.severity, title)
    yield from _wrapped(_INDENT + title, safe(finding.message), columns, painted)
    inner = _INDENT + "  "
    yield inner + style.paint(f"--> {safe(wording.place(finding.span))}", "cyan") + f"  {safe(finding.name)}"
    twin = next((f for f in printed if f.span == finding.span and _shows(f, finding)), None)
    if twin is not None and twin.witness == finding.witness and twin.trace == finding.trace and not verbose:
        yield inner + style.paint(f"same place and steps as {wording.code(twin)} above", "dim")
        return
    for line in (*excerpt(finding, kernel.file, kernel.source, style), *call_path(finding.span)):
        yield inner + line
    if finding.suppressed is not None:
        yield inner + f"suppressed: {safe(finding.suppressed)}"
    if finding.witness is not None:
        smallest = safe(wording.witness(finding))
        named = finding.witness.values or finding.witness.functions
        yield inner + (f"smallest: {smallest}" if named else smallest) + (" (replayed)" if finding.replayed else "")
    if finding.trace:
        yield inner + "last steps:"
        limit = None if verbose else _STEPS
        yield from (inner + "  " + line for line in lanes(finding.trace, style, columns - len(inner) - 2, limit))


def _shows(printed: Finding, finding: Finding) -> bool:
    """Whether the excerpt of a finding printed before holds every place of this one."""
    return all(place in printed.related or place.span == printed.span for place in finding.related)


def _wrapped(head: str, text: str, columns: int, painted: str | None = None) -> Iterator[str]:
    """`head` and `text`, wrapped with a hanging indent; `painted` is the head with colours."""
    room = max(30, columns - len(head))
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    yield ((painted or head) + lines[0]).rstrip()
    yield from (" " * len(head) + line for line in lines[1:])
