"""Does the unit_flag hand an accumulator over between M and its reader?"""

from __future__ import annotations

import pytest

from campaigns.texts import blocked, execute, races, sections

ACC = "buffer acc in Acc"
LOCKED = "buffer acc in Acc mutex (0)"
FINAL, PARTIAL = "matmul acc <- a @ M phase = Final", "matmul acc <- a @ M phase = Partial"
STORE, PEEK = "store o <- acc @ FIX phase = Final", "store o <- acc @ FIX phase = Partial"


def test_final_on_both_sides_hands_over_and_back() -> None:
    assert execute(sections(f"{FINAL}; {STORE}; {FINAL}; {STORE}", "", ACC)).clean


def test_without_phases_nothing_orders_them() -> None:
    run = execute(sections("matmul acc <- a @ M; store o <- acc @ FIX", "", ACC))
    assert races(run) == {("write-read", "matmul", "store")}


def test_partial_only_waits() -> None:
    run = execute(sections(f"{PARTIAL}; {PARTIAL}; {FINAL}; {PEEK}; {STORE}; {FINAL}; {STORE}", "", ACC))
    assert run.clean


def test_a_sum_without_final_hangs_its_reader() -> None:
    assert blocked(execute(sections(f"{PARTIAL}; {STORE}", "", ACC))) == ["aic FIX phase"]


def test_a_read_without_final_hangs_the_next_sum() -> None:
    assert blocked(execute(sections(f"{FINAL}; {PEEK}; {PARTIAL}", "", ACC))) == ["aic M phase"]


def test_a_flag_that_stays_set_is_noted() -> None:
    run = execute(sections(f"{FINAL}; {PEEK}", "", ACC))
    assert [f.kind for f in run.phase_faults] == ["left"]


def test_a_phase_replaces_the_automatic_order_of_this_accumulator_only() -> None:
    mixed = f"{FINAL}; store o <- acc @ FIX"
    assert races(execute(sections(mixed, "", LOCKED))) == {("write-read", "matmul", "store")}
    other = "buffer acc in Acc mutex (0); buffer y in Mat mutex (1)"
    run = execute(sections(f"load y <- a @ MTE2; matmul acc <- y @ M phase = Final; {STORE}", "", other))
    assert run.clean


def test_accumulators_have_their_own_flags() -> None:
    two = "buffer acc[2] in Acc"
    work = "matmul acc[0] <- a @ M phase = Final; matmul acc[1] <- a @ M phase = Final"
    read = "store o <- acc[1] @ FIX phase = Final; store o <- acc[0] @ FIX phase = Final"
    assert execute(sections(f"{work}; {read}", "", two)).clean


def test_accumulation_reads_its_own_sum() -> None:
    more = "matmul_acc acc <- acc, a @ M phase = Final"
    assert execute(sections(f"{PARTIAL}; {more}; {STORE}", "", ACC)).clean


@pytest.mark.parametrize(("second", "contested"), [("Final", True), ("Partial", True)])
def test_two_pipes_that_read_one_accumulator_compete(second: str, contested: bool) -> None:
    other = f"move p <- acc @ MTE1 phase = {second}"
    run = execute(sections(f"{FINAL}; {STORE}; {FINAL}; {other}; {FINAL}; {STORE}", "", ACC))
    assert bool(run.contested) == contested


def test_two_reads_that_only_wait_do_not_compete() -> None:
    peek = "move p <- acc @ MTE1 phase = Partial; sync_src 0: MTE1 -> FIX; sync_dst 0: MTE1 -> FIX"
    assert execute(sections(f"{FINAL}; {PEEK}; {peek}; {STORE}", "", ACC)).clean


def test_a_final_read_competes_with_every_read_before_it() -> None:
    """The last read but one is ordered, the one before it is not."""
    run = execute(sections(f"{FINAL}; move p <- acc @ MTE1 phase = Partial; {PEEK}; {STORE}", "", ACC))
    assert {c.what for c in run.contested} == {"read"}
