"""Do message rings block, match and give credits as the execution model says?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from campaigns.texts import blocked, execute, kernel, sections
from fencepost import ir
from fencepost.model.executor import Run, run

ORACLE = Path(__file__).resolve().parents[3] / "shared" / "cases" / "fifo_oracle.json"
DOWN = "fifo down: cube -> vector, slots = {}"


def ring(
    cube: str,
    vector: str,
    slots: int = 2,
    *,
    target: str = "a5",
    credits: Literal["per_slot", "batched"] = "per_slot",
    lanes: int = 2,
) -> Run:
    declared = [f"target {target}"] if target != "a5" else []
    declared.append(DOWN.format(slots) + (f", lanes = {lanes}" if lanes != 2 else ""))
    return execute(sections(cube, vector, ";".join(declared)), credits)


TAKE = "x <- tpop_from_aic; tfree_to_aic x"
PUSH = "tpush_to_aiv x"


def many(text: str, n: int) -> str:
    return "; ".join([text] * n)


def test_order_alone_matches_messages() -> None:
    result = ring(many(PUSH, 2), many(TAKE, 2))
    assert result.clean
    assert [op.message for op in result.issued["aic"]] == [0, 1]


def test_a_pop_waits_for_its_message() -> None:
    assert blocked(ring(PUSH, many(TAKE, 2))) == ["aiv0 S pop", "aiv1 S pop"]


def test_a_push_orders_what_came_before_it() -> None:
    text = "buffer b in Vec; fifo down: cube -> vector, slots = 2"
    good = execute(sections("write b <- () @ FIX; tpush_to_aiv x @ FIX", f"{TAKE}; read () <- b @ V", text))
    assert not good.races
    bad = execute(sections("write b <- () @ FIX; tpush_to_aiv x @ M", f"{TAKE}; read () <- b @ V", text))
    assert bad.races


def test_a_slot_is_free_at_tfree_on_a5_and_at_pop_on_a3() -> None:
    late = "x <- tpop_from_aic; y <- tpop_from_aic; tfree_to_aic x; tfree_to_aic y"
    assert blocked(ring(many(PUSH, 2), late, 1)) == ["aic S push", "aiv0 S pop", "aiv1 S pop"]
    assert not ring(many(PUSH, 2), late, 1, target="a3").blocked


@pytest.mark.parametrize(("slots", "pushes", "frees", "hangs"), [
    (4, 4, 0, False), (4, 5, 0, True), (4, 5, 1, True), (4, 5, 2, False), (4, 6, 2, False), (4, 7, 3, True),
    (4, 7, 4, False), (2, 3, 1, True), (2, 3, 2, False), (1, 2, 1, False), (6, 7, 2, True), (6, 7, 3, False),
    (6, 9, 3, False),
])  # fmt: skip
def test_batched_credits_travel_together(slots: int, pushes: int, frees: int, hangs: bool) -> None:
    result = ring(many(PUSH, pushes), many(TAKE, frees) or "pass", slots, credits="batched")
    assert ("aic S push" in blocked(result)) is hangs
    single = ring(many(PUSH, pushes), many(TAKE, frees) or "pass", slots)
    assert ("aic S push" in blocked(single)) is (pushes - slots > frees)


def test_slot_counts_that_batches_do_not_divide_leave_pushes_unguarded() -> None:
    work = many(PUSH, 8), many(TAKE, 8)
    assert {f.kind for f in ring(*work, 5, credits="batched").message_faults} == {"overrun"}
    assert ring(*work, 5).clean
    assert ring(*work, 6, credits="batched").clean


def test_messages_that_nobody_takes_or_frees() -> None:
    assert "left" in {f.kind for f in ring(many(PUSH, 2), TAKE).message_faults}
    assert "unfreed" in {f.kind for f in ring(PUSH, "x <- tpop_from_aic").message_faults}
    assert not ring(PUSH, "x <- tpop_from_aic", target="a3").message_faults


def test_both_sub_cores_take_part_unless_one_lane() -> None:
    guarded = "if sub == 0:\n    x <- tpop_from_aic\n    tfree_to_aic x"
    assert {f.kind for f in ring(PUSH, guarded).message_faults} == {"left"}
    assert ring(PUSH, guarded, lanes=1).clean


def test_a_cube_pop_takes_one_message_of_each_sub_core() -> None:
    up = "fifo up: vector -> cube, slots = 2"
    take = "x <- tpop_from_aiv; tfree_to_aiv x"
    assert execute(sections(take, "tpush_to_aic x", up)).clean
    assert blocked(execute(sections(take, "if sub == 1:\n    tpush_to_aic x", up))) == ["aic S pop"]


def test_ids_name_different_rings() -> None:
    two = "fifo a: cube -> vector, slots = 1; fifo b: cube -> vector, slots = 1, id = 3"
    crossed = "x <- tpop_from_aic id = 3; tfree_to_aic x id = 3; y <- tpop_from_aic; tfree_to_aic y"
    assert execute(sections(f"{PUSH}; tpush_to_aiv x id = 3", crossed, two)).clean


def test_a_free_that_is_not_ordered_after_its_pop() -> None:
    early = ring(PUSH, "tfree_to_aic x; x <- tpop_from_aic")
    assert "free-unpopped" in {f.kind for f in early.message_faults}
    other_pipe = ring(PUSH, "x <- tpop_from_aic @ V; tfree_to_aic x @ MTE2")
    assert "free-unpopped" in {f.kind for f in other_pipe.message_faults}
    scalar = ring(PUSH, "x <- tpop_from_aic; tfree_to_aic x @ MTE2")
    assert scalar.clean


@pytest.mark.parametrize(
    ("cube", "vector", "what"),
    [
        ("tpush_to_aiv x @ M; tpush_to_aiv x @ FIX", many(TAKE, 2), "push"),
        (many(PUSH, 2), "x <- tpop_from_aic @ V; y <- tpop_from_aic @ MTE2", "pop"),
        (many(PUSH, 2), "x <- tpop_from_aic; y <- tpop_from_aic; tfree_to_aic x @ V; tfree_to_aic y @ MTE2", "free"),
    ],
)
def test_unordered_pipes_on_one_ring_compete(cube: str, vector: str, what: str) -> None:
    assert what in {c.what for c in ring(cube, vector).contested}


def test_rounds_of_push_and_pop_are_compared() -> None:
    text = """
        kernel k(n):
            fifo down: cube -> vector, slots = 4
            section cube:
                for t in range(n):
                    tpush_to_aiv x task = t
            section vector:
                for t in range(n):
                    x <- tpop_from_aic task = {}
                    tfree_to_aic x
    """
    assert execute(text.format("t"), n=3).clean
    swapped = execute(text.format("n - 1 - t"), n=2)
    assert {f.kind for f in swapped.message_faults} == {"round"}


# ------------------------------------------------------------------------------------------------ the oracle


def rows() -> list[dict[str, Any]]:
    if not ORACLE.exists():
        return []
    found: list[dict[str, Any]] = json.loads(ORACLE.read_text("utf-8"))["rows"]
    return found


def skewed(depth: int, trip: int, *, cube: bool) -> list[ir.Stmt]:
    """A skewed push-first loop: `depth` pushes ahead, then pop, free, push, and the last `depth` pops."""
    peer: ir.Core = "vector" if cube else "cube"
    push = ir.Push("x", peer)
    take: list[ir.Stmt] = [ir.Pop("y", peer), ir.Free("y", peer)]
    # groups of `depth` produces, then `depth` consumes of the group before
    body: list[ir.Stmt] = [push] * depth
    for _ in range(trip // depth - 1):
        body += [push] * depth + take * depth
    return body + take * depth


def program(row: dict[str, Any]) -> ir.Kernel:
    """The two cores of one row of the oracle, unrolled."""
    trip, other = row["trip"], row["aiv_trip"] if row.get("aiv_trip") is not None else row["trip"]
    take: list[ir.Stmt] = [ir.Pop("y", "cube"), ir.Free("y", "cube")]
    push = ir.Push("z", "cube")
    round_trip: list[ir.Stmt] = [ir.Push("x", "vector"), ir.Pop("y", "vector"), ir.Free("y", "vector")]
    if row["arrangement"] == "one_way":
        cube: list[ir.Stmt] = [ir.Push("x", "vector")] * trip
        vector = take * other
    else:
        depth = row.get("depth_aic")
        cube = round_trip * trip if depth is None else skewed(depth, trip, cube=True)
        if row["arrangement"] == "producer_consumer":
            one = [*take, push] if row["tfree"] == "before" else [take[0], push, take[1]]
            vector = one * other
        else:
            depth = row.get("depth_aiv")
            back: list[ir.Stmt] = [push, *take]
            vector = back * other if depth is None else skewed(depth, other, cube=False)
    slots = ir.Int(row["slots"])
    fifos = (ir.Fifo("down", "cube", slots, lanes=1), ir.Fifo("up", "vector", slots, lanes=1))
    alone = ir.If(((ir.Compare(ir.Name("sub"), (("==", ir.Int(0)),)), tuple(vector)),))
    body = (ir.Section("cube", tuple(cube)), ir.Section("vector", (alone,)))
    return ir.Kernel("oracle", target=row["target"], fifos=fifos, body=body)


@pytest.mark.skipif(not ORACLE.exists(), reason="the handed cases (../shared) are not here")
def test_all_rows_of_the_oracle() -> None:
    assert len(rows()) == 300
    wrong = {}
    for row in rows():
        result = run(program(row), {}, credits=row["credits"])
        said = outcome(result, row)
        expected = {key: row.get(key, said[key]) for key in said}
        expected["overrun_possible"] = row.get("overrun_possible", [])
        if said != expected:
            wrong[row["id"]] = (said, expected)
    assert not wrong


def outcome(result: Run, row: dict[str, Any]) -> dict[str, Any]:
    """A run in the words of the oracle."""
    names = {"cube": "c2v", "vector": "v2c"}
    left = {}
    for number, r in enumerate(result.resolver.rings):
        left[names[r.sender]] = len(result.pushes[number]) - len(result.pops[number])
    stuck = {}
    for b in result.blocked:
        agent = "aic" if b.op.effect.agent == "aic" else "aiv"
        done = [o for o in result.order if o.effect.agent == b.op.effect.agent]
        kind = type(b.op.stmt)
        stuck[agent] = f"{kind.__name__.lower()} {sum(type(o.stmt) is kind for o in done)}"
    over = sorted({names[result.resolver.rings[f.ring].sender] for f in result.message_faults if f.kind == "overrun"})
    return {
        "deadlock": bool(result.blocked),
        "leftover_messages": left,
        "blocked": stuck,
        "overrun_possible": over,
    }


def test_depth_beyond_the_slots_hangs() -> None:
    """Worked by hand: one slot and two messages ahead; the second push waits for a free that comes after its pop."""
    row = {"slots": 1, "trip": 4, "arrangement": "producer_consumer", "target": "a5", "tfree": "before", "depth_aic": 2}
    result = run(program(row), {})
    assert blocked(result) == ["aic S push", "aiv0 S push"]


def test_one_lead_message_fits() -> None:
    text = kernel(
        """
        kernel lead(n):
            fifo down: cube -> vector, slots = 4
            fifo up: vector -> cube, slots = 4
            section cube:
                for t in range(n + 2):
                    if t < n:
                        tpush_to_aiv x
                    if t >= 2:
                        y <- tpop_from_aiv
                        tfree_to_aiv y
            section vector:
                for t in range(n):
                    x <- tpop_from_aic
                    tfree_to_aic x
                    tpush_to_aic y
        """
    )
    for n in range(12):
        assert execute(text, n=n).clean
        assert execute(text, "batched", n=n).clean
