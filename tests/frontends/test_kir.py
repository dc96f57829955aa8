"""Does the reader build the kernel that a text describes, with exact places?"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.strategies import CONTEXTUAL, kernels

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.printer import print_access, print_expr, print_kernel, print_statement

ROOT = Path(__file__).resolve().parent.parent.parent
CASES = sorted((ROOT.parent / "shared" / "cases" / "kir").glob("*.kir"))


def one(text: str) -> ir.Kernel:
    result = read(text, "k.kir")
    assert result.errors == (), text
    assert len(result.kernels) == 1
    return result.kernels[0]


def cube(*lines: str, head: tuple[str, ...] = (), parameters: str = "n") -> tuple[ir.Stmt, ...]:
    """The statements of a cube section."""
    text = f"kernel k({parameters}):\n" + "".join(f"    {line}\n" for line in head)
    section = one(text + "    section cube:\n" + "".join(f"        {line}\n" for line in lines)).body[0]
    assert isinstance(section, ir.Section)
    return section.body


def slices(text: str, node: ir.Node) -> str:
    """What stands at the span of `node`."""
    span, lines = node.span, text.split("\n")
    if span.line == span.end_line:
        return lines[span.line - 1][span.column - 1 : span.end_column - 1]
    first, last = lines[span.line - 1][span.column - 1 :], lines[span.end_line - 1][: span.end_column - 1]
    return "\n".join([first, *lines[span.line : span.end_line - 1], last])


def placed(kernel: ir.Kernel) -> Iterator[ir.Node]:
    """All nodes that were written (a default, such as the start of `range(n)`, was not)."""
    return (node for node in ir.walk(kernel) if node.span.line)


# ------------------------------------------------------------------------------------------------------ the language


def test_shared_cases_hold_one_kernel_each() -> None:
    if not CASES:
        pytest.skip("the shared cases are not beside this checkout")
    for path in CASES:
        result = read(path.read_text("utf-8"), path.name)
        assert result.errors == ()
        assert [kernel.name for kernel in result.kernels] == [path.stem]


def test_constants_scalars_and_private_scalars() -> None:
    kernel = one(
        "kernel k(n):\n    A = 3\n    B = (A, 4)\n    c = 0\n    private d = n\n    section cube:\n        c = c + d\n"
    )
    assert kernel.constants == (
        ir.Constant("A", ir.Int(3)),
        ir.Constant("B", (ir.Name("A"), ir.Int(4))),
    )
    assert kernel.body[:2] == (ir.Assign("c", ir.Int(0)), ir.Assign("d", ir.Name("n")))


def test_declarations_and_statements_in_any_order() -> None:
    kernel = one("kernel k():\n  sync_all\n  section cube:\n    pass\n  A = 1\n  sync_all\n  buffer b in GM\n")
    assert kernel.constants == (ir.Constant("A", ir.Int(1)),)
    assert kernel.buffers == (ir.Buffer("b", "GM"),)
    assert kernel.body == (ir.SyncAll(), ir.Section("cube", (ir.Pass(),)), ir.SyncAll())


def test_several_kernels() -> None:
    result = read("# two\nkernel a():\n    ...\n\n# and\nkernel b(n):\n    pass\nkernel c():\n    pass\n", "k.kir")
    assert result.errors == ()
    assert [kernel.name for kernel in result.kernels] == ["a", "b", "c"]
    assert [kernel.span.line for kernel in result.kernels] == [2, 6, 8]


@pytest.mark.parametrize("word", CONTEXTUAL)
def test_words_of_the_language_are_names_elsewhere(word: str) -> None:
    body = cube(
        f"{word} = n",
        f"{word} = {word} + need({word})",
        f"for t in range({word}, {word}):",
        f"    move x <- y, z @ FIX task = {word} at ({word}, {word})",
        f"assert {word} == {word}",
    )
    assert body[0] == ir.Assign(word, ir.Name("n"))
    buffer = f"buffer {word}[2] in Vec at 0, 8 size 8 mutex (0, 1)"
    body = cube(f"s = {word}.next()", f"load {word}[s] part s of 2 <- {word}[0] @ MTE2", head=(buffer,))
    assert body[1] == ir.DataOp(
        "load",
        (ir.Access(word, ir.Name("s"), ir.Name("s"), ir.Int(2)),),
        (ir.Access(word, ir.Int(0)),),
        "MTE2",
    )
    kernel = one(f"kernel {word}({word}):\n    assume {word} > 0\n")
    assert kernel == ir.Kernel(word, (word,), assumes=(ir.Compare(ir.Name(word), ((">", ir.Int(0)),)),))


def test_names_that_contain_reserved_words() -> None:
    assert cube("iff = 1", "not_ = iff", "inner = not_") == (
        ir.Assign("iff", ir.Int(1)),
        ir.Assign("not_", ir.Name("iff")),
        ir.Assign("inner", ir.Name("not_")),
    )


def test_arrow_behind_an_expression() -> None:
    (op,) = cube("move p part 0 of 2<-x @ FIX", head=("buffer p in Vec",))
    assert op == ir.DataOp("move", (ir.Access("p", None, ir.Int(0), ir.Int(2)),), (ir.Access("x"),), "FIX")
    assert cube("x = n < -1") == (ir.Assign("x", ir.Compare(ir.Name("n"), (("<", ir.Int(-1)),))),)


def test_continuation_inside_brackets() -> None:
    tuple_of_three = "    T = (1, # one\n\n2,\n        # three\n        3)\n"
    kernel = one(f"kernel k(a,\n  b):\n{tuple_of_three}    section cube:\n        x = (a\n+ b)\n")
    assert kernel.parameters == ("a", "b")
    assert kernel.constants == (ir.Constant("T", (ir.Int(1), ir.Int(2), ir.Int(3))),)
    assert kernel.span == ir.Span("k.kir", 1, 1, 10, 5)


def test_numbers() -> None:
    values = [c.value for c in one("kernel k():\n    A = 0x1F\n    B = 1_000\n    C = 0b11\n    D = 007\n").constants]
    assert values == [ir.Int(31), ir.Int(1000), ir.Int(3), ir.Int(7)]


def test_mutex_ids() -> None:
    def ids(text: str, depth: str = "[2]") -> tuple[tuple[ir.Expr, ...], ...] | None:
        return one(f"kernel k():\n    A = 3\n    buffer b{depth} in Vec mutex {text}\n").buffers[0].mutex

    assert ids("(0)", "") == ((ir.Int(0),),)
    assert ids("(0,)", "") == ((ir.Int(0),),)
    assert ids("((0, 1))", "") == ((ir.Int(0), ir.Int(1)),)
    assert ids("(0, A)") == ((ir.Int(0),), (ir.Name("A"),))
    assert ids("((0, 1), 2)") == ((ir.Int(0), ir.Int(1)), (ir.Int(2),))
    assert ids("((), (1))") == ((), (ir.Int(1),))


def test_messages() -> None:
    head = ("fifo down: cube -> vector, slots = 2, id = 1", "fifo up: vector -> cube, slots = 2")
    body = cube("tpush_to_aiv x id = 1 task = n @ FIX", "y <- tpop_from_aiv @ MTE1", "tfree_to_aiv y", head=head)
    assert body == (
        ir.Push("x", "vector", ir.Int(1), "FIX", ir.Name("n")),
        ir.Pop("y", "vector", ir.Int(0), "MTE1"),
        ir.Free("y", "vector"),
    )


def test_lark_is_loaded_only_when_something_is_read() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'verifier')!r}); "
    code += "import fencepost.frontends.kir, fencepost.printer; print('lark' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


# ------------------------------------------------------------------------------------------------------------ places


def check_places(text: str, kernel: ir.Kernel) -> None:
    """Every node's span holds the text of the node (an expression with its own parentheses)."""
    for node in placed(kernel):
        found = slices(text, node)
        if isinstance(node, ir.Expr):
            expected = print_expr(node)
            assert found in (expected, f"({expected})"), (found, expected)
        elif isinstance(node, ir.Access):
            assert found == print_access(node)
        elif isinstance(node, ir.Stmt):
            assert found.split("\n")[0] in (print_statement(node), f"private {print_statement(node)}")
            assert not found[-1].isspace()
        elif isinstance(node, ir.Section):
            assert found.split("\n")[0] == f"section {node.core}:"
        elif not isinstance(node, ir.Kernel):
            word = "" if isinstance(node, ir.Constant) else f"{type(node).__name__.lower()} "
            assert found.startswith(word + getattr(node, "name", "")), found
            assert found in text.split("\n")[node.span.line - 1]


