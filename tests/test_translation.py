"""Does the comparison of two texts find what a transformation broke, and nothing else?"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fencepost import ir
from fencepost.checking import check_source
from fencepost.discover import Source
from fencepost.findings import KernelReport, Row, Severity, Verdict
from fencepost.frontends.kir import read
from fencepost.frontends.pypto_ir import read as read_pypto
from fencepost.options import CheckOptions
from fencepost.passes.skew import Skew
from fencepost.translation import Translation, compare

CASES = Path(__file__).parents[1].parent / "shared" / "cases" / "pypto_ir" / "pairs"

PAIR = """kernel pair({parameters}):
    fifo down: cube -> vector, slots = 8
    fifo up: vector -> cube, slots = 8

    section cube:
{cube}

    section vector:
{vector}
"""

CUBE = """
for t in range(4):
    qk s <- q @ M at (t)
    tpush_to_aiv s
    p <- tpop_from_aiv
    store dst <- p, dst @ FIX at (t)
    tfree_to_aiv p
"""

VECTOR = """
for t in range(4):
    s <- tpop_from_aic
    exp e <- s @ V
    tfree_to_aic s
    tpush_to_aic e
"""


def kernel(cube: str, vector: str, parameters: str = "") -> ir.Kernel:
    indented = ["\n".join("        " + line for line in text.strip("\n").splitlines()) for text in (cube, vector)]
    result = read(PAIR.format(parameters=parameters, cube=indented[0], vector=indented[1]), "k.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


def compared(before: ir.Kernel, after: ir.Kernel) -> Translation:
    return compare(before, after, time.monotonic() + 20)


def detail(translation: Translation) -> str:
    (seen,) = translation.seen
    return dict(seen.fact.values)["detail"]


def test_renamed_and_rewritten() -> None:
    cube = CUBE.replace("qk s", "qk z").replace("tpush_to_aiv s", "copy r <- z @ S\n    tpush_to_aiv r")
    after = kernel(cube, VECTOR)
    assert compared(kernel(CUBE, VECTOR), after).proved


def test_the_skew_is_proved_for_all_parameters() -> None:
    cube = CUBE.replace("range(4)", "pipeline(0, 4, 1, stage = 2)").replace("at (t)", "at (t + n)")
    before = kernel(cube, VECTOR, "n")
    result = compared(before, Skew().run(before).kernel)
    assert result.proved
    assert "for all values" in result.evidence


def test_a_copy_with_operands_is_a_computation() -> None:
    first, second = (
        kernel(CUBE.replace("tpush_to_aiv s", f"copy r <- s @ S at ({at})\n    tpush_to_aiv r"), VECTOR)
        for at in ("t", "t + 1")
    )
    assert compared(first, first).proved
    assert not compared(first, second).proved
    assert "receives" in detail(compared(first, second))


def test_unrolled_by_hand() -> None:
    half = CUBE.strip("\n").splitlines()[1:]
    twice = [line.replace("t)", "2 * t)") for line in half] + [line.replace("t)", "2 * t + 1)") for line in half]
    after = kernel("for t in range(2):\n" + "\n".join(twice), VECTOR)
    assert compared(kernel(CUBE, VECTOR), after).proved


@pytest.mark.parametrize(
    ("cube", "message"),
    [
        (CUBE.replace("qk s <- q @ M at (t)", "qk s <- q @ M at (3 - t)"), "receives s of t = 3; s of t = 0 is meant"),
        (CUBE.replace("qk s <- q @ M at (t)", "qk s <- q @ M at (t + 1)"), "receives s of t = 1; s of t = 0 is meant"),
        (CUBE.replace("qk s", "qq s"), "receives a message that the text before does not send"),
        (CUBE.replace("FIX at (t)", "FIX at (3 - t)"), "receives e of t = 0; e of t = 3 is meant"),
        (CUBE.replace("<- p, dst", "<- q, dst"), "is used in a way that the text before knows no message for"),
        (CUBE + "store log <- q, log @ FIX at (0)", "stores a value that the text before does not store there"),
    ],
)
def test_changed(cube: str, message: str) -> None:
    result = compared(kernel(CUBE, VECTOR), kernel(cube, VECTOR))
    assert not result.proved
    assert message in detail(result)


def test_a_store_that_is_lost() -> None:
    before = kernel(CUBE + "store log <- q, log @ FIX at (0)", VECTOR)
    assert "is not done any more" in detail(compared(before, kernel(CUBE, VECTOR)))


def test_both_halves_in_another_order_agree() -> None:
    """Messages may change places if the receiver takes them in the same new order."""
    send = "qk s{0} <- q @ M at ({0})\ntpush_to_aiv s{0}\n"
    take = "r{0} <- tpop_from_aic\nstore dst <- r{0}, dst @ MTE3 at ({0})\ntfree_to_aic r{0}\n"
    cube, vector = (text.format(0) + text.format(1) for text in (send, take))

    def swap(text: str) -> str:
        return text.replace("0", "x").replace("1", "0").replace("x", "1")

    before = kernel(cube, vector)
    assert compared(before, kernel(swap(cube), swap(vector))).proved
    assert "s1" in detail(compared(before, kernel(swap(cube), vector)))
    assert not compared(before, kernel(cube, swap(vector))).proved


def test_differences_that_only_some_values_show() -> None:
    before = kernel(CUBE, VECTOR, "n")
    after = kernel(CUBE.replace("at (t)\n    tpush", "at (t + max(0, n - 3))\n    tpush"), VECTOR, "n")
    result = compared(before, after)
    assert not result.proved
    assert result.seen[0].shape.values == (4,)
    fine = compared(before, kernel(CUBE.replace("q @ M at (t)", "q @ M at (t + 0 * n // 7)"), VECTOR, "n"))
    assert not fine.seen


def test_the_skew_of_a_kernel_whose_memory_it_does_not_see() -> None:
    """The new text is what the compiler makes of the old one, and yet sends something else."""
    vector = """
