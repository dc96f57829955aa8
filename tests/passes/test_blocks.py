"""Do loops in blocks run as before, and are hand-skewed loops of any length decided by them?"""

from __future__ import annotations

import pytest

from fencepost import ir
from fencepost.checking import check_source
from fencepost.discover import Source
from fencepost.findings import Row, Verdict
from fencepost.frontends.kir import read
from fencepost.model.executor import run
from fencepost.model.program import compile_kernel
from fencepost.model.rings import Credits, Peer, Ring, first_hang
from fencepost.options import CheckOptions
from fencepost.passes.blocks import Blocks
from fencepost.printer import print_kernel

TWO = """kernel two(n, m):
    FOUR = 4
    fifo down: cube -> vector, slots = 64

    section cube:
        for g in range({groups}):
            tpush_to_aiv a

    section vector:
        for t in range({trips}):
            {body}
            tfree_to_aic s
"""


def two(groups: str, trips: str, body: str = "s <- tpop_from_aic") -> ir.Kernel:
    result = read(TWO.format(groups=groups, trips=trips, body=body), "k.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


@pytest.mark.parametrize(
    ("groups", "trips", "outer", "size"),
    [
        ("n", "4 * n + 4", "n + 1", 4),
        ("n", "FOUR * (n - 2)", "n + -2", 4),
        ("2 * n", "6 * n + 3", "2 * n + 1", 3),
        ("n + 1", "3, 2 * n + 1", "n + -1", 2),
        ("m - n", "2 * m - 2 * n", "-1 * n + m", 2),
        ("m * n", "5 * m * n", "m * n", 5),
    ],
)
def test_form(groups: str, trips: str, outer: str, size: int) -> None:
    before = two(groups, trips)
    after = Blocks().run(before)
    assert f"for t~block in range({outer}):" in print_kernel(after)
    assert f"for t in range({size}):" in print_kernel(after)
    for n in range(-2, 6):
        for m in range(3):
            one, other = (run(compile_kernel(k), {"n": n, "m": m}) for k in (before, after))
            assert [op.stmt for op in one.issued["aiv0"]] == [op.stmt for op in other.issued["aiv0"]]


@pytest.mark.parametrize(
    ("groups", "trips", "body"),
    [
        ("n", "n", "s <- tpop_from_aic"),
        ("n", "4 * n + 2", "s <- tpop_from_aic"),
        ("n", "4 * m", "s <- tpop_from_aic"),
        ("n", "2, 4", "s <- tpop_from_aic"),
        ("n", "0, 2 * n, 2", "s <- tpop_from_aic"),
        ("n", "2 * n", "s <- tpop_from_aic task = t"),
        ("n", "2 * n", "if m > 3:\n                break\n            s <- tpop_from_aic"),
    ],
)
def test_left_alone(groups: str, trips: str, body: str) -> None:
    before = two(groups, trips, body)
    assert Blocks().run(before) is before


def skewed(out: str, back: str, free: str, depth: int) -> list[str]:
    send, take = [f"{out} x"] * depth, [f"y <- {back}", f"{free} y"] * depth
    return [*send, "for g in range(n):", *(f"    {line}" for line in (*send, *take)), *take]


def pair(slots: int, depth: int, peer: Peer, credits: Credits) -> str:
    """A loop skewed by hand, of `depth * (n + 1)` iterations."""
    cube = skewed("tpush_to_aiv", "tpop_from_aiv", "tfree_to_aiv", depth)
    vector = skewed("tpush_to_aic", "tpop_from_aic", "tfree_to_aic", depth)
    if peer == "sequential":
        vector = [f"for t in range({depth} * (n + 1)):"]
        vector += ["    y <- tpop_from_aic", "    tfree_to_aic y", "    tpush_to_aic x"]
    lines = ["kernel pair(n):", "    assume n >= 1", f"    option credits = {credits}"]
    lines += [f"    fifo down: cube -> vector, slots = {slots}", f"    fifo up: vector -> cube, slots = {slots}", ""]
    lines += ["    section cube:", *(f"        {line}" for line in cube), ""]
    lines += ["    section vector:", *(f"        {line}" for line in vector), ""]
    return "\n".join(lines)


@pytest.mark.parametrize("credits", ["per_slot", "batched"])
@pytest.mark.parametrize("peer", ["sequential", "skewed"])
@pytest.mark.parametrize(("slots", "depth"), [(1, 1), (2, 1), (2, 2), (2, 3), (4, 2), (4, 3), (6, 3), (8, 3), (8, 7)])
def test_thresholds_for_every_length(slots: int, depth: int, peer: Peer, credits: Credits) -> None:
    """The prover and the search give what docs/skew.md proves: a proof for all lengths, or the first that hangs."""
    outcome = check_source(Source("k.kir", pair(slots, depth, peer, credits)), CheckOptions())
    (report,) = outcome.report.kernels
    verdict = next(c.verdict for c in report.checks if c.row is Row.FIFO)
    first = first_hang(Ring(slots, credits), depth, peer)
    if first is None:
        assert verdict is Verdict.PROVED
        return
    assert verdict is Verdict.REFUTED
    (witness,) = (f.witness for f in report.findings if f.code == "702")
    assert witness is not None and witness.values == (("n", max(1, first // depth)),)
