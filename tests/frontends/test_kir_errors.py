"""What does the reader say about a text with mistakes: place, words, and how many at once?"""

from __future__ import annotations

import pytest

from fencepost.findings import InputError
from fencepost.frontends.kir import read

HEAD = """\
kernel k(n):
    READY = (0, 1)
    LIMIT = 4
    buffer qk[2] in Vec
    buffer acc in Acc
    fifo down: cube -> vector, slots = 2
    ring ctx[4](slot, valid)
    section cube:
        for t in range(n):
            pass
"""
LINE = HEAD.count("\n") + 1


def errors(text: str) -> tuple[InputError, ...]:
    result = read(text, "k.kir")
    assert all(error.file == "k.kir" for error in result.errors)
    return result.errors


def said(text: str) -> list[tuple[int, int, str]]:
    return [(error.line, error.column, error.message) for error in errors(text)]


def in_section(line: str) -> tuple[int, str]:
    """Column and message of the one mistake in `line`, put into a cube section."""
    (error,) = errors(f"{HEAD}        {line}\n        sync_all\n")
    assert error.line == LINE
    assert error.excerpt == f"        {line}"
    return error.column - 8, error.message


def in_kernel(line: str) -> tuple[int, str]:
    """Column and message of the one mistake in `line`, put into a kernel."""
    (error,) = errors(f"{HEAD}    {line}\n    sync_all\n")
    assert error.line == LINE
    return error.column - 4, error.message


