"""Do the serial and the pipelined program agree, for one trip count after the other?

The program for n + 1 trips shares its prologue and its steady steps with the program for n trips, so all trip counts
up to some bound cost little more than the largest one: the state after the last steady step is kept, and only the
epilogue is run anew for each count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from fencepost.pipeline.cells import Cell, Instance
from fencepost.pipeline.emission import Part, emit
from fencepost.pipeline.horizon import Horizon
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.setting import Setting
from fencepost.pipeline.values import (
    FAR,
    Execution,
    History,
    Machine,
    Source,
    Terms,
    differing,
    identity,
    instance_of,
    scheduled,
    serial,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one trip count shows.

    `differs`: cells that end with other values.  `hazard`: something is not in order with an asynchronous statement
    (`History.race`).  `before` and `after` are what the two programs did; they leave out
    the first `shared` iterations of the serial and steps of the pipelined program if an exploration ran those once
    for several trip counts.
    """

    trips: int
    differs: tuple[Cell, ...]
    hazard: bool
    before: History
    after: History
    shared: int = 0

    @property
    def wrong(self) -> bool:
        return self.hazard or bool(self.differs)


def outcome(plan: Plan, trips: int, setting: Setting) -> Outcome:
    """Run both programs for one trip count."""
    return SerialRun(trips, setting).outcome(plan)


class SerialRun:
    """The serial program for one trip count, run once, however many schedules of the loop are compared with it."""

    def __init__(self, trips: int, setting: Setting) -> None:
        self.trips, self.setting = trips, setting
        self._terms = Terms()
        self._history: History | None = None

    def outcome(self, plan: Plan) -> Outcome:
        """Run the program of one schedule."""
        if self._history is None:
            self._history = serial(plan, self.trips, self._terms, self.setting)
        after = scheduled(plan, self.trips, self._terms, self.setting)
        differs = tuple(differing(self._history, after, self._terms))
        return Outcome(self.trips, differs, after.race, self._history, after)


class Exploration:
    """Runs for all trip counts up to a bound; `tail` iterations before the end are special to some guard."""

    def __init__(self, plan: Plan, tail: int, setting: Setting) -> None:
        self.plan, self.tail = plan, tail
        self.setting = setting
        terms = Terms()
        self.terms = terms
        self.serial = Machine(plan, FAR, terms, setting, pipelined=False)
        self.pipelined = Machine(plan, FAR, terms, setting, pipelined=True)
        self.iterations = 0  # iterations that `serial` has run
        self.time = 0  # steps that `pipelined` has run

    def run(self, limit: int) -> Iterator[Outcome]:
        """The outcome for 0, 1, ... `limit` - 1 trips."""
        plan = self.plan
        common = 2 * plan.depth + 2 + self.tail
        for trips in range(min(common, limit)):
            yield outcome(plan, trips, self.setting)
        if limit <= common:
            return
        parts = emit(plan, common)
        steady = next(p for p in parts if p.name == "body")
        self._advance([p for p in parts if p.name == "prologue"])
        timeless = not any(slot.is_async for slot in plan.slots)
        for trips in range(common, limit):
            body, epilogue = self._ending(parts if timeless else emit(plan, trips), steady, common, trips, timeless)
            self._advance([Part("body", self.time, trips - self.tail - self.time, True, body.items)])
            while self.iterations < trips - self.tail:
                self.serial.iterate(self.iterations)
                self.iterations += 1
            yield self._finish(trips, body, epilogue)

    def _ending(
        self, parts: list[Part], steady: Part, common: int, trips: int, timeless: bool
    ) -> tuple[Part, list[Part]]:
        body = next(p for p in parts if p.name == "body")
        if body.items != steady.items:
            raise AssertionError("the steady part of a pipeline depends on the trip count")
        shift = trips - common if timeless else 0
        epilogue = [p for p in parts if p.name == "epilogue"]
        return body, [Part(p.name, p.start + shift, p.count, p.loop, p.items) for p in epilogue]

    def _advance(self, parts: list[Part]) -> None:
        for part in parts:
            for t in range(part.start, part.start + part.count):
                self.pipelined.step(part.items, part.name, t, t)
                self.time = t + 1

    def _finish(self, trips: int, body: Part, epilogue: list[Part]) -> Outcome:
        before, after = self.serial.fork(trips), self.pipelined.fork(trips)
        for iteration in range(self.iterations, trips):
            before.iterate(iteration)
        rest = [Part("body", self.time, trips - self.time, True, body.items), *epilogue]
        for part in rest:
            for t in range(part.start, part.start + part.count):
                after.step(part.items, part.name, t, t)
        a, b = before.history(), after.history()
        hazard = b.race or any(e.early or e.overtaken for e in self.pipelined.executions)
        return Outcome(trips, tuple(differing(a, b, self.terms)), hazard, a, b, self.time)


