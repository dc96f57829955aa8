"""Exploration: does anything go wrong for any parameter values, in a finite number of relative states?

All agents run under one canonical schedule, each blocking as a whole at a wait; if no action can disable another
(persistence, checked on the way) and that run ends, every run ends the same way.  Where control depends on something
unknown the path splits.  Counters stay plain integers; before a state is compared with those seen, groups of values
that the program cannot tell from shifted ones are shifted down (`fencepost.prove.structure`).  When no new state
appears, every trip count is covered.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from fencepost import ir
from fencepost.findings import Row
from fencepost.model.effects import PipeKey, Resolver
from fencepost.model.issue import LimitReached, issue
from fencepost.model.program import Compiled, Emit
from fencepost.model.shapes import bounds, shapes
from fencepost.prove.abstract import Agent, CannotModel, Stepper, World
from fencepost.prove.fold import Folder
from fencepost.prove.order import Events, Fault, Order
from fencepost.prove.relevance import Relevance
from fencepost.prove.structure import analyse
from fencepost.prove.values import Interval, Knowledge, Symbol, Undecided, Value

_STATES = 20_000
_PATIENCE = 60  # states to look at after something new was numbered, before the exploration begins again
_STEPS = 200_000  # operations along one path between two splits

ROWS: dict[str, tuple[Row, ...]] = {
    "negative": (Row.SLOT_MAPPING,),
    "zero": (Row.SLOT_MAPPING,),
    "index": (Row.SLOT_MAPPING,),
    "assert": (Row.SLOT_MAPPING,),
    "outside": (Row.SLOT_MAPPING,),
    "round": (Row.SLOT_MAPPING, Row.PAIRING),
    "race": (Row.EVENT_POSITION, Row.PARTICIPANTS, Row.PHASES),
    "unwritten": (Row.EVENT_POSITION, Row.SLOT_MAPPING),
    "overflow": (Row.COUNTS,),
    "leftover": (Row.EVENT_POSITION, Row.PAIRING, Row.COUNTS, Row.BOUNDARY),
    "illegal": (Row.PARTICIPANTS,),
    "hang": (Row.PAIRING, Row.BOUNDARY, Row.COUNTS, Row.PARTICIPANTS, Row.FIFO, Row.PHASES, Row.EVENT_POSITION),
    "modes": (Row.PAIRING,),
    "phase": (Row.PHASES, Row.BOUNDARY),
    "early": (Row.PHASES,),
    "messages": (Row.FIFO,),
    "message": (Row.FIFO,),
    "unfreed": (Row.FIFO,),
    "overrun": (Row.FIFO,),
    "free": (Row.FIFO,),
    "used": (Row.FIFO,),
    "mutex": (Row.COUNTS,),
}
"""The rows that a fault puts in doubt.  A contested channel puts all of them in doubt."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A bad state that some path reaches: the fault, and values of the parameters that may lead there."""

    fault: Fault
    values: dict[str, int]


@dataclass(slots=True)
class Exploration:
    """The outcome.

    `closed`: every path was followed to its end or to a state seen before.  `reason` says why not.  `troubles` are
    the faults met, one per kind and place.  `peaks` is the largest number of signals that can be pending per channel.
    """

    closed: bool = False
    reason: str = ""
    troubles: list[Trouble] = field(default_factory=list)
    states: int = 0
    ends: int = 0
    left: int = 0  # ends at which signals are left over
    peaks: dict[str, int] = field(default_factory=dict)
    assumptions: list[str] = field(default_factory=list)

    def proves(self, row: Row) -> bool:
        """Whether the closed exploration shows that the row holds for all parameter values."""
        if not self.closed:
            return False
        for trouble in self.troubles:
            if row is Row.BOUNDARY and trouble.fault[0] == "leftover" and self.left == self.ends:
                continue  # left over at every trip count: nothing that only a boundary shows
            rows = ROWS.get(str(trouble.fault[0]))
            if rows is None or row in rows:
                return False
            if trouble.fault[0] == "hang":
                return False  # what comes after the hang was not looked at
        return True


@dataclass(slots=True)
class State:
    """One relative state: the agents, what is known, and who knows of which event."""

    agents: list[Agent]
    world: World
    order: Order

    def copy(self) -> State:
        return State([a.copy() for a in self.agents], self.world.copy(), self.order.copy())


class _Grown(Exception):
    """An event was numbered that all earlier states should know from the start: begin again."""


