"""Which operations of a skewed loop meet in memory and are taken out of their order?

The skew follows values only.  Two operations of different halves are tied through memory, which it does not see, if
they use the same bytes of a buffer or the same place of a tensor, and one of them writes there.  A pair counts if some
two executions of it change places; where slots and coordinates follow from the loop variable, that is known exactly.
Of a loop that is grouped, what runs ahead is the lead; it passes the tail of the iteration before, and what stands
between its own statements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from fencepost import ir
from fencepost.defuse import Flows, names, stored
from fencepost.model.memory import Layout, lay_out
from fencepost.model.program import Compiled
from fencepost.model.program import constant as value_of
from fencepost.passes.skew import LoopOutcome
from fencepost.rewrite import constant

_EXACT = 500_000  # pairs of executions of one loop that are looked at one by one

Coordinates = tuple[int, ...] | None
"""Where in a tensor; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Tie:
    """Two operations that meet in memory.

    `what` names the memory.  `ahead` is an operation that runs ahead, `behind` one that it passes.  `agents`: the other
    one is of another agent (`behind` then belongs to that one), so that no order of one agent decides.
    """

    what: str
    ahead: ir.Stmt
    behind: ir.Stmt
    agents: bool = False


@dataclass(frozen=True, slots=True)
class _Touch:
    """One access of one operation: the classes of bytes of a buffer, or the tensors that it may concern, and where."""

    what: str
    stmt: ir.Stmt
    write: bool
    cells: frozenset[int] = frozenset()
    tensors: frozenset[str] = frozenset()
    at: Coordinates = None

    @property
    def places(self) -> list[int | str]:
        return [*self.cells, *self.tensors]

    def meets(self, other: _Touch) -> bool:
        if not (self.write or other.write):
            return False
        if self.cells & other.cells:
            return True
        return bool(self.tensors & other.tensors) and may_meet(self.at, other.at)


def may_meet(one: Coordinates, other: Coordinates) -> bool:
    """Whether two places of one tensor may be the same: equal coordinates, or not known of one of them."""
    return not one or not other or len(one) != len(other) or one == other


def ties(compiled: Compiled, loops: Iterable[LoopOutcome]) -> tuple[Tie | None, Tie | None]:
    """The first pair within a skewed loop, and the first operation of one that meets one of another agent.

    Args:
        compiled: the kernel as written.
        loops: what became of its loops.
    """
    skewed = [outcome for outcome in loops if outcome.action in ("skewed", "grouped")]
    if not skewed:
        return None, None
    layout = lay_out(compiled)
    cores = {core: _Core(compiled, layout, core, skewed) for core in ("cube", "vector")}
    found = [_Loop(cores["vector" if outcome.core == "vector" else "cube"], outcome) for outcome in skewed]
    own = next((tie for loop in found for tie in loop.ties()), None)
    return own, next((tie for tie in _foreign(cores, found)), None)


def _foreign(cores: Mapping[str, _Core], loops: Iterable[_Loop]) -> Iterator[Tie]:
    """Operations of skewed loops that meet operations of another agent."""
    used = {name: _Places(t for stmt in core.body for t in core.touches(stmt, {})) for name, core in cores.items()}
    for loop in loops:
        mine = "vector" if loop.core is cores["vector"] else "cube"
        for touch in loop.touches():
            for other in used["cube" if mine == "vector" else "vector"].around(touch):
                yield Tie(touch.what, touch.stmt, other.stmt, agents=True)
            if mine == "vector" and loop.core.common(touch):  # both sub-cores run this; two writes are a race anyway
                for other in used[mine].around(touch):
                    if touch.write != other.write:
                        yield Tie(touch.what, touch.stmt, other.stmt, agents=True)


class _Places:
    """Accesses, to be found by where they are."""

    def __init__(self, touches: Iterable[_Touch]) -> None:
        self._known: dict[int | str, list[_Touch]] = {}
        for touch in touches:
            for place in touch.places:
                self._known.setdefault(place, []).append(touch)

    def around(self, touch: _Touch) -> Iterator[_Touch]:
        """The accesses that meet another one; some of them more than once."""
        for place in touch.places:
            yield from (other for other in self._known.get(place, ()) if touch.meets(other))


