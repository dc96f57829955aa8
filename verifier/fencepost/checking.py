"""What does the tool say about these kernels?  The one entry that the command line, the API and the editor share.

A source is read, each kernel is given to the engine, and selection, severity and suppressions are applied to the
outcome.  One bad file or kernel never stops the others, and an exception inside the tool becomes an error of the
report that names the kernel.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from fencepost import engine, ir, suppress
from fencepost.codes import code_of
from fencepost.defects import HINT, defect
from fencepost.discover import Source, discover
from fencepost.findings import InputError, Report, Severity, Verdict
from fencepost.frontends.registry import SUFFIXES
from fencepost.model.program import ModelError
from fencepost.nearest import unknown_name
from fencepost.options import CheckOptions, TargetName, integers, severity_of
from fencepost.reading import parse_assume, read, source_text
from fencepost.selection import apply_severities, select
from fencepost.validate import validate


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of some sources.

    `tracebacks` belong to defects of the tool.  `kernels` and `parameters` are the names of all kernels of the
    sources and of their parameters, also of kernels that were not asked for.
    """

    report: Report = field(default_factory=Report)
    tracebacks: tuple[str, ...] = ()
    kernels: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()


def merge(outcomes: Iterable[Outcome]) -> Outcome:
    """Join the outcomes of several sources, in their order."""
    parts = list(outcomes)
    return Outcome(
        Report(
            tuple(k for part in parts for k in part.report.kernels),
            tuple(e for part in parts for e in part.report.errors),
        ),
        tuple(t for part in parts for t in part.tracebacks),
        frozenset(name for part in parts for name in part.kernels),
        frozenset(name for part in parts for name in part.parameters),
    )


def failed(error: InputError) -> Outcome:
    """The outcome of a source that could not be read."""
    return Outcome(Report((), (error,)))


def check_source(source: Source, options: CheckOptions, only: Sequence[str] = ()) -> Outcome:
    """Check the kernels of one source text.

    `only` holds names or patterns of the kernels wanted; empty means all.  Never raises for anything that the source
    holds.
    """
    reading = read(source)
    kernels = reading.result.kernels
    wanted = [k for k in kernels if not only or any(fnmatchcase(k.name, pattern) for pattern in only)]
    outcome = merge(_check_kernel(k, options, reading.result.assumptions.get(k.name, ()), source.text) for k in wanted)
    # Comments come last but one: they see what was selected, and their own warnings can be selected and graded too.
    reports = [select(kernel, options) for kernel in outcome.report.kernels]
    reports = [select(kernel, options) for kernel in suppress.apply(reports, source.text, source.file)]
    return Outcome(
        Report(
            tuple(apply_severities(kernel, options) for kernel in reports),
            (*reading.result.errors, *outcome.report.errors),
        ),
        (*reading.tracebacks, *outcome.tracebacks),
        frozenset(reading.names),
        frozenset(name for kernel in kernels for name in kernel.parameters),
    )


def check_kernel(kernel: ir.Kernel, options: CheckOptions) -> Outcome:
    """Check one kernel that is already IR."""
    mistakes = validate(kernel)
    if mistakes:
        return Outcome(Report((), tuple(mistakes)), (), frozenset({kernel.name}), frozenset(kernel.parameters))
    outcome = _check_kernel(kernel, options, (), "")
    reports = [apply_severities(select(k, options), options) for k in outcome.report.kernels]
    return replace(outcome, report=replace(outcome.report, kernels=tuple(reports)))


