"""What do accesses of a PyPTO-Pro kernel to global memory, insertions and scalar accesses become?"""

from __future__ import annotations

from tests.frontends.pypto_pro import block, head, lowered, program, result, section, unread

WORK = (
    "a: pl.Tensor[[pl.DYNAMIC, 64], pl.DT_FP16], w: pl.Tensor[[256, 64], pl.DT_FP16], "
    "out: pl.Tensor[[64, 64], pl.DT_FP16]"
)
TILES = """
x = pl.make_tile(VEC, addr=0)
h = pl.make_tile(tile(pl.MemorySpace.Vec, 32, 64), addr=0x8000)
m = pl.make_tile(MAT, addr=0)
c = pl.make_tile(ACC, addr=0)
"""


def notes(text: str) -> tuple[str, ...]:
    return result(text).assumptions.get("kernel", ())


# -------------------------------------------------------------------------------------------------------- global memory


def test_inputs_and_outputs_are_no_buffers() -> None:
    body = (
        TILES
        + """
with pl.section_vector():
    pl.load(x, a, [0, 0])
    pl.store(out, x, [0, 0])
"""
    )
    kernel = lowered(program(body))
    assert not any("GM" in line for line in head(kernel))
    assert section(kernel) == ["load x <- a @ MTE2", "store out <- x @ MTE3"]


def test_a_tensor_that_is_written_and_read_is_a_buffer() -> None:
    body = (
        TILES
        + """
with pl.section_cube():
    for i in pl.range(4):
        pl.store(w, c, [i * 64, 0])
    pl.system.set_cross_core(pipe=pl.PipeType.FIX, event_id=0)
with pl.section_vector():
    pl.system.wait_cross_core(pipe=pl.PipeType.MTE2, event_id=0)
    for i in pl.range(4):
        pl.load(x, w, [i * 64, 0])
"""
    )
    text = program(body, parameters=WORK)
    kernel = lowered(text)
    assert "buffer w[4] in GM" in head(kernel)
    assert section(kernel, "cube")[:2] == ["for i in range(4):", "    store w[i] <- c @ FIX"]
    assert section(kernel)[-1] == "    load x <- w[i] @ MTE2"
    assert "no other core touches the parts of w that this one uses" in notes(text)


def test_halves_of_a_region() -> None:
    body = (
        TILES
        + """
row = pl.get_subblock_idx() * 32
with pl.section_cube():
    pl.store(w, c, [64, 0])
with pl.section_vector():
    pl.load(h, w, [64 + row, 0])
"""
    )
    kernel = lowered(program(body, parameters=WORK))
    assert section(kernel, "cube") == ["store w[1] <- c @ FIX"]
    assert section(kernel) == ["load h <- w[1] part sub of 2 @ MTE2"]


def test_regions_that_cannot_be_told_apart() -> None:
    body = (
        TILES
        + """
n = a.shape[0]
with pl.section_cube():
    pl.store(w, c, [n, 0])
with pl.section_vector():
    pl.load(x, w, [n + 7, 0])
"""
    )
    text = program(body, parameters=WORK)
    kernel = lowered(text)
    assert "buffer w in GM" in head(kernel)
    assert section(kernel) == ["load x <- w @ MTE2"]
    assert "accesses to w that cannot be told apart by their coordinates are taken as one region" in notes(text)


def test_a_slot_that_one_core_names_by_its_loop_and_the_other_by_a_counter() -> None:
    body = (
        TILES
        + """
count = 0
with pl.section_cube():
    for i in pl.range(a.shape[0]):
        pl.store(w, c, [count % 4 * 64, 0])
        count = count + 1
with pl.section_vector():
    for i in pl.range(a.shape[0]):
        pl.load(x, w, [i % 4 * 64, 0])
"""
    )
    kernel = lowered(program(body, parameters=WORK))
    assert section(kernel, "cube") == block(
        """
        count = 0
        for i in range(a_dim0):
            store w[count % 4] <- c @ FIX
            count = count + 1
        """
    )
    assert section(kernel)[1].strip() == "load x <- w[i % 4] @ MTE2"


def test_a_base_that_all_accesses_share_does_not_matter() -> None:
    body = (
        TILES
        + """
core = pl.get_block_idx() // pl.get_subblock_num()
with pl.section_cube():
    for i in pl.range(a.shape[0]):
        row = core * 512 + i % 2 * 64
        pl.store(w, c, [row, 0])
with pl.section_vector():
    for i in pl.range(a.shape[0]):
        pl.load(x, w, [core * 512 + 64, 0])
"""
    )
    kernel = lowered(program(body, parameters=WORK))
    assert "buffer w[2] in GM" in head(kernel)
    assert section(kernel, "cube")[1].strip() == "store w[i % 2] <- c @ FIX"
    assert section(kernel)[1].strip() == "load x <- w[1] @ MTE2"


