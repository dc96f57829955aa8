"""Expressions: which term does an expression of the kernel mean in a symbolic state?

Evaluation follows the executor exactly, short-circuits included; what the executor would report as a bad value becomes
a condition that must hold (`Demand`).  Products and quotients of two unknowns become uninterpreted functions: nothing
is known about them except that they are functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from fencepost import ir
from fencepost.model.program import Compiled, Program
from fencepost.prove.rings import RingState
from fencepost.prove.terms import (
    FALSE,
    TRUE,
    ZERO,
    Cond,
    Lin,
    apply,
    choose,
    conjoin,
    const,
    disjoin,
    div,
    eq,
    indicator,
    largest,
    le,
    lt,
    mod,
    negate,
    smallest,
)

Key = int | tuple[str, object]
"""A slot of the agent's state, or a counter of what was executed so far."""

Env = dict[Key, Lin]


@dataclass(frozen=True, slots=True)
class Demand:
    """`safe` must hold whenever `path` does; else the executor reports a bad value of this `kind` at `node`."""

    kind: str
    agent: str
    node: ir.Node
    path: tuple[Cond, ...]
    safe: Cond


@dataclass(slots=True)
class State:
    """What is known when control is at one instruction: the conditions that led here, and every value."""

    path: tuple[Cond, ...]
    env: Env
    rings: dict[int, RingState]


_RESERVED = {"and", "or", "not", "let", "true", "false", "ite", "div", "mod", "abs", "distinct", "forall", "exists"}
_RESERVED |= {"assert", "par", "match", "as", "xor", "Int", "Bool", "Real"}


def smt_name(name: str) -> str:
    """A parameter or function name as an SMT-LIB symbol that nothing else uses."""
    plain = "".join(c if c.isascii() else f"!{ord(c):x}!" for c in name)
    return f"{plain}!" if plain in _RESERVED or plain.startswith("_") or plain != name else plain


@dataclass(slots=True)
class Expressions:
    """Evaluates one agent's expressions; `demands` collects what must hold, unless it is None."""

    compiled: Compiled
    program: Program
    demands: list[Demand] | None = field(default_factory=list)

    def integer(self, expr: ir.Expr, state: State, path: tuple[Cond, ...] = ()) -> Lin:
        """The value of an expression; `path` holds further conditions under which it is evaluated."""
        match expr:
            case ir.Int(value=value):
                return const(value)
            case ir.Name(id=name):
                slot = self.program.names.get(name)
                return state.env[slot] if slot is not None else self.integer(self.compiled.scalars[name], state, path)
            case ir.Item(name=name, index=index):
                at = self.integer(index, state, path)
                values = [self.integer(e, state, path) for e in self.compiled.tuples[name]]
                self._demand("index", expr, state, path, _within(at, len(values)))
                return _element(values, at)
            case ir.Field(ring=ring, index=index, field=name):
                base, size, fields = self.program.rings[ring]
                at = self.integer(index, state, path)
                self._demand("index", expr, state, path, _within(at, size))
                return state.rings[base + size * fields.index(name)].read(at)
            case ir.Unary(op="-", operand=operand):
                return -self.integer(operand, state, path)
            case ir.Binary(op="%" | "//" as op, left=left, right=right):
                a, b = self.integer(left, state, path), self.integer(right, state, path)
                self._demand("zero", expr, state, path, negate(eq(b)))
                self._demand("negative", expr, state, path, conjoin((le(-a), disjoin((le(-b + 1), eq(b))))))
                return _quotient(op, a, b)
            case ir.Binary(op=op, left=left, right=right):
                a, b = self.integer(left, state, path), self.integer(right, state, path)
                return a + b if op == "+" else a - b if op == "-" else _product(a, b)
            case ir.Choose(condition=condition, then=then, other=other):
                c = self.condition(condition, state, path)
                return choose(c, self.integer(then, state, (*path, c)), self.integer(other, state, (*path, negate(c))))
            case ir.Call(function="min" | "max" as f, arguments=arguments):
                terms = [self.integer(a, state, path) for a in arguments]
                found = terms[0]
                for term in terms[1:]:
                    found = smallest(found, term) if f == "min" else largest(found, term)
                return found
            case ir.Call(function=f, arguments=arguments):
                return apply(f"f.{smt_name(f)}", tuple(self.integer(a, state, path) for a in arguments))
        return indicator(self.condition(expr, state, path))

    def condition(self, expr: ir.Expr, state: State, path: tuple[Cond, ...] = ()) -> Cond:
        """The truth of an expression."""
        match expr:
            case ir.Unary(op="not", operand=operand):
                return negate(self.condition(operand, state, path))
            case ir.Compare(first=first, rest=rest):
                found, left = TRUE, self.integer(first, state, path)
                for op, operand in rest:
                    right = self.integer(operand, state, (*path, found))
                    found = conjoin((found, _compare(op, left, right)))
                    left = right
                return found
            case ir.Logic(op=op, operands=operands):
                found = TRUE if op == "and" else FALSE
                for operand in operands:
                    go_on = found if op == "and" else negate(found)
                    value = self.condition(operand, state, (*path, go_on))
                    found = conjoin((found, value)) if op == "and" else disjoin((found, value))
                return found
        return negate(eq(self.integer(expr, state, path)))

    def require(self, node: ir.Assert, state: State) -> None:
        """Note that an assertion must hold."""
        self._demand("assert", node, state, (), self.condition(node.condition, state))

    def within(self, node: ir.Node, state: State, at: Lin, size: int) -> None:
        """Note that a record number must be in range."""
        self._demand("index", node, state, (), _within(at, size))

    def _demand(self, kind: str, node: ir.Node, state: State, path: tuple[Cond, ...], safe: Cond) -> None:
        if self.demands is not None and safe.kind != "true":
            self.demands.append(Demand(kind, self.program.agent, node, (*state.path, *path), safe))


def _within(at: Lin, size: int) -> Cond:
    return conjoin((le(-at), lt(at, const(size))))


def _element(values: Sequence[Lin], at: Lin) -> Lin:
    """`values[at]`; the values of an arithmetic progression become a linear form."""
    if at.value is not None:
        return values[at.value] if 0 <= at.value < len(values) else ZERO
    steps = {(b - a).text: (b - a).value for a, b in pairwise(values)}
    if len(values) == 1:
        return values[0]
    if len(steps) == 1:
        step = next(iter(steps.values()))
        if step is not None:
            return values[0] + at * step
    found = values[-1]
    for i in range(len(values) - 2, -1, -1):
        found = choose(eq(at, const(i)), values[i], found)
    return found


def _compare(op: str, a: Lin, b: Lin) -> Cond:
    match op:
        case "<":
            return lt(a, b)
        case "<=":
            return le(a - b)
        case ">":
            return lt(b, a)
        case ">=":
            return le(b - a)
        case "==":
            return eq(a, b)
    return negate(eq(a, b))


def _quotient(op: str, a: Lin, b: Lin) -> Lin:
    """Floor quotient or remainder; 0 for a zero divisor, as in the executor."""
    m = b.value
    if m is None:
        return apply("op.quotient" if op == "//" else "op.remainder", (a, b))
    if m == 0:
        return ZERO
    if op == "//":
        return div(a, m) if m > 0 else div(-a, -m)
    return mod(a, m) if m > 0 else -mod(-a, -m)


def _product(a: Lin, b: Lin) -> Lin:
    if a.value is not None:
        return b * a.value
    if b.value is not None:
        return a * b.value
    return apply("op.product", tuple(sorted((a, b), key=lambda t: t.text)))


__all__ = ["Demand", "Env", "Expressions", "Key", "State", "smt_name"]
