"""Routes: which path templates do small concrete runs suggest?

Concrete paths are abstracted: every hop keeps its operations, and says how to find them again for other values.  What
was seen decides between "the same trip", "so many executions later", and "so far from the end".  Suggestions need not
be right; `hops` states what they claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fencepost.model.functions import FunctionTable
from fencepost.model.shapes import allowed
from fencepost.prove.events import Event
from fencepost.prove.hops import Find, Hop, Kind, Spot, Template
from fencepost.prove.kernels import Closed
from fencepost.prove.runs import ConcreteRun, Step, concrete

_SAMPLES = 12
_TRIPS = 8


Pair = tuple[Step, Step, ConcreteRun]
"""Two executions that belong together in a run."""


@dataclass(slots=True)
class Guide:
    """Concrete runs, and what they suggest."""

    kernel: Closed
    runs: list[ConcreteRun] = field(default_factory=list)
    _seen: set[tuple[tuple[int, ...], int | None]] = field(default_factory=set)
    _pairs: dict[tuple[Kind, Event, Event], list[Pair]] = field(default_factory=dict)

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
        if hops and self._countable(hops[-1], other.event):
            hops[-1] = replace(hops[-1], target=Spot(hops[-1].target.event, "count"))
        return tuple(hops)

    @staticmethod
    def _countable(hop: Hop, end: Event) -> bool:
        """Whether the last signal of a path is better counted than found."""
        event, find = hop.target.event, hop.target.find
        hidden = find == "partner" or (len(event.loops) > 1 and find != "same")
        return (
            hop.kind == "match" and hidden and event.agent == end.agent and event.pipe in (end.pipe, (end.agent, "S"))
        )

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
        pairs = self._pairs.get((kind, source.event, target.event), [(source, target, run)])
        if all(s.indices == t.indices for s, t, _ in pairs):
            return Spot(target.event, "same")
        found = self.relation(pairs, run, source, target)
        if kind == "match" and not self._steady(pairs, found):
            return Spot(target.event, "partner")
        return found

    @staticmethod
    def _steady(pairs: list[Pair], spot: Spot) -> bool:
        """Whether a spot describes all pairs."""
        return all(_measure(*pair)[spot.find] == spot.offset + _extra(spot, pair[2]) for pair in pairs)

    def relation(self, pairs: list[Pair], run: ConcreteRun, source: Step, target: Step) -> Spot:
        """How the number of one execution follows from that of another, judged by the pairs seen."""
        if source.event.agent == target.event.agent and all(
            r.executed(t.event, s.position) - 1 == t.ordinal for s, t, r in pairs
        ):
            return Spot(target.event, "previous")
        seen = [_measure(*pair) for pair in pairs]
        kinds: tuple[Find, ...] = ("shift", "mirror", "first", "last") if source.event.loops else ("first", "last")
        best = min(kinds, key=lambda k: (len({m[k] for m in seen}), kinds.index(k)))
        found = Spot(target.event, best, _measure(source, target, run)[best])
        if source.event.loops and target.event.loops and not self._steady(pairs, found):
            return self._through(pairs, found, source, target, run)
        return found

    def _through(self, pairs: list[Pair], found: Spot, source: Step, target: Step, run: ConcreteRun) -> Spot:
        """The relation of two events of which one side runs through several loops; `found` if there is none."""
        shift = target.ordinal - source.ordinal
        for plus in (None, *self._earlier(source.event)):
            for minus in (None, *self._earlier(target.event)):
                spot = Spot(target.event, "shift", 0, plus, minus)
                spot = replace(spot, offset=shift - _extra(spot, run))
                if self._steady(pairs, spot):
                    return spot
        return found

    def _earlier(self, event: Event) -> list[Event]:
        """Events of one agent in other loops that stand before an event."""
        events = self.kernel.traces[event.agent].events
        return [e for e in events if e.number < event.number and e.loops and e.loops[0] is not event.loops[0]]

    # -------------------------------------------------------------------------------------------- values to try

    def start(self) -> None:
        """Run one shape with several rounds of every slot, and a larger one if its loops are short."""
        for values in self._shapes():
            run = self.sample(values, FunctionTable())
            if run is None:
                continue
            if self.kernel.function_names:
                self.sample(values, FunctionTable(seed=1))
            trips = max((len({s.indices for s in steps if s.indices}) for steps in run.steps.values()), default=0)
            if run.finished and (trips == 0 or trips >= _TRIPS):
                return

    def _shapes(self) -> Iterator[tuple[int, ...]]:
        """Values to try, those with about the right number of trips first."""
        count = len(self.kernel.compiled.parameters)
        if count == 0:
            yield ()
            return
        for n in (9, 24, 40, 4, 2, 1, 0) if count == 1 else (4, 8, 12, 2, 1, 0):
            yield tuple(n + i % 2 for i in range(count))


def _extra(spot: Spot, run: ConcreteRun) -> int:
    """What the loops that a spot reaches through add to its offset."""
    plus = 0 if spot.plus is None else run.totals[spot.plus]
    return plus - (0 if spot.minus is None else run.totals[spot.minus])


def _measure(source: Step, target: Step, run: ConcreteRun) -> dict[Find, int]:
    """What the offset of every kind of spot would be."""
    ahead = target.ordinal - run.totals[target.event]
    return {
        "shift": target.ordinal - source.ordinal,
        "mirror": ahead - (source.ordinal - run.totals[source.event]),
        "first": target.ordinal,
        "last": -1 - ahead,
    }
