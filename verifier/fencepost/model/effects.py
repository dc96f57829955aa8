"""Effects: what does one issued operation do to signals, memory and locks?

An `Effect` is an operation with its ids and slots filled in.  It names channels, cells, rings and mutexes by dense
numbers, so that the executor and the prover work on the same small vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from fencepost import ir
from fencepost.model.memory import Layout, lay_out
from fencepost.model.program import Compiled, Operation, constant

PipeKey = tuple[str, ir.Pipe]  # agent, pipe


@dataclass(frozen=True, slots=True)
class Channel:
    """One counter of signals.

    `kind`: "cross" (cube <-> vector; `sender` is the sending core, `lane` the vector sub-core), "flag" (sync_src /
    sync_dst; `sender` is the agent, `pipes` the pair), "sub" and "block" (INTER_SUBBLOCK / INTER_BLOCK barriers;
    `sender` and `receiver` are agents).  `capacity` is the largest number of signals that may be pending.
    """

    kind: Literal["cross", "flag", "sub", "block"]
    sender: str
    receiver: str
    id: int
    lane: int
    capacity: int
    pipes: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        if self.kind == "flag":
            return f"flag {self.id} {self.pipes[0]} -> {self.pipes[1]} of {self.sender}"
        return f"event {self.id} {self.sender} -> {self.receiver}"


@dataclass(frozen=True, slots=True)
class MessageRing:
    """One FIFO: `lanes` sub-cores take part; a slot frees at pop or at tfree."""

    sender: ir.Core
    id: int
    slots: int
    lanes: int
    declared: ir.Fifo

    def __str__(self) -> str:
        return f"fifo {self.declared.name}"


@dataclass(frozen=True, slots=True)
class Illegal:
    """An operand that the target does not allow.  `kind`: "range" (603), "reserved" (604), "mode" (605), "lane"."""

    kind: Literal["range", "reserved", "mode", "lane"]
    message: str


@dataclass(frozen=True, slots=True)
class Touch:
    """One operand in memory: its cells, and whether some operation of the text writes the buffer at all.

    `place` is its number among the operands of the statement, what is written first.
    """

    access: ir.Access
    slot: int
    cells: tuple[int, ...]
    written: bool
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """An operation with its operands filled in; compared by identity, one object per agent, site and operands."""

    agent: str
    site: int
    stmt: Operation
    pipe: PipeKey
    arguments: tuple[int, ...]
    sets: tuple[int, ...] = ()
    waits: tuple[int, ...] = ()
    reads: tuple[Touch, ...] = ()
    writes: tuple[Touch, ...] = ()
    locks: tuple[int, ...] = ()
    unlocks: tuple[int, ...] = ()
    phase: tuple[Literal["produce", "consume"], bool] | None = None
    phased: tuple[int, ...] = ()
    rings: tuple[tuple[int, int], ...] = ()  # (ring, lane)
    drains: bool = False  # barrier ALL, sync_all: waits until every pipe of the agent is idle
    meets: bool = False  # sync_all: waits for all agents
    illegal: tuple[Illegal, ...] = ()
    out_of_range: tuple[tuple[ir.Access, int], ...] = ()


MATMULS = frozenset({"matmul", "matmul_acc", "matmul_mx", "matmul_mx_acc", "matmul_bias", "gemv"})


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What the effects of a kernel depend on in every run: worked out once."""

    layout: Layout
    rings: tuple[MessageRing, ...]
    written: dict[str, bool]
    sync_all: bool
    auto_mutex: bool


