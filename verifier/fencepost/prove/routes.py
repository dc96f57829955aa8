"""Routes: which path templates do small concrete runs suggest?

Concrete paths are abstracted: every hop keeps its operations, and says how to find them again for other values.  What
was seen decides between "the same trip", "so many executions later", and "so far from the end".  Suggestions need not
be right; `hops` states what they claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.model.functions import FunctionTable
from fencepost.model.shapes import allowed
from fencepost.prove.events import Event
from fencepost.prove.hops import Find, Hop, Kind, Spot, Template
from fencepost.prove.kernels import Closed
from fencepost.prove.runs import ConcreteRun, Step, concrete

_SAMPLES = 10


@dataclass(slots=True)
class Guide:
    """Concrete runs, and what they suggest."""

    kernel: Closed
    runs: list[ConcreteRun] = field(default_factory=list)
    _seen: set[tuple[tuple[int, ...], int | None]] = field(default_factory=set)
    _pairs: dict[tuple[Kind, Event, Event], list[tuple[Step, Step, ConcreteRun]]] = field(default_factory=dict)

    def sample(self, values: tuple[int, ...], table: FunctionTable) -> ConcreteRun | None:
        """Run the formulas for these values too; None if that is not possible or was done before."""
        compiled = self.kernel.compiled
        key = (values, table.seed)
        if key in self._seen and not table.values:
            return None
        if len(self.runs) >= _SAMPLES or not allowed(compiled, values, table):
            return None
        self._seen.add(key)
        run = concrete(self.kernel, dict(zip(compiled.parameters, values, strict=True)), table)
        if run is not None:
            self.runs.append(run)
            for kind, source, target in run.edges:
                self._pairs.setdefault((kind, source.event, target.event), []).append((source, target, run))
        return run

    # -------------------------------------------------------------------------------------------- abstraction

    def template(self, run: ConcreteRun, one: Step, other: Step) -> Template | None:
        """The shortest path between two executions of a run, as a template."""
        route = run.route(one, other)
        if route is None:
            return None
        hops: list[Hop] = []
        here = one
        for kind, source, target in route:
            start = self._near(run, here, source)
            if kind == "meet":
                # What precedes the source's own sync_all precedes the other's.
                number = sum(s.effect.meets for s in run.steps[target.event.agent][: target.position])
                own = run.meeting(source.event.agent, number)
                assert own is not None
                hops.append(Hop("drain", start, self._near(run, source, own)))
                start, source = Spot(own.event, "same"), own
            if source.event.agent == target.event.agent:
                end = self._near(run, source, target)
            else:
                end = self.partner(kind, run, source, target)
            hops.append(Hop(kind, start, end))
            here = target
        return tuple(hops)

    @staticmethod
    def _near(run: ConcreteRun, here: Step, there: Step) -> Spot:
        """A later operation of the same agent."""
        loops = there.event.loops
        if here.event.loops[: len(loops)] == loops and here.indices[: len(loops)] == there.indices:
            return Spot(there.event, "same")
        if run.executed(there.event, here.position) == there.ordinal:
            return Spot(there.event, "next")
        return Spot(there.event, "shift", there.ordinal - here.ordinal)

    def partner(self, kind: Kind, run: ConcreteRun, source: Step, target: Step) -> Spot:
        """The other end of a hop between agents, by what holds for all pairs that were seen."""
        pairs = self._pairs[kind, source.event, target.event]
        if all(s.indices == t.indices for s, t, _ in pairs):
            return Spot(target.event, "same")
        return self.relation(pairs, run, source, target)

    @staticmethod
    def relation(pairs: list[tuple[Step, Step, ConcreteRun]], run: ConcreteRun, source: Step, target: Step) -> Spot:
        """How the number of one execution follows from that of another, judged by the pairs seen."""

        if source.event.agent == target.event.agent and all(
            r.executed(t.event, s.position) - 1 == t.ordinal for s, t, r in pairs
        ):
            return Spot(target.event, "previous")

        def measure(s: Step, t: Step, r: ConcreteRun) -> dict[Find, int]:
            left = r.totals[t.event] - 1 - t.ordinal
            found: dict[Find, int] = {
                "shift": t.ordinal - s.ordinal,
                "mirror": (t.ordinal - r.totals[t.event]) - (s.ordinal - r.totals[s.event]),
                "first": t.ordinal,
                "last": left,
            }
            return found

        seen = [measure(*pair) for pair in pairs]
        kinds: tuple[Find, ...] = ("shift", "mirror", "first", "last")
        if not source.event.loops:
            kinds = ("first", "last")
        best = min(kinds, key=lambda k: (len({m[k] for m in seen}), kinds.index(k)))
        return Spot(target.event, best, measure(source, target, run)[best])

    # -------------------------------------------------------------------------------------------- values to try

    def start(self) -> None:
        """Run one shape with several rounds of every slot."""
        for values in self._shapes():
            run = self.sample(values, FunctionTable(seed=1))
            if run is not None and run.finished:
                return

    def _shapes(self) -> Iterator[tuple[int, ...]]:
        count = len(self.kernel.compiled.parameters)
        for n in (9, 4, 3, 2, 1, 0, -1) if count < 2 else (4, 3, 2, 1, 0, -1):
            yield tuple(n + i % 2 for i in range(count))
