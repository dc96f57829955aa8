"""How are many sources checked at once, in processes of their own (z3 terms can't cross threads)?"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fencepost.checking import Outcome, check_source, failed
from fencepost.discover import Source
from fencepost.findings import InputError
from fencepost.frontends.registry import front_end_for
from fencepost.options import CheckOptions

if TYPE_CHECKING:  # costs as much as a small check, and most runs need no second process
    from concurrent.futures import Future, ProcessPoolExecutor


def check_sources(
    sources: Sequence[Source | InputError],
    options: CheckOptions,
    only: Sequence[str] = (),
    jobs: int = 0,
    remember: bool = False,
) -> Iterator[tuple[str, Outcome]]:
    """Yield (file, outcome) for each source, in order.

    `jobs` is the number of processes, 0 for one per processor.  With `remember`, answers of earlier runs are used, and
    new ones kept.  A process that dies (out of memory, a crash inside the
    solver) costs the file that it was at, and no other.
    """
    work = [s for s in sources if isinstance(s, Source) and (s.named or front_end_for(s.text, s.file) is not None)]
    jobs = min(jobs or os.cpu_count() or 1, len(work))
    if jobs <= 1:
        for source in sources:
            yield (
                source.file,
                failed(source) if isinstance(source, InputError) else _check(source, options, only, remember),
            )
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(jobs, initializer=_in_worker) as pool:
        try:
            longest = sorted(work, key=lambda s: len(s.text), reverse=True)  # first, so that none ends alone
            futures = {id(s): pool.submit(_check, s, options, only, remember) for s in longest}
            for source in sources:
                if isinstance(source, InputError):
                    yield source.file, failed(source)
                elif id(source) in futures:
                    yield source.file, _result(futures[id(source)], source, options, only, remember)
                else:
                    yield source.file, Outcome()
        except KeyboardInterrupt:
            _end(pool)
            raise


def _in_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _check(source: Source, options: CheckOptions, only: Sequence[str], remember: bool) -> Outcome:
    if not remember:
        return check_source(source, options, only)
    from fencepost.cache import through

    return through(check_source, source, options, only)


def _result(
    future: Future[Outcome], source: Source, options: CheckOptions, only: Sequence[str], remember: bool
) -> Outcome:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    try:
        return future.result()
    except BrokenProcessPool:  # this file or another one killed a process: find out alone
        with ProcessPoolExecutor(1, initializer=_in_worker) as alone:
            try:
                return alone.submit(_check, source, options, only, remember).result()
            except BrokenProcessPool:
                message = "the process that checked this file died (out of memory, or a crash inside the solver)"
                return failed(InputError(source.file, 0, 0, message))


def _end(pool: ProcessPoolExecutor) -> None:
    from multiprocessing import active_children

    pool.shutdown(wait=False, cancel_futures=True)
    for child in active_children():
        child.terminate()
