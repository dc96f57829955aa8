"""Which kernels with pipelined loops does a TileLang program hold?

No code of the program is run and no framework is imported: constants, factories and macros are read from the syntax
tree, and what only the caller knows becomes a parameter of the kernel.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from fencepost import ir
from fencepost.findings import InputError
from fencepost.frontends.escapes import READERS, escapes
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.rebinding import bindings, hidden_change, imports_all
from fencepost.frontends.result import ReadResult
from fencepost.frontends.tilelang.emit import every, kernel, pipes
from fencepost.frontends.tilelang.expressions import Evaluator
from fencepost.frontends.tilelang.host import enter_factory, enter_module, enter_parameters
from fencepost.frontends.tilelang.lowering import Lowering
from fencepost.frontends.tilelang.names import Names
from fencepost.frontends.tilelang.values import Gap, Node
from fencepost.spelling import is_name

_MODULES = frozenset({"tilelang.language", "tilelang.language.v2", "tvm.script.tir", "tvm.script.tirx"})


def read(text: str, file: str) -> ReadResult:
    """Read every kernel with a pipelined loop from the text of a Python file."""
    source = Source(text, file)
    module = source.parse()
    if isinstance(module, InputError):
        return ReadResult(errors=(module,))
    try:
        return _Reader(source, module).result()
    except RecursionError:
        message = "the program is nested too deeply to be read"
        return ReadResult(errors=(InputError(file, 1, 1, message),))


@dataclass(slots=True)
class _Found:
    """A function that is a kernel, the functions around it (outermost first)."""

    node: ast.FunctionDef
    around: tuple[ast.FunctionDef, ...]


class _Reader:
    def __init__(self, source: Source, module: ast.Module) -> None:
        self.source, self.module = source, module
        self.language, self.members = _language(module), _members(module)
        self.reached: set[int] = set()
        imports = [n for n in ast.walk(module) if isinstance(n, (ast.Import, ast.ImportFrom))]
        imported, bound = Counter(bindings(imports)), Counter(bindings([module], everywhere=True))
        self.escapes = escapes(
            module, {name for name in (*self.language, *self.members) if bound[name] == imported[name]}
        )
        kernels = list(self._kernels())
        outside = {id(f) for found in kernels for f in found.around}
        modules = {name for name in imported if imported[name] == bound[name]}
        inside = (s for s in ast.walk(module) if isinstance(s, ast.FunctionDef) and id(s) not in outside)
        self.given = _given((n for s in inside for n in _own(s)), self.language | modules)
        self.rebound = _rebound(module)

    def result(self) -> ReadResult:
        kernels: list[ir.Kernel] = []
        assumptions: dict[str, tuple[str, ...]] = {}
        names: set[str] = set()
        errors: list[InputError] = []
        for found in self._kernels():
            try:
                read_kernel, assumed = self._read(found, names)
            except RecursionError:
                errors.append(self.source.error(found.node, f"{found.node.name} is nested too deeply to be read"))
                continue
            if read_kernel is not None:
                names.add(read_kernel.name)
                kernels.append(read_kernel)
                if assumed:
                    assumptions[read_kernel.name] = assumed
        for site, function in self._unreached():
            name = _unique(function.name if function is not None else "module", names)
            names.add(name)
            reason = "a pipelined loop that belongs to no kernel which could be read"
            gap = Gap(reason, self.source.span(site))
            header = self.source.header(function) if function is not None else self.source.span(site)
            kernels.append(kernel(name, (gap,), Names(), header, lambda _: None))
        kernels.sort(key=lambda k: k.span.line)
        return ReadResult(tuple(kernels), tuple(errors), assumptions)

    def _unreached(self) -> Iterator[tuple[ast.expr, ast.FunctionDef | None]]:
        """What names a pipelined loop, but is in no kernel that was read, with the function around it."""
        stack: list[tuple[ast.AST, ast.FunctionDef | None]] = [(self.module, None)]
        while stack:
            node, function = stack.pop()
            inner = node if isinstance(node, ast.FunctionDef) else function
            match node:
                case ast.Name("Pipelined", ast.Load()) | ast.Attribute(_, "Pipelined", ast.Load()):
                    if id(node) not in self.reached:
                        yield node, function
            stack += [(child, inner) for child in reversed([*ast.iter_child_nodes(node)])]

    def _kernels(self) -> Iterator[_Found]:
        stack: list[tuple[ast.AST, tuple[ast.FunctionDef, ...]]] = [(self.module, ())]
        while stack:
            node, around = stack.pop()
            inside = around
            if isinstance(node, ast.FunctionDef):
                if self._is_kernel(node):
                    yield _Found(node, around)
                inside = (*around, node)
            children = [c for c in ast.iter_child_nodes(node) if isinstance(c, (ast.stmt, ast.ExceptHandler))]
            stack += [(child, inside) for child in reversed(children)]

    def _is_kernel(self, node: ast.FunctionDef) -> bool:
        decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
        if any(isinstance(d, ast.Attribute) and d.attr == "macro" for d in decorators):
            return False
        if any(_last(d) == "prim_func" for d in decorators):
            return True
        return any(
            isinstance(n, ast.With) and any(_last(_called(i.context_expr)) == "Kernel" for i in n.items)
            for n in _own(node)
        )

    # ------------------------------------------------------------------------------------------------ one kernel

    def _read(self, found: _Found, names: set[str]) -> tuple[ir.Kernel | None, tuple[str, ...]]:
        lowering = self._lowering()
        for function in found.around:
            enter_factory(function, lowering)
        lowering.enter(found.node)
        enter_parameters(found.node, lowering, Counter())
        lowering.parameters(found.node)
        nodes = tuple(lowering.body(found.node.body))
        if not self._worthwhile(found.node, nodes):
            return None, ()
        name = "_".join(f.name for f in (*found.around[:1], found.node))
        self.reached |= lowering.reached
        if any(isinstance(n, Gap) for n in every(nodes)):
            self.reached |= {id(n) for n in ast.walk(found.node)}
        unique = _unique(name, names)
        result = kernel(unique, nodes, lowering.names, self.source.header(found.node), lowering.assume)
        return result, self._assumed(result, lowering)

    @staticmethod
    def _worthwhile(function: ast.FunctionDef, nodes: tuple[Node, ...]) -> bool:
        """Whether the kernel has a pipelined loop, or may have one in a part that could not be read."""
        if any(True for _ in pipes(nodes)):
            return True
        named = (_last(_called(n.iter)) for n in ast.walk(function) if isinstance(n, (ast.For, ast.AsyncFor)))
        return "Pipelined" in named and any(isinstance(n, Gap) for n in every(nodes))

    def _lowering(self) -> Lowering:
        """What lowers a kernel, with the names of the module in scope."""
        evaluator = Evaluator(
            {}, self.language, members=self.members, escapes=self.escapes, given=self.given, rebound=self.rebound
        )
        evaluator.members = self.members
        lowering = Lowering(self.source, evaluator)
        hidden = hidden_change(self.module, PurePath(self.source.file).stem)
        lowering.evaluator.loose = hidden is not None
        enter_module(self.module, lowering)
        if hidden is not None:
            lowering.scope.clear()
        return lowering

    def _assumed(self, result: ir.Kernel, lowering: Lowering) -> tuple[str, ...]:
        texts = list(lowering.assumed)
        loops = [n for s in result.body for n in ir.walk(s) if isinstance(n, ir.Pipelined)]
        if any(loop.async_producers for loop in loops):
            texts.append("copies from global to shared memory are asynchronous, as on a CUDA target")
        used = {n.id for s in result.body for n in ir.walk(s) if isinstance(n, ir.Name)}
        used |= {n.function for s in result.body for n in ir.walk(s) if isinstance(n, ir.Call)}
        for name, line in lowering.names.unknowns.items():
            if name in used:
                texts.append(f"{name}, an expression on line {line}, is taken to be any integer")
        functions = sorted(f for f in ("ceildiv", "floordiv", "floormod") if f in used)
        if functions:
            texts.append(f"{' and '.join(functions)} by something that is not constant: any integer")
        return tuple(texts)


def _unique(name: str, names: Collection[str]) -> str:
    """A name for a kernel that no other one has."""
    name = name if is_name(name) else f"{name}_"
    unique, n = name, 1
    while unique in names:
        n += 1
        unique = f"{name}_{n}"
    return unique


def _members(module: ast.Module) -> dict[str, str]:
    """What the text imports from the language module, by the names that it has here."""
    imports = (n for n in ast.walk(module) if isinstance(n, ast.ImportFrom) and n.module in _MODULES)
    return {a.asname or a.name: a.name for n in imports for a in n.names if a.name != "*"}


def _language(module: ast.Module) -> frozenset[str]:
    """The names under which the text knows the language module."""
    names = {"T"}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names |= {a.asname for a in node.names if a.name in _MODULES and a.asname}
            names |= {f"{a.asname or 'tilelang'}.language" for a in node.names if a.name == "tilelang"}
            names |= {"tilelang.language" for a in node.names if a.name == "tilelang.language" and not a.asname}
        elif isinstance(node, ast.ImportFrom) and node.module in ("tilelang", "tvm.script"):
            names |= {a.asname or a.name for a in node.names if a.name in ("language", "tir", "tirx")}
    return frozenset(names)


def _rebound(module: ast.Module) -> frozenset[str] | None:
    """The names that the text binds, anywhere; None if that may be any, by an import from somewhere else."""
    if imports_all(module):
        return None
    return frozenset(bindings([module], everywhere=True))


def _given(nodes: Iterable[ast.AST], modules: frozenset[str]) -> frozenset[str]:
    """The names of what may keep an argument of a call: methods keep it in their object, functions in another one."""
    found: set[str] = set()
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        arguments = [a for a in (*node.args, *(k.value for k in node.keywords)) if not isinstance(a, ast.Constant)]
        match node.func:
            case ast.Attribute(owner) if arguments:
                roots = {n.id for n in ast.walk(owner) if isinstance(n, ast.Name)}
                found |= roots - modules
            case ast.Name(name) if len(arguments) > 1 and name not in READERS:
                found |= {n.id for a in arguments for n in ast.walk(a) if isinstance(n, ast.Name)} - modules
    return frozenset(found)


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            stack += list(ast.iter_child_nodes(node))


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _last(node: ast.expr) -> str:
    match node:
        case ast.Attribute(_, name) | ast.Name(name):
            return name
        case _:
            return ""
