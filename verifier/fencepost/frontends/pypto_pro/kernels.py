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
from fencepost.frontends.pypto_pro import arithmetic
from fencepost.frontends.pypto_pro.arguments import bind_arguments
from fencepost.frontends.pypto_pro.choices import one_of
from fencepost.frontends.pypto_pro.context import Context
from fencepost.frontends.pypto_pro.environment import Environment
from fencepost.frontends.pypto_pro.evaluate import bound_names
from fencepost.frontends.pypto_pro.imports import imports
from fencepost.frontends.pypto_pro.interpreter import Budget, ConstantInterpreter, Leaving
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
    Unreadable,
    Value,
)
from fencepost.frontends.rebinding import assigned_inside, bindings, declared_global, hidden_change

_MAX_CALL_PATH = 4
_MAX_CASES = 200
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
    """The names of a module after its statements have run."""
    environment = Environment(source, shared=declared_global(tree), escapes=escapes(tree, _language(tree)))
    ConstantInterpreter(source, environment, budget).run(tree.body)
    reason = hidden_change(tree, PurePath(source.file).stem)
    if reason is not None:
        kept = {name: value for name, value in environment.names.items() if isinstance(value, Module)}
        environment.names = {name: Unknown(name, reason) for name in environment.names} | kept
        environment.defaults.clear()
        environment.hidden = True
    return environment


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
        for factory in path:
            values = _parameter_values(factory, tree, scope, budget, 0, notes) | dict(fixed or {})
            choices += [v for v in values.values() if isinstance(v, OneOf)]
            inner = _factory_scope(factory, inner, values, budget)
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


# --------------------------------------------------------------------------------------------------------- factories


def _factory_scope(
    factory: ast.FunctionDef, outer: Environment, values: dict[str, Value], budget: Budget
) -> Environment:
    """The names inside a function that builds kernels, after its statements have run."""
    environment = Environment(outer.source, outer, values, factory)
    interpreter = ConstantInterpreter(outer.source, environment, budget)
    interpreter.run(factory.body, skip=lambda s: isinstance(s, ast.Return))
    return environment


def _parameter_values(
    function: ast.FunctionDef, tree: ast.Module, module: Environment, budget: Budget, depth: int, notes: list[str]
) -> dict[str, Value]:
    """What the parameters of a host function may be: from its calls in this file, or from parametrisation."""
    spec = function.args
    parameters = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    found: dict[str, list[Value]] = {p: [] for p in parameters}
    for name, values in _parametrised(function, module, budget).items():
        if name in found:
            found[name].append(values)
    lines: list[int] = []
    if depth < _MAX_CALL_PATH:
        for call, path in _calls(function.name, tree):
            lines.append(call.lineno)
            if path:
                *around, caller = path
                scope = Environment(module.source, module, function=caller)
                scope.names |= {n: Unknown(n, f"it is a name of {f.name}") for f in around for n in _own_names(f)}
                scope.names |= _parameter_values(caller, tree, module, budget, depth + 1, [])
                _run_until(caller.body, call, scope, budget)
            elif module.hidden:
                scope = module
            else:
                scope = Environment(module.source, shared=module.shared, escapes=module.escapes)
                _run_until(tree.body, call, scope, budget)
            interpreter = ConstantInterpreter(module.source, scope, budget)
            try:
                bound = bind_arguments(function, call, interpreter.value)
            except Unreadable:
                continue
            for parameter in parameters:
                found[parameter].append(bound.get(parameter, Unknown(parameter)))
    result: dict[str, Value] = {}
    for parameter, values in found.items():
        options = [v for value in values for v in (value.values if isinstance(value, OneOf) else (value,))]
        if not options or any(isinstance(v, Unknown) for v in options):
            result[parameter] = Unknown(parameter, f"it is a parameter of {function.name}")
        else:
            value = one_of(tuple(options))
            result[parameter] = OneOf(value.values, parameter) if isinstance(value, OneOf) else value
    known = [p for p in parameters if not isinstance(result[p], Unknown)]
    if known and lines and depth == 0:
        words = ", ".join(f"{p} = {_words(result[p])}" for p in known)
        where = "line" if len(set(lines)) == 1 else "lines"
        notes.append(
            f"{function.name} is called as in {where} {', '.join(str(n) for n in sorted(set(lines)))}: {words}"
        )
    return result


