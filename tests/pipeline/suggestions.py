"""Suggested annotations of random loops: how long do they take, are they right, and is nothing nearer right?

    python tests/pipeline/suggestions.py --seed 3000 --count 1500
    python tests/pipeline/suggestions.py --seed 3000 --count 1500 --all 4

The second form also tries every schedule of each loop with up to 4 scheduled statements.  Seconds are those of the
processor, with the solver; the start of the process and the check of the loop as it is written are left out.  The exit
status is 1 if a suggestion is wrong or not the nearest.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product
from pathlib import Path
from statistics import mean, median

for _folder in ("verifier", "rules", "tests/pipeline"):
    sys.path.insert(0, str(Path(__file__).parents[2] / _folder))

from random_loops import random_loop  # noqa: E402

from fencepost.findings import Verdict  # noqa: E402
from fencepost.garbage import seldom_collected  # noqa: E402
from fencepost.pipeline.accept import resolve  # noqa: E402
from fencepost.pipeline.explore import outcome  # noqa: E402
from fencepost.pipeline.model import Loop  # noqa: E402
from fencepost.pipeline.setting import Setting  # noqa: E402
from fencepost.pipeline.suggest import NoSuggestion, Suggestion, suggest  # noqa: E402
from fencepost.pipeline.verify import verify  # noqa: E402

TRIPS = tuple(range(9))

Schedule = tuple[bool, int, tuple[int, ...], tuple[int, ...]]
"""Whether stage 0 is empty, how many entries differ from what is written, stage and order."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came out for one seed; `problem` is empty if all is well."""

    seed: int
    seconds: float
    found: Suggestion | NoSuggestion | None
    problem: str = ""


def alone(seed: int, all_up_to: int = 0) -> Result | None:
    """`examine`, without what earlier loops left to the garbage collector: a check of a file has one loop or a few."""
    gc.collect()
    gc.freeze()
    return examine(seed, all_up_to)


def examine(seed: int, all_up_to: int = 0) -> Result | None:
    """Ask for a suggestion and check it; None if the random loop is right as it is."""
    loop = random_loop(seed)
    written = verify(loop)
    if written.verdict is Verdict.PROVED:
        return None
    started = time.process_time()
    with seldom_collected():
        found = suggest(loop, written=written)
    result = Result(seed, time.process_time() - started, found)
    if isinstance(found, Suggestion) and not runs_right(annotated(loop, found.stage, found.order)):
        return replace(result, problem="the suggestion is wrong")
    numbers = [n for n in range(len(loop.statements)) if not loop.can_replay(n)]
    if len(numbers) <= all_up_to and loop.annotations.stage is not None:
        return replace(result, problem=_nearer(loop, found))
    return result


def annotated(loop: Loop, stage: tuple[int, ...], order: tuple[int, ...]) -> Loop:
    """The loop with another stage and order, entry for entry."""
    return replace(loop, annotations=replace(loop.annotations, stage=stage, order=order))


def runs_right(loop: Loop) -> bool:
    """Whether the loop is accepted and computes what the serial loop does, for each of the small trip counts."""
    plan = resolve(loop).plan
    return plan is not None and not any(outcome(plan, trips, Setting()).wrong for trips in TRIPS)


def schedules(stage: tuple[int, ...], order: tuple[int, ...]) -> Iterator[Schedule]:
    """All schedules of the same depth."""
    last, count = max(*stage, 0), len(stage)
    numbers = range(min(0, *order), max(count - 1, *order) + 1)
    for stages in product(range(last + 1), repeat=count):
        if max(stages) == last:
            moved = sum(a != b for a, b in zip(stages, stage, strict=True))
            for orders in permutations(numbers, count):
                changes = moved + sum(a != b for a, b in zip(orders, order, strict=True))
                yield 0 not in stages, changes, stages, orders


def _nearer(loop: Loop, found: Suggestion | NoSuggestion | None) -> str:
    """Look for a right schedule that is nearer than the one that was found."""
    stage, order = loop.annotations.stage, loop.annotations.order
    assert stage is not None and order is not None
    limit = (0 not in found.stage, found.changes) if isinstance(found, Suggestion) else (True, 2 * len(stage) + 1)
    candidates = sorted((s for s in schedules(stage, order) if s[:2] < limit), key=lambda s: s[:2])
    for _, changes, stages, orders in candidates:
        other = annotated(loop, stages, orders)
        if runs_right(other) and verify(other).verdict is Verdict.PROVED:
            return f"stage = {stages}, order = {orders} is right with {changes} changes"
    return ""


def main() -> int:
    """Examine a range of seeds and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=3000, help="the first seed")
    parser.add_argument("--count", type=int, default=1500, help="random loops; those that are right are left out")
    parser.add_argument("--all", type=int, default=0, metavar="N", help="try all schedules of up to N statements")
    parser.add_argument("--limit", type=float, default=0.3, help="seconds that a suggestion should stay below")
    args = parser.parse_args()
    examine(args.seed)  # imports what a first question needs
    found = (alone(seed, args.all) for seed in range(args.seed, args.seed + args.count))
    results = [r for r in found if r is not None]
    for result in results:
        if result.problem:
            print(f"seed {result.seed}: {result.problem}")
        if isinstance(result.found, NoSuggestion):
            print(f"seed {result.seed}: no suggestion: {result.found.reason}")
    seconds = sorted((r.seconds for r in results), reverse=True)
    flat = sum(isinstance(r.found, Suggestion) and bool(r.found.reason) for r in results)
    slow = [r.seed for r in results if r.seconds > args.limit]
    print(
        f"{len(results)} loops, {sum(isinstance(r.found, Suggestion) for r in results)} suggestions, {flat} of them "
        f"because no pipeline of the depth is right; seconds: median {median(seconds):.3f}, mean {mean(seconds):.3f}, "
        f"largest {', '.join(f'{s:.3f}' for s in seconds[:3])}; above {args.limit}: {len(slow)} {slow[:20]}"
    )
    return any(r.problem for r in results)


if __name__ == "__main__":
    sys.exit(main())
