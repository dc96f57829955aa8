"""One agent's scalar unit: what does it issue next, and what does it wait for itself?

It issues its operations in program order and stalls only at operations on pipe S.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost import ir
from fencepost.model.clocks import Stamp, join
from fencepost.model.outcome import Blocked, MutexFault, Op

if TYPE_CHECKING:
    from fencepost.model.machine import Machine, Pipe


class Agent:
    """The scalar unit of one agent in a run.

    `holders[m][pipe]` is the last operation of that pipe that gave mutex m back, in program order; `held[m]` the
    explicit lock that no unlock followed yet.
    """

    def __init__(self, name: str, ops: list[Op], machine: Machine) -> None:
        self.name = name
        self.ops = ops
        self.machine = machine
        self.at = 0
        self.mine = [p for p in machine.pipes if p.key[0] == name]
        self.scalar = next(p for p in self.mine if p.key[1] == "S")
        self.after: Stamp | None = None  # the clock of pipe S, for what is issued next
        self.holders: dict[int, dict[int, Op]] = {}
        self.held: dict[int, Op] = {}
        self.mutex_faults: list[MutexFault] = []
        self.met = 0
        self.prepared = 0

    def advance(self) -> bool:
        """Execute and issue as far as possible; True if anything happened."""
        moved = False
        again = True
        while again:
            again = False
            for pipe in self.mine:
                if pipe.queue and self._drain(pipe):
                    again = True
            if self.at < len(self.ops) and self._issue():
                again = True
            moved |= again
        return moved

    def _drain(self, pipe: Pipe) -> bool:
        queue, ready, execute = pipe.queue, self.machine.ready, self.machine.execute
        waiting = len(queue)
        while queue and ready(queue[0]):
            execute(queue.popleft())
        return len(queue) < waiting

    def _issue(self) -> bool:
        machine, ops, scalar, pipes = self.machine, self.ops, self.scalar.number, self.machine.pipes
        ready, execute = machine.ready, machine.execute
        start = self.at
        for at in range(start, len(ops)):
            self.at = at
            op = ops[at]
            if op.pipe == scalar:
                if not self._scalar(op):
                    return at > start
            else:
                op.after = self.after
                effect = op.effect
                if effect.locks or effect.unlocks:
                    self._lock(op)
                queue = pipes[op.pipe].queue
                if queue or not ready(op):
                    queue.append(op)
                else:
                    execute(op)
        self.at = len(ops)
        return True

    def _scalar(self, op: Op) -> bool:
        """Try to execute an operation of pipe S; later operations are issued after it."""
        machine, effect = self.machine, op.effect
        if effect.drains and any(p.queue for p in self.mine):
            return False
        if effect.meets and not self._meet():
            return False
        if self.prepared <= op.number:
            self.prepared = op.number + 1
            op.after = self.after
            if effect.locks or effect.unlocks:
                self._lock(op)
        if not machine.ready(op):
            return False
        if effect.drains:
            for pipe in self.mine:
                join(self.scalar.clock, pipe.clock)
        if effect.meets:
            for arrivals in machine.arrived.values():
                join(self.scalar.clock, arrivals[self.met - 1])
        machine.execute(op)
        self.after = self.scalar.joined = tuple(self.scalar.clock)
        return True

    def _meet(self) -> bool:
        """Arrive at the next sync_all, and see whether everybody has."""
        arrivals = self.machine.arrived.setdefault(self.name, [])
        if len(arrivals) == self.met:
            clock = list(self.scalar.clock)
            for pipe in self.mine:
                join(clock, pipe.clock)
            arrivals.append(tuple(clock))
        others = [self.machine.arrived.get(a, []) for a in self.machine.result.issued]
        if any(len(a) <= self.met for a in others):
            return False
        self.met += 1
        return True

    def _lock(self, op: Op) -> None:
        """Note, in program order, whose locks the operation waits for, and check explicit locks and unlocks."""
        effect = op.effect
        waits: list[Op] = []
        for mutex in effect.locks:
            for pipe, holder in self.holders.get(mutex, {}).items():
                if pipe != op.pipe and holder not in waits:
                    waits.append(holder)
        op.locks = tuple(waits)
        for mutex in effect.unlocks:
            self.holders.setdefault(mutex, {})[op.pipe] = op
        if isinstance(effect.stmt, ir.MutexLock):
            number = effect.arguments[0]
            if number in self.held and self.held[number].pipe != op.pipe:
                self.mutex_faults.append(MutexFault("relocked", op))
            self.held[number] = op
        elif isinstance(effect.stmt, ir.MutexUnlock) and self.held.pop(effect.arguments[0], None) is None:
            self.mutex_faults.append(MutexFault("unlocked", op))

    def blocked(self) -> list[Blocked]:
        """The heads of all pipes that wait for ever, and the scalar unit's own operation."""
        found = [self._blocked(pipe.queue[0]) for pipe in self.mine if pipe.queue]
        if self.at < len(self.ops):
            found.append(self._blocked(self.ops[self.at]))
        return found

    def _blocked(self, op: Op) -> Blocked:
        obstacle = self.machine.obstacle(op)
        if obstacle is not None:
            return Blocked(op, *obstacle)
        return Blocked(op, "meet" if op.effect.meets and not any(p.queue for p in self.mine) else "drain", ())
