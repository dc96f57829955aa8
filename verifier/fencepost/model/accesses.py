"""Which accesses meet in memory without an order?

Per cell the last write is kept, and the last read of each pipe since: an earlier access is ordered before these, or was
reported itself.
"""

from __future__ import annotations

from typing import Literal

from fencepost.model.clocks import Clock
from fencepost.model.effects import Touch
from fencepost.model.outcome import Op, Race, Run, Unwritten


class _Cell:
    """The last write of a cell, and per pipe the last read since."""

    __slots__ = ("reads", "uses", "write", "write_touch", "writes")

    def __init__(self) -> None:
        self.write: Op | None = None
        self.write_touch: Touch | None = None
        self.reads: dict[int, tuple[Op, Touch]] = {}
        self.writes = 0
        self.uses: dict[tuple[str, int], int] = {}


class Accesses:
    """The memory of one run; adds races and unwritten reads to its outcome, one per pair of effects."""

    def __init__(self, result: Run) -> None:
        self._result = result
        self._cells: dict[int, _Cell] = {}
        self._seen: set[tuple[object, ...]] = set()

    def touch(self, op: Op, clock: Clock) -> None:
        """Note the accesses of `op`, which runs now and knows `clock`."""
        effect = op.effect
        cells = self._cells
        for touch in effect.reads:
            unwritten = touch.written
            for c in touch.cells:
                cell = cells.get(c)
                if cell is None:
                    cell = cells[c] = _Cell()
                last = cell.write
                use = (effect.agent, effect.site)
                cell.uses[use] = cell.uses.get(use, 0) + 1
                if last is not None:
                    unwritten = False
                    if clock[last.pipe] < last.seq:
                        assert cell.write_touch is not None
                        self._race("write-read", last, op, touch, cell.write_touch, cell, use)
                cell.reads[op.pipe] = (op, touch)
            if unwritten and ("unwritten", id(effect)) not in self._seen:
                self._seen.add(("unwritten", id(effect)))
                self._result.unwritten.append(Unwritten(op, touch))
        for touch in effect.writes:
            for c in touch.cells:
                cell = cells.get(c)
                if cell is None:
                    cell = cells[c] = _Cell()
                if cell.reads:
                    for reader, read_touch in cell.reads.values():
                        if reader is not op and clock[reader.pipe] < reader.seq:
                            use = (reader.effect.agent, reader.effect.site)
                            self._race("read-write", reader, op, touch, read_touch, cell, use)
                    cell.reads.clear()
                last = cell.write
                if last is not op:
                    if last is not None and clock[last.pipe] < last.seq:
                        assert cell.write_touch is not None
                        self._race("write-write", last, op, touch, cell.write_touch, cell, None)
                    cell.writes += 1
                    cell.write = op
                cell.write_touch = touch

    def _race(
        self,
        kind: Literal["write-read", "read-write", "write-write"],
        first: Op,
        second: Op,
        touch: Touch,
        first_touch: Touch,
        cell: _Cell,
        use: tuple[str, int] | None,
    ) -> None:
        key = (id(first.effect), id(second.effect), kind, touch.access.name)
        if key in self._seen:
            return
        self._seen.add(key)
        uses = cell.uses.get(use, 0) if use is not None else 0
        writes = cell.writes + (0 if kind == "write-read" else 1)
        self._result.races.append(Race(kind, first, second, touch, first_touch, uses, writes))
