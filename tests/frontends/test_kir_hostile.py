"""Does the reader stand any text: no exception, one result, and time in proportion to the size?"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import kernels

from fencepost import ir
from fencepost.frontends.kir import read
from fencepost.printer import print_kernel, print_kernels
from fencepost.scope import MAX_NESTING

KERNEL = """\
kernel two_slots_{}(n):
    assume n >= 0
    READY = (0, 1)
    RELEASE = (2, 3)
    buffer qk[2] in Vec
"""
CUBE = """\
        for t in range(n):
            matmul x <- q, k @ M
            if t >= 2 and need(t) != 0:
                wait_cross_core RELEASE[(t - 2) % 2] @ FIX
            move qk[t % 2] <- x @ FIX task = t
            set_cross_core READY[t % 2] @ FIX
"""


def many(size: int) -> str:
    """Kernels of together `size` characters."""
    one = KERNEL + "    section cube:\n" + CUBE
    return "".join(one.format(number) for number in range(size // len(one)))


def seconds(text: str, good: bool) -> float:
    """Time to read `text`, the better of two."""
    best = float("inf")
    for _ in range(2):
        before = time.process_time()
        result = read(text, "big.kir")
        best = min(best, time.process_time() - before)
        assert (result.errors == ()) == good
    return best


# ----------------------------------------------------------------------------------------------------- strange inputs


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", "\ufeff", "  \t \n\n", "\r"])
def test_texts_without_a_kernel(text: str) -> None:
    assert read(text, "k.kir").kernels == ()
    assert read(text, "k.kir").errors == ()


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8"])
@pytest.mark.parametrize("prefix", ["", "kernel k():\n    section cube:\n        "])
def test_random_bytes(encoding: str, prefix: str) -> None:
    noise = random.Random(3).randbytes(200_000).decode(encoding, "replace")
    result = read(prefix + noise, "k.kir")
    assert result.kernels == ()
    assert result.errors


def test_lone_surrogates_and_nul() -> None:
    for character in ("\ud800", "\0", "\x1b", "\u202e"):
        (error,) = read(f"kernel k():\n    x = {character}\n", "k.kir").errors
        assert (error.line, error.column) == (2, 9)
        assert error.message.isprintable()


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.booleans())
def test_any_text(text: str, inside: bool) -> None:
    read("kernel k(n):\n    section cube:\n        " + text if inside else text, "k.kir")


PIECES = ["(", ")", "[", "]", ":", ",", "@", "<-", "->", "=", "==", "\n", "    ", " ", "\t", "if", "else:", "elif n:",
          "for", "in", "range(", "kernel ", "section cube:", "buffer ", "x", "0", "-", "part", "of",
          "#", '"', "\\", "\0",
          "$", "...", ".", "pass", "break", "\r", "ü", "\u2028", "\x0c", "\x85", ""]  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(kernels(), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5), st.sampled_from(PIECES)), max_size=4))
def test_damaged_kernels(kernel: ir.Kernel, damage: list[tuple[float, int, str]]) -> None:
    text = print_kernel(kernel)
    for place, dropped, piece in damage:
        at = int(place * len(text))
        text = text[:at] + piece + text[at + dropped :]
    result = read(text, "damaged.kir")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for error in result.errors:
        assert 1 <= error.line <= len(lines) + 1
        assert 1 <= error.column <= len([*lines, ""][error.line - 1]) + 1
    if not result.errors:
        assert read(print_kernels(result.kernels), "again.kir").kernels == result.kernels


# -------------------------------------------------------------------------------------------------------- depth, size


@pytest.mark.parametrize("margin", [" ", "    "])
def test_deep_blocks(margin: str) -> None:
    def text(depth: int) -> str:
        lines = [margin * (level + 1) + "if n:\n" for level in range(depth)]
        return "kernel k(n):\n" + "".join(lines) + margin * (depth + 1) + "pass\n"

    assert read(text(MAX_NESTING), "k.kir").errors == ()
    (error,) = read(text(5000), "k.kir").errors
    assert error.message == f"blocks are nested more than {MAX_NESTING} deep"
    assert error.line == MAX_NESTING + 2


@pytest.mark.parametrize("piece", ["-", "not ", "1 + ", "n if n else ", "f(", "T["])
def test_deep_expressions(piece: str) -> None:
    close = {"f(": ")", "T[": "]"}.get(piece, "")
    (error,) = read(f"kernel k(n):\n  T = (0, 1)\n  assert {piece * 20_000}n{close * 20_000}\n", "k.kir").errors
    assert error.message == "an expression is nested more than 200 deep"


def test_long_things_are_not_deep() -> None:
    def good(line: str) -> None:
        assert read(f"kernel k(n):\n    {line}\n", "k.kir").errors == ()

    good("assert " + " or ".join(["n"] * 5000))
    good("assert " + " < ".join(["n"] * 5000))
    good("T = (" + ", ".join(["1"] * 5000) + ")")
    good("assert " + "(" * 5000 + "n" + ")" * 5000)
    good("if n:\n        pass" + "\n    elif n:\n        pass" * 5000)


def lines(line: str, head: str = "kernel k(n):\n") -> Callable[[int], str]:
    """A text with n lines, each of them `line` with its number."""
    return lambda n: head + "".join(line.format(i, i + 1) + "\n" for i in range(n))


SECTION = "kernel k(n):\n  section cube:\n"
SIZES: dict[str, tuple[bool, Callable[[int], str]]] = {
    "kernels": (True, lambda n: many(40 * n)),
    "one kernel": (True, lambda n: KERNEL.format(0) + "    section cube:\n" + CUBE * (n // 10)),
    "blank lines": (True, lambda n: "\n" * 100 * n + "kernel k():\n    pass\n" + "  # x\n" * 50 * n),
    "constants": (True, lines("    C{0} = {0}")),
    "scalars": (True, lines("    c{0} = {0}", SECTION)),
    "branches": (True, lines("    if n:\n      c{0} = {0}\n    else:\n      c{0} = 1", SECTION)),
    "long expression": (True, lambda n: f"kernel k(n):\n  assert {'n or ' * 4 * n}n\n"),
    "parentheses": (True, lambda n: f"kernel k(n):\n  assert {'(' * 4 * n}n{')' * 4 * n}\n"),
    "unclosed nest": (False, lambda n: f"kernel k():\n    x = {'(' * 8 * n}"),
    "bad lines": (False, lines("    x = = 1")),
    "bad characters": (False, lines("    $")),
    "unclosed brackets": (False, lines("    x = f(")),
    "unclosed brackets that swallow": (False, lines("    f(")),
    "bad indentation": (False, lines("   sync_all\n  sync_all")),
    "headers": (False, lines("kernel k{0}():", "")),
    "branches without an if": (False, lines("    else:\n      pass")),
    "text outside": (False, lines("x = {0}", "kernel k():\n    pass\n")),
    "unknown names": (False, lines("    c{0} = d{0}", SECTION)),
    "misspelt words": (False, lines("    sync_al {0}", SECTION)),
    "squares": (False, lines("    C{1} = C{0} * C{0}", "kernel k():\n    C0 = 99999\n")),
}


@pytest.mark.parametrize("name", SIZES)
def test_time_grows_with_the_size(name: str) -> None:
    good, text = SIZES[name]
    once, more = seconds(text(1000), good), seconds(text(4000), good)
    assert more < 9 * once + 0.2, (once, more)  # 16 times if it were quadratic


def test_a_megabyte() -> None:
    text = many(1_000_000)
    result = read(text, "big.kir")
    assert result.errors == ()
    assert len(result.kernels) > 1000
