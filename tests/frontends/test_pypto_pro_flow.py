"""What do loops, branches, helpers and records of a PyPTO-Pro kernel become?"""

from __future__ import annotations

from tests.frontends.pypto_pro import block, cube, head, lowered, program, result, section, unread, vector


def wait(id_: object, pipe: str = "V") -> str:
    return f"pl.system.wait_cross_core(pipe=pl.PipeType.{pipe}, event_id={id_})"


def send(id_: object, pipe: str = "V") -> str:
    return f"pl.system.set_cross_core(pipe=pl.PipeType.{pipe}, event_id={id_})"


# ---------------------------------------------------------------------------------------------------------------- loops


def test_ranges() -> None:
    body = f"""
        n = a.shape[0]
        for i in pl.range(n):
            {wait("i")}
        for i in pl.range(2, n - 1):
            {wait("i")}
        for i in pl.range(n, 0, -3):
            {wait("i")}
        for i in range(4):
            {wait("i")}
        for i in pl.range(5, 5):
            {wait("i")}
    """
    assert vector(body) == block(
        """
        for i in range(n):
            wait_cross_core i @ V
        for i in range(2, n - 1):
            wait_cross_core i @ V
        for i in range(n, 0, -3):
            wait_cross_core i @ V
        for i in range(4):
            wait_cross_core i @ V
        """
    )


def test_a_step_known_at_launch() -> None:
    body = f"""
        for i in pl.range(3, a.shape[0], step):
            {wait("i % 4")}
    """
    parameters = "a: pl.Tensor[[pl.DYNAMIC, 64], pl.DT_FP16], step: pl.DT_INT32"
    kernel = lowered(
        program("with pl.section_vector():\n" + "\n".join("    " + s for s in block(body)), "", parameters)
    )
    assert head(kernel) == [
        "assume step >= 1",
        "assume a_dim0 >= 0",
        "i_trips = max(a_dim0 - 3 + step - 1, 0) // step",
    ]
    assert section(kernel) == block(
        """
        for i_trip in range(i_trips):
            i = i_trip * step + 3
            wait_cross_core i % 4 @ V
        """
    )


def test_counters_and_parity() -> None:
    body = f"""
        count = 0
        for i in pl.range(a.shape[0]):
            for j in pl.range(i):
                if count % 2 == 0:
                    event = 4
                else:
                    event = 5
                {wait("event")}
                count += 1
    """
    assert vector(body) == block(
        """
        count = 0
        for i in range(a_dim0):
            for j in range(i):
                if count % 2 == 0:
                    event = 4
                else:
                    event = 5
                wait_cross_core event @ V
                count = count + 1
        """
    )


def test_break_and_continue() -> None:
    body = f"""
        for i in pl.range(a.shape[0]):
            if i == 7:
                break
            if i % 3 == 1:
                continue
            {wait("i % 2")}
    """
    assert vector(body) == block(
        """
        for i in range(a_dim0):
            if i == 7:
                break
            if i % 3 == 1:
                continue
            wait_cross_core i % 2 @ V
        """
    )


def test_a_value_from_before_a_continue() -> None:
    body = f"""
        last = 0
        for i in pl.range(a.shape[0]):
            if i % 2 == 0:
                last = i
                continue
            {wait("last % 8")}
        {send("last % 8")}
    """
    assert vector(body) == block(
        """
        last = 0
        for i in range(a_dim0):
            if i % 2 == 0:
                last = i
                continue
            wait_cross_core last % 8 @ V
        set_cross_core last % 8 @ V
        """
    )


def test_values_that_refer_to_a_variable_that_changes() -> None:
    body = f"""
        x = a.shape[0]
        for i in pl.range(4):
            old = x
            x = x + 1
            {wait("old")}
            {send("x")}
    """
    assert vector(body) == block(
        """
        x = a_dim0
        for i in range(4):
            old = x
            x = x + 1
            wait_cross_core old @ V
            set_cross_core x @ V
        """
    )