PIPES = "one of S, MTE1, MTE2, MTE3, M, V, FIX"


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("move acc <- x @", 16, f"expected a pipe after '@': {PIPES}; found the end of the line"),
        ("move acc <- x @ 3", 17, f"expected a pipe after '@': {PIPES}; found '3'"),
        ("move acc <- x @ FX", 17, f"expected a pipe after '@': {PIPES}; found 'FX'; did you mean 'FIX'?"),
        ("move acc <- x @ mte1", 17, f"expected a pipe after '@': {PIPES}; found 'mte1'; did you mean 'MTE1'?"),
        ("sync_src 0: V - MTE2", 15, "expected '->' after 'V', found '-'"),
        ("sync_src 0: V -> MTE4", 18, f"expected a pipe after '->': {PIPES}; found 'MTE4'; did you mean 'MTE3'?"),
        ("barrier", 8, f"expected a pipe after 'barrier': {PIPES}, ALL; found the end of the line"),
        ("move acc <- x FIX", 15, "expected '@', ',', '[' or 'part' after 'x', found 'FIX'"),
        ("move acc x @ FIX", 10, "expected ',', '<-', '[' or 'part' after 'acc', found 'x'"),
        ("wait_cros_core 3 @ FIX", 1, "unknown statement 'wait_cros_core'; did you mean 'wait_cross_core'?"),
        ("set_cross_core @ FIX", 16, "expected an expression after 'set_cross_core', found '@'"),
        ("set_cross_core 1 +", 19, "expected an expression after '+', found the end of the line"),
        ("set_cross_core 1 @ FIX mod = INTRA_BLOCK", 24,
         "'set_cross_core' takes no 'mod'; it can have mode and lane; did you mean 'mode'?"),
        ("set_cross_core 1 @ FIX mode = INTRA", 31,
         "expected a mode after 'mode =': one of INTRA_BLOCK, UNICAST_BLOCK, INTER_SUBBLOCK, INTER_BLOCK; "
         "found 'INTRA'; did you mean 'INTRA_BLOCK'?"),
        ("set_cross_core 1 @ FIX mode = INTRA_BLOCK mode = INTRA_BLOCK", 43, "'mode' is given twice"),
        ("set_cross_core 1 @ FIX phase = Final", 24, "'set_cross_core' takes no 'phase'; it can have mode and lane"),
        ("store out <- acc @ FIX phase = Finale", 32,
         "expected a phase after 'phase =': Partial or Final; found 'Finale'; did you mean 'Final'?"),
        ("store out <- acc @ FIX phase = AccFase.Final", 24,
         "a phase is of the family AccPhase or STPhase, not 'AccFase'; did you mean 'AccPhase'?"),
        ("store out <- acc @ FIX lanes = 2", 32,
         "expected the vector sub-cores after 'lanes =': one of both, 0, 1; found '2'"),
        ("for u in rnge(n):", 10,
         "expected 'pipeline', 'pipelined' or 'range' after 'in', found 'rnge'; did you mean 'range'?"),
        ("for u in range(n)", 18, "expected ':' after ')', found the end of the line"),
        ("if n = 3:", 6, "'=' does not compare; write '=='"),
        ("if n<-1:", 5, "'<-' is one sign; to compare with a negative value write '< -'"),
        ("else:", 1, "'else' without an 'if' above it"),
        ("elif n:", 1, "'elif' without an 'if' above it"),
        ("x = 3.5", 6, "a number is an integer, without a fraction"),
        ("x = 3abc", 5, "'3abc' is neither a number nor a name"),
        ("x = 3 $ 4", 7, "the character '$' (U+0024) has no meaning here"),
        ("x = \0", 5, "the character U+0000 has no meaning here"),
        ("x = 1\N{NO-BREAK SPACE}+ 2", 6, "the character U+00A0 NO-BREAK SPACE has no meaning here"),
        ("x = (1 + 2", 5, "this '(' is never closed"),
        ("x = min(1, READY[0)", 19, "expected ']' after '0', found ')'"),
        ("x = 18446744073709551616", 5, "this integer does not fit into 64 bits"),
        ("x = " + "9" * 5000, 5, "this integer does not fit into 64 bits"),
        ("in = 3", 1, "expected a statement; 'in' is a reserved word"),
        ("x = in", 5, "expected an expression after '='; 'in' is a reserved word"),
        ("p <- s @ V", 6, "expected tpop_from_aiv or tpop_from_aic after '<-' (a data operation begins with its name: "
         "OP DST <- SRC @ PIPE); found 's'"),
        ("unsupported why", 13, "expected a text in double quotes after 'unsupported', found 'why'"),
        ('unsupported "why', 13, "this text in double quotes is not closed on its line"),
        ("buffer b in GM", 1,
         "the declaration of buffer 'b' belongs to the kernel level; it cannot stand inside a section"),
        ("assume n > 0", 1, "'assume' belongs to the kernel level; it cannot stand inside a section"),
        ("T = (1, 2)", 1, "a tuple constant belongs to the kernel level; it cannot stand inside a section"),
        ("s = qk.nxt()", 8, "expected a cursor movement after '.': one of next, current, previous; found 'nxt'; "
         "did you mean 'next'?"),
        ("for u in pipeline(0, n, 1, stge = 2): ", 28,
         "'pipeline' takes one key, the stage: pipeline(start, stop, step, stage = F)"),
        ("lock 3 @ FIX", 1, "unknown statement 'lock'; did you mean 'mutex_lock'?"),
        ("unlock 3 @ FIX", 1, "unknown statement 'unlock'; did you mean 'mutex_unlock'?"),
        ("wait_event 0: V -> M", 1, "unknown statement 'wait_event'; did you mean 'sync_dst'?"),
        ("push x", 1, "unknown statement 'push'; did you mean 'tpush_to_aiv' or 'tpush_to_aic'?"),
        ("lock x <- y V", 13, "expected '@', ',', '[' or 'part' after 'y', found 'V'"),
        ("return", 1, "there is no 'return'; a section ends with its last statement, and 'break' leaves a loop"),
        ("load qk[qk.next()] <- x @ MTE2", 11,
         "a cursor must be assigned first: write 's = qk.next()' on a line of its own, then qk[s]"),
        ("set_cross_core qk.previous ( ) @ FIX", 18,
         "a cursor must be assigned first: write 's = qk.previous()' on a line of its own, then qk[s]"),
        ("x = 1 + ctx.slot", 12, "expected '(', '[' or the end of the line after 'ctx', found '.'"),
        ("load x <- y @ MTE2 at n", 23, "expected '(' after 'at', found 'n'"),
    ],
)  # fmt: skip
def test_one_mistake_in_a_section(line: str, column: int, message: str) -> None:
    if line.startswith("for u in pipeline("):
        line += "\n            pass"
        (error,) = errors(f"{HEAD}        {line}\n")
        assert (error.column - 8, error.message) == (column, message)
    else:
        assert in_section(line) == (column, message)


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("buffer b in Vecc", 13, "expected a memory space after 'in': one of GM, Mat, Vec, Left, Right, Acc, Bias, "
         "Scaling; found 'Vecc'; did you mean 'Vec'?"),
        ("buffer b Vec", 10, "expected '[' or 'in' after 'b', found 'Vec'"),
        ("buffer b in Vec at", 19, "expected an expression after 'at', found the end of the line"),
        ("buffer b in Vec size 8 size 8", 24, "'size' is given twice"),
        ("buffer b in Vec stride 8", 25, "expected 'rows' after '8', found the end of the line"),
        ("buffer b in Vec shred", 17, "expected 'at', 'mutex', 'shared', 'size', 'stride' or the end of the line after "
         "'Vec', found 'shred'; did you mean 'shared'?"),
        ("bufer b in Vec", 1, "unknown statement 'bufer'; did you mean 'buffer'?"),
        ("fifo f: cube -> cube, slots = 2", 17, "a FIFO leads from one core kind to the other, not from cube to cube"),
        ("fifo f: vector -> cube", 23, "expected ',' after 'cube', found the end of the line"),
        ("fifo f: vector -> cube, id = 2", 1, "a fifo needs its number of slots: ', slots = N'"),
        ("fifo f: vector -> cube, slots = 2, lanes = 3", 44,
         "expected the number of vector sub-cores after 'lanes =': 1 or 2"),
        ("fifo f: vektor -> cube, slots = 2", 9, "expected a core kind after ':': cube or vector; found 'vektor'; "
         "did you mean 'vector'?"),
        ("target a4", 8, "expected a target after 'target': one of a5, a3, a2, gpu; found 'a4'; did you mean 'a5'?"),
        ("option auto_mutex = of", 21,
         "expected a value after 'auto_mutex =': on or off; found 'of'; did you mean 'off'?"),
        ("option credit = both", 8, "expected an option after 'option': auto_mutex or credits; found 'credit'; "
         "did you mean 'credits'?"),
        ("sectoin vector:", 1, "unknown statement 'sectoin'; did you mean 'section'?"),
        ("section vectr:", 9, "expected a core kind after 'section': cube or vector; found 'vectr'; "
         "did you mean 'vector'?"),
        ("kernel other():", 1, "a kernel header must begin in column 1"),
        ("T = ((1, 2), 3)", 6, "a constant is an integer or a flat tuple of integers"),
    ],
)  # fmt: skip
def test_one_mistake_in_a_kernel(line: str, column: int, message: str) -> None:
    block = "\n        pass\n" if line.endswith(":") else "\n"
    (error,) = errors(f"{HEAD}    {line}{block}")
    assert (error.line, error.column - 4, error.message) == (LINE, column, message)


