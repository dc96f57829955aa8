"""Are values, messages, phases and hangs called by their names, at the right place?"""

from __future__ import annotations

from collections.abc import Callable

from fencepost.facts import Fact
from fencepost.findings import Severity
from fencepost.search import Outcome

Searcher = Callable[[str], Outcome]


def facts(outcome: Outcome) -> list[tuple[str, int]]:
    """Codes and lines."""
    return sorted((s.fact.code, s.fact.span.line) for s in outcome.facts)


def only(outcome: Outcome) -> Fact:
    (seen,) = outcome.facts
    return seen.fact


def test_index_of_an_event_tuple_and_of_a_ring(search: Searcher) -> None:
    outcome = search(
        """
        kernel indices():
            IDS = (0, 1)
            ring ctx[2](task)

            section cube:
                for t in range(1):
                    set_cross_core IDS[t + 5] @ FIX
                    x = ctx[t - 3].task

            section vector:
                wait_cross_core 0 @ V
        """
    )
    data = [dict(s.fact.values) for s in outcome.facts if s.fact.code == "101"]
    assert [(d["name"], d["index"], d["depth"]) for d in data] == [("IDS", "5", "2"), ("ctx", "-3", "2")]


def test_conditions_and_operands_are_shown_as_written(search: Searcher) -> None:
    outcome = search(
        """
        kernel conditions(n):
            assume n >= 0

            section vector:
                assert n % 2 == 0
                x = (n - 1) % 3
                y = 5 // n
        """
    )
    data = {(s.fact.code, s.fact.span.line): dict(s.fact.values) for s in outcome.facts}
    assert data["105", 6]["condition"] == "n % 2 == 0"
    assert data["104", 7]["detail"].startswith("(n - 1) % 3: the left operand of % is -1")
    assert data["104", 8]["detail"] == "5 // n: the right operand of // is 0"


MESSAGE = """
    kernel message():
        fifo down: cube -> vector, slots = 2
        fifo up: vector -> cube, slots = 2

        section cube:
            tpush_to_aiv a
            r <- tpop_from_aiv
            tfree_to_aiv r

        section vector:
            s <- tpop_from_aic
            {body}
            tpush_to_aic e
"""


def test_uses_after_a_free(search: Searcher) -> None:
    free = "tfree_to_aic s"
    assert facts(search(MESSAGE.format(body=f"exp e <- s @ V\n            {free}"))) == []
    late = only(search(MESSAGE.format(body=f"{free}\n            exp e <- s @ V")))
    assert (late.code, late.span.line) == ("707", 14)
    assert [r.message.split(":")[0] for r in late.related] == ["freed here"]
    twice = only(search(MESSAGE.format(body=f"exp e <- s @ V\n            {free}\n            {free}")))
    assert twice.code == "707" and "before" in dict(twice.values)["detail"]
    pushed = only(search(MESSAGE.format(body=free).replace("tpush_to_aic e", "tpush_to_aic s")))
    assert (pushed.code, pushed.span.line) == ("707", 14)


def test_a_use_after_a_free_that_does_nothing_is_a_warning(search: Searcher) -> None:
    free = "tfree_to_aic s"
    on_a2 = MESSAGE.replace("message():", "message():\n        target a2")
    assert facts(search(on_a2.format(body=f"exp e <- s @ V\n            {free}"))) == []
    assert facts(search(on_a2.format(body="exp e <- s @ V"))) == []
    too_early = f"{free}\n            exp e <- s @ V"
    twice = f"exp e <- s @ V\n            {free}\n            {free}"
    for body, line in ((too_early, 15), (twice, 16)):
        late = only(search(on_a2.format(body=body)))
        assert (late.code, late.span.line, late.severity) == ("707", line, Severity.WARNING)
        assert "harmless on a2" in dict(late.values)["detail"]


def test_a_new_message_of_the_same_name_is_not_freed(search: Searcher) -> None:
    outcome = search(
        """
        kernel loop(n):
            assume n >= 0
            fifo down: cube -> vector, slots = 2

            section cube:
                for t in range(n):
                    tpush_to_aiv a

            section vector:
                for t in range(n):
                    s <- tpop_from_aic
                    exp e <- s @ V
                    tfree_to_aic s
        """
    )
    assert facts(outcome) == []


def test_sub_core_that_does_not_pop(search: Searcher) -> None:
    fact = only(
        search(
            """
            kernel one_pops(n):
                assume n >= 0
                fifo down: cube -> vector, slots = 2

                section cube:
                    for t in range(n):
                        tpush_to_aiv a

                section vector:
                    if sub == 0:
                        for t in range(n):
                            s <- tpop_from_aic
                            exp e <- s @ V
                            tfree_to_aic s
            """
        )
    )
    assert (fact.code, fact.span.line) == ("708", 13)
    assert "aiv1 pops 0 messages and aiv0 1" in dict(fact.values)["detail"]


