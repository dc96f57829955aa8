"""Is every expression of a PyPTO-Pro kernel read as Python means it, or else reported?"""

from __future__ import annotations

import re
import textwrap

import pytest
from tests.frontends.pypto_pro import lowered, program, result, section, unread, vector


def module(before: str, cube: str, vector: str) -> str:
    """A module with a kernel of both sections; `S(i)` sets and `W(i)` waits for a signal of the other core."""
    parts = [("with pl.section_cube():", cube), ("with pl.section_vector():", vector)]
    body = "\n".join(
        head + "\n" + textwrap.indent(textwrap.dedent(text).strip("\n") or "pass", "    ") for head, text in parts
    )
    helpers = """
def S(i):
    pl.system.set_cross_core(pipe=pl.PipeType.FIX, event_id=i)

def W(i):
    pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=i)
"""
    return program(body, helpers + textwrap.dedent(before), "n: pl.DT_INT32")


def sides(before: str, cube: str, vector: str = "") -> tuple[list[str], list[str]]:
    """Both sections of a kernel that is read as a whole, with signals written as `set 1` and `wait 1`."""
    kernel = lowered(module(before, cube, vector))
    found = []
    for core in ("cube", "vector"):
        lines = section(kernel, core)
        found.append([re.sub(r"(set|wait)_cross_core (.*) @ \w+", r"\1 \2", line) for line in lines])
    return found[0], found[1]


def reported(before: str, cube: str, vector: str = "") -> list[str]:
    """What is reported as not read."""
    kernel = next(k for k in result(module(before, cube, vector)).kernels if k.name == "kernel")
    return [text.split(": ", 1)[1] for text in unread(kernel)]


# --------------------------------------------------------------------------------------------- what is not read is told

