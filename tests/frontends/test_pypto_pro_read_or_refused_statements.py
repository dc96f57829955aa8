"""Is every statement of a PyPTO-Pro kernel read as Python runs it, or else reported?"""

from __future__ import annotations

import re
import textwrap

import pytest
from tests.frontends.pypto_pro import program, result, section, unread

TILES = """
n = a.shape[0]
t = pl.make_tile(VEC, addr=0)
u = pl.make_tile(VEC, addr=8192)
w = pl.make_tile(VEC, addr=16384)
"""


def _written_out(text: str) -> str:
    """S(i) sets the cross-core signal i, W(i) waits for it."""
    text = textwrap.dedent(text).strip()
    text = re.sub(r"\bS\(([^()]*)\)", r"pl.system.set_cross_core(pipe=pl.PipeType.FIX, event_id=\1)", text)
    return re.sub(r"\bW\(([^()]*)\)", r"pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=\1)", text)


def vector(body: str, before: str = "") -> list[str]:
    """The vector section of a kernel with the tiles t, u and w and the unknown integer n."""
    inside = textwrap.indent(_written_out(body), "    ")
    found = result(program(f"{TILES}with pl.section_vector():\n{inside}", _written_out(before)))
    assert not found.errors
    (kernel,) = found.kernels
    return [re.sub(r"unsupported .*", "unsupported", line) for line in section(kernel)]


def notes(body: str, before: str = "") -> list[str]:
    """What could not be read, without the lines."""
    inside = textwrap.indent(_written_out(body), "    ")
    (kernel,) = result(program(f"{TILES}with pl.section_vector():\n{inside}", _written_out(before))).kernels
    return [note.split(": ", 1)[1] for note in unread(kernel)]


# ----------------------------------------------------------------------------------------------------------- operands


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("pl.add(t, u, rhs=w)", "add t <- u, w @ V"),
        ("pl.exp(out=t, src=u)", "exp t <- u @ V"),
        ("pl.exp(src=u, out=t)", "exp t <- u @ V"),
        ("pl.sum(t, u, tmp=w, dim=0)", "sum t, w <- u @ V"),
        ("pl.mrgsort2(t, u, dst=w, tmp=t)", "mrgsort2 w, t <- t, u @ V"),
        ("pl.add(t, u, **{'rhs': w})", "unsupported"),
        ("pl.exp(t, u, other=w)", "unsupported"),
        ("pl.add(t, u, out=w)", "unsupported"),
        ("pl.add(t, rhs=w)", "unsupported"),
        ("pl.add(t + 64, u, w)", "unsupported"),
        ("pl.add(t, (u, w))", "unsupported"),
    ],
)
def test_operands(call: str, expected: str) -> None:
    assert vector(call) == [expected]


HELPERS = """
import os
m = os.environ.get("M")
def same(p):
    return p
def store_or_not(p, x):
    if m > 3:
        return
    vf.store_align(p, x)
"""
COPY = "vf.store_align(p, vf.load_align(src, 0))"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("dst += 64\nvf.store_align(dst, vf.load_align(src, 0))", "f t <- u @ V"),
        (f"p, q = dst, src\n{COPY}", "f t <- u @ V"),
        (f"p: object = dst\n{COPY}", "f t <- u @ V"),
        (f"p = q = dst\n{COPY}", "f t <- u @ V"),
        (f"p = dst\nfor i in range(4):\n    {COPY}\n    p += 64", "f t <- u @ V"),
        ("vf.store_align(dst=dst, value=vf.load_align(src, 0))", "f t <- u @ V"),
        ("dst[0] = vf.load_align(src, 0)", "f t <- t, u @ V"),
        ("store_or_not(dst, 0)\nx = vf.load_align(dst, 0)", "f t <- t @ V"),
        ("for i in range(m):\n    vf.store_align(dst, 0)\nx = vf.load_align(dst, 0)", "f t <- t @ V"),
        (f"p = dst if m > 2 else src\n{COPY}", "unsupported"),
        (f"p = same(dst)\n{COPY}", "unsupported"),
        ("vf.store_align(same(dst), vf.load_align(src, 0))", "unsupported"),
        (f"for p in [dst, src]:\n    {COPY}", "unsupported"),
        (f"p = dst\nfor i in range(m):\n    {COPY}\n    p = src", "unsupported"),
        (f"p = dst\nif m > 3:\n    p = src\n{COPY}", "unsupported"),
        ("vf.store_align((p := dst), 0)", "unsupported"),
        ("[vf.store_align(dst, 0) for i in range(4)]", "unsupported"),
        ("vf.store_align(*(dst, 0))", "unsupported"),
        ("vf.store_align(other, 0)", "unsupported"),
        ("same((dst, src))", "unsupported"),
    ],
)
def test_accesses_of_vector_functions(body: str, expected: str) -> None:
    function = "@pl.vector_function\ndef f(dst, src):\n" + textwrap.indent(body, "    ")
    assert vector("f(t, u)", HELPERS + function) == [expected]


