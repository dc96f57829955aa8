"""Does the PyPTO-Pro front end survive every text, in reasonable time?"""

from __future__ import annotations

import pytest
from tests.frontends.pypto_pro import program, result, unread

from fencepost.frontends.pypto_pro import context, read
from fencepost.printer import print_kernel
from fencepost.validate import validate

LOAD = "pl.load(t, a, [x, 0])"
START = "t = pl.make_tile(VEC, addr=0)\nx = a.shape[0]\n"


def inside(body: str, before: str = "") -> str:
    lines = "\n".join("    " + line for line in (START + body).splitlines())
    return program("with pl.section_vector():\n" + lines, before)


def nested(head: str, count: int) -> str:
    lines = [" " * i + head.format(i) for i in range(count)]
    return "\n".join([*lines, " " * count + LOAD])


TEXTS = {
    "empty": "",
    "nothing but a comment": "# pypto_pro\n",
    "a NUL": "a\0b",
    "half a surrogate": "x = '\udc80'\n" + inside(LOAD),
    "a byte order mark": "\ufeff" + inside(LOAD),
    "carriage returns": inside(LOAD).replace("\n", "\r\n"),
    "form feeds": inside("x = 1 \f\n" + LOAD),
    "no end of line": inside(LOAD).rstrip(),
    "tabs": inside(LOAD).replace("    ", "\t"),
    "other letters": inside("größe = x; '日本'; pl.load(t, a, [größe, 0])"),
    "many brackets": inside("x = " + "(" * 3000 + "1" + ")" * 3000),
    "a long sum": inside("x = " + "+".join(["x"] * 5000)),
    "deep branches": inside(nested("if x > {}:", 90)),
    "deep loops": inside(nested("for i{} in pl.range(3):", 19)),
    "deep negation": inside("x = " + "-" * 2000 + "1"),
    "deep members": inside("x = a" + ".b" * 5000),
    "deep calls": inside("x = a" + "()" * 3000),
    "a long choice": inside("x = " + " ".join(f"{i} if x == {i} else" for i in range(800)) + " 0"),
    "a long chain": inside("\n".join(["x0 = x", *(f"x{i + 1} = x{i} + x{i}" for i in range(800)), "x = x800", LOAD])),
    "many statements": inside("\n".join([LOAD] * 3000)),
    "recursion": inside("f(x)", "def f(y):\n    return g(y)\ndef g(y):\n    return f(y)"),
    "recursion on the host": inside(LOAD, "def f(y):\n    return f(y + 1)\nX = f(0)"),
    "a loop without end": inside(LOAD, "X = 0\nwhile True:\n    X = X + 1"),
    "huge values": inside(
        LOAD,
        "s = 'a'\nfor i in range(100):\n    s = s + s\nx = 3\nfor i in range(100):\n    x = x * x\n"
        "y = 2 ** 4000 ** 4000\nz = [0] * 10 ** 9\nw = 'a'.replace('a', 'aa' * 10 ** 6)\nq = 1 << 10 ** 12\n"
        "p = '%99999999999d' % 1\nr = range(10 ** 30)\nv = list(range(10 ** 9))",
    ),
    "statements of other kinds": inside(
        "1 + 2\nt.x.y = 3\ndel t\nraise ValueError\ntry:\n    pass\nfinally:\n    pass\nlambda: 0\nglobal zz\n"
        "with open('f') as f, x:\n    pass\nasync_ = await_\nx: int\nx = y = 3\n*x, y = 1, 2\nimport os\n"
        "class C:\n    pass\n"
        "match t:\n    case 1:\n        pass\nyield_ = [i for i in range(3)]\nassert x, 'no'\nwhile x:\n    break"
    ),
    "odd arguments": program("with pl.section_vector():\n    pass", parameters="*args, k=3, **kw"),
    "odd annotations": program(
        "with pl.section_vector():\n    pass", parameters="a: 'pl.Tensor[[', b: 1, c: pl.Tensor[3]"
    ),
    "odd calls": inside(
        "pl.load(*[t, a], [0, 0])\npl.load(t, a, **{})\npl.load()\npl.add(t)\npl.move(t, 3, t, 4, z=1)"
    ),
}


@pytest.mark.parametrize("name", list(TEXTS))
def test_any_text(name: str) -> None:
    found = read(TEXTS[name], "k.py")
    for kernel in found.kernels:
        assert not validate(kernel)
        print_kernel(kernel)
    for error in found.errors:
        assert error.file == "k.py" and error.line >= 1 and error.message


@pytest.mark.parametrize("name", ["other letters", "a byte order mark", "carriage returns", "deep branches", "tabs"])
def test_texts_that_are_all_right(name: str) -> None:
    found = result(TEXTS[name])
    assert len(found.kernels) == 1 and not unread(found.kernels[0])


def test_a_large_file() -> None:
    found = result("# filler\n" * 500_000 + inside(LOAD) + "text = '" + "x" * 5_000_000 + "'\n")
    assert not unread(found.kernels[0])


def test_helpers_that_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_MAX_STEPS", 3000)
    helpers = "\n".join(f"def f{i}(t, a, x):\n    f{i + 1}(t, a, x)\n    f{i + 1}(t, a, x)" for i in range(18))
    (kernel,) = result(inside("f0(t, a, x)", f"{helpers}\ndef f18(t, a, x):\n    {LOAD}")).kernels
    assert "the kernel is too large to be read" in unread(kernel)[0]


def test_every_beginning_of_a_text() -> None:
    text = inside(nested("for i{} in pl.range(x):", 3) + "\nx, y = x, 2\npl.set_validshape(t, [x, y])\n" + LOAD)
    for end in range(0, len(text), 7):
        read(text[:end], "k.py")


def test_every_line_left_out() -> None:
    before = "def f(t, a, x):\n    if x == 3:\n        return t\n    pl.load(t, a, [x, 0])\n    return t"
    body = (
        "s = pl.struct(n=0)\nfor i in pl.range(x):\n    s.n = s.n + i\n    u = f(t, a, s.n)\n"
        "    if i > 2:\n        break\n    pl.exp(u, u)"
    )
    lines = inside(body, before).splitlines()
    for i in range(len(lines)):
        found = read("\n".join([*lines[:i], *lines[i + 1 :], ""]), "k.py")
        for kernel in found.kernels:
            validate(kernel)
