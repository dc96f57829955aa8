"""Does the printed text of a kernel say the same kernel?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.strategies import expressions, kernels

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.printer import print_expr, print_kernel, print_kernels
from fencepost.validate import validate

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("**/*.kir"))
CASES = sorted((Path(__file__).resolve().parent.parent.parent / "shared" / "cases" / "kir").glob("*.kir"))


def one(text: str) -> ir.Kernel:
    result = read(text, "printed.kir")
    assert result.errors == (), text
    assert len(result.kernels) == 1
    return result.kernels[0]


@settings(max_examples=100, deadline=None)
@given(kernels())
def test_reading_what_was_printed_gives_the_same_kernel(kernel: ir.Kernel) -> None:
    assert validate(kernel) == ()
    assert one(print_kernel(kernel)) == kernel


@settings(max_examples=300, deadline=None)
@given(expressions(["n", "m"], depth=3))
def test_expressions(expr: ir.Expr) -> None:
    kernel = one(f"kernel k(n, m):\n    assume {print_expr(expr)}\n")
    assert kernel.assumes == (expr,)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples(path: Path) -> None:
    result = read(path.read_text("utf-8"), path.name)
    assert result.errors == ()
    assert read(print_kernels(result.kernels), "printed.kir").kernels == result.kernels


def test_shared_cases() -> None:
    if not CASES:
        pytest.skip("the shared cases are not beside this checkout")
    for path in CASES:
        kernel = one(path.read_text("utf-8"))
        assert one(print_kernel(kernel)) == kernel, path.name


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (ir.Int(-5), "-5"),
        (ir.Unary("-", ir.Int(5)), "-(5)"),
        (ir.Unary("-", ir.Int(-5)), "--5"),
        (ir.Binary("-", ir.Name("a"), ir.Binary("-", ir.Name("b"), ir.Name("c"))), "a - (b - c)"),
        (ir.Binary("-", ir.Binary("-", ir.Name("a"), ir.Name("b")), ir.Int(-1)), "a - b - -1"),
        (ir.Unary("not", ir.Compare(ir.Name("a"), (("<", ir.Name("b")),))), "not a < b"),
        (ir.Compare(ir.Unary("not", ir.Name("a")), (("<", ir.Name("b")),)), "(not a) < b"),
        (ir.Compare(ir.Compare(ir.Name("a"), (("<", ir.Name("b")),)), (("<", ir.Name("c")),)), "(a < b) < c"),
        (ir.Logic("and", (ir.Logic("and", (ir.Name("a"), ir.Name("b"))), ir.Name("c"))), "(a and b) and c"),
        (ir.Logic("or", (ir.Logic("and", (ir.Name("a"), ir.Name("b"))), ir.Name("c"))), "a and b or c"),
        (ir.Choose(ir.Name("c"), ir.Name("a"), ir.Choose(ir.Name("d"), ir.Name("b"), ir.Int(0))),
         "a if c else b if d else 0"),
        (ir.Choose(ir.Name("c"), ir.Choose(ir.Name("d"), ir.Name("a"), ir.Name("b")), ir.Int(0)),
         "(a if d else b) if c else 0"),
        (ir.Call("f", ()), "f()"),
    ],
)  # fmt: skip
def test_parentheses(expr: ir.Expr, text: str) -> None:
    assert print_expr(expr) == text
    assert one(f"kernel k(a, b, c, d):\n    assume {text}\n").assumes == (expr,)


def test_text_of_everything() -> None:
    text = """\
kernel everything(n, m):
    target a3
    option auto_mutex = off
    option credits = batched
    assume 0 <= n <= 15
    READY = (0, 1)
    ONE = (4,)
    DEEP = 2
    buffer acc in Acc
    buffer qk[DEEP] in Vec at 0, 4096 size 4096 mutex (0, (1, 2))
    buffer ws[64] in GM at 0 size 128 stride 512 rows 8 shared
    fifo down: cube -> vector, slots = 2
    fifo up: vector -> cube, slots = 4, id = 1, lanes = 1
    ring ctx[4](slot, valid)
    private c = n

    section cube:
        for t in range(2, n, 3):
            s = qk.next()
            ctx[t % 4].slot = s
            move qk[s] part sub_part(t) of 2 <- acc @ FIX phase = STPhase.Final lanes = 0 task = t at (t, 0) offset
            dump () <- qk[0] @ S
            set_cross_core READY[s] @ FIX mode = UNICAST_BLOCK lane = 1
            if t == 2:
                break
            elif t > 3:
                continue
            else:
                pass
        for i in pipeline(0, 8, 1, stage = 4):
            tpush_to_aiv x @ FIX task = i
            y <- tpop_from_aiv id = 1
            tfree_to_aiv y id = 1
        for i in pipelined(0, n, stage = (0, -1), order = (), async_stages = (0,), num_stages = 3):
            bind a = i + 1

    section vector:
        sync_src 0: V -> MTE2
        sync_dst 0: V -> MTE2
        mutex_lock 3 @ V
        mutex_unlock 3 @ V
        wait_cross_core 0 if sub == 0 else 1 @ V
        barrier ALL
        sync_all
        assert n < 16 or not m
        pass
        unsupported "a \\"while\\" loop\\nhere: ü"
"""
    kernel = one(text)
    assert print_kernel(kernel) == text


def test_empty_kernels_and_blocks() -> None:
    empty = ir.Kernel("k")
    assert print_kernel(empty) == "kernel k():\n    ...\n"
    assert one(print_kernel(empty)) == empty
    loop = ir.For("t", ir.Int(0), ir.Int(3), ir.Int(1), ())
    kernel = ir.Kernel("k", body=(ir.Section("cube", (loop,)), ir.Section("vector", ())))
    assert one(print_kernel(kernel)) == kernel


def test_notes_become_comments() -> None:
    kernel = one("kernel k():\n    A = 1\n    section cube:\n        sync_all\n")
    text = print_kernel(kernel, lambda node: f"line {node.span.line}")
    assert text.splitlines() == [
        "kernel k():  # line 1",
        "    A = 1  # line 2",
        "",
        "    section cube:  # line 3",
        "        sync_all  # line 4",
    ]
    assert one(text) == kernel


def test_depth_does_not_matter() -> None:
    body: tuple[ir.Stmt, ...] = (ir.Pass(),)
    expr: ir.Expr = ir.Name("n")
    for _ in range(5000):
        body = (ir.If(((ir.Name("n"), body),)),)
        expr = ir.Unary("not", expr)
    assert print_kernel(ir.Kernel("k", ("n",), body=body)).count("if n:") == 5000
    assert print_expr(expr) == "not " * 5000 + "n"
