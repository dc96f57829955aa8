"""Which tokens does the grammar allow next, and what do they build?  Lark's LALR tables, run with error recovery.

Lark builds the tables; this loop runs them about twice as fast as Lark's own, and can say which terminals would be
accepted and go back to a place where a given terminal is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark, Token

_Reduce = tuple[int, Callable[[list[Any]], Any] | None, dict[int, int]]
"""Length of the rule, what builds its value (None: its only child), and the state that follows by the state below."""


class Refused(Exception):
    """The automaton does not accept `token` now."""

    def __init__(self, token: Token) -> None:
        super().__init__(token)
        self.token = token


@dataclass(frozen=True, slots=True)
class Tables:
    """The LALR tables: per state and terminal the next state (an integer) or a reduction."""

    start: int
    end: int
    actions: dict[int, dict[str, int | _Reduce]]

    @classmethod
    def of(cls, lark: Lark) -> Tables:
        """The tables of a Lark object for its only start rule."""
        conf = lark.parse_interactive("").parser_state.parse_conf
        gotos: dict[str, dict[int, int]] = {}
        for state, found in conf.states.items():
            for symbol, (action, target) in found.items():
                if action.name == "Shift":
                    gotos.setdefault(str(symbol), {})[state] = target
        reductions: dict[int, _Reduce] = {}
        actions: dict[int, dict[str, int | _Reduce]] = {}
        for state, found in conf.states.items():
            actions[state] = row = {}
            for symbol, (action, target) in found.items():
                if not (symbol.isupper() or symbol == "$END"):
                    continue
                if action.name == "Shift":
                    row[str(symbol)] = target
                    continue
                if not target.expansion:
                    raise ValueError(f"the rule {target.origin.name} may be empty; the automaton knows no such rules")
                if id(target) not in reductions:
                    only_child = len(target.expansion) == 1 and target.options.expand1 and not target.alias
                    build = None if only_child else conf.callbacks[target]
                    reductions[id(target)] = (len(target.expansion), build, gotos[str(target.origin.name)])
                row[str(symbol)] = reductions[id(target)]
        return cls(conf.start_state, conf.end_state, actions)


class Automaton:
    """One run over the tables.  `position` is the current state (Lark's contextual lexer asks for it)."""

    def __init__(self, tables: Tables) -> None:
        self._actions, self._end = tables.actions, tables.end
        self._states = [tables.start]
        self._values: list[Any] = []

    @property
    def position(self) -> int:
        return self._states[-1]

    def feed(self, token: Token) -> Any:
        """Take the next token; for the terminal $END return the value of the start rule.

        Raises Refused, with complete rules already reduced, if the grammar does not allow the token here.
        """
        kind, actions, states, values = token.type, self._actions, self._states, self._values
        while True:
            action = actions[states[-1]].get(kind)
            if action.__class__ is int:
                states.append(action)
                values.append(token)
                return None
            if action is None:
                if kind == "$END" and states[-1] == self._end:
                    return values[-1]
                raise Refused(token)
            size, build, following = action  # type: ignore[misc]
            if build is None:
                states[-1] = following[states[-2]]
                continue
            children = values[-size:]
            del states[-size:], values[-size:]
            values.append(build(children))
            states.append(following[states[-1]])

    def accepted(self) -> set[str]:
        """The terminals that could come next."""
        return {kind for kind in self._actions[self._states[-1]] if self.accepts(kind)}

    def accepts(self, kind: str) -> bool:
        """Whether the terminal `kind` could come next; nothing changes."""
        below = len(self._states)
        top: list[int] = []  # the states would be self._states[:below] + top
        while True:
            state = top[-1] if top else self._states[below - 1]
            action = self._actions[state].get(kind)
            if action is None:
                return kind == "$END" and state == self._end
            if isinstance(action, int):
                return True
            dropped = min(action[0], len(top))
            del top[len(top) - dropped :]
            below -= action[0] - dropped
            top.append(action[2][top[-1] if top else self._states[below - 1]])

    def back_to(self, kind: str) -> None:
        """Drop what has been read until the terminal `kind` is accepted."""
        while not self.accepts(kind):
            self._states.pop()
            self._values.pop()
