"""How does a timeline look as a drawing: one lane per pipe, arrows from each signal to the step that takes it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from fencepost.findings import Step
from fencepost.report.style import safe

_ROW = 22  # height of one step
_HEAD = 40
_CHARACTER = 6.7  # width at 11 px
_MOST = 34  # characters of one label
_GAP = 32  # between two lanes, for the arrows
_AGENTS = ("aic", "aiv0", "aiv1")
_PIPES = ("S", "MTE2", "MTE1", "M", "FIX", "V", "MTE3")

STYLE = """\
.fp-lane { --ink: #1c2127; --soft: #6b7480; --line: #d5dae0; --box: #e8eef6;
  --edge: #9fb2c8; --stuck: #c62828; --arrow: #2e7d32; }
@media (prefers-color-scheme: dark) { .fp-lane { --ink: #e6e9ed; --soft: #98a2ad; --line: #39414a; --box: #263342;
  --edge: #4d6580; --stuck: #ff7b72; --arrow: #7ee787; } }
.fp-lane text { font: 11px ui-monospace, Menlo, Consolas, monospace; fill: var(--ink); }
.fp-lane .head { font-weight: bold; } .fp-lane .soft { fill: var(--soft); }
.fp-lane .axis { stroke: var(--line); } .fp-lane .box { fill: var(--box); stroke: var(--edge); }
.fp-lane .waiting .box { stroke: var(--stuck); stroke-width: 2; } .fp-lane .waiting text { fill: var(--stuck); }
.fp-lane .never { opacity: .5; } .fp-lane .never .box { stroke-dasharray: 3 3; fill: none; }
.fp-lane .arrow { stroke: var(--arrow); stroke-width: 1.5; fill: none; } .fp-lane .tip { fill: var(--arrow); }
"""


def lanes_of(steps: Sequence[Step]) -> list[tuple[str, str]]:
    """The (agent, pipe) lanes of a timeline in drawing order."""
    found = {(step.agent, step.pipe) for step in steps}
    return sorted(found, key=lambda lane: (_rank(_AGENTS, lane[0]), lane[0], _rank(_PIPES, lane[1]), lane[1]))


def _rank(order: Sequence[str], item: str) -> int:
    return order.index(item) if item in order else len(order)


def drawing(steps: Sequence[Step], links: Sequence[tuple[int, int]] = (), standalone: bool = False) -> str:
    """Return an `<svg>` element; time runs downwards, each step has a row of its own.

    With `standalone` the style sheet is inside; otherwise the page that embeds the drawing has to carry `STYLE`.
    """
    lanes = lanes_of(steps)
    column = 10 + _GAP + _CHARACTER * min(_MOST, max((len(_label(step)) for step in steps), default=8))
    width, height = 8 + column * max(1, len(lanes)), _HEAD + _ROW * len(steps) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fp-lane" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" role="img" aria-label="swim lane of {len(steps)} steps">'
    ]
    if standalone:
        lines.append(f"<style>{STYLE}</style>")
    for i, (agent, pipe) in enumerate(lanes):
        x = 8 + column * i
        lines.append(f'<text class="head" x="{x:.0f}" y="14">{_xml(agent)}</text>')
        lines.append(f'<text class="soft" x="{x:.0f}" y="29">{_xml(pipe)}</text>')
        lines.append(f'<line class="axis" x1="{x:.0f}" y1="{_HEAD - 6}" x2="{x:.0f}" y2="{height - 4}"/>')
    at = {lane: 8 + column * i for i, lane in enumerate(lanes)}
    lines.extend(_box(step, at[step.agent, step.pipe], _HEAD + _ROW * i, column) for i, step in enumerate(steps))
    lines.extend(_arrows(steps, links, at, column))
    lines.append("</svg>")
    return "\n".join(lines)


def document(steps: Sequence[Step], links: Sequence[tuple[int, int]], title: str) -> str:
    """Return a file of its own; `title` is its description."""
    text = drawing(steps, links, standalone=True)
    head, rest = text.split("\n", 1)
    return f"{head}\n<title>{_xml(title)}</title>\n{rest}"


def page(steps: Sequence[Step], links: Sequence[tuple[int, int]], title: str) -> str:
    """Return an HTML page with the drawing, which needs nothing from the network."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_xml(title)}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px system-ui, sans-serif; margin: 1rem; }}
div {{ overflow-x: auto; }}
{STYLE}</style></head>
<body><h1 style="font-size: 1.1rem">{_xml(title)}</h1>
<div>{drawing(steps, links)}</div></body></html>
"""


def _label(step: Step) -> str:
    return (f"{step.span.line}: " if step.span.line else "") + safe(step.text)


def _box(step: Step, x: float, y: float, column: float) -> str:
    label = _label(step)
    if len(label) > _MOST:
        label = label[: _MOST - 1] + "…"
    state = step.state if step.state in ("waiting", "never") else "done"
    ending = {"waiting": " (waits for ever)", "never": " (never reached)"}.get(state, "")
    return (
        f'<g class="{state}"><title>{_xml(f"{step.agent} {step.pipe}, {_label(step)}{ending}")}</title>'
        f'<rect class="box" x="{x + 3:.0f}" y="{y:.0f}" width="{column - _GAP:.0f}" height="{_ROW - 5}" rx="3"/>'
        f'<text x="{x + 7:.0f}" y="{y + 12:.0f}">{_xml(label)}</text></g>'
    )


def _arrows(
    steps: Sequence[Step], links: Sequence[tuple[int, int]], at: dict[tuple[str, str], float], column: float
) -> Iterator[str]:
    for source, target in links:
        left, right = at[steps[source].agent, steps[source].pipe], at[steps[target].agent, steps[target].pipe]
        y1, y2 = _HEAD + _ROW * source + 8, _HEAD + _ROW * target + 8
        leaves = 1 if right >= left else -1  # +1: at the right edge of the source
        enters = -leaves if left == right else leaves  # a link within one lane comes back from the right
        x1 = left + (column - _GAP + 3 if leaves > 0 else 3)
        x2 = right + (3 if enters > 0 else column - _GAP + 3)
        bend = max(14.0, abs(x2 - x1) / 2)
        path = f"M{x1:.0f} {y1} C{x1 + leaves * bend:.0f} {y1} {x2 - enters * bend:.0f} {y2} {x2:.0f} {y2}"
        back = x2 - enters * 6
        yield f'<path class="arrow" d="{path}"/>'
        yield f'<path class="tip" d="M{x2:.0f} {y2} L{back:.0f} {y2 - 3} L{back:.0f} {y2 + 3} Z"/>'


def _xml(text: str) -> str:
    return escape(safe(text))
