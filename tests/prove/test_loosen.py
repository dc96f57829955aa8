"""Do loosened kernels have all runs of the kernels that they stand for, and do they close where those do not?"""

from __future__ import annotations

import time

import pytest
from tests.campaigns.methods import supported
from tests.campaigns.random_kernels import random_kernel
from tests.campaigns.truth import proved_wrongly, truth

from fencepost import ir
from fencepost.applicability import applicable, relies_on
from fencepost.findings import Row, Verdict
from fencepost.frontends.kir import read
from fencepost.model.program import compile_kernel
from fencepost.passes.serial import Serial
from fencepost.printer import print_kernel
from fencepost.prove import parts
from fencepost.prove.explore import explore_apart
from fencepost.prove.explorer import Exploration, Explorer
from fencepost.prove.loosen import loosened, simpler
from fencepost.prove.parts import Part
from fencepost.prover import prepared

CAUSAL = """kernel causal(rows, columns):
    assume rows >= 0
    assume columns >= 0
    RELEASE = (2, 3)
    READY = (0, 1)
    buffer tile[2] in Vec
    ring ctx[4](task, key, size)

    section cube:
        work_start = ranges(block * 2)
        work_end = ranges(block * 2 + 1)
        task = 0
        for w in range(work_start, work_end):
            for q in range(rows):
                keys = q + 1
                for k in range(keys):
                    wait_cross_core RELEASE[task % 2] @ FIX
                    move tile[task % 2] <- acc @ FIX
                    set_cross_core READY[task % 2] @ FIX
                    task = task + 1
        wait_cross_core RELEASE[0] @ FIX
        wait_cross_core RELEASE[1] @ FIX

    section vector:
        work_start = ranges(block * 2)
        work_end = ranges(block * 2 + 1)
        set_cross_core RELEASE[0] @ V
        set_cross_core RELEASE[1] @ V
        task = 0
        for w in range(work_start, work_end):
            for q in range(rows):
                keys = q + 1
                for k in range(keys):
                    ctx[task % 4].task = task
                    ctx[task % 4].key = k
                    ctx[task % 4].size = keys
                    wait_cross_core READY[ctx[task % 4].task % 2] @ V
                    if ctx[task % 4].key == ctx[task % 4].size - 1:
                        mask out <- tile[task % 2] @ V
                    else:
                        copy out <- tile[task % 2] @ V
                    set_cross_core RELEASE[task % 2] @ V
                    task = task + 1
"""


GUARDED = """kernel guarded(rows, columns):
    assume rows >= 0
    assume columns >= 0
    buffer tile[2] in Vec

    section cube:
        task = 0
        place = 0
        for q in range(rows):
            for k in range(columns):
                if k <= q:
                    wait_cross_core 1 @ FIX
                    move tile[place % 2] <- acc @ FIX
                    set_cross_core 0 @ FIX
                    task = task + 1
                place = place + 1
        wait_cross_core 1 @ FIX

    section vector:
        set_cross_core 1 @ V
        place = 0
        for q in range(rows):
            for k in range(columns):
                if k <= q:
                    wait_cross_core 0 @ V
                    softmax out <- tile[place % 2] @ V
                    set_cross_core 1 @ V
                place = place + 1
"""


IF = "                if"


def kernel_of(text: str) -> ir.Kernel:
    result = read(text, "k.kir")
    assert not result.errors, result.errors
    return prepared(result.kernels[0])


def explored_freely(kernel: ir.Kernel) -> Exploration:
    """Without a look at the values of scalars."""
    part = Part(compile_kernel(kernel), frozenset(), checks=False)
    return Explorer(part, time.monotonic() + 60, "per_slot", 500, 0).explore()


def test_a_causal_nest_closes() -> None:
    part = parts.shared(compile_kernel(kernel_of(CAUSAL)), True)
    looser = parts.loosened(part)
    explored = Explorer(looser, time.monotonic() + 60, "per_slot", 2_000, 0, remember=1).explore()
    assert explored.closed, explored.reason
    assert not explored.troubles
    assert all(explored.proves(row) for row in Row)


def test_trips_without_work_are_left_out() -> None:
    kernel = loosened(simpler(kernel_of(GUARDED)))
    assert sum(isinstance(n, ir.For) for n in ir.walk(kernel)) == 2
    explored = Explorer(
        Part(compile_kernel(kernel), frozenset(), False), time.monotonic() + 60, "per_slot", 500, 0
    ).explore()
    assert explored.closed, explored.reason
    assert all(explored.proves(row) for row in Row)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"{IF} k <= q:\n                    wait_cross_core 0", f"{IF} k < q:\n                    wait_cross_core 0"),
        ("softmax out <- tile[place % 2]", "softmax out <- tile[(place + 1) % 2]"),
        ("        wait_cross_core 1 @ FIX\n\n", "\n"),
        ("                    set_cross_core 1 @ V\n", ""),
    ],
)
def test_a_broken_guarded_nest_is_not_proved(old: str, new: str) -> None:
    assert old in GUARDED
    kernel = loosened(simpler(kernel_of(GUARDED.replace(old, new))))
    explored = Explorer(
        Part(compile_kernel(kernel), frozenset(), False), time.monotonic() + 20, "per_slot", 500, 0
    ).explore()
    assert not all(explored.proves(row) for row in Row)


