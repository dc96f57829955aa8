"""Outcome: what did the runs of a kernel show?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fencepost.facts import Fact
from fencepost.findings import Undecided, Witness
from fencepost.model.effects import Channel
from fencepost.model.executor import Run
from fencepost.model.functions import show
from fencepost.model.shapes import Shape

Kind = Literal["hang", "leftover", "other"]


@dataclass(slots=True)
class Seen:
    """One fact with the smallest shape that shows it, and the runs on that shape; none for a fact of the text itself.

    `boundary`: it does not happen for infinitely many larger trip counts.  `fixed`: parameters of the kernel that was
    run, which are constants of the kernel that is checked.
    """

    fact: Fact
    shape: Shape
    runs: list[Run]
    boundary: bool = False
    fixed: frozenset[str] = frozenset()

    @property
    def witness(self) -> Witness | None:
        if self.fact.static:
            return None
        one = self.runs[0]
        functions = tuple((show(point), value) for point, value in sorted(one.functions.items()))
        values = zip(one.compiled.parameters, one.values, strict=True)
        return Witness(tuple(pair for pair in values if pair[0] not in self.fixed), functions)

    @property
    def kind(self) -> Kind:
        """What the fault is as far as boundary trips are concerned."""
        kinds = {fault[0] for fault in self.fact.faults if isinstance(fault, tuple)}
        if "blocked" in kinds:
            return "hang"
        return "leftover" if kinds & {"leftover", "phase", "message"} else "other"


@dataclass(slots=True)
class Outcome:
    """What a search saw.

    `tried` shapes ran, `clean` of them without a fault; `hung` is the smallest that does not end.  `exhausted` is True
    if every shape of interest was run.  `undecided` says what the runs left open.  `left` are the signals that
    every run left at its end, with their numbers, if that was the same for all that ended.
    """

    facts: list[Seen] = field(default_factory=list)
    tried: int = 0
    clean: int = 0
    largest: tuple[int, ...] = ()
    hung: Shape | None = None
    exhausted: bool = False
    peaks: dict[str, int] = field(default_factory=dict)
    undecided: list[Undecided] = field(default_factory=list)
    left: tuple[tuple[Channel, int], ...] = ()

    @property
    def boundary(self) -> dict[Kind, Shape]:
        """The kinds of failure that only boundary trips show, each with its smallest shape."""
        found: dict[Kind, Shape] = {}
        for seen in self.facts:
            if seen.boundary and (seen.kind not in found or seen.shape.size < found[seen.kind].size):
                found[seen.kind] = seen.shape
        return found
