"""One run in progress: which operation can execute now, and what does it change?

Pipes block on signals, rings, locks and accumulator flags; vector clocks give happens-before.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

from fencepost import ir
from fencepost.model.accesses import Accesses
from fencepost.model.agent import Agent
from fencepost.model.clocks import Clock, Stamp, join
from fencepost.model.effects import Effect, PipeKey, Resolver
from fencepost.model.functions import FunctionTable
from fencepost.model.issue import LimitReached, issue
from fencepost.model.lifetimes import misused
from fencepost.model.messages import Messages
from fencepost.model.outcome import Leftover, MessageFault, MutexFault, Op, PhaseFault, Reason, Run
from fencepost.model.program import Compiled
from fencepost.model.signals import Signals


class Pipe:
    """One in-order pipe: its queue of issued operations and its clock."""

    __slots__ = ("clock", "joined", "key", "number", "queue", "seq")

    def __init__(self, number: int, key: PipeKey, width: int) -> None:
        self.number = number
        self.key = key
        self.queue: deque[Op] = deque()
        self.clock: Clock = [0] * width
        self.seq = 0
        self.joined: Stamp | None = None  # the clock of pipe S that was joined last


class _Flag:
    """The unit_flag of one accumulator cell.

    Per role: `final` is the last operation that turned the flag, `since` the last operation of each pipe after it.
    """

    __slots__ = ("final", "since", "value")

    def __init__(self) -> None:
        self.value = 0
        self.final: dict[str, Op] = {}
        self.since: dict[str, dict[int, Op]] = {"produce": {}, "consume": {}}


class Machine:
    """One run in progress.  `weak` holds the channels on which it is not determined which set meets which wait."""

    def __init__(
        self,
        compiled: Compiled,
        values: tuple[int, ...],
        functions: FunctionTable,
        credits: Literal["per_slot", "batched"],
        limit: int,
        weak: frozenset[int] = frozenset(),
        cut: bool = False,
    ) -> None:
        self.weak = weak
        self.resolver = Resolver(compiled)
        self.compiled = compiled
        self.limit, self.cut = limit, cut
        self.functions = functions
        self.result = Run(compiled, values, functions.used, credits, self.resolver.channels, self.resolver, [])
        self.pipe_numbers: dict[PipeKey, int] = {}
        self.pipes: list[Pipe] = []
        self.flags: dict[int, _Flag] = {}
        self.arrived: dict[str, list[Stamp]] = {}  # per agent: what it knew at each sync_all

    def run(self) -> Run:
        """Issue everything, execute as far as possible, and note how it ended."""
        result = self.result
        for program in self.compiled.programs:
            try:
                listed, bad = issue(self.compiled, program, result.values, self.functions, self.limit)
            except LimitReached as reached:
                if not self.cut:
                    raise
                listed, bad, result.whole = reached.issued, reached.bad, False
            result.bad_values += bad
            resolve, agent, sites = self.resolver.effect, program.agent, program.sites
            known: list[dict[tuple[int, ...], tuple[Effect, int]]] = [{} for _ in sites]
            ops: list[Op] = []
            for number, (site, arguments, task) in enumerate(listed):
                pair = known[site].get(arguments)
                if pair is None:
                    effect = resolve(agent, site, sites[site], arguments)
                    pair = known[site][arguments] = (effect, self._pipe(effect.pipe))
                ops.append(Op(pair[0], number, task, pair[1]))
            result.issued[agent] = ops
            self._pipe((agent, "S"))
        result.pipes = list(self.pipe_numbers)
        width = len(result.pipes)
        self.pipes = [Pipe(i, key, width) for i, key in enumerate(result.pipes)]
        self.signals = Signals(result, self.weak)
        self.messages = Messages(result, self.signals)
        self.accesses = Accesses(result)
        self._check_operands()
        self._check_lifetimes()
        agents = [Agent(name, ops, self) for name, ops in result.issued.items()]
        moving = True
        while moving:
            moving = False
            for unit in agents:
                moving |= unit.advance()
        self._finish(agents)
        return result

    def _pipe(self, key: PipeKey) -> int:
        return self.pipe_numbers.setdefault(key, len(self.pipe_numbers))

    def _check_operands(self) -> None:
        seen: set[int] = set()
        for ops in self.result.issued.values():
            for op in ops:
                effect = op.effect
                if (effect.illegal or effect.out_of_range) and id(effect) not in seen:
                    seen.add(id(effect))
                    if effect.illegal:
                        self.result.illegal.append(op)
                    if effect.out_of_range:
                        self.result.outside.append(op)

    def _check_lifetimes(self) -> None:
        """Find popped messages that are used after their slot was freed."""
        if not self.resolver.rings or self.compiled.target.frees_at != "tfree":
            return
        buffers = frozenset(self.resolver.layout.depths)
        seen: set[tuple[str, int, int, str]] = set()
        for ops in self.result.issued.values():
            for kind, op, freed in misused(ops, buffers):
                ring = freed.effect.rings[0][0] if freed.effect.rings else None
                key = (kind, op.effect.site, freed.effect.site, op.effect.agent)
                if ring is not None and key not in seen:
                    seen.add(key)
                    self.result.message_faults.append(MessageFault(kind, ring, op, freed))

    def _finish(self, agents: list[Agent]) -> None:
        result = self.result
        for agent in agents if result.whole or self._stuck(agents) else ():
            result.blocked += agent.blocked()
        hung = bool(result.blocked) or not result.whole
        for number, counter in enumerate(self.signals.counters):
            result.sets.append(counter.sets)
            result.waits.append(counter.waits)
            result.peak.append(counter.peak)
            if counter.tokens and not hung:
                result.leftovers.append(Leftover(number, tuple(counter.sets[len(counter.waits) :])))
        for cell, flag in self.flags.items():
            if flag.value and not hung:
                result.phase_faults.append(PhaseFault("left", flag.final["produce"], cell))
        self.messages.finish(hung=hung)
        for agent in agents:
            result.mutex_faults += agent.mutex_faults
            if not hung:
                result.mutex_faults += [MutexFault("held", op) for op in agent.held.values()]

    def _stuck(self, agents: list[Agent]) -> bool:
        """Whether what waits at the end of a run that was cut waits for ever, whatever would follow.

        What follows on a pipe that waits is never executed; on the others nothing may follow that anybody waits for.
        """
        programs = {program.agent: program for program in self.compiled.programs}
        if self.flags or self.resolver.rings:
            return False
        for agent in agents:
            waiting = {pipe.key[1] for pipe in agent.mine if pipe.queue}
            for site in programs[agent.name].sites if agent.at == len(agent.ops) else ():
                if isinstance(site, ir.SetCross | ir.MutexUnlock) and site.pipe not in waiting:
                    return False
                if isinstance(site, ir.SyncSrc) and site.source not in waiting:
                    return False
                if isinstance(site, ir.SyncAll):
                    return False
        return True

    # ---------------------------------------------------------------------------------------------- one operation

    def ready(self, op: Op) -> bool:
        """Whether `op`, at the head of its pipe, can execute now."""
        effect = op.effect
        for channel in effect.waits:
            if not self.signals.counters[channel].tokens:
                return False
        for earlier in op.locks:
            if not earlier.seq:
                return False
        return (effect.phase is None and not effect.rings) or self.obstacle(op) is None

    def obstacle(self, op: Op) -> tuple[Reason, tuple[int, ...]] | None:
        """Why `op`, at the head of its pipe, cannot execute now, and on which channels or rings; None if it can."""
        effect = op.effect
        missing = self.signals.missing(effect.waits)
        if missing:
            return "channel", missing
        if any(not earlier.seq for earlier in op.locks):
            return "lock", ()
        if effect.phase is not None:
            needed = 0 if effect.phase[0] == "produce" else 1
            if any(self._flag(c).value != needed for c in effect.phased):
                return "phase", effect.phased
        return self.messages.obstacle(op) if effect.rings else None

    def execute(self, op: Op) -> None:
        """Execute `op`, which nothing holds back, at the head of its pipe."""
        pipe = self.pipes[op.pipe]
        clock = pipe.clock
        effect = op.effect
        if op.after is not pipe.joined and op.after is not None:
            pipe.joined = op.after
            join(clock, op.after)
        for earlier in op.locks:
            if clock[earlier.pipe] < earlier.seq:
                assert earlier.released is not None
                join(clock, earlier.released)
        pipe.seq = op.seq = clock[op.pipe] = pipe.seq + 1
        if effect.waits:
            for told in self.signals.take(op, clock):
                join(clock, told)
        if effect.phase is not None:
            self._hand_over(op, clock)
        if effect.rings:
            self.messages.execute(op, clock)
        if effect.reads or effect.writes:
            self.accesses.touch(op, clock)
        if effect.sets:
            self.signals.give(op, clock)
        if effect.unlocks or effect.phase is not None:
            op.released = tuple(clock)
        self.result.order.append(op)

    def _flag(self, cell: int) -> _Flag:
        flag = self.flags.get(cell)
        if flag is None:
            flag = self.flags[cell] = _Flag()
        return flag

    def _hand_over(self, op: Op, clock: Clock) -> None:
        assert op.effect.phase is not None
        role, final = op.effect.phase
        joins: list[Op] = []
        for cell in op.effect.phased:
            flag = self._flag(cell)
            since = flag.since[role]
            rivals = [flag.final[role]] if role in flag.final else []
            if final:  # two reads (or writes) that only wait are in no competition
                rivals += since.values()
            for rival in rivals:
                if clock[rival.pipe] < rival.seq:
                    self.signals.contest("produce" if role == "produce" else "read", None, rival, op)
            source = flag.final.get("consume" if role == "produce" else "produce")
            if source is not None:
                joins.append(source)
            if final:
                flag.value = 1 if role == "produce" else 0
                flag.final[role] = op
                since.clear()
            else:
                since[op.pipe] = op
        for source in joins:
            if clock[source.pipe] < source.seq:
                assert source.released is not None
                join(clock, source.released)
