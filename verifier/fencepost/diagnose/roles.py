"""Roles: what does the protocol of a kernel look like in one run?

Which buffers two agents share, whether a channel announces data (READY) or room (RELEASE), and how many sets and waits
every channel is issued, executed or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from fencepost import ir
from fencepost.diagnose.families import Families
from fencepost.model.effects import Touch
from fencepost.model.executor import Op, Run

Role = Literal["ready", "release"]

_PAIRS = 8  # operations of a channel that its role is read from


@dataclass(frozen=True, slots=True)
class Use:
    """One access to memory that both core kinds touch."""

    op: Op
    writes: bool
    touch: Touch

    def meets(self, other: Use | Touch) -> bool:
        """Whether the two are about one buffer: by name or by memory."""
        touch = other.touch if isinstance(other, Use) else other
        return self.touch.access.name == touch.access.name or bool(set(self.touch.cells) & set(touch.cells))


@dataclass
class Protocol:
    """Views of one run that several diagnoses share; everything is computed on first use.

    `larger` runs the kernel on other values: at zero trips the role of a channel cannot be seen.
    """

    run: Run
    families: Families
    larger: Callable[[], Iterable[Run]] = tuple
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

    @cached_property
    def _ranks(self) -> dict[tuple[int, int], int]:
        """(channel, id(wait)) -> which wait of the channel it is, from 0."""
        return {(c, id(op)): rank for c, ops in self.waits.items() for rank, op in enumerate(ops)}

    def rank(self, channel: int, wait: Op) -> int:
        """Which wait of the channel `wait` is, from 0."""
        return self._ranks[channel, id(wait)]

    # ------------------------------------------------------------------------------------------------ windows

    def _uses(self, op: Op) -> list[Use]:
        effect = op.effect
        uses = [Use(op, False, t) for t in effect.reads] + [Use(op, True, t) for t in effect.writes]
        return [u for u in uses if u.touch.access.name in self.shared]

    def _window(self, ops: Iterable[Op], end: type) -> list[Use]:
        """The shared accesses of `ops` up to an `end` statement; those before the first access do not count."""
        found: list[Use] = []
        for op in ops:
            if isinstance(op.stmt, end):
                if found:
                    break
            else:
                found += self._uses(op)
        return found

    def before(self, setter: Op) -> list[Use]:
        """What a set announces: the shared accesses before it, since the set before those; latest first."""
        ops = self.run.issued[setter.effect.agent]
        return self._window(reversed(ops[: setter.number]), ir.SetCross)

    def after(self, wait: Op) -> list[Use]:
        """What a wait guards: the shared accesses behind it, up to the wait behind those."""
        ops = self.run.issued[wait.effect.agent]
        return self._window(ops[wait.number + 1 :], ir.WaitCross)

    def group(self, op: Op) -> list[Op]:
        """The cross-core waits nearest before `op`, with no shared access between them."""
        found: list[Op] = []
        for earlier in reversed(self.run.issued[op.effect.agent][: op.number]):
            if isinstance(earlier.stmt, ir.WaitCross):
                found.append(earlier)
            elif found and self._uses(earlier):
                break
        return found[::-1]

    def partners(self, wait: Op) -> list[Op]:
        """The sets that a wait takes, by issue order (so it is defined for waits that never end too)."""
        found = []
        for channel in wait.effect.waits:
            sets, rank = self.sets.get(channel, []), self.rank(channel, wait)
            if rank < len(sets):
                found.append(sets[rank])
        return found

    def announced(self, wait: Op) -> list[Use]:
        """What the sets that a wait takes announce."""
        return [use for setter in self.partners(wait) for use in self.before(setter)]

    # -------------------------------------------------------------------------------------------------- roles

    def role(self, channel: int) -> Role | None:
        """Whether the channel announces data or room; None if no access tells."""
        if channel not in self._roles:
            self._roles[channel] = self._role(channel)
        return self._roles[channel]

    def _role(self, channel: int) -> Role | None:
        given = [u for op in self.sets.get(channel, [])[:_PAIRS] for u in self.before(op)]
        taken = [u for op in self.waits.get(channel, [])[:_PAIRS] for u in self.after(op)]
        common = [(g.writes, t.writes) for g in given for t in taken if g.meets(t)]
        if (True, False) in common:
            return "ready"
        if (False, True) in common:
            return "release"
        for bigger in self._bigger:
            number = next((n for n, c in enumerate(bigger.run.channels) if c == self.run.channels[channel]), None)
            role = None if number is None else bigger.role(number)
            if role is not None:
                return role
        if taken:
            return "release" if taken[0].writes else "ready"
        if given:
            return "ready" if given[0].writes else "release"
        return None

    @cached_property
    def _bigger(self) -> list[Protocol]:
        return [Protocol(run, self.families) for run in self.larger()]
