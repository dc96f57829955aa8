"""Parts: can what the agents share be explored apart from what each keeps to itself?

Memory that only one agent touches is checked on that agent alone, with signals of the others taken to come in time and
to order nothing: that only loses order.  What is left for all agents together are signals, shared memory, and the locks
that carry order between pipes.  The states of the parts add up instead of multiplying.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.model.effects import Resolver
from fencepost.model.program import Compiled, Emit, Enter, Program, Require, Set, Store, Test, compile_kernel
from fencepost.passes.bounds import Bounds
from fencepost.passes.constants import bad_constants
from fencepost.passes.slices import Slices
from fencepost.prove import loosen
from fencepost.prove.flags import without_credits
from fencepost.prove.ranges import Ranges
from fencepost.prove.structure import analyse
from fencepost.rewrite import rebuild


@dataclass(frozen=True, slots=True)
class Part:
    """A kernel to explore.

    `unchecked`: buffers whose accesses stand there only because they take locks.  `checks`: whether scalar expressions
    are checked as well.  `flags`: whether it is checked that no flag is set twice; if not, other parts do so.
    """

    compiled: Compiled
    unchecked: frozenset[str]
    checks: bool
    flags: bool = True


def shared(compiled: Compiled, direct: bool, flags: bool = True, apart: frozenset[str] = frozenset()) -> Part:
    """What the agents share, for all of them together.

    `direct`: keep the locks of those buffers alone that some operation accesses together with shared memory.
    `flags`: keep all flags; else some are left to the parts `flags`, and order is lost.
    `apart`: buffers that are looked at elsewhere (see `between_lanes`).
    """
    owners = private(compiled) | dict.fromkeys(apart, "vector")
    carrying = _carrying(compiled, owners)
    if direct:
        carrying &= _direct(compiled, owners)
    kernel = _Reduction(owners, carrying, _named(compiled), together=True).run(compiled.kernel)
    if not flags:
        kernel = Slices().run(without_credits(kernel))
    return Part(compile_kernel(kernel), frozenset(owners), False, flags)


def alone(compiled: Compiled) -> list[Part]:
    """What each agent keeps to itself: memory, one group of overlapping buffers at a time, and scalar expressions."""
    owners = private(compiled)
    parts: list[Part] = []
    for program in compiled.programs:
        core = _core(program)
        groups: dict[str, set[str]] = defaultdict(set)
        find = _groups(compiled)
        for name, owner in owners.items():
            if owner == core:
                groups[find(name)].add(name)
        loose = [group for group in groups.values() if not _ordered(compiled, program, group)]
        for group in groups.values():
            locking = _locking(compiled, core) if group in loose else frozenset()
            parts += _one(compiled, program, frozenset(group), locking, orders=group in loose)
        if not _harmless(compiled, program):
            parts += _one(compiled, program, frozenset(), frozenset(), scalars=True)
    return parts


def flags(compiled: Compiled) -> list[Part]:
    """The flags of each agent, with the locks that order its pipes."""
    return [
        part
        for program in compiled.programs
        if any(isinstance(site, ir.SyncSrc | ir.SyncDst) for site in program.sites)
        for part in _one(compiled, program, frozenset(), _locking(compiled, _core(program)), orders=True)
    ]


def _core(program: Program) -> str:
    return "cube" if program.agent == "aic" else "vector"


def of_lanes(compiled: Compiled) -> list[tuple[frozenset[str], list[Part]]]:
    """Shared memory that only the vector sub-cores touch, by groups, with a part for each sub-core alone.

    If these parts never touch the same cell, there is nothing to order between the sub-cores.
    """
    groups: dict[str, set[str]] = defaultdict(set)
    find = _groups(compiled)
    owned = private(compiled)
    cube = {find(name) for name in _touched(compiled, "aic")}
    for name in _touched(compiled, "aiv0") | _touched(compiled, "aiv1"):
        if name not in owned and find(name) not in cube:
            groups[find(name)].add(name)
    locking = _locking(compiled, "vector")
    lanes = [p for p in compiled.programs if p.agent != "aic"]
    return [
        (group, [part for lane in lanes for part in _one(compiled, lane, group, locking, orders=True, alike=False)])
        for group in map(frozenset, groups.values())
    ]


def _touched(compiled: Compiled, agent: str) -> set[str]:
    """The buffers that an agent accesses."""
    sites = [site for program in compiled.programs if program.agent == agent for _, site in _sites((program,))]
    return {a.name for site in sites for a in (*site.writes, *site.reads) if a.name in compiled.depths}


def loosened(part: Part, rows: bool = False) -> Part:
    """A part with a simpler kernel that has all its runs, and perhaps more; `rows` as in `loosen.simpler`."""
    kernel = loosen.loosened(loosen.simpler(part.compiled.kernel, rows), rows)
    whole = compile_kernel(kernel)
    agents = {p.agent for p in part.compiled.programs}
    programs = tuple(p for p in whole.programs if p.agent in agents)
    return replace(part, compiled=replace(whole, programs=programs))


def has_rows(part: Part) -> bool:
    """Whether `loosened` can keep to rows: whether some branch bounds a loop."""
    kernel = Slices().run(part.compiled.kernel)
    return Bounds().run(kernel) != kernel


def _one(
    compiled: Compiled,
    program: Program,
    group: frozenset[str],
    locking: frozenset[str],
    orders: bool = False,
    scalars: bool = False,
    alike: bool = True,
) -> list[Part]:
    """One agent with one group of its buffers, its flags (`orders`) or its scalars; if `alike`, once for both lanes."""
    core = _core(program)
    others = frozenset(b.name for b in compiled.kernel.buffers) - group
    reduction = _Reduction(dict.fromkeys(others, core), locking, group | locking, False, orders, scalars)
    kernel = reduction.run(compiled.kernel)
    kernel = replace(kernel, body=tuple(i for i in kernel.body if not isinstance(i, ir.Section) or i.core == core))
    if alike and program.agent == "aiv1" and not any(isinstance(n, ir.Name) and n.id == "sub" for n in ir.walk(kernel)):
        return []
    whole = compile_kernel(kernel)
    programs = tuple(p for p in whole.programs if p.agent == program.agent)
    return [Part(replace(whole, programs=programs), others, scalars, flags=not group)] if programs else []


def _ordered(compiled: Compiled, program: Program, group: set[str]) -> bool:
    """Whether all accesses to a group of buffers are ordered whatever else happens: on one pipe, or under one lock."""
    layout = Resolver(compiled).layout
    pipes: set[str] = set()
    phased = False
    for _, site in _sites((program,)):
        if any(a.name in group for a in (*site.writes, *site.reads)):
            pipes.add(site.pipe)
            phased = phased or site.phase is not None
    if len(pipes) <= 1:
        return True
    if phased or not (compiled.kernel.auto_mutex and compiled.target.has_mutex):
        return False
    taken: dict[int, frozenset[int]] = {}
    for (name, slot, _, _), cells in layout.views.items():
        if name not in group:
            continue
        mutexes = frozenset(layout.mutexes[name][slot]) if name in layout.mutexes else frozenset()
        for cell in cells:
            taken[cell] = taken.get(cell, mutexes) & mutexes
    return all(taken.values())


def _harmless(compiled: Compiled, program: Program) -> bool:
    """Whether no scalar expression of a program can be a fault."""
    ranges = Ranges(analyse(compiled, program))
    for i in program.code:
        match i:
            case Require():
                return False
            case Set(value=value) | Test(condition=value):
                if not ranges.safe(value):
                    return False
            case Store(index=index, size=size, value=value):
                if not (ranges.safe(index) and ranges.safe(value) and ranges.within(index, size)):
                    return False
            case Enter(start=start, stop=stop):
                if not (ranges.safe(start) and ranges.safe(stop)):
                    return False
            case Emit(arguments=arguments, task=task):
                if not all(ranges.safe(e) for e in (*arguments, *(() if task is None else (task,)))):
                    return False
    return True


def _named(compiled: Compiled) -> frozenset[str]:
    """The names that keep an operation: buffers, and messages while they are alive."""
    messages = {n.value for n in ir.walk(compiled.kernel) if isinstance(n, ir.Pop)}
    return frozenset(messages | set(compiled.depths))


# ---------------------------------------------------------------------------------------------- what is private


def _sites(programs: Iterable[Program]) -> Iterable[tuple[str, ir.DataOp]]:
    for program in programs:
        for site in program.sites:
            if isinstance(site, ir.DataOp):
                yield program.agent, site


def _groups(compiled: Compiled) -> Callable[[str], str]:
    """Names the group of overlapping buffers that a buffer belongs to."""
    first: dict[int, str] = {}
    group: dict[str, str] = {b.name: b.name for b in compiled.kernel.buffers}

    def find(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    for (name, _, _, _), cells in Resolver(compiled).layout.views.items():
        for cell in cells:
            group[find(name)] = find(first.setdefault(cell, name))
    return find


def private(compiled: Compiled) -> dict[str, str]:
    """The buffers that only one agent touches, with its core; each vector sub-core has its own Vec memory."""
    layout = Resolver(compiled).layout
    find = _groups(compiled)
    names = {b.name for b in compiled.kernel.buffers}
    users: dict[str, set[str]] = defaultdict(set)
    for agent, site in _sites(compiled.programs):
        for access in (*site.writes, *site.reads):
            if access.name in names:
                users[find(access.name)].add("cube" if agent == "aic" else "vector")
                if site.phase is not None and layout.spaces[access.name] == "Acc":
                    users[find(access.name)] |= {"cube", "vector"}  # the hand-over decides who waits
    found: dict[str, str] = {}
    for buffer in compiled.kernel.buffers:
        used = users[find(buffer.name)]
        if len(used) == 1:
            (core,) = used
            if core == "cube" or buffer.space == "Vec":
                found[buffer.name] = core
    return found


def _mutexes(compiled: Compiled, site: ir.DataOp) -> dict[str, frozenset[int]]:
    """The mutexes that the accesses of an operation may take, by buffer."""
    if not (compiled.kernel.auto_mutex and compiled.target.has_mutex):
        return {}
    layout = Resolver(compiled).layout
    return {
        access.name: frozenset(m for slot in layout.mutexes[access.name] for m in slot)
        for access in (*site.writes, *site.reads)
        if access.name in layout.mutexes
    }


def _locks(compiled: Compiled, agent: str) -> dict[int, set[str]]:
    """For each mutex of an agent the pipes that take it."""
    found: dict[int, set[str]] = defaultdict(set)
    (program,) = (p for p in compiled.programs if p.agent == agent)
    for _, site in _sites((program,)):
        for mutexes in _mutexes(compiled, site).values():
            for mutex in mutexes:
                found[mutex].add(site.pipe)
    return found


def _locking(compiled: Compiled, core: str) -> frozenset[str]:
    """The buffers of a core whose mutexes are taken on several pipes."""
    found: set[str] = set()
    for program in compiled.programs:
        if (program.agent == "aic") != (core == "cube"):
            continue
        locks = _locks(compiled, program.agent)
        for _, site in _sites((program,)):
            for name, mutexes in _mutexes(compiled, site).items():
                if any(len(locks[m]) > 1 for m in mutexes):
                    found.add(name)
    return frozenset(found)


def _carrying(compiled: Compiled, private: dict[str, str]) -> frozenset[str]:
    """The buffers whose locks may pass on, from pipe to pipe, what other agents ask for.

    A pipe that takes part in nothing shared, and has locks in common with one other pipe only, can tell that pipe
    nothing that matters: its locks are left out.
    """
    found: set[str] = set()
    for program in compiled.programs:
        locks = _locks(compiled, program.agent)
        busy = {"S"}
        for site in program.sites:
            if isinstance(site, ir.DataOp):
                if any(a.name not in private and a.name in compiled.depths for a in (*site.writes, *site.reads)):
                    busy.add(site.pipe)
            elif isinstance(site, (ir.SyncSrc, ir.SyncDst)):
                busy |= {site.source, site.target}
            else:
                busy.add(getattr(site, "pipe", "S"))
        while True:
            neighbours: dict[str, set[str]] = defaultdict(set)
            for pipes in locks.values():
                for pipe in pipes:
                    neighbours[pipe] |= pipes - {pipe}
            idle = {p for p, others in neighbours.items() if p not in busy and len(others) < 2}
            if not idle:
                break
            locks = {m: pipes - idle for m, pipes in locks.items() if pipes - idle}
        carry = {m for m, pipes in locks.items() if len(pipes) > 1}
        for _, site in _sites((program,)):
            pipes = {p for m in carry for p in locks[m]}
            for name, mutexes in _mutexes(compiled, site).items():
                if mutexes & carry and site.pipe in pipes:
                    found.add(name)
    return frozenset(found)


def _direct(compiled: Compiled, private: dict[str, str]) -> frozenset[str]:
    """The private buffers that some operation accesses together with shared memory."""
    found: set[str] = set()
    for _, site in _sites(compiled.programs):
        names = {a.name for a in (*site.writes, *site.reads)}
        if any(name not in private and name in compiled.depths for name in names):
            found |= names & set(private)
    return frozenset(found)


# ---------------------------------------------------------------------------------------------- the reduced kernel


_OPERATIONS = (
    ir.SetCross
    | ir.WaitCross
    | ir.SyncSrc
    | ir.SyncDst
    | ir.MutexLock
    | ir.MutexUnlock
    | ir.DataOp
    | ir.Push
    | ir.Pop
    | ir.Free
)


def _evaluated(operation: ir.Stmt, bad: frozenset[str]) -> ir.Stmt:
    """What is left of an operation where only scalars are looked at: its operands are worked out.

    `bad`: the constants whose value can be bad.
    """
    found: list[ir.Expr] = []
    stack: list[ir.Node] = list(ir.children(operation))
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Access):
            stack += ir.children(node)
        elif not isinstance(node, ir.Int | ir.Name) or (isinstance(node, ir.Name) and node.id in bad):
            found.append(node)  # type: ignore[arg-type]
    assigned = tuple(ir.Assign(f"operand~{k}", e, span=e.span) for k, e in enumerate(found))
    return ir.If(((ir.Int(1), assigned),), span=operation.span) if assigned else ir.Pass(span=operation.span)


@dataclass(frozen=True, slots=True)
class _Reduction:
    """Takes the accesses to the buffers `drop` out of a kernel, but for those in `locking`.

    `together`: for all agents; else for one agent, without signals.  `orders`: with flags and barriers.  `scalars`:
    with all scalar expressions.
    """

    drop: dict[str, str]
    locking: frozenset[str]
    buffers: frozenset[str]
    together: bool
    orders: bool = True
    scalars: bool = False

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        if not self.scalars:
            changed = rebuild(kernel, self._change)
            assert isinstance(changed, ir.Kernel)
            return Slices().run(changed)
        bad = bad_constants(kernel)

        def evaluated(node: ir.Node) -> ir.Node:
            return _evaluated(node, bad) if isinstance(node, _OPERATIONS) else self._change(node)

        changed = rebuild(kernel, evaluated)
        assert isinstance(changed, ir.Kernel)
        return changed

    def _change(self, node: ir.Node) -> ir.Node:
        match node:
            case ir.DataOp():
                writes = tuple(a for a in node.writes if self._kept(a))
                reads = tuple(a for a in node.reads if self._kept(a))
                if not any(a.name in self.buffers for a in (*writes, *reads)):
                    return ir.Pass(span=node.span)
                task = node.task if self.together else None
                return replace(node, writes=writes, reads=reads, at=(), task=task)
            case ir.Assert() if not self.scalars:
                return ir.Pass(span=node.span)
            case ir.SyncSrc() | ir.SyncDst() | ir.Barrier() | ir.MutexLock() | ir.MutexUnlock() if not self.orders:
                return ir.Pass(span=node.span)
            case ir.SyncAll() if not self.orders:
                return ir.Pass(span=node.span)
            case ir.SetCross() | ir.WaitCross() | ir.Push() | ir.Pop() | ir.Free() if not self.together:
                return ir.Pass(span=node.span)
            case ir.SyncAll() if not self.together:
                return ir.Barrier("ALL", span=node.span)
        return node

    def _kept(self, access: ir.Access) -> bool:
        return access.name not in self.drop or access.name in self.locking
