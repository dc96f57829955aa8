"""Which source texts do the paths on the command line stand for?"""

from __future__ import annotations

import codecs
import io
import os
import stat
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from fencepost.findings import InputError

SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})
"""Folders that are not entered, beside hidden ones and virtual environments."""


_HERE = os.path.join(os.curdir, "")


@dataclass(frozen=True, slots=True)
class Source:
    """One text to check.

    `file` is the name that reports show.  `text` has plain line feeds and no byte order mark.  `alone` tells that the
    user named this very file and nothing else, so that it is an error if it holds no kernel; `named` that it was named,
    perhaps with others, and not found in a folder.
    """

    file: str
    text: str
    alone: bool = True
    named: bool = True


def decode(data: bytes, file: str) -> str:
    """Decode source bytes; line ends become line feeds and a byte order mark is dropped.

    Python files may declare an encoding (PEP 263); everything else is UTF-8.  Raises ValueError with a message that
    names the line and the byte when the data is not text in that encoding.
    """
    encoding = "utf-8"
    if file.endswith(".py"):
        try:
            encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        except SyntaxError:  # unknown or undecodable declaration: judged as UTF-8 below
            encoding = "utf-8"
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    try:
        text = data.decode(encoding.removesuffix("-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        what = f"not {encoding.upper()} text: byte 0x{data[error.start]:02x} at line {line}, byte {column}"
        raise ValueError(what) from None
    except LookupError:
        raise ValueError(f"unknown encoding {encoding!r}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def discover(
    paths: Sequence[str], suffixes: Sequence[str], exclude: Sequence[str] = (), stdin_name: str = "<stdin>"
) -> Iterator[Source | InputError]:
    """Yield the sources behind `paths` (files, folders, `-` for standard input), each file once, in a stable order.

    In a folder only files with one of `suffixes` count; `exclude` holds glob patterns matched against names and
    paths below the folder.  What can't be read becomes an `InputError`; the others still come.
    """
    seen: set[object] = set()
    alone = len(paths) == 1
    for path in paths:
        if path == "-":
            try:
                data = sys.stdin.buffer.read()
            except (OSError, AttributeError) as error:  # None, where standard input is closed
                why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is closed"
                yield InputError(stdin_name, 0, 0, f"can't read standard input: {why}")
                continue
            yield _decoded(data, stdin_name, alone, True)
        elif os.path.isdir(path):
            yield from _folder(path, tuple(suffixes), tuple(exclude), seen)
        else:
            yield from _file(path, seen, named=True, alone=alone)


def _file(path: str, seen: set[object], named: bool, alone: bool) -> Iterator[Source | InputError]:
    try:
        status = os.stat(path)
        identity = (status.st_dev, status.st_ino)
        if identity in seen:
            return
        seen.add(identity)
        if not (stat.S_ISREG(status.st_mode) or (named and stat.S_ISFIFO(status.st_mode))):
            if named:
                yield InputError(path, 0, 0, "can't read the file: it is neither a regular file nor a pipe")
            return
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        if isinstance(error, FileNotFoundError) and os.path.islink(path):
            reason = f"it is a link to {os.readlink(path)!r}, which does not exist"
        yield InputError(path, 0, 0, f"can't read the file: {reason}")
        return
    yield _decoded(data, path, alone, named)


def _decoded(data: bytes, file: str, alone: bool, named: bool) -> Source | InputError:
    try:
        return Source(file, decode(data, file), alone, named)
    except ValueError as error:
        return InputError(file, 0, 0, str(error))


def _folder(
    top: str, suffixes: tuple[str, ...], exclude: tuple[str, ...], seen: set[object]
) -> Iterator[Source | InputError]:
    """Walk a folder without recursion.  Links are followed; a folder that was entered before is not entered again."""
    entered: set[tuple[int, int]] = set()
    stack = [top]
    while stack:
        folder = stack.pop()
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in entered:
                continue
            entered.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            yield InputError(folder, 0, 0, f"can't read the folder: {error.strerror or error}")
            continue
        below: list[str] = []
        for entry in entries:
            if _excluded(os.path.relpath(entry.path, top), entry.name, exclude):
                continue
            if _is_dir(entry):
                if not _skipped(entry):
                    below.append(entry.path)
            elif entry.name.endswith(suffixes):
                yield from _file(entry.path.removeprefix(_HERE), seen, named=False, alone=False)
        stack.extend(reversed(below))


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _skipped(entry: os.DirEntry[str]) -> bool:
    hidden = entry.name.startswith(".")
    return hidden or entry.name in SKIPPED_FOLDERS or os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))


def _excluded(relative: str, name: str, exclude: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) or fnmatch(relative, pattern) for pattern in exclude)
