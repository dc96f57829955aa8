"""Do a skewed kernel and its peer run as the description says, and hang exactly where the proofs say so?"""

from __future__ import annotations

import pytest

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.model.executor import Run, run
from fencepost.model.rings import Credits, Peer, Ring, hangs
from fencepost.passes.skew import Skew

KERNEL = """kernel pair():
    {target}
    fifo down: cube -> vector, slots = {slots}
    fifo up: vector -> cube, slots = {slots}
    buffer out[{trips}] in GM
    buffer copy[{trips}] in Vec

    section cube:
        for t in pipeline(0, {trips}, 1, stage = {stage}):
            qk s <- q @ M at (t)
            tpush_to_aiv s task = t
            p <- tpop_from_aiv task = t
            sv o <- p @ M
            tfree_to_aiv p
            store out[t] <- o @ FIX task = t

    section vector:
        {vector}
"""

SEQUENTIAL = """for t in range({trips}):
            s <- tpop_from_aic task = t
            softmax p <- s @ V
            keep copy[t] <- p @ V
            {free}
"""

PUSH_FIRST = """for t in pipeline(0, {trips}, 1, stage = {stage}):
            load w <- x @ MTE2 at (t)
            tpush_to_aic w task = t
            s <- tpop_from_aic task = t
            keep copy[t] <- s @ V
            tfree_to_aic s
"""


def kernel(slots: int, trips: int, stage: int, peer: Peer, free_first: bool = True, target: str = "") -> ir.Kernel:
    push, free = "tpush_to_aic p task = t", "tfree_to_aic s"
    order = (free, push) if free_first else (push, free)
    body = SEQUENTIAL if peer == "sequential" else PUSH_FIRST
    vector = body.format(trips=trips, stage=stage, free=f"{order[0]}\n            {order[1]}")
    result = read(KERNEL.format(slots=slots, trips=trips, stage=stage, vector=vector, target=target), "k.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


def messages(r: Run) -> list[list[int | None]]:
    return [[op.task for op in ring] for ring in (*r.pushes, *r.pops)]


@pytest.mark.parametrize("peer", ["sequential", "skewed"])
@pytest.mark.parametrize(("trips", "stage"), [(2, 2), (8, 2), (6, 4), (9, 4), (7, 4), (1, 2), (12, 6)])
def test_same_messages_in_the_same_order(trips: int, stage: int, peer: Peer) -> None:
    before = kernel(16, trips, stage, peer)
    after = Skew().run(before).kernel
    one, two = run(before, {}), run(after, {})
    if peer == "sequential":
        assert one.clean
    assert two.clean
    assert messages(two) == messages(one) == [list(range(trips))] * 4
    for r in (one, two):
        assert [op.task for op in r.order if getattr(op.stmt, "op", "") == "store"] == list(range(trips))


@pytest.mark.parametrize("credits", ["per_slot", "batched"])
@pytest.mark.parametrize("peer", ["sequential", "skewed"])
def test_the_executor_hangs_where_the_closed_form_says(peer: Peer, credits: Credits) -> None:
    for slots in (1, 2, 4, 5, 8):
        for trips, stage in ((3, 2), (6, 4), (9, 4), (14, 8), (21, 8), (12, 7)):
            for free_first, target in ((True, ""), (False, ""), (False, "target a3")):
                skewed = Skew().run(kernel(slots, trips, stage, peer, free_first, target))
                depth = skewed.loops[0].depth
                assert depth is not None
                late = not free_first and not target
                stuck = bool(run(skewed.kernel, {}, credits=credits).blocked)
                expected = hangs(Ring(slots, credits), depth, trips, peer, late and peer == "sequential")
                assert stuck == expected, (slots, trips, stage, free_first, target)


def test_a_nested_message_is_overtaken() -> None:
    text = """kernel hidden():
    fifo down: cube -> vector, slots = 8
    fifo up: vector -> cube, slots = 8

    section cube:
        for t in pipeline(0, 4, 1, stage = 2):
            qk s <- q @ M at (t)
            tpush_to_aiv s task = t
            if t < 2:
                qk z <- q @ M at (t)
                tpush_to_aiv z task = 100 + t
            p <- tpop_from_aiv
            tfree_to_aiv p

    section vector:
        for t in range(4):
            s <- tpop_from_aic task = t
            tfree_to_aic s
            if t < 2:
                z <- tpop_from_aic task = 100 + t
                tfree_to_aic z
            tpush_to_aic e
"""
    (before,) = read(text, "k.kir").kernels
    skewed = Skew().run(before)
    assert len(skewed.loops[0].hidden) == 1
    assert run(before, {}).clean
    faults = run(skewed.kernel, {}).message_faults
    assert [f.kind for f in faults][:1] == ["round"]
    first = min((f for f in faults if f.kind == "round"), key=lambda f: f.op.message or 0)
    assert (first.op.task, first.other.task if first.other else None) == (100, 1)
