"""Kernels that were once proved though a run fails far from the values that are tried: never again."""

from __future__ import annotations

import time

import pytest

from fencepost.engine import check_kernel
from fencepost.findings import Row, Verdict
from fencepost.model.executor import run
from fencepost.model.functions import FunctionTable
from fencepost.model.program import compile_kernel
from fencepost.options import CheckOptions
from fencepost.prove import closed_form
from fencepost.prove.certificate import NotCertified, certify
from fencepost.prove.explore import explore
from fencepost.prover import prepared
from fencepost.reading import parse

SIGNAL = """\
kernel signal(n, m):
    section cube:
        for t in range(n):
            if {condition}:
                set_cross_core 5 @ FIX
"""

CONDITIONS = {
    "two quotients of alternatives": ("(t + (m > 0)) // 64 != (t + (m > 1)) // 64", {"n": 64, "m": 1}),
    "two products of alternatives": ("t * (1 if m > 0 else 2) == t * (1 if m > 1 else 2) - 101", {"n": 102, "m": 1}),
    "a sum of two quotients": ("((t + (m > 0)) // 64 + (t + (m > 1)) // 64) % 2 == 1", {"n": 64, "m": 1}),
    "three values of a function": ("f(m) - f(m + 1) + f(m + 2) + t == 70", {"n": 71, "m": 0}),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_terms_that_may_differ_do_not_cancel(name: str) -> None:
    condition, values = CONDITIONS[name]
    kernel = parse(SIGNAL.format(condition=condition))
    assert run(kernel, values).leftovers
    explored = explore(compile_kernel(prepared(kernel)), time.monotonic() + 3, states=800)
    assert not explored.proves(Row.PAIRING)


CONSTANTS = {
    "an id": """\
kernel k(n, m):
    assume n >= 0
    assume m >= 0
    K = (-1 if n == 777 else 0) {op}
    section cube:
        if n > 2:
            set_cross_core K @ FIX
    section vector:
        BARRIERS
        if n > 2:
            wait_cross_core K @ V
""",
    "a scalar that nobody reads": """\
kernel k(n, m):
    K = (-1 if n == 777 else 0) {op}
    section cube:
        x = K
        set_cross_core 0 @ FIX
    section vector:
        BARRIERS
        wait_cross_core 0 @ V
""",
    "a constant of a constant": """\
kernel k(n, m):
    K = (-1 if n == 777 else 0) {op}
    L = K + 1
    section cube:
        x = L
        set_cross_core 0 @ FIX
    section vector:
        BARRIERS
        wait_cross_core 0 @ V
""",
}


@pytest.mark.parametrize("barriers", [1, 250])
@pytest.mark.parametrize("op", ["% 2", "// 8 + 1"])
@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_with_a_bad_value_is_found(name: str, op: str, barriers: int) -> None:
    lines = "\n".join(["        barrier V"] * barriers)
    kernel = parse(CONSTANTS[name].format(op=op).replace("        BARRIERS", lines))
    assert run(kernel, {"n": 777, "m": 0}).bad_values
    report = check_kernel(kernel, CheckOptions(timeout=10))
    row = next(c for c in report.checks if c.row is Row.SLOT_MAPPING)
    assert row.verdict is Verdict.REFUTED
    assert [f.code for f in report.findings] == ["104"]


MANY_SLOTS = {
    "unwritten": """\
kernel k(n):
    buffer x[401] in Mat
    section cube:
        load x[0] <- q @ MTE2
        barrier ALL
        for t in range(n):
            for u in range(t):
                store r <- x[(t * 40 + u) // 3000 % 401] @ MTE1
""",
    "another slot for one task": """\
kernel k(n):
    assume n >= 0
    buffer x[500] in Vec
    section cube:
        for t in range(n):
            for u in range(t):
                move x[((t * 40 + u) // 3000) % 500] <- a @ FIX task = t * 40 + u
                set_cross_core 0 @ FIX
                wait_cross_core 1 @ FIX
    section vector:
        for t in range(n):
            for u in range(t):
                wait_cross_core 0 @ V
                cast p <- x[0] @ V task = t * 40 + u
                set_cross_core 1 @ V
""",
}


@pytest.mark.parametrize("name", MANY_SLOTS)
def test_slots_that_are_too_many_to_be_told_apart_surely_share_nothing(name: str) -> None:
    proved = closed_form.prove(compile_kernel(parse(MANY_SLOTS[name])), time.monotonic() + 20).rows
    rows = [row for row in (Row.SLOT_MAPPING, Row.EVENT_POSITION) if proved[row].verdict is not Verdict.PROVED]
    assert rows


def test_as_many_slots_used_one_after_the_other_are_proved() -> None:
    text = """\
kernel k(n):
    assume n >= 0
    buffer x[500] in Vec
    section cube:
        for t in range(n):
            move x[t % 500] <- a @ FIX
            set_cross_core 0 @ FIX
            wait_cross_core 1 @ FIX
    section vector:
        for t in range(n):
            wait_cross_core 0 @ V
            cast p <- x[t % 500] @ V
            set_cross_core 1 @ V
"""
    proved = closed_form.prove(compile_kernel(parse(text)), time.monotonic() + 20).rows
    assert proved[Row.EVENT_POSITION].verdict is Verdict.PROVED


FREED_TWICE = """\
kernel freed_twice(n):
    assume n >= 0
    fifo a: cube -> vector, slots = 4
    section cube:
        for t in range(n):
            tpush_to_aiv x
            tpush_to_aiv x
    section vector:
        for t in range(n):
            y <- tpop_from_aic
            z <- tpop_from_aic
            use p <- y, z @ V
            tfree_to_aic y
            if t == 7777:
                tfree_to_aic y
            else:
                tfree_to_aic z
"""

LOST = """\
kernel lost(n):
    assume n >= 0
    buffer x in Vec
    section vector:
        if n == 7777:
            sync_src 0: MTE2 -> V
            sync_src 0: MTE2 -> V
            sync_src 0: MTE2 -> V
            sync_dst 0: MTE2 -> V
            sync_dst 0: MTE2 -> V
            load x <- q @ MTE2
            sync_src 0: MTE2 -> V
            sync_dst 0: MTE2 -> V
            use p <- x @ V
"""

LEFT_MESSAGE = """\
kernel left_message(n):
    assume n >= 0
    fifo a: cube -> vector, slots = 2
    section cube:
        for t in range(n):
            tpush_to_aiv x
        if n * n == 603729:
            tpush_to_aiv x
    section vector:
        for t in range(n):
            y <- tpop_from_aic
            tfree_to_aic y
"""


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (FREED_TWICE, {Row.FIFO}),
        (LOST, {Row.EVENT_POSITION, Row.COUNTS, Row.BOUNDARY}),
        (LEFT_MESSAGE, {Row.FIFO, Row.BOUNDARY}),
    ],
    ids=["a message freed twice", "signals that are lost", "a message left at one value"],
)
def test_rows_in_which_some_run_fails_stay_open(text: str, rows: set[Row]) -> None:
    report = check_kernel(parse(text), CheckOptions(timeout=10))
    found = {c.row for c in report.checks if c.verdict is Verdict.PROVED}
    assert not found & rows


