"""Which kernels are measured?  Generators of kernel text with a size each."""

from __future__ import annotations

PING_PONG = """\
kernel ping_pong(n):
    assume n >= 0
    READY = (0, 1)
    RELEASE = (2, 3)
    buffer qk[2] in Vec
    buffer acc in Acc mutex (0)

    section cube:
        for t in range(n):
            matmul acc <- q, k @ M
            wait_cross_core RELEASE[t % 2] @ FIX
            move qk[t % 2] <- acc @ FIX
            set_cross_core READY[t % 2] @ FIX
        wait_cross_core RELEASE[0] @ FIX
        wait_cross_core RELEASE[1] @ FIX

    section vector:
        set_cross_core RELEASE[0] @ V
        set_cross_core RELEASE[1] @ V
        for t in range(n):
            wait_cross_core READY[t % 2] @ V
            softmax p <- qk[t % 2] @ V
            set_cross_core RELEASE[t % 2] @ V
"""

NOT_DRAINED = PING_PONG.replace(
    "        wait_cross_core RELEASE[0] @ FIX\n        wait_cross_core RELEASE[1] @ FIX\n", ""
)

LOOP_FREE = """\
kernel one_tile():
    buffer tile in Vec
    buffer half in Mat

    section cube:
        move tile <- sum @ FIX
        set_cross_core 0 @ FIX
        wait_cross_core 1 @ MTE1
        move left <- half @ MTE1

    section vector:
        wait_cross_core 0 @ V
        relu out <- tile @ V
        sync_src 0: V -> MTE3
        sync_dst 0: V -> MTE3
        insert half part sub of 2 <- out @ MTE3
        set_cross_core 1 @ MTE3
"""


