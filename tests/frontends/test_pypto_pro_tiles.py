"""Which buffers do the tiles of a PyPTO-Pro kernel become, and which slots do operations touch?"""

from __future__ import annotations

from tests.frontends.pypto_pro import TENSORS, block, head, lowered, program, result, section, unread


def buffers(body: str, before: str = "", parameters: str = TENSORS) -> list[str]:
    return [line for line in head(lowered(program(body, before, parameters))) if line.startswith("buffer")]


def touched(names: str) -> str:
    """A section that writes the tiles."""
    lines = "\n".join(f"    pl.expands({name}, 0)" for name in names.split())
    return f"with pl.section_vector():\n{lines}"


# --------------------------------------------------------------------------------------------------------- declarations


def test_addresses_and_sizes() -> None:
    body = f"""
x = pl.make_tile(pl.TileType(shape=[16, 32], dtype=pl.DT_FP32, target_memory=pl.MemorySpace.Vec), addr=BASE)
y = pl.make_tile(type=VEC, addr=BASE + 0x100, size=100)
z = pl.make_tile_group(type=VEC, addrs=[0, 0x4000], mutex_ids=(3, 4))
w = pl.make_tile_group(type=VEC, addrs=0x8000, depth=3)
v = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[[1, 2], [3, 4]])
u = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[9])
{touched("x y z[0] w[0] v[0] u.next()")}
"""
    assert buffers(body, "BASE = 1 << 10") == [
        "buffer x in Vec at 1024 size 2048",
        "buffer y in Vec at 1280 size 100",
        "buffer z[2] in Vec at 0, 16384 size 8192 mutex (3, 4)",
        "buffer w[3] in Vec at 32768 size 8192",
        "buffer v[2] in Vec at 0 size 8192 mutex ((1, 2), (3, 4))",
        "buffer u in Vec at 0 size 8192 mutex (9)",
    ]


def test_element_widths() -> None:
    names = ["INT64", "FP32", "BF16", "INT8", "FP8E4M3FN", "FP4E2M1"]
    tiles = "\n".join(
        f"x{i} = pl.make_tile(tile(pl.MemorySpace.Vec, 4, 4, pl.DT_{name}), addr=0)" for i, name in enumerate(names)
    )
    body = f"{tiles}\n{touched(' '.join(f'x{i}' for i in range(len(names))))}"
    assert [line.split("size ")[1] for line in buffers(body)] == ["128", "64", "32", "16", "16", "16"]


def test_memory_spaces() -> None:
    names = ["Mat", "Left", "Right", "Acc", "Bias", "Scaling"]
    tiles = "\n".join(f"x{i} = pl.make_tile(tile(pl.MemorySpace.{name}, 4, 4), addr=0)" for i, name in enumerate(names))
    body = f"{tiles}\n{touched(' '.join(f'x{i}' for i in range(len(names))))}"
    assert [line.split()[3] for line in buffers(body)] == names


def test_scale_memories_do_not_meet() -> None:
    body = """
l = pl.make_tile(tile(pl.MemorySpace.ScaleLeft, 4, 4), addr=0)
r = pl.make_tile(tile(pl.MemorySpace.ScaleRight, 4, 4), addr=0)
s = pl.make_tile(tile(pl.MemorySpace.Scaling, 4, 4), addr=0)
x = pl.make_tile(MAT, addr=0)
with pl.section_cube():
    pl.move(l, x)
    pl.move(r, x)
    pl.move(s, x)
"""
    found = buffers(body)[:3]
    assert [line.split()[3] for line in found] == ["Scaling"] * 3
    assert len({line.split(" at ")[1] for line in found}) == 3
    assert section(lowered(program(body)), "cube") == [
        "move l <- x @ MTE1",
        "move r <- x @ MTE1",
        "move s <- x @ FIX",
    ]


def test_a_type_that_is_not_known() -> None:
    text = program(f"x = pl.make_tile(tile(pl.MemorySpace.Vec, 4, 4, dtype), addr=0)\n{touched('x')}").replace(
        "@pl.jit()\ndef kernel", "def make(dtype):\n  @pl.jit()\n  def kernel"
    )
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "def kernel" in line)
    text = "\n".join([*lines[: at + 1], *("  " + line for line in lines[at + 1 :]), ""])
    found = result(text)
    assert "dtype is taken as 4 bytes wide" in found.assumptions["kernel"]


