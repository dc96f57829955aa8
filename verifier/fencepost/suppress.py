"""Which findings did the author of the source accept, with which reason?

A comment ``# fencepost: ignore[206] counters are cleared at launch`` accepts findings with that code on its line, or,
when it stands alone on its line, on the next line of code.  Several codes are separated by commas.  Suppressed
findings stay in the report, marked with the reason.  A suppression without a reason (001), and one that suppresses
nothing or names a code that no finding has (002), is a warning of its own.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fencepost.codes import NO_REASON, UNUSED, unknown_code
from fencepost.codes import codes as all_codes
from fencepost.findings import Finding, KernelReport, Row, Severity, Verdict
from fencepost.ir import Span
from fencepost.verdicts import row_of

_COMMENT = re.compile(r"#\s*fencepost:\s*ignore\b(?:\s*\[(?P<codes>[^\]]*)\])?:?\s*(?P<reason>[^#]*)")
_STRING_OR_COMMENT = re.compile(r'"[^"\n]*"|(#.*)')


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment: `span` is the comment, `line` the line whose findings it accepts; `codes` empty accepts nothing."""

    codes: tuple[str, ...]
    reason: str
    span: Span
    line: int

    def covers(self, finding: Finding) -> bool:
        """Whether the finding starts, ends or is called from this suppression's line and has one of its codes."""
        if finding.code not in self.codes:
            return False
        spans = (finding.span, *finding.span.via)
        return any(s.file == self.span.file and self.line in (s.line, s.end_line) for s in spans)


def suppressions(text: str, file: str) -> tuple[Suppression, ...]:
    """Return the suppression comments of a source text, in text order."""
    if "fencepost:" not in text:
        return ()
    lines = text.split("\n")
    found = []
    for line, column, comment in _comments(text, file):
        match = _COMMENT.match(comment)
        if match is None:
            continue
        codes = tuple(c.strip().upper().removeprefix("FP") for c in (match["codes"] or "").split(",") if c.strip())
        span = Span(file, line, column, line, column + len(match[0].rstrip()))
        alone = not lines[line - 1][: column - 1].strip()
        target = _next_code_line(lines, line) if alone else line
        found.append(Suppression(codes, match["reason"].strip(), span, target))
    return tuple(found)


def _comments(text: str, file: str) -> Iterator[tuple[int, int, str]]:
    """Yield (line, column, comment) for each comment; strings do not count."""
    if file.endswith(".py"):
        try:
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.COMMENT:
                    yield token.start[0], token.start[1] + 1, token.string
        except (tokenize.TokenError, SyntaxError):
            return
    else:
        for number, line in enumerate(text.split("\n"), 1):
            for match in _STRING_OR_COMMENT.finditer(line):
                if match[1]:
                    yield number, match.start() + 1, match[1]


def _next_code_line(lines: Sequence[str], line: int) -> int:
    for number in range(line + 1, len(lines) + 1):
        stripped = lines[number - 1].strip()
        if stripped and not stripped.startswith("#"):
            return number
    return line


def apply(kernels: Sequence[KernelReport], text: str, file: str) -> tuple[KernelReport, ...]:
    """Mark the findings that comments in `text` accept, and add warnings about comments that are no good.

    `kernels` are the reports of all kernels that were checked in this file.  Whether a suppression is unused is told
    only where it can be known: not while a row that its code belongs to is undecided.
    """
    comments = suppressions(text, file)
    if not comments or not kernels:
        return tuple(kernels)
    used: set[Suppression] = set()
    marked = []
    for kernel in kernels:
        findings = []
        for finding in kernel.findings:
            comment = next((c for c in comments if c.covers(finding)), None)
            if comment is not None:
                used.add(comment)
                if finding.suppressed is None:
                    finding = replace(finding, suppressed=comment.reason or "no reason given")
            findings.append(finding)
        marked.append(replace(kernel, findings=tuple(findings)))
    for comment in comments:
        for warning in _complaints(comment, comment in used, marked):
            at = _owner(marked, comment.span.line)
            marked[at] = replace(marked[at], findings=(*marked[at].findings, warning))
    return tuple(marked)


def _complaints(comment: Suppression, used: bool, kernels: Sequence[KernelReport]) -> Iterator[Finding]:
    known = [code for code in comment.codes if code in all_codes()]

    def warning(kind: tuple[str, str], message: str) -> Finding:
        row = next((r for r in map(row_of, known) if r is not None), Row.SLOT_MAPPING)
        return Finding(kind[0], kind[1], row, Severity.WARNING, message, comment.span)

    if not comment.codes:
        yield warning(UNUSED, "this comment suppresses nothing: it names no code; write ignore[206]")
        return
    for code in dict.fromkeys(comment.codes):
        if code not in known:
            begins = any(other.startswith(code) for other in all_codes())
            yield warning(UNUSED, f"a comment names whole codes; FP{code} is none" if begins else unknown_code(code))
    if not known:
        return
    codes = ", ".join("FP" + code for code in known)
    if not used and not _open(comment, kernels):
        yield warning(UNUSED, f"no finding {codes} on line {comment.line}; remove the comment")
    elif not comment.reason:
        yield warning(NO_REASON, f"{codes} is suppressed without a reason; write it after the bracket")


def _open(comment: Suppression, kernels: Sequence[KernelReport]) -> bool:
    rows = {row_of(code) for code in comment.codes}
    undecided = (Verdict.UNKNOWN, Verdict.VACUOUS)
    return any(check.row in rows and check.verdict in undecided for kernel in kernels for check in kernel.checks)


def _owner(kernels: Sequence[KernelReport], line: int) -> int:
    """Index of the kernel that a line belongs to: the last that starts at or before it."""
    before = [i for i, kernel in enumerate(kernels) if kernel.line <= line]
    return max(before, key=lambda i: kernels[i].line) if before else 0
