"""`fencepost recheck`: does a certificate prove what it says, judged without the prover?"""

from __future__ import annotations

import argparse
from pathlib import Path

from fencepost.commands.common import UsageError

NAME = "recheck"
HELP = "check the certificate of a proof, without the prover that made it"
EXAMPLE = "fencepost recheck scores.json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("certificate", metavar="FILE", type=Path, help="a certificate that `certify` wrote")


def execute(args: argparse.Namespace) -> int:
    """Say whether the certificate holds: 0, or 1 with everything that is wrong with it."""
    import json

    from fencepost.prove.recheck import recheck
    from fencepost.report.style import safe

    try:
        data = json.loads(args.certificate.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"can't read {args.certificate}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{args.certificate} is not JSON") from None
    result = recheck(data)
    if result.valid:
        print(f"{safe(result.kernel)}: the certificate holds, {result.claims} claims shown")
        return 0
    for problem in result.problems:
        print(f"{args.certificate}: {safe(problem)}")
    return 1
