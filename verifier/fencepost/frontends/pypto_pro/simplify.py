"""What is left of a lowered program when everything that no operation depends on is dropped?

Liveness ignores the order of statements, so a scalar that is read anywhere keeps all its assignments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

from fencepost import ir
from fencepost.frontends.pypto_pro.expressions import bounds, opposite

Body = tuple[ir.Stmt, ...]


def prune(body: Body) -> Body:
    """The program of one core without scalars, loops and branches that matter to nothing."""
    return _Pruner().run(body)


@dataclass(slots=True)
class _Pruner:
    names: set[str] = field(default_factory=set)
    fields: set[tuple[str, str]] = field(default_factory=set)
    cursors: set[str] = field(default_factory=set)
    changed: bool = False

    def run(self, body: Body) -> Body:
        while True:
            self.changed = False
            self._mark(body)
            if not self.changed:
                return self._keep(body)

    # ---------------------------------------------------------------------------------------------------------- marking

    def _need(self, *exprs: ir.Node | None) -> None:
        for expr in exprs:
            if expr is None:
                continue
            for node in ir.walk(expr):
                if isinstance(node, ir.Name) and node.id not in self.names:
                    self.names.add(node.id)
                    self.changed = True
                elif isinstance(node, ir.Field) and (node.ring, node.field) not in self.fields:
                    self.fields.add((node.ring, node.field))
                    self.changed = True

    def _mark(self, body: Body) -> bool:
        """Mark what the statements need; says whether any of them matters."""
        matters = False
        for stmt in reversed(body):  # values are mostly needed after they are computed
            matters |= self._mark_one(stmt)
        return matters

    def _mark_one(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Assign(name=name, value=value):
                if name in self.names:
                    self._need(value)
                return name in self.names
            case ir.StoreField(ring=ring, field=name, index=index, value=value):
                if (ring, name) in self.fields:
                    self._need(index, value)
                return (ring, name) in self.fields
            case ir.Cursor(name=name, buffer=buffer, move=move):
                if name in self.names and buffer not in self.cursors:
                    self.cursors.add(buffer)
                    self.changed = True
                return name in self.names or (move == "next" and buffer in self.cursors)
            case ir.For():
                inner = self._mark(stmt.body)
                if inner:
                    self._need(stmt.start, stmt.stop, stmt.step)
                    self._leaving(stmt.body)
                return inner
            case ir.If():
                inner = False
                for _, branch in stmt.branches:
                    inner |= self._mark(branch)
                inner |= self._mark(stmt.orelse)
                if inner:
                    self._need(*(c for c, _ in stmt.branches))
                return inner
            case ir.Pass() | ir.Break() | ir.Continue():
                return False
        self._need(stmt)
        return True

    def _leaving(self, body: Body) -> None:
        """Conditions under which a loop that matters is left or continued."""
        for stmt in body:
            if isinstance(stmt, ir.If) and _leaves(stmt):
                self._need(*(c for c, _ in stmt.branches))
                for _, branch in stmt.branches:
                    self._leaving(branch)
                self._leaving(stmt.orelse)

    # ---------------------------------------------------------------------------------------------------------- keeping

    def _keep(self, body: Body) -> Body:
        kept: list[ir.Stmt] = []
        for stmt in body:
            kept += self._keep_one(stmt)
        return tuple(kept)

    def _keep_one(self, stmt: ir.Stmt) -> Iterable[ir.Stmt]:
        match stmt:
            case ir.Assign(name=name):
                return (stmt,) if name in self.names else ()
            case ir.StoreField(ring=ring, field=name):
                return (stmt,) if (ring, name) in self.fields else ()
            case ir.Cursor(name=name, buffer=buffer, move=move):
                return (stmt,) if name in self.names or (move == "next" and buffer in self.cursors) else ()
            case ir.For():
                body = self._keep(stmt.body)
                return (replace(stmt, body=body),) if any(not _only_leaves(s) for s in body) else ()
            case ir.If():
                return self._keep_if(stmt)
            case ir.Pass():
                return ()
        return (stmt,)

    def _keep_if(self, stmt: ir.If) -> Iterable[ir.Stmt]:
        branches = [(c, self._keep(b)) for c, b in stmt.branches]
        orelse = self._keep(stmt.orelse)
        if len(orelse) == 1 and isinstance(orelse[0], ir.If):
            branches += orelse[0].branches
            orelse = orelse[0].orelse
        if all(b == orelse for _, b in branches):
            return orelse
        while branches and not orelse and not branches[-1][1]:
            branches.pop()
        if len(branches) == 1 and not branches[0][1]:
            condition = branches[0][0]
            return (replace(stmt, branches=((opposite(condition, condition.span), orelse),), orelse=()),)
        return (
            replace(stmt, branches=tuple((c, b or (ir.Pass(span=stmt.span),)) for c, b in branches), orelse=orelse),
        )


def _leaves(stmt: ir.Stmt) -> bool:
    """Whether a break or continue stands in the statement, of the loop around it."""
    match stmt:
        case ir.Break() | ir.Continue():
            return True
        case ir.If():
            return any(_leaves(s) for _, b in stmt.branches for s in b) or any(_leaves(s) for s in stmt.orelse)
    return False


def _only_leaves(stmt: ir.Stmt) -> bool:
    """Whether the statement does nothing but leave or continue the loop."""
    match stmt:
        case ir.Break() | ir.Continue() | ir.Pass():
            return True
        case ir.If():
            return all(_only_leaves(s) for _, b in stmt.branches for s in b) and all(
                _only_leaves(s) for s in stmt.orelse
            )
    return False


# ------------------------------------------------------------------------------------------------- facts about scalars


@dataclass(slots=True)
class Definitions:
    """Every value that each scalar and record field of a program is given."""

    names: dict[str, list[ir.Expr]] = field(default_factory=dict)
    fields: dict[tuple[str, str], list[ir.Expr]] = field(default_factory=dict)
    loops: dict[str, list[ir.For]] = field(default_factory=dict)
    cursors: set[str] = field(default_factory=set)

    @staticmethod
    def of(bodies: Iterable[Body]) -> Definitions:
        """Collect the definitions in all statements of several programs."""
        found = Definitions()
        for body in bodies:
            for stmt in body:
                for node in ir.walk(stmt):
                    match node:
                        case ir.Assign(name=name, value=value):
                            found.names.setdefault(name, []).append(value)
                        case ir.StoreField(ring=ring, field=name, value=value):
                            found.fields.setdefault((ring, name), []).append(value)
                        case ir.For(var=var):
                            found.loops.setdefault(var, []).append(node)
                        case ir.Cursor(name=name):
                            found.cursors.add(name)
        return found

    def reaching(self, functions: set[str]) -> tuple[set[str], set[tuple[str, str]]]:
        """Scalars and fields whose value depends on one of the uninterpreted functions (or names) given."""
        names: set[str] = set()
        fields: set[tuple[str, str]] = set()

        def tainted(expr: ir.Expr) -> bool:
            return any(
                (isinstance(n, ir.Call) and n.function in functions)
                or (isinstance(n, ir.Name) and (n.id in names or n.id in functions))
                or (isinstance(n, ir.Field) and (n.ring, n.field) in fields)
                for n in ir.walk(expr)
            )

        while True:
            before = len(names) + len(fields)
            for variable, loops in self.loops.items():
                if any(tainted(x.start) or tainted(x.step) for x in loops):
                    names.add(variable)
            for field_, values in self.fields.items():
                if any(tainted(v) for v in values):
                    fields.add(field_)
            for name, values in self.names.items():
                if any(tainted(v) for v in values):
                    names.add(name)
            if len(names) + len(fields) == before:
                return names, fields


def clamp(body: Body, functions: set[str], definitions: Definitions) -> tuple[Body, list[ir.Span]]:
    """Take values read from memory as not negative where they are divided.

    The device's `/` and `%` round towards zero, the IR's towards minus infinity; lengths and positions that come from
    memory are not negative, so nothing is lost.  Returns the program and the places that were changed.
    """
    names, fields = definitions.reaching(functions)
    places: list[ir.Span] = []

    def tainted(expr: ir.Expr) -> bool:
        return any(
            (isinstance(n, ir.Call) and n.function in functions)
            or (isinstance(n, ir.Name) and n.id in names)
            or (isinstance(n, ir.Field) and (n.ring, n.field) in fields)
            for n in ir.walk(expr)
        )

    def change(expr: ir.Expr) -> ir.Expr:
        if not isinstance(expr, ir.Binary) or expr.op not in ("//", "%"):
            return expr
        left, right = expr.left, expr.right
        low, _ = bounds(left)
        if (low is None or low < 0) and tainted(left):
            left = ir.Call("max", (left, ir.Int(0, span=left.span)), span=left.span)
        if not isinstance(right, ir.Int) and tainted(right):
            right = ir.Call("max", (right, ir.Int(1, span=right.span)), span=right.span)
        if left is expr.left and right is expr.right:
            return expr
        places.append(expr.span)
        return replace(expr, left=left, right=right)

    return tuple(cast(ir.Stmt, rewrite(s, change)) for s in body), places


def rewrite(node: ir.Node, change: object) -> ir.Node:
    """The node with `change` applied to every expression in it, inner ones first."""
    updates: dict[str, object] = {}
    for name in node.__dataclass_fields__:
        if name == "span":
            continue
        old = getattr(node, name)
        new = _rewritten(old, change)
        if new is not old:
            updates[name] = new
    result = replace(node, **cast(Any, updates)) if updates else node
    return change(result)  # type: ignore[operator,no-any-return]


def _rewritten(value: object, change: object) -> object:
    if isinstance(value, ir.Node):
        return rewrite(value, change)
    if isinstance(value, tuple):
        items = tuple(_rewritten(v, change) for v in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value


def statements(body: Body) -> Iterator[ir.Stmt]:
    """Every statement of a program, nested ones too, in text order."""
    for stmt in body:
        yield stmt
        match stmt:
            case ir.For():
                yield from statements(stmt.body)
            case ir.If():
                for _, branch in stmt.branches:
                    yield from statements(branch)
                yield from statements(stmt.orelse)


def map_statements(body: Body, change: object) -> Body:
    """The program with `change` applied to every statement that holds no others."""
    result: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.For():
                result.append(replace(stmt, body=map_statements(stmt.body, change)))
            case ir.If():
                branches = tuple((c, map_statements(b, change)) for c, b in stmt.branches)
                result.append(replace(stmt, branches=branches, orelse=map_statements(stmt.orelse, change)))
            case _:
                result.append(change(stmt))  # type: ignore[operator]
    return tuple(result)
