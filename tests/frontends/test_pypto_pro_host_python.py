"""Does PyPTO-Pro host code mean what Python makes of it: loops, classes, generators, module names, wrong operands?"""

from __future__ import annotations

import pytest
from tests.frontends.pypto_pro import program, result, section


def _host(module: str, use: str = "R", after: str = "") -> list[str]:
    """What an event id that host code gives is read as."""
    call = f"pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id={use})"
    (kernel,) = result(program(f"with pl.section_vector():\n    {call}", module) + after).kernels
    return section(kernel)


def _known(value: int) -> list[str]:
    return [f"wait_cross_core {value} @ V"]


@pytest.mark.parametrize(
    "module",
    [
        "R, n = 0, 1\nwhile n < 4:\n    n *= 2\nelse:\n    R = 1",
        "R = 1\nwhile True:\n    break\nelse:\n    R = 0",
        "def f(n):\n    while n:\n        n -= 1\n    else:\n        return 1\n    return 0\nR = f(2)",
    ],
)
def test_else_of_a_while_loop_runs_unless_the_loop_is_left(module: str) -> None:
    assert _host(module) == _known(1)


GENERATORS = {
    "its call is not None": "def f(n):\n    yield n\nR = 0 if f(0) is None else 1",
    "its call is true": "def f(n):\n    if n: yield 1\n    return 0\nR = 1 if f(0) else 0",
    "yield from": "def f(n):\n    yield from n\n    return 0\nR = f(())",
    "a yield in a value": "def f(n):\n    n = 0 if n == 0 else (yield)\n    return n\nR = f(0)",
}


@pytest.mark.parametrize("module", GENERATORS.values(), ids=GENERATORS)
def test_a_call_of_a_generator_is_not_what_it_returns(module: str) -> None:
    assert _host(module) == ["wait_cross_core R @ V"]


def test_a_function_around_a_generator_is_read() -> None:
    assert _host("def f(n):\n    def g():\n        yield n\n    return n\nR = f(1)") == _known(1)


ENUMS = "import enum\nfrom enum import Enum, IntEnum\nclass M(Enum):\n    OFF = 0\n    ON = 1\n"

MEMBERS = {
    "a member is true": ENUMS + "R = 1 if M.OFF else 0",
    "a member is no integer": ENUMS + "R = 0 if M.OFF == 0 else 1",
    "a member of a name": ENUMS + "MODE = M.OFF\nR = 0 if MODE == 0 else 1",
    "a decorator": "def f(c):\n    c.R = 1\n    return c\n@f\nclass C:\n    R = 0\nR = C.R",
    "a metaclass": "class C(metaclass=foo):\n    R = 0\nR = C.R",
    "a foreign base": "import foo\nclass C(foo.Base):\n    R = 0\nR = C.R",
    "a base of the text": (
        "class B:\n    def __init_subclass__(cls):\n        cls.R = 1\nclass C(B):\n    R = 0\nR = C.R"
    ),
    "a slot": "from dataclasses import dataclass\n@dataclass(slots=True)\nclass C:\n    R: int = 0\nR = C.R",
    "a number that is no integer": ENUMS + "class C(IntEnum):\n    R = 1.5\nR = 0 if C.R == 1.5 else 1",
    "integers that are made otherwise": (
        ENUMS + "class C(IntEnum):\n    R = 0\n    def __int__(self):\n        return 1\nR = C.R"
    ),
}


@pytest.mark.parametrize("module", MEMBERS.values(), ids=MEMBERS)
def test_members_of_a_class_that_is_more_than_its_body_are_not_known(module: str) -> None:
    assert _host(module) in (["wait_cross_core R @ V"], ["wait_cross_core C_R @ V"])


@pytest.mark.parametrize(
    "module",
    [
        "class C:\n    R = 1\nR = C.R",
        "class C(object):\n    R = 1\nR = C.R",
        "from dataclasses import dataclass\n@dataclass\nclass C:\n    R: int = 1\nR = C.R",
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass C:\n    R: int = 1\nR = C.R",
        ENUMS + "class C(IntEnum):\n    A = 0\n    R = A + 1\nR = C.R if C.A == 0 else 0",
        ENUMS + "@enum.unique\nclass C(enum.IntEnum):\n    R = 1\nR = C.R",
    ],
)
def test_members_of_a_plain_class_are_known(module: str) -> None:
    assert _host(module) == _known(1)


