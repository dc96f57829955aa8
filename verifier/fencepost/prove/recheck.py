"""Recheck: does a certificate prove what it says?

The kernel in the certificate is read, everything that must be shown about it is stated anew (`checker`, `claims`),
compared with the recorded list, and put to a solver.  Nothing of the search for proofs is used.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

from fencepost import ir
from fencepost.applicability import applicable
from fencepost.findings import Row
from fencepost.model.effects import Resolver
from fencepost.model.program import ModelError, compile_kernel
from fencepost.printer import print_kernel
from fencepost.prove.checker import Claim, Formulas, Rejected, Walk, fields_of, plain
from fencepost.prove.claims import Statement
from fencepost.prove.plainterms import (
    Term,
    add,
    applications,
    both,
    conjuncts,
    either,
    eq,
    le,
    lt,
    no,
    read,
    subst,
    text,
)
from fencepost.prove.statetable import table_claims
from fencepost.validate import validate

FORMAT, STATES = "fencepost certificate 3", "fencepost state table 1"
COMMON = ("format", "tool", "solver", "digest", "kernel", "program", "rows", "claims")
HINTS: dict[str, tuple[str, ...]] = {FORMAT: ("sums", "loops", "operands", "routes"), STATES: ("tables",)}
"""What the two kinds of certificates, closed forms and tables of relative states, say about the proof."""

Sums = Mapping[str, tuple[list[str], Term]]
"""Sums over their first symbol from 0 on, by name: symbols and summand, which is never negative."""


@dataclass(frozen=True, slots=True)
class RecheckResult:
    """What is wrong with a certificate; one without `problems` proves the `rows` of the `kernel` (its text)."""

    problems: tuple[str, ...]
    name: str = ""
    kernel: str = ""
    rows: tuple[str, ...] = ()
    claims: int = 0


def recheck(certificate: Any, check: Callable[[str], str], parse: Callable[[str], ir.Kernel]) -> RecheckResult:
    """Check a certificate; whatever it holds, it is judged and never raises.

    Args:
        check: answers SMT-LIB declarations and assertions with "unsat", "sat" or "unknown"; ValueError for bad text.
        parse: reads the text of a kernel; ValueError for a text that is none.
    """
    try:
        if (form := certificate["format"]) not in HINTS:
            raise Rejected("format: not one that this checker knows")
        fields_of(certificate, *COMMON, *HINTS[form])
        lines, kernel = certificate["kernel"], parse("\n".join(certificate["kernel"]))
        expected = {
            "program": fingerprint(lines), "rows": rows(kernel),
            "kernel": None if validate(kernel) else print_kernel(kernel).splitlines(),
            "digest": fingerprint({key: value for key, value in certificate.items() if key != "digest"}),
        }  # fmt: skip
        for key, value in expected.items():
            if certificate[key] != value:
                raise Rejected(f"{key}: not what follows from the rest")
        for key, form in (("tool", r"fencepost \d+(\.\w+)+"), ("solver", r"[a-z]\w* \d+(\.\w+)+")):
            if not re.fullmatch(form, certificate[key]):
                raise Rejected(f"{key} names no version")
        problems, claims, recorded = [], derive(kernel, certificate), certificate["claims"]
        if [c["name"] for c in recorded] != [c["name"] for c in claims]:
            raise Rejected("the list of claims does not follow from the program")
        for old, claim in zip(recorded, claims, strict=True):
            if old != claim:
                problems.append(f"{claim['name']}: not what follows from the program")
            elif (answer := check(claim["smtlib"])) != claim["answer"]:
                problems.append(f"{claim['name']}: {answer}, not {claim['answer']}")
        return RecheckResult(tuple(problems), kernel.name, print_kernel(kernel), tuple(rows(kernel)), len(claims))
    except (Rejected, ModelError) as error:
        return RecheckResult((str(error),))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        return RecheckResult((f"malformed: {type(error).__name__}: {error}",))


def fingerprint(data: Any) -> str:
    """The hash of JSON data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def rows(kernel: ir.Kernel) -> list[str]:
    """The rows that a certificate is about: those of the kernel's report that say something about this very program."""
    others = (Row.SKEW, Row.TRANSLATION, Row.PIPELINE)
    found = [row.id for row, applies in applicable(kernel).items() if applies and row not in others]
    if not found:
        raise Rejected("there is nothing to prove about this kernel")
    return found


def schemes(kernel: ir.Kernel) -> list[str]:
    """The credit schemes that a kernel claims to be right for."""
    both = kernel.fifos and kernel.credits == "both"
    return ["per_slot", "batched"] if both else [kernel.credits if kernel.fifos else "per_slot"]


