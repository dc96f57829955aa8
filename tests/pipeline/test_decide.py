"""The verdict for all trip counts against running both programs."""

from __future__ import annotations

from collections import Counter

import pytest
from pipeline_rows import ORACLE, Row, loop_of, rows
from random_loops import random_loop

from fencepost.findings import Verdict
from fencepost.model.functions import FunctionTable
from fencepost.pipeline.accept import resolve
from fencepost.pipeline.decide import decide
from fencepost.pipeline.explore import Exploration, outcome
from fencepost.pipeline.horizon import Horizon, horizon
from fencepost.pipeline.model import Access, Annotations, At, Buffer, Loop, Statement
from fencepost.pipeline.order import lost_order
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.sequence import Compared, Sequence
from fencepost.pipeline.setting import Setting

ROWS = [r for r in rows() if r["expected"]["outcome"] == "accepted"] if ORACLE.exists() else []

OVERTAKEN = {"pl-s217"}
"""Rows in which a cell is written while an asynchronous copy into it is under way.  For the oracle copies are over at
once as far as values go, and only reads can come too early."""


@pytest.mark.skipif(not ROWS, reason="the oracle file is not here")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_oracle_rows(row: Row) -> None:
    plan = resolve(loop_of(row)).plan
    assert plan is not None
    decision = decide(plan)
    expected = row["expected"]
    wrong = [not e or h for e, h in zip(expected["equal"], expected.get("async_hazard", [False] * 7), strict=True)]
    if row["id"] in OVERTAKEN:
        assert not any(wrong) and decision.verdict is Verdict.REFUTED
        assert not any(f.outcome.differs or f.outcome.after.hazard for f in decision.failures)
        return
    assert decision.verdict is (Verdict.REFUTED if any(wrong) else Verdict.PROVED)
    if any(wrong):
        assert decision.failures[0].outcome.trips == wrong.index(True)


TABLES: list[tuple[int | None, int]] = [(None, 1), (None, 0), *((seed, 1) for seed in range(50, 56)), (50, 5)]


def _wrong(plan: Plan, trips: int, table: tuple[int | None, int]) -> bool:
    seed, high = table
    return outcome(plan, trips, Setting({}, FunctionTable(default=high, seed=seed, low=0, high=high))).wrong


def _plans(seeds: range, opaque: bool) -> list[tuple[int, Plan]]:
    readings = [(seed, resolve(random_loop(seed, opaque))) for seed in seeds]
    return [(seed, reading.plan) for seed, reading in readings if reading.plan is not None]


def test_random_loops() -> None:
    counts: Counter[Verdict] = Counter()
    for seed, plan in _plans(range(300), opaque=False):
        decision = decide(plan)
        counts[decision.verdict] += 1
        for trips in range(24 if seed % 10 == 0 else 9):
            if _wrong(plan, trips, TABLES[0]):
                assert decision.verdict is not Verdict.PROVED, f"seed {seed}, {trips} trips"
                if decision.verdict is Verdict.REFUTED:
                    assert decision.failures[0].outcome.trips == trips, f"seed {seed}"
                break
    assert counts[Verdict.PROVED] > 60 and counts[Verdict.REFUTED] > 60
    assert counts[Verdict.UNKNOWN] <= counts.total() // 100


def test_random_loops_with_unknown_conditions_and_slots() -> None:
    counts: Counter[Verdict] = Counter()
    for seed, plan in _plans(range(120), opaque=True):
        decision = decide(plan)
        counts[decision.verdict] += 1
        if decision.verdict is Verdict.PROVED:
            for trips in range(9):
                assert not any(_wrong(plan, trips, table) for table in TABLES), f"seed {seed}, {trips} trips"
    assert counts[Verdict.UNKNOWN] <= counts.total() // 10


def test_dependence_test_is_sound() -> None:
    """Where all orders are kept, both programs agree from the last stage on."""
    kept = 0
    for seed, plan in _plans(range(3000, 3120), opaque=False):
        if plan.rewritten and lost_order(plan) is None:
            kept += 1
            for trips in range(max(plan.last_stage, 0), 9):
                assert not outcome(plan, trips, Setting()).differs, f"seed {seed}, {trips} trips"
    assert kept > 20


def test_exploration_equals_single_runs() -> None:
    """Sharing the steady steps between trip counts changes nothing."""
    for _, plan in _plans(range(5000, 5020), opaque=False):
        ahead = horizon(plan)
        if plan.rewritten and isinstance(ahead, Horizon):
            for result in Exploration(plan, ahead.tail, Setting()).run(min(ahead.trips, 40)):
                alone = outcome(plan, result.trips, Setting())
                assert set(result.differs) == set(alone.differs) and result.hazard == alone.hazard


