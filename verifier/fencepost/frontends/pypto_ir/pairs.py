"""Which functions run together as one kernel, and what do they share?

A `Group` function calls its cube half and its vector half; without one, halves belong together if one imports a ring
buffer of the other.  Arguments are matched by position, rings by direction and id: never by how a name is spelled.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from fencepost import ir
from fencepost.findings import InputError
from fencepost.frontends.pypto_ir.body import read_body
from fencepost.frontends.pypto_ir.context import WHILE_LIMIT, Context, Message, Pipe, Shared
from fencepost.frontends.pypto_ir.expressions import Expressions, Unreadable
from fencepost.frontends.pypto_ir.meaning import with_meanings
from fencepost.frontends.pypto_ir.operations import FREE, MESSAGES, POP, PUSH, SYNCHRONISATION
from fencepost.frontends.pypto_ir.program import Function, Module, NotConstant, Program
from fencepost.frontends.pypto_ir.scope import Known, Meaning, NewNames, Scope, Variable
from fencepost.frontends.pypto_ir.types import read_type
from fencepost.frontends.pypto_pro.source import Source

_CORES: dict[str, ir.Core] = {"AIC": "cube", "AIV": "vector"}


@dataclass(frozen=True, slots=True)
class Call:
    """One half as the group calls it; `arguments` is None when nobody calls it in this text."""

    function: Function
    core: ir.Core
    arguments: tuple[ast.expr, ...] | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """The halves that run together, in the order of their calls; `group` is the function that calls them."""

    name: str
    halves: tuple[Call, ...]
    group: Function | None = None


def pairs(program: Program) -> Iterator[Pair]:
    """Yield the kernels of a program in text order of their first function."""
    functions = {f.name: f for f in program.functions}
    found: list[tuple[int, Pair]] = []
    taken: set[str] = set()
    for group in program.functions:
        if group.kind != "Group":
            continue
        calls = list(_calls(group, functions, program.module))
        if calls:
            taken |= {c.function.name for c in calls}
            found.append((min(c.function.node.lineno for c in calls), Pair(group.name, tuple(calls), group)))
    loose = [f for f in program.functions if f.name not in taken and core_of(f, program.module) is not None]
    while loose:
        first, *loose = loose
        peers = [f for f in loose if f.name in _imported(first) or first.name in _imported(f)]
        loose = [f for f in loose if f not in peers]
        halves = tuple(Call(f, _core(f, program.module)) for f in (first, *peers))
        found.append((first.node.lineno, Pair(first.name, halves)))
    for _, pair in sorted(found, key=lambda item: item[0]):
        yield pair


def core_of(function: Function, module: Module) -> ir.Core | None:
    """The core kind that runs a function; None for host code and for functions without anything to check."""
    if function.kind in _CORES:
        return _CORES[function.kind]
    if function.kind != "InCore":
        return None
    found: set[ir.Core] = set()
    for op in _operations(function, module):
        if op in MESSAGES:
            found.add("cube" if MESSAGES[op] == "vector" else "vector")
    return found.pop() if len(found) == 1 else "vector" if found else None


def _core(function: Function, module: Module) -> ir.Core:
    core = core_of(function, module)
    assert core is not None
    return core


def _operations(function: Function, module: Module) -> Iterator[str]:
    for node in ast.walk(function.node):
        if isinstance(node, ast.Call):
            path = module.path(node.func)
            if path is not None and path[-1] in (*PUSH, *POP, *FREE, *SYNCHRONISATION):
                yield path[-1]


def _calls(group: Function, functions: dict[str, Function], module: Module) -> Iterator[Call]:
    for node in ast.walk(group.node):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) | ast.Name(id=name):
                function = functions.get(name)
            case _:
                function = None
        core = core_of(function, module) if function is not None else None
        if function is not None and core is not None:
            given = {k.arg: k.value for k in node.keywords if k.arg}
            rest = [given[p.arg] for p in function.parameters[len(node.args) :] if p.arg in given]
            yield Call(function, core, (*node.args, *rest))


def _imported(function: Function) -> set[str]:
    """The functions whose ring buffers `function` imports."""
    found: set[str] = set()
    for node in ast.walk(function.node):
        if isinstance(node, ast.keyword) and node.arg == "peer_func" and isinstance(node.value, ast.Constant):
            found.add(str(node.value.value))
    return found


@dataclass(slots=True)
class KernelReader:
    """Reads one pair into a kernel.  `errors` holds what is wrong with its text."""

    source: Source
    program: Program
    pair: Pair
    errors: list[InputError] = field(default_factory=list)
    shared: Shared = field(default_factory=lambda: Shared(NewNames()))
    _known: dict[str, Variable] = field(default_factory=dict)

    def run(self, name: str) -> ir.Kernel | None:
        """Return the kernel with the name `name`, None if some half cannot be read."""
        self.shared.names.declare(name)
        outer = self._group_scope()
        sections: list[ir.Section] = []
        messages: list[Message] = []
        pipes: list[tuple[ir.Core, Pipe]] = []
        for half in self.pair.halves:
            scope = Scope(self.shared.names.half(), self._arguments(half, outer))
            context = Context(self.source, self.program.module, half.function, half.core, scope, self.shared)
            try:
                body = read_body(context)
            except Unreadable as problem:
                self.errors.append(self.source.error(problem.node, problem.message))
                continue
            except RecursionError:
                text = f"function '{half.function.name}' is nested too deeply to be read"
                self.errors.append(self.source.error(half.function.node, text))
                continue
            sections.append(ir.Section(half.core, body, span=self.source.header(half.function.node)))
            messages += context.messages
            pipes += [(half.core, pipe) for pipe in context.pipes]
        if self.errors:
            return None
        sections, meant = with_meanings(_with_modes(sections))
        if meant:
            self.shared.assume("a popped value means the pushed value that the compiler named it after")
        sections += self._missing(sections)
        first = (self.pair.group or self.pair.halves[0].function).node
        fifos = self._fifos(messages, pipes)
        parameters = tuple(self.shared.parameters.values())
        sizes = {*self.program.module.dynamic, WHILE_LIMIT}
        dynamic = [p for n, p in self.shared.parameters.items() if n in sizes]
        return ir.Kernel(
            name,
            parameters,
            target=self._target(),
            assumes=tuple(ir.Compare(ir.Name(p), ((">=", ir.Int(0)),)) for p in dynamic),
            fifos=tuple(fifos),
            body=tuple(sections),
            span=self.source.header(first),
        )

    # -------------------------------------------------------------------------------------------- names

    def _group_scope(self) -> Scope:
        """The parameters of the group: scalars are kernel parameters, tensors are inputs of the kernel."""
        given: dict[str, Meaning] = {}
        if self.pair.group is not None:
            for parameter in self.pair.group.parameters:
                given[parameter.arg] = self._parameter(parameter)
        return Scope(self.shared.names, given)

    def _parameter(self, parameter: ast.arg) -> Variable:
        kind = read_type(parameter.annotation, self.program.module) if parameter.annotation is not None else None
        name = self.shared.names.declare(parameter.arg)
        if kind is not None and kind.kind == "scalar" and kind.integer:
            self.shared.parameters[name] = name
            return Variable(name, True)
        self.shared.inputs.add(name)
        return Variable(name, False, kind.memory if kind is not None else None)

    def _arguments(self, half: Call, outer: Scope) -> dict[str, Meaning]:
        """What the parameters of a half stand for."""
        given: dict[str, Meaning] = {}
        parameters = half.function.parameters
        for index, parameter in enumerate(parameters):
            argument = half.arguments[index] if half.arguments is not None and index < len(half.arguments) else None
            if half.arguments is None:
                meaning: Meaning = self._shared_parameter(parameter)
            else:
                meaning = self._argument(parameter, argument, outer)
            given[parameter.arg] = meaning
            direction = parameter.annotation.value if isinstance(parameter.annotation, ast.Subscript) else None
            word = self.program.module.last(direction) if direction is not None else ""
            if isinstance(meaning, Variable) and not meaning.scalar and word in ("Out", "InOut"):
                self.shared.written.add(meaning.name)
        return given

    def _shared_parameter(self, parameter: ast.arg) -> Variable:
        """Halves that nobody calls here get equal arguments for parameters of equal names."""
        if parameter.arg not in self._known:
            self._known[parameter.arg] = self._parameter(parameter)
            if len(self.pair.halves) > 1:
                self.shared.assume("parameters of equal names get equal arguments in both halves")
        return self._known[parameter.arg]

    def _argument(self, parameter: ast.arg, argument: ast.expr | None, outer: Scope) -> Meaning:
        if isinstance(argument, ast.Name):
            found = outer.find(argument.id)
            if found is not None:
                return found
        if argument is not None:
            expressions = Expressions(self.source, self.program.module, outer, lambda n, _: n, lambda c: ir.Int(0))
            try:
                return Known(expressions.constant(argument))
            except NotConstant:
                pass
        kind = read_type(parameter.annotation, self.program.module) if parameter.annotation is not None else None
        if kind is None or kind.kind != "scalar" or not kind.integer:
            return self._parameter(parameter)
        # An expression of the caller: any value, but the same wherever the same expression stands.
        key = ast.unparse(argument) if argument is not None else parameter.arg
        wanted = parameter.arg
        known = self.shared.parameters.get(key)
        if known is None:
            known = self.shared.parameters[key] = self.shared.names.declare(wanted)
            self.shared.assume(f"{known} = {key} of the calling function: any value")
        return Variable(known, True)

    # -------------------------------------------------------------------------------------------- rings, target, peers

    def _target(self) -> Literal["a5", "a2"]:
        given = {p.arg for half in self.pair.halves for p in half.function.parameters}
        if any(name.endswith("gm_pipe_buffer") for name in given):
            self.shared.assume("target a2, because the halves exchange messages through a GM pipe buffer")
            return "a2"
        return "a5"

    def _fifos(self, messages: list[Message], pipes: list[tuple[ir.Core, Pipe]]) -> list[ir.Fifo]:
        keys: dict[tuple[ir.Core, int], list[Message]] = {}
        for message in messages:
            keys.setdefault((message.sender, message.id), []).append(message)
        dual = any(h.function.attributes.get("dual_aiv_dispatch") for h in self.pair.halves)
        both_ways = {s for s, _ in keys} == {"cube", "vector"}
        found: list[ir.Fifo] = []
        for (sender, identity), group in sorted(keys.items()):
            declared = [(c, p) for c, p in pipes if p.id == identity and sender in p.senders]
            slots = {p.slots if p.slots is not None else (4 if len(p.senders) == 2 else 8) for _, p in declared}
            if len(slots) > 1:
                worst = declared[-1][1]
                numbers = " and ".join(map(str, sorted(slots)))
                text = f"the halves declare rings of {numbers} slots for pipe id {identity}"
                self.errors.append(_error(self.source, worst.span, text))
            if not slots:
                slots = {4 if both_ways else 8}
                ring = f"ring {_direction(sender)} id {identity}"
                self.shared.assume(f"{ring}: {min(slots)} slots, as no initialize_pipe call declares it")
            self._check_split(group)
            split = any(m.split for m in group)
            span = declared[0][1].span if declared else group[0].node.span
            name = self.shared.names.declare(f"{_direction(sender)}{identity if identity else ''}")
            lanes = 2 if split or dual else 1
            found.append(
                ir.Fifo(name, sender, ir.Int(min(slots), span=span), ir.Int(identity, span=span), lanes, span=span)
            )
        return found

    def _check_split(self, group: list[Message]) -> None:
        """Both ends of a ring must divide a tile over the vector sub-cores in the same way."""
        given = [m for m in group if m.split is not None]
        other = next((m for m in given if m.split != given[0].split), None)
        if other is not None:
            line = given[0].node.span.line
            text = f"this end of the ring has split={other.split}, the one in line {line} has split={given[0].split}"
            self.errors.append(_error(self.source, other.node.span, text))

    def _missing(self, sections: list[ir.Section]) -> list[ir.Section]:
        """A section for a half that other sections talk to and that this text does not hold."""
        present = {s.core for s in sections}
        talks = any(isinstance(n, ir.Push | ir.Pop | ir.SetCross | ir.WaitCross) for s in sections for n in ir.walk(s))
        if not talks or len(present) == 2:
            return []
        missing: ir.Core = "vector" if present == {"cube"} else "cube"
        span = sections[0].span
        reason = f"the {missing} half that this one exchanges messages with is not in this text"
        return [ir.Section(missing, (ir.Unsupported(reason, span=span),), span=span)]


def _direction(sender: ir.Core) -> str:
    return "c2v" if sender == "cube" else "v2c"


def _error(source: Source, span: ir.Span, message: str) -> InputError:
    excerpt = source.lines[span.line - 1] if 0 < span.line <= len(source.lines) else ""
    return InputError(span.file, span.line, span.column, message, excerpt)


def _with_modes(sections: list[ir.Section]) -> list[ir.Section]:
    """The text gives a mode to sets only: a wait has the mode of the sets of its event."""
    modes: dict[ir.Expr, set[ir.Mode]] = {}
    for section in sections:
        for node in ir.walk(section):
            if isinstance(node, ir.SetCross):
                modes.setdefault(node.id, set()).add(node.mode)

    def changed(stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.WaitCross(id=event) if len(modes.get(event, ())) == 1:
                return replace(stmt, mode=next(iter(modes[event])))
            case ir.For(body=body):
                return replace(stmt, body=tuple(changed(s) for s in body))
            case ir.If(branches=branches, orelse=orelse):
                arms = tuple((c, tuple(changed(s) for s in arm)) for c, arm in branches)
                return replace(stmt, branches=arms, orelse=tuple(changed(s) for s in orelse))
            case _:
                return stmt

    if not modes:
        return sections
    return [replace(s, body=tuple(changed(x) for x in s.body)) for s in sections]
