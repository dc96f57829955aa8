"""TileLang: two unknown values are one only if they surely are, and an unknown value may be any integer."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from fencepost import ir
from fencepost.findings import Verdict
from fencepost.frontends.tilelang import read
from fencepost.pipeline.check import check_pipeline, pipelines
from fencepost.printer import print_expr
from fencepost.validate import validate

PROGRAM = """\
import tilelang
import tilelang.language as T
{module}


@tilelang.jit
def rows(A, B, size, offset, mask, dtype="float16"):
    M = T.const("M")
    A: T.Tensor((M, 64), dtype)
    B: T.Tensor((M, 64), dtype)

    with T.Kernel(1, threads=128) as bx:
        row = T.alloc_fragment((64,), dtype)
        two = T.alloc_fragment((2, 64), dtype)
        tile = T.alloc_fragment((size, 64), dtype)
        T.clear(row)
        for k in T.Pipelined(M, stage=[0, 1], order=[0, 1]):
{body}
"""


def _kernel(body: str, module: str = "") -> ir.Kernel:
    text = PROGRAM.format(body=indent(dedent(body).strip("\n"), " " * 12), module=dedent(module))
    result = read(text, "t.py")
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    assert not validate(kernel)
    return kernel


def _verdict(body: str, module: str = "") -> Verdict:
    kernel = _kernel(body, module)
    return check_pipeline(pipelines(kernel)[0], kernel).verdict


PART = """
@T.macro
def part(slot, write, A, B, k, buf):
    {slot}
    if write:
        T.copy(A[k, 0:64], buf[s, 0:64])
    else:
        T.copy(buf[s, 0:64], B[k, 0:64])
"""

ONCE_EACH = {
    "an operation": "s = slot & 1",
    "an operation of an operation": "s = slot ^ 1 ^ 2",
    "a conversion": "s = T.shift_right(slot, 1)",
}
TWICE = {
    "a function": "s = foreign(slot)",
    "a method": "s = thing.next()",
    "a dictionary": "d = {'x': slot}\n    s = d['x']",
    "an attribute": "s = thing.counter",
}


@pytest.mark.parametrize("slot", ONCE_EACH.values(), ids=ONCE_EACH)
def test_a_value_is_that_of_its_arguments(slot: str) -> None:
    module = PART.format(slot=slot)
    for other, same in (("k", True), ("k + 1", False)):
        body = f"part(k, True, A, B, k, two)\npart({other}, False, A, B, k, two)"
        assert (_verdict(body, module) is Verdict.PROVED) is same


@pytest.mark.parametrize("slot", TWICE.values(), ids=TWICE)
def test_what_is_evaluated_twice_may_have_two_values(slot: str) -> None:
    body = "part(k, True, A, B, k, two)\npart(k, False, A, B, k, two)"
    assert _verdict(body, PART.format(slot=slot)) is not Verdict.PROVED


ROUNDS = """
for w in (True, False):
    s = ({} if w else {}) & 1
    if w:
        T.copy(A[k, 0:64], two[s, 0:64])
    else:
        T.copy(two[s, 0:64], B[k, 0:64])
"""


def test_each_round_of_a_loop_of_python_is_evaluated_by_itself() -> None:
    assert _verdict(ROUNDS.format("k", "k")) is Verdict.PROVED
    assert _verdict(ROUNDS.format("k + 1", "k")) is Verdict.REFUTED


def test_a_choice_in_a_macro_is_made_each_time() -> None:
    slot = "s = 0\n    if mask_of(slot):\n        s = 1"
    body = "part(0, True, A, B, k, two)\npart(1, False, A, B, k, two)"
    assert _verdict(body, PART.format(slot=slot)) is not Verdict.PROVED


# ------------------------------------------------------------------------------------------------ any integer

MAY_BE_NEGATIVE = ["offset >= 0", "(offset ^ mask) >= 0", "offset + 5 > 0", "M - offset <= M", "foreign(3) >= 0"]
NEVER_NEGATIVE = ["M >= 0", "size >= 0", "size + 5 > 0", "bx >= 0"]
FILL = "if {}:\n    T.copy(A[k, 0:64], row)\nT.copy(row, B[k, 0:64])"


@pytest.mark.parametrize("condition", MAY_BE_NEGATIVE)
def test_only_a_size_is_never_negative(condition: str) -> None:
    assert _verdict(FILL.format(condition)) is Verdict.REFUTED


@pytest.mark.parametrize("condition", NEVER_NEGATIVE)
def test_a_size_is_never_negative(condition: str) -> None:
    assert _verdict(FILL.format(condition)) is Verdict.PROVED


def test_the_size_of_a_buffer_that_may_not_be_made_says_nothing() -> None:
    made = "if mask > 0:\n    more = T.alloc_fragment((offset, 64), dtype)\n    T.clear(more)\n"
    kernel = _kernel(made + "if offset >= 0:\n    T.copy(A[k, 0:64], row)\n")
    assert [print_expr(a) for a in kernel.assumes] == ["M >= 0"]
