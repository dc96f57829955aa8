"""The prover: which rows hold for all parameter values, and which values may refute the others?

Independent methods stand behind one answer.  Exploration follows all executions in finitely many relative states;
closed forms ask a solver about ranks and counts; tables of states, which certificates are made of, generalise states
and let a solver judge the result.  Exploration goes first, the others where rows are left open.
Constants that are large become parameters first: what holds for any number of trips holds for theirs.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from fencepost import ir
from fencepost.apart import lanes_apart, private
from fencepost.applicability import SIX_POINTS
from fencepost.findings import Row, Verdict
from fencepost.large import LARGE, SMALLER, General, generalised, unbounded
from fencepost.model.functions import Point
from fencepost.model.program import Compiled, ModelError, compile_kernel
from fencepost.model.shapes import uses_functions
from fencepost.passes.anchors import Anchors
from fencepost.passes.blocks import Blocks
from fencepost.passes.decisive import Decisive
from fencepost.passes.gathered import Gathered
from fencepost.passes.nested import Nested
from fencepost.passes.strides import Strides
from fencepost.passes.unique import UniqueLoops
from fencepost.prove.explore import explore
from fencepost.prove.explorer import Exploration, Trouble
from fencepost.prove.order import Fault

_FEW = 100  # relative states of a glance, before closed forms have their turn
_GLANCE = 0.05  # of the time, for a glance
_LONG = 0.3  # of the time that is left, for closed forms that come first
_STATES = 20_000  # relative states of the last exploration
_FIRST = 2_000  # relative states of a first exploration: most kernels need less by far
_MOST = 0.7  # of the time, for the first exploration, which its number of states limits as well
_NEARLY, _LARGE = 0.9, 250  # the same for kernels of so many instructions, which are too large for closed forms
_SHARE = 0.5  # of the time that is left, for the method whose turn it is
_UNCOUNTED = frozenset(Row) - {Row.COUNTS, Row.BOUNDARY}  # rows that do not ask how many signals may be pending


@dataclass(slots=True)
class Proof:
    """What was shown about the rows of one kernel.

    `proved` maps a row to its evidence; a row that is neither there nor refuted is open, for the reason in `reasons`.
    `candidates` are values of parameters and unknown functions that may show a fault: replay them.  `vacuous`: no
    values satisfy the assumes.  `between` are rows that hold between the cores: what falsifies them, if anything does,
    stays inside one core or is one signal too many at a time.  `suspected`: open rows of which a complete exploration
    came upon a fault; it may be none, where more was explored than can happen.  `doubts` are such faults that may be
    boundary faults: row 5 is proved if runs show them, and not at boundaries alone.
    """

    proved: dict[Row, str] = field(default_factory=dict)
    reasons: dict[Row, str] = field(default_factory=dict)
    candidates: list[tuple[dict[str, int], dict[Point, int]]] = field(default_factory=list)
    vacuous: bool = False
    between: set[Row] = field(default_factory=set)
    suspected: set[Row] = field(default_factory=set)
    doubts: list[Fault] = field(default_factory=list)


def prepared(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel in the form that is explored: equivalent, but without what decides nothing."""
    for step in (Gathered(), UniqueLoops(), Nested(), Strides(), Anchors(), Decisive(), Blocks()):
        kernel = step.run(kernel)
    return kernel


def prove(compiled: Compiled, rows: Sequence[Row], deadline: float) -> Proof:
    """Prove rows for all parameter values that the assumes allow.

    Args:
        rows: the rows to decide.
        deadline: `time.monotonic()` at which to give up.
    """
    proof = Proof()
    constant = not compiled.parameters and not uses_functions(compiled.kernel)
    for large in (LARGE, SMALLER) if constant else (LARGE,):
        general = _general(compiled.kernel, large)
        if general is None or not rows or proof.vacuous:
            continue
        _generally(compiled, general, rows, _until(_SHARE, deadline), proof)
        rows = [row for row in rows if row not in proof.proved]
    if rows and not proof.vacuous and not (constant and proof.reasons):
        _prove(compiled, rows, deadline, proof)
    return proof


def _general(kernel: ir.Kernel, large: int) -> General | None:
    """The kernel for any numbers in place of large ones, in its assumes and in its text; None if there are none."""
    more = unbounded(kernel)
    found = generalised(kernel if more is None else more.kernel, large)
    if more is None or found is None:
        return found or more
    return replace(found, told=f"{found.told}, {more.told}")


def satisfying(compiled: Compiled, deadline: float) -> tuple[dict[str, int], dict[Point, int]] | Literal["none"] | None:
    """Values of parameters and functions that satisfy the assumes; None if that is not found out by `deadline`."""
    from fencepost.prove import closed_form

    found = closed_form.satisfying(compiled, deadline)
    return found if found is None or found == "none" else (found.given(compiled), dict(found.functions))


