"""May a cross-core pipeline loop be skewed, and which statements produce, which consume?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from fencepost import ir
from fencepost.defuse import Flow, Flows


class Reason(Enum):
    """Why a loop was not skewed; the order is that of the tests, the first that applies decides."""

    NO_PAIR = "no push and pop pair at the top level of its body"
    STAGE_ONE = "stage is 1"
    BOUNDS = "start or stop is not a constant"
    SHORT = "fewer than two iterations"
    JUMPS = "a break or continue leaves an iteration early"
    VARIABLE = "the body assigns the loop variable"
    NOTHING_LEFT = "the whole body belongs to the produce half"
    CARRIED_IN = "the produce half uses a loop-carried value"
    CIRCULAR = "the produce half uses a value that the consume half defines"
    MESSAGES = "not exactly one push and one pop at the top level"
    CARRIED_OVER = "the consume half uses a value of the produce half that cannot be recomputed"


@dataclass(frozen=True, slots=True)
class Halves:
    """The two halves of a loop body as statement indices; `recomputed` are in both.

    `reasons`: what forbids the skew, in the order of `Reason`.  `culprits` maps a reason to the names behind it.
    `carried`: loop-carried names.  `results`: names read after the loop whose last value the produce half computes.
    """

    produce: tuple[int, ...]
    consume: tuple[int, ...]
    recomputed: tuple[int, ...]
    carried: frozenset[str]
    results: frozenset[str]
    reasons: tuple[Reason, ...]
    culprits: dict[Reason, tuple[str, ...]] = field(default_factory=dict)


def has_pair(body: Sequence[ir.Stmt]) -> bool:
    """Whether the top level of `body` holds at least one push and at least one pop."""
    return any(isinstance(s, ir.Push) for s in body) and any(isinstance(s, ir.Pop) for s in body)


class Body:
    """Definitions and uses of one loop body, by top-level statement."""

    def __init__(self, body: Sequence[ir.Stmt], flows: Flows) -> None:
        self.body = body
        self.flows = [flows.of(s) for s in body]
        self.whole: Flow = flows.of_all(body)
        self.definers: dict[str, list[int]] = {}
        for index, flow in enumerate(self.flows):
            for name in flow.may:
                self.definers.setdefault(name, []).append(index)

    def reaching(self, name: str, index: int) -> tuple[list[int], bool]:
        """The definitions of `name` that statement `index` may see, and whether one may be of another iteration."""
        found: list[int] = []
        for definer in reversed(self.definers.get(name, ())):
            if definer < index:
                found.append(definer)
                if name in self.flows[definer].must:
                    return found, False
        return found, name in self.definers

    def slice(self, start: int) -> set[int]:
        """The statements that `start` depends on in its iteration, itself included."""
        found: set[int] = set()
        work = [start]
        while work:
            index = work.pop()
            if index not in found:
                found.add(index)
                for name in self.flows[index].exposed:
                    work.extend(self.reaching(name, index)[0])
        return found

    def recomputable(self, index: int) -> set[int] | None:
        """The pure scalar statements that give the value defined at `index` again; None if that takes more."""
        needed = self.slice(index)
        for i in needed:
            stmt = self.body[i]
            if not isinstance(stmt, ir.Assign) or not _pure(stmt.value):
                return None
            if any(self.reaching(name, i)[1] for name in self.flows[i].exposed):
                return None
        return needed


def _pure(value: ir.Expr) -> bool:
    for node in ir.walk(value):
        if isinstance(node, ir.Field) or (isinstance(node, ir.Call) and node.function not in ir.INTERPRETED):
            return False
    return True


def split(loop: ir.For, flows: Flows, live: frozenset[str]) -> Halves:
    """Split the body of a cross-core loop (see `has_pair`) into its produce and consume halves.

    `live` are the names that are read after the loop.  Bounds and stage of the loop are not looked at here.
    """
    body = Body(loop.body, flows)
    messages = [i for i, s in enumerate(loop.body) if isinstance(s, ir.Push | ir.Pop)]
    pushes = sum(isinstance(loop.body[i], ir.Push) for i in messages)
    produce = body.slice(messages[0])
    rest = [i for i in range(len(loop.body)) if i not in produce]

    culprits: dict[Reason, list[str]] = {}

    def blame(reason: Reason, *what: str) -> None:
        known = culprits.setdefault(reason, [])
        known.extend(name for name in what if name not in known)

    if body.whole.jumps:
        blame(Reason.JUMPS)
    if loop.var in body.whole.may:
        blame(Reason.VARIABLE, loop.var)
    if not rest:
        blame(Reason.NOTHING_LEFT)
    for i in sorted(produce):
        for name in sorted(body.flows[i].exposed):
            if body.reaching(name, i)[1]:
                blame(Reason.CARRIED_IN, name)
    if pushes != 1 or len(messages) != 2:
        blame(Reason.MESSAGES)

    recomputed: set[int] = set()
    for i in rest:
        for name in sorted(body.flows[i].exposed):
            earlier, from_before = body.reaching(name, i)
            if from_before and any(j in produce for j in body.definers[name]):
                blame(Reason.CARRIED_OVER, name)
            for j in earlier:
                if j in produce:
                    again = body.recomputable(j)
                    if again is None:
                        blame(Reason.CARRIED_OVER, name)
                    else:
                        recomputed |= again

    results: set[str] = set()
    for name in sorted(live & body.whole.may):
        # The value after the loop: of this iteration, or of an earlier one if all definitions are conditional.
        earlier, from_before = body.reaching(name, len(loop.body))
        ahead = {j in produce and j not in recomputed for j in (body.definers[name] if from_before else earlier)}
        if ahead == {True, False}:
            blame(Reason.CARRIED_OVER, name)
        elif ahead == {True}:
            results.add(name)

    return Halves(
        tuple(sorted(produce)),
        tuple(sorted({*rest, *recomputed})),
        tuple(sorted(recomputed)),
        body.whole.exposed & body.whole.may,
        frozenset(results),
        tuple(reason for reason in Reason if reason in culprits),
        {reason: tuple(what) for reason, what in culprits.items()},
    )


def hidden_messages(body: Sequence[ir.Stmt]) -> tuple[ir.Push | ir.Pop, ...]:
    """The messages inside nested statements of a loop body: the skew neither counts nor orders them."""
    return tuple(
        node
        for stmt in body
        if not isinstance(stmt, ir.Push | ir.Pop)
        for node in ir.walk(stmt)
        if isinstance(node, ir.Push | ir.Pop)
    )
