"""TileLang: whatever is not read is said, and never read as something else."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from fencepost import ir
from fencepost.findings import Verdict
from fencepost.frontends.tilelang import read
from fencepost.pipeline.check import check_pipeline, pipelines
from fencepost.pipeline.result import PipelineResult
from fencepost.printer import print_kernel

KERNEL = """
@tilelang.jit
def scale(A, B, dtype="float16"):
    M, K = T.const("M, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((M, K), dtype)
    with T.Kernel(64, threads=128) as bx:
        a = T.alloc_shared((64, 64), dtype)
        c = T.alloc_shared((64, 64), dtype)
"""


def _kernel(body: str, module: str = "") -> ir.Kernel:
    text = "import tilelang\nimport tilelang.language as T\n" + dedent(module) + KERNEL
    result = read(text + indent(dedent(body).strip("\n"), " " * 8) + "\n", "t.py")
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    return kernel


def _check(body: str, module: str = "") -> PipelineResult:
    kernel = _kernel(body, module)
    return check_pipeline(pipelines(kernel)[0], kernel)


def _refused(body: str, module: str = "") -> list[str]:
    """The notes of what could not be read; nothing is claimed."""
    kernel = _kernel(body, module)
    assert check_pipeline(pipelines(kernel)[0], kernel).verdict is Verdict.UNKNOWN
    found = (n.reason for s in kernel.body for n in ir.walk(s) if isinstance(n, ir.Unsupported))
    return list(dict.fromkeys(found))


def _wrong(buffer: str, other: str | None = None) -> str:
    """A loop whose second statement reads too early what the first has written, if both name the same buffer."""
    return (
        "for k in T.Pipelined(8, stage=[1, 0], order=[0, 1]):\n"
        f"    T.copy(A[bx, k * 64], {buffer})\n"
        f"    T.copy({other or buffer}, B[bx, k * 64])\n"
    )


def _first(statement: str) -> str:
    return f"for k in T.Pipelined(8, stage=[0, 0], order=[0, 1]):\n    {statement}\n    T.copy(a, B[bx, k * 64])\n"


# ------------------------------------------------------------------------------------------------ buffers

MAKE = "def mk():\n    return T.alloc_shared((64, 64), 'float16')\n"
ALLOC = "T.alloc_shared((64, 64), dtype)"


@pytest.mark.parametrize(
    ("before", "loop", "module"),
    [
        ("", _wrong("a"), ""),
        ("bufs = (a, c)", _wrong("bufs[k % 2]"), ""),
        ("bufs = [a, c]", _wrong("bufs[1]"), ""),
        ("", _wrong("(a if k % 2 == 0 else c)"), ""),
        (f"p, q = {ALLOC}, {ALLOC}", _wrong("p"), ""),
        ("p = mk()", _wrong("p"), MAKE),
        (f"bufs = [{ALLOC} for _ in range(2)]", _wrong("bufs[0]"), ""),
        (f"p = q = {ALLOC}", _wrong("p", "q"), ""),
        (f"if K > 64:\n    p = {ALLOC}", _wrong("p"), ""),
        ("p = a\nif K > 64:\n    p = c", _wrong("p"), ""),
    ],
)
def test_buffers_that_are_named_indirectly(before: str, loop: str, module: str) -> None:
    result = _check(f"{before}\n{loop}", module)
    assert {f.code for f in result.faults} == {"903"}


@pytest.mark.parametrize("before", ["bufs = {}\nbufs[0] = a", "bufs = {0: a}", "class P:\n    pass\nbufs = P()"])
def test_buffers_that_are_not_known_are_said(before: str) -> None:
    assert "which buffer `bufs[0]` is, in T.copy" in _refused(f"{before}\n{_wrong('bufs[0]')}")


def test_buffers_of_annotations_in_brackets_and_of_pointers() -> None:
    text = """\
import tilelang.language as T

@T.prim_func
def main(A: T.Tensor[(64, 512), T.float16], b: T.ptr):
    B = T.make_tensor(b, (64, 512), "float16")
    with T.Kernel(8, threads=128) as bx:
        s = T.alloc_shared((64, 64), "float16")
        for k in T.Pipelined(8, num_stages=2):
            T.copy(A[0, k * 64], s)
            T.copy(s, B[0, k * 64])
"""
    (kernel,) = read(text, "t.py").kernels
    assert "tile_copy s <- A @ S" in print_kernel(kernel) and "tile_copy b <- s @ S" in print_kernel(kernel)


# ------------------------------------------------------------------------------------------------ statements

LOAD = "@T.macro\ndef load(A, a, bx, k):\n    T.copy(A[bx, k * 64], a)\n    return k\n"


def test_a_macro_that_gives_a_value_is_put_in_place() -> None:
    """`x` is the loop variable then, and no statement, as the compiler takes it."""
    lines = [line.strip() for line in print_kernel(_kernel(_first("x = load(A, a, bx, k)"), LOAD)).splitlines()]
    at = lines.index("tile_copy a <- A @ S")
    assert lines[at + 1 :] == ["tile_copy B <- a @ S"]


@pytest.mark.parametrize(
    "statement",
    [
        "x = load(A, a, bx, k) + 1",
        "x = T.copy(A[bx, k * 64], a)",
        "T.copy(A[bx, k * 64], a) if K > 3 else T.copy(A[bx, k * 64], c)",
        "K > 2 and T.copy(A[bx, k * 64], a)",
        "[T.copy(A[bx, k * 64], a) for i in range(2)]",
        "(T.copy(A[bx, k * 64], a), T.copy(A[bx, k * 64], c))",
        "T.fill(a, load(A, c, bx, k))",
        "T.copy(*(A[bx, k * 64], a))",
        "load(*(A, a, bx, k))",
    ],
)
def test_what_acts_inside_an_expression_is_said(statement: str) -> None:
    (note,) = _refused(_first(statement), LOAD)
    assert note.startswith(("what `", "what is done inside `", "the operands of", "the arguments of")), note


def test_the_else_part_of_a_loop_is_read() -> None:
    body = "for i in T.serial(3):\n    T.fill(a, 0)\nelse:\n    T.copy(A[bx, 0], c)\n" + _wrong("a")
    assert "tile_copy c <- A @ S" in print_kernel(_kernel(body))


def test_a_return_that_is_reached_ends_a_macro() -> None:
    module = "@T.macro\ndef load(A, a, bx, k, skip):\n    if skip:\n        return\n    T.copy(A[bx, k * 64], a)\n"
    for skip, copied in (("True", False), ("False", True)):
        kernel = _kernel("T.copy(A[bx, 0], a)\n" + _first(f"load(A, a, bx, k, {skip})"), module)
        assert len(pipelines(kernel)[0].body) == (2 if copied else 1)


def test_a_return_that_may_be_reached_is_said() -> None:
    assert _refused(_first("T.copy(A[bx, k * 64], a)\n    if bx > 3:\n        return")) == [
        "a return that may or may not be reached"
    ]


# ------------------------------------------------------------------------------------------------ annotations


def _staged(stage: str) -> str:
    return _wrong("a").replace("[1, 0]", stage)


@pytest.mark.parametrize(
    "change",
    ["ST.reverse()", "ST[0], ST[1] = 1, 0", "ST[0] = 1", "R = ST\nR.reverse()", "def f(x):\n    x.reverse()\nf(ST)"],
)
def test_a_list_that_is_changed_is_no_annotation(change: str) -> None:
    assert _check(_staged("ST"), "ST = [0, 1]\n").verdict is Verdict.PROVED
    assert _refused(_staged("ST"), f"ST = [0, 1]\n{change}\n") == ["stage is not a list of constants"]


def _loop(iteration: str) -> str:
    return f"for k in {iteration}:\n    T.copy(A[bx, k * 64], a)\n    T.copy(a, B[bx, k * 64])\n"


@pytest.mark.parametrize(
    "change",
    [
        "while N < 8:\n    N = N * 2",
        "for i in range(3):\n    N = N * 2",
        "for N in range(3):\n    pass",
        "try:\n    import x\nexcept ImportError:\n    N = 2",
        "from x import N",
        "def f():\n    global N\n    N = 5",
        "(N, M), *R = f()",
        "del N",
    ],
)
def test_a_constant_that_may_have_changed_is_any_number(change: str) -> None:
    (loop,) = pipelines(_kernel(_loop("T.Pipelined(N, num_stages=2)"), f"N = 1\n{change}\n"))
    assert loop.stop == ir.Name("N")


NOTES = """
OPT = {"num_stages": 2}
ANN = {"software_pipeline_stage": [1, 0], "software_pipeline_order": [0, 1]}
R = (0, 8)
"""
UNREAD = "the annotations are not written in the loop"


@pytest.mark.parametrize(
    ("iteration", "note"),
    [
        ("T.Pipelined(8, **OPT)", UNREAD),
        ("T.Pipelined(8, annotations={**ANN})", UNREAD),
        ("T.Pipelined(8, annotations={KEY: [0, 1]})", UNREAD),
        ("T.serial(0, 8, annotations=ANN)", UNREAD),
        ("T.serial(0, 8, **OPT)", UNREAD),
        ("T.Pipelined(*R, num_stages=2)", "the bounds are not written in the loop"),
    ],
)
def test_annotations_and_bounds_that_are_not_written_are_said(iteration: str, note: str) -> None:
    (loop,) = pipelines(_kernel(_loop(iteration), NOTES))
    assert isinstance(loop.body[-1], ir.Unsupported) and loop.body[-1].reason == note
    assert loop.stop != ir.Int(0)


@pytest.mark.parametrize(
    ("value", "stages"),
    [("None or 3", 3), ("2 and 3", 3), ("0 or False or 4", 4), ("2 or 3", 2), ("(not 0) and 2", 2), ("0 and M", None)],
)
def test_and_and_or_give_one_of_their_operands(value: str, stages: int | None) -> None:
    (loop,) = pipelines(_kernel(_loop(f"T.Pipelined(8, num_stages={value})")))
    assert loop.num_stages == stages


def test_an_open_choice_of_operands() -> None:
    (loop,) = pipelines(_kernel(_loop("T.Pipelined(M or 4, num_stages=2)")))
    assert loop.stop == ir.Choose(ir.Name("M"), ir.Name("M"), ir.Int(4))


# ------------------------------------------------------------------------------------------------ what is not known


@pytest.mark.parametrize(
    ("statement", "module", "note"),
    [
        ("x = foreign(A, a)", "from elsewhere import foreign\n", "what `foreign(A, a)` does"),
        ("T.copy(A[bx, 0], pick(a, c))", "def pick(x, y):\n    return x\n", "which buffer `pick(a, c)` is, in T.copy"),
        ("T.copy(A[bx, 0], (p := a))", "", "what is done inside `T.copy(A[bx, 0], (p := a))`"),
        ("g()", "", "g is not known"),
        ("p.x = a", "", "an assignment to `p.x`"),
        ("p[k] = 1", "", "an assignment to `p[k]`"),
    ],
)
def test_what_is_not_known_is_said(statement: str, module: str, note: str) -> None:
    assert _refused(_first(statement), module) == [note]


def test_variables_that_are_swapped_are_said() -> None:
    before = 'x = T.alloc_var("int32")\ny = T.alloc_var("int32")\n'
    assert _refused(before + _first("x, y = y, x")) == ["an assignment to several variables, `(x, y)`"]
