"""Is every mutant of a right kernel that some small run breaks refuted, in the right row, and no other?

    python -m tests.campaigns.mutants --sample 60 --jobs 2

The origins are the right kernels of `tests/cases`.  The executor labels a mutant on small values: *broken* (a run
fails), *contested* (only the order of signals is open), *equal* (every run is clean).  A broken mutant must be
refuted with a finding in one of the rows of its first faults; an equal one must not be refuted.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from fencepost import ir
from fencepost.engine import check_kernel
from fencepost.findings import Row, Severity, Verdict
from fencepost.frontends.kir.reader import read
from fencepost.model.program import ModelError
from fencepost.options import CheckOptions
from fencepost.printer import print_kernel
from fencepost.reading import parse
from fencepost.validate import validate

from .mutations import mutants
from .truth import Truth, judge, truth

ORIGINS = Path(__file__).resolve().parent.parent / "cases" / "right.kir"


@dataclass
class Verdicts:
    """One examined mutant."""

    origin: str
    what: str
    label: str
    verdict: str
    problems: list[str] = field(default_factory=list)
    text: str = ""


def origins(path: Path = ORIGINS) -> list[ir.Kernel]:
    """The right kernels."""
    result = read(path.read_text("utf-8"), str(path))
    assert not result.errors, result.errors
    return list(result.kernels)


def all_mutants(kernel: ir.Kernel) -> list[tuple[str, str]]:
    """What was done and the text of every well-formed, different mutant."""
    found: dict[str, str] = {}
    own = print_kernel(kernel)
    for what, mutant in mutants(kernel):
        if not validate(mutant):
            text = print_kernel(mutant)
            if text != own:
                found.setdefault(text, what)
    return [(what, text) for text, what in found.items()]


def sample(per_origin: int, seed: int) -> list[tuple[str, str, str]]:
    """(origin, what was done, text) of some mutants of every right kernel; all of them if `per_origin` is 0."""
    chosen = []
    for kernel in origins():
        found = all_mutants(kernel)
        if per_origin and len(found) > per_origin:
            found = Random(f"mutants {seed} {kernel.name}").sample(found, per_origin)
        chosen += [(kernel.name, what, text) for what, text in found]
    return chosen


def label(real: Truth) -> str:
    if real.failing:
        return "broken"
    if real.contested:
        return "contested"
    return "equal" if real.tried else "nothing ran"


def examine(mutant: tuple[str, str, str], timeout: float = 10.0) -> Verdicts:
    """Label one mutant by runs, check it, and compare."""
    origin, what, text = mutant
    kernel = parse(text)
    try:
        real = truth(kernel)
        report = check_kernel(kernel, CheckOptions(timeout=timeout))
    except ModelError as error:
        return Verdicts(origin, what, "no model", str(error))
    except Exception as error:
        return Verdicts(origin, what, "crash", "crash", [f"crash: {type(error).__name__}: {error}"], text)
    result = Verdicts(origin, what, label(real), report.verdict.value, judge(kernel, report, real), text)
    errors = [f for f in report.findings if f.severity is Severity.ERROR]
    if result.label == "broken":
        rows: set[Row] = set().union(*(r for _, r in real.first))
        if report.verdict is not Verdict.REFUTED:
            result.problems.append(f"survived: {sorted(k for k, _ in real.first)} at {next(iter(real.failing))}")
        elif not any(f.row in rows for f in errors):
            wanted = ", ".join(sorted(r.id for r in rows))
            result.problems.append(f"wrong row: wanted one of {wanted}, got {[(f.code, f.row.id) for f in errors]}")
    elif result.label == "equal":
        loud = [f for f in errors if not _explained(f.code)]
        if loud:
            result.problems.append(f"equal, but refuted: FP{loud[0].code} at {loud[0].witness}: {loud[0].message}")
    return result


def _explained(code: str) -> bool:
    """Codes that need no failing run on small values: rounds, modes, static faults, large counts."""
    static = {"603", "604", "605", "706", "804", "805", "806"}
    return code in {"102", "103", "105", "303", "304", "307", "402", "807"} | static


def campaign(chosen: Iterable[tuple[str, str, str]], timeout: float = 10.0, jobs: int = 1) -> Iterator[Verdicts]:
    if jobs <= 1:
        yield from map(partial(examine, timeout=timeout), chosen)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(examine, timeout=timeout), chosen, chunksize=8)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=40, help="mutants per right kernel; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=3, help="failures to print with their text")
    options = parser.parse_args()
    table: Counter[tuple[str, str]] = Counter()
    origin_of: Counter[str] = Counter()
    failures: list[Verdicts] = []
    for result in campaign(sample(options.sample, options.seed), options.timeout, options.jobs):
        table[result.label, result.verdict if result.label != "no model" else "-"] += 1
        if result.label == "broken":
            origin_of[result.origin] += 1
        if result.problems:
            failures.append(result)
    print(f"{sum(table.values())} mutants of {len(origins())} right kernels")
    for (name, verdict), count in sorted(table.items()):
        print(f"  {name}: {verdict} {count}")
    print(f"  {sum(origin_of.values())} broken mutants of {len(origin_of)} kernels")
    for failure in failures:
        print(f"  {failure.origin}, {failure.what}: {failure.problems[0]}")
    for failure in failures[: options.show]:
        print(f"\n# {failure.origin}, {failure.what}: {failure.problems}\n{failure.text}")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
