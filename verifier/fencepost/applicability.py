"""Applicability: which rows have anything to say about a kernel, and which of them stand or fall together?"""

from __future__ import annotations

from fencepost import ir
from fencepost.findings import Row
from fencepost.model.target import TARGETS
from fencepost.participation import sub_cores_differ

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


def relies_on(kernel: ir.Kernel) -> dict[Row, frozenset[Row]]:
    """Rows whose sentence is only true if other rows are proved as well.

    Without `task =` the round of an access is what the signals say, so a wrong slot or a signal of another buffer shows
    as an unordered access, a hang or a leftover; and where the two sub-cores may differ, one that does not take part
    shows as a hang or a leftover.
    """
    found: dict[Row, frozenset[Row]] = {}
    depths = {b.name: b.depth for b in kernel.buffers}
    shared = _shared(kernel)
    if any(depths[name] is not None for name in shared):
        found[Row.SLOT_MAPPING] = frozenset({Row.EVENT_POSITION, Row.PAIRING, Row.COUNTS})
    if len(shared) > 1 and any(isinstance(n, ir.WaitCross) for n in ir.walk(kernel)):
        found[Row.PAIRING] = frozenset({Row.EVENT_POSITION})
    if sub_cores_differ(kernel):
        found[Row.PARTICIPANTS] = frozenset({Row.PAIRING, Row.COUNTS})
    return found


def _shared(kernel: ir.Kernel) -> set[str]:
    """Buffers that both core kinds may touch: by name, or at addresses of one space."""
    touched: dict[str, set[str]] = {"cube": set(), "vector": set()}
    buffers = {b.name: b for b in kernel.buffers}
    for item in kernel.body:
        names = {n.name for n in ir.walk(item) if isinstance(n, ir.Access) and n.name in buffers}
        for core in (item.core,) if isinstance(item, ir.Section) else ("cube", "vector"):
            touched[core] |= names
    spaces = {
        core: {buffers[name].space for name in names if buffers[name].addresses is not None}
        for core, names in touched.items()
    }
    both = spaces["cube"] & spaces["vector"]
    placed = {b.name for b in kernel.buffers if b.addresses is not None and b.space in both}
    return (touched["cube"] & touched["vector"]) | (placed & (touched["cube"] | touched["vector"]))
