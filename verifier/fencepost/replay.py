"""What happened in one concrete run, in words?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from fencepost import ir
from fencepost.diagnose.slots import rounds
from fencepost.findings import Step
from fencepost.model import executor
from fencepost.model.executor import DEFAULT_LIMIT, Blocked, Op, Run
from fencepost.model.functions import FunctionTable, Point, show
from fencepost.model.program import Compiled, compile_kernel
from fencepost.model.shapes import allowed
from fencepost.options import integers
from fencepost.passes.serial import Serial
from fencepost.printer import print_expr
from fencepost.timeline import Timeline, step, timeline, words


class Refused(ValueError):
    """The values can't be run; the message says why."""


class Excluded(Refused):
    """The kernel's assumes exclude the values."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that went wrong: its kind, a sentence, the operations involved, and how often it happened."""

    kind: str
    message: str
    steps: tuple[Step, ...] = ()
    times: int = 1


@dataclass(frozen=True, slots=True)
class Count:
    """What passed over one channel or ring: `waits` of `sets` were taken; at most `peak` were pending in any execution.

    `capacity` is the largest number that may be pending; `peak` is None for a ring, whose slots block.
    """

    name: str
    sets: int
    waits: int
    peak: int | None
    capacity: int


@dataclass(frozen=True, slots=True)
class Replay:
    """A concrete run of a kernel.

    `operations` maps each agent to (executed, issued).  `run` is the executor's own record.
    """

    kernel: str
    values: dict[str, int]
    functions: dict[str, int]
    credits: str
    operations: dict[str, tuple[int, int]]
    counts: tuple[Count, ...]
    faults: tuple[Fault, ...]
    run: Run = field(repr=False)

    def __str__(self) -> str:
        """Values and outcome in the first line, and a line for each fault: "pair, n = 1: clean"."""
        from fencepost.report.replay import outcome, values

        head = ", ".join(part for part in (self.kernel, values(self)) if part)
        return "\n  ".join((f"{head}: {outcome(self)}", *(f"{fault.kind}: {fault.message}" for fault in self.faults)))

    @property
    def clean(self) -> bool:
        """True if nothing went wrong."""
        return not self.faults

    def timeline(self, last: int | None = None) -> Timeline:
        """The steps of the run, or its `last` ones."""
        return timeline(self.run, last)

    def text(self) -> str:
        """Values, faults and counts, without colour."""
        from fencepost.report.replay import render

        return render(self)


