"""Is a table of relative states accepted where it proves something, and nowhere else?"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fencepost import ir
from fencepost.discover import Source
from fencepost.model.program import compile_kernel
from fencepost.passes.serial import Serial
from fencepost.printer import print_kernel
from fencepost.prove import closed_form, solver, tabulate
from fencepost.prove.certificate import NotCertified, certify, distinct, seal, written
from fencepost.prove.plainterms import Rejected, Term, make
from fencepost.prove.recheck import RecheckResult, derive, fingerprint, recheck, schemes
from fencepost.prove.simplest import gathered, known, norm
from fencepost.prove.statetable import Machine, State
from fencepost.reading import parse
from fencepost.reading import read as read_source

CASES = Path(__file__).resolve().parent.parent / "cases"

STOPS = """
kernel stops(n):
    assume n >= 0
    buffer s[2] in Vec

    section cube:
        for t in range(n):
            if stop(t) > 0:
                break
            wait_cross_core t % 2 @ FIX
            move s[t % 2] <- x @ FIX task = t
            set_cross_core 2 + t % 2 @ FIX
        wait_cross_core 0 @ FIX
        wait_cross_core 1 @ FIX

    section vector:
        set_cross_core 0 @ V
        set_cross_core 1 @ V
        for t in range(n):
            if stop(t) > 0:
                break
            wait_cross_core 2 + t % 2 @ V
            exp y <- s[t % 2] @ V task = t
            set_cross_core t % 2 @ V
"""
"""Both cores leave the loop at the same unknown trip."""

SKIPS = """
kernel skips(n):
    assume n >= 0
    buffer s[2] in Vec

    section cube:
        c = 0
        for t in range(n):
            if t % 3 == 2:
                continue
            if need(t) > 0:
                wait_cross_core c @ FIX
                move s[c] <- x @ FIX
                set_cross_core 2 + c @ FIX
                c = 1 - c
        wait_cross_core 0 @ FIX
        wait_cross_core 1 @ FIX

    section vector:
        set_cross_core 0 @ V
        set_cross_core 1 @ V
        c = 0
        for t in range(n):
            if t % 3 == 2:
                continue
            if need(t) > 0:
                wait_cross_core 2 + c @ V
                exp y <- s[c] @ V
                set_cross_core c @ V
                c = 1 - c
"""
"""Which trips hand something over is read from memory; the slot toggles."""

RECORDS = """
kernel late(n):
    assume n >= 0
    buffer s[2] in Vec
    ring todo[2](at)

    section cube:
        for t in range(n + 1):
            if t < n:
                todo[t % 2].at = t
            if t > 0:
                k = todo[(t - 1) % 2].at
                wait_cross_core k % 2 @ FIX
                move s[k % 2] <- x @ FIX
                set_cross_core 2 + k % 2 @ FIX
        wait_cross_core 0 @ FIX
        wait_cross_core 1 @ FIX

    section vector:
        set_cross_core 0 @ V
        set_cross_core 1 @ V
        for t in range(n):
            wait_cross_core 2 + t % 2 @ V
            exp y <- s[t % 2] @ V
            set_cross_core t % 2 @ V
"""
"""One trip late, by what a record keeps."""

MESSAGES = """
kernel messages(n):
    assume n >= 0
    fifo down: cube -> vector, slots = 4

    section cube:
        for t in range(n):
            if stop(t) > 0:
                break
            tpush_to_aiv a @ FIX task = t

    section vector:
        for t in range(n):
            if stop(t) > 0:
                break
            b <- tpop_from_aic @ V task = t
            exp y <- b @ V
            tfree_to_aic b @ V
"""

EXPLORED = {"stops": STOPS, "skips": SKIPS, "messages": MESSAGES}


def z3(query: str) -> str:
    return solver.check(query).answer


def judged(certificate: Any, check: Callable[[str], str] = z3) -> RecheckResult:
    return recheck(json.loads(json.dumps(certificate)), check, parse)


@cache
def kernels(file: str = "right.kir") -> dict[str, ir.Kernel]:
    found = read_source(Source(file, (CASES / file).read_text("utf-8"))).result.kernels
    return {k.name: Serial().run(k) for k in found}


@cache
def table(kernel: str = STOPS) -> dict[str, Any]:
    return certify(parse(kernel))


def forged(certificate: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The certificate with other content, and everything that follows from it made to fit."""
    found = {**certificate, **changes}
    found["program"] = fingerprint(found["kernel"])
    found["claims"] = derive(parse("\n".join(found["kernel"])), found["tables"])
    return seal(found)


