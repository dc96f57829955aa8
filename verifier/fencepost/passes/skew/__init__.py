"""The skew pass: what does a compiler make of the cross-core pipeline loops of a kernel?

A loop ``pipeline(start, stop, step, stage = F)`` whose body pushes to the peer core and pops from it is taken apart:
the half that leads to the first message runs some iterations ahead of the rest.  Each core is rewritten alone; ring
sizes, ids and the peer are not consulted.  The pass says for every loop what became of it and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from fencepost import ir
from fencepost.defuse import Flows, all_names
from fencepost.findings import InputError
from fencepost.passes.skew.group import Group, emit_group, split_group
from fencepost.passes.skew.halves import Halves, Reason, has_pair, hidden_messages, split
from fencepost.passes.skew.loops import NewNames, Schedule, depth_for, emit, trip_count
from fencepost.rewrite import constant

Action: TypeAlias = Literal["skewed", "grouped", "demoted", "left"]

MAX_NESTING = 100
"""How deep statements may nest; deeper text is refused with a message."""

MAX_STATEMENTS = 20_000
"""How many statements one loop may become; what would be longer is refused with a message."""


class SkewError(ValueError):
    """The kernel cannot be skewed at all; `span` says where the mistake stands."""

    def __init__(self, message: str, span: ir.Span) -> None:
        super().__init__(message)
        self.message = message
        self.span = span

    def input_error(self) -> InputError:
        """The same as an error in the input text."""
        return InputError(self.span.file, self.span.line, self.span.column, self.message)


@dataclass(frozen=True, slots=True)
class LoopOutcome:
    """What became of one pipeline loop.

    `action`: "skewed" (with `schedule` and `halves`), "grouped" (all its messages run one round trip ahead, with
    `group`), "demoted" (a plain loop now) or "left" (still a pipeline, for another pass).  `refusal`: why it was not
    grouped, where that was asked for.  `reasons`: why it was not skewed; the first one decided, the others hold as
    well.  `trip` is None where the bounds are not constant.  `body` is the loop's body with the loops inside it already
    treated; the halves count its statements.  `hidden`: messages of it inside nested statements, which the pass does
    not see.
    """

    loop: ir.For
    core: ir.Core | None
    stage: int
    action: Action
    trip: int | None = None
    reasons: tuple[Reason, ...] = ()
    halves: Halves | None = None
    schedule: Schedule | None = None
    body: tuple[ir.Stmt, ...] = ()
    hidden: tuple[ir.Push | ir.Pop, ...] = ()
    group: Group | None = None
    refusal: str = ""

    @property
    def depth(self) -> int | None:
        """How many iterations the produce half runs ahead; None unless skewed."""
        return self.schedule.depth if self.schedule else None

    def __str__(self) -> str:
        head = f"loop {self.loop.var}, stage {self.stage}"
        if self.schedule is not None:
            return f"{head}: skewed at depth {self.schedule.depth}"
        if self.group is not None:
            return f"{head}: all messages of an iteration run one round trip ahead"
        reason = self.reasons[0]
        culprits = self.halves.culprits.get(reason, ()) if self.halves else ()
        named = f" ({', '.join(culprits)})" if culprits else ""
        text = f"{head}: {'demoted to a plain loop' if self.action == 'demoted' else 'left'}: {reason.value}{named}"
        return f"{text}; not grouped: {self.refusal}" if self.refusal else text


@dataclass(frozen=True, slots=True)
class Skewed:
    """A kernel after the pass, and what became of its pipeline loops: inner loops first, then text order."""

    kernel: ir.Kernel
    loops: tuple[LoopOutcome, ...]


@dataclass(frozen=True, slots=True)
class Skew:
    """The skew pass.

    `max_depth` limits how far ahead a loop runs, whatever its stage asks for.  `group`: loops with several round trips
    per iteration, or with bounds that are not constant, run one round trip ahead as a whole where that keeps every
    order; no compiler does that, so the result needs a proof that it does not hang.
    """

    max_depth: int | None = None
    group: bool = False

    def run(self, kernel: ir.Kernel) -> Skewed:
        """Skew every cross-core pipeline loop of `kernel` that can be, and demote the others.

        Raises `SkewError` for a stage that is not a positive constant, a cross-core loop with a step that is not
        constant or zero, for statements nested deeper than `MAX_NESTING`, and for a loop that would become more than
        `MAX_STATEMENTS` statements.
        """
        return _Rewriter(kernel, self).run()


@dataclass
class _Rewriter:
    kernel: ir.Kernel
    options: Skew
    flows: Flows = field(init=False)
    new: NewNames = field(init=False)
    constants: dict[str, int] = field(init=False)
    outcomes: list[LoopOutcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.flows = Flows(buffer.name for buffer in self.kernel.buffers)
        self.new = NewNames(all_names(self.kernel))
        self.constants = {}
        for declared in self.kernel.constants:
            if not isinstance(declared.value, tuple):
                value = constant(declared.value, self.constants)
                if value is not None:
                    self.constants[declared.name] = value

    def run(self) -> Skewed:
        _check_nesting(self.kernel)
        body: list[ir.Section | ir.Stmt] = []
        for index, item in enumerate(self.kernel.body):
            live = self._read_later(index)
            if isinstance(item, ir.Section):
                body.append(replace(item, body=self._block(item.body, live, live, item.core)))
            else:
                body += self._block((item,), live, live, None)
        if not self.outcomes:
            return Skewed(self.kernel, ())
        return Skewed(replace(self.kernel, body=tuple(body)), tuple(self.outcomes))

    def _read_later(self, index: int) -> frozenset[str]:
        """Names that some item of the kernel's body after `index` may read from before itself."""
        found: frozenset[str] = frozenset()
        for item in self.kernel.body[index + 1 :]:
            stmts = item.body if isinstance(item, ir.Section) else (item,)
            found |= self.flows.of_all(stmts).exposed
        return found

    def _block(
        self, stmts: Sequence[ir.Stmt], live_end: frozenset[str], live_jump: frozenset[str], core: ir.Core | None
    ) -> tuple[ir.Stmt, ...]:
        """Rewrite a statement list; `live_end` is read after it, `live_jump` where a break or continue leads to."""
        live_after: list[frozenset[str]] = []
        live = live_end
        for stmt in reversed(stmts):
            live_after.append(live)
            flow = self.flows.of(stmt)
            live = flow.exposed | (live - flow.must) | (live_jump if flow.jumps else frozenset())
        out: list[ir.Stmt] = []
        for stmt, after in zip(stmts, reversed(live_after), strict=True):
            out += self._statement(stmt, after, live_jump, core)
        return tuple(out)

    def _statement(
        self, stmt: ir.Stmt, live: frozenset[str], live_jump: frozenset[str], core: ir.Core | None
    ) -> tuple[ir.Stmt, ...]:
        match stmt:
            case ir.If(branches=branches, orelse=orelse):
                arms = tuple((c, self._block(body, live, live_jump, core)) for c, body in branches)
                return (replace(stmt, branches=arms, orelse=self._block(orelse, live, live_jump, core)),)
            case ir.For(body=body):
                again = live | self.flows.of_all(body).exposed
                loop = replace(stmt, body=self._block(body, again, again, core))
                return (loop,) if loop.stage is None else self._pipeline(stmt, loop, live, core)
            case _:
                return (stmt,)

    def _pipeline(
        self, original: ir.For, loop: ir.For, live: frozenset[str], core: ir.Core | None
    ) -> tuple[ir.Stmt, ...]:
        """Rewrite one pipeline loop whose body has been rewritten already; `original` is the loop as it was read."""
        assert loop.stage is not None
        stage = constant(loop.stage, self.constants)
        if stage is None or stage < 1:
            raise SkewError("the stage of a pipeline loop must be a positive constant", loop.stage.span)

        def outcome(action: Action, **rest: object) -> None:
            hidden = hidden_messages(loop.body)
            known = LoopOutcome(original, core, stage, action, body=loop.body, hidden=hidden)
            self.outcomes.append(replace(known, **rest))  # type: ignore[arg-type]

        if not has_pair(loop.body):
            outcome("left", reasons=(Reason.NO_PAIR,))
            return (loop,)

        step = constant(loop.step, self.constants)
        if stage > 1 and step is None:
            raise SkewError("the step of a cross-core pipeline loop must be a constant", loop.step.span)
        if step == 0:
            raise SkewError("the step of a pipeline loop is zero", loop.step.span)
        start, stop = constant(loop.start, self.constants), constant(loop.stop, self.constants)
        trip = None if start is None or stop is None or step is None else trip_count(start, stop, step)

        halves = split(loop, self.flows, live)
        found = set(halves.reasons)
        if stage == 1:
            found.add(Reason.STAGE_ONE)
        if start is None or stop is None:
            found.add(Reason.BOUNDS)
        if trip is not None and trip < 2:
            found.add(Reason.SHORT)
        if found or start is None or trip is None or step is None:
            reasons = tuple(reason for reason in Reason if reason in found)
            refusal = ""
            if self.options.group and stage > 1 and reasons[0] in (Reason.BOUNDS, Reason.MESSAGES):
                group = split_group(loop, self.flows)
                if isinstance(group, str):
                    refusal = group
                else:
                    grouped = emit_group(loop, group, self.flows, self.constants, self.new)
                    if not isinstance(grouped, str):
                        outcome("grouped", trip=trip, group=group)
                        return grouped
                    refusal = grouped
            outcome("demoted", trip=trip, reasons=reasons, halves=halves, refusal=refusal)
            return (replace(loop, stage=None),)

        schedule = Schedule(start, step, trip, depth_for(stage, trip, self.options.max_depth))
        length = 2 * schedule.depth * _statements([loop.body[i] for i in (*halves.produce, *halves.consume)])
        if length > MAX_STATEMENTS:
            raise SkewError(
                f"the skew at depth {schedule.depth} makes {length:,} statements of this loop, more than "
                f"{MAX_STATEMENTS:,}; a smaller stage makes fewer copies of its body",
                loop.span,
            )
        outcome("skewed", trip=trip, halves=halves, schedule=schedule)
        return emit(loop, halves, schedule, live, self.flows, self.new)


def _statements(body: Sequence[ir.Stmt]) -> int:
    """How many statements there are, nested ones included."""
    count, stack = 0, list(body)
    while stack:
        count += 1
        match stack.pop():
            case ir.If(branches=branches, orelse=orelse):
                stack += [s for _, arm in branches for s in arm]
                stack += orelse
            case ir.For(body=inner) | ir.Pipelined(body=inner):
                stack += inner
            case _:
                pass
    return count


def _check_nesting(kernel: ir.Kernel) -> None:
    stack = [(node, 0) for node in reversed(kernel.body)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_NESTING:
            raise SkewError(f"statements are nested deeper than {MAX_NESTING} levels", node.span)
        match node:
            case ir.If(branches=branches, orelse=orelse):
                stack += [(s, depth + 1) for _, body in branches for s in body] + [(s, depth + 1) for s in orelse]
            case ir.For(body=body) | ir.Pipelined(body=body) | ir.Section(body=body):
                stack += [(s, depth + 1) for s in body]
            case _:
                pass


__all__ = ["LoopOutcome", "Reason", "Schedule", "Skew", "SkewError", "Skewed"]
