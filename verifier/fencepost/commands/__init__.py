"""The verbs of the command line: one module each, which imports the engine only when it runs."""

from __future__ import annotations

import argparse
from typing import Protocol

from fencepost.commands import certify, check, explain, lower, plan, recheck, rules, run, skew
from fencepost.commands.common import UsageError as UsageError


class Command(Protocol):
    """A verb: its name, its help in one line, one example, its options, and what it does."""

    NAME: str
    HELP: str
    EXAMPLE: str

    def configure(self, parser: argparse.ArgumentParser) -> None: ...

    def execute(self, args: argparse.Namespace) -> int: ...


COMMANDS: tuple[Command, ...] = (check, run, skew, lower, plan, certify, recheck, explain, rules)
