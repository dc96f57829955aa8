"""As what is a scalar defined where an operation stands?

A definition is known if it happens on every way to the operation, in the same trip of the loops around it, and nothing
it depends on has changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fencepost import ir
from fencepost.frontends.pypto_pro.simplify import Body

Known = dict[str, ir.Expr]


def definitions(body: Body, wanted: Callable[[ir.DataOp], bool]) -> dict[int, Known]:
    """The definitions known at each operation of a program that is wanted, by the operation's id."""
    found: dict[int, Known] = {}
    _walk(body, {}, wanted, found)
    return found


def _walk(body: Body, known: Known, wanted: Callable[[ir.DataOp], bool], found: dict[int, Known]) -> None:
    for stmt in body:
        match stmt:
            case ir.DataOp():
                if wanted(stmt):
                    found[id(stmt)] = dict(known)
            case ir.Assign(name=name, value=value):
                _forget(known, {name}, set())
                if not any(isinstance(n, ir.Name) and n.id == name for n in ir.walk(value)):
                    known[name] = value
            case ir.Cursor(name=name):
                _forget(known, {name}, set())
            case ir.StoreField(ring=ring):
                _forget(known, set(), {ring})
            case ir.For():
                _forget(known, *_changed((stmt,)))
                _walk(stmt.body, dict(known), wanted, found)
            case ir.If():
                for _, branch in stmt.branches:
                    _walk(branch, dict(known), wanted, found)
                _walk(stmt.orelse, dict(known), wanted, found)
                _forget(known, *_changed((stmt,)))


def _changed(body: Iterable[ir.Stmt]) -> tuple[set[str], set[str]]:
    """The scalars and rings that statements change."""
    names: set[str] = set()
    rings: set[str] = set()
    for stmt in body:
        for node in ir.walk(stmt):
            match node:
                case ir.Assign(name=name) | ir.Cursor(name=name) | ir.For(var=name):
                    names.add(name)
                case ir.StoreField(ring=ring):
                    rings.add(ring)
    return names, rings


def _forget(known: Known, names: set[str], rings: set[str]) -> None:
    """Drop the definitions of scalars that change, and those that depend on them."""
    for name in list(known):
        if name in names or any(
            (isinstance(n, ir.Name) and n.id in names) or (isinstance(n, ir.Field) and n.ring in rings)
            for n in ir.walk(known[name])
        ):
            del known[name]
