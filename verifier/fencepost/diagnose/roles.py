"""Roles: what does the protocol of a kernel look like in one run?

Which buffers two agents share, whether a channel announces data (READY) or room (RELEASE), and how many sets and waits
every channel is issued, executed or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from fencepost import ir
from fencepost.model.effects import Touch
from fencepost.model.executor import Op, Run

Role = Literal["ready", "release"]


@dataclass
class Protocol:
    """Views of one run that several diagnoses share; everything is computed on first use.

    `larger` runs the kernel on larger values: at zero trips the role of a channel cannot be seen.
    """

    run: Run
    larger: Callable[[], Run | None] = lambda: None
    _roles: dict[int, Role | None] = field(default_factory=dict)

    @cached_property
    def shared(self) -> frozenset[str]:
        """Buffers that the text of both core kinds touches, by name or by overlapping memory."""
        layout = self.run.resolver.layout
        names: dict[str, set[str]] = {"cube": set(), "vector": set()}
        for program in self.run.compiled.programs:
            mine = names["cube" if program.agent == "aic" else "vector"]
            for site in program.sites:
                if isinstance(site, ir.DataOp):
                    mine |= {a.name for a in (*site.writes, *site.reads) if a.name in layout.depths}
        pairs = (("cube", "vector"), ("vector", "cube"))
        return frozenset(b for one, two in pairs for b in names[one] if layout.overlapping(b, names[two]))

    @cached_property
    def sets(self) -> dict[int, list[Op]]:
        """Channel -> all issued sets, agent by agent in program order."""
        return self._by_channel("sets")

    @cached_property
    def waits(self) -> dict[int, list[Op]]:
        """Channel -> all issued waits, agent by agent in program order."""
        return self._by_channel("waits")

    def _by_channel(self, kind: Literal["sets", "waits"]) -> dict[int, list[Op]]:
        found: dict[int, list[Op]] = defaultdict(list)
        for ops in self.run.issued.values():
            for op in ops:
                for channel in op.effect.sets if kind == "sets" else op.effect.waits:
                    found[channel].append(op)
        return found

    def role(self, channel: int) -> Role | None:
        """Whether the channel announces data or room: by the first shared access after a wait, else before a set."""
        if channel not in self._roles:
            self._roles[channel] = self._role(channel)
        return self._roles[channel]

    def _role(self, channel: int) -> Role | None:
        for wait in self.waits.get(channel, []):
            access = self.next_access(wait)
            if access is not None:
                return "release" if access[1] else "ready"
        for op in reversed(self.sets.get(channel, [])):
            access = self.previous_access(op)
            if access is not None:
                return "ready" if access[1] else "release"
        other = self.larger()
        if other is not None:
            number = next((n for n, c in enumerate(other.channels) if c == self.run.channels[channel]), None)
            return None if number is None else Protocol(other).role(number)
        return None

    def next_access(self, op: Op) -> tuple[Op, bool, Touch] | None:
        """The first access to shared memory at or after `op` in program order: (operation, it writes, operand)."""
        ops = self.run.issued[op.effect.agent]
        return next((a for later in ops[op.number + 1 :] for a in self._accesses(later)), None)

    def previous_access(self, op: Op) -> tuple[Op, bool, Touch] | None:
        """The last access to shared memory before `op` in program order."""
        ops = self.run.issued[op.effect.agent]
        return next((a for earlier in reversed(ops[: op.number]) for a in self._accesses(earlier)), None)

    def _accesses(self, op: Op) -> list[tuple[Op, bool, Touch]]:
        touches = [(op, True, t) for t in op.effect.writes] + [(op, False, t) for t in op.effect.reads]
        return [a for a in touches if a[2].access.name in self.shared]

    def announced(self, wait: Op) -> list[tuple[Op, Touch]]:
        """The shared writes that the set paired with `wait` announces: those since the setter's previous signal.

        The pairing is by issue order, so it is defined for waits that never end too.
        """
        found: list[tuple[Op, Touch]] = []
        for channel in wait.effect.waits:
            waits, sets = self.waits[channel], self.sets.get(channel, [])
            rank = waits.index(wait)
            if rank >= len(sets):
                continue
            setter = sets[rank]
            for op in reversed(self.run.issued[setter.effect.agent][: setter.number]):
                if isinstance(op.stmt, ir.SetCross):
                    break
                found += [(op, t) for t in op.effect.writes if t.access.name in self.shared]
        return found
