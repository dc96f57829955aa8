"""What does each method of proof say by itself, and is it ever wrong?

    python -m tests.campaigns.methods --count 2000 --seed 1 --record methods.jsonl

Exploration and closed forms are asked about all rows of the same random kernels, without the search that finds most
faults first, and without each other; so are loosened kernels alone, of which exploration asks only when it must.  A row
that one of them proves although a run has a fault of it is a failure.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fencepost import ir
from fencepost.applicability import applicable, relies_on
from fencepost.findings import Row, Verdict
from fencepost.model.program import Compiled, compile_kernel
from fencepost.passes.serial import Serial
from fencepost.printer import print_kernel
from fencepost.prove import closed_form, parts
from fencepost.prove.explore import joined
from fencepost.prove.explorer import Exploration, Explorer
from fencepost.prover import explorations, prepared

from . import records
from .random_kernels import random_kernel, shaped_kernel
from .truth import proved_wrongly, truth

METHODS = ("exploration", "closed forms", "loosened parts", "parts with rows")
_STATES = 800  # of a loosened part


@dataclass
class Result:
    """One kernel: the ids of the rows that apply, those that each method proves, its time, and what is wrong."""

    number: int
    broken: bool
    rows: list[str]
    proved: dict[str, list[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    text: str = ""

    def complete(self, method: str) -> bool:
        return len(self.proved.get(method, ())) == len(self.rows)


def examine(number: int, timeout: float = 5.0, make: Callable[[int], ir.Kernel] = random_kernel) -> Result:
    """Ask all methods about one kernel, each for at most `timeout` processor seconds."""
    kernel = make(number)
    compiled = compile_kernel(Serial().run(kernel))
    real = truth(kernel)
    apart = (Row.PIPELINE, Row.SKEW, Row.TRANSLATION)  # not about the runs of the kernel as it is written
    rows = [row for row, applies in applicable(kernel).items() if applies and row not in apart]
    result = Result(number, bool(real.failing), [row.id for row in rows])
    for method in METHODS:
        started = time.process_time()
        with records.processor_time():
            deadline = time.monotonic() + timeout
            if method == "exploration":
                explored = list(explorations(compiled, deadline))
            elif method != "closed forms":
                rows_kept = method == "parts with rows"
                explored = [loosely(compiled, scheme, deadline, rows_kept) for scheme in schemes(kernel)]
            if method != "closed forms":
                proved = {row for row in rows if all(e.proves(row) for e in explored)}
            else:
                found = closed_form.prove(compiled, deadline).rows
                proved = {row for row in rows if row in found and found[row].verdict is not Verdict.UNKNOWN}
        proved = supported(proved, relies_on(kernel), rows)
        verdicts = {row: Verdict.PROVED if row in proved else Verdict.UNKNOWN for row in rows}
        result.proved[method] = [row.id for row in rows if row in proved]
        result.seconds[method] = time.process_time() - started
        result.problems += [f"{method}: {problem}" for problem in proved_wrongly(verdicts, real)]
    if result.problems:
        result.text = print_kernel(kernel)
    return result


def schemes(kernel: ir.Kernel) -> tuple[str, ...]:
    """The credit schemes under which a kernel must be right."""
    asked = kernel.credits if kernel.fifos else "per_slot"
    return ("per_slot", "batched") if asked == "both" else (asked,)


def loosely(compiled: Compiled, scheme: str, deadline: float, rows: bool) -> Exploration:
    """What loosened parts show by themselves: those without flags that come back, or those that keep to rows."""
    simpler = compile_kernel(prepared(compiled.kernel))
    found: list[Exploration] = []
    flags = [] if rows else parts.flags(simpler)
    for part in (parts.shared(simpler, True, flags=rows), *flags, *parts.alone(simpler)):
        looser = part if part.checks else parts.loosened(part, rows)
        found.append(Explorer(looser, deadline, scheme, _STATES, 0, None if part.checks else 1).explore())
        if not found[-1].closed:
            break
    return joined(found)


def supported(proved: set[Row], relies: Mapping[Row, frozenset[Row]], rows: list[Row]) -> set[Row]:
    """Those of the rows `proved` whose sentence needs no row that isn't."""
    return {row for row in proved if all(n in proved or n not in rows for n in relies.get(row, ()))}


def campaign(
    numbers: Iterable[int], timeout: float = 5.0, jobs: int = 1, make: Callable[[int], ir.Kernel] = random_kernel
) -> Iterator[Result]:
    work = partial(examine, timeout=timeout, make=make)
    if jobs <= 1:
        yield from map(work, numbers)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(work, numbers, chunksize=8)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1, help="number of the first kernel")
    parser.add_argument("--timeout", type=float, default=5.0, help="processor seconds per method")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--shapes", action="store_true", help="kernels in forms that the pipelines do not have")
    parser.add_argument("--record", type=Path, help="keep every result in this file, one JSON object a line")
    options = parser.parse_args()
    known = {r.number: r for r in (Result(**told) for told in records.load(options.record))}
    numbers = range(options.seed, options.seed + options.count)
    results = [known[number] for number in numbers if number in known]
    left = [number for number in numbers if number not in known]
    make = shaped_kernel if options.shapes else random_kernel
    results += records.kept(campaign(left, options.timeout, options.jobs, make), options.record)
    right = [r for r in results if not r.broken]
    print(f"{len(results)} kernels, {len(right)} without failing runs")
    for method in METHODS:
        print(f"  of these, every row is proved by {method}: {sum(r.complete(method) for r in right)}")
    print(f"  by none: {sum(not any(map(r.complete, METHODS)) for r in right)}")
    rows = Counter((m, len(r.proved[m])) for r in results if r.broken for m in METHODS)
    for method in METHODS:
        times = sorted(r.seconds[method] for r in results) or [0.0]
        partly = sum(count for (m, proved), count in rows.items() if m == method and proved)
        print(f"  {method}: median {times[len(times) // 2]:.3f} s; some row proved of {partly} broken kernels")
    failures = [r for r in results if r.problems]
    for failure in failures:
        print(f"  kernel {failure.number}: {failure.problems}\n{failure.text}")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
