"""A second solver: is this SMT-LIB text unsatisfiable, asked of cvc5?  The only module that imports cvc5."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

STRATEGIES = (("2000", "false"), ("20000", "true"))
"""Milliseconds, and whether the simplex method minimises the sum of infeasibilities; tried in this order.

Nearly all queries take a few milliseconds with the first; a few with quotients of several choices need the second.
"""


def installed() -> bool:
    """Whether cvc5 can be imported."""
    return find_spec("cvc5") is not None


def version() -> str:
    """The solver's name and version."""
    import cvc5

    return f"cvc5 {cvc5.__version__}"


def check(text: str) -> str:
    """Answer declarations and assertions with "unsat", "sat" or "unknown".

    Raises:
        ValueError: the text is not SMT-LIB, or names something that it does not declare.
    """
    answers = (_ask(text, limit, sums) for limit, sums in STRATEGIES)
    return next((answer for answer in answers if answer != "unknown"), "unknown")


def _ask(text: str, limit: str, sums: str) -> str:
    import cvc5

    solver: Any = cvc5.Solver(cvc5.TermManager())
    solver.setOption("tlimit-per", limit)
    solver.setOption("use-soi", sums)
    parser: Any = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, f"(set-logic QF_UFLIA)\n{text}", "claim")
    try:
        while not (command := parser.nextCommand()).isNull():
            problem = command.invoke(solver, parser.getSymbolManager())
            if "error" in problem:
                raise ValueError(problem.strip())
        result = solver.checkSat()
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return "unsat" if result.isUnsat() else "sat" if result.isSat() else "unknown"
