"""Repairs: which small edit of the kernel makes a fault go away?

A fault is named after the edit that repairs it: a set moved behind the access it announces, a wait moved before the
access it guards, another pipe, another guard or loop bound.  Every candidate is tried by running the edited kernel, so
a name is never a guess from the text alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from fencepost import ir
from fencepost.model.executor import LimitReached, Run
from fencepost.model.program import ModelError

Runner = Callable[[ir.Kernel], Iterator[list[Run]]]
"""Runs a kernel on the shapes of interest, one after the other, the witness first; one run per credit mode."""

Signature = frozenset[Hashable]


def signature(runs: Iterable[Run]) -> Signature:
    """The faults of one shape in a form that survives an edit elsewhere in the kernel."""
    found: set[Hashable] = set()
    for run in runs:
        if run.clean:
            continue
        found |= {race_fault(r.first.stmt, r.second.stmt) for r in run.races}
        found |= {("unwritten", id(u.op.stmt)) for u in run.unwritten}
        found |= {("blocked", id(b.op.stmt), b.op.effect.agent) for b in run.blocked}
        found |= {("leftover", str(run.channels[x.channel])) for x in run.leftovers}
        found |= {("overflow", str(run.channels[x.channel])) for x in run.overflows}
        found |= {("contested", id(c.first.stmt), id(c.second.stmt)) for c in run.contested}
        found |= {("phase", p.kind) for p in run.phase_faults}
        found |= {("message", m.kind, m.ring) for m in run.message_faults}
        found |= {("mutex", m.kind, id(m.op.stmt)) for m in run.mutex_faults}
        found |= {("illegal", id(o.stmt)) for o in run.illegal}
        found |= {("outside", id(o.stmt)) for o in run.outside}
        found |= {("value", b.kind, b.span) for b in run.bad_values}
    return frozenset(found)


def race_fault(one: ir.Node, two: ir.Node) -> Hashable:
    """The fault of an unordered pair of accesses, whichever ran first."""
    return "race", frozenset({id(one), id(two)})


@dataclass(slots=True)
class Repairs:
    """Tries edits of one kernel, at most `budget` kernels in all.

    `before` are the faults of the kernel itself at the witness.  `accepted` collects the edits that gave a fault its
    name, with the cause that they stand for.  `out_of_time` tells when to give up;
    `affordable` is about how many edited kernels can be run until then.
    """

    kernel: ir.Kernel
    before: Signature
    runner: Runner
    budget: int = 200
    out_of_time: Callable[[], bool] = lambda: False
    affordable: int = 200
    accepted: list[tuple[Hashable, ir.Kernel]] = field(default_factory=list)

    def whole(self, edited: ir.Kernel) -> bool:
        """True if the edited kernel is clean on every shape of interest."""
        return self._spend() and self._runs(edited, lambda runs: not signature(runs))

    @property
    def exhausted(self) -> bool:
        """Whether nothing more can be tried."""
        return self.budget <= 0 or self.out_of_time()

    def judge(self, edited: ir.Kernel, faults: Signature) -> Literal["whole", "part"] | None:
        """What an edit repairs.

        "whole": the edited kernel is clean on every shape of interest; "part": all of `faults` are gone at the witness,
        and no fault is new there.
        """
        if not self._spend():
            return None
        found: list[Signature] = []

        def clean(runs: list[Run]) -> bool:
            found.append(signature(runs))
            return not found[-1]

        if self._runs(edited, clean):
            return "whole"
        return "part" if found and not faults & found[0] and found[0] < self.before else None

    def after(self, edited: ir.Kernel) -> Signature | None:
        """The faults of the edited kernel at the witness; None if it cannot be run."""
        found: list[Signature] = []

        def first(runs: list[Run]) -> bool:
            found.append(signature(runs))
            return False

        self._runs(edited, first)
        return found[0] if found else None

    def _spend(self) -> bool:
        self.budget -= 1
        return self.budget >= 0

    def _runs(self, edited: ir.Kernel, good: Callable[[list[Run]], bool]) -> bool:
        """Whether `good` holds of the runs of every shape of interest; stops at the first that is not."""
        try:
            return all(good(runs) for runs in self.runner(edited))
        except (ModelError, LimitReached, KeyError):  # an edit may make a kernel that cannot run: no repair
            return False
