"""Boundaries: do the guards and loop bounds of the two sides differ? (row 5: 503, 504)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from fencepost import ir
from fencepost.diagnose import edits
from fencepost.diagnose.case import Case
from fencepost.diagnose.texts import at
from fencepost.facts import Fact
from fencepost.findings import Related
from fencepost.model.executor import Run
from fencepost.printer import print_expr

_PAIRS = 60


@dataclass(frozen=True, slots=True)
class _Control:
    """A loop, or branch number `branch` of an `if`, with the loop variables around it, outermost first."""

    node: ir.For | ir.If
    branch: int
    around: tuple[str, ...]


def guards(case: Case) -> Iterator[Fact]:
    """503 and 504: the guard or bound of one side that, replaced by its counterpart, repairs the kernel."""
    kernel = case.repairs.kernel
    pairs = [
        (one, two)
        for core, peer in (("vector", "cube"), ("cube", "vector"))
        for one in _controls(kernel, core)
        for two in _controls(kernel, peer)
        if type(one.node) is type(two.node)
    ]
    pairs.sort(key=lambda pair: abs(len(pair[0].around) - len(pair[1].around)))  # alike in depth first
    most = min(_PAIRS, case.repairs.affordable // 3)  # the others want to be named too
    for one, two, new in islice(_changes(pairs), most):
        edited = edits.replace_statements(kernel, {id(one.node): new})
        if case.repairs.whole(edited):
            fact = _fact(one, two)
            case.accept(fact.cause, edited)
            yield replace(fact, faults=case.repairs.before, operations=_example(case.run))
            return


def _example(run: Run) -> tuple[tuple[str, int], ...]:
    """Operations that show how the run fails."""
    if run.blocked:
        return (at(run.blocked[0].op),)
    if run.leftovers:
        return (at(run.leftovers[0].ops[-1]),)
    return tuple(at(op) for r in run.races[:1] for op in (r.first, r.second))


def _controls(kernel: ir.Kernel, core: str) -> list[_Control]:
    found: list[_Control] = []

    def visit(body: tuple[ir.Stmt, ...], around: tuple[str, ...]) -> None:
        for stmt in body:
            if isinstance(stmt, ir.For):
                found.append(_Control(stmt, 0, around))
                visit(stmt.body, (*around, stmt.var))
            elif isinstance(stmt, ir.If):
                for i, (condition, inner) in enumerate(stmt.branches):
                    if not any(isinstance(n, ir.Name) and n.id == "sub" for n in ir.walk(condition)):
                        found.append(_Control(stmt, i, around))
                    visit(inner, around)
                visit(stmt.orelse, around)

    for item in kernel.body:
        if isinstance(item, ir.Section) and item.core == core:
            visit(item.body, ())
    return [c for c in found if _synchronises(c)]


def _synchronises(control: _Control) -> bool:
    """Only control around synchronisation can make counts differ."""
    node: ir.Node = control.node
    return any(
        isinstance(n, (ir.SetCross, ir.WaitCross, ir.Push, ir.Pop, ir.SyncSrc, ir.SyncDst)) for n in ir.walk(node)
    )


def _changes(pairs: Iterable[tuple[_Control, _Control]]) -> Iterator[tuple[_Control, _Control, ir.Stmt]]:
    """The pairs that make a difference, each once, with the changed statement of the first."""
    seen: set[tuple[int, ir.Stmt]] = set()
    for one, two in pairs:
        new = _like(one, two)
        if new is not None and new != one.node and (id(one.node), new) not in seen:
            seen.add((id(one.node), new))
            yield one, two, new


def _like(one: _Control, two: _Control) -> ir.Stmt | None:
    """`one` with the bounds or the condition of `two`, loop variables renamed by nesting."""
    names = dict(zip(two.around, one.around, strict=False))
    if isinstance(one.node, ir.For) and isinstance(two.node, ir.For):
        start, stop = _rename(two.node.start, names), _rename(two.node.stop, names)
        return replace(one.node, start=start, stop=stop)
    if isinstance(one.node, ir.If) and isinstance(two.node, ir.If):
        branches = list(one.node.branches)
        branches[one.branch] = (_rename(two.node.branches[two.branch][0], names), branches[one.branch][1])
        return replace(one.node, branches=tuple(branches))
    return None


def _rename(expr: ir.Expr, names: dict[str, str]) -> ir.Expr:
    match expr:
        case ir.Name(id=name):
            return replace(expr, id=names.get(name, name))
        case ir.Item():
            return replace(expr, index=_rename(expr.index, names))
        case ir.Field():
            return replace(expr, index=_rename(expr.index, names))
        case ir.Unary():
            return replace(expr, operand=_rename(expr.operand, names))
        case ir.Binary():
            return replace(expr, left=_rename(expr.left, names), right=_rename(expr.right, names))
        case ir.Compare():
            rest = tuple((op, _rename(e, names)) for op, e in expr.rest)
            return replace(expr, first=_rename(expr.first, names), rest=rest)
        case ir.Logic():
            return replace(expr, operands=tuple(_rename(e, names) for e in expr.operands))
        case ir.Choose():
            then, other = _rename(expr.then, names), _rename(expr.other, names)
            return replace(expr, condition=_rename(expr.condition, names), then=then, other=other)
        case ir.Call():
            return replace(expr, arguments=tuple(_rename(e, names) for e in expr.arguments))
    return expr


def _fact(one: _Control, two: _Control) -> Fact:
    side, other = f"line {one.node.span.line}", f"line {two.node.span.line}"
    if isinstance(one.node, ir.For) and isinstance(two.node, ir.For):
        data = (("bound", f"{_trips(one.node)} on {side}"), ("other", f"{_trips(two.node)} on {other}"))
        places = (Related(two.node.span, "the loop of the other side"),)
        return Fact("504", one.node.span, data, places, ("control", one.node.span))
    assert isinstance(one.node, ir.If) and isinstance(two.node, ir.If)
    conditions = [print_expr(c.node.branches[c.branch][0]) for c in (one, two) if isinstance(c.node, ir.If)]
    data = (("guard", f"{conditions[0]} on {side}"), ("other", f"{conditions[1]} on {other}"))
    places = (Related(two.node.span, "the guard of the other side"),)
    return Fact("503", one.node.span, data, places, ("control", one.node.span))


def _trips(loop: ir.For) -> str:
    """`t in range(n)`."""
    bounds = [loop.start, loop.stop] if loop.start != ir.Int(0) or loop.step != ir.Int(1) else [loop.stop]
    bounds += [loop.step] if loop.step != ir.Int(1) else []
    return f"{loop.var} in range({', '.join(map(print_expr, bounds))})"
