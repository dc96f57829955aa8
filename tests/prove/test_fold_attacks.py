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


COUNTER = """\
kernel counter(n):
    assume n >= 0
    buffer x[4] in Vec
    section vector:
        k = {start}
        p = 0
        for t in range(n):
            barrier V
            p = 1 - p
        {use}
    section cube:
        barrier M
"""


@pytest.mark.parametrize(
    ("start", "use", "n"),
    [
        ("n // 100", "fill x[k + p] <- q @ V", 500),
        ("n - 60", "if k > p:\n            set_cross_core 7 @ V", 70),
        ("n - 1", "if k - p == 101:\n            set_cross_core 7 @ V", 102),
        ("n + 1", "if k + p > 100:\n            wait_cross_core 1 @ V", 101),
    ],
)
def test_what_is_compared_with_a_counter_of_an_earlier_run(start: str, use: str, n: int) -> None:
    """A counter that comes into a loop is forgotten there; what it is compared with later is not."""
    kernel = parse(COUNTER.format(start=start, use=use))
    assert not run(kernel, {"n": n}).clean
    assert check_kernel(kernel, CheckOptions(timeout=10)).verdict is not Verdict.PROVED


MAXIMUM = """\
kernel maximum(n, b):
    assume n >= 0
    section vector:
        c = 0
        for i in range(n):
            barrier V
            c = c + 1
        {assignment}
        if x - n{more} == 80:
            set_cross_core 7 @ V
        if c > n:
            barrier V
    section cube:
        barrier M
"""


@pytest.mark.parametrize(
    ("assignment", "more"),
    [("x = max(n, 200)", " + 0 * c"), ("x = c\n        if b > 0:\n            x = max(n, 200)", "")],
)
def test_a_maximum_beside_a_counter(assignment: str, more: str) -> None:
    """That a value is too small to be shifted holds for the run in which it was compared."""
    kernel = parse(MAXIMUM.format(assignment=assignment, more=more))
    assert run(kernel, {"n": 120, "b": 1}).leftovers
    assert check_kernel(kernel, CheckOptions(timeout=10)).verdict is not Verdict.PROVED


OTHERS = """\
kernel others(n):
    assume n >= 10
    section vector:
        c = 0
        for t in range(f(0)):
            barrier V
            c = c + 1
        if f(1) < c:
            if f(1) == n:
                set_cross_core 7 @ V
    section cube:
        barrier M
"""

PARTS = """\
kernel parts(n, m):
    assume n >= 0
    assume m >= 0
    section vector:
        r = {sum}
        c = 0
        for t in range(n):
            barrier V
            if t > m:
                break
            if t > f(0):
                break
            if t > f(1):
                break
            c = c + 1
        if n == c:
            if m == c:
                if f(0) == c:
                    if r == f(0) {more} + 0 * c:
                        set_cross_core 7 @ V
                    if f(1) > c:
                        barrier V
    section cube:
        barrier M
"""


def test_another_value_of_a_function_is_compared_with_the_count() -> None:
    kernel = parse(OTHERS)
    assert run(kernel, {"n": 30}, FunctionTable({("f", (0,)): 50, ("f", (1,)): 30})).leftovers
    assert check_kernel(kernel, CheckOptions(timeout=10)).verdict is not Verdict.PROVED


@pytest.mark.parametrize(("total", "more"), [("n + m", "+ 70"), ("n - m", "- 70"), ("m - n", "- 70")])
def test_a_sum_whose_parts_move(total: str, more: str) -> None:
    kernel = parse(PARTS.format(sum=total, more=more))
    table = FunctionTable({("f", (0,)): 70, ("f", (1,)): 70})
    assert run(kernel, {"n": 70, "m": 70}, table).leftovers
    assert check_kernel(kernel, CheckOptions(timeout=10)).verdict is not Verdict.PROVED


BETWEEN = """\
kernel between(n, m, p):
    assume n >= 0
    assume m >= 0
    assume p >= 0
    section cube:
        for u in range(p):
            barrier M
        set_cross_core 0 @ M
    section vector:
        a = p
        wait_cross_core 0 @ S
        {rest}
"""

FORGOTTEN = """\
for t in range(n):
            barrier V
            if t == a:
                if 7 * t > {bound}:
                    set_cross_core 7 @ V
                break
            if f(t) > 0:
                a = t
                break
        if a < n:
            barrier V
"""

THIRD = """\
for t in range(p // 3):
            barrier V
            if 7 * t > {bound}:
                set_cross_core 7 @ V
"""

MANY = """\
y = (p if n >= 0 else n) + {many} - 30 * (m if n >= 0 else n)
        for t in range(n):
            barrier V
            if t == y:
                if 7 * t > {bound}:
                    set_cross_core 7 @ V
                break
"""


