"""How do the checks read as one document?  ``python -m fencepost_rules.document`` prints docs/checks.md."""

from __future__ import annotations

import sys
from itertools import groupby

from fencepost.findings import Row
from fencepost_rules.page import Page, fill
from fencepost_rules.registry import rules
from fencepost_rules.rule import Rule

_INTRODUCTION = """\
<!-- Made by `python -m fencepost_rules.document > docs/checks.md`; the texts live with the rules. -->

# The checks

A report has one row per question below, each with a verdict: `proved`, `refuted`, `unknown`, `vacuous` or `n/a`. A
refuted row is followed by its findings. Every finding has a stable code, and `fencepost explain CODE` prints its page
from here. Each row answers its own question, so one cause can show in several rows; within a row it is reported once,
with the most specific code.

Errors make the exit status 1, warnings and notes do not. A comment on the line of a finding accepts it, with a
reason: `# fencepost: ignore[206] counters are cleared at launch`.
"""

_QUESTIONS = {
    Row.SLOT_MAPPING: (
        "For one logical task, do producer and consumer use the same physical slot, is every index in range, and do "
        "the cursors of both sides agree on every path?"
    ),
    Row.EVENT_POSITION: (
        "Is READY set after the last write and awaited before the first read, RELEASE set after the last read and "
        "awaited before the next overwrite, and is the last RELEASE awaited before the producer ends? Decided by what "
        "happens before what on the pipes, not by the order of the text."
    ),
    Row.PAIRING: "Does each wait have exactly one set, of the same direction, id, mode, slot and round, and no cycle?",
    Row.COUNTS: (
        "Per slot and direction, are there as many sets as waits for all parameter values, in one scheme from start "
        "to end, and never more signals pending than the counter holds?"
    ),
    Row.BOUNDARY: (
        "With zero, one, fewer than the depth, an exact multiple and a tail of trips: is each wait satisfied on every "
        "path, do the guards and bounds of the two sides agree, and do unused slots leave no signal?"
    ),
    Row.PARTICIPANTS: (
        "Do both vector sub-cores take part where both are needed, do they keep out of each other's memory, and are "
        "ids, modes and features legal on the target?"
    ),
    Row.FIFO: (
        "Do the messages of the rings reach the peer in the order of the program, can no ring stay full or empty for "
        "ever, and is each slot freed once, after its last use? Loops marked `pipeline` are judged as written and "
        "after the skew pass."
    ),
    Row.PHASES: "Does every accumulator that is handed over by unit_flag phases begin, end and pass on its sum once?",
    Row.PIPELINE: "Does an annotated software pipeline compute what the loop as written computes?",
}


def document() -> str:
    """The whole document, as Markdown."""
    groups = [(row, list(group)) for row, group in groupby(rules(), key=lambda rule: rule.row)]
    parts = [_INTRODUCTION]
    for row, group in groups:
        number = f"Row {row.id}: {row.title}" if row.id.isdecimal() else f"Row {row.title}"
        parts.append(f"## {number}\n\n{fill(_QUESTIONS[row], 118)}\n")
        parts.append("| code | name | defect | severity |\n|---|---|---|---|\n" + "".join(map(_line, group)))
        parts.extend(_entry(rule, rule.page()) for rule in group)
    return "\n".join(parts)


def _line(rule: Rule) -> str:
    return f"| [FP{rule.code}](#fp{rule.code}) | {rule.name} | {rule.title} | {rule.severity.value} |\n"


def _entry(rule: Rule, page: Page) -> str:
    prose = (
        f"**{rule.name}**: {rule.title}. {page.question}",
        page.what,
        f"*Why it hurts.* {page.why}",
        f"Bad:\n\n```\n{page.bad}```",
        page.also(),
        f"Good:\n\n```\n{page.good}```",
        f"*Suppress.* {page.suppress}",
    )
    return f"### FP{rule.code}\n\n" + "\n\n".join(p if "```" in p else fill(p, 118) for p in prose if p) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())
