"""What does the protocol of a kernel look like: which data is shared through which slots, guarded by which events?

The tables of a hand-written design, read off the kernel's text and one run of it that shows the whole protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import lcm

from fencepost import ir
from fencepost.diagnose.families import Families
from fencepost.diagnose.roles import Protocol, Use
from fencepost.diagnose.texts import statement
from fencepost.model.effects import Channel
from fencepost.model.executor import LimitReached, Op, Run, run
from fencepost.model.program import Compiled, compile_kernel
from fencepost.model.shapes import allowed, candidates
from fencepost.passes.serial import Serial
from fencepost.printer import print_expr
from fencepost.replay import Refused
from fencepost.timeline import Timeline, excerpt

_SHAPES = 40  # smallest shapes tried for the run that is shown, and as many among the larger ones
_OPERATIONS = 200_000  # issued in all these runs
_LIMIT = 20_000  # instructions per core and shape
_NAMED = 3  # slots of one event that are named
_PERIOD = 12  # longest steady state that is shown
_SYNC = (
    ir.SetCross, ir.WaitCross, ir.SyncSrc, ir.SyncDst, ir.MutexLock, ir.MutexUnlock, ir.Barrier, ir.SyncAll,
    ir.Push, ir.Pop, ir.Free,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the plan; cells may hold several lines."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The design of a kernel's protocol.

    `values` are those of the run that it was read off; `steady` are the steps of `rounds` rounds in the steady state
    (none if the run has no repeating part).  `notes` say why the tables may not be the whole truth.
    """

    kernel: str
    values: dict[str, int]
    notes: tuple[str, ...]
    tables: tuple[Table, ...]
    rounds: int
    steady: Timeline


def plan(kernel: ir.Kernel, values: Mapping[str, int] | None = None) -> Plan:
    """Draw up the plan of a valid kernel; `values` fixes parameters of the run that it is read off.

    Raises:
        Refused: no run with these values could be made.
        ModelError: the kernel cannot be modelled.
    """
    compiled = compile_kernel(Serial().run(kernel))
    shown = _telling(compiled, values or {})
    design = _Design(shown)
    tables = (design.data(), design.sync_points(), design.events(), design.messages())
    rounds, steady = design.steady()
    notes: tuple[str, ...] = () if shown.clean else ("the run has faults, see `fencepost check`",)
    notes += tuple(f"line {gap.span.line} could not be read: {gap.reason}" for gap in compiled.unsupported)
    return Plan(kernel.name, shown.assignment(), notes, tuple(t for t in tables if t.rows), rounds, steady)


# ------------------------------------------------------------------------------------------------ the run to show