class _Core:
    """The memory that the operations of one core use."""

    def __init__(self, compiled: Compiled, layout: Layout, core: str, loops: Iterable[LoopOutcome]) -> None:
        self.compiled, self.layout = compiled, layout
        kernel = compiled.kernel
        self.buffers = {b.name: b for b in kernel.buffers}
        self.flows = Flows(self.buffers)
        self.body = [
            stmt
            for item in kernel.body
            for stmt in (item.body if isinstance(item, ir.Section) and item.core == core else (item,))
            if not isinstance(stmt, ir.Section)
        ]
        self.constants: dict[str, int] = {}
        for name, value in compiled.scalars.items():
            found = constant(value, self.constants)
            if found is not None:
                self.constants[name] = found
        inner = [stmt for outcome in loops for stmt in outcome.body]  # with names that the text does not have
        self._stored: dict[ir.Span, set[str]] = {}
        self._written: set[str] = set()  # tensors that a store only names as what it writes
        for node in (n for stmt in self.body for n in ir.walk(stmt)):
            if isinstance(node, ir.DataOp) and (place := stored(node)) is not None:
                self._stored.setdefault(node.span, set()).add(place.name)
                if any(place is access for access in node.writes):
                    self._written.add(place.name)
        self._derived: set[str] = set()
        self._sources = self._definitions([*self.body, *inner])
        nodes = (n for stmt in self.body for n in ir.walk(stmt))
        self._by_lane = any(isinstance(n, ir.Name) and n.id == "sub" for n in nodes)
        self._outer = self.flows.of_all(self.body).exposed
        self._roots: dict[str, tuple[frozenset[str], bool]] = {}

    def _definitions(self, body: Iterable[ir.Stmt]) -> dict[str, set[str]]:
        """For every name what it may be the next state, a part or a copy of; nothing for what is loaded or popped."""
        found: dict[str, set[str]] = {}
        for node in (n for stmt in body for n in ir.walk(stmt)):
            match node:
                case ir.DataOp(op=op, writes=writes, reads=reads, renames=renames):
                    place = stored(node)
                    sources = {a.name for a in reads if a.name not in self.buffers}
                    if op.startswith("load"):
                        sources = set()
                    elif place is not None:
                        sources = {place.name}
                    for access in writes:
                        if access.name not in self.buffers:
                            found.setdefault(access.name, set()).update(sources)
                            if sources and place is None and not renames:
                                self._derived.add(access.name)
                case ir.Assign(name=name, value=value) | ir.Bind(name=name, value=value):
                    found.setdefault(name, set()).update(names(value))
                case ir.Pop(value=name):
                    found.setdefault(name, set())
                case _:
                    pass
        return found

    def roots(self, name: str) -> tuple[frozenset[str], bool]:
        """The tensors that a name may stand for or for a part of, and whether for a whole one."""
        known = self._roots.get(name)
        if known is None:
            seen: set[str] = set()
            stack = [name]
            while stack:
                current = stack.pop()
                if current not in seen:
                    seen.add(current)
                    stack.extend(self._sources.get(current, ()))
            inputs = (n for n in seen if n not in self._sources or n in self._outer or n in self._written)
            known = self._roots[name] = frozenset(inputs), not seen & self._derived
        return known

    def common(self, touch: _Touch) -> bool:
        """Whether another sub-core may use the place of an access; of a tensor, only if places depend on `sub`."""
        if touch.tensors:
            return self._by_lane
        return self.buffers[touch.what].space == "GM" or self.buffers[touch.what].shared

    def touches(self, stmt: ir.Stmt, known: Mapping[str, int]) -> Iterator[_Touch]:
        """The accesses of a statement and of those inside it, where the names in `known` have these values."""
        for node in ir.walk(stmt):
            if isinstance(node, ir.Push) and node.value in self.buffers:
                yield _Touch(node.value, node, False, self._cells(ir.Access(node.value), known, whole=True))
            if not isinstance(node, ir.DataOp) or self._names_only(node):
                continue
            place = stored(node)
            found = [constant(e, known) for e in node.at]
            where = None if None in found else tuple(v for v in found if v is not None)
            for position, access in enumerate((*node.writes, *node.reads)):
                write = position < len(node.writes)
                if access.name in self.buffers:
                    yield _Touch(access.name, node, write, self._cells(access, known))
                elif access is place or not write:
                    tensors, direct = self.roots(access.name)
                    if write:  # a copy of a store that only names its tensor has another name for it
                        tensors |= self._stored.get(node.span, set())
                    if tensors:
                        at = where if direct else None
                        yield _Touch(min(tensors), node, access is place, frozenset(), tensors, at)

    def _names_only(self, stmt: ir.DataOp) -> bool:
        """Whether an operation gives a second name to a value and touches no memory."""
        return stmt.renames and not any(a.name in self.buffers for a in (*stmt.writes, *stmt.reads))

    def _cells(self, access: ir.Access, known: Mapping[str, int], whole: bool = False) -> frozenset[int]:
        depth = self.layout.depths[access.name]
        slot = 0 if access.index is None else constant(access.index, known)
        slots: Iterable[int] = range(depth) if whole or slot is None or not 0 <= slot < depth else (slot,)
        part, parts = 0, 1
        if access.part is not None and access.parts is not None:
            given = constant(access.part, known)
            if given is not None:
                part, parts = given, value_of(access.parts, self.compiled.scalars, "parts")
        found: set[int] = set()
        for s in slots:
            view = (access.name, s, part, parts)
            found.update(self.layout.views[view if view in self.layout.views else (access.name, s, 0, 1)])
        return frozenset(found)