def _words(value: Value) -> str:
    if isinstance(value, OneOf):
        return " or ".join(_words(v) for v in value.values[:6]) + (" or ..." if len(value.values) > 6 else "")
    if isinstance(value, int) and value.bit_length() < 1000:
        return str(value)
    return f"DT_{value.name}" if isinstance(value, DType) else arithmetic.describe(value)


def _own_names(function: ast.FunctionDef) -> set[str]:
    """The parameters and variables of a function."""
    return {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)} | set(bound_names(function.body))


def _calls(name: str, tree: ast.Module) -> Iterator[tuple[ast.Call, tuple[ast.FunctionDef, ...]]]:
    """Calls of a function by name, and the functions around them, outermost first."""
    stack: list[tuple[ast.AST, tuple[ast.FunctionDef, ...]]] = [(tree, ())]
    while stack:
        node, path = stack.pop()
        if isinstance(node, ast.FunctionDef):
            path = (*path, node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node, path
        stack.extend((child, path) for child in ast.iter_child_nodes(node))


def _run_until(body: list[ast.stmt], call: ast.Call, scope: Environment, budget: Budget) -> None:
    """Run the statements of a scope as far as they lead to `call`; loops give the values of all their trips."""
    interpreter = ConstantInterpreter(scope.source, scope, budget)
    while True:
        for stmt in body:
            inside = any(node is call for node in ast.walk(stmt))
            if not inside:
                try:
                    interpreter.execute(stmt)
                except Unreadable as problem:
                    interpreter.forget(stmt, problem.reason)
                except Leaving:
                    return
                continue
            scope.names |= {n: Unknown(n) for n in _inner_names(stmt, call)}
            if isinstance(stmt, ast.For):
                items = interpreter.value(stmt.iter)
                cases = tuple(items) if isinstance(items, (tuple, dict)) else ()
                # what an earlier trip has left
                scope.names |= {n: Unknown(n) for n in bound_names(stmt.body)}
                interpreter.bind(stmt.target, one_of(cases[:_MAX_CASES]) if cases else Unknown())
                body = stmt.body
            elif isinstance(stmt, (ast.With, ast.Try)):
                body = stmt.body
            elif isinstance(stmt, ast.If):
                body = stmt.body if any(n is call for s in stmt.body for n in ast.walk(s)) else stmt.orelse
            else:
                inner = [n for n in ast.iter_child_nodes(stmt) if isinstance(n, (ast.stmt, ast.match_case))]
                scope.names |= {n: Unknown(n) for n in bound_names(inner)}
                return
            break
        else:
            return


def _inner_names(stmt: ast.stmt, call: ast.Call) -> set[str]:
    """The names that a statement itself may give another value before it comes to `call`."""
    found = assigned_inside(stmt)
    if isinstance(stmt, ast.With):
        found |= set(bound_names(i.optional_vars for i in stmt.items if i.optional_vars is not None))
    for node in ast.walk(stmt):
        match node:
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                given = bound_names(g.target for g in node.generators)
            case ast.Lambda():
                given = [a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)]
            case ast.ClassDef():
                given = bound_names(node.body)
            case ast.ExceptHandler(name=str() as name):
                given = [name]
            case _:
                continue
        if any(n is call for n in ast.walk(node)):
            found |= set(given)
    return found


def _parametrised(function: ast.FunctionDef, module: Environment, budget: Budget) -> dict[str, Value]:
    """Values that `pytest.mark.parametrize` gives the parameters of a test."""
    interpreter = ConstantInterpreter(module.source, module, budget)
    found: dict[str, Value] = {}
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call) or len(decorator.args) < 2:
            continue
        if not isinstance(decorator.func, ast.Attribute) or decorator.func.attr != "parametrize":
            continue
        names, cases = interpreter.value(decorator.args[0]), interpreter.value(decorator.args[1])
        if isinstance(names, str):
            names = tuple(n.strip() for n in names.split(","))
        if not isinstance(names, tuple) or not isinstance(cases, (tuple, dict)) or not cases:
            continue
        rows = tuple(cases)[:_MAX_CASES]
        for i, name in enumerate(names):
            column = (
                rows
                if len(names) == 1
                else tuple(row[i] if isinstance(row, tuple) and len(row) == len(names) else Unknown() for row in rows)
            )
            found[str(name)] = one_of(column)
    return found


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
