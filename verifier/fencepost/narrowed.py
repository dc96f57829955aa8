"""Does a transformed kernel assume more than the kernel before the transformation did?

What is shown about a kernel holds for the values that it assumes.  A text that assumes more covers fewer values, and
about the others nothing is shown any more.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fencepost import ir
from fencepost.facts import Fact
from fencepost.findings import Related
from fencepost.model.functions import Point, show
from fencepost.model.program import compile_kernel
from fencepost.model.shapes import allowed, shapes
from fencepost.printer import print_expr
from fencepost.prover import satisfying

_PATIENCE = 10.0
"""Seconds for one assume."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """`fact`: the new text excludes values that the old one allows.  `open`: whether it does is not known, and why."""

    fact: Fact | None = None
    open: str = ""


def narrowed(before: ir.Kernel, after: ir.Kernel, deadline: float) -> Narrowed:
    """Compare the assumes of two valid kernels with the same parameters; `deadline` is in terms of `time.monotonic`.

    Raises:
        ModelError: the assumes cannot be modelled.
    """
    old, new = {c.name: c for c in before.constants}, {c.name: c for c in after.constants}
    open_: list[str] = []
    for fact in after.assumes:
        used = _constants(fact, new)
        if fact in before.assumes and all(old.get(name) == new[name] for name in used):
            continue
        text = print_expr(fact)
        if any(name in old and old[name] != new[name] for name in used):
            open_.append(f"{text} is about a constant that had another value")
            continue
        constants = (*before.constants, *(c for c in after.constants if c.name in used - old.keys()))
        excluded = ir.Kernel(
            before.name,
            before.parameters,
            before.target,
            assumes=(*before.assumes, ir.Unary("not", fact, span=fact.span)),
            constants=constants,
        )
        found = _values(excluded, deadline)
        if found is None:
            open_.append(f"whether the text before only allows values with {text} is not known")
        elif found != "none":
            return Narrowed(_fact(fact, found, before))
    return Narrowed(open="; ".join(open_))


def _values(kernel: ir.Kernel, deadline: float) -> str | None:
    """Values that satisfy the assumes of a kernel, small ones if possible; "none" if there are none, None: unknown."""
    compiled = compile_kernel(kernel)
    for shape in shapes(compiled):
        table = shape.table()
        if allowed(compiled, shape.values, table):  # it is; `table` notes what functions are
            return _told(zip(compiled.parameters, shape.values, strict=True), table.used)
    found = satisfying(compiled, min(deadline, time.monotonic() + _PATIENCE))
    if found is None or found == "none":
        return found
    return _told(found[0].items(), found[1])


def _told(values: Iterable[tuple[str, int]], functions: Mapping[Point, int]) -> str:
    pairs = [*values, *((show(point), value) for point, value in sorted(functions.items()))]
    return ", ".join(f"{name} = {value}" for name, value in pairs)


def _fact(assume: ir.Expr, values: str, before: ir.Kernel) -> Fact:
    detail = f"the text before also covers {values}; this text assumes {print_expr(assume)}"
    spans = (Related(old.span, "assumed before") for old in before.assumes)
    related = tuple(r for r in spans if r.span != ir.NOWHERE)
    return Fact("701", assume.span, (("detail", detail),), related, ("narrowed", assume.span), static=True)


def _constants(expr: ir.Expr, known: Mapping[str, ir.Constant]) -> set[str]:
    """The constants that an expression stands on, through others."""
    found: set[str] = set()
    stack: list[ir.Node] = [expr]
    while stack:
        for node in ir.walk(stack.pop()):
            name = node.id if isinstance(node, ir.Name) else node.name if isinstance(node, ir.Item) else ""
            if name in known and name not in found:
                found.add(name)
                value = known[name].value
                stack += value if isinstance(value, tuple) else (value,)
    return found


__all__ = ["Narrowed", "narrowed"]
