"""Does reduction keep what it must show, and drop the rest?"""

from __future__ import annotations

from campaigns.random_kernels import random_kernel
from campaigns.reduce import reduce
from campaigns.texts import kernel
from fencepost import ir
from fencepost.model.executor import run
from fencepost.printer import print_kernel


def test_only_what_matters_stays() -> None:
    large = kernel(
        """
        kernel large(n, m):
            assume n >= 0
            assume m >= 0
            IDS = (3, 4)
            buffer s[2] in Vec
            buffer t[2] in Mat mutex (0, 1)

            section cube:
                c = 0
                for i in range(n):
                    for j in range(m):
                        if j >= 1 and i >= 0:
                            load t[c % 2] <- x @ MTE2
                            move s[c % 2] <- x @ FIX
                            set_cross_core IDS[c % 2] @ FIX
                        c = c + 1

            section vector:
                for i in range(n):
                    exp y <- s[i % 2] @ V
        """
    )

    def leaves_a_signal(k: ir.Kernel) -> bool:
        return bool(run(k, dict.fromkeys(k.parameters, 2)).leftovers)

    small = reduce(large, leaves_a_signal)
    assert print_kernel(small) == "kernel large():\n    section cube:\n        set_cross_core 3 @ FIX\n"


def test_reduction_keeps_the_property() -> None:
    def has_wait(k: ir.Kernel) -> bool:
        return any(isinstance(n, ir.WaitCross) for n in ir.walk(k))

    small = reduce(next(k for k in map(random_kernel, range(50)) if has_wait(k)), has_wait)
    assert has_wait(small)
    assert len(list(ir.walk(small))) <= 6


def test_a_predicate_that_fails_is_no_reduction() -> None:
    one = kernel("kernel one():\n    section cube:\n        set_cross_core 1 @ FIX\n")

    def broken(k: ir.Kernel) -> bool:
        raise ValueError

    assert reduce(one, broken) == one
