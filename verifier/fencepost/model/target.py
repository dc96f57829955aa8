"""Targets: which values of the execution model depend on the chip?

Where public sources disagree the value is a field here, never a constant in code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fencepost.ir import MODES, Mode


@dataclass(frozen=True, slots=True)
class Target:
    """One chip as the model sees it.

    `cross_ids`, `flag_ids` and `mutex_ids` are the numbers of legal ids, counted from 0.  `capacity` is the largest
    number of signals that one cross-core channel can hold pending.  `frees_at` says when a FIFO slot becomes free.
    `signals`: cross-core events count, or a second set before the wait merges with the first.  `cores`: there are cores
    and pipes that run apart; without them a kernel is one program in order, and the six points have nothing to say.
    """

    name: Literal["a5", "a3", "a2", "gpu"]
    cross_ids: int
    modes: tuple[Mode, ...]
    has_mutex: bool
    has_unit_flag: bool
    frees_at: Literal["pop", "tfree"]
    flag_ids: int = 8
    mutex_ids: int = 32
    reserved_ids: tuple[int, ...] = (11, 12, 13, 14)
    capacity: int = 15
    signals: Literal["counting", "binary"] = "counting"
    cores: bool = True


_A3_MODES: tuple[Mode, ...] = ("INTRA_BLOCK", "INTER_SUBBLOCK", "INTER_BLOCK")

TARGETS: dict[str, Target] = {
    "a5": Target("a5", 16, MODES, has_mutex=True, has_unit_flag=True, frees_at="tfree"),
    "a3": Target("a3", 11, _A3_MODES, has_mutex=False, has_unit_flag=False, frees_at="pop"),
    "a2": Target("a2", 11, _A3_MODES, has_mutex=False, has_unit_flag=False, frees_at="pop"),
    "gpu": Target("gpu", 0, (), has_mutex=False, has_unit_flag=False, frees_at="pop", cores=False),
}
