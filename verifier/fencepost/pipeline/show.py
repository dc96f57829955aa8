"""What does a pipelined loop look like after the compiler has rewritten it?

Two views: the program, with the iteration of every statement as a formula, and the lanes, with the iteration of every
statement step by step for one trip count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fencepost.pipeline.emission import Commit, Item, Run, Wait, emit, steps
from fencepost.pipeline.schedule import Plan, Slot
from fencepost.pipeline.setting import Setting


@dataclass(frozen=True, slots=True)
class Lane:
    """One step of the rewritten program: which iteration of which statement runs, in order of execution.

    A statement whose condition does not hold is left out.  `marks` are the commits and waits, each with the number of
    statements that run before it in the step.
    """

    part: str
    time: int
    runs: tuple[tuple[int, int], ...]  # statement, iteration
    marks: tuple[tuple[int, str], ...] = ()


def lanes(plan: Plan, trips: int) -> list[Lane]:
    """Every step of the rewritten program for `trips` iterations."""
    result = []
    for part, time, items in steps(emit(plan, trips)):
        runs: list[tuple[int, int]] = []
        marks: list[tuple[int, str]] = []
        for slot, mark in _flat(items):
            if slot is None:
                marks.append((len(runs), mark))
                continue
            iteration = time - slot.stage if plan.rewritten else time
            if plan.statement(slot).guard.holds(iteration, trips, Setting()):
                runs.append((slot.number, iteration))
        result.append(Lane(part.name, time, tuple(runs), tuple(marks)))
    return result


def _flat(items: tuple[Item, ...]) -> Iterator[tuple[Slot | None, str]]:
    for item in items:
        match item:
            case Run(slot):
                yield slot, ""
            case Commit(runs):
                yield from ((run.slot, "") for run in runs)
                yield None, "commit"
            case Wait(pending):
                yield None, f"wait {pending}"


def lanes_text(plan: Plan, trips: int) -> str:
    """The lanes as a table: a column per statement in source order, a row per step."""
    columns = [slot.number for slot in plan.slots]
    header = ["step", *(plan.loop.statements[n].label for n in columns)]
    rows = [header]
    marked: list[str] = [""]
    for lane in lanes(plan, trips):
        iterations = dict(lane.runs)
        rows.append([f"{lane.part} {lane.time}", *(str(iterations.get(n, "")) for n in columns)])
        marked.append("  ".join(_placed(plan, lane)))
    widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
    lines = []
    for row, marks in zip(rows, marked, strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"{cells}  {marks}".rstrip())
    return "\n".join(lines)


def _placed(plan: Plan, lane: Lane) -> Iterator[str]:
    for place, mark in lane.marks:
        if mark == "commit":
            before = plan.loop.statements[lane.runs[place - 1][0]].label if place else "nothing"
            yield f"commit after {before}"
        else:
            after = plan.loop.statements[lane.runs[place][0]].label if place < len(lane.runs) else "the step ends"
            yield f"{mark} before {after}"


def program_text(plan: Plan, trips: str = "n") -> str:
    """The rewritten program for any number of trips that is at least twice the depth; `trips` is their name."""
    if not plan.rewritten:
        body = [f"    {plan.statement(slot).label}" for slot in plan.slots]
        return "\n".join([f"for i in 0 .. {trips} - 1:", *body])
    count = 2 * plan.depth + 4  # what is emitted does not change from here on
    lines: list[str] = []
    name = ""
    for part in emit(plan, count):
        if part.name != name:
            name = part.name
            if name == "body":
                first, last = plan.last_stage, f"{trips} - 1"
                lines.append(f"body, for t in {first} .. {last}:")
            elif part.count > 0:
                lines.append(f"{name}:")
        if part.count < 1:
            continue
        lines += [f"    {text}" for text in _items(plan, part.items, part.name, part.start, count, trips)]
    versions = [f"{buffer} {count}" for buffer, count in plan.versions.items() if count > 1]
    if versions:
        lines.append(f"versions: {', '.join(versions)}")
    return "\n".join(lines)


def _items(plan: Plan, items: tuple[Item, ...], part: str, time: int, count: int, trips: str) -> Iterator[str]:
    for slot, mark in _flat(items):
        if slot is None:
            yield mark
            continue
        for number in plan.replays[slot.number]:
            yield f"{plan.loop.statements[number].label} ({_iteration(part, time - slot.stage, slot, count, trips)})"
        yield f"{plan.statement(slot).label} ({_iteration(part, time - slot.stage, slot, count, trips)})"


def _iteration(part: str, iteration: int, slot: Slot, count: int, trips: str) -> str:
    match part:
        case "prologue":
            return str(iteration)
        case "body":
            return _sum("t", -slot.stage)
        case _:
            return _sum(trips, iteration - count)


def _sum(name: str, constant: int) -> str:
    if constant == 0:
        return name
    return f"{name} {'+' if constant > 0 else '-'} {abs(constant)}"
