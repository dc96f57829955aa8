"""Do cross-core signals count, block and match as the execution model says?"""

from __future__ import annotations

import pytest

from campaigns.texts import blocked, execute, kernel, peaks, races, sections
from fencepost import ir


def test_a_cube_set_reaches_both_sub_cores() -> None:
    run = execute(sections("set_cross_core 3 @ FIX", "wait_cross_core 3 @ V"))
    assert run.clean
    assert peaks(run) == {"event 3 cube -> aiv0": 1, "event 3 cube -> aiv1": 1}


def test_a_cube_wait_takes_one_signal_of_each_sub_core() -> None:
    run = execute(sections("wait_cross_core 3 @ FIX", "if sub == 0:\n    set_cross_core 3 @ V"))
    assert blocked(run) == ["aic FIX channel"]
    (hang,) = run.blocked
    assert [str(run.channels[c]) for c in hang.on] == ["event 3 aiv1 -> cube"]
    assert not run.leftovers, "a hanging run leaves nothing at its end, for it has none"


def test_directions_with_one_id_are_different_channels() -> None:
    run = execute(
        sections("set_cross_core 1 @ FIX; wait_cross_core 1 @ FIX", "wait_cross_core 1 @ V; set_cross_core 1 @ V")
    )
    assert run.clean
    assert len(run.channels) == 4


def test_a_wait_stalls_its_pipe_only() -> None:
    run = execute(
        sections(
            "wait_cross_core 0 @ FIX; matmul x <- a @ M; set_cross_core 1 @ M; nothing y <- x @ FIX",
            "wait_cross_core 1 @ V; set_cross_core 0 @ V",
        )
    )
    assert run.clean


def test_a_wait_on_the_scalar_pipe_stalls_the_agent() -> None:
    run = execute(
        sections(
            "wait_cross_core 0 @ S; set_cross_core 1 @ M",
            "wait_cross_core 1 @ V; set_cross_core 0 @ V",
        )
    )
    assert blocked(run) == ["aic S channel", "aiv0 V channel", "aiv1 V channel"]


def test_a_set_executes_behind_what_its_pipe_was_given() -> None:
    late = "wait_cross_core 0 @ V; set_cross_core 1 @ V"
    assert blocked(execute(sections("wait_cross_core 1 @ M; set_cross_core 0 @ M", late)))
    assert execute(sections("wait_cross_core 1 @ M; set_cross_core 0 @ FIX", late)).clean


@pytest.mark.parametrize(("ident", "lane"), [("4", 0), ("4 lane = 1", 1), ("20", 1), ("4 lane = 0", 0)])
def test_unicast_names_one_sub_core(ident: str, lane: int) -> None:
    number, _, extra = ident.partition(" ")
    run = execute(
        sections(
            f"set_cross_core {number} @ FIX mode = UNICAST_BLOCK {extra}",
            f"if sub == {lane}:\n    wait_cross_core 4 @ V mode = UNICAST_BLOCK",
        )
    )
    assert run.clean
    assert peaks(run) == {f"event 4 cube -> aiv{lane}": 1}


def test_unicast_wait_needs_one_signal_only() -> None:
    run = execute(
        sections(
            "wait_cross_core 20 @ FIX mode = UNICAST_BLOCK",
            "if sub == 1:\n    set_cross_core 4 @ V mode = UNICAST_BLOCK",
        )
    )
    assert run.clean


def test_inter_subblock_is_a_barrier_of_the_vector_sub_cores() -> None:
    barrier = "set_cross_core 2 @ V mode = INTER_SUBBLOCK; wait_cross_core 2 @ V mode = INTER_SUBBLOCK"
    shared = "buffer x[2] in GM"
    run = execute(sections("", f"write x[sub] <- () @ V; {barrier}; read () <- x[1 - sub] @ V", shared))
    assert run.clean
    assert len(run.channels) == 4, "each participant signals every participant, itself included"
    without = execute(sections("", "write x[sub] <- () @ V; read () <- x[1 - sub] @ V", shared))
    assert without.races


