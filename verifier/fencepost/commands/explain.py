"""`fencepost explain`: what does a code mean, why does it hurt, and how is it mended?"""

from __future__ import annotations

import argparse

from fencepost.commands.common import UsageError

NAME = "explain"
HELP = "print the page of a rule: what it means, why it hurts, a bad and a good kernel"
EXAMPLE = "fencepost explain FP206"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("code", metavar="CODE", help="a code (FP206 or 206) or a name, as `fencepost rules` lists them")


def execute(args: argparse.Namespace) -> int:
    """Print the rule's page."""
    from fencepost.explanations import UnknownCode, page

    try:
        print(page(args.code))
    except UnknownCode as error:
        raise UsageError(str(error)) from None
    return 0
