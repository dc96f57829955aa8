"""When do two kernels count as the same, and when do they not?"""

from __future__ import annotations

import pytest

from fencepost.frontends.kir import read
from fencepost.passes.canonical import canonical

LOOP = """kernel k(n):
    fifo up: vector -> cube, slots = 2

    section vector:
        load acc <- x @ MTE2 at (0)
        for i in range(1, n, 2):
            row = i * 8 + 4
            load t <- x @ MTE2 at (row)
            add acc <- acc, t @ V
            if i < 5:
                exp u <- t @ V
            else:
                copy u <- t @ S
            tpush_to_aic u
        store out <- acc @ MTE3 at (n)
"""


def form(text: str) -> object:
    result = read(text, "k.kir")
    assert not result.errors, result.errors
    return canonical(result.kernels[0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i * 8 + 4", "4 + 8 * i"),
        ("i * 8 + 4", "(i + 1) * 8 - 4"),
        ("exp u <- t @ V", "exp v <- t @ V\n                copy u <- v @ S"),
        ("load t <- x @ MTE2 at (row)", "line = row\n            load t <- x @ MTE2 at (line)"),
        ("tpush_to_aic u", "tpush_to_aic u task = i"),
    ],
)
def test_same(old: str, new: str) -> None:
    assert form(LOOP.replace(old, new)) == form(LOOP)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i * 8 + 4", "i * 8 + 5"),
        ("range(1, n, 2)", "range(1, n, 3)"),
        ("add acc <- acc, t @ V", "add acc <- t, acc @ V"),
        ("add acc <- acc, t @ V", "add acc <- t, t @ V"),
        ("add acc <- acc, t @ V", "add other <- acc, t @ V"),
        ("copy u <- t @ S", "exp u <- t @ V"),
        ("copy u <- t @ S", "copy u <- t @ S at (i)"),
        ("tpush_to_aic u", "tpush_to_aic t"),
        ("store out <- acc", "store out <- t"),
        ("i < 5", "i <= 5"),
        ("at (n)", "at (0)"),
        ("exp u <- t @ V", "exp u <- t @ MTE2"),
    ],
)
def test_different(old: str, new: str) -> None:
    assert old in LOOP
    assert form(LOOP.replace(old, new)) != form(LOOP)


def kernel(declared: str, body: str) -> str:
    """A kernel with some declarations and the statements of its vector section."""
    lines = [*("    " + line for line in declared.splitlines()), "    section vector:"]
    return "\n".join(["kernel k(n):", *lines, *("        " + line for line in body.splitlines())]) + "\n"


MEMORY = "buffer b[2] in Vec at 0 size 64 mutex (0, 1)"
NEXT = "load b[0] <- q @ V\nfor t in range(n):\n    s = b.next()\ns = b.next()\nstore out <- b[s], out @ V"
UP = "fifo up: vector -> cube, slots = 2"


@pytest.mark.parametrize(
    ("declared", "other", "body"),
    [
        ("N = 2", "N = 3", "for t in range(N):\n    load x <- q @ V"),
        ("M = 1\nN = M + 1", "M = 2\nN = M + 1", "for t in range(N):\n    load x <- q @ V"),
        ("N = n", "N = n + 1", "for t in range(N):\n    load x <- q @ V"),
        ("N = 1", "N = 2", "s = N\nload x <- q @ V at (s)"),
        ("IDS = (0, 1)", "IDS = (1, 0)", "barrier V\nload x <- q @ V at (IDS[0])"),
        ("IDS = (0, 1)", "IDS = (0, 2)", "for t in range(2):\n    load x <- q @ V at (IDS[t])"),
        (MEMORY, MEMORY.replace("[2]", "[3]").replace("1)", "1, 2)"), NEXT),
        (MEMORY, MEMORY.replace("Vec", "Mat"), NEXT),
        (MEMORY, MEMORY.replace("at 0", "at 32"), NEXT),
        (MEMORY, MEMORY.replace("64", "32"), NEXT),
        (MEMORY, MEMORY.replace("(0, 1)", "(0, 0)"), NEXT),
        ("buffer b in GM", "buffer b in GM shared", "load b <- q @ V"),
        ("ring r[2](f)", "ring r[3](f)", "r[n % 2].f = n"),
        (UP, UP.replace("2", "4"), "load x <- q @ V\ntpush_to_aic x"),
        (UP, UP + ", lanes = 1", "load x <- q @ V\ntpush_to_aic x"),
        ("target a5", "target a3", "load x <- q @ V"),
        ("option credits = batched", "option credits = per_slot", "load x <- q @ V"),
    ],
)
def test_different_declarations(declared: str, other: str, body: str) -> None:
    assert form(kernel(declared, body)) != form(kernel(other, body))


