"""Certificates: what has to be written down so that a kernel's proof can be checked without the prover?"""

from __future__ import annotations

import json
import time
from dataclasses import fields
from typing import Any

from fencepost import __version__, ir
from fencepost.printer import print_kernel
from fencepost.prove import solver
from fencepost.prove.plainterms import Rejected
from fencepost.prove.recheck import FORMAT, derive, fingerprint, rows, schemes
from fencepost.prove.tabulate import NotClosed, tabulated


class NotCertified(Exception):
    """No certificate can be written; the message says why."""


def certify(kernel: ir.Kernel, timeout: float = 60.0) -> dict[str, Any]:
    """Prove a kernel by a table of relative states, and write down what the checker needs.

    Args:
        kernel: with pipelines as serial loops.
        timeout: seconds for the proof.

    Raises:
        NotCertified: some row is not proved in this way.
        ModelError: the kernel cannot be modelled.
    """
    deadline, kernel = time.monotonic() + timeout, distinct(kernel)
    try:
        rows(kernel)
    except Rejected as error:
        raise NotCertified(str(error)) from None
    try:
        tables = {scheme: tabulated(kernel, scheme == "batched", deadline) for scheme in schemes(kernel)}
        found = written(kernel, tables)
    except (NotClosed, Rejected) as error:
        raise NotCertified(f"no finite table of relative states was found: {error}") from None
    for claim in found["claims"]:
        answer = solver.check(claim["smtlib"], deadline, solver.PATIENT).answer
        if answer != claim["answer"]:
            raise NotCertified(f"the table of relative states does not hold: {claim['name']} ({answer})")
    return found


def distinct(node: Any) -> Any:
    """The same kernel, in which no two places share a node: the checker tells statements apart by identity."""
    if isinstance(node, ir.Node):
        return type(node)(**{f.name: distinct(getattr(node, f.name)) for f in fields(node)})
    return tuple(map(distinct, node)) if isinstance(node, tuple) else node


def written(kernel: ir.Kernel, tables: dict[str, Any]) -> dict[str, Any]:
    """The certificate with these tables, one for each credit scheme.  Raises Rejected."""
    text, tables = print_kernel(kernel).splitlines(), json.loads(json.dumps(tables))
    return seal({
        "format": FORMAT,
        "tool": f"fencepost {__version__}",
        "solver": solver.version(),
        "kernel": text,
        "program": fingerprint(text),
        "rows": rows(kernel),
        "tables": tables,
        "claims": derive(kernel, tables),
    })  # fmt: skip


def seal(certificate: dict[str, Any]) -> dict[str, Any]:
    """The certificate with the digest of its content."""
    content = {key: value for key, value in certificate.items() if key != "digest"}
    return {**content, "digest": fingerprint(content)}