def test_swapping() -> None:
    body = f"""
        x = 1
        y = 2
        for i in pl.range(4):
            x, y = y, x
            {wait("x")}
    """
    assert vector(body) == block(
        """
        x = 1
        y = 2
        for i in range(4):
            y_next = x
            x = y
            y = y_next
            wait_cross_core x @ V
        """
    )


def test_swapping_fields() -> None:
    body = f"""
        s = pl.struct(x=a.shape[0], y=2)
        s.x, s.y = s.y, s.x
        {wait("s.x")}
        {wait("s.y")}
    """
    assert vector(body)[2:] == block(
        """
        s_y_next = s_x
        s_x = s_y
        s_y = s_y_next
        wait_cross_core s_x @ V
        wait_cross_core s_y @ V
        """
    )


def test_else_on_a_loop_is_not_supported() -> None:
    text = program("with pl.section_vector():\n    for i in pl.range(3):\n        pass\n    else:\n        pass")
    assert "else on a loop is not supported" in unread(result(text).kernels[0])[0]


# ------------------------------------------------------------------------------------------------------------- branches


def test_an_elif_chain() -> None:
    tests = "\n".join(f"elif a.shape[0] == {i}:\n    {wait(i % 16)}" for i in range(1, 900))
    body = f"if a.shape[0] == 0:\n    pass\n{tests}\nelse:\n    {send(3)}"
    lines = vector(body)
    assert lines[:3] == ["if a_dim0 == 0:", "    pass", "elif a_dim0 == 1:"]
    assert lines[-2:] == ["else:", "    set_cross_core 3 @ V"]
    assert sum(line.startswith("elif") for line in lines) == 899


def test_a_test_that_reads_memory_happens_only_if_the_earlier_ones_fail() -> None:
    body = f"""
        if a.shape[0] == 1:
            {wait(1)}
        elif t[0, 0] == 2:
            {wait(2)}
    """
    lines = section(
        lowered(
            program(
                "t = pl.make_tile(VEC, addr=0)\nwith pl.section_vector():\n    pl.load(t, a, [0, 0])\n"
                + "\n".join("    " + line for line in block(body))
            )
        )
    )
    assert lines[1:5] == ["if a_dim0 == 1:", "    wait_cross_core 1 @ V", "else:", "    getval () <- t @ S"]
    assert lines[5].startswith("    if t_value(") and lines[5].endswith("== 2:")


def test_conditions() -> None:
    body = f"""
        n = a.shape[0]
        if n > 2 and not (n == 5 or n < 1):
            {wait(1)}
        if 0 < n <= 7:
            {wait(2)}
        if n:
            {wait(3)}
        if n in (1, 2):
            {wait(4)}
        if n >= 0 and True and not False:
            {wait("5 if n > 3 else 6")}
        m = pl.min(n, 4, n)
        {wait("pl.max(m, 1)")}
    """
    assert vector(body) == block(
        """
        if n > 2 and not (n == 5 or n < 1):
            wait_cross_core 1 @ V
        if 0 < n and n <= 7:
            wait_cross_core 2 @ V
        if n != 0:
            wait_cross_core 3 @ V
        if n == 1 or n == 2:
            wait_cross_core 4 @ V
        if n >= 0:
            wait_cross_core 5 if n > 3 else 6 @ V
        wait_cross_core max(m, 1) @ V
        """
    )


def test_what_is_known_at_compile_time_leaves_no_branch() -> None:
    body = f"""
        for i in pl.range(4):
            if MODE == "deep":
                {wait("i % DEPTH")}
            elif MODE is None:
                {wait(9)}
        assert DEPTH == 2
    """
    assert vector(body, 'MODE = "deep"\nDEPTH = 2') == ["for i in range(4):", "    wait_cross_core i % 2 @ V"]


def test_assertions_on_the_device() -> None:
    assert vector("assert a.shape[0] > 1\n" + wait("a.shape[0] % 2"))[0] == "assert a_dim0 > 1"


