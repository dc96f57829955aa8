"""In which order are the methods of proof tried?"""

from __future__ import annotations

import time

import pytest

from fencepost import prover
from fencepost.applicability import applicable
from fencepost.model.program import compile_kernel
from fencepost.prover import growing
from fencepost.reading import parse

TRIANGLE = """\
kernel triangle(n, m):
    assume n >= 0
    assume m >= 0
    IDS = (0, 8, 13)
    FREE = (11, 4, 12)
    buffer s[3] in Vec
    section cube:
        k = 0
        for i in range(n):
            for t in range(m + i):
                wait_cross_core FREE[k % 3] @ FIX
                move s[k % 3] <- acc @ FIX
                set_cross_core IDS[k % 3] @ FIX
                k = k + 1
        wait_cross_core FREE[0] @ FIX
        wait_cross_core FREE[1] @ FIX
        wait_cross_core FREE[2] @ FIX
    section vector:
        k = 0
        set_cross_core FREE[0] @ V
        set_cross_core FREE[1] @ V
        set_cross_core FREE[2] @ V
        for i in range(n):
            for t in range(m + i):
                wait_cross_core IDS[k % 3] @ V
                take y <- s[k % 3] @ V
                set_cross_core FREE[k % 3] @ V
                k = k + 1
"""


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ("m + i", True),
        ("i", True),
        ("2 * i, n", True),
        ("m", False),
        ("m + n", False),
        ("m + (1 if i == n - 1 else 0)", False),
        ("i % 2", False),
    ],
)
def test_nests_whose_trips_grow_are_found(bound: str, expected: bool) -> None:
    assert growing(parse(TRIANGLE.replace("range(m + i)", f"range({bound})"))) is expected


@pytest.mark.parametrize("bound", ["m + i", "i", "m"])
def test_all_rows_are_proved_in_a_few_seconds(bound: str) -> None:
    compiled = compile_kernel(parse(TRIANGLE.replace("range(m + i)", f"range({bound})")))
    rows = [row for row, applies in applicable(compiled.kernel).items() if applies]
    proof = prover.prove(compiled, rows, time.monotonic() + 20)
    assert set(proof.proved) == set(rows), proof.reasons


def test_nothing_is_proved_without_time() -> None:
    compiled = compile_kernel(parse(TRIANGLE))
    rows = [row for row, applies in applicable(compiled.kernel).items() if applies]
    proof = prover.prove(compiled, rows, time.monotonic() - 1)
    assert not proof.proved and set(proof.reasons) == set(rows) and all(proof.reasons.values())
