"""Certificates: what has to be written down so that a proof can be checked without the prover?"""

from __future__ import annotations

import time
from typing import Any

from fencepost import __version__, ir
from fencepost.applicability import applicable
from fencepost.model.program import compile_kernel
from fencepost.prove import closed_form, solver
from fencepost.prove.closed_form import ClosedForm
from fencepost.prove.discharge import Route
from fencepost.prove.events import Event
from fencepost.prove.expressions import Key
from fencepost.prove.hops import Spot
from fencepost.prove.kernels import Closed
from fencepost.prove.recheck import FORMAT, derive, digest, encode, program_hash, schemes
from fencepost.prove.symbolic import Head
from fencepost.prove.terms import const


class NotCertified(Exception):
    """No certificate can be written; the message says why."""


def certify(kernel: ir.Kernel, timeout: float = 60.0) -> dict[str, Any]:
    """Prove a kernel by closed forms and write down what the checker needs, as JSON-ready data.

    Args:
        timeout: seconds for the proof.

    Raises:
        NotCertified: some row is not proved by closed forms, or the checker does not follow the proof.
        ModelError: the kernel cannot be modelled.
    """
    proof = closed_form.prove(compile_kernel(kernel), time.monotonic() + timeout)
    if not proof.proved or proof.kernel is None:
        reasons = dict.fromkeys(r.reason for r in proof.rows.values() if r.reason)
        raise NotCertified("; ".join(reasons) or "nothing is proved")
    found: dict[str, Any] = {
        "format": FORMAT,
        "tool": f"fencepost {__version__}",
        "solver": solver.version(),
        "kernel": encode(kernel),
        "program": program_hash(kernel),
        "rows": sorted(row.id for row, applies in applicable(kernel).items() if applies),
        **_hints(kernel, proof, proof.kernel),
    }
    claims = []
    for name, group, query in derive(kernel, found):
        answer = solver.check(query).answer
        if answer != "unsat":
            raise NotCertified(f"the checker does not follow: {name} ({answer})")
        claims.append({"name": name, "group": group, "smtlib": query, "answer": answer})
    found["claims"] = claims
    found["digest"] = digest(found)
    return found


def _hints(kernel: ir.Kernel, proof: ClosedForm, closed: Closed) -> dict[str, Any]:
    language = closed.language
    sums = [
        {
            "name": s.name,
            "symbols": list(s.symbols),
            "body": s.body.text,
            "grows": language.grows(s),
            "most": s.body.bounds[1],
        }
        for s in closed.sums.by_name.values()
    ]
    loops = [_loop(agent, head) for agent, trace in closed.traces.items() for head in trace.heads]
    events = [e for trace in closed.traces.values() for e in trace.events]
    operands = {name(e): [list(effect.arguments) for _, effect in e.cases] for e in events if e.arguments or e.cases}
    routes = {scheme: _routes(proof, scheme) for scheme in schemes(kernel)}
    return {"sums": sums, "loops": loops, "operands": operands, "routes": routes}


def _loop(agent: str, head: Head) -> dict[str, Any]:
    slots = {str(k): v.text for k, v in head.values.items() if isinstance(k, int) and k not in head.unsolved}
    for base, state in head.rings.items():
        slots |= {str(base + i): state.read(const(i)).text for i in range(state.size)}
    return {
        "agent": agent,
        "head": head.loop.head,
        "copies": list(head.copies),
        "index": head.loop.index,
        "slots": slots,
        "free": sorted(k for k in head.unsolved if isinstance(k, int)),
        "counters": {counter(agent, k): v.text for k, v in head.values.items() if not isinstance(k, int)},
    }


def counter(agent: str, key: Key) -> str:
    """The checker's name of a counter."""
    assert not isinstance(key, int)
    kind, thing = key
    if kind == "run" and isinstance(thing, tuple):
        site, copies = thing
        return f"run {agent}.{site}" + "".join(f".{c}" for c in copies)
    return f"{kind} {' '.join(map(str, thing))}" if isinstance(thing, tuple) else f"{kind} {thing}"


def _routes(proof: ClosedForm, scheme: str) -> list[dict[str, Any]]:
    found: dict[Route, None] = {}
    for outcome in proof.outcomes:
        if outcome.scheme == scheme:
            found |= dict.fromkeys(outcome.routes)
    return [
        {
            "one": name(r.one),
            "other": name(r.other),
            "hops": [{"kind": h.kind, "source": _spot(h.source), "target": _spot(h.target)} for h in r.template],
            "writer": None if r.writer is None else _spot(r.writer),
        }
        for r in found
    ]


def _spot(spot: Spot) -> dict[str, Any]:
    ends = {"plus": spot.plus, "minus": spot.minus}
    return {
        "event": name(spot.event),
        "find": spot.find,
        "offset": spot.offset,
        **{k: None if e is None else name(e) for k, e in ends.items()},
    }


def name(event: Event) -> str:
    """The checker's name of an event."""
    return f"{event.agent}.{event.site}" + "".join(f".{c}" for c in event.copies)
