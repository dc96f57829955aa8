"""How does the end of a trace look as a swim lane, one column per agent?"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from fencepost.findings import Step
from fencepost.report.style import Style, fit, safe, width

_ORDER = ("aic", "aiv0", "aiv1")


def agents(steps: Sequence[Step]) -> list[str]:
    """The agents of a trace in column order: aic, aiv0, aiv1, then any other."""
    names = {step.agent for step in steps}
    return [*(a for a in _ORDER if a in names), *sorted(names - set(_ORDER))]


def label(step: Step) -> str:
    """One step in words: line, what became of it, pipe, operation."""
    at = f"{step.span.line}: " if step.span.line else ""
    return f"{at}{_state(step)}{step.pipe} {safe(step.text)}"


def _state(step: Step) -> str:
    match step.state:
        case "done":
            return ""
        case "waiting":
            return "STUCK "
        case other:
            return f"({safe(other)}) "


def lanes(steps: Sequence[Step], style: Style, cells: int = 108, limit: int | None = 12) -> list[str]:
    """Lines of a swim lane that is at most `cells` wide; only the last `limit` steps (None: all)."""
    if not steps:
        return []
    shown = steps if limit is None else steps[-limit:]
    columns = agents(steps)
    most = max(width(label(step)) for step in shown)
    column = max(16, min(most, (cells - 3 * (len(columns) - 1)) // len(columns)))
    out = [" | ".join(style.paint(name, "bold") for name in _padded(columns, column))]
    if len(shown) < len(steps):
        out.append(style.paint(f"… {len(steps) - len(shown)} earlier steps", "dim"))
    for step in shown:
        for part in textwrap.wrap(label(step), column, subsequent_indent="    "):
            row = _padded([part if name == step.agent else "" for name in columns], column)
            out.append(" | ".join(_paint(text, step, style) if text.strip() else text for text in row).rstrip())
    return out


def _padded(texts: Sequence[str], cells: int) -> list[str]:
    """The texts as columns of equal width; the last one is not padded."""
    return [*(fit(text, cells) for text in texts[:-1]), fit(texts[-1], cells).rstrip()]


def _paint(text: str, step: Step, style: Style) -> str:
    match step.state:
        case "waiting":
            return style.paint(text, "red")
        case "never":
            return style.paint(text, "dim")
        case _:
            return text
