"""Does the search find the smallest failure, within its budget, and judge candidates of the prover?"""

from __future__ import annotations

import time
from collections.abc import Hashable
from textwrap import dedent

import pytest

from fencepost.findings import Row
from fencepost.frontends.kir import read
from fencepost.model.inputs import units
from fencepost.model.program import compile_kernel
from fencepost.model.shapes import Shape, unequal_fillings
from fencepost.search import Outcome, Search


def search(text: str) -> Search:
    result = read(dedent(text), "k.kir")
    assert not result.errors, result.errors
    return Search(compile_kernel(result.kernels[0]), time.monotonic() + 60)


def witnesses(outcome: Outcome) -> dict[str, str]:
    return {s.fact.code: str(s.witness) for s in outcome.facts}


SENDS = """
    kernel sends(n):
        assume n >= 0

        section cube:
            for t in range(n):
                set_cross_core 0 @ FIX

        section vector:
            for t in range(n):
                wait_cross_core 0 @ V
"""


def test_quick_phase_runs_the_smallest_shapes_only() -> None:
    one = search(SENDS)
    outcome = one.quick()
    assert outcome.tried == outcome.clean == 14 and outcome.largest == (13,) and not outcome.exhausted
    outcome = one.full()
    assert outcome.tried > 30 and outcome.exhausted
    assert witnesses(outcome) == {"402": "n = 16"}


def test_only_shape_is_the_whole_search() -> None:
    assert search("kernel k():\n    section cube:\n        barrier M\n").quick().exhausted


WHEN = """
    kernel when({parameters}):
        {assume}

        section cube:
            if {condition}:
                set_cross_core 0 @ FIX
"""


@pytest.mark.parametrize(
    ("parameters", "assume", "condition", "smallest"),
    [
        ("a, b, c", "assume a >= 0 and b >= 0 and c >= 0", "a == b and b == c and c > 0", "a = 1, b = 1, c = 1"),
        ("a, b, c", "assume a >= 0 and b >= 0 and c >= 0", "a + b + c == 7 and b > 1", "a = 0, b = 2, c = 5"),
        ("a, b, c", "assume a >= 0 and b >= 0 and c >= 0", "a >= 3 and b >= 3 and c >= 3", "a = 3, b = 3, c = 3"),
        ("a, b", "assume a >= 0 and b >= 0", "a * b >= 70", "a = 7, b = 10"),
        ("a", "assume a <= 100", "a < 0", "a = -1"),
        ("a", "assume a >= 40", "a % 3 == 0", "a = 42"),
    ],
)
def test_smallest_values_first(parameters: str, assume: str, condition: str, smallest: str) -> None:
    outcome = search(WHEN.format(parameters=parameters, assume=assume, condition=condition)).run()
    assert set(witnesses(outcome).values()) == {smallest}


def test_search_is_deterministic() -> None:
    text = WHEN.format(parameters="a, b", assume="assume a >= 0 and b >= 0", condition="a * b % 5 == 3")
    one, two = search(text), search(text)
    assert witnesses(one.run()) == witnesses(two.run())
    assert one.spent == two.spent and one.tried == two.tried


def test_many_parameters_stay_within_the_budget() -> None:
    names = [f"p{i}" for i in range(12)]
    loops = "".join(f"{'    ' * (i + 3)}for i{i} in range({name}):\n" for i, name in enumerate(names[:6]))
    text = (
        f"    kernel many({', '.join(names)}):\n"
        + "".join(f"        assume {name} >= 0\n" for name in names)
        + f"        section cube:\n{loops}{'    ' * 9}matmul x <- a @ M\n"
    )
    one = search(text)
    outcome = one.run()
    assert outcome.clean == outcome.tried > 100
    assert len(one.candidates) < 5_000


