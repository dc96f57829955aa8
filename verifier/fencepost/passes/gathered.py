"""What does each core execute?  All its sections, and what stands outside of sections, as one section.

A pass that looks at one section then sees everything that its agents do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencepost import ir

_CORES: tuple[ir.Core, ...] = ("cube", "vector")


@dataclass(frozen=True, slots=True)
class Gathered:
    """The pass: each agent executes the same statements in the same order; loops outside of sections come twice."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel; the object itself if there is nothing to gather."""
        sections = [item for item in kernel.body if isinstance(item, ir.Section)]
        if len(sections) == len(kernel.body) and len({s.core for s in sections}) == len(sections):
            return kernel
        found: list[ir.Section] = []
        for core in _CORES:
            parts = [item for item in kernel.body if not isinstance(item, ir.Section) or item.core == core]
            body: list[ir.Stmt] = []
            for item in parts:
                body += item.body if isinstance(item, ir.Section) else (item,)
            if parts:
                found.append(ir.Section(core, tuple(body), span=parts[0].span))
        return replace(kernel, body=tuple(found))
