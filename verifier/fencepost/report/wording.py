"""Which words do all formats use for the same fact?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import assert_never

from fencepost.findings import Check, Finding, KernelReport, Report, Row, Severity, Undecided, Verdict
from fencepost.ir import Span
from fencepost.phrases import plural

_WORD = re.compile(r"[^\W\d]\w*")
_EXPRESSION_WORDS = frozenset({"and", "or", "not", "min", "max", "if", "else"})


def code(finding: Finding) -> str:
    """The code as people read it: FP206."""
    return f"FP{finding.code}"


def place(span: Span) -> str:
    """`file:line:column`, without the parts that are not known."""
    if not span.line:
        return span.file
    return f"{span.file}:{span.line}:{span.column}" if span.column else f"{span.file}:{span.line}"


def domain(kernel: KernelReport) -> tuple[str, ...]:
    """The assumptions that speak of nothing but parameters: the values that a verdict covers."""
    known = _EXPRESSION_WORDS | set(kernel.parameters)
    return tuple(a for a in kernel.assumptions if (words := set(_WORD.findall(a))) and words <= known)


def further_assumptions(kernel: KernelReport) -> tuple[str, ...]:
    """The assumptions that `domain` leaves out."""
    facts = domain(kernel)
    return tuple(a for a in kernel.assumptions if a not in facts)


def scope(kernel: KernelReport) -> str:
    """For which values a verdict speaks: "for all n >= 0, m"; empty for a kernel without parameters."""
    facts = domain(kernel)
    named = {word for fact in facts for word in _WORD.findall(fact)}
    parts = (*facts, *(p for p in kernel.parameters if p not in named))
    return f"for all {', '.join(parts)}" if parts else ""


def headline(kernel: KernelReport) -> str:
    """The verdict of a kernel in one phrase, e.g. "PROVED for all n >= 0" or "REFUTED by FP206, FP302"."""
    word = kernel.verdict.value.upper()
    match kernel.verdict:
        case Verdict.PROVED:
            if nothing_to_check(kernel):
                return "NOTHING TO CHECK"
            return f"{word} {scope(kernel)}".rstrip()
        case Verdict.REFUTED:
            live = sorted({code(f) for f in kernel.findings if counts(f)})
            if live:
                return f"{word} by {', '.join(live)}"
            return f"{word}, accepted" if kernel.findings else word
        case Verdict.UNKNOWN:
            rows = [check.row.id for check in kernel.checks if check.verdict is Verdict.UNKNOWN]
            return f"{word} in row{'s' if len(rows) > 1 else ''} {', '.join(rows)}" if rows else word
        case Verdict.VACUOUS:
            return f"{word}: the assumptions leave nothing to check"
        case Verdict.NOT_APPLICABLE:
            return word
        case _:
            assert_never(kernel.verdict)


def nothing_to_check(kernel: KernelReport) -> bool:
    """Whether no row applies to the kernel, so that "proved" would say too much."""
    return kernel.verdict is Verdict.PROVED and all(c.verdict is Verdict.NOT_APPLICABLE for c in kernel.checks)


def counts(finding: Finding) -> bool:
    """Whether a finding counts against the kernel: an error that is not suppressed."""
    return finding.severity is Severity.ERROR and finding.suppressed is None


def sentence(text: str) -> str:
    """The text with a full stop at its end."""
    return text if text.endswith((".", "!", "?")) else text + "."


def witness(finding: Finding) -> str:
    """The smallest values that show the finding, e.g. "n = 0"; "always" for a static fault."""
    return "always" if finding.witness is None else str(finding.witness)


def of_row(findings: Iterable[Finding], row: Row) -> tuple[Finding, ...]:
    return tuple(f for f in findings if f.row is row)


def undecided_of_row(kernel: KernelReport, row: Row) -> tuple[Undecided, ...]:
    return tuple(u for u in kernel.unknown if u.row is row)


def undecided(kernel: KernelReport) -> tuple[Undecided, ...]:
    """All that keeps a kernel from being proved or refuted: unknown rows, then vacuous ones."""
    vacuous = (c for c in kernel.checks if c.verdict is Verdict.VACUOUS)
    return (*kernel.unknown, *(Undecided(c.row, f"vacuous, {c.evidence}") for c in vacuous))


def undecided_together(kernel: KernelReport) -> list[tuple[Span, str, str]]:
    """What is undecided, as (place, reason, rows): rows with one place and reason stand together.

    Where no place is known the kernel's own stands in.
    """
    rows: dict[tuple[Span, str], list[str]] = {}
    for one in undecided(kernel):
        where = one.span if one.span.line else Span(kernel.file, kernel.line)
        rows.setdefault((where, one.reason), []).append(one.row.title)
    return [(where, reason, ", ".join(titles)) for (where, reason), titles in rows.items()]


def row_label(check: Check) -> str:
    """ "1 slot mapping"; rows without a number have their name only."""
    row = check.row
    return f"{row.id} {row.title}" if row.id.isdigit() else row.title


def check_id(row: Row) -> int | str:
    """The id of a row in machine-readable formats: a number for the six points, else its name."""
    return int(row.id) if row.id.isdigit() else row.id


def summary(report: Report) -> str:
    """One line that sums up the run, e.g. "3 kernels: 2 proved, 1 refuted · 1 error · 1 suppressed"."""
    if not report.kernels and not report.errors:
        return "no kernels"
    parts = []
    if report.kernels:
        words = ["with nothing to check" if nothing_to_check(k) else k.verdict.value for k in report.kernels]
        known = (*(v.value for v in Verdict), "with nothing to check")
        told = ", ".join(f"{words.count(word)} {word}" for word in known if word in words)
        parts.append(f"{plural(len(words), 'kernel')}: {told}")
    findings = [f for k in report.kernels for f in k.findings]
    live = [f for f in findings if f.suppressed is None]
    for severity in Severity:
        number = sum(f.severity is severity for f in live)
        if number:
            parts.append(plural(number, severity.value))
    if len(live) < len(findings):
        parts.append(f"{len(findings) - len(live)} suppressed")
    if report.errors:
        parts.append(plural(len(report.errors), "input error"))
    return " · ".join(parts)


def seconds(value: float) -> str:
    """A duration for people: "0.21 s", "12 s"."""
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"
