"""Does the emitted program read a cell that an asynchronous write might not have filled yet?

The same question as `History.hazard`, answered without values and at the first such read: schedules are tried by the
dozen, and most that fail fail in this.
"""

from __future__ import annotations

from copy import copy

from fencepost.pipeline.emission import Commit, Item, Run, Wait, emit, steps
from fencepost.pipeline.model import Access
from fencepost.pipeline.schedule import Plan, Slot
from fencepost.pipeline.setting import Setting
from fencepost.pipeline.values import FAR, Cell, Instance, cells, cells_after


def unawaited(plan: Plan, trips: int, setting: Setting) -> bool:
    """Whether a run of the emitted program has a hazard."""
    if not plan.rewritten or not any(slot.is_async for slot in plan.slots):
        return False
    run = _Run(plan, trips, setting)
    return any(run.step(items, t) for _, t, items in steps(emit(plan, trips))) or run.ends_early()


def ever_unawaited(plan: Plan, tail: int, setting: Setting, limit: int) -> bool:
    """Whether a run with 0, 1, ... or `limit` - 1 trips has a hazard; `tail` as for `Exploration`.

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
        if any(run.step(items, t) for items, t in rest) or run.ends_early():
            return True
    return False


class _Run:
    def __init__(self, plan: Plan, trips: int, setting: Setting) -> None:
        self.plan, self.trips, self.setting = plan, trips, setting
        self.filled = {a.buffer for s in plan.slots if s.is_async for a in plan.statement(s).writes}
        self.flying: dict[Cell, tuple[int, Instance]] = {}  # cell -> commit group and writer of its last async write
        self.committed = self.completed = 0

    def fork(self, trips: int) -> _Run:
        """A run for another trip count that is as far as this one."""
        twin = copy(self)
        twin.trips, twin.flying = trips, dict(self.flying)
        return twin

    def step(self, items: tuple[Item, ...], t: int) -> bool:
        """Run one step; True at its first hazard."""
        for item in items:
            match item:
                case Run(slot):
                    if self._early(slot, t - slot.stage):
                        return True
                case Commit(runs):
                    if any(self._early(run.slot, t - run.slot.stage) for run in runs):
                        return True
                    self.committed += 1
                case Wait(pending):
                    self.completed = max(self.completed, self.committed - pending)
        return False

    def ends_early(self) -> bool:
        """Whether something that is read after the loop might not be there."""
        loop = self.plan.loop
        return any(self._in_flight(c) for a in loop.after for c in cells_after(loop, a, self.flying, self.setting))

    def _early(self, slot: Slot, iteration: int) -> bool:
        text = self.plan.statement(slot)
        if not text.guard.holds(iteration, self.trips, self.setting):
            return False
        instance = (slot.number, iteration)
        for step in text.steps:
            if not step.guard.holds(iteration, self.trips, self.setting):
                continue
            for access in step.reads:
                if access.buffer in self.filled:
                    for cell in self._cells(access, iteration):
                        if self._in_flight(cell) and self.flying[cell][1] != instance:
                            return True
            if slot.is_async:
                for access in step.writes:
                    for cell in self._cells(access, iteration):
                        self.flying[cell] = self.committed, instance
        return False

    def _in_flight(self, cell: Cell) -> bool:
        return cell in self.flying and self.flying[cell][0] >= self.completed

    def _cells(self, access: Access, iteration: int) -> list[Cell]:
        return cells(self.plan.loop, access, self.plan.version(access.buffer, iteration), iteration, self.setting)
