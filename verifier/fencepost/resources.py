"""Where are the data files (grammar, templates, schema) that the tool reads at run time?"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource(name: str) -> Path:
    """Return the path of a data file, e.g. ``resource("grammar/kernel_ir.lark")``.

    An installed package carries its data under ``fencepost/data``; in a checkout the same relative path stands at the
    top of the repository.  Raises FileNotFoundError when neither has it.
    """
    for root in (_PACKAGE / "data", _PACKAGE.parent.parent):
        path = root / name
        if path.exists():
            return path
    raise FileNotFoundError(f"data file {name!r} is missing from this installation of fencepost; reinstall the package")
