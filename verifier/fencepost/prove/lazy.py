"""Which unknown truths are asked for later than they are stored?  They are left open until then.

`first = value(t) < 0`, handed on and asked a few trips later, is stored as `value(t)`, and asked `first < 0`.  A truth
that is not asked for in the end is never decided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from fencepost import ir
from fencepost.passes.slices import reads
from fencepost.prove.delays import LOST
from fencepost.rewrite import rebuild


def lazy(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """The program with unknown truths left open; a scalar that is used in any other way stays as it is."""
    later = _later(body)
    if not later:
        return body
    return tuple(cast(ir.Stmt, rebuild(stmt, _Asking(later).change)) for stmt in body)


def _later(body: Iterable[ir.Stmt]) -> frozenset[str]:
    given: dict[str, list[ir.Expr]] = defaultdict(list)
    refused: set[str] = set()
    for stmt in body:
        for node in ir.walk(stmt):
            match node:
                case ir.Assign(name=name, value=value):
                    given[name].append(value)
                case ir.For(var=name) | ir.Cursor(name=name) | ir.Pop(value=name) | ir.Bind(name=name):
                    refused.add(name)
            refused |= _otherwise(node)
    found = {name for name, values in given.items() if any(map(_open, values))} - refused
    while True:
        # names that are copied from each other are left open together or not at all
        linked = {name for name, values in given.items() for v in values if isinstance(v, ir.Name) and v.id in found}
        linked |= {v.id for name in found for v in given[name] if isinstance(v, ir.Name)}
        larger = found | linked
        wrong = {n for n in larger if n in refused or not all(_fits(v, larger) for v in given.get(n, [ir.Name(n)]))}
        if not wrong and larger == found:
            return frozenset(found)
        if wrong:
            refused |= wrong
            found = {n for n in found if n not in _reached(wrong, given)}
        else:
            found = larger
        if not found:
            return frozenset()


def _reached(names: set[str], given: dict[str, list[ir.Expr]]) -> set[str]:
    """The names that some of `names` are copied to or from, over any number of copies."""
    links: dict[str, set[str]] = defaultdict(set)
    for name, values in given.items():
        for value in values:
            if isinstance(value, ir.Name):
                links[name].add(value.id)
                links[value.id].add(name)
    found, work = set(names), list(names)
    while work:
        for name in links[work.pop()]:
            if name not in found:
                found.add(name)
                work.append(name)
    return found


def _open(value: ir.Expr) -> bool:
    return (
        isinstance(value, ir.Compare)
        and isinstance(value.first, ir.Call)
        and value.rest in ((("<", ir.Int(0)),), ((">=", ir.Int(0)),))
    )


def _fits(value: ir.Expr, names: set[str]) -> bool:
    match value:
        case ir.Int(value=0 | 1):
            return True
        case ir.Name(id=name):
            return name in names
        case ir.Call(function=function):
            return function.startswith(LOST)
    return _open(value)


def _otherwise(node: ir.Node) -> set[str]:
    """The scalars that a node uses in another way than copying them or asking whether they hold."""
    match node:
        case ir.Assign(value=ir.Name()):
            return set()
        case ir.If(branches=branches):
            return set().union(*(_asked_otherwise(condition) for condition, _ in branches))
        case ir.For(start=start, stop=stop, step=step):
            return reads(start, stop, step)
        case ir.Assign() | ir.StoreField() | ir.DataOp() | ir.SetCross() | ir.WaitCross() | ir.SyncSrc() | ir.SyncDst():
            return reads(node)
        case ir.Push() | ir.Pop() | ir.Free() | ir.MutexLock() | ir.MutexUnlock() | ir.Assert():
            return reads(node)
    return set()


def _asked_otherwise(condition: ir.Expr) -> set[str]:
    match condition:
        case ir.Name():
            return set()
        case (
            ir.Compare(first=ir.Name(), rest=(("==" | "!=", ir.Int(value=0)),))
            | ir.Compare(first=ir.Name(), rest=(("==", ir.Int(value=1)),))
        ):
            return set()
    return reads(condition)


@dataclass(frozen=True, slots=True)
class _Asking:
    later: frozenset[str]

    def change(self, node: ir.Node) -> ir.Node:
        match node:
            case ir.Assign(name=name, value=ir.Int(value=value)) if name in self.later:
                return replace(node, value=ir.Int(-value))
            case ir.Assign(name=name, value=ir.Compare(first=first, rest=((op, _),))) if name in self.later:
                return replace(node, value=first if op == "<" else ir.Binary("-", ir.Int(-1), first))
            case ir.If(branches=branches):
                return replace(node, branches=tuple((self._asked(condition), arm) for condition, arm in branches))
        return node

    def _asked(self, condition: ir.Expr) -> ir.Expr:
        match condition:
            case ir.Name(id=name) if name in self.later:
                return ir.Compare(condition, (("<", ir.Int(0)),), span=condition.span)
            case ir.Compare(first=ir.Name(id=name) as first, rest=((op, ir.Int(value=value)),)) if name in self.later:
                holds = (op == "==") == (value == 1)
                return ir.Compare(first, (("<" if holds else ">=", ir.Int(0)),), span=condition.span)
        return condition
