"""Do the messages of a kernel still reach the peer in the order of its text after the skew pass?

Skewed loops whose messages all lie at the top level keep every order, for all parameter values (docs/skew.md).  Where
a nested message shares a ring with a message of the other half, both programs are run on the shapes of the kernel and
compared message by message.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.facts import Fact
from fencepost.findings import Related
from fencepost.model.executor import LimitReached, Run, run
from fencepost.model.issue import issue
from fencepost.model.program import Compiled, compile_kernel, constant
from fencepost.model.rings import Credits
from fencepost.model.shapes import Shape, shapes, uses_functions
from fencepost.passes.skew import LoopOutcome, Skew, Skewed
from fencepost.passes.skew.identity import Marked, Message, mark
from fencepost.search import Seen
from fencepost.skew_effects import moved, stale
from fencepost.skew_ties import Tie, ties

_LIMIT = 200_000
_RUNS = 400
_PLAIN = Skew()

Ring = tuple[ir.Core, int]
"""The core that sends, and the id."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the skew does to the messages of a kernel.

    `notes` are facts about the text (704, and waits that stay behind).  `seen` are changes of the order, of messages or
    of a load and a store, with the smallest shape that shows them.  `undecided` says why nothing is known for some
    values; without it and without `seen` the order of messages is kept for all.
    """

    skewed: Skewed
    notes: tuple[Fact, ...] = ()
    seen: tuple[Seen, ...] = ()
    undecided: str | None = None
    span: ir.Span = ir.NOWHERE

    @property
    def evidence(self) -> str:
        """One line about the loops and the order."""
        loops = "; ".join(str(outcome) for outcome in self.skewed.loops)
        if self.seen:
            order = "the order changes"
        elif self.undecided is not None:
            order = self.undecided
        else:
            order = "every ring carries the same messages in the same order, for all values"
        return f"{loops}; {order}"


def safe_depth(kernel: ir.Kernel, skewed: Skewed, shape: Shape) -> int | None:
    """The largest depth at which the kernel ends on `shape` under every credit scheme that it asks for.

    0 if it hangs without any skew too; None if nothing was skewed, or a run is too long.
    """
    depths = [outcome.depth for outcome in skewed.loops if outcome.depth is not None]
    if not depths:
        return None
    for depth in range(max(depths), 0, -1):
        try:
            if not _hangs(Skew(max_depth=depth).run(kernel).kernel, shape):
                return depth
        except LimitReached:
            return None
    return 0


def _hangs(kernel: ir.Kernel, shape: Shape) -> bool:
    compiled = compile_kernel(kernel)
    values = dict(zip(compiled.parameters, shape.values, strict=True))
    schemes: tuple[Credits, ...] = ("per_slot", "batched") if kernel.credits == "both" else (kernel.credits,)
    return any(run(compiled, values, shape.table(), credits=s, limit=_LIMIT).blocked for s in schemes)


def has_pipelines(kernel: ir.Kernel) -> bool:
    """Whether the skew pass has anything to look at."""
    return any(isinstance(n, ir.For) and n.stage is not None for n in ir.walk(kernel))


def judge(kernel: ir.Kernel, deadline: float, skew: Skew = _PLAIN) -> Judgement:
    """Skew a valid kernel and compare messages and memory before and after.

    Args:
        kernel: the kernel as written.
        deadline: in the terms of `time.monotonic`.
        skew: the pass; loops that it groups keep the order of their messages by construction.

    Raises:
        SkewError: the pass refuses the kernel.
        ModelError: the kernel cannot be modelled.
    """
    skewed = skew.run(kernel)
    notes = (
        *(_demoted(outcome) for outcome in skewed.loops if outcome.action == "demoted"),
        *(fact for outcome in skewed.loops for fact in moved(outcome)),
    )
    judgement = _order(kernel, skew, skewed, notes, deadline)
    own, other = ties(compile_kernel(kernel), skewed.loops)
    tie = other or own
    return judgement if tie is None else _memory(kernel, skew, judgement, tie, deadline)


def _memory(kernel: ir.Kernel, skew: Skew, judgement: Judgement, tie: Tie, deadline: float) -> Judgement:
    """Whether operations that meet in memory, as those of `tie` do, and change their order still read the same."""
    difference, unknown = stale(kernel, deadline, skew)
    if difference is not None:
        compiled = compile_kernel(judgement.skewed.kernel)
        values = dict(zip(compiled.parameters, difference.shape.values, strict=True))
        runs = [run(compiled, values, difference.shape.table(), limit=_LIMIT)]
        return replace(judgement, seen=(*judgement.seen, Seen(difference.fact, difference.shape, runs)))
    if judgement.undecided is not None or not (unknown or tie.agents):
        return judgement
    lines = f"line {tie.ahead.span.line} and line {tie.behind.span.line}"
    if tie.agents:
        why = f"{lines}, of different agents, use {tie.what}: whether the skew changes what is read there is not known"
    else:
        why = (
            f"{lines} use {tie.what} and change their order: what is read there is not known for all values ({unknown})"
        )
    return replace(judgement, undecided=why, span=tie.ahead.span)


def _order(kernel: ir.Kernel, skew: Skew, skewed: Skewed, notes: tuple[Fact, ...], deadline: float) -> Judgement:
    """Whether every ring keeps its order."""
    crossing = {id(outcome): pairs for outcome in skewed.loops if (pairs := list(_crossing(outcome)))}
    if not crossing:
        return Judgement(skewed, notes)
    comparison = _Comparison(kernel, skew, deadline)
    shape = comparison.search()
    first = next(iter(crossing.values()))[0][1]
    if shape is not None:
        return Judgement(skewed, notes, tuple(comparison.seen(shape, crossing.values())))
    if comparison.exhausted and not comparison.compiled.parameters and not uses_functions(kernel):
        return Judgement(skewed, notes)
    why = f"it is not known whether the nested message in line {first.span.line} is ever sent or taken between others"
    return Judgement(skewed, notes, (), why, first.span)


def _demoted(outcome: LoopOutcome) -> Fact:
    return Fact("704", outcome.loop.span, (("detail", str(outcome)),), cause=("704", outcome.loop.span), static=True)


def _crossing(outcome: LoopOutcome) -> Iterator[tuple[ir.Push | ir.Pop, ir.Push | ir.Pop]]:
    """Pairs of a message of one half and a message of the other half on one ring: these can change places."""
    if outcome.action != "skewed" or not outcome.hidden or outcome.halves is None:
        return
    halves: list[list[ir.Push | ir.Pop]] = []
    for indices in (outcome.halves.produce, outcome.halves.consume):
        nodes = (n for i in indices for n in ir.walk(outcome.body[i]))
        halves.append([n for n in nodes if isinstance(n, ir.Push | ir.Pop)])
    for one in halves[0]:
        for other in halves[1]:
            if type(one) is type(other) and _may_share(one, other):
                nested = other if any(other is h for h in outcome.hidden) else one
                yield (one if nested is other else other), nested


def _may_share(one: ir.Push | ir.Pop, other: ir.Push | ir.Pop) -> bool:
    """Whether two messages of one core and kind may use one ring."""
    if isinstance(one.id, ir.Int) and isinstance(other.id, ir.Int):
        return one.id.value == other.id.value
    return True


# ------------------------------------------------------------------------------------------------ comparison by runs


@dataclass(slots=True)
class _Streams:
    """The messages of one run in order: per agent, kind and ring their identities and the numbers of the operations."""

    identities: dict[tuple[str, str, Ring], list[int]] = field(default_factory=dict)
    operations: dict[tuple[str, str, Ring], list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Mismatch:
    """Pop number `rank` of a ring receives another message than the one that it took in the kernel as written."""

    ring: Ring
    rank: int
    pushed: Message
    meant: Message
    pop: Message
    operation: tuple[str, int]


class _Comparison:
    def __init__(self, kernel: ir.Kernel, skew: Skew, deadline: float) -> None:
        self.deadline = deadline
        self.before: Marked = mark(kernel)
        self.compiled = compile_kernel(self.before.kernel)
        self.after = compile_kernel(skew.run(self.before.kernel).kernel)
        self.plain = compile_kernel(skew.run(kernel).kernel)
        self.exhausted = False

    def search(self) -> Shape | None:
        """The first shape on which some pop receives another message."""
        for count, shape in enumerate(shapes(self.compiled)):
            if count >= _RUNS or time.monotonic() > self.deadline:
                return None
            try:
                if self.mismatch(shape) is not None:
                    return shape
            except LimitReached:
                return None
        self.exhausted = True
        return None

    def mismatch(self, shape: Shape) -> _Mismatch | None:
        was, now = self._streams(self.compiled, shape), self._streams(self.after, shape)
        lanes = {(f.sender, self._number(f.id)): f.lanes for f in self.compiled.kernel.fifos}
        for ring, count in lanes.items():
            sides = [["aic"], [f"aiv{lane}" for lane in range(count)]]
            senders, receivers = sides if ring[0] == "cube" else sides[::-1]
            for sender in senders:
                for receiver in receivers:
                    found = self._compare(ring, (sender, "push", ring), (receiver, "pop", ring), was, now)
                    if found is not None:
                        return found
        return None

    def _compare(
        self, ring: Ring, push: tuple[str, str, Ring], pop: tuple[str, str, Ring], was: _Streams, now: _Streams
    ) -> _Mismatch | None:
        """Compare ranks in the kernel as written: message k of both sides afterwards must have had one rank before."""
        ranks = [{m: k for k, m in enumerate(was.identities.get(key, ()))} for key in (push, pop)]
        pushed, popped = now.identities.get(push, []), now.identities.get(pop, [])
        for k, (one, two) in enumerate(zip(pushed, popped, strict=False)):
            if ranks[0].get(one) != ranks[1].get(two):
                before = was.identities[push]
                rank = ranks[1].get(two, k)
                meant = self.before.message(before[rank]) if rank < len(before) else self.before.message(one)
                return _Mismatch(
                    ring,
                    k,
                    self.before.message(one),
                    meant,
                    self.before.message(two),
                    (pop[0], now.operations[pop][k]),
                )
        return None

    def _streams(self, compiled: Compiled, shape: Shape) -> _Streams:
        found = _Streams()
        table = shape.table()
        for program in compiled.programs:
            issued, _ = issue(compiled, program, shape.values, table, _LIMIT)
            mine: ir.Core = "cube" if program.agent == "aic" else "vector"
            peer: ir.Core = "vector" if program.agent == "aic" else "cube"
            for number, (site, arguments, task) in enumerate(issued):
                stmt = program.sites[site]
                if not isinstance(stmt, ir.Push | ir.Pop) or task is None:
                    continue
                push = isinstance(stmt, ir.Push)
                key = (program.agent, "push" if push else "pop", (mine if push else peer, arguments[0]))
                found.identities.setdefault(key, []).append(task)
                found.operations.setdefault(key, []).append(number)
        return found

    def _number(self, expr: ir.Expr) -> int:
        return constant(expr, self.compiled.scalars, "fifo id")

    def seen(self, shape: Shape, crossing: Iterable[list[tuple[ir.Push | ir.Pop, ir.Push | ir.Pop]]]) -> Iterator[Seen]:
        """The facts of one shape: the first message that goes wrong (701), and the nested messages behind it (705)."""
        found = self.mismatch(shape)
        assert found is not None
        runs = self._runs(shape)
        peer = "vector" if found.ring[0] == "cube" else "cube"
        ring = f"{found.ring[0]} -> {peer}" + (f" id {found.ring[1]}" if found.ring[1] else "")
        detail = (
            f"after the skew, pop number {found.rank} of the ring {ring} receives the message of {found.pushed}; "
            f"as written it takes that of {found.meant}"
        )
        related = (
            Related(found.pushed.stmt.span, "this message arrives"),
            Related(found.meant.stmt.span, "this one is meant"),
        )
        yield Seen(
            Fact(
                "701",
                found.pop.stmt.span,
                (("detail", detail),),
                related,
                ("skew order", found.ring),
                operations=(found.operation,),
            ),
            shape,
            runs,
        )
        receivers = {"cube": "vector", "vector": "cube"}
        for pairs in crossing:
            for main, nested in pairs:
                sender = nested.sender if isinstance(nested, ir.Pop) else receivers[nested.receiver]
                if sender != found.ring[0] or self._number(nested.id) != found.ring[1]:
                    continue
                what = "pushed" if isinstance(nested, ir.Push) else "popped"
                text = (
                    f"the message {nested.value} is {what} inside a nested statement, where the skew pass does not see "
                    f"it: after the skew the message {main.value} of a later iteration overtakes it"
                )
                yield Seen(
                    Fact(
                        "705",
                        nested.span,
                        (("detail", text),),
                        (Related(main.span, "the message that runs ahead"),),
                        ("705", nested.span),
                    ),
                    shape,
                    runs,
                )

    def _runs(self, shape: Shape) -> list[Run]:
        values = dict(zip(self.plain.parameters, shape.values, strict=True))
        return [run(self.plain, values, shape.table(), limit=_LIMIT)]


__all__ = ["Judgement", "has_pipelines", "judge", "safe_depth"]
