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
    """An access before all accesses to its buffer are known: `cell` is None for the whole buffer.

    `private`: the value of a bind inside the statement, which is there for nobody else.
    """

    buffer: str
    cell: ir.Expr | None
    form: Form | None
    rough: bool = False
    private: bool = False


@dataclass(frozen=True, slots=True)
class RawStep:
    """One operation.  `operands` are those of its reads that it moves or computes with, and not only for finding places
    or conditions; `through` are reads besides those of its text on which depends what it writes.
    """

    reads: tuple[Raw, ...]
    writes: tuple[Raw, ...]
    guard: Guard
    constant: bool
    through: tuple[Raw, ...] = ()
    operands: tuple[Raw, ...] = ()

    def in_doubt(self) -> RawStep:
        """The step under a condition that was not read: whether it writes is not known."""
        return replace(self, writes=tuple(w if w.private else replace(w, rough=True) for w in self.writes))


def in_rounds(steps: list[RawStep]) -> list[RawStep]:
    """The steps of an inner loop of which one round stands for all: what a step writes may depend on all that another
    step read in an earlier round, if the one reads what the other writes.
    """
    sources: dict[str, dict[Raw, None]] = {}
    for step in steps:
        for write in step.writes:
            sources.setdefault(write.buffer, {}).update(dict.fromkeys((*step.reads, *step.through)))
    return [_with_earlier(step, sources) if step.writes and not step.constant else step for step in steps]


def _with_earlier(step: RawStep, sources: dict[str, dict[Raw, None]]) -> RawStep:
    found = dict.fromkeys((*step.reads, *step.through))
    stack, seen = list(found), set[str]()
    while stack:
        buffer = stack.pop().buffer
        if buffer not in seen:
            seen.add(buffer)
            stack += [r for r in sources.get(buffer, ()) if r not in found]
            found |= sources.get(buffer, {})
    return replace(step, through=tuple(r for r in found if r not in step.reads))


@dataclass(slots=True)
class RawStatement:
    node: ir.Stmt
    label: str
    steps: list[RawStep] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # names that its expressions mention
    plain: bool = True
    bind: str | None = None
    copy: bool = False
    partly_copy: bool = False
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