# ------------------------------------------------------------------------------------------------ right ones hold


@pytest.mark.parametrize("name", list(EXPLORED))
def test_what_only_exploration_proves_is_certified(name: str) -> None:
    kernel = distinct(parse(EXPLORED[name]))
    assert not closed_form.prove(compile_kernel(kernel), time.monotonic() + 20).proved
    result = judged(certify(kernel))
    assert result.problems == ()
    assert result.kernel == print_kernel(kernel)


@pytest.mark.parametrize("name", list(kernels()))
def test_tables_of_right_kernels_are_accepted(name: str) -> None:
    assert judged(certify(kernels()[name])).problems == ()


def test_records_are_followed() -> None:
    assert judged(table(RECORDS)).problems == ()


def test_messages_both_ways_are_followed() -> None:
    text = (CASES.parent.parent / "examples" / "round_trip.kir").read_text("utf-8")
    assert judged(table(print_kernel(Serial().run(parse(text))))).problems == ()


@pytest.mark.parametrize("name", list(kernels("faulty.kir")))
def test_faulty_kernels_have_no_table(name: str) -> None:
    with pytest.raises(NotCertified):
        certify(kernels("faulty.kir")[name], 10)


# ------------------------------------------------------------------------------------------------ corrupted fields


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in JSON data."""
    yield path
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(value, (*path, key))


def changed(certificate: dict[str, Any], path: tuple[Any, ...], change: Callable[[Any], Any]) -> dict[str, Any]:
    """A copy in which the item at a place is another; None removes it."""
    found = copy.deepcopy(certificate)
    holder = found
    for key in path[:-1]:
        holder = holder[key]
    new = change(holder[path[-1]])
    if new is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = new
    return found


def other(value: Any) -> Any:
    """Something else of the same kind."""
    match value:
        case bool() | int():
            return int(value) + 1
        case str():
            return value + "x"
        case list():
            return [*value, *value[-1:]] if value else [1]
        case dict():
            return {**value, "x9": 1}
    return 0


def test_every_change_is_found() -> None:
    """With a digest that fits, but the claims of before."""
    sealed = json.loads(json.dumps(table()))
    paths = [p for p in places(sealed) if p and p[0] not in ("digest", "claims")]
    random = Random(1)
    for path in random.sample(paths, min(len(paths), 400)):
        for change in (other, lambda value: None):
            found = seal(changed(sealed, path, change))
            if path[0] in ("tool", "solver") and change is other:
                continue
            if path[0] == "tables" and len(path) > 4 and harmless(found, sealed, path):
                continue
            assert judged(found, believer(sealed)).problems, path


def believer(certificate: dict[str, Any]) -> Callable[[str], str]:
    """A solver that gives the answers of the certificate and knows of nothing else."""
    answers = {c["smtlib"]: c["answer"] for c in certificate["claims"]}
    return lambda query: answers.get(query, "unknown")


def harmless(found: dict[str, Any], sealed: dict[str, Any], path: tuple[Any, ...]) -> bool:
    """Whether a change leaves a proof: it makes a state know less, and all claims are those of before."""
    try:
        claims = derive(parse("\n".join(found["kernel"])), found["tables"])
    except (Rejected, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return False
    return (
        "states" in path and claims == sealed["claims"] and path[4] in ("pipes", "queues", "marks", "written", "facts")
    )


def test_junk_is_rejected_and_never_raises() -> None:
    sealed = json.loads(json.dumps(table()))
    paths = [p for p in places(sealed["tables"]) if p]
    deep: Any = 0
    for _ in range(300):
        deep = ["+", deep, 1]
    junk: list[Any] = [
        None,
        True,
        -1,
        10**40,
        0.5,
        "",
        "true",
        "x0",
        [],
        {},
        [[]],
        ["x0"],
        {"": {}},
        float("nan"),
        deep,
    ]
    random = Random(2)
    for path in random.sample(paths, 120):
        for item in random.sample(junk, 4):
            found = copy.deepcopy(sealed)
            holder = found["tables"]
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = item
            recheck(seal(found), believer(sealed), parse)


# ------------------------------------------------------------------------------------------------ broken kernels

BREAKS = {
    STOPS: (
        ("        wait_cross_core 0 @ FIX\n        wait_cross_core 1", "        wait_cross_core 1"),
        ("2 + t % 2 @ V", "2 + t % 2 @ MTE2"),
        ("for t in range(n):\n            if stop(t) > 0:\n                break\n            wait_cross_core t % 2",
         "for t in range(n):\n            if stop(t) > 1:\n                break\n            wait_cross_core t % 2"),
        ("move s[t % 2]", "move s[(t + 1) % 2]"),
        ("exp y <- s[t % 2] @ V task = t", "exp y <- s[t % 2] @ V task = t + 1"),
        ("        set_cross_core 0 @ V\n        set_cross_core 1 @ V\n", "        set_cross_core 0 @ V\n"),
        ("buffer s[2]", "buffer s[1]"),
    ),
    SKIPS: (
        ("if t % 3 == 2:\n                continue\n            if need(t) > 0:\n                wait_cross_core c",
         "if t % 3 == 1:\n                continue\n            if need(t) > 0:\n                wait_cross_core c"),
        ("exp y <- s[c]", "exp y <- s[1 - c]"),
        ("for t in range(n):\n            if t % 3 == 2:\n                continue\n            if need(t) > 0:\n"
         "                wait_cross_core 2",
         "for t in range(n - 1):\n            if t % 3 == 2:\n                continue\n            if need(t) > 0:\n"
         "                wait_cross_core 2"),
    ),
    RECORDS: (
        ("for t in range(n + 1)", "for t in range(n)"),
        ("todo[(t - 1) % 2].at", "todo[t % 2].at"),
        ("ring todo[2]", "ring todo[1]"),
    ),
    MESSAGES: (
        ("            tfree_to_aic b @ V\n", ""),
        ("exp y <- b @ V\n            tfree_to_aic b @ V", "tfree_to_aic b @ V\n            exp y <- b @ V"),
        ("@ V task = t", "@ V task = t + 1"),
        ("slots = 4", "slots = 5"),
    ),
}  # fmt: skip
BROKEN = [(kernel, *change) for kernel, made in BREAKS.items() for change in made]


@pytest.mark.parametrize(("kernel", "old", "new"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_kernel_has_no_table(kernel: str, old: str, new: str) -> None:
    """Neither that of the right kernel, nor one of its own."""
    assert kernel.count(old) == 1
    broken = distinct(parse(kernel.replace(old, new)))
    with pytest.raises(NotCertified):
        certify(broken, 10)
    try:
        borrowed = forged(table(kernel), kernel=print_kernel(broken).splitlines())
    except (Rejected, LookupError, ValueError):
        return
    assert judged(borrowed).problems


class Careless(tabulate.Tabulator):
    """Takes states for alike that agree only in some respect, as a forger would."""

    what = ""

    def _shape(self, s: State) -> Any:
        if self.what == "places":
            return tuple(sorted(s.at.items()))
        return super()._shape(s)

    def _covering(self, machine: Machine, general: State, s: State) -> dict[str, Term] | None:
        if self.what == "claims":
            return tabulate.matched(general, s)
        values = tabulate.matched(general, s)
        return {} if values is None else values

    def _join(self, entry: Any, s: State) -> State | None:
        return None


@pytest.mark.parametrize("what", ["places", "claims"])
def test_careless_tables_of_broken_kernels_are_rejected(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that covers states by what is none of their kind closes for broken kernels; nobody else is fooled."""
    monkeypatch.setattr(Careless, "what", what)
    monkeypatch.setattr(tabulate, "Tabulator", Careless)
    broken = [parse(kernel.replace(old, new)) for kernel, old, new in BROKEN]
    closed = 0
    for kernel in [*broken, *kernels("faulty.kir").values()]:
        try:
            hints = {s: tabulate.tabulated(kernel, s == "batched", time.monotonic() + 5) for s in schemes(kernel)}
        except (tabulate.NotClosed, LookupError, ValueError):
            continue
        closed += 1
        try:
            found = written(distinct(kernel), hints)
        except (Rejected, LookupError, ValueError):
            continue
        assert judged(found).problems, kernel.name
    assert closed > 3


