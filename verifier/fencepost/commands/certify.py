"""`fencepost certify`: can the proof of a kernel be written down so that others can check it?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fencepost.commands import common
from fencepost.commands.common import UsageError

NAME = "certify"
HELP = "prove a kernel and write the certificate of the proof"
EXAMPLE = "fencepost certify examples/scores.kir -o scores.json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    common.add_file(parser)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the certificate there")
    parser.add_argument("--timeout", metavar="S", type=float, default=60.0, help="seconds for the proof (default 60)")


def execute(args: argparse.Namespace) -> int:
    """Write the certificate of the one kernel; 3 if its proof cannot be written down, 2 if it cannot be modelled."""
    import json

    from fencepost.model.program import ModelError
    from fencepost.passes.serial import Serial
    from fencepost.prove.certificate import NotCertified, certify

    kernel = common.one_kernel(args)
    try:
        certificate = certify(Serial().run(kernel), args.timeout)
    except NotCertified as refusal:
        print(f"fencepost certify: {kernel.name}: no certificate: {refusal}", file=sys.stderr)
        return 3
    except ModelError as error:
        raise UsageError(f"{error.span.file}:{error.span.line}: {error}") from None
    text = json.dumps(certificate, indent=1, ensure_ascii=False) + "\n"
    if args.output is None:
        print(text, end="")
        return 0
    try:
        args.output.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"can't write {args.output}: {error.strerror}") from None
    print(f"{args.output}: {kernel.name}, {len(certificate['claims'])} claims", file=sys.stderr)
    return 0
