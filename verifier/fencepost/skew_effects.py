"""Which effects that give no value does the skew take out of their order?

The pass follows values only.  A store and a load of the same place in GM, a write and a read of one buffer, or a wait
that stands before a load, are tied by no value: the load runs ahead of the store of an earlier iteration, and the wait
no longer comes first.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.defuse import stored
from fencepost.facts import Fact
from fencepost.findings import Related, Severity
from fencepost.model.executor import LimitReached
from fencepost.model.issue import issue
from fencepost.model.memory import Layout, View, lay_out
from fencepost.model.program import Compiled, Emit, Instruction, Program, compile_kernel
from fencepost.model.shapes import Shape, shapes, uses_functions
from fencepost.passes.skew import LoopOutcome, Skew
from fencepost.passes.skew.identity import Marked, Message, mark
from fencepost.phrases import plural
from fencepost.skew_ties import may_meet

_LIMIT = 200_000
_RUNS = 60

_GUARDS = (ir.WaitCross, ir.SyncDst, ir.Barrier, ir.SyncAll, ir.MutexLock)


@dataclass(frozen=True, slots=True)
class Stale:
    """An operation that, after the skew, no longer finds in memory what it finds in the kernel as written."""

    fact: Fact
    shape: Shape


def moved(outcome: LoopOutcome) -> Iterator[Fact]:
    """Warnings about a loop: waits and barriers that the text puts before what runs ahead of them."""
    if outcome.group is not None:
        produce, tail = set(outcome.group.lead), set(outcome.group.tail)
    elif outcome.halves is not None and outcome.action == "skewed":
        produce, tail = set(outcome.halves.produce), set[int]()
    else:
        return
    for index, stmt in enumerate(outcome.body):
        later = [i for i in produce if i > index or index in tail]
        if index in produce or not later:
            continue
        for node in ir.walk(stmt):
            if isinstance(node, _GUARDS):
                first = outcome.body[min(later)]
                whose = "of the next iteration" if index in tail else "that follow it in the text"
                detail = (
                    "this wait or barrier gives no value, so the skew leaves it behind: after the skew the statements "
                    f"{whose}, from line {first.span.line} on, run before it"
                )
                related = (Related(first.span, "runs ahead after the skew"),)
                values = (("detail", detail),)
                yield Fact("705", node.span, values, related, ("moved", node.span), Severity.WARNING, static=True)
                break


def stale(kernel: ir.Kernel, deadline: float, skew: Skew) -> tuple[Stale | None, str]:
    """The first operation that reads something else after `skew`, on the smallest shape; or else what is not known.

    Nothing is left open ("") where the only shape was looked at and every agent reads and leaves the same there.
    """
    before = mark(kernel)
    compiled = compile_kernel(before.kernel)
    skewed = compile_kernel(skew.run(before.kernel).kernel)
    layout = lay_out(compiled)
    clear = True
    for count, shape in enumerate(shapes(compiled)):
        if count >= _RUNS or time.monotonic() > deadline:
            return None, f"no difference on {plural(count, 'shape')}"
        try:
            found, same = _difference(before, compiled, skewed, layout, shape)
        except LimitReached:
            return None, "runs are too long to be followed"
        if found is not None:
            return Stale(found, shape), ""
        clear = clear and same
    if compiled.parameters or uses_functions(kernel):
        return None, "no difference on any shape tried"
    return None, "" if clear else "what is read at unequal coordinates is not known"


def _difference(
    before: Marked, compiled: Compiled, skewed: Compiled, layout: Layout, shape: Shape
) -> tuple[Fact | None, bool]:
    """The first difference of some agent, and whether all is surely the same if there is none."""
    clear = True
    for program in compiled.programs:
        values: dict[Hashable, int] = {}
        was = _Memory(compiled, layout, program.agent, before, values).run(shape)
        now = _Memory(skewed, layout, program.agent, before, values).run(shape)
        clear = clear and was.reads.keys() == now.reads.keys()
        for key, state in was.reads.items():
            other = now.reads.get(key, state)
            if other.value == state.value:
                clear = clear and other.around == state.around
                continue
            fact = _changed(before, key, state, other, now)
            if fact is not None:
                return fact, False
            clear = False
        if was.left != now.left:
            fact = _left(before, was, now)
            if fact is not None:
                return fact, False
            clear = False
    return None, clear


Key = tuple[int, int]
"""An execution of an operation: what identifies it in the kernel as written, and which one of these."""


@dataclass(frozen=True, slots=True)
class _State:
    """What one operation found: the values that it read, from which writes, and all that places near by held."""

    value: Hashable
    writers: dict[Hashable, Key | None]
    around: Hashable
    place: int


@dataclass(frozen=True, slots=True)
class _Written:
    """What a place holds, and the operation that wrote it."""

    value: Hashable
    writer: Key


@dataclass(slots=True)
class _Memory:
    """One agent's run, followed by what every byte of a buffer, every name and every place of a tensor holds."""

    compiled: Compiled
    layout: Layout
    agent: str
    before: Marked
    numbers: dict[Hashable, int]
    reads: dict[Key, _State] = field(default_factory=dict)
    places: dict[Hashable, _Written] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    roots: dict[int, frozenset[str]] = field(default_factory=dict)
    stores: dict[str, dict[Hashable, tuple[int, tuple[int, ...]]]] = field(default_factory=dict)
    count: dict[int, int] = field(default_factory=dict)

    def number(self, description: Hashable) -> int:
        return self.numbers.setdefault(description, len(self.numbers))

    @property
    def left(self) -> dict[Hashable, Hashable]:
        """What memory that outlives the agent holds in the end."""
        local = {
            c
            for b in self.compiled.kernel.buffers
            if b.space != "GM" and not b.shared
            for slot in range(self.compiled.depths[b.name])
            for c in self._cells((b.name, slot, 0, 1))
        }
        return {place: written.value for place, written in self.places.items() if place not in local}

    def run(self, shape: Shape) -> _Memory:
        program = with_operands(self.compiled.program(self.agent))
        issued, _ = issue(self.compiled, program, shape.values, shape.table(), _LIMIT)
        for site, arguments, task in issued:
            stmt = program.sites[site]
            if task is None or not isinstance(stmt, ir.DataOp | ir.Push | ir.Pop):
                continue
            self.count[task] = self.count.get(task, 0) + 1
            key = (task, self.count[task])
            match stmt:
                case ir.DataOp():
                    self._operation(stmt, arguments, key)
                case ir.Push(value=name):
                    slots = range(self.compiled.depths[name]) if name in self.compiled.depths else ()
                    self._read(key, [(name, slot, 0, 1) for slot in slots], [] if slots else [(name, None)])
                case ir.Pop(value=name):
                    self.names[name] = number = self.number(("message", key))
                    self.roots[number] = frozenset()
        return self

    def _operation(self, stmt: ir.DataOp, arguments: tuple[int, ...], key: Key) -> None:
        operands = iter(arguments)
        views: list[View | None] = []
        for access in (*stmt.writes, *stmt.reads):
            if access.name not in self.compiled.depths:
                views.append(None)
                continue
            slot = 0 if access.index is None else next(operands)
            part = 0 if access.part is None else next(operands)
            views.append((access.name, slot, part, 1 if access.parts is None else next(operands)))
        at = tuple(operands)
        if stmt.renames and not any(views):
            self.names[stmt.writes[0].name] = self._name(stmt.reads[0].name)
            return
        place = stored(stmt)
        read = list(zip(stmt.reads, views[len(stmt.writes) :], strict=True))
        found = self._read(
            key,
            [view for _, view in read if view is not None],
            [(a.name, None if a is place else at) for a, view in read if view is None],
        )
        result = (stmt.op, at, found)
        last = place is not None and any(place is access for access in stmt.reads)
        parts = frozenset[str]()
        if not stmt.op.startswith("load"):
            parts = parts.union(*(self.roots[self._name(a.name)] for a, view in read if view is None))
        for k, (access, view) in enumerate(zip(stmt.writes, views, strict=False)):
            for c in () if view is None else self._cells(view):
                self.places[c] = _Written(self.number((*result, k, view, c)), key)
            if view is None:
                self.names[access.name] = self._name(stmt.reads[-1].name) if last else self._number(result, k, parts)
        if place is not None and place.name not in self.compiled.depths:
            self._store(self._name(place.name) if last else self._tensor(key), at, _Written(self.number(result), key))

    def _number(self, result: tuple[Hashable, ...], position: int, parts: frozenset[str]) -> int:
        number = self.number((*result, position))
        self.roots[number] = parts
        return number

    def _tensor(self, key: Key) -> int:
        """The tensor of a store that only names it; a copy of the store has another name for it."""
        stmt = self.before.message(key[0]).stmt
        place = stored(stmt) if isinstance(stmt, ir.DataOp) else None
        assert place is not None
        number = self.number(("input", place.name))
        self.roots[number] = frozenset({place.name})
        return number

    def _store(self, tensor: int, at: tuple[int, ...], written: _Written) -> None:
        place = ("tensor", tensor, at)
        self.places[place] = written
        for root in self.roots[tensor]:
            self.stores.setdefault(root, {})[place] = (tensor, at)

    def _cells(self, view: View) -> tuple[Hashable, ...]:
        if view not in self.layout.views:
            return (("outside", view),)
        return self.layout.views[view]

    def _name(self, name: str) -> int:
        number = self.names.get(name)
        if number is None:
            number = self.names[name] = self.number(("input", name))
            self.roots[number] = frozenset({name})
        return number

    def _read(self, key: Key, views: list[View], given: list[tuple[str, tuple[int, ...] | None]]) -> Hashable:
        """Note what an operation reads; for a tensor with the coordinates, None where only the name counts."""
        value: list[Hashable] = []
        writers: dict[Hashable, Key | None] = {}
        around: list[Hashable] = []
        for view in views:
            for c in self._cells(view):
                written = self.places.get(c)
                value.append(("unwritten", c) if written is None else written.value)
                writers[c] = None if written is None else written.writer
        for name, at in given:
            number = self._name(name)
            value.append(number)
            if at is None:
                continue
            here = ("tensor", number, at)
            written = self.places.get(here)
            value.append(None if written is None else written.value)
            writers[here] = None if written is None else written.writer
            for root in self.roots[number]:
                around += [
                    (place, self.places[place].value)
                    for place, (tensor, other) in self.stores.get(root, {}).items()
                    if place != here and (tensor != number or may_meet(other, at))
                ]
        found = self.number(("read", tuple(value)))
        self.reads[key] = _State(found, writers, tuple(sorted(around, key=repr)), len(self.reads))
        return found