@dataclass(slots=True)
class _Loop:
    """The accesses of one skewed or grouped loop, by statement of its body.

    `halves`: the statements that run ahead, and those that they may pass.
    """

    core: _Core
    outcome: LoopOutcome
    halves: tuple[Collection[int], Collection[int]] = field(init=False)
    outside: dict[str, int] = field(init=False)
    anywhere: list[list[_Touch]] = field(init=False)

    def __post_init__(self) -> None:
        halves, group = self.outcome.halves, self.outcome.group
        if group is not None:
            self.halves = group.lead, (*group.middle, *group.tail)
        else:
            assert halves is not None
            self.halves = halves.produce, halves.consume
        assigned = self.core.flows.of_all(self.outcome.body).may | {self.outcome.loop.var}
        self.outside = {name: value for name, value in self.core.constants.items() if name not in assigned}
        self.anywhere = [list(self.core.touches(stmt, self.outside)) for stmt in self.outcome.body]

    def touches(self) -> Iterator[_Touch]:
        """Accesses that change their place among those of other agents.

        Of a grouped loop that is the lead: nothing in it waits, so that what stays behind meets in no other order what
        it is ordered with.
        """
        halves = self.halves[:1] if self.outcome.group is not None else self.halves
        return (touch for half in halves for i in half for touch in self.anywhere[i])

    def ties(self) -> Iterator[Tie]:
        """Pairs of this loop's own operations that change places."""
        halves = ([i for i in half if self.anywhere[i]] for half in self.halves)
        pairs = [
            (i, j)
            for i, j in product(*halves)
            if self._passes(i, j) and any(a.meets(b) for a in self.anywhere[i] for b in self.anywhere[j])
        ]
        if not pairs:
            return
        values = self._values()
        sizes = sum(len(self.anywhere[i]) * len(self.anywhere[j]) for i, j in pairs)
        depth = self.outcome.depth or 1
        exact: list[list[list[_Touch]]] | None = None
        if values is not None and len(values) * max(2 * depth * sizes, len(self.anywhere)) <= _EXACT:
            exact = [self._iteration(value) for value in values]
        for i, j in pairs:
            yield from self._changed(i, j, exact)

    def _values(self) -> range | None:
        """The values of the loop variable, if they are known."""
        loop = self.outcome.loop
        bounds = [constant(e, self.outside) for e in (loop.start, loop.stop, loop.step)]
        start, stop, step = bounds
        return range(start, stop, step) if start is not None and stop is not None and step else None

    def _passes(self, i: int, j: int) -> bool:
        """Whether some execution of statement i runs ahead of one of statement j that comes before it in the text."""
        group = self.outcome.group
        return group is None or j in group.tail or j < i

    def _passed(self, i: int, j: int, later: int) -> range:
        """The iterations whose statement j comes before statement i of iteration `later` only as written."""
        group, depth = self.outcome.group, self.outcome.depth
        if group is None:
            assert depth is not None
            # As written, execution k of j comes first; produce halves of group g run before consume halves of g - 1.
            return range(max(0, (later // depth - 1) * depth), later + (j < i))
        return range(max(0, later - 1), later) if j in group.tail else range(later, later + (j < i))

    def _changed(self, i: int, j: int, exact: list[list[list[_Touch]]] | None) -> Iterator[Tie]:
        """The pairs of operations of statement i (ahead) and statement j (behind) that meet and change places."""
        candidates: Iterable[tuple[list[_Touch], list[_Touch]]] = ((self.anywhere[i], self.anywhere[j]),)
        if exact is not None:
            candidates = (
                (exact[later][i], exact[k][j]) for later in range(len(exact)) for k in self._passed(i, j, later)
            )
        for ahead, behind in candidates:
            for a, b in product(ahead, behind):
                if a.meets(b):
                    yield Tie(a.what, a.stmt, b.stmt)

    def _iteration(self, value: int) -> list[list[_Touch]]:
        """The accesses of every statement in the iteration in which the loop variable has this value."""
        known = {**self.outside, self.outcome.loop.var: value}
        found: list[list[_Touch]] = []
        for stmt in self.outcome.body:
            may = self.core.flows.of(stmt).may
            inside = {n: v for n, v in known.items() if n not in may} if may else known
            found.append(list(self.core.touches(stmt, inside)))
            result = constant(stmt.value, known) if isinstance(stmt, ir.Assign) else None
            known = dict(inside)
            if isinstance(stmt, ir.Assign) and result is not None:
                known[stmt.name] = result
        return found


__all__ = ["Coordinates", "Tie", "may_meet", "ties"]
