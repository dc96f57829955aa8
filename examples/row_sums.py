"""PyPTO-Pro source: products go to the vector cores through two tiles, of which only one is released at the start."""

import pypto_pro.language as pl

ACC = pl.TileType(shape=[64, 64], dtype=pl.DT_FP32, target_memory=pl.MemorySpace.Acc)
VEC = pl.TileType(shape=[64, 64], dtype=pl.DT_FP32, target_memory=pl.MemorySpace.Vec)
READY, RELEASE = 0, 2


@pl.jit()
def row_sums(a: pl.Tensor[[pl.DYNAMIC, 64], pl.DT_FP32], out: pl.Tensor[[pl.DYNAMIC, 64], pl.DT_FP32]):
    blocks = a.shape[0] // 64
    acc = pl.make_tile(ACC, addr=0)
    product = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[0, 1])
    with pl.section_cube():
        for i in pl.range(blocks):
            pl.system.wait_cross_core(pipe=pl.PipeType.FIX, event_id=RELEASE + i % 2)
            pl.move(product[i % 2], acc, acc_to_vec_mode=pl.AccToVecMode.DualModeSplitM)
            pl.system.set_cross_core(pipe=pl.PipeType.FIX, event_id=READY + i % 2)
        pl.system.wait_cross_core(pipe=pl.PipeType.FIX, event_id=RELEASE)
    with pl.section_vector():
        pl.system.set_cross_core(pipe=pl.PipeType.V, event_id=RELEASE)
        for i in pl.range(blocks):
            pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=READY + i % 2)
            pl.row_sum(product[i % 2], product[i % 2])
            pl.system.set_cross_core(pipe=pl.PipeType.V, event_id=RELEASE + i % 2)
