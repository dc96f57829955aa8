"""Which kernels with pipelined loops does a TileLang program hold?

No code of the program is run and no framework is imported: constants, factories and macros are read from the syntax
tree, and what only the caller knows becomes a parameter of the kernel.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from fencepost import ir
from fencepost.findings import InputError
from fencepost.frontends.pypto_pro.evaluate import bound_names
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.rebinding import assigned_inside, declared_global, hidden_change
from fencepost.frontends.result import ReadResult
from fencepost.frontends.tilelang.emit import kernel, pipes
from fencepost.frontends.tilelang.expressions import Evaluator
from fencepost.frontends.tilelang.lowering import Lowering
from fencepost.frontends.tilelang.mutations import mutated
from fencepost.frontends.tilelang.values import Function, Gap, Node, Number, Several, Value
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
        self.language = _language(module)
        self.mutated = mutated(module)
        self.hidden: str | None = None  # what may change any name of the module

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
        return ReadResult(tuple(kernels), tuple(errors), assumptions)

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
        lowering = self._globals()
        _forget_changed(self.module.body, found.node, lowering)
        for function in found.around:
            self._enter(function, lowering)
            _collect(function.body, lowering)
            _forget_changed(function.body, found.node, lowering)
            for node in ast.walk(function):
                if isinstance(node, ast.Nonlocal):
                    for name in node.names:
                        lowering.scope.pop(name, None)
        lowering.parameters(found.node)
        self._defaults(found.node, lowering)
        nodes = tuple(lowering.body(found.node.body))
        if not self._worthwhile(found.node, nodes):
            return None, ()
        name = "_".join(f.name for f in (*found.around[:1], found.node))
        name = name if is_name(name) else f"{name}_"
        unique, n = name, 1
        while unique in names:
            n += 1
            unique = f"{name}_{n}"
        result = kernel(unique, nodes, lowering.names, self.source.header(found.node), lowering.assume)
        return result, self._assumed(result, lowering)

    @staticmethod
    def _worthwhile(function: ast.FunctionDef, nodes: tuple[Node, ...]) -> bool:
        """Whether the kernel has a pipelined loop, or may have one in a part that could not be read."""
        if any(True for _ in pipes(nodes)):
            return True
        named = (_last(_called(n.iter)) for n in ast.walk(function) if isinstance(n, (ast.For, ast.AsyncFor)))
        return "Pipelined" in named and any(isinstance(n, Gap) for n in nodes)

    def _globals(self) -> Lowering:
        lowering = Lowering(self.source, Evaluator({}, self.language, mutated=self.mutated))
        _collect(self.module.body, lowering)
        for name in declared_global(self.module):
            lowering.scope.pop(name, None)
        self.hidden = hidden_change(self.module, PurePath(self.source.file).stem)
        if self.hidden is not None:
            lowering.scope.clear()
        return lowering

    def _enter(self, function: ast.FunctionDef, lowering: Lowering) -> None:
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        for argument in arguments:
            lowering.scope.pop(argument.arg, None)
        self._defaults(function, lowering)

    def _defaults(self, function: ast.FunctionDef, lowering: Lowering) -> None:
        """Remember defaults that are constants: `num_stages` must be one, so its default is taken."""
        arguments = [*function.args.posonlyargs, *function.args.args]
        pairs = list(zip(reversed(arguments), reversed(function.args.defaults), strict=False))
        pairs += [
            (a, d) for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d is not None
        ]
        for argument, default in pairs:
            if isinstance(default, ast.Constant) and isinstance(default.value, int):
                lowering.names.defaults[argument.arg] = default.value

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


def _language(module: ast.Module) -> frozenset[str]:
    """The names under which the text knows the language module."""
    names = {"T"}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names |= {a.asname for a in node.names if a.name in _MODULES and a.asname}
        elif isinstance(node, ast.ImportFrom) and node.module in ("tilelang", "tvm.script"):
            names |= {a.asname or a.name for a in node.names if a.name in ("language", "tir", "tirx")}
    return frozenset(names)


def _collect(statements: list[ast.stmt], lowering: Lowering) -> None:
    """What the names of a module or of a factory mean: constants, functions; both branches of an open choice."""
    for node in statements:
        _collect_one(node, lowering)
        for name in assigned_inside(node):
            lowering.scope.pop(name, None)


def _collect_one(node: ast.stmt, lowering: Lowering) -> None:
    match node:
        case ast.FunctionDef():
            decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
            macro = any(_last(d) == "macro" for d in decorators)
            lowering.scope[node.name] = Function(node, lowering.scope, macro)
        case ast.Assign(targets, value):
            for target in targets:
                _define(target, lowering.evaluator.value(value), lowering)
        case ast.AnnAssign(ast.Name(name), _, value) if value is not None:
            lowering.scope[name] = lowering.evaluator.value(value)
        case ast.AugAssign(ast.Name(name), op, value):
            whole = ast.copy_location(ast.BinOp(ast.Name(name), op, value), node)
            lowering.scope[name] = lowering.evaluator.value(whole)
        case ast.If(test, body, orelse):
            _either(test, body, orelse, lowering)
        case ast.With(_, body):
            _collect(body, lowering)
            _forget([i.optional_vars for i in node.items if i.optional_vars is not None], lowering)
        case ast.For(_, _, body, orelse) | ast.While(_, body, orelse):
            _forget([node], lowering)
            _collect(body, lowering)
            _collect(orelse, lowering)
            _forget([node], lowering)
        case ast.Try(body, handlers, orelse, finalbody):
            _collect([*body, *orelse], lowering)
            _forget(handlers, lowering, functions=True)
            _collect(finalbody, lowering)
        case ast.ImportFrom(names=[ast.alias("*")]):
            lowering.scope.clear()
        case ast.Import(aliases) | ast.ImportFrom(_, aliases):
            for alias in aliases:
                lowering.scope.pop(alias.asname or alias.name.partition(".")[0], None)
        case ast.ClassDef(name):
            lowering.scope.pop(name, None)
        case _:
            _forget([node], lowering)


def _forget_changed(statements: list[ast.stmt], kernel: ast.FunctionDef, lowering: Lowering) -> None:
    """What a name means that is bound again behind a kernel depends on when the kernel is traced: it is not known."""
    place = next((n for n, s in enumerate(statements) if any(i is kernel for i in ast.walk(s))), len(statements))
    before = set(bound_names(statements[: place + 1]))
    for name in before.intersection(bound_names(statements[place + 1 :])):
        lowering.scope.pop(name, None)
    if any(isinstance(n, ast.alias) and n.name == "*" for s in statements[place + 1 :] for n in ast.walk(s)):
        for name in before:
            lowering.scope.pop(name, None)


def _define(target: ast.expr, value: Value, lowering: Lowering) -> None:
    match target:
        case ast.Name(name):
            lowering.scope[name] = value
        case ast.Tuple(items) | ast.List(items):
            _forget(items, lowering)
            values = value.items if isinstance(value, Several) else ()
            if len(values) == len(items) and not any(isinstance(i, ast.Starred) for i in items):
                for item, known in zip(items, values, strict=True):
                    _define(item, known, lowering)


def _forget(nodes: Sequence[ast.AST], lowering: Lowering, functions: bool = False) -> None:
    """What some text may bind has no known value afterwards; functions stay, unless `functions`."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        match node:
            case ast.Name(name, ast.Store() | ast.Del()) | ast.ClassDef(name):
                lowering.scope.pop(name, None)
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                lowering.scope.pop(name, None)
            case ast.MatchMapping(rest=str() as name) | ast.ExceptHandler(name=str() as name):
                lowering.scope.pop(name, None)
            case ast.alias(name, other):
                lowering.scope.pop((other or name).partition(".")[0], None)
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) if functions:
                lowering.scope.pop(name, None)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack += ast.iter_child_nodes(node)


def _either(test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], lowering: Lowering) -> None:
    """A choice that is open when the text is read: names that differ between the branches are not known."""
    condition = lowering.evaluator.value(test)
    known = getattr(condition, "value", None) if not isinstance(condition, Number) else None
    if isinstance(known, bool):
        _collect(body if known else orelse, lowering)
        return
    before = dict(lowering.scope)
    _collect(body, lowering)
    first = dict(lowering.scope)
    lowering.scope.clear()
    lowering.scope.update(before)
    _collect(orelse, lowering)
    for name in first.keys() | lowering.scope.keys():
        one, other = first.get(name), lowering.scope.get(name)
        if isinstance(one, Function) and other is None:
            lowering.scope[name] = one
        elif one != other and not isinstance(other, Function):
            lowering.scope.pop(name, None)


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
