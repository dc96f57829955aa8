"""The documented ways to get phases wrong, and right, in kernel IR and in PyPTO-Pro source."""

from __future__ import annotations

from textwrap import indent

import pytest

from fencepost import ir
from fencepost.checking import check_source
from fencepost.discover import Source
from fencepost.findings import Finding, KernelReport, Row, Verdict
from fencepost.options import CheckOptions

SOURCE = """import pypto_pro.language as pl

TILE = 128


@pl.jit(auto_mutex=True)
def kernel(
    a: pl.Tensor[[pl.DYNAMIC, pl.DYNAMIC], pl.DT_FP16],
    b: pl.Tensor[[pl.DYNAMIC, pl.DYNAMIC], pl.DT_FP16],
    out: pl.Tensor[[pl.DYNAMIC, pl.DYNAMIC], pl.DT_FP32],
):
    kt = a.shape[1]
    mt = a.shape[0]
    left = pl.make_tile_group(
        type=pl.TileType(shape=[TILE, TILE], dtype=pl.DT_FP16, target_memory=pl.MemorySpace.Left),
        addrs=[0x0, 0x8000], mutex_ids=[0, 1])
    right = pl.make_tile_group(
        type=pl.TileType(shape=[TILE, TILE], dtype=pl.DT_FP16, target_memory=pl.MemorySpace.Right),
        addrs=[0x0, 0x8000], mutex_ids=[2, 3])
    ac = pl.make_tile_group(
        type=pl.TileType(shape=[TILE, TILE], dtype=pl.DT_FP32, target_memory=pl.MemorySpace.Acc),
        addrs=[0x0, 0x10000], mutex_ids=[4, 5])
    vec = pl.make_tile_group(
        type=pl.TileType(shape=[TILE, TILE], dtype=pl.DT_FP32, target_memory=pl.MemorySpace.Vec),
        addrs=[0x0], mutex_ids=[6])
    with pl.section_cube():
        c = ac.next()
        v = vec.current()
        l = left.next()
        r = right.next()
"""

KIR = """kernel kernel(kt, mt):
    assume kt >= {least}
    assume mt >= 0
    buffer ac[2] in Acc mutex (4, 5)
    buffer vec in Vec

    section cube:
        c = ac.next()
"""

BLOCKS = """for k in range(kt):
    if k == 0:
{alone}
    elif k == kt - 1:
        more Final
    else:
        more Partial
"""
ONLY_PARTIAL = BLOCKS.format(alone="        first Partial")
WITH_ALONE = BLOCKS.format(
    alone="        if kt == 1:\n            first Final\n        else:\n            first Partial"
)
UNTIL_LAST = "for k in range(kt):\n    if k == 0:\n        first Partial\n    else:\n        more Partial\n"


def in_source(body: str) -> str:
    """The body in PyPTO-Pro; blocks are 128 wide there, so `kt` counts elements."""
    text = body.replace("range(kt)", "pl.range(0, kt, TILE)").replace("range(mt)", "pl.range(0, mt, TILE)")
    text = text.replace("k == kt - 1", "k + TILE >= kt").replace("kt == 1", "kt <= TILE")
    lines = []
    for line in text.splitlines():
        space = line[: len(line) - len(line.lstrip())]
        word, _, phase = line.strip().partition(" ")
        acc = f", phase=pl.AccPhase.{phase}" if phase else ""
        st = f", phase=pl.STPhase.{phase.removeprefix('AccPhase.')}" if phase else ""
        if phase.startswith("AccPhase"):
            st = f", phase=pl.{phase}"
        calls = {
            "first": f"pl.matmul(c, l, r{acc})",
            "more": f"pl.matmul_acc(c, c, l, r{acc})",
            "store": f"pl.store(out, c, [0, 0]{st})",
            "move": f"pl.move(v, c, acc_to_vec_mode=pl.AccToVecMode.SingleModeVec0{st})",
            "next": "c = ac.next()",
        }
        lines.append(space + calls.get(word, line.strip()))
    return SOURCE + indent("\n".join(lines), "        ") + "\n"


def in_kir(body: str, least: int) -> str:
    lines = []
    for line in body.splitlines():
        space = line[: len(line) - len(line.lstrip())]
        word, _, phase = line.strip().partition(" ")
        given = f" phase = {phase}" if phase else ""
        calls = {
            "first": f"matmul ac[c] <- a, b @ M{given}",
            "more": f"matmul_acc ac[c] <- ac[c], a, b @ M{given}",
            "store": f"store out <- ac[c] @ FIX{given}",
            "move": f"move vec <- ac[c] @ FIX lanes = 0{given}",
            "next": "c = ac.next()",
        }
        lines.append(space + calls.get(word, line.strip()))
    return KIR.format(least=least) + indent("\n".join(lines), "        ") + "\n"


