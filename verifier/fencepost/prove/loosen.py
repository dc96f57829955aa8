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
from fencepost.passes.bounds import Bounds
from fencepost.passes.early import Early
from fencepost.passes.flat import Flat
from fencepost.passes.slices import Slices, needs, reads, select
from fencepost.passes.unread import Unread
from fencepost.prove.complements import Complements
from fencepost.prove.delays import Delays
from fencepost.prove.lazy import lazy
from fencepost.prove.nests import Nest, Path, Trips, nest_of, read_later, sources
from fencepost.prove.ranges import Ranges
from fencepost.prove.structure import analyse
from fencepost.prove.tails import Tails
from fencepost.rewrite import rebuild


def simpler(kernel: ir.Kernel, rows: bool = False) -> ir.Kernel:
    """An equivalent kernel that carries less along: the same operations, and no faults of scalar expressions.

    `rows`: keep to the rows of a nest, with the trips that do something in bounds of their own.
    """
    if rows:
        kernel = Bounds().run(Slices().run(kernel))
    for step in (Slices(), Complements(), Slices(), Aliases(), Early(), Flat(rows), Slices()):
        kernel = step.run(kernel)
    return kernel


def loosened(kernel: ir.Kernel, rows: bool = False) -> ir.Kernel:
    """A kernel that has all runs of a `simpler` one; `rows` as there."""
    kernel = Slices().run(Tails().run(Slices().run(Delays().run(kernel))))
    compiled = compile_kernel(kernel)
    ranges = {p.agent: Ranges(analyse(compiled, p)) for p in compiled.programs}
    fixed = {*kernel.parameters, *ir.BUILTINS, *(c.name for c in kernel.constants)}
    numbers = {c.name for c in kernel.constants if isinstance(c.value, ir.Int)}
    outside = tuple(i for i in kernel.body if not isinstance(i, ir.Section))
    for flat in (0,) if rows else (2, 1, 0):
        items: list[ir.Section | ir.Stmt] = []
        origins: dict[object, str] = {}
        nests: set[tuple[str, ...]] = set()
        for item in kernel.body:
            if isinstance(item, ir.Section):
                known = [r for agent, r in ranges.items() if (agent == "aic") == (item.core == "cube")]
                values = _Values(fixed, numbers, outside, item.body, origins, known, flat, rows)
                item = replace(item, body=lazy(values.run()))
                if any(isinstance(n, ir.For) for n in ir.walk(item)):
                    nests.add(tuple(values.flattened))
            items.append(item)
        if len(nests) < 2:
            break  # nests of one core that are not those of the other would have nothing in common with them
    return Slices().run(Unread().run(replace(kernel, body=tuple(items))))


_HERE = "@here"
_EXACT = (
    ir.Access | ir.SetCross | ir.WaitCross | ir.SyncSrc | ir.SyncDst | ir.MutexLock | ir.MutexUnlock | ir.Push | ir.Pop
)
_MOST = 8  # larger lower bounds help nobody


