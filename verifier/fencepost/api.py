"""What can a Python program do with kernels, beside checking them?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost import ir
from fencepost.reading import parse

if TYPE_CHECKING:
    from fencepost.replay import Replay


def run(kernel: ir.Kernel | str, **values: int) -> Replay:
    """Run a kernel, or the one in a source text, on concrete values: ``fencepost.run(kernel, n=5)``.

    The result tells whether the run was clean, what went wrong, what passed over each channel, and the timeline.
    Raises `fencepost.replay.Refused` (a ValueError) for values that can't be run, TypeError for values that are no
    integers, and `fencepost.reading.InvalidSource` (a ValueError) for a text that is not one kernel.
    """
    from fencepost.replay import replay

    return replay(kernel if isinstance(kernel, ir.Kernel) else parse(kernel), values)


def skew(kernel: ir.Kernel | str) -> ir.Kernel:
    """Return the kernel after the skew pass.

    Raises `fencepost.passes.skew.SkewError` (a ValueError) for a loop that can't be treated at all.
    """
    from fencepost.passes.skew import Skew

    return Skew().run(kernel if isinstance(kernel, ir.Kernel) else parse(kernel)).kernel
