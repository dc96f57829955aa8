"""Blocks: do two blocks touch the same slot of memory that they share? (209)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fencepost import ir
from fencepost.diagnose.texts import at, describe, related
from fencepost.facts import Fact
from fencepost.model.effects import Touch
from fencepost.model.executor import Op, Run

_Use = tuple[Op, Touch, bool]
"""An operation, what it touches, and whether it writes it."""


def shared_buffers(kernel: ir.Kernel) -> set[str]:
    """The buffers that all blocks share and some operation writes."""
    names = {b.name for b in kernel.buffers if b.shared}
    writes = {a.name for n in ir.walk(kernel) if names and isinstance(n, ir.DataOp) for a in n.writes}
    return names & writes


def blocks_ordered(kernel: ir.Kernel) -> bool:
    """Whether anything could order two blocks: that is not looked at."""
    return any(
        isinstance(n, ir.SyncAll) or (isinstance(n, (ir.SetCross, ir.WaitCross)) and n.mode == "INTER_BLOCK")
        for n in ir.walk(kernel)
    )


def blocks(run: Run, others: Iterable[tuple[int, Run]]) -> Iterator[Fact]:
    """Compare what one block touches with what others do; the first clash is told.

    Args:
        run: of the block that the parameter `block` gives, or of any if there is no such parameter.
        others: block numbers, and their runs for the same parameters.
    """
    names = shared_buffers(run.compiled.kernel)
    block = run.assignment().get("block", 0)
    own = _uses(run, names)
    for other, their in others:
        theirs = _uses(their, names)
        for cell in sorted(own.keys() & theirs.keys()):
            for op, touch, writes in own[cell]:
                found = next(((o, w) for o, _, w in theirs[cell] if writes or w), None)
                if found is None:
                    continue
                values = (
                    ("first", describe(op)), ("block", str(block)), ("second", describe(found[0])),
                    ("other", str(other)), ("slot", str(touch.slot)), ("buffer", touch.access.name),
                )  # fmt: skip
                what = "the write" if found[1] else "the read"
                yield Fact(
                    "209",
                    op.stmt.span,
                    values,
                    (related(found[0], f"{what} of block {other}"),),
                    ("blocks", touch.access.name),
                    operations=(at(op),),
                )
                return


def _uses(run: Run, names: set[str]) -> dict[int, list[_Use]]:
    """Cell -> what touches it."""
    found: dict[int, list[_Use]] = {}
    for ops in run.issued.values():
        for op in ops:
            for touches, writes in ((op.effect.writes, True), (op.effect.reads, False)):
                for touch in touches:
                    if touch.access.name in names:
                        for cell in touch.cells:
                            found.setdefault(cell, []).append((op, touch, writes))
    return found
