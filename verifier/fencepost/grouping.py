"""May loops with several round trips run one round trip ahead?  Only with a proof that nothing hangs.

The rewriting keeps the order of every ring by construction (docs/skew.md); whether the rings are large enough depends
on the peer and is proved for the kernel that comes out.
"""

from __future__ import annotations

import time
from dataclasses import replace

from fencepost import ir
from fencepost.checking import check_kernel
from fencepost.findings import Row, Verdict
from fencepost.model.program import ModelError
from fencepost.options import CheckOptions
from fencepost.passes.skew import Skew, Skewed
from fencepost.rewrite import rebuild
from fencepost.translation import compare


def group(kernel: ir.Kernel, timeout: float = 30.0) -> tuple[Skewed, str]:
    """Return a valid kernel with grouped loops and "", or after the plain skew and the reason for that.

    Raises:
        SkewError: the pass refuses the kernel.
    """
    plain = Skew().run(kernel)
    grouped = Skew(group=True).run(kernel)
    if not any(outcome.action == "grouped" for outcome in grouped.loops):
        reasons = [outcome.refusal for outcome in grouped.loops if outcome.refusal]
        return plain, "; ".join(dict.fromkeys(reasons)) or "no loop has several round trips"
    reason = _refuted(kernel, grouped.kernel, timeout)
    return (plain, reason) if reason else (grouped, "")


def _refuted(before: ir.Kernel, after: ir.Kernel, timeout: float) -> str:
    """Why the grouped kernel is not proved to be right, "" if it is."""
    outcome = check_kernel(_without_rounds(after), CheckOptions(timeout=timeout))
    for error in outcome.report.errors:
        return error.message
    (report,) = outcome.report.kernels
    row = next((check for check in report.checks if check.row is Row.FIFO), None)
    if row is None or row.verdict is not Verdict.PROVED:
        why = "no messages" if row is None else f"{row.verdict.value}: {row.evidence}"
        return f"the rings are not proved to suffice ({why})"
    try:
        compared = compare(before, after, time.monotonic() + timeout)
    except ModelError as error:
        return str(error)
    if compared.seen:
        return dict(compared.seen[0].fact.values)["detail"]
    return ""


def _without_rounds(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel without `task` on its messages: the order is known, the sizes of the rings are the question."""

    def bare(node: ir.Node) -> ir.Node:
        return replace(node, task=None) if isinstance(node, ir.Push | ir.Pop) else node

    stripped = rebuild(kernel, bare)
    assert isinstance(stripped, ir.Kernel)
    return stripped


__all__ = ["group"]
