"""Traces: which steps lead to a fault, agent by agent, and what is waiting at its end?

The steps form an execution that can happen.  Of two accesses without an order the one that should come second comes
first, as on the device when it goes wrong.
"""

from __future__ import annotations

from fencepost.facts import Fact
from fencepost.findings import Step
from fencepost.model.executor import Machine, Op, Run
from fencepost.model.functions import FunctionTable
from fencepost.timeline import Timeline, excerpt

_STEPS = 14


def steps(runs: list[Run], fact: Fact) -> tuple[Step, ...]:
    """The steps of `trace` alone."""
    return trace(runs, fact).steps


def trace(runs: list[Run], fact: Fact, replays: Replays | None = None) -> Timeline:
    """The last steps up to the fault, then every pipe involved that waits for ever.

    `replays`: those of earlier facts, so that a run with many faults is replayed once.
    """
    run = next((r for r in runs if not r.clean), runs[0]) if runs else None
    if run is None or fact.static:
        return Timeline((), (), 0)
    ops = [run.issued[agent][number] for agent, number in fact.operations]
    shown, states = _steps(run, fact, ops, Replays() if replays is None else replays)
    earlier = max(0, len(shown) - _STEPS)
    return excerpt(run, shown[earlier:], states[earlier:], earlier)


def _steps(run: Run, fact: Fact, ops: list[Op], replays: Replays) -> tuple[list[Op], list[str]]:
    kinds = {fault[0] for fault in fact.faults if isinstance(fault, tuple)}
    if run.blocked and "blocked" in kinds:
        return _hang(run, ops)
    if not ops:
        return [], []
    channels = {c for op in ops for c in (*op.effect.sets, *op.effect.waits)}
    if kinds & {"leftover", "overflow"} and channels:
        early = "overflow" in kinds and len(ops) == 2 and all(op.seq for op in ops)
        agents = {op.effect.agent for op in ops}
        shown = [
            op
            for op in (
                _reordered(run, replays, *ops) if early else _until(run, ops[-1] if "overflow" in kinds else None)
            )
            if op.effect.agent in agents and channels & {*op.effect.sets, *op.effect.waits}
        ]
    elif "race" in kinds and len(ops) == 2 and all(op.seq for op in ops):
        shown = _reordered(run, replays, *ops)
    else:
        agents = {op.effect.agent for op in ops}
        last = max((op for op in ops if op.seq), key=lambda op: _position(run, op), default=None)
        shown = [op for op in _until(run, last) if not agents or op.effect.agent in agents]
    return shown, ["done"] * len(shown)


def _position(run: Run, op: Op) -> int:
    return next((i for i in range(len(run.order) - 1, -1, -1) if run.order[i] is op), -1)


def _until(run: Run, last: Op | None) -> list[Op]:
    """The executed operations up to `last` (None: all of them)."""
    return run.order if last is None else run.order[: _position(run, last) + 1]


def _hang(run: Run, ops: list[Op]) -> tuple[list[Op], list[str]]:
    """The last steps of the cores that are stuck; of two sub-cores stuck at one place only the first."""
    stuck: dict[int, Op] = {}
    for blocked in run.blocked:
        if blocked.reason not in ("lock", "drain"):
            stuck.setdefault(id(blocked.op.stmt), blocked.op)
    waiting = list(stuck.values())
    agents = {op.effect.agent for op in (*waiting, *ops)}
    if "aic" not in agents or len(agents) == 1:
        agents |= {a for a in run.issued if a == "aic"} | {"aiv0"} & set(run.issued)
    done = [op for op in run.order if op.effect.agent in agents][-(_STEPS - len(waiting)) :]
    return [*done, *waiting], ["done"] * len(done) + ["waiting"] * len(waiting)


# ------------------------------------------------------------------------------------------------ order


class _Recorder(Machine):
    """The executor, keeping what each operation is ordered after: its clock, by agent and number."""

    def __init__(self, run: Run, weak: frozenset[int]) -> None:
        table = FunctionTable(dict(run.functions))
        super().__init__(run.compiled, run.values, table, run.credits, 1 << 30, weak)
        self.clocks: dict[tuple[str, int], tuple[int, ...]] = {}

    def execute(self, op: Op) -> None:
        super().execute(op)
        self.clocks[op.effect.agent, op.number] = tuple(self.pipes[op.pipe].clock)


class Replays:
    """Runs that were executed again with clocks."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Run, _Recorder]] = {}

    def of(self, run: Run) -> dict[tuple[str, int], tuple[int, ...]]:
        """The clock of each operation of a run, by agent and number."""
        if id(run) not in self._known:
            weak = frozenset(c.channel for c in run.contested if c.channel is not None)
            recorder = _Recorder(run, weak)
            recorder.run()
            self._known[id(run)] = run, recorder
        return self._known[id(run)][1].clocks


def _reordered(run: Run, replays: Replays, first: Op, second: Op) -> list[Op]:
    """An execution in which `second` comes before `first`, although it should come after it.

    Everything that `second` is ordered after, `second` itself, then what `first` still needs, and `first`.  Only the
    steps of the two cores are shown.
    """
    clocks = replays.of(run)
    agents = {first.effect.agent, second.effect.agent}

    def past(op: Op) -> list[Op]:
        clock = clocks[op.effect.agent, op.number]
        return [o for o in run.order if o is not op and clock[o.pipe] >= o.seq]

    before = past(second)
    if any(o is first for o in before):  # ordered after all
        return [o for o in _until(run, second) if o.effect.agent in agents]
    done = {id(o) for o in before} | {id(second)}
    rest = [o for o in past(first) if id(o) not in done]
    return [o for o in (*before, second, *rest, first) if o.effect.agent in agents]
