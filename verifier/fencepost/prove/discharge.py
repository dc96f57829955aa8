"""Discharge: is this obligation met for all values?

Plain obligations are one query.  An order is met if path templates cover every related pair; templates come from small
runs, and, when the solver finds a pair that none covers, from a run at the values it found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from fencepost.model.functions import FunctionTable, Point
from fencepost.model.program import Compiled
from fencepost.prove.evaluation import Unevaluated, function
from fencepost.prove.events import Event, Instance, named, pair
from fencepost.prove.expressions import smt_name
from fencepost.prove.hops import Hops, Search, Spot, Template
from fencepost.prove.kernels import Closed
from fencepost.prove.obligations import Obligation, Order, Source
from fencepost.prove.routes import Guide, Pair
from fencepost.prove.runs import ConcreteRun, Step
from fencepost.prove.solver import Verdict
from fencepost.prove.terms import Cond, conjoin, disjoin, le, negate, symbol

Matcher = Callable[[ConcreteRun, Step, Step], bool]

_ROUNDS = 8  # how often the solver may ask for another template
_SMALL = (2, 6, 20)  # bounds on parameters under which a model is looked for first
_SMALL = (2, 6, 20)  # bounds on parameters under which a model is looked for first
_LARGEST = 60  # parameter values up to which a model is run


@dataclass(frozen=True, slots=True)
class Candidate:
    """Parameter values (in the order of `Compiled.parameters`) and unknown functions at which a fault may show."""

    values: tuple[int, ...]
    functions: tuple[tuple[Point, int], ...] = ()

    def given(self, compiled: Compiled) -> dict[str, int]:
        """The parameters by name."""
        return dict(zip(compiled.parameters, self.values, strict=True))


@dataclass(frozen=True, slots=True)
class Route:
    """How an order is shown: from which event, along which hops, to which; `writer`: where a read finds its write."""

    one: Event
    other: Event
    template: Template
    writer: Spot | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an obligation.  `text` is the last query, as SMT-LIB; `scheme` says how FIFO credits travel."""

    obligation: Obligation
    answer: Literal["unsat", "sat", "unknown"]
    text: str
    reason: str = ""
    candidate: Candidate | None = None
    routes: tuple[Route, ...] = ()
    scheme: str = "per_slot"


def candidate(kernel: Closed, verdict: Verdict) -> Candidate:
    """The values of a kernel's parameters and functions in a model."""
    values = tuple(verdict.model.get(smt_name(p), 0) for p in kernel.compiled.parameters)
    names = kernel.function_names
    points = {(names[n], args): value for (n, args), value in verdict.points.items() if n in names}
    return Candidate(values, tuple(sorted(points.items())))


