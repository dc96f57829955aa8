"""Is a certificate accepted as it is, and rejected with any field changed?"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fencepost import ir
from fencepost.discover import Source
from fencepost.passes.serial import Serial
from fencepost.prove.certificate import NotCertified, certify
from fencepost.prove.plainterms import Malformed, parse, text
from fencepost.prove.recheck import decode, digest, encode, recheck
from fencepost.reading import parse as parse_kernel
from fencepost.reading import read

CASES = Path(__file__).resolve().parent.parent / "cases"
NOT_YET = {"records"}
"""Right kernels whose rings are stored to on some trips only: the checker has no rule for them."""

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


@cache
def kernels() -> dict[str, ir.Kernel]:
    found = read(Source("right.kir", (CASES / "right.kir").read_text("utf-8"))).result.kernels
    return {k.name: Serial().run(k) for k in found}


@cache
def certificate() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(certify(parse_kernel(ROWS))))
    return found


def unsat(query: str) -> str:
    """A solver that believes everything: what it lets through was rejected by comparison alone."""
    return "unsat"


@pytest.mark.parametrize("name", [n for n in kernels() if n not in NOT_YET])
def test_right_kernels_are_certified(name: str) -> None:
    found = json.loads(json.dumps(certify(kernels()[name])))
    result = recheck(found)
    assert result.valid, result.problems[:3]
    assert result.claims == len(found["claims"]) > 0


@pytest.mark.parametrize("name", sorted(NOT_YET))
def test_what_the_checker_does_not_follow_is_not_certified(name: str) -> None:
    with pytest.raises(NotCertified):
        certify(kernels()[name])


def test_a_faulty_kernel_is_not_certified() -> None:
    with pytest.raises(NotCertified):
        certify(parse_kernel(ROWS.replace("        wait_cross_core RELEASE[1] @ FIX\n", "")))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every leaf, and of every list and object, of a certificate."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, (*path, i))


def changed(value: Any) -> Any:
    """Something else of the same type."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return value + "0"
        case list():
            return value[1:] if value else [0]
        case dict():
            return {} if value else {"x": 0}
    return 0


def corrupted(path: tuple[Any, ...], new: Any, sealed: bool) -> dict[str, Any]:
    """The certificate with one place changed; `sealed`: with a digest that fits."""
    found = copy.deepcopy(certificate())
    spot: Any = found
    for step in path[:-1]:
        spot = spot[step]
    spot[path[-1]] = new
    if sealed and path[0] != "digest":
        found["digest"] = digest(found)
    return found


def value_at(path: tuple[Any, ...]) -> Any:
    found: Any = certificate()
    for step in path:
        found = found[step]
    return found


HARMLESS = {("tool",), ("solver",)}
"""Who made the certificate proves nothing; only the digest protects it."""


def sample() -> list[tuple[Any, ...]]:
    """Every place outside the claims, and those of some claims."""
    every = list(places(certificate()))
    return [p for p in every if p[0] != "claims" or len(p) == 1 or p[1] % 17 == 0]


def test_every_changed_field_breaks_the_digest() -> None:
    for path in sample():
        assert not recheck(corrupted(path, changed(value_at(path)), sealed=False), unsat).valid, path


def test_every_changed_field_is_rejected_though_the_digest_fits() -> None:
    accepted = []
    for path in sample():
        if path in HARMLESS or path == ("digest",):
            continue
        if recheck(corrupted(path, changed(value_at(path)), sealed=True), unsat).valid:
            accepted.append(path)
    assert not accepted


def test_every_missing_field_is_rejected() -> None:
    for key in certificate():
        found = {k: v for k, v in certificate().items() if k != key}
        if key != "digest":
            found["digest"] = digest(found)
        assert not recheck(found, unsat).valid, key


def test_a_claim_left_out_is_rejected() -> None:
    for i in range(0, len(certificate()["claims"]), 11):
        found = copy.deepcopy(certificate())
        del found["claims"][i]
        found["digest"] = digest(found)
        assert not recheck(found, unsat).valid


def test_a_false_formula_with_claims_to_match_is_rejected() -> None:
    """Whoever derives the texts anew from a wrong formula still cannot make them true."""
    from fencepost.prove.recheck import derive

    found = copy.deepcopy(certificate())
    for loop in found["loops"]:
        for key in loop["counters"]:
            form = loop["counters"][key]
            loop["counters"][key] = f"(+ {form} 1)"
            queries = derive(parse_kernel(ROWS), found)
            found["claims"] = [{"name": n, "group": g, "smtlib": q, "answer": "unsat"} for n, g, q in queries]
            found["digest"] = digest(found)
            result = recheck(found)
            assert not result.valid, (loop["agent"], key)
            assert any("loop" in p for p in result.problems)
            loop["counters"][key] = form
            break


def test_kernels_survive_as_data() -> None:
    for kernel in kernels().values():
        assert decode(json.loads(json.dumps(encode(kernel)))) == kernel


@pytest.mark.parametrize("junk", [None, [], {}, {"format": 1}, "certificate", {"format": "fencepost certificate 1"}])
def test_junk_is_rejected_without_an_exception(junk: object) -> None:
    assert not recheck(junk).valid


@pytest.mark.parametrize("bad", ["0) (assert false", "(div x y)", "(foo)", "x y", "(and", "(f |x|)", "", "(mod x 0)"])
def test_terms_cannot_smuggle_commands(bad: str) -> None:
    with pytest.raises(Malformed):
        parse(bad)


def test_terms_are_read_as_they_are_written() -> None:
    for form in ("(+ (div (+ t@1 1) 2) 3)", "(ite (<= (sum.0 x) 0) 1 0)", "(- 3)"):
        assert text(parse(form)) == form
