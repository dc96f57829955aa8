"""When do two kernels count as the same, and when do they not?"""

from __future__ import annotations

import pytest

from fencepost.frontends.kir import read
from fencepost.passes.canonical import canonical

LOOP = """kernel k(n):
    fifo up: vector -> cube, slots = 2

    section vector:
        load acc <- x @ MTE2 at (0)
        for i in range(1, n, 2):
            row = i * 8 + 4
            load t <- x @ MTE2 at (row)
            add acc <- acc, t @ V
            if i < 5:
                exp u <- t @ V
            else:
                copy u <- t @ S
            tpush_to_aic u
        store out <- acc @ MTE3 at (n)
"""


def form(text: str) -> object:
    result = read(text, "k.kir")
    assert not result.errors, result.errors
    return canonical(result.kernels[0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i * 8 + 4", "4 + 8 * i"),
        ("i * 8 + 4", "(i + 1) * 8 - 4"),
        ("exp u <- t @ V", "exp v <- t @ V\n                copy u <- v @ S"),
        ("load t <- x @ MTE2 at (row)", "line = row\n            load t <- x @ MTE2 at (line)"),
        ("tpush_to_aic u", "tpush_to_aic u task = i"),
    ],
)
def test_same(old: str, new: str) -> None:
    assert form(LOOP.replace(old, new)) == form(LOOP)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i * 8 + 4", "i * 8 + 5"),
        ("range(1, n, 2)", "range(1, n, 3)"),
        ("add acc <- acc, t @ V", "add acc <- t, acc @ V"),
        ("add acc <- acc, t @ V", "add acc <- t, t @ V"),
        ("add acc <- acc, t @ V", "add other <- acc, t @ V"),
        ("copy u <- t @ S", "exp u <- t @ V"),
        ("tpush_to_aic u", "tpush_to_aic t"),
        ("store out <- acc", "store out <- t"),
        ("i < 5", "i <= 5"),
        ("at (n)", "at (0)"),
        ("exp u <- t @ V", "exp u <- t @ MTE2"),
    ],
)
def test_different(old: str, new: str) -> None:
    assert old in LOOP
    assert form(LOOP.replace(old, new)) != form(LOOP)
