"""Folding: which relative state is this?

Values that only matter relative to each other are shifted down together by a multiple of their period, dead values are
dropped, entries of loops are counted from the oldest that is still in use, and knowledge nobody can ask for any more
is forgotten.  What is left is finite for kernels whose counters are used in the ways that `structure` knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import lcm

from fencepost.model.program import Next
from fencepost.prove.abstract import STALE, Agent, World
from fencepost.prove.order import Order
from fencepost.prove.relevance import Relevance
from fencepost.prove.structure import Group, Level, Structure
from fencepost.prove.values import Form, Linear, Symbol, Value, linear

Place = tuple[Hashable, ...]
"""A member: ("group", agent, group), ("symbol", symbol), ("task",), or ("arguments", f, i, level, epoch)."""


@dataclass(slots=True)
class _Component:
    """Values that shift together, and what stands in the way."""

    period: int = 1
    threshold: int = 1
    blocked: bool = False
    groups: list[tuple[int, int]] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    arguments: list[tuple[str, int, Level | None, int]] = field(default_factory=list)
    task: bool = False


class Folder:
    """Normalises states of one kernel.

    `remember`: symbols keep exact small values up to this; thresholds of components with symbols lie above it.
    `slack` raises every threshold.
    """

    def __init__(self, structures: list[Structure], relevance: Relevance, remember: int, slack: int) -> None:
        self.relevance = relevance
        self.structures = structures
        self.remember = remember
        self.slack = slack

    def normalise(self, agents: list[Agent], world: World, order: Order) -> None:
        """Bring a state into its normal form, in place."""
        self.relevance.apply(order)
        self._drop_dead(agents)
        self._epochs(agents, world, order)
        self._forget(agents, world)
        for component in self._components(agents, world, order):
            self._shift(component, agents, world, order)

    def key(self, agents: list[Agent], world: World, order: Order) -> Hashable:
        """What two states must agree in to behave alike."""
        return (
            tuple((a.pc, tuple(a.values), tuple(sorted(a.epochs.items(), key=repr))) for a in agents),
            frozenset((f, i) for f, i in world.knowledge.intervals.items() if i != (None, None)),
            frozenset(world.knowledge.residues.items()),
            order.present,
            tuple(order.pipes.items()),
            frozenset((c, t) for c, t in order.tokens.items() if t),
            frozenset(order.locks.items()),
            frozenset(order.flags.items()),
            frozenset(
                (k, r.messages, r.freed, r.credits, r.pushes, r.batch, r.unfreed, r.ahead)
                for k, r in order.rings.items()
            ),
            frozenset(order.tasks.items()),
            frozenset(order.sums.items()),
            order.held,
            order.freed,
        )

    # ------------------------------------------------------------------------------------------ dead values

    def _drop_dead(self, agents: list[Agent]) -> None:
        for agent, structure in zip(agents, self.structures, strict=True):
            live = structure.live[agent.pc]
            for slot in range(len(agent.values)):
                if slot not in live:
                    agent.values[slot] = 0

    # ------------------------------------------------------------------------------------------ entries of loops

    def _epochs(self, agents: list[Agent], world: World, order: Order) -> None:
        """Count entries from the oldest in use; forget copies of older ones."""
        lowest: dict[Level, int] = {}
        for agent, structure in zip(agents, self.structures, strict=True):
            for loop in structure.loops:
                if loop.level is not None:
                    epoch = agent.epochs.get(loop.level, 0)
                    lowest[loop.level] = min(lowest.get(loop.level, epoch), epoch)
        if not any(lowest.values()):
            return

        def rename(symbol: Symbol) -> Symbol | None:
            if symbol[0] == "p":
                return symbol
            level, epoch = symbol[-2], symbol[-1]
            if level is not None:
                epoch = epoch - lowest.get(level, 0)  # type: ignore[call-overload]
                if epoch < 0:
                    return None
            if symbol[0] == "c":
                inner = rename(symbol[1])  # type: ignore[arg-type]
                return None if inner is None else ("c", inner, level, epoch)
            arguments = []
            for argument in symbol[2]:  # type: ignore[attr-defined]
                new = self._renamed(argument, rename)
                if new is None:
                    return None
                arguments.append(new)
            return ("f", symbol[1], tuple(arguments), level, epoch)

        for agent in agents:
            agent.epochs = {level: e - lowest.get(level, 0) for level, e in agent.epochs.items()}
            for slot, value in enumerate(agent.values):
                if isinstance(value, Linear):
                    new = self._renamed(value, rename)
                    # A live value over a symbol of an old entry keeps a symbol of its own that nothing is known of.
                    agent.values[slot] = value if new is None else new
        self._rename_knowledge(world, rename)
        self._rename_tasks(order, rename)

    @staticmethod
    def _renamed(value: Value, rename) -> Value | None:  # type: ignore[no-untyped-def]
        if not isinstance(value, Linear):
            return value
        terms: dict[Symbol, int] = {}
        for symbol, coefficient in value.terms:
            new = rename(symbol)
            if new is None:
                return None
            terms[new] = terms.get(new, 0) + coefficient
        return linear(value.constant, terms)

    def _rename_knowledge(self, world: World, rename) -> None:  # type: ignore[no-untyped-def]
        intervals: dict[Form, tuple[int | None, int | None]] = {}
        for form, interval in world.knowledge.intervals.items():
            names = [(rename(s), c) for s, c in form]
            if all(s is not None for s, _ in names):
                intervals[tuple(sorted(names, key=repr))] = interval
        world.knowledge.intervals = intervals
        residues = {}
        for symbol, residue in world.knowledge.residues.items():
            new = rename(symbol)
            if new is not None:
                residues[new] = residue
        world.knowledge.residues = residues

    def _rename_tasks(self, order: Order, rename) -> None:  # type: ignore[no-untyped-def]
        for cell, (core, task) in list(order.tasks.items()):
            new = self._renamed(task, rename)
            if new is None:
                new = Linear(0, ((("f", "forgotten", (), None, 0), 1),))
            order.tasks[cell] = (core, new)
        for ring in order.rings.values():
            ring.messages = tuple(
                (m, t if t is None or isinstance(t, int) else self._renamed(t, rename) or t) for m, t in ring.messages
            )

    # ------------------------------------------------------------------------------------------ unknown functions

    def _forget(self, agents: list[Agent], world: World) -> None:
        """Forget values of unknown functions that no agent can ask for any more, and empty knowledge."""
        used: set[Symbol] = set()
        for agent in agents:
            for value in agent.values:
                if isinstance(value, Linear):
                    for symbol, _ in value.terms:
                        used |= _parts(symbol)
        gone: set[Symbol] = set()
        for form in world.knowledge.intervals:
            for symbol, _ in form:
                base = symbol[1] if symbol[0] == "c" else symbol
                assert isinstance(base, tuple)
                if base[0] == "f" and base not in used and self._passed(base, agents):
                    gone.add(symbol)
        if gone:
            world.knowledge.intervals = {
                f: i for f, i in world.knowledge.intervals.items() if not any(s in gone for s, _ in f)
            }
            world.knowledge.residues = {s: r for s, r in world.knowledge.residues.items() if s not in gone}

    def _passed(self, symbol: Symbol, agents: list[Agent]) -> bool:
        """Whether every agent that may still call the function is well past these arguments, or will not call it."""
        _, name, arguments, level, epoch = symbol
        for agent, structure in zip(agents, self.structures, strict=True):
            if name == STALE:
                return True
            if name in ("//", "*", "%", "trips"):
                return False
            if name not in structure.calls[agent.pc]:
                continue
            if level is None:
                return False
            if agent.epochs.get(level, 0) > epoch:  # type: ignore[call-overload]
                continue
            current = self._counter(agent, structure, level)  # type: ignore[arg-type]
            numbers = [a for a in arguments if isinstance(a, int)]  # type: ignore[attr-defined]
            if current is None or not numbers or max(numbers) >= current - 1 - structure.lags.get(name, 0):
                return False
        return True

    @staticmethod
    def _counter(agent: Agent, structure: Structure, level: Level) -> int | None:
        """The counter of the running loop of a level, or None."""
        for loop in structure.loops:
            if loop.level == level and loop.head <= agent.pc < loop.end:
                following = structure.program.code[loop.head]
                assert isinstance(following, Next)
                at = agent.values[following.index]
                return at if isinstance(at, int) else None
        return None

    # ------------------------------------------------------------------------------------------ components

    def _components(self, agents: list[Agent], world: World, order: Order) -> list[_Component]:
        parent: dict[Place, Place] = {}

        def find(place: Place) -> Place:
            while parent.setdefault(place, place) != place:
                place = parent[place]
            return place

        def union(a: Place, b: Place) -> None:
            parent[find(b)] = find(a)

        blocked: list[Place] = []
        shared: dict[Place, list[tuple[int, Place]]] = defaultdict(list)
        for number, (agent, structure) in enumerate(zip(agents, self.structures, strict=True)):
            live = structure.live[agent.pc]
            for g, group in enumerate(structure.groups):
                here: Place = ("group", number, g)
                find(here)
                if group.task:
                    union(here, ("task",))
                if not group.foldable or self._breaks(group, agent, structure, live):
                    blocked.append(here)
                for name, level in group.symbols:
                    shared["name", name, level].append((number, here))
                for function, position, level in group.functions:
                    shared["arguments", function, position, level].append((number, here))
        for place, users in shared.items():
            self._share(place, users, agents, union, blocked)
        for form in world.knowledge.intervals:
            for symbol, _ in form:
                union(("symbol", symbol), ("name", _name(symbol), _level(symbol), _epoch(symbol)))
                if symbol[0] == "f":
                    # Comparisons outside all loops use a function value as it is.
                    union(("symbol", symbol), ("name", _name(symbol), None, 0))
        components: dict[Place, _Component] = defaultdict(_Component)
        for place in list(parent):
            component = components[find(place)]
            match place:
                case ("group", int(n), int(g)):
                    component.groups.append((n, g))
                    group = self.structures[n].groups[g]
                    component.period = lcm(component.period, group.period)
                    component.threshold = max(component.threshold, group.threshold + self.slack)
                case ("symbol", tuple() as member):
                    component.symbols.append(member)
                    for structure in self.structures:
                        component.period = lcm(component.period, structure.moduli.get(str(_name(member)), 1))
                    component.threshold = max(component.threshold, self.remember + 2)
                case ("arguments", str(f), int(i), place_level, int(epoch)):
                    component.arguments.append((f, i, place_level, epoch))  # type: ignore[arg-type]
                case ("task",):
                    component.task = True
        for place in blocked:
            if place in parent:
                components[find(place)].blocked = True
        return list(components.values())

    def _share(
        self,
        place: Place,
        users: list[tuple[int, Place]],
        agents: list[Agent],
        union: Callable[[Place, Place], None],
        blocked: list[Place],
    ) -> None:
        """Join the groups that use one symbol (or the arguments of one function) at one level in the same entry.

        An agent that will still enter an entry that another one is in starts there from a constant: nothing of that
        entry may be shifted before.
        """
        level = place[-1]
        epochs = {n: agents[n].epochs.get(level, 0) if level is not None else 0 for n, _ in users}  # type: ignore[call-overload]
        for number, here in users:
            union(here, (*place, epochs[number]))
        for number in epochs:
            structure = self.structures[number]
            if level is not None and level in structure.entries[agents[number].pc]:
                blocked += [(*place, e) for e in set(epochs.values()) if e > epochs[number]]

    def _breaks(self, group: Group, agent: Agent, structure: Structure, live: frozenset[int]) -> bool:
        """Whether an assignment reachable from here restarts one member while others that it is compared with stay."""
        restarted = structure.breaks[agent.pc] & group.slots
        if not restarted or not (group.related or group.task):
            return False
        for slot in restarted:
            own = self._loop_slots(structure, slot)
            if own is None:
                return True
            if group.task:
                return True
            own |= set(self._staled(structure, slot))
            others = [s for s in group.slots & live if s not in own and isinstance(agent.values[s], int)]
            if others:
                return True
        return False

    @staticmethod
    def _staled(structure: Structure, slot: int) -> tuple[int, ...]:
        """The counters of earlier entries that the loop with this index makes unknown when it is entered again."""
        for loop in structure.loops:
            if structure.program.code[loop.head].index == slot:  # type: ignore[union-attr]
                return structure.stale.get(loop.enter, ())
        return ()

    @staticmethod
    def _loop_slots(structure: Structure, slot: int) -> set[int] | None:
        """The index, limit and variable of the loops whose index this slot is; None if it is no loop index."""
        for loop in structure.loops:
            following = structure.program.code[loop.head]
            if following.index == slot:  # type: ignore[union-attr]
                return {following.index, following.limit, following.slot}  # type: ignore[union-attr]
        return None

    # ------------------------------------------------------------------------------------------ shift

    def _shift(self, component: _Component, agents: list[Agent], world: World, order: Order) -> None:
        if component.blocked:
            return
        members: list[int] = []
        slots: list[tuple[Agent, int]] = []
        for number, g in component.groups:
            structure = self.structures[number]
            for slot in structure.groups[g].slots & structure.live[agents[number].pc]:
                value = agents[number].values[slot]
                if isinstance(value, int):
                    members.append(value)
                    slots.append((agents[number], slot))
        period = component.period
        for symbol in component.symbols:
            low, high = world.knowledge.interval(((symbol, 1),))
            if low is None:
                return
            members.append(low)
            period = lcm(period, world.knowledge.residues.get(symbol, (1, 0))[0])
        if component.task:
            for _, task in order.tasks.values():
                if isinstance(task, int):
                    members.append(task)
            for ring in order.rings.values():
                members += [t for _, t in ring.messages if isinstance(t, int)]
        members += self._argument_values(component, world, agents)
        mine = set(component.symbols)
        for form in world.knowledge.intervals:
            if len(form) > 1 and sum(c for s, c in form if s in mine) != 0:
                return
        if not members or min(members) < component.threshold + period:
            return
        by = (min(members) - component.threshold) // period * period
        for agent, slot in slots:
            value = agent.values[slot]
            assert isinstance(value, int)
            agent.values[slot] = value - by
        for symbol in component.symbols:
            form = ((symbol, 1),)
            low, high = world.knowledge.intervals.get(form, (None, None))
            world.knowledge.intervals[form] = (
                None if low is None else low - by,
                None if high is None else high - by,
            )
        if component.task:
            order.tasks = {c: (k, t - by if isinstance(t, int) else t) for c, (k, t) in order.tasks.items()}
            for ring in order.rings.values():
                ring.messages = tuple((m, t - by if isinstance(t, int) else t) for m, t in ring.messages)
        if component.arguments:
            self._shift_arguments(component, by, agents, world, order)

    def _argument_values(self, component: _Component, world: World, agents: list[Agent]) -> list[int]:
        """The integer arguments of the unknown function values that shift with this component."""
        found: list[int] = []
        if not component.arguments:
            return found
        wanted = set(component.arguments)
        for symbol in _function_symbols(world, agents):
            for i, argument in enumerate(symbol[2]):  # type: ignore[arg-type, var-annotated]
                if (symbol[1], i, symbol[3], symbol[4]) in wanted and isinstance(argument, int):
                    found.append(argument)
        return found

    def _shift_arguments(self, component: _Component, by: int, agents: list[Agent], world: World, order: Order) -> None:
        wanted = set(component.arguments)

        def rename(symbol: Symbol) -> Symbol:
            if symbol[0] == "c":
                return ("c", rename(symbol[1]), symbol[2], symbol[3])  # type: ignore[arg-type]
            if symbol[0] != "f":
                return symbol
            arguments = []
            for i, argument in enumerate(symbol[2]):  # type: ignore[arg-type, var-annotated]
                if isinstance(argument, Linear):
                    argument = self._renamed(argument, rename)
                elif (symbol[1], i, symbol[3], symbol[4]) in wanted:
                    argument -= by
                arguments.append(argument)
            return ("f", symbol[1], tuple(arguments), symbol[3], symbol[4])

        for agent in agents:
            for slot, value in enumerate(agent.values):
                if isinstance(value, Linear):
                    new = self._renamed(value, rename)
                    assert new is not None
                    agent.values[slot] = new
        self._rename_knowledge(world, rename)
        self._rename_tasks(order, rename)


def _name(symbol: Symbol) -> object:
    base = symbol[1] if symbol[0] == "c" else symbol
    assert isinstance(base, tuple)
    return base[1]


def _level(symbol: Symbol) -> object:
    """The level whose comparisons use this copy; a function value is used as it is at its own level."""
    return symbol[2] if symbol[0] == "c" else symbol[3] if symbol[0] == "f" else None


def _epoch(symbol: Symbol) -> int:
    return int(str(symbol[-1])) if symbol[0] in ("c", "f") else 0


def _parts(symbol: Symbol) -> set[Symbol]:
    """A symbol and the symbols inside it."""
    found = {symbol}
    if symbol[0] == "c":
        found |= _parts(symbol[1])  # type: ignore[arg-type]
    elif symbol[0] == "f":
        for argument in symbol[2]:  # type: ignore[attr-defined]
            if isinstance(argument, Linear):
                for inner, _ in argument.terms:
                    found |= _parts(inner)
    return found


def _function_symbols(world: World, agents: list[Agent]) -> set[Symbol]:
    found: set[Symbol] = set()
    for form in world.knowledge.intervals:
        for symbol, _ in form:
            found |= {s for s in _parts(symbol) if s[0] == "f"}
    for agent in agents:
        for value in agent.values:
            if isinstance(value, Linear):
                for symbol, _ in value.terms:
                    found |= {s for s in _parts(symbol) if s[0] == "f"}
    return found