def test_parameters_that_make_no_difference_stay_put() -> None:
    text = """
    kernel few(n, unused, even, other):
        assume n >= 0
        assume unused >= 5
        assume even % 4 == 2
        assume other != 0
        k = n + 1

        section cube:
            for t in range(k):
                matmul x <- a @ M
    """
    one = search(text)
    outcome = one.run()
    assert outcome.exhausted and outcome.clean == outcome.tried > 5  # one run for each k
    assert {values[1] for values in one.candidates} == {5}
    assert any(values[2] == 6 for values in one.candidates)


TILES = """
    kernel tiles(rows):
        assume rows >= 0
        count = rows // 64

        section cube:
            for t in range(count):
                set_cross_core 0 @ FIX
            {last}

        section vector:
            for t in range(count):
                wait_cross_core 0 @ V
            {first}
"""


def test_parameters_are_tried_in_their_units() -> None:
    assert units(search(TILES.format(first="pass", last="pass")).compiled) == {"rows": (64,)}
    clean = search(TILES.format(first="pass", last="pass")).run()
    assert witnesses(clean) == {} and clean.largest[0] >= 5 * 64  # fifteen tiles would be too many to try
    last = "if count > 0:\n                set_cross_core 1 @ FIX"
    assert boundary(TILES.format(first="wait_cross_core 1 @ V", last=last)) == {"301": True, "401": True}
    once = search(TILES.format(first="pass", last=last)).run()
    assert witnesses(once) == {"302": "rows = 64", "401": "rows = 64"}


# ------------------------------------------------------------------------------------------------ candidates


def test_candidate_is_made_small() -> None:
    one = search(SENDS)
    one.quick()
    assert one.try_values({"n": 500}) == "fails"
    assert witnesses(one.outcome()) == {"402": "n = 16"}


def test_candidate_with_two_parameters_is_made_smallest() -> None:
    one = search(
        WHEN.format(parameters="a, b", assume="assume a >= 0 and b >= 0", condition="a * b >= 70 and b > a + 2")
    )
    assert one.try_values({"a": 9, "b": 800}) == "fails"
    assert set(witnesses(one.outcome()).values()) == {"a = 7, b = 10"}


def test_candidate_with_function_values() -> None:
    text = WHEN.format(parameters="n", assume="assume n >= 0", condition="n == 3 and need(n) > 7")
    one = search(text)
    assert not one.run().facts
    assert one.try_values({"n": 3}, {("need", (3,)): 21}) == "fails"
    assert set(witnesses(one.outcome()).values()) == {"n = 3, need(3) = 8"}


def test_trips_of_several_rounds_become_those_of_one() -> None:
    one = search(
        """
        kernel rows(n):
            assume n >= 0
            buffer s[2] in Mat

            section cube:
                c = 0
                for i in range(n):
                    for t in range(size(i)):
                        wait_cross_core c % 2 @ FIX
                        take x <- s[c % 2] @ FIX
                        c = c + 1

            section vector:
                c = 0
                for i in range(n):
                    for t in range(size(i)):
                        insert s[c % 2] part sub of 2 <- x @ V
                        set_cross_core c % 2 @ V
                        c = c + 1
        """
    )
    assert one.try_values({"n": 2}, {("size", (0,)): 1, ("size", (1,)): 2}) == "fails"
    assert set(witnesses(one.outcome()).values()) == {"n = 1, size(0) = 3"}


def test_candidates_that_show_nothing() -> None:
    one = search(SENDS)
    assert one.try_values({"n": 3}) == "clean"
    assert one.try_values({"n": -1}) == "excluded"
    assert one.try_values({"n": 10**9}) == "too long"
    assert not one.outcome().facts


# ------------------------------------------------------------------------------------------------ boundary trips


def boundary(text: str) -> dict[str, bool]:
    return {s.fact.code: s.boundary for s in search(text).run().facts}


def test_failure_at_zero_trips_is_a_boundary_failure() -> None:
    text = """
        kernel done(n):
            assume n >= 0

            section cube:
                for t in range(n):
                    if t == n - 1:
                        set_cross_core 0 @ FIX

            section vector:
                {wait}
    """
    at_zero = boundary(text.format(wait="wait_cross_core 0 @ V"))
    assert at_zero == {"301": True, "401": True}
    always = boundary(text.format(wait="for i in range(2):\n                    wait_cross_core 0 @ V"))
    assert always == {"301": False, "401": False}


