"""Evaluation: what is the value of a term for given symbols?  Terms become Python functions once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.functions import FunctionTable
from fencepost.prove.ranks import Sums
from fencepost.prove.terms import Atom, Cond, Lin

Values = dict[str, int]


class Unevaluated(Exception):
    """The term contains an unknown function that stands for no function of the kernel."""


@dataclass(slots=True)
class Functions:
    """The uninterpreted functions of one concrete run: those of the kernel, sums and products."""

    table: FunctionTable
    names: dict[str, str]  # SMT-LIB name -> name in the kernel
    sums: Sums
    parameters: Values
    _bodies: dict[str, Callable[[Values, Functions], tuple[int, ...]]] = field(default_factory=dict)
    _sums: dict[tuple[str, tuple[int, ...]], list[int]] = field(default_factory=dict)

    def __call__(self, name: str, arguments: tuple[int, ...]) -> int:
        if name in self.names:
            return self.table(self.names[name], arguments)
        if name in self.sums.by_name:
            return self._sum(name, arguments)
        a, b = arguments if len(arguments) == 2 else (0, 0)
        match name:
            case "op.product":
                return a * b
            case "op.quotient":
                return a // b if b else 0
            case "op.remainder":
                return a % b if b else 0
        raise Unevaluated(name)

    def _sum(self, name: str, arguments: tuple[int, ...]) -> int:
        at, others = arguments[0], arguments[1:]
        sum_ = self.sums.by_name[name]
        if name not in self._bodies:
            self._bodies[name] = function([sum_.body])
        body = self._bodies[name]

        def step(x: int) -> int:
            return body({**self.parameters, **dict(zip(sum_.symbols, (x, *others), strict=True))}, self)[0]

        if at < 0:
            return -sum(step(x) for x in range(at, 0))
        known = self._sums.setdefault((name, others), [0])
        while len(known) <= at:
            known.append(known[-1] + step(len(known) - 1))
        return known[at]


def function(terms: Iterable[Lin | Cond]) -> Callable[[Values, Functions], tuple[int, ...]]:
    """A Python function of symbol values that returns the values of the terms (conditions: 0 or 1)."""
    text = "".join(f"{_lin(t) if isinstance(t, Lin) else _cond(t)}, " for t in terms)
    scope: dict[str, Any] = {"__builtins__": {"max": max}}
    compiled: Callable[[Values, Functions], tuple[int, ...]] = eval(f"lambda v, f: ({text})", scope)
    return compiled


def _lin(term: Lin) -> str:
    parts = [f"{k}*{_atom(atom)}" if k != 1 else _atom(atom) for atom, k in term.parts]
    if term.constant or not parts:
        parts.append(str(term.constant))
    return f"({'+'.join(parts)})"


def _atom(atom: Atom) -> str:
    match atom.kind:
        case "symbol":
            return f"v[{atom.name!r}]"
        case "div":
            return f"({_lin(atom.terms[0])}//{atom.number})"
        case "mod":
            return f"({_lin(atom.terms[0])}%{atom.number})"
        case "pos":
            return f"max({_lin(atom.terms[0])},0)"
        case "choice":
            assert atom.condition is not None
            return f"({_lin(atom.terms[0])} if {_cond(atom.condition)} else {_lin(atom.terms[1])})"
    return f"f({atom.name!r},({_arguments(atom.terms)}))"


def _arguments(terms: Sequence[Lin]) -> str:
    return "".join(f"{_lin(t)}," for t in terms)


def _cond(cond: Cond) -> str:
    match cond.kind:
        case "true" | "false":
            return "1" if cond.kind == "true" else "0"
        case "and" | "or":
            return f"({f' {cond.kind} '.join(map(_cond, cond.parts))})"
    assert cond.term is not None
    return f"({_lin(cond.term)}{ {'le': '<=', 'eq': '==', 'ne': '!='}[cond.kind] }0)"
