"""What is wrong with an annotated loop?"""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.findings import Row, Severity, Undecided, Verdict, Witness
from fencepost.ir import Span
from fencepost.pipeline.accept import Complaint, resolve
from fencepost.pipeline.decide import Decision, Failure, decide
from fencepost.pipeline.diagnose import Cause, causes
from fencepost.pipeline.model import Loop
from fencepost.pipeline.order import repeats
from fencepost.pipeline.result import PipelineFault, PipelineResult
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.trips import ANY_TRIPS, Trips, Unclear
from fencepost.pipeline.values import Source, instance_of


def verify(loop: Loop, trips: Trips = ANY_TRIPS, deadline: float | None = None) -> PipelineResult:
    """Check the annotations of `loop` for every possible trip count.

    `deadline` is a time of `time.monotonic()` after which what has not been decided stays unknown.
    """
    reading = resolve(loop)
    errors = tuple(_complaint(loop, c, Severity.ERROR) for c in reading.errors)
    warnings = tuple(_complaint(loop, c, Severity.WARNING) for c in reading.warnings)
    plan = reading.plan
    if plan is None:
        if errors:
            return PipelineResult((*errors, *warnings), Verdict.REFUTED, "the compiler rejects the annotations")
        return PipelineResult((), Verdict.NOT_APPLICABLE, _unannotated(loop))
    decision = decide(plan, trips, deadline)
    found = causes(plan, decision.failures)
    if decision.verdict is Verdict.REFUTED and not found:
        decision = Decision(Verdict.UNKNOWN, f"{decision.evidence}, but what the cause is was not found")
    dynamic = tuple(_fault(plan, cause, _failure(decision, cause)) for cause in found)
    static = tuple(_static(plan, {c.code for c in found}, trips))
    faults = (*dynamic, *static, *warnings)
    verdict = decision.verdict
    unknown: tuple[Undecided, ...] = ()
    if verdict is Verdict.UNKNOWN:
        unknown = (Undecided(Row.PIPELINE, decision.evidence, loop.span),)
    if any(f.severity is Severity.ERROR for f in faults):
        verdict = Verdict.REFUTED
    agree = None if decision.verdict is Verdict.UNKNOWN else not any(f.outcome.differs for f in decision.failures)
    return PipelineResult(faults, verdict, _evidence(plan, decision), unknown, plan, agree)


def _unannotated(loop: Loop) -> str:
    stages = loop.annotations.num_stages
    if stages is None:
        return "the loop has neither stage nor order"
    return f"the loop has num_stages = {stages} and no stage and order: the compiler chooses them"


def _evidence(plan: Plan, decision: Decision) -> str:
    split = ", ".join(f"{name} {count} versions" for name, count in plan.versions.items() if count > 1)
    return f"depth {plan.depth}" + (f", {split}" if split else "") + f"; {decision.evidence}"


def _complaint(loop: Loop, complaint: Complaint, severity: Severity) -> PipelineFault:
    spans = [loop.statements[n].span for n in reversed(complaint.statements)] or [complaint.span]
    roles = [loop.statements[n].label for n in reversed(complaint.statements)] or [""]
    return PipelineFault(complaint.code, complaint.message, tuple(spans), tuple(roles), severity=severity)


# ------------------------------------------------------------------------------------------------ faults with a run


def _failure(decision: Decision, cause: Cause) -> Failure:
    return next(f for f in decision.failures if f.outcome.trips == cause.trips)


def _fault(plan: Plan, cause: Cause, failure: Failure) -> PipelineFault:
    loop = plan.loop
    values = tuple(failure.setting.names.items()) or (("trips", cause.trips),)
    functions = tuple((_call(*point), value) for point, value in failure.setting.functions.used.items())
    message = f"{cause.reason}: with {_count(cause.trips)}, {_what_happens(plan, cause)}"
    return PipelineFault(
        cause.code,
        message,
        tuple(loop.statements[n].span for n in cause.statements) or (loop.span,),
        tuple(loop.statements[n].label for n in cause.statements) or ("",),
        Witness(values, functions),
        trips=cause.trips,
        cause=cause,
        failure=failure,
    )


