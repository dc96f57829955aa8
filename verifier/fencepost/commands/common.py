"""What do several verbs share: options, messages, colour, reading one file?"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from fencepost import ir
    from fencepost.discover import Source
    from fencepost.reading import Reading


class UsageError(Exception):
    """The command line, or what it names, can't be used; the message is for the person who typed it."""


def add_color(parser: argparse._ActionsContainer) -> None:
    """Add `--color`."""
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto",
        help="colour the text report (auto: on a terminal, unless NO_COLOR is set)",
    )  # fmt: skip


def wants_color(choice: str, stream: TextIO) -> bool:
    """Whether to colour what goes to `stream`."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def terminal_columns() -> int:
    """Width for text reports: that of the terminal within reason, 120 where there is none."""
    import shutil

    if not sys.stdout.isatty():
        return 120
    return max(60, min(160, shutil.get_terminal_size((120, 24)).columns))


def seconds(text: str) -> float:
    """Read a positive number of seconds.  Raises argparse.ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value


def parameter(text: str) -> tuple[str, int]:
    """Read `NAME=VALUE`.  Raises argparse.ArgumentTypeError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, for example n=5")
    try:
        return name.strip(), int(value.strip(), 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} is not an integer (in {text!r})") from None


def parameters(pairs: list[tuple[str, int]]) -> dict[str, int]:
    """Turn the pairs of repeated `-p` into a mapping.  Raises UsageError for a name given twice."""
    values: dict[str, int] = {}
    for name, value in pairs:
        if values.setdefault(name, value) != value:
            raise UsageError(f"-p {name} is given twice, as {values[name]} and {value}")
    return values


def add_parameters(parser: argparse._ActionsContainer) -> None:
    """Add `-p NAME=VALUE`."""
    parser.add_argument(
        "-p", dest="values", metavar="NAME=VALUE", type=parameter, action="append", default=[],
        help="fix a parameter (repeatable)",
    )  # fmt: skip


def add_file(parser: argparse.ArgumentParser) -> None:
    """Add the file argument of the verbs that look at one source, `--stdin-filename` and `--kernel`."""
    parser.add_argument("file", metavar="FILE", help="a source file, or - for standard input")
    parser.add_argument("--stdin-filename", metavar="NAME", default="<stdin>", help="the name that - stands for")
    parser.add_argument("--kernel", metavar="NAME", help="only kernels of this name or pattern")


def source_of(args: argparse.Namespace) -> Source:
    """Read the one source that `args.file` names.  Raises UsageError."""
    from fencepost.discover import discover
    from fencepost.findings import InputError
    from fencepost.frontends.registry import SUFFIXES

    if args.file != "-" and Path(args.file).is_dir():
        raise UsageError(f"{args.file} is a folder; name one file")
    for found in discover([args.file], SUFFIXES, stdin_name=args.stdin_filename):
        if isinstance(found, InputError):
            raise UsageError(f"{found.file}: {found.message}")
        return found
    raise UsageError(f"{args.file}: nothing to read")


def read_kernels(args: argparse.Namespace) -> tuple[Reading, Source]:
    """Read the kernels of the source that `args.file` names; only `args.kernel` if given.

    Mistakes in the text go to standard error.  Raises UsageError if that leaves no kernel, or for an unknown name.
    """
    from fnmatch import fnmatchcase

    from fencepost.nearest import unknown_name
    from fencepost.reading import read
    from fencepost.report.style import Style
    from fencepost.report.text import error_lines

    source = source_of(args)
    reading = read(source)
    style = Style(wants_color("auto", sys.stderr))
    for error in reading.result.errors:
        print("\n".join(error_lines(error, style)), file=sys.stderr)
    if args.kernel is None:
        kernels = reading.result.kernels
    else:
        kernels = tuple(k for k in reading.result.kernels if fnmatchcase(k.name, args.kernel))
        if reading.names and not any(fnmatchcase(name, args.kernel) for name in reading.names):
            raise UsageError(unknown_name("kernel", args.kernel, reading.names))
    if not kernels:
        raise UsageError(f"no kernel could be read from {source.file}")
    return replace(reading, result=replace(reading.result, kernels=kernels)), source


def one_kernel(args: argparse.Namespace) -> ir.Kernel:
    """Read the one kernel that `args.file` and `args.kernel` name.  Raises UsageError."""
    kernels = read_kernels(args)[0].result.kernels
    if len(kernels) > 1:
        raise UsageError(
            f"{args.file} holds {len(kernels)} kernels, choose with --kernel: "
            + ", ".join(kernel.name for kernel in kernels)
        )
    return kernels[0]
