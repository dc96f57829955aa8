"""Do the annotated pipelines of a kernel compute what their loops say?  The verdict of the row "pipeline"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fencepost import ir
from fencepost.facts import Fact
from fencepost.findings import Finding, Related, Row, Severity, Step, Undecided, Verdict
from fencepost.pipeline.check import check_pipeline, pipelines, suggestion_for
from fencepost.pipeline.result import PipelineFault, PipelineResult
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.suggest import NoSuggestion, Suggestion
from fencepost.pipeline.values import instance_of
from fencepost.row_result import RowResult, codes
from fencepost_rules.registry import rule

_STEPS = 14


def pipeline_row(kernel: ir.Kernel, suggest: bool = False, deadline: float | None = None) -> RowResult:
    """Judge every annotated pipeline of a valid kernel, for all parameter values.

    Args:
        suggest: the evidence ends, for every loop that is not right, with a schedule that is proved right, or with
            the reason why there is none.
        deadline: a time of `time.monotonic()` after which what has not been decided stays unknown.
    """
    loops = pipelines(kernel)
    results = [check_pipeline(loop, kernel, deadline) for loop in loops]
    result = _judge(kernel, loops, results)
    if not suggest:
        return result
    known = zip(loops, results, strict=True)
    right = ((loop, suggestion_for(loop, kernel, deadline, result)) for loop, result in known)
    found = [f"line {loop.span.line}: {_suggested(s)}" for loop, s in right if s is not None]
    return replace(result, evidence=" · ".join((result.evidence, *found)))


def _suggested(found: Suggestion | NoSuggestion) -> str:
    if isinstance(found, NoSuggestion):
        return f"no schedule to suggest: {found.reason}"
    return f"{found.text} is right" + (f" ({found.reason})" if found.reason else "")


def _judge(kernel: ir.Kernel, loops: Sequence[ir.Pipelined], results: Sequence[PipelineResult]) -> RowResult:
    gap = next((n for n in ir.walk(kernel) if isinstance(n, ir.Unsupported)), None)
    findings = [_finding(f, r.plan) for r in results for f in r.faults if gap is None or f.witness is None]
    errors = [f for f in findings if f.severity is Severity.ERROR]
    unknown = [u for r in results for u in r.unknown]
    if gap is not None:
        reason = f"line {gap.span.line} could not be read: {gap.reason}"
        unknown.append(Undecided(Row.PIPELINE, reason, gap.span))
    if errors:
        return RowResult(Verdict.REFUTED, codes(errors), tuple(findings), tuple(unknown))
    if unknown:
        return RowResult(Verdict.UNKNOWN, unknown[0].reason, tuple(findings), tuple(unknown))
    return RowResult(_together(results), " · ".join(_told(loops, results)), tuple(findings))


def _together(results: Sequence[PipelineResult]) -> Verdict:
    """The verdict of the row if no loop is refuted or undecided."""
    verdicts = {r.verdict for r in results} - {Verdict.NOT_APPLICABLE}
    if Verdict.PROVED in verdicts:
        return Verdict.PROVED
    return Verdict.VACUOUS if verdicts else Verdict.NOT_APPLICABLE


def _told(loops: Sequence[ir.Pipelined], results: Sequence[PipelineResult]) -> Iterator[str]:
    """What was shown about each loop; loops of which the same holds together."""
    lines: dict[str, list[int]] = {}
    for loop, result in zip(loops, results, strict=True):
        lines.setdefault(result.evidence, []).append(loop.span.line)
    if len(lines) == 1:
        yield next(iter(lines))
        return
    for evidence, places in lines.items():
        yield f"line{'s' * (len(places) > 1)} {', '.join(map(str, places))}: {evidence}"


def _finding(fault: PipelineFault, plan: Plan | None) -> Finding:
    others = zip(fault.spans[1:], fault.roles[1:], strict=True)
    fact = Fact(
        fault.code,
        fault.spans[0],
        (("detail", fault.message),),
        tuple(Related(span, role) for span, role in others),
        severity=fault.severity,
    )
    worded = rule(fault.code).finding(fact)
    if fault.failure is None or plan is None:
        return worded
    steps, links = _trace(fault, plan)
    return replace(worded, witness=fault.witness, replayed=True, trace=steps, links=links)


def _trace(fault: PipelineFault, plan: Plan) -> tuple[tuple[Step, ...], tuple[tuple[int, int], ...]]:
    """The pipelined program up to the read that goes wrong, one column per stage, and where its value came from."""
    assert fault.failure is not None and fault.cause is not None
    done = fault.failure.outcome.after.executions
    reader, source = fault.cause.reader, instance_of(fault.cause.found)
    ran = next((n for n, e in enumerate(done) if e.instance == reader), None)
    shown = done[-_STEPS:] if ran is None else done[max(0, ran + 1 - _STEPS) : ran + 1]
    steps = tuple(
        Step(
            f"stage {plan.slot[e.instance[0]].stage}",
            e.part,
            f"{plan.loop.statements[e.instance[0]].label} of iteration {e.instance[1]}",
            plan.loop.statements[e.instance[0]].span,
        )
        for e in shown
    )
    writers = [n for n, e in enumerate(shown) if e.instance == source]
    links = ((writers[-1], len(shown) - 1),) if ran is not None and writers and writers[-1] < len(shown) - 1 else ()
    return steps, links