def test_failure_for_one_residue_is_a_boundary_failure() -> None:
    residue = boundary(
        """
        kernel odd(n):
            assume n >= 0

            section cube:
                for t in range(n // 2):
                    set_cross_core 0 @ FIX
                    set_cross_core 0 @ FIX
                    wait_cross_core 1 @ FIX

            section vector:
                for t in range(n):
                    wait_cross_core 0 @ V
                    if t % 2 == 1:
                        set_cross_core 1 @ V
        """
    )
    assert residue["301"] and residue["401"]


def test_condition_without_a_loop_is_no_boundary() -> None:
    text = WHEN.format(parameters="n", assume="assume n >= 0", condition="n == 0")
    assert boundary(text) == {"302": False, "401": False}


def test_values_for_which_the_loop_does_not_run_do_not_count() -> None:
    text = """
        kernel rest(n):
            assume n >= 0

            section cube:
                for t in range(block, n):
                    set_cross_core 0 @ FIX
    """
    assert boundary(text) == {"302": False, "401": False, "402": False}


def test_failure_from_some_trip_on_is_no_boundary() -> None:
    assert boundary(SENDS) == {"402": False}


# ------------------------------------------------------------------------------------------------ what stays open


def test_schedules_that_are_too_many_are_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    import fencepost.model.interleave as interleave

    monkeypatch.setattr(interleave.explore, "__defaults__", (1,))
    outcome = search(
        """
        kernel two_waiters():
            section cube:
                set_cross_core 0 @ FIX
                set_cross_core 0 @ FIX

            section vector:
                wait_cross_core 0 @ V
                wait_cross_core 0 @ MTE2
        """
    ).run()
    (left,) = outcome.undecided
    assert left.row is Row.PAIRING and "too many to explore" in left.reason
    assert [s.fact.severity.value for s in outcome.facts if s.fact.severity] == ["warning"]


# ------------------------------------------------------------------------------------------------ real sizes


def test_smallest_values_in_units_of_several_parameters() -> None:
    text = """
        kernel tiles(rows, cols, cores):
            assume rows >= 0
            assume cols >= 0
            assume cores >= 1
            row_tiles = (rows + 127) // 128
            col_tiles = (cols + 127) // 128

            section cube:
                mine = max(row_tiles - block + cores - 1, 0) // cores
                for i in range(mine):
                    for j in range(col_tiles):
                        matmul a <- b @ M
                        if {when}:
                            set_cross_core 0 @ FIX
    """
    found = {
        when: set(witnesses(search(text.format(when=when)).run()).values())
        for when in ("i == 0 and j == 1", "i == 2 and j == 1", "i == 1")
    }
    assert found == {
        "i == 0 and j == 1": {"rows = 1, cols = 129, cores = 1, block = 0"},
        "i == 2 and j == 1": {"rows = 257, cols = 129, cores = 1, block = 0"},
        "i == 1": {"rows = 129, cols = 1, cores = 1, block = 0"},
    }


def test_function_values_are_made_small_too() -> None:
    text = """
        kernel work(n):
            assume n >= 1

            section cube:
                for w in range(work_ranges(block * 2), work_ranges(block * 2 + 1)):
                    tiles = max(length(max(w, 0) // n) + 127, 0) // 128
                    for t in range(tiles):
                        matmul a <- b @ M
                        if t == 1:
                            set_cross_core 0 @ FIX
    """
    (witness,) = set(witnesses(search(text).run()).values())
    assert witness == "n = 1, block = 0, length(1) = 129, work_ranges(0) = 1, work_ranges(1) = 2"


def test_search_ends_when_nothing_new_is_seen() -> None:
    text = """
        kernel always(a, b, c):
            assume a >= 0 and b >= 0 and c >= 0

            section cube:
                set_cross_core 0 @ FIX
                for i in range(a):
                    for j in range(b):
                        for k in range(c):
                            matmul x <- y @ M
    """
    one = search(text)
    outcome = one.run()
    assert witnesses(outcome) == {"302": "a = 0, b = 0, c = 0", "401": "a = 0, b = 0, c = 0"}
    assert one.spent["search"] < 100_000 and not outcome.exhausted


