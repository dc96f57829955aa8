"""Can somebody who knows the checker make it accept a certificate of a wrong kernel, or stumble over a certificate?"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from fencepost.model.program import ModelError
from fencepost.printer import print_kernel
from fencepost.prove import solver
from fencepost.prove.certificate import certify, seal
from fencepost.prove.checker import Rejected
from fencepost.prove.recheck import RecheckResult, derive, fingerprint, recheck, rows
from fencepost.reading import parse
from fencepost.replay import replay

ONE_TILE = """
kernel one_tile(n):
    assume n >= 2
    assume n <= 15
    buffer tile in Vec

    section cube:
        for t in range(n):
            move tile <- acc @ FIX
            set_cross_core 1 @ FIX

    section vector:
        for t in range(n):
            wait_cross_core 1 @ V
            softmax out <- tile @ V
"""
"""A race: nothing holds the cube back from its next move."""

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


def judged(certificate: Any) -> RecheckResult:
    return recheck(certificate, lambda text: solver.check(text).answer, parse)


@cache
def certificate() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(certify(parse(FEW))))
    return found


def forged(found: dict[str, Any]) -> dict[str, Any]:
    """Everything that follows from the rest, made to fit; as it is where the checker refuses to say what follows."""
    try:
        kernel = parse("\n".join(found["kernel"]))
        found = {**found, "program": fingerprint(found["kernel"]), "rows": rows(kernel)}
        found["claims"] = derive(kernel, found)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, Rejected, ModelError):
        pass
    return seal(found)


def about(kernel: str, routes: list[dict[str, Any]]) -> dict[str, Any]:
    """A certificate of `one_tile`, with formulas that are right."""
    lines = print_kernel(parse(kernel)).splitlines()
    counts = {"aic": ("run aic.1", "run aic.2", "set 0", "set 1"), "aiv0": ("run aiv0.1", "run aiv0.2", "wait 0"),
              "aiv1": ("run aiv1.1", "run aiv1.2", "wait 1")}  # fmt: skip
    found = {
        **certificate(), "kernel": lines, "sums": [],
        "loops": {f"{agent}.0": dict.fromkeys(keys, "t@0") for agent, keys in counts.items()},
        "operands": {"aic.2": [[1]], "aiv0.1": [[1]], "aiv1.1": [[1]]},
        "routes": {"per_slot": sorted(routes, key=lambda route: json.dumps(route, sort_keys=True))},
    }  # fmt: skip
    return forged(found)


SELF_REFERENCES: list[Any] = [
    ["ite", ["=", "z0@0", 0], 1, 0],  # number 0 if it is not number 0
    ["ite", ["=", ["total.aic.1", "z0@0"], 0], 1, 0],
    ["taker", "aic.1", "a@0"],
    "$n",
]


def test_the_number_of_an_execution_cannot_depend_on_what_it_defines() -> None:
    """An execution that exists only if it does not would make every claim true."""
    assert [fault.kind for fault in replay(parse(ONE_TILE), {"n": 2}).faults][:1] == ["race"]
    honest = judged(about(ONE_TILE, [])).problems
    assert [problem for problem in honest if "order: aic.1" in problem]
    assert not [problem for problem in honest if "loop" in problem]
    for number in SELF_REFERENCES:
        hops = [["issue", ["aic.1", number], ["aic.2", "same"]]]
        routes = [{"hops": hops, "one": "aic.1", "other": f"{a}.2", "writer": None} for a in ("aiv0", "aiv1")]
        problems = judged(about(ONE_TILE, routes)).problems
        assert len(problems) == 1
        assert "is not the number of an execution" in problems[0]


@pytest.mark.parametrize("bound", ["    assume n <= 15", "    assume n >= 0"])
def test_an_assume_is_not_left_out(bound: str) -> None:
    """Without the assume that a proof needs its claims fail; without one that it does not need it is another kernel."""
    found = copy.deepcopy(certificate())
    found["kernel"].remove(bound)
    assert judged(seal(found)).problems
    assert (judged(forged(found)).problems != ()) == ("15" in bound)


def test_weaker_formulas_do_not_prove_what_needs_the_stronger_ones() -> None:
    """Nothing known of a value is always true, and `unsat` is what must still follow."""
    for loop, formulas in certificate()["loops"].items():
        for key in formulas:
            if key.startswith(("set", "wait")):
                found = copy.deepcopy(certificate())
                found["loops"][loop][key] = None
                assert judged(forged(found)).problems, (loop, key)


def test_routes_of_other_operations_do_not_do() -> None:
    routes = certificate()["routes"]["per_slot"]
    assert len(routes) >= 3
    for i, one in enumerate(routes):
        for other in routes[:i]:
            found = copy.deepcopy(certificate())
            exchanged = [{**one, "hops": other["hops"]}, {**other, "hops": one["hops"]}]
            kept = [route for route in routes if route not in (one, other)]
            found["routes"]["per_slot"] = sorted((*kept, *exchanged), key=lambda r: json.dumps(r, sort_keys=True))
            if found != certificate():
                assert judged(forged(found)).problems


def deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = ["+", found, 1]
    return found


JUNK: list[Any] = [
    10**4000, -(10**30), float("nan"), float("inf"), True, 0, [], {}, "", "\ud800", "\u2028", "x" * 10_000, None,
    [[[]]],
    {"one": 1}, ["taker", 1, 2], ["+", "true", 1], ["let", 1, 2], "aic.99", deep(100), deep(900),
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


@pytest.mark.parametrize("forge", [seal, forged, lambda found: found], ids=["sealed", "forged", "plain"])
def test_junk_anywhere_is_rejected_without_an_exception(forge: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    rng = random.Random(4)
    hints = [p for p in places(certificate()) if p[0] in ("kernel", "sums", "loops", "operands", "routes") and p[1:]]
    for path in rng.sample(hints, min(len(hints), 60)):
        for junk in rng.sample(JUNK, 6):
            found = copy.deepcopy(certificate())
            parent: Any = found
            for step in path[:-1]:
                parent = parent[step]
            weaker = path[0] == "loops" and junk is None  # true, and enough where nothing uses the value
            if weaker or parent[path[-1]] in (junk, None) or (path[0] == "kernel" and junk == ""):
                continue
            parent[path[-1]] = junk
            try:
                made = forge(found)
            except RecursionError:  # the forger's own
                made = found
            assert recheck(made, lambda text: solver.check(text, rlimit=100_000).answer, parse).problems, (path, junk)


@pytest.mark.parametrize("names", [["$0"] * 2, ["$1"], [], ["n"], "$0", 10**9, True])
def test_a_sum_names_its_symbols_in_order(names: Any) -> None:
    found = {**certificate(), "sums": [[names, "$0"]]}
    assert judged(forged(found)).problems
