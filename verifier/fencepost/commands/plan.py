"""`fencepost plan`: what are the design tables of a kernel's protocol?"""

from __future__ import annotations

import argparse
import sys

from fencepost.commands import common
from fencepost.commands.common import UsageError

NAME = "plan"
HELP = "print the protocol as design tables: slots, sync points, events, steady state"
EXAMPLE = "fencepost plan examples/scores.kir"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    common.add_file(parser)
    common.add_parameters(parser)
    parser.add_argument("--format", choices=("text", "markdown", "json"), default="text", help="default: text")
    common.add_color(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the plan of every kernel; return 2 if the file has mistakes."""
    from fencepost.commands.schedules import programs
    from fencepost.model.program import ModelError
    from fencepost.plan import plan
    from fencepost.replay import Refused
    from fencepost.report import plan as report

    reading, _ = common.read_kernels(args)
    values = common.parameters(args.values)
    made: list[dict[str, object]] = []
    for kernel in reading.result.kernels:
        try:
            planned = plan(kernel, values)
        except Refused as error:
            raise UsageError(str(error)) from None
        except ModelError as error:
            raise UsageError(f"{error.span.file}:{error.span.line}: {error}") from None
        if args.format == "json":
            made.append(report.to_dict(planned))
            continue
        colour = common.wants_color(args.color, sys.stdout)
        markdown = args.format == "markdown"
        print(report.render(planned, colour=colour, markdown=markdown, columns=common.terminal_columns()))
        for line in programs(kernel):
            print(f"    {line}" if markdown else line)
    if args.format == "json":
        import json

        print(json.dumps(made, indent=2, ensure_ascii=False))
    return 2 if reading.result.errors else 0
