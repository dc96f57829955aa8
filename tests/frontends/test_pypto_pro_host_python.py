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
