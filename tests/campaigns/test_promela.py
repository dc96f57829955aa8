"""Does spin see the deadlocks and leftovers that the executor sees?"""

from __future__ import annotations

import pytest

from campaigns import promela
from campaigns.mutants import origins
from campaigns.random_kernels import random_kernel
from campaigns.texts import kernel
from fencepost.model.executor import run

needs_spin = pytest.mark.skipif(not promela.AVAILABLE, reason="spin or gcc is not installed")

RIGHT = ("feed_cube", "free_start", "two_ahead", "right_hand", "records", "blocks", "ahead_by_one", "exchange")


@needs_spin
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels(name: str) -> None:
    one = next(k for k in origins() if k.name == name)
    for size in (1, 3):
        assert not promela.compare(one, dict.fromkeys(one.parameters, size))


@needs_spin
@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("wait_cross_core 0 @ S; set_cross_core 1 @ S | wait_cross_core 1 @ S; set_cross_core 0 @ S", "deadlock"),
        ("wait_cross_core 0 @ M; set_cross_core 1 @ FIX | wait_cross_core 1 @ V; set_cross_core 0 @ V", "clean"),
        ("set_cross_core 0 @ M; set_cross_core 0 @ M | wait_cross_core 0 @ V", "leftover"),
        ("wait_cross_core 0 @ M; barrier ALL; set_cross_core 1 @ M | wait_cross_core 1 @ V", "deadlock"),
        ("wait_cross_core 0 @ M; sync_all | set_cross_core 0 @ V; sync_all", "clean"),
        ("wait_cross_core 0 @ M; sync_all | sync_all; set_cross_core 0 @ V", "deadlock"),
        ("sync_src 1: M -> FIX | pass", "leftover"),
        ("pass | set_cross_core 1 @ V mode = INTER_SUBBLOCK; wait_cross_core 1 @ V mode = INTER_SUBBLOCK", "clean"),
    ],
)  # fmt: skip
def test_small_programs(body: str, verdict: str) -> None:
    cube, vector = (part.strip().replace("; ", "\n" + " " * 8) for part in body.split("|"))
    one = kernel(f"kernel k():\n    section cube:\n        {cube}\n    section vector:\n        {vector}\n")
    result = run(one, {})
    assert promela.executor_says(result) == verdict
    assert promela.verify(promela.promela(result)).verdict == verdict


@needs_spin
def test_a_search_that_stops_short_is_no_answer() -> None:
    count = "do :: {0} < 100 -> {0} = {0} + 1 :: {0} == 100 -> break od"
    model = "byte a, b, c;\n" + "".join(f"active proctype p{x}() {{ {count.format(x)} }}\n" for x in "abc")
    assert promela.verify(model, seconds=120, optimised=True).states > 1_000_000
    with pytest.raises(promela.TooLarge, match="48 MB"):
        promela.verify(model, memory=48, seconds=120)


@needs_spin
def test_random_kernels() -> None:
    compared = 0
    for number in range(1, 12):
        one = random_kernel(number)
        try:
            assert not promela.compare(one, dict.fromkeys(one.parameters, 1))
        except (promela.Unsupported, promela.TooLarge):
            continue
        compared += 1
    assert compared >= 3