def replay(
    kernel: ir.Kernel | Compiled,
    values: Mapping[str, int],
    functions: Mapping[Point, int] | None = None,
    *,
    seed: int | None = None,
    credits: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Replay:
    """Run a kernel on concrete values; pipelined loops run one iteration after the other.

    `values` holds one integer per parameter.  `functions` fixes values of unknown functions; the others are 1, or
    repeatable random integers under a `seed`.  `credits` is "per_slot" or "batched" (default: what the kernel says;
    where it leaves both open, per_slot, or batched if only that fails).  `limit` is the largest number of instructions
    per agent.

    Raises TypeError for a value that is no integer, Refused for a missing or unknown parameter or function and a run
    beyond the limit, Excluded for values that the kernel's assumes exclude, and ModelError for a kernel that can't be
    modelled.
    """
    compiled = kernel if isinstance(kernel, Compiled) else compile_kernel(Serial().run(kernel))
    values = integers(values)
    known_names(compiled, values, functions or {})
    missing = [p for p in compiled.parameters if p != "block" and p not in values]
    if missing:
        raise Refused(f"{compiled.kernel.name} needs values for {', '.join(missing)}")
    table = FunctionTable(values=dict(functions or {}), seed=seed)
    given = tuple(values.get(p, 0) for p in compiled.parameters)
    if not allowed(compiled, given, replace(table, used={})):
        facts = " and ".join(print_expr(fact) for fact in compiled.kernel.assumes) or "block >= 0"
        told = ", ".join(f"{name} = {value}" for name, value in values.items())
        raise Excluded(f"{told or 'this run'} is excluded: the kernel assumes {facts}")
    asked = credits or compiled.kernel.credits

    def run(scheme: Literal["per_slot", "batched"]) -> Run:
        try:
            return executor.run(compiled, values, replace(table, used={}), credits=scheme, limit=limit)
        except executor.LimitReached as reached:
            raise Refused(f"too long to run: {reached}; choose smaller values, or raise the limit") from None

    done = run("batched" if asked == "batched" else "per_slot")
    if asked == "both" and compiled.kernel.fifos and done.clean and not (other := run("batched")).clean:
        done = other
    return describe(done)


def known_names(compiled: Compiled, parameters: Iterable[str], functions: Iterable[Point] = ()) -> None:
    """Raises Refused for a parameter that the kernel has not, and for an unknown function that it does not call so."""
    from fencepost.nearest import unknown_name

    wanted = [p for p in compiled.parameters if p != "block"]
    for name in parameters:
        if name not in (*wanted, "block"):
            raise Refused(unknown_name("parameter", name, wanted))
    calls = [node for node in ir.walk(compiled.kernel) if isinstance(node, ir.Call)] if functions else []
    takes: dict[str, set[int]] = {}
    for call in calls:
        if call.function not in ir.INTERPRETED:
            takes.setdefault(call.function, set()).add(len(call.arguments))
    for name, arguments in functions:
        if name not in takes:
            raise Refused(unknown_name("unknown function", name, takes))
        if len(arguments) not in takes[name]:
            numbers = " or ".join(map(str, sorted(takes[name])))
            plural = "" if numbers == "1" else "s"
            raise Refused(f"{show((name, arguments))}: {name!r} takes {numbers} argument{plural}, not {len(arguments)}")


def describe(run: Run) -> Replay:
    """Put a run of the executor into words."""
    return Replay(
        run.compiled.kernel.name,
        run.assignment(),
        {show(point): value for point, value in sorted(run.functions.items())},
        run.credits,
        {agent: (sum(op.seq > 0 for op in ops), len(ops)) for agent, ops in run.issued.items()},
        tuple(_counts(run)),
        _fold(_faults(run)),
        run,
    )


def _counts(run: Run) -> Iterator[Count]:
    for channel, sets, waits, peak in zip(run.channels, run.sets, run.waits, run.peak, strict=True):
        yield Count(str(channel), len(sets), len(waits), peak, channel.capacity)
    for ring, pushes, pops in zip(run.resolver.rings, run.pushes, run.pops, strict=True):
        yield Count(str(ring), len(pushes), len(pops), None, ring.slots)


def _fold(faults: Iterator[Fault]) -> tuple[Fault, ...]:
    """One fault per kind and places; the first of each stays."""
    found: dict[object, Fault] = {}
    for fault in faults:
        key = (fault.kind, tuple((s.agent, s.pipe, s.span) for s in fault.steps) or fault.message)
        known = found.get(key)
        found[key] = fault if known is None else replace(known, times=known.times + 1)
    return tuple(found.values())


def _faults(run: Run) -> Iterator[Fault]:
    for blocked in run.blocked:
        yield _blocked(run, blocked)
    for bad in run.bad_values:
        place = Step(bad.agent, "S", bad.message, bad.span)
        yield Fault("value", f"{bad.agent}, line {bad.span.line}: {bad.message}", (place,))
    for race in run.races:
        first, second = race.kind.split("-")
        slot = f"{race.touched.access.name}[{race.touched.slot}]"
        text = f"{slot}: the {second} by {_at(race.second)} is not ordered after the {first} by {_at(race.first)}"
        yield Fault("race", text, (step(race.first), step(race.second)))
    for unwritten in run.unwritten:
        slot = f"{unwritten.touched.access.name}[{unwritten.touched.slot}]"
        yield Fault(
            "unwritten", f"{slot} is read by {_at(unwritten.op)} before anything wrote it", (step(unwritten.op),)
        )
    for found in rounds(run):
        slot = f"{found.touch.access.name}[{found.touch.slot}]"
        text = f"{slot} holds round {found.writer.task}, round {found.reader.task} is meant by {_at(found.reader)}"
        yield Fault("round", text, (step(found.writer), step(found.reader)))
    for contested in run.contested:
        what = (
            f"{contested.what} of {run.channels[contested.channel]}"
            if contested.channel is not None
            else contested.what
        )
        text = f"which {what} comes first is not determined: {_at(contested.first)} or {_at(contested.second)}"
        yield Fault("contested", text, (step(contested.first), step(contested.second)))
    for overflow in run.overflows:
        channel = run.channels[overflow.channel]
        text = f"{channel}: {overflow.pending} signals can be pending at {_at(overflow.op)}, {channel.capacity} fit"
        yield Fault("overflow", text, (step(overflow.op),))
    for leftover in run.leftovers:
        number = f"{len(leftover.ops)} signal{'' if len(leftover.ops) == 1 else 's'}"
        text = f"{run.channels[leftover.channel]}: {number} left at the end, the first by {_at(leftover.ops[0])}"
        yield Fault("leftover", text, tuple(map(step, leftover.ops[:1])))
    for phase in run.phase_faults:
        yield Fault("phase", f"the unit flag is still set at the end, by {_at(phase.op)}", (step(phase.op),))
    for message in run.message_faults:
        other = f", against {_at(message.other)}" if message.other is not None else ""
        text = f"{run.resolver.rings[message.ring]}: {_MESSAGES[message.kind]}: {_at(message.op)}{other}"
        yield Fault("message", text, (step(message.op), *((step(message.other),) if message.other else ())))
    for mutex in run.mutex_faults:
        yield Fault("mutex", f"{_MUTEXES[mutex.kind]}: {_at(mutex.op)}", (step(mutex.op),))
    for op in run.illegal:
        yield Fault("illegal", f"{_at(op)}: {'; '.join(i.message for i in op.effect.illegal)}", (step(op),))
    for op in run.outside:
        slots = ", ".join(f"{access.name}[{index}]" for access, index in op.effect.out_of_range)
        yield Fault("range", f"{slots} does not exist: {_at(op)}", (step(op),))


_MESSAGES = {
    "overrun": "the push is not ordered after the release of its slot",
    "left": "messages that nobody pops",
    "unfreed": "a message that is never freed",
    "free-unpopped": "a message is freed that was not popped",
    "freed-twice": "a message is freed twice",
    "use-after-free": "a message is used after it was freed",
    "round": "push and pop differ in their task",
}
_MUTEXES = {
    "unlocked": "unlocked without a lock",
    "relocked": "locked while it is held",
    "held": "never unlocked",
}


def _blocked(run: Run, blocked: Blocked) -> Fault:
    on = blocked.on
    match blocked.reason:
        case "channel":
            why = "; ".join(f"{run.channels[c]}: {_taken(len(run.sets[c]))}" for c in on)
        case "push":
            why = "; ".join(f"{run.resolver.rings[r]}: no slot is free" for r in on)
        case "pop":
            why = "; ".join(f"{run.resolver.rings[r]}: empty" for r in on)
        case "phase":
            why = "the unit flag of its accumulator does not change"
        case "lock":
            why = "its mutex is not unlocked"
        case "drain":
            why = "another pipe of the core is stuck"
        case "meet":
            why = "another core does not get there"
    return Fault("hang", f"{_at(blocked.op)} waits for ever ({why})", (step(blocked.op, "waiting"),))


def _taken(sets: int) -> str:
    return f"{sets} set{'' if sets == 1 else 's'}, all taken" if sets else "never set"


def _at(op: Op) -> str:
    agent, pipe = op.effect.pipe
    return f"{words(op)} on {pipe} of {agent}, line {op.stmt.span.line}"