def test_slot_that_is_never_freed(search: Searcher) -> None:
    text = """
        kernel never_freed():
            fifo down: cube -> vector, slots = 2

            section cube:
                for t in range({n}):
                    tpush_to_aiv a

            section vector:
                for t in range({n}):
                    s <- tpop_from_aic
                    exp e <- s @ V
    """
    for n, words in ((1, "1 message popped and never freed"), (3, "3 messages popped, 0 freed")):
        fact = only(search(text.format(n=n)))
        assert (fact.code, fact.span.line) == ("707", 11) and words in dict(fact.values)["detail"]


def test_deadlock_of_two_rings_is_one_finding_with_advice(search: Searcher) -> None:
    outcome = search(
        """
        kernel ahead():
            fifo down: cube -> vector, slots = 1
            fifo up: vector -> cube, slots = 1

            section cube:
                for t in range(4):
                    tpush_to_aiv a
                for t in range(4):
                    r <- tpop_from_aiv
                    tfree_to_aiv r

            section vector:
                for t in range(4):
                    s <- tpop_from_aic
                    exp e <- s @ V
                    tfree_to_aic s
                    tpush_to_aic e
        """
    )
    fact = only(outcome)
    assert (fact.code, fact.span.line) == ("702", 8)
    assert dict(fact.values)["detail"].endswith("2 slots in down and 2 slots in up would do for these values")


def test_slot_count_is_told_once_at_the_ring(search: Searcher) -> None:
    outcome = search(
        """
        kernel five(n):
            assume n >= 0
            fifo down: cube -> vector, slots = 5

            section cube:
                for t in range(n):
                    tpush_to_aiv a

            section vector:
                for t in range(n):
                    s <- tpop_from_aic
                    tfree_to_aic s
        """
    )
    assert facts(outcome) == [("706", 4)]
    assert only(outcome).static


def test_one_sided_phase_is_one_finding_per_row(search: Searcher) -> None:
    outcome = search(
        """
        kernel plain_store(n):
            assume n >= 0
            buffer acc in Acc

            section cube:
                for t in range(n):
                    matmul acc <- a, b @ M phase = Final
                    store out <- acc @ FIX
        """
    )
    assert facts(outcome) == [("208", 9), ("801", 9)]
    assert len({s.fact.cause for s in outcome.facts}) == 1


def test_left_phase_is_told_though_something_else_races(search: Searcher) -> None:
    outcome = search(
        """
        kernel two_faults():
            buffer acc in Acc
            buffer s in Vec

            section cube:
                matmul acc <- a, b @ M phase = Final
                store out <- acc @ FIX phase = Partial
                move s <- c @ MTE1

            section vector:
                exp y <- s @ V
        """
    )
    assert {code for code, _ in facts(outcome)} == {"201", "803"}


def test_flag_that_nobody_sets(search: Searcher) -> None:
    outcome = search(
        """
        kernel no_src():
            buffer a in Vec

            section vector:
                load a <- x @ MTE2
                sync_dst 0: MTE2 -> V
                add z <- a @ V
        """
    )
    assert facts(outcome) == [("301", 7), ("401", 7)]


def test_flags_of_both_slots_are_one_finding(search: Searcher) -> None:
    outcome = search(
        """
        kernel undrained():
            section vector:
                for i in range(2):
                    sync_src i: V -> MTE2
        """
    )
    assert dict(only(outcome).values)["flag"] == "flags 0, 1 V -> MTE2 of aiv0, aiv1"


def test_ids_and_modes_are_told_per_statement(search: Searcher) -> None:
    outcome = search(
        """
        kernel ids():
            target a3
            buffer s in Vec

            section cube:
                for t in range(3):
                    set_cross_core 12 @ FIX

            section vector:
                for t in range(3):
                    wait_cross_core 12 @ V
        """
    )
    assert facts(outcome) == [("603", 8), ("603", 12)]


def test_contested_waits_name_the_schedule_that_hangs(search: Searcher) -> None:
    outcome = search(
        """
        kernel drain_elsewhere(n):
            assume n >= 0
            buffer tile in Vec

            section cube:
                for t in range(n):
                    wait_cross_core 1 @ FIX
                    move tile <- x @ FIX
                    set_cross_core 0 @ FIX
                wait_cross_core 1 @ M

            section vector:
                set_cross_core 1 @ V
                for t in range(n):
                    wait_cross_core 0 @ V
                    exp y <- tile @ V
                    set_cross_core 1 @ V
        """
    )
    fact = next(s.fact for s in outcome.facts if s.fact.code == "307")
    assert fact.severity is None and "in some schedule" in dict(fact.values)["what"]