class _Identity:
    """A compiled kernel as a key: equal only to itself."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled

    def __hash__(self) -> int:
        return id(self.compiled)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.compiled is self.compiled


@lru_cache(maxsize=32)
def _fixed(key: _Identity) -> _Fixed:
    compiled = key.compiled
    kernel, scalars = compiled.kernel, compiled.scalars
    layout = lay_out(compiled)
    rings = tuple(
        MessageRing(f.sender, constant(f.id, scalars, "fifo id"), constant(f.slots, scalars, "fifo slots"), f.lanes, f)
        for f in kernel.fifos
    )
    nodes = list(ir.walk(kernel))
    names = {a.name for n in nodes if isinstance(n, ir.DataOp) for a in n.writes if a.name in layout.depths}
    return _Fixed(
        layout,
        rings,
        {b.name: layout.overlapping(b.name, names) for b in kernel.buffers},
        any(isinstance(n, ir.SyncAll) for n in nodes),
        kernel.auto_mutex and compiled.target.has_mutex,
    )


@dataclass(slots=True)
class Resolver:
    """Turns sites and operands into effects, and numbers channels and rings on first use."""

    compiled: Compiled
    layout: Layout = field(init=False)
    channels: list[Channel] = field(default_factory=list)
    rings: list[MessageRing] = field(init=False)
    _numbers: dict[Channel, int] = field(default_factory=dict)
    _effects: dict[tuple[str, int, tuple[int, ...]], Effect] = field(default_factory=dict)
    _written: dict[str, bool] = field(default_factory=dict)
    _sync_all: bool = False
    _auto_mutex: bool = False

    def __post_init__(self) -> None:
        fixed = _fixed(_Identity(self.compiled))
        self.layout, self.rings, self._written = fixed.layout, list(fixed.rings), fixed.written
        self._sync_all, self._auto_mutex = fixed.sync_all, fixed.auto_mutex

    def effect(self, agent: str, site: int, stmt: Operation, arguments: tuple[int, ...]) -> Effect:
        """The effect of `stmt` issued by `agent` with the operands `arguments` (order of `site_arguments`)."""
        key = (agent, site, arguments)
        found = self._effects.get(key)
        if found is None:
            found = self._effects[key] = self._build(agent, site, stmt, arguments)
        return found

    def effects(self) -> list[Effect]:
        """Every effect built so far."""
        return list(self._effects.values())

    def channel(self, channel: Channel) -> int:
        if channel not in self._numbers:
            self._numbers[channel] = len(self.channels)
            self.channels.append(channel)
        return self._numbers[channel]

    # -------------------------------------------------------------------------------------------- one kind each

    def _build(self, agent: str, site: int, stmt: Operation, arguments: tuple[int, ...]) -> Effect:
        match stmt:
            case ir.SetCross() | ir.WaitCross():
                return self._cross(agent, site, stmt, arguments)
            case ir.SyncSrc() | ir.SyncDst():
                return self._flag(agent, site, stmt, arguments)
            case ir.MutexLock() | ir.MutexUnlock():
                locks = arguments if isinstance(stmt, ir.MutexLock) else ()
                unlocks = arguments if isinstance(stmt, ir.MutexUnlock) else ()
                bad = self._id_range("mutex", arguments[0], self.compiled.target.mutex_ids)
                return Effect(
                    agent, site, stmt, (agent, stmt.pipe), arguments, locks=locks, unlocks=unlocks, illegal=bad
                )
            case ir.Barrier():
                return Effect(agent, site, stmt, (agent, "S"), arguments, drains=stmt.pipe == "ALL")
            case ir.SyncAll():
                return Effect(agent, site, stmt, (agent, "S"), arguments, drains=True, meets=True)
            case ir.DataOp():
                return self._data(agent, site, stmt, arguments)
            case _:
                return self._message(agent, site, stmt, arguments)

    def _id_range(self, what: str, number: int, count: int) -> tuple[Illegal, ...]:
        if 0 <= number < count:
            return ()
        name = self.compiled.target.name
        return (Illegal("range", f"{what} id {number} is outside 0..{count - 1} of target {name}"),)

    def _cross(self, agent: str, site: int, stmt: ir.SetCross | ir.WaitCross, arguments: tuple[int, ...]) -> Effect:
        target = self.compiled.target
        number, bad = arguments[0], list[Illegal]()
        if stmt.mode not in target.modes:
            bad.append(Illegal("mode", f"mode {stmt.mode} does not exist on target {target.name}"))
        lane: int | None = None
        if stmt.mode == "UNICAST_BLOCK" and agent == "aic":
            lane = arguments[1] if len(arguments) > 1 else 0
            if 16 <= number < 16 + target.cross_ids:
                number, lane = number - 16, 1
            if lane not in (0, 1):
                bad.append(Illegal("lane", f"lane {lane} is not a vector sub-core"))
                lane = None
        bad += self._id_range("cross-core event", number, target.cross_ids)
        if self._sync_all and number in target.reserved_ids:
            bad.append(Illegal("reserved", f"event id {number} is used inside sync_all, which this kernel calls"))
        setting = isinstance(stmt, ir.SetCross)
        channels = [self.channel(c) for c in self._cross_channels(agent, stmt.mode, number, lane, setting)]
        numbers = tuple(channels)
        return Effect(
            agent,
            site,
            stmt,
            (agent, stmt.pipe),
            arguments,
            sets=numbers if setting else (),
            waits=() if setting else numbers,
            illegal=tuple(bad),
        )

    def _cross_channels(self, agent: str, mode: ir.Mode, number: int, lane: int | None, setting: bool) -> list[Channel]:
        capacity = self.compiled.target.capacity
        if mode in ("INTER_SUBBLOCK", "INTER_BLOCK"):
            kind: Literal["sub", "block"] = "sub" if mode == "INTER_SUBBLOCK" else "block"
            peers = ["aic"] if agent == "aic" else ["aiv0", "aiv1"]
            ends = [(agent, p) if setting else (p, agent) for p in peers]
            return [Channel(kind, a, b, number, 0, capacity) for a, b in ends]
        lanes = [lane] if lane is not None else [0, 1] if agent == "aic" else [int(agent[-1])]
        sends = (agent == "aic") == setting
        return [
            Channel("cross", "cube" if sends else f"aiv{n}", f"aiv{n}" if sends else "cube", number, n, capacity)
            for n in lanes
        ]

    def _flag(self, agent: str, site: int, stmt: ir.SyncSrc | ir.SyncDst, arguments: tuple[int, ...]) -> Effect:
        bad = self._id_range("flag", arguments[0], self.compiled.target.flag_ids)
        pair = (stmt.source, stmt.target)
        number = (self.channel(Channel("flag", agent, agent, arguments[0], 0, 1, pair)),)
        if isinstance(stmt, ir.SyncSrc):
            return Effect(agent, site, stmt, (agent, stmt.source), arguments, sets=number, illegal=bad)
        return Effect(agent, site, stmt, (agent, stmt.target), arguments, waits=number, illegal=bad)

    def _data(self, agent: str, site: int, stmt: ir.DataOp, arguments: tuple[int, ...]) -> Effect:
        operands = iter(arguments)
        outside: list[tuple[ir.Access, int]] = []
        locks: set[int] = set()
        touches: tuple[list[Touch], list[Touch]] = ([], [])
        phased: list[int] = []
        phase = self._phase(stmt)
        first = len(stmt.writes)
        for touched, accesses, role, start in (
            (touches[0], stmt.writes, "produce", 0), (touches[1], stmt.reads, "consume", first),
        ):  # fmt: skip
            for place, access in enumerate(accesses, start):
                if access.name not in self.layout.depths:
                    continue
                slot = next(operands) if access.index is not None else 0
                part = next(operands) if access.part is not None else 0
                parts = next(operands) if access.parts is not None else 1
                depth = self.layout.depths[access.name]
                if not 0 <= slot < depth:
                    outside.append((access, slot))
                    continue
                if not 0 <= part < parts:
                    outside.append((access, part))
                    continue
                cells = [
                    c
                    for lane in self._lanes(agent, stmt, access.name)
                    for c in self.layout.cells(access.name, slot, lane, part, parts)
                ]
                touched.append(Touch(access, slot, tuple(dict.fromkeys(cells)), self._written[access.name], place))
                if phase is not None and self.layout.spaces[access.name] == "Acc":
                    if phase[0] == role:
                        phased += cells
                    if set(cells) <= set(phased):  # also the accumulator that a matmul_acc reads back
                        continue
                if self._auto_mutex and access.name in self.layout.mutexes:
                    locks |= set(self.layout.mutexes[access.name][slot])
        ids = tuple(sorted(locks))
        target = self.compiled.target
        return Effect(
            agent,
            site,
            stmt,
            (agent, stmt.pipe),
            arguments,
            reads=tuple(touches[1]),
            writes=tuple(touches[0]),
            locks=ids,
            unlocks=ids,
            phase=phase if phased else None,
            phased=tuple(dict.fromkeys(phased)),
            illegal=tuple(bad for number in ids for bad in self._id_range("mutex", number, target.mutex_ids)),
            out_of_range=tuple(outside),
        )

    @staticmethod
    def _phase(stmt: ir.DataOp) -> tuple[Literal["produce", "consume"], bool] | None:
        """Role of a phased operation: the matmul family produces, everything else consumes."""
        if stmt.phase is None:
            return None
        return ("produce" if stmt.pipe == "M" else "consume"), stmt.phase == "Final"

    def _lanes(self, agent: str, stmt: ir.DataOp, buffer: str) -> tuple[int, ...]:
        if agent != "aic":
            return (int(agent[-1]),)
        if self.layout.spaces[buffer] != "Vec":
            return (0,)
        return {"both": (0, 1), "0": (0,), "1": (1,)}[stmt.lanes]

    def _message(self, agent: str, site: int, stmt: ir.Push | ir.Pop | ir.Free, arguments: tuple[int, ...]) -> Effect:
        me: ir.Core = "cube" if agent == "aic" else "vector"
        peer: ir.Core = "vector" if agent == "aic" else "cube"
        sender = me if isinstance(stmt, ir.Push) else peer
        number = next((i for i, r in enumerate(self.rings) if r.sender == sender and r.id == arguments[0]), None)
        if number is None:
            bad = (
                Illegal(
                    "range",
                    f"no fifo {sender} -> {'cube' if sender == 'vector' else 'vector'} "
                    f"with id {arguments[0]} is declared",
                ),
            )
            return Effect(agent, site, stmt, (agent, stmt.pipe), arguments, illegal=bad)
        lanes = range(self.rings[number].lanes) if agent == "aic" else [int(agent[-1])]
        taking = tuple((number, lane) for lane in lanes if lane < self.rings[number].lanes)
        return Effect(agent, site, stmt, (agent, stmt.pipe), arguments, rings=taking)