def test_inter_subblock_hangs_if_one_does_not_come() -> None:
    run = execute(
        sections(
            "",
            "if sub == 0:\n    set_cross_core 2 @ V mode = INTER_SUBBLOCK\nwait_cross_core 2 @ V mode = INTER_SUBBLOCK",
        )
    )
    assert blocked(run) == ["aiv0 V channel", "aiv1 V channel"]


def test_inter_block_needs_the_set_of_every_core_of_the_kind() -> None:
    barrier = "set_cross_core 5 @ FIX mode = INTER_BLOCK; wait_cross_core 5 @ FIX mode = INTER_BLOCK"
    assert execute(sections(barrier)).clean
    assert blocked(execute(sections("wait_cross_core 5 @ FIX mode = INTER_BLOCK"))) == ["aic FIX channel"]
    both = barrier.replace("FIX", "V")
    assert execute(sections(barrier, both)).clean
    assert len(execute(sections("", both)).channels) == 4


def test_the_largest_number_pending_comes_from_the_order_not_from_one_schedule() -> None:
    free_running = execute(
        """
        kernel stream(n):
            section cube:
                for t in range(n):
                    set_cross_core 0 @ FIX
            section vector:
                for t in range(n):
                    wait_cross_core 0 @ V
        """,
        n=15,
    )
    assert set(peaks(free_running).values()) == {15}
    assert free_running.clean
    held_back = execute(
        """
        kernel lockstep(n):
            section cube:
                for t in range(n):
                    set_cross_core 0 @ FIX
                    wait_cross_core 1 @ FIX
            section vector:
                for t in range(n):
                    wait_cross_core 0 @ V
                    set_cross_core 1 @ V
        """,
        n=40,
    )
    assert set(peaks(held_back).values()) == {1}


def test_a_wait_elsewhere_bounds_what_is_pending() -> None:
    """Event 0 is awaited on MTE2, event 1 tells of it through V: the order goes through a flag."""
    chained = sections(
        "set_cross_core 0 @ FIX; wait_cross_core 1 @ FIX; set_cross_core 0 @ FIX",
        """
        wait_cross_core 0 @ MTE2
        sync_src 0: MTE2 -> V
        sync_dst 0: MTE2 -> V
        set_cross_core 1 @ V
        wait_cross_core 0 @ MTE2
        """,
    )
    assert peaks(execute(chained))["event 0 cube -> aiv0"] == 1
    loose = sections(
        "set_cross_core 0 @ FIX; wait_cross_core 1 @ FIX; set_cross_core 0 @ FIX",
        "wait_cross_core 0 @ MTE2; set_cross_core 1 @ V; wait_cross_core 0 @ MTE2",
    )
    assert peaks(execute(loose))["event 0 cube -> aiv0"] == 2


@pytest.mark.parametrize(("n", "over"), [(15, 0), (16, 2), (40, 2)])
def test_the_sixteenth_pending_signal_is_an_error(n: int, over: int) -> None:
    run = execute(
        """
        kernel stream(n):
            section cube:
                for t in range(n):
                    set_cross_core 0 @ FIX
            section vector:
                for t in range(n):
                    wait_cross_core 0 @ V
        """,
        n=n,
    )
    assert len(run.overflows) == over
    assert all(o.pending == 16 for o in run.overflows)
    assert not run.blocked, "a full counter does not block"


def test_signals_that_nobody_takes_are_left_over() -> None:
    run = execute(sections("set_cross_core 0 @ FIX; set_cross_core 0 @ FIX", "wait_cross_core 0 @ V"))
    assert [len(x.ops) for x in run.leftovers] == [1, 1]
    assert all(x.ops[0].number == 1 for x in run.leftovers)


