"""May loops with several round trips run one round trip ahead?  Only if what comes out is as right as what goes in.

The rewriting keeps the order of every ring and the values of all names by construction (docs/skew.md).  Whether memory
is read and written in the same order is compared; that nothing hangs and nothing races is proved for the kernel that
comes out, where it is proved for the kernel as written.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.after_skew import judge
from fencepost.checking import check_kernel
from fencepost.facts import Fact
from fencepost.findings import Check, InputError, KernelReport, Row, Verdict
from fencepost.model.program import ModelError
from fencepost.options import CheckOptions
from fencepost.passes.skew import Skew, Skewed
from fencepost.rewrite import rebuild
from fencepost.translation import compare
from fencepost.verdicts import overall

_GROUP = Skew(group=True)


@dataclass(frozen=True, slots=True)
class Grouping:
    """What became of a kernel.

    `skewed`: with grouped loops, or after the plain skew and `refusal` says why.  `open` are rows of the grouped kernel
    that are not proved, as they are not for the kernel as written.  `notes` are warnings about waits that stay behind.
    """

    skewed: Skewed
    refusal: str = ""
    open: tuple[Check, ...] = ()
    notes: tuple[Fact, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What is shown about a grouped kernel."""
        return overall(self.open)


def group(kernel: ir.Kernel, timeout: float = 30.0) -> Grouping:
    """Group the loops of a valid kernel, or skew it as usual; `timeout` is in seconds per proof.

    Raises:
        SkewError: the pass refuses the kernel.
    """
    plain, grouped = Skew().run(kernel), _GROUP.run(kernel)
    if not any(outcome.action == "grouped" for outcome in grouped.loops):
        reasons = [outcome.refusal for outcome in grouped.loops if outcome.refusal]
        return Grouping(plain, "; ".join(dict.fromkeys(reasons)) or "no loop has several round trips")
    try:
        judgement = judge(kernel, time.monotonic() + timeout, _GROUP)
        if judgement.seen:
            return Grouping(plain, _detail(judgement.seen[0].fact))
        if judgement.undecided is not None:
            return Grouping(plain, judgement.undecided)
        compared = compare(kernel, grouped.kernel, time.monotonic() + timeout)
        if compared.seen:
            return Grouping(plain, _detail(compared.seen[0].fact))
    except ModelError as error:
        return Grouping(plain, str(error))
    refusal, unproved = _rows(kernel, grouped.kernel, timeout)
    return Grouping(plain, refusal) if refusal else Grouping(grouped, "", unproved, judgement.notes)


def _rows(before: ir.Kernel, after: ir.Kernel, timeout: float) -> tuple[str, tuple[Check, ...]]:
    """Why the grouped kernel is worse than the kernel as written; if it is not, the rows that neither is proved in."""
    found = _report(after, timeout)
    if isinstance(found, InputError):
        return found.message, ()
    fifo = next((check for check in found.checks if check.row is Row.FIFO), None)
    if fifo is None or fifo.verdict is not Verdict.PROVED:
        why = "no messages" if fifo is None else f"{fifo.verdict.value}: {fifo.evidence}"
        return f"the rings are not proved to suffice ({why})", ()
    unproved = tuple(c for c in found.checks if c.verdict not in (Verdict.PROVED, Verdict.NOT_APPLICABLE))
    if not unproved:
        return "", ()
    written = _report(before, timeout)
    if isinstance(written, InputError):
        return written.message, ()
    verdicts = {check.row: check.verdict for check in written.checks}
    known = {finding.code for finding in written.findings}
    for check in unproved:
        name = f"row {check.row.id}, {check.row.title}," if check.row.id.isdigit() else f"the row {check.row.title}"
        if verdicts.get(check.row) not in (check.verdict, Verdict.REFUTED):
            was = verdicts.get(check.row, Verdict.NOT_APPLICABLE).value
            return f"{name} is {check.verdict.value} after the grouping ({check.evidence}) and {was} as written", ()
    new = [finding for finding in found.findings if finding.code not in known]
    return (f"FP{new[0].code} after the grouping: {new[0].message}", ()) if new else ("", unproved)


def _report(kernel: ir.Kernel, timeout: float) -> KernelReport | InputError:
    """What is found about a kernel, without the row about its skew."""
    outcome = check_kernel(_without_rounds(kernel), CheckOptions(timeout=timeout))
    for error in outcome.report.errors:
        return error
    (report,) = outcome.report.kernels
    return replace(
        report,
        checks=tuple(c for c in report.checks if c.row is not Row.SKEW),
        findings=tuple(f for f in report.findings if f.row is not Row.SKEW),
    )


def _detail(fact: Fact) -> str:
    return dict(fact.values)["detail"]


def _without_rounds(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel without `task` on its messages: the order is known, the sizes of the rings are the question."""

    def bare(node: ir.Node) -> ir.Node:
        return replace(node, task=None) if isinstance(node, ir.Push | ir.Pop) else node

    stripped = rebuild(kernel, bare)
    assert isinstance(stripped, ir.Kernel)
    return stripped


__all__ = ["Grouping", "group"]
