"""Do loops with several round trips run one round trip ahead, in order, and only where that is proved?"""

from __future__ import annotations

from textwrap import indent

import pytest

from fencepost import grouping as grouping_module
from fencepost import ir
from fencepost.findings import Row, Verdict
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
    grouping = group(kernel())
    assert grouping.refusal == ""
    assert grouping.skewed.loops[0].action == "grouped"
    assert not grouping.open and grouping.verdict is Verdict.PROVED


def test_refused_where_the_rings_do_not_suffice() -> None:
    before = kernel(INDEPENDENT, slots=1)
    assert run(before, {"n": 4}).clean
    grouping = group(before)
    assert grouping.skewed.loops[0].action == "demoted"
    assert grouping.refusal.startswith("the rings are not proved to suffice (refuted")


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


# ------------------------------------------------------------------------------------------------ memory and order


def memory(lead: str, tail: str, *, before: str = "", bounds: str = "0, n, 1", peer: str = "pass") -> ir.Kernel:
    """Round trips whose first push depends on `lead`, with `tail` after the last pop."""
    text = f"""kernel attention(n):
    assume n >= 0
    fifo down: cube -> vector, slots = 8
    fifo up: vector -> cube, slots = 8
    buffer st in Mat
    buffer ub in Vec
    buffer g[4] in GM

    section cube:
        fill st <- zero @ S
        for t in pipeline({bounds}, stage = 2):
{indent(before or "pass", " " * 12)}
            {lead}
            tpush_to_aiv q
            p <- tpop_from_aiv
            mul o <- p @ S
            tfree_to_aiv p
            tpush_to_aiv o
            r <- tpop_from_aiv
{indent(tail, " " * 12)}
            store D <- r @ S at (t)
            tfree_to_aiv r

    section vector:
        for t in range({bounds}):
{indent(peer, " " * 12)}
            s <- tpop_from_aic
            exp e <- s @ V
            tfree_to_aic s
            tpush_to_aic e
            x <- tpop_from_aic
            exp y <- x @ V
            tfree_to_aic x
            tpush_to_aic y
"""
    result = read(text, "k.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


RARELY = "if f(t) * f(t + 1) == 391:\n    "
"""Never on the shapes that are tried."""


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (memory("mul q <- st @ S at (t)", "save st <- r @ S"), "reads its buffer as the fill of line"),
        (memory("mul q <- st @ S at (t)", RARELY + "save st <- r @ S"), "use st and change their order"),
        (memory("mul q <- g[t % 4] @ S", RARELY + "save g[(t + 1) % 4] <- r @ S"), "use g and change their order"),
        (memory("mul q <- st @ S at (t)", "pass", before="save st <- z @ S at (t)"), "reads its buffer as the fill"),
        (memory("mul q <- st @ S", "pass", before=RARELY + "save st <- z @ S"), "use st and change their order"),
        (memory("load q <- g[0], g[1] @ S at (t)", "pass", peer="fill g[sub] <- z @ S"), "of different agents, use g"),
        (memory("load q <- B @ S at (t)", RARELY + "store B <- r @ S at (t + 1)"), "uses the loop-carried value B"),
    ],
)
def test_the_lead_passes_nothing_that_it_meets_in_memory(case: ir.Kernel, reason: str) -> None:
    grouping = group(case, timeout=5.0)
    assert grouping.skewed.loops[0].action == "demoted"
    assert reason.replace("uses the", "use the") in grouping.refusal


@pytest.mark.parametrize(
    "case",
    [
        memory("mul q <- g[t % 4] @ S at (t)", "save g[t % 4] <- r @ S", bounds="0, 4, 1"),
        memory("mul q <- A @ S at (t)", "save st <- r @ S"),
        memory("mul q <- st @ S at (t)", "mul u <- st, r @ S"),
    ],
)
def test_what_does_not_meet_in_memory_is_grouped(case: ir.Kernel) -> None:
    grouping = group(case, timeout=20.0)
    assert grouping.refusal == ""
    assert grouping.skewed.loops[0].action == "grouped"


@pytest.mark.parametrize(
    "before",
    ["mul q <- z @ S at (t)", RARELY + "mul q <- z @ S at (t)", "mul u <- q @ S", RARELY + "store E <- q @ S at (t)"],
)
def test_the_lead_passes_no_use_of_its_values(before: str) -> None:
    """A value that the lead computes, computed or used before it in the text."""
    (outcome,) = Skew(group=True).run(memory("mul q <- A @ S at (t)", "pass", before=before)).loops
    assert outcome.action == "demoted"
    assert outcome.refusal == "q is used or computed between the statements that the first pushes depend on"


def test_rows_that_are_lost() -> None:
    """The kernel as written loads after it has waited, the grouped one before."""
    peer = "set_cross_core 0 @ S"
    before = memory("load q <- g[0], g[1] @ S at (t)", "pass", before="wait_cross_core 0 @ S", peer=peer)
    text = print_kernel(before).replace("for t in range(n):", "fill g[sub] <- z @ S\n        for t in range(n):")
    (written,) = read(
        text.replace("exp y <- x @ V", "exp y <- x @ S\n            save g[sub] <- y @ S"), "k.kir"
    ).kernels
    grouped = Skew(group=True).run(written)
    assert grouped.loops[0].action == "grouped"
    refusal, unproved = grouping_module._rows(written, grouped.kernel, 10.0)
    assert "after the grouping" in refusal and refusal.endswith("and proved as written"), refusal
    assert not unproved
    assert "of different agents, use g" in group(written, 10.0).refusal


def test_rows_that_are_not_proved_as_written_stay_open() -> None:
    case = memory("mul q <- A @ S at (t)", "pass", peer="load ub <- X @ MTE2\nmul w <- ub @ V")
    grouping = group(case, timeout=10.0)
    assert grouping.refusal == ""
    assert grouping.skewed.loops[0].action == "grouped"
    assert grouping.verdict is Verdict.REFUTED
    assert Row.EVENT_POSITION in {check.row for check in grouping.open}


def test_waits_that_stay_behind_are_named() -> None:
    waits = memory("mul q <- A @ S at (t)", "pass", before="wait_cross_core 0 @ S", peer="set_cross_core 0 @ S")
    grouping = group(waits, timeout=20.0)
    assert grouping.refusal == ""
    (note,) = grouping.notes
    assert note.code == "705" and note.span.line == 12


def test_bounds_that_cannot_be_counted() -> None:
    (outcome,) = Skew(group=True).run(kernel(bounds="0, n, 2")).loops
    assert outcome.refusal == "the number of iterations is not a constant, and the step is neither 1 nor -1"


def test_without_the_option_nothing_changes() -> None:
    (outcome,) = Skew().run(kernel(bounds="0, 4, 1")).loops
    assert outcome.action == "demoted"
