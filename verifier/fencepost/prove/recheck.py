"""Recheck: does a certificate prove what it says?

The kernel is rebuilt from the certificate, every claim about it is stated anew (`checker`, `claims`), compared with the
recorded text, and put to a fresh solver.  Nothing of the search for proofs is used.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from itertools import permutations
from typing import Any

from fencepost import ir
from fencepost.applicability import applicable
from fencepost.model.effects import Resolver
from fencepost.model.program import Compiled, ModelError, Program, compile_kernel
from fencepost.prove import solver
from fencepost.prove.checker import Claim, LoopClaim, Rejected, State, Walk, parameter
from fencepost.prove.claims import Hop, Route, Spot, Statement
from fencepost.prove.plainterms import (
    Malformed,
    Renaming,
    Term,
    add,
    applications,
    both,
    either,
    eq,
    le,
    leaves,
    lt,
    minus,
    no,
    parse,
    text,
    times,
)
from fencepost.validate import validate

FORMAT = "fencepost certificate 1"
Check = Callable[[str], str]
"""Answers a query: "unsat", "sat" or "unknown"."""


@dataclass(frozen=True, slots=True)
class RecheckResult:
    """What is wrong with a certificate; one without `problems` proves its rows.  `claims` counts what was shown."""

    kernel: str
    claims: int
    problems: tuple[str, ...]

    @property
    def valid(self) -> bool:
        return not self.problems


def recheck(certificate: Any, check: Check | None = None) -> RecheckResult:
    """Check a certificate.  Never raises for anything that the certificate holds."""
    try:
        return _recheck(certificate, check or (lambda query: solver.check(query).answer))
    except (Rejected, Malformed, ModelError) as error:
        return RecheckResult("", 0, (str(error),))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        return RecheckResult("", 0, (f"malformed: {type(error).__name__}: {error}",))


def _recheck(certificate: Any, check: Check) -> RecheckResult:
    if certificate["format"] != FORMAT:
        raise Rejected("not a certificate of this format")
    if set(certificate) != _KEYS:
        raise Rejected("fields are missing or unknown")
    for key in ("tool", "solver"):
        if not isinstance(certificate[key], str) or not certificate[key]:
            raise Rejected(f"{key} says nothing")
    if certificate["digest"] != digest(certificate):
        raise Rejected("the digest does not fit the content")
    kernel = decode(certificate["kernel"])
    if not isinstance(kernel, ir.Kernel) or validate(kernel):
        raise Rejected("the kernel is not well formed")
    if certificate["program"] != program_hash(kernel):
        raise Rejected("the hash of the program does not fit the kernel")
    rows = sorted(row.id for row, applies in applicable(kernel).items() if applies)
    if certificate["rows"] != rows:
        raise Rejected("the rows are not those of the kernel")
    problems = []
    derived = derive(kernel, certificate)
    if [c["name"] for c in certificate["claims"]] != [name for name, _, _ in derived]:
        raise Rejected("the list of claims does not follow from the program")
    for recorded, (name, group, query) in zip(certificate["claims"], derived, strict=True):
        if recorded != {"name": name, "group": group, "smtlib": query, "answer": "unsat"}:
            problems.append(f"not the claim that follows from the program: {name}")
        elif (answer := check(query)) != "unsat":
            problems.append(f"{name}: {answer}")
    return RecheckResult(kernel.name, len(derived), tuple(problems))


_KEYS = {
    "format",
    "tool",
    "solver",
    "digest",
    "kernel",
    "program",
    "rows",
    "sums",
    "loops",
    "operands",
    "routes",
    "claims",
}


def digest(certificate: dict[str, Any]) -> str:
    """The hash of everything but the digest itself."""
    content = {k: v for k, v in certificate.items() if k != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def program_hash(kernel: ir.Kernel) -> str:
    """The hash of a kernel, positions in its text left out."""
    return hashlib.sha256(json.dumps(encode(kernel), sort_keys=True).encode()).hexdigest()


# ------------------------------------------------------------------------------------------------ kernels as data


def encode(value: Any) -> Any:
    """A kernel as JSON; spans are left out."""
    if isinstance(value, ir.Node):
        names = [f.name for f in fields(value) if f.name != "span"]
        return {"node": type(value).__name__, **{name: encode(getattr(value, name)) for name in names}}
    return [encode(v) for v in value] if isinstance(value, tuple) else value


def decode(value: Any) -> Any:
    """The inverse of `encode`."""
    if isinstance(value, dict):
        kind = getattr(ir, value["node"])
        if not (isinstance(kind, type) and issubclass(kind, ir.Node)):
            raise Rejected(f"no such node: {value['node']}")
        return kind(**{name: decode(v) for name, v in value.items() if name != "node"})
    return tuple(decode(v) for v in value) if isinstance(value, list) else value


# ------------------------------------------------------------------------------------------------ claims


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum over the first symbol; `most`: no summand exceeds it.  `grows`: no summand is negative."""

    name: str
    symbols: tuple[str, ...]
    body: Term
    grows: bool
    most: int | None


