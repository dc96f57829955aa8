"""What does a skewed loop look like: which copies of the halves, with which names, in which order?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from fencepost import ir
from fencepost.defuse import Flows
from fencepost.passes.skew.halves import Halves
from fencepost.rewrite import copy, offset


@dataclass(frozen=True, slots=True)
class Schedule:
    """The iterations of a skewed loop: `trip` values from `start` in steps of `step`, `depth` iterations ahead."""

    start: int
    step: int
    trip: int
    depth: int

    @property
    def prologue(self) -> tuple[int, ...]:
        """Loop values of the produce halves before the steady loop."""
        return tuple(self.start + i * self.step for i in range(self.depth))

    @property
    def steady(self) -> range:
        """Values of the steady loop's variable."""
        ahead = self.depth * self.step
        return range(self.start + ahead, self.start + self.trip * self.step, ahead)

    @property
    def epilogue(self) -> tuple[int, ...]:
        """Loop values of the consume halves after the steady loop."""
        return tuple(self.start + i * self.step for i in range(self.trip - self.depth, self.trip))

    @property
    def produce_offsets(self) -> tuple[int, ...]:
        """What a steady iteration at v produces, relative to v."""
        return tuple(i * self.step for i in range(self.depth))

    @property
    def consume_offsets(self) -> tuple[int, ...]:
        """What a steady iteration at v consumes, relative to v."""
        return tuple((i - self.depth) * self.step for i in range(self.depth))


def trip_count(start: int, stop: int, step: int) -> int:
    """How often `range(start, stop, step)` runs; `step` is not zero."""
    return len(range(start, stop, step))


def depth_for(stage: int, trip: int, most: int | None = None) -> int:
    """The skew depth for `stage` >= 2 and `trip` >= 2: at most max(2, stage - 1), it divides the trip count, and the
    steady loop runs at least once.  `most` (at least 1) is a further limit."""
    wanted = max(2, stage - 1) if most is None else min(max(2, stage - 1), most)
    return next(d for d in range(min(wanted, trip // 2), 0, -1) if trip % d == 0)


class NewNames:
    """Hands out names that occur nowhere in the kernel: `x_1`, `x_2`, ... for copies of `x`."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._origin: dict[str, str] = {}
        self._last: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        """Return a new name for a copy of `name`; a copy of a copy counts on from the original."""
        origin = self._origin.get(name, name)
        number = self._last.get(origin, 0) + 1
        while f"{origin}_{number}" in self._taken:
            number += 1
        self._last[origin] = number
        new = f"{origin}_{number}"
        self._taken.add(new)
        self._origin[new] = origin
        return new


_IDENTIFIER = re.compile(r"\w+")


def emit(
    loop: ir.For, halves: Halves, schedule: Schedule, live: frozenset[str], flows: Flows, new: NewNames
) -> tuple[ir.Stmt, ...]:
    """Return prologue, steady loop and epilogue.

    Every copy of a half has its own names for the values of its iteration.  Loop-carried names, and names that are
    read after the loop (`live`), keep theirs: they are threaded through the copies in order.
    """
    produce = [loop.body[i] for i in halves.produce]
    consume = [loop.body[i] for i in halves.consume]
    defined = {
        id(half): [n for n in sorted(flows.of_all(half).may) if _IDENTIFIER.fullmatch(n)] for half in (produce, consume)
    }
    kept = {name for name in defined[id(consume)] if name in halves.carried or name in live - halves.results}
    kept_by_producer = {name for name in defined[id(produce)] if name in halves.results}
    used = kept | kept_by_producer

    def copies(half: list[ir.Stmt], value: ir.Expr) -> list[ir.Stmt]:
        keeps = kept if half is consume else kept_by_producer
        renamed: dict[str, str] = {}
        for name in defined[id(half)]:
            if name in keeps:
                continue
            if name in used:
                renamed[name] = new.fresh(name)
            used.add(name)
        return [copy(stmt, {loop.var: value}, renamed) for stmt in half]

    out: list[ir.Stmt] = []
    for value in schedule.prologue:
        out += copies(produce, ir.Int(value))
    body: list[ir.Stmt] = []
    for distance in schedule.produce_offsets:
        body += copies(produce, offset(loop.var, distance, loop.span))
    for distance in schedule.consume_offsets:
        body += copies(consume, offset(loop.var, distance, loop.span))
    steady = schedule.steady
    out.append(
        ir.For(loop.var, ir.Int(steady.start), ir.Int(steady.stop), ir.Int(steady.step), tuple(body), span=loop.span)
    )
    for value in schedule.epilogue:
        out += copies(consume, ir.Int(value))
    return tuple(out)
