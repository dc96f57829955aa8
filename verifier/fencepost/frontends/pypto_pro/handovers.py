"""Which cross-core signals does the framework put around the stages of an automatic pipeline?

Each tile group that has `fwd_ids` or `bwd_ids` is written by a stage of one core and read by a stage of the other, and
stage calls take its slots in turn: task t uses slot t modulo the number of slots.  A read waits for the write of the
same task (`fwd_ids`); a write waits for the reads of the task that had the slot before it (`bwd_ids`), and the signals
that the first writes wait for are sent before the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fencepost import ir
from fencepost.frontends.pypto_pro.context import Core
from fencepost.frontends.pypto_pro.values import Unreadable

Way = Literal["R", "W", "RW"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """A tile group with signals of its own: the ids for `written` and for `read`, where they are declared."""

    slots: int
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    forward_node: ast.expr | None
    backward_node: ast.expr | None


@dataclass(frozen=True, slots=True)
class StageAccess:
    """A stage's access to a tile group on one pipe.  `place` counts the accesses of all stages in text order."""

    stage: int
    core: Core
    buffer: str
    way: Way
    pipe: ir.Pipe
    place: int


@dataclass(frozen=True, slots=True)
class Handover:
    """`source` sends, `target` waits.  `ahead` signals are sent before the loop, and waited for after it."""

    source: StageAccess
    target: StageAccess
    ids: tuple[int, ...]
    node: ast.expr
    forward: bool
    ahead: int
    beats: int  # how many beats after `source` its `target` runs


def plan(
    accesses: list[StageAccess], crossings: dict[str, Crossing], delays: list[int], node: ast.AST
) -> list[Handover]:
    """The handovers of a pipeline whose stage i runs `delays[i]` beats after its task starts.

    Raises:
        Unreadable: the framework refuses the pipeline.
    """
    found: list[Handover] = []
    dependencies: list[tuple[int, int, int]] = []
    for buffer in dict.fromkeys(a.buffer for a in accesses):
        crossing = crossings[buffer]
        own = [a for a in accesses if a.buffer == buffer]
        _check_users(buffer, own, node)
        for source, target, tasks in _edges(own, crossing.slots, delays):
            beats = tasks + delays[target.stage] - delays[source.stage]
            dependencies.append((source.place, target.place, beats))
            forward = target.way == "R"
            ids = crossing.forward if forward else crossing.backward
            place = crossing.forward_node if forward else crossing.backward_node
            if not ids or place is None:
                continue
            if not forward and (tasks < 0 or tasks % len(ids)):
                raise Unreadable(
                    f"the framework refuses this pipeline: {buffer} would be handed back out of turn", place
                )
            found.append(Handover(source, target, ids, place, forward, 0 if forward else tasks, beats))
    if _deadlocked(dependencies):
        raise Unreadable("the framework refuses this pipeline: its stages wait for each other in a circle", node)
    return found


def _check_users(buffer: str, accesses: list[StageAccess], node: ast.AST) -> None:
    if len({a.stage for a in accesses}) != 2 or len({a.core for a in accesses}) != 2:
        reason = (
            f"the framework refuses this pipeline: {buffer} must pass from one stage to one stage of the other core"
        )
        raise Unreadable(reason, node)


def _edges(
    accesses: list[StageAccess], slots: int, delays: list[int]
) -> Iterator[tuple[StageAccess, StageAccess, int]]:
    """What must come before what: source, target, and how many tasks the target is ahead of the source."""
    writes = [a for a in accesses if a.way == "W"]
    for target in accesses:
        latest: tuple[int, int, StageAccess, int] | None = None
        for write in writes:
            tasks = _back(write, target, slots, delays)
            beat = delays[write.stage] - tasks
            if latest is None or (beat, write.place) > latest[:2]:
                latest = (beat, write.place, write, tasks)
        if latest is None:
            continue
        _, _, write, tasks = latest
        if target.way == "R":
            yield write, target, tasks
            continue
        last: dict[ir.Pipe, StageAccess] = {}
        for reader in accesses:
            if reader.way == "R":
                known = last.get(reader.pipe)
                if known is None or (delays[reader.stage], reader.place) > (delays[known.stage], known.place):
                    last[reader.pipe] = reader
        for reader in last.values():
            yield reader, target, tasks


def _back(source: StageAccess, target: StageAccess, slots: int, delays: list[int]) -> int:
    """The fewest tasks by which an earlier `source` on the same slot lies behind `target`."""
    distance = delays[source.stage] - delays[target.stage]
    if source.place >= target.place:
        distance += 1
    return -(-distance // slots) * slots


def _deadlocked(dependencies: list[tuple[int, int, int]]) -> bool:
    """Whether some circle of dependencies never reaches back to an earlier beat."""
    nodes = {n for s, t, _ in dependencies for n in (s, t)}
    cost = dict.fromkeys(nodes, 0)
    for _ in range(len(nodes) + 1):
        changed = False
        for source, target, beats in dependencies:
            total = cost[source] + beats * (len(nodes) + 1) - 1
            if total < cost[target]:
                cost[target], changed = total, True
        if not changed:
            return False
    return True
