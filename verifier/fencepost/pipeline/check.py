"""Is an annotated pipeline of a kernel right?"""

from __future__ import annotations

from dataclasses import replace

from fencepost import ir
from fencepost.findings import Row, Undecided, Verdict
from fencepost.pipeline.build import build
from fencepost.pipeline.counts import trips_of
from fencepost.pipeline.forms import Unreadable
from fencepost.pipeline.result import PipelineFault, PipelineResult
from fencepost.pipeline.surroundings import find
from fencepost.pipeline.verify import verify


def check_pipeline(loop: ir.Pipelined, kernel: ir.Kernel) -> PipelineResult:
    """Check one `pipelined` loop of a kernel for all parameter values that the kernel allows.

    Raises:
        ValueError: `loop` is not a node of `kernel`.
    """
    around = find(loop, kernel)
    try:
        model, trips = build(loop, around), trips_of(loop, around)
    except Unreadable as unreadable:
        span = loop.span if unreadable.span == ir.NOWHERE else unreadable.span
        reason = f"the loop over {loop.var} could not be read: {unreadable}"
        return PipelineResult((), Verdict.UNKNOWN, reason, (Undecided(Row.PIPELINE, reason, span),))
    result = _certain(verify(model, trips))
    return replace(result, faults=tuple(_of_parameters(f, kernel) for f in result.faults))


def _of_parameters(fault: PipelineFault, kernel: ir.Kernel) -> PipelineFault:
    """The fault with a witness in terms of the kernel's parameters, in the order of their declaration."""
    if fault.witness is None:
        return fault
    known = dict(fault.witness.values)
    values = tuple((name, known[name]) for name in kernel.parameters if name in known)
    return replace(fault, witness=replace(fault.witness, values=values))


def _certain(result: PipelineResult) -> PipelineResult:
    """Take back faults that rest on accesses whose cells were guessed."""
    if result.plan is None:
        return result
    statements = result.plan.loop.statements
    rough = {a.buffer for s in statements for a in (*s.reads, *s.writes) if a.rough}
    kept = tuple(f for f in result.faults if f.cause is None or f.cause.buffer not in rough)
    if len(kept) == len(result.faults):
        return result
    doubtful = next(f for f in result.faults if f not in kept)
    reason = f"FP{doubtful.code} is possible, but which cells of {sorted(rough)[0]} are used is not known"
    verdict = Verdict.UNKNOWN if all(f.severity.value != "error" for f in kept) else result.verdict
    unknown = (*result.unknown, Undecided(Row.PIPELINE, reason, doubtful.spans[0]))
    return replace(result, faults=kept, verdict=verdict, unknown=unknown, evidence=reason)


def pipelines(kernel: ir.Kernel) -> tuple[ir.Pipelined, ...]:
    """The annotated loops of a kernel, in text order."""
    return tuple(node for node in ir.walk(kernel) if isinstance(node, ir.Pipelined))
