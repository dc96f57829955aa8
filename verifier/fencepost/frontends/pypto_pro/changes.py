"""What may a piece of host code change in place, itself or through the functions that it calls?"""

from __future__ import annotations

import ast

from fencepost.frontends.pypto_pro.environment import Environment
from fencepost.frontends.pypto_pro.evaluate import bound_names
from fencepost.frontends.pypto_pro.values import Class, Function, Value
from fencepost.frontends.rebinding import CHANGERS, CHANGING

MAX_DEPTH = 40
"""Calls inside each other that are followed."""

READING = ("get", "keys", "values", "items", "index", "count", "copy")
"""Methods of containers that change nothing."""


class Changes:
    """What code may change in place, through the functions that it calls by name."""

    def __init__(self, scope: Environment, seen: set[int], own: frozenset[str] = frozenset(), depth: int = 0) -> None:
        """`own` names the locals of the function whose code is scanned, `depth` calls down."""
        self.depth = depth
        self.scope = scope
        self.seen = seen
        self.own = own
        self.aliases: dict[str, set[str]] = {}
        self.values: list[Value] = []
        self.locals: set[str] = set()

    def scan(self, code: ast.AST) -> None:
        nodes = list(ast.walk(code))
        for node in nodes:
            match node:
                case ast.Assign(targets=[*targets], value=value):
                    for target in targets:
                        self._alias(target, value)
                case ast.For(target=target, iter=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._alias(target, value)
        for node in nodes:
            match node:
                case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()):
                    self._changed(root_name(owner))
                case ast.Attribute(value=owner, ctx=ast.Store() | ast.Del()):
                    self._changed(root_name(owner))
                case ast.AugAssign(target=ast.Name(id=name)):
                    self._changed(name)
                case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method not in READING:
                    self._changed(root_name(owner), method=True)
                case ast.Call(func=ast.Name(id=name)) if name not in self.own:
                    self._called(name, node)
                case ast.Attribute(value=owner, attr="__dict__"):
                    self._changed(root_name(owner))
            match node:
                case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in CHANGING:
                    self._changed(root_name(first))
                case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[first, *_]):
                    if name in CHANGING or root_name(owner) in CHANGERS:
                        self._changed(root_name(first))

    def _alias(self, target: ast.expr, value: ast.expr) -> None:
        root = root_name(value)
        if isinstance(target, ast.Name) and root is not None and target.id in self.own:
            self.aliases.setdefault(target.id, set()).add(root)

    def _changed(self, root: str | None, method: bool = False) -> None:
        stack, done = [root], set[str]()
        while stack:
            name = stack.pop()
            if name is None or name in done:
                continue
            done.add(name)
            if name in self.own:
                self.locals.add(name)
                stack += self.aliases.get(name, ())
                continue
            try:
                value = self.scope.find(name)
            except KeyError:
                continue
            if not (method and isinstance(value, Class)):
                self.values.append(value)

    def _called(self, name: str, call: ast.Call) -> None:
        try:
            function = self.scope.find(name)
        except KeyError:
            return
        if not isinstance(function, Function) or id(function.node) in self.seen:
            return
        if self.depth >= MAX_DEPTH:  # anything may be changed
            scope: Environment | None = self.scope
            while scope is not None:
                self.values += scope.names.values()
                scope = scope.parent
            self.locals |= self.own
            return
        self.seen.add(id(function.node))
        parameters = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
        every = {a.arg for a in ast.walk(function.node.args) if isinstance(a, ast.arg)}
        own = frozenset({*every, *bound_names(function.node.body)})
        inner = Changes(function.scope, self.seen, own, self.depth + 1)
        for stmt in function.node.body:
            inner.scan(stmt)
        self.values += inner.values
        given = [*zip(parameters, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
        for parameter, argument in given:
            if parameter in inner.locals:
                self._changed(root_name(argument))


def root_name(node: ast.expr) -> str | None:
    """The name that an element or a member is taken from."""
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
