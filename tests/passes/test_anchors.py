"""Do comparisons with a constant keep their meaning when they become comparisons with the position of the loop?"""

from __future__ import annotations

from random import Random
from textwrap import dedent

import pytest

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.model.executor import run
from fencepost.model.program import compile_kernel
from fencepost.passes.anchors import Anchors
from fencepost.printer import print_kernel

TEXT = """
kernel last_block(n, m):
    FIRST = {first}
    buffer acc[2] in Acc

    section cube:
        for k in range(FIRST, {stop}, {step}):
            if {place}:
                if {test}:
                    matmul acc[0] <- a, b @ M
                else:
                    matmul acc[1] <- a, b @ M
"""


def kernel(**parts: str) -> ir.Kernel:
    given = {"first": "0", "stop": "n", "step": "128", "place": "k == FIRST", "test": "n <= 128"}
    result = read(dedent(TEXT.format(**{**given, **parts})), "k.kir")
    assert not result.errors
    return result.kernels[0]


@pytest.mark.parametrize(
    ("parts", "test"),
    [
        ({}, "n <= k + 128"),
        ({"test": "128 >= n"}, "k + 128 >= n"),
        ({"test": "n - 128 < 0"}, "n < k + 128"),
        ({"test": "n == 1", "step": "1"}, "n == k + 1"),
        ({"first": "2", "test": "n > 3"}, "n > k + 1"),
        ({"place": "0 == k - 4", "test": "n > 4"}, "n > k"),
        ({"place": "k == 0 and m > 3"}, "n <= k + 128"),
        ({"stop": "2 * n + m", "test": "m <= 8 - 2 * n"}, "2 * n + m <= k + 8"),
    ],
)
def test_form(parts: dict[str, str], test: str) -> None:
    assert f"if {test}:" in print_kernel(Anchors().run(kernel(**parts)))


@pytest.mark.parametrize(
    "parts",
    [
        {"place": "k == m"},
        {"place": "k >= 0"},
        {"place": "k == 0 or m > 3"},
        {"test": "m <= 128"},
        {"test": "2 * n <= 128"},
        {"test": "n % 2 == 0"},
        {"stop": "256", "test": "n <= 128"},
    ],
)
def test_left_alone(parts: dict[str, str]) -> None:
    before = kernel(**parts)
    assert Anchors().run(before) is before


def test_every_run_stays_the_same() -> None:
    r = Random(7)
    changed = 0
    for _ in range(60):
        before = kernel(
            first=str(r.randint(-2, 3)),
            stop=r.choice(("n", "n + m", "2 * n - m", "3 - n")),
            step=str(r.randint(1, 3)),
            place=r.choice(("k == FIRST", "k == 2", "1 == k", "m > 0 and k + 1 == 3")),
            test=f"{r.choice(('n', 'n + m', '2 * n - m', '-n'))} {r.choice(('<', '<=', '==', '!=', '>', '>='))} "
            f"{r.randint(-2, 4)}",
        )
        after = Anchors().run(before)
        changed += after is not before
        for n in range(-2, 5):
            for m in range(-1, 3):
                one, two = (run(compile_kernel(k), {"n": n, "m": m}) for k in (before, after))
                assert [op.effect.arguments for op in one.order] == [op.effect.arguments for op in two.order]
    assert changed > 10
