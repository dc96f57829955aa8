"""TileLang: a macro binds the scalars among its arguments where it begins, and each bind is a statement."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from fencepost import ir
from fencepost.findings import Verdict
from fencepost.frontends.tilelang import read
from fencepost.pipeline.check import check_pipeline, pipelines

PROGRAM = """\
import tilelang.language as T

@T.macro
def late(v, src, dst, out, k):
    T.copy(src[k, 0:64], dst)
    T.fill(out, v)

@T.macro
def bump(c):
    c = c + 1

@T.macro
def raised(c: T.Ref):
    c = c + 1

@T.macro
def named(c: {kind}):
    c = c + 1

@T.macro
def moved(i, src, dst):
    T.copy(src[i, 0:64], dst)

@T.prim_func
def main(A: T.Tensor((16, 64), T.float16), B: T.Tensor((16, 64), T.float16)):
    with T.Kernel(1, threads=128) as bx:
        y = T.alloc_fragment((64,), T.float16)
        z = T.alloc_fragment((64,), T.float16)
        T.clear(y)
        v = T.alloc_var(T.int32, init=0)
        for k in T.Pipelined(16, stage={stage}, order={order}):
{body}
"""


def _checked(body: str, stage: list[int], kind: str = "T.int32") -> tuple[Verdict, ir.Pipelined]:
    text = PROGRAM.format(body=indent(dedent(body), " " * 12), stage=stage, order=list(range(len(stage))), kind=kind)
    result = read(text, "t.py")
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    (loop,) = pipelines(kernel)
    return check_pipeline(loop, kernel).verdict, loop


SAME = {
    "an element": ("late(y[0], A, y, z, k)", "v2 = y[0]\nT.copy(A[k, 0:64], y)\nT.fill(z, v2)", 4),
    "a variable": ("bump(v)\nT.fill(y, v)", "c = v\nc2 = c + 1\nT.fill(y, v)", 3),
    "an expression": ("moved(15 - k, A, y)", "i = 15 - k\nT.copy(A[i, 0:64], y)", 3),
    "a loop variable": ("moved(k, A, y)", "T.copy(A[k, 0:64], y)", 2),
    "another name of a loop variable": ("j = k\nmoved(j, A, y)", "T.copy(A[k, 0:64], y)", 2),
    "a variable by reference": ("raised(v)\nT.fill(y, v)", "v = v + 1\nT.fill(y, v)", 3),
}


@pytest.mark.parametrize(("call", "text", "count"), SAME.values(), ids=SAME)
def test_a_macro_is_what_its_text_with_binds_in_front_is(call: str, text: str, count: int) -> None:
    for more in (0, 1):
        for last in (0, 1):
            stage = [0] * (count - 1 + more) + [last]
            one, loop = _checked(f"{call}\nT.copy(y, B[k, 0:64])", stage)
            other, written = _checked(f"{text}\nT.copy(y, B[k, 0:64])", stage)
            assert one is other
            assert [type(s) for s in loop.body] == [type(s) for s in written.body]


def test_a_value_is_read_before_the_macro_changes_it() -> None:
    verdict, loop = _checked("late(y[0], A, y, z, k)\nT.copy(z, B[k, 0:64])", [0, 0, 1])
    assert isinstance(loop.body[0], ir.Bind)
    assert verdict is not Verdict.PROVED  # there are four statements


def test_what_an_annotation_does_not_tell_is_not_known() -> None:
    body = "named(v)\nT.fill(y, v)\nT.copy(y, B[k, 0:64])"
    assert _checked(body, [0, 0])[0] is Verdict.PROVED
    assert _checked(body, [0, 0], "'T.int32'")[0] is Verdict.PROVED
    assert _checked(body, [0, 0], "R")[0] is not Verdict.PROVED
    for kind in ("T.Ref", "'T.Ref'", "T.Var"):
        verdict, loop = _checked(body, [0, 0, 0], kind)
        assert verdict is Verdict.PROVED
        assert isinstance(loop.body[0], ir.DataOp)


def test_a_reference_to_an_element_is_not_followed() -> None:
    verdict, _ = _checked("raised(y[0])\nT.copy(y, B[k, 0:64])", [0, 0])
    assert verdict is not Verdict.PROVED
