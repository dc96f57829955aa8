"""Which kernel IR says the same as the lowered body of a TileLang kernel?

All operations stand in one section and on one pipe: within a thread block the program runs in order, apart from what
the pipeline annotations change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fencepost import ir
from fencepost.frontends.tilelang.annotations import ALL, BOUNDS
from fencepost.frontends.tilelang.implied import implied
from fencepost.frontends.tilelang.layout import layout
from fencepost.frontends.tilelang.merge import simplified
from fencepost.frontends.tilelang.values import Branch, Gap, Let, Loop, Node, Number, Op, Pipe, Region, Tensor

_PIPE: ir.Pipe = "S"
_TILE = "tile_"  # marks the operations whose targets the compiler takes to be read as well
_PROBLEMS = {ALL: "the annotations are not written in the loop", BOUNDS: "the bounds are not written in the loop"}
_SPACES: dict[str, ir.Space] = {"shared": "Mat", "fragment": "Vec", "global": "GM"}


def kernel(name: str, nodes: tuple[Node, ...], symbols: Iterable[str], span: ir.Span) -> ir.Kernel:
    """The kernel IR of a lowered body; `symbols` are the integers that are chosen from outside."""
    nodes = simplified(nodes, {})
    emitter = _Emitter(nodes)
    body = tuple(s for node in nodes for s in emitter.statements(node, top=False))
    used = {n.id for s in body for n in ir.walk(s) if isinstance(n, ir.Name)}
    parameters = tuple(s for s in symbols if s in used)
    assumes = tuple(ir.Compare(ir.Name(p), ((">=", ir.Int(0)),)) for p in parameters)
    buffers = tuple(emitter.buffers())
    section = ir.Section("cube", body, span=span)
    return ir.Kernel(name, parameters, "gpu", assumes=assumes, buffers=buffers, body=(section,), span=span)


def pipes(nodes: Iterable[Node]) -> Iterator[Pipe]:
    """All pipelined loops, outer ones first."""
    for node in _all(nodes):
        if isinstance(node, Pipe):
            yield node


def _all(nodes: Iterable[Node]) -> Iterator[Node]:
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
        case Op(_, reads, writes):
            yield from ((r, False) for r in reads)
            yield from ((w, True) for w in writes)
        case Let(_, value):
            yield from ((r, False) for r in value.loads)
        case Branch(arms):
            yield from ((r, False) for c, _ in arms if c is not None for r in c.loads)


@dataclass(slots=True)
class _Use:
    tensor: Tensor
    regions: list[Region] = field(default_factory=list)
    reads: int = 0
    writes: int = 0


class _Emitter:
    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.uses: dict[str, _Use] = {}
        for node in _all(nodes):
            for region, is_write in _regions(node):
                use = self.uses.setdefault(region.tensor.name, _Use(region.tensor))
                use.regions.append(region)
                use.reads += not is_write
                use.writes += is_write
        self.shared_outputs = {name for pipe in pipes(nodes) for name in _written_twice(pipe)}
        self.layouts = {name: layout(u.tensor, u.regions) for name, u in self.uses.items() if self._declared(u)}
        self.pipe: Pipe | None = None

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

    # ------------------------------------------------------------------------------------------------ statements

    def statements(self, node: Node, top: bool) -> list[ir.Stmt]:
        """The statements of a node; `top`: at the top level of a pipelined loop, where each node is one statement."""
        match node:
            case Op():
                return self._operation(node)
            case Let(name, value, span, uses):
                return [ir.Bind(name, self._bound(value, uses), span=span)]
            case Branch():
                return self._branch(node)
            case Loop():
                body = tuple(s for n in node.body for s in self.statements(n, False))
                loop = ir.For(node.var, node.start, node.stop, node.step, body or (ir.Pass(),), span=node.span)
                return [loop]
            case Pipe():
                return [self._pipelined(node)]
            case Gap(reason, span):
                return [ir.Unsupported(reason, span=span)]

    def _operation(self, op: Op) -> list[ir.Stmt]:
        reads, writes = self._accesses(op.reads, op.span), self._accesses(op.writes, op.span)
        if op.barrier:
            if self.pipe is None or not self._scheduled(self.pipe):
                return []
            return [ir.Unsupported(f"T.{op.name} orders statements by itself", span=op.span)]
        operands = tuple(ir.Name(name) for name in op.uses)
        name = f"{_TILE}{op.name}" if op.tile else op.name
        return [ir.DataOp(name, writes, reads, _PIPE, at=operands, span=op.span)]

    @staticmethod
    def _scheduled(pipe: Pipe) -> bool:
        return bool({"stage", "order", ALL} & {*pipe.notes, *pipe.problems})

    def _accesses(self, regions: tuple[Region, ...], span: ir.Span) -> tuple[ir.Access, ...]:
        found: list[ir.Access] = []
        for region in regions:
            shape = self.layouts.get(region.tensor.name)
            if shape is not None:
                found += shape.accesses(region, span)
            elif region.tensor.memory != "barrier":
                found.append(ir.Access(region.tensor.name, span=span))
        return tuple(dict.fromkeys(found))

    def _bound(self, value: Number, uses: tuple[str, ...]) -> ir.Expr:
        """The value of a bind: exact if it is read from nothing, else something that is read from the same places."""
        loaded = [r.tensor.name for r in value.loads if r.tensor.name in self.layouts]
        if not loaded:
            return value.expr
        items: list[ir.Expr] = [ir.Item(name, ir.Int(0)) for name in dict.fromkeys(loaded)]
        total = items[0]
        for item in (*items[1:], *(ir.Name(n) for n in uses)):
            total = ir.Binary("+", total, item)
        return total

    def _branch(self, node: Branch) -> list[ir.Stmt]:
        arms = []
        loads: list[Region] = []
        for condition, body in node.arms:
            inner = tuple(s for n in body for s in self.statements(n, False))
            arms.append((ir.Int(1) if condition is None else condition.expr, inner or (ir.Pass(),)))
            loads += condition.loads if condition is not None else ()
        orelse = tuple(s for n in node.orelse for s in self.statements(n, False))
        branch = ir.If(tuple(arms), orelse, span=node.span)
        tested = self._accesses(tuple(r for r in loads if r.tensor.name in self.layouts), node.span)
        if not tested and not node.uses:
            return [branch]
        operands = tuple(ir.Name(name) for name in node.uses)
        test = ir.DataOp("test", (), tested, _PIPE, at=operands, span=node.span)
        return [ir.If(((ir.Int(1), (test, branch)),), span=node.span)]

    def _pipelined(self, node: Pipe) -> ir.Pipelined:
        outer, self.pipe = self.pipe, node
        body: list[ir.Stmt] = []
        for inner in node.body:
            found = self.statements(inner, True)
            body += found if len(found) <= 1 else [ir.If(((ir.Int(1), tuple(found)),), span=found[0].span)]
        for key in node.problems:
            if key != "num_stages":
                body.append(ir.Unsupported(_PROBLEMS.get(key, f"{key} is not a list of constants"), span=node.span))
        self.pipe = outer

        notes = node.notes if node.raw else {**implied(node), **node.notes}

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
        written = [region.tensor for n in _all((node,)) for region, is_write in _regions(n) if is_write]
        counts.update({t.name for t in written if t.memory == "global"})
    return {name for name, count in counts.items() if count > 1}