@pytest.mark.parametrize(
    ("rest", "values"),
    [(FORGOTTEN, {"n": 99, "p": 60}), (THIRD, {"p": 200}), (MANY, {"n": 99, "p": 60})],
    ids=["a number that is not forgotten", "a quotient of what is shifted", "more forms than are followed"],
)
def test_a_number_that_both_sides_look_at(rest: str, values: dict[str, int]) -> None:
    """The other agent's counter is shifted together with what it is compared with."""
    many = " + ".join(f"{2**k} * (m if n >= 0 else n)" for k in range(1, 5))
    kernel = parse(BETWEEN.format(rest=rest.format(bound=400, many=many)))
    assert run(kernel, {"n": 0, "m": 0, **values}, FunctionTable(default=0)).leftovers
    assert check_kernel(kernel, CheckOptions(timeout=4)).verdict is not Verdict.PROVED


REMAINDER = """\
kernel remainder(p):
    assume p >= 0
    section cube:
        c = 0
        for u in range(p):
            barrier M
            c = c + 1
        set_cross_core 0 @ M
        wait_cross_core 1 @ S
        if c != p:
            barrier M
    section vector:
        r = 60
        for t in range(2):
            r = r + 1
        wait_cross_core 0 @ S
        if 7 * ({value}) > 300:
            set_cross_core 7 @ V
        set_cross_core 1 @ V
"""


@pytest.mark.parametrize("value", ["p % r", "min(p, 100) % 62", "p % 62", "p // 2 % 62", "(p + p // 62) % r"])
def test_a_remainder_of_what_the_other_side_counts(value: str) -> None:
    """The other agent's copy of the number was shifted with its counter, and its remainder with it."""
    kernel = parse(REMAINDER.format(value=value))
    assert any(run(kernel, {"p": p}).leftovers for p in range(50, 150))
    assert check_kernel(kernel, CheckOptions(timeout=4)).verdict is not Verdict.PROVED


RECORDS = """\
kernel records(n):
    assume n >= 0
    ring R[2](x)
    ring Q[2](y)
    section cube:
        wait_cross_core 0 @ S
        wait_cross_core 5 @ S
    section vector:
        set_cross_core 0 @ S
        t = 0
        for i in range(n):
            Q[1].y = Q[0].y
            Q[0].y = R[t % 2].x
            if 7 * i > 400:
                if {condition}:
                    set_cross_core 7 @ S
            R[t % 2].x = i
            t = t + 1
        set_cross_core 5 @ S
{barriers}"""


@pytest.mark.parametrize("condition", ["Q[0].y != Q[1].y", "Q[0].y - Q[1].y", "not Q[0].y == Q[1].y"])
def test_records_that_were_written_again_need_not_be_equal(condition: str) -> None:
    barriers = 150 * "        barrier V\n"  # so many instructions that parts are explored
    kernel = parse(RECORDS.format(condition=condition, barriers=barriers))
    assert run(kernel, {"n": 70}).leftovers
    assert check_kernel(kernel, CheckOptions(timeout=4)).verdict is not Verdict.PROVED


RESETS = """\
kernel resets(n, m):
    assume n >= 0
    assume m >= 0
    ring R[2](x)
    ring Q[1](y)
    section cube:
        for i in range(n):
            wait_cross_core 0 @ S
            set_cross_core 1 @ S
    section vector:
        t = 0
        for i in range(n):
            set_cross_core 0 @ S
            wait_cross_core 1 @ S
            R[0].x = 5
            {middle}
            R[1].x = 5
            t = 0
            if f(0) == 5 * n + 17 and Q[0].y == 3:
                set_cross_core 7 @ S
            for j in range(m):
                R[t % 2].x = 3
                t = t + 1
"""


@pytest.mark.parametrize("middle", ["Q[0].y = R[(t + 1) % 2].x", "Q[R[(t + 1) % 2].x - 3].y = 3"])
def test_records_that_are_read_between_their_resets(middle: str) -> None:
    kernel = parse(RESETS.format(middle=middle))
    assert run(kernel, {"n": 3, "m": 2}, FunctionTable({("f", (0,)): 32})).leftovers
    assert check_kernel(kernel, CheckOptions(timeout=4)).verdict is not Verdict.PROVED


PARTS_OF_A_SLOT = """\
kernel parts(n, q):
    assume n >= 0
    assume q >= 0
    buffer b in Vec
    section cube:
        move b part 170 of 200 <- x @ FIX
        wait_cross_core 3 @ S
        for i in range(n):
            set_cross_core 0 @ M
            wait_cross_core 1 @ M
    section vector:
        p = q % 200
        set_cross_core 3 @ S
        for i in range(n):
            wait_cross_core 0 @ S
            set_cross_core 1 @ S
        load b part p of 200 <- y @ MTE2
"""


