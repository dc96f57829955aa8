"""Is every fault told in its rows, once per cause, at its smallest values, with the other rows related to it?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost.facts import Fact
from fencepost.search import Outcome

Searcher = Callable[[str], Outcome]
Builder = Callable[..., str]


def told(outcome: Outcome) -> dict[str, str]:
    """Code -> smallest values."""
    codes = [s.fact.code for s in outcome.facts]
    assert len(codes) == len(set(codes)), codes
    return {s.fact.code: str(s.witness) for s in outcome.facts}


def fact(outcome: Outcome, code: str) -> Fact:
    return next(s.fact for s in outcome.facts if s.fact.code == code)


DRAIN = [("wait_cross_core RELEASE[0] @ FIX\n", "pass\n"), ("wait_cross_core RELEASE[1] @ FIX", "pass")]


def test_correct_kernel_has_no_facts(search: Searcher, hand_over: Builder) -> None:
    outcome = search(hand_over())
    assert not outcome.facts and outcome.clean == outcome.tried > 30 and outcome.exhausted


def test_missing_drain_is_one_cause_in_three_rows(search: Searcher, hand_over: Builder) -> None:
    outcome = search(hand_over(cube=DRAIN))
    assert told(outcome) == {"206": "n = 0", "302": "n = 0", "401": "n = 0"}
    assert len({s.fact.cause for s in outcome.facts}) == 1
    assert "events 2, 3 (RELEASE) aiv0, aiv1 -> cube" in dict(fact(outcome, "206").values)["channel"]
    for code in ("302", "401"):
        assert [r.message for r in fact(outcome, code).related] == ["same cause: FP206"]


def test_two_forgotten_drains_are_two_causes(search: Searcher) -> None:
    outcome = search(
        """
        kernel two_tensors(n):
            assume n >= 0
            buffer s in Vec
            buffer w in Vec

            section cube:
                for t in range(n):
                    wait_cross_core 2 @ FIX
                    move s <- a @ FIX
                    set_cross_core 0 @ FIX
                    wait_cross_core 3 @ FIX
                    move w <- b @ FIX
                    set_cross_core 1 @ FIX

            section vector:
                set_cross_core 2 @ V
                set_cross_core 3 @ V
                for t in range(n):
                    wait_cross_core 0 @ V
                    exp y <- s @ V
                    set_cross_core 2 @ V
                    wait_cross_core 1 @ V
                    add z <- w @ V
                    set_cross_core 3 @ V
        """
    )
    codes = [s.fact.code for s in outcome.facts]
    assert sorted(codes) == ["206", "206", "302", "302", "401", "401"]
    assert len({s.fact.cause for s in outcome.facts}) == 2


def test_leftover_release_refutes_row_2_whatever_else_is_wrong(search: Searcher, hand_over: Builder) -> None:
    twice = ("    set_cross_core RELEASE[t % 2] @ V", "    set_cross_core RELEASE[t % 2] @ V\n" * 2)
    early = ("    exp p <- qk[t % 2] @ V\n", "    set_cross_core RELEASE[t % 2] @ V\n    exp p <- qk[t % 2] @ V\n")
    for change in (twice, early):
        outcome = search(hand_over(vector=[change]))
        found = told(outcome)
        assert found["206"] == found["302"] == found["401"] == "n = 1"
        assert {"202", "204"} & found.keys()  # and the overwrite that the surplus signal allows


def test_removing_a_signal_is_the_cause_of_an_overwrite(search: Searcher, hand_over: Builder) -> None:
    line = "    set_cross_core RELEASE[t % 2] @ V"
    outcome = search(hand_over(vector=[(line, f"{line}\n{line}")]))
    overwrite = fact(outcome, "202")
    assert any("without it the accesses are in order" in r.message for r in overwrite.related)
    assert overwrite.cause == fact(outcome, "401").cause


@pytest.mark.parametrize(
    ("cube", "vector", "expected"),
    [
        ([("    set_cross_core READY[t % 2] @ FIX\n", "")], [("    wait_cross_core READY[t % 2] @ V\n", "")], "201"),
        ([], [("    wait_cross_core READY[t % 2] @ V\n    exp p <- qk[t % 2] @ V", "    exp p <- qk[t % 2] @ V\n"
               "    wait_cross_core READY[t % 2] @ V")], "205"),
        ([("    move qk[t % 2] <- x @ FIX\n    set_cross_core READY[t % 2] @ FIX",
           "    set_cross_core READY[t % 2] @ FIX\n    move qk[t % 2] <- x @ FIX")], [], "204"),
        ([], [("wait_cross_core READY[t % 2] @ V", "wait_cross_core READY[t % 2] @ MTE2")], "207"),
    ],
)  # fmt: skip
def test_position_of_a_signal_is_named_by_its_repair(
    search: Searcher,
    hand_over: Builder,
    cube: list[tuple[str, str]],
    vector: list[tuple[str, str]],
    expected: str,
) -> None:
    outcome = search(hand_over(cube=cube, vector=vector))
    row2 = [s for s in outcome.facts if s.fact.code.startswith("2")]
    assert [(s.fact.code, str(s.witness)) for s in row2] == [(expected, "n = 1")]


def test_ids_are_shown_as_written(search: Searcher, hand_over: Builder) -> None:
    outcome = search(hand_over(vector=[("wait_cross_core READY[t % 2] @ V", "wait_cross_core READY[t % 2] @ MTE2")]))
    assert dict(fact(outcome, "207").values)["sync"] == "wait_cross_core READY[t % 2] on MTE2"


def test_all_readers_of_one_write_are_one_finding(search: Searcher) -> None:
    outcome = search(
        """
        kernel no_ready():
            buffer s in Vec

            section cube:
                move s <- a @ FIX

            section vector:
                exp y <- s @ V
                add z <- s @ V
                store out <- s @ MTE3
        """
    )
    assert told(outcome) == {"201": "always"}
    assert [r.message.split(":")[0] for r in fact(outcome, "201").related] == ["the write", "likewise", "likewise"]


SHORT = [("for t in range(n):\n    wait_cross_core READY", "for t in range(n - 1):\n    wait_cross_core READY")]


def test_bound_that_differs_explains_everything(search: Searcher, hand_over: Builder) -> None:
    outcome = search(hand_over(vector=SHORT))
    assert told(outcome) == {"504": "n = 1", "301": "n = 1", "401": "n = 1"}
    assert len({s.fact.cause for s in outcome.facts}) == 1
    data = dict(fact(outcome, "504").values)
    assert data["bound"].startswith("t in range(n - 1)") and data["other"].startswith("t in range(n)")


def test_bound_is_compared_with_the_loop_at_its_depth(search: Searcher) -> None:
    outcome = search(
        """
        kernel inner(rows, cols):
            assume rows >= 0 and cols >= 0
            buffer s in GM

            section cube:
                for i in range(rows):
                    for j in range(cols):
                        set_cross_core 0 @ FIX
                        wait_cross_core 1 @ FIX

            section vector:
                for i in range(rows):
                    for j in range(rows):
                        wait_cross_core 0 @ V
                        set_cross_core 1 @ V
        """
    )
    assert fact(outcome, "504").span.line == 14
    assert told(outcome)["504"] == "rows = 1, cols = 0"


def test_hang_is_told_once(search: Searcher, hand_over: Builder) -> None:
    outcome = search(hand_over(cube=[("wait_cross_core RELEASE[1] @ FIX", "wait_cross_core 9 @ FIX")]))
    assert told(outcome) == {"301": "n = 0", "401": "n = 0"}
    likewise = [r.message for r in fact(outcome, "401").related if r.message.startswith("likewise")]
    assert likewise == ["likewise event 3 (RELEASE) aiv0, aiv1 -> cube: 1 set, 0 awaited"]


def test_cycle_names_both_sub_cores_once(search: Searcher, hand_over: Builder) -> None:
    ahead = [("set_cross_core RELEASE[0] @ V\n", "pass\n"), ("set_cross_core RELEASE[1] @ V\n", "pass\n")]
    outcome = search(hand_over(cube=DRAIN, vector=ahead))
    assert told(outcome)["306"] == "n = 1"
    detail = dict(fact(outcome, "306").values)["detail"]
    assert detail.count("waits for") == 2 and "of aiv0 and aiv1 waits for" in detail


def test_signal_of_another_buffer(search: Searcher) -> None:
    text = """
        kernel swapped():
            S = {s}
            W = {w}
            buffer s in Vec
            buffer w in Vec

            section cube:
                move s <- a @ FIX
                set_cross_core S @ FIX
                move w <- b @ FIX
                set_cross_core W @ FIX

            section vector:
                wait_cross_core {first} @ V
                scale y <- w @ V
                wait_cross_core {second} @ V
                add z <- s, y @ V
        """
    swapped = search(text.format(s=0, w=1, first="S", second="W"))
    assert told(swapped) == {"303": "always", "201": "always"}
    assert fact(swapped, "201").cause == fact(swapped, "303").cause
    assert "announces s, w is used after the wait" in dict(fact(swapped, "303").values)["detail"]
    shared = search(text.format(s=0, w=0, first="W", second="S"))
    assert told(shared) == {"305": "always", "201": "always"}
    assert dict(fact(shared, "305").values) == {
        "channel": "event 0 (W) cube -> aiv0",
        "first": "line 10 (s)",
        "second": "line 12 (w)",
    }


def test_two_waits_before_two_reads_are_no_wrong_pairing(search: Searcher) -> None:
    outcome = search(
        """
        kernel wrong_pipe():
            buffer s in Vec
            buffer w in Vec

            section cube:
                move s <- a @ FIX
                set_cross_core 0 @ M
                move w <- b @ FIX
                set_cross_core 1 @ FIX

            section vector:
                wait_cross_core 0 @ V
                wait_cross_core 1 @ V
                wait_cross_core 2 @ V
                scale y <- w @ V
                add z <- s, y @ V
        """.replace("                wait_cross_core 2 @ V\n", "")
    )
    assert not {"303", "305"} & told(outcome).keys()


def test_round_that_was_taken_twice(search: Searcher) -> None:
    outcome = search(
        """
        kernel skips_a_round():
            buffer s in Vec

            section cube:
                for t in range(2):
                    move s <- a @ FIX task = t
                    set_cross_core 0 @ FIX

            section vector:
                wait_cross_core 0 @ V
                wait_cross_core 0 @ V
                exp y <- s @ V task = 0
        """
    )
    found = told(outcome)
    assert found["303"] == "always"
    assert dict(fact(outcome, "303").values)["detail"] == "s[0] then holds round 1, round 0 is meant"


def test_slot_fault_explains_the_unordered_read(search: Searcher, hand_over: Builder) -> None:
    outcome = search(hand_over(vector=[("exp p <- qk[t % 2] @ V", "exp p <- qk[(t + 1) % 2] @ V")]))
    assert told(outcome) == {"102": "n = 1", "201": "n = 1"}
    assert fact(outcome, "201").cause == fact(outcome, "102").cause


def test_sub_cores_that_meet_are_told_in_both_rows(search: Searcher) -> None:
    outcome = search(
        """
        kernel both_write():
            buffer p in Mat

            section vector:
                insert p <- h @ MTE3
                set_cross_core 0 @ MTE3

            section cube:
                wait_cross_core 0 @ MTE1
                move left <- p @ MTE1
        """
    )
    assert told(outcome) == {"602": "always", "203": "always"}


def test_wait_of_one_sub_core_only(search: Searcher) -> None:
    outcome = search(
        """
        kernel one_waits():
            section cube:
                set_cross_core 0 @ FIX

            section vector:
                if sub == 0:
                    wait_cross_core 0 @ V
        """
    )
    assert told(outcome) == {"601": "always", "302": "always", "401": "always"}
    assert dict(fact(outcome, "601").values)["agent"] == "aiv1"


def test_unicast_reaches_one_sub_core(search: Searcher) -> None:
    outcome = search(
        """
        kernel wrong_lane():
            section cube:
                set_cross_core 0 @ FIX mode = UNICAST_BLOCK lane = 0

            section vector:
                if sub == 1:
                    wait_cross_core 0 @ V mode = UNICAST_BLOCK
        """
    )
    assert {"601", "301", "401"} <= told(outcome).keys()
    assert fact(outcome, "601").cause == fact(outcome, "301").cause


def test_sync_all_counts_differ_though_something_else_hangs(search: Searcher) -> None:
    outcome = search(
        """
        kernel uneven():
            section cube:
                wait_cross_core 0 @ S
                sync_all

            section vector:
                sync_all
                sync_all
        """
    )
    assert {"606", "301"} <= told(outcome).keys()
