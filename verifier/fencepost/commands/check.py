"""`fencepost check`: what does the tool say about these files, and in which format?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.commands import common
from fencepost.commands.common import UsageError
from fencepost.report.names import FORMATS

if TYPE_CHECKING:
    from collections import Counter

    from fencepost.checking import Outcome
    from fencepost.config import Config
    from fencepost.discover import Source
    from fencepost.findings import InputError, Report
    from fencepost.ir import Kernel
    from fencepost.options import CheckOptions

NAME = "check"
HELP = "check kernels and print the six-point report"
EXAMPLE = "fencepost check examples/ --report sarif=out.sarif"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("paths", metavar="PATH", nargs="+", help="files and folders; - is standard input")
    parser.add_argument("--stdin-filename", metavar="NAME", default="<stdin>", help="the name that - stands for")
    parser.add_argument("--allow-empty", action="store_true", help="a file without a kernel is no error, even alone")
    what = parser.add_argument_group("what is checked")
    what.add_argument(
        "--kernel", metavar="NAME", action="append", default=[], help="only kernels of this name or pattern"
    )
    common.add_parameters(what)
    what.add_argument("--assume", metavar="EXPR", action="append", default=[], help='a fact, e.g. "n %% 2 == 0"')
    what.add_argument("--target", choices=("a5", "a3", "a2"), help="overrides the kernel's own target")
    what.add_argument("--before", metavar="FILE", type=Path,
                      help="the text before a transformation: kernels of the same name must mean the same")  # fmt: skip
    what.add_argument("--timeout", metavar="S", type=common.seconds, help="seconds per kernel (default 30)")
    what.add_argument("--no-prove", action="store_true", help="only search for counterexamples")
    what.add_argument("--suggest", action="store_true", help="look for a right stage and order of pipelined loops")
    rules = parser.add_argument_group("which findings count")
    rules.add_argument("--select", metavar="CODES", type=_codes, action="extend", help="only these codes or prefixes")
    rules.add_argument("--ignore", metavar="CODES", type=_codes, action="extend", help="not these codes or prefixes")
    rules.add_argument("--severity", metavar="CODE=LEVEL", type=_severity, action="append", default=[],
                       help="error, warning or note")  # fmt: skip
    rules.add_argument("--baseline", metavar="FILE", type=Path, help="accept the findings of an earlier run")
    rules.add_argument("--write-baseline", metavar="FILE", type=Path, help="accept all findings of this run later on")
    rules.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    out = parser.add_argument_group("output")
    out.add_argument("--format", choices=FORMATS, default="text", help="format on standard output (default text)")
    out.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the report there instead")
    out.add_argument("--report", metavar="FORMAT=FILE", type=_report, action="append", default=[],
                     help="write a further report (repeatable)")  # fmt: skip
    out.add_argument("--statistics", action="store_true", help="count findings by code")
    out.add_argument("-q", "--quiet", action="store_true", help="only what is not clean")
    out.add_argument("-v", "--verbose", action="store_true", help="whole traces, suppressed findings, tracebacks")
    common.add_color(out)
    parser.add_argument("--no-cache", action="store_true", help="neither use nor keep answers of earlier runs")
    parser.add_argument("-j", "--jobs", metavar="N", type=_jobs, help="processes (default 0: one per processor)")


def execute(args: argparse.Namespace) -> int:
    """Check everything, write the reports and return the exit status."""
    from dataclasses import replace

    from fencepost import config
    from fencepost.checking import merge
    from fencepost.discover import Source, discover
    from fencepost.frontends.registry import SUFFIXES
    from fencepost.phrases import plural
    from fencepost.verdicts import ExitStatus, exit_status

    try:
        settings = config.load(_folder_of(args.paths[0]))
    except config.ConfigError as error:
        raise UsageError(str(error)) from None
    options = replace(_options(args, settings), before=_before(args))
    baseline = _baseline(args, settings)
    sources = list(discover(args.paths, SUFFIXES, settings.exclude, args.stdin_filename))
    if args.allow_empty:
        sources = [replace(s, alone=False) if isinstance(s, Source) else s for s in sources]
    outcomes, interrupted = _check_all(sources, options, args, settings)
    outcome = merge(outcomes)
    report = outcome.report
    if not interrupted:
        _complain_about_names(args, outcome)
        if args.before is not None and outcome.kernels and not any(k.name in outcome.kernels for k in options.before):
            raise UsageError(f"--before: no kernel of {args.before} has the name of a kernel that is checked")
    if baseline is not None:
        from fencepost import baseline as baselines

        report = baselines.apply(report, baseline)
    if args.verbose:
        for text in outcome.tracebacks:
            print(text, file=sys.stderr)
    _write(report, args)
    if interrupted:
        print(f"fencepost: interrupted after {len(outcomes)} of {len(sources)} files", file=sys.stderr)
        return ExitStatus.INTERRUPTED
    if args.write_baseline is not None:
        return _write_baseline(report, args.write_baseline)
    if not sources:
        print("fencepost: no file that could hold a kernel", file=sys.stderr)
    elif not (outcome.kernels or report.errors or args.allow_empty):
        print(f"fencepost: no kernel in {plural(len(sources), 'file')}", file=sys.stderr)
    status = exit_status(report)
    if args.exit_zero and status in (ExitStatus.FINDINGS, ExitStatus.UNDECIDED):
        return ExitStatus.CLEAN
    return status


def _options(args: argparse.Namespace, settings: Config) -> CheckOptions:
    from fencepost.options import CheckOptions
    from fencepost.reading import parse_assume

    try:
        assume = tuple(parse_assume(text) for text in (*settings.assume, *args.assume))
    except ValueError as error:
        raise UsageError(f"--assume: {error}") from None
    return CheckOptions(
        target=args.target or settings.target,
        values=tuple(common.parameters(args.values).items()),
        assume=assume,
        select=tuple(args.select) if args.select is not None else settings.select,
        ignore=tuple(args.ignore) if args.ignore is not None else settings.ignore,
        severity=tuple({**settings.severity, **dict(args.severity)}.items()),
        timeout=args.timeout or settings.timeout or 30.0,
        prove=not args.no_prove,
        suggest=args.suggest,
    )


def _before(args: argparse.Namespace) -> tuple[Kernel, ...]:
    """The kernels of the text that `--before` names.  Raises UsageError."""
    from fencepost.discover import discover
    from fencepost.findings import InputError
    from fencepost.frontends.registry import SUFFIXES
    from fencepost.reading import read

    if args.before is None:
        return ()
    found: list[Kernel] = []
    for source in discover([str(args.before)], SUFFIXES):
        if isinstance(source, InputError):
            raise UsageError(f"--before: {source.file}: {source.message}")
        result = read(source).result
        for error in result.errors:
            place = f"{error.file}:{error.line}:{error.column}" if error.line else error.file
            raise UsageError(f"--before: {place}: {error.message}")
        found += result.kernels
    return tuple(found)


def _check_all(
    sources: list[Source | InputError], options: CheckOptions, args: argparse.Namespace, settings: Config
) -> tuple[list[Outcome], bool]:
    """Check the sources in order; the second value tells that the user interrupted."""
    from fencepost.commands.progress import Progress
    from fencepost.jobs import check_sources

    jobs = args.jobs if args.jobs is not None else settings.jobs or 0
    outcomes: list[Outcome] = []
    with Progress(len(sources), quiet=args.quiet) as progress:
        try:
            for file, outcome in check_sources(sources, options, tuple(args.kernel), jobs, not args.no_cache):
                outcomes.append(outcome)
                progress.step(file)
        except KeyboardInterrupt:
            return outcomes, True
    return outcomes, False


def _complain_about_names(args: argparse.Namespace, outcome: Outcome) -> None:
    """Raise UsageError for a kernel or parameter that no source knows: its name is probably misspelt."""
    from fnmatch import fnmatchcase

    from fencepost.checking import names_in
    from fencepost.nearest import unknown_name
    from fencepost.reading import parse_assume

    if not outcome.kernels:
        return
    for pattern in args.kernel:
        if not any(fnmatchcase(name, pattern) for name in outcome.kernels):
            raise UsageError(unknown_name("kernel", pattern, outcome.kernels))
    for name, _ in args.values:
        if name not in outcome.parameters:
            raise UsageError("-p: " + unknown_name("parameter", name, outcome.parameters))
    for fact in map(parse_assume, args.assume):
        for name in sorted(names_in(fact) - outcome.parameters):
            raise UsageError("--assume: " + unknown_name("parameter", name, outcome.parameters))


def _write(report: Report, args: argparse.Namespace) -> None:
    from fencepost.report import formats

    if args.format == "text" and args.output is None:
        from fencepost.report import text

        print(text.render(
            report, colour=common.wants_color(args.color, sys.stdout), quiet=args.quiet, verbose=args.verbose,
            columns=common.terminal_columns(),
        ), end="")  # fmt: skip
    else:
        _put(formats.render(report, args.format), args.output)
    for name, path in args.report:
        _put(formats.render(report, name), path)
    if args.statistics:
        stream = sys.stdout if args.format in ("text", "concise") and args.output is None else sys.stderr
        for line in _statistics(report):
            print(line, file=stream)


def _put(text: str, path: Path | None) -> None:
    if path is None:
        print(text, end="")
        return
    try:
        path.write_text(text, "utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from None


def _statistics(report: Report) -> Iterable[str]:
    from collections import Counter

    findings = [f for k in report.kernels for f in k.findings if f.suppressed is None]
    names = {f.code: f.name for f in findings}
    for code, number in sorted(Counter(f.code for f in findings).items(), key=lambda pair: (-pair[1], pair[0])):
        yield f"{number:>6}  FP{code}  {names[code]}"


def _baseline(args: argparse.Namespace, settings: Config) -> Counter[str] | None:
    """The active baseline.  While one is written, that of the configuration, and the written file, need not exist."""
    from fencepost import baseline

    path: Path | None = args.baseline or settings.baseline
    if path is None:
        return None
    if args.write_baseline is not None and (args.baseline is None or _same_file(path, args.write_baseline)):
        with suppress(OSError, ValueError):  # it may not be there yet, or be of no use any more
            return baseline.read(path)
        return None
    try:
        return baseline.read(path)
    except OSError as error:
        raise UsageError(f"can't read the baseline {path}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve()
    except (OSError, RuntimeError):  # a link that leads to itself
        return False


def _write_baseline(report: Report, path: Path) -> int:
    from fencepost import baseline

    try:
        number = baseline.write(report, path)
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from None
    print(f"fencepost: {path} accepts {number} finding{'' if number == 1 else 's'}", file=sys.stderr)
    return 2 if report.errors else 0


def _folder_of(path: str) -> Path:
    if path == "-":
        return Path()
    place = Path(path)
    return place if place.is_dir() else place.parent


def _codes(text: str) -> list[str]:
    from fencepost.codes import code_of

    try:
        return [code_of(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _severity(text: str) -> tuple[str, object]:
    from fencepost.codes import code_of
    from fencepost.options import severity_of

    code, _, level = text.partition("=")
    try:
        return code_of(code), severity_of(level)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _report(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals or not path or name not in FORMATS:
        raise argparse.ArgumentTypeError(f"{text!r} is not FORMAT=FILE with a format of {', '.join(FORMATS)}")
    return name, Path(path)


def _jobs(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)
