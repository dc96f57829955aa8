"""`fencepost explain`: what does a code mean, why does it hurt, and how is it mended?"""

from __future__ import annotations

import argparse

from fencepost.commands.common import UsageError
from fencepost.selection import code_of

NAME = "explain"
HELP = "print the page of a rule: what it means, why it hurts, a bad and a good kernel"
EXAMPLE = "fencepost explain FP206"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("code", metavar="CODE", help="a code such as FP206 or 206")


def execute(args: argparse.Namespace) -> int:
    """Print the rule's page."""
    from fencepost_rules import rules

    try:
        code = code_of(args.code)
    except ValueError as error:
        raise UsageError(str(error)) from None
    known = {rule.code: rule for rule in rules()}
    rule = known.get(code)
    if rule is None:
        family = [other for other in sorted(known) if other.startswith(code[:1])]
        hint = f"; of that family there are {', '.join('FP' + c for c in family)}" if family else ""
        raise UsageError(f"no rule FP{code}{hint} (fencepost rules lists all)")
    print(rule.page())
    return 0
