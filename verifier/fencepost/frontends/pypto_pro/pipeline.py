"""What does the framework make of a kernel with an automatic pipeline?

`@pl.jit(pipeline=pl.pipeline.PipelineConfig(...))` turns the innermost loop around calls of `@pl.pipeline.stage`
functions into beats: in beat b, a stage of delay d works on task b - d.  The arguments of each task wait in a ring of
records; signals go around the stages (see `handovers`); after the outermost loop, extra beats finish the last tasks.
This is done here on the syntax tree, and the result is read as if the user had written it.  The framework marks valid
records and tests the mark; here the number of the task is tested, which says the same.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fencepost import ir
from fencepost.frontends.pypto_pro import syntax
from fencepost.frontends.pypto_pro.context import Core
from fencepost.frontends.pypto_pro.environment import Environment
from fencepost.frontends.pypto_pro.evaluate import bound_names
from fencepost.frontends.pypto_pro.handovers import Handover, plan
from fencepost.frontends.pypto_pro.interpreter import Budget
from fencepost.frontends.pypto_pro.kernels import FoundKernel
from fencepost.frontends.pypto_pro.source import Source
from fencepost.frontends.pypto_pro.stages import Facts, Stage, StageFinder, probe, section_core
from fencepost.frontends.pypto_pro.syntax import Replacing, is_arithmetic
from fencepost.frontends.pypto_pro.values import (
    Decorated,
    Member,
    Module,
    Opaque,
    Struct,
    Unreadable,
    Value,
    is_integer,
)

# Names that no user can write.
_LANGUAGE = {
    "<set>": Module("pl.system.set_cross_core"),
    "<wait>": Module("pl.system.wait_cross_core"),
    "<range>": Module("pl.range"),
    "<records>": Module("pl.struct_array"),
    "<cube>": Module("pl.section_cube"),
    "<vector>": Module("pl.section_vector"),
}


def expand(source: Source, found: FoundKernel, cores: Sequence[Core], budget: Budget) -> FoundKernel:
    """The kernel as the framework rewrites it.

    Raises:
        Unreadable: the framework refuses the pipeline, or it is not understood here.
    """
    config = found.options["pipeline"]
    if not isinstance(config, Decorated) or config.function.path != "pl.pipeline.PipelineConfig":
        raise Unreadable("the pipeline option is not a known pl.pipeline.PipelineConfig", found.node)
    options = dict(zip(("preload", "sync_only"), config.arguments, strict=False)) | dict(config.keywords)
    preload, serial = options.get("preload", 2), options.get("sync_only", False)
    if not isinstance(preload, int) or not isinstance(serial, bool):
        raise Unreadable("the configuration of the pipeline is not known", found.node)
    node = copy.deepcopy(found.node)
    finder = StageFinder(found.scope)
    nest = finder.nest(node.body)
    if not nest:
        raise Unreadable("no loop calls a @pl.pipeline.stage function in its sections", node)
    stages = finder.stages(nest[-1])
    if not serial:
        _delay(stages, preload)
    facts = probe(source, found, stages, cores, budget)
    handovers = plan(facts.accesses, facts.crossings, [s.delay for s in stages], nest[-1])
    writer = _Writer(source, Environment(source, found.scope, function=node), node, nest, stages, handovers, facts)
    writer.write(serial)
    return replace(found, node=node, scope=writer.scope)


def _delay(stages: list[Stage], preload: int) -> None:
    """How many beats after its start each stage of a task runs."""
    last: dict[Core, int] = {}
    for i, stage in enumerate(stages):
        if stage.core in last:
            stage.delay = last[stage.core] + preload
        elif i:
            stage.delay = stages[i - 1].delay + 1
        last[stage.core] = stage.delay
    if any(s.delay < 0 for s in stages):
        raise Unreadable("the framework refuses this pipeline: preload must not be negative", stages[0].call)


class _Writer:
    """Writes the beats into the syntax tree of a kernel."""

    def __init__(
        self,
        source: Source,
        scope: Environment,
        node: ast.FunctionDef,
        nest: list[ast.For],
        stages: list[Stage],
        handovers: list[Handover],
        facts: Facts,
    ) -> None:
        self.source = source
        self.scope = scope
        self.node = node
        self.outer, self.loop = nest[0], nest[-1]
        self.stages = stages
        self.handovers = handovers
        self.facts = facts
        self.depth = max(s.delay for s in stages) + 1
        self.used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        self.homes = self._homes()
        self.changed = set(bound_names([self.outer]))
        self.task, self.records = self._fresh("task"), self._fresh("tasks")
        self.record_names: dict[int, str] = {}
        self.ids: dict[str, tuple[int, ...]] = {}
        self.fields: dict[str, tuple[ast.expr, ast.expr, Core | None]] = {}  # name -> start value, value, core
        self.slots: dict[str, tuple[str, str]] = {}  # a tile picked outside the loop -> its group, the slot's number

    def _fresh(self, name: str) -> str:
        """A name that the kernel does not use."""
        while name in self.used:
            name += "_"
        self.used.add(name)
        return name

    def _homes(self) -> dict[str, Core]:
        """The core in whose sections a name is bound."""
        found: dict[str, Core] = {}
        for node in ast.walk(self.node):
            if (core := section_core(node)) is not None:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                        found.setdefault(inner.id, core)
        return found

    def write(self, serial: bool) -> None:
        """Rewrite the kernel; `serial` keeps one task after the other and adds the signals only."""
        self.scope.names |= _LANGUAGE
        before = [syntax.assign(self.task, ast.Constant(0), self.loop)]
        after: list[ast.stmt] = []
        if serial:
            for number, stage in enumerate(self.stages):
                waits, sets = self._signals(number)
                stage.section.body = [
                    *stage.before,
                    *waits,
                    syntax.at(ast.Expr(stage.call), stage.call),
                    *sets,
                    *stage.after,
                ]
            self.loop.body.append(self._next_task())
        else:
            before += self._pick_slots()
            calls = [self._call(number) for number in range(len(self.stages))]
            if self.fields:
                before.append(self._make_records())
            self.loop.body = self._beat(calls)
            after = self._last_beats(calls)
        before += self._ahead("<set>")
        after += self._ahead("<wait>")
        place = next(i for i, stmt in enumerate(self.node.body) if stmt is self.outer)
        self.node.body[place : place + 1] = [*before, self.outer, *after]

    # --------------------------------------------------------------------------------------------------------- beats

    def _next_task(self) -> ast.stmt:
        return syntax.assign(self.task, ast.BinOp(syntax.name(self.task), ast.Add(), ast.Constant(1)), self.loop)

    def _beat(self, calls: list[ast.Call]) -> list[ast.stmt]:
        """The body of the pipeline's loop."""
        numbers = {id(s.section): i for i, s in enumerate(self.stages)}
        body: list[ast.stmt] = []
        for stmt in self.loop.body:
            number = numbers.get(id(stmt))
            if number is None:
                body.append(stmt)
                continue
            if number == 0:
                body += self._fill_record()
            delay = self.stages[number].delay
            body += self._stage(number, calls[number], syntax.compare(self.task, ast.GtE(), delay) if delay else None)
        return [*body, self._next_task()]

    def _last_beats(self, calls: list[ast.Call]) -> list[ast.stmt]:
        """The beats after the last task has started."""
        if self.depth == 1:
            return []
        beat = self._fresh("beat")
        body: list[ast.stmt] = []
        for number, stage in enumerate(self.stages):
            if stage.delay:
                test: ast.expr = syntax.compare(self.task, ast.GtE(), stage.delay)
                if stage.delay < self.depth - 1:
                    test = ast.BoolOp(ast.And(), [syntax.compare(beat, ast.Lt(), stage.delay), test])
                body += copy.deepcopy(self._stage(number, calls[number], test))
        beats = ast.Call(syntax.name("<range>"), [ast.Constant(0), ast.Constant(self.depth - 1)], [])
        loop = syntax.at(ast.For(ast.Name(beat, ast.Store()), beats, [], []), self.loop)
        late = {s.core for s in self.stages if s.delay}
        loop.body = [*body, *(syntax.section(core, [self._next_task()]) for core in sorted(late))]
        return [loop]

    def _stage(self, number: int, call: ast.Call, test: ast.expr | None) -> list[ast.stmt]:
        """A stage in its section, under the test that it has a task in this beat."""
        stage = self.stages[number]
        waits, sets = self._signals(number)
        body: list[ast.stmt] = [*waits, *stage.before, syntax.at(ast.Expr(call), stage.call), *stage.after, *sets]
        if test is not None:
            guard = syntax.at(ast.If(test, [], []), stage.call)
            guard.body, body = body, [guard]
        section = ast.copy_location(ast.With(stage.section.items, body), stage.section)
        return [*(self._look_up(stage.delay, stage.call) if stage.delay else []), section]

    def _look_up(self, delay: int, at: ast.AST) -> list[ast.stmt]:
        """The record of the task that started `delay` beats ago."""
        if delay not in self.record_names:
            return []
        task: ast.expr = syntax.name(self.task)
        if delay:
            task = ast.BinOp(task, ast.Add(), ast.Constant(self.depth - delay))
        index = ast.BinOp(task, ast.Mod(), ast.Constant(self.depth))
        return [
            syntax.assign(self.record_names[delay], ast.Subscript(syntax.name(self.records), index, ast.Load()), at)
        ]

    def _ahead(self, name: str) -> list[ast.stmt]:
        """The signals sent before the loop, or the waits for as many after it."""
        found: dict[Core, list[ast.stmt]] = {}
        for handover in self.handovers:
            side = handover.source if name == "<set>" else handover.target
            for i in range(handover.ahead):
                index = ast.Constant(i % len(handover.ids))
                found.setdefault(side.core, []).append(self._signal(name, side.pipe, handover, index, handover.node))
        return [syntax.section(core, body) for core, body in found.items()]

    # ------------------------------------------------------------------------------------------------------- signals

    def _signals(self, number: int) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """The waits before a stage and the signals after it."""
        stage = self.stages[number]
        waits: list[ast.stmt] = []
        sets: list[ast.stmt] = []
        for handover in self.handovers:
            count = len(handover.ids)
            task: ast.expr = syntax.name(self.task)
            if shift := -stage.delay % count:
                task = ast.BinOp(task, ast.Add(), ast.Constant(shift))
            index = ast.BinOp(task, ast.Mod(), ast.Constant(count))
            if handover.target.stage == number:
                waits.append(self._signal("<wait>", handover.target.pipe, handover, index, stage.call))
            if handover.source.stage == number:
                sets.append(self._signal("<set>", handover.source.pipe, handover, copy.deepcopy(index), stage.call))
        return waits, sets

    def _signal(self, name: str, pipe: ir.Pipe, handover: Handover, index: ast.expr, at: ast.AST) -> ast.stmt:
        self.scope.names[f"<{pipe}>"] = Member("PipeType", pipe)
        event = ast.Subscript(syntax.name(self._ids(handover)), index, ast.Load())
        return syntax.at(ast.Expr(ast.Call(syntax.name(name), [syntax.name(f"<{pipe}>"), event], [])), at)

    def _ids(self, handover: Handover) -> str:
        """A name that stands for the event ids of a handover."""
        name = f"{handover.source.buffer}_{'fwd' if handover.forward else 'bwd'}_ids"
        if isinstance(handover.node, ast.Name):
            name = handover.node.id
        elif name not in self.ids:
            self.ids[name] = handover.ids
            name = self._fresh(name)
        self.scope.names[name] = handover.ids
        return name

    # ----------------------------------------------------------------------------------------------------- arguments

    def _call(self, number: int) -> ast.Call:
        """The call of a stage with the arguments of the task that it works on."""
        stage = self.stages[number]
        values = self.facts.arguments.get(self.source.span(stage.call))
        if values is None:
            raise Unreadable("this stage of the pipeline is never called", stage.call)
        arguments = [self._argument(number, i, values[i]) for i in range(len(stage.call.args))]
        return syntax.at(ast.Call(stage.call.func, arguments, []), stage.call)

    def _argument(self, number: int, place: int, value: Value) -> ast.expr:
        stage = self.stages[number]
        node = stage.call.args[place]
        name = node.id if isinstance(node, ast.Name) else ""
        if isinstance(value, Struct):
            if value.arrays or not name:
                raise Unreadable("a struct with arrays is passed to a stage of a pipeline", node)
            for field, variable in value.names:
                self._carry(
                    field,
                    ast.Constant(0 if variable else 0.0),
                    ast.Attribute(syntax.name(name), field, ast.Load()),
                    name,
                )
            return syntax.at(syntax.name(self._record(stage.delay)), node)
        if number == 0:
            return node
        if name in self.slots:
            group, slot = self.slots[name]
            self._carry(slot, ast.Constant(0), syntax.name(slot), name)
            return syntax.at(ast.Subscript(syntax.name(group), self._field(stage, slot), ast.Load()), node)
        if (
            not is_arithmetic(node)
            or not (is_integer(value) or isinstance(value, Opaque))
            or self._is_fixed(node, value)
        ):
            return node
        field = name or f"{ast.unparse(stage.call.func)}_{place}"
        home = next((n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in self.homes), "")
        self._carry(field, ast.Constant(0.0 if isinstance(value, Opaque) else 0), copy.deepcopy(node), home)
        return syntax.at(self._field(stage, field), node)

    def _is_fixed(self, node: ast.expr, value: Value) -> bool:
        """Whether an argument is the same for all tasks."""
        if isinstance(value, (bool, int)):
            return True
        return not any(isinstance(n, ast.Name) and n.id in self.changed for n in ast.walk(node))

    def _carry(self, field: str, start: ast.expr, value: ast.expr, variable: str) -> None:
        """Note that the record of a task has a field."""
        known = self.fields.get(field)
        if known is not None and ast.dump(known[1]) != ast.dump(value):
            raise Unreadable(f"two values called {field} go through the pipeline", self.loop)
        self.fields[field] = (start, value, self.homes.get(variable))
        self._record(0)

    def _record(self, delay: int) -> str:
        """The variable for the record of the task that started `delay` beats ago."""
        if delay not in self.record_names:
            self.record_names[delay] = self._fresh(f"task_{delay}")
        return self.record_names[delay]

    def _field(self, stage: Stage, field: str) -> ast.expr:
        return ast.Attribute(syntax.name(self._record(stage.delay)), field, ast.Load())

    def _make_records(self) -> ast.stmt:
        keywords = [ast.keyword(name, start) for name, (start, _, _) in self.fields.items()]
        return syntax.assign(
            self.records, ast.Call(syntax.name("<records>"), [ast.Constant(self.depth)], keywords), self.loop
        )

    def _fill_record(self) -> list[ast.stmt]:
        """The arguments of the task that starts now are noted in its record."""
        body = self._look_up(0, self.loop)
        homes: dict[Core, list[ast.stmt]] = {}
        for field, (_, value, home) in self.fields.items():
            target = ast.Attribute(syntax.name(self._record(0)), field, ast.Store())
            stmt = syntax.at(ast.Assign([target], value), self.stages[0].call)
            (body if home is None else homes.setdefault(home, [])).append(stmt)
        return [*body, *(syntax.section(core, fills) for core, fills in homes.items())]

    def _pick_slots(self) -> list[ast.stmt]:
        """The slots of tiles that are picked outside the pipeline's loop become variables, for records to carry."""
        passed = {a.id for s in self.stages for a in s.call.args if isinstance(a, ast.Name)}
        inside = {id(n) for n in ast.walk(self.loop)}
        numbers: dict[str, str] = {}
        starts: dict[str, ast.stmt] = {}
        picks: dict[int, list[ast.stmt]] = {}
        for stmt in ast.walk(self.outer):
            match stmt:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in passed and id(stmt) not in inside:
                    pick = _picked(value, self.facts.slots)
                    if pick is None:
                        continue
                    group, step = pick
                    slot = numbers.get(group) or numbers.setdefault(group, self._fresh(f"{group}_slot"))
                    count = self.facts.slots[group]
                    number: ast.expr = syntax.name(slot)
                    if isinstance(step, ast.expr):
                        number = step
                    elif step:
                        number = ast.BinOp(
                            ast.BinOp(number, ast.Add(), ast.Constant(step)), ast.Mod(), ast.Constant(count)
                        )
                    self.slots[name] = (group, slot)
                    starts.setdefault(slot, syntax.assign(slot, ast.Constant(count - 1), self.loop))
                    picks[id(stmt)] = [
                        syntax.assign(slot, number, stmt),
                        syntax.assign(name, ast.Subscript(syntax.name(group), syntax.name(slot), ast.Load()), stmt),
                    ]
        Replacing(picks).visit(self.outer)
        return list(starts.values())


def _picked(value: ast.expr, groups: Iterable[str]) -> tuple[str, int | ast.expr] | None:
    """The tile group that an expression picks a tile from, and the step of its cursor or the tile's number."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=group), attr="next" | "current" | "previous" as move)):
            return (group, {"next": 1, "current": 0, "previous": -1}[move]) if group in groups else None
        case ast.Subscript(value=ast.Name(id=group), slice=index):
            return (group, index) if group in groups else None
    return None