# --------------------------------------------------------------------------------------------------------- agreement

Sources = tuple[Source, ...]


def _sources(plan: Plan, execution: Execution) -> Sources:
    return tuple(identity(plan.loop, read.source) for read in execution.reads)


def agreement(exploration: Exploration, last: list[Outcome], ahead: Horizon) -> str | None:
    """Check that every value that matters comes from the same place in both programs.

    `last` are the outcomes of the largest trip counts below the horizon, a whole period of them.  Returns None if all
    agree, else what does not.  A value matters if it can reach something that is visible after the loop.
    """
    plan = exploration.plan
    shared_before = {e.instance: _sources(plan, e) for e in exploration.serial.executions}
    shared_after = {e.instance: (e.step, _sources(plan, e)) for e in exploration.pipelined.executions}
    agreed: dict[Instance, int] = {}  # instances that agree whenever the first `step` steps are shared
    for result in last:
        after = {e.instance: _sources(plan, e) for e in result.after.executions}
        before = {e.instance: _sources(plan, e) for e in result.before.executions}
        before.update((i, s) for i, s in shared_before.items() if i[1] < result.shared)
        matters = _mattering(exploration, result, ahead)
        for cell, (_, source) in result.before.final.items():
            if identity(plan.loop, result.after.final.get(cell, (0, cell))[1]) != identity(plan.loop, source):
                return f"the value of {cell[0]} after the loop"
        for instance, wanted in before.items():
            if agreed.get(instance, result.shared) < result.shared:
                continue
            if _phase(instance, result.trips, ahead) not in matters:
                continue
            step, found = shared_after.get(instance, (result.shared, None))
            if step >= result.shared:
                found = after.get(instance)
            elif instance in after:
                found = None  # runs twice
            else:
                agreed[instance] = step
            if found != wanted:
                return plan.loop.statements[instance[0]].label
    return None


def _phase(instance: Instance, trips: int, ahead: Horizon) -> Instance:
    """One name for all iterations of a statement that are a period apart, away from the first and last iterations."""
    number, iteration = instance
    first, end = ahead.head + ahead.width, trips - ahead.tail - ahead.skew - 1
    if iteration < first:
        return instance
    return number, first + iteration % ahead.period if iteration < end else iteration - trips


def _mattering(exploration: Exploration, result: Outcome, ahead: Horizon) -> set[Instance]:
    """The phases of statements whose value may reach a visible cell, by the serial program."""

    phases: dict[Source, Instance] = {}

    def phase(instance: Instance) -> Instance:
        known = phases.get(instance)
        if known is None:
            known = phases[instance] = _phase(instance, result.trips, ahead)
        return known

    feeds: dict[Instance, set[Instance]] = {}
    shared = (e for e in exploration.serial.executions if e.step < result.shared)
    for e in chain(shared, result.before.executions):
        sources = feeds.setdefault(phase(e.instance), set())
        for read in e.reads:
            if (source := instance_of(read.source)) is not None:
                sources.add(phase(source))
    ends = (instance_of(source) for _, source in result.before.final.values())
    found = {phase(source) for source in ends if source is not None}
    stack = list(found)
    while stack:
        for instance in feeds.get(stack.pop(), set()) - found:
            found.add(instance)
            stack.append(instance)
    return found
