"""How many trips show everything that a pipelined loop can do?

If every guard and every slot number repeats (see `sequence`), so does everything that the serial and the pipelined
program do, away from the first and the last iterations.  The horizon says how long the beginning and the end are.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from fencepost.pipeline.emission import Wait, emit
from fencepost.pipeline.model import At, Buffer, Somewhere, Whole
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.sequence import Sequence, Shape

MAX_TRIPS = 1500
"""Give up on loops whose behaviour takes longer than this to repeat."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """Where the behaviour of a loop repeats.

    `period`: iterations after which everything repeats.  `head`, `tail`: iterations at the beginning and the end that
    are special.  `width`: no value is read further than this many iterations from where it was written, or else it
    was written in the head.  `skew`: the most that the pipeline moves one statement against another.
    """

    period: int
    head: int
    tail: int
    width: int
    skew: int

    @property
    def settled(self) -> int:
        """A loop of this many trips or more has a beginning, a whole period and an end that do not meet.

        From here on, `period` more trips insert one more period in the middle: an instance more than width + skew
        after the head reads from instances that repeat, and one more than skew + tail before the end cannot tell
        that the loop will end.
        """
        return self.head + self.tail + 2 * self.width + 4 * (self.skew + 1) + self.period

    @property
    def trips(self) -> int:
        """All trip counts below this one together show every behaviour."""
        return self.settled + self.period


def horizon(plan: Plan) -> Horizon | str:
    """The horizon of a loop, or why it has none."""
    stages = [slot.stage for slot in plan.slots]
    skew = max(0, *stages) - min(0, *stages)
    shape = Shape()
    # A hazard counts wherever it is, so with asynchronous copies everything matters.
    buffers, slots = plan.visible
    if any(slot.is_async for slot in plan.slots):
        buffers, slots = frozenset(plan.loop.buffer), plan.slots
    for slot in slots:
        text = plan.statement(slot)
        for guard in text.guards:
            shape = shape.joined(guard.shape())
        if not shape.regular:
            return f"the condition of {text.label} is not known"
    period, head, spread = lcm(shape.period, *plan.versions.values()), shape.head, 0
    for buffer in plan.loop.buffers:
        if buffer.name not in plan.changing & buffers:
            continue
        found = slots_of(plan, buffer)
        if isinstance(found, str):
            return found
        period = lcm(period, *(c.period for c in found))
        moving = [c for c in found if c.gain]
        if moving:
            values = [v for c in moving for v in c.values]
            distance = (max(values) - min(values)) * moving[0].period // abs(moving[0].gain)  # in iterations
            spread = max(spread, distance + max(c.period for c in moving) + 1)
            head = max(head, _crossings(buffer, moving, found))
    head = max(head, _longest_wait(plan) + 2)
    result = Horizon(period, head, shape.tail, period + spread + skew + 1, skew)
    if result.trips > MAX_TRIPS:
        return f"the behaviour repeats only after {result.trips} iterations"
    return result


def slots_of(plan: Plan, buffer: Buffer) -> list[Sequence] | str:
    """The slots that the loop uses of a buffer, one sequence per access of a single slot, or why they do not repeat."""
    found = []
    accesses = [(s, a) for s in plan.loop.statements for a in (*s.reads, *s.writes) if a.buffer == buffer.name]
    for text, access in accesses:
        match access.index:
            case At(cell):
                found.append(cell)
            case Somewhere():
                return f"the slot of {buffer.name} that {text.label} uses is not known"
            case Whole():
                pass
    moving = [c for c in found if c.gain]
    if any(c.gain * moving[0].period != moving[0].gain * c.period for c in moving):
        return f"the slots of {buffer.name} advance at different rates"
    if moving and any(isinstance(a.index, Whole) for _, a in accesses):
        return f"{buffer.name} is used both slot by slot and as a whole"
    return found


def _crossings(buffer: Buffer, moving: list[Sequence], found: list[Sequence]) -> int:
    """The iteration after which no moving access touches a cell that an access with fixed slots uses."""
    fixed = {v for c in found if c.gain == 0 for v in c.values}
    return max((c.plus(Sequence.constant(-v)).settled() for c in moving for v in fixed), default=0)


def _longest_wait(plan: Plan) -> int:
    if not any(slot.is_async for slot in plan.slots):
        return 0
    parts = emit(plan, 2 * plan.depth + 4)
    return max((item.pending for part in parts for item in part.items if isinstance(item, Wait)), default=0)
