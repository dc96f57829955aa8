"""Does what goes wrong with a loop go wrong in a run of its kernel, in which loops around execute it several times?

Three questions about the loop are asked one by one: what goes wrong in an execution whatever comes after it, what in
one after which no further round follows, and what in one that another execution follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, TypeAlias

from fencepost import ir
from fencepost.findings import Severity, Verdict
from fencepost.pipeline.build import build
from fencepost.pipeline.counts import further_round
from fencepost.pipeline.executions import executions
from fencepost.pipeline.model import Loop
from fencepost.pipeline.result import PipelineFault, PipelineResult
from fencepost.pipeline.surroundings import Surroundings, find
from fencepost.pipeline.trips import Trips, Unclear
from fencepost.pipeline.verify import verify

_After: TypeAlias = Literal["anything", "nothing", "another"]
"""What comes after an execution: whatever it is, no further execution, or one more."""


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
        some = _shown(verify(part, counts, deadline).certain(), loop, around, after)
        if after != "anything" or any(f.severity is Severity.ERROR for f in some.faults):
            found.append(some)
    return _together(result, found)


def _parts(model: Loop, trips: Trips, loop: ir.Pipelined, around: Surroundings) -> Iterator[tuple[_After, Loop, Trips]]:
    further = further_round(loop, around)
    alone = replace(model, after=(), read_later=frozenset(), written_later=(), repeated=False)
    yield "anything", alone, trips
    last = replace(build(loop, find(loop, around.kernel, last=True)), annotations=model.annotations)
    yield "nothing", last, trips.given(further, False)
    if model.repeated:
        yield "another", model, trips.given(further, True)


def _shown(result: PipelineResult, loop: ir.Pipelined, around: Surroundings, after: _After) -> PipelineResult:
    """Take back what does not show in the run of the kernel that is to show it."""
    if after != "another" and not around.jumps:  # the trip counts are exact
        return result

    def doubtful(fault: PipelineFault) -> bool:
        if fault.failure is None:
            return False
        count = fault.failure.outcome.trips
        run = executions(loop, around.kernel, fault.failure.setting)
        if run is None or count not in run:
            return True
        if after == "another":
            return not any(n == count and next_ for n, next_ in zip(run, run[1:], strict=False))
        return after == "nothing" and run[-1] != count

    again = " and then executed again" if after == "another" else ""
    return result.without(doubtful, lambda f: f"whether the loop is reached{again} for these values is not known")


def _together(whole: PipelineResult, parts: list[PipelineResult]) -> PipelineResult:
    """One result for all executions; `whole` if there are none."""
    if not parts:
        return whole
    every = [f for part in parts for f in part.faults]
    run = {f.code for f in every if f.failure is not None}
    faults: dict[tuple[object, ...], PipelineFault] = {}
    for fault in every:
        if fault.failure is not None or fault.code not in run:
            faults.setdefault((fault.code, fault.spans), fault)
    unknown = tuple(dict.fromkeys(u for part in parts for u in part.unknown))
    chosen = next((p for verdict in _ORDER for p in parts if p.verdict is verdict), parts[-1])
    return replace(chosen, faults=tuple(faults.values()), unknown=unknown, plan=whole.plan)


_ORDER = (Verdict.REFUTED, Verdict.UNKNOWN, Verdict.PROVED)
