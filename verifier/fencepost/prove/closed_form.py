"""Closed forms: is a kernel right for all parameter values, by formulas for what every agent does when?

The obligations are listed first; a row is proved only if every obligation that can falsify it is met for all values.
What does not fit closed forms leaves rows unknown, with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from fencepost import ir
from fencepost.applicability import applicable
from fencepost.findings import Row, Verdict
from fencepost.model.functions import FunctionTable
from fencepost.model.program import Compiled, compile_kernel
from fencepost.model.shapes import allowed
from fencepost.prove import accesses, obligations, progress, rounds, signals, wording
from fencepost.prove.discharge import Candidate, Discharger, Outcome, candidate
from fencepost.prove.kernels import Closed, closed
from fencepost.prove.obligations import Obligation
from fencepost.prove.routes import Guide
from fencepost.prove.symbolic import NotClosed
from fencepost.prove.wording import Count

_OTHERS = (Row.PIPELINE, Row.SKEW, Row.TRANSLATION)
"""Rows about another program than the one that is given."""


@dataclass(frozen=True, slots=True)
class RowResult:
    """What closed forms say about one row.

    `verdict` is PROVED, UNKNOWN, or VACUOUS (no values satisfy the assumes).  `evidence` is for people, `reason` says
    why the row is unknown and `place` where.  `candidates` are values at which the row may fail: replay them.
    """

    row: Row
    verdict: Verdict
    evidence: str = ""
    reason: str = ""
    place: ir.Span = ir.NOWHERE
    candidates: tuple[Candidate, ...] = ()


@dataclass(slots=True)
class ClosedForm:
    """The outcome for one kernel: a result per applicable row, and the settled obligations in their order."""

    rows: dict[Row, RowResult]
    outcomes: list[Outcome] = field(default_factory=list)
    kernel: Closed | None = None
    seconds: float = 0.0

    @property
    def counts(self) -> tuple[Count, ...]:
        """The formulas of sets and waits per channel, if every formula was proved."""
        ready = ("induction", "value", "operands")
        if self.kernel is None or any(o.answer != "unsat" for o in self.outcomes if o.obligation.group in ready):
            return ()
        return wording.counts(self.kernel)

    @property
    def chains(self) -> tuple[str, ...]:
        """For every pair of accesses that conflict, a chain that orders it."""
        return tuple(wording.chains(self.outcomes))

    @property
    def proved(self) -> bool:
        """Whether every applicable row is proved."""
        return all(r.verdict is Verdict.PROVED for r in self.rows.values())


def satisfying(compiled: Compiled, deadline: float) -> Candidate | Literal["none"] | None:
    """Values that satisfy the assumes; "none" if there are none, None if that is not found out.

    The solver takes products and quotients of two unknowns for any function, so its values are tried.
    """
    bare = compile_kernel(replace(compiled.kernel, body=(ir.Pass(),), buffers=(), fifos=(), rings=()))
    try:
        kernel = closed(bare, deadline)
    except NotClosed:
        return None
    verdict = kernel.ask([])[1]
    if verdict.answer != "sat":
        return "none" if verdict.answer == "unsat" else None
    found = candidate(kernel, verdict)
    points = dict(found.functions)
    others = {kernel.function_names[n]: v for n, v in verdict.elsewhere.items() if n in kernel.function_names}
    while True:
        table = FunctionTable(points)
        holds = allowed(bare, found.values, table)
        new = {point: others[point[0]] for point in table.used if point not in points and point[0] in others}
        if not new:
            return Candidate(found.values, tuple(sorted(points.items()))) if holds else None
        points |= new


def prove(compiled: Compiled, deadline: float) -> ClosedForm:
    """Prove as many rows as possible for all parameter values.

    Args:
        compiled: the kernel, with annotated pipelines as serial loops.
        deadline: a time of `time.monotonic()` at which to give up.

    Raises:
        ModelError: the kernel cannot be modelled.
    """
    started = time.monotonic()
    rows: list[Row] = [
        row for row, applies in applicable(compiled.kernel).items() if applies and row is not Row.PIPELINE
    ]
    if compiled.unsupported:
        first = compiled.unsupported[0]
        return _nothing(rows, f"line {first.span.line} could not be read: {first.reason}", first.span, started)
    try:
        kernel = closed(compiled, deadline)
    except NotClosed as error:
        return _nothing(rows, str(error), error.span, started)
    if kernel.ask([])[1].answer == "unsat":
        found = {row: RowResult(row, Verdict.VACUOUS, "no parameter values satisfy the assumes") for row in rows}
        return ClosedForm(found, [], kernel, time.monotonic() - started)
    outcomes: list[Outcome] = []
    listed = 0
    for variant in _variants(kernel):
        due = listing(variant)
        listed += len(due)
        guide = Guide(variant)
        guide.start()
        outcomes += _settled(Discharger(variant, guide), due)
    assert len(outcomes) == listed, "every obligation was settled"
    found = {row: _row(kernel, row, [o for o in outcomes if row in o.obligation.rows]) for row in rows}
    return ClosedForm(found, outcomes, kernel, time.monotonic() - started)


def blocks_apart(compiled: Compiled, deadline: float) -> str:
    """Why it is not shown that two blocks never touch one slot of shared memory; empty if that is shown."""
    try:
        kernel = closed(compiled, deadline)
    except NotClosed as error:
        return str(error)
    due = [*obligations.values(kernel), *(o for o in accesses.accesses(kernel) if o.group == "blocks")]
    missing = next((o for o in due if kernel.ask(list(o.conditions))[1].answer != "unsat"), None)
    return "" if missing is None else f"not shown: {missing.name}"


def _settled(discharger: Discharger, due: list[Obligation]) -> Iterator[Outcome]:
    """The outcome of every obligation.

    Once values are found at which signals are left over, no row is left to prove and a witness is known: whatever
    remains is not asked.  A sum over trips of unknown numbers may be off in a model, so it doesn't count as found.
    """
    unbalanced = False
    for obligation in due:
        if unbalanced:
            yield Outcome(obligation, "unknown", "", "not asked: signals are left over")
            continue
        outcome = discharger.settle(obligation)
        unbalanced = obligation.group == "balance" and outcome.answer == "sat" and not discharger.kernel.sums.by_name
        yield outcome


def counts(compiled: Compiled, deadline: float) -> tuple[Count, ...]:
    """The formulas of sets and waits of every channel, proved by induction; empty if they are not closed forms.

    Much cheaper than `prove`; for reports whose verdicts come from elsewhere.
    """
    try:
        kernel = closed(compiled, deadline)
    except NotClosed:
        return ()
    due = [o for o in obligations.values(kernel) if o.group in ("induction", "value", "operands")]
    if any(kernel.ask(list(o.conditions))[1].answer != "unsat" for o in due):
        return ()
    return wording.counts(kernel)


def listing(kernel: Closed) -> list[Obligation]:
    """Everything that must be shown about a kernel."""
    return [
        *obligations.values(kernel),
        *signals.signals(kernel),
        *progress.progress(kernel),
        *accesses.accesses(kernel),
        *rounds.rounds(kernel),
    ]


def _variants(kernel: Closed) -> Iterator[Closed]:
    """The kernel under every credit scheme that it claims to be right for."""
    credits = kernel.compiled.kernel.credits if kernel.compiled.kernel.fifos else "per_slot"
    if credits != "batched":
        yield kernel
    if credits != "per_slot":
        yield replace(kernel, batched=True)


def _row(kernel: Closed, row: Row, outcomes: list[Outcome]) -> RowResult:
    missing = [o for o in outcomes if o.answer != "unsat"]
    if not missing:
        return RowResult(row, Verdict.PROVED, wording.evidence(kernel, row, outcomes))
    first = missing[0]
    why = first.reason or "it does not hold, or its proof does not fit closed forms"
    candidates = tuple(dict.fromkeys(o.candidate for o in missing if o.candidate is not None))
    reason = f"not shown: {first.obligation.name} ({why})"
    return RowResult(row, Verdict.UNKNOWN, "", reason, first.obligation.place, candidates)


def _nothing(rows: list[Row], reason: str, place: ir.Span, started: float) -> ClosedForm:
    found = {row: RowResult(row, Verdict.UNKNOWN, "", reason, place) for row in rows}
    return ClosedForm(found, [], None, time.monotonic() - started)
