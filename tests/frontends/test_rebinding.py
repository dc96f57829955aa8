"""Is a constant of a module ever read with an old value?"""

from __future__ import annotations

import textwrap

import pytest
from tests.frontends.pypto_pro import program, result, section

from fencepost import ir
from fencepost.frontends.tilelang import read

EXACT = {
    "a statement": ("(R := 40)", 40),
    "a value": ("q = (R := 40)", 40),
    "a condition": ("if (R := 40):\n    pass", 40),
    "an augmented value": ("q = 1\nq += (R := 40)", 40),
    "a default": ("def h(x=(R := 40)):\n    pass", 40),
    "a target": ("q = R = 40", 40),
    "an annotated target": ("R: int = 40", 40),
    "an augmented target": ("R += 38", 40),
    "a loop": ("for R in (2, 40):\n    pass", 40),
    "a finally after a break": ("for i in range(2):\n    try:\n        break\n    finally:\n        R = 40", 40),
    "an annotation alone": ("R: int", 2),
    "a comprehension": ("q = [R for R in (40,)]", 2),
    "a lambda": ("q = lambda R: 40", 2),
    "a lambda that assigns": ("q = lambda: (R := 40)", 2),
    "a look at the names": ("q = 'R' in globals()", 2),
    "the names of a function": ("def h():\n    return locals()", 2),
    "a loop over names": ("for q in list(globals()):\n    pass", 2),
    "another module": ("import importlib\nq = importlib.import_module('torch')", 2),
    "loaded modules": ("import sys\nq = 'torch' in sys.modules\nw = sys.modules['torch']", 2),
    "a network": ("for q in network.modules():\n    pass", 2),
}
"""What is known after a statement, where R was 2."""

UNKNOWN = {
    "an argument": "print(R := 40)",
    "an argument of a value": "q = f(R := 40)",
    "a list": "[R := 40]",
    "a comprehension": "q = [R := 40 for _ in (1,)]",
    "after an and": "q = f() and (R := 40)",
    "in a choice": "q = 1 if f() else (R := 40)",
    "in a comparison": "q = 1 < f() < (R := 40)",
    "behind something that is not read": "q = {'a': f(h.x(3), (R := 40))}",
    "a subscript": "q = {}\nq[(R := 40)] = 3",
    "a deleted subscript": "q = {}\ndel q[(R := 40)]",
    "an annotation": "q: (R := 40) = 3",
    "an annotated parameter": "def h(x: (R := 40)):\n    pass",
    "a decorator": "@(R := print)\ndef h():\n    pass",
    "a base": "class C((R := object)):\n    pass",
    "an assertion": "assert (R := 40)",
    "a with": "with open(R := '40'):\n    pass",
    "a text": "f'{(R := 40)}'",
    "globals": "globals()['R'] = 40",
    "globals in a function": "def h():\n    globals()['R'] = 40\nh()",
    "globals under a name": "g = globals()\ng['R'] = 40",
    "the function globals under a name": "g = globals\ng()['R'] = 40",
    "an update": "globals().update(R=40)",
    "vars": "vars()['R'] = 40",
    "locals": "locals()['R'] = 40",
    "exec": "exec('R = 40')",
    "eval": "eval('(R := 40)')",
    "builtins": "import builtins\nbuiltins.exec('R = 40')",
    "the own module": "import sys\nsetattr(sys.modules[__name__], 'R', 40)",
    "the own module under other names": "from sys import modules as m\nm[__name__].R = 40",
    "the own module, imported": "import k\nk.R = 40",
    "the own module, as the program": "import __main__\n__main__.R = 40",
    "the own module, imported by name": "import importlib\nimportlib.import_module(__name__).R = 40",
    "a frame": "import sys\nsys._getframe().f_globals['R'] = 40",
    "the names of a function": "def h():\n    pass\nh.__globals__['R'] = 40",
    "a patch": "from unittest.mock import patch\npatch('k.R', 40).start()",
    "a class body": "class C:\n    global R\n    R = 40",
    "a class body in a choice": "if f():\n    class C:\n        global R\n        R = 40",
    "a function in a loop": "while f():\n    def h():\n        global R\n        R = 40\n    h()",
    "an asynchronous function": "async def h():\n    global R\n    R = 40",
    "a star": "from other import *",
    "an import in a loop": "while f():\n    import other as R",
    "deleted": "del (R, q)",
    "an exception": "try:\n    f()\nexcept OSError as R:\n    pass",
    "a handler that goes on": "for i in q:\n    try:\n        f()\n    except E:\n        R = 40\n        continue",
    "a match": "match f():\n    case [*R]:\n        pass",
    "the rest of a match": "match f():\n    case {**R}:\n        pass",
}


