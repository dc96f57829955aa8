"""Traces: what are the last steps before a fault, agent by agent?"""

from __future__ import annotations

from fencepost.diagnose.texts import name
from fencepost.facts import Fact
from fencepost.findings import Step
from fencepost.model.executor import Op, Run

_STEPS = 14


def steps(runs: list[Run], fact: Fact) -> tuple[Step, ...]:
    """The last steps of the run that shows `fact`, in execution order, and then every pipe that waits for ever."""
    run = next((r for r in runs if not r.clean), runs[0])
    spans = {fact.span, *(r.span for r in fact.related)}
    last = next((i for i in range(len(run.order) - 1, -1, -1) if run.order[i].stmt.span in spans), len(run.order) - 1)
    if run.blocked:
        last = len(run.order) - 1
    shown = [step(op, "done") for op in run.order[max(0, last + 1 - _STEPS) : last + 1]]
    shown += [step(b.op, "waiting") for b in run.blocked]
    return tuple(shown)


def step(op: Op, state: str) -> Step:
    """One operation as a step of a timeline."""
    return Step(op.effect.agent, op.effect.pipe[1], text(op), op.stmt.span, state)


def text(op: Op) -> str:
    """`move qk[0]`, `wait 2`: an operation with its concrete operands, short enough for a column."""
    effect = op.effect
    touched = (*effect.writes, *effect.reads)
    if touched:
        operands = ", ".join(dict.fromkeys(f"{t.access.name}[{t.slot}]" for t in touched))
    else:
        operands = " ".join(map(str, effect.arguments))
    short = name(effect.stmt).replace("_cross_core", "")
    return f"{short} {operands}".strip() if op.task is None else f"{short} {operands} task {op.task}".strip()
