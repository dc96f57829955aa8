"""Is a certificate accepted as it is, and rejected with any field changed, or about any other kernel?"""

from __future__ import annotations

import ast
import copy
import io
import json
import random
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fencepost.prove
from fencepost import ir
from fencepost.discover import Source
from fencepost.model.program import ModelError
from fencepost.passes.serial import Serial
from fencepost.printer import print_kernel
from fencepost.prove import cvc5, solver
from fencepost.prove.certificate import NotCertified, certify, seal
from fencepost.prove.plainterms import Rejected, read, text
from fencepost.prove.recheck import FORMAT, RecheckResult, derive, fingerprint, recheck, rows
from fencepost.reading import parse
from fencepost.reading import read as read_source

CASES = Path(__file__).resolve().parent.parent / "cases"
CHECKER = ("recheck", "plainterms", "plainvalues", "simplest", "standing", "statetable")
ROWS = """
kernel rows_of_tiles(rows, n):
    assume rows >= 0
    assume n >= 0
    READY = (0, 1)
    RELEASE = (2, 3)
    buffer qk[2] in Vec

    section cube:
        c = 0
        for i in range(rows):
            for t in range(n):
                wait_cross_core RELEASE[c % 2] @ FIX
                move qk[c % 2] <- x @ FIX task = c
                set_cross_core READY[c % 2] @ FIX
                c = c + 1
        wait_cross_core RELEASE[0] @ FIX
        wait_cross_core RELEASE[1] @ FIX

    section vector:
        set_cross_core RELEASE[0] @ V
        set_cross_core RELEASE[1] @ V
        c = 0
        for i in range(rows):
            for t in range(n):
                wait_cross_core READY[c % 2] @ V
                softmax p <- qk[c % 2] @ V task = c
                set_cross_core RELEASE[c % 2] @ V
                c = c + 1
"""

SMALL = """
kernel hand_over(n):
    assume n >= 0
    buffer tile in Vec

    section cube:
        c = 0
        for t in range(n):
            wait_cross_core c @ FIX
            move tile <- acc @ FIX
            set_cross_core 1 @ FIX
        wait_cross_core 0 @ FIX

    section vector:
        set_cross_core 0 @ V
        for t in range(n):
            wait_cross_core 1 @ V
            softmax out <- tile @ V
            set_cross_core 0 @ V
"""


def z3(query: str) -> str:
    return solver.check(query).answer


def impatient() -> Callable[[str], str]:
    """A solver that does not go on after the first answer that proves nothing."""
    answers: list[str] = []

    def check(query: str) -> str:
        if answers[1:] and answers[-1] != "unsat":
            return "unknown"
        answers.append(z3(query))
        return answers[-1]

    return check


def judged(certificate: Any, check: Callable[[str], str] = z3) -> RecheckResult:
    return recheck(json.loads(json.dumps(certificate)), check, parse)


@cache
def kernels() -> dict[str, ir.Kernel]:
    found = read_source(Source("right.kir", (CASES / "right.kir").read_text("utf-8"))).result.kernels
    return {k.name: Serial().run(k) for k in found}


@cache
def certificate(kernel: str = SMALL) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(certify(parse(kernel))))
    return found


def believer(query: str) -> str:
    """A solver that believes everything: what it lets through was rejected by comparison alone."""
    return "sat" if query == certificate()["claims"][0]["smtlib"] else "unsat"


# ------------------------------------------------------------------------------------------------ right ones hold


@pytest.mark.parametrize("name", list(kernels()))
def test_right_kernels_are_certified(name: str) -> None:
    result = judged(certify(kernels()[name]))
    assert result.problems == ()
    assert result.claims > 0
    assert result.kernel == print_kernel(kernels()[name])


