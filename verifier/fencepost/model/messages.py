"""Message rings of one run: who waits for a message or a free slot, and which message is which?"""

from __future__ import annotations

from typing import Literal

from fencepost import ir
from fencepost.model.clocks import Clock, Stamp, join
from fencepost.model.outcome import MessageFault, Op, Run
from fencepost.model.signals import Signals


class _Lane:
    """The state of one ring and sub-core."""

    __slots__ = ("credits", "freed", "frees", "period", "pops", "pushed", "pushes", "slots", "taken")

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.period = slots if slots <= 2 else slots // 2  # how many credits travel together
        self.pushed: list[Stamp] = []
        self.freed: list[Stamp] = []
        self.credits: list[Stamp] = []
        self.taken = 0
        self.pushes: list[Op] = []
        self.pops: list[Op] = []
        self.frees: list[Op] = []


class Messages:
    """All rings of one run; adds message faults and contested ends to its outcome."""

    def __init__(self, result: Run, signals: Signals) -> None:
        self._result = result
        self._signals = signals
        self._single = result.credits == "per_slot"
        self._frees_at_pop = result.compiled.target.frees_at == "pop"
        self._lanes = {
            (number, lane): _Lane(ring.slots)
            for number, ring in enumerate(result.resolver.rings)
            for lane in range(ring.lanes)
        }

    def obstacle(self, op: Op) -> tuple[Literal["pop", "push"], tuple[int, ...]] | None:
        """What a push, pop or free waits for."""
        stmt = op.effect.stmt
        for key in op.effect.rings:
            lane = self._lanes[key]
            if isinstance(stmt, ir.Pop):
                if len(lane.pushed) <= len(lane.pops):
                    return "pop", (key[0],)
            elif isinstance(stmt, ir.Push):
                n = len(lane.pushes)
                if self._single:
                    if n >= lane.slots and len(lane.freed) <= n - lane.slots:
                        return "push", (key[0],)
                elif n >= lane.slots and n % lane.period == 0 and len(lane.credits) <= lane.taken:
                    return "push", (key[0],)
        return None

    def execute(self, op: Op, clock: Clock) -> None:
        """Push, pop or free; `clock` (with the place of `op` itself) learns what that tells."""
        stmt = op.effect.stmt
        after = list(clock)  # what is learnt only after every lane was looked at
        for key in op.effect.rings:
            if isinstance(stmt, ir.Push):
                self._push(op, key[0], self._lanes[key], clock, after)
            elif isinstance(stmt, ir.Pop):
                self._pop(op, key[0], self._lanes[key], clock, after)
            else:
                self._free(op, key[0], self._lanes[key], clock)
        clock[:] = after
        stamp = tuple(clock)
        frees = isinstance(stmt, ir.Pop if self._frees_at_pop else ir.Free)
        for key in op.effect.rings:
            lane = self._lanes[key]
            if isinstance(stmt, ir.Push):
                lane.pushed.append(stamp)
            if frees:
                lane.freed.append(stamp)
                if len(lane.freed) % lane.period == 0:
                    lane.credits.append(stamp)

    def _push(self, op: Op, number: int, lane: _Lane, clock: Clock, after: Clock) -> None:
        op.message = n = len(lane.pushes)
        self._in_turn("push", lane.pushes, op, clock)
        lane.pushes.append(op)
        if n < lane.slots:
            return
        if self._single:
            join(after, lane.freed[n - lane.slots])
        elif n % lane.period == 0:
            join(after, lane.credits[lane.taken])
            lane.taken += 1
        releases = lane.pops if self._frees_at_pop else lane.frees
        release = releases[n - lane.slots] if len(releases) > n - lane.slots else None
        known = any(f.kind == "overrun" and f.ring == number for f in self._result.message_faults)
        if not known and (release is None or after[release.pipe] < release.seq):
            self._result.message_faults.append(MessageFault("overrun", number, op, release))

    def _pop(self, op: Op, number: int, lane: _Lane, clock: Clock, after: Clock) -> None:
        op.message = n = len(lane.pops)
        self._in_turn("pop", lane.pops, op, clock)
        lane.pops.append(op)
        join(after, lane.pushed[n])
        pushed = lane.pushes[n]
        if pushed.task is not None and op.task is not None and pushed.task != op.task:
            self._result.message_faults.append(MessageFault("round", number, op, pushed))

    def _free(self, op: Op, number: int, lane: _Lane, clock: Clock) -> None:
        op.message = n = len(lane.frees)
        if not self._frees_at_pop:  # where a pop frees the slot, a tfree does nothing
            self._in_turn("free", lane.frees, op, clock)
            pop = lane.pops[n] if n < len(lane.pops) else None
            if pop is None or clock[pop.pipe] < pop.seq:
                self._result.message_faults.append(MessageFault("free-unpopped", number, op, pop))
        lane.frees.append(op)

    def _in_turn(self, what: str, before: list[Op], op: Op, clock: Clock) -> None:
        if before and clock[before[-1].pipe] < before[-1].seq:
            self._signals.contest(what, None, before[-1], op)

    def finish(self, *, hung: bool) -> None:
        """Note in the outcome what was pushed and popped, and what is left of a run that did not hang."""
        result = self._result
        for (number, lane_number), lane in self._lanes.items():
            if lane_number == 0:
                result.pushes.append(lane.pushes)
                result.pops.append(lane.pops)
            if hung:
                continue
            left = len(lane.pushes) - len(lane.pops)
            if left > 0:
                op = lane.pushes[len(lane.pops)]
                result.message_faults.append(MessageFault("left", number, op, count=left))
            unfreed = len(lane.pops) - len(lane.frees)
            if unfreed > 0 and not self._frees_at_pop:
                op = lane.pops[len(lane.frees)]
                result.message_faults.append(MessageFault("unfreed", number, op, count=unfreed))
