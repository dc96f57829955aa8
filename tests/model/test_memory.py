"""Which accesses meet in memory, and which unordered ones are noted?"""

from __future__ import annotations

import pytest

from campaigns.texts import execute, kernel, races, sections
from fencepost.model.memory import lay_out
from fencepost.model.program import ModelError, compile_kernel


def meets(declarations: str, first: str, second: str) -> bool:
    """Whether an unordered write and read of the cube meet."""
    run = execute(sections(f"write {first} <- () @ MTE2; read () <- {second} @ MTE1", "", declarations))
    return bool(run.races)


def test_slots_of_a_buffer_are_apart() -> None:
    assert meets("buffer x[2] in Mat", "x[0]", "x[0]")
    assert not meets("buffer x[2] in Mat", "x[0]", "x[1]")


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("at 0 size 64", "at 64 size 64", False),
        ("at 0 size 65", "at 64 size 64", True),
        ("at 100 size 4", "at 0 size 200", True),
        ("at 0 size 16 stride 64 rows 4", "at 16 size 16 stride 64 rows 4", False),
        ("at 0 size 16 stride 64 rows 4", "at 15 size 16 stride 64 rows 4", True),
        ("at 0 size 16 stride 64 rows 4", "at 80 size 16", False),
        ("at 0 size 16 stride 64 rows 4", "at 192 size 1", True),
        ("at 0 size 16 stride 64 rows 3", "at 192 size 1", False),
        ("at 0 size 8 stride 32 rows 3", "at 8 size 8 stride 48 rows 2", False),
        ("at 0 size 8 stride 32 rows 3", "at 16 size 8 stride 24 rows 3", True),
    ],
)
def test_buffers_meet_where_their_bytes_do(a: str, b: str, expected: bool) -> None:
    assert meets(f"buffer x in Mat {a}; buffer y in Mat {b}", "x", "y") is expected


def test_spaces_are_apart() -> None:
    assert not meets("buffer x in Mat at 0 size 64; buffer y in Left at 0 size 64", "x", "y")


def test_one_address_places_the_slots_behind_each_other() -> None:
    both = "buffer x[3] in Mat at 0 size 32; buffer y in Mat at 64 size 32"
    assert [meets(both, f"x[{i}]", "y") for i in range(3)] == [False, False, True]


def test_an_address_per_slot() -> None:
    both = "buffer x[2] in Mat at 128, 0 size 32; buffer y in Mat at 0 size 16"
    assert [meets(both, f"x[{i}]", "y") for i in range(2)] == [False, True]


def test_parts_are_disjoint_shares_of_a_slot() -> None:
    x = "buffer x[2] in Mat"
    assert not meets(x, "x[0] part 0 of 2", "x[0] part 1 of 2")
    assert meets(x, "x[0] part 0 of 2", "x[0]")
    assert meets(x, "x[0] part 0 of 2", "x[0] part 1 of 3")
    assert not meets(x, "x[0] part 0 of 2", "x[0] part 2 of 3")
    assert not meets(x, "x[0] part 0 of 2", "x[1] part 0 of 2")


def test_each_sub_core_has_its_own_vec() -> None:
    run = execute(sections("", "write x <- () @ V; read () <- x @ V", "buffer x in Vec"))
    assert run.clean
    cells = {c for ops in run.issued.values() for op in ops for t in op.effect.writes for c in t.cells}
    assert len(cells) == 2


def test_mat_exists_once() -> None:
    run = execute(sections("", "write x <- () @ MTE3", "buffer x in Mat"))
    assert races(run) == {("write-write", "write", "write")}
    halves = execute(sections("", "write x part sub of 2 <- () @ MTE3", "buffer x in Mat"))
    assert halves.clean


@pytest.mark.parametrize(("lanes", "raced"), [("", 2), ("lanes = both", 2), ("lanes = 0", 1), ("lanes = 1", 1)])
def test_a_move_into_vec_reaches_the_sub_cores_that_it_names(lanes: str, raced: int) -> None:
    run = execute(sections(f"move x <- a @ FIX {lanes}", "read () <- x @ V", "buffer x in Vec"))
    assert len(run.races) == raced
    reached = {r.second.effect.agent for r in run.races} | {r.first.effect.agent for r in run.races}
    assert reached - {"aic"} == ({"aiv0", "aiv1"} if raced == 2 else {f"aiv{lanes[-1]}"})


def test_the_three_kinds_of_races() -> None:
    x = "buffer x in Mat"
    assert races(execute(sections("one x <- () @ M; two () <- x @ FIX", "", x))) == {("write-read", "one", "two")}
    assert races(execute(sections("one x <- () @ M; two x <- () @ FIX", "", x))) == {("write-write", "one", "two")}
    assert races(execute(sections("zero x <- () @ S; one () <- x @ M; two x <- () @ FIX", "", x))) == {
        ("read-write", "one", "two")
    }
    assert not execute(sections("zero x <- () @ S; one () <- x @ M; two () <- x @ FIX", "", x)).races


def test_an_operation_does_not_race_with_itself() -> None:
    assert execute(sections("zero x <- () @ M; add x <- x, x @ M", "", "buffer x in Mat")).clean


def test_reads_on_every_pipe_are_remembered() -> None:
    """The write is ordered after the last read of M, not after the read of MTE1 before it."""
    run = execute(
        sections("zero x <- () @ S; one () <- x @ MTE1; two () <- x @ M; three x <- () @ M", "", "buffer x in Mat")
    )
    assert races(run) == {("read-write", "one", "three")}


def test_a_read_before_every_write_is_noted_if_the_text_writes_the_buffer_at_all() -> None:
    x = "buffer x[2] in Mat"
    run = execute(sections("read () <- x[0] @ M; write x[0] <- () @ M", "", x))
    assert len(run.unwritten) == 1
    assert not execute(sections("read () <- x[0] @ M", "", x)).unwritten, "nobody writes it: an input"
    never = execute(sections("read () <- x[0] @ M\nif 1 == 2:\n    write x[0] <- () @ M", "", x))
    assert len(never.unwritten) == 1, "the text writes it, this run does not"
    other = execute(sections("read () <- x[0] @ M; write x[1] <- () @ M", "", x))
    assert len(other.unwritten) == 1, "the slot matters"
    alias = "buffer x in Mat at 0 size 8; buffer y in Mat at 4 size 8"
    assert len(execute(sections("read () <- x @ M; write y <- () @ M", "", alias)).unwritten) == 1


def test_slots_out_of_range_touch_nothing() -> None:
    run = execute(sections("write x[2] <- () @ M; write x[-1] <- () @ M", "", "buffer x[2] in Mat"))
    assert [[index for _, index in op.effect.out_of_range] for op in run.outside] == [[2], [-1]]
    assert not run.races


def test_layouts_that_cannot_be() -> None:
    def laid_out(declaration: str) -> None:
        lay_out(
            compile_kernel(kernel(f"kernel k(n):\n    {declaration}\n    section cube:\n        a x[0] <- () @ M\n"))
        )

    laid_out("buffer x[2] in Mat at 0 size 4")
    with pytest.raises(ModelError, match="more than 200000 slots"):
        laid_out("buffer x[200001] in Mat")
    with pytest.raises(ModelError, match="constant"):
        laid_out("buffer x[n] in Mat")
