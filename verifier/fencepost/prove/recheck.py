"""Recheck: does a certificate prove what it says?

The kernel in the certificate is read, everything that must be shown about it is stated anew (`checker`, `claims`),
compared with the recorded list, and put to a solver.  Nothing of the search for proofs is used.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

from fencepost import ir
from fencepost.applicability import applicable
from fencepost.findings import Row
from fencepost.model.effects import Resolver
from fencepost.model.program import Compiled, ModelError, compile_kernel
from fencepost.printer import print_kernel
from fencepost.prove import plainterms
from fencepost.prove.checker import Formulas, Rejected, Walk, parameter
from fencepost.prove.claims import Hop, Route, Spot, Statement
from fencepost.prove.plainterms import Malformed, Renaming, Term, add, both, conjuncts, either, eq, le, lt, no, read
from fencepost.validate import validate

FORMAT = "fencepost certificate 2"
KEYS = (
    "format", "tool", "solver", "digest", "kernel", "program", "rows", "sums", "loops", "operands", "routes", "claims",
)  # fmt: skip


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
        return _recheck(certificate, check, parse)
    except (Rejected, Malformed, ModelError) as error:
        return RecheckResult((str(error),))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        return RecheckResult((f"malformed: {type(error).__name__}: {error}",))


def _recheck(certificate: Any, check: Callable[[str], str], parse: Callable[[str], ir.Kernel]) -> RecheckResult:
    _fields(certificate, *KEYS)
    if certificate["format"] != FORMAT:
        raise Rejected("not a certificate of this format")
    for key, form in (("tool", r"fencepost \d+(\.\w+)+"), ("solver", r"[a-z]\w* \d+(\.\w+)+")):
        if not re.fullmatch(form, certificate[key]):
            raise Rejected(f"{key} names no version")
    if certificate["digest"] != fingerprint({k: v for k, v in certificate.items() if k != "digest"}):
        raise Rejected("the digest does not fit the content")
    kernel = parse("\n".join(certificate["kernel"]))
    if validate(kernel) or print_kernel(kernel).splitlines() != certificate["kernel"]:
        raise Rejected("the kernel is not written as it is read")
    if certificate["program"] != fingerprint(certificate["kernel"]):
        raise Rejected("the hash of the program does not fit the kernel")
    if certificate["rows"] != rows(kernel):
        raise Rejected("the rows are not those of the kernel")
    problems, claims, recorded = [], derive(kernel, certificate), certificate["claims"]
    if [c["name"] for c in recorded] != [c["name"] for c in claims]:
        raise Rejected("the list of claims does not follow from the program")
    for old, claim in zip(recorded, claims, strict=True):
        if old != claim:
            problems.append(f"{claim['name']}: not what follows from the program")
        elif (answer := check(claim["smtlib"])) != claim["answer"]:
            problems.append(f"{claim['name']}: {answer}, not {claim['answer']}")
    return RecheckResult(tuple(problems), kernel.name, print_kernel(kernel), tuple(rows(kernel)), len(claims))


def _fields(item: Any, *names: str) -> list[Any]:
    """The values of an object that has exactly these fields."""
    if not isinstance(item, dict) or item.keys() != set(names):
        raise Rejected(f"not an object with the fields {', '.join(names)}")
    return [item[name] for name in names]


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


# ------------------------------------------------------------------------------------------------ claims


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum over the first symbol from 0 on; no summand is negative."""

    name: str
    symbols: tuple[str, ...]
    body: Term


def derive(kernel: ir.Kernel, hints: dict[str, Any]) -> list[dict[str, str]]:
    """Everything that must be shown about a kernel, as texts with the answers that show it.

    Raises:
        Rejected: the hints do not fit the kernel.
    """
    compiled = compile_kernel(kernel)
    if compiled.unsupported:
        raise Rejected("a part of the kernel could not be read")
    sums = {sum_.name: sum_ for sum_ in _sums(hints["sums"], compiled)}
    assumed = _assumptions(compiled)
    found = [{"name": "0 the assumes can hold", "smtlib": query(both(*assumed), {}), "answer": "sat"}]
    summands = ((f"summands of {s.name}", (le(0, s.symbols[0]), lt(s.body, 0))) for s in sums.values())
    for name, conditions in (*summands, *_claims(compiled, hints)):
        asserted = both(*assumed, *conditions)
        if asserted != "false":
            found.append({"name": f"{len(found)} {name}", "smtlib": query(asserted, sums), "answer": "unsat"})
    return found