def explore(
    compiled: Compiled,
    deadline: float,
    *,
    credits: Literal["per_slot", "batched"] = "per_slot",
    states: int = _STATES,
    slack: int = 0,
) -> Exploration:
    """Explore a kernel for all parameter values.

    Args:
        deadline: `time.monotonic()` after which to give up.
        credits: how FIFO credits travel.
        states: the largest number of states.
        slack: raises every threshold of the folding; the verdict must not depend on it.
    """
    explorer = Explorer(compiled, deadline, credits, states, slack)
    while True:
        explorer.events.grown = False
        explorer.effects = len(explorer.resolver.effects())
        try:
            return explorer.run()
        except _Grown:
            continue


class Explorer:
    def __init__(self, compiled: Compiled, deadline: float, credits: str, states: int, slack: int) -> None:
        self.compiled = compiled
        self.deadline = deadline
        self.credits = credits
        self.limit = states
        self.resolver = Resolver(compiled)
        self.events = Events(self.resolver)
        self.effects = 0
        self._discover()
        structures = [analyse(compiled, p) for p in compiled.programs]
        self.steppers = [Stepper(compiled, p, s) for p, s in zip(compiled.programs, structures, strict=True)]
        self.remember = max((s.remember for s in structures), default=1)
        self.pipes: list[PipeKey] = []
        for program in compiled.programs:
            found: dict[PipeKey, None] = {(program.agent, "S"): None}
            for site in program.sites:
                pipe = getattr(site, "pipe", None) or getattr(site, "source", "S")
                found[program.agent, "S" if pipe not in ir.PIPES else pipe] = None
                if isinstance(site, ir.SyncDst):
                    found[program.agent, site.target] = None
            self.pipes += found
        self.folder = Folder(structures, Relevance(self.events, self.pipes), self.remember + slack, slack)
        self.siblings = {p.agent: [k for k in self.pipes if k[0] == p.agent] for p in compiled.programs}

    def run(self) -> Exploration:
        self.result = Exploration()
        self.seen: set[Hashable] = set()
        self.begin_again: int | None = None
        self.reported: set[Hashable] = set()
        todo: list[State] = [self._initial()]
        while todo:
            if len(self.seen) > self.limit:
                self.result.reason = f"more than {self.limit:,} relative states"
                break
            if time.monotonic() > self.deadline:
                self.result.reason = "out of time"
                break
            state = todo.pop()
            try:
                split = self._advance(state)
            except CannotModel as error:
                self.result.reason = str(error)
                break
            self._check_grown()
            if split is None:
                self.result.ends += 1
                continue
            self.folder.normalise(state.agents, state.world, state.order)
            key = self.folder.key(state.agents, state.world, state.order)
            if key in self.seen:
                continue
            self.seen.add(key)
            # The folded state is split anew: the undecided comparison may read differently there.
            split = self._advance(state)
            self._check_grown()
            if split is None:
                self.result.ends += 1
                continue
            for interval, residue in split.choices:
                branch = state.copy()
                if branch.world.learn(split.form, interval, residue):
                    todo.append(branch)
        else:
            if self.begin_again is not None:
                raise _Grown
            self.result.closed = True
            self._modes()
        self.result.states = len(self.seen)
        return self.result

    def _modes(self) -> None:
        """Both ends of a pair must name the same mode; which ids meet is known from the effects."""
        ends: dict[tuple[str, int], dict[type, set[str]]] = {}
        for effect in self.resolver.effects():
            stmt = effect.stmt
            if isinstance(stmt, (ir.SetCross, ir.WaitCross)):
                core = "cube" if effect.agent == "aic" else "vector"
                sends = isinstance(stmt, ir.SetCross) or stmt.mode.startswith("INTER")
                sender = core if sends else "vector" if core == "cube" else "cube"
                key = (sender, effect.arguments[0] % 16)
                ends.setdefault(key, {}).setdefault(type(stmt), set()).add(stmt.mode)
        for key, found in ends.items():
            sets, waits = found.get(ir.SetCross), found.get(ir.WaitCross)
            if sets and waits and sets != waits:
                self.result.troubles.append(Trouble(("modes", *key), {}))

    def _check_grown(self) -> None:
        """Go on for a while after something new was numbered, to find more of it, and then begin again."""
        effects = len(self.resolver.effects())
        if self.events.grown or effects > self.effects:
            self.events.grown = False
            self.effects = effects
            self.begin_again = len(self.seen) + _PATIENCE
        if self.begin_again is not None and len(self.seen) > self.begin_again:
            raise _Grown

    def _discover(self) -> None:
        """Build the effects of a few small runs, so that the exploration seldom has to begin again."""
        for shape in islice(shapes(self.compiled), 0, 60, 6):
            for program in self.compiled.programs:
                try:
                    issued, _ = issue(self.compiled, program, shape.values, shape.table(), 5_000)
                except LimitReached:
                    continue
                for site, arguments, _ in issued:
                    self.resolver.effect(program.agent, site, program.sites[site], arguments)

    def _initial(self) -> State:
        initial: dict[Symbol, Interval] = {}
        for parameter in self.compiled.parameters:
            initial["p", parameter] = bounds(self.compiled, parameter)
        knowledge = Knowledge({((s, 1),): interval for s, interval in initial.items()})
        order = Order(self.events)
        order.pipes = dict.fromkeys(self.pipes, self.events.virtual)
        return State([s.start() for s in self.steppers], World(knowledge, initial, self.remember), order)

    # ------------------------------------------------------------------------------------------ one path

    def _advance(self, state: State) -> Undecided | None:
        """Run all agents until nothing moves without a decision; None if the path ended."""
        budget = _STEPS
        while True:
            moved = False
            undecided: Undecided | None = None
            stopped = 0
            meeting: list[int] = []
            for number, stepper in enumerate(self.steppers):
                stepper.report = lambda bad: self._report((bad.kind, bad.span), state)
                agent = state.agents[number]
                while True:
                    try:
                        found = stepper.next(agent, state.world, budget)
                    except Undecided as split:
                        undecided = undecided or split
                        break
                    if found is None:
                        stopped += 1
                        break
                    emit, arguments, task = found
                    site = stepper.program.sites[emit.site]
                    effect = self.resolver.effect(stepper.program.agent, emit.site, site, arguments)
                    if effect.meets:
                        meeting.append(number)
                        break
                    if state.order.obstacle(effect, self.credits):
                        break
                    self._execute(state, number, emit, arguments, task)
                    moved = True
                    budget -= 1
                    if budget <= 0:
                        raise CannotModel("a path runs on without a decision")
            if moved:
                continue
            if len(meeting) == len(self.steppers):
                self._meet(state, meeting)
                continue
            if undecided is not None:
                return undecided
            if stopped == len(self.steppers):
                left = state.order.left()
                self.result.left += any(fault[0] == "leftover" for fault in left)
                for fault in left:
                    self._report(fault, state)
            else:
                self._report(("hang", *self._stuck(state)), state)
            return None

    def _execute(self, state: State, number: int, emit: Emit, arguments: tuple[int, ...], task: Value | None) -> None:
        stepper = self.steppers[number]
        agent = stepper.program.agent
        effect = self.resolver.effect(agent, emit.site, stepper.program.sites[emit.site], arguments)
        frees_at = self.compiled.target.frees_at
        for fault in state.order.execute(effect, task, self.credits, frees_at, self.siblings[agent]):
            self._report(fault, state)
        for channel in effect.sets:
            name = str(self.resolver.channels[channel])
            pending = len(state.order.tokens.get(channel, ()))
            self.result.peaks[name] = max(pending, self.result.peaks.get(name, 0))
        state.agents[number].pc += 1

    def _meet(self, state: State, meeting: list[int]) -> None:
        """All agents stand at sync_all: everybody learns what anybody knows."""
        known = 0
        for mask in state.order.pipes.values():
            known |= mask
        for number in meeting:
            state.order.pipes[self.steppers[number].program.agent, "S"] = known
            state.agents[number].pc += 1

    def _stuck(self, state: State) -> tuple[Hashable, ...]:
        return tuple(a.pc for a in state.agents)

    def _report(self, fault: Fault, state: State) -> None:
        if fault not in self.reported:
            self.reported.add(fault)
            self.result.troubles.append(Trouble(fault, self._candidate(state)))

    def _candidate(self, state: State) -> dict[str, int]:
        """Parameter values that agree with what is known on the path, as a hint for the executor."""
        values: dict[str, int] = {}
        for parameter in self.compiled.parameters:
            base: Symbol = ("p", parameter)
            best: int | None = None
            for form, (low, high) in state.world.knowledge.intervals.items():
                if len(form) == 1 and (form[0][0] == base or form[0][0][1:2] == (base,)):
                    pick = low if low is not None else high if high is not None else 0
                    best = pick if best is None or abs(pick) > abs(best) else best
            values[parameter] = best or 0
        return values