# -------------------------------------------------------------------------------------------------------------- helpers


def test_scalars_go_by_value() -> None:
    before = f"""
        def step(count, id=3):
            count = count + 1
            {wait("count % 4 + id")}
            return count
    """
    body = """
        n = a.shape[0]
        m = step(n)
        step(m, id=n)
        step(count=7)
    """
    assert vector(body, before)[:7] == block(
        """
        count = n
        count = n + 1
        wait_cross_core count % 4 + 3 @ V
        m = count
        count = m
        count = count + 1
        wait_cross_core count % 4 + n @ V
        """
    )
    assert vector(body, before)[-1] == "wait_cross_core 3 @ V"


def test_groups_go_by_reference() -> None:
    before = """
        def step(group, out):
            t = group.next()
            pl.store(out, t, [0, 0])
            return t
    """
    body = """
        g = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[0, 1, 2])
        with pl.section_vector():
            first = step(g, out)
            second = step(g, out)
            pl.add(first, first, second)
    """
    assert section(lowered(program(body, before))) == block(
        """
        t = g.next()
        store out <- g[t] @ MTE3
        first = t
        t = g.next()
        store out <- g[t] @ MTE3
        second = t
        add g[first] <- g[first], g[second] @ V
        """
    )


def test_helpers_with_helpers_and_effects_only() -> None:
    before = f"""
        def low(x):
            {wait("x")}

        def high(x):
            low(x)
            low(x + 1)
    """
    assert vector("high(2)", before) == ["wait_cross_core 2 @ V", "wait_cross_core 3 @ V"]


def test_early_returns() -> None:
    before = f"""
        def pick(n):
            if n == 0:
                return 5
            {wait(0)}
            if n > 3:
                return n
            return 7
    """
    body = f"{wait('pick(a.shape[0]) % 8')}"
    assert vector(body, before) == block(
        """
        if a_dim0 == 0:
            pick_result = 5
        else:
            wait_cross_core 0 @ V
            if a_dim0 > 3:
                pick_result = a_dim0
            else:
                pick_result = 7
        pick_result_2 = pick_result
        wait_cross_core pick_result_2 % 8 @ V
        """
    )


def test_an_early_return_of_the_kernel() -> None:
    body = f"""
        if a.shape[0] == 0:
            return
        {wait(1)}
    """
    assert vector(body) == ["if a_dim0 != 0:", "    wait_cross_core 1 @ V"]


def test_several_results() -> None:
    before = """
        def split(n):
            return n // 2, n % 2
    """
    assert vector(f"q, r = split(a.shape[0])\n{wait('q')}\n{wait('r')}", before) == [
        "wait_cross_core q @ V",
        "wait_cross_core r @ V",
    ]


def test_helpers_that_only_compute_are_evaluated() -> None:
    before = """
        def total(n):
            found = 0
            for i in range(n):
                found += i
            return found
    """
    assert vector(wait("total(5)"), before) == ["wait_cross_core 10 @ V"]


def test_recursion_and_bad_calls() -> None:
    before = """
        def again(n):
            again(n)

        def two(x, y):
            pass
    """
    body = "with pl.section_vector():\n    again(a.shape[0])\n    two(1)\n    two(1, 2, 3)\n    two(*[1, 2])"
    (kernel,) = result(program(body, before)).kernels
    reasons = [line.split(": ", 1)[1] for line in unread(kernel)]
    assert reasons[0] == "again calls itself"
    assert len(reasons) == 4


# -------------------------------------------------------------------------------------------------------------- records