def test_what_a_trip_without_work_leaves_behind_stays() -> None:
    text = GUARDED.replace("        wait_cross_core 1 @ FIX\n\n", "        wait_cross_core place % 2 + 1 @ FIX\n\n")
    kernel = loosened(simpler(kernel_of(text)))
    assert sum(isinstance(n, ir.For) for n in ir.walk(kernel)) > 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        wait_cross_core RELEASE[1] @ FIX\n\n", "\n"),
        ("READY[ctx[task % 4].task % 2] @ V", "READY[(ctx[task % 4].task + 1) % 2] @ V"),
        ("                    set_cross_core RELEASE[task % 2] @ V\n", ""),
        ("range(keys):\n                    wait", "range(keys + 1):\n                    wait"),
    ],
)
def test_a_broken_nest_is_not_proved(old: str, new: str) -> None:
    assert old in CAUSAL
    compiled = compile_kernel(kernel_of(CAUSAL.replace(old, new)))
    explored = explore_apart(compiled, time.monotonic() + 20, states=1_000)
    assert not (explored.proves(Row.PAIRING) and explored.proves(Row.COUNTS))


INSIDE = """kernel inside(works, rows, columns):
    assume rows >= 0
    assume columns >= 0
    buffer tile[2] in Vec

    section cube:
        task = 0
        for w in range(works):
            for q in range(rows):
                for k in range(columns):
                    if k <= q:
                        wait_cross_core task % 2 + 2 @ FIX
                        move tile[task % 2] <- acc @ FIX
                        set_cross_core task % 2 @ FIX
                        task = task + 1
            wait_cross_core 5 @ FIX
        wait_cross_core 2 @ FIX
        wait_cross_core 3 @ FIX

    section vector:
        set_cross_core 2 @ V
        set_cross_core 3 @ V
        task = 0
        for w in range(works):
            for q in range(rows):
                for k in range(columns):
                    if k <= q:
                        wait_cross_core task % 2 @ V
                        copy out <- tile[task % 2] @ V
                        set_cross_core task % 2 + 2 @ V
                        task = task + 1
            set_cross_core 5 @ V
"""


def test_nests_in_a_loop_have_their_own_number_of_trips() -> None:
    def proved(text: str) -> bool:
        explored = explore_apart(compile_kernel(kernel_of(text)), time.monotonic() + 60, states=1_000)
        return explored.closed and explored.proves(Row.PAIRING) and explored.proves(Row.BOUNDARY)

    assert proved(INSIDE)
    head, guard, tail = INSIDE.rpartition("if k <= q:")
    assert not proved(f"{head}if k < q:{tail}")
    assert not proved(INSIDE.replace(guard, "if k <= q + 1:", 1))
    assert not proved(INSIDE.replace("for k in range(columns)", "for k in range(columns + 1)", 1))
    assert not proved(INSIDE.replace("for q in range(rows)", "for q in range(1, rows)", 1))


FLAGS = """kernel flags(n):
    assume n >= 0
    buffer p[2] in Mat
    buffer left in Left

    section cube:
        set_cross_core 2 @ MTE1
        set_cross_core 3 @ MTE1
        sync_src 1: M -> MTE1
        for t in range(n):
            wait_cross_core t % 2 @ MTE1
            sync_dst 1: M -> MTE1
            move left <- p[t % 2] @ MTE1
            sync_src t % 2: MTE1 -> FIX
            sync_src 0: MTE1 -> M
            sync_dst 0: MTE1 -> M
            matmul acc <- left @ M
            sync_src 1: M -> MTE1
            sync_dst t % 2: MTE1 -> FIX
            set_cross_core t % 2 + 2 @ FIX
        sync_dst 1: M -> MTE1

    section vector:
        for t in range(n):
            wait_cross_core t % 2 + 2 @ MTE3
            insert p[t % 2] part sub of 2 <- tile @ MTE3
            set_cross_core t % 2 @ MTE3
        wait_cross_core n % 2 + 2 @ MTE3
        wait_cross_core (n + 1) % 2 + 2 @ MTE3
"""


@pytest.mark.parametrize(
    ("old", "new", "proved"),
    [
        ("", "", True),
        ("            sync_src t % 2: MTE1 -> FIX\n", "", False),  # awaited in vain
        ("            sync_dst t % 2: MTE1 -> FIX\n", "", False),  # and the release says nothing of the move
        ("            sync_dst 1: M -> MTE1\n            move", "            move", False),  # left overwritten
        ("        sync_src 1: M -> MTE1\n        for", "        for", False),
        ("        sync_dst 1: M -> MTE1\n\n", "\n", False),
    ],
)
def test_flags_that_come_back(old: str, new: str, proved: bool) -> None:
    assert old in FLAGS
    text = FLAGS.replace(old, new, 1)
    explored = explore_apart(compile_kernel(kernel_of(text)), time.monotonic() + 60, states=1_000)
    assert explored.closed, explored.reason
    assert proved == all(explored.proves(row) for row in (Row.EVENT_POSITION, Row.PAIRING, Row.COUNTS, Row.BOUNDARY))