# ------------------------------------------------------------------------------------------------ forged tables

HANGS = """
kernel hangs(n):
    assume n >= 0
    buffer s in Vec

    section cube:
        for t in range(n):
            wait_cross_core 0 @ FIX
            move s <- x @ FIX
            set_cross_core 1 @ FIX
        wait_cross_core 0 @ FIX

    section vector:
        set_cross_core 0 @ V
        for t in range(n):
            wait_cross_core 1 @ V
            exp y <- s @ V
            if t < 5:
                set_cross_core 0 @ V
"""
"""The vector side gives no credit from its sixth trip on."""


def tables_of(certificate: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    found: dict[str, Any] = copy.deepcopy(json.loads(json.dumps(certificate)))
    change(found["tables"]["per_slot"])
    return found


@cache
def careful() -> dict[str, Any]:
    """A certificate of the kernel that gives all credits."""
    return certify(parse(HANGS.replace("if t < 5", "if t >= 0")))


def split_by(table_: dict[str, Any]) -> None:
    """The same table, in which nothing is said to follow from facts."""
    for item in table_["states"]:
        item["answers"] = ["wait" if a in ("yes", "no") else a for a in item["answers"]]


def empty(table_: dict[str, Any]) -> None:
    table_["states"] = []


def nothing(table_: dict[str, Any]) -> None:
    table_ |= {"start": [], "states": []}


def contradictory(table_: dict[str, Any]) -> None:
    for item in table_["states"]:
        item["facts"].append("false")


def contradictory_in_disguise(table_: dict[str, Any]) -> None:
    for item in table_["states"]:
        item["facts"] += [["<=", "x0", 0], ["<=", ["*", -1, "x0"], -1]]


def of_functions(table_: dict[str, Any]) -> None:
    for item in table_["states"]:
        item["facts"].append(["<=", "f.anything", 0])


def of_any(table_: dict[str, Any]) -> None:
    """Facts about a scalar that the state does not mention, which may have any value."""
    for item in table_["states"]:
        item["scalars"]["aiv0"].pop("next 0", None)
        item["facts"].append(["<=", "any.aiv0.next!20!0", 4])


def itself(table_: dict[str, Any]) -> None:
    """Every state is covered by itself, before anything is executed."""
    for number, item in enumerate(table_["states"]):
        waits = [a for a in item["answers"] if a == "wait"][:3]
        item["answers"] = [*waits, ["to", number, {"x0": "x0"}]]


def more_signals(table_: dict[str, Any]) -> None:
    for item in table_["states"]:
        for queue in item["queues"].values():
            queue.append({})


def minus_one(table_: dict[str, Any]) -> None:
    for item in table_["states"]:
        for unknown in item["pipes"].values():
            for event in unknown:
                unknown[event] = -1


def all_known(table_: dict[str, Any]) -> None:
    for item in table_["states"]:
        item["pipes"] = {pipe: {} for pipe in item["pipes"]}


def at_the_end(table_: dict[str, Any]) -> None:
    """States in which all agents are done."""
    for item in table_["states"]:
        item["at"] = dict.fromkeys(item["at"], -1)
        item["answers"] = []


def undefined(table_: dict[str, Any]) -> None:
    for item in table_["states"]:
        item["answers"] = [[*a[:2], dict.fromkeys(a[2], "x0")] if a[0] == "to" else a for a in item["answers"]]


FORGERIES = [
    split_by, empty, nothing, contradictory, contradictory_in_disguise, of_functions, of_any, itself, more_signals,
    minus_one, all_known, at_the_end, undefined,
]  # fmt: skip


@pytest.mark.parametrize("forgery", FORGERIES, ids=[f.__name__ for f in FORGERIES])
@pytest.mark.parametrize("kernel", [HANGS, HANGS.replace("if t < 5", "if t >= 0")], ids=["broken", "right"])
def test_forged_tables_prove_nothing(kernel: str, forgery: Callable[[dict[str, Any]], None]) -> None:
    lines = print_kernel(parse(kernel)).splitlines()
    try:
        found = forged(tables_of(careful(), forgery), kernel=lines)
    except (Rejected, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return
    assert judged(found).problems or (forgery in (split_by, undefined) and kernel != HANGS)


# ------------------------------------------------------------------------------------------------ simplest forms


def random_term(random: Random, depth: int, truth: bool = False) -> Term:
    if truth:
        if depth == 0 or random.random() < 0.4:
            return (random.choice(("<=", "=")), random_term(random, 1), random_term(random, 1))
        head = random.choice(("and", "or", "not"))
        return (head, *(random_term(random, depth - 1, True) for _ in range(1 if head == "not" else 2)))
    if depth == 0 or random.random() < 0.2:
        return random.choice(("x0", "x1", random.randint(-4, 4)))
    match random.choice(("+", "-", "*", "mod", "div", "ite")):
        case "-":
            return ("-", random_term(random, depth - 1))
        case "*":
            return ("*", random.randint(-3, 3), random_term(random, depth - 1))
        case ("mod" | "div") as head:
            return (head, random_term(random, depth - 1), random.randint(1, 4))
        case "ite":
            return ("ite", random_term(random, 1, True), random_term(random, depth - 1), random_term(random, depth - 1))
    return ("+", *(random_term(random, depth - 1) for _ in range(random.randint(1, 3))))


def valued(term: Term, values: dict[str, int]) -> Term:
    if isinstance(term, tuple):
        return make(term[0], *(valued(part, values) for part in term[1:]))
    return values.get(term, term)


def test_simplest_forms_mean_the_same() -> None:
    random = Random(3)
    for _ in range(3_000):
        truth = random.random() < 0.5
        term = random_term(random, 3, truth)
        simple = norm(term)
        assert norm(simple) == simple
        for _ in range(6):
            values = {"x0": random.randint(-9, 9), "x1": random.randint(-9, 9)}
            assert valued(term, values) == valued(simple, values), (term, simple, values)


def test_what_is_known_holds() -> None:
    random = Random(4)
    for _ in range(2_000):
        facts: tuple[Term, ...] = ()
        for _ in range(3):
            facts = gathered(facts, random_term(random, 1, True))
        condition = norm(random_term(random, 1, True))
        follows = known(condition, facts)
        for x, y in ((x, y) for x in range(-6, 7) for y in range(-6, 7)):
            if follows and all(valued(f, {"x0": x, "x1": y}) == "true" for f in facts):
                assert valued(condition, {"x0": x, "x1": y}) == "true", (condition, facts)


def test_rounds_of_one_memory_under_two_names() -> None:
    """What is read as `b` was written as `a`, for the round before."""
    text = """
kernel k(n):
    assume n >= 0
    buffer a in Vec at 0 size 64
    buffer b in Vec at 0 size 64
    section cube:
        for t in range(n):
            wait_cross_core 0 @ FIX
            move a <- x @ FIX task = t
            set_cross_core 1 @ FIX
        wait_cross_core 0 @ FIX
    section vector:
        set_cross_core 0 @ V
        for t in range(n):
            wait_cross_core 1 @ V
            exp y <- b @ V task = t + 1
            set_cross_core 0 @ V
"""
    with pytest.raises(NotCertified):
        certify(parse(text))
    assert certify(parse(text.replace("t + 1", "t")))["rows"]


@pytest.mark.parametrize("start", ["x = 3", "x = n"])
def test_values_that_grow_without_end_are_refused(start: str) -> None:
    """A small file must not keep the checker busy: squared 64 times, a number has 2 ** 64 digits."""
    body = f"{start}\n        for t in range(64):\n            x = x * x"
    kernel = distinct(parse(f"kernel k(n):\n    section cube:\n        {body}\n        barrier M\n"))
    with pytest.raises((Rejected, ValueError)):
        derive(kernel, {"per_slot": {"start": [], "states": []}})
