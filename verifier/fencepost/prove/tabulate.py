"""Tabulate: which finitely many relative states cover all executions of a kernel?

The machine that checks state tables is run with a solver as its guide.  Where all agents stand still, the state is
compared with those met before: what moved together since becomes a symbol, and facts that held both times are kept.
Nothing here has to be right: a table that covers too little, or something wrong, is not accepted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import lcm
from typing import Any

from fencepost import ir
from fencepost.model.effects import Resolver
from fencepost.model.program import Next, compile_kernel
from fencepost.prove import solver
from fencepost.prove.alike import Union, symbols_in, valued
from fencepost.prove.plainterms import Rejected, Term, applications, both, minus, no, subst
from fencepost.prove.plainvalues import Evaluator
from fencepost.prove.recheck import assumption, query
from fencepost.prove.simplest import gathered, known, linear, norm
from fencepost.prove.standing import Rules, Standing
from fencepost.prove.statetable import Machine, State
from fencepost.prove.traits import Traits, traits_of

_PATIENT = 4  # how often the numbers of unknown events of a state grow before they are taken to be any
_LEARNS = 3  # how often a state that is made more general takes over facts from the other
_PERIOD = 5_000  # of all remainders together
_MOST = 20  # more than any number of unknown events that is allowed


class NotClosed(Exception):
    """No finite table was found; the message says why."""


@dataclass(eq=False)
class Entry:
    """A state of the table to be.  `shape` is what does not change when it is made more general."""

    state: State
    shape: Any
    number: int
    alive: bool = True
    grown: int = 0


@dataclass
class Tabulator:
    """Builds a table.  `finer`: values of scalars below all constants are told apart."""

    resolver: Resolver
    batched: bool
    assumed: Term
    deadline: float
    states: int = 600
    finer: bool = False
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rules = Rules(self.resolver, self.batched)
        self.programs = {p.agent: p for p in self.resolver.compiled.programs}
        self.traits: dict[str, Traits] = {
            agent: traits_of(self.resolver.compiled, p, self.finer) for agent, p in self.programs.items()
        }
        self.longest = max(len(p.code) for p in self.programs.values())
        moduli = {m for traits in self.traits.values() for m in traits.moduli.values()}
        if (modulus := lcm(*moduli)) <= _PERIOD:
            moduli = {n for n in range(1, modulus + 1) if modulus % n == 0}
        self.steps = sorted({1, *moduli}, reverse=True)  # by which symbols may count, largest first
        self.by_shape: dict[Any, list[Entry]] = {}
        self.answers: dict[str, bool] = {}
        self.cases: dict[tuple[Term, ...], list[dict[str, int]]] = {}  # values for which facts hold

    # ------------------------------------------------------------------------------------------ questions

    def unsatisfiable(self, conditions: tuple[Term, ...]) -> bool:
        """Whether conditions cannot hold together."""
        if (asserted := both(self.assumed, *conditions)) == "false":
            return True
        text = query(asserted)
        if text not in self.answers:
            self.answers[text] = solver.check(text, self.deadline).answer == "unsat"
        return self.answers[text]

    def value(self, facts: tuple[Term, ...], term: Term) -> int | None:
        """A value that a term can have."""
        text = query(both(self.assumed, *facts, ("=", "value", term)))
        return solver.check(text, self.deadline).model.get("value")

    def _go_on(self) -> None:
        if time.monotonic() > self.deadline:
            raise NotClosed("out of time")

    def implied(self, facts: tuple[Term, ...], condition: Term) -> bool:
        condition = norm(condition)
        if known(condition, facts):
            return True
        self._go_on()
        cases = self.cases.setdefault(facts, [])
        if any(valued(condition, case) == "false" for case in cases):
            return False
        text = query(both(self.assumed, *facts, norm(no(condition))))
        if text not in self.answers:
            found = solver.check(text, self.deadline)
            self.answers[text] = found.answer == "unsat"
            if found.answer == "sat" and not found.points:
                cases.append(found.model)
        return self.answers[text]

    def answer(self, s: State, kind: str, asked: Any) -> Any:
        """The guide of the machine, as far as it does not depend on the table."""
        if kind == "holds":
            if self.implied(s.facts, asked):
                return "yes"
            return "no" if self.implied(s.facts, no(asked)) else "wait"
        if kind == "value":
            found = self.value(s.facts, asked)
            if found is None and not self.unsatisfiable(s.facts):
                raise Rejected("an operand whose values are not known")
            found = found or 0
            return found if self.implied(s.facts, ("=", asked, found)) else "wait"
        self._go_on()
        heads = any(isinstance(self.programs[a].code[s.at[a]], Next) for a in asked)
        if s.moved and (heads or s.moved > self.longest):
            return "here"
        agent = list(asked)[-1]
        kind, term = asked[agent]
        return ["split", agent] if kind == "holds" else ["split", agent, self.value(s.facts, term)]

    # ------------------------------------------------------------------------------------------ the search

    def run(self) -> dict[str, Any]:
        """Find the table.  Raises NotClosed."""
        machine = Machine(self.rules, self.answer)
        try:
            self._absorb_all(machine, machine.start())
            while todo := next((e for e in self.entries if e.alive and not e.state.moved), None):
                todo.state.moved = 1  # looked at
                machine = Machine(self.rules, self.answer)
                self._absorb_all(machine, replace(machine.complete(todo.state), moved=0))
            return self._written()
        except Rejected as error:
            raise NotClosed(str(error)) from None

    def _absorb_all(self, machine: Machine, state: State) -> None:
        for s, _ in machine.follow(state):
            self._absorb(machine, s)
        for name, conditions in machine.claims:
            if not self.unsatisfiable(conditions):
                raise Rejected(f"not shown: {name}")

    def _absorb(self, machine: Machine, s: State) -> None:
        """Let some state of the table cover this one."""
        s = self._bare(s)
        shape = self._shape(s)
        entries = self.by_shape.setdefault(shape, [])
        for entry in entries:
            if entry.alive and self._covering(machine, entry.state, s) is not None:
                return
        for entry in entries:
            if entry.alive and (joined := self._join(entry, s)) is not None:
                entry.alive = False
                self._add(joined, shape, entry.grown + 1)
                return
        self._add(self._renamed(s), shape, 0)

    def _add(self, state: State, shape: Any, grown: int) -> None:
        if sum(e.alive for e in self.entries) >= self.states or len(self.entries) > 6 * self.states:
            raise NotClosed(f"more than {self.states} states")
        entry = Entry(replace(state, moved=0), shape, len(self.entries), grown=grown)
        self.entries.append(entry)
        self.by_shape.setdefault(shape, []).append(entry)

    def _covering(self, machine: Machine, general: State, s: State) -> dict[str, Term] | None:
        """The values of the symbols for which one state is the other; None if there are none."""
        values = matched(general, s)
        if values is None:
            return None
        probe = Machine(self.rules, self.answer)
        try:
            probe.cover(s, general, values)
        except (Rejected, LookupError, ValueError):
            return None
        return values if all(self.unsatisfiable(conditions) for _, conditions in probe.claims) else None

    # ------------------------------------------------------------------------------------------ one state

    def _bare(self, s: State) -> State:
        """A state without what nobody will look at."""
        scalars = {
            agent: {name: v for name, v in values.items() if name in self.traits[agent].live[s.at[agent]]}
            for agent, values in s.scalars.items()
        }
        bare = replace(s, scalars=scalars)
        about, held = symbols_in(values_of(bare)), set(applications(values_of(bare)))
        facts = tuple(f for f in s.facts if symbols_in([f]) <= about and self._matters(s, f, held))
        for fact in facts:
            if fact[0] == "not" and fact[1][0] == "=":
                _, total, k = fact[1]
                sides = (("<=", total, k), ("<=", ("-", total), -k))
                for side, other in (sides, sides[::-1]):
                    if self.implied(s.facts, norm(side)):
                        facts = gathered(facts, norm(no(other)))
        return replace(bare, facts=facts)

    def _matters(self, s: State, fact: Term, held: set[tuple[str, ...]]) -> bool:
        """Whether somebody may still ask for what a fact says of unknown functions, or holds a value of them."""
        calls = [a for a in applications([fact]) if a[0][:2] == "f." and len(a) > 1]
        return all(a in held or self._ahead(s, a[0], list(a[1:])) for a in calls)

    def decided(self, s: State, fact: Term) -> bool:
        """Whether a fact is what one agent has found out of unknown functions and another one will ask."""
        calls = [a for a in applications([fact]) if a[0][:2] == "f."]
        return any(self._ahead(s, a[0], list(a[1:])) for a in calls)

    def _ahead(self, s: State, name: str, operands: list[Term]) -> bool:
        return any(later(operands, point) for agent in self.programs for point in self._points(s, agent, name))

    def _points(self, s: State, agent: str, name: str) -> Iterator[list[Term | None]]:
        """The arguments of the next calls of a function, as far as they are known."""
        traits, values = self.traits[agent], s.scalars[agent]
        live = traits.live[s.at[agent]]
        for pc, arguments in traits.calls.get(name, ()):
            if pc in traits.reachable[s.at[agent]]:
                walk = Evaluator(self.resolver.compiled, agent)
                env = dict(values)
                lost = set()
                for var, loop in traits.loops.items():
                    if var not in live:
                        env[var] = values.get(f"next {loop}", 0)
                        if f"next {loop}" not in live:
                            lost.add(var)
                walk.env = env
                yield [None if lost & traits.names(a) else norm(walk.integer(a)) for a in arguments]

    def _shape(self, s: State) -> Any:
        """What two states must have in common to be made one."""
        plain: list[Any] = []
        for agent, values in s.scalars.items():
            traits = self.traits[agent]
            for name, value in sorted(values.items()):
                parts, constant = linear(value)
                modulus = traits.moduli.get(name, 1)
                rest = constant % modulus if all(c % modulus == 0 for c in parts.values()) else "?"
                most = 33 if name.startswith("limit ") else traits.exact.get(name, 0)
                small = constant if not parts and constant < most else "big"
                fixed = name.startswith("limit ") and all(isinstance(p, str) and p[0] == "$" for p in parts)
                plain.append((agent, name, rest, value if fixed and parts else small))
        st = s.standing
        holders = [*st.pipes.items(), *st.marks.items()]
        holders += [(f"{key} {n}", u) for key, queue in sorted(st.queues.items()) for n, u in enumerate(queue)]
        minded = self._minded()
        known_ = tuple(
            (
                key,
                tuple(
                    sorted(
                        (e, n if (key, e) in minded else 0)
                        for e, n in u.items()
                        if not counted(e) or (key, e) in minded
                    )
                ),
            )
            for key, u in sorted(holders)
        )
        rounds = tuple(sorted((k, tuple(t is None for t in some)) for k, some in st.rounds.items()))
        numbers = tuple(sorted(st.numbers.items()))
        return tuple(sorted(s.at.items())), tuple(plain), known_, tuple(sorted(st.written)), rounds, numbers

    def _minded(self) -> set[tuple[str, str]]:
        """Of which events a pipe must know how many it does not know: those who take what it gives, and free slots."""
        found: set[tuple[str, str]] = set()
        for effect in self.resolver.effects():
            pipe = f"{effect.agent}.{effect.pipe[1]}"
            found |= {(pipe, f"wait {self.rules.channel(c)[0]}") for c in effect.sets}
            if isinstance(effect.stmt, ir.Push):
                found |= {(pipe, f"{kind} {n} {lane}") for n, lane in effect.rings for kind in ("free", "pop")}
        return found

    def _renamed(self, s: State) -> State:
        """The same state about symbols x0, x1, ..."""
        names = {old: f"x{n}" for n, old in enumerate(sorted(symbols_in(values_of(s))))}
        return mapped(s, lambda term: norm(subst(names)(term)))

    def _join(self, entry: Entry, s: State) -> State | None:
        """A state that covers both; None if they have too little in common."""
        general = entry.state
        union = Union(general, s, self.steps, self.implied, self.decided)
        scalars: dict[str, dict[str, Term]] = {agent: {} for agent in general.scalars}
        names = [(agent, name) for agent, values in general.scalars.items() for name in values]
        sizes = {n: len(linear(general.scalars[n[0]][n[1]])[0]) for n in names}
        names.sort(key=lambda n: (sizes[n], not n[1].startswith("next "), n))
        for agent, name in names:
            scalars[agent][name] = union.unify(general.scalars[agent][name], s.scalars[agent][name])
        rounds = {
            key: [None if a is None else union.unify(a, b) for a, b in zip(some, s.standing.rounds[key], strict=True)]
            for key, some in general.standing.rounds.items()
        }
        facts = union.facts(s.facts, entry.grown < _LEARNS)
        if facts is None:
            return None
        standing = replace(less_known(general.standing, s.standing, entry.grown >= _PATIENT), rounds=rounds)
        return self._renamed(State(dict(s.at), scalars, facts, standing))

    # ------------------------------------------------------------------------------------------ writing

    def _written(self) -> dict[str, Any]:
        """The table as data."""
        numbers: dict[int, int] = {}
        queue: list[Entry] = []

        def answers(state: State | None) -> list[Any]:
            given: list[Any] = []

            def guide(s: State, kind: str, asked: Any) -> Any:
                found = self.answer(s, kind, asked)
                if found == "here":
                    entry, values = self._home(machine, s)
                    if entry.number not in numbers:
                        numbers[entry.number] = len(queue)
                        queue.append(entry)
                    found = ["to", numbers[entry.number], values]
                given.append(found)
                return found

            machine = Machine(self.rules, guide)
            for _ in machine.follow(machine.start() if state is None else machine.complete(state)):
                pass
            return given

        start = answers(None)
        states: list[dict[str, Any]] = []
        while len(states) < len(queue):
            state = replace(queue[len(states)].state, moved=0)
            found = answers(state)
            st = state.standing
            states.append({
                "at": state.at, "scalars": state.scalars, "facts": state.facts, "pipes": st.pipes, "queues": st.queues,
                "marks": st.marks, "written": sorted(st.written), "rounds": {k: v for k, v in st.rounds.items() if v},
                "numbers": st.numbers, "answers": found,
            })  # fmt: skip
        return {"start": start, "states": states}

    def _home(self, machine: Machine, s: State) -> tuple[Entry, dict[str, Term]]:
        bare = self._bare(s)
        for entry in self.by_shape.get(self._shape(bare), ()):
            if entry.alive and (values := self._covering(machine, entry.state, s)) is not None:
                return entry, values
        raise Rejected("a state is covered no longer")


def tabulated(kernel: ir.Kernel, batched: bool, deadline: float) -> dict[str, Any]:
    """The table of a kernel under one credit scheme.  Raises NotClosed, ModelError."""
    reasons: dict[str, None] = {}
    for finer in (False, True):
        resolver = Resolver(compile_kernel(kernel))
        try:
            return Tabulator(resolver, batched, assumption(resolver), deadline, finer=finer).run()
        except (NotClosed, RecursionError, ValueError) as error:
            reasons[str(error)] = None
    raise NotClosed("; ".join(reasons))


# ---------------------------------------------------------------------------------------------- terms


def counted(event: str) -> bool:
    """Whether it is kept how many of the latest events are not known."""
    return event.startswith(("wait ", "free ", "pop ", "push "))


def values_of(s: State) -> list[Term]:
    found = [v for some in s.scalars.values() for v in some.values()]
    return found + [t for some in s.standing.rounds.values() for t in some if t is not None]


def mapped(s: State, change: Callable[[Term], Term]) -> State:
    """A state with all terms changed."""
    rounds = {k: [None if t is None else change(t) for t in some] for k, some in s.standing.rounds.items()}
    scalars = {agent: {name: change(v) for name, v in some.items()} for agent, some in s.scalars.items()}
    standing = replace(s.standing.copy(), rounds=rounds)
    return State(dict(s.at), scalars, tuple(map(change, s.facts)), standing)


def later(operands: list[Term], point: list[Term | None]) -> bool:
    """Whether arguments are not before others, lexicographically, as far as can be seen."""
    for one, other in zip(operands, point, strict=False):
        if other is None:
            return False
        away = norm(minus(one, other))
        if away != 0:
            return not isinstance(away, int) or away > 0
    return True


def less_known(one: Standing, other: Standing, widely: bool) -> Standing:
    """A standing that is worse than both, of the same holders."""
    found = one.copy()
    found.pipes = {k: worse_of(u, other.pipes[k], widely) for k, u in one.pipes.items()}
    found.marks = {k: worse_of(u, other.marks[k], widely) for k, u in one.marks.items()}
    found.queues = {
        k: [worse_of(u, v, widely) for u, v in zip(queue, other.queues[k], strict=True)]
        for k, queue in one.queues.items()
        if queue
    }
    return found


def worse_of(one: dict[str, int], other: dict[str, int], widely: bool) -> dict[str, int]:
    found = {}
    for event in {**one, **other}:
        a, b = one.get(event, 0), other.get(event, 0)
        found[event] = _MOST if widely and a != b else max(a, b)
    return found


def matched(general: State, s: State) -> dict[str, Term] | None:
    """Values of the symbols of one state for which its scalars are those of the other; None if some are not found."""
    values: dict[str, Term] = {}
    todo = [(v, s.scalars[agent].get(name)) for agent, some in general.scalars.items() for name, v in some.items()]
    for key, some in general.standing.rounds.items():
        todo += zip(some, s.standing.rounds.get(key, [None] * len(some)), strict=False)
    wanted = symbols_in([t for t, _ in todo if t is not None])
    changed = True
    while changed and values.keys() != wanted:
        changed = False
        for term, value in list(todo):
            if term is None or value is None:
                continue
            found = solved(term, value, values)
            if found:
                values |= found
                changed = True
    return values if values.keys() == wanted else None


def solved(term: Term, value: Term, values: dict[str, Term]) -> dict[str, Term]:
    """The value of the one symbol of a term that is not known yet, if the term has that value."""
    open_ = symbols_in([term]) - values.keys()
    if len(open_) != 1:
        return {}
    (symbol,) = open_
    term = norm(subst(values)(term))
    parts, constant = linear(term)
    if symbol in parts and not any(symbol in symbols_in([a]) for a in parts if a != symbol):
        factor = parts.pop(symbol)
        rest, k = linear(minus(value, norm(("+", *(("*", c, a) for a, c in parts.items()), constant))))
        if all(c % factor == 0 for c in [*rest.values(), k]):
            return {symbol: norm(("+", *(("*", c // factor, a) for a, c in rest.items()), k // factor))}
        return {}
    if isinstance(term, tuple) and isinstance(value, tuple) and len(term) == len(value) and term[0] == value[0]:
        for one, other in zip(term[1:], value[1:], strict=True):
            if found := solved(one, other, values):
                return found
    return {}
