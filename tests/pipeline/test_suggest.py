"""Suggested annotations: right, near, and of the same depth."""

from __future__ import annotations

import pytest
from pipeline_rows import ORACLE, Row, loop_of, rows
from random_loops import random_loop
from suggestions import examine

from fencepost.findings import Verdict
from fencepost.pipeline.accept import resolve
from fencepost.pipeline.check import pipelines, suggestion_for
from fencepost.pipeline.explore import Exploration, outcome
from fencepost.pipeline.horizon import Horizon, horizon
from fencepost.pipeline.model import Access, Annotations, At, Buffer, Loop, Statement
from fencepost.pipeline.question import Proposal, Question
from fencepost.pipeline.sequence import Sequence
from fencepost.pipeline.setting import Setting
from fencepost.pipeline.suggest import NoSuggestion, Suggestion, suggest
from fencepost.pipeline.unawaited import ever_unawaited, unawaited
from fencepost.pipeline.verify import verify
from fencepost.reading import parse

PROPOSE = Question.propose
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


@pytest.mark.parametrize("seed", range(900, 980))
def test_random_loops(seed: int) -> None:
    """Right for small trip counts; of loops with few statements, no schedule that is nearer is right."""
    result = examine(seed, all_up_to=3)
    assert result is None or (not result.problem and isinstance(result.found, Suggestion))


@pytest.mark.parametrize("seed", [3358, 3482, 4085, 4179, 4469, 20055, 20133, 20635, 21287, 21460, 50517])
def test_loops_in_which_many_schedules_fail_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one of them teaches rules out the others, so that the search ends, and after less than 100 proposals.

    The solver proposes the same each time, whatever it was asked before.
    """
    proposed = 0

    def propose(self: Question, *assumed: str, changes: int | None = None) -> Proposal | None:
        nonlocal proposed
        proposed += 1
        return PROPOSE(self, *assumed, changes=changes)

    monkeypatch.setattr(Question, "propose", propose)
    counts = []
    for _ in range(2):
        proposed = 0
        result = examine(seed)
        assert result is not None and not result.problem and isinstance(result.found, Suggestion)
        counts.append(proposed)
    assert counts[0] == counts[1] < 100


def test_no_pipeline_is_right() -> None:
    """An asynchronous copy of a buffer onto itself, which nobody waits for: overlapped, it is never right."""
    again = Statement("again", (Access("C", At(Sequence.linear(1, -1))),), (Access("C", HERE),))
    use = Statement("use", (Access("A", HERE),), (Access("B", HERE),))
    found = suggest(_loop(again, use, notes=Annotations((0, 1), (0, 1), async_producers=(1, 0))))
    assert isinstance(found, Suggestion) and found.stage == (1, 1)
    assert found.reason == "no pipelined schedule of depth 2 is right"


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
    found = suggest(_loop(*LOADS, MULTIPLY, STORE, notes=Annotations((0, 1_000_000, 0, 1), (0, 1, 2, 3))))
    assert isinstance(found, NoSuggestion) and found.exists is None


def test_suggestions_are_accepted() -> None:
    loop = _loop(*LOADS, MULTIPLY, STORE, notes=Annotations((0, 0, 2), (0, 1, 2)))
    found = suggest(loop)
    assert found is not None
    assert not resolve(_loop(*LOADS, MULTIPLY, STORE, notes=Annotations(found.stage, found.order))).errors


@pytest.mark.parametrize("seed", range(400, 460))
def test_hazards_without_values(seed: int) -> None:
    """What `unawaited` says of a schedule is what the run on values shows."""
    loop = random_loop(seed)
    plan = resolve(loop).plan
    if plan is not None:
        for trips in range(7):
            assert bool(unawaited(plan, trips, Setting())) == outcome(plan, trips, Setting()).hazard
        ahead = horizon(plan)
        tail = ahead.tail if isinstance(ahead, Horizon) else 0
        for limit in (0, 1, 5, 30):
            shown = any(o.hazard for o in Exploration(plan, tail, Setting()).run(limit))
            assert ever_unawaited(plan, tail, Setting(), limit) == shown


def test_asynchronous_statements_share_a_commit_where_a_reader_between_them_is_absent() -> None:
    """The reader is absent in the prologue; a statement that moves between the two splits their commit there."""
    notes = "stage = (0, 0, 2, 0, 0), order = (0, 4, 2, 8, 6), async_producers = (1, 1, 0, 0, 0)"
    kernel = parse(f"""\
kernel near(n):
    assume n >= 0
    buffer G in GM
    buffer S1 in Vec
    buffer S2 in Vec
    section vector:
        fill S1 <- () @ V
        for k in pipelined(0, n, num_stages = 2, {notes}):
            copy_out C <- A @ MTE2 at (k)
            load S2 <- A @ MTE2 at (k)
            mul E <- S2 @ V
            store G <- S1 @ MTE3
            store2 G <- S1, H @ MTE3
""")
    found = suggestion_for(pipelines(kernel)[0], kernel)
    assert isinstance(found, Suggestion) and found.changes == 1 and found.order in ((0, 4, 2, 1, 6), (0, 4, 2, 3, 6))
