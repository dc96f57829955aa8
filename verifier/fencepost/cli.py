"""What does the person at the terminal want, and which verb answers it?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: that of the process) and return the exit status.

    Findings go to standard output, progress and messages to standard error.  No exception leaves this function.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # file names and sources may hold what the terminal's encoding can't show
            reconfigure(errors="backslashreplace")
    if arguments in (["--version"], ["-V"]):
        from fencepost.versions import version

        print(version())
        return 0
    verbose = "--verbose" in arguments or "-v" in arguments
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("fencepost: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except Exception as error:
        if verbose:
            import traceback

            traceback.print_exc()
        detail = " ".join(str(error).split())[:300]
        print(
            f"fencepost: internal error ({type(error).__name__}: {detail}); this is a defect of fencepost, please "
            "report it with the command line and the file (--verbose shows where it happened)",
            file=sys.stderr,
        )
        return 2


def _run(arguments: list[str]) -> int:
    import argparse

    from fencepost.commands import COMMANDS, UsageError

    parser = argparse.ArgumentParser(
        prog="fencepost",
        description="Checks the synchronisation protocols of accelerator kernels for all parameter values.",
        epilog="example: fencepost check examples/   (fencepost VERB --help tells more)",
    )
    parser.add_argument("-V", "--version", action="store_true", help="name the versions of the tool, z3, lark, Python")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb")
    for command in COMMANDS:
        sub = verbs.add_parser(
            command.NAME,
            help=command.HELP,
            description=command.HELP[:1].upper() + command.HELP[1:] + ".",
            epilog=f"example: {command.EXAMPLE}",
        )
        command.configure(sub)
        sub.set_defaults(execute=command.execute)
    try:
        args = parser.parse_args(arguments)
    except SystemExit as leave:  # --help, or a usage error that argparse has explained
        return leave.code if isinstance(leave.code, int) else 2
    if args.version:
        from fencepost.versions import version

        print(version())
        return 0
    if args.verb is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        status: int = args.execute(args)
        return status
    except UsageError as error:
        print(f"fencepost {args.verb}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
