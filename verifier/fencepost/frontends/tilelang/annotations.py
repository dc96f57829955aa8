"""Which pipeline annotations does a loop of a TileLang program carry?"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from fencepost import ir
from fencepost.frontends.tilelang.calls import Calls
from fencepost.frontends.tilelang.values import Number, Opaque, Plain, Several, Value

Notes = dict[str, tuple[int, ...] | int]

_NOTES = {
    "software_pipeline_stage": "stage",
    "software_pipeline_order": "order",
    "software_pipeline_async_stages": "async_stages",
    "software_pipeline_async_producers": "async_producers",
    "software_pipeline_async_producer_groups": "async_producer_groups",
}


ALL = "annotations"
"""The problem of a loop whose annotations are not all written where the loop is."""

BOUNDS = "bounds"
"""The problem of a loop whose bounds are not written one by one."""


@dataclass(slots=True)
class PipelineNotes(Calls):
    """Reads annotations; what is not constant is a problem, named by its key."""

    def _raw_notes(self, call: ast.Call) -> tuple[Notes, list[str]]:
        """The pipeline entries of `annotations={...}`."""
        notes: Notes = {}
        problems: list[str] = []
        given = next((k.value for k in call.keywords if k.arg == "annotations"), None)
        empty = isinstance(given, ast.Constant) and given.value is None
        if any(k.arg is None for k in call.keywords) or not (given is None or empty or isinstance(given, ast.Dict)):
            problems.append(ALL)
        if isinstance(given, ast.Dict):
            for key, value in zip(given.keys, given.values, strict=True):
                word = self.evaluator.value(key) if key is not None else Opaque()
                if isinstance(word, Plain) and word.value in _NOTES:
                    self._note(_NOTES[str(word.value)], value, notes, problems)
                elif isinstance(word, Plain) and word.value == "num_stages":
                    self._note("num_stages", value, notes, problems)
                elif not isinstance(word, Plain) and (key is None or self.word(key) is None):
                    problems.append(ALL)
        return notes, problems

    def _note(self, key: str, node: ast.expr, notes: Notes, problems: list[str]) -> None:
        value = self.evaluator.value(node)
        if key == "num_stages":
            if isinstance(value, Plain) and isinstance(value.value, int):
                notes[key] = value.value
            elif isinstance(value, Number) and isinstance(value.expr, ir.Name) and value.expr.id in self.names.defaults:
                notes[key] = self.names.defaults[value.expr.id]
                self.assume(f"{value.expr.id} is taken to be {notes[key]}, its default")
            elif not isinstance(value, Plain):
                line = self.line(node)
                self.assume(f"num_stages on line {line} is not constant and is left out")
                problems.append(key)
            return
        if isinstance(value, Plain) and value.value is None:
            return
        items = [self._integer(i) for i in value.items] if isinstance(value, Several) else [None]
        if any(i is None for i in items):
            problems.append(key)
        elif items:
            notes[key] = tuple(i for i in items if i is not None)

    def _integer(self, value: Value) -> int | None:
        match value:
            case Plain(bool(flag)):
                return int(flag)
            case Plain(int(number)):
                return number
            case Number(ir.Unary("-", ir.Int(number))):
                return -number
            case Number(ir.Int(number)):
                return number
            case _:
                return None