def test_regions_without_a_known_number() -> None:
    body = (
        TILES
        + """
with pl.section_cube():
    for i in pl.range(a.shape[0]):
        row = i * 64
        pl.store(w, c, [row, 0])
with pl.section_vector():
    for i in pl.range(a.shape[0]):
        pl.load(x, w, [i * 64, 0])
"""
    )
    text = program(body, parameters=WORK.replace("[256, 64]", "[pl.DYNAMIC, 64]"))
    kernel = lowered(text)
    assert "buffer w in GM" in head(kernel)
    assert section(kernel, "cube")[1].strip() == "store w <- c @ FIX"
    assert "the regions of w, whose number is not bounded, are taken as one" in notes(text)


def test_a_definition_counts_only_where_it_is_sure() -> None:
    body = (
        TILES
        + """
with pl.section_cube():
    row = 0
    for i in pl.range(a.shape[0]):
        if i % 3 == 0:
            row = i % 4 * 64
        pl.store(w, c, [row, 0])
with pl.section_vector():
    pl.load(x, w, [64, 0])
"""
    )
    kernel = lowered(program(body, parameters=WORK))
    assert section(kernel, "cube")[-1].strip() == "store w[row // 64] <- c @ FIX"


def test_views_and_pointers_of_a_tensor() -> None:
    body = (
        TILES
        + """
view = pl.make_tensor(p, [64, 64], dtype=pl.DT_FP16)
with pl.section_cube():
    pl.store(view, c, [0, 0])
with pl.section_vector():
    pl.load(x, pl.make_tensor(p, [128, 32], dtype=pl.DT_FP16), [0, 0])
"""
    )
    kernel = lowered(program(body, parameters="p: pl.Ptr[pl.DT_FP16]"))
    assert "buffer p in GM" in head(kernel)
    assert section(kernel) == ["load x <- p @ MTE2"]


def test_both_sub_cores_store_to_one_place() -> None:
    body = (
        TILES
        + """
half = pl.get_subblock_idx() * 32
with pl.section_vector():
    pl.load(h, a, [half, 0])
    pl.store(out, h, [0, 0])
"""
    )
    kernel = lowered(program(body, parameters=WORK).replace("pl.section_vector()", "pl.section_vector()"))
    assert not any("GM" in line for line in head(kernel))  # a pure vector kernel has one sub-core
    mixed = lowered(program(body + "\nwith pl.section_cube():\n    pl.load(m, a, [0, 0])\n", parameters=WORK))
    assert "buffer out in GM" in head(mixed)
    apart = body.replace("[0, 0])\n", "[half, 0])\n")
    mixed = lowered(program(apart + "\nwith pl.section_cube():\n    pl.load(m, a, [0, 0])\n", parameters=WORK))
    assert not any("GM" in line for line in head(mixed))
    overlapping = body.replace("pl.store(out, h, [0, 0])", "pl.store(out, h, [half // 2, 0])")
    mixed = lowered(program(overlapping + "\nwith pl.section_cube():\n    pl.load(m, a, [0, 0])\n", parameters=WORK))
    assert "buffer out in GM" in head(mixed)


def test_both_cores_store_to_one_tensor() -> None:
    body = (
        TILES
        + """
with pl.section_cube():
    pl.store(w, c, [64, 0])
with pl.section_vector():
    pl.store(w, x, [ROW, 0])
"""
    )
    assert "buffer w[2] in GM" in head(lowered(program(body, "ROW = 0", WORK)))
    assert section(lowered(program(body, "ROW = 0", WORK))) == ["store w[0] <- x @ MTE3"]
    assert section(lowered(program(body, "ROW = 64", WORK))) == ["store w[1] <- x @ MTE3"]
    assert section(lowered(program(body, "ROW = 32", WORK))) == ["store w <- x @ MTE3"]


def test_a_valid_shape_narrows_what_is_reached() -> None:
    body = (
        TILES
        + """
half = pl.get_subblock_idx() * 32
with pl.section_cube():
    pl.store(w, c, [0, 0])
with pl.section_vector():
    rows = pl.min(32, a.shape[0] - half)
    pl.set_validshape(x, [rows, 64])
    pl.load(x, w, [half, 0])
"""
    )
    assert section(lowered(program(body, parameters=WORK)))[-1] == "load x <- w part sub of 2 @ MTE2"


# ----------------------------------------------------------------------------------------------------------- insertions


def insert(before: str, places: str) -> list[str]:
    lines = "\n".join(f"    pl.insert(m, h, {place})" for place in places.split(";"))
    return section(
        lowered(
            program(
                f"{TILES}\n{before}\nwith pl.section_cube():\n    pl.move(x, c)\nwith pl.section_vector():\n{lines}"
            )
        )
    )