def test_declarations_that_cannot_be_read() -> None:
    body = """
n = a.shape[0]
x = pl.make_tile(VEC, addr=n)
y = pl.make_tile(tile(pl.MemorySpace.Vec, n), addr=0)
z = pl.make_tile_group(type=VEC, addrs=[0, 1, 2], mutex_ids=[0, 1])
w = pl.make_tile_group(type=VEC, addrs=0)
v = pl.make_tile(pl.TileType(shape=[4], dtype=pl.DT_FP16, target_memory=pl.MemorySpace.Elsewhere), addr=0)
u = pl.make_tile(pl.TileType(shape=[-1, 4], dtype=pl.DT_FP16, target_memory=pl.MemorySpace.Vec), addr=0)
with pl.section_vector():
    pl.add(x, y, z.next())
"""
    (kernel,) = result(program(body)).kernels
    reasons = [line.split(": ", 1)[1] for line in unread(kernel)]
    assert reasons[:6] == [
        "the address of a tile must be a known integer, not a scalar",
        "a dimension of a tile must be a known integer, not a scalar",
        "the depth, addresses and mutex_ids of this tile group do not fit together",
        "a tile group needs mutex_ids or a depth",
        "the memory space of a tile must be a known pl.MemorySpace",
        f"a dimension of a tile must lie between 1 and {(1 << 32) - 1}",
    ]
    assert reasons[-1].startswith("x could not be read")


# ---------------------------------------------------------------------------------------------------------------- slots


def test_cursors() -> None:
    body = """
g = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[0, 1, 2])
with pl.section_vector():
    for i in pl.range(a.shape[0]):
        t = g.next()
        pl.exp(t, g.previous())
        pl.exp(g.current(), g[i % 3])
"""
    assert section(lowered(program(body))) == block(
        """
        for i in range(a_dim0):
            t = g.next()
            g_slot = g.previous()
            exp g[t] <- g[g_slot] @ V
            g_slot_2 = g.current()
            exp g[g_slot_2] <- g[i % 3] @ V
        """
    )


def test_a_group_made_in_a_loop_starts_anew_each_time() -> None:
    body = """
with pl.section_vector():
    for i in pl.range(a.shape[0]):
        g = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[0, 1])
        pl.expands(g.next(), 0)
        t = g.next()
        pl.expands(t, 0)
"""
    assert section(lowered(program(body))) == block(
        """
        for i in range(a_dim0):
            g_cursor = 1
            g_slot = (g_cursor + 1) % 2
            g_cursor = g_slot
            expands g[g_slot] <- () @ V
            t = (g_cursor + 1) % 2
            g_cursor = t
            expands g[t] <- () @ V
        """
    )


def test_a_group_of_one_has_no_cursor() -> None:
    body = """
g = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[5])
with pl.section_vector():
    pl.exp(g.next(), g[0])
"""
    assert section(lowered(program(body))) == ["exp g <- g @ V"]


def test_tuples_of_tiles() -> None:
    body = """
x = pl.make_tile(VEC, addr=0)
y = pl.make_tile(VEC, addr=0x4000)
pair = (x, y)
with pl.section_vector():
    for i in pl.range(a.shape[0]):
        pl.exp(pair[i % 2], pair[(i + 1) % 2])
    pl.exp(y, pair[0])
"""
    kernel = lowered(program(body))
    assert head(kernel)[1:] == ["buffer pair[2] in Vec at 0, 16384 size 8192"]
    assert section(kernel) == block(
        """
        for i in range(a_dim0):
            exp pair[i % 2] <- pair[(i + 1) % 2] @ V
        exp pair[1] <- pair[0] @ V
        """
    )


def test_tiles_of_different_kinds_picked_at_run_time() -> None:
    body = """
x = pl.make_tile(VEC, addr=0)
g = pl.make_tile_group(type=VEC, addrs=0x4000, mutex_ids=[0, 1])
with pl.section_vector():
    t = g.next()
    for i in pl.range(a.shape[0]):
        pl.expands((x, t)[i % 2], 0)
"""
    assert section(lowered(program(body)))[1:] == block(
        """
        for i in range(a_dim0):
            if i % 2 == 0:
                expands x <- () @ V
            else:
                expands g[t] <- () @ V
        """
    )


def test_a_tile_chosen_by_a_branch() -> None:
    body = """
x = pl.make_tile(VEC, addr=0)
y = pl.make_tile(VEC, addr=0x4000)
z = pl.make_tile(VEC, addr=0x8000)
with pl.section_vector():
    for i in pl.range(a.shape[0]):
        if i % 2 == 0:
            t = x
        else:
            t = y
        pl.exp(t, z)
"""
    kernel = lowered(program(body))
    assert "buffer t[2] in Vec at 0, 16384 size 8192" in head(kernel)
    assert section(kernel) == block(
        """
        for i in range(a_dim0):
            if i % 2 == 0:
                t_2 = 0
            else:
                t_2 = 1
            exp t[t_2] <- z @ V
        """
    )