def test_shared_statements_are_told_apart() -> None:
    """Two places that hold the same node, as passes make them, are two statements."""
    kernel = parse(SMALL)
    section = kernel.body[1]
    assert isinstance(section, ir.Section)
    twice = replace(section, body=(*section.body[:1], section.body[1], section.body[1]))
    shared = replace(kernel, body=(doubled(kernel.body[0]), twice))
    assert judged(certify(shared)).problems == ()


def doubled(section: Any) -> Any:
    """The loop of a section twice."""
    start, loop, end = section.body
    return replace(section, body=(start, loop, loop, end))


SHARED = """
kernel own_slots():
    assume block <= 7
    buffer out[8] in GM shared

    section cube:
        store out[block] <- acc @ FIX
"""


def test_what_the_checker_does_not_follow_is_not_certified() -> None:
    with pytest.raises(NotCertified, match="memory that blocks share"):
        certify(parse(SHARED))


@pytest.mark.skipif(not cvc5.installed(), reason="cvc5 is not installed")
@pytest.mark.parametrize("kernel", [SMALL, ROWS], ids=["small", "rows"])
def test_a_second_solver_agrees(kernel: str) -> None:
    assert judged(certificate(kernel), cvc5.check).problems == ()


@pytest.mark.skipif(not cvc5.installed(), reason="cvc5 is not installed")
def test_the_second_solver_answers() -> None:
    assert cvc5.check("(declare-fun x () Int)\n(assert (= (mod x 2) 1))\n") == "sat"
    assert cvc5.check("(declare-fun x () Int)\n(assert (= (mod x 2) 2))\n") == "unsat"
    for bad in ("(assert (= x 2))\n", "(assert", "(declare-fun x () Int)\n(assert (+ x 1))\n"):
        with pytest.raises(ValueError):
            cvc5.check(bad)


# ------------------------------------------------------------------------------------------------ corrupted ones do not


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything inside a certificate."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changes(value: Any) -> Iterator[Any]:
    """Other values, of the same type and not."""
    match value:
        case bool() | None:
            yield from (not value, 0)
        case int():
            yield from (value + 1, bool(value), float(value), str(value))
        case str():
            yield from (value + "0", value[1:], None)
        case list():
            yield from (value[1:], value[::-1], [*value, *value[-1:]], [*value, 0])
        case dict():
            yield from ({}, {**value, "more": 0})


HARMLESS = {("tool",), ("solver",)}
"""Who made the certificate proves nothing: their form is checked, and the digest protects their content."""


