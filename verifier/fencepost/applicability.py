"""Applicability: which rows have anything to say about a kernel?"""

from __future__ import annotations

from fencepost import ir
from fencepost.findings import Row
from fencepost.model.target import TARGETS

_SIGNALS = (ir.SetCross, ir.WaitCross, ir.SyncSrc, ir.SyncDst, ir.SyncAll, ir.MutexLock, ir.MutexUnlock)
SIX_POINTS = (
    Row.SLOT_MAPPING,
    Row.EVENT_POSITION,
    Row.PAIRING,
    Row.COUNTS,
    Row.BOUNDARY,
    Row.PARTICIPANTS,
)


def applicable(kernel: ir.Kernel) -> dict[Row, bool]:
    """The rows of the kernel's report in order: the six points always, the others where the kernel has such things.

    The value says whether the row applies; a row that does not is printed as `n/a`.
    """
    nodes = list(ir.walk(kernel))
    buffers = {b.name for b in kernel.buffers}
    data = [n for n in nodes if isinstance(n, ir.DataOp)]
    touches = any(a.name in buffers for n in data for a in (*n.writes, *n.reads))
    indexed = any(isinstance(n, (ir.Item, ir.Field, ir.Assert)) for n in nodes) or any(
        isinstance(n, ir.Binary) and n.op in ("%", "//") for n in nodes
    )
    signals = any(isinstance(n, _SIGNALS) for n in nodes)
    messages = bool(kernel.fifos) or any(isinstance(n, (ir.Push, ir.Pop, ir.Free)) for n in nodes)
    crosses = any(isinstance(n, (ir.SetCross, ir.WaitCross, ir.SyncAll, ir.SyncSrc, ir.MutexLock)) for n in nodes)
    sections = {item.core if isinstance(item, ir.Section) else "all" for item in kernel.body}
    if not TARGETS[kernel.target].cores:
        return {**dict.fromkeys(SIX_POINTS, False), Row.PIPELINE: any(isinstance(n, ir.Pipelined) for n in nodes)}
    rows = {
        Row.SLOT_MAPPING: touches or indexed,
        Row.EVENT_POSITION: touches,
        Row.PAIRING: signals,
        Row.COUNTS: signals,
        Row.BOUNDARY: any(isinstance(n, (ir.For, ir.If, ir.Pipelined)) for n in nodes),
        Row.PARTICIPANTS: crosses or (touches and bool(sections & {"vector", "all"})),
    }
    if messages:
        rows[Row.FIFO] = True
    if any(isinstance(n, ir.For) and n.stage is not None for n in nodes):
        rows[Row.SKEW] = True
    if any(n.phase is not None for n in data):
        rows[Row.PHASES] = True
    if any(isinstance(n, ir.Pipelined) for n in nodes):
        rows[Row.PIPELINE] = True
    return rows