load b <- q0 @ V
for t in pipeline(0, 8, 1, stage = 3):
    load b <- q @ V
    cast x <- b @ V
    tpush_to_aic x
    y <- tpop_from_aic
    add z <- y, b @ V
    store o <- z, out @ V
    tfree_to_aic y
"""
    cube = "for t in range(8):\n    u <- tpop_from_aiv\n    matmul v <- u @ M\n    tfree_to_aiv u\n    tpush_to_aiv v"
    for parameters in ("", "n"):
        before = kernel(cube, vector, parameters)
        before = replace(before, buffers=(ir.Buffer("b", "Vec"),))
        result = compared(before, Skew().run(before).kernel)
        assert not result.proved
        assert "receives a message that the text before does not send" in detail(result)


def whole(body: str, declared: str = "", cube: str = "") -> ir.Kernel:
    """A kernel with a vector section, and a cube section if anything is in it."""
    lines = ["kernel pair():", *("    " + line for line in declared.splitlines())]
    for core, text in (("cube", cube), ("vector", body)):
        lines += [f"    section {core}:", *("        " + line for line in text.splitlines())] if text else []
    result = read("\n".join(lines) + "\n", "k.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


STORE = "load x <- q0 @ V\nstore o <- x, out @ MTE3 at (0)\n"


@pytest.mark.parametrize("what", ["f(0)", "block"])
def test_what_only_the_new_text_depends_on(what: str) -> None:
    """Proved by the only shape: then it has to be the only one of both texts."""
    after = whole(STORE.replace("store", f"if {what} > 50:\n    load x <- q1 @ V\nstore"))
    result = compared(whole(STORE), after)
    assert not result.proved
    assert not result.seen
    assert compared(whole(STORE), whole(STORE.replace("store", "if 0 > 1:\n    load x <- q1 @ V\nstore"))).proved


FIRST, SECOND = "load x <- q0 @ V", "load y <- q1 @ V"


@pytest.mark.parametrize(
    ("declared", "before", "after", "seen"),
    [
        (  # the last store to a place
            "",
            f"{FIRST}\n{SECOND}\nstore o <- x, out @ V at (0)\nstore p <- y, out @ V at (0)",
            f"{FIRST}\n{SECOND}\nstore p <- y, out @ V at (0)\nstore o <- x, out @ V at (0)",
            True,
        ),
        (  # the same without coordinates: nobody knows where
            "",
            f"{FIRST}\n{SECOND}\nstore o <- x, out @ V\nstore p <- y, out @ V",
            f"{FIRST}\n{SECOND}\nstore p <- y, out @ V\nstore o <- x, out @ V",
            False,
        ),
        (  # a load and a store of one tensor
            "",
            "load y <- g @ V at (0)\nload x <- q @ V\nstore o <- x, g @ V at (0)\nstore p <- y, out @ V at (0)",
            "load x <- q @ V\nstore o <- x, g @ V at (0)\nload y <- g @ V at (0)\nstore p <- y, out @ V at (0)",
            False,
        ),
        (  # the same through a view
            "",
            "view v <- g @ S\nload y <- v @ V\nload x <- q @ V\nstore o <- x, g @ V\nstore p <- y, out @ V at (0)",
            "view v <- g @ S\nload x <- q @ V\nstore o <- x, g @ V\nload y <- v @ V\nstore p <- y, out @ V at (0)",
            False,
        ),
        (  # two tensors that are only written
            "",
            f"{FIRST}\nstore g <- x @ V at (0)",
            f"{FIRST}\nstore h <- x @ V at (0)",
            False,
        ),
        (  # two buffers in one place
            "buffer a in Vec at 0 size 64\nbuffer b in Vec at 32 size 64",
            "load b <- q1 @ V\nload a <- q0 @ V\nstore o <- a, out @ V",
            "load a <- q0 @ V\nload b <- q1 @ V\nstore o <- a, out @ V",
            False,
        ),
        (  # two slots in one place
            "buffer a[2] in Vec at 0, 32 size 64",
            "load a[1] <- q1 @ V\nload a[0] <- q0 @ V\nstore o <- a[0], out @ V",
            "load a[0] <- q0 @ V\nload a[1] <- q1 @ V\nstore o <- a[0], out @ V",
            False,
        ),
        (  # a part of a slot
            "buffer a in Vec",
            "load a <- q0 @ V\nload a part 0 of 2 <- q1 @ V\nstore o <- a, out @ V",
            "load a part 0 of 2 <- q1 @ V\nload a <- q0 @ V\nstore o <- a, out @ V",
            False,
        ),
        (  # memory that outlives the kernel
            "buffer g[2] in GM",
            f"{FIRST}\nstore g[0] <- x @ V",
            f"{FIRST}\nstore g[1] <- x @ V",
            False,
        ),
    ],
)
def test_memory(declared: str, before: str, after: str, seen: bool) -> None:
    """What memory holds does not follow from the values: a difference is found, or the question stays open."""
    one, other = whole(before, declared), whole(after, declared)
    result = compared(one, other)
    assert not result.proved
    assert bool(result.seen) == seen
    assert compared(one, whole(before, declared)).proved


def test_a_second_name_for_memory_is_no_difference() -> None:
    """What is read under one name was written under the other: followed by name, it looks like something else."""
    declared = "buffer a in Vec at 0 size 64\nbuffer b in Vec at 0 size 64"
    body = "load b <- q @ V\nload a <- q0 @ V\nstore o <- {}, out @ V at (0)"
    result = compared(whole(body.format("a"), declared), whole(body.format("b"), declared))
    assert not result.proved
    assert not result.seen
    assert "share memory" in result.evidence


def test_memory_that_both_cores_use() -> None:
    cube = "load x <- q @ M\nstore o <- x, g @ FIX at (0)"
    vector = "load y <- g @ V at (0)\nstore p <- y, out @ MTE3 at (0)"
    unrolled = "for t in range(1):\n    " + vector.replace("\n", "\n    ")
    result = compared(whole(vector, cube=cube), whole(unrolled, cube=cube))
    assert not result.proved
    assert "both cores use g" in result.evidence


def test_fewer_messages() -> None:
    """Messages whose values nobody uses can get lost without any value being another one."""
    cube = "for t in range({}):\n    load x <- q @ M\n    tpush_to_aiv x"
    vector = "for t in range({}):\n    y <- tpop_from_aic\n    tfree_to_aic y"
    kernels = [whole(vector.format(n), "fifo down: cube -> vector, slots = 8", cube.format(n)) for n in (3, 2)]
    assert not compared(*kernels).proved


def test_rings_with_named_ids() -> None:
    cube = "for t in range(2):\n    load x <- q @ M at ({})\n    tpush_to_aiv x id = K"
    vector = (
        "for t in range(2):\n    y <- tpop_from_aic id = K\n    store o <- y, out @ V at (t)\n    tfree_to_aic y id = K"
    )
    declared = "K = 1\nfifo down: cube -> vector, slots = 8, id = K"
    assert "is meant" in detail(
        compared(whole(vector, declared, cube.format("t")), whole(vector, declared, cube.format("1 - t")))
    )


def test_a_core_that_is_gone() -> None:
    cube = "load x <- q @ M\nstore o <- x, out @ FIX at (0)"
    before = whole("load y <- q @ V\nstore p <- y, other @ V at (0)", cube=cube)
    result = compared(before, whole("", cube=cube))
    assert "is not done any more" in detail(result)


def test_a_text_that_could_not_be_read() -> None:
    before = whole('unsupported "a call"\n' + STORE)
    for after in (before, whole(STORE)):
        result = compared(before, after)
        assert not result.proved
        assert "could not be read" in result.evidence


@cache
def pairs() -> list[Any]:
    if not CASES.exists():
        return []
    return [
        pytest.param(files, pair, id=f"{case['name']}-{backend}-{pair['group']}")
        for case in json.loads((CASES / "index.json").read_text())
        for backend, files in case["backends"].items()
        for pair in files["pairs"]
    ]


@pytest.mark.skipif(not CASES.exists(), reason=f"no cases at {CASES}")
@pytest.mark.parametrize(("files", "pair"), pairs())
def test_recorded_pairs(files: dict[str, str], pair: dict[str, Any]) -> None:
    kernels = []
    for which in ("before", "after"):
        text = read_pypto((CASES / files[which]).read_text(), files[which])
        assert not text.errors
        kernels.append(next(k for k in text.kernels if k.name == pair["group"]))
    result = compared(*kernels)
    before, after = pair["before"], pair["after"]
    same = all(before["fifos"][f]["pushed"] == g["pushed"] and before["fifos"][f]["popped"] == g["popped"]
               for f, g in after["fifos"].items())  # fmt: skip
    assert result.proved == (after["order"] == "same" or same)
    if result.proved:
        return
    (bad,) = [g["first_bad"] for g in after["fifos"].values() if "first_bad" in g]
    pushed, meant = (_named(bad[key]) for key in ("pushed", "popped_expects"))
    assert f"pop number {bad['pop_number']} " in detail(result)
    assert f"receives {pushed}; {meant} is meant" in detail(result)


@pytest.mark.skipif(not CASES.exists(), reason=f"no cases at {CASES}")
@pytest.mark.parametrize(("files", "pair"), pairs())
def test_recorded_verdicts(files: dict[str, str], pair: dict[str, Any]) -> None:
    """The whole check of a recorded pair of texts: good is proved, bad is refuted, by the causes on record."""
    before, after = ((CASES / files[which]).read_text() for which in ("before", "after"))
    old = check(before, files["before"], pair["group"])
    new = check(after, files["after"], pair["group"], tuple(read_pypto(before, files["before"]).kernels))
    fifo = next(c.verdict for c in old.checks if c.row is Row.FIFO)
    assert fifo is (Verdict.PROVED if pair["before"]["verdict"] == "good" else Verdict.REFUTED)
    causes = {why.split(":")[0] for why in pair["after"]["why"]}
    if pair["before"]["order"] != "same":  # wrong from the beginning: told about the text before, kept by the pass
        return
    codes = {f.code: f for f in new.findings}
    assert ("701" in codes) == ("order" in causes)
    assert ("702" in codes) == ("deadlock" in causes)
    assert ("707" in codes) == ("tfree" in causes)
    harmless = causes <= {"tfree"} and new.target == "a2"  # a free does nothing there: a warning (docs/decisions.md)
    assert (new.verdict is Verdict.PROVED) == (pair["after"]["verdict"] == "good" or harmless)
    if "707" in codes:
        assert (codes["707"].severity is Severity.WARNING) == harmless
    if "702" in codes:
        assert "the largest safe depth is" in codes["702"].message


def check(text: str, file: str, group: str, before: tuple[ir.Kernel, ...] = ()) -> KernelReport:
    outcome = check_source(Source(file, text), CheckOptions(before=before), only=(group,))
    assert not outcome.report.errors
    (report,) = outcome.report.kernels
    return report


def _named(message: Any) -> str:
    name, iteration = message
    return f"{name} of {', '.join(f'{k} = {v}' for k, v in iteration.items())}"


# ------------------------------------------------------------------------------------------------ assumes


def assuming(*facts: str, constants: str = "", parameters: str = "n, m") -> ir.Kernel:
    lines = [*constants.splitlines(), *(f"assume {fact}" for fact in facts)]
    header, rest = PAIR.split(":\n", 1)
    declared = "".join(f"    {line}\n" for line in lines)
    bodies = ("\n".join("        " + line for line in t.strip("\n").splitlines()) for t in (ANY_CUBE, ANY_VECTOR))
    cube, vector = bodies
    text = f"{header}:\n{declared}{rest}".format(parameters=parameters, cube=cube, vector=vector)
    result = read(text, "k.kir")
    assert not result.errors, result.errors
    return result.kernels[0]


ANY_CUBE, ANY_VECTOR = CUBE.replace("range(4)", "range(n)"), VECTOR.replace("range(4)", "range(n)")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (assuming("n >= 0"), assuming("n >= 0")),
        (assuming("n >= 8"), assuming("n >= 0")),
        (assuming("n >= 8"), assuming()),
        (assuming("n >= 2", "n % 4 == 0"), assuming("n >= 4")),
        (assuming("0 <= n < 9"), assuming("n < 9", "n >= 0")),
        (assuming("n > m", "m >= 0"), assuming("n >= 1")),
        (assuming("n >= L", constants="L = 8"), assuming("n >= 8")),
        (assuming("n >= 8"), assuming("n >= L", constants="L = 8")),
        (assuming("n >= 0", "f(n) >= 3"), assuming("f(n) >= 1")),
    ],
)
def test_assumes_that_cover_what_was_covered(before: ir.Kernel, after: ir.Kernel) -> None:
    found = compare(before, after, time.monotonic() + 20)
    assert found.proved, found.evidence


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (assuming("n >= 0"), assuming("n >= 8"), "covers n = 0, m = 0; this text assumes n >= 8"),
        (assuming(), assuming("n >= 0"), "this text assumes n >= 0"),
        (assuming("n >= 0"), assuming("n >= 0", "n % 2 == 0"), "covers n = 1, m = 0; this text assumes n % 2 == 0"),
        (assuming("n >= 0"), assuming("n <= 100000"), "this text assumes n <= 100000"),
        (assuming("n >= 0", "m >= 0"), assuming("n > m"), "covers n = 0, m = 0; this text assumes n > m"),
        (assuming("n >= 0"), assuming("n >= 0", "n < 0"), "this text assumes n < 0"),
        (assuming("n >= 0"), assuming("n >= 0", "f(n) >= 3"), "this text assumes f(n) >= 3"),
    ],
)
def test_assumes_that_cover_less(before: ir.Kernel, after: ir.Kernel, message: str) -> None:
    """The other rows say nothing any more about values that the text before covers."""
    found = compare(before, after, time.monotonic() + 20)
    assert not found.proved
    (seen,) = found.seen
    assert seen.fact.code == "701"
    assert message in dict(seen.fact.values)["detail"]
    assert seen.fact.span.line == after.assumes[-1].span.line


def test_assumes_about_a_constant_that_changed() -> None:
    before, after = (assuming("n >= L", constants=f"L = {k}") for k in (4, 8))
    found = compare(before, after, time.monotonic() + 20)
    assert not found.proved and not found.seen
    assert found.evidence == "n >= L is about a constant that had another value"


def test_assumes_that_are_not_decided() -> None:
    found = compare(assuming("n * m == 1000003 * 1000033"), assuming("n * n * n != m * m + 7"), time.monotonic())
    assert not found.proved and not found.seen
    assert "whether the text before only allows values with" in found.evidence