def blocks_apart(compiled: Compiled, deadline: float) -> str:
    """Why it is not shown that two blocks never touch one slot of shared memory; empty if that is shown."""
    from fencepost.prove import closed_form

    return closed_form.blocks_apart(compiled, deadline)


def _generally(compiled: Compiled, general: General, rows: Sequence[Row], deadline: float, proof: Proof) -> None:
    """Note what is proved for any number of trips as proved for the kernel with its own numbers."""
    found = Proof()
    _prove(compile_kernel(general.kernel), rows, deadline, found)
    proof.proved |= {row: f"{shown}, {general.told}" for row, shown in found.proved.items()}
    proof.reasons, proof.vacuous = found.reasons, found.vacuous
    proof.between |= found.between
    proof.suspected |= found.suspected
    proof.doubts += found.doubts
    for values, functions in found.candidates:
        proof.candidates.append(({p: v for p, v in values.items() if p in compiled.parameters}, functions))


def _prove(compiled: Compiled, rows: Sequence[Row], deadline: float, proof: Proof) -> None:
    """Prove rows by exploration and closed forms, and note what is shown in `proof`.

    Where the trips of a loop grow with the position of a loop around it, relative states are many and closed forms
    short: they have their turn after a glance, and again only if the time was not enough.
    """
    closed = solved = False
    proof.reasons = dict.fromkeys(rows, "not proved for all values")
    if growing(compiled.kernel):
        closed = _explore(compiled, _GLANCE, deadline, _FEW, proof)
        solved = not closed and _solve(compiled, _LONG, deadline, proof)
    large = sum(len(p.code) for p in compiled.programs) > _LARGE
    if not closed:
        closed = _explore(compiled, _NEARLY if large else _MOST, deadline, _FIRST, proof)
    if not (solved or (large and closed)):
        _solve(compiled, _SHARE, deadline, proof)
    _tabulate(compiled, rows, deadline, proof)
    if not closed:
        _explore(compiled, 1.0, deadline, _STATES, proof)


def _explore(compiled: Compiled, share: float, deadline: float, states: int, proof: Proof) -> bool:
    """Try to show what is open by exploration in a share of the time that is left; whether it came to an end."""
    rows = list(proof.reasons)
    if not rows or proof.vacuous:
        return True
    explored = list(explorations(compiled, _until(share, deadline), states, rows))
    _explored(compiled, rows, explored, proof)
    return explored[-1].closed


def _solve(compiled: Compiled, share: float, deadline: float, proof: Proof) -> bool:
    """Try to show what is open by closed forms in a share of the time that is left; whether they came to an end."""
    if not proof.reasons or proof.vacuous:
        return True
    until = _until(share, deadline)
    _closed_forms(compiled, until, proof)
    return time.monotonic() < until


def _tabulate(compiled: Compiled, rows: Sequence[Row], deadline: float, proof: Proof) -> None:
    """Try to show what is open by the table of states that a certificate is made of; it shows all rows, or none."""
    from fencepost.prove.certificate import NotCertified, certify
    from fencepost.prove.recheck import certifiable

    wanted = certifiable(compiled.kernel)
    if not proof.reasons or proof.vacuous or not wanted or not {*wanted} <= {*rows}:
        return
    try:
        found = certify(compiled.kernel, _until(_SHARE, deadline) - time.monotonic())
    except (NotCertified, ModelError):
        return
    states = sum(len(table["states"]) for table in found["tables"].values())
    for row in [row for row in proof.reasons if row in wanted]:
        proof.proved[row] = f"holds in all {states} states of a table, {len(found['claims'])} claims"
        del proof.reasons[row]


def _until(share: float, deadline: float) -> float:
    now = time.monotonic()
    return now + share * max(0.0, deadline - now)


def growing(kernel: ir.Kernel) -> bool:
    """Whether the trips of some loop are the more, the further a loop around it has come."""
    stack: list[tuple[ir.Node, frozenset[str]]] = [(kernel, frozenset())]
    while stack:
        node, around = stack.pop()
        if isinstance(node, ir.For):
            if around & {*_summands(node.start), *_summands(node.stop)}:
                return True
            around |= {node.var}
        stack += [(child, around) for child in ir.children(node) if isinstance(child, ir.Section | ir.For | ir.If)]
    return False


def _summands(expression: ir.Expr) -> Iterator[str]:
    """The names that an expression is a sum or a product of."""
    stack = [expression]
    while stack:
        match stack.pop():
            case ir.Name(id=name):
                yield name
            case ir.Binary(op="+" | "-" | "*", left=left, right=right):
                stack += [left, right]
            case _:
                pass


