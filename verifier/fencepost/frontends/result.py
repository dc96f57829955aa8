"""What does a front end return?"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencepost.findings import InputError
from fencepost.ir import Kernel


@dataclass(frozen=True)
class ReadResult:
    """The kernels of one source text and what was wrong with it.

    `kernels` are in text order.  `errors` are mistakes in the text itself; the other kernels of the file are still
    there.  `assumptions` maps a kernel's name to what the front end took for granted when it read it, one sentence
    each; a kernel without assumptions may be absent.
    """

    kernels: tuple[Kernel, ...] = ()
    errors: tuple[InputError, ...] = ()
    assumptions: dict[str, tuple[str, ...]] = field(default_factory=dict)