CALLS = {
    "imported": ("from other import ready", "ready(0)"),
    "imported, as a value": ("from other import ready", "x = ready(0)"),
    "a member of an imported module": ("import other", "other.ready(0)"),
    "a lambda": ("ready = lambda i: S(i)", "ready(0)"),
    "a lambda of the kernel": ("", "ready = lambda i: S(i)\nready(0)"),
    "partial": ("import functools\nready = functools.partial(S, 1)", "ready()"),
    "a method": ("class H:\n    def send(self, i):\n        S(i)\nh = H()", "h.send(3)"),
    "a constructor": ("class H:\n    def __init__(self, i):\n        S(i)", "H(3)"),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_a_call_of_something_that_is_not_read_is_reported(name: str) -> None:
    before, cube = CALLS[name]
    (reason,) = reported(before, cube)
    assert "is not read" in reason


@pytest.mark.parametrize(
    "change",
    ["x.reverse()", "x.insert(0, 3)", "x.append(3)", "y = x.pop()", "d.update({1: 3})", "y = d.pop(1)", "d.clear()"],
)
def test_a_method_that_changes_a_list_or_dictionary_is_reported(change: str) -> None:
    reasons = reported("", f"x = [1, 2]\nd = {{1: 2}}\n{change}\nS(x[0] + d[1])")
    assert "is not read" in reasons[0]


def test_methods_that_change_nothing_are_read() -> None:
    text = "x = [1, 2]\nd = {1: 2}\nS(x.index(2))\nS(x.count(1))\nS(d.get(1))\nS(d.copy()[1] + x.copy()[0])"
    assert sides("", text)[0] == ["set 1", "set 1", "set 2", "set 3"]


# ---------------------------------------------------------------------------------------------------------------- names


def test_a_name_that_the_function_binds_is_never_that_of_the_module() -> None:
    body = "for i in pl.range(n):\n    if i > 0:\n        W(prev)\n    prev = i % 2"
    text = "what prev holds here is not known: it is assigned elsewhere in the function"
    assert reported("prev = 7", "", body)[0] == text
    assert len(reported("def ready(i):\n    S(i)", "from other import ready\nready(1)")) == 1


def test_a_name_that_the_function_does_not_bind_is_that_of_the_module() -> None:
    assert sides("K = 7", "S(K)", "for i in pl.range(2):\n    W(K)")[0] == ["set 7"]


# ------------------------------------------------------------------------------------------------------------ built-ins

VALUES = {
    "sorted((0, 1, 2), reverse=True)[0]": 2,
    "sorted((2, 0, 1))[0]": 0,
    "sum((0, 1, 2), start=5)": 8,
    "sum((0, 1, 2), 5)": 8,
    "enumerate((7, 8), start=3)[1][0]": 4,
    "int('10', base=2)": 2,
    "int('10', 8)": 8,
    "len(list(zip((1, 2), (3, 4), strict=True)))": 2,
    "len(set([1, 1]))": 1,
    "len(set((1, 2, 1)))": 2,
    "len(f'{0:02d}')": 2,
    "len(f'{\"a\"!r}')": 3,
    "int(f'{3}')": 3,
    "int(f'{1:{3}d}'.replace(' ', '0'))": 1,
}


@pytest.mark.parametrize("text", list(VALUES))
def test_built_in_functions(text: str) -> None:
    assert sides(f"K = {text}", f"S(K)\nS({text})")[0] == [f"set {VALUES[text]}"] * 2


@pytest.mark.parametrize(
    "text", ["max((0, 1), key=abs)", "min((), default=3)", "sorted((0, 1), key=abs)[0]", "len(dict(a=1))"]
)
def test_a_keyword_argument_that_is_not_known_is_reported(text: str) -> None:
    assert "with the keyword argument" in reported("", f"S({text})")[0]
    kernel = lowered(module(f"K = {text}", "S(K)", ""))
    assert kernel.parameters == ("K",)


def test_sequences_of_different_lengths_that_must_be_equal() -> None:
    assert reported("", "x = len(zip((1,), (1, 2), strict=True))") == ["zip() of sequences of different lengths"]


# ------------------------------------------------------------------------------------- and, or, conditional expressions

SIGNAL = "pl.system.set_cross_core(pipe=pl.PipeType.FIX, event_id={})"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n or 4", "n if n != 0 else 4"),
        ("n and 3", "3 if n != 0 else n"),
        ("0 or n or 0", "n if n != 0 else 0"),
        ("n or 0 or 4", "n if n != 0 else 4"),
        ("n and 3 and 5", "5 if n != 0 else n"),
        ("0 or 4", "4"),
        ("3 and 7", "7"),
        ("None or 5", "5"),
        ("0 and n", "0"),
        ("3 or n", "3"),
        ("n > 2 and 5", "5 if n > 2 else n > 2"),
        ("n > 2 and n < 5", "n > 2 and n < 5"),
    ],
)
def test_and_and_or_give_an_operand(text: str, value: str) -> None:
    assert sides("", SIGNAL.format(text))[0] == [f"set {value}"]


@pytest.mark.parametrize(("text", "value"), [("0 or 4", 4), ("None or 5", 5), ("3 and 7", 7), ("0 or 0.0 or ''", 0)])
def test_and_and_or_of_the_module_give_an_operand(text: str, value: int) -> None:
    assert sides(f"K = {text} or 0", "S(K)")[0] == [f"set {value}"]


def test_where_only_the_truth_counts_operands_are_conditions() -> None:
    cube = "if n or n > 4:\n    S(0)\nif not (n and 3):\n    S(1)\n" + SIGNAL.format("2 if n or 0 else 3")
    assert sides("", cube)[0] == [
        "if n != 0 or n > 4:",
        "    set 0",
        "if n == 0:",
        "    set 1",
        "set 2 if n != 0 else 3",
    ]


READY = """
def ready(i):
    S(i)
    return i * 3
"""


def test_an_operand_with_effects_is_evaluated_only_where_it_is_reached() -> None:
    assert sides(READY, "if n > 2 and ready(n) > 4:\n    S(2)")[0] == [
        "if n > 2:",
        "    set n",
        "if n > 2 and n * 3 > 4:",
        "    set 2",
    ]
    assert sides(READY, "if n > 2 or ready(n) > 4 or ready(n + 1) > 7:\n    S(2)")[0][:4] == [
        "if n <= 2:",
        "    set n",
        "if not (n > 2 or n * 3 > 4):",
        "    set n + 1",
    ]
    assert sides(READY, "x = 1 < ready(n) < ready(n + 1)\nS(x)")[0][:3] == [
        "set n",
        "if 1 < n * 3:",
        "    set n + 1",
    ]


