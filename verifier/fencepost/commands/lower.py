"""`fencepost lower`: which kernel IR does the tool read out of a source file?"""

from __future__ import annotations

import argparse

from fencepost.commands import common

NAME = "lower"
HELP = "print the kernel IR of a source file, with source lines in comments"
EXAMPLE = "fencepost lower kernels/attention.py --kernel attention"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    common.add_file(parser)
    parser.add_argument("--plain", action="store_true", help="without source lines in comments")


def execute(args: argparse.Namespace) -> int:
    """Print every kernel; return 2 if the file has mistakes."""
    from fencepost.printer import print_kernel

    result = common.read_kernels(args).result
    for kernel in result.kernels:
        for assumption in result.assumptions.get(kernel.name, ()):
            print(f"# assuming {assumption}")
        print(print_kernel(kernel))
    return 2 if result.errors else 0
