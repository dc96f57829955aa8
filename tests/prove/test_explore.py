"""Does the exploration close on right kernels, see what is wrong with the others, and never prove too much?"""

from __future__ import annotations

import json
import time
from itertools import product
from pathlib import Path
from typing import Literal

import pytest

from fencepost.applicability import relies_on
from fencepost.findings import Row
from fencepost.model.executor import run
from fencepost.model.program import Compiled, compile_kernel
from fencepost.prove.explore import explore
from fencepost.prove.explorer import Exploration
from fencepost.prover import prove
from fencepost.reading import parse

from .protocols import (
    BARE,
    COUNTER_AS_BOUND,
    DATA_DEPENDENT,
    DRAIN_ON_OTHER_PIPE,
    OFF_BY_ONE,
    PING_PONG,
    READY_ONLY,
    Flash,
)

LOOP = "for t in range(n):\n            wait_cross_core READY"
CORE_ROWS = (Row.SLOT_MAPPING, Row.EVENT_POSITION, Row.PAIRING, Row.COUNTS, Row.BOUNDARY, Row.PARTICIPANTS)


def explored(
    text: str,
    *,
    seconds: float = 60,
    states: int = 20_000,
    slack: int = 0,
    credits: Literal["per_slot", "batched"] = "per_slot",
) -> Exploration:
    compiled = compile_kernel(parse(text))
    return explore(compiled, time.monotonic() + seconds, states=states, slack=slack, credits=credits)


def assert_proved(found: Exploration) -> None:
    assert found.closed, found.reason
    assert not found.troubles
    assert all(found.proves(row) for row in Row)


def fails(compiled: Compiled, limit: int) -> bool:
    """Whether some run with parameters below `limit` is not clean."""
    shapes = product(range(limit), repeat=len(compiled.parameters))
    return any(not run(compiled, dict(zip(compiled.parameters, v, strict=True))).clean for v in shapes)


@pytest.mark.parametrize("slack", [0, 4])
@pytest.mark.parametrize(
    "text",
    [
        PING_PONG,
        BARE,
        READY_ONLY,
        DATA_DEPENDENT,
        Flash(levels=1).text(),
        Flash(levels=2).text(),
    ],
    ids=["ping-pong", "bare", "ready-only", "data-dependent", "flash1", "flash2"],
)
def test_right_kernels_close(text: str, slack: int) -> None:
    assert_proved(explored(text, slack=slack))


def test_both_methods_prove_a_drain_of_what_the_loop_left() -> None:
    compiled = compile_kernel(parse(BARE))
    assert set(prove(compiled, CORE_ROWS, time.monotonic() + 60).proved) == set(CORE_ROWS)


def test_three_nested_loops_stay_small() -> None:
    found = explored(Flash(levels=3).text(), seconds=120, states=5_000)
    assert_proved(found)
    assert found.states < 5_000


@pytest.mark.parametrize("variant", OFF_BY_ONE, ids=str)
def test_flash_off_by_one_has_troubles(variant: Flash) -> None:
    assert fails(compile_kernel(parse(variant.text())), 4), "the variant is wrong"
    found = explored(variant.text(), states=1_500, seconds=60)
    assert found.troubles
    assert not any(found.proves(row) for row in (Row.PAIRING, Row.COUNTS))


@pytest.mark.parametrize("slack", [0, 4])
@pytest.mark.parametrize("text", [COUNTER_AS_BOUND, DRAIN_ON_OTHER_PIPE], ids=["counter as bound", "other pipe"])
def test_hard_cases_are_never_proved(text: str, slack: int) -> None:
    found = explored(text, seconds=10, states=300, slack=slack)
    assert not any(found.proves(row) for row in CORE_ROWS)


def test_a_late_failure_behind_a_threshold() -> None:
    """Fails from n = 41 on only: constants far above every depth must not be folded away."""
    text = PING_PONG.replace(
        "wait_cross_core READY[t % 2] @ V", "if t != 40:\n                wait_cross_core READY[0] @ V"
    )
    found = explored(text.replace("READY[t % 2] @ FIX", "READY[0] @ FIX"))
    assert not any(found.proves(row) for row in (Row.EVENT_POSITION, Row.PAIRING))


