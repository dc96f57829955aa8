"""What does the check of one annotated loop say?"""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.findings import Severity, Undecided, Verdict, Witness
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
