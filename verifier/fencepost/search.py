"""Search: which faults do the boundary shapes of a kernel show, and at which smallest values?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from fencepost import ir
from fencepost.diagnose import handover, memory, signals
from fencepost.diagnose.boundary import guards
from fencepost.diagnose.repair import Repairs, Runner, Signature, signature
from fencepost.diagnose.roles import Protocol
from fencepost.facts import Fact
from fencepost.findings import Witness
from fencepost.model.executor import LimitReached, Run, run
from fencepost.model.functions import show
from fencepost.model.program import Compiled, compile_kernel
from fencepost.model.shapes import Shape, allowed, bounds, shapes

_LIMIT = 60_000  # instructions per agent and shape
_OPERATIONS = 250_000  # operations of one search in all
_DIAGNOSES = 12
_TAIL = (21, 22, 23, 24, 25, 26)

Kind = Literal["hang", "leftover", "other"]


@dataclass(slots=True)
class Seen:
    """One fact with the smallest shape that shows it, and the runs on that shape."""

    fact: Fact
    shape: Shape
    runs: list[Run]

    @property
    def witness(self) -> Witness | None:
        if self.fact.static:
            return None
        one = self.runs[0]
        functions = tuple((show(point), value) for point, value in sorted(one.functions.items()))
        return Witness(tuple(zip(one.compiled.parameters, one.values, strict=True)), functions)


@dataclass(slots=True)
class Outcome:
    """What a search saw.

    `tried` shapes ran, `clean` of them without a fault.  `boundary` maps a kind of failure that only happens at
    boundary trips to the smallest shape that shows it.  `exhausted` is True if every shape of interest was run.
    """

    facts: list[Seen] = field(default_factory=list)
    tried: int = 0
    clean: int = 0
    largest: tuple[int, ...] = ()
    boundary: dict[Kind, Shape] = field(default_factory=dict)
    exhausted: bool = True
    peaks: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Search:
    """One search over the boundary shapes of a kernel, within a number of operations and a deadline."""

    compiled: Compiled
    deadline: float
    outcome: Outcome = field(default_factory=Outcome)
    known: set[tuple[object, ...]] = field(default_factory=set)
    keys: set[object] = field(default_factory=set)
    failing: dict[Kind, list[Shape]] = field(default_factory=dict)
    diagnoses: int = 0
    operations: int = 0

    def run(self) -> Outcome:
        for shape in shapes(self.compiled):
            if self.operations > _OPERATIONS or time.monotonic() > self.deadline:
                self.outcome.exhausted = False
                break
            runs = self.execute(self.compiled, shape)
            if runs is None:
                self.outcome.exhausted = False
                continue
            self.judge(shape, runs)
        self._boundary()
        return self.outcome

    def execute(self, compiled: Compiled, shape: Shape) -> list[Run] | None:
        """Run one shape under every credit scheme that the kernel asks for; None if it is too long."""
        modes: list[Literal["per_slot", "batched"]] = ["per_slot"]
        if compiled.kernel.fifos:
            asked = compiled.kernel.credits
            modes = ["per_slot", "batched"] if asked == "both" else [asked]
        values = dict(zip(compiled.parameters, shape.values, strict=True))
        try:
            runs = [run(compiled, values, shape.table(), credits=m, limit=_LIMIT) for m in modes]
        except LimitReached:
            return None
        self.operations += sum(len(ops) for r in runs for ops in r.issued.values())
        return runs

    def judge(self, shape: Shape, runs: list[Run]) -> bool:
        """Record the outcome of one shape; True if it is clean."""
        self.outcome.tried += 1
        self.outcome.largest = max(self.outcome.largest, shape.values, key=lambda v: (sum(map(abs, v)), v))
        for r in runs:
            for channel, peak in zip(r.channels, r.peak, strict=True):
                name = str(channel)
                self.outcome.peaks[name] = max(peak, self.outcome.peaks.get(name, 0))
        for kind in kinds(runs):
            self.failing.setdefault(kind, []).append(shape)
        if self.outcome.tried == 1:
            for fact in (
                *handover.static(self.compiled.kernel, runs[0]),
                *handover.rings(self.compiled.kernel, runs[0]),
            ):
                self._add(fact, shape, runs)
        silent = self._silent(runs)
        if all(r.clean for r in runs) and not silent:
            self.outcome.clean += 1
            if self.outcome.clean <= 8:
                for fact in memory.slots(runs[0], Protocol(runs[0])):
                    self._add(fact, shape, runs)
            return True
        faults = signature(runs) | silent
        if not faults <= self.known and self.diagnoses < _DIAGNOSES:
            self.known |= faults
            self.diagnoses += 1
            for r in runs:
                for fact in self._facts(r, shape):
                    self._add(fact, shape, runs)
        return False

    @staticmethod
    def _silent(runs: list[Run]) -> Signature:
        """Faults that execution alone does not show: rounds, modes, an early Final."""
        facts = (*memory.annotated(runs[0]), *signals.modes(runs[0]), *handover.early_final(runs[0], set()))
        return frozenset(("silent", *f.key) for f in facts)

    def _facts(self, r: Run, shape: Shape) -> Iterator[Fact]:
        protocol = Protocol(r, lambda: self._larger(shape))
        repairs = Repairs(self.compiled.kernel, self._runner(shape))
        yield from memory.values(r)
        yield from memory.slots(r, protocol)
        yield from memory.races(r, protocol, repairs)
        yield from memory.pairings(r, protocol)
        yield from signals.modes(r)
        yield from signals.hangs(r, protocol)
        yield from signals.leftovers(r, protocol, repairs)
        yield from signals.counts(r, protocol)
        yield from signals.capacity(r, protocol)
        yield from signals.contested(r, protocol)
        yield from signals.mutexes(r, protocol)
        yield from handover.messages(r)
        yield from handover.phases(r)
        if r.blocked or r.leftovers or r.races:
            yield from guards(r, repairs)

    def _larger(self, shape: Shape) -> Run | None:
        """A run in which every loop has trips, to see what a channel is for."""
        values = tuple(v + 4 for v in shape.values)
        if not values or not allowed(self.compiled, values, shape.table()):
            return None
        runs = self.execute(self.compiled, Shape(values, shape.default, shape.seed))
        return None if runs is None else runs[0]

    def _runner(self, witness: Shape) -> Runner:
        """Runs an edited kernel on the witness and on a few other shapes."""
        samples = [witness, *_samples(self.compiled, witness)]

        def runner(kernel: ir.Kernel) -> list[list[Run]]:
            compiled = compile_kernel(kernel)
            results = []
            for shape in samples:
                runs = self.execute(compiled, shape)
                if runs is None:
                    raise LimitReached("too long")
                results.append(runs)
            return results

        return runner

    def _add(self, fact: Fact, shape: Shape, runs: list[Run]) -> None:
        if fact.key not in self.keys:
            self.keys.add(fact.key)
            self.outcome.facts.append(Seen(fact, shape, runs))

    # ------------------------------------------------------------------------------------------ boundary trips

    def _boundary(self) -> None:
        """Which kinds of failure leave out large values of some parameter."""
        for kind, failing in self.failing.items():
            for shape in failing[:4]:
                if any(self._passes(kind, shape, i) for i in range(len(shape.values))):
                    self.outcome.boundary[kind] = failing[0]
                    break

    def _passes(self, kind: Kind, shape: Shape, i: int) -> bool:
        """Whether the failure vanishes for some large values of parameter i, everything else unchanged."""
        low, high = bounds(self.compiled, self.compiled.parameters[i])
        if high is not None:
            return False
        for value in _TAIL:
            values = (*shape.values[:i], (low or 0) + value, *shape.values[i + 1 :])
            larger = Shape(values, shape.default, shape.seed)
            if not allowed(self.compiled, values, larger.table()):
                continue
            runs = self.execute(self.compiled, larger)
            if runs is not None and kind not in kinds(runs):
                return True
        return False


def kinds(runs: list[Run]) -> set[Kind]:
    """The kinds of failure of one shape, as far as boundary trips are concerned."""
    found: set[Kind] = set()
    for r in runs:
        if r.blocked:
            found.add("hang")
        if r.leftovers or r.phase_faults:
            found.add("leftover")
        if r.races or r.unwritten or r.bad_values or r.outside:
            found.add("other")
    return found


def _samples(compiled: Compiled, witness: Shape) -> list[Shape]:
    """A few shapes beside the witness on which a repaired kernel must be clean too."""
    found: list[Shape] = []
    for extra in (0, 1, 2, 3, 5):
        values = tuple(max(v, extra) if extra else v + 4 for v in witness.values)
        shape = Shape(values, witness.default, witness.seed)
        if values != witness.values and shape not in found and allowed(compiled, values, shape.table()):
            found.append(shape)
    return found


__all__ = ["Outcome", "Search", "Seen"]
