"""Which things that a Python text names may be changed in place, or get another name under which they may be?

A list keeps its items if whatever mentions its name only reads it.  All mentions in the text count, whatever the scope.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from fencepost.frontends.rebinding import NAMESPACES, bindings, imports_all

READERS = frozenset(
    {
        "len", "min", "max", "sum", "sorted", "tuple", "list", "enumerate", "zip", "range", "any", "all", "set",
        "frozenset", "reversed", "print", "str", "repr", "isinstance", "bool", "int", "float", "abs",
    }
)  # fmt: skip
"""Functions of Python that change none of their arguments, and give at most their items."""

_METHODS = frozenset({"index", "count", "copy", "get", "keys", "values", "items"})
_NOTHING = math.inf


def escapes(module: ast.Module, language: Collection[str]) -> Mapping[str, float]:
    """How deep the things of each name may change: 0, they themselves; 1, their items; infinity, nothing.

    Args:
        module: the text.
        language: names of modules whose functions change and keep none of their arguments, or of such functions.
    """
    bound = Counter(bindings([module], everywhere=True))
    functions = {
        n.name: n for n in ast.walk(module) if isinstance(n, ast.FunctionDef) and bound[n.name] == 1 and is_plain(n)
    }
    if imports_all(module):
        functions = {}
    parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
    classes = {n.name: _constants(n) for n in ast.walk(module) if isinstance(n, ast.ClassDef) and bound[n.name] == 1}
    around = _Around(parents, functions, classes, frozenset(language), READERS - bound.keys())
    found: dict[str, float] = {}
    given: dict[str, list[tuple[str, tuple[bool, ...]]]] = {}
    for node in ast.walk(module):
        match node:
            case ast.Name(name, ast.Load()):
                depth, steps = around.depth(node)
                if isinstance(depth, str):
                    given.setdefault(depth, []).append((name, steps))
                else:
                    found[name] = min(_through(steps, depth), found.get(name, _NOTHING))
            case ast.AugAssign(ast.Name(name)):
                found[name] = 0
    if any(map(_is_namespace, ast.walk(module))):
        found = dict.fromkeys((*bound, *found), 0)
    work = list(found)
    while work:
        parameter = work.pop()
        for name, steps in given.get(parameter, ()):
            depth = _through(steps, found[parameter])
            if depth < found.get(name, _NOTHING):
                found[name] = depth
                work.append(name)
    return found


def _is_namespace(node: ast.AST) -> bool:
    """Whether a call gives all names that are known where it stands, with what they name."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMESPACES and not node.args
    )


def is_plain(function: ast.FunctionDef) -> bool:
    """Whether the name of a function stands for what its text says: nothing is put around it, or it is a macro."""
    return not function.decorator_list or (
        len(function.decorator_list) == 1
        and isinstance(function.decorator_list[0], ast.Attribute)
        and function.decorator_list[0].attr == "macro"
    )


def _constants(node: ast.ClassDef) -> frozenset[str]:
    """Names that a class assigns in its body, and that are not functions."""
    names = Counter(bindings(node.body))
    assigned = Counter(bindings(s for s in node.body if isinstance(s, (ast.Assign, ast.AnnAssign))))
    return frozenset(n for n, count in assigned.items() if count == names[n])


def _through(steps: tuple[bool, ...], depth: float) -> float:
    """How deep a thing may change of which something around it or in it, step by step, may change that deep."""
    for into in reversed(steps):
        depth = depth + 1 if into else max(depth - 1, 0)
    return depth


@dataclass(frozen=True, slots=True)
class _Around:
    """What is around the mentions of names."""

    parents: Mapping[ast.AST, ast.AST]
    functions: Mapping[str, ast.FunctionDef]
    classes: Mapping[str, Collection[str]]
    language: Collection[str]
    readers: Collection[str]

    def depth(self, node: ast.expr) -> tuple[float | str, tuple[bool, ...]]:
        """How deep something may change, or the parameter that it becomes, and the steps to that from an expression.

        A step goes into something (True: an item of it is taken) or out of it (False: it becomes an item).
        """
        steps: list[bool] = []
        while True:
            parent = self.parents[node]
            match parent:
                case ast.Subscript(value, _, ast.Load()) if value is node:
                    steps.append(True)
                case ast.Attribute(ast.Name(name), member, ast.Load()) if member in self.classes.get(name, ()):
                    steps.append(True)
                case ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
                    steps.append(False)
                case ast.IfExp(test) if test is not node:
                    pass
                case ast.BoolOp():
                    pass
                case _:
                    return self._end(node, parent), tuple(steps)
            assert isinstance(parent, ast.expr)
            node = parent

    def _end(self, node: ast.expr, parent: ast.AST) -> float | str:
        """How deep an expression may change because of what uses it."""
        match parent:
            case ast.Call(func) if func is not node:
                return self._argument(parent, node, None)
            case ast.keyword(word):
                call = self.parents[parent]
                return self._argument(call, node, word) if isinstance(call, ast.Call) and word is not None else 0
            case ast.Attribute(attr=name):
                call = self.parents[parent]
                return 1 if name in _METHODS and isinstance(call, ast.Call) and call.func is parent else 0
            case ast.Assign(targets):
                return 1 if all(isinstance(t, (ast.Tuple, ast.List)) for t in targets) else 0
            case ast.Starred() | ast.BinOp():
                return 1
            case ast.AugAssign(value=value) if value is node:
                return 1
            case ast.For(iter=over) | ast.comprehension(iter=over) if over is node:
                return 1
            case ast.Compare() | ast.UnaryOp() | ast.FormattedValue() | ast.Expr() | ast.comprehension() | ast.Slice():
                return _NOTHING
            case ast.IfExp() | ast.If() | ast.While() | ast.Assert():
                return _NOTHING
            case ast.Subscript(_, index) if index is node:
                return _NOTHING
            case ast.arg(annotation=note) | ast.AnnAssign(annotation=note) | ast.FunctionDef(returns=note) if (
                note is node
            ):
                return _NOTHING
            case _:
                return 0

    def _is_function(self, call: ast.Call, name: str) -> bool:
        """Whether a call is one of the function of the text with that name; a method has none outside of its class."""
        function = self.functions.get(name)
        if function is None:
            return False
        home, around = self.parents[function], self.parents.get(call)
        while not isinstance(home, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            home = self.parents[home]
        while around is not None and around is not home:
            around = self.parents.get(around)
        return around is home and not isinstance(home, ast.ClassDef)

    def _argument(self, call: ast.Call, node: ast.expr, word: str | None) -> float | str:
        """How deep an argument of a call may change, or the parameter that it is."""
        match call.func:
            case ast.Name() | ast.Attribute() as function if _root(function) in self.language:
                return _NOTHING
            case ast.Attribute(attr="parametrize"):
                return 1  # of pytest
            case ast.Name("min" | "max") if len(call.args) > 1 or word == "default":
                return 0  # gives one of them
            case ast.Name("sum") if word == "start" or node in call.args[1:]:
                return 0  # the sum of nothing
            case ast.Name(name) if name in self.readers:
                return 1
            case ast.Name(name) if self._is_function(call, name) and not any(
                isinstance(a, ast.Starred) for a in call.args
            ):
                arguments = self.functions[name].args
                positions = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
                if word is None:
                    place = call.args.index(node)
                    return positions[place] if place < len(positions) else 0
                return word if word in (*positions, *(a.arg for a in arguments.kwonlyargs)) else 0
            case _:
                return 0


def _root(node: ast.expr) -> str | None:
    """The name that a member, or a member of a member, is taken from."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
