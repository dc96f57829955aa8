"""Every row of the oracle: what the real compiler accepted, how it scheduled it, and what the result computed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pipeline_rows import ORACLE, Row, loop_of, rows

from fencepost.pipeline.accept import resolve
from fencepost.pipeline.emission import Commit, Run, Wait, emit, steps
from fencepost.pipeline.schedule import Plan, body_extent
from fencepost.pipeline.setting import Setting
from fencepost.pipeline.values import History, Terms, differing, scheduled, serial

pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason="the oracle file is not here")

ROWS = rows() if ORACLE.exists() else []
NAMES = {"911": "no-schedulable-statement", "912": "unsafe-replay-mask"}


def _plan(row: Row) -> Plan:
    reading = resolve(loop_of(row))
    assert reading.plan is not None
    return reading.plan


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_acceptance(row: Row) -> None:
    reading = resolve(loop_of(row))
    expected = row["expected"]
    codes = {NAMES.get(c.code, c.code) for c in reading.errors}
    assert (reading.plan is None) == (expected["outcome"] == "rejected")
    assert codes == set(expected.get("all_codes", []))
    if reading.plan is not None:
        assert ("910" if any(c.code == "910" for c in reading.warnings) else None) == expected["warning"]


ACCEPTED = [row for row in ROWS if row["expected"]["outcome"] == "accepted"]


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row["id"])
def test_schedule(row: Row) -> None:
    plan = _plan(row)
    expected = row["expected"]
    ran = [
        f"{slot.number}.{iteration}"
        for _, _, slot, iteration in plan.instances(4)
        if plan.statement(slot).bind is None and plan.statement(slot).guard.holds(iteration, 4, Setting())
    ]
    assert " ".join(ran) == expected["schedule_n4"]
    assert plan.versions == expected["versions"]
    assert plan.rewritten == expected["rewritten"]
    assert body_extent(plan, 6) == expected["body_extent_n6"]
    if plan.rewritten:
        assert plan.last_stage == expected["max_stage"]


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row["id"])
def test_values(row: Row) -> None:
    plan = _plan(row)
    expected = row["expected"]
    equal, hazards, executed = [], [], []
    for trips in range(7):
        terms = Terms()
        before, after = serial(plan, trips, terms, Setting()), scheduled(plan, trips, terms, Setting())
        equal.append(not differing(before, after, terms))
        hazards.append(after.hazard)
        if _executed(plan, before) != _executed(plan, after):
            executed.append(trips)
    assert equal == expected["equal"]
    assert executed == expected.get("executed_differs", [])
    assert hazards == expected.get("async_hazard", [False] * 7)


def _executed(plan: Plan, history: History) -> Counter[Any]:
    numbers = (e.instance for e in history.executions)
    return Counter(i for i in numbers if plan.loop.statements[i[0]].bind is None)


@pytest.mark.parametrize(
    "row", [row for row in ACCEPTED if "async_trace_n6" in row["expected"]], ids=lambda row: row["id"]
)
def test_commits_and_waits(row: Row) -> None:
    plan = _plan(row)
    trace: list[str] = []

    def run(item: Run, t: int) -> None:
        text = plan.statement(item.slot)
        iteration = t - item.slot.stage
        if text.bind is None and text.guard.holds(iteration, 6, Setting()):
            trace.append(f"{item.slot.number}.{iteration}")

    for _, t, items in steps(emit(plan, 6)):
        for item in items:
            match item:
                case Run():
                    run(item, t)
                case Commit(runs):
                    for each in runs:
                        run(each, t)
                    trace.append("c")
                case Wait(pending):
                    trace.append(f"w{pending}")
    assert " ".join(trace) == row["expected"]["async_trace_n6"]
