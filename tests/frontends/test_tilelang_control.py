"""TileLang: what a value depends on, and whether a statement runs, are part of what is read."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from fencepost import ir
from fencepost.findings import Verdict
from fencepost.frontends.tilelang import read
from fencepost.pipeline.check import check_pipeline, pipelines
from fencepost.pipeline.result import PipelineResult
from fencepost.validate import validate

PROGRAM = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def rows(A, B, last, width, count, flag, dtype="float16"):
    M = T.const("M")
    A: T.Tensor((M, 64), dtype)
    B: T.Tensor((M, 64), dtype)
    last: T.Tensor((64,), dtype)

    with T.Kernel(1, threads=128) as bx:
        row = T.alloc_fragment((64,), dtype)
        tile = T.alloc_fragment((width, count), dtype)
        T.clear(row)
        for k in T.Pipelined(M, {notes}):
{body}
        {after}
"""


def _check(body: str, notes: str = "", after: str = "") -> tuple[PipelineResult, tuple[str, ...]]:
    count = len(dedent(body).strip("\n").splitlines())
    notes = notes or ("stage=[0, 1], order=[0, 1]" if count else "")
    text = PROGRAM.format(notes=notes, body=indent(dedent(body).strip("\n"), " " * 12), after=after or "pass")
    result = read(text, "t.py")
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    assert not validate(kernel)
    return check_pipeline(pipelines(kernel)[0], kernel), result.assumptions.get(kernel.name, ())


STORE = "T.copy(row, B[k, 0:64])"
LEFT = "T.copy(row, last)"

CHANGING = {
    "the number of the iteration": "T.fill(row, k)",
    "by keyword": "T.fill(row, value=k)",
    "arithmetic": "T.fill(row, (k + 1) % 3)",
    "a conversion": "T.fill(row, T.cast(k, 'float16'))",
    "a member": "T.fill(row, (k + 1).astype('float16'))",
    "chosen on the device": "T.fill(row, T.if_then_else(k > 3, 1, 0))",
    "chosen by Python": "T.fill(row, k if flag else 0)",
    "an operation that is not computed": "T.fill(row, k ^ 3)",
    "an inner loop": "for i in T.serial(4):\n    T.fill(row, k + i)",
    "outside of the text": "T.fill(row, T.call_extern('float16', 'clock'))",
    "random": "T.fill(row, T.rng_rand_float())",
}


@pytest.mark.parametrize("statement", CHANGING.values(), ids=CHANGING)
def test_a_filling_that_changes_leaves_its_last_value(statement: str) -> None:
    found, _ = _check(f"{statement}\n{STORE}", after=LEFT)
    assert found.verdict is Verdict.REFUTED
    assert "925" in {f.code for f in found.faults}


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "count",
        "count * 2",
        "bx",
        "-T.infinity(dtype)",
        "T.float16(1)",
        "T.get_thread_binding()",
        "T.max(count, 3)",
    ],
)
def test_a_filling_that_is_always_the_same(value: str) -> None:
    assert _check(f"T.fill(row, {value})\n{STORE}", after=LEFT)[0].verdict is Verdict.PROVED


def test_a_filling_over_an_inner_loop_only_is_always_the_same() -> None:
    found, _ = _check(f"for i in T.serial(4):\n    T.fill(row, i)\n{STORE}", after=LEFT)
    assert found.verdict is Verdict.PROVED


@pytest.mark.parametrize("other", ["v = 0", "v = k + 1", "pass"])
def test_a_value_that_a_choice_of_python_gives(other: str) -> None:
    body = f"if flag:\n    v = k\nelse:\n    {other}\nT.fill(row, v)\n{STORE}"
    found, _ = _check(body, "stage=[0, 0, 1], order=[0, 1, 2]", LEFT)
    assert found.verdict is Verdict.REFUTED


def test_a_global_tensor_that_is_filled_with_the_iteration() -> None:
    """All iterations fill the same place, and a later stage uses it when the next one has come."""
    body = "T.fill({0}, {1})\nT.copy(A[k, 0:64], row)\nfor i in T.Parallel(64):\n    B[k, i] = {0}[i] + row[i]"
    notes = "stage=[0, 0, 1], order=[0, 1, 2]"
    assert _check(body.format("last", "k"), notes)[0].verdict is Verdict.REFUTED
    assert _check(body.format("last", "1"), notes)[0].verdict is Verdict.PROVED


@pytest.mark.parametrize("statement", ["T.fill(row, k)", "row[0] = k", "T.atomic_add(B[0, 0], k)"])
def test_the_kernel_ir_says_on_what_a_value_depends(statement: str) -> None:
    result = read(PROGRAM.format(notes="num_stages=1", body=" " * 12 + statement, after="pass"), "t.py")
    operations = [n for n in ir.walk(result.kernels[0]) if isinstance(n, ir.DataOp) and n.at]
    assert [op.at for op in operations] == [(ir.Name("k"),)]


LOAD = "T.copy(A[k, 0:64], row)"

