"""Does a run of concrete values show what a check found at them?"""

from __future__ import annotations

from typing import Literal

import pytest

from fencepost.reading import parse
from fencepost.replay import replay
from fencepost.report.replay import render

AHEAD = """\
{option}
kernel ahead(n):
    assume n >= 0
    fifo down: cube -> vector, slots = 4
    fifo up: vector -> cube, slots = 4
    section cube:
        for t in range(n):
            tpush_to_aiv s task = t
        for t in range(n):
            p <- tpop_from_aiv task = t
            use o <- p @ M
            tfree_to_aiv p
    section vector:
        for t in range(n):
            s <- tpop_from_aic task = t
            exp e <- s @ V
            tfree_to_aic s
            tpush_to_aic e task = t
"""


@pytest.mark.parametrize(
    ("asked", "n", "credits", "clean"),
    [
        (None, 8, "per_slot", True),
        (None, 9, "batched", False),  # two slots become free together, and the second one too late
        ("per_slot", 9, "per_slot", True),
        ("batched", 8, "batched", True),
        (None, 99, "per_slot", False),
    ],
)
def test_both_credit_schemes_are_run_where_the_kernel_leaves_them_open(
    asked: Literal["per_slot", "batched"] | None, n: int, credits: str, clean: bool
) -> None:
    done = replay(parse(AHEAD.format(option="")), {"n": n}, credits=asked)
    assert (done.credits, done.clean) == (credits, clean)
    assert ("batched credits" in render(done)) == (credits == "batched")