@settings(max_examples=60, deadline=None)
@given(kernels())
def test_places_of_printed_kernels(kernel: ir.Kernel) -> None:
    text = print_kernel(kernel)
    check_places(text, one(text))


def test_places_in_shared_cases() -> None:
    if not CASES:
        pytest.skip("the shared cases are not beside this checkout")
    for path in CASES:
        text = path.read_text("utf-8")
        check_places(text, one(text))


def test_places_by_hand() -> None:
    text = (
        "\ufeff# ü\r\n"
        "kernel größe(n): # header\r\n"
        "\tassume ( n>=0 )  # fact\r\n"
        "\r\n"
        "\tbuffer  名[2]  in Vec # slots\r\n"
        "\tsection vector:\r\n"
        "\t\tfor t in range( n ):\r\n"
        "\t\t\tmove 名[ t%2 ] <- x  @ V  # last\r\n"
        "\r\n"
        "# end"
    )
    kernel = one(text)
    loop = kernel.body[0].body[0]  # type: ignore[union-attr]
    move = loop.body[0]  # type: ignore[union-attr]

    def place(node: ir.Node) -> tuple[int, int, int, int]:
        span = node.span
        assert span.file == "k.kir"
        return span.line, span.column, span.end_line, span.end_column

    assert place(kernel) == (2, 1, 8, 27)
    assert place(kernel.assumes[0]) == (3, 9, 3, 17)
    assert place(kernel.buffers[0]) == (5, 2, 5, 22)
    assert place(kernel.body[0]) == (6, 2, 8, 27)
    assert place(loop) == (7, 3, 8, 27)
    assert place(loop.stop) == (7, 19, 7, 20)
    assert place(move) == (8, 4, 8, 27)
    assert place(move.writes[0]) == (8, 9, 8, 17)
    assert place(move.writes[0].index) == (8, 12, 8, 15)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("margin", ["\t", "  ", "        "])
def test_white_space_does_not_matter(line_end: str, last: bool, margin: str) -> None:
    levels = [(0, "kernel k(n):"), (1, "A = 1"), (0, ""), (1, "section cube:"), (2, "if n:"), (3, "pass"), (0, "#"),
              (2, "else:"), (3, "sync_all")]  # fmt: skip
    kernel = one(line_end.join(margin * level + line for level, line in levels) + (line_end if last else ""))
    branch = ir.If(((ir.Name("n"), (ir.Pass(),)),), (ir.SyncAll(),))
    assert kernel == ir.Kernel(
        "k", ("n",), constants=(ir.Constant("A", ir.Int(1)),), body=(ir.Section("cube", (branch,)),)
    )
