"""What does the person at the terminal want, and which verb answers it?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: that of the process) and return the exit status.

    Findings go to standard output, progress and messages to standard error.  No exception leaves this function.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    streams = sys.stdout, sys.stderr
    try:
        sys.stdout, sys.stderr = map(_watched, streams)
        return _guarded(arguments)
    finally:
        sys.stdout, sys.stderr = streams


def _guarded(arguments: list[str]) -> int:
    """Run a command line; whatever goes wrong becomes a message and an exit status."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        _say("fencepost: interrupted")
        return 130
    except Unwritten as lost:
        if not isinstance(lost.error, BrokenPipeError):  # the reader of our output has gone, and knows
            _say(f"fencepost: can't write the output: {lost.error.strerror or lost.error}")
        return 2
    except Exception as error:
        detail = " ".join(str(error).split())[:300]
        _say(
            f"fencepost: internal error ({type(error).__name__}: {detail}); this is a defect of fencepost, please "
            "report it with the command line and the file (--verbose shows where it happened)",
            traceback="--verbose" in arguments or "-v" in arguments,
        )
        return 2


class Unwritten(Exception):
    """Standard output or standard error does not take our text; `error` says why."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


class _Watched:
    """A stream whose errors are told from those of files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise self._lost(error) from None

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise self._lost(error) from None

    def _lost(self, error: OSError) -> Unwritten:
        """The error to raise; what the stream still holds is given up, so that nothing goes wrong at the very end."""
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        return Unwritten(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _watched(stream: TextIO | None) -> Any:
    """The stream to use for `stream`; None is one that the caller closed."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:  # file names and sources may hold what the terminal's encoding can't show
        reconfigure(errors="backslashreplace")
    return _Watched(stream)


def _say(message: str, traceback: bool = False) -> None:
    """Print a message for the person, and the traceback of the current exception; nothing where nothing can be said."""
    with suppress(Unwritten):
        if traceback:
            from traceback import print_exc

            print_exc()
        print(message, file=sys.stderr, flush=True)


def _run(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        from fencepost.versions import version

        print(version())
        return 0
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
