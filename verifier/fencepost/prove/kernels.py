"""Kernels in closed form: what do all agents do, as formulas in the parameters?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.model.effects import Resolver
from fencepost.model.program import Compiled, Program
from fencepost.prove import solver
from fencepost.prove.evaluation import Functions, Values
from fencepost.prove.expressions import Demand, Env, Expressions, State, smt_name
from fencepost.prove.ranks import Summation, Sums
from fencepost.prove.rewrite import Known
from fencepost.prove.smtlib import Language
from fencepost.prove.symbolic import Trace, Walker
from fencepost.prove.terms import Cond, Lin, conjoin, disjoin, le, negate, symbol


@dataclass(slots=True)
class Closed:
    """A kernel in closed form.

    `assumptions` are the kernel's assumes as conditions; every query holds them.  `batched`: FIFO credits travel in
    batches.
    """

    compiled: Compiled
    resolver: Resolver
    sums: Sums
    assumptions: tuple[Cond, ...]
    assumed: Known
    language: Language
    traces: dict[str, Trace] = field(default_factory=dict)
    deadline: float | None = None
    batched: bool = False
    queries: int = 0
    inverses: dict[object, tuple[int, Lin] | None] = field(default_factory=dict)
    functions: dict[object, Callable[[Values, Functions], tuple[int, ...]]] = field(default_factory=dict)
    _names: dict[str, str] | None = None
    _answers: dict[str, solver.Verdict] = field(default_factory=dict)

    @property
    def function_names(self) -> dict[str, str]:
        """The kernel's unknown functions: name in queries -> name in the kernel."""
        if self._names is None:
            nodes = (n for n in ir.walk(self.compiled.kernel) if isinstance(n, ir.Call))
            self._names = {f"f.{smt_name(n.function)}": n.function for n in nodes if n.function not in ir.INTERPRETED}
        return self._names

    def ask(self, conditions: list[Cond]) -> tuple[str, solver.Verdict]:
        """Whether the conditions can hold together under the assumptions: the SMT-LIB text and the answer."""
        if any(c.kind == "false" for c in conditions):
            return "(assert false)\n", solver.Verdict("unsat")
        if self.late:  # the text alone can take long
            return "", solver.Verdict("unknown", reason="the time limit was reached")
        text = self.language.text((*self.assumptions, *conditions))
        found = self._answers.get(text)
        if found is None:
            self.queries += 1
            found = self._answers[text] = solver.check(text, self.deadline)
        return text, found

    @property
    def late(self) -> bool:
        """Whether the deadline is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def implied(self, path: tuple[Cond, ...], goal: Cond) -> bool:
        """Whether the assumptions and `path` imply the goal."""
        return self.ask([*path, negate(goal)])[1].answer == "unsat"


def closed(compiled: Compiled, deadline: float | None) -> Closed:
    """Execute every agent's program on terms.

    Args:
        deadline: a time of `time.monotonic()`; queries after it are not answered.

    Raises:
        NotClosed: a loop that can be left early, or the deadline is over.
        ModelError: the kernel cannot be modelled.
    """
    sums = Sums()
    assumptions = _assumptions(compiled)
    assumed = Known(assumptions)
    kernel = Closed(compiled, Resolver(compiled), sums, assumptions, assumed, Language(sums, assumed), {}, deadline)
    kernel.language.asked = lambda conditions: kernel.ask(conditions)[1].answer == "unsat"
    summation = Summation(sums)
    for program in compiled.programs:
        walker = Walker(compiled, program, kernel.resolver, sums, summation, assumed, kernel.implied, deadline)
        kernel.traces[program.agent] = walker.run()
    return kernel


def _assumptions(compiled: Compiled) -> tuple[Cond, ...]:
    """The assumes of the kernel, and `block >= 0`."""
    found: list[Cond] = []
    if "block" in compiled.parameters and "block" not in compiled.kernel.parameters:
        found.append(le(-symbol("block")))
    if compiled.kernel.assumes:
        names = {p: i for i, p in enumerate(compiled.parameters)}
        demands: list[Demand] = []
        expressions = Expressions(compiled, Program("", (), (), (), (), names, {}), demands)
        env: Env = {i: symbol(smt_name(p)) for i, p in enumerate(compiled.parameters)}
        state = State((), env, {})
        for assume in compiled.kernel.assumes:
            demands.clear()
            holds = expressions.condition(assume, state)
            # what the executor makes of an element outside of a tuple, or of a quotient by zero, is left open
            odd = [conjoin((*d.path, negate(d.safe))) for d in demands if d.kind != "negative"]
            found.append(disjoin((holds, *odd)))
    return tuple(found)


def fully_read(compiled: Compiled) -> ir.Unsupported | None:
    """The first construct that the front end could not read, if there is one."""
    return compiled.unsupported[0] if compiled.unsupported else None


__all__ = ["Closed", "closed", "fully_read"]
