"""Case: everything that the diagnoses of one failing run share."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.diagnose.families import spellings
from fencepost.diagnose.repair import Repairs, Signature
from fencepost.diagnose.roles import Protocol
from fencepost.model.executor import Op, Run


@dataclass(slots=True)
class Case:
    """One run, its protocol, and the means to try repairs.

    `explained` are causes that are already known, each with the faults of this run that go away with it.  `slots` are
    accesses (statement and buffer) that a slot or pairing fault of this run accounts for.  `aliases` are pairs of
    causes that turned out to be one.
    """

    run: Run
    protocol: Protocol
    repairs: Repairs
    explained: list[tuple[Hashable, Signature]] = field(default_factory=list)
    slots: dict[tuple[int, str], Hashable] = field(default_factory=dict)
    aliases: list[tuple[Hashable, Hashable]] = field(default_factory=list)

    def known(self, faults: Signature) -> Hashable | None:
        """The known cause of these faults, if there is one."""
        return next((cause for cause, gone in self.explained if faults and faults <= gone), None)

    def accept(self, cause: Hashable, edited: ir.Kernel) -> None:
        """Remember an edit that repairs something, and what else it repairs here."""
        self.repairs.accepted.append((cause, edited))
        after = self.repairs.after(edited)
        if after is not None:
            self.explained.append((cause, self.repairs.before - after))

    def family(self, op: Op) -> Hashable:
        """The family of the channels that an operation sets or awaits."""
        channels = (*op.effect.sets, *op.effect.waits)
        return self.protocol.families.of(self.run.channels[channels[0]])

    def channel(self, *numbers: int) -> str:
        """Channels in words."""
        return spellings(self.protocol.families, [self.run.channels[n] for n in numbers])
