"""How do the places of a finding look in their source text?

Each place is a source line with its number and a line of marks below it: carets under the place of the finding itself,
dashes under the places related to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.findings import Finding
from fencepost.ir import Span
from fencepost.report.style import Style, safe, width

_CLIP = 100  # terminal cells of one source line
_TAB = "    "


@dataclass(frozen=True, slots=True)
class _Mark:
    span: Span
    label: str
    primary: bool


def excerpt(finding: Finding, file: str, source: str, style: Style) -> list[str]:
    """Lines that show the finding's place and its related places in `source`, the text of `file`.

    Places in other files, or without a position, are named without an excerpt.
    """
    labels: dict[Span, list[str]] = {}
    for related in finding.related:
        labels.setdefault(related.span, []).append(related.message)
    marks = [_Mark(finding.span, "", True), *(_Mark(span, "; ".join(told), False) for span, told in labels.items())]
    lines = source.split("\n") if source else []
    shown = [m for m in marks if m.span.file == file and 1 <= m.span.line <= len(lines)]
    out: list[str] = []
    margin = len(str(max((m.span.line for m in shown), default=0)))
    previous: int | None = None
    for mark in sorted(shown, key=lambda m: (m.span.line, not m.primary, m.span.column)):
        if mark.span.line != previous:
            if previous is not None and mark.span.line > previous + 1:
                out.append(style.paint(" " * (margin - 1) + "… |", "dim"))
            text, _ = _clip(lines[mark.span.line - 1], mark.span)
            out.append(style.paint(f"{mark.span.line:>{margin}} | ", "dim") + text)
        bar = style.paint(" " * margin + " | ", "dim")
        out.extend(bar + line for line in _underline(lines[mark.span.line - 1], mark, style))
        previous = mark.span.line
    out.extend(_elsewhere(m, style) for m in marks if m not in shown and (m.label or m.span.line))
    return out


def call_path(span: Span) -> list[str]:
    """Lines that name the call sites through which an inlined helper was reached, outermost first."""
    return [safe(f"called from {site.file}:{site.line}:{site.column}") for site in span.via]


def caret(line: str, column: int) -> list[str]:
    """The excerpt of an input error: its source line and a caret below the 1-based `column`."""
    if not line or column < 1:
        return []
    text, start = _clip(line, Span("", 1, column, 1, column + 1))
    before = _visible(line[start : column - 1])
    lead = 1 if start else 0
    return [text, " " * (width(before) + lead) + "^"]


def _elsewhere(mark: _Mark, style: Style) -> str:
    where = safe(f"{mark.span.file}:{mark.span.line}" if mark.span.line else mark.span.file)
    return style.paint(f"at {where}", "dim") + (f": {safe(mark.label)}" if mark.label else "")


def _clip(line: str, span: Span) -> tuple[str, int]:
    """The part of a long line around a span, and the 0-based character where it starts."""
    if width(_visible(line)) <= _CLIP:
        return _visible(line.rstrip()), 0
    start = max(0, span.column - 1 - _CLIP // 3)
    part = _visible(line[start : start + _CLIP])
    return ("…" if start else "") + part + ("…" if start + _CLIP < len(line) else ""), start


def _underline(line: str, mark: _Mark, style: Style) -> list[str]:
    """The line of marks, with the label behind it, or below it where there is no room."""
    span = mark.span
    _, start = _clip(line, span)
    first = max(span.column - 1, start)
    last = span.end_column - 1 if span.end_line == span.line and span.end_column else len(line.rstrip())
    last = min(max(last, first + 1), start + _CLIP)
    before = width(_visible(line[start:first])) + (1 if start else 0)
    cells = max(1, width(_visible(line[first:last])))
    marks = " " * before + (style.paint("^" * cells, "red") if mark.primary else style.paint("-" * cells, "cyan"))
    label = safe(mark.label)
    if before + cells + 1 + width(label) <= _CLIP:
        return [f"{marks} {label}".rstrip()]
    return [marks, " " * min(before, max(0, _CLIP - width(label))) + label]


def _visible(text: str) -> str:
    return safe(text.replace("\t", _TAB))
