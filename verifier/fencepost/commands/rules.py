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

    known = rules()
    if args.json:
        import json

        listed = [
            {"code": r.code, "name": r.name, "title": r.title, "severity": r.severity.value, "row": r.row.title}
            for r in known
        ]
        print(json.dumps(listed, indent=2))
        return 0
    wide = max((len(r.name) for r in known), default=0)
    for r in known:
        print(f"FP{r.code}  {r.name:<{wide}}  {r.severity.value:<7}  {r.title}")
    return 0
