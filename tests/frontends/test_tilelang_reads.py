"""TileLang: whatever a statement reads, wherever in its text, is read by the statement."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from fencepost import ir
from fencepost.findings import Verdict
from fencepost.frontends.result import ReadResult
from fencepost.frontends.tilelang import read
from fencepost.pipeline.check import check_pipeline, pipelines
from fencepost.pipeline.result import PipelineResult
from fencepost.printer import print_kernel
from fencepost.validate import validate

HEADER = """\
import tilelang
import tilelang.language as T


@T.macro
def put(place, A, B):
    B[0, 0] = A[place, 0]


@tilelang.jit
def gather(A, B, I, block, dtype="float16"):
    M, K = T.const("M, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((M, K), dtype)
    I: T.Tensor((M, K), "int32")

    with T.Kernel(64, threads=128) as bx:
        a = T.alloc_shared((block, 64), dtype)
        cnt = T.alloc_shared((64,), "int32")
        ring = T.alloc_shared((4, 64), dtype)
        f = T.alloc_fragment((block, 64), dtype)
        v = T.alloc_var("int32")
"""


def _read(body: str) -> ReadResult:
    result = read(HEADER + indent(dedent(body).strip("\n"), " " * 8) + "\n", "t.py")
    assert not result.errors, result.errors
    return result


def _kernel(body: str) -> ir.Kernel:
    (kernel,) = _read(body).kernels
    assert not validate(kernel)
    return kernel


def _check(body: str) -> PipelineResult:
    kernel = _kernel(body)
    return check_pipeline(pipelines(kernel)[0], kernel)


def _loop(*statements: str, notes: str, after: str = "") -> str:
    inside = "\n".join(indent(dedent(s).strip("\n"), "    ") for s in statements)
    return f"for k in T.Pipelined(T.ceildiv(K, 64), {notes}):\n{inside}\n{after}"


FILL = "T.copy(I[bx, k * 64], cnt)"

READERS = {
    "index of a source": "T.copy(A[bx * block, cnt[0] * 64], B[bx * block, k * 64])",
    "index of a target": "T.copy(A[bx, k * 64], B[bx * block, cnt[0] * 64])",
    "end of a slice": "T.copy(A[0 : cnt[0], k * 64], B[bx * block, k * 64])",
    "beginning of a slice": "T.copy(A[cnt[0] : M, k * 64], B[bx * block, k * 64])",
    "inside a maximum": "T.copy(A[T.max(cnt[0], 1), k], B[bx, k])",
    "index of an index": "B[bx, k] = A[I[0, cnt[0]], 0]",
    "index of an index of an index": "B[bx, k] = A[I[0, I[0, cnt[0]]], 0]",
    "parallel": "for i, j in T.Parallel(block, 64):\n    B[i, j] = A[cnt[i], j]",
    "scalar in a parallel loop": "for i, j in T.Parallel(block, 64):\n    s = cnt[i]\n    B[i, j] = A[s, j]",
    "bound of a parallel loop": "for i, j in T.Parallel(cnt[0], 64):\n    B[i, j] = A[i, j]",
    "serial": "for i in T.serial(64):\n    T.copy(A[cnt[i], 0], B[i, 0])",
    "scalar in a serial loop": "for i in T.serial(64):\n    s = cnt[i]\n    T.copy(A[s, 0], B[i, 0])",
    "bound of a serial loop": "for i in T.serial(cnt[0]):\n    B[i, 0] = A[i, 0]",
    "start of a serial loop": "for i in T.serial(cnt[0], 64):\n    B[i, 0] = A[i, 0]",
    "while": "while cnt[0] > 0:\n    T.copy(A[0, 0], B[0, 0])",
    "bound of a pipelined loop": "for i in T.Pipelined(cnt[0], num_stages=0):\n    B[i, 0] = A[i, 0]",
    "slice that has a name": "x = A[cnt[0] : cnt[0] + 1, 0:64]\nT.copy(x, B[0:1, 0:64])",
    "printed": "T.print(A[cnt[0], 0])",
    "an unknown loop": "for i in T.persistent(cnt[0]):\n    B[0, 0] = A[0, 0]",
    "scalar in a branch": "if k >= 0:\n    s = cnt[0]\n    T.copy(A[0, s * 64], B[0, 0])",
    "scalar of a scalar in a branch": "if k >= 0:\n    s = cnt[0]\n    t = s ^ 3\n    T.copy(A[0, t], B[0, 0])",
    "condition": "if cnt[0] > 0:\n    T.copy(A[0, 0], B[0, 0])",
    "condition of an else": "if k > 3:\n    B[0, 0] = 1\nelif cnt[0] > 0:\n    B[0, 0] = 2",
    "choice": "B[0, 0] = T.if_then_else(cnt[0] > 0, A[0, 0], A[1, 1])",
    "chosen": "B[0, 0] = T.if_then_else(k > 0, A[cnt[0], 0], A[1, 1])",
    "conditional expression": "B[0, 0] = v if cnt[0] > 0 else 1",
    "scalar variable": "B[0, 0] = A[cnt[0] + v, 0]",
    "into a scalar variable": "for i in T.serial(4):\n    v = cnt[i]\n    B[0, 0] = A[v, 0]",
    "augmented": "B[cnt[0], 0] += 1",
    "augmented by": "B[0, 0] += A[cnt[0], 0]",
    "value of an atomic": "T.atomic_add(B[0, 0], A[cnt[0], 0])",
    "place of an atomic": "T.atomic_add(B[cnt[0], 0], A[0, 0])",
    "fill": "T.fill(B[cnt[0], 0], 0)",
    "filled with": "T.fill(B, A[cnt[0], 0])",
    "operand of a product": "T.gemm(a[cnt[0] : block, 0:64], a, B)",
    "flag of a product": "T.gemm(a, a, B, clear_accum=cnt[0] > 0)",
    "unknown operation": "T.call_extern('handle', 'f', T.access_ptr(B[0, 0], 'w', cnt[0]))",
    "place for an unknown operation": "T.call_extern('handle', 'f', T.access_ptr(B[cnt[0], 0], 'w'))",
    "pointer of a buffer": "T.call_extern('handle', 'f', cnt.access_ptr('r'), T.access_ptr(B, 'w'))",
    "list": "T.call_extern('handle', 'f', [cnt[0], 1], T.access_ptr(B, 'w'))",
    "named list": "t = (cnt[0], 1)\nB[0, 0] = A[t[0], 0]",
    "sum": "B[0, 0] = sum(cnt[i] for i in range(3))",
    "sum over": "B[0, 0] = sum(x for x in [cnt[0], cnt[1]])",
    "macro": "put(cnt[0], A, B)",
    "scope": "with T.attr(cnt[0], 'x', 1):\n    B[0, 0] = A[0, 0]",
    "from a list": "for x in (cnt[0], 1):\n    B[0, 0] = A[x, 0]",
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_in_an_earlier_stage(name: str) -> None:
    reader = READERS[name]
    entries = len(pipelines(_kernel(_loop(FILL, reader, notes="num_stages=0")))[0].body)
    notes = f"stage={[1] + [0] * (entries - 1)}, order={list(range(entries))}"
    codes = {f.code for f in _check(_loop(FILL, reader, notes=notes)).faults}
    assert "903" in codes, codes


@pytest.mark.parametrize("name", READERS)
def test_a_reader_in_a_later_stage(name: str) -> None:
    """The same statements where they belong are never refuted for what they read of it."""
    reader = READERS[name]
    entries = len(pipelines(_kernel(_loop(FILL, reader, notes="num_stages=0")))[0].body)
    notes = f"stage={[0] + [1] * (entries - 1)}, order={list(range(entries))}"
    assert not [f for f in _check(_loop(FILL, reader, notes=notes)).faults if "cnt" in f.message]


LATE = "for i, j in T.Parallel(block, 64):\n    B[i, j] = A[cnt[i], j]"


@pytest.mark.parametrize(
    "after", [LATE, "T.copy(cnt, I[0, 0])", "B[0, 0] = A[cnt[0], 0]", "for i in T.serial(cnt[0]):\n    B[i, 0] = 1"]
)
def test_a_read_after_the_loop(after: str) -> None:
    result = _check(_loop(FILL, LATE, notes="stage=[0, 1], order=[0, 1]", after=after))
    assert [f.code for f in result.faults] == ["925"]


def test_a_read_in_another_pipelined_loop() -> None:
    later = _loop("B[bx, k] = A[cnt[0], 0]", notes="num_stages=0")
    result = _check(_loop(FILL, LATE, notes="stage=[0, 1], order=[0, 1]", after=later))
    assert [f.code for f in result.faults] == ["925"]


def test_a_buffer_that_is_cleared_before_it_is_read() -> None:
    result = _check(_loop(FILL, LATE, "T.clear(cnt)", notes="stage=[0, 1, 0], order=[0, 1, 2]"))
    assert [f.code for f in result.faults] == ["923", "931"]  # the copy may still be under way when it is cleared


# ------------------------------------------------------------------------------------------------ when it is read


@pytest.mark.parametrize(
    "statement",
    [
        "for i in T.serial(1):\n    s = cnt[0]\n    cnt[0] = 7\n    B[0, 0] = A[s, 0]",
        "if k >= 0:\n    s = cnt[0]\n    T.clear(cnt)\n    B[0, 0] = A[s, 0]",
    ],
)
def test_a_scalar_is_read_where_it_is_defined(statement: str) -> None:
    """What the statement writes afterwards does not hide that it reads what another one left."""
    codes = {f.code for f in _check(_loop(FILL, statement, notes="stage=[1, 0], order=[0, 1]")).faults}
    assert "903" in codes


def test_two_values_from_memory_are_not_one_value() -> None:
    before = "p = cnt[0]\nq = cnt[1]\n"
    steps = ("T.copy(A[0, k * 64], ring[p, :])", "T.copy(ring[q, :], B[0, k * 64])")
    same = before + _loop(steps[0], steps[1].replace("q", "p"), notes="stage=[0, 1], order=[0, 1]")
    assert _check(same).verdict is Verdict.PROVED
    other = before + _loop(*steps, notes="stage=[0, 1], order=[0, 1]")
    assert _check(other).verdict is Verdict.UNKNOWN


def test_a_value_that_the_loop_overwrites_is_another_one_each_time() -> None:
    body = _loop(
        "if I[bx, 0] > 0:\n    T.copy(A[0, k * 64], a)",
        "I[bx, 0] = k",
        "if I[bx, 0] > 0:\n    T.copy(a, B[0, k * 64])",
        notes="stage=[0, 0, 0], order=[0, 1, 2]",
    )
    tests = [n for s in _kernel(body).body for n in ir.walk(s) if isinstance(n, ir.Call) and n.function == "somewhere"]
    assert len({t.arguments[0] for t in tests}) >= 2


# ------------------------------------------------------------------------------------------------ which elements


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("for i in T.serial(0, 64, 2):\n    cnt[i] = k", None),
        ("for i in T.serial(v):\n    cnt[0] = k", None),
        ("for i in T.Parallel(64):\n    cnt[i ^ 1] = k", None),
        ("for i in T.Parallel(64):\n    cnt[i] = k", Verdict.PROVED),
    ],
)
def test_what_is_not_surely_filled(written: str, code: Verdict | None) -> None:
    """Only what fills all of a buffer hides what was there."""
    result = _check(_loop(written, LATE, notes="stage=[0, 1], order=[0, 1]"))
    assert result.verdict is (code or Verdict.UNKNOWN) and not result.faults


def test_no_finding_rests_on_places_that_are_not_known() -> None:
    """The loop updates its tile in place, each iteration its own columns."""
    steps = ("T.copy(B[bx * block, k * 64], a)", "T.copy(a, B[bx * block, k * 64])")
    result = _check(_loop(*steps, notes="stage=[0, 1], order=[0, 1]"))
    assert result.verdict is Verdict.UNKNOWN and not result.faults


@pytest.mark.parametrize(
    "statement", ["x = T.view(a[cnt[0], 0:64], (64,))", "x = T.make_tensor(I[cnt[0], 0], (64,), 'float16')"]
)
def test_memory_that_is_found_through_memory_is_said(statement: str) -> None:
    result = _check(_loop(FILL, statement, "T.copy(x, B[0, 0:64])", notes="stage=[0, 1], order=[0, 1]"))
    assert result.verdict is Verdict.UNKNOWN and result.evidence.startswith(("the loop", "line", "which"))


def test_an_action_in_a_subscript_is_said() -> None:
    kernel = _kernel(_loop(FILL, "B[T.atomic_add(cnt[0], 1, return_prev=True), 0] = 1", notes="num_stages=2"))
    notes = [n.reason for s in kernel.body for n in ir.walk(s) if isinstance(n, ir.Unsupported)]
    assert len(notes) == 1 and notes[0].startswith("what is done inside `B[T.atomic_add")


# ------------------------------------------------------------------------------------------------ what the pass sees


def test_subscripts_and_the_plan_of_the_compiler() -> None:
    """The planning pass does not look into subscripts: what it makes of such a loop is not claimed."""
    gather = (FILL, "T.copy(A[cnt[0], 0], a)", "T.copy(a, B[bx, k * 64])")
    result = _read(_loop(*gather, notes="num_stages=2"))
    (text,) = [t for t in result.assumptions["gather"] if "num_stages" in t]
    assert text.endswith("is left out: the compiler does not see what subscripts read (cnt)")
    assert _check(_loop(*gather, notes="num_stages=2")).verdict is Verdict.NOT_APPLICABLE
    table = ("T.copy(A[I[bx, k], 0], a)", "T.copy(a, B[bx, k * 64])")
    assert "stage = (0, 1), order = (0, 1)" in _check(_loop(*table, notes="num_stages=2")).evidence
    fixed = ("T.copy(A[cnt[0], k], a)", "T.copy(a, B[bx, k * 64])")
    assert "stage = (0, 1), order = (0, 1)" in _check(_loop(*fixed, notes="num_stages=2")).evidence


def test_subscripts_and_commit_groups() -> None:
    """A copy whose only user is a subscript has no last user for the planning pass."""
    body = _loop(
        FILL,
        "T.copy(A[bx, k * 64], a)",
        "for i, j in T.Parallel(block, 64):\n    B[cnt[i], j] = a[i, j]",
        notes="stage=[0, 0, 1], order=[0, 1, 2]",
    )
    (loop,) = pipelines(_kernel(body))
    assert loop.async_producer_groups == (0, 1, -1)


def test_as_kernel_ir() -> None:
    body = _loop(FILL, "if k >= 0:\n    s = cnt[0]\n    T.copy(A[s, 0], a)", "T.copy(a, B[0, 0])", notes="num_stages=0")
    lines = [line.strip() for line in print_kernel(_kernel(body)).splitlines()]
    assert {"buffer s in Vec", "store s <- cnt part 0 of 2 @ S", "tile_copy a <- A, s @ S"} <= set(lines)


VARYING = [
    "T.fill(a, {'x': k}['x'])",
    "T.fill(a, {'x': [k]}['x'][0])",
    "T.fill(a, {'x': k, 'y': 0}[bx])",
    "T.fill(a, {k: 1, 0: 2}[0])",
    "T.fill(a, {**{'x': k}}['x'])",
    "T.fill(a, {'x': k}.get('x'))",
    "T.fill(a, (lambda: k)())",
    "T.fill(a, (lambda k=k: k)())",
    "T.fill(a, outer())",
    "T.fill(a, named())",
    "T.fill(a, [*[0, k], 5][1])",
    "T.fill(a, ([1] if k % 2 else [2])[0])",
    "T.fill(a, f'{k}')",
    "T.fill(a, [k for _ in (0,)][0])",
    "T.fill(a, {k}.pop())",
    "d = {'x': k}\nT.fill(a, d['x'])",
    "d = lambda: k\nT.fill(a, d())",
    "d = [k for _ in (0,)]\nT.fill(a, d[0])",
]
FIXED = [
    "T.fill(a, {'x': 3}['x'])",
    "T.fill(a, (lambda: 3)())",
    "T.fill(a, [*[0, 1], 5][1])",
    "d = {}\nT.fill(a, d[0])",
]


def _filled(fill: str) -> PipelineResult:
    loop = _loop(fill, "T.copy(a, B[bx, k * 64])", notes="stage=[0, 1], order=[0, 1]", after="T.copy(a, A[0, 0])")
    return _check(f"outer = lambda: k\ndef named():\n    return outer()\n{loop}")


@pytest.mark.parametrize("fill", VARYING)
def test_values_that_are_not_understood_may_change_with_the_iteration(fill: str) -> None:
    assert [f.code for f in _filled(fill).faults] == ["925"]


@pytest.mark.parametrize("fill", FIXED)
def test_values_that_are_not_understood_but_do_not_change(fill: str) -> None:
    assert _filled(fill).verdict is Verdict.PROVED


@pytest.mark.parametrize("made", ["{}", "[0]"])
def test_entries_that_are_set_in_the_loop_are_said(made: str) -> None:
    assert _filled(f"d = {made}\nd[0] = k\nT.fill(a, d[0])").verdict is Verdict.UNKNOWN
