"""In which other forms can a kernel be written?  Shapes that the random pipelines do not have by themselves.

Each operator yields (what it did, the kernel in another form).  Most forms mean the same as the kernel; `reassigned`,
`from_memory`, `in_last_trip` and `at_one_sum` change it.  Some are ill-formed; the callers find out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import cast

from fencepost import ir
from fencepost.printer import print_expr
from fencepost.rewrite import rebuild

from .editing import Path, bodies, inner, with_body
from .mutations import SYNCS, Mutant, Operators, text

_ZERO, _ONE = ir.Int(0), ir.Int(1)


def _sum(left: ir.Expr, op: str, right: ir.Expr) -> ir.Expr:
    return ir.Binary(op, left, right)  # type: ignore[arg-type]


def _replaced(body: tuple[ir.Stmt, ...], name: str, by: ir.Expr) -> tuple[ir.Stmt, ...]:
    def change(node: ir.Node) -> ir.Node:
        return by if isinstance(node, ir.Name) and node.id == name else node

    return tuple(cast(ir.Stmt, rebuild(stmt, change)) for stmt in body)


def _loops(kernel: ir.Kernel) -> Iterator[tuple[Path, tuple[ir.Stmt, ...], int, ir.For]]:
    for path, body in bodies(kernel):
        for i, stmt in enumerate(body):
            if isinstance(stmt, ir.For) and stmt.step == _ONE and stmt.stage is None:
                yield path, body, i, stmt


def counted_down(kernel: ir.Kernel) -> Iterator[Mutant]:
    """A loop counts down, and its body uses the position from the other end."""
    for path, body, i, loop in _loops(kernel):
        mirrored = _sum(_sum(_sum(loop.start, "+", loop.stop), "-", _ONE), "-", ir.Name(loop.var))
        start, stop = _sum(loop.stop, "-", _ONE), _sum(loop.start, "-", _ONE)
        new = replace(loop, start=start, stop=stop, step=ir.Int(-1), body=_replaced(loop.body, loop.var, mirrored))
        yield f"count down {loop.var}", with_body(kernel, path, (*body[:i], new, *body[i + 1 :]))


def below_zero(kernel: ir.Kernel) -> Iterator[Mutant]:
    """A loop starts two below where it did, or three above."""
    for path, body, i, loop in _loops(kernel):
        for op, back, by in (("-", "+", ir.Int(2)), ("+", "-", ir.Int(3))):
            there = _replaced(loop.body, loop.var, _sum(ir.Name(loop.var), back, by))
            new = replace(loop, start=_sum(loop.start, op, by), stop=_sum(loop.stop, op, by), body=there)
            yield f"{loop.var} {op} {by.value}", with_body(kernel, path, (*body[:i], new, *body[i + 1 :]))


def striding(kernel: ir.Kernel) -> Iterator[Mutant]:
    """A loop goes in steps of three."""
    for path, body, i, loop in _loops(kernel):
        if loop.start == _ZERO:
            three = ir.Int(3)
            there = _replaced(loop.body, loop.var, ir.Binary("//", ir.Name(loop.var), three))
            new = replace(loop, stop=ir.Binary("*", loop.stop, three), step=three, body=there)
            yield f"steps for {loop.var}", with_body(kernel, path, (*body[:i], new, *body[i + 1 :]))


def in_two_sections(kernel: ir.Kernel) -> Iterator[Mutant]:
    """A section is cut into two of the same core."""
    for k, section in enumerate(kernel.body):
        if isinstance(section, ir.Section):
            for i in range(1, len(section.body)):
                one, two = (replace(section, body=part) for part in (section.body[:i], section.body[i:]))
                new = (*kernel.body[:k], one, two, *kernel.body[k + 1 :])
                yield f"section cut at {text(section.body[i])}", replace(kernel, body=new)


def outside(kernel: ir.Kernel) -> Iterator[Mutant]:
    """Scalars are worked out before the sections."""
    for k, section in enumerate(kernel.body):
        if isinstance(section, ir.Section) and len(section.body) > 1:
            for i, stmt in enumerate(section.body):
                if isinstance(stmt, ir.Assign):
                    rest = replace(section, body=(*section.body[:i], *section.body[i + 1 :]))
                    new = (stmt, *kernel.body[:k], rest, *kernel.body[k + 1 :])
                    yield f"outside: {text(stmt)}", replace(kernel, body=new)


def through_scalars(kernel: ir.Kernel) -> Iterator[Mutant]:
    """The end of a loop is a scalar of its own."""
    for path, body, i, loop in _loops(kernel):
        if path and not isinstance(loop.stop, ir.Name | ir.Int):
            name = f"end_{loop.var}"
            new = (ir.Assign(name, loop.stop), replace(loop, stop=ir.Name(name)))
            yield f"{name} = {print_expr(loop.stop)}", with_body(kernel, path, (*body[:i], *new, *body[i + 1 :]))


def twice_asked(kernel: ir.Kernel) -> Iterator[Mutant]:
    """A guard stands under another one that says less."""
    for path, body in bodies(kernel):
        for i, stmt in enumerate(body):
            if isinstance(stmt, ir.If) and len(stmt.branches) == 1 and not stmt.orelse:
                condition, then = stmt.branches[0]
                if isinstance(condition, ir.Compare) and condition.rest[0][0] in ("==", "<", ">"):
                    ((op, right),) = condition.rest
                    wider = ir.Compare(condition.first, ((">=" if op == "==" else f"{op}=", right),))  # type: ignore[arg-type]
                    new = ir.If(((wider, (ir.If(((condition, then),)),)),))
                    yield f"twice: {text(stmt)}", with_body(kernel, path, (*body[:i], new, *body[i + 1 :]))


def in_last_trip(kernel: ir.Kernel) -> Iterator[Mutant]:
    """One synchronisation of a loop happens only in its last trip, or in all others."""
    for path, body, i, loop in _loops(kernel):
        last = _sum(loop.stop, "-", _ONE)
        for j, stmt in enumerate(loop.body):
            if isinstance(stmt, SYNCS):
                for op in ("==", "<"):
                    guarded = ir.If(((ir.Compare(ir.Name(loop.var), ((op, last),)), (stmt,)),))  # type: ignore[arg-type]
                    new = replace(loop, body=(*loop.body[:j], guarded, *loop.body[j + 1 :]))
                    yield f"{op} last: {text(stmt)}", with_body(kernel, path, (*body[:i], new, *body[i + 1 :]))


def reassigned(kernel: ir.Kernel) -> Iterator[Mutant]:
    """A scalar gets another value somewhere, for some values of a parameter."""
    for k, section in enumerate(kernel.body):
        if not isinstance(section, ir.Section):
            continue
        names = dict.fromkeys(n.name for n in ir.walk(section) if isinstance(n, ir.Assign))
        for path, body in bodies(kernel):
            if not path or path[0][0] != k:
                continue
            for i in range(len(body) + 1):
                for name in names:
                    for p in kernel.parameters[:2]:
                        for value in (_ZERO, _sum(ir.Name(name), "+", _ONE), ir.Name(p)):
                            change = ir.Assign(name, value)
                            new = ir.If(((ir.Compare(ir.Name(p), ((">", ir.Int(2)),)), (change,)),))
                            where = with_body(kernel, path, (*body[:i], new, *body[i:]))
                            yield f"{name} = {print_expr(value)} if {p} > 2", where


def from_memory(kernel: ir.Kernel) -> Iterator[Mutant]:
    """A parameter is read from memory in one section, or in all of them."""
    for p in kernel.parameters:
        there: ir.Expr = ir.Call(f"{p}_of", (_ZERO,))
        places = [k for k, s in enumerate(kernel.body) if isinstance(s, ir.Section)]
        for chosen in (places, places[:1], places[1:]):
            body = list(kernel.body)
            for k in chosen:
                section = cast(ir.Section, body[k])
                body[k] = replace(section, body=_replaced(section.body, p, there))
            yield f"{p} from memory in {len(chosen)} sections", replace(kernel, body=tuple(body))


def at_one_sum(kernel: ir.Kernel) -> Iterator[Mutant]:
    """One synchronisation is left out where a scalar made of several unknowns has one value."""
    for path, body in bodies(kernel):
        variables = _variables(kernel, path)
        if variables is None:
            continue
        unknowns = [*map(ir.Name, (*variables, *kernel.parameters)), ir.Call("word", (_ZERO,))]
        for i, stmt in enumerate(body):
            if isinstance(stmt, SYNCS):
                for a, b in pairwise(unknowns):
                    for made in _made_of(a, b):
                        guard = ir.Compare(ir.Name("total"), (("!=", ir.Int(3)),))
                        new = (ir.Assign("total", made), ir.If(((guard, (stmt,)),)))
                        where = with_body(kernel, path, (*body[:i], *new, *body[i + 1 :]))
                        yield f"not where {print_expr(made)} is 3: {text(stmt)}", where


def _variables(kernel: ir.Kernel, path: Path) -> list[str] | None:
    """The variables of the loops around a statement list, the innermost first; None outside of sections."""
    found: list[str] = []
    section = False
    body: tuple[ir.Node, ...] = kernel.body
    for at, which in path:
        node = body[at]
        section |= isinstance(node, ir.Section)
        if isinstance(node, ir.For):
            found.insert(0, node.var)
        body = inner(node)[which]
    return found if section else None


def _made_of(a: ir.Expr, b: ir.Expr) -> Iterator[ir.Expr]:
    two = ir.Int(2)
    yield from (_sum(a, "+", b), _sum(b, "-", a), _sum(_sum(a, "*", two), "-", b), _sum(a, "*", b))
    yield _sum(_sum(a, "//", two), "+", b)
    yield ir.Call("max", (_sum(a, "-", b), _ZERO))


SHAPES: Operators = (
    counted_down, below_zero, striding, in_two_sections, outside, through_scalars, twice_asked, in_last_trip,
    reassigned, from_memory, at_one_sum,
)  # fmt: skip
