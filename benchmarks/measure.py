"""How long does one thing take, and how much memory does it need?  Runs in a process of its own and prints JSON.

python benchmarks/measure.py check FILE        # the check of a kernel: seconds, peak megabytes, verdict
python benchmarks/measure.py search FILE       # the part of it that looks for a witness, until there is one
python benchmarks/measure.py prove FILE        # the part of it that proves
python benchmarks/measure.py execute FILE N    # one run with every parameter N
python benchmarks/measure.py read FILE         # reading the text only

Seconds are processor seconds: other programs on the machine change them little.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path


def main() -> None:
    what, file = sys.argv[1], Path(sys.argv[2])
    text = file.read_text("utf-8")
    found: dict[str, object] = {}
    if what == "check":
        from fencepost.engine import check_kernel
        from fencepost.options import CheckOptions
        from fencepost.reading import parse

        kernel = parse(text)
        started = time.process_time()
        report = check_kernel(kernel, CheckOptions(timeout=120))
        found = {"seconds": time.process_time() - started, "verdict": report.verdict.value}
    elif what == "search":
        from fencepost.model.program import compile_kernel
        from fencepost.reading import parse
        from fencepost.search import Search

        compiled = compile_kernel(parse(text))
        started = time.process_time()
        search = Search(compiled, time.monotonic() + 120)
        outcome = search.quick()
        found = {"seconds": time.process_time() - started, "verdict": "a witness" if outcome.facts else "none yet"}
    elif what == "prove":
        from fencepost import prover
        from fencepost.applicability import applicable
        from fencepost.model.program import compile_kernel
        from fencepost.reading import parse

        compiled = compile_kernel(parse(text))
        rows = [row for row, applies in applicable(compiled.kernel).items() if applies]
        started = time.process_time()
        proof = prover.prove(compiled, rows, time.monotonic() + 120)
        seconds = time.process_time() - started
        found = {"seconds": seconds, "verdict": f"{len(proof.proved)} of {len(rows)} rows"}
    elif what == "execute":
        from fencepost.model.executor import run
        from fencepost.model.program import compile_kernel
        from fencepost.reading import parse

        compiled = compile_kernel(parse(text))
        values = dict.fromkeys(compiled.parameters, int(sys.argv[3]))
        run(compiled, dict.fromkeys(compiled.parameters, 1))
        started = time.process_time()
        result = run(compiled, values, limit=10_000_000)
        seconds = time.process_time() - started
        found = {"seconds": seconds, "operations": len(result.order), "verdict": "clean" if result.clean else "faults"}
    else:
        from fencepost.frontends.kir.reader import read

        read("kernel warm_up():\n    ...\n", "warm.kir")
        started = time.process_time()
        result = read(text, str(file))
        assert not result.errors
        found = {"seconds": time.process_time() - started, "verdict": f"{len(result.kernels)} kernels"}
    found["megabytes"] = peak()
    print(json.dumps(found))


def peak() -> float:
    """The largest resident size of this process so far, in megabytes.

    Where the system tells it apart: `ru_maxrss` may be that of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
