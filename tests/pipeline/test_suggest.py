"""Suggested annotations: right, near, and of the same depth."""

from __future__ import annotations

import pytest
from pipeline_rows import ORACLE, Row, loop_of, rows
from random_loops import random_loop

from fencepost.findings import Verdict
from fencepost.pipeline.accept import resolve
from fencepost.pipeline.explore import outcome
from fencepost.pipeline.model import Access, Annotations, At, Buffer, Loop, Statement
from fencepost.pipeline.sequence import Sequence
from fencepost.pipeline.setting import Setting
from fencepost.pipeline.suggest import suggest
from fencepost.pipeline.verify import verify

NAMED = [r for r in rows() if r["id"].startswith("pn")] if ORACLE.exists() else []


@pytest.mark.skipif(not NAMED, reason="the oracle file is not here")
@pytest.mark.parametrize("row", NAMED, ids=lambda row: row["id"])
def test_named_rows(row: Row) -> None:
    loop = loop_of(row)
    verdict = verify(loop).verdict
    found = suggest(loop)
    if verdict is Verdict.PROVED or row["id"] == "pn-s29":
        assert found is None
    else:
        assert found is not None and found.result.verdict is Verdict.PROVED
        if row["annotations"].get("stage"):
            assert max(found.stage) == max(max(row["annotations"]["stage"]), 0)


def test_random_loops() -> None:
    tried = found = 0
    for seed in range(900, 980):
        loop = random_loop(seed)
        if verify(loop).verdict is not Verdict.REFUTED:
            continue
        tried += 1
        suggestion = suggest(loop)
        if suggestion is None:
            continue
        found += 1
        plan = suggestion.result.plan
        assert plan is not None
        for trips in range(9):
            assert not outcome(plan, trips, Setting()).wrong, f"seed {seed}, {trips} trips"
    assert tried > 25 and found > tried * 0.8


HERE = At(Sequence.linear(1, 0))
BUFFERS = (*(Buffer(n, False, None) for n in "ABC"), Buffer("s", True), Buffer("t", True), Buffer("acc", True))


def _loop(*statements: Statement, notes: Annotations | None = None) -> Loop:
    return Loop(statements, BUFFERS, notes or Annotations())


LOADS = (
    Statement("load s", (Access("A", HERE),), (Access("s"),)),
    Statement("load t", (Access("B", HERE),), (Access("t"),)),
)
MULTIPLY = Statement("multiply", (Access("s"), Access("t"), Access("acc")), (Access("acc"),))
STORE = Statement("store", (Access("acc"),), (Access("C", HERE),))


def test_loop_without_annotation() -> None:
    found = suggest(_loop(*LOADS, MULTIPLY, STORE))
    assert found is not None
    assert found.stage == (0, 0, 1, 1) and found.order == (0, 1, 2, 3)
    assert found.text == "stage = (0, 0, 1, 1), order = (0, 1, 2, 3)"


def test_nothing_to_overlap() -> None:
    assert suggest(_loop(STORE)) is None


def test_one_wrong_entry() -> None:
    found = suggest(_loop(*LOADS, MULTIPLY, STORE, notes=Annotations((0, 1, 0, 1), (0, 1, 2, 3))))
    assert found is not None and found.changes == 1 and max(found.stage) == 1


def test_right_annotation() -> None:
    assert suggest(_loop(*LOADS, MULTIPLY, STORE, notes=Annotations((0, 0, 1, 1), (0, 1, 2, 3)))) is None


def test_a_bind_that_is_scheduled_settles_the_depth() -> None:
    """Its uses are out of its scope wherever the loop is taken apart: only one stage for all is right."""
    bind = Statement("bind", (Access("s"),), bind="b")
    use = Statement("use", (), (Access("C", HERE),), uses=("b",))
    found = suggest(_loop(LOADS[0], bind, use, notes=Annotations((0, 1, 1), (0, 1, 2))))
    assert found is not None and len(set(found.stage)) == 1


def test_very_deep_loops_get_no_suggestion() -> None:
    assert suggest(_loop(*LOADS, MULTIPLY, STORE, notes=Annotations((0, 1_000_000, 0, 1), (0, 1, 2, 3)))) is None


def test_suggestions_are_accepted() -> None:
    loop = _loop(*LOADS, MULTIPLY, STORE, notes=Annotations((0, 0, 2), (0, 1, 2)))
    found = suggest(loop)
    assert found is not None
    assert not resolve(_loop(*LOADS, MULTIPLY, STORE, notes=Annotations(found.stage, found.order))).errors
