"""Does a pipelined loop compute what the serial loop computes, for every trip count?

Two proofs are tried.  The dependence test (`order`) needs no knowledge of conditions and slots.  Where it fails, and
everything in the loop repeats, both programs are compared on symbolic values for all trip counts up to the horizon;
from there on every value comes from the same place in both, and more iterations only repeat what was seen.  A
difference is reported only for a trip count at which both programs were run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import product

from fencepost import ir
from fencepost.findings import Verdict
from fencepost.model.functions import FunctionTable
from fencepost.pipeline.explore import Exploration, Outcome, agreement, outcome
from fencepost.pipeline.horizon import Horizon, horizon
from fencepost.pipeline.model import Somewhere
from fencepost.pipeline.order import Lost, lost_order, repeats
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.sequence import Opaque
from fencepost.pipeline.setting import Setting
from fencepost.pipeline.trips import ANY_TRIPS, Trips, Unclear
from fencepost.pipeline.unknowns import few_trips_undecided, settled, unknown_parts, waits_undecided

_MAX_RUN = 20_000
"""Statements that a single run for a witness may execute."""

_MAX_SEARCH = 80_000
"""Statements that the runs for one trip count may execute in the search for a witness."""

_MAX_FURTHER = 6_000
"""Statements that runs for more trips may execute once a failure is known, to show other causes."""

_MAX_DEPTH = 500
"""Depth of a loop that is explored; the dependence test alone decides deeper ones."""

_FAR = 50
"""From this horizon on it pays to look first whether waits are strong enough whatever the conditions."""

_MAX_INVARIANTS = 4

_TABLES: tuple[tuple[int | None, int], ...] = ((None, 1), (None, 0), (0, 1), (1, 1), (2, 1), (0, 1 << 30))
"""Interpretations of unknown functions that the search for a witness tries: seed (None: all points alike), largest."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A trip count at which the programs were run and something went wrong, and the values that lead to it."""

    outcome: Outcome
    setting: Setting


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer for all trip counts.

    `evidence` says how it was proved, or what could not be decided.  `failures` are the smallest failing trip counts,
    in order, with whole histories.
    """

    verdict: Verdict
    evidence: str
    failures: tuple[Failure, ...] = ()


def decide(plan: Plan, trips: Trips = ANY_TRIPS, deadline: float | None = None) -> Decision:
    """Decide whether the pipelined loop is right for every possible trip count.

    `deadline` is a time of `time.monotonic()` after which no further trip count is tried.
    """
    if not plan.rewritten:
        stage = plan.slots[0].stage
        return Decision(Verdict.PROVED, f"all statements are in stage {stage}: the loop is kept in source order")
    try:
        invariants = _invariants(plan)
        if not invariants:
            return _decide(plan, trips, deadline)
        lost = lost_order(plan)
        if lost is None and waits_undecided(plan) is None and few_trips_undecided(plan, trips) is None:
            return Decision(Verdict.PROVED, _DEPENDENCES)
        if len(invariants) > _MAX_INVARIANTS:
            return Decision(Verdict.UNKNOWN, f"{len(invariants)} unknown conditions that do not change in the loop")
        return _by_cases(plan, trips, invariants, deadline)
    except Unclear as unclear:
        return Decision(Verdict.UNKNOWN, str(unclear))


def _invariants(plan: Plan) -> list[Opaque]:
    parts = (part for slot in plan.slots for part in unknown_parts(plan.statement(slot)))
    return [part for part in dict.fromkeys(parts) if part.invariant]


def _by_cases(plan: Plan, trips: Trips, invariants: list[Opaque], deadline: float | None) -> Decision:
    """Decide for all values of the conditions that do not change in the loop.

    Where a condition is computed before the loop, it may have one value only: the loop is wrong if it is for both.
    """
    computed = [trips.computed(part.expr) for part in invariants]
    decisions: dict[tuple[bool, ...], list[Decision]] = {}  # by the values of the other conditions
    for truths in product((True, False), repeat=len(invariants)):
        case = trips
        for part, truth in zip(invariants, truths, strict=True):
            case = case.given(part.expr, truth)
        if case.least(0) is not None:
            free = tuple(truth for truth, name in zip(truths, computed, strict=True) if name is None)
            decision = _decide(settled(plan, dict(zip(invariants, truths, strict=True))), case, deadline)
            decisions.setdefault(free, []).append(decision)
    for together in decisions.values():
        if all(d.verdict is Verdict.REFUTED for d in together):
            return together[0]
    every = [d for together in decisions.values() for d in together]
    for decision in every:
        if decision.verdict is Verdict.REFUTED:
            name = next(name for name in computed if name is not None)
            return Decision(Verdict.UNKNOWN, f"it may go wrong, depending on {name}, which the kernel computes")
    unknown = next((d for d in every if d.verdict is Verdict.UNKNOWN), None)
    return unknown or (every[0] if every else Decision(Verdict.VACUOUS, "no parameters reach the loop"))


def _decide(plan: Plan, trips: Trips, deadline: float | None) -> Decision:
    only = trips.only()
    lost = lost_order(plan)
    waits = any(slot.is_async for slot in plan.slots)
    if plan.depth > _MAX_DEPTH:
        if lost is None and not waits and not repeats(plan):
            return Decision(Verdict.PROVED, _DEPENDENCES)
        return Decision(Verdict.UNKNOWN, f"the depth is {plan.depth}; loops deeper than {_MAX_DEPTH} are not run")
    ahead = horizon(plan)
    if isinstance(ahead, Horizon):
        if only is not None and (only + plan.depth) * len(plan.slots) <= _MAX_RUN:
            return _single(plan, trips, only)
        if lost is None and not waits:
            return _kept(plan, trips, deadline)
        if lost is None and ahead.trips > _FAR and waits_undecided(plan, known=True) is None:
            return _kept(plan, trips, deadline)
        return _explore(plan, trips, ahead, deadline)
    if lost is None and not waits and not repeats(plan):
        return Decision(Verdict.PROVED, _DEPENDENCES)
    return _search(plan, trips, lost, ahead, deadline)


_DEPENDENCES = "every flow, anti and output dependence is kept, for every trip count"


def _single(plan: Plan, trips: Trips, only: int) -> Decision:
    setting = trips.setting(only)
    if setting is None:
        return Decision(Verdict.VACUOUS, "no parameters reach the loop")
    result = outcome(plan, only, setting)
    if result.wrong:
        return _refuted(f"the loop has {only} trips", Failure(result, setting))
    return Decision(Verdict.PROVED, f"both programs were run for the only trip count, {only}")


def _kept(plan: Plan, trips: Trips, deadline: float | None) -> Decision:
    """All orders are kept; what remains are statements that run twice when there are few trips."""
    last = plan.last_stage if repeats(plan) else 0
    failures: list[Failure] = []
    for count in range(last):
        result = outcome(plan, count, Setting())
        if result.wrong and (setting := trips.setting(count)) is not None:
            failures.append(_failure(plan, result, setting))
        if _over(deadline) or (failures and count * count * len(plan.slots) > _MAX_RUN):
            if not failures and count < last - 1:
                return Decision(Verdict.UNKNOWN, _NO_TIME)
            break
    if failures:
        return _refuted(f"fewer trips than the last stage, {plan.last_stage}", *failures)
    few = f"; 0 to {last - 1} trips were run" if last else ""
    return Decision(Verdict.PROVED, _DEPENDENCES + few)


def _refuted(evidence: str, *failures: Failure) -> Decision:
    """A refutation, by those runs in which something goes wrong for the parameters of the kernel, too."""
    shown = tuple(f for f in failures if f.outcome.wrong)
    if not shown:
        trips = failures[0].outcome.trips
        return Decision(Verdict.UNKNOWN, f"something may go wrong with {trips} trips, but no run of them shows it")
    return Decision(Verdict.REFUTED, evidence, shown)


def _failure(plan: Plan, result: Outcome, setting: Setting) -> Failure:
    """The failure that `result` shows, with its whole history, for the parameters of the kernel."""
    if not result.shared and not _has_unknowns(plan):  # the parameters decide nothing but the trip count
        return Failure(result, setting)
    return Failure(outcome(plan, result.trips, setting), setting)


def _has_unknowns(plan: Plan) -> bool:
    accesses = (a for s in plan.loop.statements for a in (*s.reads, *s.writes))
    return any(unknown_parts(plan.statement(s)) for s in plan.slots) or any(
        isinstance(a.index, Somewhere) for a in accesses
    )


_NO_TIME = "the time limit was reached"


def _over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _explore(plan: Plan, trips: Trips, ahead: Horizon, deadline: float | None) -> Decision:
    exploration = Exploration(plan, ahead.tail, Setting())
    outcomes = []
    failures: list[Failure] = []
    since = 0  # statements run for further failures, which may show other causes than the first
    for result in exploration.run(ahead.trips):
        outcomes.append(result)
        if result.wrong and (setting := trips.setting(result.trips)) is not None:
            failures.append(_failure(plan, result, setting))
        since += result.trips * len(plan.slots) if failures else 0
        if failures and (result.trips > 2 * (plan.depth + 1) or since > _MAX_FURTHER):
            break
        if _over(deadline):
            if failures:
                break
            return Decision(Verdict.UNKNOWN, _NO_TIME)
    if failures:
        return _refuted("runs of both programs differ", *failures)
    last = outcomes[ahead.settled :]
    for result in last:
        if result.wrong:
            n = trips.least(ahead.trips, result.trips % ahead.period, ahead.period)
            if n is not None:
                return _far(plan, trips, n)
    difference = agreement(exploration, [o for o in last if not o.wrong], ahead)
    if difference is not None:
        return Decision(
            Verdict.UNKNOWN,
            f"0 to {ahead.trips - 1} trips agree, but {difference} does not always come from the same place",
        )
    return Decision(
        Verdict.PROVED,
        f"0 to {ahead.settled - 1} trips were run; from there on every value comes from the same iteration in both "
        f"programs, with period {ahead.period}",
    )


def _far(plan: Plan, trips: Trips, count: int) -> Decision:
    setting = trips.setting(count)
    if (count + plan.depth) * len(plan.slots) > _MAX_RUN or setting is None:
        return Decision(Verdict.UNKNOWN, f"the programs differ for {count} trips or so, too many to be run")
    return _refuted("runs of both programs differ", Failure(outcome(plan, count, setting), setting))


def _search(plan: Plan, trips: Trips, lost: Lost | None, why: str, deadline: float | None) -> Decision:
    """Not everything repeats: rely on the dependence test, or look for a witness among small trip counts."""
    if lost is None:
        missing = waits_undecided(plan) or few_trips_undecided(plan, trips)
        if missing is None:
            return Decision(Verdict.PROVED, _DEPENDENCES)
    else:
        missing = f"{why}, and {lost_in_words(plan, lost)}"
    only = trips.only()
    tables = _TABLES if _has_unknowns(plan) else _TABLES[:1]
    for count in range(2 * plan.depth + 3) if only is None else (only,):
        if _over(deadline):
            return Decision(Verdict.UNKNOWN, f"{_NO_TIME}; {missing}")
        if (count + plan.depth) * len(plan.slots) * len(tables) > _MAX_SEARCH:
            break
        setting = trips.setting(count)
        if setting is None:
            continue
        for seed, high in tables:
            table = FunctionTable(setting.functions.values, default=high, seed=seed, low=0, high=high)
            trial = Setting(setting.names, table)
            result = outcome(plan, count, trial)
            guessed = (name for name, arguments in table.used if not arguments)
            if result.wrong and not any(trips.computed(ir.Name(name)) for name in guessed):
                return _refuted("runs of both programs differ", Failure(result, trial))
    return Decision(Verdict.UNKNOWN, missing)


def lost_in_words(plan: Plan, lost: Lost) -> str:
    """What the dependence test could not exclude, as part of a sentence."""
    first, second = (plan.loop.statements[n].label for n in (lost.first, lost.second))
    if not lost.buffer:
        return f"{first} is in a negative stage"
    if lost.distance is None:
        return f"{first} may use {lost.buffer} as another iteration left it, in another version"
    later = f" for the iteration {lost.distance} later" if lost.distance else ""
    return f"{first} may run after {second}{later}, both on {lost.buffer}"
