"""The TileLang front end: programs in, kernel IR and pipeline verdicts out."""

from __future__ import annotations

import ast
import os
import random
from pathlib import Path
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


@tilelang.jit
def scale(A, B, block, dtype="float16", stages: int = 2):
    M, K = T.const("M, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((M, K), dtype)

    with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
        a = T.alloc_shared((block, 64), dtype)
        f = T.alloc_fragment((block, 64), dtype)
        row = T.alloc_fragment((block,), "float32")
"""


def _read(body: str) -> ReadResult:
    return read(HEADER + indent(dedent(body).strip("\n"), " " * 8) + "\n", "t.py")


def _kernel(body: str) -> ir.Kernel:
    result = _read(body)
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    return kernel


def _check(body: str) -> PipelineResult:
    kernel = _kernel(body)
    return check_pipeline(pipelines(kernel)[0], kernel)


def _codes(body: str) -> list[str]:
    return [f.code for f in _check(body).faults]


LOOP = """
for k in T.Pipelined(T.ceildiv(K, 64), {}):
    T.copy(A[bx * block, k * 64], a)
    for i, j in T.Parallel(block, 64):
        f[i, j] = a[i, j] * 2
    T.copy(f, B[bx * block, k * 64])
"""


def test_as_kernel_ir() -> None:
    kernel = _kernel(LOOP.format("num_stages=stages"))
    assert not validate(kernel)
    assert print_kernel(kernel) == dedent(
        """\
        kernel scale(K):
            target gpu
            assume K >= 0
            buffer a in Mat
            buffer f in Vec

            section cube:
                for k in pipelined(0, ceildiv(K, 64), num_stages = 2):
                    tile_copy a <- A @ S
                    store f <- a @ S
                    tile_copy B <- f @ S
        """
    )


def test_spans_point_into_the_program() -> None:
    (loop,) = pipelines(_kernel(LOOP.format("num_stages=2")))
    assert [s.span.line for s in loop.body] == [16, 17, 19]
    assert (loop.body[0].span.column, loop.body[0].span.end_column) == (13, 45)


def test_assumptions() -> None:
    result = _read(LOOP.format("num_stages=stages"))
    assert result.assumptions["scale"] == (
        "stages is taken to be 2, its default",
        "ceildiv by something that is not constant: any integer",
    )


def test_verdicts() -> None:
    result = _check(LOOP.format("num_stages=3"))
    assert result.verdict is Verdict.PROVED and "stage = (0, 3, 3), order = (1, 0, 2)" in result.evidence
    assert _check(LOOP.format("stage=[0, 1, 1], order=[0, 1, 2]")).verdict is Verdict.PROVED
    assert _codes(LOOP.format("stage=[0, 1, 1], order=[0, 1, 1]")) == ["902", "904"]
    assert _codes(LOOP.format("stage=[1, 0, 1], order=[0, 1, 2]")) == ["903"]
    assert _codes(LOOP.format("stage=[0, 1], order=[0, 1]")) == ["901"]
    assert _codes(LOOP.format("order=[0, 1, 2]")) == ["908"]
    assert _check(LOOP.format("num_stages=0")).verdict is Verdict.NOT_APPLICABLE


def test_asynchronous_copies() -> None:
    """The compiler makes the copy asynchronous; its reader in the same stage races."""
    assert _codes(LOOP.format("stage=[0, 0, 1], order=[0, 1, 2]")) == ["928"]
    (loop,) = pipelines(_kernel(LOOP.format("stage=[0, 1, 1], order=[0, 1, 2]")))
    assert loop.async_producers == (1, 0, 0) and loop.async_producer_groups == (0, -1, -1)


def test_raw_annotations() -> None:
    loop = """
    for k in T.serial(0, 8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
        T.copy(A[bx, k * 64], a)
        T.copy(a, B[bx, k * 64])
    """
    (read_loop,) = pipelines(_kernel(loop))
    assert read_loop.stage == (0, 1) and read_loop.async_producers is None
    assert _check(loop).verdict is Verdict.PROVED


def test_lists_that_are_not_constant() -> None:
    result = _check(LOOP.format("stage=given, order=[0, 1, 2]"))
    assert result.verdict is Verdict.UNKNOWN
    assert "stage is not a list of constants" in result.evidence


def test_binds() -> None:
    body = """
    for k in T.Pipelined(8, stage=[0, 1], order=[1, 0]):
        base: T.int32 = k * 64
        T.copy(A[bx, base], a)
        T.copy(a, B[bx, base])
    """
    (loop,) = pipelines(_kernel(body))
    assert isinstance(loop.body[0], ir.Bind) and loop.body[0].name == "base"
    assert _check(body).verdict is Verdict.PROVED
    legacy = body.replace("[0, 1]", "[3, 0, 1]").replace("[1, 0]", "[1, 2, 0]")
    assert _codes(legacy) == ["910"]
    read_back = """
    for k in T.Pipelined(8, stage=[0, 1, 1], order=[0, 1, 2]):
        T.copy(A[bx, k * 64], a)
        first = a[0, 0]
        B[bx, k] = first + 1
    """
    assert _codes(read_back) == ["934"]
    assert _codes(read_back.replace("[0, 1, 1]", "[0, 1]").replace("[0, 1, 2]", "[0, 1]")) == ["901", "906"]


def test_accumulators() -> None:
    body = """
    for k in T.Pipelined(8, stage=[0, 0, 1, 2], order=[0, 1, 2, 3]):
        T.copy(A[bx, k * 64], a)
        T.copy(a, f)
        T.reduce_sum(f, row, dim=1{})
        T.copy(row, B[bx, k])
    """
    assert "922" in _codes(body.format(", clear=False"))
    assert "922" not in _codes(body.format(""))


def test_reductions_in_shared_memory() -> None:
    """The operand is copied to registers first, which is a statement of its own."""
    body = """
    for k in T.Pipelined(8, stage=[0, 1, 1, 1], order=[0, 1, 2, 3]):
        T.copy(A[bx, k * 64], a)
        T.reduce_sum(a, row, dim=1)
        T.copy(row, B[bx, k])
    """
    (loop,) = pipelines(_kernel(body))
    assert [s.op for s in loop.body if isinstance(s, ir.DataOp)] == [
        "tile_copy",
        "tile_copy",
        "tile_reduce_sum",
        "tile_copy",
    ]
    assert _check(body).verdict is Verdict.PROVED


def test_matrix_product() -> None:
    gemm = """
    for k in T.Pipelined(8, stage=[0, 1, 2], order=[0, 1, 2]):
        T.copy(A[bx, k * 64], a)
        T.gemm(a, a, f{})
        T.copy(f, B[bx, k])
    """
    assert _codes(gemm.format("")) == ["922"]
    assert _check(gemm.format(", clear_accum=True")).verdict is Verdict.PROVED


def test_parts_and_slots() -> None:
    halves = """
    for k in T.Pipelined(8, stage=[0, 0, 1], order=[0, 1, 2]):
        T.copy(A[bx, k * 64], a[:, 0:32])
        T.copy(A[bx, k * 64 + 32], a[:, 32:64])
        T.copy(a, B[bx, k * 64])
    """
    assert _check(halves).verdict is Verdict.PROVED
    reordered = halves.replace("[0, 1, 2]", "[1, 0, 2]")
    assert _codes(reordered) == ["904"]  # the compiler takes the second copy to read what it writes
    ring = """
    ring = T.alloc_shared((2, 64), dtype)
    for k in T.Pipelined(8, stage=[0, 1], order=[0, 1]):
        T.copy(A[bx, k * 64], ring[k % 2, :])
        T.copy(ring[k % 2, :], B[bx, k * 64])
    """
    kernel = _kernel(ring)
    assert kernel.buffers[0].depth == ir.Int(2)
    assert _check(ring).verdict is Verdict.PROVED


def test_partial_writes_keep_the_rest() -> None:
    body = """
    for k in T.Pipelined(8, stage=[0, 1], order=[0, 1]):
        for i in T.Parallel(block):
            if i < k:
                row[i] = A[bx, k]
        T.copy(row, B[bx, k])
    """
    result = _check(body)
    assert result.verdict is Verdict.UNKNOWN and not result.faults


def test_choices_at_compile_time() -> None:
    body = """
    for k in T.Pipelined(8, stage=[0, 1], order=[0, 1]):
        if True:
            T.copy(A[bx, k * 64], a)
        else:
            T.clear(a)
        if None:
            T.clear(f)
        T.copy(a, B[bx, k * 64])
    """
    (loop,) = pipelines(_kernel(body))
    assert len(loop.body) == 2
    unknown = body.replace("True", "causal")
    (loop,) = pipelines(_kernel(unknown))
    assert isinstance(loop.body[0], ir.If)
    assert _check(unknown).verdict is Verdict.PROVED


def test_conditions_on_the_iteration() -> None:
    body = """
    for k in T.Pipelined(K, stage=[0, 1], order=[0, 1]):
        if k % 2 == 0:
            T.copy(A[bx, k * 64], a)
        T.copy(a, B[bx, k * 64])
    T.copy(a, B[bx, 0])
    """
    assert "924" in _codes("T.clear(a)\n" + dedent(body))


def test_macros_and_python_loops() -> None:
    body = """
    @T.macro
    def load(target, column):
        T.copy(A[bx, column * 64], target)

    for k in T.Pipelined(8, stage=[0, 1, 1], order=[0, 1, 2]):
        load(a, k)
        for n in (0, 1):
            T.copy(a, B[bx, k * 64 + n])
    """
    (loop,) = pipelines(_kernel(body))
    assert [s.op for s in loop.body if isinstance(s, ir.DataOp)] == ["tile_copy"] * 3
    assert _check(body).verdict is Verdict.PROVED


@pytest.mark.parametrize("rounds", ["range(2)", "T.serial(2)", "range(0, 4, 2)", "range(1, M)"])
def test_range_is_a_loop_of_the_program(rounds: str) -> None:
    body = f"""
    for k in T.Pipelined(8, stage=[0, 1], order=[0, 1]):
        for n in {rounds}:
            T.copy(A[bx, k * 64], a)
        T.copy(a, B[bx, k * 64])
    """
    assert len(pipelines(_kernel(body))[0].body) == 2
    assert _check(body).verdict is (Verdict.UNKNOWN if "M" in rounds else Verdict.PROVED)
    as_three = body.replace("[0, 1]", "[0, 0, 1]", 1).replace("[0, 1]", "[0, 1, 2]", 1)
    assert _codes(as_three) == ["901"]


HELPER = """
def load(target, column):
    {body}

for k in T.Pipelined(8, stage=[0, 1], order=[0, 1]):
    {use}
    T.copy(a, B[bx, k * 64])
"""


@pytest.mark.parametrize(
    ("body", "use", "verdict"),
    [
        ("T.copy(A[bx, column * 64], target)", "load(a, k)", Verdict.UNKNOWN),
        ("for n in range(1): T.copy(A[bx, column * 64], target)", "load(a, k)", Verdict.UNKNOWN),
        ("if True: return T.copy(A[bx, column * 64], target)", "load(a, k)", Verdict.UNKNOWN),
        ("return T.copy(A[bx, column * 64], target)", "load(a, k)", Verdict.UNKNOWN),
        ("return column * 64", "T.copy(A[bx, load(0, k)], a)", Verdict.PROVED),
    ],
)
def test_operations_in_plain_functions_are_lost(body: str, use: str, verdict: Verdict) -> None:
    """The compiler rewrites macros; of other functions it sees only what they return, and we do not."""
    assert _check(HELPER.format(body=body, use=use)).verdict is verdict


@pytest.mark.parametrize("over", ["enumerate([a, a])", "zip([0, 1], [a, a])", "others(a)"])
def test_loops_over_python_objects_are_any_number_of_statements(over: str) -> None:
    body = f"""
    for k in T.Pipelined(8, stage=[0, 1], order=[0, 1]):
        for n, tile in {over}:
            T.copy(A[bx, k * 64], a)
        T.copy(a, B[bx, k * 64])
    """
    assert _check(body).verdict is Verdict.UNKNOWN


def test_inner_loops_are_one_statement() -> None:
    body = """
    for k in T.Pipelined(8, stage=[0, 1], order=[0, 1]):
        for i in T.serial(block):
            for j in T.serial(64):
                a[i, j] = A[bx, k * 64 + j]
        for i, j in T.Parallel(block, 64):
            B[bx * block + i, k * 64 + j] = a[i, j]
    """
    (loop,) = pipelines(_kernel(body))
    assert len(loop.body) == 2 and all(isinstance(s, ir.DataOp) for s in loop.body)
    assert _check(body).verdict is Verdict.PROVED


def test_barriers() -> None:
    body = """
    for k in T.Pipelined(8, stage=[0, 1, 1], order=[0, 1, 2]):
        T.copy(A[bx, k * 64], a)
        T.sync_threads()
        T.copy(a, B[bx, k * 64])
    """
    result = _check(body)
    assert result.verdict is Verdict.UNKNOWN and "T.sync_threads orders statements by itself" in result.evidence


def test_unknown_operations() -> None:
    body = """
    for k in T.Pipelined(8, stage=[0, 1], order=[0, 1]):
        T.call_extern("handle", "pull", T.access_ptr(a, "w"), T.access_ptr(A, "r"))
        T.copy(a, B[bx, k * 64])
    """
    result = _read(body)
    assert any("T.call_extern on line" in text for text in result.assumptions["scale"])
    nothing = """
    for k in T.Pipelined(8, stage=[0, 1], order=[0, 1]):
        engine.start()
        T.copy(a, B[bx, k * 64])
    """
    assert _check(nothing).verdict is Verdict.UNKNOWN


def test_factories() -> None:
    text = """
import tilelang.language as T

DEPTH = 2


def build(n, block=16, pipelined=True):
    stage = [0, DEPTH]

    @T.prim_func
    def main(A: T.Tensor((n, block), "float32"), B: T.Tensor((n, block), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((block,), "float32")
            for i in T.Pipelined(n, stage=stage, order=[0, 1]):
                T.copy(A[i, :], s)
                T.copy(s, B[i, :])

    return main


def plain(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            T.clear(A)

    return main
"""
    result = read(text, "f.py")
    assert [k.name for k in result.kernels] == ["build_main"]
    (loop,) = pipelines(result.kernels[0])
    assert loop.stage == (0, 2) and loop.stop == ir.Name("n")
    assert result.kernels[0].span.line == 11


def test_conditions_from_memory() -> None:
    body = """
    for k in T.Pipelined(8, stage=[0, 1], order=[0, 1]):
        if A[bx, k] > 0:
            T.copy(A[bx, k * 64], a)
        if A[bx, k] > 0:
            T.copy(a, B[bx, k * 64])
    """
    assert _check(body).verdict is Verdict.PROVED


BAD = {
    "not Python": "def f(:\n    T.Pipelined(3)\n",
    "empty": "",
    "only a comment": "# T.Pipelined(\n",
    "NUL": "x = '\0'\nT.Pipelined(2)\n",
    "deep": HEADER + "        for k in T.Pipelined(8):\n            a[" + "(" * 150 + "k" + ")" * 150 + "] = 0\n",
    "sum": HEADER + "        for k in T.Pipelined(8):\n            a[k] = A[k" + " + 1" * 4000 + "]\n",
    "nested": HEADER
    + "".join(" " * (8 + 4 * n) + f"for i{n} in T.serial(3):\n" for n in range(19))
    + " " * 84
    + "for k in T.Pipelined(8):\n"
    + " " * 88
    + "T.clear(a)\n",
    "lone surrogate": HEADER + "        x = '\\ud800'\n        for k in T.Pipelined(8):\n            T.clear(a)\n",
    "umlauts": HEADER + "        größe = 3\n        for ä in T.Pipelined(größe):\n            T.copy(A[ä, 0], a)\n",
}


@pytest.mark.parametrize("name", BAD)
def test_odd_input_gets_an_answer(name: str) -> None:
    result = read(BAD[name], "b.py")
    for kernel in result.kernels:
        for loop in pipelines(kernel):
            check_pipeline(loop, kernel)
    for error in result.errors:
        assert error.line >= 1 and error.column >= 1 and error.message


def test_damaged_programs_do_not_crash() -> None:
    base = HEADER + indent(dedent(LOOP.format("stage=[0, 1, 1], order=[0, 1, 2]")).strip("\n"), " " * 8)
    dice = random.Random(7)
    for _ in range(150):
        tokens = base.split(" ")
        for _ in range(dice.randint(1, 3)):
            place = dice.randrange(len(tokens))
            tokens[place] = dice.choice(["", tokens[dice.randrange(len(tokens))], "None", "T", "[", "a"])
        result = read(" ".join(tokens), "d.py")
        for kernel in result.kernels:
            for loop in pipelines(kernel):
                check_pipeline(loop, kernel)


@pytest.mark.skipif("FENCEPOST_TILELANG" not in os.environ, reason="set FENCEPOST_TILELANG to a checkout of TileLang")
def test_every_pipelined_loop_of_a_checkout() -> None:
    """Every pipelined loop of the public repository is read, or the kernel says what it could not read."""
    silent = []
    for path in sorted(Path(os.environ["FENCEPOST_TILELANG"]).rglob("*.py")):
        text = path.read_text("utf-8")
        wanted = _pipelined_lines(text)
        if not wanted:
            continue
        result = read(text, str(path))
        loops = [(kernel, loop) for kernel in result.kernels for loop in pipelines(kernel)]
        gaps = any(isinstance(n, ir.Unsupported) for k in result.kernels for n in ir.walk(k))
        missing = wanted - {loop.span.line for _, loop in loops}
        if missing and not gaps:
            silent.append((str(path), missing))
        for kernel, loop in loops:
            check_pipeline(loop, kernel)
    assert not silent


def _pipelined_lines(text: str) -> set[int]:
    """Lines of pipelined loops in functions that launch a kernel, outside parallel loops."""
    found: set[int] = set()

    def visit(node: ast.AST, launched: bool) -> None:
        if isinstance(node, ast.With):
            launched = launched or any(ast.unparse(i.context_expr).startswith("T.Kernel(") for i in node.items)
        if isinstance(node, ast.For):
            called = ast.unparse(node.iter).partition("(")[0]
            if called == "T.Parallel":
                return
            if called == "T.Pipelined" and launched:
                found.add(node.lineno)
        for child in ast.iter_child_nodes(node):
            visit(child, launched)

    visit(ast.parse(text), False)
    return found
