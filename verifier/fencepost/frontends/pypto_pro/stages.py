"""What are the stages of a kernel with an automatic pipeline, and what does each of them access?

The kernel is read as it stands, one task after the other; that tells the arguments and the accesses of its stages.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from fencepost import ir
from fencepost.frontends.pypto_pro.context import Context, Core
from fencepost.frontends.pypto_pro.environment import Environment
from fencepost.frontends.pypto_pro.evaluate import bound_names
from fencepost.frontends.pypto_pro.handovers import Crossing, StageAccess, Way
from fencepost.frontends.pypto_pro.interpreter import Budget
from fencepost.frontends.pypto_pro.kernels import FoundKernel, argument_values
from fencepost.frontends.pypto_pro.lowering import Lowering, read_core
from fencepost.frontends.pypto_pro.simplify import statements
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.pypto_pro.tiles import integers, slot_address
from fencepost.frontends.pypto_pro.values import Function, Group, Module, Unreadable, Value


@dataclass(slots=True)
class Stage:
    """A stage call in the pipeline's loop, with the statements around it in its section."""

    section: ast.With
    core: Core
    call: ast.Call
    before: list[ast.stmt]
    after: list[ast.stmt]
    delay: int = 0  # beats between the start of a task and this stage of it


@dataclass(slots=True)
class Facts:
    """What is known about the stages.  `slots`: the number of slots of the tile group that a variable holds."""

    accesses: list[StageAccess] = field(default_factory=list)
    crossings: dict[str, Crossing] = field(default_factory=dict)
    arguments: dict[ir.Span, list[Value]] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    problems: list[Unreadable] = field(default_factory=list)


def is_marked(value: Value, mark: str) -> bool:
    """Whether a value is a function with the decorator `@pl.<mark>`."""
    return isinstance(value, Function) and any(
        isinstance(d, Module) and d.path == f"pl.{mark}" for d in value.decorators
    )


def section_core(stmt: ast.AST) -> Core | None:
    """The core of a `with pl.section_...():` statement."""
    if isinstance(stmt, ast.With) and stmt.items:
        call = stmt.items[0].context_expr
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            return {"section_cube": "cube", "section_vector": "vector"}.get(call.func.attr)  # type: ignore[return-value]
    return None


# ----------------------------------------------------------------------------------------------------------- structure


class StageFinder:
    """Finds the stage calls of a kernel by the functions that they name."""

    def __init__(self, scope: Environment) -> None:
        self.scope = scope

    def nest(self, body: Sequence[ast.stmt]) -> list[ast.For]:
        """The loops around the first stage calls, outermost first."""
        for stmt in body:
            if isinstance(stmt, ast.For):
                if any(self._stage(inner) is not None for inner in stmt.body):
                    return [stmt]
                if nested := self.nest(stmt.body):
                    return [stmt, *nested]
        return []

    def stages(self, loop: ast.For) -> list[Stage]:
        """The stages of the pipeline's loop.

        Raises:
            Unreadable: the framework refuses them.
        """
        found = [s for s in (self._stage(stmt) for stmt in loop.body) if s is not None]
        for first, second in pairwise(found):
            if first.core == second.core:
                raise Unreadable(
                    "the framework refuses this pipeline: stages must change the core each time", second.call
                )
        arguments = loop.iter.args if isinstance(loop.iter, ast.Call) else []
        end = arguments[1] if len(arguments) > 1 else arguments[0] if arguments else None
        changed = set(bound_names(loop.body))
        if end is None or changed & {n.id for n in ast.walk(end) if isinstance(n, ast.Name)}:
            raise Unreadable("the pipeline's loop must run over pl.range(...) with a fixed end", loop.iter)
        return found

    def _calls_stage(self, stmt: ast.AST) -> bool:
        match stmt:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                try:
                    return is_marked(self.scope.find(name), "pipeline.stage")
                except KeyError:
                    return False
        return False

    def _stage(self, stmt: ast.stmt) -> Stage | None:
        """The stage call that a statement of the loop holds."""
        if self._calls_stage(stmt):
            raise Unreadable("the framework refuses this pipeline: a stage is called outside of a section", stmt)
        if isinstance(stmt, ast.If) and any(self._calls_stage(inner) for inner in ast.walk(stmt)):
            raise Unreadable("a stage of a pipeline is called under a condition", stmt)
        calls = [i for i, s in enumerate(stmt.body) if self._calls_stage(s)] if isinstance(stmt, ast.With) else []
        if not calls or not isinstance(stmt, ast.With):
            return None
        core = section_core(stmt)
        if core is None or len(calls) > 1:
            raise Unreadable("the framework refuses this pipeline: each section holds one stage call", stmt)
        inner = stmt.body[calls[0]]
        assert isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Call)
        if inner.value.keywords:
            raise Unreadable("a stage is called with keyword arguments, which the pipeline drops", inner)
        return Stage(stmt, core, inner.value, stmt.body[: calls[0]], stmt.body[calls[0] + 1 :])


