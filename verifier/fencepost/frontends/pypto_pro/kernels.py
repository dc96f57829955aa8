"""Which functions of a module are kernels, and what are their arguments?

A kernel may be defined inside a function (a factory): then the factory's parameters take the values of its calls in
the same file, as far as those can be evaluated.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from fencepost import ir
from fencepost.frontends.escapes import escapes
from fencepost.frontends.pypto_pro.context import Context
from fencepost.frontends.pypto_pro.environment import Environment
from fencepost.frontends.pypto_pro.factories import Factories
from fencepost.frontends.pypto_pro.imports import imports
from fencepost.frontends.pypto_pro.interpreter import Budget, ConstantInterpreter
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.pypto_pro.values import (
    Class,
    Decorated,
    DType,
    Dynamic,
    Module,
    OneOf,
    Opaque,
    Pointer,
    Scalar,
    Tensor,
    TilingData,
    Unknown,
    Value,
)
from fencepost.frontends.rebinding import bindings, declared_global, hidden_change, unsteady

_ANY_RANK = 8  # dimensions that an ellipsis may stand for


UNREADABLE = "<unreadable>"
"""An option that says that the options of a kernel could not be read."""


@dataclass(frozen=True, slots=True)
class FoundKernel:
    """A kernel function, the scope that it is defined in, and its decorator's keywords.

    `choices` are the parameters of factories that have several values in this file.
    """

    node: ast.FunctionDef
    scope: Environment
    options: dict[str, Value]
    notes: tuple[str, ...] = ()
    choices: tuple[OneOf, ...] = ()


def module_scope(source: Source, tree: ast.Module, budget: Budget) -> Environment:
    """The names of a module after its statements have run, as kernels and the functions around them read them.

    A kernel is traced where it is called: what gets another value after the first of them is defined is not known.
    """
    environment = Environment(source, shared=declared_global(tree), escapes=escapes(tree, _language(tree)))
    ConstantInterpreter(source, environment, budget).run(tree.body)
    changing = _changing(tree) | (environment.shared & environment.names.keys())
    environment.names |= {n: Unknown(n, "it gets another value later") for n in changing}
    reason = hidden_change(tree, PurePath(source.file).stem)
    if reason is not None:
        kept = {name: value for name, value in environment.names.items() if isinstance(value, Module)}
        environment.names = {name: Unknown(name, reason) for name in environment.names} | kept
        environment.defaults.clear()
        environment.hidden = True
    return environment


def _changing(tree: ast.Module) -> set[str]:
    """Names of a module that may have several values while there is a function that pytest or a kernel call runs."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    start = next(
        (
            i
            for i, stmt in enumerate(tree.body)
            if any(isinstance(n, functions) and n.decorator_list for n in ast.walk(stmt))
        ),
        len(tree.body),
    )
    modules: dict[str, list[Module]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, value in imports(node).items():
                modules.setdefault(name, []).append(value)
    bound = Counter(bindings([tree], everywhere=True))
    same = {n for n, values in modules.items() if len(values) == bound[n] and len(set(values)) == 1}
    return unsteady(tree.body, start) - same


def _language(tree: ast.Module) -> frozenset[str]:
    """Names that stand for the kernel language, or for what is in it, wherever the text uses them."""
    bound = Counter(bindings([tree], everywhere=True))
    statements = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    found = Counter(n for s in statements for n, v in imports(s).items() if v.is_language)
    return frozenset({name for name, count in found.items() if count == bound[name]} | ({"vf"} - bound.keys()))


def find_kernels(
    source: Source, tree: ast.Module, budget: Budget, fixed: Mapping[str, Value] | None = None
) -> Iterator[FoundKernel]:
    """The kernels of a module in text order.  `fixed` gives values to parameters of factories."""
    scope = module_scope(source, tree, budget)
    factories = Factories(tree, scope, budget)
    paths: list[tuple[list[ast.FunctionDef], ast.FunctionDef]] = []
    stack: list[tuple[ast.AST, list[ast.FunctionDef]]] = [(tree, [])]
    while stack:
        node, path = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                if any(_may_mark(d) for d in child.decorator_list):
                    paths.append((path, child))
                stack.append((child, [*path, child]))
            else:
                stack.append((child, path))
    for path, function in sorted(paths, key=lambda p: (p[1].lineno, p[1].col_offset)):
        notes: list[str] = []
        choices: list[OneOf] = []
        inner = scope
        for factory, made in zip(path, [*path, function][1:], strict=True):
            values = factories.parameters(factory, notes) | dict(fixed or {})
            choices += [v for v in values.values() if isinstance(v, OneOf)]
            inner = factories.scope(factory, inner, values, made)
        interpreter = ConstantInterpreter(source, inner, budget)
        for decorator in function.decorator_list:
            options = _jit_options(decorator, interpreter)
            if options is not None:
                yield FoundKernel(function, inner, options, tuple(notes), tuple(choices))
                break


def _may_mark(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    last = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
    return last in ("jit", "kernel") or isinstance(target, ast.Name)


def _jit_options(decorator: ast.expr, interpreter: ConstantInterpreter) -> dict[str, Value] | None:
    """The keywords of `@pl.jit(...)`, or None if the decorator is something else."""
    value = interpreter.value(decorator)
    if isinstance(value, Unknown) and isinstance(decorator, ast.Call):
        value = interpreter.value(decorator.func)
        if _is_jit(value):
            return {UNREADABLE: True}
    if not _is_jit(value.function if isinstance(value, Decorated) else value):
        return None
    return dict(value.keywords) if isinstance(value, Decorated) else {}


def _is_jit(value: Value) -> bool:
    return isinstance(value, Module) and value.path in ("pl.jit", "pl.kernel", "pypto_pro.runtime.jit")


# ---------------------------------------------------------------------------------------------------------- arguments


def argument_values(found: FoundKernel, context: Context, budget: Budget) -> dict[str, Value]:
    """What the parameters of the kernel function stand for."""
    interpreter = ConstantInterpreter(context.source, found.scope, budget)
    names: dict[str, Value] = {}
    for argument in (*found.node.args.posonlyargs, *found.node.args.args, *found.node.args.kwonlyargs):
        names[argument.arg] = _argument(argument, context, interpreter)
    return names


def _argument(argument: ast.arg, context: Context, interpreter: ConstantInterpreter) -> Value:
    name, annotation = argument.arg, argument.annotation
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            annotation = None
    if isinstance(annotation, ast.Subscript):
        kind = interpreter.value(annotation.value)
        if isinstance(kind, Module) and kind.path == "pl.Tensor":
            return _tensor(name, annotation, context, interpreter)
        if isinstance(kind, Module) and kind.path == "pl.Ptr":
            context.taken.add(name)
            return Pointer(name)
        if isinstance(kind, Module) and kind.path == "pl.Scalar":
            return _scalar(name, interpreter.value(annotation.slice), context, argument)
    value = interpreter.value(annotation) if annotation is not None else Unknown(name)
    if isinstance(value, Class):
        return _tiling(name, value, interpreter)
    if isinstance(value, Module) and value.path == "pl.Ptr":
        context.taken.add(name)
        return Pointer(name)
    return _scalar(name, value, context, argument)


def _scalar(name: str, dtype: Value, context: Context, node: ast.arg) -> Value:
    if isinstance(dtype, Module) and dtype.path == "builtins.float":
        dtype = DType("FP32")
    if isinstance(dtype, Module) and dtype.path == "builtins.bool":
        dtype = DType("BOOL")
    kind = dtype.name if isinstance(dtype, DType) else "INT64"
    if kind.startswith(("FP", "BF", "HF", "TF")):
        return Opaque(context.function(("argument", name), name, f"the argument {name}"))
    least = 0 if kind.startswith("UINT") else None
    parameter = context.parameter(("argument", name), name, least, (0, 1) if kind == "BOOL" else (), origin=name)
    return Scalar(ir.Name(parameter, span=context.source.span(node)), truth=kind == "BOOL")


def _tensor(name: str, annotation: ast.Subscript, context: Context, interpreter: ConstantInterpreter) -> Value:
    context.taken.add(name)
    parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    shape = interpreter.value(parts[0]) if parts else ()
    dtype = interpreter.value(parts[1]) if len(parts) > 1 else None
    if isinstance(dtype, DType) and dtype.name.startswith(("FP", "BF", "HF", "TF")):
        context.tensor_types[name] = "float"
    dimensions: list[Value] = []
    for dimension in shape if isinstance(shape, tuple) else ():
        if dimension is ...:
            dimensions += [Dynamic()] * _ANY_RANK
        else:
            dimensions.append(Dynamic() if isinstance(dimension, (Unknown, OneOf)) else dimension)
    return Tensor(name, tuple(dimensions))


def _tiling(name: str, class_: Class, interpreter: ConstantInterpreter) -> Value:
    fields: list[tuple[str, str]] = []
    for stmt in class_.node.body:
        if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name):
            annotation = stmt.annotation
            text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
            fields.append((stmt.target.id, str(text).replace(" ", "")))
    return TilingData(name, tuple(fields))


def prefer_names(context: Context, function: ast.FunctionDef) -> None:
    """Call dimensions and the number of cores as the kernel does, where one name stands for them throughout."""
    assigned: dict[str, list[ast.expr]] = {}
    stores: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stores[node.id] = stores.get(node.id, 0) + 1
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
    parameters = {a.arg for a in function.args.args}
    for name, values in assigned.items():
        if stores[name] != len(values) or name in parameters:
            continue
        if len({ast.dump(v) for v in values}) != 1:
            continue
        match values[0]:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=tensor), attr="shape"), slice=ast.Constant(value=int() as axis)
            ) if tensor in parameters and axis >= 0:
                context.prefer(("dimension", tensor, axis), name)
            case ast.Call(func=ast.Attribute(attr="get_block_num"), args=[], keywords=[]):
                context.prefer(("cores",), name)
