"""Which kernels and which mistakes are in a kernel text?  Cutting, parsing with recovery, and collecting errors."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fencepost import ir
from fencepost.findings import InputError
from fencepost.frontends.kir.automaton import Tables
from fencepost.frontends.kir.build import Builder
from fencepost.frontends.kir.indent import Indenter
from fencepost.frontends.kir.recovery import KernelParse
from fencepost.frontends.result import ReadResult
from fencepost.spelling import nearest, suggestion
from fencepost.validate import mistakes

if TYPE_CHECKING:
    from lark import Lark

_LOCK = threading.Lock()
"""The parser of a process, its indenter and its builder serve one text at a time."""

_HEADER = re.compile(r"^(?:kernel\b|[ \t]+kernel[ \t]+\w+[ \t]*\(|([^\W\d]\w*)[ \t]+[^\W\d]\w*[ \t]*\()", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Parser:
    lark: Lark
    tables: Tables
    indenter: Indenter
    builder: Builder


@functools.cache
def _parser() -> _Parser:
    """The parser of this process."""
    from fencepost.frontends.kir.parser import parser

    indenter, builder = Indenter(), Builder()
    lark = parser(indenter, builder)
    return _Parser(lark, Tables.of(lark), indenter, builder)


class _Errors:
    """Collects the mistakes of one text."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: dict[tuple[int, int, str], None] = {}

    def report(self, line: int, column: int, message: str) -> None:
        self._found.setdefault((line, column, message))

    def __len__(self) -> int:
        return len(self._found)

    def finish(self, text: str) -> tuple[InputError, ...]:
        """The mistakes in text order, with their source lines."""
        if not self._found:
            return ()
        lines = text.split("\n")
        return tuple(
            InputError(self._file, line, column, message, lines[line - 1] if line <= len(lines) else "")
            for line, column, message in sorted(self._found)
        )


def read(text: str, file: str) -> ReadResult:
    """Read the kernels of `text`; `file` is the name that spans and messages carry.

    Never raises for any text.  A kernel with a mistake is left out; mistakes in other kernels do not touch it.
    """
    text = _normal(text)
    errors = _Errors(file)
    kernels: list[ir.Kernel] = []
    headers: dict[str, int] = {}
    with _LOCK:
        parser = _parser()
        for line, chunk, is_kernel in _chunks(text):
            if not is_kernel:
                _stray(chunk, line, errors)
                continue
            before = len(errors)
            if chunk[0] in " \t":
                errors.report(line, chunk.index("kernel") + 1, "a kernel header must begin in column 1")
            parser.builder.begin(file, errors.report, headers)
            parse = KernelParse(parser.lark, parser.tables, parser.indenter, parser.builder, errors.report)
            for kernel in parse.run(chunk, line):
                for mistake in mistakes(kernel, parse.bad_names | parser.builder.dropped):
                    errors.report(mistake.span.line, mistake.span.column, mistake.message)
                if len(errors) == before:
                    kernels.append(kernel)
    return ReadResult(tuple(kernels), errors.finish(text))


def _normal(text: str) -> str:
    """Without byte order mark, every line ended by a line feed."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.endswith("\n") else text + "\n"


def _chunks(text: str) -> Iterator[tuple[int, str, bool]]:
    """Cut `text` at the kernel headers: (first line, text, whether it begins with a header)."""
    starts: list[int] = []
    for found in _HEADER.finditer(text):
        word = found.group(1)
        if word is None or nearest(word, ["kernel"]):
            starts.append(found.start())
    ends = [*starts[1:], len(text)] if starts else []
    line = 1
    if not starts or starts[0] > 0:
        before = text[: starts[0] if starts else len(text)]
        yield line, before, False
        line += before.count("\n")
    for start, end in zip(starts, ends, strict=True):
        yield line, text[start:end], True
        line += text.count("\n", start, end)


def _stray(text: str, line: int, errors: _Errors) -> None:
    """Report text in front of the first kernel, once."""
    for offset, content in enumerate(text.split("\n")):
        stripped = content.lstrip()
        if stripped and not stripped.startswith("#"):
            column = len(content) - len(stripped) + 1
            word = re.match(r"\w*", stripped)
            hint = suggestion(word.group() if word else "", ["kernel"])
            errors.report(line + offset, column, f"expected 'kernel NAME(...):' before any other text{hint}")
            return
