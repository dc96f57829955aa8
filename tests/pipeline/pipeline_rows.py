"""Rows of the pipeline oracle (and of the random generator) as loops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fencepost.pipeline.model import Access, Annotations, At, Buffer, Index, Loop, Statement, Whole
from fencepost.pipeline.sequence import ALWAYS, Compared, Guard, Sequence

ORACLE = Path(__file__).resolve().parents[3] / "shared" / "cases" / "pipeline_oracle.json"

Row = dict[str, Any]


def rows() -> list[Row]:
    """All rows of the oracle file; it must exist."""
    data = json.loads(ORACLE.read_text())
    return [*data["cases"], *data["named"]]


def loop_of(row: Row) -> Loop:
    """The loop of a row."""
    start: int = row["lo"]

    def index(value: str) -> Index:
        if value == "all":
            return Whole()
        if value.isdigit():
            return At(Sequence.constant(int(value)))
        return At(Sequence.linear(1, start - 1 if value == "i-1" else start))

    def access(pair: list[str]) -> Access:
        return Access(pair[0], index(pair[1]))

    def guard(s: Row) -> Guard:
        if "guard" not in s:
            return ALWAYS
        modulus, residue = s["guard"]
        return Compared(Sequence.linear(1, start).modulo(modulus).plus(Sequence.constant(-residue)), "==")

    binds = {s["var"] for s in row["body"] if s["kind"] == "bind"}
    statements = []
    for n, s in enumerate(row["body"]):
        accesses = [*s.get("reads", []), *s.get("writes", [])]
        named = [a[1] for a in accesses if a[1] in binds]
        statements.append(
            Statement(
                label=f"{s['kind']}{n}",
                reads=tuple(access(a) for a in s.get("reads", [])),
                writes=tuple(access(a) for a in s.get("writes", [])),
                guard=guard(s),
                bind=s.get("var"),
                uses=tuple(dict.fromkeys([*s.get("uses", []), *named])),
                cellwise=s["kind"] == "accumulate",
                plain="guard" not in s,
            )
        )
    buffers = [
        Buffer(name, b["kind"] == "local", b.get("size"), b["kind"] != "local" or "init" in b)
        for name, b in row["buffers"].items()
    ]
    used = {a.buffer for s in statements for a in (*s.reads, *s.writes)}
    buffers += [Buffer(name, False, None) for name in sorted(used - {b.name for b in buffers})]
    notes = {k: tuple(v) if isinstance(v, list) else v for k, v in row["annotations"].items()}
    return Loop(
        tuple(statements),
        tuple(buffers),
        Annotations(**notes),
        start,
        tuple(access(a) for a in row.get("after", [])),
    )
