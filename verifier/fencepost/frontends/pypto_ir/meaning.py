"""Which message does a pop mean, by the name that the compiler gave to what it pops?

A compiler that splits a program into halves names the popped value after the pushed one (`s1__tile` arrives as
`s1__tile_Vec`), and numbers copies (`s1__tile_Vec_3`).  Where several values travel on one ring, that is the only trace
in the text of which one is meant.  Names that people choose are never looked at.
"""

from __future__ import annotations

import re
from dataclasses import replace

from fencepost import ir

_ORIGIN = re.compile(r"\w+?__(?:tile|(?:ssa|phi|iter|rv|idx)_v\d+)")


def with_meanings(sections: list[ir.Section]) -> tuple[list[ir.Section], bool]:
    """Give the messages of a ring a `task` where it carries several values: the number of the value by origin.

    Pops whose name has no pushed value as its origin get none.  The second result says whether any task was given.
    """
    origins: dict[tuple[ir.Core, ir.Expr], dict[str, int]] = {}
    for section in sections:
        for node in ir.walk(section):
            if isinstance(node, ir.Push):
                known = origins.setdefault((section.core, node.id), {})
                known.setdefault(_origin(node.value) or node.value, len(known))
    several = {ring: known for ring, known in origins.items() if len(known) > 1}
    if not several:
        return sections, False
    given = False

    def task(ring: tuple[ir.Core, ir.Expr], name: str) -> ir.Expr | None:
        nonlocal given
        origin = _origin(name)
        number = several.get(ring, {}).get(origin) if origin is not None else None
        given = given or number is not None
        return None if number is None else ir.Int(number)

    def block(stmts: tuple[ir.Stmt, ...], core: ir.Core) -> tuple[ir.Stmt, ...]:
        return tuple(statement(s, core) for s in stmts)

    def statement(stmt: ir.Stmt, core: ir.Core) -> ir.Stmt:
        match stmt:
            case ir.Push():
                return replace(stmt, task=task((core, stmt.id), stmt.value))
            case ir.Pop():
                return replace(stmt, task=task((stmt.sender, stmt.id), stmt.value))
            case ir.For():
                return replace(stmt, body=block(stmt.body, core))
            case ir.If():
                arms = tuple((condition, block(arm, core)) for condition, arm in stmt.branches)
                return replace(stmt, branches=arms, orelse=block(stmt.orelse, core))
            case _:
                return stmt

    return [replace(s, body=block(s.body, s.core)) for s in sections], given


def _origin(name: str) -> str | None:
    found = _ORIGIN.match(name)
    return found.group() if found else None
