"""Does a transformed kernel still mean what the kernel before the transformation meant?

Both texts are given; how one was made from the other is not known.  Messages and stores are compared by value: by what
computed them, down to inputs and offsets.  A pop is recognised by what is done with the message that it takes.

One run per kernel proves something only where there is one run, and where values are all that matters: what memory
holds is followed by names, so that memory with several names or several users leaves the question open.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.after_skew import judge
from fencepost.facts import Fact
from fencepost.findings import Related
from fencepost.history import Past, aliased, last_store, past, same_past, shared_tensors, unfollowed
from fencepost.model.executor import LimitReached, Run, run
from fencepost.model.inputs import used_names
from fencepost.model.program import Compiled, compile_kernel, constant
from fencepost.model.shapes import Shape, shapes, uses_functions
from fencepost.model.values import Computed, Event, Fifo, Received, Sent, Values, is_store, trace
from fencepost.narrowed import narrowed
from fencepost.passes.canonical import canonical
from fencepost.passes.skew import SkewError
from fencepost.passes.skew.identity import Marked, mark
from fencepost.phrases import plural
from fencepost.search import Seen

_LIMIT = 200_000
_RUNS = 200


@dataclass(frozen=True, slots=True)
class Translation:
    """How a kernel compares with the one before the transformation.

    `seen` are differences with the smallest shape that shows them.  `proved` says that there are none for any parameter
    values; `evidence` says why, or what was tried.
    """

    proved: bool
    evidence: str
    seen: tuple[Seen, ...] = ()


def compare(before: ir.Kernel, after: ir.Kernel, deadline: float) -> Translation:
    """Compare two valid kernels; `deadline` is in the terms of `time.monotonic`.

    Raises:
        ModelError: one of them cannot be modelled.
    """
    for text in (before, after):
        for gap in ir.walk(text):
            if isinstance(gap, ir.Unsupported):
                return Translation(False, f"line {gap.span.line} could not be read: {gap.reason}")
    if sorted(before.parameters) != sorted(after.parameters):
        return Translation(False, "the two texts have different parameters")
    cover = narrowed(before, after, deadline)
    if cover.fact is not None:
        seen = Seen(cover.fact, Shape(tuple(0 for _ in after.parameters)), [])
        return Translation(False, "the text covers fewer values than the text before", (seen,))
    result = _compare(before, after, deadline)
    return replace(result, proved=False, evidence=cover.open) if result.proved and cover.open else result


def _compare(before: ir.Kernel, after: ir.Kernel, deadline: float) -> Translation:
    """Compare what two kernels with the same parameters do, for the values that the first one assumes."""
    form = canonical(after)
    if canonical(before) == form:
        return Translation(True, "both texts are the same up to names")
    try:
        judgement = judge(before, deadline)
        kept = not judgement.seen and judgement.undecided is None
        if kept and canonical(judgement.skewed.kernel) == form:
            return Translation(True, "the text is the skew of the text before, which keeps the order for all values")
    except SkewError:
        pass
    return _Comparison(before, after, deadline).run()


@dataclass(slots=True)
class _Side:
    """One kernel on one shape: what each agent did, and the values that passed over each ring."""

    events: dict[str, list[Event]]
    sent: dict[tuple[str, Fifo], list[Sent]] = field(default_factory=dict)
    received: dict[tuple[str, Fifo], list[Received]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for agent, events in self.events.items():
            for event in events:
                if isinstance(event, Sent):
                    self.sent.setdefault((agent, event.fifo), []).append(event)
                elif isinstance(event, Received):
                    self.received.setdefault((agent, event.fifo), []).append(event)

    @property
    def counts(self) -> dict[tuple[str, tuple[str, Fifo]], int]:
        """How many messages each agent sends and takes on each ring."""
        found = {("sent", key): len(events) for key, events in self.sent.items()}
        return found | {("taken", key): len(events) for key, events in self.received.items()}


class _Comparison:
    def __init__(self, before: ir.Kernel, after: ir.Kernel, deadline: float) -> None:
        self.marked = mark(before)
        self.before, self.after = compile_kernel(self.marked.kernel), compile_kernel(after)
        self.deadline = deadline

    def run(self) -> Translation:
        if sorted(self.before.parameters) != sorted(self.after.parameters):  # `block` is one where a text uses it
            return Translation(False, "the two texts have different parameters")
        tried, reason = 0, ""
        for shape in shapes(self.before, used_names(self.after)):
            if tried >= _RUNS or time.monotonic() > self.deadline:
                break
            try:
                found, reason = self._shape(shape)
            except LimitReached:
                break
            tried += 1
            unsure = (aliased(self.before) or aliased(self.after)) if found else ""
            if unsure:
                return Translation(False, f"values that are followed by name differ, but {unsure}")
            if found:
                runs = self._runs(shape)
                facts = tuple(Seen(fact, self._reordered(shape), runs) for fact in found)
                return Translation(False, "messages or stored values differ", facts)
        else:
            closed = not any(side.parameters or uses_functions(side.kernel) for side in (self.before, self.after))
            if closed and tried == 1:
                reason = reason or unfollowed(self.before) or unfollowed(self.after)
                if not reason:
                    evidence = "same messages in the same order and same stored values, in the only shape"
                    return Translation(True, evidence)
                return Translation(False, f"no difference in the only shape, but {reason}")
        return Translation(
            False, f"same messages and same stored values for {plural(tried, 'shape')}, not shown for all values"
        )

    def _reordered(self, shape: Shape) -> Shape:
        """The shape in the order of the parameters of the transformed kernel."""
        given = dict(zip(self.before.parameters, shape.values, strict=True))
        return replace(shape, values=tuple(given[p] for p in self.after.parameters))

    def _runs(self, shape: Shape) -> list[Run]:
        other = self._reordered(shape)
        values = dict(zip(self.after.parameters, other.values, strict=True))
        return [run(self.after, values, other.table(), limit=_LIMIT)]

    def _shape(self, shape: Shape) -> tuple[list[Fact], str]:
        """The first difference on a shape; if there is none, why the runs may still not be the same ("": they are)."""
        values = Values()
        was = _side(self.before, shape, values)
        now = _side(self.after, self._reordered(shape), values)
        agents = sorted(was.events.keys() | now.events.keys())
        meant = {a: _meaning(was.events.get(a, []), now.events.get(a, []), values) for a in agents}
        rings = _lanes(self.before) | _lanes(self.after)
        for fifo, count in rings.items():
            sides: list[list[str]] = [["aic"], [f"aiv{lane}" for lane in range(count)]]
            senders, receivers = sides if fifo[0] == "cube" else sides[::-1]
            for sender in senders:
                for receiver in receivers:
                    fact = _ring(fifo, sender, receiver, was, now, meant, values, self.marked)
                    if fact is not None:
                        return [fact], ""
        for agent in agents:
            fact = _stores(agent, was, now, meant[agent], values)
            if fact is not None:
                return [fact], ""
        pasts = [_pasts(was, {}, values), _pasts(now, meant, values)]
        for agent in agents:
            fact = last_store(pasts[0].get(agent, {}), pasts[1].get(agent, {}))
            if fact is not None:
                return [fact], ""
        if was.counts != now.counts or _lanes(self.before) != _lanes(self.after):
            return [], "not the same fifos or the same number of messages"
        for agent in agents:
            before, after = pasts[0].get(agent, {}), pasts[1].get(agent, {})
            for tensor in sorted(before.keys() | after.keys()):
                if not same_past(before.get(tensor, []), after.get(tensor, [])):
                    return [], f"{tensor} is not stored to and read in the same order"
        return [], next((f"both cores use {name}" for side in pasts for name in shared_tensors(side)), "")


def _pasts(side: _Side, meant: dict[str, Meaning], values: Values) -> dict[str, Past]:
    """For every agent what it does with its tensors, messages named as in the text before."""
    found: dict[str, Past] = {}
    for agent, events in side.events.items():
        meaning = meant.get(agent, {})
        found[agent] = past(events, lambda number, known=meaning: _replaced(number, known, values), values)  # type: ignore[misc]
    return found


def _side(compiled: Compiled, shape: Shape, values: Values) -> _Side:
    agents = [p.agent for p in compiled.programs]
    table = shape.table()
    return _Side({agent: trace(compiled, agent, shape.values, table, values, _LIMIT) for agent in agents})


def _lanes(compiled: Compiled) -> dict[Fifo, int]:
    return {(f.sender, constant(f.id, compiled.scalars, "fifo id")): f.lanes for f in compiled.kernel.fifos}


# ------------------------------------------------------------------------------------------------ meaning of pops

Meaning = dict[int, int]
"""For messages of the transformed program (numbers of their values): the message of the program before."""


def _outputs(events: Sequence[Event]) -> list[tuple[Hashable, tuple[int, ...]]]:
    """What leaves an agent: its messages and its stores, each as a description and the values in it."""
    found: list[tuple[Hashable, tuple[int, ...]]] = []
    for event in events:
        if isinstance(event, Sent):
            found.append((("push", event.fifo), (event.value,)))
        elif isinstance(event, Computed) and is_store(event.stmt):
            found.append(((event.op, event.at), event.reads))
    return found


def _meaning(was: Sequence[Event], now: Sequence[Event], values: Values) -> Meaning:
    """Find for each pop the pop of the program before that it is: the one whose message is used alike.

    If the agent puts out the same values when message k counts as message k, that is the answer.  Otherwise pops are
    matched by the outputs that use them, each with this message marked and other messages anonymous; equal ones in
    order.
    """
    before, after = _outputs(was), _outputs(now)
    if Counter(before) == Counter(after):
        return {}
    uses = [_uses(outputs, values) for outputs in (before, after)]
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for event in was:
        if isinstance(event, Received):
            waiting[event.fifo, uses[0].get(event.value, frozenset())].append(event.value)
    found: Meaning = {}
    for event in now:
        if isinstance(event, Received):
            candidates = waiting[event.fifo, uses[1].get(event.value, frozenset())]
            found[event.value] = candidates.pop(0) if candidates else -1
    return found


def _uses(outputs: list[tuple[Hashable, tuple[int, ...]]], values: Values) -> dict[int, Hashable]:
    """For every message: the outputs that use it, as a multiset."""
    found: dict[int, Counter[Hashable]] = defaultdict(Counter)
    for what, parts in outputs:
        for message in _messages(parts, values):
            renamed = {m: values.number("another message") for m in _messages(parts, values)}
            renamed[message] = values.number("this message")
            found[message][what, tuple(_replaced(part, renamed, values) for part in parts)] += 1
    return {message: frozenset(uses.items()) for message, uses in found.items()}


def _parts(number: int, values: Values) -> tuple[int, ...]:
    match values.description(number):
        case (str(), tuple(), tuple() as sources, int()):
            return sources
    return ()


def _below(numbers: Sequence[int], values: Values) -> list[int]:
    """All values that make up some values, parts first."""
    seen: set[int] = set()
    stack = list(numbers)
    while stack:
        number = stack.pop()
        if number not in seen:
            seen.add(number)
            stack.extend(_parts(number, values))
    return sorted(seen)  # a value is numbered after its parts


def _messages(numbers: Sequence[int], values: Values) -> list[int]:
    return [n for n in _below(numbers, values) if _is_message(values.description(n))]


def _is_message(description: Hashable) -> bool:
    return isinstance(description, tuple) and len(description) == 3 and description[0] == "message"


def _replaced(number: int, renamed: dict[int, int], values: Values) -> int:
    """A value with some values in it replaced by others."""
    new: dict[int, int] = {}
    for n in _below((number,), values):
        if n in renamed:
            new[n] = renamed[n]
            continue
        match values.description(n):
            case (str() as op, tuple() as at, tuple() as sources, int() as result):
                new[n] = values.number((op, at, tuple(new[s] for s in sources), result))
            case _:
                new[n] = n
    return new[number]


# ------------------------------------------------------------------------------------------------ comparison


def _ring(
    fifo: Fifo,
    sender: str,
    receiver: str,
    was: _Side,
    now: _Side,
    meant: dict[str, Meaning],
    values: Values,
    marked: Marked,
) -> Fact | None:
    """The first message of a ring that is not the one that its receiver means."""
    pushed, popped = now.sent.get((sender, fifo), []), now.received.get((receiver, fifo), [])
    before = was.sent.get((sender, fifo), [])
    ranks = {event.value: event.rank for event in was.received.get((receiver, fifo), [])}
    for push, pop in zip(pushed, popped, strict=False):
        message = meant[receiver].get(pop.value, pop.value)
        rank = ranks.get(message)
        if rank is None:
            return _fact(fifo, pop, push, None, "is used in a way that the text before knows no message for")
        if rank >= len(before):
            continue  # the program before does not send so many messages: a matter of counts
        wanted = before[rank]
        carried = _replaced(push.value, meant[sender], values)
        if carried != wanted.value:
            source = next((event for event in before if event.value == carried), None)
            came = "a message that the text before does not send" if source is None else _named(source, marked)
            return _fact(fifo, pop, push, wanted, f"receives {came}; {_named(wanted, marked)} is meant")
    return None


def _named(event: Sent, marked: Marked) -> str:
    assert event.task is not None
    message = marked.message(event.task)
    values = ", ".join(f"{name} = {value}" for name, value in message.iteration)
    return event.stmt.value + (f" of {values}" if values else "")


def _fact(fifo: Fifo, pop: Received, push: Sent, wanted: Sent | None, text: str) -> Fact:
    peer = "vector" if fifo[0] == "cube" else "cube"
    ring = f"{fifo[0]} -> {peer}" + (f" id {fifo[1]}" if fifo[1] else "")
    detail = f"pop number {pop.rank} of the ring {ring} ({pop.stmt.value}) {text}"
    related = [Related(push.stmt.span, "this message arrives")]
    if wanted is not None:
        related.append(Related(wanted.stmt.span, "this one is meant"))
    return Fact("701", pop.stmt.span, (("detail", detail),), tuple(related), ("translation", fifo))


def _stores(agent: str, was: _Side, now: _Side, meant: Meaning, values: Values) -> Fact | None:
    """The first store of an agent that the program before does not do."""
    known: Counter[Hashable] = Counter()
    for event in was.events.get(agent, []):
        if isinstance(event, Computed) and is_store(event.stmt):
            known[event.op, event.at, event.reads] += 1
    for event in now.events.get(agent, []):
        if isinstance(event, Computed) and is_store(event.stmt):
            reads = tuple(_replaced(number, meant, values) for number in event.reads)
            if not known[event.op, event.at, reads]:
                place = ", ".join(map(str, event.at))
                detail = f"{event.op} at ({place}) of {agent} stores a value that the text before does not store there"
                return Fact("701", event.stmt.span, (("detail", detail),), (), ("translation store", agent))
            known[event.op, event.at, reads] -= 1
    missing = next((key for key, count in known.items() if count), None)
    if missing is not None:
        stmt = next(
            e.stmt
            for e in was.events[agent]
            if isinstance(e, Computed) and is_store(e.stmt) and (e.op, e.at, e.reads) == missing
        )
        detail = f"a {stmt.op} of {agent} in the text before is not done any more"
        return Fact("701", stmt.span, (("detail", detail),), (), ("translation store", agent))
    return None


__all__ = ["Translation", "compare"]
