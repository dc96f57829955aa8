"""What does the executor say about a kernel for every small parameter value, and does a report agree with it?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

from fencepost import ir
from fencepost.engine import CONTRADICTED
from fencepost.findings import Finding, KernelReport, Row, Severity, Verdict
from fencepost.model.executor import LimitReached, Run, run
from fencepost.model.functions import FunctionTable, Point
from fencepost.model.program import Compiled, compile_kernel
from fencepost.model.shapes import allowed, uses_functions

from . import brute

Values = tuple[int, ...]
Fault = tuple[str, frozenset[Row]]
"""A kind of fault, and the rows of which at least one must not be proved."""

SILENT = frozenset({"102", "103", "104", "105", "303", "304", "305", "307", "403", "503", "504", "701", "807"})
"""Codes whose fault a run alone need not show."""

_LIMIT = 30_000
_LEAST = -3  # value of a parameter
_TABLES: tuple[tuple[int, int | None], ...] = ((1, None), (0, None), (2, None), (-1, None), (0, 0), (0, 1), (0, 2))


def _rows(*rows: Row) -> frozenset[Row]:
    return frozenset(rows)


_BLOCKED = {
    "channel": _rows(Row.PAIRING, Row.PARTICIPANTS),
    "push": _rows(Row.FIFO, Row.PAIRING),
    "pop": _rows(Row.FIFO, Row.PAIRING),
    "phase": _rows(Row.PHASES, Row.PAIRING),
    "meet": _rows(Row.PARTICIPANTS),
}


def faults(result: Run) -> Iterator[Fault]:
    """The faults of one run."""
    if result.bad_values or result.outside:
        yield "value", _rows(Row.SLOT_MAPPING)
    for race in result.races:
        one, two = race.first.effect, race.second.effect
        if one.agent == two.agent and (one.phase is None) != (two.phase is None):
            yield "phase race", _rows(Row.PHASES, Row.EVENT_POSITION)
        elif {one.agent, two.agent} == {"aiv0", "aiv1"}:
            yield "sub-core race", _rows(Row.PARTICIPANTS, Row.EVENT_POSITION)
        else:
            yield "race", _rows(Row.EVENT_POSITION)
    if result.unwritten:
        yield "unwritten", _rows(Row.EVENT_POSITION, Row.SLOT_MAPPING)
    reasons = {b.reason for b in result.blocked} - {"lock", "drain"}
    if reasons:
        yield "hang", frozenset().union(*(_BLOCKED[r] for r in reasons))
    for left in result.leftovers:
        if result.channels[left.channel].kind == "flag":
            yield "flag left", _rows(Row.COUNTS)
        else:
            yield "leftover", _rows(Row.PAIRING)
    if any(sets != waits for sets, waits in _issued(result).values()):
        yield "counts", _rows(Row.COUNTS)
    if any(len(set(counts)) > 1 for counts in _messages(result).values()):
        yield "message counts", _rows(Row.FIFO)
    if result.overflows:
        yield "overflow", _rows(Row.COUNTS)
    if result.mutex_faults:
        yield "mutex", _rows(Row.COUNTS)
    if result.phase_faults:
        yield "flag set", _rows(Row.PHASES)
    if result.message_faults:
        yield "message", _rows(Row.FIFO)
    if result.illegal:
        yield "illegal", _rows(Row.PARTICIPANTS, Row.FIFO)
    if result.contested and _schedules_differ(result):
        yield "contested", _rows(Row.PAIRING, Row.EVENT_POSITION)


def _issued(result: Run) -> dict[int, tuple[int, int]]:
    """Sets and waits per channel that the agents issue, executed or not."""
    found: dict[int, tuple[int, int]] = {}
    for ops in result.issued.values():
        for op in ops:
            for way, channels in ((0, op.effect.sets), (1, op.effect.waits)):
                for channel in channels:
                    sets, waits = found.get(channel, (0, 0))
                    found[channel] = (sets + (way == 0), waits + (way == 1))
    return found


def _messages(result: Run) -> dict[tuple[int, int], list[int]]:
    """Pushes, pops and frees per ring and lane that the agents issue, executed or not."""
    found: dict[tuple[int, int], list[int]] = {}
    for ops in result.issued.values():
        for op in ops:
            for i, kind in enumerate((ir.Push, ir.Pop, ir.Free)):
                if isinstance(op.effect.stmt, kind):
                    for key in op.effect.rings:
                        found.setdefault(key, [0, 0, 0])[i] += 1
    return found


def _schedules_differ(result: Run) -> bool:
    """Whether some schedule of a contested run hangs although the canonical one does not (small runs only)."""
    if result.blocked or len(result.order) > 60:
        return False
    try:
        outcome = brute.explore(brute.system(result), 4000)
    except brute.TooLarge:
        return False
    return outcome.deadlock


@dataclass
class Truth:
    """What the runs of all small values say.  `failing` maps values to the faults there, smallest sum first."""

    tried: int = 0
    clean: int = 0
    contested: int = 0
    failing: dict[tuple[Values, tuple[int, int | None]], set[Fault]] = field(default_factory=dict)

    @property
    def smallest(self) -> int | None:
        """The smallest sum of absolute values at which something fails."""
        return min((sum(map(abs, v)) for v, _ in self.failing), default=None)

    @property
    def first(self) -> set[Fault]:
        """The faults at the smallest failing values."""
        return next(iter(self.failing.values()), set())

    def all(self) -> set[Fault]:
        return set().union(*self.failing.values())


def credit_modes(kernel: ir.Kernel) -> list[Literal["per_slot", "batched"]]:
    if not kernel.fifos:
        return ["per_slot"]
    return ["per_slot", "batched"] if kernel.credits == "both" else [kernel.credits]


def small_values(compiled: Compiled) -> list[Values]:
    """All parameter values up to a bound, smallest sum first."""
    count = len(compiled.parameters)
    top, total = {0: (0, 0), 1: (22, 22), 2: (8, 10)}.get(count, (6, 7))
    found = [v for v in product(range(_LEAST, top + 1), repeat=count) if sum(map(abs, v)) <= total]
    return sorted(found, key=lambda v: (sum(map(abs, v)), v))


def truth(kernel: ir.Kernel, operations: int = 40_000) -> Truth:
    """Run a kernel on small values until `operations` operations were executed."""
    compiled = compile_kernel(kernel)
    tables = _TABLES if uses_functions(kernel) else _TABLES[:1]
    found = Truth()
    for values in small_values(compiled):
        for default, seed in tables:
            table = FunctionTable(default=default, seed=seed)
            if not allowed(compiled, values, table):
                continue
            seen: set[Fault] = set()
            contested = False
            for credits in credit_modes(kernel):
                try:
                    result = execute(compiled, values, table, credits)
                except LimitReached:
                    continue
                operations -= sum(map(len, result.issued.values()))
                seen |= set(faults(result))
                contested |= bool(result.contested)
            found.tried += 1
            found.clean += not seen and not contested
            found.contested += contested
            if seen:
                found.failing[values, (default, seed)] = seen
        if operations < 0:
            break
    return found


def execute(compiled: Compiled, values: Values, table: FunctionTable, credits: Literal["per_slot", "batched"]) -> Run:
    named = dict(zip(compiled.parameters, values, strict=True))
    return run(compiled, named, FunctionTable(table.values, table.default, table.seed), credits=credits, limit=_LIMIT)


# ------------------------------------------------------------------------------------------------ reports


def judge(kernel: ir.Kernel, report: KernelReport, real: Truth) -> list[str]:
    """Every way in which a report contradicts the runs; empty if it does not."""
    problems = list(proved_wrongly({check.row: check.verdict for check in report.checks}, real))
    problems += [f"proved wrongly: {c.evidence}" for c in report.checks if CONTRADICTED in c.evidence]
    if real.failing and report.verdict in (Verdict.PROVED, Verdict.VACUOUS):
        problems.append(f"proved wrongly: the kernel is {report.verdict.value}")
    for finding in report.findings:
        if finding.severity is Severity.ERROR and finding.witness is not None and not replays(kernel, finding):
            problems.append(f"no replay: FP{finding.code} at {finding.witness}: {finding.message}")
    if report.verdict is Verdict.REFUTED and not any(f.severity is Severity.ERROR for f in report.findings):
        problems.append("refuted without an error")
    sums = [_weight(f) for f in report.findings if f.severity is Severity.ERROR]
    if report.verdict is Verdict.REFUTED and real.smallest is not None and min(sums) > real.smallest:
        values, _ = next(iter(real.failing))
        problems.append(f"not smallest: {values} fails already")
    return problems


def _weight(finding: Finding) -> int:
    return 0 if finding.witness is None else sum(abs(v) for _, v in finding.witness.values)


def proved_wrongly(verdicts: Mapping[Row, Verdict], real: Truth) -> Iterator[str]:
    """Faults of runs for which every row that could tell is proved, or does not apply."""
    fine = {Verdict.PROVED, Verdict.NOT_APPLICABLE, Verdict.VACUOUS}
    for kind, rows in sorted(real.all(), key=repr):
        if all(verdicts.get(row, Verdict.NOT_APPLICABLE) in fine for row in rows):
            where = next(values for (values, _), seen in real.failing.items() if (kind, rows) in seen)
            names = ", ".join(row.id for row in rows)
            yield f"proved wrongly: {kind} at {where}, rows {names}"


def replays(kernel: ir.Kernel, finding: Finding) -> bool:
    """Whether the witness of a finding shows a fault of its row when the kernel runs on it."""
    assert finding.witness is not None
    compiled = compile_kernel(kernel)
    named = dict(finding.witness.values)
    values = tuple(named[p] for p in compiled.parameters)
    table = FunctionTable(dict(map(_point, finding.witness.functions)))
    if not allowed(compiled, values, table):
        return False
    seen: set[Fault] = set()
    for credits in credit_modes(kernel):
        result = execute(compiled, values, table, credits)
        seen |= set(faults(result))
        if result.contested and finding.code == "307":
            return True
    if finding.code in SILENT:
        return True
    if finding.code == "306":  # a cycle can go through messages and accumulators too
        return any(kind == "hang" for kind, _ in seen)
    if finding.code in ("206", "601"):  # what the counts show belongs to their rows too
        return any(kind in ("leftover", "counts", "hang") for kind, _ in seen)
    return any(finding.row in rows or finding.row is Row.BOUNDARY for _, rows in seen)


def _point(pair: tuple[str, int]) -> tuple[Point, int]:
    name, arguments = re.fullmatch(r"(\w+)\((.*)\)", pair[0]).groups()  # type: ignore[union-attr]
    return (name, tuple(int(a) for a in arguments.split(",") if a.strip())), pair[1]
