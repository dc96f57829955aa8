"""What stands for a value that is not computed?"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.frontends.tilelang.names import Names, site
from fencepost.frontends.tilelang.operations import SETTLED
from fencepost.frontends.tilelang.syntax import defaults
from fencepost.frontends.tilelang.traits import exactly, is_static, touched
from fencepost.frontends.tilelang.values import Function, Number, Opaque, Region, Tensor, Value

_MAX_SIZE = 400


@dataclass(slots=True)
class Unknowns:
    """Gives symbols to what is not known in a scope.

    `language` are the names of the TileLang language module, `members` those of what is imported from it. `names`
    gives the symbols. `variables` are the loop variables in scope, on which an unknown value may depend. `loaded`
    counts the values that were read from somewhere: each is another one, even if it is read from the same place.
    """

    scope: dict[str, Value]
    language: frozenset[str]
    names: Names = field(default_factory=Names)
    variables: tuple[str, ...] = ()
    members: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    loaded: int = field(default=0, kw_only=True)

    @abstractmethod
    def value(self, node: ast.expr) -> Value:
        """The value of an expression."""

    def called(self, node: ast.expr) -> str | None:
        """`copy` for `T.copy`, where T is the language, and for what is imported from it; None for other calls."""
        match node:
            case ast.Attribute(ast.Attribute(ast.Name(name), part), member) if f"{name}.{part}" in self.language:
                return None if name in self.scope and not self._is_module(name) else member
            case ast.Name(name) if name in self.members:
                return None if name in self.scope and not self._is_module(name) else self.members[name]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.language:
            return None if node.value.id in self.scope and not self._is_module(node.value.id) else node.attr
        return None

    def _is_module(self, name: str) -> bool:
        return isinstance(self.scope.get(name), Opaque)

    def symbol(self, key: Hashable, name: str, natural: bool = False) -> Number:
        """An integer that is chosen when the kernel is compiled or launched; `natural`: it is not negative."""
        symbol = self.names.symbol(key, name)
        if natural:
            self.names.naturals.add(symbol.id)
        return Number(symbol, True)

    def _somewhere(self) -> ir.Expr:
        """A value that is read from somewhere, at this place of the text: no other one equals it."""
        self.loaded += 1
        return ir.Call("somewhere", (ir.Int(self.loaded), *map(ir.Name, self.variables)))

    def _sized(self, node: ast.expr, expr: ir.Expr, parts: Iterable[Number]) -> Number:
        numbers = tuple(parts)
        static = all(n.static for n in numbers)
        loads = tuple(dict.fromkeys(region for n in numbers for region in n.loads))
        if sum(1 for _ in ir.walk(expr)) > _MAX_SIZE:
            expr = self._fresh(node, static, bool(loads))
        return Number(expr, static, loads)

    def _unknown(self, node: ast.expr, parts: list[ast.expr], settled: bool = True) -> Number:
        """A value that is not computed; it still reads what its parts read.  `settled`: it depends on nothing else."""
        return self._made_of(node, map(self.value, parts), settled)

    def _made_of(self, node: ast.expr, values: Iterable[Value], settled: bool = True) -> Number:
        values = list(values)
        loads: dict[Region, None] = {}
        static = settled
        for found in values:
            match found:
                case Tensor() as tensor:
                    loads[Region(tensor)] = None
                case Region() as region:
                    loads[region] = None
                case Function() as function:
                    inside = self._free(function)
                    loads.update((load, None) for value in inside for load in touched(value))
                    static = static and all(map(is_static, inside))
                case value:
                    loads.update(dict.fromkeys(touched(value)))
                    static = static and is_static(value)
        static = static and not loads
        known = tuple(map(exactly, values)) if settled and self._is_pure(node) else (None,)
        fresh = self._fresh(node, static, bool(loads), None if None in known else known)
        return Number(fresh, static, tuple(loads))

    def _is_pure(self, node: ast.AST) -> bool:
        """Whether the value of an expression is the same if its parts have the same values."""
        if isinstance(node, ast.Compare):
            return not any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        operators = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp)
        return isinstance(node, operators) or (isinstance(node, ast.Call) and self.called(node.func) in SETTLED)

    def _free(self, function: Function) -> list[Value]:
        """What the names may mean that a function does not define, those of the functions that it calls included."""
        found: list[Value] = []
        stack, seen = [function], {id(function.node)}
        while stack:
            one = stack.pop()
            arguments = one.node.args
            own = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
            names = {n.id for s in one.node.body for n in ast.walk(s) if isinstance(n, ast.Name)} - own
            names |= {n.id for d in defaults(arguments) for n in ast.walk(d) if isinstance(n, ast.Name)}
            for value in (scope[name] for name in sorted(names) for scope in (one.scope, self.scope) if name in scope):
                if not isinstance(value, Function):
                    found.append(value)
                elif id(value.node) not in seen:
                    seen.add(id(value.node))
                    stack.append(value)
        return found

    def anything(self, node: ast.AST, name: str, loads: Iterable[Region] = (), noted: bool = False) -> Number:
        """What is not known, goes by a name after the statement `node`, and may be another in each round of a loop.

        `noted`: the reader is told of it in other words.
        """
        found = tuple(dict.fromkeys(loads))
        if found:
            return Number(self._somewhere(), False, found)
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        key = ("after", name, site(node), self.names.part)
        return Number(self._symbol(key, f"{name}_after_{line}_{column}", line, bool(self.variables), noted), False)

    def _fresh(self, node: ast.AST, static: bool, loaded: bool = False, known: Hashable = None) -> ir.Expr:
        """A value that is not computed; `known`: all that it depends on, if that is known."""
        if loaded:
            return self._somewhere()
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        key = ("value", site(node), self.names.part if known is None else ("of", known))
        return self._symbol(key, f"value_{line}_{column}", line, not static and bool(self.variables))

    def _symbol(self, key: Hashable, wish: str, line: int, varies: bool, noted: bool = False) -> ir.Expr:
        """A symbol; `varies`: it is another one in each round of the loops around."""
        if not varies:
            symbol = self.names.symbol((key, None), wish)
        else:
            symbol = ir.Name(self.names.of((key, len(self.variables)), wish))
        if not noted:
            self.names.unknowns[symbol.id] = line
        return ir.Call(symbol.id, tuple(map(ir.Name, self.variables))) if varies else symbol
