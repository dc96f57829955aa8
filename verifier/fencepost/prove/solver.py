"""The solver: is this SMT-LIB text unsatisfiable?  The only module that imports z3.

Texts are parsed by the solver itself, so that what is printed into a certificate is what was checked.  Effort is
limited by `rlimit` (repeatable) and, as a last resort, by wall-clock time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

Answer = Literal["unsat", "sat", "unknown"]

RLIMIT = 3_000_000
"""Default effort per query; about a second on a slow machine."""

PATIENT = 20 * RLIMIT
"""Effort per claim of a certificate, which is made once and judged by whoever wants to."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one query.

    `model` maps constants to integers, `points` maps (function, arguments) to integers, and `elsewhere` maps functions
    to what they are at all other points, when the answer is "sat".  `reason` says why the answer is "unknown".
    """

    answer: Answer
    model: dict[str, int] = field(default_factory=dict)
    points: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    elsewhere: dict[str, int] = field(default_factory=dict)
    reason: str = ""


@cache
def _z3() -> Any:
    import z3

    return z3


def version() -> str:
    """The solver's name and version."""
    return f"z3 {_z3().get_version_string()}"


def check(text: str, deadline: float | None = None, rlimit: int = RLIMIT, seed: int = 0) -> Verdict:
    """Decide declarations and assertions given as SMT-LIB text.

    Args:
        deadline: a time of `time.monotonic()` after which the answer is "unknown".
        rlimit: the largest effort, in z3's own units; repeatable for one version.
        seed: the random seed.

    Raises:
        ValueError: the text is not SMT-LIB, or names something that it does not declare.
    """
    z3 = _z3()
    solver = z3.SimpleSolver()
    solver.set("rlimit", rlimit)
    if seed:
        solver.set("random_seed", seed)
    if deadline is not None:
        left = deadline - time.monotonic()
        if left <= 0:
            return Verdict("unknown", reason="the time limit was reached")
        solver.set("timeout", max(1, int(left * 1000)))
    try:
        solver.from_string(text)
        answer = solver.check()
    except z3.Z3Exception as error:
        message = error.args[0] if error.args else error
        raise ValueError(message.decode() if isinstance(message, bytes) else str(message)) from None
    if answer == z3.unsat:
        return Verdict("unsat")
    if answer == z3.sat:
        return _model(z3, solver.model())
    return Verdict("unknown", reason=_reason(solver.reason_unknown(), deadline))


class Session:
    """A question that grows: what is added stays, and each check may assume truth values for itself."""

    def __init__(self, rlimit: int = RLIMIT, boolean: bool = False) -> None:
        """`boolean`: the questions are small and mostly Boolean."""
        self._z3 = _z3()
        self._context = self._z3.Context()  # its own, so that what was asked elsewhere does not matter
        self._solver = self._z3.SimpleSolver(ctx=self._context)
        self._solver.set("rlimit", rlimit)
        if boolean:
            self._solver.set("relevancy", 0)
            self._solver.set("arith.solver", 2)

    def add(self, text: str) -> None:
        """Add declarations and assertions; raises ValueError as `check` does."""
        try:
            self._solver.from_string(text)
        except self._z3.Z3Exception as error:
            raise ValueError(str(error)) from None

    def check(self, assumed: Iterable[str] = (), deadline: float | None = None) -> Verdict:
        """Decide what was added, where the truth values of these names are true this time.

        What the solver learns is kept from one check to the next.
        """
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                return Verdict("unknown", reason="the time limit was reached")
            self._solver.set("timeout", max(1, int(left * 1000)))
        answer = self._solver.check(*(self._z3.Bool(name, self._context) for name in assumed))
        if answer == self._z3.unsat:
            return Verdict("unsat")
        if answer == self._z3.sat:
            return Verdict("sat", _constants(self._solver.model().sexpr()))
        return Verdict("unknown", reason=_reason(self._solver.reason_unknown(), deadline))


def _constants(text: str) -> dict[str, int]:
    """The integer constants of a model in SMT-LIB form; many times as quick as asking for one after the other."""
    found = _CONSTANT.findall(text)
    return {name.strip("|"): -int(minus) if minus else int(value) for name, value, minus in found}


_CONSTANT = re.compile(r"\(define-fun (\|[^|]*\||\S+) \(\) Int\s+(?:(\d+)|\(- (\d+)\))\)")


def _reason(text: str, deadline: float | None) -> str:
    if deadline is not None and time.monotonic() >= deadline:
        return "the time limit was reached"
    if "resource" in text or "canceled" in text or "rlimit" in text:
        return "the effort limit was reached"
    return f"the solver gave up ({text})"


def _model(z3: Any, model: Any) -> Verdict:
    values: dict[str, int] = {}
    points: dict[tuple[str, tuple[int, ...]], int] = {}
    elsewhere: dict[str, int] = {}
    for declaration in model.decls():
        found = model[declaration]
        name = declaration.name()
        if declaration.arity() == 0:
            if z3.is_int_value(found):
                values[name] = found.as_long()
            continue
        *rows, other = found.as_list()
        for row in rows:
            if all(map(z3.is_int_value, row)):
                points[name, tuple(a.as_long() for a in row[:-1])] = row[-1].as_long()
        if z3.is_int_value(other):
            elsewhere[name] = other.as_long()
    return Verdict("sat", values, points, elsewhere)