# --------------------------------------------------------------------------------------------------------------- facts


class _Probe(Lowering):
    """A reading that also notes what stages are called with, and which tile groups have signals."""

    facts: Facts

    def call_function(self, function: Function, node: ast.Call) -> Value:
        if is_marked(function, "pipeline.stage"):
            self.facts.arguments[self.source.span(node)] = [self._argument(a) for a in node.args]
        return super().call_function(function, node)

    def make_tile_group(self, node: ast.Call) -> Group:
        name = self.hint
        group = super().make_tile_group(node)
        slots = self.context.buffers.found[group.buffer].slots
        self.facts.slots[name] = slots
        given = {k.arg: k.value for k in node.keywords}
        forward, backward = given.get("fwd_ids"), given.get("bwd_ids")
        if forward is not None or backward is not None:
            self.facts.crossings[group.buffer] = Crossing(
                slots, self._ids(forward), self._ids(backward), forward, backward
            )
        return group

    def _ids(self, node: ast.expr | None) -> tuple[int, ...]:
        if node is None:
            return ()
        try:
            found = integers(self.evaluate(node), "an event id", node)
            if not found or not all(0 <= i <= 15 for i in found):
                raise Unreadable("the ids of a tile group must be numbers from 0 to 15", node)
        except Unreadable as problem:
            self.facts.problems.append(problem)
            return ()
        return found


def probe(source: Source, found: FoundKernel, stages: list[Stage], cores: Sequence[Core], budget: Budget) -> Facts:
    """What reading the kernel without its pipeline tells about the stages.

    Raises:
        Unreadable: tile groups with signals share memory, or their ids are not known.
    """
    facts = Facts()
    context = Context(source, found.node)
    for core in cores:

        def make(core: Core = core) -> Lowering:
            reading = _Probe(context, found.scope, core, frozenset(), budget)
            reading.facts = facts
            return reading

        body = read_core(make, lambda: argument_values(found, context, budget))
        operations = [s for s in statements(body) if isinstance(s, ir.DataOp)]
        for number, stage in enumerate(stages):
            call = source.span(stage.call)
            for operation in operations:
                if stage.core == core and operation.span.via[:1] == (call,):
                    _note(facts, number, core, operation, found.scope)
    if facts.problems:
        raise facts.problems[0]
    order = {id(a): (a.stage, a.place) for a in facts.accesses}
    facts.accesses.sort(key=lambda a: order[id(a)])
    facts.accesses = [replace(a, place=i) for i, a in enumerate(facts.accesses)]
    _check_overlaps(context, facts, found.node)
    return facts


def _note(facts: Facts, stage: int, core: Core, operation: ir.DataOp, scope: Environment) -> None:
    """The accesses of an operation as the framework sees them: it looks into helpers for vector functions only."""
    try:
        vector = is_marked(scope.find(operation.op), "vector_function")
    except KeyError:
        vector = False
    if len(operation.span.via) > 1 and not vector:
        return
    written = {a.name for a in operation.writes}
    read = {a.name for a in operation.reads}
    for buffer in dict.fromkeys(a.name for a in (*operation.writes, *operation.reads)):
        if buffer not in facts.crossings:
            continue
        ways: tuple[Way, ...] = ("W",) if buffer not in read else ("R",)
        if buffer in written and buffer in read:
            ways = ("RW",) if vector else ("W", "R")
        for way in ways:
            access = StageAccess(stage, core, buffer, way, operation.pipe, len(facts.accesses))
            if not any(replace(known, place=access.place) == access for known in facts.accesses):
                facts.accesses.append(access)


def _check_overlaps(context: Context, facts: Facts, node: ast.AST) -> None:
    """Tile groups that share memory get signals with ids that the framework picks; that is not read."""
    context.buffers.settle()
    found = context.buffers.found
    for name in facts.crossings:
        for other in found.values():
            if other.name == name or other.type.space != found[name].type.space or other.members:
                continue
            if any(a < d and c < b for a, b in _places(context, name) for c, d in _places(context, other.name)):
                raise Unreadable(f"{name} and {other.name} share memory; the signals for that are not read", node)


def _places(context: Context, name: str) -> list[tuple[int, int]]:
    """The bytes of each slot of a buffer."""
    declared = context.buffers.found[name]
    size = context.buffers.size(declared)
    if declared.addresses is None:
        return []
    starts = [slot_address(declared.addresses, slot, size) for slot in range(declared.slots)]
    return [(start, start + size) for start in starts]
