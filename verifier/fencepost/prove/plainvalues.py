"""Plain values: which terms are the values of expressions, as the executor computes them?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from fencepost import ir
from fencepost.model.program import Compiled
from fencepost.prove.plainterms import Term, add, both, conjuncts, either, eq, ite, le, lt, make, minus, no

COMPARISONS: dict[str, Callable[[Term, Term], Term]] = {
    "==": eq, "!=": lambda a, b: no(eq(a, b)),
    "<": lt, "<=": le, ">": lambda a, b: lt(b, a), ">=": lambda a, b: le(b, a),
}  # fmt: skip


@dataclass
class Evaluator:
    """Values of one agent's expressions; `wanted` is given what the executor would refuse if it did not hold."""

    compiled: Compiled
    agent: str
    env: Mapping[str, Term] = field(default_factory=dict)
    wanted: Callable[[str, Term], None] = lambda name, condition: None
    _path: tuple[Term, ...] = ()

    def demand(self, name: str, safe: Term) -> None:
        """Ask for something wherever control is."""
        self.wanted(f"{self.agent}: {name}", either(no(both(*self._path)), safe))

    def integer(self, expr: ir.Expr) -> Term:
        """The value of an expression, as the executor computes it; what it would refuse is claimed not to happen."""
        match expr:
            case ir.Int(value=value):
                return value
            case ir.Name(id=name):
                return (
                    self.integer(self.compiled.scalars[name])
                    if name in self.compiled.scalars
                    else self.env.get(name, 0)
                )
            case ir.Item(name=name, index=index):
                return self._element([self.integer(e) for e in self.compiled.tuples[name]], self.integer(index))
            case ir.Field(ring=ring, index=index, field=name):
                where = self.integer(index)
                return self._element([self.env.get(record, 0) for record in self.records(ring, name, where)], where)
            case ir.Unary(op="-", operand=operand):
                return minus(self.integer(operand))
            case ir.Binary(op=op, left=left, right=right):
                a, b = self.integer(left), self.integer(right)
                if op in ("%", "//"):
                    self.demand(f"operands of {op}", both(le(0, a), lt(0, b)))
                return arithmetic(op, a, b)
            case ir.Choose(condition=condition, then=then, other=other):
                c = self.truth(condition)
                return ite(c, self._under(c, self.integer, then), self._under(no(c), self.integer, other))
            case ir.Call(function="min" | "max" as f, arguments=arguments):
                least = f == "min"
                return reduce(lambda a, b: ite(le(a, b), *((a, b) if least else (b, a))), map(self.integer, arguments))
            case ir.Call(function=f, arguments=arguments):
                return (f"f.{plain(f)}", *map(self.integer, arguments)) if arguments else f"f.{plain(f)}"
        return ite(self.truth(expr), 1, 0)

    def truth(self, expr: ir.Expr) -> Term:
        """Whether an expression is true."""
        match expr:
            case ir.Unary(op="not", operand=operand):
                return no(self.truth(operand))
            case ir.Compare(first=first, rest=rest):
                found, left = "true", self.integer(first)
                for op, operand in rest:
                    right = self._under(found, self.integer, operand)
                    found, left = both(found, COMPARISONS[op](left, right)), right
                return found
            case ir.Logic(op=op, operands=operands):
                found = "true"  # for "or": that all so far are false
                for operand in operands:
                    holds = self._under(found, self.truth, operand)
                    found = both(found, no(holds) if op == "or" else holds)
                return no(found) if op == "or" else found
        return no(eq(self.integer(expr), 0))

    def _under(self, condition: Term, visit: Callable[[Any], Any], what: Any) -> Any:
        """Do something where a condition holds, and only there."""
        path, self._path = self._path, (*self._path, *conjuncts(condition))
        found = visit(what)
        self._path = path
        return found

    def records(self, ring: str, name: str, index: Term) -> list[str]:
        """The fields of all records, of which one is looked at."""
        size = self.compiled.program(self.agent).rings[ring][1]
        self.demand("record", both(le(0, index), lt(index, size)))
        return [f"{ring}[{i}].{name}" for i in range(size)]

    def _element(self, values: list[Term], at: Term) -> Term:
        self.demand("index", both(le(0, at), lt(at, len(values))))
        return reduce(lambda found, i: ite(eq(at, i), values[i], found), reversed(range(len(values) - 1)), values[-1])


def plain(name: str) -> str:
    """A name in letters of SMT-LIB; different names stay different."""
    return "".join(c if (c.isalnum() and c.isascii()) or c == "_" else f"!{ord(c):x}!" for c in name)


def arithmetic(op: str, a: Term, b: Term) -> Term:
    """Products and quotients of two unknowns are functions of which nothing is known."""
    if op in ("+", "-"):
        return add(a, b) if op == "+" else minus(a, b)
    if op == "*" and not isinstance(a, int) and not isinstance(b, int):
        return ("op.product", *sorted((a, b), key=repr))
    if op == "*" or (isinstance(b, int) and b > 0):
        return make({"*": "*", "//": "div", "%": "mod"}[op], a, b)
    return ("op.quotient" if op == "//" else "op.remainder", a, b)
