"""Kernels that were once proved though a run fails far from the values that are tried: never again."""

from __future__ import annotations

import time

import pytest

from fencepost.engine import check_kernel
from fencepost.findings import Row, Verdict
from fencepost.model.executor import run
from fencepost.model.program import compile_kernel
from fencepost.options import CheckOptions
from fencepost.prove import closed_form
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