def test_search_ends_at_its_deadline() -> None:
    result = read(dedent(SENDS), "k.kir")
    late = Search(compile_kernel(result.kernels[0]), time.monotonic() - 1)
    assert late.run().tried == 0


@pytest.mark.parametrize("condition", ["n > 60", "60 < n", "t == 70", "n >= EDGE", "n - 1 == 500"])
def test_constants_of_comparisons_are_tried(condition: str) -> None:
    text = f"""\
kernel k(n, m):
    EDGE = 40 + 1
    section cube:
        for t in range(n):
            set_cross_core 0 @ FIX
            if {condition}:
                set_cross_core 0 @ FIX
    section vector:
        for t in range(n):
            wait_cross_core 0 @ V
"""
    assert search(text).run().facts, condition


def test_functions_that_grow_at_different_rates_are_tried_further() -> None:
    text = """
        kernel rates(m):
            assume m >= 1
            section cube:
                for t in range(work(0), work(1)):
                    set_cross_core 0 @ FIX
                    if t - work(0) >= 2 and length(1) - length(0) == 1 and length(2) - length(1) == 1:
                        set_cross_core 0 @ FIX
            section vector:
                for t in range(work(0), work(1)):
                    wait_cross_core 0 @ V
    """
    found = search(text)
    tables = [shape.table() for shape in (found.shapes.at((1,), f) for f in unequal_fillings(found.compiled))]
    assert {(t("length", (2,)), t("work", (1,))) for t in tables} == {(2, 2), (2, 3), (4, 1), (4, 3), (6, 1), (6, 2)}
    assert found.further().facts


def test_parameters_of_different_weight_are_exchanged() -> None:
    """The least sum is reached with much of what weighs much."""
    found = search(
        """
        kernel weighted(n, m):
            assume n >= 0
            assume m >= 1

            section cube:
                if n * 3 + m > 200:
                    set_cross_core 0 @ FIX
        """
    )
    found.try_values({"n": 4, "m": 189})
    assert witnesses(found.outcome())["302"] == "n = 67, m = 1"


def test_the_trip_that_a_function_picks_out_becomes_the_first() -> None:
    found = search(
        """
        kernel picked(n):
            assume n >= 0

            section cube:
                for t in range(n):
                    if f(t) == 391:
                        set_cross_core 0 @ FIX
        """
    )
    found.try_values({"n": 7}, {("f", (t,)): 391 if t == 6 else 0 for t in range(7)})
    assert witnesses(found.outcome())["302"] == "n = 1, f(0) = 391"


DEEP = """
    kernel deep(n):
        assume 0 <= n <= 5000
        buffer x[2000] in Vec

        section vector:
            for t in range(n):
                load x[t] <- q @ MTE2
"""


def test_as_many_trips_as_there_are_slots_are_tried() -> None:
    assert witnesses(search(DEEP).run()) == {"101": "n = 2001"}


def test_what_was_found_is_told_though_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for smaller values takes the rest of the time."""

    def slow(self: Search, shape: Shape, new: frozenset[Hashable]) -> Shape:
        self.deadline = time.monotonic() - 1
        return shape

    monkeypatch.setattr(Search, "_complete", slow)
    assert set(witnesses(search(DEEP).run())) == {"101"}


@pytest.mark.parametrize(
    "condition", ["need(t) == 5 and t >= 40", "t >= 40 and need(t) == 5", "need(t) > 90 and t == 50"]
)
def test_constants_that_functions_are_compared_with_are_tried(condition: str) -> None:
    text = f"""
        kernel k(n):
            section cube:
                for t in range(n):
                    if {condition}:
                        set_cross_core 0 @ FIX
            section vector:
                barrier V
    """
    found = search(text).run()
    assert "302" in {seen.fact.code for seen in found.facts}
