"""What the tool says of the public PyPTO-Pro kernels, one row of a table a kernel.

    python benchmarks/public_kernels.py ROOT                   # a checkout of hicann/pypto
    python benchmarks/public_kernels.py ROOT --only preload --timeout 20 --markdown
    python benchmarks/public_kernels.py ROOT --write           # and record it in benchmarks/public_kernels.md

ROOT holds python/tests/st/pypto_pro/frontend.  The kernels are those with set_cross_core or wait_cross_core, and those
that the framework pipelines.  Each file is checked in a process of its own.  "decided" counts the rows that are proved
or refuted among those that apply; "seconds" are processor seconds of the check of that kernel, the clock's in brackets
where they differ by more than a tenth of a second; "states" and "obligations" are what the longest proof went through.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY / "verifier"), str(REPOSITORY / "rules")]

from fencepost import ir  # noqa: E402
from fencepost.checking import check_kernel  # noqa: E402
from fencepost.findings import KernelReport, Verdict  # noqa: E402
from fencepost.frontends.registry import read_source  # noqa: E402
from fencepost.options import CheckOptions  # noqa: E402

FOLDER = Path("python/tests/st/pypto_pro/frontend")
WANTED = re.compile(r"(set|wait)_cross_core|pipeline\.PipelineConfig")
HEADS = ("file", "kernel", "verdict", "decided", "findings", "smallest", "seconds", "states", "obligations")


class Line(NamedTuple):
    """One kernel: the cells of its row, and its figures."""

    cells: tuple[str, ...]
    decided: int
    rows: int
    seconds: float


def files(root: Path) -> list[Path]:
    """The files with kernels that are wanted."""
    found = sorted((root / FOLDER).rglob("*.py"))
    return [path for path in found if WANTED.search(path.read_text("utf-8", "replace"))]


def wanted(kernel: ir.Kernel, text: str) -> bool:
    """Whether a kernel signals between cores, or is pipelined by the framework."""
    crosses = any(isinstance(n, (ir.SetCross, ir.WaitCross)) for n in ir.walk(kernel))
    decorators = text.splitlines()[max(0, kernel.span.line - 4) : kernel.span.line]
    return crosses or any("PipelineConfig" in line for line in decorators)


def lines(path: Path, root: Path, timeout: float) -> list[Line]:
    """The rows of one file."""
    text = path.read_text("utf-8", "replace")
    result = read_source(text, str(path))
    found = []
    for kernel in result.kernels:
        if not wanted(kernel, text):
            continue
        clock, processor = time.monotonic(), time.process_time()
        outcome = check_kernel(kernel, CheckOptions(timeout=timeout))
        clock, processor = time.monotonic() - clock, time.process_time() - processor
        for report in outcome.report.kernels:
            found.append(line(report, str(path.relative_to(root / FOLDER)), clock, processor))
        for error in outcome.report.errors:
            found.append(Line((path.name, kernel.name, "error", "", error.message, "", "", "", ""), 0, 1, processor))
    for error in result.errors:
        found.append(Line((path.name, "", "error", "", error.message, "", "", "", ""), 0, 1, 0.0))
    return found


def line(report: KernelReport, file: str, clock: float, processor: float) -> Line:
    """One kernel as a row."""
    checks = [c for c in report.checks if c.verdict is not Verdict.NOT_APPLICABLE]
    decided = sum(c.verdict in (Verdict.PROVED, Verdict.REFUTED) for c in checks)
    counts: dict[str, int] = {}
    for finding in report.findings:
        counts[finding.code] = counts.get(finding.code, 0) + 1
    codes = " ".join(f"{code}x{n}" if n > 1 else code for code, n in sorted(counts.items()))
    smallest = next((str(f.witness) for f in report.findings if f.witness is not None), "")
    seconds = f"{processor:.1f}" if clock - processor < 0.1 else f"{processor:.1f} ({clock:.1f})"
    evidence = " ".join(c.evidence for c in checks)
    cells = (
        file,
        report.name,
        report.verdict.value,
        f"{decided}/{len(checks)}",
        codes or "-",
        smallest or "-",
        seconds,
        _largest(r"(\d[\d,]*) relative states", evidence),
        _largest(r"(\d[\d,]*) obligations", evidence),
    )
    return Line(cells, decided, len(checks), processor)


def _largest(pattern: str, text: str) -> str:
    """The largest number that a pattern finds."""
    numbers = [int(n.replace(",", "")) for n in re.findall(pattern, text)]
    return str(max(numbers)) if numbers else "-"


def checked(root: Path, only: str, timeout: float, jobs: int) -> Iterator[Line]:
    """The rows of all files, in their order; the longest files are begun first."""
    chosen = [path for path in files(root) if only in str(path)]
    longest = sorted(chosen, key=lambda path: path.stat().st_size, reverse=True)
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=1) as pool:
        results = pool.starmap(lines, [(path, root, timeout) for path in longest], chunksize=1)
    found = dict(zip(longest, results, strict=True))
    for path in chosen:
        yield from found[path]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, help="a checkout of hicann/pypto")
    parser.add_argument("--only", default="", help="part of the file's path")
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds per kernel")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--write", action="store_true", help="record the table in benchmarks/public_kernels.md")
    options = parser.parse_args()
    started = time.monotonic()
    found = list(checked(options.root, options.only, options.timeout, options.jobs))
    whole = sum(one.decided == one.rows for one in found)
    seconds = [one.seconds for one in found] or [0.0]
    told = (
        f"{len(found)} kernels, every row decided in {whole}; processor seconds: median"
        f" {statistics.median(seconds):.2f}, worst {max(seconds):.1f}, sum {sum(seconds):.0f};"
        f" by the clock {time.monotonic() - started:.0f} s with {options.jobs} process(es),"
        f" at most {options.timeout:g} s a kernel"
    )
    cells = [one.cells for one in found]
    style = "pipe" if options.markdown else "plain"
    print(tabulate(cells, HEADS, tablefmt=style, disable_numparse=True), told, sep="\n\n")
    if options.write:
        rows = tabulate(cells, HEADS, tablefmt="pipe", disable_numparse=True)
        text = f"# The public kernels, one row a kernel\n\nMade by `benchmarks/public_kernels.py`. {told}.\n\n{rows}\n"
        (REPOSITORY / "benchmarks" / "public_kernels.md").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
