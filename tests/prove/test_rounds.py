"""Rounds that `task =` gives: shown by closed forms, refuted where they differ, never taken on trust."""

from __future__ import annotations

import time

import pytest

from fencepost.engine import check_kernel
from fencepost.findings import Row, Verdict
from fencepost.model.program import compile_kernel
from fencepost.options import CheckOptions
from fencepost.prove import closed_form
from fencepost.prove.certificate import NotCertified, certify
from fencepost.prove.explore import explore
from fencepost.prover import prepared
from fencepost.reading import parse
from fencepost.replay import replay

TEXT = """kernel k(n):
    assume n >= 0
    READY = (0, 1)
    RELEASE = (2, 3)
    buffer s[2] in Vec
    section cube:
        for t in range(n):
            wait_cross_core RELEASE[t % 2] @ FIX
            move s[t % 2] <- x @ FIX task = {write}
            set_cross_core READY[t % 2] @ FIX
        for i in range(2):
            wait_cross_core RELEASE[i] @ FIX
    section vector:
        for i in range(2):
            set_cross_core RELEASE[i] @ V
        for t in range(n):
            wait_cross_core READY[t % 2] @ V
            softmax p <- s[t % 2] @ V task = {read}
            set_cross_core RELEASE[t % 2] @ V
"""

TWICE = """kernel k(n):
    assume n >= 0
    buffer s in Vec
    section cube:
        for t in range(n):
            wait_cross_core 1 @ FIX
            move s <- x @ FIX task = 2 * t
            set_cross_core 0 @ FIX
            wait_cross_core 1 @ FIX
            move s <- y @ FIX task = 2 * t + 1
            set_cross_core 0 @ FIX
        wait_cross_core 1 @ FIX
    section vector:
        set_cross_core 1 @ V
        for t in range(2 * n):
            wait_cross_core 0 @ V
            softmax p <- s @ V task = t
            set_cross_core 1 @ V
"""

HALVES = """kernel k(n):
    assume n >= 0
    buffer s in Mat
    section vector:
        for t in range(n):
            wait_cross_core 1 @ MTE3
            store s part sub of 2 <- y @ MTE3 task = {write}
            set_cross_core 0 @ MTE3
        wait_cross_core 1 @ MTE3
    section cube:
        set_cross_core 1 @ MTE1
        for t in range(n):
            wait_cross_core 0 @ MTE1
            load p <- s @ MTE1 task = t
            set_cross_core 1 @ MTE1
"""


def _rows(text: str) -> dict[Row, Verdict]:
    found = closed_form.prove(compile_kernel(parse(text)), time.monotonic() + 60)
    return {row: result.verdict for row, result in found.rows.items()}


@pytest.mark.parametrize(
    "text",
    [
        TEXT.format(write="t", read="t"),
        TEXT.format(write="n - t", read="n - t"),
        TEXT.format(write="2 * t + 1", read="2 * t + 1"),
        TWICE,
        HALVES.format(write="t"),
    ],
    ids=["up", "down", "odd", "two writes a trip", "halves"],
)
def test_right_rounds(text: str) -> None:
    assert set(_rows(text).values()) == {Verdict.PROVED}


@pytest.mark.parametrize(
    "text",
    [
        TEXT.format(write="t", read="t + 2"),
        TEXT.format(write="t", read="t - 2"),
        TEXT.format(write="2 * t", read="2 * t + 1"),
        TEXT.format(write="0", read="1 if f(0) > 7777 else 0"),
        TEXT.format(write="t", read="t + 2 if t >= 3000 else t"),
        TEXT.format(write="t", read="t + 2 if f(t) * f(t + 1) == 391 else t"),
        TWICE.replace("2 * t + 1", "2 * t + 1 if t != 4000 else 1"),
        HALVES.format(write="t + sub"),
        HALVES.format(write="t - 1 if sub == 1 and t == 5000 else t"),
    ],
)
def test_wrong_rounds_are_not_proved(text: str) -> None:
    """Equal rounds use equal slots in all of them, and every access is in order."""
    found = _rows(text)
    assert found[Row.SLOT_MAPPING] is found[Row.PAIRING] is Verdict.UNKNOWN
    assert found[Row.EVENT_POSITION] is Verdict.PROVED
    with pytest.raises(NotCertified):
        certify(parse(text))


def test_certificate() -> None:
    assert certify(parse(TEXT.format(write="t", read="t")))["rows"]


PARTS = """kernel k(n, m):
    assume n >= 0
    assume m >= 0
    buffer x in Vec
    section cube:
        for t in range(n):
            wait_cross_core 2 @ FIX
            move x part {first} of 2 <- q @ FIX task = t
            if t == 0 or 2 * n + 3 * m != 7001:
                move x part {second} of 2 <- q @ FIX task = t
            set_cross_core 0 @ FIX
        wait_cross_core 2 @ FIX
    section vector:
        set_cross_core 2 @ V
        for t in range(n):
            wait_cross_core 0 @ V
            use p <- x @ V task = t
            set_cross_core 2 @ V
"""


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0)])
def test_every_part_must_be_of_the_round(first: int, second: int) -> None:
    text = PARTS.format(first=first, second=second)
    assert _rows(text)[Row.PAIRING] is Verdict.UNKNOWN
    done = replay(parse(text), {"n": 4, "m": 2331})
    assert [fault.kind for fault in done.faults] == ["round"]


def test_rounds_of_one_memory_under_two_names() -> None:
    text = """kernel k(n, m):
    assume n >= 0
    assume m >= 0
    buffer x in Vec at 0 size 64
    buffer y in Vec at 0 size 64
    section cube:
        for t in range(n):
            wait_cross_core 2 @ FIX
            move y <- q @ FIX task = t
            set_cross_core 0 @ FIX
        wait_cross_core 2 @ FIX
    section vector:
        set_cross_core 2 @ V
        for t in range(n):
            wait_cross_core 0 @ V
            use p <- x @ V task = (t + 1 if 2 * n + 3 * m == 7001 else t)
            set_cross_core 2 @ V
"""
    explored = explore(compile_kernel(prepared(parse(text))), time.monotonic() + 10, states=800)
    assert not explored.closed or not explored.proves(Row.PAIRING)
    assert check_kernel(parse(text), CheckOptions(timeout=10)).verdict is Verdict.REFUTED


def test_rounds_that_fall_for_one_reader_and_grow_for_another() -> None:
    text = """kernel k(n, m):
    assume n >= 0
    assume m >= 0
    buffer x in Vec
    section cube:
        move x <- q @ FIX task = 5
        move x <- q @ FIX task = 4 if 2 * n + 3 * m == 7001 else 5
        for t in range(n - n // 2 * 2 - 1):
            move x <- q @ FIX lanes = 1 task = 0 - t
        set_cross_core 0 @ FIX
    section vector:
        wait_cross_core 0 @ V
        if sub == 0:
            use p <- x @ V task = 5
        elif 2 * n + 3 * m != 7001:
            use p <- x @ V task = 5
"""
    assert _rows(text)[Row.PAIRING] is Verdict.UNKNOWN
    assert not replay(parse(text), {"n": 1, "m": 2333}).clean
