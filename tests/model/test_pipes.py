"""Do flags, mutexes and barriers order the pipes of one core, and nothing else?"""

from __future__ import annotations

import pytest

from campaigns.texts import blocked, execute, races, sections

PLAIN = "buffer x in Mat"


def raced(cube: str, declarations: str = PLAIN) -> bool:
    """Whether a cube program that must run to its end has unordered accesses."""
    run = execute(sections(cube, "", declarations))
    assert not run.blocked
    return bool(run.races)


def test_two_pipes_are_unordered_and_one_is_not() -> None:
    assert raced("load x <- a @ MTE2; move y <- x @ MTE1")
    assert not raced("load x <- a @ MTE2; move y <- x @ MTE2")


def test_an_operation_on_the_scalar_pipe_comes_before_what_is_issued_after_it() -> None:
    assert not raced("load x <- a @ S; move y <- x @ MTE1")
    assert raced("load x <- a @ MTE1; move y <- x @ S"), "the scalar unit does not wait for the other pipes"


def test_a_flag_orders_its_two_pipes() -> None:
    assert not raced("load x <- a @ MTE2; sync_src 0: MTE2 -> MTE1; sync_dst 0: MTE2 -> MTE1; move y <- x @ MTE1")
    assert raced("load x <- a @ MTE2; sync_src 0: MTE2 -> M; sync_dst 0: MTE2 -> M; move y <- x @ MTE1")


def test_flags_chain_over_pipes() -> None:
    chain = (
        "load x <- a @ MTE2; sync_src 0: MTE2 -> M; sync_dst 0: MTE2 -> M; sync_src 0: M -> MTE1; sync_dst 0: M -> MTE1"
    )
    assert not raced(f"{chain}; move y <- x @ MTE1")


def test_flags_with_one_id_and_other_pipes_are_different() -> None:
    run = execute(sections("sync_src 0: MTE2 -> MTE1; sync_dst 0: MTE2 -> M"))
    assert blocked(run) == ["aic M channel"]


def test_flags_belong_to_one_agent() -> None:
    run = execute(sections("sync_src 0: MTE2 -> V", "sync_dst 0: MTE2 -> V"))
    assert blocked(run) == ["aiv0 V channel", "aiv1 V channel"]


def test_a_flag_that_is_still_set_must_not_be_set_again() -> None:
    twice = "sync_src 0: MTE2 -> MTE1; sync_src 0: MTE2 -> MTE1; sync_dst 0: MTE2 -> MTE1; sync_dst 0: MTE2 -> MTE1"
    assert len(execute(sections(twice)).overflows) == 1
    alternating = (
        "sync_src 0: MTE2 -> MTE1; sync_dst 0: MTE2 -> MTE1; sync_src 0: MTE2 -> MTE1; sync_dst 0: MTE2 -> MTE1"
    )
    assert len(execute(sections(alternating)).overflows) == 1, "MTE1 may be late: nothing orders the second set"
    once = "sync_src 0: MTE2 -> MTE1; sync_dst 0: MTE2 -> MTE1"
    answer = "sync_src 1: MTE1 -> MTE2; sync_dst 1: MTE1 -> MTE2"
    assert execute(sections(f"{once}; {answer}; {once}")).clean


def test_a_flag_must_be_drained() -> None:
    run = execute(sections("sync_src 0: MTE2 -> MTE1"))
    assert len(run.leftovers) == 1


# ------------------------------------------------------------------------------------------------ mutexes


def test_a_lock_waits_for_earlier_unlocks_on_other_pipes() -> None:
    locked = "mutex_lock 1 @ MTE2; load x <- a @ MTE2; mutex_unlock 1 @ MTE2"
    assert not raced(f"{locked}; mutex_lock 1 @ MTE1; move y <- x @ MTE1; mutex_unlock 1 @ MTE1")
    assert raced(f"{locked}; mutex_lock 2 @ MTE1; move y <- x @ MTE1; mutex_unlock 2 @ MTE1")
    assert raced(f"{locked}; move y <- x @ MTE1")


def test_a_lock_does_not_wait_for_unlocks_issued_later() -> None:
    """The hand-over of a mutex follows the program, never timing."""
    first = "mutex_lock 1 @ MTE1; move y <- x @ MTE1; mutex_unlock 1 @ MTE1"
    then = "mutex_lock 1 @ MTE2; load x <- a @ MTE2; mutex_unlock 1 @ MTE2"
    run = execute(sections(f"{first}; {then}", "", PLAIN))
    assert not run.races
    assert run.order[0].effect.pipe[1] == "MTE1"


