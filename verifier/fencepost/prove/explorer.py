"""One exploration: which relative states does a kernel, or a part of it, reach, and what is wrong in them?

A fault is reported once for each kind and place.  How kernels are taken apart before that is `fencepost.prove.explore`.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import islice

from fencepost import ir
from fencepost.findings import Row
from fencepost.model.effects import PipeKey, Resolver
from fencepost.model.issue import LimitReached, issue
from fencepost.model.program import Compiled
from fencepost.model.shapes import bounds, shapes
from fencepost.prove.abstract import Agent, CannotModel, Stepper, World
from fencepost.prove.delays import LOST
from fencepost.prove.fold import Folder, parts_of
from fencepost.prove.observables import OutOfTime, plan
from fencepost.prove.order import Action, Actions, Fault, Order, Rules
from fencepost.prove.parts import Part
from fencepost.prove.relevance import Relevance
from fencepost.prove.structure import analyse
from fencepost.prove.values import Interval, Knowledge, Symbol, Symbols, TooManyResidues, Undecided, Value

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
    "signals not counted": (Row.COUNTS,),
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
    "scalar not followed": (Row.SLOT_MAPPING,),
}
"""The rows that a fault puts in doubt.  A contested channel, and lost signals, put all of them in doubt."""


_OF_SCALARS = ("negative", "zero", "index", "assert")


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
            if trouble.fault[:2] == ("leftover", "flag"):
                rows = (Row.COUNTS, Row.BOUNDARY)
            if rows is None or row in rows:
                return False
            if trouble.fault[0] == "hang":
                return False  # what comes after the hang was not looked at
        return True


@dataclass(slots=True)
class State:
    """One state: the agents, what is known, and who knows of which event."""

    agents: list[Agent]
    world: World
    order: Order
    split: Hashable = None  # the name of the last state on the path that was split
    then: list[tuple[int, list[Value]]] = field(default_factory=list)  # where the agents were, and what they held

    def copy(self) -> State:
        agents = [a.copy() for a in self.agents]
        return State(agents, self.world.copy(), self.order.copy(), self.split, self.then)

    @property
    def here(self) -> list[tuple[int, list[Value]]]:
        return [(agent.pc, list(agent.values)) for agent in self.agents]


class _Grown(Exception):
    """An operation was met that the comparison of all earlier states should have reckoned with: begin again."""


class Explorer:
    """One exploration of a part.

    `remember`: how large the values are that later runs of a loop know of parameters; None: as large as any constant
    that they are compared with.  `counted` as in `explore`.
    """

    def __init__(
        self,
        part: Part,
        deadline: float,
        credits: str,
        states: int,
        slack: int,
        remember: int | None = None,
        counted: bool = True,
    ) -> None:
        compiled = part.compiled
        self.compiled = compiled
        self.part = part
        self.deadline = deadline
        self.limit = states
        self.rules = Rules(credits, compiled.target.frees_at, counted)
        self.resolver = Resolver(compiled)
        self.actions = Actions(self.resolver, _pipes(compiled), part.unchecked)
        self.relevance = Relevance(self.actions)
        self.symbols = Symbols()
        self.slack, self.given = slack, remember
        self.scalars = [self.actions.numbers[p.agent, "S"] for p in compiled.programs]
        self.known: list[dict[tuple[int, tuple[int, ...]], Action]] = [{} for _ in compiled.programs]
        self._discover()

    def _plan(self) -> None:
        """Work out what has to be compared.  Raises OutOfTime."""
        plans = [plan(analyse(self.compiled, p), self.part.checks, self.deadline) for p in self.compiled.programs]
        most = max((p.remember for p in plans), default=1)
        self.remember = (most if self.given is None else self.given) + self.slack
        self.steppers = [Stepper(self.compiled, p, self.symbols) for p in plans]
        self.folder = Folder(plans, self.relevance, self.remember, self.slack)

    def explore(self) -> Exploration:
        try:
            self._plan()
        except OutOfTime:
            return Exploration(reason="out of time")
        while True:
            try:
                return self.run()
            except _Grown:
                continue

    def run(self) -> Exploration:
        self.result = Exploration()
        self.seen: set[Hashable] = set()
        self.reported: set[Hashable] = set()
        self.relevance.update()
        self.begin_again: int | None = None
        todo: list[State] = [self._initial()]
        idle: dict[Hashable, set[Hashable]] = {}  # states that follow others by a decision alone
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
            except (CannotModel, TooManyResidues) as error:
                self.result.reason = str(error)
                break
            self._check_grown()
            if split is not None and any(_lost(symbol) for symbol, _ in split.form):
                self.result.reason = "a record is read after it was written again"
                break
            if split is None:
                self.result.ends += 1
                continue
            rests = state.split is not None and state.here == state.then
            key = self.folder.key(state.agents, state.world, state.order)
            if rests:
                idle.setdefault(state.split, set()).add(key)
            if key in self.seen:
                continue
            self.seen.add(key)
            state.split, state.then = key, state.here
            for number, (interval, residue) in enumerate(split.choices):
                branch = state.copy() if number + 1 < len(split.choices) else state
                if branch.world.learn(split.form, interval, residue):
                    todo.append(branch)
        else:
            if self.begin_again is not None:
                raise _Grown
            if not _ends(idle):
                self.result.reason = "a decision is forgotten before anything follows from it"
                self.result.states = len(self.seen)
                return self.result
            self.result.closed = True
            self._modes()
            if not self.rules.counted:
                self.result.troubles.append(Trouble(("signals not counted",), {}))
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
        """Go on for a while after a new operation was met, to find more of them, and then begin again."""
        if len(self.actions.known) > self.relevance.seen:
            self.relevance.update()
            self.begin_again = len(self.seen) + _PATIENCE
        if self.begin_again is not None and len(self.seen) > self.begin_again:
            raise _Grown

    def _discover(self) -> None:
        """Build the actions of a few small runs, so that the exploration seldom has to begin again."""
        for shape in islice(shapes(self.compiled), 0, 60, 6):
            for number, program in enumerate(self.compiled.programs):
                try:
                    issued, _ = issue(self.compiled, program, shape.values, shape.table(), 5_000)
                except LimitReached:
                    continue
                for site, arguments, _ in issued:
                    self._action(number, site, arguments)

    def _action(self, number: int, site: int, arguments: tuple[int, ...]) -> Action:
        found = self.known[number].get((site, arguments))
        if found is None:
            program = self.compiled.programs[number]
            effect = self.resolver.effect(program.agent, site, program.sites[site], arguments)
            found = self.known[number][site, arguments] = self.actions.action(effect)
        return found

    def _initial(self) -> State:
        initial: dict[Symbol, Interval] = {}
        for parameter in self.compiled.parameters:
            initial[self.symbols.parameter(parameter)] = bounds(self.compiled, parameter)
        knowledge = Knowledge({((s, 1),): interval for s, interval in initial.items()})
        zero = (0,) * len(self.actions.pipes)
        order = Order(self.actions, self.rules, [zero] * len(zero), [None] * len(zero))
        world = World(self.symbols, knowledge, initial, self.remember, self.folder.moduli)
        return State([s.start() for s in self.steppers], world, order)

    # ------------------------------------------------------------------------------------------ one path

    def _advance(self, state: State) -> Undecided | None:
        """Run all agents until nothing moves without a decision; None if the path ended."""
        budget = _STEPS
        order, world = state.order, state.world
        while True:
            moved = False
            undecided: Undecided | None = None
            stopped = 0
            meeting: list[int] = []
            for number, stepper in enumerate(self.steppers):
                stepper.report = lambda bad: self._report((bad.kind, bad.span), state)
                agent, known = state.agents[number], self.known[number]
                while True:
                    try:
                        found = stepper.next(agent, world, budget)
                    except Undecided as split:
                        undecided = undecided or split
                        break
                    if found is None:
                        stopped += 1
                        break
                    site, arguments, task = found
                    action = known.get((site, arguments))
                    if action is None:
                        action = self._action(number, site, arguments)
                    if action.meets:
                        meeting.append(number)
                        break
                    if (action.waits or action.phase or action.rings) and order.obstacle(action):
                        break
                    for fault in order.execute(action, task):
                        self._report(fault, state)
                    if action.sets:
                        self._count(action, order)
                    agent.pc += 1
                    moved = True
                    budget -= 1
                    if budget <= 0:
                        raise CannotModel("a path runs on without a decision")
            if moved:
                continue
            if len(meeting) == len(self.steppers):
                order.meet(self.scalars)
                for agent in state.agents:
                    agent.pc += 1
                continue
            if undecided is not None:
                return undecided
            if stopped == len(self.steppers):
                left = order.left()
                self.result.left += any(fault[0] == "leftover" for fault in left)
                for fault in left:
                    self._report(fault, state)
            else:
                self._report(("hang", *(a.pc for a in state.agents)), state)
            return None

    def _count(self, action: Action, order: Order) -> None:
        """Note how many signals are pending."""
        peaks = self.result.peaks
        for channel in action.sets:
            name = str(self.resolver.channels[channel])
            pending = len(order.tokens[channel])
            if pending > peaks.get(name, 0):
                peaks[name] = pending

    def _report(self, fault: Fault, state: State) -> None:
        if fault[0] in _OF_SCALARS and not self.part.checks:
            return  # another part looks at them
        if fault[:2] == ("overflow", "flag") and not self.part.flags:
            return
        if fault not in self.reported:
            self.reported.add(fault)
            self.result.troubles.append(Trouble(fault, self._candidate(state)))

    def _candidate(self, state: State) -> dict[str, int]:
        """Parameter values that agree with what is known on the path, as a hint for the executor."""
        values: dict[str, int] = {}
        for parameter in self.compiled.parameters:
            base = self.symbols.parameter(parameter)
            best: int | None = None
            for form, (low, high) in state.world.knowledge.intervals.items():
                if len(form) == 1 and form[0][0].base is base:
                    pick = low if low is not None else high if high is not None else 0
                    best = pick if best is None or abs(pick) > abs(best) else best
            values[parameter] = best or 0
        return values


def _ends(idle: Mapping[Hashable, Iterable[Hashable]]) -> bool:
    """Whether decisions alone lead back to no state: then all paths that end in one seen before go on."""
    try:
        TopologicalSorter(idle).prepare()
    except CycleError:
        return False
    return True


def _lost(symbol: Symbol) -> bool:
    """Whether a number is worked out from a record that was written again."""
    return any(part.name.startswith(LOST) for part in parts_of(symbol))


def _pipes(compiled: Compiled) -> list[PipeKey]:
    """Every pipe that some operation of the text may run on."""
    pipes: list[PipeKey] = []
    for program in compiled.programs:
        found: dict[PipeKey, None] = {(program.agent, "S"): None}
        for site in program.sites:
            pipe = getattr(site, "pipe", None) or getattr(site, "source", "S")
            found[program.agent, "S" if pipe not in ir.PIPES else pipe] = None
            if isinstance(site, ir.SyncDst):
                found[program.agent, site.target] = None
        pipes += found
    return pipes
