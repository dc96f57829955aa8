"""Which hand-over protocols do the tests of the exploration try?  Kernel texts, right ones and variants off by one."""

from __future__ import annotations

from dataclasses import dataclass

PING_PONG = """
kernel ping_pong(n):
    assume n >= 0
    READY = (0, 1)
    RELEASE = (2, 3)
    buffer qk[2] in Vec

    section cube:
        for t in range(n):
            wait_cross_core RELEASE[t % 2] @ FIX
            move qk[t % 2] <- x @ FIX task = t
            set_cross_core READY[t % 2] @ FIX
        wait_cross_core RELEASE[0] @ FIX
        wait_cross_core RELEASE[1] @ FIX

    section vector:
        set_cross_core RELEASE[0] @ V
        set_cross_core RELEASE[1] @ V
        for t in range(n):
            wait_cross_core READY[t % 2] @ V
            softmax p <- qk[t % 2] @ V task = t
            set_cross_core RELEASE[t % 2] @ V
"""
"""Two slots with credits issued ahead."""

BARE = """
kernel bare(n):
    assume n >= 0
    READY = (0, 1, 2)
    RELEASE = (3, 4, 5)
    buffer qk[3] in Vec

    section cube:
        for t in range(n):
            if t >= 3:
                wait_cross_core RELEASE[t % 3] @ FIX
            move qk[t % 3] <- x @ FIX
            set_cross_core READY[t % 3] @ FIX
        for i in range(min(n, 3)):
            wait_cross_core RELEASE[i] @ FIX

    section vector:
        for t in range(n):
            wait_cross_core READY[t % 3] @ V
            softmax p <- qk[t % 3] @ V
            set_cross_core RELEASE[t % 3] @ V
"""
"""Three slots without credits; what the loop did not take is drained."""

READY_ONLY = """
kernel ready_only(n):
    assume n >= 0
    QK = (0, 1)
    P = (2, 3)
    buffer qk[2] in Vec
    buffer px[2] in Vec mutex (0, 1)
    buffer pm[4] in Mat
    buffer left in Left mutex (2)
    buffer acc in Acc mutex (3)

    section cube:
        for t in range(n + 1):
            if t < n:
                matmul acc <- q, k @ M
                move qk[t % 2] <- acc @ FIX
                set_cross_core QK[t % 2] @ FIX
            if t > 0:
                wait_cross_core P[(t - 1) % 2] @ MTE1
                move left <- pm[2 * ((t - 1) % 2)], pm[2 * ((t - 1) % 2) + 1] @ MTE1
                matmul o <- left, v @ M

    section vector:
        for t in range(n):
            wait_cross_core QK[t % 2] @ V
            softmax px[t % 2] <- qk[t % 2] @ V
            insert pm[2 * (t % 2) + sub] <- px[t % 2] @ MTE3
            set_cross_core P[t % 2] @ MTE3
"""
"""READY signals only: what protects a slot is the way back through the other stream."""

COUNTER_AS_BOUND = """
kernel counter_as_bound(n):
    assume n >= 0

    section cube:
        c = 0
        for t in range(n):
            wait_cross_core 2 @ FIX
            set_cross_core 0 @ FIX
            c = c + 1
        for i in range(c):
            set_cross_core 1 @ FIX
            wait_cross_core 3 @ FIX

    section vector:
        for t in range(n):
            set_cross_core 2 @ V
            wait_cross_core 0 @ V
        for t in range(min(n, 6)):
            wait_cross_core 1 @ V
            set_cross_core 3 @ V
"""
"""Wrong from n = 7 on only: a counter that one loop leaves behind bounds the next."""

DRAIN_ON_OTHER_PIPE = PING_PONG.replace("ping_pong", "drain_on_other_pipe").replace(
    "wait_cross_core RELEASE[1] @ FIX", "wait_cross_core RELEASE[1] @ M"
)
"""Wrong, although every run in which agents block as a whole ends well."""

DATA_DEPENDENT = """
kernel data_dependent(b):
    assume b >= 0
    READY = (0, 1)
    RELEASE = (2, 3)
    buffer qk[2] in Vec

    section cube:
        c = 0
        for i in range(b):
            for j in range(length(i)):
                if c >= 2:
                    wait_cross_core RELEASE[c % 2] @ FIX
                move qk[c % 2] <- x @ FIX
                set_cross_core READY[c % 2] @ FIX
                c = c + 1
        if c > 0:
            wait_cross_core RELEASE[0] @ FIX
        if c > 1:
            wait_cross_core RELEASE[1] @ FIX

    section vector:
        c = 0
        for i in range(b):
            for j in range(length(i)):
                wait_cross_core READY[c % 2] @ V
                softmax p <- qk[c % 2] @ V
                set_cross_core RELEASE[c % 2] @ V
                c = c + 1
"""
"""An inner bound read from memory, the same on both sides."""