@pytest.mark.parametrize("slack", [0, 4])
@pytest.mark.parametrize(
    ("old", "new", "row"),
    [
        ("wait_cross_core RELEASE[1] @ FIX", "pass", Row.COUNTS),
        ("wait_cross_core READY[t % 2] @ V", "wait_cross_core READY[1 - t % 2] @ V", Row.PAIRING),
        ("softmax p <- qk[t % 2] @ V task = t", "softmax p <- qk[(t + 1) % 2] @ V task = t", Row.SLOT_MAPPING),
        ("softmax p <- qk[t % 2] @ V task = t", "softmax p <- qk[t % 3] @ V task = t", Row.SLOT_MAPPING),
        ("set_cross_core READY[t % 2] @ FIX", "set_cross_core READY[t % 2] @ M", Row.EVENT_POSITION),
        (LOOP, LOOP.replace("range(n)", "range(max(n, 1))"), Row.BOUNDARY),
        (LOOP, LOOP.replace("range(n)", "range(min(n, 9))"), Row.PAIRING),
        (
            "set_cross_core RELEASE[t % 2] @ V",
            "if sub == 0:\n                set_cross_core RELEASE[t % 2] @ V",
            Row.PARTICIPANTS,
        ),
    ],
)  # fmt: skip
def test_faulty_ping_pong_is_not_proved(old: str, new: str, row: Row, slack: int) -> None:
    text = PING_PONG.replace(old, new)
    assert text != PING_PONG
    assert fails(compile_kernel(parse(text)), 14)
    found = explored(text, seconds=10, states=500, slack=slack)
    assert not found.proves(row)


# ------------------------------------------------------------------------------------------ the handed cases

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "kir"
handed = pytest.mark.skipif(not CASES.is_dir(), reason="the handed cases (../shared/cases/kir) are not here")
ROWS = {row.id: row for row in Row}


def cases(verdict: str) -> list[str]:
    if not CASES.is_dir():
        return []
    expected = json.loads((CASES / "expected.json").read_text("utf-8"))
    return [name for name, case in expected.items() if case["verdict"] == verdict]


def refuted_rows(name: str) -> list[Row]:
    case = json.loads((CASES / "expected.json").read_text("utf-8"))[name]
    return [ROWS[row] for row, verdict in case["rows"].items() if verdict == "refuted"]


@handed
@pytest.mark.parametrize("slack", [0, 4])
@pytest.mark.parametrize("name", cases("proved"))
def test_handed_right_kernels_close(name: str, slack: int) -> None:
    assert_proved(explored((CASES / name).read_text("utf-8"), slack=slack))


STATIC = {"bad_706_five_slots.kir", "bad_805_phase_on_a3.kir", "bad_806_phase_on_l1_move.kir"}
"""Faults of a declaration or the target: the rules see them, no run does."""


@handed
@pytest.mark.parametrize("name", [n for n in cases("refuted") if n not in STATIC])
def test_handed_faulty_kernels_are_not_proved(name: str) -> None:
    text = (CASES / name).read_text("utf-8")
    schemes: tuple[Literal["per_slot", "batched"], ...] = ("per_slot", "batched") if "fifo" in text else ("per_slot",)
    found = [explored(text, seconds=3, states=400, credits=scheme) for scheme in schemes]
    for row in refuted_rows(name):
        together = {row, *relies_on(parse(text)).get(row, ())}
        assert not all(f.proves(row) for f in found for row in together), row


# ------------------------------------------------------------------------------------------ parameters stay alive

BOUNDS = """
kernel bounds(m, n):
    assume m >= 0
    assume n >= 0

    section cube:
        for t in range(m, n, 2):
            wait_cross_core 0 @ FIX

    section vector:
        for t in range(m, n, {step}):
            set_cross_core 0 @ V
"""
"""Parameters that only the bounds of a loop read, whose variable nobody reads."""

QUOTIENT = """
kernel quotient(n):
    assume n >= 0
    tiles = (n + 127) // 128

    section cube:
        for t in range(tiles):
            wait_cross_core 0 @ FIX
        if tiles > 2:
            {extra}

    section vector:
        for t in range(tiles):
            set_cross_core 0 @ V
"""
"""A parameter that only a quotient reads."""


@pytest.mark.parametrize(("text", "shape"), [
    (BOUNDS.format(step=1), {"m": 0, "n": 3}),
    (QUOTIENT.format(extra="wait_cross_core 0 @ FIX"), {"n": 300}),
])  # fmt: skip
def test_parameters_that_only_operands_read_stay_alive(text: str, shape: dict[str, int]) -> None:
    assert not run(compile_kernel(parse(text)), shape).clean, "the kernel is wrong"
    assert not explored(text, seconds=10, states=400).proves(Row.PAIRING)


@pytest.mark.parametrize("text", [QUOTIENT.format(extra="pass")])
def test_a_quotient_as_bound_closes(text: str) -> None:
    # signals may pile up to any number: the exploration closes, and says so
    found = explored(text, seconds=20, states=2_000)
    assert found.closed
    assert {trouble.fault[0] for trouble in found.troubles} <= {"overflow"}
