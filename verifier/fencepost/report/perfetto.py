"""How does a timeline look to Perfetto and chrome://tracing (JSON trace events)?

The model has no durations: each step takes one microsecond, in the order of the canonical run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from fencepost.findings import Step
from fencepost.report.svg import lanes_of


def render(steps: Sequence[Step], links: Sequence[tuple[int, int]] = ()) -> str:
    """Return the trace: one process per agent, one thread per pipe, flow arrows from signals to waits."""
    lanes = lanes_of(steps)
    agents = list(dict.fromkeys(agent for agent, _ in lanes))
    process = {agent: number for number, agent in enumerate(agents, 1)}
    thread = {lane: number for number, lane in enumerate(lanes, 1)}
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": process[agent], "args": {"name": agent}} for agent in agents
    ]
    for agent, pipe in lanes:
        ids = {"pid": process[agent], "tid": thread[agent, pipe]}
        events.append({"ph": "M", "name": "thread_name", **ids, "args": {"name": pipe}})
    for time, step in enumerate(steps):
        ids = {"pid": process[step.agent], "tid": thread[step.agent, step.pipe]}
        place = {"file": step.span.file, "line": step.span.line, "state": step.state}
        events.append({"ph": "X", "name": step.text, "ts": time, "dur": 1, **ids, "args": place})
    for number, (source, target) in enumerate(links):
        for kind, at in (("s", source), ("f", target)):
            step = steps[at]
            ids = {"pid": process[step.agent], "tid": thread[step.agent, step.pipe]}
            binding = {"bp": "e"} if kind == "f" else {}
            events.append(
                {"ph": kind, "id": number, "name": "signal", "cat": "signal", "ts": at + 0.5, **ids, **binding}
            )
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, ensure_ascii=False)
