"""What may asynchronous statements that were not awaited still do?

Such a statement fills the cells that it writes, and fetches what it reads, at any time from its issue to the end of a
wait that covers its commit group.  Among themselves they act in the order of issue, as the groups do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from fencepost.pipeline.cells import Cell, Instance, cells_after
from fencepost.pipeline.model import Access, Statement
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.setting import Setting

Flying: TypeAlias = tuple[tuple[Cell, Instance], ...]
"""Cells, each with the asynchronous statement that is not done with it."""


@dataclass(slots=True)
class Flights:
    """The state of a running program.

    For each cell, the commit group and the instance of the last asynchronous statement that writes it (`filling`) or
    reads it (`fetching`, only where somebody else writes the cell).
    """

    plan: Plan
    filling: dict[Cell, tuple[int, Instance]] = field(default_factory=dict)
    fetching: dict[Cell, tuple[int, Instance]] = field(default_factory=dict)
    committed: int = 0
    completed: int = 0

    def fork(self) -> Flights:
        """A copy that goes its own way."""
        return replace(self, filling=dict(self.filling), fetching=dict(self.fetching))

    def wait(self, pending: int) -> None:
        """All but the last `pending` groups are over."""
        self.completed = max(self.completed, self.committed - pending)

    def fills(self, instance: Instance, cells: Iterable[Cell]) -> None:
        """An asynchronous write of `cells` is issued."""
        self.filling.update((cell, (self.committed, instance)) for cell in cells)

    def fetches(self, instance: Instance, cells: Iterable[Cell]) -> None:
        """An asynchronous read of `cells` is issued."""
        self.fetching.update((cell, (self.committed, instance)) for cell in cells)

    def unfilled(self, cells: Iterable[Cell]) -> Flying:
        """Those of some cells that an asynchronous statement may not have filled yet."""
        return tuple(self._flying(self.filling, cells))

    def in_use(self, cells: Iterable[Cell]) -> Flying:
        """Those of some cells that an asynchronous statement may still fill or fetch."""
        found = list(cells)
        return (*self._flying(self.filling, found), *self._flying(self.fetching, found))

    def _flying(self, which: dict[Cell, tuple[int, Instance]], cells: Iterable[Cell]) -> list[tuple[Cell, Instance]]:
        flying = ((cell, which[cell]) for cell in cells if cell in which)
        return [(cell, instance) for cell, (group, instance) in flying if group >= self.completed]

    # ------------------------------------------------------------------------------------------------ after the loop

    def read_too_early(self, setting: Setting) -> Flying:
        """The cells that are read after the loop and may not be filled by then."""
        loop = self.plan.loop
        after = [c for a in loop.after for c in cells_after(loop, a, self.filling, setting)]
        return self.unfilled((*after, *(c for c in self.filling if c[0] in loop.read_later)))

    def written_too_early(self, setting: Setting) -> Flying:
        """The cells that are written after the loop and may be in use then; other versions are the loop's own."""
        loop = self.plan.loop
        used = dict.fromkeys((*self.filling, *self.fetching))
        later = {c for a in self.plan.written_later for c in cells_after(loop, a, used, setting)}
        return self.in_use(c for c in used if (c[0], 0, c[2]) in later and (c[1] == 0 or loop.repeated))


def fetched(plan: Plan, text: Statement, access: Access) -> bool:
    """Whether a statement, if it is asynchronous, may read `access` after its issue, and somebody else writes it."""
    written = access.buffer in plan.loop.written or any(a.buffer == access.buffer for a in plan.written_later)
    return written and (text.fetched is None or access in text.fetched)
