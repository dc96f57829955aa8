"""Which stage and order would be right for a loop, as close as possible to what is written?

A solver proposes schedules with as few changed entries as possible; each proposal is verified before it is given out.
The serial loop says in advance which orders its values need, and what a failed proposal teaches is added to the
question (`lessons`), so that few proposals fail.  If nothing is left to propose, no such schedule exists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencepost.findings import Verdict
from fencepost.pipeline.accept import resolve
from fencepost.pipeline.awaiting import Awaiting
from fencepost.pipeline.demands import Demands
from fencepost.pipeline.explore import SerialRun
from fencepost.pipeline.flows import flows
from fencepost.pipeline.lessons import missing_wait, not_again, wrong_values
from fencepost.pipeline.model import Annotations, Loop, Statement
from fencepost.pipeline.question import Proposal, Question, Unsettled
from fencepost.pipeline.result import PipelineResult
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.setting import Setting
from fencepost.pipeline.trips import ANY_TRIPS, Trips, Unclear
from fencepost.pipeline.unawaited import unawaited
from fencepost.pipeline.verify import verify

_MAX_UNDECIDED = 25
"""Proposals that may turn out neither right nor wrong before the search is given up."""

_MAX_STATEMENTS = 24
_MAX_STAGE = 64

_MAX_FAILING = 6
_MAX_RUN = 2_000
"""Statements that a run for finding out what the values need may execute."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A stage and an order for the scheduled statements, proved right.

    `changes` counts the entries that differ from what is written; 0 if nothing was written.  `reason` is empty if the
    stages 0 to the last are used, else it says why the loop is no pipeline of the written depth.
    """

    stage: tuple[int, ...]
    order: tuple[int, ...]
    changes: int
    result: PipelineResult
    reason: str = ""

    @property
    def text(self) -> str:
        """The annotation as kernel IR text."""
        return f"stage = ({_listed(self.stage)}), order = ({_listed(self.order)})"


@dataclass(frozen=True, slots=True)
class NoSuggestion:
    """There is nothing to suggest.  `exists`: False if no right schedule exists at all, None if that is not known."""

    reason: str
    exists: bool | None = None


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values)) + ("," if len(values) == 1 else "")


def suggest(
    loop: Loop, trips: Trips = ANY_TRIPS, deadline: float | None = None, written: PipelineResult | None = None
) -> Suggestion | NoSuggestion | None:
    """The nearest right annotation of the same depth, or for a loop without one the shallowest that overlaps copies.

    None if the loop is right as it is, or if it has neither an annotation nor a copy that could be overlapped.

    Args:
        deadline: a time of `time.monotonic()` after which the search is given up.
        written: what `verify` says about the loop as it is, if that is known.
    """
    notes = loop.annotations
    scheduled = [n for n in range(len(loop.statements)) if not loop.can_replay(n)]
    if notes.stage is None and notes.order is None:
        sources = [n for n in scheduled if _brings_in(loop, loop.statements[n])]
        if not sources:
            return None
        limit = _limit(scheduled)
        return limit if limit is not None else _overlapping(loop, trips, scheduled, sources, deadline)
    written = verify(loop, trips) if written is None else written
    if written.verdict is Verdict.PROVED or not scheduled:
        return None
    stages, orders = (_aligned(loop, scheduled, entries) for entries in (notes.stage, notes.order))
    depth = max(max((s for s in stages if s is not None), default=1), 0)
    limit = _limit(scheduled)
    if limit is None and depth > _MAX_STAGE:
        limit = NoSuggestion(f"the search is made for stages up to {_MAX_STAGE}, and the last stage is {depth}")
    if limit is not None:
        return limit
    search = _Search(Question(loop, scheduled, stages, orders, depth, deadline), trips)
    search.learn(written)
    return search.nearest()


def _limit(scheduled: list[int]) -> NoSuggestion | None:
    if len(scheduled) <= _MAX_STATEMENTS:
        return None
    return NoSuggestion(
        f"the search is made for up to {_MAX_STATEMENTS} statements, and {len(scheduled)} are scheduled"
    )


def _aligned(loop: Loop, scheduled: list[int], entries: tuple[int, ...] | None) -> list[int | None]:
    """The written entry of each scheduled statement, None where there is none."""
    if entries is None:
        return [None] * len(scheduled)
    if len(entries) == len(scheduled):
        return list(entries)
    if len(entries) == len(loop.statements):
        return [entries[n] for n in scheduled]
    plain = [n for n in scheduled if loop.statements[n].bind is None]
    places = plain if len(entries) == len(plain) else scheduled
    found = dict(zip(places, entries, strict=False))
    return [found.get(n) for n in scheduled]


def _overlapping(
    loop: Loop, trips: Trips, scheduled: list[int], sources: list[int], deadline: float | None
) -> Suggestion | NoSuggestion:
    written: list[int | None] = list(range(len(scheduled)))
    doubt: NoSuggestion | None = None
    for last in range(1, len(scheduled)):
        question = Question(loop, scheduled, [None] * len(scheduled), written, last, deadline)
        for n in sources:
            filled = {a.buffer for a in loop.statements[n].writes}
            users = [m for m in scheduled if m > n and any(a.buffer in filled for a in loop.statements[m].reads)]
            question.say(f"(< {question.stage(n)} {question.stage(m)})" for m in users)
        found = _Search(question, trips).pipeline()
        if isinstance(found, Suggestion):
            return replace(found, changes=0)
        if found.exists is None and doubt is None:
            doubt = found
    return doubt or NoSuggestion("no schedule in which every copy is a stage ahead of its users is right", False)


def _brings_in(loop: Loop, text: Statement) -> bool:
    """Whether a statement only moves data from parameters into local buffers."""
    local = {b.name for b in loop.buffers if b.local}
    moves = bool(text.reads) and not any(a.buffer in local for a in text.reads)
    return text.copy or (moves and bool(text.writes) and all(a.buffer in local for a in text.writes))


class _Search:
    """Proposals for one question, verified one after the other."""

    def __init__(self, question: Question, trips: Trips) -> None:
        self.question, self.trips, self.loop = question, trips, question.loop
        self.awaiting = Awaiting(question)
        self.failing: list[SerialRun] = []  # runs in which earlier proposals failed, the last one first
        self.undecided: list[str] = []  # why proposals were neither proved nor refuted
        self.known: list[tuple[int, Setting]] = []
        self._start()

    def _start(self) -> None:
        question = self.question
        notes = self._annotated(Proposal(dict.fromkeys(question.scheduled, 0), {n: n for n in question.scheduled}, 0))
        plan = resolve(notes).plan
        if plan is None:
            return
        if any(plan.scalars.values()):  # a bind would be used outside the scope that the compiler gives it (934)
            question.say(["whole"])
        try:
            count = self.trips.least(2 * question.last + 2)
            setting = None if count is None else self.trips.setting(count)
        except Unclear:
            return
        if count is not None and setting is not None:
            self._need(count, setting)
            if count * len(question.scheduled) <= _MAX_RUN:
                self.failing.append(SerialRun(count, setting))  # most of what goes wrong shows here

    def nearest(self) -> Suggestion | NoSuggestion:
        """The nearest schedule that uses the stages from 0 to the last, else one that does not."""
        found = self.pipeline()
        if isinstance(found, Suggestion):
            return found
        other = self._closest("narrow")
        return replace(other, reason=found.reason) if isinstance(other, Suggestion) else other

    def pipeline(self) -> Suggestion | NoSuggestion:
        """The nearest right schedule that uses the stages from 0 to the last."""
        return self._closest("spread")

    def _closest(self, rule: str) -> Suggestion | NoSuggestion:
        depth = self.question.last + 1
        try:
            for changes in range(len(self.question.written) + 1 if self.question.propose(rule) else 0):
                found = self._with(rule, changes)
                if found is not None:
                    return found
                if len(self.undecided) > _MAX_UNDECIDED:
                    return NoSuggestion(f"{len(self.undecided)} schedules could not be decided: {self.undecided[0]}")
        except Unsettled as unsettled:
            return NoSuggestion(f"the search for a schedule was given up: {unsettled}")
        if self.undecided:
            return NoSuggestion(f"no other schedule of depth {depth} is right, and some are open: {self.undecided[0]}")
        return NoSuggestion(f"no pipelined schedule of depth {depth} is right", False)

    def _with(self, rule: str, changes: int) -> Suggestion | None:
        """A right schedule with that many changes, those first that keep all dependences."""
        kept = True
        while len(self.undecided) <= _MAX_UNDECIDED:
            proposal = self.question.propose(rule, "kept", changes=changes) if kept else None
            if proposal is None:
                kept = False
                proposal = self.question.propose(rule, changes=changes)
            if proposal is None:
                break
            loop = self._annotated(proposal)
            if not self._fails(loop, proposal):
                result = verify(loop, self.trips)
                if result.verdict is Verdict.PROVED:
                    stage, order = loop.annotations.stage, loop.annotations.order
                    assert stage is not None and order is not None
                    return Suggestion(stage, order, proposal.changes, result)
                self.learn(result, proposal)
            self.question.say([not_again(self.question, proposal)])
        return None

    def _annotated(self, proposal: Proposal) -> Loop:
        """The loop with a proposal; async marks stay with their statements."""
        notes, scheduled = self.loop.annotations, self.question.scheduled

        def kept(entries: tuple[int, ...] | None) -> tuple[int, ...] | None:
            if entries is None or len(entries) not in (len(scheduled), len(self.loop.statements)):
                return None
            return entries if len(entries) == len(scheduled) else tuple(entries[n] for n in scheduled)

        return replace(
            self.loop,
            annotations=Annotations(
                tuple(proposal.stages[n] for n in scheduled),
                tuple(proposal.orders[n] for n in scheduled),
                notes.num_stages,
                notes.async_stages,
                kept(notes.async_producers),
                kept(notes.async_producer_groups),
            ),
        )

    # ----------------------------------------------------------------------------------------------------- learning

    def learn(self, result: PipelineResult, proposal: Proposal | None = None) -> None:
        """Keep the runs that show what is wrong, for others often fail in the same, and what they teach."""
        runs = {
            f.failure.outcome.trips: SerialRun(f.failure.outcome.trips, f.failure.setting)
            for f in result.faults
            if f.failure is not None
        }
        self.failing = [*runs.values(), *self.failing][:_MAX_FAILING]
        for run in runs.values():
            self._need(run.trips, run.setting)
            if proposal is not None and result.plan is not None:
                self._taught(proposal, result.plan, run)
        if result.verdict is Verdict.UNKNOWN and proposal is not None:
            self.undecided.append(result.evidence)

    def _fails(self, loop: Loop, proposal: Proposal) -> bool:
        """Whether a proposal fails in a run in which others failed; if not, nothing is known about it."""
        plan = resolve(loop).plan
        if plan is None:
            return False
        for place, run in enumerate(self.failing):
            if self._taught(proposal, plan, run):
                self.failing.insert(0, self.failing.pop(place))
                return True
        return False

    def _taught(self, proposal: Proposal, plan: Plan, run: SerialRun) -> bool:
        """Whether a proposal fails in a run, which then teaches what is wrong with it."""
        if race := unawaited(plan, run.trips, run.setting):
            self.question.say([missing_wait(self.question, proposal, plan, run, race)])
            return True
        shown = run.outcome(plan)
        if shown.differs:
            self.question.say([wrong_values(self.question, proposal, plan, shown)])
        return shown.wrong

    def _need(self, count: int, setting: Setting) -> None:
        question = self.question
        if count * len(question.scheduled) > _MAX_RUN or (count, setting) in self.known:
            return
        self.known.append((count, setting))
        found = flows(self.loop, question.scheduled, count, setting)
        question.say(Demands(question, found).facts())
        question.say(self.awaiting.facts(found))
