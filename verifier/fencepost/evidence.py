"""Evidence: what does a proved row say to a person?"""

from __future__ import annotations

from fencepost import ir
from fencepost.findings import Row
from fencepost.model.program import Compiled
from fencepost.printer import print_expr
from fencepost.search import Outcome


def evidence(compiled: Compiled, row: Row, outcome: Outcome, how: str, counts: str = "") -> str:
    """One line for a row that holds for all parameter values.

    `how` says how it was shown.  `counts` are closed formulas, if known.
    """
    kernel = compiled.kernel
    match row:
        case Row.SLOT_MAPPING:
            return f"{_slots(compiled)}; {how}"
        case Row.EVENT_POSITION:
            return f"every access ordered, every overwrite after the read; {how}"
        case Row.PAIRING:
            return f"{_channels(outcome)}set k <-> wait k, no wait cycle; {how}"
        case Row.COUNTS:
            text = counts or "sets = waits on every channel at every end"
            if not outcome.tried:
                return f"{text}; {how}"
            peak = max(outcome.peaks.values(), default=0)
            return f"{text}; max pending {peak} of {compiled.target.capacity}"
        case Row.BOUNDARY:
            if outcome.tried and not outcome.clean:
                return "what is wrong is wrong at every trip count: no boundary is special"
            return f"{_shapes(compiled, outcome) if outcome.tried else how}; guards of both sides agree"
        case Row.PARTICIPANTS:
            modes = sorted({n.mode for n in ir.walk(kernel) if isinstance(n, (ir.SetCross, ir.WaitCross))})
            return f"{', '.join(modes) or 'no cross-core modes'}; ids legal on {compiled.target.name}, sub-cores agree"
        case Row.FIFO:
            rings = ", ".join(f"{f.name}: {print_expr(f.slots)} slots" for f in kernel.fifos)
            return f"{rings}; in order, never full for ever"
        case Row.PHASES:
            return f"every accumulator ends in Final and is handed back; {how}"
        case Row.SKEW | Row.TRANSLATION | Row.PIPELINE:
            return how


def _slots(compiled: Compiled) -> str:
    """`qk: t % 2 in [0, 2)`: how each buffer with several slots is indexed on its two sides."""
    found: dict[str, dict[str, None]] = {}
    for node in ir.walk(compiled.kernel):
        if isinstance(node, ir.DataOp):
            for access in (*node.writes, *node.reads):
                if access.index is not None and access.name in compiled.depths:
                    found.setdefault(access.name, {})[print_expr(access.index)] = None
    texts = [f"{name}: {', '.join(indices)} in [0, {compiled.depths[name]})" for name, indices in found.items()]
    return " · ".join(texts[:4]) + (" · ..." if len(texts) > 4 else "") if texts else "one slot each"


def _channels(outcome: Outcome) -> str:
    count = len(outcome.peaks)
    return f"{count} channels, " if count > 1 else "1 channel, " if count else ""


def _shapes(compiled: Compiled, outcome: Outcome) -> str:
    if not compiled.parameters:
        return "the only shape ran"
    largest = ", ".join(f"{p} = {v}" for p, v in zip(compiled.parameters, outcome.largest, strict=True))
    if outcome.clean == 1:
        return f"1 shape ran ({largest})"
    return f"{outcome.clean} shapes from the smallest to {largest} ran"
