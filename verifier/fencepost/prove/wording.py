"""Wording: what do people read about a proof by closed forms?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fencepost import ir
from fencepost.findings import Row
from fencepost.model.effects import Channel
from fencepost.printer import print_statement
from fencepost.prove.discharge import Outcome, Route
from fencepost.prove.events import Event
from fencepost.prove.formulas import Formulas
from fencepost.prove.hops import Hop, Spot
from fencepost.prove.kernels import Closed
from fencepost.prove.obligations import Order
from fencepost.prove.signals import AGENT_OF, total


@dataclass(frozen=True, slots=True)
class Count:
    """How many sets and waits a channel gets, as formulas in the parameters; `name` as in the kernel's text."""

    channel: Channel
    name: str
    sets: str
    waits: str

    def __str__(self) -> str:
        if self.sets == self.waits:
            return f"{self.name}: {self.sets} sets and waits"
        return f"{self.name}: {self.sets} sets, {self.waits} waits"


def counts(kernel: Closed) -> tuple[Count, ...]:
    """The formulas of every channel that is used."""
    write = Formulas(kernel.sums)
    names = _names(kernel)
    found = []
    for number, channel in enumerate(kernel.resolver.channels):
        sets = total(kernel, channel.sender, ("set", number))
        waits = total(kernel, channel.receiver, ("wait", number))
        used = any(e.can("sets", number) or e.can("waits", number) for t in kernel.traces.values() for e in t.events)
        if used:
            texts = write.term(sets), write.term(sets if sets == waits else waits)
            found.append(Count(channel, names.get(number, str(channel)), *texts))
    return tuple(found)


def _names(kernel: Closed) -> dict[int, str]:
    """`RELEASE[1]`: channels by the constant of the kernel that holds their id, where it is one."""
    found: dict[int, str] = {}
    for trace in kernel.traces.values():
        for event in trace.events:
            if not isinstance(event.stmt, (ir.SetCross, ir.WaitCross)):
                continue
            for _, effect in event.cases:
                name = _constant(kernel, event.stmt.id, effect.arguments[0])
                for number in (*effect.sets, *effect.waits):
                    if name is not None:
                        found.setdefault(number, name)
    return found


def _constant(kernel: Closed, expr: ir.Expr, value: int) -> str | None:
    match expr:
        case ir.Name(id=name) if name in kernel.compiled.scalars:
            return name
        case ir.Item(name=name):
            held = [e.value if isinstance(e, ir.Int) else None for e in kernel.compiled.tuples[name]]
            return f"{name}[{held.index(value)}]" if value in held else None
    return None


def summary(found: Iterable[Count], most: int = 6) -> str:
    """One line: channels with equal formulas together, the sub-cores as one."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for count in found:
        groups.setdefault((count.sets, count.waits), {})[count.name] = None
    texts = []
    for (sets, waits), names in groups.items():
        what = f"{sets} sets and waits" if sets == waits else f"{sets} sets, {waits} waits"
        texts.append(f"{', '.join(names)}: {what}")
    return "; ".join([*texts[:most], *(["..."] if len(texts) > most else [])])


# ------------------------------------------------------------------------------------------------ chains


def chain(route: Route) -> str:
    """How an order travels, hop by hop."""
    text = _place(route.one)
    here = route.one
    for hop in route.template:
        text += "".join(_steps(here, hop))
        here = hop.target.event
    return text if here is route.other else f"{text} -> {_place(route.other)}"


def _steps(here: Event, hop: Hop) -> Iterator[str]:
    if hop.source.event is not here:
        yield f" -> {_place(hop.source.event)}{_when(hop.source)}"
    yield f" => {_place(hop.target.event)}{_when(hop.target)}"


def _place(event: Event) -> str:
    agent, pipe = event.pipe
    words = print_statement(event.stmt).splitlines()[0].split(" @ ")[0].strip()
    return f"`{words}` on {pipe} of {agent}"


def _when(spot: Spot) -> str:
    match spot.find:
        case "shift" if spot.offset > 0:
            return f" ({spot.offset} later)"
        case "shift" if spot.offset < 0:
            return f" ({-spot.offset} earlier)"
        case "first":
            return f" (number {spot.offset + 1})"
        case "last" | "mirror":
            return " (counted from the end)"
        case "next":
            return " (the next one)"
    return ""


def chains(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """One line per pair of accesses, the shortest chain that orders it."""
    for outcome in outcomes:
        if isinstance(outcome.obligation.need, Order) and outcome.routes and outcome.obligation.group in _ORDERS:
            yield chain(min(outcome.routes, key=lambda r: len(r.template)))


_ORDERS = ("order", "lanes")


def evidence(kernel: Closed, row: Row, outcomes: list[Outcome]) -> str:
    """One line for a proved row."""
    shown = f"{len(outcomes)} obligations by closed forms"
    groups = [o.obligation.group for o in outcomes]
    match row:
        case Row.EVENT_POSITION:
            longest = max((r for o in outcomes for r in o.routes), key=lambda r: len(r.template), default=None)
            pairs = sum(g in _ORDERS for g in groups)
            told = f"; {chain(longest)}" if longest is not None else ""
            return f"{pairs} pairs of accesses ordered{told}; {shown}"
        case Row.PAIRING:
            return f"no circle among {groups.count('progress')} pairs of waits; {shown}"
        case Row.COUNTS:
            found = counts(kernel)
            return f"{summary(found)}; {shown}" if found else shown
    return shown


__all__ = ["AGENT_OF", "Count", "chain", "chains", "counts", "evidence", "summary"]
