"""State tables: do the relative states that a certificate lists cover every execution of a kernel, without a fault?

All agents run under one schedule, each blocking as a whole, on terms.  From the beginning, and from every state of the
table, this is done until all stand still; where the way to go on depends on what is not known, the certificate says
what follows from the facts (a claim), or that the path splits.  A path ends at the end of the kernel or in a state that
the table covers.  Along it nothing may be wrong.  Every path between two states executes something, and programs
are finite: so every execution ends, and nothing is ever wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fencepost import ir
from fencepost.model.effects import Resolver
from fencepost.model.program import Emit, Enter, Jump, MoveCursor, Next, Require, Set, Store, Test
from fencepost.prove.plainterms import Rejected, Term, add, applications, eq, lt, make, no, read, short, subst
from fencepost.prove.plainvalues import Evaluator, plain
from fencepost.prove.simplest import gathered, known, norm
from fencepost.prove.standing import Rules, Standing

Claim = tuple[str, tuple[Term, ...]]
"""A name, and conditions that must not hold together."""

_STEPS = 50_000  # instructions between two answers of the guide


@dataclass
class State:
    """Where the agents are, what their scalars are, what is known of the symbols, and what is pending."""

    at: dict[str, int]
    scalars: dict[str, dict[str, Term]]
    facts: tuple[Term, ...]
    standing: Standing
    moved: int = 0

    def copy(self) -> State:
        scalars = {agent: dict(values) for agent, values in self.scalars.items()}
        return State(dict(self.at), scalars, self.facts, self.standing.copy(), self.moved)


Asked = tuple[str, Term]
"""What an agent waits for: whether a condition "holds", or the "value" of a term."""
Guide = Callable[[State, str, Any], Any]
"""Answers questions along a path.

