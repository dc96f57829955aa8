"""What is known about the accesses of a loop body before all of them have been seen?

How the cells of a buffer are best named depends on all accesses to it, so statements are collected first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.pipeline.forms import Form
from fencepost.pipeline.model import Access, At, Index, Somewhere, Whole
from fencepost.pipeline.sequence import Guard, Sequence


@dataclass(frozen=True, slots=True)
class Raw:
    """An access before all accesses to its buffer are known: `cell` is None for the whole buffer."""

    buffer: str
    cell: ir.Expr | None
    form: Form | None
    rough: bool = False


@dataclass(frozen=True, slots=True)
class RawStep:
    reads: tuple[Raw, ...]
    writes: tuple[Raw, ...]
    guard: Guard
    constant: bool

    def in_doubt(self) -> RawStep:
        """The step under a condition that was not read: whether it writes is not known."""
        return replace(self, writes=tuple(replace(w, rough=True) for w in self.writes))


@dataclass(slots=True)
class RawStatement:
    node: ir.Stmt
    label: str
    steps: list[RawStep] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # names that its expressions mention
    plain: bool = True
    bind: str | None = None
    copy: bool = False
    touched: list[Raw] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shape:
    """How the cells of one buffer are named.

    `flat`: as a single cell; `same`: all remainders are equal; `stream`: an output, where each execution leaves a
    value of its own.
    """

    cells: int | None
    flat: bool = False
    same: bool = False
    stream: bool = False

    def access(self, raw: Raw) -> Access:
        return Access(raw.buffer, self._index(raw), raw.rough or (self.flat and raw.cell is not None))

    def _index(self, raw: Raw) -> Index:
        if self.stream:
            return At(Sequence.linear(1, 0))
        if raw.cell is None or self.flat:
            return Whole()
        if raw.form is not None and (self.same or not raw.form.rest):
            return At(raw.form.sequence)
        return Somewhere(raw.cell)