def test_tiles_in_an_argument() -> None:
    function = "@pl.vector_function\ndef f(pair):\n    dst, src = pair\n    vf.store_align(dst, vf.load_align(src, 0))"
    assert notes("f((t, u))", function) == ["several tiles are passed to a vector function as one argument"]


# --------------------------------------------------------------------------------------------------------- assignments


def test_a_value_for_several_names() -> None:
    lines = vector("x = n * 2\nx = y = x + 1\nW(x)\nW(y)")
    assert lines[:4] == ["x = n * 2", "y_next = x + 1", "x = x + 1", "y = y_next"]


def test_a_loop_that_changes_what_its_bounds_were() -> None:
    lines = vector("x = n * 2\nfor i in pl.range(x, x + 9, n):\n    W(i % 4)\n    x = x + 1")
    assert lines == [
        "x = n * 2",
        "i_first = x",
        "for i_trip in range(i_trips):",
        "    i = i_first + i_trip * i_step",
        "    wait_cross_core i % 4 @ V",
        "    x = x + 1",
    ]


@pytest.mark.parametrize("step", ["-n", "n * -2", "-n - 1"])
def test_loops_that_run_down_by_unknown_steps(step: str) -> None:
    assert notes(f"for i in pl.range(n, 0, {step}):\n    W(i % 4)") == [
        "a loop with a negative step that is not known is not supported"
    ]


def test_a_valid_shape_belongs_to_a_slot() -> None:
    group = "g = pl.make_tile_group(VEC, addrs=[0, 8192])\n"
    first = "t = g.next()\npl.set_validshape({shape})\n"
    body = f"{group}{first}t = g.next()\npl.exp(t, t)"
    for shape in ("t, [64, 32]", "tile=t, shape=[64, 32]"):
        assert vector(body.format(shape=shape)) == vector(body.format(shape="t, [64, 64]"))
    assert notes("pl.set_validshape(t)") == ["pl.set_validshape takes a tile and a shape"]


# ----------------------------------------------------------------------------------------------------------- functions


def test_a_helper_that_returns_or_falls_off_its_end() -> None:
    helper = "def f(m):\n    if m == 0:\n        return 5\n    W(0)"
    assert vector("f(n)", helper) == ["if n != 0:", "    wait_cross_core 0 @ V"]
    assert "unsupported" in vector("r = f(n)\nif r is None:\n    W(1)", helper)
    assert "    wait_cross_core 1 @ V" not in vector("r = f(n)\nif r is None:\n    W(1)", helper)


TWICE = "def twice(f):\n    return f\n"
SEND = "@twice\ndef send(i):\n    W(i)\n"


@pytest.mark.parametrize(
    ("body", "before", "expected"),
    [
        ("send(3)", TWICE + SEND, "what send does is changed by a decorator"),
        (SEND + "send(3)", TWICE, "what send does is changed by a decorator"),
        ("k = 0\ndef f():\n    W(k)\nk = 1\nf()", "", "k has been assigned since f was defined"),
        ("def f():\n    W(k)\nk = 1\nf()", "k = 0", "k has been assigned since f was defined"),
        ("k = 3\ndef f():\n    nonlocal k\n    k = 4\nf()", "", "this statement (nonlocal) is not supported"),
        ("global K\nK = 4", "K = 3", "this statement (global) is not supported"),
        (
            "N = 4\nfrom cfg import N\nW(N)",
            "N = 3",
            "what N holds here is not known: it is assigned elsewhere in the function",
        ),
    ],
)
def test_what_a_helper_is_not_read_as(body: str, before: str, expected: str) -> None:
    assert expected in notes(body, before)


def test_an_asynchronous_function_takes_the_name() -> None:
    found = vector("def f():\n    W(5)\nasync def f():\n    W(7)\nf()")
    assert found == ["unsupported", "unsupported"]