@dataclass(slots=True)
class Discharger:
    """Settles the obligations of one kernel."""

    kernel: Closed
    guide: Guide
    hops: Hops = field(init=False)

    def __post_init__(self) -> None:
        self.hops = Hops(self.kernel)

    def settle(self, obligation: Obligation) -> Outcome:
        """Decide one obligation."""
        if self.kernel.late:
            return self._outcome(obligation, "", Verdict("unknown", reason="the time limit was reached"))
        match obligation.need:
            case None:
                text, verdict = self.ask(list(obligation.conditions))
                return self._outcome(obligation, text, verdict)
            case Order() as order:
                return self._order(obligation, order)
            case Source() as source:
                return self._source(obligation, source)

    def ask(self, conditions: list[Cond]) -> tuple[str, Verdict]:
        """One query; if it has models, a model with small parameters where there is one."""
        text, verdict = self.kernel.ask(conditions)
        if verdict.answer != "sat":
            return text, verdict
        parameters = [symbol(smt_name(p)) for p in self.kernel.compiled.parameters]
        for most in _SMALL:
            small = [c for p in parameters for c in (le(p - most), le(-p - most))]
            found = self.kernel.ask([*conditions, *small])[1]
            if found.answer == "sat":
                return text, found
        return text, verdict

    def _outcome(self, obligation: Obligation, text: str, verdict: Verdict, routes: tuple[Route, ...] = ()) -> Outcome:
        found = candidate(self.kernel, verdict) if verdict.answer == "sat" else None
        scheme = "batched" if self.kernel.batched else "per_slot"
        return Outcome(obligation, verdict.answer, text, verdict.reason, found, routes, scheme)

    def run(self, candidate: Candidate) -> ConcreteRun | None:
        """The concrete run at a candidate's values, if they are small."""
        if any(abs(v) > _LARGEST for v in candidate.values):
            return None
        return self.guide.sample(candidate.values, FunctionTable(values=dict(candidate.functions)))

    # -------------------------------------------------------------------------------------------- order

    def _order(self, obligation: Obligation, order: Order) -> Outcome:
        one, other = pair(order.one, order.other, self.kernel.sums)
        related = conjoin((one.domain, other.domain, order.relation(one, other)))
        numbers = self.hops.numbered(one), self.hops.numbered(other)
        if related.kind == "false":
            return Outcome(obligation, "unsat", "(assert false)\n")
        matching = _matcher(related)
        weaker = matching if order.seed is None else _matcher(order.seed(one, other))
        routes: dict[Route, None] = {}
        for run in self.guide.runs:
            self._collect(order, run, weaker, routes)
        for _ in range(_ROUNDS):
            search = Search("z")
            ends = {order.one: (one, other), order.other: (other, one)}
            paths = [self.hops.holds(r.template, *ends[r.one], search, order.own_token) for r in routes]
            unordered = [negate(p) for p in paths]
            text, verdict = self.ask([related, *numbers, *unordered, *search.facts])
            found = tuple(routes)
            if verdict.answer != "sat":
                break
            model = self.run(candidate(self.kernel, verdict))
            if model is None or not self._collect(order, model, matching, routes) or len(routes) == len(found):
                break
        return self._outcome(obligation, text, verdict, found)

    def _collect(self, order: Order, run: ConcreteRun, matching: Matcher, routes: dict[Route, None]) -> bool:
        """Add the templates of all related pairs of a run; False if some pair has no order."""
        ordered = True
        for a in run.executions(order.one):
            for b in run.executions(order.other):
                if not matching(run, a, b):
                    continue
                first, second = (b, a) if order.either and run.ordered(b, a) else (a, b)
                if run.ordered(first, second):
                    template = self.guide.template(run, first, second)
                    if template is not None:
                        routes[Route(first.event, second.event, template)] = None
                else:
                    ordered = False
        return ordered

    # -------------------------------------------------------------------------------------------- sources

    def _source(self, obligation: Obligation, source: Source) -> Outcome:
        reader = named(source.reader, "a", self.kernel.sums)
        pairs: dict[Event, list[Pair]] = {}
        for run in self.guide.runs:
            self._writers(source, run, pairs)
        found = self._suggested(source, pairs)
        known, number = self.kernel.assumed.extended([reader.domain]), self.hops.numbered(reader)
        for _ in range(_ROUNDS):
            search = Search("z")
            served = [known.cond(c) for c in self._all_served(source, reader, found, search)]
            text, verdict = self.ask([reader.domain, number, negate(disjoin(served)), *search.facts])
            model = self.run(candidate(self.kernel, verdict)) if verdict.answer == "sat" else None
            if model is None:
                break
            self._writers(source, model, pairs)
            before, found = found, self._suggested(source, pairs)
            if found == before:
                break
        return self._outcome(obligation, text, verdict, found)

    def _all_served(
        self, source: Source, reader: Instance, routes: tuple[Route, ...], search: Search
    ) -> Iterator[Cond]:
        """When a write of one of the routes comes before the reader."""
        if source.place is not None:
            for event, template in dict.fromkeys((route.one, route.template) for route in routes):
                writer = source.place(reader, event)
                if writer is not None:
                    met = writer.domain, source.relation(reader, writer)
                    yield conjoin((*met, self.hops.holds(template, writer, reader, search)))
        for route in routes:
            yield self._served(source, reader, route, search)

    def _served(self, source: Source, reader: Instance, route: Route, search: Search) -> Cond:
        assert route.writer is not None
        writer, exists, _ = self.hops.find(route.writer, reader, search)
        met = source.relation(reader, writer)
        return conjoin((exists, met, self.hops.holds(route.template, writer, reader, search)))

    def _writers(self, source: Source, run: ConcreteRun, pairs: dict[Event, list[Pair]]) -> None:
        """For every read of a run, a write of its slot that comes before it."""
        relations = {w: self._relation(source, w) for w in source.writers}
        for read in run.executions(source.reader):
            best: tuple[tuple[bool, bool, int], Step] | None = None
            for writer in source.writers:
                for write in reversed(run.executions(writer)):
                    if run.ordered(write, read) and relations[writer](run, read, write):
                        merit = (write.event.agent == read.event.agent, write.indices == read.indices, write.ordinal)
                        if best is None or merit > best[0]:
                            best = merit, write
                        break
            if best is not None:
                pairs.setdefault(best[1].event, []).append((read, best[1], run))

    def _suggested(self, source: Source, pairs: dict[Event, list[Pair]]) -> tuple[Route, ...]:
        """Where reads find their writes, and how these come before."""
        routes: dict[Route, None] = {}
        for writer, seen in pairs.items():
            same = all(r.indices == w.indices for r, w, _ in seen)
            for read, write, run in seen:
                template = self.guide.template(run, write, read)
                if template is not None:
                    spot = Spot(writer, "same") if same else self.guide.relation(seen, run, read, write)
                    routes[Route(writer, source.reader, template, spot)] = None
        return tuple(routes)

    def _relation(self, source: Source, writer: Event) -> Matcher:
        reader, there = pair(source.reader, writer, self.kernel.sums)
        return _matcher(source.relation(reader, there))


def _matcher(related: Cond) -> Matcher:
    """Evaluates a condition on the indices of two executions; what cannot be evaluated does not match."""
    compiled = function([related])

    def matches(run: ConcreteRun, a: Step, b: Step) -> bool:
        values = dict(run.parameters)
        for prefix, step in (("a", a), ("b", b)):
            values |= {f"{prefix}@{i}": v for i, v in enumerate(step.indices)}
        try:
            return bool(compiled(values, run.functions)[0])
        except Unevaluated:
            return False

    return matches


__all__ = ["Candidate", "Discharger", "Outcome", "Route", "candidate"]
