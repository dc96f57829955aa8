"""How long does one thing take, and how much memory does it need?  Runs in a process of its own and prints JSON.

python benchmarks/measure.py check FILE        # seconds of the check, peak megabytes, verdict
python benchmarks/measure.py execute FILE N    # one run with every parameter N
python benchmarks/measure.py read FILE         # reading the text only
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
        started = time.perf_counter()
        report = check_kernel(kernel, CheckOptions(timeout=120))
        found = {"seconds": time.perf_counter() - started, "verdict": report.verdict.value}
    elif what == "execute":
        from fencepost.model.executor import run
        from fencepost.model.program import compile_kernel
        from fencepost.reading import parse

        compiled = compile_kernel(parse(text))
        values = dict.fromkeys(compiled.parameters, int(sys.argv[3]))
        run(compiled, dict.fromkeys(compiled.parameters, 1))
        started = time.perf_counter()
        result = run(compiled, values, limit=10_000_000)
        seconds = time.perf_counter() - started
        found = {"seconds": seconds, "operations": len(result.order), "verdict": "clean" if result.clean else "faults"}
    else:
        from fencepost.frontends.kir.reader import read

        read("kernel warm_up():\n    ...\n", "warm.kir")
        started = time.perf_counter()
        result = read(text, str(file))
        assert not result.errors
        found = {"seconds": time.perf_counter() - started, "verdict": f"{len(result.kernels)} kernels"}
    found["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


if __name__ == "__main__":
    main()
