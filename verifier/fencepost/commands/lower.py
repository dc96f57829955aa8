"""`fencepost lower`: which kernel IR does the tool read out of a source file?"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from fencepost.commands import common

if TYPE_CHECKING:
    from fencepost.discover import Source
    from fencepost.ir import Node

_MOST = 72  # characters of one source line

NAME = "lower"
HELP = "print the kernel IR of a source file, with source lines in comments"
EXAMPLE = "fencepost lower examples/row_sums.py --kernel row_sums"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    common.add_file(parser)
    parser.add_argument("--plain", action="store_true", help="without source lines in comments")


def execute(args: argparse.Namespace) -> int:
    """Print every kernel; return 2 if the file has mistakes."""
    from fencepost.commands.schedules import programs
    from fencepost.printer import print_kernel

    reading, source = common.read_kernels(args)
    result = reading.result
    note = (lambda node: "") if args.plain else _notes(source)
    for kernel in result.kernels:
        for assumption in result.assumptions.get(kernel.name, ()):
            print(f"# assuming {assumption}")
        print(print_kernel(kernel, note))
        for line in () if args.plain else programs(kernel):
            print(f"# {line}")
    return 2 if result.errors else 0


def _notes(source: Source) -> Callable[[Node], str]:
    """Comments that name a node's line of the source and, where that is another language, show its text."""
    from fencepost.report.style import safe

    lines = [] if source.file.endswith(".kir") else source.text.split("\n")

    def note(node: Node) -> str:
        span = node.span
        if not span.line:
            return ""
        place = str(span.line) if span.file == source.file else f"{span.file}:{span.line}"
        if span.file != source.file or span.line > len(lines):
            return place
        text = safe(" ".join(lines[span.line - 1].split()))
        return f"{place}: {text if len(text) <= _MOST else text[: _MOST - 1] + '…'}"

    return note
