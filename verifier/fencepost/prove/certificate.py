"""Certificates: what has to be written down so that a proof can be checked without the prover?"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from fencepost import __version__, ir
from fencepost.findings import Verdict
from fencepost.model.program import Compiled, compile_kernel
from fencepost.printer import print_kernel
from fencepost.prove import closed_form, solver
from fencepost.prove.checker import Rejected, Walk, plain
from fencepost.prove.closed_form import ClosedForm
from fencepost.prove.discharge import Route
from fencepost.prove.events import Event
from fencepost.prove.expressions import Key, smt_name
from fencepost.prove.hops import Spot
from fencepost.prove.kernels import Closed
from fencepost.prove.plainterms import Term, make
from fencepost.prove.recheck import FORMAT, STATES, derive, fingerprint, rows, schemes
from fencepost.prove.symbolic import Head
from fencepost.prove.tabulate import NotClosed, tabulated
from fencepost.prove.terms import const

_TOKEN = re.compile(r"\(|\)|[^\s()]+")
_KINDS = {"match": "signal", "message": "signal", "credit": "signal", "meet": "signal"}


class NotCertified(Exception):
    """No certificate can be written; the message says why.  `proved`: although closed forms prove the kernel."""

    def __init__(self, message: str, proved: bool) -> None:
        super().__init__(message)
        self.proved = proved


def certify(kernel: ir.Kernel, timeout: float = 60.0) -> dict[str, Any]:
    """Prove a kernel by closed forms, or else by a table of relative states, and write down what the checker needs.

    Args:
        kernel: with pipelines as serial loops.
        timeout: seconds for the proof.

    Raises:
        NotCertified: some row is not proved in one of these ways, or the checker does not follow the proof.
        ModelError: the kernel cannot be modelled.
    """
    try:
        rows(kernel)
    except Rejected as error:
        raise NotCertified(str(error), proved=True) from None
    started, kernel = time.monotonic(), distinct(kernel)
    try:
        return _checked(by_closed_forms(kernel, started + timeout / 2))
    except NotCertified as first:
        try:
            return _checked(by_states(kernel, started + timeout))
        except NotCertified as second:
            raise NotCertified(f"{first}; {second}", first.proved) from None


def by_closed_forms(kernel: ir.Kernel, deadline: float) -> dict[str, Any]:
    """The certificate of a proof by closed forms, whether its claims hold is not asked.  Raises NotCertified."""
    proof = closed_form.prove(compile_kernel(kernel), deadline)
    if not proof.proved or proof.kernel is None:
        reasons = dict.fromkeys(r.reason or r.evidence for r in proof.rows.values() if r.verdict is not Verdict.PROVED)
        raise NotCertified("; ".join(reasons), proved=False)
    try:
        return assemble(proof)
    except Rejected as error:
        raise NotCertified(f"the checker does not follow the proof: {error}", proved=True) from None


def by_states(kernel: ir.Kernel, deadline: float) -> dict[str, Any]:
    """The certificate that is a table of relative states; whether its claims hold is not asked.

    Raises NotCertified.
    """
    try:
        tables = {scheme: tabulated(kernel, scheme == "batched", deadline) for scheme in schemes(kernel)}
        return written(kernel, STATES, json.loads(json.dumps({"tables": tables})))
    except (NotClosed, Rejected) as error:
        raise NotCertified(f"its relative states are not tabulated: {error}", proved=False) from None


def _checked(found: dict[str, Any]) -> dict[str, Any]:
    """A certificate of which every claim holds.  Raises NotCertified."""
    for claim in found["claims"]:
        answer = solver.check(claim["smtlib"], rlimit=solver.PATIENT).answer
        if answer != claim["answer"]:
            raise NotCertified(f"the checker does not follow the proof: {claim['name']} ({answer})", proved=True)
    return found


def distinct(node: Any) -> Any:
    """The same kernel, in which no two places share a node: the checker tells statements apart by identity."""
    if isinstance(node, ir.Node):
        return type(node)(**{f.name: distinct(getattr(node, f.name)) for f in fields(node)})
    return tuple(map(distinct, node)) if isinstance(node, tuple) else node


def assemble(proof: ClosedForm) -> dict[str, Any]:
    """The certificate of a proof about a kernel of distinct nodes; whether its claims hold is not asked.

    Raises:
        Rejected: the checker does not understand the kernel, or finds something that the proof says nothing about.
    """
    assert proof.kernel is not None
    hints = _Writer(proof.kernel.compiled, proof, proof.kernel).hints()
    return written(proof.kernel.compiled.kernel, FORMAT, json.loads(json.dumps(hints)))


def written(kernel: ir.Kernel, form: str, hints: dict[str, Any]) -> dict[str, Any]:
    """The certificate with these hints.  Raises Rejected."""
    text = print_kernel(kernel).splitlines()
    found: dict[str, Any] = {
        "format": form,
        "tool": f"fencepost {__version__}",
        "solver": solver.version(),
        "kernel": text,
        "program": fingerprint(text),
        "rows": rows(kernel),
        **hints,
    }
    found["claims"] = derive(kernel, found)
    return seal(found)


def seal(certificate: dict[str, Any]) -> dict[str, Any]:
    """The certificate with the digest of its content."""
    content = {key: value for key, value in certificate.items() if key != "digest"}
    return {**content, "digest": fingerprint(content)}


@dataclass
class _Writer:
    """Writes down the formulas and routes of a proof, in the names of the checker."""

    compiled: Compiled
    proof: ClosedForm
    kernel: Closed
    _names: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, dict[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names |= {smt_name(p): f"${plain(p)}" for p in self.compiled.parameters}
        calls = (n.function for n in ir.walk(self.compiled.kernel) if isinstance(n, ir.Call))
        self._names |= {f"f.{smt_name(f)}": f"f.{plain(f)}" for f in calls}
        for agent, trace in self.kernel.traces.items():
            self._numbers[agent] = Walk(self.kernel.resolver, agent, {}, {}).numbers
            for head in trace.heads:
                index, ours = head.loop.index, self._statement(agent, head.loop.node, head.copies)
                self._names[index] = f"{plain(head.loop.node.var)}@{ours.partition('.')[2]}"
                self._names[f"after.{agent}.{index}"] = f"after.{ours}"
                for slot in head.unsolved:
                    self._names[f"any.{agent}.{index}.{slot}"] = f"any.{ours}.{plain(self._slot(agent, slot))}"

    def hints(self) -> dict[str, Any]:
        traces = self.kernel.traces
        events = [e for trace in traces.values() for e in trace.events]
        heads = [(agent, head) for agent, trace in traces.items() for head in trace.heads]
        return {
            "sums": [[list(s.symbols), self.term(s.body.text)] for s in self.kernel.sums.by_name.values()],
            "loops": {self._statement(a, h.loop.node, h.copies): self._formulas(a, h) for a, h in heads},
            "operands": {
                self.event(e): [list(effect.arguments) for _, effect in e.cases] for e in events if e.arguments
            },
            "routes": {scheme: self._routes(scheme) for scheme in schemes(self.compiled.kernel)},
        }

    def term(self, text: str) -> Term:
        """A term of the prover, given as SMT-LIB, in the names of the checker."""
        stack: list[list[Term]] = [[]]
        for token in _TOKEN.findall(text):
            if token == "(":
                stack.append([])
            elif token == ")":
                items = stack.pop()
                stack[-1].append(make(*items))
            else:
                stack[-1].append(int(token) if token.isdigit() else self._names.get(token, token))
        return stack[0][0]

    def event(self, event: Event) -> str:
        """The checker's name of an event."""
        return self._statement(event.agent, event.stmt, event.copies)

    def _statement(self, agent: str, stmt: ir.Node, copies: tuple[int, ...]) -> str:
        return f"{agent}.{self._numbers[agent][id(stmt)]}" + "".join(f".{c}" for c in copies)

    def _slot(self, agent: str, slot: Key) -> str:
        assert isinstance(slot, int)
        return self.compiled.program(agent).slots[slot]

    def _counter(self, agent: str, key: Key) -> str:
        assert not isinstance(key, int)
        kind, thing = key
        if kind == "run" and isinstance(thing, tuple):
            return f"run {self._statement(agent, self.compiled.program(agent).sites[thing[0]], thing[1])}"
        return f"{kind} {' '.join(map(str, thing))}" if isinstance(thing, tuple) else f"{kind} {thing}"

    def _formulas(self, agent: str, head: Head) -> dict[str, Any]:
        found = {}
        for key, value in head.values.items():
            name = self._slot(agent, key) if isinstance(key, int) else self._counter(agent, key)
            found[name] = None if key in head.unsolved else self.term(value.text)
        for base, state in head.rings.items():
            for i in range(state.size):
                found[self._slot(agent, base + i)] = self.term(state.read(const(i)).text)
        return found

    def _routes(self, scheme: str) -> list[dict[str, Any]]:
        found: dict[Route, None] = {}
        for outcome in self.proof.outcomes:
            if outcome.scheme == scheme:
                found |= dict.fromkeys(outcome.routes)
        items = (
            {
                "one": self.event(route.one),
                "other": self.event(route.other),
                "hops": list(self._hops(route)),
                "writer": None if route.writer is None else self._spot(route.writer, route.other),
            }
            for route in found
        )
        return [json.loads(text) for text in sorted({json.dumps(item, sort_keys=True) for item in items})]

    def _hops(self, route: Route) -> Iterator[list[Any]]:
        here = route.one
        for hop in route.template:
            counted = hop.target.find == "count"
            target = None if counted else self._spot(hop.target, hop.source.event)
            yield [_KINDS.get(hop.kind, hop.kind), self._spot(hop.source, here), target]
            here = hop.target.event

    def _spot(self, spot: Spot, here: Event) -> list[Any]:
        """Where to look, seen from an execution of `here`."""
        event = spot.event
        if not event.loops or (spot.find == "same" and len(event.loops) <= len(here.loops)):
            return [self.event(event), "same"]
        if spot.find == "partner":
            return [self.event(event), "taker"]
        own, total, there = (f"before.{self.event(here)}", f"total.{self.event(event)}", f"before.{self.event(event)}")
        match spot.find:
            case "next":
                number: list[Any] = [there]
            case "previous":
                number = [there, -1]
            case "first":
                number = [spot.offset]
            case "last":
                number = [total, -1 - spot.offset]
            case "mirror":
                number = [total, make("-", f"total.{self.event(here)}"), own, spot.offset]
            case _:
                plus = [] if spot.plus is None else [f"total.{self.event(spot.plus)}"]
                minus = [] if spot.minus is None else [make("-", f"total.{self.event(spot.minus)}")]
                number = [own, *plus, *minus, spot.offset]
        return [self.event(event), make("+", *number)]
