"""Do loops with several round trips run one round trip ahead, in order, and only where that is proved?"""

from __future__ import annotations

import pytest

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.grouping import group
from fencepost.model.executor import run
from fencepost.model.rings import Credits
from fencepost.passes.skew import Skew
from fencepost.printer import print_kernel
from fencepost.validate import validate

TEXT = """kernel attention(n):
    assume n >= 0
    fifo down: cube -> vector, slots = {slots}
    fifo up: vector -> cube, slots = {slots}

    section cube:
        for t in pipeline({bounds}, stage = 2):
{body}

    section vector:
        for t in range({bounds}):
{server}
"""

ROUND_TRIPS = """
row = t * 16
qk s <- q @ M at (row)
tpush_to_aiv s task = 2 * t
p <- tpop_from_aiv task = 2 * t
pv o <- p @ M
tfree_to_aiv p
tpush_to_aiv o task = 2 * t + 1
r <- tpop_from_aiv task = 2 * t + 1
store dst <- r, dst @ FIX at (row)
tfree_to_aiv r
"""

INDEPENDENT = """
qk s <- q @ M at (t)
tpush_to_aiv s task = 2 * t
qk o <- q @ M at (t + 100)
tpush_to_aiv o task = 2 * t + 1
p <- tpop_from_aiv task = 2 * t
tfree_to_aiv p
r <- tpop_from_aiv task = 2 * t + 1
tfree_to_aiv r
"""

SERVER = """
s <- tpop_from_aic task = 2 * t
exp e <- s @ V
tfree_to_aic s
tpush_to_aic e task = 2 * t
o <- tpop_from_aic task = 2 * t + 1
div d <- o @ V
tfree_to_aic o
tpush_to_aic d task = 2 * t + 1
"""


def kernel(body: str = ROUND_TRIPS, bounds: str = "0, n, 1", slots: int = 2) -> ir.Kernel:
    parts = ["\n".join(" " * 12 + line for line in text.strip().splitlines()) for text in (body, SERVER)]
    result = read(TEXT.format(slots=slots, bounds=bounds, body=parts[0], server=parts[1]), "k.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


def test_the_first_push_of_the_next_iteration_comes_before_the_last_pop() -> None:
    grouped = Skew(group=True).run(kernel(bounds="0, 3, 1"))
    assert [o.action for o in grouped.loops] == ["grouped"]
    assert not validate(grouped.kernel)
    lines = print_kernel(grouped.kernel).splitlines()
    at = lines.index("    section cube:")
    assert [line.strip() for line in lines[at + 1 :] if "push" in line or "pop" in line or "for" in line][:9] == [
        "tpush_to_aiv s task = 0",
        "for t in range(2):",
        "p <- tpop_from_aiv task = 2 * t",
        "tpush_to_aiv o task = 2 * t + 1",
        "tpush_to_aiv s task = 2 * (t + 1)",
        "r <- tpop_from_aiv task = 2 * t + 1",
        "p <- tpop_from_aiv task = 4",
        "tpush_to_aiv o task = 5",
        "r <- tpop_from_aiv task = 5",
    ]


@pytest.mark.parametrize("bounds", ["0, n, 1", "n, 0, -1", "2, n, 1", "0, 6, 2", "7, 0, -3"])
@pytest.mark.parametrize("body", [ROUND_TRIPS, INDEPENDENT])
def test_same_messages_in_the_same_order(body: str, bounds: str) -> None:
    before = kernel(body, bounds, slots=4)
    grouped = Skew(group=True).run(before)
    assert grouped.loops[0].action == "grouped"
    assert Skew(group=True).run(grouped.kernel).kernel == grouped.kernel
    for n in range(5):
        for credits in CREDITS:
            was, now = (run(k, {"n": n}, credits=credits) for k in (before, grouped.kernel))
            assert was.clean
            assert now.clean
            assert [[op.task for op in ring] for ring in (*now.pushes, *now.pops)] == [
                [op.task for op in ring] for ring in (*was.pushes, *was.pops)
            ]
            assert stores(now) == stores(was)


CREDITS: tuple[Credits, ...] = ("per_slot", "batched")


def stores(result: object) -> list[int]:
    return [op.message for op in result.order if getattr(op.stmt, "op", "") == "store"]  # type: ignore[attr-defined]


def test_grouped_with_its_proof() -> None:
    grouped, reason = group(kernel())
    assert reason == ""
    assert grouped.loops[0].action == "grouped"


def test_refused_where_the_rings_do_not_suffice() -> None:
    before = kernel(INDEPENDENT, slots=1)
    assert run(before, {"n": 4}).clean
    plain, reason = group(before)
    assert plain.loops[0].action == "demoted"
    assert reason.startswith("the rings are not proved to suffice (refuted")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("qk s <- q", "qk s <- acc", "the first pushes use the loop-carried value acc"),
        ("dst <- r", "dst <- s", "s is needed after the last push, when the next iteration has replaced it"),
        ("pv o <- p @ M", "if t < 3:\n    tpush_to_aiv s", "a nested statement sends or takes messages"),
    ],
)
def test_refused(old: str, new: str, reason: str) -> None:
    body = ROUND_TRIPS.replace(old, new).replace("tfree_to_aiv r\n", "tfree_to_aiv r\nadd acc <- acc @ M\n")
    (outcome,) = Skew(group=True).run(kernel(body)).loops
    assert outcome.action == "demoted"
    assert outcome.refusal == reason


def test_bounds_that_cannot_be_counted() -> None:
    (outcome,) = Skew(group=True).run(kernel(bounds="0, n, 2")).loops
    assert outcome.refusal == "the number of iterations is not a constant, and the step is neither 1 nor -1"


def test_without_the_option_nothing_changes() -> None:
    (outcome,) = Skew().run(kernel(bounds="0, 4, 1")).loops
    assert outcome.action == "demoted"
