"""What is wrong in a run that is too long to be followed to its end?

The kernel becomes one with a parameter in place of its large trip count, whose small runs show what may be wrong and
why.  A fault counts if the kernel's own run shows it: its beginning, or all of it where that can be run.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Literal

from fencepost.diagnose.repair import signature
from fencepost.facts import Fact
from fencepost.large import SMALLER, generalised
from fencepost.model.executor import LimitReached, run
from fencepost.model.program import Compiled, compile_kernel
from fencepost.model.shapes import Shape
from fencepost.outcome import Seen
from fencepost.search import Search

_BEGINNING = 60_000  # instructions per agent
_HANG = "301"
_WHOLE = 960_000  # the same, for a run that is followed to its end


@dataclass(frozen=True, slots=True)
class Beginning:
    """The faults that the kernel's own run shows.

    `where` says what their figures are about, `other` names a fault that only other trip counts show.
    """

    seen: list[Seen] = field(default_factory=list)
    where: str = ""
    other: str = ""


def beginning(compiled: Compiled, deadline: float) -> Beginning:
    """What is wrong with a kernel whose runs are too long.

    Args:
        deadline: `time.monotonic()` at which to give up.
    """
    general = generalised(compiled.kernel)
    if general is None and not compiled.parameters:
        general = generalised(compiled.kernel, SMALLER)
    if general is None:
        return Beginning()
    now = time.monotonic()
    search = Search(compile_kernel(general.kernel), now + (deadline - now) / 3)
    if not search.quick().facts:
        return Beginning()
    runs = _Runs(compiled, deadline)
    seen, others = [], []
    for one in search.full().facts:
        shape = replace(one.shape, values=one.shape.values[: len(compiled.parameters)])
        if one.fact.static or (one.fact.faults and _shown(one.fact, runs.faults(shape, one.fact.faults))):
            seen.append(replace(one, shape=shape, boundary=False, fixed=frozenset(general.values)))
        elif one.fact.faults:
            others.append(f"FP{one.fact.code} if {one.witness} instead")
    instead = ", ".join(f"{name} = {value}" for name, value in general.values.items())
    where = f"figures are those of fewer trips, the run with {instead} has the fault as well"
    return Beginning(seen, where, others[0] if others else "")


def _shown(fact: Fact, faults: frozenset[Hashable]) -> bool:
    """Whether a run with these faults has the one that a shorter run has: of a hang, one of the waits is enough."""
    return not fact.faults.isdisjoint(faults) if fact.code == _HANG else fact.faults <= faults


@dataclass(slots=True)
class _Runs:
    """The kernel's own runs: the beginning of each, and one whole if there is time (as the beginnings tell)."""

    compiled: Compiled
    deadline: float
    known: dict[Shape, frozenset[Hashable]] = field(default_factory=dict)
    whole: Shape | None = None
    slowest: float = 0.0

    def faults(self, shape: Shape, wanted: frozenset[Hashable]) -> frozenset[Hashable]:
        """The faults of the run on a shape, as far as it is followed; the `wanted` ones are what it is about."""
        now = time.monotonic()
        if shape not in self.known:
            self.known[shape] = self._run(shape, _BEGINNING, cut=True)
            self.slowest = max(self.slowest, time.monotonic() - now)
        if not wanted <= self.known[shape] and self.whole is None:
            self.whole = shape
            for limit in range(2 * _BEGINNING, _WHOLE + 1, 2 * _BEGINNING):  # too long is found out soon, unlike faults
                if time.monotonic() + self.slowest * limit / _BEGINNING > self.deadline:
                    break
                if found := self._run(shape, limit, cut=False):
                    self.known[shape] |= found
                    break
        return self.known[shape]

    def _run(self, shape: Shape, limit: int, cut: bool) -> frozenset[Hashable]:
        """The faults of one run; none if it is longer than the limit and not to be cut."""
        kernel = self.compiled.kernel
        schemes: tuple[Literal["per_slot", "batched"], ...] = ("per_slot",)
        if kernel.fifos:
            schemes = ("per_slot", "batched") if kernel.credits == "both" else (kernel.credits,)
        values = dict(zip(self.compiled.parameters, shape.values, strict=True))
        try:
            return signature(
                run(self.compiled, values, shape.table(), credits=scheme, limit=limit, cut=cut) for scheme in schemes
            )
        except LimitReached:
            return frozenset()
