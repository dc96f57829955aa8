"""What does the check of one annotated loop say?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fencepost.findings import Row, Severity, Undecided, Verdict, Witness
from fencepost.ir import Span
from fencepost.pipeline.decide import Failure
from fencepost.pipeline.diagnose import Cause
from fencepost.pipeline.schedule import Plan


@dataclass(frozen=True, slots=True)
class PipelineFault:
    """One thing that is wrong with the annotations of a loop.

    `spans` are the statements concerned, the main one first, and `roles` says what each of them is.  `witness` is
    None for a fault that needs no run.  `trips` is the smallest trip count that shows the fault; both programs were
    run for it (`cause` names the two instances, `failure` holds the run).
    """

    code: str
    message: str
    spans: tuple[Span, ...]
    roles: tuple[str, ...] = ()
    witness: Witness | None = None
    severity: Severity = Severity.ERROR
    trips: int | None = None
    cause: Cause | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """The verdict on one annotated loop.

    `plan` is None if the compiler rejects the annotations or there are none.  `values_agree` says whether the
    pipelined loop leaves the same values behind as the serial loop, apart from faults that need no run.
    """

    faults: tuple[PipelineFault, ...]
    verdict: Verdict
    evidence: str
    unknown: tuple[Undecided, ...] = ()
    plan: Plan | None = None
    values_agree: bool | None = None

    def certain(self) -> PipelineResult:
        """Take back faults that rest on accesses whose cells were guessed."""
        if self.plan is None:
            return self
        statements = self.plan.loop.statements
        rough = {a.buffer for s in statements for a in (*s.reads, *s.writes) if a.rough}
        return self.without(
            lambda f: f.cause is not None and f.cause.buffer in rough,
            lambda f: f"which cells of {f.cause.buffer if f.cause else ''} are used is not known",
        )

    def without(self, doubtful: Callable[[PipelineFault], bool], why: Callable[[PipelineFault], str]) -> PipelineResult:
        """Take back the faults that are `doubtful`; `why` says what is not known about one."""
        taken = tuple(f for f in self.faults if doubtful(f))
        if not taken:
            return self
        kept = tuple(f for f in self.faults if f not in taken)
        reason = f"FP{taken[0].code} is possible, but {why(taken[0])}"
        verdict = self.verdict if any(f.severity is Severity.ERROR for f in kept) else Verdict.UNKNOWN
        unknown = (*self.unknown, Undecided(Row.PIPELINE, reason, taken[0].spans[0]))
        return replace(self, faults=kept, verdict=verdict, unknown=unknown, evidence=reason)
