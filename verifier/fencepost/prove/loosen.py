"""Loosened kernels: which simpler kernel has all the runs of this one, and perhaps more?

A value whose computation decides nothing about signals and slots is replaced by an unknown one: the value of an unknown
function of the loops around, the same on every agent that computes it in the same way.  What holds for all functions
holds for the one that the kernel computes.  The opposite is not true: a fault of the loosened kernel proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

from fencepost import ir
from fencepost.model.program import compile_kernel
from fencepost.passes.aliases import Aliases, changes
from fencepost.passes.early import Early
from fencepost.passes.flat import Flat
from fencepost.passes.slices import Slices, needs, reads, select
from fencepost.prove.complements import Complements
from fencepost.prove.delays import Delays
from fencepost.prove.lazy import lazy
from fencepost.prove.nests import Path, Trips, nest_of, read_outside, sources
from fencepost.prove.ranges import Ranges
from fencepost.prove.structure import analyse
from fencepost.rewrite import rebuild


def simpler(kernel: ir.Kernel) -> ir.Kernel:
    """An equivalent kernel that carries less along: the same operations, and no faults of scalar expressions."""
    for step in (Slices(), Complements(), Slices(), Aliases(), Early(), Flat(), Slices()):
        kernel = step.run(kernel)
    return kernel


def loosened(kernel: ir.Kernel) -> ir.Kernel:
    """A kernel that has all runs of a `simpler` one."""
    kernel = Slices().run(Delays().run(kernel))
    compiled = compile_kernel(kernel)
    ranges = {p.agent: Ranges(analyse(compiled, p)) for p in compiled.programs}
    fixed = {*kernel.parameters, *ir.BUILTINS, *(c.name for c in kernel.constants)}
    numbers = {c.name for c in kernel.constants if isinstance(c.value, ir.Int)}
    items: list[ir.Section | ir.Stmt] = []
    origins: dict[object, str] = {}
    for item in kernel.body:
        if isinstance(item, ir.Section):
            outside = tuple(i for i in kernel.body if not isinstance(i, ir.Section))
            known = [r for agent, r in ranges.items() if (agent == "aic") == (item.core == "cube")]
            item = replace(item, body=lazy(_Values(fixed, numbers, outside, item.body, origins, known).run()))
        items.append(item)
    return Slices().run(replace(kernel, body=tuple(items)))


_HERE = "@here"
_EXACT = (
    ir.Access | ir.SetCross | ir.WaitCross | ir.SyncSrc | ir.SyncDst | ir.MutexLock | ir.MutexUnlock | ir.Push | ir.Pop
)
_MOST = 8  # larger lower bounds help nobody


@dataclass(slots=True)
class _Values:
    """Scalars computed from memory, from outer loops or by division become unknown functions.

    Their argument is the number of times that the body of the innermost loop around was begun.  `origins` names the
    functions: two values have one name if the same code computes them, whatever its names are.  That code holds all
    loops around with what bounds them, so that the n-th time is the same trip of all these loops for both.
    """

    fixed: set[str]
    numbers: set[str]
    outside: tuple[ir.Stmt, ...]
    program: tuple[ir.Stmt, ...]
    origins: dict[object, str]
    ranges: list[Ranges]
    loops: list[ir.For] = field(default_factory=list)
    visits: list[str] = field(default_factory=list)  # for each loop around, the counter of its trips
    counting: set[str] = field(default_factory=set)  # those counters that are asked for
    made: int = 0

    def run(self) -> tuple[ir.Stmt, ...]:
        """The statements of the program."""
        body = self.block(self.program, ())
        return (*(ir.Assign(name, ir.Int(0)) for name in sorted(self.counting)), *body)

    def block(self, body: tuple[ir.Stmt, ...], path: Path) -> tuple[ir.Stmt, ...]:
        """The statements of a block, which stands at `path` in the program."""
        last: dict[int, list[str]] = {}
        for name in dict.fromkeys(n for stmt in body for n in _defined(stmt)):
            places = [k for k, stmt in enumerate(body) if name in changes(stmt)]
            inner = [body[k] for k in places]
            if any(isinstance(s, ir.For) for s in inner):
                continue
            if all(isinstance(s, ir.Assign) for s in inner) or isinstance(inner[-1], ir.Assign):
                for k in places:
                    if isinstance(body[k], ir.Assign) and self._hard(name, [body[k]]):
                        last.setdefault(k, []).append(name)
            elif any(isinstance(s, ir.Assign) for s in inner) and self._hard(name, inner):
                last.setdefault(places[-1], []).append(name)
        found: list[ir.Stmt] = []
        for k, stmt in enumerate(body):
            before, new = self._statement(stmt, (*path, k))
            found += [*before, new]
            for name in last.get(k, ()):
                if isinstance(stmt, ir.Assign):
                    names = reads(stmt.value) - self.fixed
                    value = self._unknown(names, stmt.value, (*path, k - 1), isinstance(stmt.value, ir.Compare))
                else:
                    value = self._unknown({name}, ir.Name(name), (*path, k))
                if value is not None:
                    if isinstance(stmt, ir.Assign):
                        found.pop()
                    found.append(ir.Assign(name, value, span=stmt.span))
        return tuple(found)

    def _statement(self, stmt: ir.Stmt, path: Path) -> tuple[tuple[ir.Stmt, ...], ir.Stmt]:
        """A statement, and what has to come before it."""
        match stmt:
            case ir.For():
                busy = self._busy(stmt, path)
                if busy is not None:
                    return busy
                before, loop = self._trips(stmt, path)
                return before, self._loop(loop, path)
            case ir.If(branches=branches, orelse=orelse):
                arms = tuple(
                    (self._condition(condition, path), self.block(arm, (*path, k)))
                    for k, (condition, arm) in enumerate(branches)
                )
                return (), replace(stmt, branches=arms, orelse=self.block(orelse, (*path, len(branches))))
            case ir.StoreField(value=value) if self._compares(value):
                unknown = self._unknown(reads(value) - self.fixed, value, path, True)
                return (), stmt if unknown is None else replace(stmt, value=unknown)
        return (), stmt

    def _loop(self, loop: ir.For, path: Path) -> ir.For:
        visit = f"visit~{self.made}"
        self.made += 1
        self.loops.append(loop)
        self.visits.append(visit)
        renamed = self._outer(loop)
        first: tuple[ir.Stmt, ...] = ()
        if renamed is not loop.body:
            value = self._unknown({loop.var}, ir.Name(loop.var), (*path, 0, -1))
            if value is None:
                renamed = loop.body
            else:
                first = (ir.Assign(f"{loop.var}~", value, span=loop.span),)
        inner = (*first, *self.block(renamed, (*path, 0)))
        if visit in self.counting:
            count = ir.Assign(visit, ir.Binary("+", ir.Name(visit), ir.Int(1)), span=loop.span)
            inner = (count, *inner)
        self.loops.pop()
        self.visits.pop()
        return replace(loop, body=inner)

    def _busy(self, loop: ir.For, path: Path) -> tuple[tuple[ir.Stmt, ...], ir.Stmt] | None:
        """A nest whose trips do something only now and then, as one loop over those that do; None if it is none.

        How many there are in each run of the nest is unknown, and so is what the trip is like in which one falls.
        """
        found = nest_of(loop)
        if found is None:
            return None
        nest, guarded, inner = found
        ((guard, body),) = guarded.branches
        own = {x.var for x in nest}
        counted = {n for x in nest for s in x.body if isinstance(s, ir.Assign) for n in changes(s)}
        bounded = set().union(*(sources(self.program, reads(x.start, x.stop)) for x in nest))
        if len(reads(guard) & own) < 2 or bounded & own or {n for s in body for n in changes(s)} & (own | counted):
            return None
        if counted & read_outside(self.program, loop, guarded):
            return None
        start = (*path, *inner, 0, -1)
        bounds = reads(guard, *(x.start for x in nest), *(x.stop for x in nest))
        number = self._unknown(bounds - self.fixed, ir.Int(0), start)
        self.loops += nest
        visit = f"visit~{self.made}"
        trips = f"trips~{self.made}"
        self.made += 1
        self.visits.append(visit)
        used = sorted((own | counted) & {n for s in body for n in reads(s)})
        values = {name: self._unknown({name}, ir.Name(name), start) for name in used}

        def change(node: ir.Node) -> ir.Node:
            return replace(node, id=f"{node.id}~") if isinstance(node, ir.Name) and node.id in values else node

        renamed = tuple(cast(ir.Stmt, rebuild(s, change)) for s in body)
        done = self.block(renamed, (*path, *inner, 0))
        del self.loops[-len(nest) :]
        self.visits.pop()
        if number is None or None in values.values():
            return None
        first = [ir.Assign(f"{name}~", value) for name, value in values.items() if value is not None]
        count = ir.Assign(visit, ir.Binary("+", ir.Name(visit), ir.Int(1)), span=loop.span)
        flat = replace(loop, start=ir.Int(0), stop=ir.Name(trips), body=(count, *first, *done))
        self.counting.add(visit)
        return (ir.Assign(trips, number, span=loop.span),), flat

    def _trips(self, loop: ir.For, path: Path) -> tuple[tuple[ir.Stmt, ...], ir.For]:
        """A loop from an unknown start, as one over trip numbers from 0 whose number is unknown."""
        start, stop = loop.start, loop.stop
        changed = {n for s in loop.body for n in changes(s)}
        if isinstance(start, ir.Int) or loop.step != ir.Int(1) or reads(start, stop) & changed:
            return (), loop
        length = ir.Call("max", (ir.Binary("-", stop, start), ir.Int(0)))
        place = (*path[:-1], path[-1] - 1)
        value = self._unknown(reads(start, stop) - self.fixed, length, place)
        if value is None:
            return (), loop
        trips = f"trips~{self.made}"
        rule = Trips(loop.var, start, stop, trips)
        body = tuple(rebuild(s, rule.compared) for s in loop.body)
        body = tuple(rebuild(rebuild(s, rule.position), rule.trip) for s in body)
        new = replace(loop, start=ir.Int(0), stop=ir.Name(trips), body=body)  # type: ignore[arg-type]
        return (ir.Assign(trips, value, span=loop.span),), new

    def _outer(self, loop: ir.For) -> tuple[ir.Stmt, ...]:
        """The body of an outer loop, whose variable is unknown where it meets other numbers than its own bounds."""
        if isinstance(loop.stop, ir.Int) or not any(isinstance(n, ir.For) for s in loop.body for n in ir.walk(s)):
            return loop.body
        own = reads(loop.start, loop.stop) | self.numbers | {loop.var}
        kept: set[int] = set()
        for stmt in loop.body:
            for node in ir.walk(stmt):
                exact = isinstance(node, ir.Compare) or (isinstance(node, ir.Binary) and node.op == "%")
                if (exact and loop.var in reads(node) and reads(node) <= own) or isinstance(node, _EXACT):
                    kept |= {id(n) for n in ir.walk(node)}
        used = False

        def change(node: ir.Node) -> ir.Node:
            nonlocal used
            if isinstance(node, ir.Name) and node.id == loop.var and id(node) not in kept:
                used = True
                return replace(node, id=f"{loop.var}~")
            return node

        body = tuple(rebuild(stmt, change) for stmt in loop.body)
        return body if used else loop.body  # type: ignore[return-value]

    # ------------------------------------------------------------------------------------------ what is replaced

    def _hard(self, name: str, definitions: list[ir.Stmt]) -> bool:
        """Whether some definition of a scalar is none that can be followed as it is, and none counts it on."""
        hard = False
        for stmt in definitions:
            for node in ir.walk(stmt):
                if isinstance(node, ir.Cursor) and node.name == name:
                    return False
                if isinstance(node, ir.Assign) and node.name == name:
                    if name in reads(node.value):
                        return False
                    hard |= self._compares(node.value) or any(self._difficult(n) for n in ir.walk(node.value))
        return hard

    def _compares(self, value: ir.Expr) -> bool:
        """Whether a value says how the variable of an outer loop compares with others."""
        outer = {f"{loop.var}~" for loop in self.loops}
        return isinstance(value, ir.Compare) and bool(reads(value) & outer)

    def _condition(self, condition: ir.Expr, path: Path) -> ir.Expr:
        """A condition; one about an outer loop that bounds no inner one is unknown."""
        if not self._compares(condition):
            return condition
        outer = {loop.var for loop in self.loops if f"{loop.var}~" in reads(condition)}
        if any(outer & sources(self.program, reads(loop.stop)) for loop in self.loops):
            return condition
        return self._unknown(reads(condition) - self.fixed, condition, (*path[:-1], path[-1] - 1), True) or condition

    def _difficult(self, node: ir.Node) -> bool:
        match node:
            case ir.Call(function=function):
                return function not in ir.INTERPRETED and not reads(node) <= self.fixed
            case ir.Binary(op="*", left=left, right=right):
                return not isinstance(left, ir.Int) and not isinstance(right, ir.Int)
            case ir.Binary(op="//"):
                return True
        return False

    # ------------------------------------------------------------------------------------------ by what

    def _unknown(self, names: set[str], value: ir.Expr, path: Path, truth: bool = False) -> ir.Expr | None:
        """An unknown function of the loops around for what a value is right after the statement at `path`.

        `truth`: the value is 0 or 1, and so is what stands for it.  None if it depends on more than scalars.
        """
        names = {name.removesuffix("~") if name.endswith("~") else name for name in names}
        holds = True
        while truth and (denied := _denied(value)) is not None:
            value, holds = denied, not holds
        whole = (*self.outside, *_marked(self.program, path))
        needed = needs(whole, (*names, _HERE), operations=False)
        if any("." in n for n in needed):
            return None
        for stmt in whole:
            for node in ir.walk(stmt):
                if isinstance(node, ir.Cursor) and node.name in needed:
                    return None
                if isinstance(node, ir.Pop) and node.value in needed:
                    return None
        places: dict[str, str] = {}

        def canonical(old: str) -> str:
            return old if old in self.fixed else places.setdefault(old, f"@{len(places)}")

        def change(node: ir.Node) -> ir.Node:
            match node:
                case ir.Name(id=old):
                    return replace(node, id=canonical(old.removesuffix("~")))
                case ir.Assign(name=old):
                    return replace(node, name=canonical(old))
                case ir.For(var=old):
                    return replace(node, var=canonical(old))
            return node

        text = tuple(rebuild(stmt, change) for stmt in select(whole, needed))
        around = tuple(canonical(loop.var) for loop in self.loops)
        origin = (text, rebuild(value, change), around, truth)
        function = self.origins.setdefault(origin, f"value~{len(self.origins)}{'' if truth else self._from(value)}")
        own = (ir.Name("sub"),) if "sub" in needed | reads(value) else ()
        if self.visits:
            self.counting.add(self.visits[-1])
            own = (*own, ir.Name(self.visits[-1]))
        call = ir.Call(function, own)
        return ir.Compare(call, (("<" if holds else ">=", ir.Int(0)),), span=value.span) if truth else call

    def _from(self, value: ir.Expr) -> str:
        """How the name of an unknown function tells its least value."""
        lows = [r.of(value)[0] for r in self.ranges]
        low = min((x for x in lows if x is not None), default=-1)
        return "" if None in lows or low < 0 else f"~from~{min(low, _MOST)}"


def _denied(value: ir.Expr) -> ir.Expr | None:
    """What a comparison denies, if it is written as a denial."""
    match value:
        case ir.Compare(first=ir.Compare() as first, rest=(("==", ir.Int(value=0)),)):
            return first
        case ir.Compare(rest=((("!=" | ">=" | ">") as op, other),)):
            return replace(value, rest=(({"!=": "==", ">=": "<", ">": "<="}[op], other),))  # type: ignore[arg-type]
    return None


def _marked(body: tuple[ir.Stmt, ...], path: Path) -> tuple[ir.Stmt, ...]:
    """A program with a mark after the statement at `path`."""
    k, *rest = path
    if k < 0:
        return (ir.Assign(_HERE, ir.Int(0)), *body)
    stmt = body[k]
    if not rest:
        return (*body[: k + 1], ir.Assign(_HERE, ir.Int(0)), *body[k + 1 :])
    arm, inner = rest[0], tuple(rest[1:])
    match stmt:
        case ir.For():
            stmt = replace(stmt, body=_marked(stmt.body, inner))
        case ir.If(branches=branches, orelse=orelse) if arm == len(branches):
            stmt = replace(stmt, orelse=_marked(orelse, inner))
        case ir.If(branches=branches):
            condition, chosen = branches[arm]
            arms = (*branches[:arm], (condition, _marked(chosen, inner)), *branches[arm + 1 :])
            stmt = replace(stmt, branches=arms)
    return (*body[:k], stmt, *body[k + 1 :])


def _defined(stmt: ir.Stmt) -> list[str]:
    """The scalars that a statement assigns outside of loops."""
    match stmt:
        case ir.Assign(name=name):
            return [name]
        case ir.If(branches=branches, orelse=orelse):
            return [n for arm in (*(b for _, b in branches), orelse) for s in arm for n in _defined(s)]
    return []