@pytest.mark.parametrize("barriers", [0, 150])
@pytest.mark.parametrize("chosen", ["set_cross_core T[1] @ FIX", "y = T[1]"])
def test_all_elements_of_a_tuple_are_worked_out(chosen: str, barriers: int) -> None:
    lines = "".join("        barrier V\n" for _ in range(barriers))
    text = f"""\
kernel tuple_element(n):
    assume n >= 0
    T = ((0 if n != 7777 else -1) % 2, 1)
    section cube:
        {chosen}
        set_cross_core 3 @ FIX
    section vector:
{lines}        wait_cross_core T[1] @ V
        wait_cross_core 3 @ V
"""
    assert run(parse(text), {"n": 7777}).bad_values
    report = check_kernel(parse(text), CheckOptions(timeout=10))
    assert next(c for c in report.checks if c.row is Row.SLOT_MAPPING).verdict is Verdict.REFUTED


RACE = """\
kernel race(n, m):
    {facts}
    buffer x in Vec
    section vector:
        if n > 3:
            load x <- q @ MTE2
            use p <- x @ V
"""


@pytest.mark.parametrize(
    "facts",
    [
        "assume n > 5\n    assume n == 2",
        "assume n >= 5\n    assume n <= 3",
        "assume n % 2 == 0\n    assume n % 2 == 1",
        "assume n > m\n    assume m > n",
        "assume f(0) > 0\n    assume f(0) < 0",
        "assume not n == n",
        "assume 0 == 1",
    ],
)
def test_what_holds_for_no_values_is_not_proved(facts: str) -> None:
    report = check_kernel(parse(RACE.format(facts=facts)), CheckOptions(timeout=10))
    assert report.verdict is Verdict.VACUOUS
    assert {c.verdict for c in report.checks} <= {Verdict.VACUOUS, Verdict.NOT_APPLICABLE}