def _telling(compiled: Compiled, fixed: Mapping[str, int]) -> Run:
    """The smallest run that reaches every operation and channel that any small run reaches, often enough to repeat."""
    unknown = [name for name in fixed if name not in compiled.parameters]
    if unknown:
        from fencepost.nearest import unknown_name

        raise Refused(unknown_name("parameter", unknown[0], compiled.parameters))
    names = compiled.parameters
    points = [v for v in candidates(compiled) if all(v[names.index(n)] == x for n, x in fixed.items())]
    if all(n in fixed for n in names if n != "block"):
        points = [tuple(fixed.get(n, 0) for n in names)]
    points = [p for p in points if allowed(compiled, p)]
    spread = points[_SHAPES :: max(1, len(points) // _SHAPES)]
    best: Run | None = None
    most: tuple[int, bool, bool] = -1, False, False
    left = _OPERATIONS
    for point in (*points[:_SHAPES], *spread):
        try:
            made = run(compiled, dict(zip(names, point, strict=True)), limit=_LIMIT)
        except LimitReached:
            left -= _LIMIT
            continue
        left -= sum(map(len, made.issued.values()))
        if left < 0 and best is not None:
            break
        reached = {(id(op.stmt), *op.effect.sets, *op.effect.waits) for ops in made.issued.values() for op in ops}
        worth = len(reached), made.clean, _Design(made).steady()[0] > 0
        if worth > most:
            best, most = made, worth
    if best is None:
        told = " and ".join(f"{n} = {v}" for n, v in fixed.items()) or "small values"
        raise Refused(f"no run of {compiled.kernel.name} with {told} could be made")
    return best


# ------------------------------------------------------------------------------------------------ tables


class _Design:
    """The tables, read off one run."""

    def __init__(self, shown: Run) -> None:
        self.run, self.compiled = shown, shown.compiled
        self.families = Families(shown.compiled)
        self.protocol = Protocol(shown, self.families)

    @cached_property
    def _sites(self) -> list[tuple[str, ir.Stmt]]:
        """Core and statement of every operation in the text, in text order."""
        found = [
            ("aic" if program.agent == "aic" else "aiv", site)
            for program in self.compiled.programs
            if program.agent != "aiv1"
            for site in program.sites
        ]
        return sorted(found, key=lambda pair: (pair[1].span.line, pair[1].span.column))

    def data(self) -> Table:
        """Buffers that several pipes use: their slots, who writes and who reads them."""
        rows = []
        for buffer in self.compiled.kernel.buffers:
            sides: dict[str, list[str]] = {"writes": [], "reads": []}
            pipes = set()
            for core, site in self._sites:
                if isinstance(site, ir.DataOp):
                    for side, accesses in (("writes", site.writes), ("reads", site.reads)):
                        for access in accesses:
                            if access.name == buffer.name:
                                pipes.add((core, site.pipe))
                                slot = f" [{print_expr(access.index)}]" if access.index is not None else ""
                                sides[side].append(f"line {site.span.line}: {core} {site.pipe} {site.op}{slot}")
            if len(pipes) > 1:
                depth = self.compiled.depths[buffer.name]
                place = ", ".join(map(print_expr, buffer.addresses or ()))
                space = buffer.space + (f" at {place}" if place else "") + (" (mutex)" if buffer.mutex else "")
                lines = ("\n".join(dict.fromkeys(sides[side])) for side in ("writes", "reads"))
                rows.append((buffer.name, space, str(depth), *lines))
        return Table("Shared data and slots", ("buffer", "space", "slots", "written by", "read by"), tuple(rows))

    def sync_points(self) -> Table:
        """Every synchronisation in the text, and what stands next to it."""
        ran: dict[tuple[str, int], list[Op]] = {}
        for agent, ops in self.run.issued.items():
            if agent != "aiv1":
                for op in ops:
                    ran.setdefault(("aic" if agent == "aic" else "aiv", id(op.stmt)), []).append(op)
        rows = []
        for core, site in self._sites:
            if isinstance(site, _SYNC):
                ops = ran.get((core, id(site)), [])
                rows.append((str(site.span.line), core, _pipe(site), statement(site), str(len(ops)), self._beside(ops)))
        return Table("Sync points", ("line", "core", "pipe", "operation", "times", "stands"), tuple(rows))

    def _beside(self, ops: list[Op]) -> str:
        """What a set announces, or what a wait guards."""
        for op in ops:
            if isinstance(op.stmt, ir.SetCross) and (uses := self.protocol.before(op)):
                return f"after {_use(uses[0])}"
            if isinstance(op.stmt, ir.WaitCross) and (uses := self.protocol.after(op)):
                return f"before {_use(uses[0])}"
        return ""

    def events(self) -> Table:
        """Every channel: what it says about which slot, where it is set and awaited, when its slot is used again."""
        rows: dict[tuple[str, ...], list[Channel]] = {}
        for number, channel in enumerate(self.run.channels):
            sets, waits = self.protocol.sets.get(number, []), self.protocol.waits.get(number, [])
            row = (
                self.families.name(channel) or ("flag" if channel.kind == "flag" else "event"),
                str(channel.id),
                self._meaning(number),
                _places(sets),
                _places(waits),
                f"{len(sets)} = {len(waits)}" if len(sets) == len(waits) else f"{len(sets)} and {len(waits)}",
                f"{self.run.peak[number]} of {channel.capacity}",
                self._reuse(number),
            )
            rows.setdefault(row, []).append(channel)
        groups = list(dict.fromkeys(row[0] for row in rows))
        told = tuple(
            (row[0], _direction(channels), *row[1:])
            for row, channels in sorted(rows.items(), key=lambda pair: (groups.index(pair[0][0]), int(pair[0][1])))
        )
        columns = ("group", "direction", "id", "says", "set at", "awaited at", "sets, waits", "pending", "used again")
        return Table("Events", columns, told)

    def _meaning(self, channel: int) -> str:
        """`tile[0] is full` or `tile[0] is free`."""
        slots = self._slots(channel)
        role = self.protocol.role(channel)
        if role is None or not slots:
            return ""
        named = ", ".join(slots[:_NAMED]) + (f", … ({len(slots)} slots)" if len(slots) > _NAMED else "")
        return f"{named} {'are' if len(slots) > 1 else 'is'} {'full' if role == 'ready' else 'free'}"

    def _slots(self, channel: int) -> tuple[str, ...]:
        """The slots that a channel is about: touched before its sets and after the waits for them."""
        given = [u for op in self.protocol.sets.get(channel, []) for u in self.protocol.before(op)]
        taken = [u for op in self.protocol.waits.get(channel, []) for u in self.protocol.after(op)]
        known = set(map(_slot, taken))
        both = {_slot(use): use.touch for use in given if _slot(use) in known}
        return tuple(sorted(both, key=lambda name: (both[name].access.name, both[name].slot)))

    def _reuse(self, channel: int) -> str:
        """When the slot of a channel may be written again, and how many signals are there from the start."""
        role, slots = self.protocol.role(channel), set(self._slots(channel))
        early = sum(not self.protocol.before(op) for op in self.protocol.sets.get(channel, []))
        if role == "release":
            return f"{early} set before the first use" if early else "after the first use"
        if role != "ready" or not slots:
            return ""
        guards = {
            f"{self.families.name(c) or 'event'} {c.id}"
            for n, c in enumerate(self.run.channels)
            if self.protocol.role(n) == "release" and slots & set(self._slots(n))
        }
        if guards:
            return "after " + ", ".join(sorted(guards))
        return "never" if self._written_once(slots) else "ordered by other events"

    def _written_once(self, slots: set[str]) -> bool:
        counts = dict.fromkeys(slots, 0)
        for op in self.run.order:
            for touch in op.effect.writes:
                if (slot := f"{touch.access.name}[{touch.slot}]") in counts:
                    counts[slot] += 1
        return max(counts.values(), default=0) <= 1

    def messages(self) -> Table:
        """Every ring: who pushes, pops and frees."""
        rows = []
        for number, ring in enumerate(self.run.resolver.rings):
            ops = [op for op in self.run.order if any(r == number for r, _ in op.effect.rings)]
            kinds = [[op for op in ops if isinstance(op.stmt, kind)] for kind in (ir.Push, ir.Pop, ir.Free)]
            lanes = "" if ring.lanes == 2 else ", one sub-core"
            direction = f"{ring.sender} -> {'vector' if ring.sender == 'cube' else 'cube'}{lanes}"
            messages = len(kinds[0]) // (ring.lanes if ring.sender == "vector" else 1)
            rows.append((ring.declared.name, direction, str(ring.slots), *map(_places, kinds), str(messages)))
        columns = ("ring", "direction", "slots", "pushed at", "popped at", "freed at", "messages")
        return Table("Messages", columns, tuple(rows))

    # -------------------------------------------------------------------------------------------- steady state

    def steady(self) -> tuple[int, Timeline]:
        """How many rounds until all slots are used again, and their steps in the middle of the run.

        If both sub-cores do the same, only the first is shown.
        """
        depths = [self.compiled.depths[b] for b in self.protocol.shared]
        period = lcm(*depths, *(ring.slots for ring in self.run.resolver.rings))
        if period > _PERIOD:
            return 0, Timeline(())
        windows: dict[str, list[Op]] = {}
        for agent, ops in self.run.issued.items():
            window = _window(ops, period)
            if window is None:
                return 0, Timeline(())
            windows[agent] = window
        both = [[op.stmt for op in windows.get(agent, [])] for agent in ("aiv0", "aiv1")]
        if both[0] == both[1]:
            windows.pop("aiv1", None)
        chosen = {id(op) for window in windows.values() for op in window}
        return period, excerpt(self.run, [op for op in self.run.order if id(op) in chosen])


def _window(ops: list[Op], period: int) -> list[Op] | None:
    """The operations of `period` rounds in the middle of an agent's program; None if it does not repeat that often."""
    if not ops:
        return []
    places: dict[int, list[int]] = {}
    for place, op in enumerate(ops):
        places.setdefault(id(op.stmt), []).append(place)
    most = max(map(len, places.values()))
    first = next(found for found in places.values() if len(found) == most)
    start = (most - period) // 2
    if start < 1:
        return None
    return ops[first[start] : first[start + period]]


# ------------------------------------------------------------------------------------------------ words


def _pipe(site: ir.Stmt) -> str:
    match site:
        case ir.SyncSrc(source=source, target=target) | ir.SyncDst(source=source, target=target):
            return source if isinstance(site, ir.SyncSrc) else target
        case ir.SyncAll():
            return ""
        case _:
            return str(getattr(site, "pipe", ""))


def _slot(use: Use) -> str:
    access = use.touch.access
    return access.name if access.index is None else f"{access.name}[{use.touch.slot}]"


def _use(use: Use) -> str:
    op = use.op
    verb = "write" if use.writes else "read"
    return f"{verb} of {_slot(use)} (line {op.stmt.span.line}, {op.effect.pipe[1]})"


def _places(ops: Iterable[Op]) -> str:
    """`line 12 FIX, line 18 FIX`."""
    return ", ".join(dict.fromkeys(f"line {op.stmt.span.line} {op.effect.pipe[1]}" for op in _by_line(ops)))


def _by_line(ops: Iterable[Op]) -> Iterator[Op]:
    return iter(sorted(ops, key=lambda op: op.stmt.span.line))


def _direction(channels: list[Channel]) -> str:
    first = channels[0]
    if first.kind == "flag":
        return f"{first.pipes[0]} -> {first.pipes[1]} of {', '.join(dict.fromkeys(c.sender for c in channels))}"
    senders, receivers = (dict.fromkeys(ends) for ends in zip(*((c.sender, c.receiver) for c in channels), strict=True))
    return f"{', '.join(senders)} -> {', '.join(receivers)}"