def test_default_values_are_those_of_the_definition() -> None:
    helper = "N = 3\ndef f(i=N):\n    W(i)\nN = 5"
    assert vector("N = 9\nf()", helper) == ["wait_cross_core 3 @ V"]
    inner = "N = n * 2\ndef f(i=N):\n    W(i)\nN = N + 5\nf()"
    assert vector(inner) == ["N = n * 2", "i_default = N", "N = N + 5", "wait_cross_core i_default @ V"]


# ----------------------------------------------------------------------------------------------------------- host code


@pytest.mark.parametrize(
    ("before", "uses", "expected"),
    [
        ("def depth():\n    if M:\n        return 4\n    return 2\nD = depth()", "D", "D"),
        ("A = [1, 2]\nB = A\nB[0] = 7", "A[0]", "A_0"),
        ("A = [1, 2]\nB = A\nA += [3]", "B[0]", "A_0"),
        ("A = [1, 2]\nA[0] += 5", "A[0]", "A_0"),
        ("A = [[1, 2]]\nA[0][0] = 9", "A[0][0]", "A_0_0"),
        ("A = [1, 2]\ndel A[0]", "A[0]", "A_0"),
        ("class C:\n    A = 1\nC.A = 6", "C.A", "C_A"),
        ("G = 3\nX = (G := 5)", "G", "5"),
        ("A = [3, 4]\ndef init():\n    A.reverse()\ninit()", "A[0]", "A_0"),
        ("A = [3, 4]\ndef init(h):\n    g = h\n    g.reverse()\nx = init(A)", "A[0]", "A_0"),
        ("A = [3, 4]\ndef init(h):\n    lambda: 0\n    h.reverse()\ninit(A)", "A[0]", "A_0"),
        ("A = [3, 4]\nA.append(5)\nA = [6]", "A[0]", "A_0"),
        ("R = 2\nmatch M:\n    case 1:\n        R = 3", "R", "R"),
        ("R = 2\ndef f():\n    global R\n    R = 3\nf()", "R", "R"),
        ("R = 1\nfor i in range(3):\n    R = R + 1\n    if M:\n        break", "R", "R"),
        ("R = 1\nfor i in range(3):\n    with open('x'):\n        break\n    R = 4", "R", "R"),
        ("R = 1\ntry:\n    import other\n    R = 2\nexcept ImportError:\n    pass", "R", "R"),
        ("R = 1\ntry:\n    R = 2\nexcept ImportError:\n    raise", "R", "2"),
        ("def twice(f):\n    return f\n@twice\ndef g():\n    return 3\nR = g()", "R", "R"),
        ("F = 3\nasync def F():\n    pass", "F", "F"),
    ],
)
def test_constants_of_the_module(before: str, uses: str, expected: str) -> None:
    """What is not known is a parameter of the kernel."""
    start = 'import os\nM = os.environ.get("M")\n'
    assert vector(f"W({uses})", start + before) == [f"wait_cross_core {expected} @ V"]


def test_long_chains_and_shared_parts_of_host_code() -> None:
    chain = "\n".join(f"def f{i}():\n    f{i + 1}()" for i in range(1500))
    assert vector("W(A[0])", f"A = [1]\n{chain}\nf0()") == ["wait_cross_core 1 @ V"]
    passed = "\n".join(f"def g{i}(x):\n    g{i + 1}(x)" for i in range(1500))
    assert vector("W(A[0])", f"A = [1]\n{passed}\ng0(A)") == ["wait_cross_core A_0 @ V"]
    shared = "A = [1]\nx = [1]\n" + "x = [x, x]\n" * 60 + "x.append(A)\nB = A"
    assert vector("W(B[0])", shared) == ["wait_cross_core A_0 @ V"]


@pytest.mark.parametrize(
    ("module", "value"),
    [
        ("K = 3\nclass C:\n    A = K\nK = 8", 3),
        ("class C:\n    A = 1\n    A = 2", 2),
        ("class C:\n    A = 4\n    B = A + 1\n    A = B", 5),
    ],
)
def test_class_constants_are_those_of_the_class_body(module: str, value: int) -> None:
    assert vector("W(C.A)", module) == [f"wait_cross_core {value} @ V"]


@pytest.mark.parametrize("more", ["sync_modes=1", "count=3", "pipe=pl.PipeType.V"])
def test_unknown_and_repeated_keywords_of_signals_are_reported(more: str) -> None:
    if more.startswith("pipe"):
        call = f"pl.system.wait_cross_core(pl.PipeType.V, 0, {more})"
    else:
        call = f"pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=0, {more})"
    assert vector(call) == ["unsupported"]