def test_a_mutex_never_orders_two_agents() -> None:
    locked = "mutex_lock 1 @ {0}; {1} @ {0}; mutex_unlock 1 @ {0}"
    run = execute(
        sections(locked.format("FIX", "write x <- ()"), locked.format("V", "read () <- x"), "buffer x in Vec")
    )
    assert races(run) == {("write-read", "write", "read")}


def test_relocking_on_one_pipe_does_not_block() -> None:
    run = execute(sections("mutex_lock 1 @ M; mutex_lock 1 @ M; mutex_unlock 1 @ M"))
    assert not run.blocked


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("mutex_unlock 1 @ M", "unlocked"),
        ("mutex_lock 1 @ M", "held"),
        ("mutex_lock 1 @ M; mutex_lock 1 @ FIX; mutex_unlock 1 @ FIX", "relocked"),
    ],
)
def test_misused_mutexes_are_noted(text: str, kind: str) -> None:
    assert kind in [f.kind for f in execute(sections(text)).mutex_faults]


def test_auto_mutex_orders_operations_on_a_slot_with_an_id() -> None:
    work = "load x <- a @ MTE2; move y <- x @ MTE1; load x <- b @ MTE2"
    assert raced(work, "buffer x in Mat")
    assert not raced(work, "buffer x in Mat mutex (0)")
    assert raced(work, "option auto_mutex = off; buffer x in Mat mutex (0)")


def test_slots_have_their_own_mutexes() -> None:
    work = "load x[0] <- a @ MTE2; load x[1] <- b @ MTE2; move y <- x[0] @ MTE1"
    held = "wait_cross_core 0 @ MTE2; load x[1] <- b @ MTE2; move y <- x[0] @ MTE1; set_cross_core 1 @ MTE1"
    waits = "wait_cross_core 1 @ V; set_cross_core 0 @ V"
    apart, together = "buffer x[2] in Mat mutex (0, 1)", "buffer x[2] in Mat mutex (0, 0)"
    assert not raced(work, apart)
    assert not execute(sections(held, waits, apart)).blocked
    hang = blocked(execute(sections(held, waits, together)))
    assert hang == ["aic MTE1 lock", "aic MTE2 channel", "aiv0 V channel", "aiv1 V channel"]


def test_a_slot_can_hold_several_mutexes() -> None:
    shared = "buffer x in Mat mutex ((0, 1)); buffer y in Mat mutex (1)"
    run = execute(
        sections("wait_cross_core 0 @ MTE2; load x <- a @ MTE2; move z <- y @ MTE1", "wait_cross_core 1 @ V", shared)
    )
    assert "aic MTE1 lock" in blocked(run)


def test_targets_without_mutexes_have_no_automatic_order() -> None:
    run = execute(sections("load x <- a @ MTE2; move y <- x @ MTE1", "", "target a3; buffer x in Mat mutex (0)"))
    assert run.races


# ------------------------------------------------------------------------------------------------ barriers


def test_barrier_all_orders_every_pipe() -> None:
    assert not raced("load x <- a @ MTE2; barrier ALL; move y <- x @ MTE1")


def test_barrier_of_one_pipe_changes_nothing() -> None:
    assert raced("load x <- a @ MTE2; barrier MTE2; move y <- x @ MTE1")
    assert raced("load x <- a @ MTE2; barrier MTE1; move y <- x @ MTE1")


def test_barrier_all_is_of_one_agent() -> None:
    run = execute(sections("write x <- () @ FIX; barrier ALL", "barrier ALL; read () <- x @ V", "buffer x in Vec"))
    assert run.races


def test_sync_all_orders_all_agents() -> None:
    run = execute(sections("write x <- () @ FIX; sync_all", "sync_all; read () <- x @ V", "buffer x in Vec"))
    assert run.clean
    back = execute(sections("sync_all; write x <- () @ FIX", "read () <- x @ V; sync_all", "buffer x in Vec"))
    assert not back.races


def test_sync_all_waits_for_what_was_issued_before_it() -> None:
    run = execute(sections("wait_cross_core 0 @ FIX; sync_all", "sync_all; set_cross_core 0 @ V"))
    assert "aic FIX channel" in blocked(run)
    assert "aiv0 S meet" in blocked(run)


def test_sync_all_must_be_reached_equally_often() -> None:
    run = execute(sections("sync_all; sync_all", "sync_all"))
    assert blocked(run) == ["aic S meet"]
    guarded = execute(sections("sync_all", "if sub == 0:\n    sync_all"))
    assert blocked(guarded) == ["aic S meet", "aiv0 S meet"]
