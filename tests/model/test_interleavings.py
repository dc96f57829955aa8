"""Does one canonical run say what all interleavings say?"""

from __future__ import annotations

import pytest

from campaigns import brute
from campaigns.interleavings import campaign, check, differences
from campaigns.texts import execute, sections
from fencepost import ir


@pytest.mark.parametrize("seed", [1, 10_001, 20_001, 30_001])
def test_random_kernels(seed: int) -> None:
    kinds, failures = campaign(60, seed, budget=1200)
    assert not failures, failures
    assert len(kinds) > 3, kinds


TWO_READERS = sections(
    """
    store o <- acc @ FIX phase = Final
    matmul acc <- a @ M phase = Final
    move p <- acc @ MTE1 phase = Final
    matmul acc <- a @ M phase = Final
    """,
    "",
    "buffer acc in Acc",
)
ORDERED_FREES = sections(
    """
    x <- tpop_from_aiv
    y <- tpop_from_aiv @ M
    tfree_to_aiv y @ M
    tfree_to_aiv x
    """,
    "tpush_to_aic x; tpush_to_aic x",
    "fifo up: vector -> cube, slots = 1",
)
UNORDERED_FREES = sections(
    """
    x <- tpop_from_aiv
    y <- tpop_from_aiv
    tfree_to_aiv y @ M
    tfree_to_aiv x @ FIX
    z <- tpop_from_aiv
    """,
    "tpush_to_aic x; tpush_to_aic x; tpush_to_aic x",
    "fifo up: vector -> cube, slots = 2",
)
LATE_WAIT = sections(
    "set_cross_core 0 @ M; set_cross_core 0 @ FIX; wait_cross_core 1 @ FIX; set_cross_core 0 @ FIX",
    "wait_cross_core 0 @ V; wait_cross_core 0 @ V; set_cross_core 1 @ V; wait_cross_core 0 @ V",
)


@pytest.mark.parametrize("kernel", [TWO_READERS, ORDERED_FREES, UNORDERED_FREES, LATE_WAIT])
@pytest.mark.parametrize("credits", ["per_slot", "batched"])
def test_kernels_that_once_differed(kernel: ir.Kernel, credits: str) -> None:
    found, _ = check(kernel, credits)
    assert not found


def test_the_two_views_of_the_model_are_not_trivial() -> None:
    """The model finds the race, the hang and the capacity that are there."""
    kernel = sections(
        """
        write x <- () @ FIX; set_cross_core 0 @ FIX; write y <- () @ FIX; set_cross_core 0 @ FIX
        wait_cross_core 1 @ FIX
        """,
        "wait_cross_core 0 @ V; read () <- x @ V; read () <- y @ V; wait_cross_core 0 @ V",
        "buffer x in Vec; buffer y in Vec",
    )
    run = execute(kernel)
    system = brute.system(run)
    for outcome in (brute.explore(system), brute.close(system)):
        assert outcome.deadlock
        assert len(outcome.unordered) == 2
        assert {system.events[n].agent for pair in outcome.unordered for n in pair} == {"aic", "aiv0", "aiv1"}
        assert max(outcome.peak.values()) == 2
        assert not differences(run, system, outcome, exhaustive=True)


def test_a_wrong_executor_would_be_seen() -> None:
    """Hide one fault of a run after another: each is missed by name."""
    kernel = sections(
        "write x <- () @ FIX; set_cross_core 0 @ FIX; set_cross_core 1 @ FIX",
        "wait_cross_core 0 @ V; read () <- x @ V; write x <- () @ MTE3",
        "buffer x in Vec",
    )
    run = execute(kernel)
    system = brute.system(run)
    outcome = brute.explore(system)
    assert not differences(run, system, outcome, exhaustive=True)
    run.leftovers.clear()
    assert any(d.startswith("left") for d in differences(run, system, outcome, exhaustive=True))
    run.races.clear()
    assert any(d.startswith("any race") for d in differences(run, system, outcome, exhaustive=True))
    run.peak[0] = 7
    assert any(d.startswith("peak") for d in differences(run, system, outcome, exhaustive=True))
