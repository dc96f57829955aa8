"""Folding: which relative state is this?

Counters stay plain integers along a path.  For comparison with the states seen before, values that the rest of the
program cannot tell from shifted ones (`fencepost.prove.observables`) are shifted down together by a multiple of their
period; runs of loops are counted from the oldest that somebody still looks at; what nobody asks for is left out.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import lcm

from fencepost.prove.abstract import STALE, Agent, World
from fencepost.prove.observables import Observables, Plan, Sign
from fencepost.prove.order import Order
from fencepost.prove.relevance import Relevance
from fencepost.prove.uses import FIXED, Named, Node
from fencepost.prove.values import EVERYTHING, OPAQUE, TRIPS, Level, Linear, Symbol, Value, lower_bound

Member = Hashable
"""("slot", agent, slot), ("argument", function, position, level, epoch), ("task",) or a symbol."""

_TASK = ("task",)


@dataclass(slots=True)
class _Part:
    """Members that shift together: by at most `room`, in steps of `period`."""

    members: list[Member] = field(default_factory=list)
    room: int = FIXED
    period: int = 1
    shift: int = 0


class Folder:
    """Forgets what is no longer asked for, and names states.

    `remember`: unknown numbers are known exactly up to this; `slack` raises every threshold.
    """

    def __init__(self, plans: list[Plan], relevance: Relevance, remember: int, slack: int) -> None:
        self.plans = plans
        self.relevance = relevance
        self.least = remember + 1
        self.slack = slack
        self.moduli: dict[str, int] = {}
        for plan in plans:
            for name, modulus in plan.moduli.items():
                self.moduli[name] = lcm(self.moduli.get(name, 1), modulus)

    def key(self, agents: list[Agent], world: World, order: Order) -> Hashable:
        """What two states must agree in to behave alike; forgets in place what nobody asks for."""
        self.relevance.settle(order)
        return _Folding(self, agents, world, order).run()


class _Folding:
    """The folding of one state."""

    def __init__(self, folder: Folder, agents: list[Agent], world: World, order: Order) -> None:
        self.folder = folder
        self.agents = agents
        self.world = world
        self.order = order
        self.asked = [plan.at(agent.pc) for plan, agent in zip(folder.plans, agents, strict=True)]
        self.bounded = frozenset[str]().union(*(asked.bounded for asked in self.asked))
        self.parent: dict[Member, Member] = {}
        self.room: dict[Member, int] = {}
        self.period: dict[Member, int] = {}
        self.needed: set[Symbol] = set()
        self.mentioned: set[Symbol] = set()
        self.together: list[frozenset[Symbol]] = []
        self.copies: dict[Symbol, list[Symbol]] = {}
        self.functions: dict[str, list[Symbol]] = {}
        self.lowest: dict[Level, int] = {}
        self.stale: dict[Symbol, int] = {}

    def run(self) -> Hashable:
        self._drop_values()
        self._forget_functions()
        self._index()
        for number, asked in enumerate(self.asked):
            self._unite(number, asked)
        self._forget_knowledge()
        self._runs()
        self._settle()
        values = tuple(self._agent(n) for n in range(len(self.agents)))
        return values, self._knowledge(), self.folder.relevance.key(self.order, self._round)

    # ------------------------------------------------------------------------------------------ forgetting

    def _drop_values(self) -> None:
        for agent, asked in zip(self.agents, self.asked, strict=True):
            values = agent.values
            for slot in asked.dead:
                values[slot] = 0

    def _forget_functions(self) -> None:
        """Forget values of unknown functions that no agent holds and none can ask for any more."""
        intervals = self.world.knowledge.intervals
        bases = {s.base for form in intervals for s, _ in form if s.base.kind == "f"}
        if not bases:
            return
        used: set[Symbol] = set()
        for agent in self.agents:
            for value in agent.values:
                if isinstance(value, Linear):
                    for symbol, _ in value.terms:
                        used |= parts_of(symbol)
        for _, task in self.order.tasks.values():
            if isinstance(task, Linear):
                for symbol, _ in task.terms:
                    used |= parts_of(symbol)
        gone = {base for base in bases if base not in used and self._passed(base, used)}
        if gone:
            self._drop({s for form in intervals for s, _ in form if s.base in gone})

    def _drop(self, gone: set[Symbol]) -> None:
        knowledge = self.world.knowledge
        knowledge.intervals = {f: i for f, i in knowledge.intervals.items() if not any(s in gone for s, _ in f)}
        knowledge.residues = {s: r for s, r in knowledge.residues.items() if s not in gone}

    def _passed(self, symbol: Symbol, used: set[Symbol]) -> bool:
        """Whether no agent can come to this value any more."""
        name = symbol.name
        if name == STALE:
            return True
        if name in OPAQUE or name == TRIPS:
            inner = {s for a in symbol.arguments if isinstance(a, Linear) for s, _ in a.terms if s.kind == "f"} - used
            return any(self._passed(s, used) for s in inner)
        return all(self._past(agent, asked, symbol) for agent, asked in zip(self.agents, self.asked, strict=True))

    def _past(self, agent: Agent, asked: Observables, symbol: Symbol) -> bool:
        """Whether an agent cannot call the function with these arguments in this run any more."""
        if not symbol.arguments:
            return False
        return any(
            not self._may_call(agent, asked, symbol, position, value) for position, value in enumerate(symbol.arguments)
        )

    @staticmethod
    def _meant(agent: Agent, level: Level | None, later: bool, symbol: Symbol) -> bool:
        """Whether uses at a level are about the run that the symbol belongs to."""
        if level != symbol.level:
            return False
        if level is None:
            return True
        epoch = agent.epochs.get(level, 0)
        return symbol.epoch > epoch if later else symbol.epoch == epoch

    def _may_call(self, agent: Agent, asked: Observables, symbol: Symbol, position: int, value: Value) -> bool:
        """Whether the argument at `position` can still be `value`."""
        node = Named("argument", symbol.name, position)
        for ask in asked.above:
            if ask.node == node and self._meant(agent, ask.level, ask.later, symbol):
                return True
        for sign in asked.signs:
            if not any(n == node for n, _ in sign.shape) or not self._meant(agent, sign.level, sign.later, symbol):
                continue
            if sign.later or self._argument_may_be(agent, sign, node, value):
                return True
        return False

    @staticmethod
    def _argument_may_be(agent: Agent, sign: Sign, node: Named, value: Value) -> bool:
        if not isinstance(value, int):
            return True
        total, factor = 0, 0
        for n, c in sign.shape:
            if n == node:
                factor = c
            elif isinstance(n, int) and isinstance(agent.values[n], int):
                at = agent.values[n]
                assert isinstance(at, int)
                total += c * at
            else:
                return True
        if factor not in (1, -1):
            return True
        # factor * argument + total + k = 0 for some k in low..high
        low, high = sign.low, sign.high
        if factor > 0:
            low, high = (None if high is None else -high, None if low is None else -low)
            total = -total
        return (low is None or value >= total + low) and (high is None or value <= total + high)

    def _index(self) -> None:
        """The symbols that something is known of, by what they stand for."""
        seen: set[Symbol] = set()
        for form in self.world.knowledge.intervals:
            for symbol, _ in form:
                if symbol not in seen:
                    seen.add(symbol)
                    base = symbol.base
                    if symbol.kind == "c":
                        self.copies.setdefault(base, []).append(symbol)
                    if base.kind == "f":
                        for name in {base.name, base.family}:
                            if base not in self.functions.setdefault(name, []):
                                self.functions[name].append(base)

    def _forget_knowledge(self) -> None:
        """Forget what is known of copies, and of differences, that nobody looks at."""
        knowledge = self.world.knowledge
        gone = {s for form in knowledge.intervals for s, _ in form if s.kind == "c" and s not in self.needed}
        if gone:
            self._drop(gone)
        for form in [f for f in knowledge.intervals if len(f) > 1]:
            symbols = {s for s, _ in form}
            if not any(symbols <= known for known in self.together):
                del knowledge.intervals[form]
        held = {part for symbol in self.mentioned for part in parts_of(symbol)}
        for symbol, interval in self.world.initial.items():
            if symbol not in held:
                knowledge.intervals[(symbol, 1),] = interval
                knowledge.residues.pop(symbol, None)

    # ------------------------------------------------------------------------------------------ what shifts together

    def _find(self, member: Member) -> Member:
        parent = self.parent
        root = parent.setdefault(member, member)
        while parent[root] != root:
            root = parent[root]
        while member != root:
            parent[member], member = root, parent[member]
        return root

    def _limit(self, member: Member, room: int) -> None:
        self._find(member)
        if room < self.room.get(member, FIXED):
            self.room[member] = room

    def _symbols(self, symbol: Symbol, level: Level | None, later: bool, epoch: int) -> tuple[list[Symbol], bool]:
        """The copies that comparisons with a symbol use, and whether others may come."""
        if level is None or (symbol.kind == "f" and (symbol.level == level or symbol.name == STALE)):
            return [symbol], False
        copies = [c for c in self.copies.get(symbol, ()) if c.level == level]
        if later:
            return [c for c in copies if c.epoch > epoch], True
        found = [c for c in copies if c.epoch == epoch]
        return found, not found

    def _expand(
        self, number: int, node: Node, level: Level | None, later: bool
    ) -> tuple[list[tuple[Member, int]], bool, int]:
        """The members that a node stands for with their factors, whether others may come, and the constant."""
        agent = self.agents[number]
        epoch = agent.epochs.get(level, 0) if level is not None else 0
        found: list[tuple[Member, int]] = []
        open_ = False
        if isinstance(node, int):
            value = agent.values[node]
            if not isinstance(value, Linear):
                return [(("slot", number, node), 1)], False, 0
            for symbol, c in value.terms:
                self.mentioned.add(symbol)
                copies, more = self._symbols(symbol, level, later, epoch)
                found += [(s, c) for s in copies]
                open_ = open_ or more
            return found, open_, value.constant
        if node.kind == "task":
            return [(_TASK, 1)], False, 0
        if node.kind == "function":
            for base in self.functions.get(node.name, ()):
                self.mentioned.add(base)
                copies, more = self._symbols(base, level, later, epoch)
                found += [(s, 1) for s in copies]
                open_ = open_ or more
            return found, open_, 0
        runs = [epoch]
        if later:
            named = {s.epoch for s in self.functions.get(node.name, ()) if s.level == level and s.epoch > epoch}
            runs = sorted(named)
        for run in runs:
            found.append((("argument", node.name, node.position, level, run), 1))
        return found, False, 0

    def _unite(self, number: int, asked: Observables) -> None:
        for sign in asked.signs:
            self._sign(number, sign)
        for ask in asked.above:
            members, _, constant = self._expand(number, ask.node, ask.level, ask.later)
            if isinstance(ask.node, int):
                self._threshold(members, constant, ask.value)
            else:
                for one in members:
                    self._threshold([one], constant, ask.value)
            self._note(members)
        self._natural(number, asked)
        for ask in asked.residues:
            members, _, _ = self._expand(number, ask.node, ask.level, ask.later)
            for member, c in members:
                self._find(member)
                self.period[member] = lcm(self.period.get(member, 1), _over(ask.value, c))
            self._note(members)

    def _note(self, members: list[tuple[Member, int]]) -> None:
        symbols = frozenset(member for member, _ in members if isinstance(member, Symbol))
        self.needed |= symbols
        if len(symbols) > 1:
            self.together.append(symbols)

    def _sign(self, number: int, sign: Sign) -> None:
        level, later = sign.level, sign.later
        total: dict[Member, int] = {}
        open_ = False
        for node, c in sign.shape:
            members, more, _ = self._expand(number, node, level, later)
            open_ = open_ or more
            if isinstance(node, Named) and node.kind == "function" and len(members) > 1:
                # any one of the values may be meant: they all move together
                open_ = open_ or len(sign.shape) > 2 or any(member in total for member, _ in members)
                for member, _ in members:
                    total[member] = c
                continue
            for member, factor in members:
                total[member] = total.get(member, 0) + c * factor
        if len(sign.shape) > 1 and any(self._is_bounded(n) or self._is_copied(n, level) for n, _ in sign.shape):
            for member in total:  # through a value to come they are compared with constants
                self._limit(member, 0)
        parts = [m for m, c in total.items() if c]
        if not parts:
            return
        symbols = frozenset(m for m in parts if isinstance(m, Symbol))
        self.needed |= symbols
        if len(symbols) > 1:
            self.together.append(symbols)
        first = self._find(parts[0])
        for member in parts[1:]:
            other = self._find(member)
            if other != first:
                self.parent[other] = first
        balanced = self._balanced(sign, total)
        if open_ or not balanced:
            self._limit(parts[0], 0)

    def _is_bounded(self, node: Node) -> bool:
        """Whether a node stands for values of a function, others of which may come, that constants bound."""
        if not isinstance(node, Named) or node.kind != "function" or node.unique:
            return False
        head = node.name.partition("(")[0]
        return head in OPAQUE or head == TRIPS or lower_bound(head) is not None or head in self.bounded

    def _is_copied(self, node: Node, level: Level | None) -> bool:
        """Whether values of a function, others of which may come, are looked at from another level, too."""
        if not isinstance(node, Named) or node.kind != "function" or node.unique:
            return False
        levels = {base.level for base in self.functions.get(node.name, ())}
        for asked in self.asked:
            levels |= asked.looking.get(node.name, frozenset())
        return not levels <= {level}

    def _balanced(self, sign: Sign, total: dict[Member, int]) -> bool:
        """Whether shifting all members together leaves the shape as it is, whichever function value is meant."""
        slots = [a.values[n] for a in self.agents for n, _ in sign.shape if isinstance(n, int) and n < len(a.values)]
        if any(isinstance(v, Linear) and (len(v.terms) > 1 or v.terms[0][1] != 1) for v in slots):
            return False  # a sum may stay as it is while its parts move
        many = [
            c
            for node, c in sign.shape
            if isinstance(node, Named) and node.kind == "function" and len(self.functions.get(node.name, ())) > 1
        ]
        if not many:
            return sum(total.values()) == 0
        return len(sign.shape) == 2 and sum(c for _, c in sign.shape) == 0 and set(map(abs, total.values())) == {1}

    def _threshold(self, members: list[tuple[Member, int]], constant: int, threshold: int) -> None:
        """The members are compared with constants up to `threshold - constant`."""
        for member, c in members:
            if c != 1 or len(members) > 1 or threshold >= FIXED:
                self._limit(member, 0)
            elif isinstance(member, Symbol):
                low = self.world.knowledge.intervals.get(((member, 1),), EVERYTHING)[0]
                room = 0 if low is None else low - (threshold - constant) - self.folder.slack
                self._limit(member, max(room, 0))
            else:
                room = self._value(member) - threshold - self.folder.slack
                self._limit(member, max(room, 0))

    def _value(self, member: Member) -> int:
        assert isinstance(member, tuple)
        if member[0] != "slot":
            return 0
        value = self.agents[member[1]].values[member[2]]
        assert isinstance(value, int)
        return value

    def _natural(self, number: int, asked: Observables) -> None:
        if not asked.natural:
            return
        large = not asked.below and all(
            self._is_large(number, ask.node, ask.level, ask.later, ask.value) for ask in asked.natural
        )
        for ask in asked.natural:
            members, more, constant = self._expand(number, ask.node, ask.level, ask.later)
            self._threshold(members, constant, ask.value if large and not more else FIXED)
            self._note(members)

    def _is_large(self, number: int, node: Node, level: Level | None, later: bool, threshold: int) -> bool:
        """Whether a node is known to be at least `threshold`, whichever value of a function is meant."""
        if isinstance(node, Named):  # values may come of which nothing is known yet
            bound = lower_bound(node.name.partition("(")[0])
            return bound is not None and bound >= threshold
        if isinstance(node, int):
            value = self.agents[number].values[node]
            if not isinstance(value, Linear):
                return value >= threshold
        members, more, constant = self._expand(number, node, level, later)
        if more or any(not isinstance(m, Symbol) or c <= 0 for m, c in members):
            return False
        lows = [self.world.knowledge.intervals.get(((m, 1),), EVERYTHING)[0] for m, _ in members]  # type: ignore[arg-type]
        if any(low is None or low < 0 for low in lows):
            return False
        return (
            constant + sum(c * low for (_, c), low in zip(members, lows, strict=True) if low is not None) >= threshold
        )

    # ------------------------------------------------------------------------------------------ how far

    def _settle(self) -> None:
        """How far each part can be shifted."""
        parts: dict[Member, _Part] = {}
        for member in list(self.parent):
            root = self._find(member)
            part = parts.get(root)
            if part is None:
                part = parts[root] = _Part()
            part.members.append(member)
            part.room = min(part.room, self.room.get(member, FIXED), self._room(member))
            part.period = lcm(part.period, self.period.get(member, 1))
            if isinstance(member, Symbol):
                for name in {member.base.name, member.base.family}:
                    part.period = lcm(part.period, self.folder.moduli.get(name, 1))
                residue = self.world.knowledge.residues.get(member)
                if residue is not None:
                    part.period = lcm(part.period, residue[0])
        self.shift: dict[Member, int] = {}
        for part in parts.values():
            by = part.room // part.period * part.period if 0 < part.room < FIXED else 0
            if by:
                for member in part.members:
                    self.shift[member] = by

    def _room(self, member: Member) -> int:
        """How far a member may go down by itself."""
        if isinstance(member, Symbol):
            if member.kind == "p" or member.level is None:
                return 0  # what everybody is told of
            low = self.world.knowledge.intervals.get(((member, 1),), EVERYTHING)[0]
            return 0 if low is None else max(low - self.folder.least - self.folder.slack, 0)
        assert isinstance(member, tuple)
        match member[0]:
            case "slot":
                return max(self._value(member), 0)
            case "task":
                rounds = [t for _, t in self.order.tasks.values() if isinstance(t, int)]
                for ring in self.order.rings.values():
                    rounds += [t for _, t in ring.messages if isinstance(t, int)]
                return max(min(rounds, default=FIXED), 0)
        _, name, position, level, run = member
        given = [
            s.arguments[position]
            for s in self.functions.get(name, ())
            if s.level == level and s.epoch == run and position < len(s.arguments)
        ]
        if not all(isinstance(g, int) for g in given):
            return 0
        return max(min((g for g in given if isinstance(g, int)), default=FIXED), 0)

    # ------------------------------------------------------------------------------------------ names

    def _runs(self) -> None:
        """For each level the oldest run that somebody still looks at."""
        for agent, asked in zip(self.agents, self.asked, strict=True):
            for level in asked.current:
                epoch = agent.epochs.get(level, 0)
                self.lowest[level] = min(self.lowest.get(level, epoch), epoch)
            for level in asked.next:
                epoch = agent.epochs.get(level, 0) + 1
                self.lowest[level] = min(self.lowest.get(level, epoch), epoch)
        others: dict[Level, int] = {}
        for form in self.world.knowledge.intervals:
            for symbol, _ in form:
                if symbol.level is not None and symbol.level not in self.lowest:
                    others[symbol.level] = min(others.get(symbol.level, symbol.epoch), symbol.epoch)
        self.lowest |= others

    def _run(self, level: Level | None, epoch: int) -> Hashable:
        return None if level is None else epoch - self.lowest.get(level, 0)

    def _symbol(self, symbol: Symbol) -> Hashable:
        match symbol.kind:
            case "p":
                return symbol.name
            case "c":
                return self._symbol(symbol.base), symbol.level, self._run(symbol.level, symbol.epoch)
        if symbol.name == STALE:
            return STALE, self.stale.setdefault(symbol, len(self.stale))
        arguments: list[Hashable] = []
        for position, argument in enumerate(symbol.arguments):
            if isinstance(argument, Linear):
                arguments.append(self._linear(argument))
            else:
                member = ("argument", symbol.name, position, symbol.level, symbol.epoch)
                arguments.append(argument - self.shift.get(member, 0))
        return symbol.name, tuple(arguments), symbol.level, self._run(symbol.level, symbol.epoch)

    def _linear(self, value: Linear) -> Hashable:
        return value.constant, frozenset((self._symbol(s), c) for s, c in value.terms)

    def _remainder(self, value: Linear, modulus: int) -> Hashable:
        """Of a value that is only ever taken by a modulus, what the modulus leaves."""
        terms = ((self._symbol(s), c % modulus) for s, c in value.terms if c % modulus)
        return value.constant % modulus, frozenset(terms), modulus

    def _agent(self, number: int) -> Hashable:
        agent, asked, shift = self.agents[number], self.asked[number], self.shift
        values: list[Hashable] = []
        for slot in asked.ordered:
            value = agent.values[slot]
            if isinstance(value, Linear) and slot in asked.moduli:
                values.append(self._remainder(value, asked.moduli[slot]))
            elif isinstance(value, Linear):
                values.append(self._linear(value))
            else:
                values.append(value - shift.get(("slot", number, slot), 0))
        runs = tuple((level, self._run(level, agent.epochs.get(level, 0))) for level in asked.levels)
        return agent.pc, tuple(values), runs

    def _round(self, task: Value) -> Hashable:
        return self._linear(task) if isinstance(task, Linear) else task - self.shift.get(_TASK, 0)

    def _knowledge(self) -> Hashable:
        knowledge, shift = self.world.knowledge, self.shift
        intervals: list[Hashable] = []
        for form, (low, high) in knowledge.intervals.items():
            if low is None and high is None:
                continue
            by = sum(c * shift.get(s, 0) for s, c in form)
            name = frozenset((self._symbol(s), c) for s, c in form)
            intervals.append((name, None if low is None else low - by, None if high is None else high - by))
        residues = frozenset((self._symbol(s), r) for s, r in knowledge.residues.items())
        return frozenset(intervals), residues


def _over(modulus: int, factor: int) -> int:
    """The step in which a factor's residue repeats."""
    a, b = modulus, abs(factor)
    while b:
        a, b = b, a % b
    return modulus // a


def parts_of(symbol: Symbol) -> set[Symbol]:
    """A symbol and the symbols inside it."""
    found = {symbol, symbol.base}
    for argument in symbol.base.arguments:
        if isinstance(argument, Linear):
            for inner, _ in argument.terms:
                found |= parts_of(inner)
    return found