def _host(statement: str) -> list[str]:
    call = "pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=R)"
    (kernel,) = result(program(f"with pl.section_vector():\n    {call}", f"R = 2\n{statement}")).kernels
    return section(kernel)


@pytest.mark.parametrize(("statement", "value"), EXACT.values(), ids=EXACT)
def test_a_constant_that_is_known(statement: str, value: int) -> None:
    assert _host(statement) == [f"wait_cross_core {value} @ V"]


@pytest.mark.parametrize("statement", UNKNOWN.values(), ids=UNKNOWN)
def test_a_constant_that_may_be_another_is_a_parameter(statement: str) -> None:
    assert _host(statement) == ["wait_cross_core R @ V"]


IN_PLACE = {
    "setattr": ("class X:\n    A = 2", "setattr(X, 'A', 40)", "X.A"),
    "a value": ("class X:\n    A = 2", "q = setattr(X, 'A', 40)", "X.A"),
    "the names of a class": ("class X:\n    A = 2", "X.__dict__['A'] = 40", "X.A"),
    "vars": ("class X:\n    A = 2", "vars(X)['A'] = 40", "X.A"),
    "type": ("class X:\n    A = 2", "type.__setattr__(X, 'A', 40)", "X.A"),
    "a method of the type": ("X = {'a': 2}", "dict.update(X, a=40)", "X['a']"),
    "an operator": ("X = [2]", "import operator\noperator.setitem(X, 0, 40)", "X[0]"),
    "shuffled": ("X = [2, 40]", "import random\nrandom.shuffle(X)", "X[0]"),
    "a decorator": ("X = [2]", "def d(f):\n    X[0] = 40\n    return f\n@d\ndef h():\n    pass", "X[0]"),
    "a decorator of a class": ("X = [2]", "def d(f):\n    X[0] = 40\n    return f\n@d\nclass H:\n    pass", "X[0]"),
    "a base": ("X = [2]", "def d():\n    X[0] = 40\n    return object\nclass H(d()):\n    pass", "X[0]"),
    "an annotation": ("X = [2]", "def d():\n    X[0] = 40\nq: d() = 3", "X[0]"),
}


@pytest.mark.parametrize(("before", "change", "use"), IN_PLACE.values(), ids=IN_PLACE)
def test_what_is_changed_in_place_is_not_known(before: str, change: str, use: str) -> None:
    call = f"pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id={use})"
    body = f"with pl.section_vector():\n    {call}"
    (known,) = result(program(body, before)).kernels
    assert section(known) == ["wait_cross_core 2 @ V"]
    (kernel,) = result(program(body, f"{before}\n{change}")).kernels
    assert section(kernel) != ["wait_cross_core 2 @ V"]


FACTORY = """
import pypto_pro.language as pl

X = 2


def make(R):
    @pl.jit()
    def kernel(a: pl.Tensor[[64, 64], pl.DT_FP16]):
        with pl.section_vector():
            pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=R)

    return kernel


"""

