"""Do the closed forms for message rings agree with an exact model, and the model with recorded outcomes?"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fencepost.model.rings import Credits, Peer, Ring, first_hang, hangs, largest_safe_depth, one_way_hangs
from fencepost.passes.skew.loops import depth_for

ORACLE = Path(__file__).parents[2].parent / "shared" / "cases" / "fifo_oracle.json"

Op = tuple[str, str]  # ("push" | "pop" | "free", ring)


# ------------------------------------------------------------------------------------------------ exact model


def skewed(out: str, back: str, trips: int, depth: int | None) -> list[Op]:
    """Push first on ring `out`, pop and free from `back`."""
    take: list[Op] = [("pop", back), ("free", back)]
    if depth is None:
        return [("push", out), *take] * trips
    group: list[Op] = [("push", out)] * depth
    return [*group, *(group + take * depth) * (trips // depth - 1), *take * depth]


def server(back: str, out: str, trips: int, free: str) -> list[Op]:
    middle: list[Op] = [("free", back), ("push", out)] if free == "before" else [("push", out), ("free", back)]
    return [("pop", back), *middle] * trips


@dataclass
class Model:
    """Two sequential agents and two rings, run until nothing moves.  Clocks give happens-before."""

    programs: dict[str, list[Op]]
    slots: int
    credits: Credits
    frees_at_pop: bool
    at: dict[str, int] = field(default_factory=lambda: {"aic": 0, "aiv": 0})
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    clocks: dict[str, dict[str, int]] = field(default_factory=lambda: {"aic": {}, "aiv": {}})
    pushed: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)
    released: dict[tuple[str, int], tuple[str, int, dict[str, int]]] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=lambda: {"c2v": 0, "v2c": 0})
    overrun: set[str] = field(default_factory=set)

    def count(self, what: str, ring: str) -> int:
        return self.counts.get((what, ring), 0)

    def step(self, agent: str) -> bool:
        program, at = self.programs[agent], self.at[agent]
        if at == len(program):
            return False
        what, ring = program[at]
        n = self.count(what, ring)
        seen: list[dict[str, int]] = []
        if what == "push":
            ready, seen = self.admits(ring, n)
            if not ready:
                return False
        elif what == "pop" and n >= self.count("push", ring):
            return False
        elif what == "pop":
            seen = [self.pushed[ring, n]]
        clock = self.clocks[agent]
        for other in seen:
            for who, when in other.items():
                clock[who] = max(clock.get(who, 0), when)
        if what == "push" and n >= self.slots:
            release = self.released.get((ring, n - self.slots))
            if release is None or clock.get(release[0], 0) < release[1]:
                self.overrun.add(ring)
        clock[agent] = at + 1
        self.at[agent] = at + 1
        self.counts[what, ring] = n + 1
        if what == "push":
            self.pushed[ring, n] = dict(clock)
        if what == ("pop" if self.frees_at_pop else "free"):
            self.released[ring, n] = (agent, at + 1, dict(clock))
        return True

    def admits(self, ring: str, n: int) -> tuple[bool, list[dict[str, int]]]:
        """Whether push n may go, and the releases that it waited for."""
        released = self.count("pop" if self.frees_at_pop else "free", ring)
        if self.credits == "per_slot":
            if n < self.slots:
                return True, []
            return released > n - self.slots, [r[2] for r in [self.released.get((ring, n - self.slots))] if r]
        batch = self.slots if self.slots <= 2 else self.slots // 2
        if n < self.slots or n % batch:
            return True, []
        credit = self.taken[ring]
        if released // batch <= credit:
            return False, []
        self.taken[ring] += 1
        return True, [self.released[ring, (credit + 1) * batch - 1][2]]

    def run(self) -> bool:
        while self.step("aic") or self.step("aiv"):
            pass
        return all(self.at[a] == len(p) for a, p in self.programs.items())


def depth_of(stage: int, trips: int) -> int | None:
    return depth_for(stage, trips) if trips >= 2 and stage >= 2 else None


def model(row: dict[str, Any]) -> Model:
    trips, other = row["trip"], row.get("aiv_trip", row["trip"])
    stage = row["stage"]
    match row["arrangement"]:
        case "producer_consumer":
            aic = skewed("c2v", "v2c", trips, depth_of(stage, trips))
            aiv = server("c2v", "v2c", other, row["tfree"])
        case "both_push_first":
            aic = skewed("c2v", "v2c", trips, depth_of(stage, trips))
            aiv = skewed("v2c", "c2v", other, depth_of(stage, other))
        case _:
            aic = [("push", "c2v")] * trips
            aiv = [("pop", "c2v"), ("free", "c2v")] * other
    return Model({"aic": aic, "aiv": aiv}, row["slots"], row["credits"], row["target"] == "a3")


@cache
def rows() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(ORACLE.read_text())["rows"]) if ORACLE.exists() else ()


@pytest.mark.skipif(not ORACLE.exists(), reason=f"no oracle at {ORACLE}")
def test_the_model_agrees_with_every_recorded_row() -> None:
    for row in rows():
        m = model(row)
        finished = m.run()
        assert finished != row["deadlock"], row
        left = {r: m.count("push", r) - m.count("pop", r) for r in ("c2v", "v2c")}
        assert left == row["leftover_messages"], row
        if row["arrangement"] != "one_way":
            assert depth_of(row["stage"], row["trip"]) == row["depth_aic"]
        blocked = {}
        for agent, program in m.programs.items():
            if m.at[agent] < len(program):
                what, ring = program[m.at[agent]]
                blocked[agent] = f"{what} {m.count(what, ring)}"
        assert blocked == row.get("blocked", {}), row
        if "leftover_credits" in row:
            batch = Ring(row["slots"], "batched").batch
            sent = {r: m.count("pop" if m.frees_at_pop else "free", r) // batch for r in ("c2v", "v2c")}
            assert {r: sent[r] - m.taken[r] for r in sent} == row["leftover_credits"], row
        assert sorted(m.overrun) == sorted(row.get("overrun_possible", [])), row


@pytest.mark.skipif(not ORACLE.exists(), reason=f"no oracle at {ORACLE}")
def test_the_closed_form_agrees_with_every_recorded_row() -> None:
    seen = 0
    for row in rows():
        trips, other = row["trip"], row.get("aiv_trip", row["trip"])
        depth = row.get("depth_aic")
        seen += 1
        if row["arrangement"] == "one_way":
            assert one_way_hangs(Ring(row["slots"], row["credits"]), trips, other) == row["deadlock"], row
            continue
        if trips != other or depth is None:  # one core waits for messages that never come, or nothing runs ahead
            assert row["deadlock"] == (trips != other), row
            continue
        peer: Peer = "sequential" if row["arrangement"] == "producer_consumer" else "skewed"
        late = row["target"] == "a5" and row.get("tfree") == "after"
        assert hangs(Ring(row["slots"], row["credits"]), depth, trips, peer, late) == row["deadlock"], row
    assert seen == 300


# ------------------------------------------------------------------------------------------------ closed forms


@pytest.mark.parametrize("credits", ["per_slot", "batched"])
@pytest.mark.parametrize("slots", range(1, 13))
def test_the_closed_form_agrees_with_the_model(slots: int, credits: Credits) -> None:
    ring = Ring(slots, credits)
    for depth in range(1, 14):
        for trips in range(2 * depth, max(5 * depth, 40) + 1, depth):
            for free in ("before", "after"):
                programs = {"aic": skewed("c2v", "v2c", trips, depth), "aiv": server("c2v", "v2c", trips, free)}
                for at_pop in (True, False):
                    late = free == "after" and not at_pop
                    stuck = not Model(programs, slots, credits, at_pop).run()
                    assert stuck == hangs(ring, depth, trips, "sequential", late), (depth, trips, free, at_pop)
            programs = {"aic": skewed("c2v", "v2c", trips, depth), "aiv": skewed("v2c", "c2v", trips, depth)}
            stuck = not Model(programs, slots, credits, True).run()
            assert stuck == hangs(ring, depth, trips, "skewed"), (depth, trips)


def test_thresholds_with_credits_one_by_one() -> None:
    for slots in range(1, 40):
        ring = Ring(slots, "per_slot")
        for depth in range(1, 60):
            for late in (False, True):
                first = first_hang(ring, depth, "sequential", late)
                assert (first is not None) == (depth > slots)
                assert first is None or first < 2 * depth  # at every trip count that the skew allows
            first = first_hang(ring, depth, "skewed")
            assert (first is not None) == (2 * depth > slots)
            assert first is None or first < 2 * depth


@pytest.mark.parametrize(
    ("slots", "depth", "peer", "first"),
    [
        (8, 7, "sequential", 20),  # hangs at 21 trips, not at 14
        (8, 3, "skewed", 8),  # hangs from 9 trips on, not at 6
        (2, 1, "skewed", 2),  # hangs from 3 trips on
        (2, 1, "sequential", None),
        (2, 2, "sequential", None),
        (2, 3, "sequential", 4),
        (5, 6, "sequential", None),  # one by one it hangs
        (5, 7, "sequential", 12),
        (7, 8, "sequential", None),  # one by one it hangs
        (4, 4, "sequential", None),
    ],
)
def test_batches(slots: int, depth: int, peer: Peer, first: int | None) -> None:
    assert first_hang(Ring(slots, "batched"), depth, peer) == first


def test_largest_safe_depth() -> None:
    assert largest_safe_depth(Ring(2, "per_slot"), "sequential", 10) == 2
    assert largest_safe_depth(Ring(2, "batched"), "sequential", 10) == 2
    assert largest_safe_depth(Ring(4, "per_slot"), "skewed", 10) == 2
    assert largest_safe_depth(Ring(2, "batched"), "skewed", 10) == 0
    assert largest_safe_depth(Ring(8, "batched"), "sequential", 10) == 6
    assert largest_safe_depth(Ring(8, "batched"), "sequential", 10, trips=14) == 7


def test_which_rings_leave_pushes_unguarded() -> None:
    assert [s for s in range(1, 14) if Ring(s, "batched").unguarded] == [5, 7, 9, 11, 13]
    assert not any(Ring(s, "per_slot").unguarded for s in range(1, 14))
