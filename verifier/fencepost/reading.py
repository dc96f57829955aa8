"""Which kernels does a source hold, whatever it holds?"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.defects import defect
from fencepost.discover import Source
from fencepost.findings import InputError
from fencepost.frontends.registry import read_source, syntax_mistake
from fencepost.frontends.result import ReadResult
from fencepost.nearest import unknown_name
from fencepost.spelling import is_name
from fencepost.validate import validate

_VARIABLE = re.compile(r"[^\W\d]\w*\b(?!\s*\()")  # a name that is not called


class InvalidSource(ValueError):
    """The text is not a kernel; `errors` says why, one entry per mistake."""

    def __init__(self, errors: tuple[InputError, ...]) -> None:
        self.errors = errors
        super().__init__("\n".join(f"{e.file}:{e.line}:{e.column}: {e.message}" for e in errors))


@dataclass(frozen=True, slots=True)
class Reading:
    """The kernels of a source that can be checked, with every mistake in it.

    `names` are those of all kernels, also of invalid ones.  `tracebacks` belong to defects of the front end.
    """

    result: ReadResult
    names: tuple[str, ...] = ()
    tracebacks: tuple[str, ...] = ()


def read(source: Source) -> Reading:
    """Read and validate the kernels of a source.  Never raises for anything that the source holds."""
    try:
        result = read_source(source.text, source.file)
        if source.named and not result.kernels and not result.errors:
            mistake = syntax_mistake(source.text, source.file)
            if mistake is not None:
                return Reading(ReadResult(errors=(mistake,)))
        if source.alone and not result.kernels and not result.errors:
            return Reading(ReadResult(errors=(InputError(source.file, 0, 0, "no kernel in this file"),)))
        errors = list(result.errors)
        kernels = []
        for kernel in result.kernels:
            mistakes = validate(kernel)
            errors.extend(with_excerpt(mistake, source) for mistake in mistakes)
            if not mistakes:
                kernels.append(kernel)
    except Exception as error:
        found = defect(error, ir.Span(source.file), f"reading {source.file}")
        return Reading(ReadResult(errors=(found.error,)), (), (found.traceback,))
    return Reading(ReadResult(tuple(kernels), tuple(errors), result.assumptions), tuple(k.name for k in result.kernels))


def with_excerpt(error: InputError, source: Source) -> InputError:
    """The error with its line of the source, for the caret."""
    if error.excerpt or error.file != source.file or error.line < 1:
        return error
    lines = source.text.split("\n")
    return replace(error, excerpt=lines[error.line - 1]) if error.line <= len(lines) else error


def source_text(text: str, file: str = "<text>") -> Source:
    """Turn text in memory into a source, with plain line feeds and no byte order mark."""
    return Source(file, text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))


def parse(text: str, kernel: str | None = None, file: str = "<text>") -> ir.Kernel:
    """Read the kernel in `text`; `kernel` names the one wanted where there are several.

    Raises InvalidSource for mistakes in the text, for several kernels without a choice, and for an unknown name;
    TypeError for what is no text.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected the text of a kernel, not {type(text).__name__}")
    reading = read(source_text(text, file))
    if reading.result.errors:
        raise InvalidSource(reading.result.errors)
    wanted = [k for k in reading.result.kernels if kernel in (None, k.name)]
    if len(wanted) == 1:
        return wanted[0]
    names = ", ".join(reading.names)
    why = f"several kernels, name one: {names}" if wanted else unknown_name("kernel", str(kernel), reading.names)
    raise InvalidSource((InputError(file, 0, 0, why),))


def parse_assume(text: str) -> ir.Expr:
    """Read a fact about parameters, e.g. ``"n % 2 == 0"``.  Raises ValueError with what is wrong."""
    words = dict.fromkeys(_VARIABLE.findall(text))
    names = ", ".join(word for word in words if is_name(word) and word not in ir.BUILTINS)
    result = read_source(f"kernel assumed({names}):\n    assume ({text}\n    )\n", "<assume>.kir")
    if result.errors or len(result.kernels) != 1 or len(result.kernels[0].assumes) != 1:
        why = f": {result.errors[0].message}" if result.errors else ""
        raise ValueError(f"{text!r} is not a fact about parameters{why}")
    return result.kernels[0].assumes[0]