def corruptions() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The certificate with one thing changed, removed, or exchanged with its neighbour, the digest fitting again."""
    whole = certificate()
    for path in places(whole):
        if path == ("digest",):
            continue
        for new in (*changes(at(whole, path)), REMOVED):
            found = copy.deepcopy(whole)
            parent = at(found, path[:-1])
            if new is REMOVED:
                del parent[path[-1]]
            elif json.dumps(new) == json.dumps(parent[path[-1]]):
                continue
            else:
                parent[path[-1]] = new
            yield path, found
        if path[-1] and isinstance(path[-1], int) and at(whole, path) != at(whole, (*path[:-1], path[-1] - 1)):
            found = copy.deepcopy(whole)
            parent = at(found, path[:-1])
            parent[path[-1]], parent[path[-1] - 1] = parent[path[-1] - 1], parent[path[-1]]
            yield path, found


REMOVED = object()


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def darker(found: dict[str, Any], path: tuple[Any, ...]) -> bool:
    """Whether a change leaves a proof: a state that stands for more, about which nothing new is claimed."""
    table = path[:1] == ("tables",) and "states" in path and path[4:5]
    if not table or path[4] not in ("pipes", "queues", "marks", "written", "facts", "scalars"):
        return False
    return bool(derive(parse(SMALL), found["tables"]) == certificate()["claims"])


def test_every_corruption_is_rejected_though_the_digest_fits() -> None:
    """Save those that weaken what a state of the table says, and change no claim."""
    tried, accepted = 0, []
    for path, found in corruptions():
        tried += 1
        if path not in HARMLESS and not recheck(seal(found), believer, parse).problems and not darker(found, path):
            accepted.append((path, at(found, path[:-1])))
    assert [a[0] for a in accepted] == []
    assert tried > 1_000, tried


def test_the_digest_protects_what_proves_nothing() -> None:
    for (key,) in HARMLESS:
        for other in (certificate()[key] + "0", "solver 1.0"):
            assert recheck({**certificate(), key: other}, believer, parse).problems


@pytest.mark.parametrize("made", ["", "somebody 1.0", "fencepost", "fencepost 1", "fencepost 0.1.0 and more"])
def test_the_tool_names_a_version(made: str) -> None:
    assert judged(seal({**certificate(), "tool": made}), believer).problems == ("tool names no version",)


@pytest.mark.parametrize("junk", [None, [], {}, {"format": 1}, "certificate", {"format": FORMAT}])
def test_junk_is_rejected_without_an_exception(junk: object) -> None:
    assert recheck(junk, z3, parse).problems


BAD_TERMS: list[Any] = [
    "0) (assert false", ["div", "x", "y"], ["foo"], [], ["and"], ["f", "|x|"], "", ["mod", "x", 0], ["mod", "x", True],
    [["f"], 1], 1.0, None, {"x": 1}, ["-", 1, 2], ["let", 1, 2, "x y"], ["not", 1, 2],
    ["sin", 1], ["atan", 1], ["to_real", 1], "sin", "true", "n", ["x0", 1], ["any.t", 1], ["$n", 1], "value",
]  # fmt: skip
"""Some are names to which a solver gives a meaning of its own."""


@pytest.mark.parametrize("bad", BAD_TERMS, ids=repr)
def test_terms_cannot_smuggle_commands(bad: Any) -> None:
    with pytest.raises(ValueError, match="not a term"):
        read(bad)


def test_terms_are_written_as_smtlib() -> None:
    term = read(["+", ["div", ["+", "x1", 1], 2], ["ite", ["<=", ["f.m", "$n"], 0], 1, -3]])
    assert text(term) == "(+ (div (+ x1 1) 2) (ite (<= (f.m $n) 0) 1 (- 3)))"


# ------------------------------------------------------------------------------------------------ forged ones


def forged(found: dict[str, Any]) -> dict[str, Any]:
    """A certificate with everything made to fit what was changed, as somebody would who wants it accepted."""
    kernel = parse("\n".join(found["kernel"]))
    found |= {"program": fingerprint(found["kernel"]), "rows": rows(kernel)}
    return seal({**found, "claims": derive(kernel, found["tables"])})


def test_assumes_that_cannot_hold_prove_nothing() -> None:
    found = copy.deepcopy(certificate())
    found["kernel"].insert(2, "    assume n <= -1")
    problems = judged(forged(found)).problems
    assert problems == ("0 the assumes can hold: unsat, not sat",)


FEW = """
kernel few(n):
    assume n >= 0
    assume n <= 15
    buffer tile[16] in Vec

    section cube:
        for t in range(n):
            move tile[t] <- acc @ FIX
            set_cross_core 1 @ FIX

    section vector:
        for t in range(n):
            wait_cross_core 1 @ V
            softmax out <- tile[t] @ V
"""
"""Right because of its assume: sixteen signals do not fit, and there is no seventeenth slot."""


@pytest.mark.parametrize("bound", ["    assume n <= 15", "    assume n >= 0"])
def test_an_assume_is_not_left_out(bound: str) -> None:
    """Without the assume that a proof needs its claims fail; without one that it does not need it is another kernel."""
    found = copy.deepcopy(certificate(FEW))
    found["kernel"].remove(bound)
    assert judged(seal(found)).problems
    if "15" in bound:
        assert judged(forged(found)).problems


DEAD = {
    "a mutex": ("    target a3\n", "mutex_lock 0 @ M"),
    "a family": ("", "matmul a <- p, q @ M phase = STPhase.Final"),
    "an offset": ("", "move s <- a @ FIX offset phase = STPhase.Final"),
}


@pytest.mark.parametrize("name", DEAD)
def test_what_is_wrong_in_the_text_is_wrong_where_nobody_comes(name: str) -> None:
    target, operation = DEAD[name]
    text = f"""
