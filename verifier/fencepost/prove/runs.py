"""Concrete runs of the closed forms: who executes what, and along which hops does order travel?

The formulas of the events are evaluated for small parameter values.  This finds the paths that the prover then shows to
exist for all values, and checks the formulas against the executor's own issue order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.model.effects import Effect
from fencepost.model.functions import FunctionTable
from fencepost.model.issue import LimitReached, issue
from fencepost.prove.evaluation import Functions, Unevaluated, Values, function
from fencepost.prove.events import Event, Loop
from fencepost.prove.expressions import smt_name
from fencepost.prove.hops import Kind, batch
from fencepost.prove.kernels import Closed

_ENDS = 16  # executions of an event at the start and at the end of a run
_LIMIT = 1_200  # operations of one agent
Edge = tuple[Kind, "Step", "Step"]
"""A hop: its kind, the operation that passes order on, and the one that takes it."""


@dataclass(slots=True, eq=False)
class Step:
    """One execution: `ordinal` counts those of its event, `position` those of its agent, `seq` those of its pipe."""

    event: Event
    indices: tuple[int, ...]
    arguments: tuple[int, ...]
    task: int | None
    effect: Effect
    ordinal: int = 0
    position: int = 0
    pipe: int = 0
    seq: int = 0
    clock: tuple[int, ...] = ()


@dataclass(slots=True)
class ConcreteRun:
    """All executions for one choice of values, with the hops between pipes.

    `values` go by parameter, `parameters` by symbol.  `totals` counts the executions of each event.  `finished` is
    False if some operation waits for ever.
    """

    values: dict[str, int]
    parameters: Values
    functions: Functions
    steps: dict[str, list[Step]]
    totals: dict[Event, int]
    edges: list[Edge] = field(default_factory=list)
    finished: bool = False
    pipes: list[list[Step]] = field(default_factory=list)
    _executions: dict[Event, list[Step]] = field(default_factory=dict)
    _positions: dict[Event, list[int]] = field(default_factory=dict)
    _classes: dict[int, dict[tuple[Kind, object, int], tuple[list[int], list[Edge]]]] = field(default_factory=dict)

    def executed(self, event: Event, position: int) -> int:
        """How often an event is executed by its agent before a position."""
        if event not in self._positions:
            self._positions[event] = [s.position for s in self.steps[event.agent] if s.event is event]
        return bisect_left(self._positions[event], position)

    def executions(self, event: Event) -> list[Step]:
        """The executions of an event that take place, the middle ones left out if they are many."""
        if event not in self._executions:
            found = [s for s in self.steps[event.agent] if s.event is event and s.clock]
            self._executions[event] = found if len(found) <= 2 * _ENDS else found[:_ENDS] + found[-_ENDS:]
        return self._executions[event]

    def ordered(self, one: Step, other: Step) -> bool:
        """Whether `one` happens before `other`."""
        return one is not other and other.clock[one.pipe] >= one.seq

    def route(self, one: Step, other: Step, hops: int = 8) -> list[Edge] | None:
        """The hops of a shortest path from one execution to another; None without a path."""
        reached: dict[int, tuple[int, tuple[Edge, ...]]] = {one.pipe: (one.seq, ())}
        fresh = dict(reached)
        for _ in range(hops + 1):
            arrival = reached.get(other.pipe)
            if arrival is not None and arrival[0] <= other.seq:
                return list(arrival[1])
            following: dict[int, tuple[int, tuple[Edge, ...]]] = {}
            for pipe, (seq, path) in fresh.items():
                for seqs, edges in self._classes.get(pipe, {}).values():
                    at = bisect_left(seqs, seq)
                    if at == len(seqs):
                        continue
                    target = edges[at][2]
                    best = following.get(target.pipe, reached.get(target.pipe))
                    if best is None or target.seq < best[0]:
                        following[target.pipe] = target.seq, (*path, edges[at])
            reached.update(following)
            fresh = following
        return None

    def meeting(self, agent: str, number: int) -> Step | None:
        """The sync_all of an agent with this number."""
        meetings = [s for s in self.steps[agent] if s.effect.meets]
        return meetings[number] if number < len(meetings) else None

    def connect(self) -> None:
        """Sort the hops by pipe and kind, for `route`."""
        for edge in self.edges:
            kind, source, target = edge
            label = (kind, _label(kind, source, target), target.pipe)
            seqs, edges = self._classes.setdefault(source.pipe, {}).setdefault(label, ([], []))
            seqs.append(source.seq)
            edges.append(edge)
        for classes in self._classes.values():
            for label, (seqs, edges) in classes.items():
                order = sorted(range(len(seqs)), key=lambda i: (seqs[i], edges[i][2].seq))
                classes[label] = [seqs[i] for i in order], [edges[i] for i in order]


def _label(kind: str, source: Step, target: Step) -> object:
    if kind == "match":
        return next(iter(set(source.effect.sets) & set(target.effect.waits)), None)
    if kind == "lock":
        return next(iter(set(source.effect.unlocks) & set(target.effect.locks)), None)
    return None


def concrete(kernel: Closed, values: dict[str, int], table: FunctionTable) -> ConcreteRun | None:
    """Evaluate all events for the given parameter values; None if a value is unknown or bad, or the run is too long.

    Raises:
        AssertionError: the closed forms differ from what the executor issues; a defect of this prover.
    """
    compiled = kernel.compiled
    parameters = {smt_name(p): values[p] for p in compiled.parameters}
    functions = Functions(table, kernel.function_names, kernel.sums, parameters)
    steps: dict[str, list[Step]] = {}
    totals: dict[Event, int] = {}
    for agent, trace in kernel.traces.items():
        try:
            found = _agent(kernel, trace.events, parameters, functions, totals)
            program = compiled.program(agent)
            issued, bad = issue(compiled, program, tuple(values[p] for p in compiled.parameters), table, 20 * _LIMIT)
        except (Unevaluated, LimitReached, _TooLong):
            return None
        if bad:
            return None
        got = [(s.event.site, s.arguments, s.task) for s in found]
        assert got == issued, f"closed form of {agent} differs from its issue order at {values}"
        steps[agent] = found
    run = ConcreteRun(values, parameters, functions, steps, totals)
    _order(kernel, run)
    run.connect()
    return run


class _TooLong(Exception):
    pass


def _agent(
    kernel: Closed, events: list[Event], parameters: Values, functions: Functions, totals: dict[Event, int]
) -> list[Step]:
    placed: list[tuple[tuple[int, ...], Step]] = []
    iterations: dict[tuple[Loop, ...], list[Values]] = {(): [parameters]}
    for event in events:
        # The run asks the formulas anew: nothing is taken from the walk but terms.
        evaluate = kernel.functions.get(event)
        if evaluate is None:
            places = [p for p in event.place if not isinstance(p, int)]
            tasks = [] if event.task is None else [event.task]
            evaluate = kernel.functions[event] = function([event.domain, *places, *event.arguments, *tasks])
        for values in _iterations(kernel, event.loops, iterations, functions):
            found = evaluate(values, functions)
            if not found[0]:
                continue
            moving = iter(found[1 : 1 + sum(not isinstance(p, int) for p in event.place)])
            place = tuple(p if isinstance(p, int) else next(moving) for p in event.place)
            rest = found[1 + sum(not isinstance(p, int) for p in event.place) :]
            arguments = rest[: len(event.arguments)]
            task = None if event.task is None else rest[-1]
            effect = kernel.resolver.effect(event.agent, event.site, event.stmt, arguments)
            indices = tuple(values[i] for i in event.indices)
            placed.append((place, Step(event, indices, arguments, task, effect)))
            if len(placed) > _LIMIT:
                raise _TooLong
    placed.sort(key=lambda p: p[0])
    for position, (_, step) in enumerate(placed):
        step.position = position
        step.ordinal = totals.get(step.event, 0)
        totals[step.event] = step.ordinal + 1
    for event in events:
        totals.setdefault(event, 0)
    return [step for _, step in placed]


def _iterations(
    kernel: Closed, loops: tuple[Loop, ...], known: dict[tuple[Loop, ...], list[Values]], functions: Functions
) -> list[Values]:
    """All values of the indices of nested loops."""
    found = known.get(loops)
    if found is None:
        loop = loops[-1]
        evaluate = kernel.functions.get(loop)
        if evaluate is None:
            evaluate = kernel.functions[loop] = function([loop.extent])
        found = []
        for values in _iterations(kernel, loops[:-1], known, functions):
            for trip in range(evaluate(values, functions)[0]):
                found.append({**values, loop.index: trip})
                if len(found) > _LIMIT:
                    raise _TooLong
        known[loops] = found
    return found


# ------------------------------------------------------------------------------------------------ happens-before


def _order(kernel: Closed, run: ConcreteRun) -> None:
    """Find the hops, and the clocks of all executions that take place."""
    numbers: dict[tuple[str, str], int] = {}
    for steps in run.steps.values():
        for step in steps:
            step.pipe = numbers.setdefault(step.event.pipe, len(numbers))
    run.pipes = [[] for _ in numbers]
    for steps in run.steps.values():
        for step in steps:
            run.pipes[step.pipe].append(step)
            step.seq = len(run.pipes[step.pipe])
    run.edges = [*_within(run), *_matches(run), *_messages(kernel, run), *_meetings(run)]
    before: dict[Step, list[Step]] = {}
    after: dict[Step, list[Step]] = {}
    for _, source, target in run.edges:
        before.setdefault(target, []).append(source)
        after.setdefault(source, []).append(target)
    stuck = set(_unserved(kernel, run))
    zero = (0,) * len(numbers)
    ready = [pipe[0] for pipe in run.pipes if pipe]
    done = 0
    while ready:
        step = ready.pop()
        if step.clock or step in stuck:
            continue
        earlier = run.pipes[step.pipe][step.seq - 2 : step.seq - 1] if step.seq > 1 else []
        sources = [*earlier, *before.get(step, ())]
        if not all(s.clock for s in sources):
            continue
        clock = list(map(max, zero, *(s.clock for s in sources))) if sources else list(zero)
        clock[step.pipe] = step.seq
        step.clock = tuple(clock)
        done += 1
        ready += run.pipes[step.pipe][step.seq : step.seq + 1]
        ready += after.get(step, ())
    run.finished = done == sum(map(len, run.steps.values()))


def _within(run: ConcreteRun) -> Iterator[Edge]:
    """Hops between pipes of one agent, each to the first operation that takes it: issue, mutexes, barriers, flags."""
    for steps in run.steps.values():
        pipes = {s.pipe for s in steps}
        waiting: dict[tuple[Kind, object, int], list[Step]] = {}  # what gives, by what takes it on which pipe
        for step in steps:
            effect = step.effect
            takes: list[tuple[Kind, object]] = [("issue", None), *(("lock", m) for m in effect.locks)]
            gives: list[tuple[Kind, object]] = [("drain", None), *(("lock", m) for m in effect.unlocks)]
            if effect.drains:
                takes.append(("drain", None))
            if step.event.pipe[1] == "S":
                gives.append(("issue", None))
            if effect.phase is not None:
                role, final = effect.phase
                takes += [("phase", (role, cell)) for cell in effect.phased]
                other = "consume" if role == "produce" else "produce"
                gives += [("phase", (other, cell)) for cell in effect.phased if final]
            for kind, thing in takes:
                yield from ((kind, source, step) for source in waiting.pop((kind, thing, step.pipe), ()))
            for kind, thing in gives:
                for pipe in pipes - {step.pipe}:
                    waiting.setdefault((kind, thing, pipe), []).append(step)


def _matches(run: ConcreteRun) -> Iterator[Edge]:
    """The k-th set of a channel, and the k-th wait."""
    sets: dict[int, list[Step]] = {}
    waits: dict[int, list[Step]] = {}
    for steps in run.steps.values():
        for step in steps:
            for channel in step.effect.sets:
                sets.setdefault(channel, []).append(step)
            for channel in step.effect.waits:
                waits.setdefault(channel, []).append(step)
    for channel, taken in waits.items():
        for source, target in zip(sets.get(channel, []), taken, strict=False):
            yield "match", source, target


def _messages(kernel: Closed, run: ConcreteRun) -> Iterator[Edge]:
    """The k-th push and the k-th pop; the release of a slot, and the push that reuses it."""
    kinds: dict[tuple[type, tuple[int, int]], list[Step]] = {}
    for steps in run.steps.values():
        for step in steps:
            for taking in step.effect.rings:
                kinds.setdefault((type(step.event.stmt), taking), []).append(step)
    release = ir.Free if kernel.compiled.target.frees_at == "tfree" else ir.Pop
    for (kind, taking), steps in kinds.items():
        if kind is not ir.Push:
            continue
        for source, target in zip(steps, kinds.get((ir.Pop, taking), []), strict=False):
            yield "message", source, target
        slots = kernel.resolver.rings[taking[0]].slots
        period = batch(slots) if kernel.batched else 1
        first, releases = -(-slots // period) * period, kinds.get((release, taking), [])
        for number in range(first, len(steps), period):
            if number - first + period - 1 < len(releases):
                yield "credit", releases[number - first + period - 1], steps[number]


def _meetings(run: ConcreteRun) -> Iterator[Edge]:
    """What an agent did before its k-th sync_all, and the k-th sync_all of every other agent."""
    for agent, steps in run.steps.items():
        met, last = 0, dict[int, Step]()
        for step in steps:
            if step.effect.meets:
                for other in run.steps:
                    target = run.meeting(other, met)
                    if other != agent and target is not None:
                        yield from (("meet", source, target) for source in last.values())
                met += 1
            last[step.pipe] = step


def _unserved(kernel: Closed, run: ConcreteRun) -> Iterator[Step]:
    """Waits and pops without a partner."""
    served = {(kind, id(target)): 0 for kind, _, target in run.edges}
    for kind, _, target in run.edges:
        served[kind, id(target)] += 1
    for steps in run.steps.values():
        for step in steps:
            pops = isinstance(step.event.stmt, ir.Pop)
            needed = len(step.effect.rings if pops else step.effect.waits)
            if served.get(("message" if pops else "match", id(step)), 0) < needed:
                yield step