def test_nested_choices() -> None:
    body = """
g = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[0, 1])
x = pl.make_tile(VEC, addr=0x8000, size=64)
y = pl.make_tile(VEC, addr=0x9000, size=32)
with pl.section_vector():
    n = a.shape[0]
    t = x if n > 3 else (y if n > 2 else g[1])
    pl.expands(t, 0)
"""
    assert section(lowered(program(body)))[-6:] == block(
        """
        if t_which == 0:
            expands x <- () @ V
        elif t_which == 1:
            expands y <- () @ V
        else:
            expands g[1] <- () @ V
        """
    )


def test_tiles_carried_from_trip_to_trip() -> None:
    body = """
g = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[0, 1, 2])
with pl.section_vector():
    old = g.next()
    for i in pl.range(a.shape[0]):
        new = g.next()
        pl.add(new, new, old)
        old = new
    pl.store(out, old, [0, 0])
"""
    assert section(lowered(program(body))) == block(
        """
        old = g.next()
        for i in range(a_dim0):
            new = g.next()
            add g[new] <- g[new], g[old] @ V
            old = new
        store out <- g[old] @ MTE3
        """
    )


# ----------------------------------------------------------------------------------------------------------- operations


def test_pipes() -> None:
    body = """
v = pl.make_tile(VEC, addr=0)
m = pl.make_tile(MAT, addr=0)
l = pl.make_tile(tile(pl.MemorySpace.Left), addr=0)
r = pl.make_tile(tile(pl.MemorySpace.Right), addr=0)
c = pl.make_tile(ACC, addr=0)
s = pl.make_tile(tile(pl.MemorySpace.Scaling), addr=0)
bias = pl.make_tile(tile(pl.MemorySpace.Bias), addr=0)
with pl.section_cube():
    pl.load(m, a, [0, 0])
    pl.move(l, m)
    pl.move(r, m)
    pl.move(bias, m)
    pl.move(s, m)
    pl.matmul(c, l, r)
    pl.matmul_acc(c, c, l, r)
    pl.matmul_bias(c, l, r, bias)
    pl.move(v, c, acc_to_vec_mode=pl.AccToVecMode.DualModeSplitN)
    pl.move(m, c)
    pl.store(out, c, [0, 0])
with pl.section_vector():
    pl.load(v, a, [0, 0])
    pl.move(m, v)
    pl.insert(m, v, [0, 0])
    pl.move(v, v)
    pl.cast(v, v, mode=pl.RoundMode.CAST_ROUND)
    pl.store(out, v, [0, 0])
"""
    kernel = lowered(program(body))
    assert section(kernel, "cube") == [
        "load m <- a @ MTE2",
        "move l <- m @ MTE1",
        "move r <- m @ MTE1",
        "move bias <- m @ MTE1",
        "move s <- m @ FIX",
        "matmul c <- l, r @ M",
        "matmul_acc c <- c, l, r @ M",
        "matmul_bias c <- l, r, bias @ M",
        "move v <- c @ FIX",
        "move m <- c @ FIX",
        "store out <- c @ FIX",
    ]
    assert section(kernel) == [
        "load v <- a @ MTE2",
        "move m <- v @ MTE3",
        "insert m <- v @ MTE3",
        "move v <- v @ V",
        "cast v <- v @ V",
        "store out <- v @ MTE3",
    ]


def test_modes_of_moves_to_the_vector_cores() -> None:
    modes = ["SingleModeVec0", "SingleModeVec1", "DualModeSplitM", "DualModeSplitN"]
    moves = "\n".join(f"    pl.move(v, c, acc_to_vec_mode=pl.AccToVecMode.{mode})" for mode in modes)
    body = "v = pl.make_tile(VEC, addr=0)\nc = pl.make_tile(ACC, addr=0)\nwith pl.section_cube():\n"
    body += f"{moves}\n    pl.move(v, c)"
    found = result(program(body))
    assert section(found.kernels[0], "cube") == [
        "move v <- c @ FIX lanes = 0",
        "move v <- c @ FIX lanes = 1",
        "move v <- c @ FIX",
        "move v <- c @ FIX",
        "move v <- c @ FIX lanes = 0",
    ]
    assert any("without acc_to_vec_mode" in note for note in found.assumptions["kernel"])