"holds" (a condition): "yes", "no", or "wait": this agent stays here until the path splits.  "value" (a term): its value
or "wait".  "cut" (what each waiting agent asks): ["split", agent], for a term ["split", agent, value], or
["to", state, values of its symbols].
"""


@dataclass
class Machine:
    """Runs all agents of a kernel on terms; `claims` is what has to be shown for that."""

    rules: Rules
    guide: Guide
    claims: dict[Claim, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.programs = {p.agent: p for p in self.resolver.compiled.programs}
        self.walks = {agent: Evaluator(self.resolver.compiled, agent) for agent in self.programs}

    @property
    def resolver(self) -> Resolver:
        return self.rules.resolver

    def start(self) -> State:
        """The beginning of every execution."""
        scalars: dict[str, dict[str, Term]] = {}
        for agent, program in self.programs.items():
            given = [f"${plain(p)}" for p in self.resolver.compiled.parameters]
            scalars[agent] = dict(zip(program.slots, [*given, *program.initial], strict=False))
            for i in program.code:
                if isinstance(i, Enter):
                    scalars[agent] |= {f"next {i.loop}": 0, f"limit {i.loop}": 0}
        return State(dict.fromkeys(self.programs, 0), scalars, (), Standing.start(self.rules))

    def want(self, s: State, name: str, condition: Term) -> None:
        """Claim that a condition follows from the facts of a state."""
        if not known(condition := norm(condition), s.facts):
            self.claims[name, (*s.facts, norm(no(condition)))] = None

    def follow(self, state: State) -> Iterator[tuple[State, Any]]:
        """Run a state to where all its paths end or are covered; the states there, with what the guide says of them."""
        todo = [state]
        while todo:
            s = todo.pop()
            asked = self._run(s)
            if not asked:
                continue
            match self.guide(s, "cut", asked):
                case ["split", agent, *value]:
                    kind, condition = asked[agent]
                    if [type(v) for v in value] != [int] * (kind == "value"):
                        raise Rejected("a split by no value")
                    condition = eq(condition, value[0]) if value else condition
                    todo += [replace(s.copy(), facts=gathered(s.facts, c)) for c in (no(condition), condition)]
                case answer:
                    if not s.moved:
                        raise Rejected("a state that covers itself")
                    yield s, answer

    def _run(self, s: State) -> dict[str, Asked]:
        """Run all agents until all stand still; what those that wait for an answer ask, nothing at the end."""
        asked: dict[str, Asked] = {}
        limit = s.moved + _STEPS
        while True:
            before = s.moved
            for agent in self.programs:
                while agent not in asked and self._step(s, agent, asked):
                    s.moved += 1
                    if s.moved > limit:
                        raise Rejected("a path runs on without a question")
            if s.moved > before:
                continue
            here = [(p, p.code[s.at[agent]]) for agent, p in self.programs.items()]
            if all(isinstance(i, Emit) and isinstance(p.sites[i.site], ir.SyncAll) for p, i in here):
                s.standing.meet()
                s.at = {agent: pc + 1 for agent, pc in s.at.items()}
                s.moved += 1
            elif asked:
                return asked
            elif any(s.at[agent] + 1 < len(p.code) for agent, p in self.programs.items()):
                raise Rejected("all agents wait for ever")
            else:
                s.standing.finish()
                return {}

    def _step(self, s: State, agent: str, asked: dict[str, Asked]) -> bool:
        """Execute one instruction; False if the agent cannot go on, and in `asked` what would help."""
        program, values, walk = self.programs[agent], s.scalars[agent], self.walks[agent]
        walk.env, walk.wanted = values, lambda name, condition: self.want(s, name, condition)
        pc = s.at[agent]
        i = program.code[pc]
        match i:
            case Jump(target=target):
                s.at[agent] = target
                return True
            case Set(slot=slot, value=value):
                found = self._settled(s, agent, walk.integer(value), asked)
                if found is None:
                    return False
                values[program.slots[slot]] = found
            case Store(node=node):
                where, new = walk.integer(node.index), walk.integer(node.value)
                for k, record in enumerate(walk.records(node.ring, node.field, where)):
                    values[record] = norm(short(make("ite", norm(eq(where, k)), new, values[record])))
            case MoveCursor(slot=slot, cursor=cursor, depth=depth, move=move):
                step = {"next": 1, "previous": -1, "current": 0}[move]
                place = norm(make("mod", add(values[program.slots[cursor]], step), depth))
                values |= {program.slots[slot]: place, **({program.slots[cursor]: place} if move == "next" else {})}
            case Enter(loop=loop, start=start, stop=stop):
                first = self._settled(s, agent, walk.integer(start), asked)
                limit = None if first is None else self._settled(s, agent, walk.integer(stop), asked)
                if limit is None:
                    return False
                values |= {f"next {loop}": first, f"limit {loop}": limit}
            case Test(condition=condition, target=target):
                holds = self._holds(s, agent, walk.truth(condition), asked)
                if holds is None:
                    return False
                s.at[agent] = pc + 1 if holds else target
                return True
            case Next(slot=slot, step=step, target=target, loop=loop):
                at, limit = values[f"next {loop}"], values[f"limit {loop}"]
                more = self._holds(s, agent, lt(at, limit) if step > 0 else lt(limit, at), asked)
                if more is None:
                    return False
                if more:
                    values |= {program.slots[slot]: at, f"next {loop}": norm(add(at, step))}
                s.at[agent] = pc + 1 if more else target
                return True
            case Emit():
                if not self._emit(s, agent, i, asked):
                    return False
            case Require(condition=condition):
                self.want(s, f"{agent}: assert", walk.truth(condition))
            case _:
                return False
        s.at[agent] = pc + 1
        return True

    def _emit(self, s: State, agent: str, i: Emit, asked: dict[str, Asked]) -> bool:
        site, walk, operands = self.programs[agent].sites[i.site], self.walks[agent], list[int]()
        for argument in i.arguments:
            value = norm(walk.integer(argument))
            if not isinstance(value, int):
                answer = self.guide(s, "value", value)
                if answer == "wait":
                    asked[agent] = "value", value
                    return False
                if type(answer) is not int:
                    raise Rejected("an answer is no value")
                self.want(s, f"{agent}: an operand", eq(value, answer))
                value = answer
            operands.append(value)
        effect = self.resolver.effect(agent, i.site, site, tuple(operands))
        if effect.meets or s.standing.obstacle(effect):
            return False
        task = None if i.task is None else norm(walk.integer(i.task))
        s.standing.execute(effect, task, walk.wanted)
        return True

    def _holds(self, s: State, agent: str, condition: Term, asked: dict[str, Asked]) -> bool | None:
        condition = norm(condition)
        for truth, fact in ((True, condition), (False, norm(no(condition)))):
            if known(fact, s.facts):
                return truth
        answer = self.guide(s, "holds", condition)
        if answer == "wait":
            asked[agent] = "holds", condition
            return None
        self.want(s, f"{agent}: a branch", condition if answer == "yes" else no(condition))
        return bool(answer == "yes")

    def _settled(self, s: State, agent: str, value: Term, asked: dict[str, Asked]) -> Term | None:
        """A value without choices; None if one of them is open."""
        value = norm(short(value))
        while (choice := next((a for a in parts_of(value) if a[0] == "ite"), None)) is not None:
            holds = self._holds(s, agent, choice[1], asked)
            if holds is None:
                return None
            value = norm(subst({choice: choice[2] if holds else choice[3]})(value))
        return value

    # ------------------------------------------------------------------------------------------ the table

    def cover(self, s: State, target: State, values: dict[str, Term]) -> None:
        """Claim that a state is one of those that another one stands for, with these values of its symbols.

        Raises Rejected, LookupError, ValueError: it is none.
        """
        if s.at != target.at or values.keys() != symbols(target):
            raise Rejected("a state is covered by one at another place")
        change = subst(values)
        pairs = [(a, b) for a, b in target.standing.worse(s.standing) if a is not None]
        pairs += [(v, s.scalars[agent][name]) for agent, some in target.scalars.items() for name, v in some.items()]
        for mine, theirs in pairs:
            self.want(s, "the value of a scalar", eq(change(mine), theirs))
        for fact in target.facts:
            self.want(s, "a fact", change(fact))

    def complete(self, state: State) -> State:
        """A state of the table in which scalars that it does not mention have any value."""
        found = self.start()
        for agent, values in found.scalars.items():
            given = state.scalars[agent]
            values |= {name: given.get(name, f"any.{agent}.{plain(name)}") for name in values}
        return replace(state.copy(), scalars=found.scalars)


def parts_of(term: Term) -> Iterator[tuple[Any, ...]]:
    """The applications inside a term, outermost first."""
    if isinstance(term, tuple):
        yield term
        for part in term[1:]:
            yield from parts_of(part)


def symbols(state: State) -> set[str]:
    """The symbols that a state is about."""
    terms = [*state.facts, *(v for some in state.scalars.values() for v in some.values())]
    terms += [t for some in state.standing.rounds.values() for t in some if t is not None]
    return {name for name, *_ in applications(terms) if re.fullmatch(r"x\d+", name)}


def fields_of(item: Any, *names: str) -> list[Any]:
    """The values of an object that has exactly these fields."""
    if not isinstance(item, dict) or item.keys() != set(names):
        raise Rejected(f"not an object with the fields {', '.join(names)}")
    return [item[name] for name in names]


def legal(resolver: Resolver) -> None:
    """Reject what is wrong wherever it stands, modes that differ, and what this checker does not understand.

    The effects of the resolver are those of all operations that are ever executed.
    """
    target, layout = resolver.compiled.target, resolver.layout
    if any(b.shared for b in resolver.compiled.kernel.buffers) or target.signals != "counting":
        raise Rejected("memory that blocks share and signals that merge are not certified")
    for stmt in ir.walk(resolver.compiled.kernel):
        wrong = isinstance(stmt, (ir.MutexLock, ir.MutexUnlock)) and not target.has_mutex
        if isinstance(stmt, ir.DataOp) and stmt.phase is not None:
            reads, writes = ({layout.spaces.get(a.name) for a in some} for some in (stmt.reads, stmt.writes))
            wrong = not target.has_unit_flag or stmt.family not in (None, "Acc" if stmt.pipe == "M" else "ST")
            wrong |= stmt.op == "move" and (stmt.offset or "Acc" not in reads or "Vec" not in writes)
        if wrong:
            raise Rejected(f"{type(stmt).__name__} in line {stmt.span.line} is not legal: its phase or target")
    modes: dict[tuple[bool, int], str] = {}
    for e in resolver.effects():
        if isinstance(e.stmt, (ir.SetCross, ir.WaitCross)):  # an id belongs to its sender
            sends = isinstance(e.stmt, ir.SetCross) or e.stmt.mode.startswith("INTER")
            if modes.setdefault((sends == (e.agent == "aic"), e.arguments[0] % 16), e.stmt.mode) != e.stmt.mode:
                raise Rejected(f"{e.agent}.{e.site} is not legal: its mode")


def table_claims(resolver: Resolver, tables: dict[str, Any]) -> Iterator[Claim]:
    """What has to be shown for the tables of a kernel under some credit schemes.

    A table is {"start": answers, "states": states with their answers}.

    Raises Rejected, ValueError and their like: one is no table of this kernel.
    """
    for scheme, table in tables.items():
        for name, conditions in _claims(resolver, scheme == "batched", table):
            yield f"{scheme}: {name}", conditions
    legal(resolver)


def _claims(resolver: Resolver, batched: bool, table: Any) -> Iterator[Claim]:
    rules = Rules(resolver, batched)
    beginning, items = fields_of(table, "start", "states")
    states, used = [read_state(rules, *fields_of(i, *STATE)) for i in items], set[int]()
    for number, answers in enumerate([beginning, *(i["answers"] for i in items)], -1):
        if type(answers) is not list:
            raise Rejected("answers are not in a list")
        left = list(reversed(answers))
        machine = Machine(rules, partial(_next, left))
        state = machine.start() if number < 0 else machine.complete(states[number])
        for s, (to, k, values) in machine.follow(state):
            if to != "to" or type(k) is not int or k < 0:
                raise Rejected("an answer is none")
            machine.cover(s, states[k], {name: read(v) for name, v in values.items()})
            used.add(k)
        if left:
            raise Rejected("an answer is left over")
        yield from ((f"state {number}: {name}", conditions) for name, conditions in machine.claims)
    if len(used) < len(states):
        raise Rejected("a state that covers nothing")


def _next(answers: list[Any], state: State, kind: str, asked: Any) -> Any:
    if not answers:
        raise Rejected("an answer is missing")
    return answers.pop()


STATE = ("at", "scalars", "facts", "pipes", "queues", "marks", "written", "rounds", "numbers", "answers")


def read_state(
    rules: Rules, at: Any, scalars: Any, facts: Any, pipes: Any, queues: Any, marks: Any, written: Any, rounds: Any,
    numbers: Any, answers: Any,
) -> State:  # fmt: skip
    """A state of a table.  Raises Rejected, ValueError, AttributeError: it has no such form."""
    holders = [*pipes.values(), *marks.values(), *(u for queue in queues.values() for u in queue)]
    if any(type(n) is not int or n < 1 for u in holders for n in u.values()):
        raise Rejected("not a number of events")
    rounds = {key: [None if term is None else read(term) for term in some] for key, some in rounds.items()}
    standing = Standing(rules, pipes, queues, marks, set(written), rounds, numbers)
    terms = {agent: {name: read(v) for name, v in values.items()} for agent, values in scalars.items()}
    found = State(at, terms, tuple(map(read, facts)), standing)
    given = {f"${plain(p)}" for p in rules.resolver.compiled.parameters} | symbols(found)
    all_terms = [*found.facts, *(v for some in terms.values() for v in some.values())]
    all_terms += [t for some in rounds.values() for t in some if t is not None]
    for name, *operands in applications(all_terms):
        if not ((name in given and not operands) or name.startswith(("f.", "op."))):
            raise Rejected(f"{name} is not what a state may speak of")
    return found
