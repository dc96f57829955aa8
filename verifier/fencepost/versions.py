"""Which versions of the tool and of what it stands on are these?"""

from __future__ import annotations

import os
import sys


def version() -> str:
    """One line that names the versions of the tool, z3, lark and Python, found without importing either library."""
    from fencepost import __version__

    python = ".".join(map(str, sys.version_info[:3]))
    return f"fencepost {__version__} (z3 {_installed('z3_solver')}, lark {_installed('lark')}, Python {python})"


def _installed(name: str) -> str:
    """Version of an installed distribution, read off its metadata folder's name; importlib.metadata takes longer."""
    for folder in sys.path:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(name + "-") and entry.endswith(".dist-info"):
                return entry[len(name) + 1 : -len(".dist-info")]
    return "missing"
