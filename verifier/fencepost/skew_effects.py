"""Which effects that give no value does the skew take out of their order?

The pass follows values only.  A store and a load of the same place in GM, or a wait that stands before a load, are tied
by no value: the load runs ahead of the store of an earlier iteration, and the wait no longer comes first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from fencepost import ir
from fencepost.facts import Fact
from fencepost.findings import Related, Severity
from fencepost.model.executor import LimitReached
from fencepost.model.program import Compiled, compile_kernel
from fencepost.model.shapes import Shape, shapes
from fencepost.model.values import Computed, Values, is_store, trace
from fencepost.passes.skew import LoopOutcome, Skew
from fencepost.passes.skew.identity import Marked, Message, mark

_LIMIT = 200_000
_RUNS = 60

_GUARDS = (ir.WaitCross, ir.SyncDst, ir.Barrier, ir.SyncAll, ir.MutexLock)


@dataclass(frozen=True, slots=True)
class Stale:
    """A load that, after the skew, no longer sees the store that it sees in the kernel as written."""

    fact: Fact
    shape: Shape


def moved(outcome: LoopOutcome) -> Iterator[Fact]:
    """Warnings about a skewed loop: waits and barriers that the text puts before the produce half."""
    if outcome.halves is None or outcome.action != "skewed":
        return
    produce = set(outcome.halves.produce)
    for index, stmt in enumerate(outcome.body):
        later = [i for i in produce if i > index]
        if index in produce or not later:
            continue
        for node in ir.walk(stmt):
            if isinstance(node, _GUARDS):
                first = outcome.body[min(later)]
                detail = (
                    "this wait or barrier gives no value, so the skew leaves it behind: after the skew the statements "
                    f"that follow it in the text, from line {first.span.line} on, run before it"
                )
                related = (Related(first.span, "runs ahead after the skew"),)
                values = (("detail", detail),)
                yield Fact("705", node.span, values, related, ("moved", node.span), Severity.WARNING, static=True)
                break


def stale(kernel: ir.Kernel, deadline: float) -> Stale | None:
    """The first load that sees another store of the same place after the skew, on the smallest shape; None if there is
    none on the shapes tried.

    Only accesses with equal coordinates are compared; regions that overlap otherwise are not found.
    """
    before = mark(kernel)
    compiled = compile_kernel(before.kernel)
    skewed = compile_kernel(Skew().run(before.kernel).kernel)
    if not _stores_and_loads(kernel):
        return None
    for count, shape in enumerate(shapes(compiled)):
        if count >= _RUNS or time.monotonic() > deadline:
            return None
        try:
            found = _difference(before, compiled, skewed, shape)
        except LimitReached:
            return None
        if found is not None:
            return Stale(found, shape)
    return None


def _stores_and_loads(kernel: ir.Kernel) -> bool:
    """Whether some name is both the tensor of a store and read by another operation."""
    buffers = {b.name for b in kernel.buffers}
    operations = [n for n in ir.walk(kernel) if isinstance(n, ir.DataOp)]
    stored = {n.reads[-1].name for n in operations if is_store(n) and len(n.reads) > 1} - buffers
    return bool(stored) and any(not is_store(n) and n.op != "copy" for n in operations)


def _difference(before: Marked, compiled: Compiled, skewed: Compiled, shape: Shape) -> Fact | None:
    for program in compiled.programs:
        was, place = _sources(compiled, program.agent, shape)
        now, _ = _sources(skewed, program.agent, shape)
        for load, source in was.items():
            other = now.get(load, source)
            if other == source:
                continue
            early = source is None or (other is not None and place[other] > place[load])
            store = other if early else source
            assert store is not None
            return _fact(before.message(load), before.message(store), early)
    return None


def _sources(compiled: Compiled, agent: str, shape: Shape) -> tuple[dict[int, int | None], dict[int, int]]:
    """For every load of an input tensor at some coordinates the last store there before it, and everything's place."""
    values = Values()
    last: dict[tuple[int, tuple[int, ...]], int] = {}
    found: dict[int, int | None] = {}
    place: dict[int, int] = {}
    for number, event in enumerate(trace(compiled, agent, shape.values, shape.table(), values, _LIMIT)):
        if not isinstance(event, Computed) or event.task is None or not event.at or not event.reads:
            continue
        tensor = event.reads[-1] if is_store(event.stmt) else event.reads[0]
        description = values.description(tensor)
        if not isinstance(description, tuple) or description[0] != "input":
            continue
        place[event.task] = number
        if is_store(event.stmt):
            last[tensor, event.at] = event.task
        else:
            found[event.task] = last.get((tensor, event.at))
    return found, place


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
