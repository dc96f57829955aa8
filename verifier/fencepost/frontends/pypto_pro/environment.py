"""What do the names of a module, or of a function that builds kernels, stand for at compile time?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.pypto_pro.values import Class, OneOf, Unknown, Unreadable, Value


@dataclass(eq=False, slots=True)
class Environment:
    """One scope: its names, and the scope around it."""

    source: Source
    parent: Environment | None = None
    names: dict[str, Value] = field(default_factory=dict)
    function: ast.FunctionDef | None = None
    defaults: dict[int, Value] = field(default_factory=dict)  # of the functions defined here, by the expressions' ids
    shared: set[str] = field(default_factory=set)  # names that functions defined here assign
    changed: dict[int, Value] = field(default_factory=dict)  # in the module's scope: what is changed in place, by id
    hidden: bool = False  # something that is not read may assign any name

    def find(self, name: str) -> Value:
        """The value of a name.

        Raises:
            KeyError: no scope defines it.
        """
        scope: Environment | None = self
        while scope is not None:
            if name in scope.names:
                value = scope.names[name]
                changed = self.outermost().changed
                if changed and any(id(part) in changed for part in mutable_parts(value)):
                    return Unknown(name, "it is changed in place", ("changed", id(value)))
                return value
            scope = scope.parent
        raise KeyError(name)

    def default(self, node: ast.expr) -> Value:
        """The default value of a parameter of a function defined here, as it was when the function was defined.

        Raises:
            Unreadable: it is not known.
        """
        if id(node) not in self.defaults:
            raise Unreadable("this default value is not known", node)
        return self.defaults[id(node)]

    def outermost(self) -> Environment:
        """The scope of the module."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


def mutable_parts(value: Value) -> Iterator[Value]:
    """The lists, dictionaries and classes that a value consists of: what may be changed in place."""
    stack = [value]
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        match current:
            case tuple():
                yield current
                stack.extend(current)
            case dict():
                yield current
                stack.extend(current.values())
            case OneOf(values=values):
                stack.extend(values)
            case Class():
                yield current