def test_a_struct_is_a_set_of_scalars() -> None:
    before = """
        def advance(state):
            state.count = state.count + 1
            state.ids[1] = state.count
    """
    body = f"""
        state = pl.struct(count=0, spare=5, scale=0.5, ids=[1, 2])
        for i in pl.range(a.shape[0]):
            advance(state)
            {wait("state.count % 2")}
            {wait("state.ids[i % 2]")}
    """
    kernel = lowered(program("with pl.section_vector():\n" + "\n".join("    " + s for s in block(body)), before))
    assert "ring state_ids[2](value)" in head(kernel)
    assert section(kernel) == block(
        """
        state_count = 0
        state_ids[0].value = 1
        state_ids[1].value = 2
        for i in range(a_dim0):
            state_count = state_count + 1
            state_ids[1].value = state_count
            wait_cross_core state_count % 2 @ V
            wait_cross_core state_ids[i % 2].value @ V
        """
    )


def test_a_ring_of_records() -> None:
    body = f"""
        tasks = pl.struct_array(4, "Task", round=0, unused=0)
        for i in pl.range(a.shape[0]):
            now = tasks[i % 4]
            now.round = i
            now.unused = i
            if i > 1:
                before = tasks[(i + 2) % 4]
                {wait("before.round % 2")}
    """
    kernel = lowered(program("with pl.section_vector():\n" + "\n".join("    " + s for s in block(body))))
    assert "ring tasks[4](round)" in head(kernel)
    assert section(kernel) == block(
        """
        for i in range(a_dim0):
            now = i % 4
            tasks[now].round = i
            if i > 1:
                before = (i + 2) % 4
                wait_cross_core tasks[before].round % 2 @ V
        """
    )


def test_a_record_seen_through_a_helper() -> None:
    before = f"""
        def signal(task):
            {wait("task.round % 2")}
            task.round = 9
    """
    body = """
        tasks = pl.struct_array(2, round=1)
        signal(tasks[a.shape[0] % 2])
    """
    assert vector(body, before) == block(
        """
        tasks[0].round = 1
        tasks[1].round = 1
        wait_cross_core tasks[a_dim0 % 2].round % 2 @ V
        tasks[a_dim0 % 2].round = 9
        """
    )


def test_named_tuples() -> None:
    body = f"""
        pair = pl.make_tuple(first=3, second=a.shape[0])
        {wait("pair.first")}
        {wait("pair.second")}
    """
    assert vector(body) == ["wait_cross_core 3 @ V", "wait_cross_core a_dim0 @ V"]


def test_both_cores_have_their_own_records() -> None:
    body = f"""
        state = pl.struct(count=1)
        with pl.section_cube():
            state.count = state.count + 1
            {send("state.count", "FIX")}
        with pl.section_vector():
            {wait("state.count")}
    """
    kernel = lowered(program(body))
    assert section(kernel, "cube")[-1] == "set_cross_core state_count @ FIX"
    assert section(kernel) == ["state_count = 1", "wait_cross_core state_count @ V"]
    assert cube(f"state = pl.struct(count=2)\n{send('state.count', 'FIX')}")[-1] == "set_cross_core state_count @ FIX"


def test_an_argument_keeps_its_value_when_a_helper_changes_the_struct() -> None:
    before = f"""
        def bump(s, old):
            s.count = s.count + 1
            {wait("old")}
            {send("s.count")}
    """
    body = "s = pl.struct(count=a.shape[0])\nbump(s, s.count)"
    assert vector(body, before) == block(
        """
        s_count = a_dim0
        old = s_count
        s_count = s_count + 1
        wait_cross_core old @ V
        set_cross_core s_count @ V
        """
    )


def test_a_helper_that_changes_a_struct_inside_of_an_expression() -> None:
    before = """
        def bump(s):
            s.count = s.count + 1
            return s.count
    """
    text = program(
        f"with pl.section_vector():\n    s = pl.struct(count=a.shape[0])\n    {wait('s.count + bump(s)')}", before
    )
    assert "a helper that changes a struct" in unread(result(text).kernels[0])[0]
    assert vector(f"s = pl.struct(count=1)\nn = bump(s)\n{wait('n')}", before)[-1] == "wait_cross_core n @ V"
