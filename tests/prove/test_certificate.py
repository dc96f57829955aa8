"""Is a certificate accepted as it is, and rejected with any field changed, or about any other kernel?"""

from __future__ import annotations

import ast
import copy
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import fencepost.prove
from fencepost import ir
from fencepost.discover import Source
from fencepost.model.program import compile_kernel
from fencepost.passes.serial import Serial
from fencepost.printer import print_kernel
from fencepost.prove import closed_form, cvc5, solver
from fencepost.prove.certificate import NotCertified, assemble, certify, seal
from fencepost.prove.checker import Rejected
from fencepost.prove.plainterms import make, read, text
from fencepost.prove.recheck import FORMAT, RecheckResult, derive, fingerprint, recheck, rows
from fencepost.reading import parse
from fencepost.reading import read as read_source

CASES = Path(__file__).resolve().parent.parent / "cases"
CHECKER = ("recheck", "claims", "checker", "plainterms")
TABLES = ("statetable", "standing", "simplest")
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
    with pytest.raises(NotCertified, match="does not follow the proof: memory that blocks share") as refusal:
        certify(parse(SHARED))
    assert refusal.value.proved


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
        if path == ("digest",) or (path[0] == "claims" and len(path) > 1 and path[1] not in (0, 9)):
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


def test_every_corruption_is_rejected_though_the_digest_fits() -> None:
    tried, accepted = 0, []
    for path, found in corruptions():
        tried += 1
        if path not in HARMLESS and not recheck(seal(found), believer, parse).problems:
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


def test_two_formulas_exchanged_are_rejected() -> None:
    for name, formulas in certificate(ROWS)["loops"].items():
        for one, other in combinations(formulas, 2):
            if formulas[one] != formulas[other]:
                found = copy.deepcopy(certificate(ROWS))
                found["loops"][name] |= {one: formulas[other], other: formulas[one]}
                assert recheck(seal(found), lambda query: "unsat", parse).problems
                break


@pytest.mark.parametrize("junk", [None, [], {}, {"format": 1}, "certificate", {"format": FORMAT}])
def test_junk_is_rejected_without_an_exception(junk: object) -> None:
    assert recheck(junk, z3, parse).problems


BAD_TERMS: list[Any] = [
    "0) (assert false", ["div", "x", "y"], ["foo"], [], ["and"], ["f", "|x|"], "", ["mod", "x", 0], ["mod", "x", True],
    [["f"], 1], 1.0, None, {"x": 1}, ["-", 1, 2], ["let", 1, 2, "x y"], ["not", 1, 2],
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_TERMS, ids=repr)
def test_terms_cannot_smuggle_commands(bad: Any) -> None:
    with pytest.raises(ValueError, match="not a term"):
        read(bad)


def test_terms_are_written_as_smtlib() -> None:
    term = read(["+", ["div", ["+", "t@1", 1], 2], ["ite", ["<=", ["sum.0", "$n"], 0], 1, -3]])
    assert text(term) == "(+ (div (+ t@1 1) 2) (ite (<= (sum.0 $n) 0) 1 (- 3)))"


# ------------------------------------------------------------------------------------------------ forged ones


def forged(found: dict[str, Any]) -> dict[str, Any]:
    """A certificate with everything made to fit what was changed, as somebody would who wants it accepted."""
    kernel = parse("\n".join(found["kernel"]))
    found |= {"program": fingerprint(found["kernel"]), "rows": rows(kernel)}
    return seal({**found, "claims": derive(kernel, found)})


def test_a_false_formula_with_claims_to_match_is_rejected() -> None:
    """Whoever derives the texts anew from a wrong formula still cannot make them true."""
    for name, formulas in certificate(ROWS)["loops"].items():
        for key, form in list(formulas.items())[::4]:
            found = copy.deepcopy(certificate(ROWS))
            found["loops"][name][key] = json.loads(json.dumps(make("+", read(form), 1)))
            problems = judged(forged(found), impatient()).problems
            assert any("loop" in problem for problem in problems), (name, key)