def _changed(before: Marked, key: Key, was: _State, now: _State, new: _Memory) -> Fact | None:
    """The fact about an operation that finds another write; None if what it finds was computed from other values."""
    for place in was.writers.keys() & now.writers.keys():
        source, other = was.writers[place], now.writers[place]
        if source == other:
            continue
        reader = before.message(key[0])
        if isinstance(place, tuple):
            early = source is None or (other is not None and new.reads[other].place > new.reads[key].place)
            store = other if early else source
            assert store is not None
            return _fact(reader, before.message(store[0]), early)
        return _overwritten(reader, *(None if w is None else before.message(w[0]) for w in (source, other)))
    return None


def _overwritten(reader: Message, was: Message | None, now: Message | None) -> Fact:
    """The fact about an operation that reads bytes of a buffer which another operation wrote last."""

    def words(writer: Message | None) -> str:
        if writer is None:
            return "before anything is written there"
        assert isinstance(writer.stmt, ir.DataOp)
        return f"as the {writer.stmt.op} of {writer} leaves it"

    what = reader.stmt.op if isinstance(reader.stmt, ir.DataOp) else "push"
    detail = (
        f"after the skew, the {what} of {reader} reads its buffer {words(now)}; as written it reads it {words(was)}, "
        "and no value ties the two"
    )
    related = tuple(
        Related(w.stmt.span, text) for w, text in ((was, "this write is meant"), (now, "this one is read")) if w
    )
    return Fact("705", reader.stmt.span, (("detail", detail),), related, ("stale", reader.stmt.span))


