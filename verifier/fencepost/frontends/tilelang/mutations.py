"""Which names of a text may stand for something that changes after it was made?

The text is read once and in order, so a list that is changed in place has no items that could be relied on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fencepost.frontends.rebinding import CHANGERS, CHANGING

_CHANGING = frozenset(
    {"append", "extend", "insert", "pop", "remove", "reverse", "sort", "clear", "__setitem__", "__delitem__"}
)


def mutated(module: ast.Module) -> frozenset[str]:
    """The names whose lists are changed in place, under whatever name."""
    changed: set[str] = set()
    same: dict[str, set[str]] = {}
    functions = {n.name: n for n in ast.walk(module) if isinstance(n, ast.FunctionDef)}

    def link(one: ast.AST, other: ast.AST) -> None:
        for a in _names(one):
            for b in _names(other):
                same.setdefault(a, set()).add(b)
                same.setdefault(b, set()).add(a)

    for node in ast.walk(module):
        match node:
            case ast.Subscript(base, _, ast.Store() | ast.Del()):
                changed |= set(_names(base))
            case ast.Call(ast.Attribute(ast.Name(base), member), [first, *_]) if base in CHANGERS or member in CHANGING:
                changed |= {base, *_names(first)}
            case ast.Call(ast.Attribute(base, member)) if member in _CHANGING:
                changed |= set(_names(base))
            case ast.Call(ast.Name(member), [first, *_]) if member in CHANGING:
                changed |= set(_names(first))
            case ast.AugAssign(ast.Name(name), ast.Add() | ast.Mult(), ast.List() | ast.ListComp()):
                changed.add(name)
            case ast.Assign(targets, value):
                for target in targets:
                    link(target, value)
            case ast.For(target, over) | ast.comprehension(target, over):
                link(target, over)
            case ast.Call(ast.Name(name), arguments, keywords) if name in functions:
                given = functions[name].args
                for parameter, argument in zip((*given.posonlyargs, *given.args), arguments, strict=False):
                    link(ast.Name(parameter.arg), argument)
                for keyword in keywords:
                    link(ast.Name(keyword.arg or ""), keyword.value)
    work = list(changed)
    while work:
        fresh = same.get(work.pop(), set()) - changed
        changed |= fresh
        work += fresh
    return frozenset(changed)


def _names(node: ast.AST) -> Iterator[str]:
    """The names for which an expression may be another name: its own, and those of what it holds."""
    stack = [node]
    while stack:
        one = stack.pop()
        match one:
            case ast.Name(name):
                yield name
            case ast.Tuple(items) | ast.List(items):
                stack += items
            case ast.Starred(inner) | ast.Subscript(inner) | ast.Attribute(inner):
                stack.append(inner)
            case ast.IfExp(_, first, second):
                stack += [first, second]
            case ast.BoolOp(_, parts):
                stack += parts
