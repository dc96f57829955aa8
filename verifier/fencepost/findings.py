"""The result of a check, as data: what was decided, what was found, and what could not be decided?

Renderers, the command line, the Python API and the language server all read these classes and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from fencepost.ir import NOWHERE, Span
from fencepost.phrases import assignments


class Verdict(Enum):
    """The verdict of a row, or of a kernel.  Match it exhaustively; never turn it into a boolean."""

    PROVED = "proved"  # holds for every parameter value that the assumes allow
    REFUTED = "refuted"  # a witness exists and the executor replayed it
    UNKNOWN = "unknown"  # could not be decided; counts as not clean
    VACUOUS = "vacuous"  # the assumptions have no model, or nothing is reachable
    NOT_APPLICABLE = "n/a"  # the kernel holds nothing of that kind


class Row(Enum):
    """The rows of the report, in printing order; the value is (id, name)."""

    SLOT_MAPPING = ("1", "slot mapping")
    EVENT_POSITION = ("2", "event position")
    PAIRING = ("3", "pairing")
    COUNTS = ("4", "counts")
    BOUNDARY = ("5", "boundary")
    PARTICIPANTS = ("6", "participants")
    FIFO = ("fifo", "fifo")
    SKEW = ("skew", "after skew")  # kernels with `pipeline` loops: everything again, after the skew pass
    TRANSLATION = ("translation", "as before")  # with the text before a transformation: the same messages and stores
    PHASES = ("phases", "phases")
    PIPELINE = ("pipeline", "pipeline")

    @property
    def id(self) -> str:
        return self.value[0]

    @property
    def title(self) -> str:
        return self.value[1]


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Witness:
    """Concrete values that show a fault: parameters in declaration order, and the unknown functions that it uses.

    `functions` holds pairs like ``("need(0)", 0)``.
    """

    values: tuple[tuple[str, int], ...] = ()
    functions: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return assignments((*self.values, *self.functions)) or "always"


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that belongs to a finding, and what stands there."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a witness's trace.  `state`: "done", "waiting" (blocked for ever) or "never" (not reached)."""

    agent: str
    pipe: str
    text: str
    span: Span
    state: str = "done"


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect: a stable code, one sentence about this kernel, both ends, and the smallest values that show it."""

    code: str
    name: str
    row: Row
    severity: Severity
    message: str
    span: Span
    related: tuple[Related, ...] = ()
    witness: Witness | None = None  # None: a static fault, wrong for all values
    replayed: bool = False
    trace: tuple[Step, ...] = ()
    suppressed: str | None = None  # the reason given in the source, when suppressed
    links: tuple[tuple[int, int], ...] = ()  # pairs of indices into `trace`: a signal or message, and who takes it


@dataclass(frozen=True, slots=True)
class Undecided:
    """Why a row is `unknown`: what could not be decided, where, and what would help."""

    row: Row
    reason: str
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the report."""

    row: Row
    verdict: Verdict
    evidence: str


@dataclass(frozen=True, slots=True)
class InputError:
    """A mistake in the input itself; columns are 1-based characters.  `excerpt` is the source line, for the caret."""

    file: str
    line: int
    column: int
    message: str
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class KernelReport:
    """Everything that was decided about one kernel.

    `parameters` and `assumptions` are printable; `assumptions` also lists what the front end or the prover took for
    granted.  `source` is the text that the findings' spans point into, for excerpts.
    """

    name: str
    file: str
    line: int
    target: str
    verdict: Verdict
    seconds: float
    parameters: tuple[str, ...]
    assumptions: tuple[str, ...]
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...] = ()
    unknown: tuple[Undecided, ...] = ()
    source: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one run over any number of kernels."""

    kernels: tuple[KernelReport, ...] = ()
    errors: tuple[InputError, ...] = ()

    @property
    def proved(self) -> bool:
        """True if every kernel is proved and no input was bad (suppressed findings and warnings do not count)."""
        from fencepost.verdicts import ExitStatus, exit_status

        return bool(self.kernels) and exit_status(self) is ExitStatus.CLEAN

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The text report, without colour."""
        from fencepost.report.text import render

        return render(self)