WRONG = [
    "(1, 2, 3)[::STEP]",
    "'abc'[::STEP]",
    "1 << (STEP - 1)",
    "1 >> (STEP - 1)",
    "b'a' * 10 ** 12",
    "b'%99999999999d' % 1",
    "f'{1114112:c}'",
    "'a b'.split(' ', 10 ** 30)",
    "{1: 2}[{}]",
    "round(1, -10 ** 9)",
    "(1 if foo else 'a') < 2",
    "[1] in {}",
    "{} in {}",
    "(-1) ** 0.5",
    "int(1e400)",
    "10.0 ** 400",
]


@pytest.mark.parametrize("value", WRONG)
def test_operands_that_python_refuses_are_not_known(value: str) -> None:
    assert _host(f"STEP = 0\nR = {value}", "0") == _known(0)
    assert _host(f"STEP = 0\nR = {value}")


RUN_AGAIN = {
    "a loop": "for R in (1, 0):\n    kernel(None)\n",
    "assignments around a call": "R = 1\nkernel(None)\nR = 0\n",
    "a main block": "if __name__ == '__main__':\n    R = 1\n    kernel(None)\n    R = 0\n",
    "an assignment inside a condition": "if (R := 1):\n    kernel(None)\nR = 0\n",
    "a context": "with foo() as R:\n    kernel(None)\nR = 0\n",
    "an import": "from foo import R\nkernel(None)\nR = 0\n",
    "all names of an import": "from foo import *\nkernel(None)\nR = 0\n",
    "an addition": "R += 1\nkernel(None)\nR -= 1\n",
    "a test that is run": "R = 1\ndef go():\n    kernel(None)\ngo()\nR = 0\n",
    "a function": "def go():\n    global R\n    R = 1\ngo()\nkernel(None)\n",
}


@pytest.mark.parametrize("after", RUN_AGAIN.values(), ids=RUN_AGAIN)
def test_a_name_that_changes_between_calls_of_the_kernel_is_not_known(after: str) -> None:
    """A kernel is traced where it is called."""
    assert _host("R = 0", after=after) == ["wait_cross_core R @ V"]


def test_a_function_or_builtin_that_changes_between_calls_is_not_known() -> None:
    assert _host("def f():\n    return 0", "f()", "kernel(None)\ndef f():\n    return 1\n") != _known(1)
    assert _host("", "len((1, 2))", "kernel(None)\nlen = foo\ndel len\n") != _known(2)
    assert _host("def f():\n    return R\nR = 0", "f()", "R = 1\nkernel(None)\nR = 0\n") == ["wait_cross_core R @ V"]


@pytest.mark.parametrize(
    "module",
    [
        "R = 0\nR = 1",
        "for R in (0, 1):\n    pass",
        "R = 0\nif R == 0:\n    R = 1",
        "R = 0\nR += 1",
        "def f():\n    R = 0\nR = 1",
    ],
)
def test_a_name_that_changes_before_there_is_a_kernel_is_known(module: str) -> None:
    assert _host(module) == _known(1)
    assert _host(module, after="x = 0\nx = 1\nfor i in range(2):\n    kernel(i)\n") == _known(1)


def _made(before: str, after: str, body: str = "R = depth", head: str = "def make(depth):") -> tuple[list[str], str]:
    """What the event id R of a kernel that a factory builds is read as, and what is taken for granted."""
    inner = "\n".join("    " + line for line in body.splitlines())
    text = (
        f"import pypto_pro.language as pl\n{before}\n{head}\n{inner}\n    @pl.jit\n"
        "    def kernel(a: pl.Tensor[[64, 64], pl.DT_FP16]):\n        with pl.section_vector():\n"
        f"            pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=R)\n{after}\n"
    )
    found = result(text)
    (kernel,) = found.kernels
    return section(kernel), " ".join(found.assumptions.get(kernel.name, ()))


FIRST = "    return kernel\nmake(0)\n"

