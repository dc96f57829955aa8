"""Values: what is an index, an operand, an assertion or an id that is not allowed called? (rows 1 and 6)"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from fencepost import ir
from fencepost.diagnose.case import Case
from fencepost.diagnose.repair import Signature
from fencepost.diagnose.texts import at
from fencepost.facts import Fact
from fencepost.findings import Related
from fencepost.model.executor import Run
from fencepost.model.issue import BadValue
from fencepost.model.program import constant
from fencepost.printer import print_expr

_CODES = {"range": "603", "reserved": "604", "mode": "605", "lane": "603"}


def values(case: Case) -> Iterator[Fact]:
    """101, 104, 105, 603 to 605: one fact per place in the text, or per counter that is negative in one run."""
    run = case.run
    for members in _together(run.bad_values):
        bad = members[0]
        faults: Signature = frozenset(("value", b.kind, b.span) for b in members)
        code, data = _bad(run, bad)
        cause = (code, bad.span)
        case.aliases += [((code, b.span), cause) for b in members[1:]]
        others = {b.span: b for b in members if b.span != bad.span}
        places = tuple(Related(b.span, f"likewise: {print_expr(b.node)} on {b.agent}") for b in others.values())  # type: ignore[arg-type]
        yield Fact(code, bad.span, (*data, ("agent", bad.agent)), places, cause, faults=faults)
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


def _together(found: Iterable[BadValue]) -> list[list[BadValue]]:
    """Bad values by place; negative operands of the same names, and one index of one tuple, are one mistake."""
    groups: dict[Hashable, list[BadValue]] = {}
    for bad in found:
        key: Hashable = (bad.kind, bad.span)
        if bad.kind == "negative" and isinstance(bad.node, ir.Binary):
            names = frozenset(n.id for n in ir.walk(bad.node.left) if isinstance(n, ir.Name))
            key = names or key
        elif bad.kind == "index" and isinstance(bad.node, ir.Item):
            key = (bad.node.name, bad.node.index)
        groups.setdefault(key, []).append(bad)
    return list(groups.values())


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
