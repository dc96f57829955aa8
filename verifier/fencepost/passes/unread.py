"""Which assignments are overwritten before anybody reads them?  They are taken out.

The same operations are issued in the same order; faults of the scalar expressions that go are not seen any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.passes.slices import reads

Block = tuple[ir.Stmt, ...]


@dataclass(frozen=True, slots=True)
class Unread:
    """The pass."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel without such assignments."""
        body = tuple(
            replace(item, body=_kept(item.body, set())) if isinstance(item, ir.Section) else item
            for item in kernel.body
        )
        return replace(kernel, body=body)


def _kept(body: Block, dead: set[str]) -> Block:
    """The statements of a block that are kept.

    `dead`: the scalars that are surely assigned before they are read, first after the block, then before it.
    """
    found: list[ir.Stmt] = []
    for stmt in reversed(body):
        match stmt:
            case ir.Assign(name=name, value=value):
                if name in dead:
                    continue
                dead.add(name)
                dead -= reads(value)
            case ir.If(branches=branches, orelse=orelse):
                ways = [set(dead) for _ in range(len(branches) + 1)]
                arms = tuple(
                    (condition, _kept(arm, way)) for (condition, arm), way in zip(branches, ways, strict=False)
                )
                stmt = replace(stmt, branches=arms, orelse=_kept(orelse, ways[-1]))
                dead.intersection_update(*ways)
                dead -= reads(*(condition for condition, _ in branches))
            case ir.For(body=inner):
                read = reads(stmt.start, stmt.stop, stmt.step).union(*map(reads, inner))
                stmt = replace(stmt, body=_kept(inner, set()))
                dead -= read
            case ir.Break() | ir.Continue():
                dead.clear()
            case _:
                dead -= reads(stmt)
        found.append(stmt)
    return tuple(reversed(found))