def test_scratch_and_accumulating_operands() -> None:
    body = """
x = pl.make_tile(VEC, addr=0)
y = pl.make_tile(VEC, addr=0x4000)
z = pl.make_tile(VEC, addr=0x8000)
with pl.section_vector():
    pl.row_sum(x, y, z)
    pl.axpy(x, y, 2.0)
    pl.select(x, y, y, x)
    pl.adds(x, y, 3)
    pl.store(out, x, [0, 0], atomic=pl.AtomicType.AtomicAdd)
    pl.set_validshape(x, [3, 4])
    pl.printf("x", x)
"""
    assert section(lowered(program(body))) == [
        "row_sum x, z <- y @ V",
        "axpy x <- x, y @ V",
        "select x <- y, x @ V",
        "adds x <- y @ V",
        "store out <- x @ MTE3",
    ]


def test_parts_of_a_tile_count_as_the_tile() -> None:
    body = """
x = pl.make_tile(VEC, addr=0)
with pl.section_vector():
    top = x[0:32, :]
    pl.exp(top, x[32:, :])
"""
    assert section(lowered(program(body))) == ["exp x <- x @ V"]


def test_a_group_or_a_number_where_a_tile_is_needed() -> None:
    body = """
g = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[0, 1])
with pl.section_vector():
    pl.exp(g, g.next())
    pl.add(missing, g.next(), g.next())
    pl.exp()
"""
    (kernel,) = result(program(body)).kernels
    reasons = [line.split(": ", 1)[1] for line in unread(kernel)]
    assert reasons == [
        "a tile group is used where a tile is needed",
        "the name missing is not defined in this file",
        "pl.exp without a tile",
    ]


# ----------------------------------------------------------------------------------------------------- vector functions

SOFTMAX = """
@pl.vector_function
def scale(dst, src, old, factor):
    mask = vf.create_mask(pattern=pl.MaskPattern.ALL, dtype=pl.DT_FP16)
    for i in pl.range(0, 64):
        x = vf.load_align(src, i * 64)
        y = vf.load_align(old + 64, i * 64)
        vf.store_align(dst + i * 64, vf.muls(vf.add(x, y, mask), factor, mask), mask)
"""


def test_a_vector_function_is_one_operation() -> None:
    body = """
x = pl.make_tile(VEC, addr=0)
y = pl.make_tile(VEC, addr=0x4000)
g = pl.make_tile_group(type=VEC, addrs=0x8000, mutex_ids=[0, 1])
with pl.section_vector():
    scale(x, y, g.next(), 0.5)
    scale(x, x, y, 2.0)
"""
    assert section(lowered(program(body, SOFTMAX))) == [
        "g_slot = g.next()",
        "scale x <- y, g[g_slot] @ V",
        "scale x <- x, y @ V",
    ]


def test_a_vector_function_that_stores_before_it_loads_only_writes() -> None:
    before = """
@pl.vector_function
def refresh(dst, last):
    mask = vf.create_mask(pattern=pl.MaskPattern.ALL, dtype=pl.DT_FP16)
    if last == 1:
        vf.store_align(dst, vf.full(0.0), mask)
    x = vf.load_align(dst, 0)
    vf.store_align(dst, x, mask)

@pl.vector_function
def outer(dst, last):
    refresh(dst, last)
"""
    body = """
x = pl.make_tile(VEC, addr=0)
with pl.section_vector():
    outer(x, 1)
    outer(x, 0)
"""
    assert section(lowered(program(body, before))) == ["outer x <- () @ V", "outer x <- x @ V"]


def test_rows_of_two_tiles_that_lie_interleaved() -> None:
    before = """
@pl.vector_function
def half(dst):
    mask = vf.create_mask(pattern=pl.MaskPattern.ALL, dtype=pl.DT_FP16)
    for i in pl.range(0, 16):
        vf.store_align(dst + i * 256, vf.full(0.0), mask)
"""
    body = """
x = pl.make_tile(tile(pl.MemorySpace.Vec, 16, 256), addr=0)
y = pl.make_tile(tile(pl.MemorySpace.Vec, 16, 256), addr=256)
with pl.section_vector():
    half(x)
    half(y)
"""
    found = buffers(body, before)
    assert [line.split(" at ")[1].split(" mutex")[0] for line in found] == [
        "0 size 256 stride 512 rows 16",
        "256 size 256 stride 512 rows 16",
    ]
