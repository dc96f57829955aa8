"""Which scalars have a value on every path to this place?"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencepost import ir


@dataclass(slots=True)
class Loop:
    """An enclosing loop: kind "range", "pipeline" or "pipelined"; whether it surely runs, and then what has changed
    since `mark` where a round ends early."""

    kind: str
    var: str
    runs: bool
    mark: int
    continues: list[dict[str, bool] | None] = field(default_factory=list)
    breaks: list[dict[str, bool] | None] = field(default_factory=list)


class State:
    """The scalars that every path to the current place has assigned, with a log to go back to a branch point."""

    def __init__(self, known: set[str]) -> None:
        self.known = known
        self.reachable = True
        self._log: list[tuple[str, bool]] = []

    def mark(self) -> int:
        return len(self._log)

    def assign(self, name: str) -> None:
        if name not in self.known:
            self.known.add(name)
            self._log.append((name, True))

    def forget(self, name: str) -> None:
        if name in self.known:
            self.known.discard(name)
            self._log.append((name, False))

    def changes(self, mark: int) -> dict[str, bool]:
        """What has changed since `mark`: name -> has a value now."""
        return dict(self._log[mark:])

    def undo(self, mark: int) -> None:
        while len(self._log) > mark:
            name, assigned = self._log.pop()
            if assigned:
                self.known.discard(name)
            else:
                self.known.add(name)

    def merge(self, outcomes: list[dict[str, bool] | None]) -> None:
        """Continue behind branches that have been undone; None stands for one that does not get here."""
        arriving = [outcome for outcome in outcomes if outcome is not None]
        self.reachable = bool(arriving)
        for name in dict.fromkeys(name for outcome in arriving for name in outcome):
            if all(outcome.get(name, name in self.known) for outcome in arriving):
                self.assign(name)
            else:
                self.forget(name)


@dataclass(slots=True)
class Written:
    """What a program assigns anywhere."""

    scalars: set[str] = field(default_factory=set)
    loop_variables: set[str] = field(default_factory=set)
    popped: set[str] = field(default_factory=set)

    def add(self, body: tuple[ir.Stmt, ...]) -> None:
        stack: list[ir.Stmt] = list(body)
        while stack:
            statement = stack.pop()
            match statement:
                case ir.Assign(name=name) | ir.Cursor(name=name) | ir.Bind(name=name):
                    self.scalars.add(name)
                case ir.For(var=var, body=inner) | ir.Pipelined(var=var, body=inner):
                    self.loop_variables.add(var)
                    stack.extend(inner)
                case ir.If(branches=branches, orelse=orelse):
                    for _, inner in branches:
                        stack.extend(inner)
                    stack.extend(orelse)
                case ir.Pop(value=value):
                    self.popped.add(value)
                case _:
                    pass