@dataclass(frozen=True, slots=True)
class _Frame:
    """Loops that are one in the loosened program: the counter of its trips, how many, where, and what they change.

    `acting`: only trips that do something are counted.
    """

    visit: str
    loops: int
    acting: bool
    path: Path
    changed: frozenset[str]


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
    flat: int  # 1: the outer loops of nests become one where nobody asks for their positions; 2: all loops
    rows: bool  # whether the first trip of an outer loop is told from the others
    loops: list[ir.For] = field(default_factory=list)  # the loops around
    frames: list[_Frame] = field(default_factory=list)  # the same, where a nest became one loop together
    flattened: list[str] = field(default_factory=list)  # the numbers of trips of all nests
    counting: set[str] = field(default_factory=set)  # those counters that are asked for
    made: int = 0
    dependencies: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)
    moved: dict[str, ir.Expr] = field(default_factory=dict)  # variables of loops over trip numbers, and their starts

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
        self.frames.append(_Frame(visit, 1, False, path, frozenset(changes(loop))))
        renamed = self._outer(loop)
        first: tuple[ir.Stmt, ...] = ()
        if renamed is not loop.body:
            apart = self.rows and loop.start == ir.Int(0) and loop.step == ir.Int(1)
            value = self._unknown({loop.var}, ir.Name(loop.var), (*path, 0, -1), least=1 if apart else None)
            if value is None:
                renamed = loop.body
            else:
                first = (ir.Assign(f"{loop.var}~", value, span=loop.span),)
                if apart:
                    start = ir.Assign(f"{loop.var}~", ir.Int(0), span=loop.span)
                    at_first = ir.Compare(ir.Name(loop.var), (("==", ir.Int(0)),), span=loop.span)
                    first = (ir.If(((at_first, (start,)),), first, span=loop.span),)
        inner = (*first, *self.block(renamed, (*path, 0)))
        if visit in self.counting:
            count = ir.Assign(visit, ir.Binary("+", ir.Name(visit), ir.Int(1)), span=loop.span)
            inner = (count, *inner)
        self.loops.pop()
        self.frames.pop()
        return replace(loop, body=inner)

    def _busy(self, loop: ir.For, path: Path) -> tuple[tuple[ir.Stmt, ...], ir.Stmt] | None:
        """A nest whose trips do something only now and then, as one loop over those that do; None if it is none.

        How many there are in each run of the nest is unknown, and so is what the trip is like in which one falls.
        """
        nest = nest_of(loop)
        if nest is None:
            return None
        found = self._unasked(nest)
        if found is None and not self._guarded(nest):
            return None
        nest = found or nest
        own, counted, used = _scalars(nest)
        body = nest.body
        asked = reads(nest.acting.branches[0][0]) if isinstance(nest.acting, ir.If) else set()
        if {n for s in body for n in changes(s)} & (own | counted) or counted & read_later(self.program, path, nest):
            return None
        inner = nest.path
        start = (*path, *inner, 0, -1)
        bounds = reads(*(x.start for x in nest.loops), *(x.stop for x in nest.loops)) | asked
        number = self._unknown(bounds - self.fixed, ir.Int(0), start, here=True)
        self.loops += nest.loops
        visit = f"visit~{self.made}"
        trips = f"trips~{self.made}"
        self.made += 1
        self.frames.append(
            _Frame(visit, len(nest.loops), isinstance(nest.acting, ir.If), path, frozenset(changes(loop)))
        )
        values = {name: self._unknown({name}, ir.Name(name), start) for name in used}

        def change(node: ir.Node) -> ir.Node:
            return replace(node, id=f"{node.id}~") if isinstance(node, ir.Name) and node.id in values else node

        renamed = tuple(cast(ir.Stmt, rebuild(s, change)) for s in body)
        done = self.block(renamed, (*path, *inner, 0))
        del self.loops[-self.frames.pop().loops :]
        if number is None or None in values.values():
            return None
        self.flattened.append(cast(ir.Call, number).function)
        first = [ir.Assign(f"{name}~", value) for name, value in values.items() if value is not None]
        count = ir.Assign(visit, ir.Binary("+", ir.Name(visit), ir.Int(1)), span=loop.span)
        flat = replace(loop, start=ir.Int(0), stop=ir.Name(trips), step=ir.Int(1), body=(count, *first, *done))
        self.counting.add(visit)
        return (ir.Assign(trips, number, span=loop.span),), flat

    def _unasked(self, nest: Nest) -> Nest | None:
        """A nest, or its outer loops, whose positions nobody asks for exactly."""
        if self.flat > 1 and len(nest.loops) > 1 and not _scalars(nest)[2]:
            return nest
        if not self.flat or not isinstance(nest.acting, ir.For) or len(nest.loops) < 3:
            return None
        outer = Nest(nest.loops[:-1], nest.loops[-2], nest.path[:-2])
        used = set(_scalars(outer)[2])
        for node in (n for s in outer.body for n in ir.walk(s)):
            if isinstance(node, ir.Compare | _EXACT) or (isinstance(node, ir.Binary) and node.op == "%"):
                loops = [x for x in outer.loops if x.var in reads(node)]
                if (isinstance(node, _EXACT) and reads(node) & used) or reads(node) & used - {x.var for x in loops}:
                    return None
                if any(reads(node) <= reads(x.start, x.stop) | self.numbers | {x.var} for x in loops):
                    return None  # as in `_outer`
        return outer

    def _guarded(self, nest: Nest) -> bool:
        """Whether the branch of a nest asks how several of its loops stand, which no bound says already."""
        if not isinstance(nest.acting, ir.If):
            return False
        own = {x.var for x in nest.loops}
        asked = reads(nest.acting.branches[0][0]) & own
        bounds = set().union(*(sources(self.program, reads(x.start, x.stop)) for x in nest.loops))
        return len(asked) >= 2 and not bounds & own and all(isinstance(s, ir.Assign) for s in nest.scalars)

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
        self.moved[loop.var] = start
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
                counted = {
                    loop.var for loop in self.loops if isinstance(loop.start, ir.Int) and isinstance(loop.stop, ir.Int)
                }
                return not reads(node) <= counted
        return False

    # ------------------------------------------------------------------------------------------ by what

    def _unknown(
        self,
        names: set[str],
        value: ir.Expr,
        path: Path,
        truth: bool = False,
        least: int | None = None,
        here: bool = False,
    ) -> ir.Expr | None:
        """An unknown function of the loops around for what a value is right after the statement at `path`.

        `truth`: the value is 0 or 1, and so is what stands for it.  `least`: it is not less where this is asked for.
        `here`: it is about the place, not only about the scalars that it reads.  None if it depends on more than
        scalars.
        """
        names = {name.removesuffix("~") for name in names}
        value = cast(ir.Expr, rebuild(value, _original))
        holds = True
        while truth and (denied := _denied(value)) is not None:
            value, holds = denied, not holds
        depth = len(self.frames) if here else self._depth(names)
        if depth < len(self.frames):
            *before, k = self.frames[depth].path
            path = (*before, k - 1)
        frames = self.frames[:depth]
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
                    return replace(node, id=canonical(old))
                case ir.Assign(name=old):
                    return replace(node, name=canonical(old))
                case ir.For(var=old):
                    return replace(node, var=canonical(old))
            return node

        text = tuple(rebuild(stmt, change) for stmt in select(whole, needed))
        sizes = tuple((frame.loops, frame.acting) for frame in frames)
        around = tuple(canonical(loop.var) for loop in self.loops[: sum(frame.loops for frame in frames)])
        origin = (text, rebuild(value, change), around, sizes, truth, least)
        end = "" if truth else self._from(value) if least is None else f"~from~{least}"
        function = self.origins.setdefault(origin, f"value~{len(self.origins)}{end}")
        own = (ir.Name("sub"),) if "sub" in needed | reads(value) else ()
        if frames:
            self.counting.add(frames[-1].visit)
            own = (*own, ir.Name(frames[-1].visit))
        call = ir.Call(function, own)
        return ir.Compare(call, (("<" if holds else ">=", ir.Int(0)),), span=value.span) if truth else call

    def _depth(self, names: set[str]) -> int:
        """How many of the loops around a value depends on: further in it stays the same."""
        key = frozenset(names)
        known = self.dependencies.get(key)
        if known is None:
            known = frozenset(needs((*self.outside, *self.program), names, operations=False))
            self.dependencies[key] = known
        depth = len(self.frames)
        while depth and not self.frames[depth - 1].changed & known:
            depth -= 1
        return depth

    def _position(self, node: ir.Node) -> ir.Node:
        """A position said by a trip number, by the variable whose range is known."""
        match node:
            case ir.Binary(op="+", left=ir.Name(id=var) as name, right=start) if var in self.moved and start == rebuild(
                self.moved[var], _original
            ):
                return name
        return node

    def _from(self, value: ir.Expr) -> str:
        """How the name of an unknown function tells its least value."""
        value = cast(ir.Expr, rebuild(value, self._position))
        if any(isinstance(n, ir.Compare) and reads(n) & self.moved.keys() for n in ir.walk(value)):
            return ""
        lows = [r.of(value)[0] for r in self.ranges]
        low = min((x for x in lows if x is not None), default=-1)
        return "" if None in lows or low < 0 else f"~from~{min(low, _MOST)}"


def _scalars(nest: Nest) -> tuple[set[str], set[str], list[str]]:
    """The variables of a nest, the scalars that its loops work out, and which of both its body reads."""
    own = {x.var for x in nest.loops}
    counted = {n for s in nest.scalars for n in changes(s)}
    return own, counted, sorted((own | counted) & {n for s in nest.body for n in reads(s)})


def _original(node: ir.Node) -> ir.Node:
    """The variable of an outer loop, where it is unknown, as the program itself calls it."""
    return replace(node, id=node.id.removesuffix("~")) if isinstance(node, ir.Name) else node


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
