"""The engine: values of many replicates, on threads, processes or clusters.

It knows draws and the protocol, not the estimators. A draw depends on its number alone, so values
have the same bits however replicates are cut into tasks and whoever evaluates them.

`plan_replicates` prepares statistics for draws, and `evaluate` computes their values.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from threading import Event, main_thread
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fastece.data.samples import Sample
from fastece.estimators.base import Statistic
from fastece.estimators.draws import Labels, Rows
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32
from fastece.resampling.draws import ReplicateDraws
from fastece.resampling.problem import Problem

# Called with the number of tasks of a call that are done and the number of all; they show progress.
progress_callbacks: list[Callable[[int, int], None]] = []

# Bytes of draws that are made at once: many replicates of few rows share the 30 us that a call
# costs, and they are read again before they have left the cache.
BATCH_BYTES = 2**19
# Resampled rows that the calling thread reads itself: some 5 ms. Another thread would cost 1 ms,
# and what lasts no longer need not be interrupted.
MAX_INLINE_ROWS = 2**22
# Resampled rows of one task on a thread of our own: some 50 ms.
TASK_ROWS = 2**25
# Tasks of each thread that are submitted at a time. Not all: thousands take as long as some tasks,
# and an interrupt that falls into `submit` is a RuntimeError of the standard library's locks.
TASKS_AHEAD = 8
# Threads have so many tasks each, if these are not larger than `TASK_ROWS`.
TASKS_PER_THREAD = 4
# Executors get larger tasks, since the data may be sent along, but enough of them for many workers.
SENT_TASK_ROWS = 2**27
MIN_SENT_TASKS = 16
MAX_SENT_TASKS = 64
# Bytes that all threads together may take beyond what one of them takes: a block of a million rows
# is 32 MB, so 64 threads would take gigabytes.
MAX_EXTRA_BYTES = 2**30
# A batch is in memory up to four times (measured): as labels, which are twice as large, as the
# multiplicities of a class, and in order of the scores.
COPIES_OF_BATCH = 4
# A pair of rows takes this part of the time of a row, 1 / 8.
PAIRS_PER_ROW = 8


class Workers(NamedTuple):
    """Who evaluates replicates: up to `jobs` threads, or an executor."""

    jobs: int = 1
    executor: Any = None


ONE_THREAD = Workers()


# --- prepared statistics --------------------------------------------------------------------


class PreparedStatistic(NamedTuple):
    """A statistic that was prepared on one problem.

    Attributes
    ----------
    problem : int
        The number of the problem.
    sample : Sample or None
        The rows in the order that the statistic needs, of which lists and labels are given to
        statistics that evaluate them one by one; None where the plan is enough.
    order : (n,) int32 array or None
        The array by which draws follow that order; None where it is the order of the draws.
    statistic : Statistic
    plan : object
        The result of ``statistic.prepare``.
    """

    problem: int
    sample: Sample | None
    order: I32 | None
    statistic: Statistic
    plan: Any

    def values(self, draws: ReplicateDraws, drawn: NDArray[Any], replicates: slice) -> F64:
        """Compute the values (..., R) of some of the replicates that were drawn.

        Statistics that take the kind of draws get all that were drawn, in whole blocks. Others,
        which evaluate replicates one after another, get no replicate in vain.
        """
        takes_blocks = draws.kind in self.statistic.native
        count = draws.replicates_per_block * len(drawn)
        if not takes_blocks:
            drawn = draws.select(drawn, replicates)
            count = replicates.stop - replicates.start
        columns = (drawn,) if self.sample is None else (drawn, self.sample)
        values = np.asarray(self.statistic.values(self.plan, draws.kind(*columns)), np.float64)
        if values.ndim == 0 or values.shape[-1] != count:
            name = type(self.statistic).__name__
            raise ValueError(f"{name}.values: must return {count} values, got shape {values.shape}")
        return values[..., replicates] if takes_blocks else values


@dataclass(frozen=True)
class Replicates:
    """Draws and the members to evaluate on them, problem by problem."""

    draws: ReplicateDraws
    members: list[PreparedStatistic]

    @property
    def cost(self) -> int:
        """Number of rows that all members read for one replicate."""
        rows = self.draws.n
        n_pairwise = sum(bool(member.statistic.reads_pairs) for member in self.members)
        return rows * (len(self.members) + n_pairwise * rows // PAIRS_PER_ROW)

    @property
    def are_fast(self) -> bool:
        """Whether all statistics take many replicates at once.

        Batches of others are small, since nothing stops one that has begun.
        """
        return all(self.draws.kind in member.statistic.native for member in self.members)

    @property
    def bytes_per_replicate(self) -> int:
        """Memory of the draws of one replicate."""
        bytes_per_row: int = self.draws.kind.bytes_per_row
        return bytes_per_row * self.draws.n

    @property
    def batch(self) -> int:
        """Number of replicates drawn at once: whole blocks, unless draws are lists."""
        if not self.are_fast:
            return REPLICATES
        per_block = self.draws.replicates_per_block
        blocks = BATCH_BYTES // (per_block * self.bytes_per_replicate)
        return max(1, blocks) * per_block

    def values(self, first: int, last: int, stop: Event | None = None) -> F64:
        """Compute the values (members, ..., last - first) of a range, in batches.

        `stop` is set when nobody waits for them any more.
        """
        if first == last:
            return np.empty((len(self.members), 0))
        batches = []
        for start, end in ranges(first, last, self.batch):
            values = []
            for value in self._values_of_members(start, end):
                if stop is not None and stop.is_set():
                    raise CancelledError
                values.append(value)
            batches.append(np.array(values))
        return np.concatenate(batches, axis=-1)

    def _values_of_members(self, first: int, last: int) -> Iterator[F64]:
        """Yield the values of each member on some replicates."""
        draws = self.draws
        per_block = draws.replicates_per_block
        blocks = range(first // per_block, -(-last // per_block))
        first_drawn = per_block * blocks.start
        replicates = slice(first - first_drawn, last - first_drawn)
        drawn = draws.make(blocks.start, len(blocks))
        for problem, members in groupby(self.members, attrgetter("problem")):
            of_problem = draws.of_problem(drawn, problem)
            by_score: Any = None  # shared by the members that need this order
            for member in members:
                if member.order is None:
                    yield member.values(draws, of_problem, replicates)
                    continue
                if by_score is None:
                    by_score = draws.reorder(of_problem, member.order)
                yield member.values(draws, by_score, replicates)


def plan_replicates(
    statistics: Sequence[Statistic],
    problems: Sequence[Problem],
    draws: ReplicateDraws,
    sizes: Sequence[int],
) -> Replicates:
    """Prepare every statistic on every problem, for draws of so many of its rows.

    The members are ordered by problem.
    """
    members = [
        prepare_statistic(statistic, k, problem, draws, sizes[k])
        for k, problem in enumerate(problems)
        for statistic in statistics
    ]
    return Replicates(draws, members)


def prepare_statistic(
    statistic: Statistic, number: int, problem: Problem, draws: ReplicateDraws, size: int
) -> PreparedStatistic:
    """Prepare a statistic on the problem of a number, for draws of `size` of the rows."""
    sample = problem.sample
    order = None
    if statistic.needs_sorted:
        sample = problem.ordered
        order = draws.score_order(problem)
    if not statistic.needs_vectors:
        sample = replace(sample, vectors=None)
    plan = statistic.prepare(sample, size)
    # Other processes are sent no sample, with its class vectors, that nobody looks at.
    is_read = draws.kind in (Labels, Rows) and draws.kind not in statistic.native
    return PreparedStatistic(number, sample if is_read else None, order, statistic, plan)


# --- evaluation -----------------------------------------------------------------------------


def ranges(first: int, last: int, step: int) -> list[tuple[int, int]]:
    """Cut a range of replicates at the multiples of `step`."""
    begin = first - first % step
    return [(max(start, first), min(start + step, last)) for start in range(begin, last, step)]


def evaluate(replicates: Replicates, first: int, last: int, workers: Workers = ONE_THREAD) -> F64:
    """Compute the values (members, ..., last - first) of a range of replicates.

    They are worked out in the calling thread if they are few, else on threads or on an executor.
    """
    cost = replicates.cost * (last - first)
    if first == last:
        return replicates.values(first, last)
    if workers.executor is not None:
        count = min(max(cost // SENT_TASK_ROWS, MIN_SENT_TASKS), MAX_SENT_TASKS)
        return run(replicates, first, last, cost // count, workers.executor.submit)
    if cost <= MAX_INLINE_ROWS and replicates.are_fast:
        return replicates.values(first, last)
    if not main_thread().is_alive():  # after whose end no thread can begin
        return replicates.values(first, last)
    return evaluate_on_threads(replicates, first, last, workers.jobs)


def evaluate_on_threads(replicates: Replicates, first: int, last: int, jobs: int) -> F64:
    """Compute the values of a range of replicates on up to `jobs` threads of our own."""
    from concurrent.futures import ThreadPoolExecutor

    from fastece.kernels.compiling import without_interrupts

    batch_bytes = COPIES_OF_BATCH * replicates.batch * replicates.bytes_per_replicate
    n_threads = min(jobs, 1 + MAX_EXTRA_BYTES // batch_bytes)
    cost = replicates.cost * (last - first)
    task = min(TASK_ROWS, cost // (TASKS_PER_THREAD * n_threads))
    stop = Event()
    pool = ThreadPoolExecutor(n_threads)
    # A thread whose beginning is interrupted may hold its lock, and wait for it, for ever.
    start = without_interrupts()(pool.submit)
    # This thread only waits, so that it can be interrupted at once, and tells the others to stop.
    try:
        submit_task = partial(submit, start, stop)
        return run(replicates, first, last, task, submit_task, TASKS_AHEAD * n_threads)
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


def submit(start: Any, stop: Event, function: Any, *args: Any) -> Future[F64]:
    """Start a task on a pool's threads, or run it here where the pool refuses it."""
    try:
        return cast(Future[F64], start(function, *args, stop=stop))
    except RuntimeError as error:
        if "shutdown" not in str(error):  # of the interpreter, whose main thread ends
            raise
        future: Future[F64] = Future()
        future.set_result(function(*args))
        return future


def run(
    replicates: Replicates, first: int, last: int, task: int, submit: Any, ahead: int | None = None
) -> F64:
    """Submit blocks of replicates as tasks, and collect their values in order.

    A task is whole blocks for which members read about `task` rows, and there are at most `ahead`
    of them at a time. Tasks that have not begun are cancelled if one fails.
    """
    step = max(1, task // (replicates.cost * REPLICATES)) * REPLICATES
    tasks = ranges(first, last, step)
    waiting = iter(tasks)
    futures: deque[Any] = deque()
    values = []
    try:
        for done in range(1, len(tasks) + 1):
            for start, end in islice(waiting, None if ahead is None else ahead - len(futures)):
                futures.append(submit(Replicates.values, replicates, start, end))
            values.append(futures.popleft().result())
            for callback in progress_callbacks:
                callback(done, len(tasks))
        return np.concatenate(values, axis=-1)
    finally:
        for future in futures:
            future.cancel()
