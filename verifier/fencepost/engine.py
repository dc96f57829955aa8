"""The engine: what is decided about one kernel, row by row?

First the boundary shapes are run; they find most faults and give the smallest witnesses.  Then the prover covers all
parameter values.  Facts become findings through the rules, and every row gets the verdict that was shown, never more.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from fencepost import ir
from fencepost.applicability import applicable
from fencepost.evidence import evidence
from fencepost.findings import Check, Finding, KernelReport, Row, Undecided, Verdict
from fencepost.model.program import Compiled, compile_kernel
from fencepost.model.shapes import uses_functions
from fencepost.options import CheckOptions
from fencepost.passes.decisive import Decisive
from fencepost.passes.strides import Strides
from fencepost.passes.unique import UniqueLoops
from fencepost.printer import print_expr
from fencepost.prove.explore import Exploration, explore
from fencepost.refutation import finding, refutation
from fencepost.search import Outcome, Search
from fencepost.skew_row import skew_row
from fencepost.translation import compare
from fencepost.verdicts import overall


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
    compiled = compile_kernel(serial(variant))
    decision = _Decision()
    rows = applicable(variant)
    if any(k.name == kernel.name for k in options.before):
        rows[Row.TRANSLATION] = True
    for row in rows:
        if not rows[row]:
            decision.decide(row, Verdict.NOT_APPLICABLE, _NOTHING[row])
    open_rows = [row for row in rows if rows[row]]
    if compiled.unsupported:
        for row in open_rows:
            first = compiled.unsupported[0]
            reason = f"line {first.span.line} could not be read: {first.reason}"
            decision.leave(row, reason, first.span)
    else:
        written: list[Row] = [row for row in open_rows if row not in (Row.SKEW, Row.TRANSLATION)]
        _decide(variant, compiled, written, decision, started + options.timeout, options.prove)
        if Row.SKEW in rows:
            _after_skew(variant, options, decision, started + options.timeout)
        if Row.TRANSLATION in rows:
            _translation(variant, options, decision, started + options.timeout)
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
    target = options.target if options.target is not None else kernel.target
    return replace(kernel, target=target, assumes=(*kernel.assumes, *fixed, *options.assume))


def serial(kernel: ir.Kernel) -> ir.Kernel:
    """Annotated pipelines as the serial loops that they must equal; their schedule is judged in its own row."""

    def body(stmts: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        return tuple(statement(s) for s in stmts)

    def statement(stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Pipelined():
                return ir.For(stmt.var, stmt.start, stmt.stop, ir.Int(1), body(stmt.body), span=stmt.span)
            case ir.For():
                return replace(stmt, body=body(stmt.body))
            case ir.If():
                branches = tuple((c, body(b)) for c, b in stmt.branches)
                return replace(stmt, branches=branches, orelse=body(stmt.orelse))
        return stmt

    if not any(isinstance(n, ir.Pipelined) for n in ir.walk(kernel)):
        return kernel
    items = tuple(
        replace(item, body=body(item.body)) if isinstance(item, ir.Section) else statement(item) for item in kernel.body
    )
    return replace(kernel, body=items)


def _decide(
    kernel: ir.Kernel, compiled: Compiled, rows: Sequence[Row], decision: _Decision, deadline: float, prove: bool
) -> None:
    outcome = Search(compiled, deadline).run()
    refuted = refutation(outcome)
    decision.findings += refuted.findings
    for row, told in refuted.rows.items():
        decision.decide(row, Verdict.REFUTED, told)
    open_rows = [row for row in rows if row not in decision.verdicts]
    if outcome.tried == 0:
        for row in open_rows:
            decision.decide(row, Verdict.VACUOUS, "no parameter values satisfy the assumes")
        return
    if not compiled.parameters and not uses_functions(kernel) and outcome.exhausted:
        for row in open_rows:
            if outcome.hung is not None and row is not Row.SLOT_MAPPING:
                decision.leave(row, "the kernel hangs: what comes after it never ran", kernel.span)
            elif any(u.row is row for u in outcome.undecided):
                decision.leave(row, *next((u.reason, u.span) for u in outcome.undecided if u.row is row))
            else:
                decision.decide(row, Verdict.PROVED, evidence(compiled, row, outcome, []))
        return
    explored = _explore(compiled, deadline) if prove and open_rows else []
    for row in open_rows:
        if explored and all(e.proves(row) for e in explored):
            decision.decide(row, Verdict.PROVED, evidence(compiled, row, outcome, explored))
        else:
            decision.leave(row, _why(row, compiled, outcome, explored), kernel.span)


def _explore(compiled: Compiled, deadline: float) -> list[Exploration]:
    """Explore all parameter values, under every credit scheme that the kernel asks for."""
    asked = compiled.kernel.credits
    compiled = compile_kernel(prepared(compiled.kernel))
    schemes: tuple[Literal["per_slot", "batched"], ...] = ("per_slot",)
    if compiled.kernel.fifos:
        schemes = ("per_slot", "batched") if asked == "both" else (asked,)
    explored: list[Exploration] = []
    for scheme in schemes:
        explored.append(explore(compiled, deadline, credits=scheme))
        if not explored[-1].closed:
            break
    return explored


def prepared(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel in the form that is proved: equivalent, but without what decides nothing."""
    for step in (UniqueLoops(), Strides(), Decisive()):
        kernel = step.run(kernel)
    return kernel


def _why(row: Row, compiled: Compiled, outcome: Outcome, explored: list[Exploration]) -> str:
    """Why a row is unknown: what could not be decided."""
    ran = _ran(compiled, outcome)
    for e in explored:
        if not e.closed:
            return f"not proved for all values: {e.reason}; {ran}"
        if not e.proves(row):
            kinds = ", ".join(dict.fromkeys(str(t.fault[0]) for t in e.troubles))
            return f"not proved for all values: a state with {kinds} may be reachable; {ran}"
    return f"not proved for all values; {ran}"


def _ran(compiled: Compiled, outcome: Outcome) -> str:
    largest = ", ".join(f"{p} = {v}" for p, v in zip(compiled.parameters, outcome.largest, strict=True))
    what = f"ran clean for {outcome.clean} of {outcome.tried} shapes"
    return f"{what}, the largest {largest}" if largest else what


def _translation(kernel: ir.Kernel, options: CheckOptions, decision: _Decision, deadline: float) -> None:
    """The row that compares the kernel with the text before a transformation."""
    before = next(k for k in options.before if k.name == kernel.name)
    result = compare(specialise(before, options), kernel, deadline)
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

    def check(skewed: ir.Kernel) -> KernelReport:
        left = max(1.0, deadline - time.monotonic())
        return check_kernel(skewed, replace(options, target=None, values=(), assume=(), timeout=left, before=()))

    row = skew_row(kernel, decision.findings, check, finding, deadline)
    decision.decide(Row.SKEW, row.verdict, row.evidence)
    decision.findings += row.findings
    decision.unknown += row.unknown