def test_each_sub_core_inserts_its_rows() -> None:
    assert insert("row = pl.get_subblock_idx() * 32", "[row, 0]") == ["insert m part sub of 2 <- h @ MTE3"]


def test_parts_in_two_directions() -> None:
    before = "h = pl.make_tile(tile(pl.MemorySpace.Vec, 32, 32), addr=0x8000)\nrow = pl.get_subblock_idx() * 32"
    assert insert(before, "[row, 0];[row, 32]") == [
        "insert m part sub * 2 of 4 <- h_2 @ MTE3",
        "insert m part sub * 2 + 1 of 4 <- h_2 @ MTE3",
    ]


def test_insertions_that_overlap_are_to_the_whole_tile() -> None:
    assert insert("row = pl.get_subblock_idx() * 16", "[row, 0]") == ["insert m <- h @ MTE3"]


def test_insertions_at_places_that_are_not_known() -> None:
    text = program(
        f"""{TILES}
row = pl.get_subblock_idx() * a.shape[0]
with pl.section_cube():
    pl.move(x, c)
with pl.section_vector():
    pl.insert(m, h, [row, 0])
"""
    )
    assert section(lowered(text)) == ["insert m part sub of 2 <- h @ MTE3"]
    assert any(note.startswith("the two sub-cores insert into different parts of m") for note in notes(text))


# -------------------------------------------------------------------------------------------------------------- scalars


def test_values_read_from_memory_are_functions_of_their_indices() -> None:
    parameters = "lengths: pl.Tensor[[pl.DYNAMIC, 4], pl.DT_INT32], out: pl.Tensor[[64, 64], pl.DT_FP16]"
    body = """
with pl.section_vector():
    for b in pl.range(lengths.shape[0]):
        n = lengths[b, 2]
        for i in pl.range(pl.getval(lengths, [b, 2])):
            pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=(n + i) % 2)
"""
    text = program(body, parameters=parameters)
    assert section(lowered(text)) == block(
        """
        for b in range(lengths_dim0):
            n = lengths(b * 4 + 2)
            for i in range(lengths(b * 4 + 2)):
                wait_cross_core max(n + i, 0) % 2 @ V
        """
    )
    assert any(note.startswith("lengths holds the same values for every core") for note in notes(text))
    assert any(note.startswith("values read from memory are not negative") for note in notes(text))


def test_values_that_the_kernel_writes_may_differ_each_time() -> None:
    parameters = "counts: pl.Tensor[[16], pl.DT_INT32]"
    body = """
with pl.section_vector():
    for i in pl.range(4):
        pl.setval(counts, i, 3)
        if counts[0] > 1:
            pl.system.bar_v()
"""
    kernel = lowered(program(body, parameters=parameters))
    lines = section(kernel)
    assert any("setval counts" in line for line in lines)
    assert any(line.strip().startswith("if counts_value(0, i") for line in lines)


def test_elements_of_tiles() -> None:
    body = (
        TILES
        + """
with pl.section_vector():
    pl.load(x, a, [0, 0])
    for i in pl.range(4):
        x[0, i] = 3
        pl.setval(x, i, 1)
        if x[0, i] == pl.getval(x, 2):
            pl.system.bar_v()
"""
    )
    assert section(lowered(program(body))) == block(
        """
        load x <- a @ MTE2
        for i in range(4):
            setval x <- () @ S
            setval x <- () @ S
            getval () <- x @ S
            getval () <- x @ S
            if x_value(0, i, i, sub) == x_value_2(2, i, sub):
                barrier V
        """
    )


def test_floats_decide_nothing_by_value() -> None:
    body = """
with pl.section_vector():
    s = a[0, 0] * 2.0
    if s > 1.5:
        pl.system.bar_v()
"""
    (kernel,) = result(program(body)).kernels
    assert "the condition depends on a value that is no integer" in unread(kernel)[0]


def test_scalars_passed_between_the_cores() -> None:
    body = """
task = pl.struct(round=1, size=2)
with pl.section_cube():
    pl.ssbuf_store(task, 0)
    pl.ssbuf_store(task, 64)
with pl.section_vector():
    pl.ssbuf_load(task, 0)
    if task.round > 2:
        pl.system.bar_v()
"""
    kernel = lowered(program(body))
    assert any(line.startswith("buffer ssbuf") for line in head(kernel))
    assert section(kernel, "cube") == ["ssbuf_store ssbuf[0] <- () @ S", "ssbuf_store ssbuf[4] <- () @ S"]
    assert section(kernel)[1] == "ssbuf_load () <- ssbuf[0] @ S"
