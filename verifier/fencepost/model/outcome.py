"""What came of one concrete run: operations, faults and counts, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fencepost import ir
from fencepost.model.clocks import Stamp
from fencepost.model.effects import Channel, Effect, PipeKey, Resolver, Touch
from fencepost.model.functions import Point
from fencepost.model.issue import BadValue
from fencepost.model.program import Compiled


class Op:
    """One issued operation.

    `number` counts the operations of its agent; `seq` counts those of its pipe once executed (0: never executed).
    `task` is the annotated round, or None.  `after` is the clock of pipe S when it was issued, `locks` the earlier
    holders of its mutexes on other pipes, `released` its clock at completion where somebody may need it, `message`
    the number of the message that it pushes, pops or frees.
    """

    __slots__ = ("after", "effect", "locks", "message", "number", "pipe", "released", "seq", "task")

    def __init__(self, effect: Effect, number: int, task: int | None, pipe: int) -> None:
        self.effect = effect
        self.number = number
        self.task = task
        self.pipe = pipe
        self.seq = 0
        self.after: Stamp | None = None
        self.locks: tuple[Op, ...] = ()
        self.released: Stamp | None = None
        self.message: int | None = None

    @property
    def stmt(self) -> ir.Node:
        return self.effect.stmt

    def __repr__(self) -> str:
        return f"<{self.effect.agent} #{self.number} {type(self.stmt).__name__}>"


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses that meet in memory without an order.  `first` ran first in the canonical run."""

    kind: Literal["write-read", "read-write", "write-write"]
    first: Op
    second: Op
    touched: Touch  # of the second operation
    first_touched: Touch
    uses: int = 0  # how often the reader's statement had used the cell before
    writes: int = 0  # how often the cell had been written before the write of this race


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A read of a slot that nothing has written, although some operation of the text writes the buffer."""

    op: Op
    touched: Touch


@dataclass(frozen=True, slots=True)
class Overflow:
    """`pending` signals can be pending on a channel when `op` sets it, in some legal execution."""

    channel: int
    op: Op
    pending: int


@dataclass(frozen=True, slots=True)
class Leftover:
    """Signals that nobody took: the sets number `first`.. of the channel, in order."""

    channel: int
    ops: tuple[Op, ...]


Reason: TypeAlias = Literal["channel", "push", "pop", "phase", "lock", "drain", "meet"]
"""What a pipe can wait for."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pipe that waits for ever at `op`.

    `on` holds the numbers of the channels or rings that it waits for.
    """

    op: Op
    reason: Reason
    on: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contested:
    """Two operations of unordered pipes set, await or hand over one thing; which comes first is not determined."""

    what: str
    channel: int | None
    first: Op
    second: Op


@dataclass(frozen=True, slots=True)
class PhaseFault:
    """A fault of the unit_flag hand-over: "left" (flag still 1 at the end, `op` set it)."""

    kind: Literal["left"]
    op: Op
    cell: int


@dataclass(frozen=True, slots=True)
class MessageFault:
    """A FIFO fault.

    `kind`: "overrun" (a push is not ordered after the release of its slot), "left" (messages never popped), "unfreed"
    (popped, never freed), "freed-twice", "free-unpopped", "use-after-free", "round" (task of push and pop differ).
    """

    kind: Literal["overrun", "left", "unfreed", "free-unpopped", "freed-twice", "use-after-free", "round"]
    ring: int
    op: Op
    other: Op | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class MutexFault:
    """`kind`: "unlocked" (unlock without lock), "relocked" (lock while another pipe holds it), "held" (at the end)."""

    kind: Literal["unlocked", "relocked", "held"]
    op: Op


@dataclass(slots=True)
class Run:
    """The outcome of one concrete run, as data.

    `issued` holds every operation of each agent, whether or not it was executed; `order` the executed ones in the
    order of the canonical run.  `sets[c]` and `waits[c]` are the executed operations of channel c in order: the k-th
    of each match.  `peak[c]` is the largest number of signals that any legal execution can have pending.  Of a run
    that is not `whole` only the beginning was looked at, and nothing is said about its end.
    """

    compiled: Compiled
    values: tuple[int, ...]
    functions: dict[Point, int]
    credits: Literal["per_slot", "batched"]
    channels: list[Channel]
    resolver: Resolver
    pipes: list[PipeKey]
    issued: dict[str, list[Op]] = field(default_factory=dict)
    order: list[Op] = field(default_factory=list)
    sets: list[list[Op]] = field(default_factory=list)
    waits: list[list[Op]] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)
    bad_values: list[BadValue] = field(default_factory=list)
    races: list[Race] = field(default_factory=list)
    unwritten: list[Unwritten] = field(default_factory=list)
    overflows: list[Overflow] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    blocked: list[Blocked] = field(default_factory=list)
    contested: list[Contested] = field(default_factory=list)
    phase_faults: list[PhaseFault] = field(default_factory=list)
    message_faults: list[MessageFault] = field(default_factory=list)
    mutex_faults: list[MutexFault] = field(default_factory=list)
    illegal: list[Op] = field(default_factory=list)
    outside: list[Op] = field(default_factory=list)
    pushes: list[list[Op]] = field(default_factory=list)
    pops: list[list[Op]] = field(default_factory=list)
    whole: bool = True

    @property
    def clean(self) -> bool:
        """True if nothing at all went wrong (contested pairs count as wrong)."""
        return not (
            self.bad_values
            or self.races
            or self.unwritten
            or self.overflows
            or self.leftovers
            or self.blocked
            or self.contested
            or self.phase_faults
            or self.message_faults
            or self.mutex_faults
            or self.illegal
            or self.outside
        )

    def assignment(self) -> dict[str, int]:
        """The parameter values by name."""
        return dict(zip(self.compiled.parameters, self.values, strict=True))
