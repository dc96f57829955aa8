"""Do comparisons of a strided position keep their meaning when they become comparisons of trip numbers?"""

from __future__ import annotations

from textwrap import dedent

import pytest

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.model.executor import run
from fencepost.model.program import compile_kernel
from fencepost.passes.strides import Strides
from fencepost.printer import print_kernel

TEXT = """
kernel last_item(n, c):
    assume c >= 1
    section cube:
        end = n
        s = c
        trips = max(end - 2 + s - 1, 0) // s
        {before}
        for k in range(trips):
            q = 2 + k * s
            {inside}
            if {test}:
                set_cross_core 0 @ FIX
            {after}
"""


def kernel(**parts: str) -> ir.Kernel:
    given = {"before": "pass", "inside": "pass", "test": "q + s >= end", "after": "pass"}
    result = read(dedent(TEXT.format(**{**given, **parts})), "k.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


def same_signals(one: ir.Kernel, two: ir.Kernel) -> bool:
    for n in range(-3, 12):
        for c in range(1, 5):
            counts = [len(run(compile_kernel(k), {"n": n, "c": c}).order) for k in (one, two)]
            if counts[0] != counts[1]:
                return False
    return True


@pytest.mark.parametrize(
    ("test", "becomes"),
    [
        ("q + s >= end", "k + 1 >= trips"),
        ("q + s < end", "k + 1 < trips"),
        ("end <= q + 2 * s", "k + 2 >= trips"),
        ("q < end", "k < trips"),
        ("end - q > s", "k + 1 < trips"),
        ("q + s >= n", "q + s >= n"),  # nothing says here that the end is n
        ("q == end", "q == end"),
    ],
)
def test_comparisons_with_the_end_become_comparisons_of_trip_numbers(test: str, becomes: str) -> None:
    before = kernel(test=test)
    after = Strides().run(before)
    assert f"if {becomes}:" in print_kernel(after)
    assert same_signals(before, after)


@pytest.mark.parametrize(
    "parts",
    [
        {"before": "end = 0"},
        {"before": "s = s + 1"},
        {"before": "if n > 5: \n            end = 0"},
        {"before": "if n > 5: \n            trips = 1"},
        {"before": "for j in range(n): \n            end = end - 1"},
        {"inside": "end = 0"},
        {"inside": "trips = 0"},
        {"inside": "q = q + 1"},
        {"inside": "if n > 5: \n                end = 3"},
        {"after": "end = end - 1"},
        {"after": "trips = trips - 1"},
    ],
)
def test_a_definition_that_no_longer_holds_is_not_used(parts: dict[str, str]) -> None:
    before = kernel(**parts)
    after = Strides().run(before)
    assert after == before
    assert same_signals(before, after)