def _left(before: Marked, was: _Memory, now: _Memory) -> Fact | None:
    """The fact about a place that another operation writes last."""
    old, new = was.left, now.left
    for place in old.keys() & new.keys():
        first, last = was.places[place].writer, now.places[place].writer
        if old[place] == new[place] or first == last:
            continue
        meant, comes = before.message(first[0]), before.message(last[0])
        assert isinstance(meant.stmt, ir.DataOp)
        assert isinstance(comes.stmt, ir.DataOp)
        detail = (
            f"after the skew, the {comes.stmt.op} of {comes} comes last at a place where, as written, the "
            f"{meant.stmt.op} of {meant} does, and no value ties the two"
        )
        related = (Related(meant.stmt.span, "last as written"),)
        return Fact("705", comes.stmt.span, (("detail", detail),), related, ("stale", comes.stmt.span))
    return None


def with_operands(program: Program) -> Program:
    """The same program, with the scalar operands of data operations after their slots."""

    def extended(instruction: Instruction) -> Instruction:
        stmt = program.sites[instruction.site] if isinstance(instruction, Emit) else None
        if not isinstance(instruction, Emit) or not isinstance(stmt, ir.DataOp) or not stmt.at:
            return instruction
        return replace(instruction, arguments=(*instruction.arguments, *stmt.at))

    return replace(program, code=tuple(map(extended, program.code)))


def _fact(reader: Message, store: Message, early: bool) -> Fact:
    """`early`: the store now comes before the load instead of after it."""
    assert isinstance(reader.stmt, ir.DataOp)
    assert isinstance(store.stmt, ir.DataOp)
    now, then = ("after", "before") if early else ("before", "after")
    detail = (
        f"after the skew, the {reader.stmt.op} of {reader} runs {now} the {store.stmt.op} of {store} to the same "
        f"place; as written it runs {then} it, and no value ties the two"
    )
    related = (Related(store.stmt.span, "the store"),)
    return Fact("705", reader.stmt.span, (("detail", detail),), related, ("stale", reader.stmt.span))


__all__ = ["Stale", "moved", "stale"]
