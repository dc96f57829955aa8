"""What is an annotated loop, reduced to what its pipelining depends on?

One `Loop` is a counted loop whose body is a list of statements.  A statement reads and writes cells of buffers; the
values themselves never matter.  Iterations are counted from 0; `start` is the first value of the loop variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from fencepost.ir import NOWHERE, Expr, Span
from fencepost.pipeline.sequence import ALWAYS, Guard, Sequence


@dataclass(frozen=True, slots=True)
class Whole:
    """Every cell of the buffer."""


@dataclass(frozen=True, slots=True)
class At:
    """One cell, which may change with the iteration."""

    cell: Sequence


@dataclass(frozen=True, slots=True)
class Somewhere:
    """One cell that is no sequence: the value of `expr` in each iteration."""

    expr: Expr


Index: TypeAlias = Whole | At | Somewhere


@dataclass(frozen=True, slots=True)
class Access:
    """`rough`: the cells are a guess (too many rather than too few), so no difference found through them is certain."""

    buffer: str
    index: Index = Whole()
    rough: bool = False


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer used by the loop.

    `local`: allocated in the scope of the loop, so the compiler may keep several versions of it; a buffer that is not
    local is a parameter of the kernel.  `cells` is the number of its cells, None for an array without end.
    `initialised`: written before the loop.  `inner`: the value of a bind inside a statement, which no other one uses.
    """

    name: str
    local: bool
    cells: int | None = 1
    initialised: bool = True
    inner: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a statement that consists of several operations; what it does is described as for a statement."""

    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    guard: Guard = ALWAYS
    cellwise: bool = False
    constant: bool = False


@dataclass(frozen=True)
class Statement:
    """One statement at the top level of the body.

    `reads` and `writes` are in source order.  `bind` is the name of the scalar that the statement defines; such a
    statement writes nothing else.  `uses` are the binds that its text mentions.  `pure`: a bind of scalar type whose
    value has no side effect.  `cellwise`: the value of cell j depends on cell j of the first read only, not on its
    other cells.  `constant`: stores the same value in every iteration.  `plain`: no branch and no inner loop of
    unknown length inside, so the compiler can count commits in it.  `copy`: moves data from global to on-chip memory
    and does nothing else, or branches that copy (`partly_copy`: it is not known whether the compiler takes it for one).
    `inner` are the operations of a statement with several, in order; `reads` and `writes` are
    then those of all of them.  `unseen`: so many reads at the end the compiler does not see (what is kept of cells
    that are written in part, and what a value comes through).  `touched` are further cells that the compiler takes to
    be read: it counts what a tile operation writes as read, too.  `fetched` are the reads that go on after the issue of
    an asynchronous statement (None: all of them); others, such as scalars in places, are over by then.
    """

    label: str
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    guard: Guard = ALWAYS
    bind: str | None = None
    uses: tuple[str, ...] = ()
    pure: bool = True
    cellwise: bool = False
    constant: bool = False
    plain: bool = True
    copy: bool = False
    partly_copy: bool = False
    inner: tuple[Step, ...] = ()
    unseen: int = 0
    touched: tuple[Access, ...] = ()
    fetched: tuple[Access, ...] | None = None
    span: Span = NOWHERE

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The operations of the statement, in order."""
        return self.inner or (Step(self.reads, self.writes, ALWAYS, self.cellwise, self.constant),)

    @cached_property
    def seen(self) -> tuple[Access, ...]:
        """The reads as the compiler sees them."""
        return self.reads[: len(self.reads) - self.unseen] + self.touched

    @property
    def guards(self) -> tuple[Guard, ...]:
        """All conditions in the statement."""
        return self.guard, *(step.guard for step in self.inner)

    @cached_property
    def exposed(self) -> tuple[Access, ...]:
        """The reads that may see what the statement itself did not write just before."""
        found = []
        for n, step in enumerate(self.steps):
            earlier = [w for s in self.steps[:n] if s.guard in (ALWAYS, step.guard) for w in s.writes]
            found += [r for r in step.reads if not any(covers(w, r) for w in earlier)]
        return tuple(found)


