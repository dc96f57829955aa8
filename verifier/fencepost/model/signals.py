"""Signals of one run: which set meets which wait, how many can be pending, and who contests a channel?

On a *weak* channel it is not determined which set meets which wait: a wait then only knows that at least as many sets
happened as waits are ordered before it, less those that other pipes may have contributed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from fencepost.model.clocks import Clock, Stamp
from fencepost.model.outcome import Contested, Op, Overflow, Run


class _Counter:
    """The state of one channel.

    `seqs` maps a waiting pipe to the places of its waits.  `by_pipe` (weak channels) maps a setting pipe to the clocks
    of its sets, `totals` to how many it issues in the whole run.
    """

    __slots__ = ("by_pipe", "capacity", "peak", "seqs", "sets", "tokens", "totals", "waits")

    def __init__(self, capacity: int) -> None:
        self.tokens: deque[Stamp] = deque()
        self.sets: list[Op] = []
        self.waits: list[Op] = []
        self.seqs: dict[int, list[int]] = {}
        self.capacity = capacity
        self.peak = 0
        self.by_pipe: dict[int, list[Stamp]] = {}
        self.totals: dict[int, int] = {}


class Signals:
    """All channels of one run; adds contested pairs and overflows to its outcome."""

    def __init__(self, result: Run, weak: frozenset[int]) -> None:
        self._result = result
        self._weak = weak
        self._seen: set[tuple[object, ...]] = set()
        self.counters = [_Counter(channel.capacity) for channel in result.channels]

    def missing(self, channels: tuple[int, ...]) -> tuple[int, ...]:
        """The channels that have no signal to take."""
        return tuple(c for c in channels if not self.counters[c].tokens)

    def take(self, op: Op, clock: Clock) -> list[Stamp]:
        """Take one signal of every channel that `op` awaits; what it then knows in addition.

        `clock` is what the pipe knew before, with the place of `op` itself.
        """
        told: list[Stamp] = []
        place = clock[op.pipe]
        for channel in op.effect.waits:
            counter = self.counters[channel]
            if counter.waits:
                last = counter.waits[-1]
                if clock[last.pipe] < last.seq:
                    self.contest("wait", channel, last, op)
            counter.waits.append(op)
            seqs = counter.seqs.get(op.pipe)
            if seqs is None:
                seqs = counter.seqs[op.pipe] = []
            seqs.append(place)
            token = counter.tokens.popleft()
            if channel in self._weak:
                told += self._certain(channel, op, clock)
            else:
                told.append(token)
        return told

    def _certain(self, channel: int, op: Op, clock: Clock) -> list[Stamp]:
        """Sets of a weak channel that must have happened before the wait `op` ends, whoever takes which signal."""
        counter = self.counters[channel]
        if not counter.totals:
            for ops in self._result.issued.values():
                for setter in ops:
                    if channel in setter.effect.sets:
                        counter.totals[setter.pipe] = counter.totals.get(setter.pipe, 0) + 1
        known = sum(bisect_right(seqs, clock[pipe]) for pipe, seqs in counter.seqs.items())
        total = sum(counter.totals.values())
        found = []
        for pipe, clocks in counter.by_pipe.items():
            least = known - (total - counter.totals[pipe])
            if least > 0:
                found.append(clocks[least - 1])
        return found

    def give(self, op: Op, clock: Clock) -> None:
        """Add one signal to every channel that `op` sets."""
        token = tuple(clock)
        for channel in op.effect.sets:
            counter = self.counters[channel]
            if counter.sets:
                last = counter.sets[-1]
                if clock[last.pipe] < last.seq:
                    self.contest("set", channel, last, op)
            counter.sets.append(op)
            counter.tokens.append(token)
            if channel in self._weak:
                counter.by_pipe.setdefault(op.pipe, []).append(token)
            pending = len(counter.sets)
            if pending > counter.peak:
                for pipe, seqs in counter.seqs.items():  # waits that are surely over
                    pending -= len(seqs) if clock[pipe] >= seqs[-1] else bisect_right(seqs, clock[pipe])
                if pending > counter.peak:
                    if counter.peak <= counter.capacity < pending:
                        self._result.overflows.append(Overflow(channel, op, pending))
                    counter.peak = pending

    def contest(self, what: str, channel: int | None, first: Op, second: Op) -> None:
        """Report, once per pair of sites, that nothing orders two operations that must come one after the other."""
        key = (what, channel, first.pipe, first.effect.site, second.pipe, second.effect.site)
        if key not in self._seen:
            self._seen.add(key)
            self._result.contested.append(Contested(what, channel, first, second))
