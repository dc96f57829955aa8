"""Does a loop over all pairs of two indices do the same as a nest?"""

from __future__ import annotations

from random import Random
from textwrap import dedent

import pytest

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.model.executor import run
from fencepost.model.program import compile_kernel
from fencepost.passes.nested import Nested

TEXT = """
kernel pairs(m, n, p):
    assume {fact}
    section cube:
        total = {total}
        {before}
        for i in range({stop}):
            t = {quotient}
            {inside}
            if {test}:
                set_cross_core {id} @ FIX
"""


def kernel(**parts: str) -> ir.Kernel:
    given = {
        "fact": "n >= 0",
        "total": "m * n",
        "stop": "total",
        "before": "pass",
        "quotient": "i // n",
        "inside": "pass",
        "test": "i % n == 0",
        "id": "t % 4",
    }
    result = read(dedent(TEXT.format(**{**given, **parts})), "k.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


def same_signals(one: ir.Kernel, two: ir.Kernel) -> bool:
    """Whether both set the same ids in the same order, for small values, also those that the assumes exclude."""
    values = [{"m": m, "n": n, "p": p} for m in range(-1, 4) for n in range(5) for p in (0, 2)]
    return all(ids(one, v) == ids(two, v) for v in values)


def ids(kernel: ir.Kernel, values: dict[str, int]) -> list[object]:
    return [op.effect.arguments for op in run(compile_kernel(kernel), values).order]


def is_nest(kernel: ir.Kernel) -> bool:
    return sum(isinstance(node, ir.For) for node in ir.walk(kernel)) == 2


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"fact": "n > 0"},
        {"fact": "n > -1"},
        {"fact": "1 <= n <= 4 and m >= p"},
        {"fact": "0 < n and p >= 0"},
        {"stop": "n * m"},
        {"stop": "n * (m + 1)"},
        {"stop": "2 * n * m - n"},
        {"test": "(i + 1) % n == 0"},
        {"test": "(i + 1) % n != 0"},
        {"test": "i % n == n - 1 and p == 0"},
        {"id": "i % 3"},
        {"inside": "s = (i + 1) % 2", "id": "s"},
        {"test": "t == 1 or i % n < p"},
        {"inside": "total = 7"},
    ],
)
def test_a_loop_over_pairs_becomes_a_nest(parts: dict[str, str]) -> None:
    flat = kernel(**parts)
    nest = Nested().run(flat)
    assert is_nest(nest)
    assert same_signals(flat, nest)


@pytest.mark.parametrize(
    "parts",
    [
        {"fact": "m >= 0"},  # with two negative numbers there are trips
        {"fact": "n >= -1"},
        {"fact": "n >= 0 or m >= 0"},
        {"fact": "n + p >= 0"},
        {"fact": "n != 0"},
        {"stop": "m * n + 1"},
        {"stop": "m + n"},
        {"before": "total = total + 1"},
        {"before": "if p == 0: \n            total = 1"},
        {"before": "d = n", "inside": "d = d + 1", "quotient": "i // d", "test": "i % d == 0"},
        {"test": "i < n"},
        {"test": "f(i) == 1"},
        {"test": "(i + 2) % n == 0"},
        {"inside": "q = i", "test": "q < n"},
        {"inside": "if t == 1: \n                break"},
        {"inside": "if t == 1: \n                continue"},
        {"inside": "for j in range(i): \n                pass"},
        {"quotient": "i // p", "test": "i % p == 0", "fact": "n >= 0"},
    ],
)
def test_other_loops_stay_as_they_are(parts: dict[str, str]) -> None:
    flat = kernel(**parts)
    assert Nested().run(flat) is flat


@pytest.mark.parametrize("seed", range(60))
def test_random_loops_over_pairs(seed: int) -> None:
    rng = Random(seed)
    terms = ("i % n", "i // n", "i % 2", "i % 3", "t", "p", "(i + 1) % n", "t + p", "n - 1", "1")
    tests = ("i % n == 0", "(i + 1) % n == 0", "t == p", "i % 2 == 1", "i % n <= p", "t % 2 == i % n", "m > t")

    def some() -> str:
        return " + ".join(rng.sample(terms, rng.randint(1, 2)))

    flat = kernel(
        stop=rng.choice(("total", "m * n", "(m + p) * n", "3 * n", "(m - 1) * n", "n * m * p")),
        inside=f"x = ({some()}) % {rng.randint(2, 4)}",
        test=rng.choice((" and ", " or ")).join(rng.sample(tests, 2)),
        id=f"({some()} + x) % 4",
    )
    assert same_signals(flat, Nested().run(flat))
