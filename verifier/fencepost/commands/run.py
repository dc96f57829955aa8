"""`fencepost run`: what does a kernel do on concrete values?"""

from __future__ import annotations

import argparse
import re
import sys
from itertools import product
from typing import TYPE_CHECKING

from fencepost.commands import common
from fencepost.commands.common import UsageError

if TYPE_CHECKING:
    from fencepost import ir
    from fencepost.model.functions import Point
    from fencepost.model.program import Compiled
    from fencepost.replay import Replay

NAME = "run"
HELP = "run the reference executor on concrete values"
EXAMPLE = "fencepost run examples/scores.kir -p n=3 --timeline text"

_POINT = re.compile(r"\s*([^\W\d]\w*)\s*\(([-\s\d,]*)\)\s*=\s*(-?\d+)\s*")
_ROW = re.compile(r"\s*([^\W\d]\w*)\s*\(\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*\)\s*=\s*(-?\d+)\s*")
_RANGE = re.compile(r"\s*([^\W\d]\w*)\s*=\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*")
_GRID = 100_000  # points


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    common.add_file(parser)
    parser.add_argument(
        "-p", dest="values", metavar="NAME=VALUE", type=_value, action="extend", default=[],
        help="the value of a parameter, or of an unknown function at points: 'need(0)=2', 'need(1..9)=0' (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--all", dest="grid", metavar="NAME=LOW..HIGH", type=_range, action="append", default=[],
        help="run every value of a range (repeatable: every combination), one line each",
    )  # fmt: skip
    parser.add_argument(
        "--seed", metavar="N", type=int, help="random values for unknown functions, repeatable (default: 1)"
    )
    parser.add_argument(
        "--credits",
        choices=("per_slot", "batched"),
        help="how message credits travel (default: as the kernel says, else both)",
    )
    parser.add_argument("--target", choices=("a5", "a3", "a2"), help="overrides the kernel's own target")
    parser.add_argument("--limit", metavar="N", type=_positive, default=1_000_000,
                        help="instructions per core at most (default 1,000,000)")  # fmt: skip
    parser.add_argument("--timeline", choices=("text", "svg", "html", "perfetto"), help="print the steps of the run")
    parser.add_argument("--last", metavar="N", type=_positive, help="only the last N steps of the timeline")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    common.add_color(parser)


def execute(args: argparse.Namespace) -> int:
    """Run the kernel; return 1 if something went wrong in the run, 2 if it could not be run."""
    from fencepost.model.program import ModelError
    from fencepost.replay import Refused

    _complain_about_options(args)
    kernel = common.one_kernel(args)
    if args.target:
        from dataclasses import replace

        kernel = replace(kernel, target=args.target)
    values, functions = _given(args.values)
    try:
        if args.grid:
            return _grid(kernel, values, functions, args)
        return _one(kernel, values, functions, args)
    except Refused as error:
        raise UsageError(str(error)) from None
    except ModelError as error:
        raise UsageError(f"{error.span.file}:{error.span.line}: {error}") from None


def _complain_about_options(args: argparse.Namespace) -> None:
    """Raises UsageError for options that have no effect with each other."""
    if args.last is not None and not args.timeline:
        raise UsageError("--last says how much of a timeline is shown; choose one with --timeline")
    if args.json and args.timeline not in (None, "text"):
        raise UsageError(f"--json and --timeline {args.timeline} are two formats for one output; choose one")
    if args.grid and args.timeline:
        raise UsageError("--timeline shows one run; --all makes many")
    fixed = {name for name, _ in args.values}
    ranges: set[str] = set()
    for name, _ in args.grid:
        if name in ranges:
            raise UsageError(f"--all {name} is given twice")
        if name in fixed:
            raise UsageError(f"{name} is given by -p and by --all; give it once")
        ranges.add(name)


def _given(pairs: list[tuple[str | Point, int]]) -> tuple[dict[str, int], dict[Point, int]]:
    """The values of parameters, and those of unknown functions.  Raises UsageError for one that is given twice."""
    from fencepost.model.functions import show

    values = common.parameters([(name, value) for name, value in pairs if isinstance(name, str)])
    functions: dict[Point, int] = {}
    for point, value in pairs:
        if not isinstance(point, str) and functions.setdefault(point, value) != value:
            raise UsageError(f"-p {show(point)} is given twice, as {functions[point]} and {value}")
    return values, functions