def _check_kernel(kernel: ir.Kernel, options: CheckOptions, assumptions: tuple[str, ...], source: str) -> Outcome:
    """Give a valid kernel to the engine."""
    try:
        report = engine.check_kernel(kernel, _applicable(kernel, options))
    except ModelError as error:
        return failed(InputError(error.span.file, error.span.line, error.span.column, str(error)))
    except Exception as error:
        found = defect(error, kernel.span, f"while checking kernel {kernel.name}")
        return Outcome(Report((), (found.error,)), (found.traceback,))
    if report.verdict is Verdict.REFUTED and not report.findings:
        message = f"internal error: kernel {kernel.name} is refuted without a finding; {HINT}"
        return failed(InputError(kernel.span.file, kernel.span.line, kernel.span.column, message))
    assumptions = tuple(dict.fromkeys((*report.assumptions, *assumptions)))
    return Outcome(Report((replace(report, assumptions=assumptions, source=source or report.source),)))


def _applicable(kernel: ir.Kernel, options: CheckOptions) -> CheckOptions:
    """Keep the fixed values and the extra assumes that speak of parameters of this kernel only."""
    names = set(kernel.parameters)
    return replace(
        options,
        values=tuple(pair for pair in options.values if pair[0] in names),
        assume=tuple(fact for fact in options.assume if names_in(fact) <= names),
    )


def names_in(expression: ir.Expr) -> set[str]:
    """The names that an expression mentions."""
    return {node.id for node in ir.walk(expression) if isinstance(node, ir.Name)}


def _texts(option: str, given: Sequence[str]) -> tuple[str, ...]:
    """The texts of an option that takes several.  Raises TypeError, also for one text instead of a list."""
    texts = () if isinstance(given, str) else tuple(given)
    if isinstance(given, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{option}: expected a list of texts, not {given!r}")
    return texts


def check(
    what: str | os.PathLike[str] | ir.Kernel,
    *,
    kernel: str | None = None,
    values: Mapping[str, int] | None = None,
    assume: Sequence[str] = (),
    target: TargetName | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    severity: Mapping[str, Severity | str] | None = None,
    timeout: float = 30.0,
    prove: bool = True,
    suggest: bool = False,
) -> Report:
    """Check kernels and return the report.

    `what` is the path of a file or folder, source text (a string with a line feed in it), or a `Kernel`.  `kernel`
    names the one kernel wanted; `values` fixes parameters; `assume` adds facts such as ``"n % 2 == 0"``; `select`,
    `ignore` and `severity` speak of codes ("206" or "FP206") or their beginnings; `timeout` is in seconds per kernel.
    `prove` False only searches for counterexamples; `suggest` looks for right schedules of pipelined loops.

    Bad input never raises: it stands in `report.errors`, and `report.proved` is then False.  Raises ValueError or
    TypeError for an option that makes no sense.
    """
    if not isinstance(what, str | os.PathLike | ir.Kernel):
        raise TypeError(f"expected a path, a source text or a Kernel, not {type(what).__name__}")
    if kernel is not None and not isinstance(kernel, str):
        raise TypeError(f"kernel: expected a name, not {type(kernel).__name__}")
    options = CheckOptions(
        target=target,
        values=tuple(integers(values or {}).items()),
        assume=tuple(map(parse_assume, _texts("assume", assume))),
        select=tuple(map(code_of, _texts("select", select))),
        ignore=tuple(map(code_of, _texts("ignore", ignore))),
        severity=tuple((code_of(code), severity_of(level)) for code, level in (severity or {}).items()),
        timeout=timeout,
        prove=prove,
        suggest=suggest,
    )
    if isinstance(what, ir.Kernel):
        outcome = check_kernel(what, options)
    else:
        only = () if kernel is None else (kernel,)
        text = isinstance(what, str) and "\n" in what
        sources = [source_text(str(what))] if text else discover([os.fspath(what)], SUFFIXES)
        outcome = merge(check_source(s, options, only) if isinstance(s, Source) else failed(s) for s in sources)
    if outcome.kernels:
        if kernel is not None and kernel not in outcome.kernels:
            raise ValueError(unknown_name("kernel", kernel, outcome.kernels))
        for name in (*(values or {}), *(n for fact in options.assume for n in sorted(names_in(fact)))):
            if name not in outcome.parameters:
                raise ValueError(unknown_name("parameter", name, outcome.parameters))
    return outcome.report