def test_ids_modes_and_reserved_ids_are_checked_against_the_target() -> None:
    def kinds(*lines: str, target: str = "a5") -> list[str]:
        run = execute(sections(";".join(lines), "", f"target {target}" if target != "a5" else ""))
        return [i.kind for op in run.illegal for i in op.effect.illegal]

    assert kinds("set_cross_core 15 @ FIX") == []
    assert kinds("set_cross_core 16 @ FIX") == ["range"]
    assert kinds("set_cross_core 11 @ FIX", target="a3") == ["range"]
    assert kinds("set_cross_core 10 @ FIX", target="a2") == []
    assert kinds("set_cross_core 12 @ FIX", "sync_all") == ["reserved"]
    assert kinds("set_cross_core 12 @ FIX") == []
    assert kinds("set_cross_core 1 @ FIX mode = UNICAST_BLOCK", target="a3") == ["mode"]
    assert kinds("sync_src 8: M -> FIX") == ["range"]
    assert kinds("mutex_lock 32 @ M", "mutex_unlock 32 @ M") == ["range", "range"]


# ------------------------------------------------------------------------------------------ contested channels

DRAIN = """
    kernel drain(n):
        buffer qk[2] in Vec
        section cube:
            for t in range(n):
                wait_cross_core 2 + t % 2 @ FIX
                move qk[t % 2] <- x @ FIX
                set_cross_core t % 2 @ FIX
            wait_cross_core 2 @ FIX
            wait_cross_core 3 @ {pipe}
        section vector:
            set_cross_core 2 @ V
            set_cross_core 3 @ V
            for t in range(n):
                wait_cross_core t % 2 @ V
                softmax p <- qk[t % 2] @ V
                set_cross_core 2 + t % 2 @ V
    """


@pytest.mark.parametrize("n", [0, 1])
def test_two_pipes_that_never_compete_are_not_contested(n: int) -> None:
    assert execute(DRAIN.format(pipe="M"), n=n).clean


def test_two_unordered_waiting_pipes_are_contested() -> None:
    run = execute(DRAIN.format(pipe="M"), n=2)
    assert {c.what for c in run.contested} == {"wait"}
    assert not execute(DRAIN.format(pipe="FIX"), n=2).contested


def test_what_another_pipe_knew_counts_not_what_its_own_token_tells() -> None:
    """M waits for event 0 after FIX did, through a flag: ordered, though on two pipes."""
    ordered = sections(
        "wait_cross_core 0 @ FIX; sync_src 0: FIX -> M; sync_dst 0: FIX -> M; wait_cross_core 0 @ M",
        "set_cross_core 0 @ V; set_cross_core 0 @ V",
    )
    assert execute(ordered).clean


def test_unordered_setters_are_contested() -> None:
    run = execute(
        sections("set_cross_core 0 @ FIX; set_cross_core 0 @ M", "wait_cross_core 0 @ V; wait_cross_core 0 @ V")
    )
    assert {c.what for c in run.contested} == {"set"}


def test_contested_setters_order_only_what_must_be() -> None:
    """After one of two signals V may not read what FIX wrote; after both it may."""
    cube = "write x <- () @ FIX; set_cross_core 0 @ FIX; set_cross_core 0 @ M"
    one = execute(sections(cube, "wait_cross_core 0 @ V; read () <- x @ V; wait_cross_core 0 @ V", "buffer x in Vec"))
    assert races(one) == {("write-read", "write", "read")}
    two = execute(sections(cube, "wait_cross_core 0 @ V; wait_cross_core 0 @ V; read () <- x @ V", "buffer x in Vec"))
    assert not two.races


def test_a_section_that_is_missing_does_nothing() -> None:
    run = execute(sections("matmul x <- a @ M"))
    assert list(run.issued) == ["aic"]
    both = kernel(
        """
        kernel outside(n):
            set_cross_core 0 @ S mode = INTER_BLOCK
            wait_cross_core 0 @ S mode = INTER_BLOCK
        """
    )
    run = execute(both, n=1)
    assert run.clean
    assert list(run.issued) == ["aic", "aiv0", "aiv1"]
    assert all(isinstance(op.stmt, (ir.SetCross, ir.WaitCross)) for ops in run.issued.values() for op in ops)
