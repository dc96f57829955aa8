"""TileLang: a pipelined loop is never passed over in silence, however it is spelled and wherever it stands."""

from __future__ import annotations

import pytest

from fencepost.checking import check
from fencepost.findings import Verdict
from fencepost.frontends.tilelang import read
from fencepost.pipeline.check import check_pipeline, pipelines

LOOP = """\
for k in {pipelined}(16, stage=[1, 0], order=[0, 1]):
    T.copy(A[k, 0:64], x)
    T.copy(x, B[k, 0:64])
"""
PARAMETERS = "A: T.Tensor((16, 64), T.float16), B: T.Tensor((16, 64), T.float16)"
KERNEL = """\
@T.prim_func
def {name}({parameters}):
    with T.Kernel(1, threads=128) as bx:
        x = T.alloc_shared((64,), T.float16)
{body}
"""
GOOD = "for k in T.Pipelined(16, stage=[0, 1], order=[0, 1]):\n    T.copy(A[k, 0:64], x)\n    T.copy(x, B[k, 0:64])"


def _indented(text: str, depth: int) -> str:
    return "".join(" " * depth + line for line in text.splitlines(keepends=True))


def _kernel(body: str, name: str = "main") -> str:
    return KERNEL.format(name=name, parameters=PARAMETERS, body=_indented(body, 8))


IMPORTS = "import tilelang\nimport tilelang as tl\nimport tilelang.language as T\n"
MACRO = "@T.macro\ndef body(A, B, x):\n" + _indented(LOOP.format(pipelined="T.Pipelined"), 4)

READ = {
    "a module of the package": (IMPORTS, "tl.language.Pipelined"),
    "a module by its full name": (IMPORTS, "tilelang.language.Pipelined"),
    "an import": (IMPORTS + "from tilelang.language import Pipelined\n", "Pipelined"),
    "an import by another name": (IMPORTS + "from tilelang.language import Pipelined as P\n", "P"),
}


@pytest.mark.parametrize(("head", "spelled"), READ.values(), ids=READ)
def test_a_loop_is_read_however_the_language_is_called(head: str, spelled: str) -> None:
    result = read(head + _kernel(LOOP.format(pipelined=spelled)), "t.py")
    (kernel,) = result.kernels
    assert check_pipeline(pipelines(kernel)[0], kernel).verdict is Verdict.REFUTED


WITHIN = _indented(_indented(LOOP.format(pipelined="T.Pipelined"), 4), 4)
UNREAD = {
    "a loop of Python within one of the program": _kernel(
        "for i in T.serial(4):\n    for a, b in [(0, 1)]:\n" + WITHIN
    ),
    "a method": "class Gemm:\n" + _indented(MACRO, 4) + _kernel("self.loop(A, B, x)"),
    "a function with arguments given": "import functools\np = functools.partial(T.Pipelined, stage=[1, 0])\n"
    + _kernel("for k in p(16):\n    T.copy(A[k, 0:64], x)"),
    "arguments in a tuple": MACRO + _kernel("body(*(A, B, x))"),
    "a macro of two": "if FLAG:\n" + _indented(MACRO, 4) + "else:\n" + _indented(MACRO, 4) + _kernel("body(A, B, x)"),
    "a macro that nothing calls": MACRO,
    "a name that is bound again": "from tilelang.language import Pipelined\nPipelined = foo\n"
    + _kernel(LOOP.format(pipelined="Pipelined")),
    "another name": "P = T.Pipelined\n" + _kernel(LOOP.format(pipelined="P")),
}


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
def test_a_loop_that_is_in_no_kernel_is_told(text: str) -> None:
    alone, both = IMPORTS + text, IMPORTS + text + _kernel(GOOD, "other")
    for source, count in ((alone, 1), (both, 2)):
        reports = check(source).kernels
        assert len(reports) >= count
        assert any(r.verdict is Verdict.UNKNOWN for r in reports)


def test_a_macro_that_is_read_is_told_once() -> None:
    (kernel,) = read(IMPORTS + MACRO + _kernel("body(A, B, x)"), "t.py").kernels
    assert kernel.name == "main"


def test_a_loop_that_is_never_run_is_none() -> None:
    body = "if False:\n" + _indented(LOOP.format(pipelined="T.Pipelined"), 4) + GOOD
    (kernel,) = read(IMPORTS + _kernel(body), "t.py").kernels
    assert len(pipelines(kernel)) == 1
