"""Standing: which signals and messages are pending, which accesses are open, and who does not know of them yet?

One step of the execution model without clocks.  Whoever carries order (a pipe, a pending signal, a mutex that was
given back, an accumulator flag) is a *holder*; of each it is kept of which events it does **not** know.  An event
stands for its latest execution: "write 3" is the last write of cell 3.  Events that are counted ("wait ...") say how
many of the latest are not known.  Knowing less and having seen fewer writes is always worse: faults only become more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fencepost import ir
from fencepost.model.effects import Effect, Resolver
from fencepost.model.rings import Ring
from fencepost.prove.plainterms import Rejected, Term, eq

Unknown = dict[str, int]
"""How many of the latest executions of each event a holder does not know of."""


def joined(holders: Iterable[Unknown]) -> Unknown:
    """What nobody of some holders knows."""
    first, *others = holders
    return {e: least for e, n in first.items() if (least := min([n, *(o.get(e, 0) for o in others)]))}


@dataclass(frozen=True)
class Rules:
    """What does not change: the kernel, how credits travel, and whose writes of a buffer carry rounds."""

    resolver: Resolver
    batched: bool
    annotated: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        layout = self.resolver.layout
        for program in self.resolver.compiled.programs:
            sites = (s for s in program.sites if isinstance(s, ir.DataOp) and s.task is not None)
            written = {a.name for site in sites for a in site.writes if a.name in layout.depths}
            for name in layout.depths if written else ():
                if layout.overlapping(name, written):
                    same = self.annotated.setdefault(name, program.agent[:3]) == program.agent[:3]
                    self.annotated[name] = program.agent[:3] if same else "both"

    @property
    def release(self) -> type:
        return ir.Free if self.resolver.compiled.target.frees_at == "tfree" else ir.Pop

    def ring(self, number: int) -> Ring:
        return Ring(self.resolver.rings[number].slots, "batched" if self.batched else "per_slot")

    def channel(self, number: int) -> tuple[str, int]:
        """A name for a channel that does not depend on what was executed, and its capacity."""
        c = self.resolver.channels[number]
        return " ".join(map(str, (c.kind, c.sender, c.receiver, c.id, c.lane, *c.pipes))), c.capacity


@dataclass
class Standing:
    """All that the past means for the future.  `numbers` must be equal for two standings to be alike."""

    rules: Rules
    pipes: dict[str, Unknown]
    queues: dict[str, list[Unknown]]  # signals, messages, credits: oldest first
    marks: dict[str, Unknown]  # mutexes given back and accumulator flags turned: what is learnt from them
    written: set[int]
    rounds: dict[str, list[Term | None]]  # of the last write of a cell, of the messages in a ring; None: without one
    numbers: dict[str, Any]

    @staticmethod
    def start(rules: Rules) -> Standing:
        pipes: dict[str, Unknown] = {}
        for program in rules.resolver.compiled.programs:
            named = (getattr(site, name, "S") for site in program.sites for name in ("pipe", "source", "target"))
            pipes |= {f"{program.agent}.{pipe}": {} for pipe in ("S", *named) if pipe in ir.PIPES}
        queues: dict[str, list[Unknown]] = {}
        for n, declared in enumerate(rules.resolver.rings):
            if (ring := rules.ring(n)).unguarded:
                raise Rejected(f"{declared} cannot have its credits in batches")
            queues |= {
                f"credit {n} {lane}": [{} for _ in range(0, ring.slots, ring.batch)] for lane in range(declared.lanes)
            }
        return Standing(rules, pipes, queues, {}, set(), {}, {})

    def copy(self) -> Standing:
        return Standing(
            self.rules, {k: dict(v) for k, v in self.pipes.items()},
            {k: [dict(u) for u in v] for k, v in self.queues.items()}, {k: dict(v) for k, v in self.marks.items()},
            set(self.written), {k: list(v) for k, v in self.rounds.items()}, dict(self.numbers),
        )  # fmt: skip

    def holders(self) -> Iterator[Unknown]:
        yield from self.pipes.values()
        yield from self.marks.values()
        for queue in self.queues.values():
            yield from queue

    def worse(self, other: Standing) -> Iterator[tuple[Any, Any]]:
        """Check that whatever is right from this standing on is right from the other: knowing less, with fewer writes.

        Yields the terms that must be equal for that.  Raises Rejected.
        """
        alike = self.pipes.keys() == other.pipes.keys() and self.numbers == other.numbers
        alike &= self.marks.keys() <= other.marks.keys() and self.written <= other.written
        here, there = ({key: queue for key, queue in s.queues.items() if queue} for s in (self, other))
        if not alike or {k: len(q) for k, q in here.items()} != {k: len(q) for k, q in there.items()}:
            raise Rejected("something else is pending")
        mine, theirs = ({key: some for key, some in s.rounds.items() if some} for s in (self, other))
        if mine.keys() != theirs.keys():
            raise Rejected("something else is pending")
        pairs = [(u, other.pipes[k]) for k, u in self.pipes.items()] + [
            (u, other.marks[k]) for k, u in self.marks.items()
        ]
        pairs += [pair for k, queue in here.items() for pair in zip(queue, there[k], strict=True)]
        if any(u.get(e, 0) < v.get(e, 0) for u, v in pairs for e in {**u, **v}):
            raise Rejected("somebody knows less")
        for key, values in mine.items():
            for one, another in zip(values, theirs[key], strict=True):
                if (one is None) != (another is None):
                    raise Rejected("a round is missing")
                yield one, another

    # ------------------------------------------------------------------------------------------ one operation

    def obstacle(self, e: Effect) -> bool:
        """Whether an operation has to wait."""
        wanted = int(e.phase is not None and e.phase[0] == "consume")
        return any(not self.queues.get(q) for q in self._taken(e)) or any(
            self.numbers.get(f"up {cell}", 0) != wanted for cell in e.phased
        )

    def _taken(self, e: Effect) -> list[str]:
        """The queues from which an operation takes."""
        found = [self.rules.channel(c)[0] for c in e.waits]
        for ring in (f"{n} {lane}" for n, lane in e.rings):
            if isinstance(e.stmt, ir.Pop):
                found.append(f"message {ring}")
            elif isinstance(e.stmt, ir.Push) and not self.numbers.get(f"pushed {ring}", 0):
                found.append(f"credit {ring}")
        return found

    def execute(self, e: Effect, task: Term | None, demand: Callable[[str, Term], None]) -> None:
        """Execute an operation without obstacle.  Raises Rejected for a fault; `demand` takes what values decide."""
        me, agent = f"{e.agent}.{e.pipe[1]}", f"{e.agent}."

        def check(right: bool, fault: str) -> None:
            if not right:
                raise Rejected(f"{me}: {fault}")

        check(not e.illegal and not e.out_of_range, "an operand that is not allowed")
        giving = [u for key, u in self.marks.items() for m in e.locks if self._lock(key, e, m)]
        drained = [u for pipe, u in self.pipes.items() if e.drains and pipe.startswith(agent)]
        mine = joined([self.pipes[me], self.pipes[f"{agent}S"], *giving, *drained])
        ordered = {f"wait {name}": most + 1 for name, most in map(self.rules.channel, e.waits)}
        kind = type(e.stmt).__name__.lower()
        if (e.rings and kind != "free") or self.rules.release is ir.Free:
            ordered |= {f"{kind} {n} {lane}": self.rules.ring(n).slots + 1 for n, lane in e.rings}
        if e.phase is not None:
            ordered |= {f"{e.phase[0]} {cell}": 1 for cell in e.phased}
        check(not any(event in mine for event in ordered), "comes in no certain order after others of its kind")
        tokens = [self.queues[queue].pop(0) for queue in self._taken(e)]
        other = {"produce": "lower", "consume": "raise"}.get(e.phase[0] if e.phase else "")
        tokens += [u for cell in e.phased if (u := self.marks.get(f"{other} {cell}")) is not None]
        for event, most in ordered.items():
            self._renew(event, mine, most)
        mine = joined([mine, *tokens])
        self._messages(e, mine, task, check, demand)
        self._phase(e, check)
        self._memory(e, mine, task, check, demand)
        for name, capacity in (sets := list(map(self.rules.channel, e.sets))):
            check(f"set {name}" not in mine, "comes in no certain order after others of its kind")
            pending = len(self.queues.get(name, ())) + 1 + mine.get(f"wait {name}", 0)
            check(pending <= capacity, "too many signals can be pending")
            self._renew(f"set {name}", mine)
        self._mutex(e, check)
        for name, _ in sets:
            self.queues.setdefault(name, []).append(dict(mine))
        self.marks |= {f"lock {agent}{m} {e.pipe[1]}": dict(mine) for m in e.unlocks}
        if e.phase is not None and e.phase[1]:
            self.marks |= {f"{'raise' if e.phase[0] == 'produce' else 'lower'} {cell}": dict(mine) for cell in e.phased}
        self._sent(e, mine, task)
        self.pipes[me] = mine

    @staticmethod
    def _lock(key: str, e: Effect, mutex: int) -> bool:
        return key.startswith(f"lock {e.agent}.{mutex} ") and not key.endswith(f" {e.pipe[1]}")

    def _renew(self, event: str, mine: Unknown, most: int = 1) -> None:
        """An event happens: only who executes it knows of it."""
        for holder in self.holders():
            holder[event] = min(most, holder.get(event, 0) + 1)
        mine.pop(event, None)

    def _set(self, key: str, value: Any) -> None:
        self.numbers.pop(key, None)
        if value:
            self.numbers[key] = value

    def _memory(self, e: Effect, mine: Unknown, task: Term | None, check: Any, demand: Any) -> None:
        core = e.agent[:3]
        for touch in e.reads:
            check(not touch.written or not self.written.isdisjoint(touch.cells), "read before it was written")
            annotated = self.rules.annotated.get(touch.access.name, core) != core
            for cell in touch.cells:
                check(f"write {cell}" not in mine, f"a read of {touch.access.name} without order")
                self._renew(f"read {cell} {e.agent}.{e.pipe[1]}", mine)
                if annotated and task is not None:
                    check(self.numbers.get(f"writer {cell}", core) != core, f"{touch.access.name} of no round")
                    demand(f"round of {touch.access.name}", eq(self.rounds[f"cell {cell}"][0], task))
        for touch in e.writes:
            for cell in touch.cells:
                open_ = (u for u in mine if u.startswith(f"read {cell} ") or u == f"write {cell}")
                check(not any(open_), f"a write of {touch.access.name} without order")
                for holder in self.holders():
                    for event in [u for u in holder if u.startswith(f"read {cell} ")]:
                        del holder[event]
                self._renew(f"write {cell}", mine)
                self.written.add(cell)
                self._set(f"writer {cell}", "" if task is None else core)
                self.rounds[f"cell {cell}"] = [] if task is None else [task]

    def _phase(self, e: Effect, check: Any) -> None:
        if e.phase is not None:
            role, final = e.phase
            reads = {c for t in e.reads for c in t.cells}
            for cell in e.phased:
                if role == "produce":
                    check(cell not in reads or not self.numbers.get(f"final {cell}"), "added to what is complete")
                    self._set(f"final {cell}", int(final))
                if final:
                    self._set(f"up {cell}", int(role == "produce"))

    def _mutex(self, e: Effect, check: Any) -> None:
        if isinstance(e.stmt, (ir.MutexLock, ir.MutexUnlock)):
            key = f"held {e.agent} {e.arguments[0]}"
            holder, locks = self.numbers.get(key, ""), isinstance(e.stmt, ir.MutexLock)
            check(holder in ("", e.pipe[1]) if locks else holder != "", "locked or unlocked twice")
            self._set(key, e.pipe[1] if locks else "")

    def _messages(self, e: Effect, mine: Unknown, task: Term | None, check: Any, demand: Any) -> None:
        """What a message must find: its slot released, its round, a message that was popped."""
        release = self.rules.release
        for n, lane in e.rings:
            ring, slots = f"{n} {lane}", self.rules.ring(n).slots
            popped = self.numbers.get(f"popped {ring}", 0)
            if isinstance(e.stmt, ir.Push):
                ahead = len(self.queues.get(f"message {ring}", ())) + popped
                late = mine.get(f"{release.__name__.lower()} {ring}", 0)
                check(ahead + 1 + late <= slots, "a push can overtake the release of its slot")
            elif isinstance(e.stmt, ir.Pop):
                pushed, *self.rounds[f"message {ring}"] = self.rounds[f"message {ring}"]
                if pushed is not None and task is not None:
                    demand("round of a message", eq(pushed, task))
            elif release is ir.Free:
                check(mine.get(f"pop {ring}", 0) < popped, "freed before it was popped")
        if release is ir.Free and self.rules.resolver.rings:
            used = [a.name for a in e.stmt.reads] if isinstance(e.stmt, ir.DataOp) else []
            used += [e.stmt.value] if isinstance(e.stmt, (ir.Push, ir.Free)) else []
            check(not any(f"freed {e.agent} {name}" in self.numbers for name in used), "used after it was freed")
            renewed = [a.name for a in e.stmt.writes] if isinstance(e.stmt, ir.DataOp) else []
            for name in (*renewed, *([e.stmt.value] if isinstance(e.stmt, (ir.Pop, ir.Free)) else [])):
                self._set(f"freed {e.agent} {name}", int(isinstance(e.stmt, ir.Free)))

    def _sent(self, e: Effect, mine: Unknown, task: Term | None) -> None:
        """What a push, pop or free leaves behind."""
        release = self.rules.release
        for n, lane in e.rings:
            ring, batch = f"{n} {lane}", self.rules.ring(n).batch
            if isinstance(e.stmt, ir.Push):
                self._set(f"pushed {ring}", (self.numbers.get(f"pushed {ring}", 0) + 1) % batch)
                self.queues.setdefault(f"message {ring}", []).append(dict(mine))
                self.rounds.setdefault(f"message {ring}", []).append(task)
            elif release is ir.Free:
                step = 1 if isinstance(e.stmt, ir.Pop) else -1
                self._set(f"popped {ring}", self.numbers.get(f"popped {ring}", 0) + step)
            if isinstance(e.stmt, release):
                self._set(f"released {ring}", (self.numbers.get(f"released {ring}", 0) + 1) % batch)
                if not self.numbers.get(f"released {ring}"):
                    self.queues.setdefault(f"credit {ring}", []).append(dict(mine))

    def meet(self) -> None:
        """All agents stand at sync_all: everybody learns what anybody knows."""
        for pipe in self.pipes:
            if pipe.endswith(".S"):
                self.pipes[pipe] = joined(self.pipes.values())

    def finish(self) -> None:
        """Check that nothing is left over.  Raises Rejected."""
        left = [queue for queue, tokens in self.queues.items() if tokens and not queue.startswith("credit ")]
        left += [key for key in self.numbers if key.startswith(("up ", "held ", "popped "))]
        if left:
            raise Rejected(f"left over at the end: {left[0]}")
