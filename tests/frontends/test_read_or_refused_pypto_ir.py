"""PyPTO kernel IR: whatever is not read is said, and never read as something else."""

from __future__ import annotations

import textwrap

import pytest

from fencepost import ir
from fencepost.frontends.pypto_ir import read
from fencepost.frontends.result import ReadResult
from fencepost.printer import print_kernel

FUNCTION = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.AIV)
    def f(self, src: pl.Tensor[[64, 16], pl.FP32], n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX]):
"""


def _read(body: str, module: str = "", members: str = "") -> ReadResult:
    head = "import pypto.language as pl\n" + textwrap.dedent(module)
    function = FUNCTION.replace("class P:\n", "class P:\n" + textwrap.indent(members, "    "))
    return read(head + function + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n", "k.py")


def _lines(body: str, module: str = "", members: str = "") -> list[str]:
    """The statements of the function as kernel IR text."""
    result = _read(body, module, members)
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    inside = print_kernel(kernel).partition("    section vector:\n")[2].partition("    section cube:\n")[0]
    return [line[8:] for line in inside.splitlines() if line]


def _errors(body: str, module: str = "", members: str = "") -> list[str]:
    return [e.message for e in _read(body, module, members).errors]


def _notes(body: str) -> list[str]:
    (kernel,) = _read(body).kernels
    return [n.reason for s in kernel.body for n in ir.walk(s) if isinstance(n, ir.Unsupported)]


SET = "pl.system.sync_set({}, pipe=pl.PipeType.MTE3, ffts_mode=2)\n"


# ------------------------------------------------------------------------------------------------ statements


def test_names_are_swapped_at_once() -> None:
    assert _lines("a = n\nb = m\na, b = b, a\n" + SET.format("a")) == [
        "a = n",
        "b = m",
        "b_next = a",
        "a = b",
        "b = b_next",
        "set_cross_core a @ MTE3",
    ]
    rotated = _lines("a = n\nb = m\nc = 1\na, b, c = b, c, a + b\n")
    assert rotated[3:] == ["c_next = a + b", "a = b", "b = c", "c = c_next"]


def test_tiles_are_swapped_at_once() -> None:
    load = "pl.tile.load(src, [{}, 0], [16, 16])"
    lines = _lines(f"x = {load.format(0)}\ny = {load.format(16)}\nx, y = y, x\n")
    assert [line.partition(" @")[0] for line in lines[2:]] == ["copy y_next <- x", "copy x <- y", "copy y <- y_next"]


def test_a_loop_with_an_else_part_is_refused() -> None:
    assert _errors("for i in pl.range(8):\n    pass\nelse:\n    x = n\n") == ["a for loop with an else branch"]


@pytest.mark.parametrize("block", ["pl.section_cube()", "open('x')", "pl.section_vector() as v"])
def test_a_block_that_does_not_run_here_is_said(block: str) -> None:
    body = f"with {block}:\n    {SET.format(1)}"
    (note,) = _notes(body)
    assert note.startswith("a block with '")
    assert not any("set_cross" in line for line in _lines(body))


def test_a_return_inside_a_block_is_said() -> None:
    body = f"with pl.section_vector():\n    if n:\n        return\n    {SET.format(1)}"
    assert "a return inside a block in 'f'" in _notes(body + SET.format(2))
    assert "a return inside a block in 'f'" not in _notes(body)


def test_a_name_that_an_expression_binds_is_refused() -> None:
    assert _errors("x = (y := n) + 1\n") == ["a name is bound inside an expression"]


def test_a_block_of_the_own_core_is_read() -> None:
    assert _lines("with pl.section_vector():\n    " + SET.format(1)) == ["set_cross_core 1 @ MTE3"]


@pytest.mark.parametrize(
    "statement",
    [
        "for i in pl.range(8, **OPT):\n    pass",
        "for i in pl.pipeline(0, 8, stage=2, **OPT):\n    pass",
        "for i in pl.range(*R):\n    pass",
        "x = pl.tile.tpop_from_aic(**OPT)",
        "x = pl.tile.load(src, [0, 0], [16, 16])\npl.tile.tpush_to_aic(x, split=0, **OPT)",
        "x = pl.tile.load(src, [0, 0], [16, 16], **OPT)",
        "x = pl.tile.load(*R)",
        "pl.system.sync_set(1, **OPT)",
        "pl.aiv_initialize_pipe(**OPT)",
    ],
)
def test_unpacked_arguments_are_refused(statement: str) -> None:
    (message,) = _errors(statement + "\n", "OPT = {'id': 1, 'step': 2}\nR = (0, 8, 2)\n")
    assert message in ("arguments behind '*' cannot be read", "arguments behind '**' cannot be read")


# ------------------------------------------------------------------------------------------------ names


def test_a_constant_of_a_class() -> None:
    assert _lines(SET.format("N"), members="N = 2\n") == ["set_cross_core 2 @ MTE3"]
    for change in ("N += 1\n", "if M:\n    N = 3\n", "N, K = f()\n", "del N\n"):
        assert _lines(SET.format("N"), members="N = 2\n" + change) == ["set_cross_core N @ MTE3"]
    assert _lines(SET.format("N"), members="N: int = 2\nN: int = 3\n") == ["set_cross_core 3 @ MTE3"]


@pytest.mark.parametrize(
    "change", ["from x import N", "import N", "def N():\n    pass", "class N:\n    pass", "N += 1"]
)
def test_a_constant_that_is_bound_anew_is_any_number(change: str) -> None:
    assert _lines(SET.format("N"), f"N = 2\n{change}\n") == ["set_cross_core N @ MTE3"]


@pytest.mark.parametrize(
    "change",
    [
        "IDS[0] = 5",
        "IDS.reverse()",
        "del IDS[0]",
        "OTHER = IDS\nOTHER[0] = 5",
        "OTHER = (IDS, 1)\nOTHER[0].reverse()\nIDS.sort()",
        "change(IDS)",
        "def change():\n    global IDS\n    IDS = [5]\nchange()",
        "IDS[0], x = 5, 6",
    ],
)
def test_a_list_that_is_changed_is_no_constant(change: str) -> None:
    body = SET.format("IDS[0]")
    assert _lines(body, "IDS = [0, 1]\n") == ["set_cross_core 0 @ MTE3"]
    assert _errors(body, f"IDS = [0, 1]\n{change}\n") == ["expected an integer, found 'IDS[0]'"]


def test_a_name_of_the_function_is_not_that_of_the_module() -> None:
    body = "for i in pl.range(8):\n    if i > 0:\n        " + SET.format("prev") + "    prev = i\n"
    assert _errors(body, "prev = 7\n") == ["'prev' is read before it is assigned"]
    assert _lines(SET.format("prev"), "prev = 7\n") == ["set_cross_core 7 @ MTE3"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("n or 4", "n if n else 4"),
        ("n and 4", "4 if n else n"),
        ("n > 2 and m > 3", "n > 2 and m > 3"),
        ("0 or 4", "4"),
        ("3 and n", "n"),
    ],
)
def test_and_and_or_give_one_of_their_operands(value: str, expected: str) -> None:
    assert _lines(f"x = {value}\n") == [f"x = {expected}"]


def test_and_and_or_as_conditions() -> None:
    lines = _lines("if n and (m or n > 2):\n    " + SET.format(1))
    assert lines[0] == "if n and (m or n > 2):"
