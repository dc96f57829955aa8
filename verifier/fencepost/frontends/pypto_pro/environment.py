"""What do the names of a module, or of a function that builds kernels, stand for at compile time?"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.pypto_pro.values import Class, Fixed, OneOf, Unknown, Unreadable, Value


@dataclass(eq=False, slots=True)
class Environment:
    """One scope: its names, and the scope around it."""

    source: Source
    parent: Environment | None = None
    names: dict[str, Value] = field(default_factory=dict)
    function: ast.FunctionDef | None = None
    defaults: dict[int, Value] = field(default_factory=dict)  # of the functions defined here, by the expressions' ids
    shared: set[str] = field(default_factory=set)  # names that functions defined here assign
    escapes: Mapping[str, float] = field(default_factory=dict)  # of the module: how deep things of a name may change
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
                if may_change(value, self.outermost().escapes.get(name, math.inf)):
                    return scope.changing(name)
                return value
            scope = scope.parent
        raise KeyError(name)

    def member(self, owner: str, name: str) -> Value:
        """The value of a name of this scope, which is that of a class `owner`, looked up from outside.

        Raises:
            KeyError: the class does not define it.
        """
        value = self.names[name]
        escapes = self.outermost().escapes
        around = escapes.get(owner, math.inf)
        depth = min(around - 1, escapes.get(name, math.inf))
        if around <= 0 or may_change(value, depth) or (isinstance(value, Class) and around < math.inf):
            return self.changing(f"{owner}_{name}")
        return value

    def changing(self, name: str) -> Unknown:
        """What stands for a value of this scope that may be changed in place."""
        return Unknown(name, "it may be changed in place", Changing(self))

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


@dataclass(frozen=True, slots=True)
class Changing:
    """The origin of what may be changed in place while the names of the scope are made, but not afterwards."""

    scope: Environment


def may_change(value: Value, depth: float) -> bool:
    """Whether a value is or holds a list or dictionary, that deep inside it or deeper."""
    match value:
        case tuple():
            changes = depth <= 0 and not isinstance(value, Fixed)
            return changes or any(may_change(v, depth - 1) for v in value)
        case dict():
            return depth <= 0 or any(may_change(v, depth - 1) for v in value.values())
        case OneOf(values=values):
            return any(may_change(v, depth) for v in values)
        case _:
            return False
