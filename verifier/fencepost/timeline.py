"""How does a concrete run read as a list of steps, and which step waits for which?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from fencepost import ir
from fencepost.diagnose.texts import name
from fencepost.findings import Step
from fencepost.model.effects import Touch
from fencepost.model.executor import Op, Run

_NEVER = 3  # operations shown per pipe behind the one that is stuck


@dataclass(frozen=True, slots=True)
class Timeline:
    """The steps of a run in the order of its canonical execution, then what is stuck and what never ran.

    `links` are pairs of indices into `steps`: a signal or message, and the step that takes it.  `earlier` counts the
    executed operations that were left out at the beginning.
    """

    steps: tuple[Step, ...]
    links: tuple[tuple[int, int], ...] = ()
    earlier: int = 0


def timeline(run: Run, last: int | None = None) -> Timeline:
    """Return the timeline of a run; `last` keeps only that many executed operations (None: all)."""
    shown = run.order if last is None else run.order[-last:]
    stuck = [blocked.op for blocked in run.blocked]
    never = list(_never(run, stuck)) if stuck else []
    states = ["done"] * len(shown) + ["waiting"] * len(stuck) + ["never"] * len(never)
    return excerpt(run, [*shown, *stuck, *never], states, len(run.order) - len(shown))


def excerpt(run: Run, ops: Sequence[Op], states: Sequence[str] = (), earlier: int = 0) -> Timeline:
    """A timeline of some operations of a run.

    `states` says what became of each (default: all are done), `earlier` how many operations before them are left out.
    """
    at = {id(op): index for index, op in enumerate(ops)}
    steps = map(step, ops, states or ["done"] * len(ops))
    links = sorted({(at[id(a)], at[id(b)]) for a, b in pairs(run) if id(a) in at and id(b) in at})
    return Timeline(tuple(steps), tuple(links), earlier)


def step(op: Op, state: str = "done") -> Step:
    """One operation as a step."""
    agent, pipe = op.effect.pipe
    return Step(agent, pipe, words(op), op.stmt.span, state)


def words(op: Op) -> str:
    """The operation with its ids and slots filled in: "set_cross_core 3", "softmax p <- qk[1]"."""
    stmt, effect = op.stmt, op.effect
    text = name(stmt)
    match stmt:
        case ir.DataOp(writes=writes, reads=reads):
            touched = {id(touch.access): touch for touch in (*effect.reads, *effect.writes)}
            outside = {id(access): index for access, index in effect.out_of_range}
            targets = ", ".join(_operand(a, touched, outside) for a in writes)
            sources = ", ".join(_operand(a, touched, outside) for a in reads)
            text += (f" {targets}" if targets else "") + (f" <- {sources}" if sources else "")
        case ir.SetCross(id=ir.Item(name=ids)) | ir.WaitCross(id=ir.Item(name=ids)):
            text += f" {effect.arguments[0]} ({ids})"
        case ir.SetCross() | ir.WaitCross() | ir.MutexLock() | ir.MutexUnlock():
            text += f" {effect.arguments[0]}"
        case ir.SyncSrc(source=source, target=target) | ir.SyncDst(source=source, target=target):
            text += f" {effect.arguments[0]}: {source} -> {target}"
        case ir.Push(value=value) | ir.Pop(value=value) | ir.Free(value=value):
            text += f" {value}" + (f" (message {op.message})" if op.message is not None else "")
        case _:
            pass
    return text if op.task is None else f"{text} task {op.task}"


def _operand(access: ir.Access, touched: dict[int, Touch], outside: dict[int, int]) -> str:
    touch = touched.get(id(access))
    if id(access) in outside:
        return f"{access.name}[{outside[id(access)]}]"
    return access.name if touch is None or access.index is None else f"{access.name}[{touch.slot}]"


def _never(run: Run, stuck: list[Op]) -> Iterator[Op]:
    """The next few operations of the pipes that are stuck."""
    for op in stuck:
        agent = op.effect.agent
        behind = (other for other in run.issued[agent][op.number + 1 :] if not other.seq and other.pipe == op.pipe)
        yield from islice(behind, _NEVER)


def pairs(run: Run) -> Iterator[tuple[Op, Op]]:
    """Who takes what: every executed set with its wait, every push with its pop."""
    for givers, takers in ((run.sets, run.waits), (run.pushes, run.pops)):
        for given, taken in zip(givers, takers, strict=False):
            yield from zip(given, taken, strict=False)
