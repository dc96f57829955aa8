"""`fencepost recheck`: does a certificate prove what it says, judged without the prover?"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fencepost.commands.common import UsageError

NAME = "recheck"
HELP = "check the certificate of a proof, without the prover that made it"
EXAMPLE = "fencepost recheck scores.json --against examples/scores.kir"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("certificate", metavar="FILE", type=Path, help="a certificate that `certify` wrote")
    parser.add_argument("--against", metavar="SOURCE", help="check that it is about a kernel in this source file, too")
    parser.add_argument(
        "--solver", choices=("z3", "cvc5"),
        help="who answers the queries (default: cvc5 if it is installed, and z3 where cvc5 gives up)",
    )  # fmt: skip


def execute(args: argparse.Namespace) -> int:
    """Say whether the certificate holds: 0, or 1 with everything that is wrong with it."""
    import json

    from fencepost.prove.recheck import recheck
    from fencepost.reading import parse
    from fencepost.report.style import safe

    solvers = _solvers(args.solver)
    answered = dict.fromkeys(solvers, 0)

    def check(text: str) -> str:
        """The first answer that is one."""
        for name, ask in solvers.items():
            answer = ask(text)
            if answer != "unknown":
                answered[name] += 1
                return answer
        return "unknown"

    try:
        data = json.loads(args.certificate.read_text("utf-8"), object_pairs_hook=_once)
    except OSError as error:
        raise UsageError(f"can't read {args.certificate}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{args.certificate} is not JSON in which every key stands once") from None
    result = recheck(data, check, parse)
    problems = list(result.problems)
    if args.against is not None and not problems and result.kernel not in _kernels(args.against):
        problems.append(f"it is not about a kernel of {args.against}")
    for problem in problems:
        print(f"{args.certificate}: {safe(problem)}")
    if problems:
        return 1
    print(f"{safe(result.name)}: the certificate holds for all parameter values; {result.claims} claims")
    print(f"shown by {', '.join(f'{name} ({count})' for name, count in answered.items() if count)}")
    print(f"rows {', '.join(result.rows)}")
    return 0


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object.  Raises ValueError for a key that stands twice: another reader could take the other value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _solvers(wanted: str | None) -> dict[str, Callable[[str], str]]:
    """Who is asked, in this order.  Raises UsageError."""
    from fencepost.prove import cvc5, solver

    found: dict[str, Callable[[str], str]] = {}
    if wanted == "cvc5" and not cvc5.installed():
        raise UsageError("cvc5 is not installed: pip install cvc5")
    if wanted != "z3" and cvc5.installed():
        found[cvc5.version()] = cvc5.check
    if wanted != "cvc5":
        found[solver.version()] = lambda text: solver.check(text, rlimit=solver.PATIENT).answer
    return found


def _kernels(path: str) -> list[str]:
    """The texts of the kernels of a source file, as certificates hold them."""
    from fencepost.commands import common
    from fencepost.passes.serial import Serial
    from fencepost.printer import print_kernel

    asked = argparse.Namespace(file=path, kernel=None, stdin_filename="<stdin>")
    return [print_kernel(Serial().run(kernel)) for kernel in common.read_kernels(asked)[0].result.kernels]
