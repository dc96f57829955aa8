"""`fencepost certify`: can the proof of a kernel be written down so that others can check it?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.commands import common
from fencepost.commands.common import UsageError

if TYPE_CHECKING:
    from fencepost import ir

NAME = "certify"
HELP = "prove a kernel and write the certificate of the proof"
EXAMPLE = "fencepost certify examples/scores.kir -o scores.json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    common.add_file(parser)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the certificate there")
    parser.add_argument("--timeout", metavar="S", type=common.seconds, default=60.0,
                        help="seconds for the proof (default 60)")  # fmt: skip


def execute(args: argparse.Namespace) -> int:
    """Write the certificate of the one kernel; 3 if its proof cannot be written down, 2 if it cannot be modelled."""
    from fencepost.model.program import ModelError
    from fencepost.passes.serial import Serial
    from fencepost.prove.certificate import NotCertified, certify

    kernel = Serial().run(common.one_kernel(args))
    try:
        certificate = certify(kernel, args.timeout)
    except NotCertified as refusal:
        print(f"fencepost certify: {kernel.name}: no certificate: {_why(kernel, refusal, args)}", file=sys.stderr)
        return 3
    except ModelError as error:
        raise UsageError(f"{error.span.file}:{error.span.line}: {error}") from None
    text = layout(certificate) + "\n"
    if args.output is None:
        print(text, end="")
        return 0
    try:
        args.output.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"can't write {args.output}: {error.strerror}") from None
    print(f"{args.output}: {kernel.name}, {len(certificate['claims'])} claims", file=sys.stderr)
    return 0


def layout(data: Any, indent: int = 0) -> str:
    """JSON in which whatever is short stands in one line."""
    import json

    text = json.dumps(data, ensure_ascii=False)
    if len(text) + indent <= 118 or not isinstance(data, (dict, list)):
        return text
    names = [f"{json.dumps(key, ensure_ascii=False)}: " for key in data] if isinstance(data, dict) else [""] * len(data)
    values = data.values() if isinstance(data, dict) else data
    lines = (" " * (indent + 1) + name + layout(item, indent + 1) for name, item in zip(names, values, strict=True))
    ends = "{}" if isinstance(data, dict) else "[]"
    return f"{ends[0]}\n" + ",\n".join(lines) + f"\n{' ' * indent}{ends[1]}"


def _why(kernel: ir.Kernel, refusal: Exception, args: argparse.Namespace) -> str:
    """What to say of a kernel without certificate: perhaps it is wrong, perhaps only this kind of proof fails."""
    from fencepost.engine import check_kernel
    from fencepost.findings import Severity, Verdict
    from fencepost.options import CheckOptions

    report = check_kernel(kernel, CheckOptions(timeout=args.timeout))
    match report.verdict:
        case Verdict.REFUTED:
            codes = dict.fromkeys(f"FP{f.code}" for f in report.findings if f.severity is Severity.ERROR)
            return f"it is refuted by {', '.join(codes)}; see `fencepost check {args.file}`"
        case Verdict.PROVED:
            return f"it is proved, and this proof of it could not be written down: {refusal}"
    return f"it is {report.verdict.value}: {refusal}"