def test_parts_of_a_slot_are_told_apart_however_many_there_are() -> None:
    kernel = parse(PARTS_OF_A_SLOT)
    assert run(kernel, {"n": 0, "q": 170}).races
    report = check_kernel(kernel, CheckOptions(timeout=6))
    assert {check.row: check.verdict for check in report.checks}[Row.EVENT_POSITION] is not Verdict.PROVED


BELOW_ZERO = """\
kernel below_zero(n, m):
    assume n >= 0
    assume m >= 0
    section vector:
        {before}
        for i in range(n):
            barrier V
            {inside}
            {after}
"""


@pytest.mark.parametrize(
    ("before", "inside", "after"),
    [
        ("v = 200", "z = 0 - 50\n            w = (z + v) % 2", "if f(i) == g(i) + 5000:\n                v = 4"),
        ("v = 200", "z = 0 - 50\n            w = (z + v) // 2", "if f(i) == g(i) + 5000:\n                v = 4"),
        (
            "p = 0 - 40\n        v = 90",
            "z = p + 1\n            w = (z + v) % 2",
            "if f(i) == 777:\n                v = 4",
        ),
        ("x = 0 - 1\n        z = 5000", "w = (x * i + z) % 2", "pass"),
        ("x = 1\n        if m > 4000:\n            x = 0 - 1\n        z = 90", "w = (x * i + z) % 2", "pass"),
        ("x = m\n        z = 500", "y = x - 300\n            w = (i // 3 + y + z) % 2", "x = x - 1"),
        ("x = 0\n        z = 5000", "y = 0 - x\n            w = (y + z) % 2", "x = x + 1"),
        (
            "v = 9",
            "if f(i) > 0 - 5:\n                w = (f(i) + v) % 2",
            "if f(i) == 777:\n                v = 1",
        ),  # values that come later are not known to be large
        (
            "v = 200",
            "if f(i) > 0 - 50:\n                w = (f(i) + v) // 2",
            "if g(i) == 777:\n                v = 4",
        ),
    ],
)
def test_a_sum_of_which_a_part_is_negative(before: str, inside: str, after: str) -> None:
    """One part is known and below zero, so that the others may not be taken for any large numbers."""
    assert not _proved(BELOW_ZERO.format(before=before, inside=inside, after=after), Row.SLOT_MAPPING)


def test_a_part_of_a_sum_that_was_counted_down_before() -> None:
    text = """\
kernel counted_down(n, m):
    assume n >= 30
    assume m >= 0
    section vector:
        y = 0
        for q in range(3):
            y = y - 33
        c = 100
        for i in range(m):
            barrier V
            if n == c:
                if f(0) > 7007:
                    z = y + 0 * c
                    w = (z + n) % 2
                break
            if c == 0:
                break
            c = c - 1
"""
    wrong = run(parse(text), {"n": 60, "m": 70}, FunctionTable({("f", (0,)): 7008}))
    assert wrong.bad_values
    assert not _proved(text, Row.SLOT_MAPPING)


def test_parts_of_a_sum_that_are_never_negative() -> None:
    text = BELOW_ZERO.format(before="z = 0", inside="w = (z + i + m) % 2", after="z = z + 1")
    assert _proved(text, Row.SLOT_MAPPING)


def test_a_ring_of_any_name() -> None:
    """Delay lines make names of it."""
    text = """\
kernel names(n):
    ring from[2](x)
    section vector:
        for t in range(n):
            from[t % 2].x = t
            if from[(t + 1) % 2].x == 3:
                set_cross_core 7 @ V
"""
    padded = text + "        barrier V\n" * 130
    assert check_kernel(parse(padded), CheckOptions(timeout=5)).verdict is Verdict.REFUTED


TOLD = """\
kernel told(n, m):
    assume n >= 0
    assume m >= 0
    section vector:
        b = 0
        for v in range(m):
            for u in range(m):
                barrier V
                b = 20 + 0 * u
        if m > 30:
            barrier V
        c = 0
        q = 0
        for t in range(n):
            barrier V
            p = f(t)
            if g(t) > 0:
                if p <= c:
                    if p > b + 9:
                        set_cross_core 7 @ V
                break
            if p <= t:
                break
            if q == c + 5000:
                barrier V
            q = p
            if t >= 40:
                c = c + 1
"""


def test_values_of_a_function_that_are_compared_at_two_levels() -> None:
    """What one level knows of a value is told the other: a counter that is tied to values may not move with them."""
    points = {("f", (t,)): t + 1 for t in range(75)} | {("g", (t,)): 0 for t in range(75)}
    table = FunctionTable({**points, ("f", (75,)): 31, ("g", (75,)): 1})
    assert run(parse(TOLD), {"n": 80, "m": 1}, table).leftovers
    assert not _proved(TOLD, Row.PAIRING)
