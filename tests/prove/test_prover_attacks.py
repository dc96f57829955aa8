"""Kernels that were once proved though a run fails far from the values that are tried: never again."""

from __future__ import annotations

import time

import pytest

from fencepost.engine import check_kernel
from fencepost.findings import Row, Verdict
from fencepost.model.executor import run
from fencepost.model.program import compile_kernel
from fencepost.options import CheckOptions
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
