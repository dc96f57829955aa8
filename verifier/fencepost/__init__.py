"""Fencepost: a static verifier and linter for the synchronisation protocols of accelerator kernels.

    import fencepost

    report = fencepost.check("examples/scores.kir")  # a path, source text or a Kernel
    assert report.proved, report.text()

The names below are loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fencepost.api import run as run
    from fencepost.api import skew as skew
    from fencepost.checking import check as check
    from fencepost.findings import Report as Report
    from fencepost.reading import parse as parse

__version__ = "0.1.0"

__all__ = ["Report", "__version__", "check", "parse", "run", "skew"]

_HOMES = {
    "Report": "fencepost.findings",
    "check": "fencepost.checking",
    "parse": "fencepost.reading",
    "run": "fencepost.api",
    "skew": "fencepost.api",
}


def __getattr__(name: str) -> object:
    """Load one of the public names from the module that defines it."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fencepost' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