def test_values_that_nobody_finds_leave_the_rows_open() -> None:
    report = check_kernel(
        parse(RACE.format(facts="assume n * n * n == m * m + 2\n    assume n > 10000")), CheckOptions(timeout=3)
    )
    assert report.verdict in (Verdict.UNKNOWN, Verdict.VACUOUS)


@pytest.mark.parametrize(
    "facts",
    [
        "assume n * n == 2",
        "assume m >= 1\n    assume n >= 1\n    assume n // m > n",
        "assume n * n == 3\n    assume m > 4",
    ],
)
def test_products_that_have_no_such_value(facts: str) -> None:
    """The solver takes a product of unknowns for any function; its word for it is not enough."""
    report = check_kernel(parse(RACE.format(facts=facts)), CheckOptions(timeout=10))
    assert report.verdict in (Verdict.UNKNOWN, Verdict.VACUOUS)
    with pytest.raises(NotCertified):
        certify(parse(RACE.format(facts=facts).replace("load x", "use x").replace("MTE2", "V")))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("    buffer acc in Acc\n    section cube:\n        matmul acc <- a, b @ M phase = STPhase.Final\n", "804"),
        (
            "    target a3\n    buffer acc in Acc\n    section cube:\n        matmul acc <- a, b @ M phase = Final\n",
            "805",
        ),
        ("    fifo ring: cube -> vector, slots = 5\n    section cube:\n        barrier M\n", "706"),
    ],
)
def test_faults_of_the_text_need_no_run(text: str, code: str) -> None:
    """None of the values that are tried satisfies the assume."""
    report = check_kernel(parse(f"kernel k():\n    assume f(0) >= 7777\n{text}"), CheckOptions(timeout=10))
    assert code in {f.code for f in report.findings}
    assert report.verdict is Verdict.REFUTED


@pytest.mark.parametrize("name", ["trips", "stale", "count"])
def test_functions_may_have_any_name(name: str) -> None:
    text = f"""\
kernel k(n, m):
    assume n >= 0
    assume m >= 0
    section cube:
        if g(0) >= 7777:
            for t in range(m, n):
                wait_cross_core 1 @ FIX
                set_cross_core 0 @ FIX
    section vector:
        if g(0) >= 7777:
            for t in range({name}(m, n, 1)):
                set_cross_core 1 @ V
                wait_cross_core 0 @ V
"""
    functions = {("g", (0,)): 7777, (name, (0, 2, 1)): 0}
    assert run(parse(text), {"n": 2, "m": 0}, FunctionTable(functions)).blocked
    assert check_kernel(parse(text), CheckOptions(timeout=5)).verdict is Verdict.UNKNOWN


def test_a_flag_whose_uses_do_not_alternate_orders_nothing() -> None:
    """Final twice before it is read: at n = 1, f(0) = 391, two signals of flag 0 may be pending."""
    text = """\
kernel k(n):
    assume n >= 0
    buffer acc in Acc
    section cube:
        for t in range(n):
            sync_src 0: FIX -> M
            if f(t) == 391:
                matmul acc <- a, b @ M phase = Final
            sync_dst 0: FIX -> M
            matmul acc <- a, b @ M phase = Final
            store C <- acc @ FIX phase = Final
            sync_src 0: FIX -> M
            if f(t) == 391:
                store C <- acc @ FIX phase = Final
            sync_dst 0: FIX -> M
            sync_src 1: M -> FIX
            sync_dst 1: M -> FIX
"""
    assert run(parse(text), {"n": 1}, FunctionTable({("f", (0,)): 391})).overflows
    report = check_kernel(parse(text), CheckOptions(timeout=5))
    assert next(c for c in report.checks if c.row is Row.COUNTS).verdict is not Verdict.PROVED


def test_sync_all_of_one_agent() -> None:
    text = "kernel k(n):\n    assume n >= 0\n    section cube:\n        for t in range(n):\n            sync_all\n"
    assert check_kernel(parse(text), CheckOptions(timeout=10)).verdict is Verdict.PROVED
