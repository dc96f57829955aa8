"""Interleavings: can a run end differently when unordered pipes compete for the same signals?

Needed only where the premise of the canonical run fails: two unordered pipes await one channel.  Then who takes which
signal depends on timing, and a deadlock may exist that the canonical run does not show.  The state of a run is how far
every pipe has come, since the number of pending signals follows from it; only the choice among competing waits
branches, everything else commutes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

from fencepost import ir
from fencepost.model.executor import Op, Run

_BUDGET = 20_000
_NEVER = 1 << 60

Tokens = dict[Hashable, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`kind`: "deadlock" (some schedule hangs, `stuck` holds the waiting operations), "same" (no schedule hangs), or
    "unknown" (more than the budget of states)."""

    kind: Literal["deadlock", "same", "unknown"]
    stuck: tuple[Op, ...] = ()


@dataclass(slots=True)
class _Move:
    """An operation as a transition: pipes that must have come so far, tokens taken, given and only looked at."""

    op: Op
    needs: list[tuple[int, int]]
    takes: list[Hashable] = field(default_factory=list)
    gives: list[Hashable] = field(default_factory=list)
    looks: list[tuple[Hashable, int]] = field(default_factory=list)
    writes: list[tuple[Hashable, int]] = field(default_factory=list)

    def enabled(self, state: dict[int, int], tokens: Tokens) -> bool:
        return (
            all(state[p] >= n for p, n in self.needs)
            and all(tokens[t] > 0 for t in self.takes)
            and all(tokens[t] == v for t, v in self.looks)
        )

    def apply(self, state: dict[int, int], tokens: Tokens) -> None:
        state[self.op.pipe] += 1
        for t in self.takes:
            tokens[t] -= 1
        for t in self.gives:
            tokens[t] += 1
        for t, v in self.writes:
            tokens[t] = v


def explore(run: Run, budget: int = _BUDGET) -> Outcome:
    """Search all schedules of a run that completed, for one that hangs (credits of rings are taken per slot)."""
    contested = {c.channel for c in run.contested if c.channel is not None and c.what == "wait"}
    queues = _queues(run)
    pipes = sorted(queues)
    tokens: Tokens = defaultdict(int)
    for number, ring in enumerate(run.resolver.rings):
        for lane in range(ring.lanes):
            tokens["credit", number, lane] = ring.slots
    stack: list[tuple[dict[int, int], Tokens]] = [(dict.fromkeys(pipes, 0), tokens)]
    seen: set[tuple[int, ...]] = set()
    while stack:
        state, tokens = stack.pop()
        _settle(queues, state, tokens, contested)
        key = tuple(state[p] for p in pipes)
        if key in seen:
            continue
        seen.add(key)
        if len(seen) > budget:
            return Outcome("unknown")
        heads = [queues[p][state[p]] for p in pipes if state[p] < len(queues[p])]
        moves = [m for m in heads if m.enabled(state, tokens)]
        if heads and not moves:
            return Outcome("deadlock", tuple(m.op for m in heads))
        for move in moves:
            after, left = dict(state), defaultdict(int, tokens)
            move.apply(after, left)
            stack.append((after, left))
    return Outcome("same")


def _settle(queues: dict[int, list[_Move]], state: dict[int, int], tokens: Tokens, contested: set[int]) -> None:
    """Execute whatever takes no contested signal, until nothing moves: it commutes with everything else."""
    moved = True
    while moved:
        moved = False
        for p, queue in queues.items():
            while state[p] < len(queue):
                move = queue[state[p]]
                if any(c in contested for c in move.op.effect.waits) or not move.enabled(state, tokens):
                    break
                move.apply(state, tokens)
                moved = True


def _queues(run: Run) -> dict[int, list[_Move]]:
    """The operations of every pipe as transitions."""
    queues: dict[int, list[_Move]] = defaultdict(list)
    place: dict[int, int] = {}  # id(op) -> position of its pipe once it is done
    meetings: list[list[_Move]] = []
    for ops in run.issued.values():
        scalar: list[tuple[int, int]] = []
        met = 0
        reached: dict[int, int] = {}
        for op in ops:
            move = _move(run, op)
            move.needs += scalar
            move.needs += [(earlier.pipe, place[id(earlier)]) for earlier in op.locks]
            if op.effect.drains:
                move.needs += list(reached.items())
            if op.effect.meets:
                if met == len(meetings):
                    meetings.append([])
                meetings[met].append(move)
                met += 1
            queues[op.pipe].append(move)
            reached[op.pipe] = place[id(op)] = len(queues[op.pipe])
            if op.effect.pipe[1] == "S":
                scalar = [(op.pipe, reached[op.pipe])]
    for meeting in meetings:
        needs = [n for m in meeting for n in (*m.needs, (m.op.pipe, place[id(m.op)] - 1))]
        for move in meeting:
            move.needs = needs if len(meeting) == len(run.issued) else [(move.op.pipe, _NEVER)]
    return dict(queues)


def _move(run: Run, op: Op) -> _Move:
    effect = op.effect
    move = _Move(op, [], list(effect.waits), list(effect.sets))
    for number, lane in effect.rings:
        data, credit = ("data", number, lane), ("credit", number, lane)
        early = run.compiled.target.frees_at == "pop"
        if isinstance(op.stmt, ir.Push):
            move.takes.append(credit)
            move.gives.append(data)
        elif isinstance(op.stmt, ir.Pop):
            move.takes.append(data)
            move.gives += [credit] if early else []
        elif not early:
            move.gives.append(credit)
    if effect.phase is not None:
        role, final = effect.phase
        for cell in effect.phased:
            move.looks.append((("flag", cell), 0 if role == "produce" else 1))
            if final:
                move.writes.append((("flag", cell), 1 if role == "produce" else 0))
    return move
