"""What is wrong inside one core: is it told once, and not taken for a fault between cores?"""

from __future__ import annotations

from collections.abc import Callable

from fencepost.outcome import Outcome
from fencepost.refutation import refutation

Searcher = Callable[[str], Outcome]

TILE = """
kernel tile(n):
    assume n >= 0
    buffer v[2] in Mat
    buffer left in Left

    section cube:
        sync_src 2: MTE1 -> MTE2
        sync_src 3: MTE1 -> MTE2
        sync_src 0: M -> MTE1
        for t in range(n):
            sync_dst 2 + t % 2: MTE1 -> MTE2
            load v[t % 2] <- g @ MTE2
            {order}
            sync_dst 0: M -> MTE1
            move left <- v[t % 2] @ MTE1
            sync_src 2 + t % 2: MTE1 -> MTE2
            sync_src 1: MTE1 -> M
            sync_dst 1: MTE1 -> M
            matmul acc <- left @ M
            sync_src 0: M -> MTE1
        sync_dst 2: MTE1 -> MTE2
        sync_dst 3: MTE1 -> MTE2
        sync_dst 0: M -> MTE1
"""


def codes(outcome: Outcome) -> list[str]:
    return sorted(f.code for f in refutation(outcome).findings)


def test_a_flag_set_twice_for_want_of_an_order_has_its_cause(search: Searcher) -> None:
    outcome = search(TILE.format(order="pass"))
    assert codes(outcome) == ["208", "404"]
    race, flag = sorted(outcome.facts, key=lambda s: s.fact.code)
    assert race.fact.cause == flag.fact.cause
    assert any("FP208" in place.message for place in flag.fact.related)
    assert str(race.witness) == str(flag.witness) == "n = 1"


def test_a_flag_set_twice_is_shown_as_it_goes_wrong(search: Searcher) -> None:
    order = "sync_src 0: MTE2 -> MTE1\n            sync_dst 0: MTE2 -> MTE1"
    outcome = search(TILE.format(order=order))
    assert codes(outcome) == ["404"]
    (finding,) = refutation(outcome).findings
    assert [step.text.split(":")[0].split()[-2] for step in finding.trace] == ["sync_src", "sync_src", "sync_dst"]
    assert "nothing says that it is over by then" in finding.related[0].message


def test_a_race_inside_a_core_is_no_wrong_pairing(search: Searcher) -> None:
    outcome = search(
        """
        kernel out(n):
            assume n >= 0
            buffer qk[2] in Vec
            buffer o in Vec

            section cube:
                for t in range(n):
                    wait_cross_core 2 @ FIX
                    move qk[t % 2] <- x @ FIX
                    set_cross_core 0 @ FIX
                wait_cross_core 2 @ FIX

            section vector:
                set_cross_core 2 @ V
                for t in range(n):
                    wait_cross_core 0 @ V
                    cast o <- qk[t % 2] @ V
                    set_cross_core 2 @ V
                    sync_src 0: V -> MTE3
                    sync_dst 0: V -> MTE3
                    store g <- o @ MTE3
                    sync_src 1: MTE3 -> S
                    sync_dst 1: MTE3 -> S
        """.replace("sync_src 1: MTE3 -> S", "barrier MTE3").replace("sync_dst 1: MTE3 -> S", "pass")
    )
    assert codes(outcome) == ["208", "404"]


def test_a_counter_below_zero_is_one_finding(search: Searcher) -> None:
    outcome = search(
        """
        kernel last(n):
            assume n >= 0
            IDS = (0, 1)

            section cube:
                c = 0
                for t in range(n):
                    c = c + 1
                set_cross_core IDS[(c - 1) % 2] @ FIX
                k = (c - 2) % 2

            section vector:
                c = 0
                for t in range(n):
                    c = c + 1
                wait_cross_core IDS[(c - 1) % 2] @ V
        """
    )
    found = [f for f in refutation(outcome).findings if f.code == "104"]
    assert [str(f.witness) for f in found] == ["n = 0"]
    assert [place.message.split(":")[0] for place in found[0].related] == ["likewise", "likewise"]


def test_a_release_is_known_from_runs_with_trips(search: Searcher) -> None:
    outcome = search(
        """
        kernel ranges(n):
            assume n >= 0
            buffer qk in Vec

            section cube:
                for w in range(work(block), work(block + 1)):
                    for t in range((n + 127) // 128):
                        wait_cross_core 2 @ FIX
                        move qk <- x @ FIX
                        set_cross_core 0 @ FIX

            section vector:
                set_cross_core 2 @ V
                for w in range(work(block), work(block + 1)):
                    for t in range((n + 127) // 128):
                        wait_cross_core 0 @ V
                        exp p <- qk @ V
                        set_cross_core 2 @ V
        """
    )
    assert codes(outcome) == ["206", "302", "401"]


def test_a_race_of_two_buffers_names_both(search: Searcher) -> None:
    outcome = search(
        """
        kernel phases(n):
            assume n >= 0
            buffer scales in Vec at 0 size 64 mutex (1)
            buffer scores in Vec at 0 size 64 mutex (2)

            section vector:
                for t in range(n):
                    load scales <- k @ MTE2
                    cast f <- scales @ V
                    load scores <- s @ MTE2
                    sum o <- scores @ V
        """
    )
    messages = [f.message for f in refutation(outcome).findings]
    assert messages and all("(the same memory as " in m for m in messages)
