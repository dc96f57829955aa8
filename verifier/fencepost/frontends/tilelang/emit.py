"""Which kernel IR says the same as the lowered body of a TileLang kernel?

All operations stand in one section and on one pipe: within a thread block the program runs in order, apart from what
the pipeline annotations change.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from fencepost import ir
from fencepost.frontends.tilelang.annotations import ALL, BOUNDS
from fencepost.frontends.tilelang.implied import implied, is_copy, is_partly_copy
from fencepost.frontends.tilelang.layout import layout
from fencepost.frontends.tilelang.merge import simplified
from fencepost.frontends.tilelang.names import Names
from fencepost.frontends.tilelang.values import UNTOLD, Branch, Gap, Let, Loop, Node, Op, Pipe, Region, Tensor, deep
from fencepost.rewrite import rebuild

_PIPE: ir.Pipe = "S"
_TILE = "tile_"  # marks the operations whose targets the compiler takes to be read as well
_PROBLEMS = {ALL: "the annotations are not written in the loop", BOUNDS: "the bounds are not written in the loop"}
_SPACES: dict[str, ir.Space] = {"shared": "Mat", "fragment": "Vec", "global": "GM"}


def kernel(name: str, nodes: tuple[Node, ...], names: Names, span: ir.Span, assume: Callable[[str], None]) -> ir.Kernel:
    """The kernel IR of a lowered body.

    Args:
        name: the name of the kernel.
        nodes: its body.
        names: those of the integers that are chosen from outside, and which of them are not negative.
        span: where it stands.
        assume: is told what is taken for granted.
    """
    nodes = simplified(nodes)
    emitter = _Emitter(nodes, assume)
    body = tuple(s for node in nodes for s in emitter.statements(node, top=False))
    body = _unfixed(body, {name for name, use in emitter.uses.items() if use.writes})
    used = {n.id for s in body for n in ir.walk(s) if isinstance(n, ir.Name)}
    parameters = tuple(s for s in names.symbols if s in used)
    assumes = tuple(ir.Compare(ir.Name(p), ((">=", ir.Int(0)),)) for p in parameters if p in names.naturals)
    buffers = tuple(emitter.buffers())
    section = ir.Section("cube", body, span=span)
    return ir.Kernel(name, parameters, "gpu", assumes=assumes, buffers=buffers, body=(section,), span=span)


def _unfixed(body: tuple[ir.Stmt, ...], written: Collection[str]) -> tuple[ir.Stmt, ...]:
    """The body where a value that is read from something that the kernel writes is another one each time."""
    calls = (n for s in body for n in ir.walk(s) if isinstance(n, ir.Call) and n.function == "somewhere")
    numbers = (n.arguments[0] for n in calls)
    count = itertools.count(1 + max((n.value for n in numbers if isinstance(n, ir.Int)), default=0))
    names = {f"value_of_{name}" for name in written}

    def changed(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Call) and node.function in names:
            return replace(node, function="somewhere", arguments=(ir.Int(next(count)), *node.arguments))
        return node

    block = rebuild(ir.If(((ir.Int(1), body),)), changed)
    assert isinstance(block, ir.If)
    return block.branches[0][1]


def pipes(nodes: Iterable[Node]) -> Iterator[Pipe]:
    """All pipelined loops, outer ones first."""
    for node in every(nodes):
        if isinstance(node, Pipe):
            yield node


def every(nodes: Iterable[Node]) -> Iterator[Node]:
    """All nodes, outer ones first."""
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        yield node
        match node:
            case Branch(arms, orelse):
                stack += [n for _, body in arms for n in body][::-1] + list(orelse)[::-1]
            case Loop() | Pipe():
                stack += node.body[::-1]


def _regions(node: Node) -> Iterator[tuple[Region, bool]]:
    match node:
        case Op():
            yield from ((r, False) for r in (*node.reads, *node.besides))
            yield from ((w, True) for w in node.writes)
        case Let(_, value):
            yield from ((r, False) for r in deep(value.loads))
        case Branch(arms):
            yield from ((r, False) for c, _ in arms if c is not None for r in deep(c.loads))
        case Loop() | Pipe():
            yield from ((r, False) for r in deep(node.loads))


@dataclass(slots=True)
class _Use:
    tensor: Tensor
    regions: list[Region] = field(default_factory=list)
    reads: int = 0
    writes: int = 0


class _Emitter:
    """Scalars at the top level of a pipelined loop (`binds`) are binds.

    Others are what they were read from, if no pipelined loop writes that (`changing` is what one does); else they are
    buffers with one element (`kept`).
    """

    def __init__(self, nodes: tuple[Node, ...], assume: Callable[[str], None]) -> None:
        self.assume = assume
        self.uses: dict[str, _Use] = {}
        everything = list(every(nodes))
        for node in everything:
            for region, is_write in _regions(node):
                if region.tensor.memory in ("value", "untold"):
                    continue
                use = self.uses.setdefault(region.tensor.name, _Use(region.tensor))
                use.regions.append(region)
                use.reads += not is_write
                use.writes += is_write
        self.shared_outputs = {name for pipe in pipes(nodes) for name in _written_twice(pipe)}
        self.layouts = {name: layout(u.tensor, u.regions) for name, u in self.uses.items() if self._declared(u)}
        self.variables = {n.var for n in everything if isinstance(n, (Loop, Pipe))}
        self.binds = {n.name for pipe in pipes(nodes) for n in pipe.body if isinstance(n, Let)}
        inside = (n for pipe in pipes(nodes) for n in every(pipe.body))
        self.changing = {r.tensor.name for n in inside for r, is_write in _regions(n) if is_write} & self.layouts.keys()
        self.kept: dict[str, None] = {}
        self.origins: dict[str, tuple[Region, ...]] = {}
        for node in everything:
            if isinstance(node, Let) and node.name not in self.binds:
                origin = self._resolved(deep(node.value.loads))
                if any(r.tensor.name in self.changing or r.tensor.name in self.kept for r in origin):
                    self.kept[node.name] = None
                else:
                    self.origins[node.name] = origin
        self.pipe: Pipe | None = None
        self.parted: set[str] = set()  # what the outermost pipelined loop around writes in part

    def _resolved(self, regions: Iterable[Region]) -> tuple[Region, ...]:
        """The regions, with what scalars that have no place of their own were read from in their stead."""
        found = (r for region in regions for r in self.origins.get(region.tensor.name, (region,)))
        return tuple(dict.fromkeys(found))

    def _declared(self, use: _Use) -> bool:
        """Global tensors that are only read are inputs, and those that are only written, once, are outputs."""
        memory, name = use.tensor.memory, use.tensor.name
        if memory == "barrier":
            return False
        return memory != "global" or (use.writes > 0 and (use.reads > 0 or name in self.shared_outputs))

    def buffers(self) -> Iterator[ir.Buffer]:
        for name, shape in self.layouts.items():
            depth = ir.Int(shape.depth) if shape.depth is not None else None
            yield ir.Buffer(name, _SPACES[shape.tensor.memory], depth)
        for name in self.kept:
            yield ir.Buffer(name, "Vec")

    # ------------------------------------------------------------------------------------------------ statements

    def statements(self, node: Node, top: bool) -> list[ir.Stmt]:
        """The statements of a node; `top`: at the top level of a pipelined loop, where each node is one statement."""
        if not (isinstance(node, Let) and node.name in self.origins) and self._is_untold(node):
            lost = ir.Unsupported("a buffer that is reached through an object of Python", span=node.span)
            return [lost, *self._told(node, top)] if isinstance(node, (Branch, Loop, Pipe)) else [lost]
        return self._told(node, top)

    def _is_untold(self, node: Node) -> bool:
        """Whether a node itself may touch tensors of which the text does not tell which they are."""
        return UNTOLD in self._resolved(region for region, _ in _regions(node))

    def _told(self, node: Node, top: bool) -> list[ir.Stmt]:
        match node:
            case Op():
                return self._operation(node)
            case Let():
                return self._let(node)
            case Branch():
                return self._branch(node)
            case Loop():
                body = tuple(s for n in node.body for s in self.statements(n, False))
                loop = ir.For(node.var, node.start, node.stop, node.step, body or (ir.Pass(),), span=node.span)
                return [*self._test(node.loads, node.span), loop]
            case Pipe():
                return [*self._test(node.loads, node.span), self._pipelined(node)]
            case Gap(reason, span):
                return [ir.Unsupported(reason, span=span)]

    def _operation(self, op: Op) -> list[ir.Stmt]:
        operands = self._accesses(self._resolved(op.reads), op.span)
        writes = self._accesses(op.writes, op.span, written=True)
        reads = dict.fromkeys((*operands, *self._accesses(self._besides(op), op.span)))
        if op.barrier:
            if self.pipe is None or not self._scheduled(self.pipe):
                return []
            return [ir.Unsupported(f"T.{op.name} orders statements by itself", span=op.span)]
        name = f"{_TILE}{op.name}" if op.tile else op.name
        numbers = (ir.Name(n) for n in op.names if n in self.variables)
        at = dict.fromkeys((*self._bound((*op.reads, *op.besides)), *numbers))
        return [ir.DataOp(name, writes, tuple(reads), _PIPE, at=tuple(at), span=op.span)]

    def _besides(self, op: Op) -> tuple[Region, ...]:
        """What an operation reads besides its operands, without what is the same in all pipelined loops."""
        return tuple(
            r for r in self._resolved(op.besides) if r.tensor.name in self.changing or r.tensor.name in self.kept
        )

    def _memory(self, regions: Iterable[Region], span: ir.Span) -> tuple[ir.Access, ...]:
        """Accesses to what something in the kernel writes."""
        kept = (r for r in regions if r.tensor.name in self.layouts or r.tensor.name in self.kept)
        return self._accesses(tuple(kept), span)

    def _bound(self, regions: Iterable[Region]) -> tuple[ir.Name, ...]:
        """The binds among some regions."""
        names = (r.tensor.name for r in self._resolved(regions) if r.tensor.memory == "value")
        return tuple(ir.Name(name) for name in dict.fromkeys(names) if name not in self.kept)

    def _test(self, loads: tuple[Region, ...], span: ir.Span) -> list[ir.Stmt]:
        """The operation that reads what a condition or a bound is read from, if that may change."""
        read = self._resolved(deep(loads))
        tested, operands = self._memory(read, span), self._bound(read)
        return [ir.DataOp("test", (), tested, _PIPE, at=operands, span=span)] if tested or operands else []

    def _let(self, let: Let) -> list[ir.Stmt]:
        """A bind; its value is exact if it is read from nothing, else an unknown one read from the same places."""
        if let.name in self.origins:
            return []
        loads = self._resolved(deep(let.value.loads))
        if let.name in self.kept:
            reads = self._memory(loads, let.span)
            target = ir.Access(let.name, span=let.span)
            return [ir.DataOp("store", (target,), reads, _PIPE, at=self._bound(loads), span=let.span)]
        read = [r.tensor.name for r in loads if r.tensor.name in self.layouts or r.tensor.name in self.kept]
        expr, binds = let.value.expr, self._bound(loads)
        mentioned = {n.id for n in ir.walk(expr) if isinstance(n, ir.Name)}
        if read or any(b.id not in mentioned for b in binds):
            items = (ir.Item(name, ir.Int(0)) for name in dict.fromkeys(read))
            expr = ir.Call(f"value_of_{let.name}", (*map(ir.Name, let.variables), *items, *binds))
        return [ir.Bind(let.name, expr, span=let.span)]

    @staticmethod
    def _scheduled(pipe: Pipe) -> bool:
        return bool({"stage", "order", ALL} & {*pipe.notes, *pipe.problems})

    def _accesses(self, regions: tuple[Region, ...], span: ir.Span, written: bool = False) -> tuple[ir.Access, ...]:
        """Accesses to regions.  What is only written as a whole may be read as a whole: its elements share one past."""
        found: list[ir.Access] = []
        variables = (self.pipe.var,) if self.pipe is not None else ()
        somewhere = ir.Call("somewhere", (ir.Int(span.line), *map(ir.Name, variables)))
        for region in regions:
            shape = self.layouts.get(region.tensor.name)
            if shape is not None:
                place = somewhere if written or region.tensor.name in self.parted else None
                found += shape.accesses(region, span, place)
            elif region.tensor.name in self.kept or region.tensor.memory not in ("barrier", "value", "untold"):
                found.append(ir.Access(region.tensor.name, span=span))
        return tuple(dict.fromkeys(found))

    def _branch(self, node: Branch) -> list[ir.Stmt]:
        arms = []
        loads: list[Region] = []
        for condition, body in node.arms:
            inner = tuple(s for n in body for s in self.statements(n, False))
            arms.append((ir.Int(1) if condition is None else condition.expr, inner or (ir.Pass(),)))
            loads += condition.loads if condition is not None else ()
        orelse = tuple(s for n in node.orelse for s in self.statements(n, False))
        branch = ir.If(tuple(arms), orelse, span=node.span)
        test = self._test(tuple(loads), node.span)
        return [ir.If(((ir.Int(1), (*test, branch)),), span=node.span)] if test else [branch]

    def _unseen(self, pipe: Pipe) -> set[str]:
        """What makes the compiler's plan another one: what subscripts read, and what copies read besides."""
        found: list[Region] = []
        for node in every(pipe.body):
            match node:
                case Op():
                    found += [r for region in (*node.reads, *node.others, *node.writes) for r in region.at]
                    found += node.others if is_copy(node) else ()
                case Let(_, value):
                    found += [r for region in value.loads for r in region.at]
                case Branch(arms):
                    found += [r for c, _ in arms if c is not None for region in c.loads for r in region.at]
                case Loop() | Pipe():
                    found += [r for region in node.loads for r in region.at]
        return {r.tensor.name for r in deep(found)} & self.changing

    def _unplanned(self, pipe: Pipe) -> str:
        """Why it is not known what the compiler plans for a number of stages; empty if it is."""
        unseen = ", ".join(sorted(self._unseen(pipe)))
        if unseen:
            return f"the compiler does not see what subscripts read ({unseen})"
        mixed = next((n for n in pipe.body if is_partly_copy(n)), None)
        return "" if mixed is None else f"line {mixed.span.line} copies into shared memory, but not only or not always"

    def _pipelined(self, node: Pipe) -> ir.Pipelined:
        outer, self.pipe = self.pipe, node
        if outer is None:
            written = (r for n in every(node.body) for r, is_write in _regions(n) if is_write)
            self.parted = {region.tensor.name for region in written if not region.whole}
        body: list[ir.Stmt] = []
        for inner in node.body:
            found = self.statements(inner, True)
            body += found if len(found) <= 1 else [ir.If(((ir.Int(1), tuple(found)),), span=found[0].span)]
        for key in node.problems:
            if key != "num_stages":
                body.append(ir.Unsupported(_PROBLEMS.get(key, f"{key} is not a list of constants"), span=node.span))
        mixed = next((n for n in node.body if is_partly_copy(n)), None)
        if mixed is not None and not node.raw and {"stage", "order"} & node.notes.keys():
            body.append(ir.Unsupported("which elements are copied asynchronously", span=mixed.span))
        self.pipe = outer

        notes = node.notes if node.raw else {**implied(node), **node.notes}
        if "num_stages" in notes and not {"stage", "order"} & notes.keys() and (why := self._unplanned(node)):
            self.assume(f"num_stages on line {node.span.line} is left out: {why}")
            notes = {key: value for key, value in notes.items() if key != "num_stages"}

        def listed(key: str) -> tuple[int, ...] | None:
            value = notes.get(key)
            return value if isinstance(value, tuple) else None

        stages = notes.get("num_stages")
        return ir.Pipelined(
            node.var,
            node.start,
            node.stop,
            tuple(body) or (ir.Pass(),),
            listed("stage"),
            listed("order"),
            stages if isinstance(stages, int) else None,
            listed("async_stages"),
            listed("async_producers"),
            listed("async_producer_groups"),
            span=node.span,
        )


def _written_twice(pipe: Pipe) -> set[str]:
    """Global tensors that two statements of a pipelined loop write."""
    counts: Counter[str] = Counter()
    for node in pipe.body:
        written = [region.tensor for n in every((node,)) for region, is_write in _regions(n) if is_write]
        counts.update({t.name for t in written if t.memory == "global"})
    return {name for name, count in counts.items() if count > 1}