CALLS = {
    "plain": ("make(X)", "2"),
    "before it changes": ("make(X)\nX = 40", "2"),
    "after it changes": ("X = 40\nmake(X)", "40"),
    "with an assignment": ("make(X := 40)", "40"),
    "under an assignment": ("if (X := 40):\n    make(X)", "R"),
    "in a comprehension": ("q = [make(X) for X in (40,)]", "R"),
    "in a lambda": ("q = (lambda X: make(X))(40)", "R"),
    "in a with": ("with open('x') as X:\n    make(X)", "R"),
    "in a later round": ("for i in range(3):\n    make(X)\n    X = 40", "R"),
    "in a while": ("while f():\n    X = 40\n    make(X)", "R"),
    "in a function in a function": ("def f():\n    X = 40\n    def h():\n        make(X)\n    h()", "R"),
    "in a function of a parameter": ("def f(X):\n    def h():\n        make(X)\n    h()\nf(40)", "R"),
    "in a class": ("class C:\n    X = 40\n    q = make(X)", "R"),
    "in a handler": ("try:\n    f()\nexcept OSError as X:\n    make(X)", "R"),
    "in an asynchronous function": ("async def f():\n    X = 40\n    make(X)", "R"),
    "of a name that may be any": ("make(X)\nexec('X = 40')", "R"),
}


@pytest.mark.parametrize(("calls", "value"), CALLS.values(), ids=CALLS)
def test_the_argument_of_a_factory_is_that_of_its_call(calls: str, value: str) -> None:
    (kernel,) = result(f"{FACTORY}{calls}\n").kernels
    assert section(kernel) == [f"wait_cross_core {value} @ V"]


# ------------------------------------------------------------------------------------------------------------ TileLang

TILELANG = """\
import tilelang
import tilelang.language as T

R = 2
STAGES = [0, 1]
{}


@tilelang.jit
def rows(A, B, n, dtype="float16"):
    A: T.Tensor((n, 64), dtype)
    B: T.Tensor((n, 64), dtype)
    with T.Kernel(1, threads=128) as bx:
        row = T.alloc_fragment((64,), dtype)
        for k in T.Pipelined(n, stage=STAGES, order=[0, 1]):
            for i in T.serial(R):
                T.copy(A[k, 0:64], row)
            T.copy(row, B[k, 0:64])
"""


def _fills(statement: str) -> bool:
    """Whether the inner loop surely runs, so that its copy fills the buffer."""
    found = read(TILELANG.format(textwrap.dedent(statement)), "k.py")
    assert not found.errors
    (kernel,) = found.kernels
    written = [a for n in ir.walk(kernel) if isinstance(n, ir.DataOp) for a in n.writes if a.name == "row"]
    return all(a.part is None for a in written)


@pytest.mark.parametrize("statement", UNKNOWN.values(), ids=UNKNOWN)
def test_a_constant_of_a_tilelang_program_that_may_be_another_is_any_number(statement: str) -> None:
    assert not _fills(statement)


@pytest.mark.parametrize("statement", ["R = 0", "R = f()", "for R in (0, 1):\n    pass", "from other import *"])
def test_a_constant_of_a_tilelang_program_that_changes_later(statement: str) -> None:
    """Some kernels are traced where they are defined, others where they are called."""
    (kernel,) = read(TILELANG.format("") + f"\n{statement}\n", "k.py").kernels
    written = [a for n in ir.walk(kernel) if isinstance(n, ir.DataOp) for a in n.writes if a.name == "row"]
    assert written[0].part is not None


@pytest.mark.parametrize("statement", ["", "q = [R for R in (0,)]", "q = lambda R: 0", "q = 'R' in globals()"])
def test_a_constant_of_a_tilelang_program_that_is_known(statement: str) -> None:
    assert _fills(statement)


@pytest.mark.parametrize(
    "change",
    [
        "list.append(STAGES, 0)",
        "import operator\noperator.setitem(STAGES, 1, 0)",
        "import random\nrandom.shuffle(STAGES)",
        "globals()['STAGES'] = [0, 0]",
    ],
)
def test_a_list_of_a_tilelang_program_that_is_changed_in_place(change: str) -> None:
    (kernel,) = read(TILELANG.format(change), "k.py").kernels
    assert [n.stage for n in ir.walk(kernel) if isinstance(n, ir.Pipelined)] == [None]
