"""TileLang: an index that is surely negative counts from the end; one that may be negative is not told from others."""

from __future__ import annotations

import itertools

import pytest

from fencepost import ir
from fencepost.findings import Verdict
from fencepost.frontends.tilelang import read
from fencepost.frontends.tilelang.regions import dimension, index_dim
from fencepost.frontends.tilelang.signs import bounds_of
from fencepost.frontends.tilelang.values import Part, Place, Vague
from fencepost.pipeline.check import check_pipeline, pipelines

PROGRAM = """\
import tilelang.language as T

def make(some):
    @T.prim_func
    def main(A: T.Tensor((16, 64), T.float16), B: T.Tensor((16, 64), T.float16)):
        with T.Kernel(1, threads=128) as bx:
            x = T.alloc_shared((2, 64), T.float16)
            T.clear(x)
            for k in T.Pipelined(16, stage=[1, 0], order=[0, 1]):
                T.copy(x[{read}, 0:64], B[k, 0:64])
                T.copy(A[k, 0:64], x[{write}, 0:64])
    return main
"""
PROVED, REFUTED = Verdict.PROVED, Verdict.REFUTED


def _verdict(read_slot: str, write_slot: str) -> Verdict:
    result = read(PROGRAM.format(read=read_slot, write=write_slot), "t.py")
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    return check_pipeline(pipelines(kernel)[0], kernel).verdict


@pytest.mark.parametrize(
    ("read_slot", "write_slot", "verdict"),
    [
        ("-1", "1", REFUTED),
        ("-1", "0", PROVED),
        ("-2", "0", REFUTED),
        ("-2", "1", PROVED),
        ("k % 2 - 2", "1", REFUTED),
        ("k % 2 - 2", "k % 2", REFUTED),
        ("k % 2 - 2", "(k + 1) % 2", PROVED),
        ("-1 - k % 2", "(k + 1) % 2", REFUTED),
        ("-1 - k % 2", "k % 2", PROVED),
        ("(k + 1) % 2", "k % 2", PROVED),
    ],
)
def test_a_negative_index_counts_from_the_end(read_slot: str, write_slot: str, verdict: Verdict) -> None:
    assert _verdict(read_slot, write_slot) is verdict


@pytest.mark.parametrize("slot", ["k % 2 - 1", "some", "some - 1", "-3", "-1:0", "k - 1"])
def test_what_may_be_negative_is_not_told_from_the_others(slot: str) -> None:
    assert _verdict(slot, "1") is not PROVED
    assert _verdict(slot, "0") is not PROVED


def test_indices_and_stretches() -> None:
    k, n = ir.Name("k"), ir.Name("n")
    known = {"k": (0, 3)}
    assert index_dim(ir.Int(-1), ir.Int(4)) == Part(3, 4)
    assert index_dim(ir.Int(-5), ir.Int(4)) == Vague()
    assert index_dim(ir.Int(-1), n) == index_dim(ir.Int(-1), None) == Vague()
    assert index_dim(k, ir.Int(4), known) == Place(k)
    assert index_dim(k, ir.Int(4)) == Vague()
    assert index_dim(ir.Binary("-", k, ir.Int(1)), ir.Int(4), known) == Vague()
    behind = ir.Binary("-", k, ir.Int(4))
    assert index_dim(behind, ir.Int(4), known) == Place(ir.Binary("+", behind, ir.Int(4)))
    assert dimension(ir.Int(-2), ir.Int(-1), ir.Int(4)) == Vague()
    assert dimension(k, ir.Binary("+", k, ir.Int(2)), ir.Int(4)) == Vague()


A, B = ir.Name("a"), ir.Name("b")
EXPRESSIONS: list[ir.Expr] = [
    *(ir.Binary(op, A, B) for op in ("+", "-", "*")),
    *(ir.Binary(op, ir.Binary("+", A, B), ir.Int(3)) for op in ("//", "%")),
    *(ir.Binary("*", ir.Int(f), ir.Binary("-", A, B)) for f in (-2, 0, 3)),
    ir.Unary("-", A),
    ir.Unary("not", A),
    ir.Choose(ir.Compare(A, (("<", B),)), A, B),
    ir.Call("min", (A, B)),
    ir.Call("max", (A, B)),
]


def _value(expr: ir.Expr, names: dict[str, int]) -> int:
    match expr:
        case ir.Int(number):
            return number
        case ir.Name(name):
            return names[name]
        case ir.Unary(op, operand):
            return -_value(operand, names) if op == "-" else int(not _value(operand, names))
        case ir.Compare(first, ((_, second),)):
            return int(_value(first, names) < _value(second, names))
        case ir.Choose(test, one, other):
            return _value(one if _value(test, names) else other, names)
        case ir.Call(function, arguments):
            return (min if function == "min" else max)(_value(a, names) for a in arguments)
        case ir.Binary(op, left, right):
            a, b = _value(left, names), _value(right, names)
            return {"+": a + b, "-": a - b, "*": a * b}[op] if op in "+-*" else a // b if op == "//" else a % b
    raise AssertionError(expr)


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_every_value_lies_within_the_bounds(expr: ir.Expr) -> None:
    for a, b in itertools.product([(-3, -1), (-2, 2), (0, 0), (0, 2), (1, 4)], repeat=2):
        low, high = bounds_of(expr, {"a": a, "b": b})
        values = [_value(expr, {"a": x, "b": y}) for x in range(a[0], a[1] + 1) for y in range(b[0], b[1] + 1)]
        assert (low is None or low <= min(values)) and (high is None or max(values) <= high)
        assert bounds_of(expr, {}) in {(None, None), (0, 1), (0, 2), (0, 0)}