def _plan(*statements: Statement, stage: tuple[int, ...], order: tuple[int, ...], buffers: tuple[Buffer, ...]) -> Plan:
    plan = resolve(Loop(statements, buffers, Annotations(stage, order))).plan
    assert plan is not None
    return plan


def test_late_difference() -> None:
    """A slot that comes round only after 40 iterations: the smallest failing trip count is far out."""
    here, late = At(Sequence.linear(1, 0)), At(Sequence.linear(1, -40))
    plan = _plan(
        Statement("load", (Access("A", here),), (Access("W", here),)),
        Statement("again", (Access("W", late),), (Access("W", late),)),
        Statement("store", (Access("W", late),), (Access("C", here),)),
        stage=(0, 1, 1),
        order=(0, 1, 2),
        buffers=tuple(Buffer(name, False, None) for name in "ACW"),
    )
    assert decide(plan).verdict is Verdict.PROVED


def test_values_are_read_within_the_width_of_the_horizon() -> None:
    """Also where slots advance by less than one in an iteration."""
    for scale, divisor, offset in ((1, 1, 5), (1, 4, 6), (1, 8, 20), (3, 2, 9), (-2, 3, 7), (5, 3, -4)):
        here = Sequence.linear(scale, 0).floor_divided(divisor)
        there = here.plus(Sequence.constant(offset))
        plan = _plan(
            Statement("fill", (Access("A", At(Sequence.linear(1, 0))),), (Access("s", At(there)),)),
            Statement("store", (Access("s", At(here)),), (Access("C", At(Sequence.linear(1, 0))),)),
            stage=(0, 1),
            order=(0, 1),
            buffers=(Buffer("A", False, None), Buffer("C", False, None), Buffer("s", True, 1000)),
        )
        ahead = horizon(plan)
        assert isinstance(ahead, Horizon)
        assert all(abs(i - k) <= ahead.width for i in range(300) for k in range(300) if there(i) == here(k))


def test_slots_that_advance_slowly() -> None:
    """What is written in iteration 7 is read in iteration 160, in another version."""
    slow = Sequence.linear(1, 0).floor_divided(8)
    first, last = (Compared(Sequence.linear(1, -k).modulo(8), "==") for k in (0, 7))
    plan = _plan(
        Statement("early", (), (Access("s", At(Sequence.constant(0))),), Compared(Sequence.linear(1, 0), "==")),
        Statement("load", (Access("A"),), (Access("s", At(slow.plus(Sequence.constant(20)))),), last),
        Statement("store", (Access("s", At(slow)),), (Access("C", At(Sequence.linear(1, 0))),), first),
        stage=(0, 0, 1),
        order=(0, 1, 2),
        buffers=(Buffer("A", False, 1), Buffer("C", False, None), Buffer("s", True, 1000)),
    )
    decision = decide(plan)
    assert decision.verdict is Verdict.REFUTED
    trips = decision.failures[0].outcome.trips
    assert outcome(plan, trips, Setting()).wrong and not outcome(plan, trips - 1, Setting()).wrong


def test_very_deep_loops_are_decided_by_their_dependences_alone() -> None:
    here = At(Sequence.linear(1, 0))
    wide = (Buffer("A", False, None), Buffer("C", False, None), Buffer("s", True))
    load = Statement("load", (Access("A", here),), (Access("s"),))
    store = Statement("store", (Access("s"),), (Access("C", here),))
    deep = _plan(load, store, stage=(0, 1_000_000), order=(0, 1), buffers=wide)
    assert decide(deep).verdict is Verdict.PROVED
    back = Statement("store", (Access("s"),), (Access("A", At(Sequence.linear(1, 1))),))
    wrong = _plan(load, back, stage=(0, 1_000_000), order=(0, 1), buffers=wide)
    assert decide(wrong).verdict is Verdict.UNKNOWN


def test_sequences() -> None:
    """Slot arithmetic agrees with Python's."""
    for scale in (-3, -1, 0, 1, 2, 5):
        for offset in (-4, 0, 3):
            line = Sequence.linear(scale, offset)
            for divisor in (-3, -2, 1, 2, 4):
                quotient, rest = line.floor_divided(divisor), line.modulo(divisor)
                mixed = quotient.plus(rest.times(3))
                for i in range(30):
                    value = scale * i + offset
                    assert quotient(i) == value // divisor and rest(i) == value % divisor
                    assert mixed(i) == value // divisor + 3 * (value % divisor)
                assert all(
                    (mixed(i) > 0) == (mixed(i + 60 * mixed.period) > 0)
                    for i in range(mixed.settled(), mixed.settled() + 60)
                )