def _explored(compiled: Compiled, rows: Sequence[Row], explored: list[Exploration], proof: Proof) -> None:
    """Take over what explorations showed about rows that are still open."""
    for exploration in explored:
        proof.candidates += [(trouble.values, {}) for trouble in exploration.troubles]
    explored = [_counting(compiled, e) for e in explored]
    cores = [_between_cores(compiled, e) for e in explored]
    proof.between |= {row for row in SIX_POINTS if all(e.proves(row) for e in cores)}
    left = _open(compiled, rows, explored)
    for row in rows:
        if row not in left:
            states = max(e.states for e in explored)
            proof.proved[row] = f"holds in all {states} relative states" if states else "every run is the same"
            proof.reasons.pop(row, None)
            if row is Row.BOUNDARY:
                proof.doubts = [trouble.fault for e in explored for trouble in e.troubles]
        else:
            proof.reasons[row] = _why(row, explored)
            if explored[-1].closed:
                proof.suspected.add(row)


def _counting(compiled: Compiled, exploration: Exploration) -> Exploration:
    """What an exploration says if it lost count of signals: those beyond the capacity of an event are not followed."""
    if all(peak <= compiled.target.capacity for peak in exploration.peaks.values()):
        return exploration
    return replace(exploration, troubles=[*exploration.troubles, Trouble(("more signals than are counted",), {})])


def _open(compiled: Compiled, rows: Sequence[Row], explored: list[Exploration]) -> list[Row]:
    """Those of the rows that explorations do not show."""
    lanes = [_between_lanes(compiled, e) for e in explored]
    return [row for row in rows if not all(e.proves(row) for e in (lanes if row is Row.PARTICIPANTS else explored))]


def _between_lanes(compiled: Compiled, exploration: Exploration) -> Exploration:
    """What an exploration says of the two sub-cores: where they cannot meet, an access without order is another's."""
    apart = lanes_apart(compiled)
    troubles = [t for t in exploration.troubles if not (t.fault[0] == "race" and t.fault[2] in apart)]
    return replace(exploration, troubles=troubles)


def _between_cores(compiled: Compiled, exploration: Exploration) -> Exploration:
    """What an exploration says of signals and accesses between the cores."""
    own = private(compiled)

    def inner(fault: tuple[Hashable, ...]) -> bool:
        return fault[0] in ("overflow", "signals not counted", "mutex") or (
            fault[0] in ("race", "unwritten") and fault[2] in own
        )

    return replace(exploration, troubles=[t for t in exploration.troubles if not inner(t.fault)])


def explorations(
    compiled: Compiled, deadline: float, states: int = _STATES, rows: Sequence[Row] = tuple(Row)
) -> Iterator[Exploration]:
    """Explore a kernel under every credit scheme that it asks for, until one exploration does not close.

    Args:
        deadline: `time.monotonic()` at which to give up.
        states: the largest number of relative states per scheme; repeatable where the time is not.
        rows: the rows to show.
    """
    asked = compiled.kernel.credits
    schemes: tuple[Literal["per_slot", "batched"], ...] = ("per_slot",)
    if compiled.kernel.fifos:
        schemes = ("per_slot", "batched") if asked == "both" else (asked,)
    simpler = compile_kernel(prepared(compiled.kernel))

    def enough(exploration: Exploration) -> bool:
        return not _open(compiled, rows, [exploration])

    for scheme in schemes:
        exploration = explore(
            simpler, deadline, credits=scheme, states=states, enough=enough, counted=not _UNCOUNTED.issuperset(rows)
        )
        yield exploration
        if not exploration.closed:
            return


def _why(row: Row, explored: list[Exploration]) -> str:
    for e in explored:
        if not e.closed:
            return f"not proved for all values: {e.reason}"
        if not e.proves(row):
            kinds = ", ".join(dict.fromkeys(str(t.fault[0]) for t in e.troubles))
            return f"not proved for all values: a state with {kinds} may be reachable"
    return "not proved for all values"


def _closed_forms(compiled: Compiled, deadline: float, proof: Proof) -> None:
    """Decide what is open by closed forms; their reason stands only where exploration has none of its own."""
    from fencepost.prove import closed_form  # imports the solver: only when it is needed

    found = closed_form.prove(compiled, deadline)
    for row in list(proof.reasons):
        result = found.rows.get(row)
        if result is None:
            continue
        proof.candidates += [(c.given(compiled), dict(c.functions)) for c in result.candidates]
        if result.verdict is Verdict.VACUOUS:
            proof.vacuous = True
        elif result.verdict is Verdict.PROVED:
            proof.proved[row] = result.evidence
            del proof.reasons[row]
