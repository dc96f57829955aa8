"""How does a long campaign go on where it was stopped, on a machine that does other things too?

Results are kept in a file, one JSON object a line; limits are processor seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

T = TypeVar("T")


@contextmanager
def processor_time() -> Iterator[None]:
    """Let time limits count what this process uses, so that a busy machine changes no verdict."""
    with patch("time.monotonic", time.process_time):
        yield


def load(path: Path | None) -> list[dict[str, Any]]:
    """The results in a file; none if there is no file."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def kept(results: Iterable[T], path: Path | None) -> Iterator[T]:
    """The results as they come; the fields of each are added to the file, if one is kept."""
    for result in results:
        if path is not None:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result.__dict__) + "\n")
        yield result
