"""TileLang: what a block binds that is traced once stays bound; what Python decides leaves one of several values."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from fencepost.findings import Verdict
from fencepost.frontends.tilelang import read
from fencepost.pipeline.check import check_pipeline, pipelines

PROGRAM = """\
import tilelang
import tilelang.language as T

def make(flag, some):
    @T.prim_func
    def main(A: T.Tensor((16, 64), T.float16), B: T.Tensor((16, 64), T.float16), I: T.Tensor((16,), T.int32)):
        with T.Kernel(1, threads=128) as bx:
            x = T.alloc_shared((2, 64), T.float16)
            z = T.alloc_shared((2, 64), T.float16)
            y = T.alloc_fragment((64,), T.float16)
            T.clear(x)
{before}
            for k in T.Pipelined(16, stage={stage}, order={order}):
                T.copy(x[{read}, 0:64], B[k, 0:64])
{inside}
                T.copy(A[k, 0:64], {write})
    return main
"""


def verdict(before: str, read_slot: str = "1", write: str = "x[slot, 0:64]", inside: str = "") -> Verdict:
    """The verdict on a loop that reads one slot late and fills another one; the same one is wrong."""
    text = PROGRAM.format(
        before=indent(dedent(before), " " * 12),
        inside=indent(dedent(inside), " " * 16),
        stage="[1, 0, 0]" if inside else "[1, 0]",
        order="[0, 1, 2]" if inside else "[0, 1]",
        read=read_slot,
        write=write,
    )
    result = read(text, "t.py")
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    return check_pipeline(pipelines(kernel)[-1], kernel).verdict


ONCE = {
    "a loop": "slot = 0\nfor j in T.serial(2):\n    slot = 1\n    T.clear(y)",
    "range": "slot = 0\nfor j in range(2):\n    slot = 1\n    T.clear(y)",
    "a loop that counts": "slot = 0\nfor j in T.unroll(2):\n    slot += 1\nslot = slot % 2",
    "a loop that runs never": "slot = 0\nfor j in range(0):\n    slot = 1",
    "a branch": "slot = 0\nif I[0] > 3:\n    slot = 1\n    T.clear(y)",
    "another arm": "slot = 0\nif bx > 3:\n    T.clear(y)\nelse:\n    slot = 1",
    "arms one after the other": "slot = 0\nif bx > 3:\n    slot = 2\nelse:\n    slot = slot - 1",
    "an arm that is seen by the other": "a = 0\nslot = 0\nif bx > 3:\n    a = 1\nelse:\n    slot = a",
    "parallel": "slot = 0\nfor j in T.Parallel(64):\n    y[j] = 0\n    slot = 1",
    "a pipeline": "slot = 0\nfor k in T.Pipelined(4, num_stages=2):\n    slot = 1\n    T.clear(y)",
    "a tuple": "slot = 0\nfor j in T.serial(2):\n    slot, other = 1, 0\n    T.clear(y)",
    "a list": "slots = [0]\nfor j in T.serial(2):\n    T.clear(y)\n    slots = [1]\nslot = slots[0]",
    "deep inside": "slot = 0\nfor j in range(2):\n    if I[j] > 0:\n        for m in range(2):\n            slot = 1",
}


@pytest.mark.parametrize("before", ONCE.values(), ids=ONCE)
def test_what_a_block_binds_that_is_traced_once_stays_bound(before: str) -> None:
    assert verdict(before, "1") is Verdict.REFUTED
    assert verdict(before, "0") is Verdict.PROVED


INSIDE = {
    "a branch": "if k >= 0:\n    slot = 1\n    T.clear(y)",
    "parallel": "for j in T.Parallel(64):\n    slot = 1\n    y[j] = 0",
}


@pytest.mark.parametrize("inside", INSIDE.values(), ids=INSIDE)
def test_it_stays_bound_within_a_pipeline(inside: str) -> None:
    assert verdict("slot = 0", "1", inside=inside) is Verdict.REFUTED
    assert verdict("slot = 0", "0", inside=inside) is Verdict.PROVED


OPEN = {
    "a flag of the caller": "slot = 0\nif flag:\n    slot = 1",
    "a flag or a value of the program": "slot = 0\nif flag or I[0] > 3:\n    slot = 1",
    "arms that Python chooses": "a = 1\nif flag:\n    a = 0\n    slot = 0\nelse:\n    slot = a",
    "a value that is one or the other": "c = I[0]\nif flag:\n    c = 0\nslot = 0\nif c:\n    slot = 1",
    "a while loop": "slot = 0\nwhile I[0] > 3:\n    slot = 1",
    "an unknown loop": "slot = 0\nfor j in some(3):\n    slot = 1",
    "a loop over pairs": "slot = 0\nfor a, b in ((0, 1), (1, 0)):\n    slot = a",
    "a loop of Python within": "slot = 0\nfor j in T.serial(2):\n    for a, b in ((0, 1), (1, 0)):\n        slot = a",
    "an expression that binds": "slot = 0\nif (slot := 1):\n    T.clear(y)",
    "an attempt": "slot = 0\ntry:\n    slot = 1\nfinally:\n    pass",
    "a match": "slot = 0\nmatch flag:\n    case 1:\n        slot = 1",
}


@pytest.mark.parametrize("before", OPEN.values(), ids=OPEN)
def test_what_may_or_may_not_be_bound_is_not_known(before: str) -> None:
    assert verdict(before, "1") is not Verdict.PROVED
    assert verdict(before, "0") is not Verdict.PROVED


BUFFERS = {
    "a name": "w = z\nfor j in T.serial(2):\n    T.clear(y)\n    w = x",
    "a pair": "w, v = z, x\nfor j in T.serial(2):\n    w, v = v, w",
    "a list": "ws = [z]\nfor j in T.serial(2):\n    ws = [x]\nw = ws[0]",
    "a while loop": "w = z\nwhile I[0] > 3:\n    w = x",
    "a while loop that changes a list": "ws = (z,)\nwhile I[0] > 3:\n    ws = (x,)\nw = ws[0]",
    "a branch": "w = z\nif I[0] > 3:\n    w = x",
    "a choice": "w = z\nif flag:\n    w = x",
    "an unknown loop": "u, v, w = x, z, z\nfor j in some(3):\n    u, v, w = w, u, v",
}


@pytest.mark.parametrize("before", BUFFERS.values(), ids=BUFFERS)
def test_a_buffer_with_a_new_name_is_not_another_one(before: str) -> None:
    assert verdict(before, "1", "w[1, 0:64]") is not Verdict.PROVED


def test_a_scalar_of_the_program_is_none_behind_its_loop() -> None:
    before = "slot = 0\nfor j in T.serial(2):\n    slot = I[j] % 2"
    assert verdict(before, "1") is not Verdict.PROVED
