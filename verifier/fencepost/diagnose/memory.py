"""Memory faults: what are an unordered access, a wrong slot and a bad value called? (rows 1, 2, 6; 208, 602)"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fencepost import ir
from fencepost.diagnose import repair
from fencepost.diagnose.repair import Repairs
from fencepost.diagnose.roles import Protocol
from fencepost.diagnose.texts import describe, family
from fencepost.facts import Fact
from fencepost.findings import Related, Severity
from fencepost.model.effects import Touch
from fencepost.model.executor import Op, Race, Run


def values(run: Run) -> Iterator[Fact]:
    """Rows 1 and 6: indices out of range, bad operands, false assertions, illegal ids and modes."""
    for bad in run.bad_values:
        match bad.kind:
            case "negative" | "zero":
                yield Fact("104", bad.span, (("detail", bad.message), ("agent", bad.agent)), cause=bad.kind)
            case "index":
                numbers = [w for w in bad.message.replace("of", " ").split() if w.lstrip("-").isdigit()]
                kind = "event tuple" if "tuple" in bad.message else "record ring"
                place = (("name", f"a {kind}"), ("index", numbers[0]), ("depth", numbers[-1]), ("agent", bad.agent))
                yield Fact("101", bad.span, place)
            case "assert":
                yield Fact("105", bad.span, (("condition", "the asserted condition"), ("agent", bad.agent)))
    for op in run.outside:
        for access, index in op.effect.out_of_range:
            depth = run.resolver.layout.depths[access.name]
            where = (("name", access.name), ("index", str(index)), ("depth", str(depth)), ("agent", op.effect.agent))
            yield Fact("101", access.span if access.span.line else op.stmt.span, where)
    for op in run.illegal:
        for illegal in op.effect.illegal:
            code = {"range": "603", "reserved": "604", "mode": "605", "lane": "603"}[illegal.kind]
            yield Fact(code, op.stmt.span, (("detail", illegal.message),))


def races(run: Run, protocol: Protocol, repairs: Repairs) -> Iterator[Fact]:
    """Rows 2 and 6: accesses without an order, each under the most specific name that a repair proves."""
    pairs: set[tuple[int, int]] = set()
    for race in run.races:
        first, second = race.first, race.second
        if (id(first.stmt), id(second.stmt)) in pairs:
            continue
        pairs |= {(id(first.stmt), id(second.stmt)), (id(second.stmt), id(first.stmt))}
        if _phased_pair(race):
            continue  # reported by the phases row (801)
        yield _race(run, race, protocol, repairs)
    named = {id(r.first.stmt) for r in run.races} | {id(r.second.stmt) for r in run.races}
    for unwritten in run.unwritten:
        if id(unwritten.op.stmt) in named:
            continue
        named.add(id(unwritten.op.stmt))
        data = (
            ("buffer", unwritten.touched.access.name),
            ("slot", str(unwritten.touched.slot)),
            ("reader", describe(unwritten.op)),
            ("writer", "any write"),
        )
        yield Fact("201", unwritten.op.stmt.span, data, cause=("unwritten", unwritten.touched.access.name))


def _phased_pair(race: Race) -> bool:
    """One side of an accumulator hand-over has a phase and the other none."""
    one, two = race.first.effect, race.second.effect
    return one.agent == two.agent and (one.phase is None) != (two.phase is None)


def _race(run: Run, race: Race, protocol: Protocol, repairs: Repairs) -> Fact:
    first, second, touch = race.first, race.second, race.touched
    cause = ("race", first.stmt.span, second.stmt.span)
    where = (("buffer", touch.access.name), ("slot", str(touch.slot)))
    both = (("first", describe(first)), ("second", describe(second)))
    if first.effect.agent == second.effect.agent:
        related = (Related(first.stmt.span, f"the other access: {describe(first)}"),)
        data = (*where, *both, ("agent", first.effect.agent))
        return Fact("208", second.stmt.span, data, related, cause)
    if {first.effect.agent, second.effect.agent} == {"aiv0", "aiv1"}:
        related = (Related(first.stmt.span, f"the other access: {describe(first)}"),)
        return Fact("602", second.stmt.span, (*where, *both), related, cause)
    if race.kind == "write-write":
        related = (Related(first.stmt.span, f"the other write: {describe(first)}"),)
        return Fact("203", second.stmt.span, (*where, *both), related, cause)
    writer, reader = (first, second) if race.kind == "write-read" else (second, first)
    named = _named(run, race, writer, reader, repairs, where, cause)
    if named is not None:
        return named
    data = (*where, ("reader", describe(reader)), ("writer", describe(writer)))
    if _means(race, writer, reader):
        related = (Related(writer.stmt.span, f"the write: {describe(writer)}"),)
        return Fact("201", reader.stmt.span, data, related, cause)
    related = (Related(reader.stmt.span, f"the read: {describe(reader)}"),)
    return Fact("202", writer.stmt.span, data, related, cause)


def _means(race: Race, writer: Op, reader: Op) -> bool:
    """Whether the reader means the value of this very write (201), or an earlier one that is destroyed (202)."""
    if writer.task is not None and reader.task is not None:
        return writer.task == reader.task
    return race.writes <= race.uses


def _named(
    run: Run, race: Race, writer: Op, reader: Op, repairs: Repairs, where: tuple[tuple[str, str], ...], cause: object
) -> Fact | None:
    """204, 205 or 207: the sync operation whose move or pipe repairs the race, if one does."""
    faults: repair.Signature = frozenset(
        {("race", id(race.first.stmt), id(race.second.stmt)), ("unwritten", id(reader.stmt))}
    )
    candidates = list(_candidates(repairs.kernel, writer, reader))
    for accept in (repairs.whole, lambda edited: repairs.part(edited, faults)):
        for code, sync, access, edited, extra in candidates:
            if not accept(edited):
                continue
            text = describe_stmt(sync)
            data = (("sync", text), ("access", describe(access)), *where, *extra)
            related = tuple(
                Related(op.stmt.span, f"the {word}: {describe(op)}")
                for op, word in ((writer, "write"), (reader, "read"))
            )
            return Fact(code, sync.span, data, related, cause)
    return None


Candidate = tuple[str, ir.Stmt, Op, ir.Kernel, tuple[tuple[str, str], ...]]


def _candidates(kernel: ir.Kernel, writer: Op, reader: Op) -> Iterator[Candidate]:
    ends = (writer, reader)
    for access in ends:
        for sync in repair.syncs(kernel, repair.core_of(access.effect.agent)):
            if isinstance(sync, (ir.SetCross, ir.SyncSrc)):
                edited = repair.moved_behind(kernel, sync, access.stmt)
                if edited is not None:
                    yield "204", sync, access, edited, ()
            else:
                edited = repair.moved_before(kernel, sync, access.stmt)
                if edited is not None:
                    yield "205", sync, access, edited, ()
    for access in ends:
        yield from _other_pipes(kernel, access)


def _other_pipes(kernel: ir.Kernel, access: Op) -> Iterator[Candidate]:
    pipe = access.effect.pipe[1]
    crosses = [
        s
        for s in repair.syncs(kernel, repair.core_of(access.effect.agent))
        if isinstance(s, (ir.SetCross, ir.WaitCross))
    ]
    for sync in crosses:
        if sync.pipe == pipe:
            continue
        extra = (("pipe", sync.pipe), ("needed", pipe))
        yield "207", sync, access, repair.replace_statement(kernel, {id(sync): replace(sync, pipe=pipe)}), extra
        family = [s for s in crosses if type(s) is type(sync) and _base(s.id) == _base(sync.id) and s.pipe != pipe]
        if len(family) > 1:
            changes: dict[int, ir.Stmt] = {id(s): replace(s, pipe=pipe) for s in family}
            anchor = next((s for s in family if contains_near(kernel, s, access)), sync)
            yield "207", anchor, access, repair.replace_statement(kernel, changes), extra


def contains_near(kernel: ir.Kernel, sync: ir.Stmt, access: Op) -> bool:
    """Whether `sync` stands in the same statement list as the access, or in one around it."""
    return any(
        any(s is sync for s in body) and any(repair.contains(s, access.stmt) for s in body)
        for body in repair.bodies(kernel)
    )


def _base(expr: ir.Expr) -> object:
    return expr.name if isinstance(expr, ir.Item) else expr


def id_text(expr: ir.Expr) -> str:
    match expr:
        case ir.Int(value=value):
            return str(value)
        case ir.Name(id=name):
            return name
        case ir.Item(name=name):
            return f"{name}[...]"
    return "?"


def describe_stmt(stmt: ir.Stmt) -> str:
    """A synchronisation statement in words: `set_cross_core READY[...] on FIX`."""
    match stmt:
        case ir.SetCross() | ir.WaitCross():
            word = "set_cross_core" if isinstance(stmt, ir.SetCross) else "wait_cross_core"
            return f"{word} {id_text(stmt.id)} on {stmt.pipe}"
        case ir.SyncSrc() | ir.SyncDst():
            word = "sync_src" if isinstance(stmt, ir.SyncSrc) else "sync_dst"
            return f"{word} {id_text(stmt.id)}: {stmt.source} -> {stmt.target}"
    return type(stmt).__name__


def pairings(run: Run, protocol: Protocol) -> Iterator[Fact]:
    """303 and 305: the signal that a racing read waits for announces another buffer."""
    seen: set[int] = set()
    reads = [(r.second, r.touched) if r.kind == "write-read" else (r.first, r.first_touched) for r in run.races]
    reads += [(u.op, u.touched) for u in run.unwritten]
    for reader, touch in reads:
        wait = next(
            (
                op
                for op in reversed(run.issued[reader.effect.agent][: reader.number])
                if isinstance(op.stmt, ir.WaitCross)
            ),
            None,
        )
        if wait is None or id(wait.stmt) in seen:
            continue
        announced = protocol.announced(wait)
        if not announced or any(
            set(t.cells) & set(touch.cells) or t.access.name == touch.access.name for _, t in announced
        ):
            continue
        seen.add(id(wait.stmt))
        yield _wrong_partner(run, protocol, wait, reader, touch, announced[0])


def _wrong_partner(
    run: Run, protocol: Protocol, wait: Op, reader: Op, touch: Touch, announced: tuple[Op, Touch]
) -> Fact:
    writer, theirs = announced
    number = wait.effect.waits[0]
    setters = protocol.sets.get(number, [])
    name = str(run.channels[number])
    related = (Related(writer.stmt.span, f"announced by it: {describe(writer)}"),)
    others = {id(s.stmt): s for s in setters}
    if len(others) > 1:
        first, second = list(others.values())[:2]
        data = (("channel", name), ("first", describe(first)), ("second", describe(second)))
        return Fact("305", wait.stmt.span, data, related, ("pairing", family(wait)))
    detail = f"the signal announces {theirs.access.name}, but {describe(reader)} reads {touch.access.name} after it"
    pair = (("sync", describe(wait)), ("channel", name), ("detail", detail))
    return Fact("303", wait.stmt.span, pair, related, ("pairing", family(wait)))


# ------------------------------------------------------------------------------------------------ slots and rounds


def slots(run: Run, protocol: Protocol) -> Iterator[Fact]:
    """Row 1: producer and consumer of one round use different slots (102), by a cursor (103)."""
    yield from annotated(run)
    if not run.clean:
        yield from _signalled(run, protocol)
    else:
        yield from _swapped(run)


def annotated(run: Run) -> Iterator[Fact]:
    """Compare slots round by round where both sides carry `task =`."""
    written: dict[tuple[str, int], dict[str, list[tuple[Op, Touch]]]] = {}
    for agent, ops in run.issued.items():
        for op in ops:
            if op.task is not None:
                for touch in op.effect.writes:
                    key = (touch.access.name, op.task)
                    written.setdefault(key, {}).setdefault(agent, []).append((op, touch))
    seen: set[tuple[int, int]] = set()
    for agent, ops in run.issued.items():
        for op in ops:
            if op.task is None:
                continue
            for touch in op.effect.reads:
                for other, writes in written.get((touch.access.name, op.task), {}).items():
                    if repair.core_of(other) == repair.core_of(agent):
                        continue
                    if any(set(touch.cells) & set(w.cells) for _, w in writes):
                        continue
                    writer, their = writes[-1]
                    if (id(op.stmt), id(writer.stmt)) not in seen:
                        seen.add((id(op.stmt), id(writer.stmt)))
                        yield _disagreement(run, op, touch, writer, their, str(op.task))


def _signalled(run: Run, protocol: Protocol) -> Iterator[Fact]:
    """Compare slots round by round where only the signals say what a round is."""
    seen: set[int] = set()
    for ops in run.issued.values():
        wait: Op | None = None
        for op in ops:
            if isinstance(op.stmt, ir.WaitCross):
                wait = op
            elif wait is not None and op.task is None and id(op.stmt) not in seen:
                announced = protocol.announced(wait)
                for touch in op.effect.reads:
                    same = [(w, t) for w, t in announced if t.access.name == touch.access.name and w.task is None]
                    if not same or any(set(touch.cells) & set(t.cells) for _, t in same):
                        continue
                    if op.seq == 0 or not _suspicious(run, op):
                        continue
                    seen.add(id(op.stmt))
                    writer, their = same[0]
                    yield _disagreement(run, op, touch, writer, their, "announced by the signal before it")


def _suspicious(run: Run, op: Op) -> bool:
    """Whether the read `op` takes part in an unordered or unwritten access, or the run hangs or leaves signals."""
    return bool(
        run.blocked
        or run.leftovers
        or any(u.op.stmt is op.stmt for u in run.unwritten)
        or any(r.first.stmt is op.stmt or r.second.stmt is op.stmt for r in run.races)
    )


def _swapped(run: Run) -> Iterator[Fact]:
    """A clean run in which a consumer takes the rounds of a buffer in another order than they were produced."""
    produced: dict[tuple[str, str], int] = {}
    number: dict[int, int] = {}
    latest: dict[int, Op] = {}
    progress: dict[tuple[str, str], tuple[int, Op]] = {}
    observed: set[tuple[str, str, int]] = set()
    for op in run.order:
        for touch in op.effect.reads:
            writer = latest.get(touch.cells[0]) if touch.cells else None
            if writer is None or repair.core_of(writer.effect.agent) == repair.core_of(op.effect.agent):
                continue
            if op.task is not None and writer.task is not None:
                continue
            key = (op.effect.agent, touch.access.name)
            n = number[id(writer)]
            if (*key, n) in observed:
                continue
            observed.add((*key, n))
            before = progress.get(key)
            if before is not None and before[0] > n and before[1].stmt is op.stmt:
                slot = str(touch.slot)
                data = (
                    ("sync", describe(op)),
                    ("channel", f"{touch.access.name}[{slot}]"),
                    ("detail", "every access is ordered, but tiles are taken in another order than they were produced"),
                )
                related = (Related(writer.stmt.span, f"the write: {describe(writer)}"),)
                yield Fact("303", op.stmt.span, data, related, ("order", touch.access.name), Severity.WARNING)
                return
            progress[key] = (n, op)
        for touch in op.effect.writes:
            name = (op.effect.agent, touch.access.name)
            produced[name] = produced.get(name, 0) + 1
            number[id(op)] = produced[name]
            for cell in touch.cells:
                latest[cell] = op


def _disagreement(run: Run, reader: Op, touch: Touch, writer: Op, their: Touch, round_: str) -> Fact:
    by_cursor = _from_cursor(run, reader, touch) or _from_cursor(run, writer, their)
    data = (
        ("buffer", touch.access.name),
        ("slot", str(touch.slot)),
        ("other_slot", str(their.slot)),
        ("agent", reader.effect.agent),
        ("other_agent", writer.effect.agent),
        ("round", round_),
    )
    related = (Related(writer.stmt.span, f"the write of the same round: {describe(writer)}"),)
    return Fact("103" if by_cursor else "102", reader.stmt.span, data, related, ("slot", touch.access.name))


def _from_cursor(run: Run, op: Op, touch: Touch) -> bool:
    """Whether the slot of an operand is a name that a cursor of its agent's program sets."""
    core = repair.core_of(op.effect.agent)
    names: set[str] = set()
    for item in run.compiled.kernel.body:
        if not isinstance(item, ir.Section) or item.core == core:
            names |= {n.name for n in ir.walk(item) if isinstance(n, ir.Cursor)}
    index = touch.access.index
    return index is not None and any(isinstance(n, ir.Name) and n.id in names for n in ir.walk(index))