def schemes(kernel: ir.Kernel) -> list[str]:
    """The credit schemes that a kernel claims to be right for."""
    if not kernel.fifos:
        return ["per_slot"]
    return ["per_slot", "batched"] if kernel.credits == "both" else [kernel.credits]


def _claims(compiled: Compiled, hints: dict[str, Any]) -> Iterator[tuple[str, tuple[Term, ...]]]:
    loops: dict[str, Formulas] = {}
    for name, formulas in hints["loops"].items():
        loops[name] = {key: None if term is None else read(term) for key, term in formulas.items()}
    operands = {name: [tuple(map(read, row)) for row in _sorted(rows)] for name, rows in hints["operands"].items()}
    resolver = Resolver(compiled)
    walks = {p.agent: Walk(compiled, p.agent, resolver, loops, operands).run() for p in compiled.programs}
    if loops or operands:
        raise Rejected(f"there is no {next(iter({**loops, **operands}))}")
    for walk in walks.values():
        yield from walk.claims
    routes = _fields(hints["routes"], *schemes(compiled.kernel))
    for scheme, items in zip(schemes(compiled.kernel), routes, strict=True):
        statement = Statement(resolver, walks, scheme == "batched", tuple(map(_route, _sorted(items))))
        yield from ((f"{scheme}: {name}", conditions) for name, conditions in statement.all())


def _sorted(items: list[Any]) -> list[Any]:
    """Items of which each stands once, and in order."""
    texts = [json.dumps(item, sort_keys=True) for item in items]
    if any(one >= other for one, other in pairwise(texts)):
        raise Rejected("items twice or out of order")
    return items


def _route(item: Any) -> Route:
    one, other, hops, writer = _fields(item, "one", "other", "hops", "writer")
    each = [(kind, _spot(source), target and _spot(target)) for kind, source, target in hops]
    return Route(one, other, tuple(Hop(*hop) for hop in each), writer and _spot(writer))


def _spot(item: Any) -> Spot:
    event, at = item
    return event, read(at)


def _sums(items: list[Any], compiled: Compiled) -> Iterator[Sum]:
    """Definitions of sums, each over what comes before it."""
    for i, (others, body) in enumerate(items):
        found = Sum(f"sum.{i}", tuple(f"${k}" for k in range(others + 1)), read(body))
        known = {*found.symbols, *map(parameter, compiled.parameters)}
        for name, *operands in plainterms.applications([found.body]):
            later = re.fullmatch(r"sum\.(\d+)", name)
            if (later and int(later[1]) >= i) or not (operands or name in known or name.startswith("f.")):
                raise Rejected(f"{found.name} uses {name}")
        yield found


def _assumptions(compiled: Compiled) -> tuple[Term, ...]:
    walk = Walk(compiled, "", Resolver(compiled), {}, {})
    found = [walk.truth(a) for a in compiled.kernel.assumes]
    if "block" in compiled.parameters and "block" not in compiled.kernel.parameters:
        found.append(le(0, parameter("block")))
    return tuple(found)


# ------------------------------------------------------------------------------------------------ queries


def query(condition: Term, sums: dict[str, Sum]) -> str:
    """SMT-LIB text that is satisfiable exactly if a condition can hold, given the laws of sums."""
    asserted = [*conjuncts(condition)]
    for _ in range(2):  # the laws of sums inside sums
        laws = _laws([a for a in plainterms.applications(asserted) if a[0] in sums], sums)
        asserted = [*dict.fromkeys((*asserted, *(law for law in laws if law != "true")))]
    signatures = {(name, len(operands)) for name, *operands in plainterms.applications(asserted)}
    lines = [f"(declare-fun {name} ({' '.join(['Int'] * n)}) Int)" for name, n in sorted(signatures)]
    return "\n".join([*lines, *(f"(assert {plainterms.text(c)})" for c in asserted)]) + "\n"


def _laws(points: list[Term], sums: dict[str, Sum]) -> Iterator[Term]:
    """S(0) = 0, S(x) >= 0, S(x + 1) = S(x) + body(x), S(x) + body(x) <= S(y) for x < y: at the points of a query."""
    for point in points:
        yield either(no(eq(point[1], 0)), eq(point, 0))
        yield either(lt(point[1], 0), le(0, point))
    for one, other in permutations(points, 2) if len(points) <= 14 else ():
        if (one[0], one[2:]) == (other[0], other[2:]):
            sum_, x, y = sums[one[0]], one[1], other[1]
            reached = add(one, Renaming(dict(zip(sum_.symbols, one[1:], strict=True)))(sum_.body))
            yield either(no(eq(add(x, 1), y)), eq(reached, other))
            yield either(lt(x, 0), le(y, x), le(reached, other))
