"""What do the grammar's rules and terminals come to?  LALR tables and patterns: kept as data, made anew by Lark.

Lark needs longer to make the tables than a small check takes, so they lie beside the grammar, as JSON, with the hash of
the grammar that they were made from.  Tables that are missing, damaged or of another grammar are made anew in memory.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fencepost.resources import resource

GRAMMAR = "grammar/kernel_ir.lark"
KEPT = "grammar/kernel_ir.json"

ALWAYS = ("NEWLINE",)
"""Terminals that the lexer finds in every state: the indenter takes them out where they mean nothing."""

Reduce = tuple[int, Callable[[list[Any]], Any] | None, dict[int, int]]
"""Length of the rule, what builds its value (None: its only child), and the state that follows by the state below."""


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """The LALR tables: per state and terminal the next state (an integer) or a reduction; and the terminals.

    `terminals` are (name, pattern), the one to be preferred first; `ignored` are those without a meaning.
    """

    start: int
    end: int
    actions: list[dict[str, int | Reduce]]
    terminals: tuple[tuple[str, str], ...]
    ignored: frozenset[str]
    _scanners: dict[frozenset[str] | None, re.Pattern[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: dict[str, Any], builder: object) -> Tables:
        """Bind the rules in `data` (see `made`) to the methods of `builder`.

        Raises ValueError, TypeError, KeyError, IndexError or AttributeError for data of another form.
        """
        follow = {rule: {int(below): state for below, state in row.items()} for rule, row in data["follow"].items()}
        rules: list[Reduce] = [
            (size, None if name is None else getattr(builder, name), follow[rule]) for size, name, rule in data["rules"]
        ]
        rows = [{t: a if a >= 0 else rules[-1 - a] for t, a in row.items()} for row in data["rows"]]
        terminals = tuple((name, pattern) for name, pattern in data["terminals"])
        return cls(data["start"], data["end"], [rows[i] for i in data["states"]], terminals, frozenset(data["ignored"]))

    def scanner(self, kinds: frozenset[str] | None) -> re.Pattern[str]:
        """A pattern for one of the terminals `kinds`, or of the ignored ones (None: for any terminal)."""
        if kinds not in self._scanners:
            wanted = {name for name, _ in self.terminals} if kinds is None else kinds | self.ignored | {*ALWAYS}
            patterns = (f"(?P<{name}>{pattern})" for name, pattern in self.terminals if name in wanted)
            self._scanners[kinds] = re.compile("|".join(patterns))
        return self._scanners[kinds]


def load(builder: object) -> Tables:
    """The tables of the grammar, with the methods of `builder` as what builds values."""
    grammar = resource(GRAMMAR).read_text("utf-8")
    try:
        data = json.loads(resource(KEPT).read_text("utf-8"))
        if data["grammar"] == _hash(grammar):
            return Tables.of(data, builder)
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        pass
    return Tables.of(made(grammar), builder)


def made(grammar: str) -> dict[str, Any]:
    """The tables of a grammar as data that JSON can hold, made by Lark.

    States are numbers; an action is the next state, or the index of a rule as a negative number (-1 for the first).
    """
    from lark import Lark

    lark: Any = Lark(
        grammar, parser="lalr", lexer="contextual", keep_all_tokens=True, maybe_placeholders=False, postlex=_Always()
    )
    interactive = lark.parse_interactive("")
    conf, lexer = interactive.parser_state.parse_conf, interactive.lexer_thread.lexer.lexer.root_lexer
    numbers = _numbered(conf.states, conf.start_state)
    found = [action[1] for row in conf.states.values() for action in row.values() if action[0].name == "Reduce"]
    rules = sorted({_rule(rule) for rule in found}, key=repr)
    follow: dict[str, dict[int, int]] = {}
    rows: dict[str, int] = {}
    states = []
    for state, number in numbers.items():
        row: dict[str, int] = {}
        for symbol, (action, target) in sorted(conf.states[state].items(), key=lambda entry: entry[0]):
            if not _is_terminal(symbol):
                follow.setdefault(str(symbol), {})[number] = numbers[target]
            elif action.name == "Shift":
                row[str(symbol)] = numbers[target]
            else:
                row[str(symbol)] = -1 - rules.index(_rule(target))
        states.append(rows.setdefault(json.dumps(row), len(rows)))
    scanner = lexer.scanner
    if lexer.callback or lexer.g_regex_flags:
        raise ValueError("terminals that are told apart by more than their patterns")
    terminals = [(terminal.name, terminal.pattern.to_regexp()) for terminal in scanner.terminals]
    return {
        "grammar": _hash(grammar),
        "start": numbers[conf.start_state],
        "end": numbers[conf.end_state],
        "ignored": sorted(lexer.ignore_types),
        "terminals": terminals,
        "rules": rules,
        "follow": follow,
        "rows": [json.loads(row) for row in rows],
        "states": states,
    }


def _numbered(states: dict[Any, dict[str, Any]], start: Any) -> dict[Any, int]:
    """The states in the order in which they are met, breadth first: the same for the same grammar."""
    numbers = {start: 0}
    for state in (queue := [start]):
        for _, (action, target) in sorted(states[state].items(), key=lambda entry: entry[0]):
            if action.name == "Shift" and target not in numbers:
                numbers[target] = len(numbers)
                queue.append(target)
    return numbers


def _is_terminal(symbol: str) -> bool:
    return symbol.isupper() or symbol == "$END"


def _rule(rule: Any) -> tuple[int, str | None, str]:
    """A rule of Lark's: its length, the method that builds its value (None: its only child) and its name."""
    name = str(rule.origin.name)
    if not rule.expansion:
        raise ValueError(f"the rule {name} may be empty; the automaton knows no such rules")
    if name.startswith("_"):
        raise ValueError(f"the rule {name} is to be inlined; the automaton knows no such rules")
    only_child = len(rule.expansion) == 1 and rule.options.expand1 and not rule.alias
    return len(rule.expansion), None if only_child else str(rule.alias or name), name


class _Always:
    """Tells Lark which terminals are found in every state."""

    always_accept = ALWAYS

    def process(self, stream: Any) -> Any:
        return stream


def _hash(grammar: str) -> str:
    return hashlib.sha256(grammar.encode()).hexdigest()


def text(data: dict[str, Any]) -> str:
    """The data as a JSON text, one entry of each list a line."""
    parts = []
    for key, value in data.items():
        whole = json.dumps(value, separators=(",", ":"))
        if isinstance(value, list) and not isinstance(value[0], int | str):
            whole = "[\n" + ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in value) + "\n]"
        parts.append(f"{json.dumps(key)}: {whole}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
