"""Does what goes wrong with a loop go wrong in a run of its kernel, in which loops around execute it several times?

The questions are asked one by one: what goes wrong in an execution of the loop whatever comes after it, what in one
after which there are no further rounds, what because of other statements in further rounds, and what because the loop
is executed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from fencepost import ir
from fencepost.findings import Severity, Verdict
from fencepost.pipeline.build import build
from fencepost.pipeline.counts import further_round
from fencepost.pipeline.executions import executions
from fencepost.pipeline.model import Loop
from fencepost.pipeline.result import PipelineFault, PipelineResult
from fencepost.pipeline.surroundings import After, Surroundings, find
from fencepost.pipeline.trips import Trips, Unclear
from fencepost.pipeline.verify import verify


def impossible(trips: Trips) -> bool:
    """Whether no trip count is possible, for sure."""
    try:
        return trips.least(0) is None
    except Unclear:
        return False


def reached(
    result: PipelineResult, model: Loop, trips: Trips, loop: ir.Pipelined, kernel: ir.Kernel, deadline: float | None
) -> PipelineResult:
    """The result for a loop that other loops may stand around: faults that show in a run of the kernel.

    Args:
        result: what is said about `model` and `trips` if every execution may be the last or be followed by another.
    """
    around = find(loop, kernel)
    if not around.repeated:
        return result
    found: list[PipelineResult] = []
    for after, part, counts in _parts(model, trips, loop, around):
        if impossible(counts):
            continue
        some = verify(part, counts, deadline).certain()
        known = {_key(f) for one in found for f in one.faults if f.failure is not None}
        some = replace(some, faults=tuple(f for f in some.faults if _key(f) not in known))
        some = _shown(some, loop, around, after)
        if after in ("nothing", "executions") or any(f.severity is Severity.ERROR for f in some.faults):
            found.append(some)  # the others show faults only: these two make up all executions
    return _together(result, found)


def _parts(
    model: Loop, trips: Trips, loop: ir.Pipelined, around: Surroundings
) -> Iterator[tuple[After | None, Loop, Trips]]:
    """What comes after an execution (None: it does not matter), the loop then, and its trip counts."""
    further = further_round(loop, around)
    yield None, replace(model, after=(), read_later=frozenset(), written_later=(), repeated=False), trips
    for after in _FOLLOWING:
        part = build(loop, find(loop, around.kernel, after))
        if after == "nothing" or model.repeated:
            yield after, replace(part, annotations=model.annotations), trips.given(further, after != "nothing")


_FOLLOWING: tuple[After, ...] = ("nothing", "rounds", "executions")


def _shown(result: PipelineResult, loop: ir.Pipelined, around: Surroundings, after: After | None) -> PipelineResult:
    """Take back what does not show in the run of the kernel that is to show it."""
    if after != "executions" and not around.jumps:  # the trip counts are exact
        return result

    def doubtful(fault: PipelineFault) -> bool:
        if fault.failure is None:
            return False
        count = fault.failure.outcome.trips
        run = executions(loop, around.kernel, fault.failure.setting)
        if run is None or count not in run:
            return True
        if after in ("rounds", "executions"):
            return not any(n == count and following for n, following in pairwise(run))
        return after == "nothing" and run[-1] != count

    again = " and then executed again" if after in ("rounds", "executions") else ""
    return result.without(doubtful, lambda f: f"whether the loop is reached{again} for these values is not known")


def _key(fault: PipelineFault) -> tuple[object, ...]:
    return fault.code, fault.spans


def _together(whole: PipelineResult, parts: list[PipelineResult]) -> PipelineResult:
    """One result for all executions; `whole` if there are none."""
    if not parts:
        return whole
    every = [f for part in parts for f in part.faults]
    run = {f.code for f in every if f.failure is not None}
    faults: dict[tuple[object, ...], PipelineFault] = {}
    for fault in every:
        if fault.failure is not None or fault.code not in run:
            faults.setdefault(_key(fault), fault)
    unknown = tuple(dict.fromkeys(u for part in parts for u in part.unknown))
    chosen = next((p for verdict in _ORDER for p in parts if p.verdict is verdict), parts[-1])
    return replace(chosen, faults=tuple(faults.values()), unknown=unknown, plan=whole.plan)


_ORDER = (Verdict.REFUTED, Verdict.UNKNOWN, Verdict.PROVED)