def covers(write: Access, read: Access) -> bool:
    """Whether `write` surely fills, in the same iteration, all that `read` reads."""
    if write.buffer != read.buffer or write.rough:
        return False
    return isinstance(write.index, Whole) or write.index == read.index


@dataclass(frozen=True, slots=True)
class Annotations:
    """The annotations as written; None where the key is absent.

    The lists have an entry for each statement that is scheduled, or (older form) for each statement.  `replayable` is
    a flag per statement that overrides which binds are replayed.
    """

    stage: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None
    num_stages: int | None = None
    async_stages: tuple[int, ...] | None = None
    async_producers: tuple[int, ...] | None = None
    async_producer_groups: tuple[int, ...] | None = None
    replayable: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Loop:
    """An annotated loop.  `start` is None if it is not constant.

    `after` are the cells that are read after the loop, `written_later` those that are written then; as a whole, a
    buffer without end stands for all its cells that the loop uses.  `read_later` are other buffers that are read then.
    If the loop is `repeated`, it may run again: its own statements come next.
    """

    statements: tuple[Statement, ...]
    buffers: tuple[Buffer, ...]
    annotations: Annotations = field(default_factory=Annotations)
    start: int | None = 0
    after: tuple[Access, ...] = ()
    read_later: frozenset[str] = frozenset()
    written_later: tuple[Access, ...] = ()
    repeated: bool = False
    variable: str = "i"
    span: Span = NOWHERE

    @cached_property
    def buffer(self) -> dict[str, Buffer]:
        return {b.name: b for b in self.buffers}

    @cached_property
    def written(self) -> frozenset[str]:
        """The buffers that some statement writes."""
        return frozenset(a.buffer for s in self.statements for a in s.writes)

    @cached_property
    def definition(self) -> dict[str, int]:
        """Bind name -> its statement."""
        return {s.bind: n for n, s in enumerate(self.statements) if s.bind is not None}

    @cached_property
    def carried(self) -> frozenset[str]:
        """The buffers that an iteration may read as they were before it."""
        return frozenset(
            read.buffer
            for n, s in enumerate(self.statements)
            for read in s.exposed
            if not any(fills(earlier, s, read) for earlier in self.statements[:n])
        )

    def can_replay(self, n: int) -> bool:
        """Whether statement n is a bind whose value may be computed again anywhere in its iteration."""
        s = self.statements[n]
        return s.bind is not None and s.pure and not any(r.buffer in self.written for r in s.reads)

    def may_overlap(self, first: list[Access], second: list[Access]) -> bool:
        """Whether two sets of accesses to one buffer share a cell in one iteration, as far as the compiler can tell.

        The compiler takes the smallest interval around each set and compares the two.
        """
        a, b = _interval(first), _interval(second)
        return a is None or b is None or a[0] != b[0] or (a[1] <= b[2] and b[1] <= a[2])


def fills(writer: Statement, reader: Statement, read: Access) -> bool:
    """Whether `writer`, which stands before, surely writes in the same iteration all that `read` of `reader` reads."""
    return writer.guard in (ALWAYS, reader.guard) and any(
        step.guard == ALWAYS and any(covers(w, read) for w in step.writes) for step in writer.steps
    )


def _interval(accesses: list[Access]) -> tuple[int, int, int] | None:
    """Gain per iteration, and the cells at iteration 0: (gain, least, greatest); None if that is no interval."""
    cells = [a.index.cell for a in accesses if isinstance(a.index, At)]
    if len(cells) < len(accesses) or any(c.period > 1 or c.gain != cells[0].gain for c in cells):
        return None
    values = [c.values[0] for c in cells]
    return cells[0].gain, min(values), max(values)
