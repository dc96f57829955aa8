"""How do the two readings of a kernel become one kernel of the IR?"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from fencepost import ir
from fencepost.frontends.pypto_pro.context import Context, Core, Parameter, TooLarge
from fencepost.frontends.pypto_pro.interpreter import Budget, ConstantInterpreter
from fencepost.frontends.pypto_pro.kernels import UNREADABLE, FoundKernel, argument_values, prefer_names
from fencepost.frontends.pypto_pro.keys import tiling_keys
from fencepost.frontends.pypto_pro.lowering import Lowering, read_core
from fencepost.frontends.pypto_pro.pipeline import expand
from fencepost.frontends.pypto_pro.regions import place_regions
from fencepost.frontends.pypto_pro.simplify import Body, Definitions, clamp, map_statements, prune, statements
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.pypto_pro.values import OneOf, Unreadable, Value

_CORES: tuple[Core, Core] = ("cube", "vector")


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel of the IR, what was taken for granted to read it, and the tiling keys that have several values."""

    kernel: ir.Kernel
    notes: tuple[str, ...] = ()
    choices: tuple[OneOf, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all of the kernel could be read."""
        return not any(isinstance(n, ir.Unsupported) for n in ir.walk(self.kernel))


def lower_kernel(
    source: Source, found: FoundKernel, name: str, budget: Budget, fixed: Mapping[str, Value] | None = None
) -> Lowered:
    """The kernel of the IR for a kernel function.  `fixed` gives values to tiling keys.

    Never raises for bad input: what cannot be read is an `Unsupported` in the kernel.
    """
    module = found.scope.outermost()
    before = module.names
    context = Context(source, found.node)
    keys = tiling_keys(found.options, ConstantInterpreter(source, found.scope, budget)) | dict(fixed or {})
    module.names = {**keys, **before}
    try:
        kernel = _lower(source, found, name, context, budget)
    except Unreadable as problem:
        header = source.header(found.node)
        place = header if isinstance(problem.node, ast.FunctionDef) else source.span(problem.node)
        kernel = unread_kernel(name, problem.reason, place, header)
    except (RecursionError, TooLarge) as problem:
        words = "large" if isinstance(problem, TooLarge) else "deeply nested"
        span = source.header(found.node)
        kernel = unread_kernel(name, f"the kernel is too {words} to be read", span, span)
    finally:
        module.names = before
    choices = tuple(v for v in keys.values() if isinstance(v, OneOf))
    return Lowered(kernel, (*found.notes, *context.assumptions), choices)


def _lower(source: Source, found: FoundKernel, name: str, context: Context, budget: Budget) -> ir.Kernel:
    sections = _sections(found)
    context.mixed = sections != {"vector"}
    auto_mutex = found.options.get("auto_mutex", True)
    if UNREADABLE in found.options or not isinstance(auto_mutex, bool):
        raise Unreadable("the options of this kernel could not be read", found.node)
    prefer_names(context, found.node)
    written: frozenset[str] = frozenset()
    cores = [c for c in _CORES if not sections or c in sections]
    if found.options.get("pipeline") is not None:
        found = expand(source, found, cores, budget)
        context.kernel = found.node
    while True:
        bodies = {core: _read(context, found, core, written, budget) for core in cores}
        now = _written(context, bodies)
        if now == written or not now & _scalar_reads(context, bodies):
            break
        written = now
    kernel = _finish(context, found, name, bodies)
    return replace(kernel, auto_mutex=auto_mutex, target=_target(found))


def unread_kernel(name: str, reason: str, place: ir.Span, span: ir.Span) -> ir.Kernel:
    """A kernel none of which can be read, because of something at `place`; `span` is its header."""
    return ir.Kernel(name, body=(ir.Unsupported(reason, span=place),), span=span)


def _target(found: FoundKernel) -> Literal["a5", "a3", "a2"]:
    arch = found.options.get("arch")
    return cast(Literal["a5", "a3", "a2"], arch) if arch in ("a5", "a3", "a2") else "a5"


def _sections(found: FoundKernel) -> set[str]:
    """The kinds of section in a kernel and the helpers that it reaches."""
    kinds: set[str] = set()
    seen: set[int] = set()
    stack: list[tuple[ast.AST, object]] = [(found.node, found.scope)]
    while stack:
        node, scope = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and inner.attr in ("section_cube", "section_vector"):
                kinds.add(inner.attr.removeprefix("section_"))
            elif isinstance(inner, ast.Name):
                try:
                    value = scope.find(inner.id)  # type: ignore[attr-defined]
                except KeyError:
                    continue
                if hasattr(value, "node") and isinstance(value.node, ast.FunctionDef):
                    stack.append((value.node, value.scope))
    return kinds


def _read(context: Context, found: FoundKernel, core: Core, written: frozenset[str], budget: Budget) -> Body:
    return read_core(
        lambda: Lowering(context, found.scope, core, written, budget), lambda: argument_values(found, context, budget)
    )


def _tensors(context: Context) -> set[str]:
    return {w.name for places in context.accesses.values() for w in places} - set(context.buffers.found)


def _written(context: Context, bodies: dict[Core, Body]) -> frozenset[str]:
    """Tensors that some operation writes."""
    tensors = _tensors(context)
    return frozenset(
        a.name
        for body in bodies.values()
        for s in statements(body)
        if isinstance(s, ir.DataOp)
        for a in s.writes
        if a.name in tensors
    )


def _scalar_reads(context: Context, bodies: dict[Core, Body]) -> set[str]:
    """Tensors whose elements the kernel reads as scalars."""
    return {
        w.name
        for body in bodies.values()
        for s in statements(body)
        if isinstance(s, ir.DataOp)
        for w in context.accesses.get(id(s), ())
        if w.scalar and s.reads
    }


def _finish(context: Context, found: FoundKernel, name: str, bodies: dict[Core, Body]) -> ir.Kernel:
    context.buffers.settle()
    bodies = _rehome(context, bodies)
    bodies, memory = place_regions(context, bodies)
    bodies = {core: prune(body) for core, body in bodies.items()}
    definitions = Definitions.of(bodies.values())
    places: list[ir.Span] = []
    for core in bodies:
        bodies[core], more = clamp(bodies[core], set(context.functions), definitions)
        places += more
    if places:
        lines = ", ".join(str(n) for n in sorted({p.line for p in places}))
        context.assume(
            f"values read from memory are not negative (nor 0 as a divisor) where they are divided: line {lines}"
        )
    bodies, constants = _hoist(context, bodies)
    bodies = {core: prune(body) for core, body in bodies.items()}
    used = {n.id for body in (*bodies.values(),) for s in body for n in ir.walk(s) if isinstance(n, ir.Name)}
    used |= {n.name for body in bodies.values() for s in body for n in ir.walk(s) if isinstance(n, ir.Item)}
    kept = {c.name: c for c in (*context.constants.values(), *constants)}
    for constant in reversed(constants):  # a constant uses earlier ones
        if constant.name in used:
            used |= {n.id for n in ir.walk(constant) if isinstance(n, ir.Name)}
    parameters = tuple(p for p in context.parameters if p in used)
    touched = {n.name for body in bodies.values() for s in body for n in ir.walk(s) if isinstance(n, ir.Access)} | {
        n.buffer for body in bodies.values() for s in body for n in ir.walk(s) if isinstance(n, ir.Cursor)
    }
    rings = {
        n.ring for body in bodies.values() for s in body for n in ir.walk(s) if isinstance(n, (ir.Field, ir.StoreField))
    }
    span = context.source.header(found.node)
    sections: tuple[ir.Section, ...] = tuple(
        ir.Section(core, body, span=_section_span(context, found, core, span))
        for core, body in _ordered(found, bodies)
        if body
    )
    everything = [*sections, *constants]
    return ir.Kernel(
        name,
        parameters,
        assumes=_assumes(context, [context.parameters[p] for p in parameters], everything, span),
        constants=tuple(c for n, c in kept.items() if n in used),
        buffers=(*context.buffers.emit(touched), *(b for b in memory if b.name in touched)),
        rings=_rings(context, rings, everything),
        body=sections,
        span=span,
    )


def _rehome(context: Context, bodies: dict[Core, Body]) -> dict[Core, Body]:
    """A plain tile that is a slot of a gathered buffer is named as that slot."""
    homes = context.buffers.homes()
    live = {a.name for body in bodies.values() for s in body for a in ir.walk(s) if isinstance(a, ir.Access)}
    homes = {tile: home for tile, home in homes.items() if home[0] in live}
    if not homes:
        return bodies
    for tile, (home, _) in homes.items():
        source, target = context.buffers.found[tile], context.buffers.found[home]
        target.whole |= source.whole
        target.footprints |= source.footprints

    def change(stmt: ir.Stmt) -> ir.Stmt:
        if not isinstance(stmt, ir.DataOp) or not any(a.name in homes for a in (*stmt.writes, *stmt.reads)):
            return stmt
        result = replace(stmt, writes=_moved(stmt.writes, homes), reads=_moved(stmt.reads, homes))
        if id(stmt) in context.accesses:
            context.accesses[id(result)] = [
                replace(w, name=homes[w.name][0]) if w.name in homes else w for w in context.accesses[id(stmt)]
            ]
            context.operations.append(result)
        return result

    return {core: map_statements(body, change) for core, body in bodies.items()}


def _moved(accesses: tuple[ir.Access, ...], homes: dict[str, tuple[str, int]]) -> tuple[ir.Access, ...]:
    return tuple(
        replace(a, name=homes[a.name][0], index=ir.Int(homes[a.name][1], span=a.span)) if a.name in homes else a
        for a in accesses
    )


def _hoist(context: Context, bodies: dict[Core, Body]) -> tuple[dict[Core, Body], list[ir.Constant]]:
    """Scalars that are computed once from parameters become constants of the kernel."""
    constants: dict[str, ir.Constant] = {}
    definitions = Definitions.of(bodies.values())
    tops = Counter(s.name for b in bodies.values() for s in b if isinstance(s, ir.Assign))
    rounds = True
    while rounds:
        rounds = False
        for body in bodies.values():
            for stmt in body:
                if not isinstance(stmt, ir.Assign) or stmt.name in constants or stmt.name in definitions.loops:
                    continue
                values = definitions.names.get(stmt.name, [])
                if stmt.name in definitions.cursors or any(v != stmt.value for v in values):
                    continue
                if tops[stmt.name] != len(values) or not _fixed(stmt.value, context, constants):
                    continue
                if isinstance(stmt.value, ir.Int):
                    continue
                constants[stmt.name] = ir.Constant(stmt.name, stmt.value, span=stmt.span)
                rounds = True
    if not constants:
        return bodies, []
    trimmed = {
        core: tuple(s for s in body if not (isinstance(s, ir.Assign) and s.name in constants))
        for core, body in bodies.items()
    }
    return trimmed, list(constants.values())


def _fixed(expr: ir.Expr, context: Context, constants: dict[str, ir.Constant]) -> bool:
    """Whether an expression depends on parameters and constants only."""
    for node in ir.walk(expr):
        match node:
            case ir.Name(id=name):
                if name not in context.parameters and name not in constants:
                    return False
            case ir.Field() | ir.Item():
                return False
            case ir.Call(function=function):
                if function not in ir.INTERPRETED:
                    return False
    return True


def _assumes(context: Context, parameters: list[Parameter], nodes: list[ir.Node], span: ir.Span) -> tuple[ir.Expr, ...]:
    """Facts about the parameters, each of them said in the assumptions too."""
    divided: set[str] = set()
    divisors: set[str] = set()
    for node in nodes:
        for inner in ir.walk(node):
            if isinstance(inner, ir.Binary) and inner.op in ("//", "%"):
                divided |= {n.id for n in ir.walk(inner.left) if isinstance(n, ir.Name)}
                divisors |= {n.id for n in ir.walk(inner.right) if isinstance(n, ir.Name)}
    facts: list[ir.Expr] = []
    for parameter in parameters:
        name = ir.Name(parameter.name, span=span)
        if parameter.note:
            context.assume(parameter.note)
        if parameter.values:
            facts.append(_among(name, parameter.values, span))
            continue
        least = 1 if parameter.name in divisors else parameter.least
        if least is None and parameter.name in divided:
            least = 0
        if least is None:
            continue
        facts.append(ir.Compare(name, ((">=", ir.Int(least, span=span)),), span=span))
        if least != parameter.least or parameter.least is None or parameter.origin != parameter.name or parameter.least:
            context.assume(f"{parameter.origin} is at least {least}")
    return tuple(facts)


def _among(name: ir.Expr, values: tuple[int, ...], span: ir.Span) -> ir.Expr:
    low, high = min(values), max(values)
    if set(values) == set(range(low, high + 1)):
        return ir.Compare(ir.Int(low, span=span), (("<=", name), ("<=", ir.Int(high, span=span))), span=span)
    return ir.Logic(
        "or",
        tuple(ir.Compare(name, (("==", ir.Int(v, span=span)),), span=span) for v in sorted(set(values))),
        span=span,
    )


def _rings(context: Context, used: set[str], nodes: list[ir.Node]) -> tuple[ir.Ring, ...]:
    fields: dict[str, set[str]] = {}
    for node in nodes:
        for inner in ir.walk(node):
            if isinstance(inner, (ir.Field, ir.StoreField)):
                fields.setdefault(inner.ring, set()).add(inner.field)
    return tuple(
        replace(ring, fields=tuple(f for f in ring.fields if f in fields.get(ring.name, set())))
        for ring in context.rings.values()
        if ring.name in used
    )


def _ordered(found: FoundKernel, bodies: dict[Core, Body]) -> list[tuple[Core, Body]]:
    """The sections in the order in which the text opens them first."""
    order: list[Core] = []
    for node in ast.walk(found.node):
        if isinstance(node, ast.Attribute) and node.attr in ("section_cube", "section_vector"):
            core: Core = "cube" if node.attr == "section_cube" else "vector"
            if core not in order:
                order.append(core)
    order += [c for c in _CORES if c not in order]
    return [(core, bodies[core]) for core in order if core in bodies]


def _section_span(context: Context, found: FoundKernel, core: Core, default: ir.Span) -> ir.Span:
    for node in ast.walk(found.node):
        if isinstance(node, ast.With):
            for item in node.items:
                call = item.context_expr
                if (
                    isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Attribute)
                    and call.func.attr == f"section_{core}"
                ):
                    return context.source.span(call)
    return default
