"""What did an earlier run say about the same text, with the same options and the same tool?

An entry is found by a hash of the text, its name, the options, the versions of tool, solver and Python, and the state
of the tool's own files, so that a changed tool never repeats an old answer.  Only what was decided is kept: an
undecided row may fare better next time.  Entries are JSON, so a foreign file can't do harm; anything odd is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from fencepost.checking import Outcome
from fencepost.discover import Source
from fencepost.options import CheckOptions
from fencepost.verdicts import is_undecided

_MOST = 4000  # entries; beyond it the older half goes


def folder() -> Path:
    """Where entries are kept: `FENCEPOST_CACHE`, or `fencepost` in the user's cache folder."""
    named = os.environ.get("FENCEPOST_CACHE")
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(home) if home else Path.home() / ".cache") / "fencepost"


def through(
    check: Callable[[Source, CheckOptions, Sequence[str]], Outcome],
    source: Source,
    options: CheckOptions,
    only: Sequence[str],
) -> Outcome:
    """Return the remembered outcome of a check, or check and remember."""
    entry = folder() / f"{_key(source, options, only)}.json"
    found = _load(entry)
    if found is not None:
        return _with_source(found, source)
    outcome = check(source, options, only)
    if not outcome.report.errors and outcome.report.kernels and not any(map(is_undecided, outcome.report.kernels)):
        _store(entry, outcome)
    return outcome


def _key(source: Source, options: CheckOptions, only: Sequence[str]) -> str:
    parts = (_tool(), source.file, source.alone, repr(options), tuple(only), source.text)
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()


@cache
def _tool() -> str:
    """The tool's identity: versions, and size and time of each of its own files."""
    import fencepost_rules
    from fencepost.resources import resource
    from fencepost.versions import version

    roots = (Path(__file__).parent, Path(fencepost_rules.__file__).parent, resource("grammar"))
    stamps = []
    for root in roots:
        for where, _, names in os.walk(root):
            for name in sorted(names):
                if name.endswith((".py", ".lark", ".json")):
                    status = os.stat(os.path.join(where, name))
                    stamps.append((where, name, status.st_size, status.st_mtime_ns))
    return repr((version(), sorted(stamps)))


def _load(entry: Path) -> Outcome | None:
    try:
        decoded = decode(Outcome, json.loads(entry.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return decoded if isinstance(decoded, Outcome) else None


def _store(entry: Path, outcome: Outcome) -> None:
    """Write an entry at once or not at all; a folder that can't be written is no reason to fail."""
    draft = entry.with_suffix(f".{os.getpid()}")
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(encode(_without_source(outcome)), ensure_ascii=False), "utf-8")
        draft.replace(entry)
        _prune(entry.parent)
    except (OSError, UnicodeEncodeError):
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _prune(where: Path) -> None:
    entries = list(where.glob("*.json"))
    if len(entries) > _MOST:
        entries.sort(key=lambda path: path.stat().st_mtime)
        for old in entries[: _MOST // 2]:
            old.unlink(missing_ok=True)


def _without_source(outcome: Outcome) -> Outcome:
    kernels = tuple(replace(kernel, source="") for kernel in outcome.report.kernels)
    return replace(outcome, report=replace(outcome.report, kernels=kernels))


def _with_source(outcome: Outcome, source: Source) -> Outcome:
    kernels = tuple(replace(kernel, source=source.text) for kernel in outcome.report.kernels)
    return replace(outcome, report=replace(outcome.report, kernels=kernels))


def encode(value: object) -> object:
    """Turn dataclasses, enums, tuples and sets into what JSON can hold."""
    if isinstance(value, Enum):
        return value.name
    if is_dataclass(value):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple | frozenset):
        return [encode(item) for item in value]
    return value


def decode(kind: Any, value: Any) -> Any:
    """Turn what `encode` made back into a value of the type `kind`.

    Raises ValueError, TypeError or KeyError for a value of another shape.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if value is None and NoneType in arguments:
            return None
        (kind,) = (argument for argument in arguments if argument is not NoneType)
        return decode(kind, value)
    if origin in (tuple, frozenset):
        if not isinstance(value, list):
            raise TypeError("expected a list")
        if origin is frozenset or arguments[1:] == (...,):
            return origin(decode(arguments[0], item) for item in value)
        return tuple(decode(part, item) for part, item in zip(arguments, value, strict=True))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind[value]
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        if not isinstance(value, dict) or value.keys() != hints.keys():
            raise TypeError("expected other fields")
        return kind(**{name: decode(hint, value[name]) for name, hint in hints.items()})
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"expected {kind}")
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