def derive(kernel: ir.Kernel, hints: dict[str, Any]) -> list[dict[str, str]]:
    """Everything that must be shown about a kernel, as texts with the answers that show it.

    Raises:
        Rejected, ValueError and their like: the hints do not fit the kernel.
    """
    compiled = compile_kernel(kernel)
    if compiled.unsupported:
        raise Rejected("a part of the kernel could not be read")
    resolver, sums = Resolver(compiled), _sums(hints.get("sums", []), compiled.parameters)
    assumed = assumption(resolver)
    found = [{"name": "0 the assumes can hold", "smtlib": query(assumed), "answer": "sat"}]
    summands = ((f"summands of {s}", (le(0, symbols[0]), lt(body, 0))) for s, (symbols, body) in sums.items())
    for name, conditions in (*summands, *_claims(resolver, hints)):
        asserted = both(assumed, *conditions)
        if asserted != "false":
            found.append({"name": f"{len(found)} {name}", "smtlib": query(asserted, sums), "answer": "unsat"})
    return found


def assumption(resolver: Resolver) -> Term:
    """What is assumed of the parameters."""
    outside, compiled = Walk(resolver, "", {}, {}), resolver.compiled
    own = "block" in compiled.parameters and "block" not in compiled.kernel.parameters
    if any(name.startswith("op.") for name, *_ in applications(map(outside.truth, compiled.kernel.assumes))):
        raise Rejected("whether the assumes can hold depends on products or quotients of unknowns")
    return both(*map(outside.truth, compiled.kernel.assumes), le(0, "$block") if own else "true")


def _claims(resolver: Resolver, hints: dict[str, Any]) -> Iterator[Claim]:
    names = schemes(resolver.compiled.kernel)
    if "tables" in hints:
        yield from table_claims(resolver, dict(zip(names, fields_of(hints["tables"], *names), strict=True)))
        return
    loops: dict[str, Formulas] = {}
    for loop, formulas in hints["loops"].items():
        loops[loop] = {key: None if formula is None else read(formula) for key, formula in formulas.items()}
    operands = {k: [tuple(map(read, row)) for row in _sorted(found)] for k, found in hints["operands"].items()}
    walks = {p.agent: Walk(resolver, p.agent, loops, operands).run() for p in resolver.compiled.programs}
    if loops or operands:
        raise Rejected(f"there is no {next(iter({**loops, **operands}))}")
    for walk in walks.values():
        yield from walk.claims
    for scheme, routes in zip(names, fields_of(hints["routes"], *names), strict=True):
        for _, _, hops, writer in (fields_of(r, "one", "other", "hops", "writer") for r in _sorted(routes)):
            spots = (spot for spot in (writer, *(spot for hop in hops for spot in hop[1:])) if spot is not None)
            if any(type(part) is not list for part in (hops, *hops, *spots)):
                raise Rejected("a route is not made of lists")
        for name, conditions in Statement(resolver, walks, scheme == "batched", routes).all():
            yield f"{scheme}: {name}", conditions


def _sorted(items: list[Any]) -> list[Any]:
    """Items of which each stands once, and in order."""
    texts = [json.dumps(item, sort_keys=True) for item in items]
    if type(items) is not list or any(one >= other for one, other in pairwise(texts)):
        raise Rejected("items twice or out of order")
    return items


def _sums(items: list[Any], parameters: tuple[str, ...]) -> Sums:
    """Definitions of sums, each over what comes before it."""
    found: dict[str, tuple[list[str], Term]] = {}
    for symbols, body in items:
        known = {*symbols, *(f"${plain(p)}" for p in parameters)}
        if symbols != [f"${k}" for k in range(len(symbols))]:
            raise Rejected(f"{symbols} are not the symbols of a sum")
        for name, *operands in applications([term := read(body)]):
            if (name.startswith("sum.") and name not in found) or not (operands or name in known or name[:2] == "f."):
                raise Rejected(f"sum.{len(found)} uses {name}")
        found[f"sum.{len(found)}"] = symbols, term
    return found


def query(condition: Term, sums: Sums | None = None) -> str:
    """SMT-LIB text that is satisfiable exactly if a condition can hold, given the laws of sums."""
    sums = sums or {}
    for _ in range(2):  # the laws of sums inside sums
        condition = both(condition, *_laws([a for a in applications([condition]) if a[0] in sums], sums))
    asserted = conjuncts(condition)
    signatures = {(name, len(operands)) for name, *operands in applications(asserted)}
    lines = [f"(declare-fun {name} ({' '.join(['Int'] * n)}) Int)" for name, n in sorted(signatures)]
    return "\n".join([*lines, *(f"(assert {text(c)})" for c in asserted)]) + "\n"


def _laws(points: list[Term], sums: Sums) -> Iterator[Term]:
    """S(0) = 0, S(x) >= 0, S(x + 1) = S(x) + body(x), S(x) + body(x) <= S(y) for x < y: at the points of a query."""
    for point in points:
        yield either(no(eq(point[1], 0)), eq(point, 0))
        yield either(lt(point[1], 0), le(0, point))
    for one, other in permutations(points, 2) if len(points) <= 14 else ():
        if (one[0], one[2:]) == (other[0], other[2:]):
            (symbols, body), x, y = sums[one[0]], one[1], other[1]
            reached = add(one, subst(dict(zip(symbols, one[1:], strict=True)))(body))
            yield either(no(eq(add(x, 1), y)), eq(reached, other))
            yield either(lt(x, 0), le(y, x), le(reached, other))
