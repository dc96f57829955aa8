"""What does the project say about its checks, in `[tool.fencepost]` of the nearest pyproject.toml?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from fencepost.codes import code_of
from fencepost.findings import Severity
from fencepost.nearest import unknown_name
from fencepost.options import TARGETS, TargetName, severity_of


class ConfigError(ValueError):
    """The configuration can't be used; the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of a project; None or empty where it says nothing.  Paths are relative to the file's folder."""

    target: TargetName | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: dict[str, Severity] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    assume: tuple[str, ...] = ()
    timeout: float | None = None
    jobs: int | None = None
    baseline: Path | None = None


def load(start: Path) -> Config:
    """Return the settings of the nearest pyproject.toml at or above `start` that has a `[tool.fencepost]` table.

    Raises ConfigError when that file can't be read, is not TOML, or holds an unknown key or a value of a wrong kind.
    """
    folder = start.absolute()
    for above in (folder, *folder.parents):
        path = above / "pyproject.toml"
        try:
            text = path.read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: can't read it: {error}") from None
        if "fencepost" not in text:
            continue
        table = _table(path, text)
        if table is not None:
            return _config(path, table)
    return Config()


def _table(path: Path, text: str) -> dict[str, object] | None:
    import tomllib

    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}") from None
    tool = data.get("tool", {})
    table = tool.get("fencepost") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: tool.fencepost is not a table")
    return table


def _config(path: Path, table: dict[str, object]) -> Config:
    settings: dict[str, object] = {}
    for key, value in table.items():
        reader = _READERS.get(key)
        if reader is None:
            raise ConfigError(f"{path}: [tool.fencepost]: {unknown_name('key', key, _READERS)}")
        try:
            settings[key] = reader(value, path.parent)
        except ValueError as error:
            raise ConfigError(f"{path}: [tool.fencepost] {key}: {error}") from None
    return Config(**settings)  # type: ignore[arg-type]


def _strings(value: object, _: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("expected a list of strings")
    return tuple(value)


def _codes(value: object, folder: Path) -> tuple[str, ...]:
    return tuple(map(code_of, _strings(value, folder)))


def _target(value: object, _: Path) -> TargetName:
    for name in TARGETS:
        if value == name:
            return name
    raise ValueError(f"expected one of {', '.join(TARGETS)}")


def _severities(value: object, _: Path) -> dict[str, Severity]:
    if not isinstance(value, dict):
        raise ValueError('expected a table such as { FP307 = "warning" }')
    return {code_of(code): severity_of(level) for code, level in value.items()}


def _seconds(value: object, _: Path) -> float:
    with suppress(OverflowError):
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < float(value) < inf:
            return float(value)
    raise ValueError("expected a positive number of seconds")


def _jobs(value: object, _: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("expected a number of processes, 0 for one per processor")
    return value


def _path(value: object, folder: Path) -> Path:
    if not isinstance(value, str):
        raise ValueError("expected a path")
    return folder / value


_READERS: dict[str, Callable[[object, Path], object]] = {
    "target": _target,
    "select": _codes,
    "ignore": _codes,
    "severity": _severities,
    "exclude": _strings,
    "assume": _strings,
    "timeout": _seconds,
    "jobs": _jobs,
    "baseline": _path,
}