def _one(kernel: ir.Kernel, values: dict[str, int], functions: dict[Point, int], args: argparse.Namespace) -> int:
    done = _replay(kernel, values, functions, args)
    if args.json:
        import json

        from fencepost.report import replay as report

        data = report.to_dict(done)
        if args.timeline:
            data["timeline"] = [report.step(step) for step in done.timeline(args.last).steps]
        print(json.dumps(data, indent=2, ensure_ascii=False))
    elif args.timeline in (None, "text"):
        _print_text(done, args)
        from fencepost.commands.schedules import steps

        for line in steps(kernel, done.values):
            print(line)
    else:
        _print_timeline(done, args)
    return 0 if done.clean else 1


def _print_text(done: Replay, args: argparse.Namespace) -> None:
    from fencepost.report import replay as report
    from fencepost.report.lanes import lanes
    from fencepost.report.style import Style

    colour = common.wants_color(args.color, sys.stdout)
    print(report.render(done, colour=colour), end="")
    if args.timeline:
        found = done.timeline(args.last)
        print()
        if found.earlier:
            print(f"… {found.earlier} earlier steps")
        for line in lanes(found.steps, Style(colour), common.terminal_columns(), None):
            print(line)


def _print_timeline(done: Replay, args: argparse.Namespace) -> None:
    from fencepost.report import perfetto, svg
    from fencepost.report.replay import outcome, values

    found = done.timeline(args.last)
    title = " · ".join(part for part in (done.kernel, values(done), outcome(done)) if part)
    match args.timeline:
        case "svg":
            print(svg.document(found.steps, found.links, title))
        case "html":
            print(svg.page(found.steps, found.links, title))
        case _:
            print(perfetto.render(found.steps, found.links))


def _grid(kernel: ir.Kernel, values: dict[str, int], functions: dict[Point, int], args: argparse.Namespace) -> int:
    """Run every combination, one line each; combinations that the assumes exclude are left out."""
    from fencepost.model.program import compile_kernel
    from fencepost.passes.serial import Serial
    from fencepost.replay import Excluded, known_names
    from fencepost.report import replay as report
    from fencepost.report.style import Style

    ranges: dict[str, range] = dict(args.grid)
    points = 1
    for values_of in ranges.values():
        points *= len(values_of)
    if points > _GRID:
        raise UsageError(f"--all makes {points:,} runs; {_GRID:,} are the limit")
    compiled = compile_kernel(Serial().run(kernel))
    known_names(compiled, (*values, *ranges), functions)
    style = Style(common.wants_color(args.color, sys.stdout))
    found: list[dict[str, object]] = []
    bad = excluded = done = 0
    for combination in product(*ranges.values()):
        point = {**values, **dict(zip(ranges, combination, strict=True))}
        try:
            result = _replay(compiled, point, functions, args)
        except Excluded:
            excluded += 1
            continue
        done += 1
        bad += not result.clean
        if args.json:
            found.append(report.to_dict(result))
        else:
            operations = sum(executed for executed, _ in result.operations.values())
            peak = max((count.peak or 0 for count in result.counts), default=0)
            told = style.paint(report.outcome(result), "green" if result.clean else "red")
            print(f"{report.values(result):<24}  {operations:>8} operations  {peak:>3} pending at most  {told}")
    if args.json:
        import json

        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        left = f", {excluded} excluded by the assumes" if excluded else ""
        print(f"{done} runs: {done - bad} clean, {bad} not{left}")
    if not done:
        raise UsageError("no combination satisfies what the kernel assumes")
    return 1 if bad else 0


def _replay(
    kernel: ir.Kernel | Compiled, values: dict[str, int], functions: dict[Point, int], args: argparse.Namespace
) -> Replay:
    from fencepost.replay import replay

    return replay(kernel, values, functions, seed=args.seed, credits=args.credits, limit=args.limit)


def _value(text: str) -> list[tuple[object, int]]:
    """`n=5`, or `need(0, 1)=2` and `need(0..9)=2` for an unknown function."""
    row = _ROW.fullmatch(text)
    if row is not None and 0 <= int(row[3]) - int(row[2]) < _GRID:
        return [((row[1], (k,)), int(row[4])) for k in range(int(row[2]), int(row[3]) + 1)]
    match = _POINT.fullmatch(text)
    if match is None:
        return [common.parameter(text)]
    try:
        arguments = tuple(int(part) for part in match[2].split(",") if part.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME(INTEGER, ...)=VALUE") from None
    return [((match[1], arguments), int(match[3]))]


def _range(text: str) -> tuple[str, range]:
    match = _RANGE.fullmatch(text)
    if match is None or int(match[3]) < int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=LOW..HIGH, for example n=0..12")
    return match[1], range(int(match[2]), int(match[3]) + 1)


def _positive(text: str) -> int:
    if not (text.isascii() and text.replace("_", "").isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)
