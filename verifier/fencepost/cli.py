"""What does the person at the terminal want, and which verb answers it?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: `sys.argv`) and return the exit status."""
    from fencepost import __version__

    parser = argparse.ArgumentParser(prog="fencepost")
    parser.add_argument("--version", action="version", version=f"fencepost {__version__}")
    parser.parse_args(argv)
    parser.print_help(sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
