"""Recheck: does a certificate prove what it says?

The kernel in the certificate is read, everything that must be shown about it is stated anew (`checker`, `claims`),
compared with the recorded list, and put to a solver.  Nothing of the search for proofs is used.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fencepost import ir
from fencepost.applicability import applicable
from fencepost.findings import Row
from fencepost.model.effects import Resolver
from fencepost.model.program import ModelError, compile_kernel
from fencepost.printer import print_kernel
from fencepost.prove.plainterms import Rejected, Term, applications, both, conjuncts, le, text
from fencepost.prove.plainvalues import Evaluator, plain
from fencepost.prove.statetable import fields_of, table_claims
from fencepost.validate import validate

FORMAT = "fencepost certificate 4"
FIELDS = ("format", "tool", "solver", "digest", "kernel", "program", "rows", "tables", "claims")


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
        if certificate["format"] != FORMAT:
            raise Rejected("format: not one that this checker knows")
        fields_of(certificate, *FIELDS)
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
        problems, claims, recorded = [], derive(kernel, certificate["tables"]), certificate["claims"]
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
    found = certifiable(kernel)
    if not found:
        raise Rejected("there is nothing to prove about this kernel")
    return [row.id for row in found]


def certifiable(kernel: ir.Kernel) -> list[Row]:
    """Those rows, if there are any."""
    others = (Row.SKEW, Row.TRANSLATION, Row.PIPELINE)
    return [row for row, applies in applicable(kernel).items() if applies and row not in others]


def schemes(kernel: ir.Kernel) -> list[str]:
    """The credit schemes that a kernel claims to be right for."""
    both = kernel.fifos and kernel.credits == "both"
    return ["per_slot", "batched"] if both else [kernel.credits if kernel.fifos else "per_slot"]


def derive(kernel: ir.Kernel, tables: Any) -> list[dict[str, str]]:
    """Everything that must be shown about a kernel, as texts with the answers that show it.

    Raises:
        Rejected, ValueError and their like: the tables do not fit the kernel.
    """
    compiled = compile_kernel(kernel)
    if compiled.unsupported:
        raise Rejected("a part of the kernel could not be read")
    resolver, names = Resolver(compiled), schemes(kernel)
    assumed = assumption(resolver)
    found = [{"name": "0 the assumes can hold", "smtlib": query(assumed), "answer": "sat"}]
    for name, conditions in table_claims(resolver, dict(zip(names, fields_of(tables, *names), strict=True))):
        asserted = both(assumed, *conditions)
        if asserted != "false":
            found.append({"name": f"{len(found)} {name}", "smtlib": query(asserted), "answer": "unsat"})
    return found


def assumption(resolver: Resolver) -> Term:
    """What is assumed of the parameters."""
    compiled = resolver.compiled
    asked: list[tuple[str, Term]] = []
    outside = Evaluator(compiled, "", {p: f"${plain(p)}" for p in compiled.parameters}, lambda *a: asked.append(a))
    assumed = [outside.truth(condition) for condition in compiled.kernel.assumes]
    own = "block" in compiled.parameters and "block" not in compiled.kernel.parameters
    if any(name.startswith("op.") for name, *_ in applications(assumed)):
        raise Rejected("whether the assumes can hold depends on products or quotients of unknowns")
    if any(name.endswith(": index") and inside != "true" for name, inside in asked):
        raise Rejected("whether the assumes can hold depends on elements that may be outside of a tuple")
    return both(*assumed, le(0, "$block") if own else "true")


def query(condition: Term) -> str:
    """SMT-LIB text that is satisfiable exactly if a condition can hold."""
    asserted = conjuncts(condition)
    signatures = {(name, len(operands)) for name, *operands in applications(asserted)}
    lines = [f"(declare-fun {name} ({' '.join(['Int'] * n)}) Int)" for name, n in sorted(signatures)]
    return "\n".join([*lines, *(f"(assert {text(c)})" for c in asserted)]) + "\n"