@dataclass(frozen=True)
class Flash:
    """The flash-attention protocol: two buffers with credits, READY-only P and PV, preload 2, lag 3, drains 2 and 3.

    Each field may be off by one.
    """

    levels: int = 3
    qk_depth: int = 2
    credits: int = 2
    p_depth: int = 3
    pv_depth: int = 3
    preload: int = 2
    lag: int = 3
    cube_drain: int = 2
    vector_drain: int = 3
    slack: int = 0  # added to the vector's guard of the softmax
    awaited: int = 2  # credits awaited at the end

    def text(self) -> str:
        bounds = ("B", "H")[: self.levels - 1]
        last = " and ".join(f"i{b} == {b} - 1" for b in bounds)
        return "\n".join(
            [
                f"kernel flash{self.levels}({', '.join((*bounds, 'S'))}):",
                *(f"    assume {b} >= 0" for b in (*bounds, "S")),
                "    QK = (0, 1)",
                "    BACK = (2, 3)",
                "    P = (4, 5, 6)",
                "    PV = (7, 8, 9)",
                "    buffer qk[2] in Vec",
                "    buffer px in Vec mutex (0)",
                "    buffer pm[6] in Mat",
                "    buffer left in Left mutex (0)",
                "    buffer acc in Acc mutex (1)",
                "    buffer pv[3] in Vec",
                "",
                "    section cube:",
                "        c = 0",
                *self._loops(bounds, last, self.cube_drain, self._cube()),
                *(f"        wait_cross_core BACK[{i}] @ FIX" for i in range(self.awaited)),
                "",
                "    section vector:",
                *(f"        set_cross_core BACK[{i % 2}] @ V" for i in range(self.credits)),
                "        c = 0",
                *self._loops(bounds, last, self.vector_drain, self._vector()),
            ]
        )

    def _loops(self, bounds: tuple[str, ...], last: str, drain: int, body: list[str]) -> list[str]:
        lines: list[str] = []
        indent = "        "
        for b in bounds:
            lines.append(f"{indent}for i{b} in range({b}):")
            indent += "    "
        if bounds:
            lines += [f"{indent}end = S", f"{indent}if {last}:", f"{indent}    end = S + {drain}"]
        lines.append(f"{indent}for s in range({'end' if bounds else f'S + {drain}'}):")
        return lines + [f"{indent}    {line}" for line in body]

    def _cube(self) -> list[str]:
        qk, p, pv = f"c % {self.qk_depth}", f"(c - {self.preload}) % {self.p_depth}", f"(c - 2) % {self.pv_depth}"
        return [
            "if s < S:",
            f"    wait_cross_core BACK[{qk}] @ FIX",
            f"    move qk[{qk}] <- s0 @ FIX",
            f"    set_cross_core QK[{qk}] @ FIX",
            f"if c >= {self.preload}:",
            f"    wait_cross_core P[{p}] @ MTE1",
            f"    move left <- pm[2 * ({p})], pm[2 * ({p}) + 1] @ MTE1",
            "    matmul acc <- left, v @ M",
            f"    move pv[{pv}] <- acc @ FIX",
            f"    set_cross_core PV[{pv}] @ FIX",
            "c = c + 1",
        ]

    def _vector(self) -> list[str]:
        return [
            f"if c >= 1 and s <= S + {self.slack}:",
            "    wait_cross_core QK[(c - 1) % 2] @ V",
            "    softmax px <- qk[(c - 1) % 2] @ V",
            "    set_cross_core BACK[(c - 1) % 2] @ V",
            "    insert pm[2 * ((c - 1) % 3) + sub] <- px @ MTE3",
            "    set_cross_core P[(c - 1) % 3] @ MTE3",
            f"if c >= {self.lag}:",
            f"    wait_cross_core PV[(c - {self.lag}) % 3] @ V",
            f"    update o <- pv[(c - {self.lag}) % 3] @ V",
            "c = c + 1",
        ]


OFF_BY_ONE = (
    Flash(qk_depth=1), Flash(credits=1), Flash(credits=3), Flash(p_depth=2), Flash(pv_depth=2), Flash(preload=1),
    Flash(preload=3), Flash(lag=2), Flash(lag=4), Flash(cube_drain=1), Flash(cube_drain=3), Flash(vector_drain=2),
    Flash(vector_drain=4), Flash(slack=-1), Flash(slack=1), Flash(awaited=1),
)  # fmt: skip
"""Variants of the three-level kernel; each fails for some values."""
