"""What does `num_stages` make of branches and inner loops that copy?  Expected is what the compiler (0.1.15) plans."""

from __future__ import annotations

import pytest

from fencepost.frontends.tilelang import read
from fencepost.pipeline.build import build
from fencepost.pipeline.check import pipelines
from fencepost.pipeline.model import Annotations
from fencepost.pipeline.planned import Unplanned, plan_stages
from fencepost.pipeline.surroundings import find

HEADER = """\
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 1024), T.float16), C: T.Tensor((64, 1024), T.float16), I: T.Tensor((64, 1024), T.int32)):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((64, 64), T.float16)
        t = T.alloc_shared((64, 64), T.float16)
        f = T.alloc_fragment((64, 64), T.float16)
        for k in T.Pipelined(16, num_stages=2):
"""
COPY = "T.copy(A[0, k * 64], s)"
USE = "T.gemm(s, t, f)"


def _planned(*lines: str) -> Annotations:
    text = HEADER + "".join(f"            {line}\n" for line in lines)
    (kernel,) = read(text, "p.py").kernels
    (loop,) = pipelines(kernel)
    return plan_stages(build(loop, find(loop, kernel))).annotations


@pytest.mark.parametrize(
    "lines",
    [
        ("if k > 2:", f"    {COPY}", USE),
        ("if I[0, k] > 2:", f"    {COPY}", USE),
        ("if k > 2:", f"    {COPY}", "else:", "    T.copy(A[0, 0], s)", USE),
        ("if k > 2:", f"    {COPY}", "    T.copy(s, C[0, k * 64])", USE),
        ("if k > 2:", f"    {COPY}", "    T.copy(A[0, 0], f)", "T.copy(s, C[0, k * 64])"),
    ],
)
def test_a_branch_that_only_copies_is_ahead_but_waits(lines: tuple[str, ...]) -> None:
    notes = _planned(*lines)
    assert notes.stage == (0, 1)
    assert notes.async_producers is None


@pytest.mark.parametrize("other", ["T.clear(f)", "T.gemm(s, t, f)", "f[0, 0] = T.float16(1)", "s[0, 0] = T.float16(1)"])
def test_a_branch_that_does_more_is_not(other: str) -> None:
    assert _planned("if k > 2:", f"    {COPY}", f"    {other}", "T.copy(s, C[0, k * 64])").stage == (2, 2)


def test_a_branch_beside_a_copy() -> None:
    notes = _planned("if k > 2:", f"    {COPY}", "T.copy(A[0, k * 64], t)", USE)
    assert (notes.stage, notes.async_producers, notes.async_producer_groups) == ((0, 0, 1), (0, 1, 0), (-1, 0, -1))


@pytest.mark.parametrize(
    "lines",
    [
        ("for i in T.serial(4):", "    if i > k:", "        T.copy(A[0, k * 64 + i], s)", USE),
        ("for i in T.serial(4):", "    T.copy(A[0, k * 64 + i], s)", "    T.copy(s, f)", USE),
        ("if k > 2:", f"    {COPY}", "    T.atomic_add(C[0, 0], A[0, 1])", USE),
    ],
)
def test_what_is_not_known_is_not_claimed(lines: tuple[str, ...]) -> None:
    with pytest.raises(Unplanned):
        _planned(*lines)