def test_a_side_of_a_conditional_expression_is_evaluated_only_if_it_is_chosen() -> None:
    assert sides(READY, "x = ready(1) if n > 2 else ready(2)\nif x > 4:\n    S(x)")[0] == [
        "if n > 2:",
        "    set 1",
        "if n <= 2:",
        "    set 2",
        "if x > 4:",
        "    set x",
    ]
    assert sides(READY, "x = ready(1) if 3 > 2 else ready(2)\nS(x)")[0] == ["set 1", "set 3"]


def test_a_cursor_moves_only_if_it_is_chosen() -> None:
    text = """
        g = pl.make_tile_group(type=VEC, addrs=[0, 8192], mutex_ids=[0, 1])
        h = pl.make_tile_group(type=VEC, addrs=[16384, 24576], mutex_ids=[2, 3])
        for i in pl.range(4):
            t = g.next() if i % 2 == 0 else h.next()
            pl.load(t, a, [0, 0])
    """
    assert vector(text)[:9] == [
        "for i in range(4):",
        "    if i % 2 == 0:",
        "        g_slot = g.next()",
        "    else:",
        "        g_slot = 0",
        "    if i % 2 != 0:",
        "        h_slot = h.next()",
        "    else:",
        "        h_slot = 0",
    ]


def test_effects_under_a_condition_that_is_not_known_are_reported() -> None:
    reasons = reported(READY, "t = pl.make_tile(VEC, addr=0)\nx = t.layout and ready(n)\nS(x)")
    assert reasons[:1] == ["this has effects, and whether it is evaluated cannot be told"]


# ---------------------------------------------------------------------------- different conditions have different names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("n < 1.5", "1.5 < n"),
        ("n - 1.5 > 0", "1.5 - n > 0"),
        ("n / 2 - 2 > 0", "n - 2 / 2 > 0"),
        ("n / 2 - n > 0", "n - n / 2 > 0"),
        ("n > 1e-16", "n > 1e+16"),
        ("n > 1.5", "n > -1.5"),
        ("n / 1.5 > 0", "n / n > 1.5"),
        ("n / 2 > n", "n > n / 2"),
        ("-(n / 2) > 0.5", "n / 2 > -0.5"),
    ],
)
def test_decisions_by_different_values_differ(one: str, other: str) -> None:
    cube, vector_ = sides("", f"if {one}:\n    S(0)", f"if {other}:\n    W(0)")
    assert cube[0] != vector_[0]
    cube, vector_ = sides("", f"if {one}:\n    S(0)", f"if {one}:\n    W(0)")
    assert cube[0] == vector_[0]


def test_a_result_of_another_module_decides_nothing() -> None:
    for text in ("other.f(n) > 3", "other.p(i)"):
        reasons = reported("import other", f"for i in pl.range(n):\n    if {text}:\n        S(0)")
        assert len(reasons) == 1 and "is not read" in reasons[0]


def test_an_unknown_condition_is_the_same_where_all_it_depends_on_is() -> None:
    def head(condition: str) -> str:
        text = f"t = pl.make_tile(VEC, addr=0)\nfor i in pl.range(n):\n    if {condition}:\n        W(0)"
        return sides("", "", text)[1][1].strip()

    assert head("t.layout == 3") == "if t_layout____3:"
    assert head("t.layout == 3 and i > 2") == "if t_layout____3 and i > 2:"
    long = "t.a_very_long_name_of_some_attribute_of_a_tile"
    text = f"t = pl.make_tile(VEC, addr=0)\nif {long} == 3:\n    W(0)\nif {long} == 4:\n    W(1)"
    first, _, second, _ = sides("", "", text)[1]
    assert first != second
    text = "t = pl.make_tile(VEC, addr=0)\nif t.layout < 3:\n    W(0)\nif t.layout > 3:\n    W(1)"
    first, _, second, _ = sides("", "", text)[1]
    assert first != second


def test_an_unknown_local_of_a_loop_decides_nothing() -> None:
    text = "t = pl.make_tile(VEC, addr=0)\nfor i in pl.range(n):\n    y = t.layout\n    if y:\n        W(0)"
    assert reported("", "", text) == ["the condition depends on y, of which nothing is known"]
