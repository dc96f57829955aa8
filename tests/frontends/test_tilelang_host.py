"""TileLang: what a name means around a kernel is what Python makes of it, or not known."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from fencepost.findings import Verdict
from fencepost.frontends.tilelang import read
from fencepost.pipeline.check import check_pipeline, pipelines

PROGRAM = """\
import tilelang
import tilelang.language as T
{module}


@tilelang.jit
def rows(A, B, last, dtype="float16", stages: int = 2):
    M = T.const("M")
    A: T.Tensor((M, 64), dtype)
    B: T.Tensor((M, 64), dtype)
    last: T.Tensor((64,), dtype)

    with T.Kernel(1, threads=128) as bx:
        row = T.alloc_fragment((64,), dtype)
        two = T.alloc_fragment((2, 64), dtype)
        T.clear(row)
        for k in T.Pipelined(M, {notes}):
{body}
        T.copy(row, B[0, 0:64])
"""
BODY = "T.copy(A[k, 0:64], row)\nT.copy(row, last)"
RIGHT, WRONG = "[0, 0]", "[0, 1]"


def _verdict(module: str, body: str = BODY, notes: str = "stage=STAGE, order=[0, 1]") -> Verdict:
    text = PROGRAM.format(module=dedent(module), body=indent(dedent(body), " " * 12), notes=notes)
    result = read(text, "t.py")
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    return check_pipeline(pipelines(kernel)[0], kernel).verdict


def _if(condition: str) -> str:
    return f"STAGE = {RIGHT} if {condition} else {WRONG}\n"


# ------------------------------------------------------------------------------------------------ names

KNOWN = {
    "a constant": "STAGE = [0, 0]",
    "a type beside": "STAGE: list = [0, 0]",
    "of a tuple": "N, STAGE = 1, [0, 0]",
    "in an attempt, and nowhere else": "try:\n    import foo\n    STAGE = [0, 0]\nexcept ImportError:\n    pass",
    "in a choice, and nowhere else": "if foo:\n    STAGE = [0, 0]",
    "in a with, and nowhere else": "with foo():\n    STAGE = [0, 0]",
    "another name of a function": "STAGE = [0, 0]\ndef f():\n    STAGE = [0, 1]",
    "after an import of everything": "from foo import *\nSTAGE = [0, 0]",
}
UNKNOWN = {
    "an attempt": "STAGE = [0, 1]\ntry:\n    import foo\n    STAGE = [0, 0]\nexcept ImportError:\n    pass",
    "a suppressed error": "import c\nSTAGE = [0, 1]\nwith c.suppress(E):\n    import foo\n    STAGE = [0, 0]",
    "both arms": "if foo:\n    STAGE = [0, 0]\nelse:\n    STAGE = [0, 1]",
    "a later arm": "STAGE = [0, 0]\nif foo:\n    STAGE = [0, 1]",
    "a loop": "for STAGE in ([0, 0],):\n    pass",
    "a loop around": "for i in (0, 1):\n    STAGE = [0, 0]",
    "a function of that name": "STAGE = [0, 0]\ndef STAGE():\n    pass",
    "an import of that name": "import foo as STAGE\nSTAGE = [0, 0]",
    "an import of everything": "STAGE = [0, 0]\nfrom foo import *",
    "a function that assigns": "STAGE = [0, 0]\ndef f():\n    global STAGE\n    STAGE = [0, 1]",
    "deleted": "STAGE = [0, 0]\ndel STAGE",
    "added to": "STAGE = [0]\nSTAGE += [0]",
}


@pytest.mark.parametrize("module", KNOWN.values(), ids=KNOWN)
def test_a_name_that_is_bound_once(module: str) -> None:
    assert _verdict(module) is Verdict.PROVED
    assert (
        _verdict(module.replace("[0, 0]", "[0, 2]").replace("[0, 1]", "[0, 0]").replace("2", "1")) is not Verdict.PROVED
    )


@pytest.mark.parametrize("module", UNKNOWN.values(), ids=UNKNOWN)
def test_a_name_that_may_be_bound_again(module: str) -> None:
    assert _verdict(module) is Verdict.UNKNOWN


def test_a_name_that_changes_is_two_values() -> None:
    """What was made of a name before it changed does not follow it."""
    body = "T.copy(A[k, 0:64], two[S % 2, 0:64])\nT.copy(two[P % 2, 0:64], last)"
    once = "N = foo()\nS = N\nP = N"
    assert _verdict(once, body, "stage=[0, 1], order=[0, 1]") is Verdict.PROVED
    twice = "N = foo()\nS = N\nN = foo()\nP = N"
    assert _verdict(twice, body, "stage=[0, 1], order=[0, 1]") is not Verdict.PROVED


TURNS = "stage=[0, 1], order=[0, 1]"
"""Right if the second statement reads the slot that the first has just written, wrong if it is the other one."""
LOAD = "@T.macro\ndef load({}):\n    T.copy(A[k, 0:64], two[(k + {}) % 2, 0:64])\n"
READ = "T.copy(two[(k + {}) % 2, 0:64], last)"


@pytest.mark.parametrize(
    ("module", "own", "verdict"),
    [
        ("S = 0", "", Verdict.PROVED),
        ("S = 0", "S = 1\n", Verdict.REFUTED),
        ("S = 0", "S = foo()\n", Verdict.UNKNOWN),
        ("S = foo()", "", Verdict.PROVED),
        ("S = foo()", "S = bar()\n", Verdict.UNKNOWN),
    ],
)
def test_a_macro_sees_the_names_of_its_own_scope(module: str, own: str, verdict: Verdict) -> None:
    body = f"{own}load(A, k, two)\n{READ.format('S')}"
    assert _verdict(f"{module}\n{LOAD.format('A, k, two', 'S')}", body, TURNS) is verdict


@pytest.mark.parametrize(("first", "second", "verdict"), [(0, 1, Verdict.PROVED), (1, 0, Verdict.REFUTED)])
def test_a_macro_sees_the_present_names_of_the_function_around(first: int, second: int, verdict: Verdict) -> None:
    body = f"S = {first}\n{LOAD.format('', 'S')}S = {second}\nload()\n{READ.format(1)}"
    assert _verdict("", body, TURNS) is verdict


@pytest.mark.parametrize(("first", "second", "verdict"), [(1, 0, Verdict.PROVED), (0, 1, Verdict.REFUTED)])
def test_a_default_is_made_with_the_function(first: int, second: int, verdict: Verdict) -> None:
    body = f"S = {first}\n{LOAD.format('s=S', 's')}S = {second}\nload()\n{READ.format(1)}"
    assert _verdict("", body, TURNS) is verdict


@pytest.mark.parametrize(("before", "after"), [("@foo\n", ""), ("@foo()\n", ""), ("", "load = foo(load)")])
def test_a_function_with_something_around_it_is_not_what_it_says(before: str, after: str) -> None:
    body, load = f"load(A, k, two)\n{READ.format(0)}", LOAD.format("A, k, two", "0")
    assert _verdict(load, body, TURNS) is Verdict.PROVED
    assert _verdict(f"{before}{load}{after}", body, TURNS) is not Verdict.PROVED


# ------------------------------------------------------------------------------------------------ expressions

TRUE = [
    "int(N / 2) == 2", "int(-2.5) == -2", "bool(2) == 1", "bool(0) == 0", "bool(N)", "int(True) is not True",
    "X is None", "F is False", "F is not None", "+True == 1", "min(3, 1) == 1", "max(2, 2.5) == 2.5",
    "min(True, 2) is True", "len([1, 2]) == 2", "N > 1 < 2", "2**-1 == 0.5", "-7 // 2 == -4", "7 % -3 == -2",
]  # fmt: skip
OPEN = ["ONE is 1", "N is 5", "'a' < 'b'", "int('5') == 5", "int('101', 2) == 5", "min([3, 1]) == 1", "1 in (1,)"]


@pytest.mark.parametrize("condition", TRUE)
def test_expressions_of_python_are_computed_as_python_does(condition: str) -> None:
    before = "N = 5\nONE = 1\nX = None\nF = False\n"
    assert eval(condition, {"N": 5, "ONE": 1, "X": None, "F": False})
    assert _verdict(before + _if(condition)) is Verdict.PROVED
    assert _verdict(before + _if(f"not ({condition})")) is Verdict.REFUTED


@pytest.mark.parametrize("condition", OPEN)
def test_expressions_of_python_that_are_not_computed(condition: str) -> None:
    for text in (condition, f"not ({condition})"):
        assert _verdict("N = 5\nONE = 1\n" + _if(text)) is Verdict.UNKNOWN


BUILTIN = {
    "a function": "def min(a, b):\n    return 7",
    "a lambda": "min = lambda a, b: 7",
    "an import": "from foo import min",
    "an import under that name": "import foo.bar as min",
    "a class": "class min:\n    pass",
    "an import of everything": "from foo import *",
    "a function that assigns": "def f():\n    global min\n    min = foo",
}


@pytest.mark.parametrize("module", BUILTIN.values(), ids=BUILTIN)
def test_functions_of_python_may_be_others(module: str) -> None:
    assert _verdict(_if("min(1, 2) == 1")) is Verdict.PROVED
    assert _verdict(f"{module}\n{_if('min(1, 2) == 1')}") is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("text", "proved"),
    [("T.cast(k, 'int32')", True), ("T.int64(k)", True), ("T.cast(k, 'int8')", False), ("T.uint8(k)", False)],
)
def test_a_conversion_may_give_another_number(text: str, proved: bool) -> None:
    body = f"T.copy(A[k, 0:64], two[k % 2, 0:64])\nT.copy(two[{text} % 2, 0:64], last)"
    assert (_verdict("", body, "stage=[0, 1], order=[0, 1]") is Verdict.PROVED) is proved


# ------------------------------------------------------------------------------------------------ lists

READING = [
    "print(X, len(X), sum(X))",
    "Y = X[0]",
    "Y = X + [1]",
    "Y = [x + 1 for x in X]",
    "for x in X:\n    print(x)",
    "Y = 3 in X",
    "Y = X[0] if X else 0",
    "Y = X.index(0)",
    "(a,) = X",
    "def f(l):\n    return l[0]\nf(X)",
    "assert X == [0]",
    "Y = (X[0], 1)",
    "@T.macro\ndef g(A):\n    T.fill(A, X[0])",
    "max((), default=1)\nY = sum(X, 1)",
    "from foo import Z as Y\nY.append(1)",
    "def f(l):\n    return sum(l)\nf(X)",
]
CHANGING = [
    "def get():\n    return X\nget().append(1)",
    "add = X.append\nadd(1)",
    "list(map(X.append, [1]))",
    "D = {'a': X}\nD['a'].append(1)",
    "(lambda l: l.append(1))(X)",
    "class P:\n    s = X\nP.s.append(1)",
    "def f(l=X):\n    l.append(1)\nf()",
    "for y in (X,):\n    y.append(1)",
    "if (z := X):\n    z.append(1)",
    "def f(*ls):\n    ls[0].append(1)\nf(X)",
    "def f(l):\n    l.append(1)\nf(*[X])",
    "def f(l):\n    l.append(1)\ng = f\ng(X)",
    "def f(l):\n    l.append(1)\nf(l=X)",
    "def f(l):\n    l += [1]\nf(X)",
    "def f(p):\n    p[0].append(1)\nf((X, 1))",
    "def f(l):\n    g(l)\ndef g(m):\n    m.append(1)\nf(X)",
    "from foo import f\nf(X)",
    "X.__iadd__([1])",
    "Y = [1]\nZ = X\nZ += Y",
    "X[len(X):] = [1]",
    "*M, = X,\nM[0].append(1)",
    "min(X, [2]).append(1)",
    "(X or [2]).append(1)",
    "(X, 1)[0].append(1)",
    "del X[0]",
    "import functools\nfunctools.partial(list.append, X)(1)",
    "max((), default=X).append(1)",
    "sum((), X).append(1)",
    "sum((), start=X).append(1)",
    "def f(l):\n    locals()['l'].append(1)\nf(X)",
    "def f(l):\n    vars()['l'].append(1)\nf(X)",
    "class C:\n    def filter(self, l):\n        pass\nfor y in filter(None, (X, X)):\n    y.append(1)",
    "class C:\n    def f(self, l):\n        pass\nfrom foo import *\nf(0, X)",
    "def outer():\n    def f(l):\n        pass\nf(X)",
    "from __main__ import X as Y\nY.append(1)",
    "from t import X as Y\nY.append(1)",
    "from .t import X as Y\nY.append(1)",
    "from . import t\nt.X.append(1)",
]


@pytest.mark.parametrize("statement", READING)
def test_a_list_that_is_only_read(statement: str) -> None:
    assert _verdict(f"X = [0]\n{statement}\n{_if('len(X) == 1')}") is Verdict.PROVED


@pytest.mark.parametrize("statement", CHANGING)
def test_a_list_that_may_be_changed(statement: str) -> None:
    assert _verdict(f"X = [0]\n{statement}\n{_if('len(X) == 1')}") is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("statement", "verdict"),
    [
        ("Y = len(X[0])", Verdict.PROVED),
        ("Y = X[0]", Verdict.UNKNOWN),
        ("for y in X:\n    y.append(1)", Verdict.UNKNOWN),
    ],
)
def test_a_list_in_a_tuple(statement: str, verdict: Verdict) -> None:
    assert _verdict(f"X = ([0], 1)\n{statement}\n{_if('len(X[0]) == 1')}") is verdict


# ------------------------------------------------------------------------------------------------ objects

INSIDE = {
    "a list by another name": ("other = bufs", "other[0]"),
    "a list that grows": ("bufs.append(row)", "bufs[1]"),
    "a list that is made": ("bufs = [b for b in (row, two)]", "bufs[0]"),
    "a dictionary": ("table = {'a': row}", "table['a']"),
    "a dictionary in a list": ("tables = [{'a': row}]", "tables[0]['a']"),
    "an object": ("box = Box(row)", "box.buffer"),
    "an object of an object": ("box = Box(Box(row))", "box.inner.buffer"),
}
USED = "for i in T.Parallel(64):\n    two[1, i] = {}[i]\n    row[i] = A[k, i]\nT.copy(row, B[k, 0:64])"


@pytest.mark.parametrize("name", INSIDE)
def test_buffers_inside_of_objects_may_be_any(name: str) -> None:
    """With 2 versions of the row, an iteration reads what an older one left."""
    made, used = INSIDE[name]
    text = PROGRAM.format(module="", body=indent(USED.format(used), " " * 12), notes="stage=[0, 1], order=[0, 1]")
    text = text.replace("        for k", f"        bufs = [row]\n        {made}\n        for k")
    text = text.replace("T.copy(row, B[0, 0:64])\n", "T.copy(two[1, 0:64], last)\n")
    (kernel,) = read(text, "t.py").kernels
    assert check_pipeline(pipelines(kernel)[0], kernel).verdict is Verdict.UNKNOWN


def test_a_buffer_in_a_list_that_stays_is_known() -> None:
    text = PROGRAM.format(
        module="", body=indent(USED.format("bufs[0]"), " " * 12), notes="stage=[0, 1], order=[0, 1]"
    ).replace("        for k", "        bufs = [row]\n        for k")
    (kernel,) = read(text.replace("T.copy(row, B[0, 0:64])\n", "T.copy(two[1, 0:64], last)\n"), "t.py").kernels
    assert check_pipeline(pipelines(kernel)[0], kernel).verdict is Verdict.REFUTED
