"""Is an annotated pipeline of a kernel right?"""

from __future__ import annotations

from dataclasses import replace

from fencepost import ir
from fencepost.findings import Row, Undecided, Verdict
from fencepost.pipeline.accept import resolve
from fencepost.pipeline.build import build
from fencepost.pipeline.counts import further_round, trips_of
from fencepost.pipeline.limits import Unreadable
from fencepost.pipeline.model import Loop
from fencepost.pipeline.planned import Unplanned, plan_stages
from fencepost.pipeline.reached import impossible, reached
from fencepost.pipeline.result import PipelineFault, PipelineResult
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.suggest import NoSuggestion, Suggestion, suggest
from fencepost.pipeline.surroundings import find
from fencepost.pipeline.trips import Trips
from fencepost.pipeline.verify import verify


def check_pipeline(loop: ir.Pipelined, kernel: ir.Kernel, deadline: float | None = None) -> PipelineResult:
    """Check one `pipelined` loop of a kernel for all parameter values that the kernel allows.

    `deadline` is a time of `time.monotonic()` after which what has not been decided stays unknown.

    Raises:
        ValueError: `loop` is not a node of `kernel`.
    """
    try:
        result = _check(loop, kernel, deadline)
    except RecursionError:
        result = _unreadable(loop, Unreadable("statements or expressions are nested too deeply"))
    return replace(result, faults=tuple(_of_parameters(f, kernel) for f in result.faults))


def _check(loop: ir.Pipelined, kernel: ir.Kernel, deadline: float | None) -> PipelineResult:
    try:
        model, trips = _modelled(loop, kernel)
    except Unreadable as unreadable:
        return _unreadable(loop, unreadable)
    result = verify(model, trips, deadline).certain()
    if result.verdict is Verdict.NOT_APPLICABLE and loop.num_stages is not None:
        return _as_planned(model, trips, deadline)
    if any(f.failure is not None for f in result.faults):
        return reached(result, model, trips, loop, kernel, deadline)
    return result


def _modelled(loop: ir.Pipelined, kernel: ir.Kernel) -> tuple[Loop, Trips]:
    """The loop in terms of its accesses, and its trip counts.

    Raises:
        Unreadable: it holds something that cannot be taken into account.
    """
    around = find(loop, kernel)
    trips = trips_of(loop, around)
    if around.repeated and impossible(trips.given(further_round(loop, around), True)):
        around = find(loop, kernel, "nothing")
    return build(loop, around), trips


def _unreadable(loop: ir.Pipelined, unreadable: Unreadable) -> PipelineResult:
    span = loop.span if unreadable.span == ir.NOWHERE else unreadable.span
    reason = f"the loop over {loop.var} could not be read: {unreadable}"
    if loop.stage is None and loop.order is None:
        return PipelineResult((), Verdict.NOT_APPLICABLE, f"no stage and order; {reason}")
    return PipelineResult((), Verdict.UNKNOWN, reason, (Undecided(Row.PIPELINE, reason, span),))


def _as_planned(model: Loop, trips: Trips, deadline: float | None) -> PipelineResult:
    """The loop with the stages that the compiler chooses; what goes wrong then is the compiler's doing."""
    asked = f"num_stages = {model.annotations.num_stages}"
    try:
        planned = plan_stages(model)
    except Unplanned as unplanned:
        return PipelineResult((), Verdict.NOT_APPLICABLE, f"{asked}, stage and order left to the compiler: {unplanned}")
    result = verify(planned, trips, deadline).certain()
    notes = planned.annotations
    chosen = f"{asked}, which the compiler turns into stage = {notes.stage}, order = {notes.order}"
    if result.verdict is Verdict.PROVED:
        return replace(result, faults=(), evidence=f"{chosen}; {result.evidence}")
    doubt = result.faults[0].message if result.faults else result.evidence
    return PipelineResult((), Verdict.NOT_APPLICABLE, f"{chosen}; not proved: {doubt}", plan=result.plan)


def _of_parameters(fault: PipelineFault, kernel: ir.Kernel) -> PipelineFault:
    """The fault with a witness in terms of the kernel's parameters, in the order of their declaration."""
    if fault.witness is None:
        return fault
    known = dict(fault.witness.values)
    values = tuple((name, known[name]) for name in kernel.parameters if name in known)
    return replace(fault, witness=replace(fault.witness, values=values))


def pipelines(kernel: ir.Kernel) -> tuple[ir.Pipelined, ...]:
    """The annotated loops of a kernel, in text order."""
    return tuple(node for node in ir.walk(kernel) if isinstance(node, ir.Pipelined))


def plan_of(loop: ir.Pipelined, kernel: ir.Kernel) -> Plan | None:
    """What the compiler makes of a loop, for showing it; None if the loop is rejected or could not be read."""
    try:
        model, _ = _modelled(loop, kernel)
        if loop.stage is None and loop.order is None and loop.num_stages is not None:
            model = plan_stages(model)
    except (Unreadable, Unplanned):
        return None
    return resolve(model).plan


def suggestion_for(
    loop: ir.Pipelined, kernel: ir.Kernel, deadline: float | None = None, written: PipelineResult | None = None
) -> Suggestion | NoSuggestion | None:
    """The nearest right annotation of a loop, or why there is none; None if it is right as it is, or unreadable.

    `deadline` is a time of `time.monotonic()` after which the search is given up; `written` is what `check_pipeline`
    says about the loop, if that is known.
    """
    try:
        model, trips = _modelled(loop, kernel)
        written = _check(loop, kernel, deadline) if written is None else written
        return suggest(model, trips, deadline, written)
    except Unreadable:
        return None
