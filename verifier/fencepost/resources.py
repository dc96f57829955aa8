"""Where do the data files (grammar, templates, schemas) live, installed or in a checkout?"""

from __future__ import annotations

from pathlib import Path


def resource(path: str) -> Path:
    """Return the place of a data file, named as in the checkout (for example ``grammar/kernel_ir.lark``).

    An installed package carries its data under ``fencepost/data``; a checkout has it beside the sources.
    Raises FileNotFoundError, with both places, when it is in neither.
    """
    package = Path(__file__).resolve().parent
    installed = package / "data" / path
    checkout = package.parent.parent / path
    for candidate in (installed, checkout):
        if candidate.exists():
            return candidate
    raise FileNotFoundError(f"{path}: neither {installed} nor {checkout} exists; the installation is incomplete")
