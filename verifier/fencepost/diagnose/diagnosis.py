"""What is wrong in one failing run, and which of it has one cause?"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from fencepost import ir
from fencepost.diagnose.boundary import guards
from fencepost.diagnose.case import Case
from fencepost.diagnose.hangs import cycle, hangs
from fencepost.diagnose.messages import messages
from fencepost.diagnose.pairing import modes, pairings
from fencepost.diagnose.phases import early_final, phases
from fencepost.diagnose.races import races
from fencepost.diagnose.repair import Signature
from fencepost.diagnose.signals import capacity, contests, counts, hung, leftovers, mutexes, participants
from fencepost.diagnose.slots import annotated, rounds, slots
from fencepost.diagnose.values import values
from fencepost.facts import Fact
from fencepost.model.executor import Run


def diagnose(case: Case) -> Iterator[Fact]:
    """Name every fault of a run.

    The order matters: what a guard, a slot or a pairing explains is not blamed on a signal, and what one edit repairs
    has one cause.
    """
    run = case.run
    found = list(values(case))
    if _between_cores(run) and case.known(case.repairs.before) is None:
        found += guards(case)
    found += slots(case)
    found += pairings(case)
    found += races(case)
    found += modes(run)
    found += hangs(case)
    found += capacity(case)
    found += leftovers(case)
    found += counts(case)
    found += participants(case)
    found += contests(case)
    found += mutexes(case)
    found += messages(case)
    found += phases(case)
    if run.blocked and not any(hung(run) & fact.faults for fact in found):
        found.append(cycle(case, run.blocked))  # whatever else: a run that does not end is told
    for fact in found:
        cause = case.known(fact.faults)
        if cause is not None and cause != fact.cause:
            case.aliases.append((fact.cause, cause))
            fact = replace(fact, cause=cause)
        yield fact


def _between_cores(run: Run) -> bool:
    """Whether a hand-over between cube and vector does not come out even: then the control of the sides may differ.

    Races alone do not show it.  Another guard may repair them too, by leaving out the second round, say; the sides
    agree none the less.
    """
    if any(run.channels[left.channel].kind != "flag" for left in run.leftovers):
        return True
    return any(
        b.reason in ("push", "pop") or (b.reason == "channel" and run.channels[b.on[0]].kind != "flag")
        for b in run.blocked
    )


class Silent:
    """Looks for faults that execution alone does not show: rounds, modes, an early Final."""

    def __init__(self, kernel: ir.Kernel) -> None:
        nodes = list(ir.walk(kernel))
        self._rounds = any(isinstance(n, ir.DataOp) and n.task is not None for n in nodes)
        self._phases = any(isinstance(n, ir.DataOp) and n.phase is not None for n in nodes)
        self._modes = len({n.mode for n in nodes if isinstance(n, (ir.SetCross, ir.WaitCross))}) > 1

    def faults(self, run: Run) -> Signature:
        """The silent faults of one run."""
        found: set[Hashable] = set()
        if self._rounds:
            found |= {f for fact in annotated(run) for f in fact.faults} | {m.fault for m in rounds(run)}
        if self._modes:
            found |= {f for fact in modes(run) for f in fact.faults}
        if self._phases:
            found |= {f for fact in early_final(run) for f in fact.faults}
        return frozenset(found)
