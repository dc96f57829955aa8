"""Classes: which parameter values give the same run of a kernel?

A run depends on the parameters only through the expressions of the text that are made of parameters alone; where all
of these have the same values, the runs are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, get_args

from fencepost import ir
from fencepost.model.functions import FunctionTable
from fencepost.model.issue import Evaluator, Translator, as_function
from fencepost.model.program import Compiled

_EXPRESSIONS = get_args(ir.Expr)


class Classes:
    """The values of one kernel's parameters, up to what its runs can tell apart.

    `any`: whether the parameters make a difference at all.
    """

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._assigned = _assigned(compiled.kernel)
        self._names: dict[str, tuple[bool, bool]] = {}
        self._translator = Translator(compiled, {p: i for i, p in enumerate(compiled.parameters)}, {})
        found = dict.fromkeys(self._parts(list(compiled.kernel.body)))
        for elements in compiled.tuples.values():
            found.update(dict.fromkeys(self._parts(list(elements))))
        self.any = bool(found)
        parts = [self._translator.text(e) for e in found]
        self._evaluate: Callable[..., Any] = as_function("(" + "".join(f"{p}, " for p in parts) + ")")

    def of(self, values: tuple[int, ...]) -> Hashable:
        """What all values that give the same run have in common (the unknown functions being the same)."""
        evaluator = Evaluator("", FunctionTable(), self._translator.nodes)
        return self._evaluate(values, evaluator), tuple((k, f.value) for k, f in evaluator.faults.items())

    def settled(self, expr: ir.Expr) -> bool:
        """Whether nothing but parameters and constants decides the value of an expression."""
        return self._judge(expr)[0]

    def value(self, expr: ir.Expr, values: tuple[int, ...]) -> int:
        """The value of a settled expression."""
        translator = Translator(self._compiled, self._translator.names, {})
        return int(as_function(translator.text(expr))(values, Evaluator("", FunctionTable(), translator.nodes)))

    def _parts(self, roots: list[ir.Node]) -> Iterator[ir.Expr]:
        """The largest expressions of the text that are made of parameters, at least one, and constants."""
        pending = list(roots)
        while pending:
            node = pending.pop()
            settled, mentions = self._judge(node) if isinstance(node, _EXPRESSIONS) else (False, False)
            if settled and mentions:
                yield node  # type: ignore[misc]
            elif not settled:
                pending += ir.children(node)

    def _judge(self, expr: ir.Expr) -> tuple[bool, bool]:
        """Whether the value is settled by parameters and constants, and whether a parameter has a part in it."""
        settled, mentions = True, False
        for node in ir.walk(expr):
            one, other = True, False
            match node:
                case ir.Name(id=name):
                    one, other = self._name(name)
                case ir.Item(name=name):
                    found = [self._judge(e) for e in self._compiled.tuples[name]]
                    one, other = all(s for s, _ in found), any(m for _, m in found)
                case ir.Field():
                    one = False
                case ir.Call(function=function):
                    one = function in ir.INTERPRETED
            settled, mentions = settled and one, mentions or other
        return settled, mentions

    def _name(self, name: str) -> tuple[bool, bool]:
        if name not in self._names:
            if name in self._assigned:
                self._names[name] = (False, False)
            elif name in self._compiled.parameters:
                self._names[name] = (True, True)
            elif name in self._compiled.scalars:
                self._names[name] = self._judge(self._compiled.scalars[name])
            else:
                self._names[name] = (False, False)
        return self._names[name]


def _assigned(kernel: ir.Kernel) -> set[str]:
    """Names that the text gives a value as it runs, and those that differ between agents."""
    found = {"sub"}
    for item in kernel.body:
        for node in ir.walk(item):
            match node:
                case ir.Assign(name=name) | ir.Bind(name=name) | ir.Cursor(name=name):
                    found.add(name)
                case ir.For(var=var) | ir.Pipelined(var=var):
                    found.add(var)
    return found