def test_a_false_bound_of_summands_is_rejected() -> None:
    found = copy.deepcopy(certificate(ROWS))
    assert found["sums"]
    found["sums"][0][1] = ["-", found["sums"][0][1]]
    assert any("summands" in problem for problem in judged(forged(found)).problems)


def test_a_sum_cannot_be_defined_by_itself() -> None:
    found = copy.deepcopy(certificate(ROWS))
    for body in (["+", ["sum.0", "$0"], 1], ["sum.1", "$0"], ["sum.00", "$0"], "t@1"):
        found["sums"][0][1] = body
        with pytest.raises(Rejected, match="uses"):
            derive(parse(ROWS), found)


def test_assumes_that_cannot_hold_prove_nothing() -> None:
    found = copy.deepcopy(certificate())
    found["kernel"].insert(2, "    assume n <= -1")
    problems = judged(forged(found)).problems
    assert problems == ("0 the assumes can hold: unsat, not sat",)


PHASES = """
kernel sums(n):
    assume n >= 0
    buffer acc[2] in Acc

    section cube:
        for t in range(n):
            matmul acc[t % 2] <- a, b @ M phase = Final
            store out <- acc[t % 2] @ FIX phase = Final
"""


def test_operations_cannot_hide_what_they_do() -> None:
    """Without its operands nothing would be known about the accumulator flags, and nothing claimed."""
    found = copy.deepcopy(certificate(PHASES))
    found["operands"] = {}
    for formulas in found["loops"].values():
        for key in [key for key in formulas if not key.startswith("run ")]:
            del formulas[key]
    problems = judged(forged(found)).problems
    assert sum("operands of" in problem for problem in problems) == 2


def test_some_operands_left_out_are_missed() -> None:
    for name, values in certificate(PHASES)["operands"].items():
        found = copy.deepcopy(certificate(PHASES))
        found["operands"][name] = values[:1]
        with pytest.raises(Rejected, match="changes other things"):
            forged(found)


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
    """Neither with the hints of the right kernel, nor with the formulas that the prover finds for the broken one."""
    assert kernel.count(old) == 1
    broken = parse(kernel.replace(old, new))
    borrowed = {**certificate(kernel), "kernel": print_kernel(broken).splitlines()}
    own = closed_form.prove(compile_kernel(broken), time.monotonic() + 60)
    assert not own.proved
    for forge in (lambda: forged(borrowed), lambda: assemble(own)):
        try:
            found = forge()
        except Rejected:
            continue
        assert judged(found, impatient()).problems


# ------------------------------------------------------------------------------------------------ small and independent


def sources(*names: str) -> dict[str, str]:
    folder = Path(fencepost.prove.__path__[0])
    return {name: (folder / f"{name}.py").read_text("utf-8") for name in names}


def test_the_checker_is_small() -> None:
    """Physical lines of its files, for closed forms and for state tables: code, blank lines, comments, docstrings."""
    for names, most in ((CHECKER, 1_140), (TABLES, 770)):
        assert sum(len(source.splitlines()) for source in sources(*names).values()) <= most


def test_the_checker_shares_nothing_with_the_prover() -> None:
    allowed = {
        "fencepost", "fencepost.applicability", "fencepost.findings", "fencepost.printer", "fencepost.validate",
        *(f"fencepost.model.{name}" for name in ("effects", "memory", "program", "rings")),
        *(f"fencepost.prove.{name}" for name in (*CHECKER, *TABLES)), "fencepost.prove",
    }  # fmt: skip
    for name, source in sources(*CHECKER, *TABLES).items():
        for node in ast.walk(ast.parse(source)):
            assert not isinstance(node, ast.Import) or not any("fencepost" in a.name for a in node.names)
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("fencepost"):
                assert node.module in allowed, f"{name} imports {node.module}"
                if node.module in ("fencepost", "fencepost.prove"):
                    assert {a.name for a in node.names} <= {"ir", *CHECKER}
