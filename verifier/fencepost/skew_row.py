"""Is a kernel with `pipeline` loops still right after the skew pass?  The verdict of the row "after skew"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from fencepost import ir
from fencepost.after_skew import Judgement, has_pipelines, judge, safe_depth
from fencepost.facts import Fact
from fencepost.findings import Finding, KernelReport, Row, Severity, Undecided, Verdict, Witness
from fencepost.model.program import compile_kernel
from fencepost.model.rings import Peer, Ring, first_hang
from fencepost.model.shapes import Shape
from fencepost.passes.skew import LoopOutcome, Skew, Skewed, SkewError
from fencepost.row_result import RowResult, codes
from fencepost.search import Seen


def skew_row(
    kernel: ir.Kernel,
    known: Iterable[Finding],
    check: Callable[[ir.Kernel], KernelReport],
    word: Callable[[Seen], Finding],
    deadline: float,
) -> RowResult:
    """Judge a kernel after the skew.

    Args:
        kernel: a valid kernel with `pipeline` loops.
        known: findings about the kernel as written; they are not repeated.
        check: checks an ordinary kernel.
        word: words a fact and attaches its witness.
        deadline: in the terms of `time.monotonic`.
    """
    try:
        judgement = judge(kernel, deadline)
    except SkewError as error:
        return RowResult(
            Verdict.UNKNOWN, error.message, (), (Undecided(Row.SKEW, f"no skew: {error.message}", error.span),)
        )
    notes = [_note(word, fact, kernel) for fact in judgement.notes]
    order = [replace(word(seen), row=Row.SKEW) for seen in judgement.seen]
    if judgement.skewed.kernel == kernel or not any(o.action == "skewed" for o in judgement.skewed.loops):
        evidence = f"{judgement.evidence}; as written otherwise"
        return RowResult(Verdict.PROVED, evidence, tuple(notes))
    report = check(judgement.skewed.kernel)
    seen = {(f.code, f.span) for f in known}
    found = [_about(f, kernel, judgement) for f in report.findings if (f.code, f.span) not in seen]
    errors = [f for f in (*order, *report.findings) if f.severity is Severity.ERROR]
    findings = (*notes, *order, *found)
    if errors:
        return RowResult(Verdict.REFUTED, f"{codes(errors)}; {judgement.evidence}", findings)
    undecided = [Undecided(Row.SKEW, u.reason, u.span) for u in report.unknown]
    if judgement.undecided is not None:
        undecided.append(Undecided(Row.SKEW, judgement.undecided, judgement.span))
    if undecided:
        return RowResult(Verdict.UNKNOWN, undecided[-1].reason, findings, tuple(dict.fromkeys(undecided)))
    verdict = Verdict.VACUOUS if report.verdict is Verdict.VACUOUS else Verdict.PROVED
    return RowResult(verdict, judgement.evidence, findings)


def with_safe_depth(findings: Iterable[Finding], before: ir.Kernel) -> list[Finding]:
    """Findings about a transformed kernel; a full ring (702) with the largest safe depth of the loops it was made from.

    Args:
        before: the kernel before the transformation; if the skew of it does not hang, nothing is added.
    """
    found = list(findings)
    if not has_pipelines(before) or not any(f.code == "702" for f in found):
        return found
    try:
        skewed = Skew().run(before)
    except SkewError:
        return found
    texts = ((f, _advice(before, skewed, f.witness)) for f in found if f.code == "702")
    advice = {id(f): f"{text} (the text before)" for f, text in texts if text}
    return [replace(f, message=f.message + advice.get(id(f), "")) for f in found]


def _note(word: Callable[[Seen], Finding], fact: Fact, kernel: ir.Kernel) -> Finding:
    return replace(word(Seen(fact, Shape(tuple(0 for _ in kernel.parameters)), [])), row=Row.SKEW)


def _about(finding: Finding, kernel: ir.Kernel, judgement: Judgement) -> Finding:
    """A finding about the skewed kernel, with what helps against it."""
    text = finding.message
    if finding.code == "702":
        text += _advice(kernel, judgement.skewed, finding.witness)
    return replace(finding, row=Row.SKEW, message=f"after the skew: {text}")


def _advice(kernel: ir.Kernel, skewed: Skewed, witness: Witness | None) -> str:
    """Which depth would be safe, and for which trip counts the present one is not."""
    deepest = max((o for o in skewed.loops if o.depth is not None), key=lambda o: o.depth or 0, default=None)
    if deepest is None:
        return ""
    parameters = compile_kernel(kernel).parameters
    given = dict(witness.values) if witness is not None else {}
    depth = safe_depth(kernel, skewed, Shape(tuple(given.get(p, 0) for p in parameters)))
    text = f"; loop {deepest.loop.var} (stage {deepest.stage}) runs {deepest.depth} iterations ahead"
    if depth == deepest.depth:
        return ""
    if depth == 1:
        text += ", the largest safe depth is 1, which no stage asks for"
    elif depth:
        text += f", the largest safe depth is {depth} (stage {depth + 1} or less)"
    elif depth == 0:
        text += ", and no smaller depth helps"
    return text + _batches(kernel, skewed, deepest)


def _batches(kernel: ir.Kernel, skewed: Skewed, deepest: LoopOutcome) -> str:
    """For which trip counts the depth hangs with credits in batches, where the shape of the pair is a known one."""
    if kernel.credits == "per_slot" or len(kernel.fifos) != 2 or deepest.depth is None:
        return ""
    sizes = {f.slots.value for f in kernel.fifos if isinstance(f.slots, ir.Int)}
    peer = _peer(kernel, [o for o in skewed.loops if o.action == "skewed"])
    if len(sizes) != 1 or peer is None:
        return ""
    first = first_hang(Ring(sizes.pop(), "batched"), deepest.depth, peer)
    if first is None:
        return f"; with credits in batches depth {deepest.depth} never hangs"
    least = max((first // deepest.depth + 1) * deepest.depth, 2 * deepest.depth)
    return f"; with credits in batches depth {deepest.depth} hangs from {least} trips on"


def _peer(kernel: ir.Kernel, skewed: list[LoopOutcome]) -> Peer | None:
    """What the peer of a push-first loop does, if both do one round trip per iteration and nothing else."""
    sections = [s for s in kernel.body if isinstance(s, ir.Section)]
    if len(sections) != 2 or any(isinstance(n, ir.If) for s in sections for n in ir.walk(s)):
        return None
    for section in sections:
        kinds = [type(n) for n in ir.walk(section) if isinstance(n, ir.Push | ir.Pop)]
        loops = [o for o in skewed if o.core == section.core]
        alone = len(loops) == 1 and any(stmt is loops[0].loop for stmt in section.body)
        if kinds != ([ir.Push, ir.Pop] if alone else [ir.Pop, ir.Push]) or (loops and not alone):
            return None
    depths = {o.depth for o in skewed}
    return None if len(depths) != 1 else "skewed" if len(skewed) == 2 else "sequential"
