"""`fencepost skew`: what does the skew pass make of a kernel, and is the result right?"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from fencepost.commands import common

if TYPE_CHECKING:
    from fencepost import ir
    from fencepost.discover import Source
    from fencepost.findings import KernelReport
    from fencepost.grouping import Grouping
    from fencepost.passes.skew import Skewed, SkewError

NAME = "skew"
HELP = "print a kernel after the skew pass, and what became of each pipeline loop"
EXAMPLE = "fencepost skew examples/pipeline.kir --diff"

_WORSE = (0, 3, 1, 2).index
_SEVERITY = {"proved": 0, "n/a": 0, "unknown": 3, "vacuous": 3, "refuted": 1}
"""The exit status for what is shown about a grouped kernel."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    common.add_file(parser)
    parser.add_argument("--diff", action="store_true", help="print the difference to the kernel as written")
    parser.add_argument(
        "--verify", action="store_true",
        help="prove that messages keep their order and that nothing hangs; exit status as of `check`",
    )  # fmt: skip
    parser.add_argument(
        "--group", action="store_true",
        help="let loops with several round trips, or with run-time bounds, run one round trip ahead, if that is proved",
    )  # fmt: skip
    parser.add_argument("--timeout", metavar="S", type=common.seconds, default=30.0,
                        help="seconds per kernel for --verify")  # fmt: skip
    common.add_color(parser)


def execute(args: argparse.Namespace) -> int:
    """Print every kernel of the file; return 2 if the file has mistakes or a kernel cannot be skewed."""
    from fencepost.passes.skew import Skew, SkewError

    reading, source = common.read_kernels(args)
    status = 2 if reading.result.errors else 0
    for kernel in reading.result.kernels:
        grouping = None
        try:
            if args.group:
                grouping = _grouped(kernel, args.timeout)
            skewed = grouping.skewed if grouping is not None else Skew().run(kernel)
        except SkewError as error:
            _refused(error, source)
            status = 2
            continue
        is_grouped = any(outcome.action == "grouped" for outcome in skewed.loops)
        if grouping is not None:
            for line in _remarks(kernel, grouping):
                print(line)
            status = max(status, _SEVERITY[grouping.verdict.value], key=_WORSE)
        if not args.verify:
            for line in _program(kernel, skewed, args.diff):
                print(line)
            continue
        for line in _loops(kernel, skewed):
            print(line)
        verified = _verify(skewed.kernel, source, args, whole=True) if is_grouped else _verify(kernel, source, args)
        status = max(status, verified, key=_WORSE)
    return status


def _grouped(kernel: ir.Kernel, timeout: float) -> Grouping:
    """The kernel with grouped loops if nothing about it gets worse; else the plain skew and the reason."""
    from fencepost.grouping import group

    return group(kernel, timeout)


def _remarks(kernel: ir.Kernel, grouping: Grouping) -> list[str]:
    """Why a kernel is not grouped, or what is not shown about the grouped kernel."""
    lines = [f"# {kernel.name}: not grouped: {grouping.refusal}"] if grouping.refusal else []
    for check in grouping.open:
        row = f"{check.row.id} {check.row.title}" if check.row.id.isdigit() else check.row.title
        lines.append(f"# {kernel.name}: {row}: {check.verdict.value}, as before the grouping: {check.evidence}")
    for fact in grouping.notes:
        lines.append(f"# line {fact.span.line}: {dict(fact.values)['detail']}")
    return lines


def _refused(error: SkewError, source: Source) -> None:
    from fencepost.reading import with_excerpt
    from fencepost.report.style import Style
    from fencepost.report.text import error_lines

    style = Style(common.wants_color("auto", sys.stderr))
    print("\n".join(error_lines(with_excerpt(error.input_error(), source), style)), file=sys.stderr)


def _loops(kernel: ir.Kernel, skewed: Skewed) -> list[str]:
    if not skewed.loops:
        return [f"# {kernel.name}: no pipeline loop"]
    return [f"# line {outcome.loop.span.line}: {outcome}" for outcome in skewed.loops]


def _program(kernel: ir.Kernel, skewed: Skewed, diff: bool) -> list[str]:
    from fencepost.printer import print_kernel

    after = print_kernel(skewed.kernel).splitlines()
    if not diff:
        return [*_loops(kernel, skewed), *after, ""]
    from difflib import unified_diff

    before = print_kernel(kernel).splitlines()
    name = kernel.name
    changes = unified_diff(before, after, f"{name} as written", f"{name} after the skew", lineterm="", n=3)
    return [*_loops(kernel, skewed), *changes]


def _verify(kernel: ir.Kernel, source: Source, args: argparse.Namespace, whole: bool = False) -> int:
    """Check the kernel and print what the report says about its messages, as written and after the skew.

    `whole`: print all of the report; the kernel is not the one that was written.
    """
    from dataclasses import replace

    from fencepost.checking import check_kernel
    from fencepost.findings import Report, Row
    from fencepost.options import CheckOptions
    from fencepost.report.text import render
    from fencepost.verdicts import exit_status, overall

    outcome = check_kernel(kernel, CheckOptions(timeout=args.timeout))

    def about_messages(report: KernelReport) -> KernelReport:
        rows = tuple(Row) if whole else (Row.FIFO, Row.SKEW)
        return replace(
            report,
            checks=tuple(c for c in report.checks if c.row in rows),
            findings=tuple(f for f in report.findings if f.row in rows),
            unknown=tuple(u for u in report.unknown if u.row in rows),
            source=source.text,
        )

    kernels = tuple(about_messages(k) for k in outcome.report.kernels)
    report = Report(tuple(replace(k, verdict=overall(k.checks)) for k in kernels), outcome.report.errors)
    print(render(report))
    return int(exit_status(report))
