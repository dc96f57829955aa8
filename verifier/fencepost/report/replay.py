"""How does a concrete run look on a terminal, and to a program?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from fencepost.findings import Step
from fencepost.phrases import assignments
from fencepost.report.style import Style, safe


class _Fault(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def steps(self) -> Sequence[Step]: ...
    @property
    def times(self) -> int: ...


class _Count(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def sets(self) -> int: ...
    @property
    def waits(self) -> int: ...
    @property
    def peak(self) -> int | None: ...
    @property
    def capacity(self) -> int: ...


class Replayed(Protocol):
    """What a renderer needs to know about a run."""

    @property
    def kernel(self) -> str: ...
    @property
    def values(self) -> Mapping[str, int]: ...
    @property
    def functions(self) -> Mapping[str, int]: ...
    @property
    def credits(self) -> str: ...
    @property
    def operations(self) -> Mapping[str, tuple[int, int]]: ...
    @property
    def counts(self) -> Sequence[_Count]: ...
    @property
    def faults(self) -> Sequence[_Fault]: ...


def render(replay: Replayed, *, colour: bool = False) -> str:
    """Return the values, the outcome, the faults and the counts of a run."""
    return "\n".join(_lines(replay, Style(colour))) + "\n"


def outcome(replay: Replayed) -> str:
    """The outcome in a few words: "clean", or the kinds of faults with their number."""
    kinds = [fault.kind for fault in replay.faults]
    return ", ".join(f"{kinds.count(k)} {k}" for k in dict.fromkeys(kinds)) or "clean"


def values(replay: Replayed) -> str:
    """The values of the run: "n = 5, need(0) = 1"."""
    return assignments({**replay.values, **replay.functions}.items())


def _lines(replay: Replayed, style: Style) -> Iterator[str]:
    verdict = style.paint(outcome(replay), "green" if not replay.faults else "red")
    verdict += " (batched credits)" if replay.credits == "batched" else ""
    yield "   ".join(part for part in (style.paint(replay.kernel, "bold"), safe(values(replay)), verdict) if part)
    for fault in replay.faults:
        times = f" ({fault.times} times)" if fault.times > 1 else ""
        yield f"  {style.paint(fault.kind, 'red')}: {safe(fault.message)}{times}"
    for agent, (done, issued) in replay.operations.items():
        noun = "operation" if done == 1 else "operations"
        yield f"  {agent:<5} {done} {noun}" + (f" of {issued}" if done < issued else "")
    if replay.counts:
        wide = max(len(count.name) for count in replay.counts)
        yield style.paint(f"  {'channel':<{wide}}  {'sets':>6}  {'waits':>6}  {'pending at most':>15}", "dim")
        for count in replay.counts:
            peak = f"{count.peak} of {count.capacity}" if count.peak is not None else f"{count.capacity} slots"
            yield f"  {safe(count.name):<{wide}}  {count.sets:>6}  {count.waits:>6}  {peak:>15}"


def to_dict(replay: Replayed) -> dict[str, object]:
    """Return the run as plain dictionaries and lists."""
    return {
        "kernel": replay.kernel,
        "values": dict(replay.values),
        "functions": dict(replay.functions),
        "credits": replay.credits,
        "clean": not replay.faults,
        "operations": {a: {"executed": done, "issued": issued} for a, (done, issued) in replay.operations.items()},
        "channels": [
            {"name": c.name, "sets": c.sets, "waits": c.waits, "peak": c.peak, "capacity": c.capacity}
            for c in replay.counts
        ],
        "faults": [
            {"kind": f.kind, "message": f.message, "times": f.times, "operations": [step(s) for s in f.steps]}
            for f in replay.faults
        ],
    }


def step(step: Step) -> dict[str, object]:
    """One step as a dictionary."""
    return {
        "agent": step.agent,
        "pipe": step.pipe,
        "text": step.text,
        "file": step.span.file,
        "line": step.span.line,
        "column": step.span.column,
        "state": step.state,
    }
