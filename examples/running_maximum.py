"""TileLang source: a running maximum whose tile is split over two versions, so each sees every second block only."""

import tilelang
import tilelang.language as T


@tilelang.jit
def running_maximum(blocks: int):
    @T.prim_func
    def main(values: T.Tensor((blocks * 64,), "float32"), maxima: T.Tensor((blocks * 64,), "float32")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((64,), "float32")
            best = T.alloc_shared((64,), "float32")
            T.fill(best, -1.0e30)
            for k in T.Pipelined(blocks, stage=[0, 0, 1], order=[0, 1, 2]):
                T.copy(values[k * 64], tile)
                for i in T.Parallel(64):
                    best[i] = T.max(best[i], tile[i])
                T.copy(best, maxima[k * 64])

    return main