def derive(kernel: ir.Kernel, hints: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(name, group, SMT-LIB text) of every claim about a kernel; each text must be unsatisfiable.

    Raises:
        Rejected: the hints do not fit the kernel.
    """
    compiled = compile_kernel(kernel)
    if compiled.unsupported:
        raise Rejected("a part of the kernel could not be read")
    sums = _sums(hints["sums"], compiled)
    assumptions = _assumptions(compiled)
    found: list[tuple[str, str, str]] = []
    for sum_ in sums.values():
        start = (*assumptions, le(0, sum_.symbols[0]))
        if sum_.grows:
            found.append((f"{sum_.name} grows", "sum", query((*start, lt(sum_.body, 0)), sums)))
        if sum_.most is not None:
            found.append((f"{sum_.name} at most", "sum", query((*start, lt(sum_.most, sum_.body)), sums)))
    for scheme in schemes(kernel):
        for name, group, conditions in _claims(compiled, hints, scheme):
            found.append((f"{scheme}: {name}", group, query((*assumptions, *conditions), sums)))
    names: dict[str, int] = {}
    numbered = []
    for name, group, query_text in found:
        names[name] = names.get(name, 0) + 1
        numbered.append((f"{name} #{names[name]}", group, query_text))
    return numbered


def schemes(kernel: ir.Kernel) -> list[str]:
    """The credit schemes that a kernel claims to be right for."""
    if not kernel.fifos:
        return ["per_slot"]
    return ["per_slot", "batched"] if kernel.credits == "both" else [kernel.credits]


def _claims(compiled: Compiled, hints: dict[str, Any], scheme: str) -> list[Claim]:
    resolver = Resolver(compiled)
    operands = {name: tuple(map(tuple, rows)) for name, rows in hints["operands"].items()}
    walks: dict[str, Walk] = {}
    for program in compiled.programs:
        loops = {}
        for item in hints["loops"]:
            if item["agent"] == program.agent:
                key = item["head"], tuple(item["copies"])
                if key in loops:
                    raise Rejected("a loop is claimed twice")
                slots = {int(slot): parse(form) for slot, form in item["slots"].items()}
                counters = {name: parse(form) for name, form in item["counters"].items()}
                loops[key] = LoopClaim(item["index"], slots, tuple(item["free"]), counters)
        walk = walks[program.agent] = Walk(compiled, program, resolver, loops, operands)
        walk.run()
        if loops.keys() - walk.entered:
            raise Rejected("a loop is claimed that does not exist")
    statement = Statement(compiled, resolver, walks, scheme == "batched", tuple(map(_route, hints["routes"][scheme])))
    if operands.keys() - statement.by_name.keys():
        raise Rejected("operands of an operation that does not exist")
    claims = statement.all()
    if statement.used != set(statement.routes):
        raise Rejected("a route leads nowhere")
    return claims


def _route(item: dict[str, Any]) -> Route:
    hops = tuple(Hop(h["kind"], _spot(h["source"]), _spot(h["target"])) for h in item["hops"])
    return Route(item["one"], item["other"], hops, None if item["writer"] is None else _spot(item["writer"]))


def _spot(item: dict[str, Any]) -> Spot:
    return Spot(item["event"], item["find"], item["offset"], item["plus"], item["minus"])


def _sums(items: list[dict[str, Any]], compiled: Compiled) -> dict[str, _Sum]:
    found: dict[str, _Sum] = {}
    known = {parameter(p) for p in compiled.parameters}
    for item in items:
        name, symbols, body = item["name"], tuple(item["symbols"]), parse(item["body"])
        used: set[str] = set()
        functions: dict[str, int] = {}
        leaves([body], used, functions)
        later = [f for f in functions if f.startswith("sum.") and f not in found]
        if not re.fullmatch(r"sum\.\d+", name) or name in found or later or not used <= {*known, *symbols}:
            raise Rejected(f"{name} is not defined by what comes before it")
        if symbols != tuple(f"${i}" for i in range(len(symbols))) or not symbols:
            raise Rejected(f"symbols of {name}")
        if not isinstance(item["grows"], bool) or not isinstance(item["most"], int | None):
            raise Rejected(f"bounds of {name}")
        found[name] = _Sum(name, symbols, body, item["grows"], item["most"])
    return found


def _assumptions(compiled: Compiled) -> tuple[Term, ...]:
    names = {p: i for i, p in enumerate(compiled.parameters)}
    walk = Walk(compiled, Program("", (), (), (), (), names, {}), Resolver(compiled), {}, {})
    state = State((), {i: parameter(p) for i, p in enumerate(compiled.parameters)}, {}, {})
    found = [walk.condition(a, state) for a in compiled.kernel.assumes]
    if "block" in compiled.parameters and "block" not in compiled.kernel.parameters:
        found.append(le(0, "block"))
    return tuple(found)


# ------------------------------------------------------------------------------------------------ queries


def query(conditions: Iterable[Term], sums: dict[str, _Sum]) -> str:
    """SMT-LIB text that is unsatisfiable exactly if the conditions cannot hold together, given the laws of sums."""
    asserted = list(
        dict.fromkeys(p for c in conditions for p in (c[1:] if isinstance(c, tuple) and c[0] == "and" else (c,)))
    )
    asserted = [c for c in asserted if c != "true"]
    if "false" in asserted:
        return "(assert false)\n"
    asserted += _laws(asserted, sums)
    symbols: set[str] = set()
    functions: dict[str, int] = {}
    leaves(asserted, symbols, functions)
    lines = [f"(declare-fun {f} ({' '.join(['Int'] * n)}) Int)" for f, n in sorted(functions.items())]
    lines += [f"(declare-fun {s} () Int)" for s in sorted(symbols)]
    return "\n".join([*lines, *(f"(assert {text(c)})" for c in asserted)]) + "\n"


def _laws(asserted: list[Term], sums: dict[str, _Sum]) -> list[Term]:
    points = applications(asserted, sums)
    laws: list[Term] = []
    for _ in range(2):
        laws = [law for sum_ in sums.values() for law in _of(sum_, [p for p in points if p[0] == sum_.name])]
        more = applications([*asserted, *laws], sums)
        if more.keys() == points.keys():
            break
        points = more
    return [law for law in dict.fromkeys(laws) if law != "true"]


def _of(sum_: _Sum, points: list[Term]) -> list[Term]:
    laws = []
    for point in points:
        if len(point) != len(sum_.symbols) + 1:
            raise Rejected(f"operands of {sum_.name}")
        x = point[1]
        laws.append(either(no(eq(x, 0)), eq(point, 0)))
        if sum_.grows:
            laws.append(either(lt(x, 0), le(0, point)))
        if sum_.most is not None:
            laws.append(either(lt(x, 0), le(point, times(sum_.most, x))))
    if len(points) > 14:
        return laws
    for one, other in permutations(points, 2):
        if one[2:] != other[2:]:
            continue
        reached = add(one, Renaming(dict(zip(sum_.symbols, one[1:], strict=True)))(sum_.body))
        later = both(le(0, one[1]), lt(one[1], other[1]))
        laws.append(either(no(eq(add(one[1], 1), other[1])), eq(reached, other)))
        if sum_.grows:
            laws.append(either(no(later), le(reached, other)))
        if sum_.most is not None:
            laws.append(either(no(later), le(minus(other, one), times(sum_.most, minus(other[1], one[1])))))
    return laws