def phases(report: KernelReport) -> tuple[Verdict, list[Finding]]:
    """The verdict of the row (the report has none where no operation has a phase), and its findings."""
    verdict = next((c.verdict for c in report.checks if c.row is Row.PHASES), Verdict.NOT_APPLICABLE)
    return verdict, [f for f in report.findings if f.row is Row.PHASES]


def checked(body: str, language: str, least: int) -> tuple[Verdict, list[Finding]]:
    text = in_kir(body, least) if language == "kir" else in_source(body)
    options = CheckOptions() if language == "kir" or not least else CheckOptions(assume=at_least(least))
    outcome = check_source(Source(f"k.{'kir' if language == 'kir' else 'py'}", text), options)
    assert not outcome.report.errors
    (report,) = outcome.report.kernels
    return phases(report)


def at_least(blocks: int) -> tuple[ir.Expr, ...]:
    return (ir.Compare(ir.Name("kt"), ((">=", ir.Int(128 * (blocks - 1) + 1)),)),)


FAULTY = [
    ("never Final", "first Partial\nstore Final", "802", 0),
    ("never Final in a loop", UNTIL_LAST + "store Final", "802", 1),
    ("one block never Final", ONLY_PARTIAL + "store Final", "802", 1),
    ("one block never Final, move", ONLY_PARTIAL + "move Final", "802", 1),
    ("no block at all", WITH_ALONE + "store Final", "802", 0),
    ("stale read", "first Final\nstore", "801", 0),
    ("stale read by a move", WITH_ALONE + "move", "801", 1),
    ("reader waits, sum has no phase", "first\nstore Final", "802", 0),
    ("store Partial in a loop", "for t in range(mt):\n    first Final\n    store Partial", "803", 0),
    ("several readers, none Final", "first Final\nmove Partial\nstore Partial", "803", 0),
    ("AccPhase on a store", "first Final\nstore AccPhase.Final", "804", 0),
    ("two chains, the first one Final", "first Partial\nmore Final\nmore Final\nstore Final", "807", 0),
]

RIGHT = [
    ("plain", "first\nstore", 0),
    ("plain in a loop", "for t in range(mt):\n    first\n    store", 0),
    ("single", "first Final\nstore Final", 0),
    ("blocks", WITH_ALONE + "store Final", 1),
    ("blocks, move", WITH_ALONE + "move Final", 1),
    ("two blocks and more", ONLY_PARTIAL + "store Final", 2),
    ("last block behind the loop", "first Partial\nfor k in range(kt):\n    more Partial\nmore Final\nstore Final", 0),
    ("several readers", WITH_ALONE + "move Partial\nstore Partial\nstore Final", 1),
    ("one accumulator again and again", f"for t in range(mt):\n{indent(WITH_ALONE, '    ')}    store Final", 1),
    ("rotating", f"for t in range(mt):\n    next\n{indent(WITH_ALONE, '    ')}    store Final", 1),
    ("two chains", f"first Partial\nmore Partial\n{UNTIL_LAST.replace('first', 'more')}more Final\nstore Final", 0),
    ("read where it ends", WITH_ALONE.replace("more Final", "more Final\n        store Final").replace(
        "first Final", "first Final\n            store Final"), 0),
]  # fmt: skip


@pytest.mark.parametrize("language", ["kir", "source"])
@pytest.mark.parametrize(("body", "code", "least"), [c[1:] for c in FAULTY], ids=[c[0] for c in FAULTY])
def test_faulty(body: str, code: str, least: int, language: str) -> None:
    verdict, found = checked(body, language, least)
    assert verdict is Verdict.REFUTED
    assert code in [f.code for f in found]


@pytest.mark.parametrize("language", ["kir", "source"])
@pytest.mark.parametrize(("body", "least"), [c[1:] for c in RIGHT], ids=[c[0] for c in RIGHT])
def test_right(body: str, least: int, language: str) -> None:
    verdict, found = checked(body, language, least)
    assert not found
    assert verdict in (Verdict.PROVED, Verdict.NOT_APPLICABLE)
    assert (verdict is Verdict.PROVED) == ("Final" in body)


@pytest.mark.parametrize(("language", "expected"), [("kir", 1), ("source", 1)])
def test_one_block_is_the_smallest_witness(language: str, expected: int) -> None:
    verdict, found = checked(ONLY_PARTIAL + "store Final", language, 1)
    assert verdict is Verdict.REFUTED
    (finding,) = found
    assert finding.code == "802" and finding.replayed and finding.witness is not None
    assert dict(finding.witness.values)["kt"] == expected