@pytest.mark.parametrize(
    ("declared", "other", "body"),
    [
        ("N = 2", "M = 1\nN = M + M", "for t in range(N):\n    load x <- q @ V at (N + t)"),
        ("IDS = (0, n)", "JDS = (0, n, 5)", "load x <- q @ V at (IDS[1])"),
        ("N = 2", "M = 2", "load x <- q @ V at (N)"),
        (UP + "\nfifo down: cube -> vector, slots = 2", "fifo d: cube -> vector, slots = 1 + 1\n" + UP, "barrier V"),
    ],
)
def test_same_declarations(declared: str, other: str, body: str) -> None:
    renamed = body.replace("IDS", "JDS") if "JDS" in other else body.replace("N)", "M)") if "M = 2" in other else body
    assert form(kernel(declared, body)) == form(kernel(other, renamed))


BEHIND = """load x <- q0 @ V
load y <- q1 @ V
for t in range(n):
    load {0} <- q2 @ V
store out <- {0}, out @ V"""


def test_behind_a_loop_that_may_not_run() -> None:
    """A name that the body writes still holds what it held before the loop, if there are no rounds."""
    texts = [BEHIND.format(name) for name in ("x", "y")]
    assert form(kernel("", texts[0])) != form(kernel("", texts[1]))
    assert form(kernel("", texts[0])) == form(kernel("", texts[0].replace("x", "w")))


@pytest.mark.parametrize("jump", ["break", "continue"])
def test_what_a_jump_carries(jump: str) -> None:
    """`x` is what the loop leaves at the jump or at the end: a copy before the jump is not one behind it."""
    early = f"copy w <- z @ S\n    if t == 5:\n        {jump}"
    late = f"if t == 5:\n        {jump}\n    copy w <- z @ S"
    body = "load w <- q0 @ V\nload z <- q1 @ V\nfor t in range(n):\n    {}\n    load z <- q3 @ V\n"
    ends = [body + "store out <- w, out @ V", body + "store out <- z, out @ V"]
    for end in ends:
        same = form(kernel("", end.format(early))) == form(kernel("", end.format(late)))
        assert same == (end is ends[1])


def test_a_jump_of_an_inner_loop_is_none_of_the_outer_one() -> None:
    body = "for t in range(n):\n    load z <- q @ V\n    for u in range(n):\n        {}\n        break\n"
    texts = [body.format(f"copy w <- {name} @ S") + "store out <- w, out @ V" for name in ("z", "q")]
    assert form(kernel("", texts[0])) != form(kernel("", texts[1]))


def test_a_name_that_one_branch_defines() -> None:
    body = "if n > 5:\n    load {0} <- q0 @ V\nstore out <- {0}, out @ V"
    assert form(kernel("", body.format("x"))) != form(kernel("", body.format("y")))


def test_tensors_that_are_only_written_keep_their_names() -> None:
    body = "load x <- q @ V\nstore {} <- x @ MTE3"
    assert form(kernel("", body.format("g"))) != form(kernel("", body.format("h")))
    body = "load x <- q @ V\nstore {} <- x, g @ MTE3"
    assert form(kernel("", body.format("g_1"))) == form(kernel("", body.format("g_2")))


def test_many_branches_stay_small() -> None:
    """What a name holds behind many branches and loops is not written out."""
    step = "if n > {0}:\n    copy x <- y @ S\nelse:\n    copy y <- x @ S\nfor t in range(n):\n    copy x <- y @ S\n"
    text = kernel("", "load x <- q @ V\n" + "".join(step.format(i) for i in range(300)) + "store out <- x, out @ V")
    assert form(text) == form(text)