def channels(count: int) -> str:
    """`count` channels: half as many tensors with one slot each, a READY and a RELEASE id per tensor."""
    lines = ["kernel tensors(n):", "    assume n >= 0"]
    tensors = range(count // 2)
    lines += [f"    buffer s{i} in Vec" for i in tensors]
    lines += ["    section cube:", "        for t in range(n):"]
    for i in tensors:
        lines += [
            f"            wait_cross_core {i} @ FIX",
            f"            move s{i} <- x @ FIX",
            f"            set_cross_core {i} @ FIX",
        ]
    lines += [f"        wait_cross_core {i} @ FIX" for i in tensors]
    lines += [
        "    section vector:",
        *(f"        set_cross_core {i} @ V" for i in tensors),
        "        for t in range(n):",
    ]
    for i in tensors:
        lines += [
            f"            wait_cross_core {i} @ V",
            f"            exp y <- s{i} @ V",
            f"            set_cross_core {i} @ V",
        ]
    return "\n".join(lines) + "\n"


def stages(count: int) -> str:
    """A chain of `count` hand-overs between the cores, two slots each, every stage one round behind the one before."""
    bodies: dict[str, list[str]] = {"cube": [], "vector": []}
    ahead: dict[str, list[str]] = {"cube": [], "vector": []}
    drains: dict[str, list[str]] = {"cube": [], "vector": []}
    lag = {"cube": 0, "vector": 0}
    lines = [
        "kernel chain(n):",
        "    assume n >= 0",
        "    buffer mine in Mat mutex (0)",
        "    buffer yours in Vec mutex (0)",
    ]
    keep = {"cube": "mine", "vector": "yours"}
    pipe = {"cube": "FIX", "vector": "V"}
    for i in range(count):
        one, two = ("cube", "vector") if i % 2 == 0 else ("vector", "cube")
        base = 2 * i
        lines.append(f"    buffer s{i}[2] in {'Vec' if one == 'cube' else 'Mat'}")
        late = f" - {lag[one]}" if lag[one] else ""
        slot = f"(t{late}) % 2" if late else "t % 2"
        part = "" if one == "cube" else " part sub of 2"
        bodies[one] += [
            f"if {lag[one]} <= t and t < n + {lag[one]}:",
            f"    wait_cross_core {base} + {slot} @ {pipe[one]}",
            f"    put s{i}[{slot}]{part} <- {keep[one]} @ {pipe[one]}",
            f"    set_cross_core {base} + {slot} @ {pipe[one]}",
        ]
        if i >= 2:
            lag[two] += 1
        late = f" - {lag[two]}" if lag[two] else ""
        slot = f"(t{late}) % 2" if late else "t % 2"
        bodies[two] += [
            f"if {lag[two]} <= t and t < n + {lag[two]}:",
            f"    wait_cross_core {base} + {slot} @ {pipe[two]}",
            f"    get {keep[two]} <- s{i}[{slot}] @ {pipe[two]}",
            f"    set_cross_core {base} + {slot} @ {pipe[two]}",
        ]
        ahead[two] += [f"set_cross_core {base + k} @ {pipe[two]}" for k in (0, 1)]
        drains[one] += [f"wait_cross_core {base + k} @ {pipe[one]}" for k in (0, 1)]
    for core in ("cube", "vector"):
        lines.append(f"    section {core}:")
        lines.append(f"        load {keep[core]} <- x @ MTE2")
        lines += [f"        {line}" for line in ahead[core]]
        lines.append(f"        for t in range(n + {lag[core]}):")
        lines += [f"            {line}" for line in bodies[core]]
        lines += [f"        {line}" for line in drains[core]]
    return "\n".join(lines) + "\n"


def attention(levels: int, *, flaw: str = "") -> str:
    """The shape of flash attention: scores two rounds ahead with credits, results three rounds behind with READY only.

    `levels` nested loops walk the tasks; the last task of the outermost loops runs 2 (cube) and 3 (vector) rounds
    longer to drain.  `flaw`: "drain" lets the vector run one round short, "depth" gives the results two slots.
    """
    outer = [f"b{k}" for k in range(levels - 1)]
    sizes = [f"B{k}" for k in range(levels - 1)]
    depth = 2 if flaw == "depth" else 3
    lines = [f"kernel attention({', '.join([*sizes, 'n'])}):", *(f"    assume {s} >= 0" for s in [*sizes, "n"])]
    lines += [
        "    buffer s[2] in Vec",
        "    buffer row in Vec mutex (0)",
        f"    buffer p[{depth}] in Mat",
        "    buffer l0 in Left mutex (0)",
        "    buffer l0c in Acc mutex (1)",
        f"    buffer o[{depth}] in Vec",
    ]
    last = " and ".join(f"{b} == {s} - 1" for b, s in zip(outer, sizes, strict=True))

    def loops(extra: int) -> tuple[list[str], int]:
        head = ["g = 0"] if outer else []
        at = 0
        for b, s in zip(outer, sizes, strict=True):
            head.append("    " * at + f"for {b} in range({s}):")
            at += 1
        if outer:
            head += ["    " * at + line for line in ("end = n", f"if {last}:", f"    end = n + {extra}")]
        head.append("    " * at + f"for t in range({'end' if outer else f'n + {extra}'}):")
        return head, at + 1

    g = "g" if outer else "t"

    def guard(lag: int, extra: int) -> str:
        if not outer:
            return f"{lag} <= t and t < n + {lag}" if 0 < lag < extra else f"t >= {lag}" if lag else "t < n"
        return f"g >= {lag} and t < n + {lag}" if 0 < lag < extra else f"g >= {lag}" if lag else "t < n"

    def at_slot(lag: int, size: int) -> str:
        return f"({g} - {lag}) % {size}" if lag else f"{g} % {size}"

    vector_extra = 2 if flaw == "drain" else 3
    cube = [
        f"if {guard(0, 2)}:",
        f"    wait_cross_core 2 + {at_slot(0, 2)} @ FIX",
        f"    move s[{at_slot(0, 2)}] <- qk @ FIX",
        f"    set_cross_core {at_slot(0, 2)} @ FIX",
        f"if {guard(2, 2)}:",
        f"    wait_cross_core 4 + {at_slot(2, depth)} @ MTE1",
        f"    move l0 <- p[{at_slot(2, depth)}] @ MTE1",
        "    matmul l0c <- l0, v @ M",
        f"    move o[{at_slot(2, depth)}] <- l0c @ FIX",
        f"    set_cross_core 7 + {at_slot(2, depth)} @ FIX",
    ]
    vector = [
        f"if {guard(1, 3)}:",
        f"    wait_cross_core {at_slot(1, 2)} @ V",
        f"    softmax row <- s[{at_slot(1, 2)}] @ V",
        f"    set_cross_core 2 + {at_slot(1, 2)} @ V",
        f"    insert p[{at_slot(1, depth)}] part sub of 2 <- row @ MTE3",
        f"    set_cross_core 4 + {at_slot(1, depth)} @ MTE3",
        f"if {guard(3, 3)}:",
        f"    wait_cross_core 7 + {at_slot(3, depth)} @ V",
        f"    update out <- o[{at_slot(3, depth)}] @ V",
    ]
    for core, body, extra in (("cube", cube, 2), ("vector", vector, vector_extra)):
        head, at = loops(extra)
        lines.append(f"    section {core}:")
        if core == "vector":
            lines += ["        set_cross_core 2 @ V", "        set_cross_core 3 @ V"]
        lines += [f"        {line}" for line in head]
        lines += ["        " + "    " * at + line for line in body]
        if outer:
            lines.append("        " + "    " * at + "g = g + 1")
        if core == "cube":
            lines += ["        wait_cross_core 2 @ FIX", "        wait_cross_core 3 @ FIX"]
    return "\n".join(lines) + "\n"


def long_text(megabytes: float) -> str:
    """A valid file of about this size: many kernels of a few dozen lines."""
    parts, size = [], 0
    number = 0
    while size < megabytes * 1_000_000:
        text = PING_PONG.replace("ping_pong", f"ping_pong_{number}") + "\n"
        parts.append(text)
        size += len(text)
        number += 1
    return "".join(parts)