CALLERS = {
    "unpacked arguments": "args = [1]\nmake(*args)",
    "unpacked keywords": "kw = dict(depth=1)\nmake(**kw)",
    "a map": "list(map(make, [1]))",
    "another name": "m = make\nm(1)",
    "a partial call": "import functools\nfunctools.partial(make, 1)()",
    "a dictionary": "F = {'a': make}\nF['a'](1)",
    "a caller with unpacked arguments": "def go(d=0):\n    make(d)\ngo()\ngo(*[1])",
    "a caller under another name": "def go(d):\n    make(d)\ngo(0)\nrun = go\nrun(1)",
    "a caller with any arguments": "d = 0\ndef go(*d):\n    make(d)\ngo(1)",
    "a method": "class C:\n    def go(self, d):\n        make(d)\ndef go(self, d):\n    pass\ngo(0, 0)\nC().go(1)",
    "an asynchronous caller": "d = 0\nasync def go(d):\n    make(d)\ngo(1)",
    "a fixture": (
        "import pytest\n@pytest.fixture(params=[0, 1])\ndef depth(request):\n    return request.param\n"
        "def test(depth):\n    make(depth)\ntest(0)"
    ),
    "an indirect parameter": (
        "import pytest\n@pytest.mark.parametrize('d', [0], indirect=True)\ndef test(d):\n    make(d)\n"
    ),
    "a decorator that changes arguments": "@foo\ndef go(d):\n    make(d)\ngo(0)",
    "too many cases": "import pytest\n@pytest.mark.parametrize('d', range(500))\ndef test(d):\n    make(d)\n",
    "a handler": "try:\n    D = 1\n    foo()\n    D = 0\nexcept ValueError:\n    make(D)",
    "an else of a loop": "D = 1\nfor i in ():\n    D = 0\nelse:\n    make(D)",
    "a default of the caller's text": "D = 1\ndef go(x=make(D)):\n    D = 0",
    "all names": "globals()['make'](1)",
    "a name that a function changes": (
        "def s():\n    global D\n    D = 1\ndef go():\n    global D\n    D = 0\n    s()\n    make(D)\ngo()"
    ),
    "a parametrisation that changes": (
        "import pytest\nC = [1]\n@pytest.mark.parametrize('d', C)\ndef test(d):\n    make(d)\nC = [0]"
    ),
}


@pytest.mark.parametrize("after", CALLERS.values(), ids=CALLERS)
def test_parameters_of_a_factory_that_may_be_called_otherwise_are_not_known(after: str) -> None:
    found, taken = _made("", FIRST + after)
    assert found == ["wait_cross_core depth @ V"] and "make is called as in" not in taken


CLOSURES = {
    "a loop": ("R = 0", "    for R in (1, 0):\n        kernel(None)\nmake()"),
    "assignments around a call": ("R = 0", "    R = 1\n    kernel(None)\n    R = 0\nmake()"),
    "a function inside": (
        "R = 0",
        "    def go():\n        nonlocal R\n        R = 1\n    go()\n    kernel(None)\nmake()",
    ),
    "a name of the module": ("global R\nR = 0", "    return kernel\nk = make()\nR = 1\nk(None)\nR = 0"),
    "a value of the module": ("R = D", "    return kernel\nD = 1\nmake()\nD = 0"),
}


@pytest.mark.parametrize(("body", "after"), CLOSURES.values(), ids=CLOSURES)
def test_a_name_of_a_factory_that_changes_between_calls_of_the_kernel_is_not_known(body: str, after: str) -> None:
    assert _made("", after, body, "def make():")[0] in (["wait_cross_core R @ V"], ["wait_cross_core D @ V"])


def test_a_parameter_of_a_factory_that_gets_another_value_is_not_known() -> None:
    after = "    depth = 1\n    kernel(None)\n    depth = 0\nmake(0)"
    text = _made("", after.replace("depth", "R"), "pass", "def make(R):")[0]
    assert text == ["wait_cross_core R @ V"]


def test_pytest_calls_a_test_with_its_default_values() -> None:
    found, taken = _made("", FIRST + "def test(d=1):\n    make(d)\ntest(0)")
    assert found == ["wait_cross_core depth @ V"] and taken.endswith("depth = 1 or 0")


def test_a_default_of_a_factory_is_that_of_its_definition() -> None:
    after = "    return kernel\ndef go(D):\n    make()\ngo(0)"
    assert _made("D = 1", after, head="def make(depth=D):")[0] == _known(1)


@pytest.mark.parametrize(
    "after",
    [
        "make(1)",
        "def go(d):\n    return make(d)\ngo(1)",
        "import pytest\n@pytest.mark.parametrize('d', [1])\ndef test(d):\n    make(d)\n",
        "def test():\n    make(1)\nif __name__ == '__main__':\n    test()",
        "try:\n    make(1)\nexcept ValueError:\n    pass",
    ],
)
def test_parameters_of_a_factory_that_is_only_called_are_known(after: str) -> None:
    found, taken = _made("", "    return kernel\n" + after)
    assert found == _known(1) and "make is called as in line" in taken
