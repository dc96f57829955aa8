"""How do the design tables of a protocol look, on a terminal, in Markdown and to a program?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from fencepost.findings import Step
from fencepost.report.lanes import lanes
from fencepost.report.replay import step as step_to_dict
from fencepost.report.style import Style, safe


class _Table(Protocol):
    @property
    def title(self) -> str: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def rows(self) -> tuple[tuple[str, ...], ...]: ...


class _Steady(Protocol):
    @property
    def steps(self) -> tuple[Step, ...]: ...


class Planned(Protocol):
    """What a renderer needs to know about a plan."""

    @property
    def kernel(self) -> str: ...
    @property
    def values(self) -> Mapping[str, int]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def tables(self) -> Sequence[_Table]: ...
    @property
    def rounds(self) -> int: ...
    @property
    def steady(self) -> _Steady: ...


def render(plan: Planned, *, colour: bool = False, markdown: bool = False, columns: int = 120) -> str:
    """The tables one below the other, then the steady state as a swim lane `columns` wide."""
    return "\n".join(_lines(plan, Style(colour and not markdown), markdown, columns)) + "\n"


def _lines(plan: Planned, style: Style, markdown: bool, columns: int) -> Iterator[str]:
    from tabulate import tabulate

    values = ", ".join(f"{name} = {value}" for name, value in plan.values.items())
    run = f"read off the run with {values}" if values else "read off the only run"
    yield f"## {plan.kernel}" if markdown else style.paint(safe(plan.kernel), "bold") + f"   {run}"
    if markdown:
        yield f"\n{run[:1].upper()}{run[1:]}."
    for note in plan.notes:
        yield f"\n**{safe(note)}**" if markdown else "  " + style.paint(safe(note), "yellow")
    for table in plan.tables:
        yield ""
        yield f"### {table.title}\n" if markdown else style.paint(table.title, "bold")
        rows = [[_cell(cell, markdown) for cell in row] for row in table.rows]
        yield tabulate(rows, table.columns, "pipe" if markdown else "simple", disable_numparse=True)
    if plan.steady.steps:
        title = f"Steady state, {plan.rounds} round{'' if plan.rounds == 1 else 's'}"
        yield ""
        yield f"### {title}\n\n```" if markdown else style.paint(title, "bold")
        yield from lanes(plan.steady.steps, style, columns, None)
        if markdown:
            yield "```"


def _cell(text: str, markdown: bool) -> str:
    """A cell whose lines stay lines; in Markdown a bar must not end the cell."""
    lines = [safe(line) for line in text.split("\n")]
    return "<br>".join(line.replace("|", "\\|") for line in lines) if markdown else "\n".join(lines)


def to_dict(plan: Planned) -> dict[str, object]:
    """The plan as plain dictionaries and lists."""
    return {
        "kernel": plan.kernel,
        "values": dict(plan.values),
        "notes": list(plan.notes),
        "tables": [
            {"title": t.title, "rows": [dict(zip(t.columns, row, strict=True)) for row in t.rows]} for t in plan.tables
        ],
        "steady": {"rounds": plan.rounds, "steps": [step_to_dict(s) for s in plan.steady.steps]},
    }
