"""How does an exception inside the tool become a message for the person who ran it?"""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from fencepost.findings import InputError
from fencepost.ir import Span

HINT = "this is a defect of fencepost, not of the kernel; please report it with the file"


@dataclass(frozen=True, slots=True)
class Defect:
    """The message, and the traceback for `--verbose`."""

    error: InputError
    traceback: str


def defect(error: Exception, span: Span, doing: str) -> Defect:
    """Describe an exception that was raised while `doing` something about the place `span`."""
    if isinstance(error, RecursionError):
        message = f"{doing}: nested too deeply for fencepost"
    elif isinstance(error, MemoryError):
        message = f"{doing}: out of memory"
    else:
        detail = " ".join(str(error).split())[:200]
        message = f"internal error {doing} ({type(error).__name__}{': ' + detail if detail else ''}); {HINT}"
    return Defect(
        InputError(span.file, span.line, span.column, message), "".join(traceback.format_exception(error)).rstrip()
    )