kernel dead(n):
{target}    assume n >= 0
    buffer s in Vec
    buffer a in Acc

    section cube:
        move s <- x @ FIX
        set_cross_core 0 @ FIX
        if n < 0:
            {{}}

    section vector:
        wait_cross_core 0 @ V
        exp y <- s @ V
"""
    assert judged(certify(parse(text.format("pass")))).problems == ()
    with pytest.raises(NotCertified, match="not legal"):
        certify(parse(text.format(operation)))


def test_assumes_about_what_may_be_outside_of_a_tuple() -> None:
    """Where the executor reads 0 the checker would have to, too."""
    text = SMALL.replace("    assume n >= 0\n", "    T = (5, 0, 5)\n    assume n >= 1\n    assume T[n] == 0\n")
    with pytest.raises(NotCertified, match="outside of a tuple"):
        certify(parse(text))


def deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = ["+", found, 1]
    return found


JUNK: list[Any] = [
    10**4000, -(10**30), float("nan"), float("inf"), True, 0, [], {}, "", "\ud800", "\u2028", "x" * 10_000, None,
    [[[]]], {"one": 1}, ["split", 1, 2], ["to", 0, {}], ["+", "true", 1], ["let", 1, 2], "aic.99", deep(100), deep(900),
]  # fmt: skip


@pytest.mark.parametrize("fits", [True, False])
def test_junk_anywhere_never_raises(fits: bool) -> None:
    """Whoever puts junk into a certificate, and makes the rest fit where the checker says what follows."""
    rng = random.Random(4)
    hints = [p for p in places(certificate()) if p[0] in ("kernel", "tables") and p[1:]]
    for path in rng.sample(hints, min(len(hints), 80)):
        for junk in rng.sample(JUNK, 6):
            found = copy.deepcopy(certificate())
            at(found, path[:-1])[path[-1]] = junk
            if fits:
                try:
                    found = forged(found)
                except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, Rejected,
                        ModelError):  # fmt: skip
                    continue
            recheck(found, lambda query: solver.check(query, rlimit=100_000).answer, parse)


MUTANTS = {
    SMALL: [
        ("        wait_cross_core 0 @ FIX\n\n", "\n"),
        ("        set_cross_core 0 @ V\n        for", "        for"),
        ("            set_cross_core 0 @ V\n", "            set_cross_core 0 @ V\n            set_cross_core 0 @ V\n"),
        ("            softmax out <- tile @ V\n            set_cross_core 0 @ V\n",
         "            set_cross_core 0 @ V\n            softmax out <- tile @ V\n"),
        ("            move tile <- acc @ FIX\n            set_cross_core 1 @ FIX\n",
         "            set_cross_core 1 @ FIX\n            move tile <- acc @ FIX\n"),
        ("            wait_cross_core c @ FIX\n            move tile <- acc @ FIX\n",
         "            move tile <- acc @ FIX\n            wait_cross_core c @ FIX\n"),
        ("            set_cross_core 1 @ FIX\n", "            set_cross_core 2 @ FIX\n"),
        ("            set_cross_core 1 @ FIX\n", "            set_cross_core 1 @ M\n"),
        ("            wait_cross_core 1 @ V\n", "            wait_cross_core 1 @ MTE2\n"),
        ("            wait_cross_core c @ FIX\n", "            wait_cross_core c + 1 @ FIX\n"),
        ("            wait_cross_core c @ FIX\n", "            wait_cross_core c @ M\n"),
        ("            move tile <- acc @ FIX\n", "            move tile <- acc @ M\n"),
        ("        c = 0\n", "        c = 17\n"),
        ("set_cross_core 1 @ FIX", "set_cross_core 1 @ FIX mode = INTER_BLOCK"),
        ("    section cube:\n        c = 0\n        for t in range(n)",
         "    section cube:\n        c = 0\n        for t in range(n + 1)"),
    ],
    ROWS: [
        ("        wait_cross_core RELEASE[1] @ FIX\n", ""),
        ("        set_cross_core RELEASE[1] @ V\n        c", "        c"),
        ("READY = (0, 1)", "READY = (0, 16)"),
        ("    section cube:\n        c = 0\n", "    section cube:\n        c = 1\n"),
        ("RELEASE = (2, 3)", "RELEASE = (2, 16)"),
        ("buffer qk[2]", "buffer qk[1]"),
        ("move qk[c % 2]", "move qk[(c + 1) % 2]"),
        ("softmax p <- qk[c % 2]", "softmax p <- qk[t % 2]"),
        ("wait_cross_core READY[c % 2] @ V", "wait_cross_core READY[t % 2] @ V"),
        ("set_cross_core RELEASE[c % 2] @ V", "set_cross_core RELEASE[0] @ V"),
        ("wait_cross_core RELEASE[c % 2] @ FIX", "wait_cross_core RELEASE[(c + 1) % 2] @ FIX"),
        ("FIX task = c", "FIX task = c + 1"),
        ("    section vector:\n", "    section vector:\n        set_cross_core 7 @ V\n"),
        ("            for t in range(n):\n                wait_cross_core READY",
         "            for t in range(n - 1):\n                wait_cross_core READY"),
        ("                set_cross_core READY[c % 2] @ FIX\n                c = c + 1",
         "                set_cross_core READY[c % 2] @ FIX\n                c = c + 2"),
    ],
}  # fmt: skip
"""Texts in a right kernel and what breaks it."""


@pytest.mark.parametrize(
    ("kernel", "old", "new"), [(k, *change) for k, made in MUTANTS.items() for change in made], ids=range(30)
)
def test_a_broken_kernel_has_no_certificate(kernel: str, old: str, new: str) -> None:
    """Neither with the table of the right kernel, nor one of its own."""
    assert kernel.count(old) == 1
    broken = parse(kernel.replace(old, new))
    with pytest.raises(NotCertified):
        certify(broken, 20)
    try:
        found = forged({**certificate(kernel), "kernel": print_kernel(broken).splitlines()})
    except (Rejected, LookupError, ValueError):
        return
    assert judged(found, impatient()).problems


# ------------------------------------------------------------------------------------------------ small and independent


def sources(*names: str) -> dict[str, str]:
    folder = Path(fencepost.prove.__path__[0])
    return {name: (folder / f"{name}.py").read_text("utf-8") for name in names}


def test_the_checker_is_small() -> None:
    """Lines of code of all its files: no blank lines, comments or docstrings."""
    idle = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = 0
    for source in sources(*CHECKER).values():
        words = {
            line
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        tokens = [t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type not in idle]
        lines += len({line for t in tokens for line in range(t.start[0], t.end[0] + 1)} - words)
    assert lines <= 900


def test_the_checker_shares_nothing_with_the_prover() -> None:
    allowed = {
        "fencepost", "fencepost.applicability", "fencepost.findings", "fencepost.printer", "fencepost.validate",
        *(f"fencepost.model.{name}" for name in ("effects", "memory", "program", "rings")),
        *(f"fencepost.prove.{name}" for name in CHECKER), "fencepost.prove",
    }  # fmt: skip
    for name, source in sources(*CHECKER).items():
        for node in ast.walk(ast.parse(source)):
            assert not isinstance(node, ast.Import) or not any("fencepost" in a.name for a in node.names)
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("fencepost"):
                assert node.module in allowed, f"{name} imports {node.module}"
                if node.module in ("fencepost", "fencepost.prove"):
                    assert {a.name for a in node.names} <= {"ir", *CHECKER}
