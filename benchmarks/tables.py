"""Makes all tables of benchmarks/results.md.

    python benchmarks/tables.py                     # print the tables
    python benchmarks/tables.py --write             # and record them
    python benchmarks/tables.py --repeat 9 --only executor,channels

Every figure is the median of several fresh processes on an otherwise idle machine.  Columns with spin are left out
where spin or gcc is not installed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import kernels
from tabulate import tabulate

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "tests"))


class Bench:
    """Measures things `repeat` times and takes medians."""

    def __init__(self, repeat: int) -> None:
        self.repeat = repeat
        self.folder = Path(tempfile.mkdtemp(prefix="fencepost-bench-"))
        self.environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT / "verifier"), str(ROOT / "rules")]))

    def file(self, text: str) -> Path:
        path = self.folder / "kernel.kir"
        path.write_text(text, "utf-8")
        return path

    def process(self, *command: str) -> float:
        """Median seconds of a whole process; its exit status may be that of a finding."""
        times = []
        for _ in range(self.repeat):
            started = time.perf_counter()
            subprocess.run(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            times.append(time.perf_counter() - started)
        return statistics.median(times)

    def measure(self, what: str, text: str, *rest: str) -> dict[str, float]:
        """Median of each number that `measure.py` prints, and its verdict."""
        path = self.file(text)
        rows = []
        for _ in range(self.repeat):
            command = [sys.executable, str(HERE / "measure.py"), what, str(path), *rest]
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout))
        found = {k: statistics.median(r[k] for r in rows) for k in rows[0] if k != "verdict"}
        (found["verdict"],) = {r["verdict"] for r in rows}
        return found

    def check(self, text: str) -> list[object]:
        """Verdict, seconds of the check, seconds of the whole process, megabytes."""
        row = self.measure("check", text)
        whole = self.process(sys.executable, "-m", "fencepost", "check", str(self.file(text)))
        return [row["verdict"], f"{row['seconds']:.3f}", f"{whole:.2f}", f"{row['megabytes']:.0f}"]


Table = tuple[str, list[str], list[list[object]]]
CHECK = ["verdict", "check, s", "whole process, s", "peak MB"]


def start(b: Bench) -> Iterator[Table]:
    python = sys.executable
    loop_free = b.file(kernels.LOOP_FREE)
    rows: list[list[object]] = [
        ["python -c pass", f"{b.process(python, '-c', 'pass'):.3f}"],
        ["fencepost --version", f"{b.process(python, '-m', 'fencepost', '--version'):.3f}"],
        ["fencepost check, loop-free kernel", f"{b.process(python, '-m', 'fencepost', 'check', str(loop_free)):.3f}"],
        [
            "fencepost check examples/row_sums.py",
            f"{b.process(python, '-m', 'fencepost', 'check', str(ROOT / 'examples' / 'row_sums.py')):.3f}",
        ],
    ]
    yield "Whole processes", ["command", "seconds"], rows


def reading(b: Bench) -> Iterator[Table]:
    rows: list[list[object]] = []
    for size in (1, 10):
        text = kernels.long_text(size)
        row = b.measure("read", text)
        megabytes = len(text) / 1e6
        per_megabyte = f"{row['seconds'] / megabytes:.2f}"
        rows.append([f"{megabytes:.1f}", row["verdict"], per_megabyte, f"{row['megabytes']:.0f}"])
    yield "Reading kernel IR text", ["MB of text", "content", "seconds per MB", "peak MB"], rows


def executor(b: Bench) -> Iterator[Table]:
    rows: list[list[object]] = []
    for name, text, n in (
        ("two-slot hand-over", kernels.PING_PONG, 10_000),
        ("16 channels", kernels.channels(16), 2000),
        ("chain of 4 stages", kernels.stages(4), 4000),
        ("attention", kernels.attention(1), 5000),
    ):
        row = b.measure("execute", text, str(n))
        rate = row["operations"] / row["seconds"]
        rows.append([name, n, f"{row['operations']:,.0f}", f"{rate:,.0f}", f"{row['megabytes']:.0f}"])
    yield "Executor", ["kernel", "n", "operations", "operations per second", "peak MB"], rows


def trips(b: Bench) -> Iterator[Table]:
    from campaigns import promela
    from fencepost.model.executor import run
    from fencepost.reading import parse

    text = kernels.PING_PONG
    ours = b.check(text)
    rows: list[list[object]] = [["all n >= 0 (check)", ours[1], ours[3], "", "", "", ""]]
    for n in (4, 16, 64, 256, 1024):
        one = b.measure("execute", text, str(n))
        row: list[object] = [n, "", "", f"{one['seconds']:.4f}", f"{one['megabytes']:.0f}"]
        if promela.AVAILABLE:
            model = promela.promela(run(parse(text), {"n": n}))
            try:
                answers = [promela.verify(model, memory=4096, seconds=300) for _ in range(min(b.repeat, 3))]
                row += [
                    f"{statistics.median(a.seconds for a in answers):.2f}",
                    f"{statistics.median(a.megabytes for a in answers):.0f}",
                ]
            except promela.TooLarge as reason:
                row += [str(reason), ""]
        rows.append(row)
    heads = ["n", "check, s", "MB", "executor, s", "MB", "spin, s", "MB"]
    yield "Two-slot hand-over: all trip counts at once, one run, all schedules of one trip count", heads, rows


def channels(b: Bench) -> Iterator[Table]:
    rows: list[list[object]] = [[n, *b.check(kernels.channels(n))] for n in (2, 4, 8, 16, 32)]
    yield "Channels (one-slot tensors with credits)", ["channels", *CHECK], rows


def stages(b: Bench) -> Iterator[Table]:
    rows: list[list[object]] = [[n, *b.check(kernels.stages(n))] for n in range(1, 9)]
    yield "Stages (a chain between the cores, two slots and credits each)", ["stages", *CHECK], rows


def attention(b: Bench) -> Iterator[Table]:
    rows: list[list[object]] = []
    for levels in (1, 2, 3):
        for flaw in ("", "drain", "depth"):
            name = f"{levels} loop{'s' * (levels > 1)}" + (f", {flaw} off by one" if flaw else "")
            rows.append([name, *b.check(kernels.attention(levels, flaw=flaw))])
    yield "Flash attention (preload 2, lag 3, drains 2 and 3)", ["kernel", *CHECK], rows


def witness(b: Bench) -> Iterator[Table]:
    rows: list[list[object]] = [["two-slot hand-over without drain", *b.check(kernels.NOT_DRAINED)]]
    yield "Refuted", ["kernel", *CHECK], rows


TABLES: dict[str, Callable[[Bench], Iterator[Table]]] = {
    "start": start, "reading": reading, "executor": executor, "trips": trips, "channels": channels,
    "stages": stages, "attention": attention, "witness": witness,
}  # fmt: skip


def machine() -> str:
    """The processor, the number of cores, and versions, in one line."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="", help=f"tables, separated by commas: {', '.join(TABLES)}")
    parser.add_argument("--write", action="store_true", help="record the tables in benchmarks/results.md")
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name] or list(TABLES)
    bench = Bench(options.repeat)
    head = f"# Benchmarks\n\n{datetime.date.today()}, {machine()}; medians of {options.repeat} processes.\n"
    parts = [head]
    print(head)
    for name in wanted:
        for title, heads, rows in TABLES[name](bench):
            table = tabulate(rows, heads, tablefmt="github", disable_numparse=True)
            part = f"## {title}\n\n{table}\n"
            print(part, flush=True)
            parts.append(part)
    if options.write:
        (HERE / "results.md").write_text("\n".join(parts), "utf-8")


if __name__ == "__main__":
    main()