PERHAPS_NEVER = {
    "no round": "for i in T.serial(0):\n    {}",
    "an empty range": "for i in T.serial(5, 5):\n    {}",
    "a range that ends before it begins": "for i in T.serial(5, 3):\n    {}",
    "backwards, and not": "for i in T.serial(0, 5, -1):\n    {}",
    "a number of the caller": "for i in T.serial(count):\n    {}",
    "less three": "for i in T.serial(count - 3):\n    {}",
    "a quotient": "for i in T.serial(width // 64):\n    {}",
    "rounded up": "for i in T.serial(T.ceildiv(count, 64)):\n    {}",
    "unrolled": "for i in T.unroll(count):\n    {}",
    "vectorized": "for i in T.vectorized(count):\n    {}",
    "python": "for i in range(count):\n    {}",
    "in a round of a parallel loop": "for j in T.Parallel(64):\n    for i in T.serial(0):\n        row[j] = A[k, j]",
    "so often in a parallel loop": "for j in T.Parallel(64):\n    for i in T.serial(count):\n        row[j] = A[k, j]",
    "parallel beside": "for j, i in T.Parallel(64, count):\n    row[j] = A[k, j]",
    "parallel in part": "for i in T.Parallel(width // 4):\n    {}",
    "if": "with T.If(k > 3):\n    with T.Then():\n        {}",
    "if, on one line": "with T.If(k > 3), T.Then():\n    {}",
    "else": "with T.If(k > 3):\n    with T.Then():\n        T.print(k)\n    with T.Else():\n        {}",
    "if in a parallel loop": "for i in T.Parallel(64):\n    with T.If(i < 3), T.Then():\n        row[i] = A[k, i]",
    "while": "with T.While(count > 3):\n    {}",
    "some threads": "with T.ws(0):\n    {}",
    "threads of a parallel loop": "for i in T.Parallel(64):\n    with T.ws(0):\n        row[i] = A[k, i]",
    "a block that is not known": "with T.sometimes(3):\n    {}",
    "a block of somebody": "with section():\n    {}",
    "the first round of a reduction": "with T.sblock('b'):\n    with T.init():\n        {}",
    "a predicate": "with T.sblock('b'):\n    T.where(k > 3)\n    {}",
    "two blocks": "with T.attr(0, 'x', 1), T.sometimes(3):\n    {}",
}

SURELY = {
    "nothing around": "{}",
    "some rounds": "for i in T.serial(4):\n    {}",
    "some rounds from a start": "for i in T.serial(3, 5):\n    {}",
    "one by one": "for j in T.serial(64):\n    row[j] = A[k, j]",
    "parallel": "for j in T.Parallel(64):\n    row[j] = A[k, j]",
    "parallel beside": "for j, i in T.Parallel(64, 4):\n    row[j] = A[k, j]",
    "both arms": "with T.If(k > 3):\n    with T.Then():\n        {0}\n    with T.Else():\n        {0}",
    "a label": "with T.attr(0, 'x', 1):\n    {}",
    "a block": "with T.sblock('b'):\n    {}",
    "two labels": "with T.attr(0, 'x', 1), T.ws_op('y'):\n    {}",
}


def _carried(load: str) -> PipelineResult:
    """One iteration may take over what an earlier one has loaded: then its version of the buffer is the wrong one."""
    return _check(f"{load.format(LOAD)}\n{STORE}")[0]


@pytest.mark.parametrize("load", PERHAPS_NEVER.values(), ids=PERHAPS_NEVER)
def test_what_may_never_run_does_not_fill_a_buffer(load: str) -> None:
    assert _carried(load).verdict in (Verdict.REFUTED, Verdict.UNKNOWN)


@pytest.mark.parametrize("load", SURELY.values(), ids=SURELY)
def test_what_surely_runs_fills_a_buffer(load: str) -> None:
    assert _carried(load).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    "load",
    [
        "for i, j in T.Parallel(width, count):\n    tile[i, j] = A[k, i]",
        "for i in T.serial(width):\n    for j in T.serial(count):\n        tile[i, j] = A[k, i]",
        "for i in T.serial(width):\n    for j in T.vectorized(count):\n        tile[i, j] = A[k, i]",
    ],
)
def test_a_loop_over_all_of_a_buffer_fills_it_however_large_it_is(load: str) -> None:
    """If it has no round, then the buffer has no entry."""
    use = "for i, j in T.Parallel(width, count):\n    B[k, 0] = tile[i, j]"
    assert _check(f"{load}\n{use}")[0].verdict is Verdict.PROVED
    assert _check(f"{load.replace('count', 'count - 1')}\n{use}")[0].verdict is not Verdict.PROVED


def test_some_threads_are_told() -> None:
    _, told = _check(f"with T.ws(0):\n    {LOAD}\n{STORE}")
    assert told == ("`with T.ws(0)` on line 17 runs its body or not, whichever may be",)


