"""Which operations does a call in a TileLang program stand for?"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from fencepost import ir
from fencepost.frontends.tilelang.definitions import Definitions
from fencepost.frontends.tilelang.operations import (
    BARRIERS,
    MEMORIES,
    NO_TILE,
    OPERATIONS,
    OPTIONAL,
    SILENT,
    VALUES,
    Operand,
)
from fencepost.frontends.tilelang.state import argument_of
from fencepost.frontends.tilelang.traits import touched
from fencepost.frontends.tilelang.values import (
    Either,
    Function,
    Memory,
    Node,
    Number,
    Op,
    Opaque,
    Plain,
    Region,
    Several,
    Tensor,
    Vague,
    Value,
    mentioned,
)
from fencepost.spelling import is_name

_MAX_INLINED = 8
_TYPES = frozenset({"int", "float", "bool", "str", "object"})
_PYTHON = frozenset({"print", "assert_", "logger.info", "logger.warning"})
"""Calls that run when the kernel is compiled and add nothing to it."""


@dataclass(slots=True)
class Calls(Definitions):
    """Lowers calls that stand as statements."""

    def _call(self, call: ast.Call) -> list[Node]:
        word = self.word(call.func)
        if word is None:
            return self._other_call(call)
        if word in SILENT or word in MEMORIES:
            return []
        if word in BARRIERS:
            return [Op(word, (), (), self.source.span(call), barrier=True)]
        operands = OPERATIONS.get(word)
        if operands is None:
            return self._unknown_call(call, f"T.{word}")
        if not _plain(call):
            return [self.gap(call, f"the operands of T.{word}")]
        reads: list[Region] = []
        writes: list[Region] = []
        copying = word in ("copy", "async_copy", "tma_copy", "transpose")
        known: set[int] = set()
        for operand in operands:
            argument = argument_of(call, operand.position, operand.keyword)
            if argument is None and (word, operand.keyword) in OPTIONAL:
                continue
            if argument is None:
                return [self.gap(call, f"T.{word} without {operand.keyword}")]
            known.add(id(argument))
            regions = self._regions(argument, copying)
            computed = isinstance(self.evaluator.value(argument), Number) and (
                len({r.tensor for r in regions}) > 1 or any(r.tensor.memory == "value" for r in regions)
            )
            if (not regions or computed) and operand.keyword not in VALUES:
                return [self.gap(argument, f"which buffer `{ast.unparse(argument)[:60]}` is, in T.{word}")]
            way = operand.way
            if operand.fresh is not None and self._is_fresh(call, operand):
                way = "w"
            if "r" in way:
                reads += regions
            if "w" in way:
                writes += regions
        for argument in _arguments(call):
            if id(argument) not in known:
                reads += [r for r in self._regions(argument, False) if r.tensor.memory != "barrier"]
        if word == "cumsum" and not writes:  # in place
            writes = list(reads[:1])
        others, names = _through_pointers(word, reads, writes), self._names(call)
        tile = word not in NO_TILE
        op = Op(word, tuple(reads), tuple(writes), self.source.span(call), tile=tile, others=others, names=names)
        return self._expanded(op) if word.startswith("reduce") or word == "cumsum" else [op]

    def _expanded(self, op: Op) -> list[Node]:
        """Reductions compute in registers: operands in shared memory are copied there and back, in statements."""
        if len(op.writes) != 1 or not op.reads:
            return [op]
        source, target = op.reads[0], op.writes[0]
        if op.name == "cumsum":
            if source.tensor.memory != "fragment":
                return [op]
            middle = Region(self._scratch(source, "shared"))
            moved = replace(op, reads=(middle,), writes=(middle,))
            return [self._moved(op, source, middle), moved, self._moved(op, middle, target)]
        nodes: list[Node] = []
        inside, outside = source, target
        if target.tensor.memory == "shared":
            outside = Region(self._scratch(target, "fragment"))
            if target in op.reads:
                nodes.append(self._moved(op, target, outside))
        if source.tensor.memory == "shared":
            inside = Region(self._scratch(source, "fragment"))
            nodes.append(self._moved(op, source, inside))
        reads = tuple(inside if r == source else outside if r == target else r for r in op.reads)
        nodes.append(replace(op, reads=reads, writes=(outside,)))
        if outside is not target:
            nodes.append(self._moved(op, outside, target))
        return nodes

    def _scratch(self, like: Region, memory: Memory) -> Tensor:
        return replace(like.tensor, name=self.names.fresh(f"{like.tensor.name}_frag"), memory=memory)

    @staticmethod
    def _moved(op: Op, source: Region, target: Region) -> Op:
        return Op("copy", (source,), (target,), op.span, tile=True, others=op.others, names=op.names)

    def _is_fresh(self, call: ast.Call, operand: Operand) -> bool:
        flag = argument_of(call, operand.flag_position, operand.fresh)
        if flag is None:
            return operand.default
        value = self.evaluator.value(flag)
        return isinstance(value, Plain) and bool(value.value)

    def _names(self, call: ast.Call) -> tuple[str, ...]:
        """The names in the scalars among the arguments of a call."""
        return mentioned(self.evaluator.value(argument) for argument in _arguments(call))

    def _regions(self, node: ast.expr, copying: bool) -> list[Region]:
        """The elements that an operand names; in a copy, single indices are the corner of a tile."""
        value = self.evaluator.value(node)
        match value:
            case Tensor():
                return [Region(value)]
            case Region(tensor, dims, element=True) if copying and dims is not None and not _one_element(tensor):
                return [replace(value, dims=tuple(Vague() for _ in dims))]
            case Region():
                return [value]
            case Number(loads=loads):
                return list(loads)
            case Either(items):
                return touched(value) if all(map(touched, items)) else []
            case Several():
                return touched(value)
            case _:
                return []

    def _other_call(self, call: ast.Call) -> list[Node]:
        """A call of something that is not in the language: a macro of the same text, or an unknown function."""
        function = self.function(call)
        if function is not None:
            return self._inlined(call, function)
        return self._unknown_call(call, ast.unparse(call.func))

    def _inlined(self, call: ast.Call, function: Function) -> list[Node]:
        name = function.node.name
        self.result = Opaque()
        arguments = function.node.args
        if not _plain(call) or arguments.vararg is not None or arguments.kwarg is not None:
            return [self.gap(call, f"the arguments of {name}")]
        if name in self.calls or len(self.calls) >= _MAX_INLINED:
            return [self.gap(call, f"{name} calls itself, or through too many others")]
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        if any(isinstance(n, (ast.Nonlocal, ast.Global)) for s in function.node.body for n in ast.walk(s)):
            return [self.gap(call, f"the names of others that {name} changes")]
        given = dict(zip(names, call.args, strict=False))
        given.update({k.arg: k.value for k in call.keywords if k.arg is not None})
        values = {parameter: self.evaluator.value(chosen) for parameter, chosen in given.items()}
        values = {
            parameter: value.tensor if isinstance(value, Region) and value.whole and not value.at else value
            for parameter, value in {**function.defaults, **values}.items()
        }
        outer, frame = self.evaluator.scope, self.evaluator.frame
        assert frame is not None
        self.frames[frame] = outer
        part = self.names.next_part()
        self.evaluator.scope = self.frames.get(-1 if function.home is None else function.home, function.scope)
        self.enter(function.node)
        self.calls = (*self.calls, name)
        state, self.choices, self.returned, self.result = (self.choices, self.returned), 0, False, Plain(None)
        unrewritten, self.unrewritten = self.unrewritten, not function.is_macro
        nodes = []
        for parameter, value in values.items():
            nodes += self._passed(call, function, parameter, value)
        nodes += self.body(function.node.body)
        self.names.part, self.unrewritten = part, unrewritten
        self.choices, self.returned = state
        self.calls = self.calls[:-1]
        self.evaluator.scope, self.evaluator.frame = outer, frame
        del self.frames[frame]
        if nodes and not function.is_macro:
            nodes.insert(0, self.gap(call, f"the operations in {name}, which is no macro: they are lost,"))
        return nodes

    def _passed(self, call: ast.Call, function: Function, name: str, value: Value) -> list[Node]:
        """Give a parameter its value.  A macro binds scalars where it begins, or is told a place."""
        arguments = function.node.args
        given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        note = next((a.annotation for a in given if a.arg == name), None)
        element = isinstance(value, Region) and value.element
        variable = isinstance(value, Tensor) and value.scalar
        scalar = element or variable or (isinstance(value, Number) and not value.static)
        if not function.is_macro or not scalar:
            self.scope[name] = value
            return []
        kind = self._parameter_kind(note)
        if kind == "place" and variable:
            self.scope[name] = value
            return []
        if kind != "value":
            self.scope[name] = self.evaluator.untold(touched(value))
            return [self.gap(call, f"what {name} of {function.node.name} refers to")]
        number = self.evaluator.as_number(call, value)
        return self._bind(call, name, number, call)

    def _parameter_kind(self, note: ast.expr | None) -> str:
        """Whether a parameter of a macro is a "value" or a "place", by its annotation; empty if that is not known."""
        if isinstance(note, ast.Constant) and isinstance(note.value, str):
            try:
                note = ast.parse(note.value, mode="eval").body
            except SyntaxError:
                return ""
        word = self.word(note.func if isinstance(note, ast.Call) else note) if note is not None else None
        if word is None and isinstance(note, ast.Subscript):
            word = self.word(note.value)
        if word in ("Ref", "Var"):
            return "place"
        plain = note is None or isinstance(note, ast.Constant) or self.evaluator.builtin(note) in _TYPES
        return "value" if plain or word is not None else ""

    def _unknown_call(self, call: ast.Call, name: str) -> list[Node]:
        """An operation that is not known: it may read and write all of its operands."""
        reads: list[Region] = []
        writes: list[Region] = []
        others: list[Region] = []
        for argument in _arguments(call):
            regions, way, besides = self._pointed(argument)
            others += besides
            reads += regions if "r" in way else []
            for region in regions if "w" in way else ():
                dims = tuple(Vague() for _ in region.dims) if region.dims else (Vague(),)
                writes.append(replace(region, dims=dims))
        if not reads and not writes and not others:
            return [] if name in _PYTHON else [self.gap(call, f"{name} is not known")]
        line = self.line(call)
        self.assume(f"{name} on line {line} is taken to touch nothing but its operands")
        spelled = name.rpartition(".")[2]
        op, names = spelled if is_name(spelled) else "call", self._names(call)
        return [Op(op, tuple(reads), tuple(writes), self.source.span(call), others=tuple(others), names=names)]

    def _pointed(self, node: ast.expr) -> tuple[list[Region], str, list[Region]]:
        """An operand, how it is used, and what is read besides; `T.access_ptr(x, "w")` says how."""
        pointer = self._pointer(node)
        if pointer is not None:
            base, modes = pointer
            value = self.evaluator.value(modes[0]) if modes else Opaque()
            way = value.value if isinstance(value, Plain) and value.value in ("r", "w", "rw") else "rw"
            found = self._regions(base, False)
            besides = [load for a in _arguments(node) if a is not base for load in touched(self.evaluator.value(a))]
            if isinstance(node, ast.Call) and self.word(node.func) != "address_of":
                besides += [load for region in found for load in region.at]
            return found, str(way), besides
        value = self.evaluator.value(node)
        if isinstance(value, Number):
            return list(value.loads), "r", []
        return self._regions(node, False), "rw", []

    def _pointer(self, node: ast.expr) -> tuple[ast.expr, list[ast.expr]] | None:
        """What a pointer points to, and the argument that says what is done with it; None for anything else."""
        if not isinstance(node, ast.Call):
            return None
        word = self.word(node.func)
        if word in ("access_ptr", "address_of") and node.args:
            mode = argument_of(node, 1, "access_type")
            return node.args[0], [mode] if mode is not None else []
        if word == "tvm_access_ptr" and len(node.args) > 1:
            return node.args[1], []
        match node.func:
            case ast.Attribute(base, "access_ptr") if isinstance(self.evaluator.value(base), (Tensor, Region)):
                mode = argument_of(node, 0, "access_mask")
                return base, [mode] if mode is not None else []
        return None


def _plain(call: ast.Call) -> bool:
    """Whether a call says which argument is which: no `*` and no `**`."""
    return not any(isinstance(a, ast.Starred) for a in call.args) and all(k.arg is not None for k in call.keywords)


def _through_pointers(word: str, reads: list[Region], writes: list[Region]) -> tuple[Region, ...]:
    """What the subscripts of atomic operations on single elements read: the compiler sees it, as they are pointers."""
    if not word.startswith("atomic_"):
        return ()
    pointers = [*writes, *(reads if word.startswith("atomic_addx") else ())]
    return tuple(dict.fromkeys(load for region in pointers if region.element for load in region.at))


def _arguments(node: ast.expr) -> list[ast.expr]:
    return [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []


def _one_element(tensor: Tensor) -> bool:
    return tensor.shape is not None and all(s == ir.Int(1) for s in tensor.shape)
