"""Events: which operations does an agent execute, when, with which operands, as formulas in its loop indices?

An event is one operation of the text, in one copy of an unrolled loop.  Its executions are the values of the indices of
the loops around it that satisfy its guard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from fencepost import ir
from fencepost.model.effects import Effect, PipeKey, Resolver
from fencepost.model.program import Operation, Program
from fencepost.prove.expressions import Env, Key
from fencepost.prove.ranks import Sums
from fencepost.prove.rewrite import Known, Substitution
from fencepost.prove.terms import FALSE, TRUE, ZERO, Atom, Cond, Lin, conjoin, const, disjoin, eq, lt, symbol

_CASES = 64

Place = tuple[int | Lin, ...]
Cases = tuple[tuple[Cond, Effect], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop with a symbolic index that counts its trips from 0; it makes `trips` = max(`extent`, 0) trips."""

    head: int
    node: ir.For
    index: str
    extent: Lin
    trips: Lin


@dataclass(frozen=True, slots=True)
class Operand:
    """One access of a data operation to a declared buffer."""

    access: ir.Access
    writes: bool
    slot: Lin
    part: Lin
    parts: int


@dataclass(slots=True, eq=False)
class Event:
    """One operation of an agent.

    `place` orders events in program order, lexicographically: instruction numbers, loop indices in between.  `guard`
    says for which indices it is executed, the loops' bounds included.  `before` counts what the agent executed before
    it.  `cases` are the possible effects, each with the condition on the operands under which it is the one; `covered`
    says when one of them is.  They are empty if there are too many: then slots are compared as terms, and locks are
    left out.
    """

    agent: str
    site: int
    stmt: Operation
    copies: tuple[int, ...]
    loops: tuple[Loop, ...]
    place: Place
    guard: tuple[Cond, ...]
    arguments: tuple[Lin, ...]
    task: Lin | None
    pipe: PipeKey
    cases: Cases
    covered: Cond
    operands: tuple[Operand, ...]
    known: Known
    before: Env
    number: int = 0
    domain: Cond = TRUE
    _ranks: dict[Key, Lin] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.domain = conjoin(self.guard)

    @property
    def indices(self) -> tuple[str, ...]:
        return tuple(loop.index for loop in self.loops)

    @property
    def key(self) -> Key:
        """The counter of this event's own executions."""
        return ("run", (self.site, self.copies))

    def count(self, key: Key) -> Lin:
        """How often something was executed by this agent before this event."""
        found = self._ranks.get(key)
        if found is None:
            found = self._ranks[key] = self.known.lin(self.before.get(key, ZERO))
        return found

    def when(self, what: str, thing: object) -> Cond:
        """The condition on the operands under which `thing` is among the effect's `what` ("sets", "locks", ...)."""
        return disjoin(c for c, e in self.cases if thing in getattr(e, what))

    def can(self, what: str, thing: object) -> bool:
        """Whether `thing` is among `what` for some operands."""
        return any(thing in getattr(e, what) for _, e in self.cases)

    def __repr__(self) -> str:
        return f"<{self.agent} #{self.site} {type(self.stmt).__name__} line {self.stmt.span.line}>"


class Instance:
    """An event at given values of its indices."""

    __slots__ = ("_change", "event", "terms")

    def __init__(self, event: Event, terms: tuple[Lin, ...], sums: Sums) -> None:
        self.event = event
        self.terms = terms
        self._change = Substitution(dict(zip(event.indices, terms, strict=True)), sums.rebuild)

    def lin(self, term: Lin) -> Lin:
        return self._change.lin(term)

    def cond(self, cond: Cond) -> Cond:
        return self._change.cond(cond)

    def count(self, key: Key) -> Lin:
        return self.lin(self.event.count(key))

    @property
    def domain(self) -> Cond:
        return self.cond(self.event.domain)

    @property
    def place(self) -> Place:
        return tuple(p if isinstance(p, int) else self.lin(p) for p in self.event.place)

    def __repr__(self) -> str:
        return f"{self.event}{list(self.terms)}"


def named(event: Event, prefix: str, sums: Sums) -> Instance:
    """The event at fresh indices that start with `prefix`."""
    return Instance(event, tuple(symbol(f"{prefix}@{i}") for i in range(len(event.loops))), sums)


def pair(one: Event, other: Event, sums: Sums) -> tuple[Instance, Instance]:
    """Two executions at any indices."""
    return named(one, "a", sums), named(other, "b", sums)


def precedes(one: Place, other: Place) -> Cond:
    """Strict lexicographic order of two places of one agent."""
    result = FALSE
    for a, b in reversed(list(zip(one, other, strict=False))):
        first, second = (const(x) if isinstance(x, int) else x for x in (a, b))
        result = disjoin((lt(first, second), conjoin((eq(first, second), result))))
    return result


def operands(stmt: Operation, arguments: tuple[Lin, ...], depths: Mapping[str, int]) -> Iterator[Operand]:
    """The accesses of a data operation, from the operands that it evaluates when it is issued."""
    if not isinstance(stmt, ir.DataOp):
        return
    values = iter(arguments)
    for accesses, writes in ((stmt.writes, True), (stmt.reads, False)):
        for access in accesses:
            if access.name not in depths:
                continue
            slot = next(values) if access.index is not None else ZERO
            part = next(values) if access.part is not None else ZERO
            parts = next(values).value if access.parts is not None else 1
            yield Operand(access, writes, slot, part, parts if parts is not None else 1)


def cases(
    resolver: Resolver, program: Program, site: int, arguments: tuple[Lin, ...], known: Known
) -> tuple[Cases, Cond]:
    """The effects that an operation can have, each with its condition, and when one of them applies."""
    stmt = program.sites[site]
    agent = program.agent
    atoms: dict[str, Atom] = {a.text: a for t in arguments for a, _ in t.parts}
    ranges: list[list[int]] = []
    total = 1
    for atom in atoms.values():
        low, high = known.bounds(Lin(0, ((atom, 1),)))
        if low is None or high is None or high - low >= _CASES:
            break
        ranges.append(list(range(low, high + 1)))
        total *= len(ranges[-1])
    found: list[tuple[Cond, Effect]] = []
    if len(ranges) == len(atoms) and total <= _CASES:
        for values in product(*ranges):
            given = dict(zip(atoms, values, strict=True))
            condition = conjoin(eq(Lin(0, ((a, 1),)), const(given[t])) for t, a in atoms.items())
            if condition.kind == "false":
                continue
            numbers = tuple(t.constant + sum(k * given[a.text] for a, k in t.parts) for t in arguments)
            found.append((condition, resolver.effect(agent, site, stmt, numbers)))
        return tuple(found), TRUE
    if isinstance(stmt, ir.DataOp):
        return (), FALSE
    limit = max(32, resolver.compiled.target.cross_ids)
    if len(arguments) > 1:
        return (), FALSE
    for value in range(limit):
        condition = eq(arguments[0], const(value))
        if condition.kind != "false":
            found.append((condition, resolver.effect(agent, site, stmt, (value,))))
    return tuple(found), disjoin(c for c, _ in found)
