"""Which copies are only a second name for a value that has just been computed?

Loop-carried values and values of branches are read with a copy at the end of each block.  Mostly the copied value is
computed in that block for nothing else; then the computation can write the name itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from fencepost import ir
from fencepost.defuse import Flows
from fencepost.rewrite import copy


def coalesce(body: Iterable[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Return the statements of a function without the copies that can go.

    `target := value` goes if one statement of the same block defines `value`, nothing else in the function mentions
    `value` outside the stretch from that statement to the copy, and nothing in between touches `target`.
    """
    stmts = tuple(body)
    return _block(stmts, _mentions(stmts))


def _mentions(stmts: Iterable[ir.Stmt]) -> Counter[str]:
    found: Counter[str] = Counter()
    for stmt in stmts:
        for node in ir.walk(stmt):
            match node:
                case ir.Access(name=name) | ir.Assign(name=name) | ir.Name(id=name) | ir.For(var=name):
                    found[name] += 1
                case ir.Push(value=name) | ir.Pop(value=name) | ir.Free(value=name):
                    found[name] += 1
                case _:
                    pass
    return found


def _block(stmts: tuple[ir.Stmt, ...], everywhere: Counter[str]) -> tuple[ir.Stmt, ...]:
    body = [_inside(s, everywhere) for s in stmts]
    at = 0
    while at < len(body):
        pair = _copied(body[at])
        first = None if pair is None else _definition(body, at, *pair, everywhere)
        if pair is None or first is None:
            at += 1
            continue
        target, value = pair
        renamed = [copy(s, {}, {value: target}) for s in body[first + 1 : at]]
        everywhere[target] += everywhere.pop(value) - 2
        body[first : at + 1] = [_defining(body[first], value, target), *renamed]
    return tuple(body)


def _inside(stmt: ir.Stmt, everywhere: Counter[str]) -> ir.Stmt:
    match stmt:
        case ir.For(body=body):
            return replace(stmt, body=_block(body, everywhere))
        case ir.If(branches=branches, orelse=orelse):
            arms = tuple((condition, _block(arm, everywhere)) for condition, arm in branches)
            return replace(stmt, branches=arms, orelse=_block(orelse, everywhere))
        case _:
            return stmt


def _copied(stmt: ir.Stmt) -> tuple[str, str] | None:
    """Target and value of a copy."""
    match stmt:
        case ir.DataOp(renames=True, writes=(ir.Access(name=target),), reads=(ir.Access(name=value),)):
            return target, value
        case ir.Assign(name=target, value=ir.Name(id=value)):
            return target, value
    return None


def _definition(body: list[ir.Stmt], at: int, target: str, value: str, everywhere: Counter[str]) -> int | None:
    """The statement that may write `target` instead of `value`, None if there is none."""
    first = next((i for i in range(at - 1, -1, -1) if _defines(body[i], value)), None)
    if first is None or _mentions(body[first : at + 1])[value] != everywhere[value]:
        return None
    flows = Flows(())
    between = flows.of_all(body[first + 1 : at])
    if value in between.may or target in between.may or target in between.exposed:
        return None
    if value in flows.of(body[first]).exposed or target in flows.of(body[first]).may:
        return None
    return first


def _defines(stmt: ir.Stmt, value: str) -> bool:
    match stmt:
        case ir.DataOp(writes=writes):
            return any(a.name == value for a in writes)
        case ir.Pop(value=name) | ir.Assign(name=name):
            return name == value
    return False


def _defining(stmt: ir.Stmt, value: str, target: str) -> ir.Stmt:
    """`stmt` with its definition of `value` renamed; what it reads stays."""
    match stmt:
        case ir.DataOp():
            return replace(stmt, writes=tuple(replace(a, name=target) if a.name == value else a for a in stmt.writes))
        case ir.Pop():
            return replace(stmt, value=target)
        case ir.Assign():
            return replace(stmt, name=target)
    raise AssertionError("only these define a value")
