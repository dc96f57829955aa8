"""Which front end reads this source text?

A front end is a module with ``read(text, file) -> ReadResult``.  It is chosen by file name and by a cheap look at the
text, and is imported only when a text needs it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import Protocol, cast

from fencepost.findings import InputError
from fencepost.frontends.result import ReadResult


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """One source language: the module that reads it, its file suffixes, and patterns that all occur in such a text.

    The first pattern tells that the text uses the language, even if it holds no kernel.
    """

    name: str
    module: str
    suffixes: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]

    def accepts(self, text: str) -> bool:
        """Whether the text looks like this language and holds at least one kernel."""
        return all(pattern.search(text) for pattern in self.patterns)


FRONT_ENDS = (
    FrontEnd("kernel IR", "fencepost.frontends.kir", (".kir",), (re.compile(r"^\s*kernel\s+\w+\s*\(", re.MULTILINE),)),
    FrontEnd(
        "PyPTO-Pro",
        "fencepost.frontends.pypto_pro",
        (".py",),
        (
            re.compile(r"\bpypto_pro\b"),
            re.compile(
                r"^[ \t]*@(?:\w+\.)*jit\b|\bsection_(?:cube|vector)\b|\b(?:set|wait)_cross_core\b", re.MULTILINE
            ),
        ),
    ),
    FrontEnd(
        "PyPTO IR",
        "fencepost.frontends.pypto_ir",
        (".py",),
        (
            re.compile(r"^[ \t]*(?:import|from)[ \t]+pypto\b", re.MULTILINE),
            re.compile(r"^[ \t]*@(?:\w+\.)*(?:program|function)\b", re.MULTILINE),
        ),
    ),
    FrontEnd(
        "TileLang",
        "fencepost.frontends.tilelang",
        (".py",),
        (
            re.compile(r"^[ \t]*(?:import|from)[ \t]+(?:tilelang|tvm)\b", re.MULTILINE),
            re.compile(r"\b(?:Pipelined|software_pipeline_(?:stage|order))\b"),
        ),
    ),
)

SUFFIXES = tuple(sorted({suffix for front_end in FRONT_ENDS for suffix in front_end.suffixes}))
"""Suffixes of the files that are looked at in a folder."""


class _Reader(Protocol):
    def read(self, text: str, file: str) -> ReadResult: ...


def front_end_for(text: str, file: str) -> FrontEnd | None:
    """Return the front end for a text, or None if no front end finds a kernel in it.

    A file whose suffix belongs to one language only (`.kir`) always goes to that language, so that mistakes in it are
    explained; a suffix shared with ordinary programs (`.py`) needs a look at the text; any other name, such as that of
    standard input, is judged by the text alone.
    """
    suffix = PurePath(file).suffix.lower()
    if suffix == ".kir":
        return FRONT_ENDS[0]
    for front_end in FRONT_ENDS:
        if (suffix in front_end.suffixes or suffix not in SUFFIXES) and front_end.accepts(text):
            return front_end
    for front_end in FRONT_ENDS:  # a kernel may hide behind a mistake, which the front end then tells
        if suffix in front_end.suffixes and front_end.patterns[0].search(text):
            return front_end if syntax_mistake(text, file) is not None else None
    return None


def syntax_mistake(text: str, file: str) -> InputError | None:
    """Why the text of a Python file is no Python, with line and column; None if it is, or if the file is another's."""
    if PurePath(file).suffix.lower() != ".py":
        return None
    from fencepost.frontends.pypto_pro.source import Source

    found = Source(text, file).parse()
    return found if isinstance(found, InputError) else None


def read_source(text: str, file: str) -> ReadResult:
    """Read the kernels of one source text; `file` is the name that spans and messages carry.

    Never raises for bad input: a text that no front end accepts gives an empty result, a text with NUL characters an
    error with its position.
    """
    front_end = front_end_for(text, file)
    if front_end is None:
        return ReadResult()
    nul = text.find("\0")
    if nul >= 0:
        start = text.rfind("\n", 0, nul) + 1
        message = f"a NUL character; {front_end.name} source is plain text"
        return ReadResult(errors=(InputError(file, text.count("\n", 0, nul) + 1, nul - start + 1, message),))
    return cast(_Reader, import_module(front_end.module)).read(text, file)
