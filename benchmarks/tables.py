"""Makes all tables of benchmarks/results.md.

    python benchmarks/tables.py                     # print the tables
    python benchmarks/tables.py --write             # and record them
    python benchmarks/tables.py --repeat 9 --only executor,channels

Every figure is the median of several fresh processes.  Seconds are processor seconds (user and system) of the whole
process or of the part that the column names: on an idle machine they are what the clock shows, and other programs
change them little.  Columns with spin are left out where spin or gcc is not installed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import kernels
from tabulate import tabulate

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "verifier"), str(ROOT / "rules")]

from campaigns import promela  # noqa: E402
from fencepost.model.executor import run  # noqa: E402
from fencepost.reading import parse  # noqa: E402

SPIN_MEMORY = 2048  # megabytes
SPIN_SECONDS = 120


class Bench:
    """Measures things `repeat` times and takes medians."""

    def __init__(self, repeat: int) -> None:
        self.repeat = repeat
        self.folder = Path(tempfile.mkdtemp(prefix="fencepost-bench-"))
        self.environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT / "verifier"), str(ROOT / "rules")]))
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.environment["PYTHONPYCACHEPREFIX"] = str(self.folder / "bytecode")  # compiled once, as when installed
        self.fencepost("check", "--no-cache", str(self.file(kernels.PING_PONG)))

    def file(self, text: str) -> Path:
        path = self.folder / "kernel.kir"
        path.write_text(text, "utf-8")
        return path

    def process(self, *command: str) -> float:
        """Median processor seconds of a whole process; its exit status may be that of a finding."""
        times = []
        for _ in range(self.repeat):
            before = spent()
            subprocess.run(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            times.append(spent() - before)
        return statistics.median(times)

    def fencepost(self, *arguments: str) -> float:
        """Median processor seconds of a `fencepost` process."""
        return self.process(sys.executable, "-m", "fencepost", *arguments)

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
        """The cells under `CHECK`."""
        check = self.measure("check", text)
        search, proof = self.measure("search", text), self.measure("prove", text)
        whole = self.fencepost("check", "--no-cache", str(self.file(text)))
        refuted = check["verdict"] == "refuted"
        if refuted and search["verdict"] != "a witness":
            search = check  # the smallest shapes show nothing: whatever finds it is part of the check
        parts = [f"{search['seconds']:.3f}", "" if refuted else f"{proof['seconds']:.3f}"]
        return [check["verdict"], *parts, f"{check['seconds']:.3f}", f"{whole:.2f}", f"{check['megabytes']:.0f}"]


def spent() -> float:
    """Processor seconds of all processes that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


Table = tuple[str, list[str], list[list[object]]]
CHECK = ["verdict", "search, s", "proof, s", "check, s", "whole process, s", "peak MB"]


def start(b: Bench) -> Iterator[Table]:
    loop_free = b.file(kernels.LOOP_FREE)
    rows: list[list[object]] = [
        ["python -c pass", f"{b.process(sys.executable, '-c', 'pass'):.3f}"],
        ["fencepost --version", f"{b.fencepost('--version'):.3f}"],
        ["fencepost check, loop-free kernel", f"{b.fencepost('check', '--no-cache', str(loop_free)):.3f}"],
        [
            "fencepost check examples/row_sums.py",
            f"{b.fencepost('check', '--no-cache', str(ROOT / 'examples' / 'row_sums.py')):.3f}",
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
    for name, text in (
        ("Two-slot hand-over", kernels.PING_PONG),
        ("Eight channels", kernels.channels(8)),
        ("Flash attention, one loop", kernels.attention(1)),
        ("Flash attention, two loops of n trips", kernels.attention(2)),
    ):
        heads = ["n", "check, s", "MB", "executor, s", "MB", "spin, states", "spin, s", "MB"]
        ours = b.measure("check", text)
        rows: list[list[object]] = [
            [f"all ({ours['verdict']})", f"{ours['seconds']:.3f}", f"{ours['megabytes']:.0f}", *[""] * 5]
        ]
        stopped = not promela.AVAILABLE
        for n in (4, 16, 64, 256, 1024):
            row: list[object] = [n, "", "", *executed(b, text, n)]
            if not stopped:
                found, stopped = searched(text, n, b.repeat)
                row += found
            rows.append(row)
        yield f"{name}: all trip counts at once, one run, all schedules of one trip count", heads, rows


def constants(b: Bench) -> Iterator[Table]:
    rows: list[list[object]] = []
    for trips in (100, 1000, 100_000, 1_000_000_000):
        text = kernels.PING_PONG.replace("range(n)", f"range({trips})").replace("(n)", "()")
        text = text.replace("    assume n >= 0\n", "")
        rows.append([f"{trips:,}", *b.check(text)])
        rows.append([f"{trips:,}, other slot", *b.check(text.replace("move qk[t % 2]", "move qk[(t + 1) % 2]"))])
    yield "Constant trip counts (two-slot hand-over without parameters)", ["trips", *CHECK], rows


def executed(b: Bench, text: str, n: int) -> list[object]:
    """Seconds and megabytes of one run; a run of more than ten million operations is left out."""
    try:
        one = b.measure("execute", text, str(n))
    except subprocess.CalledProcessError:
        return ["more than 10,000,000 operations", ""]
    return [f"{one['seconds']:.4f}", f"{one['megabytes']:.0f}"]


def searched(text: str, n: int, repeat: int) -> tuple[list[object], bool]:
    """States, seconds and megabytes of spin's search, without the compiler; and whether it stopped short."""
    kernel = parse(text)
    model = promela.promela(run(kernel, dict.fromkeys(kernel.parameters, n), limit=10_000_000))
    try:
        answers = [promela.verify(model, SPIN_MEMORY, SPIN_SECONDS, optimised=True) for _ in range(min(repeat, 3))]
    except promela.TooLarge as reason:
        return ["stops", str(reason), ""], True
    seconds = statistics.median(a.seconds for a in answers)
    return [f"{answers[0].states:,}", f"{seconds:.2f}", f"{answers[0].megabytes:.0f}"], False


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
    rows: list[list[object]] = [
        ["two-slot hand-over without drain", *b.check(kernels.NOT_DRAINED)],
        ["eight channels, one without drain", *b.check(drop_last(kernels.channels(8), "wait_cross_core 3 @ FIX"))],
        ["four stages, one credit short", *b.check(drop_last(kernels.stages(4), "set_cross_core 1 @ V"))],
    ]
    yield "Refuted", ["kernel", *CHECK], rows


def drop_last(text: str, line: str) -> str:
    """The text without the last line of this content."""
    before, found, after = text.rpartition(line)
    assert found, line
    return f"{before}pass{after}"


TABLES: dict[str, Callable[[Bench], Iterator[Table]]] = {
    "start": start, "reading": reading, "executor": executor, "trips": trips, "constants": constants,
    "channels": channels, "stages": stages, "attention": attention, "witness": witness,
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
    head = (
        f"# Benchmarks\n\n{datetime.date.today()}, {machine()}.\n`python benchmarks/tables.py --write --repeat "
        f"{options.repeat}`: medians of {options.repeat} processes, in processor seconds.\n"
        f"spin stops at {SPIN_MEMORY} MB or {SPIN_SECONDS} s; its figures are the search alone, without the compiler.\n"
        "Search: until the first witness, or its quick part, which comes before a proof. Proof: the prover alone. "
        "Check: both, and the rest of the search after a witness. Whole process: with start, reading and report.\n"
    )
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