def _call(name: str, arguments: tuple[int, ...]) -> str:
    return f"{name}({', '.join(map(str, arguments))})" if arguments else name


def _count(trips: int) -> str:
    return f"{trips} trip" if trips == 1 else f"{trips} trips"


def _what_happens(plan: Plan, cause: Cause) -> str:
    label = {n: s.label for n, s in enumerate(plan.loop.statements)}
    reader = "the code after the loop"
    if cause.reader is not None:
        reader = f"{label[cause.reader[0]]} of iteration {cause.reader[1]}"
    if cause.missing:
        return f"{reader} does not run"
    wanted, found = _origin(plan, cause.wanted), _origin(plan, cause.found)
    if cause.overwrites:
        return f"{reader} may overwrite {cause.buffer} while {found.removeprefix('from ')} still uses it"
    if cause.wanted == cause.found:
        return f"{reader} may read {cause.buffer} before {found.removeprefix('from ')} has filled it"
    return f"{reader} reads {cause.buffer} {found}, not {wanted}"


def _origin(plan: Plan, source: Source) -> str:
    instance = instance_of(source)
    if instance is not None:
        return f"from {plan.loop.statements[instance[0]].label} of iteration {instance[1]}"
    return "from a version that nobody has written" if source is None else "as it was before the loop"


# ------------------------------------------------------------------------------------------------ faults without a run


def _static(plan: Plan, known: set[str], trips: Trips) -> Iterator[PipelineFault]:
    """What needs no run, and what is dangerous although it changes nothing here (`known`: codes already reported)."""
    if not plan.rewritten:
        return
    yield from _out_of_scope(plan)
    notes = plan.loop.annotations
    if "927" not in known:
        for slot in plan.slots:
            if slot.stage < 0:
                text = plan.statement(slot)
                message = f"{text.label} is in the negative stage {slot.stage}; it has no visible effect here"
                yield PipelineFault("927", message, (text.span,), (text.label,), severity=Severity.WARNING)
    stages = {slot.stage for slot in plan.slots}
    for stage in dict.fromkeys(notes.async_stages or ()):
        if stage not in stages and notes.async_producers is None:
            message = f"async_stages names stage {stage}, which no statement has; it has no effect"
            yield PipelineFault("929", message, (plan.loop.span,), severity=Severity.WARNING)
    given = notes.num_stages
    if given is not None and given != plan.depth and "930" not in known:
        versions = ", ".join(f"{name} {count}" for name, count in plan.versions.items()) or "none"
        message = (
            f"num_stages = {given} gives {given} barrier slots, but the depth is {plan.depth} (versions: {versions}); "
            "a barrier may be reused before its wait"
        )
        yield PipelineFault("930", message, (plan.loop.span,), severity=Severity.WARNING)
    if "926" not in known and _few_trips(plan, trips):
        for slot in repeats(plan)[:1]:
            text = plan.statement(slot)
            message = (
                f"{text.label} in stage {slot.stage} runs twice for one iteration when there are fewer than "
                f"{plan.last_stage} trips; it changes no value"
            )
            yield PipelineFault("926", message, (text.span,), (text.label,), severity=Severity.NOTE)


def _few_trips(plan: Plan, trips: Trips) -> bool:
    """Whether the loop surely has, for some parameters, fewer trips than its last stage, but at least one."""
    try:
        return any(trips.setting(n) is not None for n in range(1, plan.last_stage))
    except Unclear:
        return False


def _out_of_scope(plan: Plan) -> Iterator[PipelineFault]:
    for number in dict.fromkeys(n for slot in plan.slots for n in plan.scalars[slot.number]):
        users = [slot for slot in plan.slots if number in plan.scalars[slot.number]]
        bind, user = plan.loop.statements[number], plan.statement(users[0])
        message = (
            f"bind {bind.bind} is scheduled, and the compiler emits each statement in a scope of its own, so "
            f"{user.label} uses {bind.bind} outside the scope of its definition; keep the value in a buffer instead"
        )
        spans: tuple[Span, ...] = (bind.span, user.span)
        yield PipelineFault("934", message, spans, (bind.label, user.label))
