"""Is every verdict on random kernels consistent with the executor on all small values?

    python -m tests.campaigns.random_kernels --count 20000 --seed 1 --jobs 2 --record random.jsonl

A kernel is a random pipeline (`protocols`), as it is or with one or two mutations.  Each is checked by the tool and
run on every small value: a row that is proved although a run fails, a witness that does not replay or is not the
smallest, and a crash are failures; `unknown` is counted by its reason.  What is recorded already is not examined
again, so a campaign can be stopped and go on later.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from fencepost import ir
from fencepost.engine import check_kernel
from fencepost.findings import KernelReport, Verdict
from fencepost.options import CheckOptions
from fencepost.printer import print_kernel
from fencepost.reading import parse
from fencepost.validate import validate

from . import records
from .mutations import OPERATORS, Operators
from .protocols import pipeline
from .reduce import reduce
from .shapes import SHAPES
from .truth import judge, truth


@dataclass
class Result:
    """One examined kernel."""

    number: int
    verdict: str = ""
    broken: bool = False  # some run on small values fails
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    text: str = ""


def random_kernel(number: int) -> ir.Kernel:
    """The kernel with this number, with spans."""
    r = Random(f"kernel {number}")
    kernel = pipeline(number)
    for _ in range(r.choice((0, 0, 1, 1, 2))):
        kernel = mutated(kernel, r)
    return parse(print_kernel(kernel))


def shaped_kernel(number: int) -> ir.Kernel:
    """The kernel with this number in one to three other forms, and perhaps mutated, with spans."""
    r = Random(f"shaped kernel {number}")
    kernel = parse(print_kernel(pipeline(number)))
    for _ in range(r.choice((1, 1, 2, 3))):
        kernel = mutated(kernel, r, SHAPES)
    for _ in range(r.choice((0, 0, 1))):
        kernel = mutated(kernel, r)
    return parse(print_kernel(kernel))


def mutated(kernel: ir.Kernel, r: Random, operators: Operators = OPERATORS) -> ir.Kernel:
    """One random well-formed mutant; operators are equally likely."""
    for operator in r.sample(operators, len(operators)):
        found = [m for _, m in operator(kernel)]
        r.shuffle(found)
        for mutant in found[:4]:
            if not validate(mutant):
                return parse(print_kernel(mutant))
    return kernel


def examine(
    number: int, timeout: float = 10.0, quick: float = 10.0, make: Callable[[int], ir.Kernel] = random_kernel
) -> Result:
    """Check one kernel and compare with its runs.

    Args:
        timeout: seconds for a kernel that stays unknown, or whose witness is not the smallest, after `quick` seconds.
    """
    kernel = make(number)
    result = Result(number, text=print_kernel(kernel))
    real = truth(kernel)
    result.broken = bool(real.failing)
    for limit in dict.fromkeys((min(quick, timeout), timeout)):
        started = time.process_time()
        try:
            with records.processor_time():
                report = check_kernel(kernel, CheckOptions(timeout=limit))
        except Exception as error:  # a crash is a failure of the tool
            result.verdict = "crash"
            result.problems = [f"crash: {type(error).__name__}: {error}"]
            return result
        result.seconds = time.process_time() - started
        result.verdict = report.verdict.value
        result.codes = sorted({f.code for f in report.findings})
        result.problems = judge(kernel, report, real)
        late = all(p.startswith("not smallest") for p in result.problems)
        if not late or (not result.problems and report.verdict is not Verdict.UNKNOWN):
            break
    if not result.problems and report.verdict is not Verdict.UNKNOWN:
        result.text = ""  # nobody will want to see it
    if report.verdict is Verdict.UNKNOWN:
        result.unknown = sorted({reason(u.reason) for u in report.unknown})
        if real.failing:
            result.unknown = [f"missed fault: {sorted({k for k, _ in real.first})}"]
    return result


def reason(text: str) -> str:
    """The reason of an `unknown` without what is particular to one kernel."""
    text = re.sub(r"line \d+", "line #", re.split("; (?:ran clean|no fault)", text)[0])
    return re.sub(r"\b\d[\d,.]*\b", "#", text)


def disagrees(kernel: ir.Kernel, timeout: float = 10.0, kind: str = "") -> bool:
    """Whether a report contradicts the runs (in a problem that starts with `kind`)."""
    try:
        with records.processor_time():
            report: KernelReport = check_kernel(kernel, CheckOptions(timeout=timeout))
    except Exception as error:
        return f"crash: {type(error).__name__}".startswith(kind) if kind else True
    return any(p.startswith(kind) for p in judge(kernel, report, truth(kernel)))


def campaign(
    numbers: Iterable[int],
    timeout: float = 10.0,
    jobs: int = 1,
    quick: float = 10.0,
    make: Callable[[int], ir.Kernel] = random_kernel,
) -> Iterator[Result]:
    """Examine kernels, in several processes if asked."""
    work = partial(examine, timeout=timeout, quick=quick, make=make)
    if jobs <= 1:
        yield from map(work, numbers)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(work, numbers, chunksize=8)


@dataclass
class Summary:
    """What a campaign found."""

    verdicts: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    failures: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.verdicts[result.verdict] += 1
        self.broken[result.verdict] += result.broken
        self.reasons.update(map(reason, result.unknown))
        self.codes.update(result.codes)
        self.seconds.append(result.seconds)
        if result.problems:
            self.failures.append(result)

    def text(self) -> str:
        total = sum(self.verdicts.values())
        times = sorted(self.seconds) or [0.0]
        lines = [f"{total} kernels"]
        for verdict, count in self.verdicts.most_common():
            lines.append(
                f"  {verdict}: {count} ({100 * count / total:.2f} %), {self.broken[verdict]} with failing runs"
            )
        lines.append(f"  processor seconds per check: median {times[len(times) // 2]:.3f}, largest {times[-1]:.1f}")
        lines.append("unknown, by reason:")
        lines += [f"  {count} {text}" for text, count in self.reasons.most_common()]
        lines.append("kernels with each code: " + ", ".join(f"{c} {n}" for c, n in sorted(self.codes.items())))
        lines.append(f"{len(self.failures)} failures")
        lines += [f"  kernel {f.number}: {f.problems[0]}" for f in self.failures]
        return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1, help="number of the first kernel")
    parser.add_argument("--timeout", type=float, default=10.0, help="processor seconds per check")
    parser.add_argument("--quick", type=float, default=1.0, help="seconds of a first check, if that decides")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--shapes", action="store_true", help="kernels in forms that the pipelines do not have")
    parser.add_argument("--reduce", type=int, default=0, metavar="N", help="print the first N failures in reduced form")
    parser.add_argument("--record", type=Path, help="keep every result in this file, one JSON object a line")
    options = parser.parse_args()
    numbers = range(options.seed, options.seed + options.count)
    known = {r.number: r for r in (Result(**told) for told in records.load(options.record))}
    summary = Summary()
    for number in numbers:
        if number in known:
            summary.add(known[number])
    left = [number for number in numbers if number not in known]
    make = shaped_kernel if options.shapes else random_kernel
    fresh = campaign(left, options.timeout, options.jobs, options.quick, make)
    for done, result in enumerate(records.kept(fresh, options.record), 1):
        summary.add(result)
        if done % 500 == 0:
            print(f"... {done}: {dict(summary.verdicts)}, {len(summary.failures)} failures", flush=True)
    print(summary.text())
    for failure in summary.failures[: options.reduce]:
        kind = failure.problems[0].split(" at ")[0].split(" FP")[0]
        small = reduce(parse(failure.text), lambda k, kind=kind: disagrees(k, options.timeout, kind))
        print(f"\n# kernel {failure.number}: {failure.problems}\n{print_kernel(small)}")
    return 1 if summary.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
