"""Does the emitted program use a cell that an asynchronous statement might not be done with?

The same question as `History.race`, answered without values and at the first such use: schedules are tried by the
dozen, and most that fail fail in this.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

from fencepost.pipeline.cells import Cell, cells
from fencepost.pipeline.emission import Commit, Item, Run, Wait, emit, steps
from fencepost.pipeline.flights import Flights, fetched
from fencepost.pipeline.model import Access
from fencepost.pipeline.schedule import Plan, Slot
from fencepost.pipeline.setting import Setting
from fencepost.pipeline.values import FAR


@dataclass(frozen=True, slots=True)
class Race:
    """A cell of `buffer` is used too early: `writer` writes it, or (None) it is read, or used after the loop."""

    buffer: str
    writer: int | None = None


def unawaited(plan: Plan, trips: int, setting: Setting) -> Race | None:
    """The first race in a run of the emitted program."""
    if not plan.rewritten or not any(slot.is_async for slot in plan.slots):
        return None
    run = _Run(plan, trips, setting)
    found = (run.step(items, t) for _, t, items in steps(emit(plan, trips)))
    return next((race for race in found if race), None) or run.end()


def ever_unawaited(plan: Plan, tail: int, setting: Setting, limit: int) -> bool:
    """Whether a run with 0, 1, ... or `limit` - 1 trips has a race; `tail` as for `Exploration`.

    What long runs have in common is run once.
    """
    if not plan.rewritten or not any(slot.is_async for slot in plan.slots):
        return False
    common = 2 * plan.depth + 2 + tail
    if any(unawaited(plan, trips, setting) for trips in range(min(common, limit))):
        return True
    shared, time = _Run(plan, FAR, setting), 0
    for trips in range(common, limit):
        parts = emit(plan, trips)
        for part in (p for p in parts if p.name != "epilogue"):
            for t in range(max(part.start, time), min(part.start + part.count, trips - tail)):
                if shared.step(part.items, t):
                    return True
                time = t + 1
        run = shared.fork(trips)
        rest = ((p.items, t) for p in parts for t in range(max(p.start, time), p.start + p.count))
        if any(run.step(items, t) for items, t in rest) or run.end():
            return True
    return False


class _Run:
    def __init__(self, plan: Plan, trips: int, setting: Setting) -> None:
        self.plan, self.trips, self.setting = plan, trips, setting
        texts = [plan.statement(s) for s in plan.slots if s.is_async]
        self.filled = {a.buffer for text in texts for a in text.writes}
        self.used = self.filled | {a.buffer for t in texts for s in t.steps for a in s.reads if fetched(plan, t, a)}
        self.flights = Flights(plan)

    def fork(self, trips: int) -> _Run:
        """A run for another trip count that is as far as this one."""
        twin = copy(self)
        twin.trips, twin.flights = trips, self.flights.fork()
        return twin

    def step(self, items: tuple[Item, ...], t: int) -> Race | None:
        """Run one step, up to its first race."""
        for item in items:
            match item:
                case Run(slot):
                    if race := self._race(slot, t - slot.stage):
                        return race
                case Commit(runs):
                    for run in runs:
                        if race := self._race(run.slot, t - run.slot.stage):
                            return race
                    self.flights.committed += 1
                case Wait(pending):
                    self.flights.wait(pending)
        return None

    def end(self) -> Race | None:
        """What the code after the loop does to a cell that an asynchronous statement is not done with."""
        found = self.flights.read_too_early(self.setting) or self.flights.written_too_early(self.setting)
        return Race(found[0][0][0]) if found else None

    def _race(self, slot: Slot, iteration: int) -> Race | None:
        text, flights = self.plan.statement(slot), self.flights
        if not text.guard.holds(iteration, self.trips, self.setting):
            return None
        instance = (slot.number, iteration)
        for step in text.steps:
            if not step.guard.holds(iteration, self.trips, self.setting):
                continue
            for access in step.reads:
                flying = flights.unfilled(self._cells(access, iteration)) if access.buffer in self.filled else ()
                if any(other != instance for _, other in flying):
                    return Race(access.buffer)
                if slot.is_async and fetched(self.plan, text, access):
                    flights.fetches(instance, self._cells(access, iteration))
            for access in step.writes:
                if slot.is_async:
                    flights.fills(instance, self._cells(access, iteration))
                elif access.buffer in self.used and flights.in_use(self._cells(access, iteration)):
                    return Race(access.buffer, slot.number)
        return None

    def _cells(self, access: Access, iteration: int) -> list[Cell]:
        return cells(self.plan.loop, access, self.plan.version(access.buffer, iteration), iteration, self.setting)