@pytest.mark.parametrize("head", ["while n > 0:", "while n:", "while (n > 0 and n < 4):", "while true:", "while:"])
def test_there_is_no_while(head: str) -> None:
    (error,) = errors(f"{HEAD}        {head}\n            n = n - 1\n            x = x\n        sync_all\n")
    message = "there is no 'while'; write 'for t in range(N):' and leave the loop with 'break'"
    assert (error.line, error.column, error.message) == (LINE, 9, message)


def test_words_of_other_languages_can_name_operations() -> None:
    text = "kernel k():\n  section cube:\n    lock while <- return, wait @ M\n    x = lock\n    lock = 3\n"
    assert ["'lock' may be unset here" in e.message for e in errors(text)] == [True]
    assert not errors(text.replace("    x = lock\n", ""))


def test_parameters_have_places() -> None:
    text = "kernel k(n, m, n, block):\n  section cube:\n    x = = 1\n    y = n + m\n"
    assert said(text) == [
        (1, 16, "'n' is already declared as a parameter"),
        (1, 19, "'block' is built in (the block index); choose another name"),
        (3, 9, "expected an expression after '=', found '='"),
    ]


def test_two_kernels_of_one_name() -> None:
    text = "kernel one():\n  pass\n\nkernel two():\n  pass\n\nkernel one():\n  pass\nkernel one():\n  x = =\n"
    result = read(text, "k.kir")
    assert [(kernel.name, kernel.span.line) for kernel in result.kernels] == [("one", 1), ("two", 4)]
    message = "there is a kernel 'one' already, on line 1; choose another name"
    assert [(e.line, e.column, e.message) for e in result.errors][:2] == [(7, 8, message), (9, 8, message)]
    assert not read(text.split("\nkernel two")[0], "k.kir").errors, "each text has names of its own"


def test_all_mistakes_of_a_file_at_once() -> None:
    text = """\
kernel one(n):
    READY = (0, 1
    buffer qk[2] in Vecc
    section cube:
        for t in rnge(n):
            wait_cros_core READY[t % 2] @ FIX
            move qk[t % 2] <- x @ FX
        set_cross_core REDY[0] @ FIX
        z = undefined

kernel two(n):
    section cube:
        pass

kernel three(n):
    LIMIT = 3
    section cube:
        x = LIMT
"""
    result = read(text, "k.kir")
    assert [kernel.name for kernel in result.kernels] == ["two"]
    assert [(error.line, error.column, error.message.split(":")[0]) for error in result.errors] == [
        (2, 13, "this '(' is never closed"),
        (3, 21, "expected a memory space after 'in'"),
        (5, 18, "expected 'pipeline', 'pipelined' or 'range' after 'in', found 'rnge'; did you mean 'range'?"),
        (6, 13, "unknown statement 'wait_cros_core'; did you mean 'wait_cross_core'?"),
        (7, 35, "expected a pipe after '@'"),
        (8, 24, "unknown tuple 'REDY'"),
        (9, 13, "unknown name 'undefined' in the cube section"),
        (18, 13, "unknown name 'LIMT' in the cube section; did you mean 'LIMIT'?"),
    ]


