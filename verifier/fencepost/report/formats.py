"""Which module renders which format?"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from fencepost.findings import Report
from fencepost.report.names import FORMATS


class _Renderer(Protocol):
    def render(self, report: Report) -> str: ...


def render(report: Report, name: str) -> str:
    """Return the report in the format `name`, one of `FORMATS`, with that format's defaults."""
    if name not in FORMATS:
        raise ValueError(f"no format {name!r}; there are {', '.join(FORMATS)}")
    return cast(_Renderer, import_module(f"fencepost.report.{name}")).render(report)
