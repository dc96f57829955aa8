"""`fencepost rules`: which defects does the tool look for?"""

from __future__ import annotations

import argparse

NAME = "rules"
HELP = "list the rules: code, name, severity, row of the report"
EXAMPLE = "fencepost rules --json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def execute(args: argparse.Namespace) -> int:
    """Print one line per rule."""
    from fencepost_rules import rules

    known = sorted(rules(), key=lambda rule: rule.code)
    if args.json:
        import json

        listed = [
            {"code": rule.code, "name": rule.name, "severity": rule.severity.value, "row": rule.row.title}
            for rule in known
        ]
        print(json.dumps(listed, indent=2))
        return 0
    for rule in known:
        print(f"FP{rule.code}  {rule.name:<44}  {rule.severity.value:<8}  {rule.row.title}")
    return 0