def test_a_bad_header_costs_one_message() -> None:
    text = "kernel k(n):\n  section cube:\n    if n >:\n      sync_all\n    elif n:\n      pass\n    else:\n"
    assert said(text + "      pass\n") == said(text + "      sync_all\n    sync_all\n")
    text += "      pass\n"
    assert said(text) == [(3, 11, "expected an expression after '>', found ':'")]
    text = "kernel k(n:\n  section cube:\n    sync_all\n"
    assert said(text) == [(1, 11, "expected ',' or ')' after 'n', found ':'")]


def test_names_of_an_unreadable_line_are_not_reported_again() -> None:
    text = "kernel k():\n  READY = 0 1\n  section cube:\n    x = = 1\n    set_cross_core READY + x @ FIX\n"
    assert [error.line for error in errors(text)] == [2, 4]
    text = "kernel k(n):\n  section cube:\n    for t in rage(n):\n      c = t\n    y = c\n"
    assert [error.line for error in errors(text)] == [3]
    text = "kernel k():\n  fifo f: cube > vector, slots = 2\n  section cube:\n    tpush_to_aiv x\n"
    assert [error.line for error in errors(text)] == [2]


def test_missing_blocks() -> None:
    message = "expected an indented block after this line ('{}' opens one); write 'pass' for an empty one"
    text = "kernel k(n):\n  section cube:\n    for t in range(n):\n    sync_all\n    if n:\n  section vector:\n"
    assert said(text) == [
        (3, 23, message.format("for")),
        (5, 10, message.format("if")),
        (6, 18, message.format("section")),
    ]
    assert said("kernel k():\n") == [(1, 12, message.format("kernel"))]
    assert said("kernel k():\nkernel l():\n  pass") == [(1, 12, message.format("kernel"))]


def test_indentation() -> None:
    text = "kernel k(n):\n    section cube:\n            sync_all\n        pass\n        pass\n    sync_all\n"
    assert said(text) == [(4, 9, "this indentation matches no enclosing block (they begin in columns 1, 5, 13)")]
    text = "kernel k(n):\n    sync_all\n      pass\n"
    assert said(text) == [(3, 7, "unexpected indentation: the line above opens no block")]
    text = "kernel k(n):\n    sync_all\n  \tpass\n"
    assert (3, 3, "a tab after spaces in the indentation") in said(text)


@pytest.mark.parametrize(("number", "margin"), [(3, 7), (4, 3), (4, 5), (4, 6), (5, 7), (5, 9), (6, 7), (7, 3), (7, 1)])
def test_one_wrong_indentation_costs_one_message(number: int, margin: int) -> None:
    lines = [(0, "kernel k(n):"), (2, "section cube:"), (4, "if n:"), (8, "sync_all"), (4, "else:"), (8, "pass"),
             (8, "sync_all"), (2, "sync_all")]  # fmt: skip
    lines[number] = (margin, lines[number][1])
    text = "".join(f"{' ' * margin}{line}\n" for margin, line in lines)
    assert len(errors(text)) <= 1, text


def test_text_outside_kernels() -> None:
    assert said("x = 3\ny = 4\nkernel k():\n  pass\n") == [(1, 1, "expected 'kernel NAME(...):' before any other text")]
    message = "expected 'kernel NAME(...):' here, or an indented line of the kernel above"
    text = "kernel k():\n  if n:\n    pass\nsync_all\n    pass\nfoo bar\n  pass\n"
    assert said(text) == [(2, 6, "unknown name 'n' in code outside the sections, which the cube runs too"),
                          (4, 1, message), (6, 1, message)]  # fmt: skip
    assert said("kernal k():\n  sync_al l\n") == [
        (1, 1, "expected 'kernel NAME(...):' here, found 'kernal'; did you mean 'kernel'?"),
        (2, 3, "unknown statement 'sync_al'; did you mean 'sync_all'?"),
    ]
    assert said(" kernel k():\n  sync_all\n") == [(1, 2, "a kernel header must begin in column 1")]


def test_unclosed_brackets_swallow_nothing() -> None:
    text = "kernel k(n):\n  section cube:\n    x = f(1,\n    y = g(\n    for t in range(n:\n      pass\n    z = w\n"
    assert [(error.line, error.column) for error in errors(text)] == [(3, 10), (4, 10), (5, 21), (7, 9)]
    text = "kernel k(n):\n  section cube:\n    x = f(1,\n        2 3,\n        4)\n    y = w\n"
    assert [(error.line, error.column) for error in errors(text)] == [(4, 11), (6, 9)]
