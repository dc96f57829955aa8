"""Does the executor agree with every interleaving?  Small kernels against the independent model.

python -m tests.campaigns.interleavings --count 20000 --seed 1
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from fencepost import ir
from fencepost.findings import Verdict
from fencepost.model.effects import Channel
from fencepost.model.executor import Op, Run, run
from fencepost.options import CheckOptions
from fencepost.printer import print_kernel

from . import brute
from .chaos import chaos


def key_of(channel: Channel) -> brute.Key:
    """The independent model's name of an executor's channel."""
    match channel.kind:
        case "cross" if channel.sender == "cube":
            return ("down", channel.receiver, channel.id)
        case "cross":
            return ("up", channel.sender, channel.id)
        case "flag":
            return ("flag", channel.sender, *channel.pipes, channel.id)
        case kind:
            mode = "INTER_SUBBLOCK" if kind == "sub" else "INTER_BLOCK"
            return ("group", mode, channel.sender, channel.receiver, channel.id)


def differences(result: Run, system: brute.System, outcome: brute.Outcome, *, exhaustive: bool) -> list[str]:
    """What the executor says otherwise than the model; empty if they agree.

    `exhaustive`: the outcome comes from all interleavings, not from one run and its order.
    """
    found: list[str] = []

    def expect(what: str, mine: object, theirs: object) -> None:
        if mine != theirs:
            found.append(f"{what}: executor {mine}, model {theirs}")

    def event(op: Op) -> int:
        return system.by_agent[op.effect.agent][op.number].number

    if result.contested:
        return list(_contested(result, outcome)) if exhaustive else []
    if (result.blocked or outcome.deadlock) and not _single(system):
        # which operations are reached may depend on who takes a signal; one schedule that hangs is enough
        if exhaustive:
            expect("deadlock", bool(result.blocked), outcome.deadlock)
        return found
    expect("deadlock", bool(result.blocked), outcome.deadlock)
    blocked = {event(b.op) for b in result.blocked}
    if not blocked <= outcome.stuck:
        found.append(f"blocked: executor {blocked}, model {outcome.stuck}")
    peaks = {key_of(c): p for c, p in zip(result.channels, result.peak, strict=True) if p}
    expect("peak", peaks, {k: n for k, n in outcome.peak.items() if n})
    if not outcome.deadlock:
        left = {key_of(result.channels[x.channel]): len(x.ops) for x in result.leftovers}
        expect("left", left, {k: n for k, n in outcome.left.items() if not _is_message(k)})
        messages = any(f.kind == "left" for f in result.message_faults)
        expect("messages left", messages, any(_is_message(k) for k in outcome.left))
        expect("flags left", bool(result.phase_faults), outcome.flags_left)
    races = {tuple(sorted((event(r.first), event(r.second)))) for r in result.races}
    expect("any race", bool(races), bool(outcome.unordered))
    if not races <= outcome.unordered:
        found.append(f"races: executor {races - outcome.unordered} are ordered in the model")
    expect("overrun", any(f.kind == "overrun" for f in result.message_faults), outcome.overrun)
    expect("early free", any(f.kind == "free-unpopped" for f in result.message_faults), outcome.early_free)
    if not races:
        expect("unwritten", _sites(u.op for u in result.unwritten), _event_sites(system, outcome.unwritten))
    return found


def _single(system: brute.System) -> bool:
    """Whether every signal, message and accumulator flag has one pipe at each end."""
    ends: dict[tuple[str, brute.Key], set[tuple[str, str]]] = {}
    for e in system.events:
        turns = [(f"{v}", cell) for cell, v in e.looks.items()]
        uses = [("give", k) for k in e.gives] + [("take", k) for k in e.takes] + turns
        uses += [("push", k) for k in e.pushes] + [("pop", k) for k in e.pops] + [("free", k) for k in e.frees]
        for use in uses:
            ends.setdefault(use, set()).add(e.queue)
    return all(len(pipes) == 1 for pipes in ends.values())


def _sites(ops: Iterator[Op]) -> set[tuple[str, int]]:
    """The executor reports an unwritten read once per agent, statement and operands."""
    return {(op.effect.agent, id(op.stmt)) for op in ops}


def _event_sites(system: brute.System, numbers: set[int]) -> set[tuple[str, int]]:
    return {(system.events[n].agent, id(system.events[n].stmt)) for n in numbers}


def _is_message(key: brute.Key) -> bool:
    return isinstance(key, tuple) and key[0] == "messages"


def _contested(result: Run, outcome: brute.Outcome) -> Iterator[str]:
    """A contested run must be called an error whenever some schedule goes wrong in a way of its own."""
    from fencepost.engine import check_kernel  # the whole tool, for this question only

    capacity = {key_of(c): c.capacity for c in result.channels}
    wrong = []
    if outcome.deadlock:
        wrong.append("some schedule hangs")
    if outcome.unordered:
        wrong.append("some schedule has accesses in another order")
    if any(n > capacity.get(k, n) for k, n in outcome.peak.items()):
        wrong.append("a capacity can be exceeded")
    if outcome.overrun:
        wrong.append("a message can be overwritten")
    if wrong and check_kernel(result.compiled.kernel, CheckOptions(prove=False)).verdict is not Verdict.REFUTED:
        yield f"contested: {', '.join(wrong)}, and nothing is reported"


def check(kernel: ir.Kernel, credits: str, budget: int = 8_000) -> tuple[list[str], str]:
    """Differences between the executor and both views of the model, and what kind of run it was."""
    result = run(kernel, {}, credits=credits)  # type: ignore[arg-type]
    system = brute.system(result)
    found: list[str] = []
    kind = "contested" if result.contested else "hang" if result.blocked else "race" if result.races else "other"
    if result.clean:
        kind = "clean"
    if not result.contested:
        found += [f"closure: {d}" for d in differences(result, system, brute.close(system), exhaustive=False)]
    try:
        found += differences(result, system, brute.explore(system, budget), exhaustive=True)
    except brute.TooLarge:
        kind = "too large"
    return found, kind


def campaign(count: int, seed: int, budget: int = 8_000) -> tuple[Counter[str], list[tuple[int, str, list[str]]]]:
    """Check `count` kernels from number `seed` on.

    Returns how often each kind of run occurred, and (number, credits, differences) of the failures.
    """
    kinds: Counter[str] = Counter()
    failures = []
    for number in range(seed, seed + count):
        kernel = chaos(number)
        for credits in ("per_slot", "batched") if kernel.fifos else ("per_slot",):
            found, kind = check(kernel, credits, budget)
            kinds[kind] += 1
            if found:
                failures.append((number, credits, found))
    return kinds, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=int, default=8_000, help="states per kernel")
    options = parser.parse_args()
    kinds, failures = campaign(options.count, options.seed, options.budget)
    print(f"{sum(kinds.values())} runs from seed {options.seed}: {dict(kinds.most_common())}")
    for number, credits, found in failures[:5]:
        print(f"\n# kernel {number}, credits {credits}")
        print(print_kernel(chaos(number)))
        print("\n".join(found))
    print(f"{len(failures)} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
