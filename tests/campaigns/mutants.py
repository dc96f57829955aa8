"""Is every mutant of a right kernel that some small run breaks refuted, in the right row, and no other?

    python -m tests.campaigns.mutants --sample 60 --jobs 2 --record mutants.jsonl
    python -m tests.campaigns.mutants --sample 60 --origins kernels/ok_*.kir

The origins are the right kernels of `tests/cases`, or those in other files.  The executor labels a mutant on small
values: *broken* (a run fails), *contested* (only the order of signals is open), *equal* (every run is clean).  A broken
mutant must be refuted with a finding in one of the rows of its first faults; an equal one must not be refuted.  What is
recorded already is not examined again.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random

from fencepost import ir
from fencepost.engine import check_kernel
from fencepost.findings import KernelReport, Row, Severity, Verdict
from fencepost.frontends.kir.reader import read
from fencepost.model.program import ModelError
from fencepost.options import CheckOptions
from fencepost.printer import print_kernel
from fencepost.reading import parse
from fencepost.validate import validate

from . import records
from .mutations import mutants
from .truth import Truth, judge, truth

ORIGINS = Path(__file__).resolve().parent.parent / "cases" / "right.kir"


@dataclass
class Verdicts:
    """One examined mutant.  `codes` are those of the errors."""

    origin: str
    what: str
    label: str
    verdict: str
    problems: list[str] = field(default_factory=list)
    text: str = ""
    codes: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """The verdict; with the codes where no run fails, for then the fault is one that runs do not show."""
        silent = self.label == "equal" and self.codes
        return self.verdict + (f" by {', '.join('FP' + code for code in self.codes)}" if silent else "")


def origins(paths: Sequence[Path] = (ORIGINS,)) -> list[ir.Kernel]:
    """The right kernels in some files."""
    found: list[ir.Kernel] = []
    for path in paths:
        result = read(path.read_text("utf-8"), str(path))
        assert not result.errors, result.errors
        found += result.kernels
    return found


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


def sample(per_origin: int, seed: int, paths: Sequence[Path] = (ORIGINS,)) -> list[tuple[str, str, str]]:
    """(origin, what was done, text) of some mutants of every right kernel; all of them if `per_origin` is 0."""
    chosen = []
    for kernel in origins(paths):
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


def examine(mutant: tuple[str, str, str], timeout: float = 10.0, quick: float = 10.0) -> Verdicts:
    """Label one mutant by runs, check it, and compare.

    Args:
        timeout: seconds for a mutant about which something is still wrong or unknown after `quick` seconds.
    """
    origin, what, text = mutant
    kernel = parse(text)
    try:
        real = truth(kernel)
        for limit in dict.fromkeys((min(quick, timeout), timeout)):
            with records.processor_time():
                report = check_kernel(kernel, CheckOptions(timeout=limit))
            problems = [*judge(kernel, report, real), *_mistakes(report, real)]
            if not problems and report.verdict is not Verdict.UNKNOWN:
                break
    except ModelError as error:
        return Verdicts(origin, what, "no model", str(error), [], text)
    except Exception as error:
        return Verdicts(origin, what, "crash", "crash", [f"crash: {type(error).__name__}: {error}"], text)
    codes = sorted({f.code for f in report.findings if f.severity is Severity.ERROR})
    return Verdicts(origin, what, label(real), report.verdict.value, problems, text, codes)


def _mistakes(report: KernelReport, real: Truth) -> Iterator[str]:
    """What is wrong with the report about a mutant, if its runs are these."""
    errors = [f for f in report.findings if f.severity is Severity.ERROR]
    if label(real) == "broken":
        rows: set[Row] = set().union(*(r for _, r in real.first))
        if report.verdict is not Verdict.REFUTED:
            yield f"survived: {sorted(k for k, _ in real.first)} at {next(iter(real.failing))}"
        elif not any(f.row in rows for f in errors):
            wanted = ", ".join(sorted(r.id for r in rows))
            yield f"wrong row: wanted one of {wanted}, got {[(f.code, f.row.id) for f in errors]}"
    elif label(real) == "equal":
        for f in errors:
            if not _explained(f.code):
                yield f"equal, but refuted: FP{f.code} at {f.witness}: {f.message}"


def _explained(code: str) -> bool:
    """Codes that need no failing run on small values: rounds, modes, static faults, large counts."""
    static = {"603", "604", "605", "706", "804", "805", "806"}
    return code in {"102", "103", "105", "303", "304", "307", "402", "807"} | static


def campaign(
    chosen: Iterable[tuple[str, str, str]], timeout: float = 10.0, jobs: int = 1, quick: float = 10.0
) -> Iterator[Verdicts]:
    work = partial(examine, timeout=timeout, quick=quick)
    if jobs <= 1:
        yield from map(work, chosen)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(work, chosen, chunksize=8)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=40, help="mutants per right kernel; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--origins", type=Path, nargs="+", default=[ORIGINS], help="files with right kernels")
    parser.add_argument("--timeout", type=float, default=10.0, help="processor seconds per check")
    parser.add_argument("--quick", type=float, default=1.0, help="seconds of a first check, if that decides")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=3, help="failures to print with their text")
    parser.add_argument("--record", type=Path, help="keep every result in this file, one JSON object a line")
    options = parser.parse_args()
    table: Counter[tuple[str, str]] = Counter()
    origin_of: Counter[str] = Counter()
    failures: list[Verdicts] = []
    chosen = sample(options.sample, options.seed, options.origins)
    known = {(r.origin, r.text): r for r in (Verdicts(**told) for told in records.load(options.record))}
    left = [mutant for mutant in chosen if (mutant[0], mutant[2]) not in known]
    done = [known[origin, text] for origin, _, text in chosen if (origin, text) in known]
    fresh = campaign(left, options.timeout, options.jobs, options.quick)
    for result in chain(done, records.kept(fresh, options.record)):
        table[result.label, result.outcome if result.label != "no model" else "-"] += 1
        if result.label == "broken":
            origin_of[result.origin] += 1
        if result.problems:
            failures.append(result)
    print(f"{sum(table.values())} mutants of {len(origins(options.origins))} right kernels")
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
