"""Kernels of which a state was taken for one seen before though what it had decided was forgotten: never again."""

from __future__ import annotations

import time

import pytest

from fencepost.engine import check_kernel
from fencepost.findings import Row, Verdict
from fencepost.model.executor import run
from fencepost.model.functions import FunctionTable
from fencepost.model.program import compile_kernel
from fencepost.options import CheckOptions
from fencepost.prove.explore import explore
from fencepost.prove.explorer import _ends
from fencepost.prover import prepared
from fencepost.reading import parse

SUM = """\
kernel sums(n, m, k):
    assume n >= 0
    assume m >= 0
    assume k >= 0
    section vector:
        {assignment}
        if {condition}:
            set_cross_core 7 @ V
"""

SUMS = {
    "a sum": ("a = m + n", "a == 111", {"n": 111}),
    "a difference": ("a = n - m", "a == 64", {"n": 64}),
    "of three": ("a = n + m + k", "a == 211", {"n": 211}),
    "with factors": ("a = 2 * n - 3 * m", "a == 101", {"n": 52, "m": 1}),
    "of quotients": ("a = n // 3 + m // 5", "a == 111", {"n": 333}),
    "a remainder in disguise": ("a = n - n // 7 * 7", "a == 5 and m == 777 and n > 100", {"n": 103, "m": 777}),
}


def _proved(text: str, row: Row) -> bool:
    return explore(compile_kernel(prepared(parse(text))), time.monotonic() + 5, states=800).proves(row)


@pytest.mark.parametrize("name", SUMS)
def test_a_scalar_that_is_made_of_several_unknowns(name: str) -> None:
    assignment, condition, values = SUMS[name]
    text = SUM.format(assignment=assignment, condition=condition)
    assert run(parse(text), {"n": 0, "m": 0, "k": 0, **values}).leftovers
    assert not _proved(text, Row.PAIRING)
    assert check_kernel(parse(text), CheckOptions(timeout=10)).verdict is not Verdict.PROVED


@pytest.mark.parametrize(("assignment", "condition"), [("pass", "f(0) + f(1) == 111"), ("a = f(0) - f(1)", "a == 111")])
def test_sums_of_values_of_a_function(assignment: str, condition: str) -> None:
    assert not _proved(SUM.format(assignment=assignment, condition=condition), Row.PAIRING)


RANGES = """\
kernel ranges(m, n):
    assume m >= 0
    section cube:
        for i in range({start}, n):
            barrier M
        set_cross_core 0 @ M
    section vector:
        c = 0
        wait_cross_core 0 @ V
        for j in range({start}, n):
            c = c + 1
            barrier V
        if c {condition}:
            wait_cross_core 1 @ V
"""


@pytest.mark.parametrize("start", ["m", "0"])
@pytest.mark.parametrize("condition", ["> 40", "== 777"])
def test_both_sides_run_over_one_range(start: str, condition: str) -> None:
    """The trips of a range with two unknown ends are one number for both sides, counted from its beginning by each."""
    text = RANGES.format(start=start, condition=condition)
    assert run(parse(text), {"m": 0, "n": 777}).blocked
    assert not _proved(text, Row.PAIRING)


LATER = """\
kernel later(n):
    assume n >= 0
    section vector:
        prev = 0
        for t in range(n):
            barrier V
            if prev == t + 5000:
                barrier V
            r = {value}
            if {condition}:
                set_cross_core 7 @ V
            if r + 2 < t:
                {last}
                break
            prev = r
    section cube:
        barrier M
"""


@pytest.mark.parametrize(
    ("value", "condition", "last"),
    [("f(t)", "r >= 0 and r + 30 < t", "pass"), ("max(f(t), 0)", "r + 30 < t", "barrier V")],
)
def test_values_to_come_tie_a_counter_to_constants(value: str, condition: str, last: str) -> None:
    """The counter goes along with the value that it had, and its next value is compared with constants."""
    text = LATER.format(value=value, condition=condition, last=last)
    table = FunctionTable({**{("f", (t,)): t for t in range(31)}, ("f", (31,)): 0})
    assert run(parse(text), {"n": 32}, table).leftovers
    assert check_kernel(parse(text), CheckOptions(timeout=10)).verdict is not Verdict.PROVED


SECOND = """\
kernel second(n, m):
    assume n >= 0
    assume m >= 0
    buffer x[2] in Vec
    section vector:
        load x[1] <- q @ MTE2
        sync_src 0: MTE2 -> V
        sync_dst 0: MTE2 -> V
        load x[0] <- q @ MTE2
        if 2 * n + 3 * m == {sum}:
            barrier ALL
            {again} x[1] <- q @ {pipe}
        use p <- x[0], x[1] @ V
        for t in range(n):
            barrier V
        for t in range(m):
            barrier V
"""


@pytest.mark.parametrize(("again", "pipe"), [("fill", "MTE3"), ("load", "MTE2")])
def test_another_race_at_one_statement(again: str, pipe: str) -> None:
    """What a run shows at a statement does not tell of what else is wrong there at one pair of values."""
    text = SECOND.format(sum=7001, again=again, pipe=pipe)
    assert {r.touched.slot for r in run(parse(text), {"n": 4, "m": 2331}).races} == {1}
    report = check_kernel(parse(text), CheckOptions(timeout=10))
    verdicts = {check.row: check.verdict for check in report.checks}
    assert verdicts[Row.EVENT_POSITION] is Verdict.REFUTED
    assert verdicts[Row.BOUNDARY] is not Verdict.PROVED


def test_decisions_that_lead_back() -> None:
    assert _ends({"a": {"b"}, "b": {"c"}})
    assert not _ends({"a": {"b"}, "b": {"a"}})
    assert not _ends({"a": {"a"}})


ELEMENT = """\
kernel element(n):
    T = ({elements})
    assume n >= 1
    assume T[n] == 0
    section cube:
        set_cross_core 0 @ FIX
        if n {condition}:
            set_cross_core 0 @ FIX
    section vector:
        wait_cross_core 0 @ V
"""


@pytest.mark.parametrize(
    ("elements", "condition", "n"),
    [("5, 0, 5", "> 400", 401), ("5, 0, 5", "== 777 * 777", 603729), ("0, 5", ">= 2", 9)],
)
def test_assumes_about_elements_outside_of_a_tuple(elements: str, condition: str, n: int) -> None:
    """Such an element is 0, so the assume allows the values."""
    kernel = parse(ELEMENT.format(elements=elements, condition=condition))
    assert run(kernel, {"n": n}).leftovers
    assert check_kernel(kernel, CheckOptions(timeout=20)).verdict is Verdict.REFUTED
