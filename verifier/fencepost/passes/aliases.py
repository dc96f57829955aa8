"""Which names only stand for an expression for a while?  Their uses are written out.

`ki = ctx[p].ki` followed by `if ki == 0` becomes `if ctx[p].ki == 0` as long as neither the record nor `p` changes.
The assignment itself stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from fencepost import ir
from fencepost.passes.slices import reads
from fencepost.rewrite import rebuild

_N = TypeVar("_N", bound=ir.Node)

_LARGEST = 16  # nodes of an expression that is written out


@dataclass(frozen=True, slots=True)
class Aliases:
    """The pass."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel with names written out."""
        items = tuple(
            replace(item, body=_block(item.body, {})) if isinstance(item, ir.Section) else item for item in kernel.body
        )
        return replace(kernel, body=items)


Meaning = Mapping[str, ir.Expr]


def _block(body: tuple[ir.Stmt, ...], known: Meaning) -> tuple[ir.Stmt, ...]:
    meaning = dict(known)
    found: list[ir.Stmt] = []
    for stmt in body:
        found.append(_statement(stmt, meaning))
        changed = changes(stmt)
        meaning = {name: value for name, value in meaning.items() if not changed & {name, *reads(value)}}
        new = found[-1]
        if isinstance(new, ir.Assign) and _plain(new.value) and new.name not in reads(new.value):
            meaning[new.name] = new.value
    return tuple(found)


def _plain(value: ir.Expr) -> bool:
    """Whether an expression is short, and neither a quotient nor the value of an unknown function."""
    nodes = list(ir.walk(value))
    return len(nodes) <= _LARGEST and not any(
        (isinstance(n, ir.Call) and n.function not in ir.INTERPRETED) or (isinstance(n, ir.Binary) and n.op == "//")
        for n in nodes
    )


def _statement(stmt: ir.Stmt, meaning: Meaning) -> ir.Stmt:
    if not meaning:
        if isinstance(stmt, ir.For):
            return replace(stmt, body=_block(stmt.body, {}))
        if not isinstance(stmt, ir.If):
            return stmt
    match stmt:
        case ir.For(start=start, stop=stop, body=body):
            changed = changes(stmt)
            inside = {name: value for name, value in meaning.items() if not changed & {name, *reads(value)}}
            return replace(
                stmt, start=_written(start, meaning), stop=_written(stop, meaning), body=_block(body, inside)
            )
        case ir.If(branches=branches, orelse=orelse):
            arms = tuple((_written(condition, meaning), _block(arm, meaning)) for condition, arm in branches)
            return replace(stmt, branches=arms, orelse=_block(orelse, meaning))
    return _written(stmt, meaning)


def _written(node: _N, meaning: Meaning) -> _N:
    def change(current: ir.Node) -> ir.Node:
        return meaning.get(current.id, current) if isinstance(current, ir.Name) else current

    return cast(_N, rebuild(node, change))


def changes(stmt: ir.Stmt) -> set[str]:
    """The scalars, fields (`ring.field`) and loop variables that a statement may change."""
    found: set[str] = set()
    for node in ir.walk(stmt):
        match node:
            case ir.Assign(name=name) | ir.Cursor(name=name):
                found.add(name)
            case ir.StoreField(ring=ring, field=name):
                found.add(f"{ring}.{name}")
            case ir.For(var=var):
                found.add(var)
    return found
