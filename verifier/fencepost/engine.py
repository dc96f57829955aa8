"""The engine: what is decided about one kernel, row by row?

First the boundary shapes are run; they find most faults and give the smallest witnesses.  Then the prover covers all
parameter values.  Facts become findings through the rules, and every row gets the verdict that was shown, never more.
What few kernels need is imported when a kernel needs it: importing all takes longer than checking a small kernel.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fencepost import ir, prover
from fencepost.applicability import SIX_POINTS, applicable, relies_on
from fencepost.diagnose.blocks import shared_buffers
from fencepost.evidence import evidence
from fencepost.findings import Check, Finding, KernelReport, Row, Undecided, Verdict
from fencepost.garbage import seldom_collected
from fencepost.model.functions import Point
from fencepost.model.program import Compiled, compile_kernel
from fencepost.model.shapes import uses_functions
from fencepost.model.target import TARGETS
from fencepost.options import CheckOptions
from fencepost.passes.serial import Serial
from fencepost.phrases import plural
from fencepost.printer import print_expr
from fencepost.prove.explorer import ROWS
from fencepost.prove.order import Fault
from fencepost.prover import Proof
from fencepost.refutation import Refutation, finding, refutation
from fencepost.row_result import RowResult
from fencepost.search import Outcome, Search, Seen
from fencepost.verdicts import overall

_CANDIDATES = 32  # of the prover, replayed per kernel
_RESERVE = 2.0  # seconds kept for runs of more shapes, should the proof not succeed


@dataclass(slots=True)
class _Decision:
    """What is known about the rows of one kernel so far."""

    verdicts: dict[Row, Verdict] = field(default_factory=dict)
    evidence: dict[Row, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    unknown: list[Undecided] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)

    def decide(self, row: Row, verdict: Verdict, evidence: str) -> None:
        self.verdicts[row] = verdict
        self.evidence[row] = evidence

    def leave(self, row: Row, reason: str, span: ir.Span) -> None:
        self.decide(row, Verdict.UNKNOWN, reason)
        self.unknown.append(Undecided(row, reason, span))

    def take(self, row: Row, result: RowResult) -> None:
        self.decide(row, result.verdict, result.evidence)
        self.findings += result.findings
        self.unknown += result.unknown


@seldom_collected()
def check_kernel(kernel: ir.Kernel, options: CheckOptions) -> KernelReport:
    """Check one valid kernel.

    Args:
        kernel: a kernel without mistakes (`fencepost.validate`).
        options: target, fixed values, extra assumes, time limit in seconds.

    Raises:
        ModelError: the kernel cannot be modelled (a size that is not constant, say).
    """
    started = time.monotonic()
    variant = specialise(kernel, options)
    compiled = compile_kernel(Serial().run(variant))
    decision = _Decision()
    rows = applicable(variant)
    if any(k.name == kernel.name for k in options.before):
        rows[Row.TRANSLATION] = True
    if compiled.unsupported and not any(rows.values()):  # what could not be read may be of any kind
        rows = dict.fromkeys(SIX_POINTS, True)
    for row in rows:
        if not rows[row]:
            decision.decide(row, Verdict.NOT_APPLICABLE, _NOTHING[row] if compiled.target.cores else _IN_ORDER)
    open_rows = [row for row in rows if rows[row]]
    pipelined: RowResult | None = None
    if Row.PIPELINE in rows:  # first, as most loops need little time, and others may use up all of it
        from fencepost.pipeline_row import pipeline_row

        pipelined = pipeline_row(variant, options.suggest, started + options.timeout / 2)
    if compiled.unsupported:
        first = compiled.unsupported[0]
        for row in open_rows:
            if row is not Row.PIPELINE:
                reason = f"line {first.span.line} could not be read: {first.reason}"
                decision.leave(row, reason, first.span)
    else:
        serial, deadline = compiled.kernel, started + options.timeout
        written: list[Row] = [row for row in open_rows if row not in _APART]
        if written:
            _decide(variant, compiled, written, decision, deadline, options.prove)
        if Row.SKEW in rows:
            _after_skew(serial, options, decision, deadline)
        if Row.TRANSLATION in rows:
            _translation(serial, options, decision, deadline)
    if pipelined is not None:
        decision.take(Row.PIPELINE, pipelined)
    checks = tuple(Check(row, decision.verdicts[row], decision.evidence[row]) for row in rows)
    return KernelReport(
        name=kernel.name,
        file=kernel.span.file,
        line=kernel.span.line,
        target=variant.target,
        verdict=overall(checks),
        seconds=time.monotonic() - started,
        parameters=compiled.parameters,
        assumptions=(*(print_expr(a) for a in variant.assumes), *decision.assumptions),
        checks=checks,
        findings=tuple(decision.findings),
        unknown=tuple(decision.unknown),
    )


_APART = (Row.SKEW, Row.TRANSLATION, Row.PIPELINE)  # rows that are not about the kernel's runs as it is written

_OF_BLOCKS = (Row.EVENT_POSITION, Row.BOUNDARY)  # rows that fail if two blocks touch one slot of shared memory

CONTRADICTED = "which seemed to be proved: please report this kernel, for the prover is wrong"

_IN_ORDER = "one program in order: the target has no cores and pipes that run apart"

_NOTHING = {
    Row.SLOT_MAPPING: "no slot or event id depends on an index",
    Row.EVENT_POSITION: "no buffer is touched",
    Row.PAIRING: "no signals",
    Row.COUNTS: "no signals",
    Row.BOUNDARY: "no loop and no branch",
    Row.PARTICIPANTS: "no cross-core operation",
    Row.FIFO: "no messages",
    Row.SKEW: "no pipeline loop",
    Row.TRANSLATION: "no text before",
    Row.PHASES: "no phases",
    Row.PIPELINE: "no annotated pipeline",
}


def specialise(kernel: ir.Kernel, options: CheckOptions) -> ir.Kernel:
    """The kernel for another target, with fixed parameter values and extra facts as further assumes."""
    fixed = tuple(ir.Compare(ir.Name(name), (("==", ir.Int(value)),)) for name, value in options.values)
    target = options.target if options.target is not None and TARGETS[kernel.target].cores else kernel.target
    return replace(kernel, target=target, assumes=(*kernel.assumes, *fixed, *options.assume))


def _decide(
    kernel: ir.Kernel, compiled: Compiled, rows: Sequence[Row], decision: _Decision, deadline: float, prove: bool
) -> None:
    search = Search(compiled, deadline)
    outcome = search.quick()
    single = not compiled.parameters and not uses_functions(kernel)
    long = single and not outcome.exhausted
    proof, begun, hint, where = Proof(), list[Seen](), "", ""
    if long or (search.too_long and not outcome.facts):
        from fencepost.beginning import beginning

        start = beginning(compiled, deadline)
        outcome.facts += (begun := start.seen)
        hint = f"; {start.other}" if start.other else ""
        where = f"; {start.where}"
    if prove and (long or (outcome.tried and not single and not outcome.facts)):
        # nearly always the end of it: no need to run more shapes
        wanted = [row for row in rows if row not in refutation(outcome).rows]
        proof = prover.prove(compiled, wanted, deadline - min(_RESERVE, 0.15 * (deadline - time.monotonic())))
        _replay(search, proof)
    if not single and len(proof.proved) < len(rows):
        outcome = search.full()
        outcome.facts += begun
    refuted = refutation(outcome)
    open_rows = [row for row in rows if row not in refuted.rows]
    told = ""
    if prove and not single and open_rows and (outcome.facts or not (proof.proved or proof.reasons)):
        from fencepost.mending import mended

        whole = mended(compiled, outcome) if outcome.facts else None
        until = deadline - min(_RESERVE, 0.15 * max(0.0, deadline - time.monotonic()))
        if whole is not None:
            proof, told = prover.prove(compile_kernel(whole.kernel), open_rows, until), f"; {whole.told}"
        elif not (proof.proved or proof.reasons):
            proof = prover.prove(compiled, open_rows, until)
        before = len(search.seen)
        _replay(search, proof)
        if proof.suspected & {*open_rows} or _untold(proof, outcome, refuted):
            search.further()
        if len(search.seen) > before:
            outcome = search.outcome()
            outcome.facts += begun
            refuted = refutation(outcome)
    if prove and rows and kernel.assumes and not outcome.tried and not proof.vacuous:
        _assured(search, rows, proof, deadline)
        outcome = search.outcome()
        outcome.facts += begun
        refuted = refutation(outcome)
    relies = relies_on(kernel)
    if proof.proved and not single:
        before = len(search.seen)
        challenged = search.challenge()
        if len(search.seen) > before:
            outcome = challenged
            outcome.facts += begun
            refuted = refutation(outcome)
    wrong = [r for r in refuted.rows if r in proof.proved and r not in relies and r is not Row.BOUNDARY]
    if wrong:
        proof = Proof(reasons=dict.fromkeys(rows, f"a run refutes row {wrong[0].id}, {CONTRADICTED}"))
    decision.findings += refuted.findings
    for row, shown in refuted.rows.items():
        decision.decide(row, Verdict.REFUTED, shown + (where if row in refutation(Outcome(begun)).rows else ""))
    open_rows = [row for row in rows if row not in decision.verdicts]
    shared = {row for row in open_rows if row in _OF_BLOCKS} if shared_buffers(kernel) else set()
    if any(f.code == "209" for f in decision.findings):
        shared.discard(Row.BOUNDARY)  # told already, and no matter of trips
    together = prover.blocks_apart(compiled, deadline) if shared and not proof.vacuous else ""
    untold = _untold(proof, outcome, refuted)
    for row in open_rows:
        if together and row in shared:
            decision.leave(row, together, kernel.span)
        elif proof.vacuous:
            decision.decide(row, Verdict.VACUOUS, "no parameter values satisfy the assumes")
        elif single and outcome.exhausted:
            _only_shape(row, compiled, outcome, decision)
        elif row in proof.proved and (open_ := _needed(row, relies, rows, proof, refuted, untold)):
            decision.leave(row, _depends(row, open_, refuted), kernel.span)
        elif row in proof.proved:
            decision.decide(row, Verdict.PROVED, evidence(compiled, row, outcome, proof.proved[row] + told))
        else:
            reason = proof.reasons.get(row, "not proved for all values")
            decision.leave(row, f"{reason}; {_ran(compiled, outcome)}{hint}", kernel.span)


def _assured(search: Search, rows: Sequence[Row], proof: Proof, deadline: float) -> None:
    """Where no values were seen that satisfy the assumes, nothing is proved unless there are some; these are run."""
    found = prover.satisfying(search.compiled, deadline)
    if found is None or found == "none":
        proof.vacuous = found == "none"
        proof.proved.clear()
        proof.reasons.update(dict.fromkeys(rows, "it was not found out whether any values satisfy the assumes"))
    else:
        search.try_values(*found)


def _untold(proof: Proof, outcome: Outcome, refuted: Refutation) -> list[Fault]:
    """The faults that a complete exploration came upon and of which no finding tells."""
    places = {place for found in refuted.findings for place in (found.span, *(note.span for note in found.related))}
    shown = {fault for seen in outcome.facts for fault in seen.fact.faults if isinstance(fault, tuple)}
    codes = {seen.fact.code for seen in outcome.facts}
    mutexes = {dict(seen.fact.values)["mutex"] for seen in outcome.facts if seen.fact.code == "405"}
    rings = {fault[2] for fault in shown if fault[0] == "message"}
    runs = [run for seen in outcome.facts for run in seen.runs]
    races = {
        (one.stmt.span, touched.place, other.effect.pipe)
        for run in runs
        for r in run.races
        for one, touched, other in ((r.first, r.first_touched, r.second), (r.second, r.touched, r.first))
    }
    unwritten = {(read.op.stmt.span, read.touched.place) for run in runs for read in run.unwritten}

    def told(fault: Fault) -> bool:
        match fault:
            case ("leftover" | "overflow" as kind, _, channel, *_):
                return (kind, channel) in shown
            case ("mutex", int(number)):
                return f"mutex {number}" in mutexes
            case ("messages" | "unfreed", ring):
                return ring in rings
            case ("phase", _):
                return any(other[0] == "phase" for other in shown)
            case ("modes", *_):
                return "304" in codes
            case ("race", span, _, place, pipe):
                return span in places and (span, place, pipe) in races
            case ("unwritten", span, _, place):
                return span in places and (span, place) in unwritten
        return bool(places & {*fault})

    return [fault for fault in proof.doubts if not told(fault)]


def _needed(
    row: Row,
    relies: Mapping[Row, frozenset[Row]],
    rows: Sequence[Row],
    proof: Proof,
    refuted: Refutation,
    untold: list[Fault],
) -> list[Row]:
    """The rows without which a row is not shown, in the order of the report.

    These are the rows it relies on, where they may fail between the cores; for the row about boundaries all rows that
    are open, and those of which something else than what runs show may fail.
    """
    if row is not Row.BOUNDARY:
        needed = relies.get(row, frozenset())
        return [r for r in rows if r in needed and r not in proof.proved and r not in proof.between]
    doubted = {r for fault in untold for r in ROWS.get(str(fault[0]), rows)}
    return [
        r
        for r in rows
        if r is not row and ((r not in proof.proved and r not in refuted.rows) or (r in refuted.rows and r in doubted))
    ]


def _depends(row: Row, needed: list[Row], refuted: Refutation) -> str:
    """Why a row stays open that needs others."""
    worse = [r.id for r in needed if row is Row.BOUNDARY and r in refuted.rows]
    missing = [r.id for r in needed if r.id not in worse]
    return "; ".join(
        [f"depends on row {' and row '.join(missing)}, not proved"] * bool(missing)
        + [f"row {' and row '.join(worse)} may fail in another way than runs show, at a boundary"] * bool(worse)
    )


def _replay(search: Search, proof: Proof) -> None:
    """Run the values that the prover suspects, small ones first; the search makes those that fail small."""
    names = search.compiled.parameters
    found: dict[Hashable, tuple[dict[str, int], dict[Point, int]]] = {}
    for values, functions in proof.candidates:
        given = {name: values.get(name, 0) for name in names}
        found.setdefault((tuple(given.items()), tuple(sorted(functions.items()))), (given, functions))
    ordered = sorted(found.values(), key=lambda one: sum(map(abs, one[0].values())))
    for one in ordered[:_CANDIDATES]:
        search.try_values(*one)


def _only_shape(row: Row, compiled: Compiled, outcome: Outcome, decision: _Decision) -> None:
    """A kernel without parameters has one shape, and its run is the proof."""
    undecided = next((u for u in outcome.undecided if u.row is row), None)
    if outcome.hung is not None and row is not Row.SLOT_MAPPING:
        decision.leave(row, "the kernel hangs: what comes after it never ran", compiled.kernel.span)
    elif undecided is not None:
        decision.leave(row, undecided.reason, undecided.span)
    else:
        decision.decide(row, Verdict.PROVED, evidence(compiled, row, outcome, "the only shape ran clean"))


def _ran(compiled: Compiled, outcome: Outcome) -> str:
    if not outcome.tried:
        return "no run that the assumes allow was short enough to be followed"
    largest = ", ".join(f"{p} = {v}" for p, v in zip(compiled.parameters, outcome.largest, strict=True))
    what = f"ran clean for {outcome.clean} of {plural(outcome.tried, 'shape')}"
    if outcome.facts:
        what = f"no fault of this row in {plural(outcome.tried, 'shape')}"
    return f"{what}, the largest {largest}" if largest else what


def _translation(kernel: ir.Kernel, options: CheckOptions, decision: _Decision, deadline: float) -> None:
    """The row that compares the kernel with the text before a transformation."""
    from fencepost.skew_row import with_safe_depth
    from fencepost.translation import compare

    before = next(k for k in options.before if k.name == kernel.name)
    serial = Serial().run(specialise(before, options))
    decision.findings = with_safe_depth(decision.findings, serial)
    result = compare(serial, kernel, deadline)
    findings = [replace(finding(seen), row=Row.TRANSLATION) for seen in result.seen]
    decision.findings += findings
    if findings:
        codes = ", ".join(dict.fromkeys(f"FP{f.code}" for f in findings))
        decision.decide(Row.TRANSLATION, Verdict.REFUTED, f"{codes}; {result.evidence}")
    elif result.proved:
        decision.decide(Row.TRANSLATION, Verdict.PROVED, result.evidence)
    else:
        decision.leave(Row.TRANSLATION, result.evidence, kernel.span)


def _after_skew(kernel: ir.Kernel, options: CheckOptions, decision: _Decision, deadline: float) -> None:
    """The row about the kernel as the skew pass leaves it."""
    from fencepost.skew_row import skew_row

    def check(skewed: ir.Kernel) -> KernelReport:
        left = max(1.0, deadline - time.monotonic())
        return check_kernel(skewed, replace(options, target=None, values=(), assume=(), timeout=left, before=()))

    decision.take(Row.SKEW, skew_row(kernel, decision.findings, check, finding, deadline))
