"""Repairs: which small edit of the kernel makes a fault go away?

A fault is named after the edit that repairs it: a set moved behind the access it announces, a wait moved before the
access it guards, another pipe, another guard or loop bound.  Every candidate is tried by running the edited kernel, so
a name is never a guess from the text alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.model.executor import LimitReached, Run
from fencepost.model.program import ModelError

Runner = Callable[[ir.Kernel], list[list[Run]]]
"""Runs a kernel on the shapes of interest, the witness first; one list of runs (one per credit mode) per shape."""

Signature = frozenset[tuple[object, ...]]


def signature(runs: list[Run]) -> Signature:
    """The faults of one shape in a form that survives an edit elsewhere in the kernel."""
    found: set[tuple[object, ...]] = set()
    for run in runs:
        found |= {("race", id(r.first.stmt), id(r.second.stmt)) for r in run.races}
        found |= {("race", id(r.second.stmt), id(r.first.stmt)) for r in run.races}
        found |= {("unwritten", id(u.op.stmt)) for u in run.unwritten}
        found |= {("blocked", id(b.op.stmt), b.op.effect.agent) for b in run.blocked}
        found |= {("leftover", str(run.channels[x.channel])) for x in run.leftovers}
        found |= {("overflow", str(run.channels[x.channel])) for x in run.overflows}
        found |= {("contested", id(c.first.stmt), id(c.second.stmt)) for c in run.contested}
        found |= {("phase", p.kind) for p in run.phase_faults}
        found |= {("message", m.kind, m.ring) for m in run.message_faults}
        found |= {("mutex", m.kind) for m in run.mutex_faults}
        found |= {("illegal", id(o.stmt)) for o in run.illegal}
        found |= {("outside", id(o.stmt)) for o in run.outside}
        found |= {("value", b.kind, b.span) for b in run.bad_values}
    return frozenset(found)


@dataclass(slots=True)
class Repairs:
    """Tries edits of one kernel, at most `budget` kernels in all."""

    kernel: ir.Kernel
    runner: Runner
    budget: int = 150
    _before: list[Signature] | None = None

    def whole(self, edited: ir.Kernel) -> bool:
        """True if the edited kernel is clean on every shape of interest."""
        after = self._run(edited)
        return after is not None and not any(after)

    def part(self, edited: ir.Kernel, faults: Signature) -> bool:
        """True if the edit removes all of `faults` at the witness and adds no fault there."""
        after = self._run(edited)
        return after is not None and not faults & after[0] and after[0] < self.before[0]

    def everywhere(self, edited: ir.Kernel, fault: tuple[object, ...]) -> bool:
        """True if the edit removes `fault` on every shape of interest and adds no fault on any."""
        after = self._run(edited)
        return after is not None and all(fault not in a and a <= b for a, b in zip(after, self.before, strict=True))

    @property
    def before(self) -> list[Signature]:
        if self._before is None:
            self._before = [signature(runs) for runs in self.runner(self.kernel)]
        return self._before

    def _run(self, edited: ir.Kernel) -> list[Signature] | None:
        if self.budget <= 0:
            return None
        self.budget -= 1
        try:
            return [signature(runs) for runs in self.runner(edited)]
        except (ModelError, LimitReached, KeyError):  # an edit may make a kernel that cannot run: no repair
            return None


# ------------------------------------------------------------------------------------------------ edits

Body = tuple[ir.Stmt, ...]


def bodies(kernel: ir.Kernel) -> Iterator[Body]:
    """Every statement list of the kernel, outermost first."""
    for node in ir.walk(kernel):
        match node:
            case ir.Section(body=body) | ir.For(body=body) | ir.Pipelined(body=body):
                yield body
            case ir.If():
                for _, body in node.branches:
                    yield body
                if node.orelse:
                    yield node.orelse


def replace_body(kernel: ir.Kernel, old: Body, new: Body) -> ir.Kernel:
    """The kernel with the statement list `old` (by identity) replaced by `new`."""
    return _rebuild(kernel, {id(old): new}, {})


def replace_statement(kernel: ir.Kernel, changes: dict[int, ir.Stmt]) -> ir.Kernel:
    """The kernel with statements replaced; `changes` maps id(statement) to its replacement."""
    return _rebuild(kernel, {}, changes)


def _rebuild(kernel: ir.Kernel, lists: dict[int, Body], statements: dict[int, ir.Stmt]) -> ir.Kernel:
    def body(old: Body) -> Body:
        new = tuple(statement(s) for s in lists.get(id(old), old))
        return old if len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True)) else new

    def statement(old: ir.Stmt) -> ir.Stmt:
        if id(old) in statements:
            return statements[id(old)]
        match old:
            case ir.For() | ir.Pipelined():
                inner = body(old.body)
                return old if inner is old.body else replace(old, body=inner)
            case ir.If():
                branches = tuple((c, body(b)) for c, b in old.branches)
                orelse = body(old.orelse)
                same = orelse is old.orelse and all(a[1] is b[1] for a, b in zip(branches, old.branches, strict=True))
                return old if same else replace(old, branches=branches, orelse=orelse)
        return old

    items: list[ir.Section | ir.Stmt] = []
    for item in kernel.body:
        items.append(replace(item, body=body(item.body)) if isinstance(item, ir.Section) else statement(item))
    return replace(kernel, body=tuple(items))


def contains(stmt: ir.Stmt, inner: ir.Node) -> bool:
    return any(node is inner for node in ir.walk(stmt))


def moved_behind(kernel: ir.Kernel, sync: ir.Stmt, access: ir.Node) -> ir.Kernel | None:
    """`sync` moved behind the later statement of its list that holds `access`; None if there is none."""
    return _moved(kernel, sync, access, behind=True)


def moved_before(kernel: ir.Kernel, sync: ir.Stmt, access: ir.Node) -> ir.Kernel | None:
    """`sync` moved before the earlier statement of its list that holds `access`; None if there is none."""
    return _moved(kernel, sync, access, behind=False)


def _moved(kernel: ir.Kernel, sync: ir.Stmt, access: ir.Node, *, behind: bool) -> ir.Kernel | None:
    for body in bodies(kernel):
        at = next((i for i, s in enumerate(body) if s is sync), None)
        if at is None:
            continue
        places = range(at + 1, len(body)) if behind else range(at)
        to = next((i for i in places if contains(body[i], access)), None)
        if to is None:
            return None
        rest = [*body[:at], *body[at + 1 :]]
        rest.insert(to, sync)
        return replace_body(kernel, body, tuple(rest))
    return None


def syncs(kernel: ir.Kernel, core: ir.Core | None = None) -> list[ir.SetCross | ir.WaitCross | ir.SyncSrc | ir.SyncDst]:
    """The synchronisation statements of the kernel (of one core's sections), in text order."""
    roots: list[ir.Node] = [
        item for item in kernel.body if core is None or not isinstance(item, ir.Section) or item.core == core
    ]
    return [
        n for root in roots for n in ir.walk(root) if isinstance(n, (ir.SetCross, ir.WaitCross, ir.SyncSrc, ir.SyncDst))
    ]


def core_of(agent: str) -> ir.Core:
    return "cube" if agent == "aic" else "vector"
