"""Values: what is an index, an operand, an assertion or an id that is not allowed called? (rows 1 and 6)"""

from __future__ import annotations

from collections.abc import Iterator

from fencepost import ir
from fencepost.diagnose.repair import Signature
from fencepost.diagnose.texts import at
from fencepost.facts import Fact
from fencepost.model.executor import Run
from fencepost.model.issue import BadValue
from fencepost.model.program import constant
from fencepost.printer import print_expr

_CODES = {"range": "603", "reserved": "604", "mode": "605", "lane": "603"}


def values(run: Run) -> Iterator[Fact]:
    """101, 104, 105, 603 to 605: one fact per place in the text."""
    for bad in run.bad_values:
        faults: Signature = frozenset({("value", bad.kind, bad.span)})
        code, data = _bad(run, bad)
        yield Fact(code, bad.span, (*data, ("agent", bad.agent)), cause=(code, bad.span), faults=faults)
    for op in run.outside:
        faults = frozenset({("outside", id(op.stmt))})
        for access, index in op.effect.out_of_range:
            span = access.span if access.span.line else op.stmt.span
            name, depth = access.name, run.resolver.layout.depths[access.name]
            if access.parts is not None and (access.index is None or 0 <= index < depth):
                name, depth = f"the parts of {name}", constant(access.parts, run.compiled.scalars, "number of parts")
            data = (("name", name), ("index", str(index)), ("depth", str(depth)), ("agent", op.effect.agent))
            yield Fact("101", span, data, cause=("101", span), operations=(at(op),), faults=faults)
    for op in run.illegal:
        for illegal in op.effect.illegal:
            code = _CODES[illegal.kind]
            yield Fact(
                code,
                op.stmt.span,
                (("detail", illegal.message),),
                cause=(code, op.stmt.span),
                operations=(at(op),),
                faults=frozenset({("illegal", id(op.stmt))}),
            )


def _bad(run: Run, bad: BadValue) -> tuple[str, tuple[tuple[str, str], ...]]:
    match bad.node:
        case ir.Item(name=name):
            depth = len(run.compiled.tuples[name])
            return "101", (("name", name), ("index", str(bad.value)), ("depth", str(depth)))
        case ir.Field(ring=ring) | ir.StoreField(ring=ring):
            size = next(p.rings[ring][1] for p in run.compiled.programs)
            return "101", (("name", ring), ("index", str(bad.value)), ("depth", str(size)))
        case ir.Assert(condition=condition):
            return "105", (("condition", print_expr(condition)),)
        case ir.Binary():
            return "104", (("detail", f"{print_expr(bad.node)}: {bad.message}"),)
    raise AssertionError(f"no rule for a bad value at {type(bad.node).__name__}")