@pytest.mark.parametrize(
    "body",
    [
        "with T.If(k > 3):\n    T.print(k)",
        "with T.If(k > 3):\n    with T.Else():\n        pass\n    with T.Then():\n        pass",
        "with T.Then():\n    pass",
        "with T.If(k > 3) as c:\n    pass",
        "with T.attr(0, 'x', 1) as v:\n    T.fill(row, v)",
        "with T.LetStmt(k) as v:\n    T.fill(row, v)",
    ],
)
def test_blocks_that_are_not_understood_are_said(body: str) -> None:
    found, _ = _check(f"{body}\n{STORE}")
    assert found.verdict is Verdict.UNKNOWN
    assert "`with " in str(found.unknown)


def test_buffers_that_one_arm_names() -> None:
    """The name may stand for either after it."""
    body = f"to = row\nwith T.If(count > 3), T.Then():\n    to = last\nT.copy(A[k, 0:64], to)\n{STORE}"
    assert _check(body, "stage=[0, 0, 1], order=[0, 1, 2]")[0].verdict is not Verdict.PROVED


ROUNDS = {
    "behind an entry": ("for j in T.serial(64):\n    row[j] = A[k, j]\n{inner}", Verdict.REFUTED),
    "before an entry": ("for j in T.serial(64):\n{inner}\n    row[j] = A[k, j]", Verdict.REFUTED),
    "behind the loop": (
        "for h in T.serial(1):\n    for j in T.serial(64):\n        row[j] = A[k, j]\n{inner}",
        Verdict.PROVED,
    ),
    "behind another loop": (
        "for j in T.serial(64):\n    for m in T.serial(64):\n        row[m] = A[k, m]\n{inner}",
        Verdict.PROVED,
    ),
}


@pytest.mark.parametrize(("body", "verdict"), ROUNDS.values(), ids=ROUNDS)
def test_a_loop_that_still_runs_has_not_filled_anything(body: str, verdict: Verdict) -> None:
    inner = "    for i in T.serial(64):\n        tile[i, 0] = tile[i, 0] + row[i]"
    found, _ = _check(f"{body.format(inner=inner)}\n{STORE}", after="T.copy(tile, last)")
    assert found.verdict is verdict and {f.code for f in found.faults} == ({"922"} if found.faults else set())


def test_the_entry_of_the_same_round_is_filled() -> None:
    body = "for j in T.serial(64):\n    row[j] = A[k, j]\n    B[k, j] = row[j]"
    found, _ = _check(f"{body}\nT.copy(A[k, 0:64], tile)")
    assert found.verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("written", "verdict"),
    [("row[j] = A[k, j]", Verdict.UNKNOWN), ("for i in T.serial(64):\n        row[i] = A[k, i]", Verdict.PROVED)],
)
def test_a_loop_around_a_pipelined_loop_still_runs(written: str, verdict: Verdict) -> None:
    inner = "    for m in T.Pipelined(4):\n        T.copy(row, last)"
    found, _ = _check(f"for j in T.serial(64):\n    {written}\n{inner}\n{STORE}")
    assert found.verdict is verdict


SHARED = """\
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 1024), "float16"), C: T.Tensor((64, 1024), "float16"), D: T.Tensor((64, 1024), "float16")):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((64, 64), "float16")
        for k in T.Pipelined(16, {notes}):
            for i, j in T.Parallel(64, 64):
                s[i, j] = {value}
            T.copy(s, C[0, k * 64])
            T.copy(s, D[0, k * 64])
"""
MASKED = [
    "A[i, k * 64 + j]",
    "T.cast(A[i, k * 64 + j], 'float16')",
    "T.if_then_else(k < 10, A[i, k * 64 + j], T.float16(0))",
    "A[i, k * 64 + j] if i > k else 0",
    "T.if_then_else(i > k, A[i, k * 64 + j], A[i, j])",
]


def _shared(value: str, notes: str) -> PipelineResult:
    (kernel,) = read(SHARED.format(value=value, notes=notes), "t.py").kernels
    return check_pipeline(pipelines(kernel)[0], kernel)


@pytest.mark.parametrize("value", MASKED)
def test_elements_that_are_copied_are_copied_asynchronously_with_a_mask_as_well(value: str) -> None:
    assert {f.code for f in _shared(value, "stage=[0, 0, 1], order=[0, 1, 2]").faults} == {"928"}
    assert _shared(value, "stage=[0, 1, 1], order=[2, 0, 1]").verdict is Verdict.PROVED
    assert "stage = (0, 1, 1)" in _shared(value, "num_stages=2").evidence


@pytest.mark.parametrize(
    "value", ["A[i, k * 64 + j] * 2", "A[i, k * 64 + j] + k", "T.if_then_else(k < 3, A[i, j], s[j, i])"]
)
def test_elements_that_are_computed_from_global_memory_are_not_judged(value: str) -> None:
    """The compiler plans them as asynchronous copies, but they are none."""
    assert _shared(value, "stage=[0, 1, 1], order=[2, 0, 1]").verdict is Verdict.UNKNOWN
    assert _shared(value, "num_stages=2").verdict is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize("value", ["k", "T.if_then_else(k < 3, 1, 0)", "s[j, i]"])
def test_elements_that_are_not_brought_from_global_memory(value: str) -> None:
    assert _shared(value, "stage=[0, 0, 0], order=[0, 1, 2]").verdict is Verdict.PROVED