LANES = """kernel lanes(n):
    buffer score[2] in GM

    section cube:
        for t in range(n):
            set_cross_core 0 @ FIX
            wait_cross_core 1 @ FIX

    section vector:
        for t in range(n):
            wait_cross_core 0 @ V
            store score[sub] <- tile @ MTE3
            sync_src 0: MTE3 -> MTE2
            sync_dst 0: MTE3 -> MTE2
            for row in range(4):
                if sub == row // 2:
                    load tile2 <- score[row // 2] @ MTE2
            barrier ALL
            set_cross_core 1 @ V
"""


@pytest.mark.parametrize(
    ("old", "new", "proved"),
    [
        ("", "", True),
        ("if sub == row // 2:", "if sub <= row // 2:", False),
        ("score[sub] <-", "score[0] <-", False),
        ("<- score[row // 2]", "<- score[(row + 1) // 2 % 2]", False),
        ("            sync_dst 0: MTE3 -> MTE2\n", "", False),
    ],
)
def test_lanes_that_never_meet(old: str, new: str, proved: bool) -> None:
    assert old in LANES
    kernel = kernel_of(LANES.replace(old, new, 1))
    explored = explore_apart(compile_kernel(kernel), time.monotonic() + 60, states=1_000)
    assert explored.closed, explored.reason
    assert proved == all(explored.proves(row) for row in (Row.EVENT_POSITION, Row.PARTICIPANTS, Row.COUNTS))


def test_the_same_code_is_one_unknown_and_other_code_another() -> None:
    text = print_kernel(loosened(simpler(kernel_of(CAUSAL))))
    calls = {word for line in text.splitlines() for word in line.split() if word.startswith("value~")}
    assert len(calls) == len({c.partition("(")[0] for c in calls}) == 1  # the trips of the nest
    end, following = "        work_end = ranges(block * 2 + 1)\n", "        set"
    other = CAUSAL.replace(end + following, f"        work_end = limit(block)\n{following}")
    text = print_kernel(loosened(simpler(kernel_of(other))))
    calls = {word for line in text.splitlines() for word in line.split() if word.startswith("value~")}
    assert len({c.partition("(")[0] for c in calls}) == 4


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_nothing_is_proved_wrongly(start: int) -> None:
    for number in range(start, start + 10):
        kernel = random_kernel(70_000 + number)
        compiled = compile_kernel(prepared(Serial().run(kernel)))
        asked = kernel.credits if kernel.fifos else "per_slot"
        schemes = ("per_slot", "batched") if asked == "both" else (asked,)
        apart = (Row.PIPELINE, Row.SKEW, Row.TRANSLATION)
        rows = [row for row, applies in applicable(kernel).items() if applies and row not in apart]
        until = time.monotonic() + 4
        found = [explore_apart(compiled, until, credits=s, states=300) for s in schemes]  # type: ignore[arg-type]
        proved = supported({row for row in rows if all(e.proves(row) for e in found)}, relies_on(kernel), rows)
        verdicts = {row: Verdict.PROVED if row in proved else Verdict.UNKNOWN for row in rows}
        assert not list(proved_wrongly(verdicts, truth(kernel))), print_kernel(kernel)


RING = """kernel ring(n, m):
    assume n >= 0
    buffer tile[2] in Vec
    ring ctx[3](task, other)

    section vector:
        for r in range(m):
            task = 0
            ctx[0].task = 0
            ctx[1].task = 0
            ctx[2].task = 0
            for t in range(n):
                ctx[task % 3].task = task
                load tile[ctx[(task + 2) % 3].task % 2] <- x @ MTE2
                task = task + 1
"""


def lines(text: str) -> str:
    return print_kernel(loosened(simpler(kernel_of(text))))


def test_a_ring_that_starts_anew_is_a_delay_line() -> None:
    assert "ctx[" not in lines(RING).partition("section")[2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            ctx[1].task = 0\n", "            ctx[1].task = 1\n"),
        ("            ctx[2].task = 0\n", ""),
        ("                task = task + 1\n", "                task = task + 2\n"),
        (
            "            for t in range(n):\n",
            "            load y <- x @ MTE2\n            ctx[0].task = 1\n            for t in range(n):\n",
        ),
        (
            "                load tile[ctx[(task + 2) % 3].task % 2]",
            "                ctx[task % 3].other = t\n                load tile[ctx[(task + 2) % 3].other % 2]",
        ),
    ],
)
def test_a_ring_that_keeps_its_places_is_none(old: str, new: str) -> None:
    assert old in RING
    assert "ctx[" in lines(RING.replace(old, new)).partition("section")[2]


def test_what_depends_on_the_sub_core_is_no_common_unknown() -> None:
    guard = f"{IF} k <= q:\n                    wait_cross_core 0"
    assert guard in GUARDED
    assert "(sub" not in lines(GUARDED)
    assert "(sub" in lines(GUARDED.replace(guard, guard.replace("q:", "q + sub:")))
