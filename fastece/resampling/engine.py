"""The engine: values of many replicates, on threads, processes or clusters.

It knows draws and the protocol, not the estimators. A draw depends on its number alone, so values
have the same bits however replicates are cut into tasks and whoever evaluates them.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, islice
from operator import attrgetter
from threading import Event, main_thread
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fastece.data.samples import Sample, in_order
from fastece.estimators.base import Counts, Rows, Statistic
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32
from fastece.resampling.draws import AnyDraws, RowDraws

# Told how many tasks of a call are done, and how many there are: whoever shows that to a user.
progress_callbacks: list[Callable[[int, int], None]] = []

# Bytes of draws that are made at once: many replicates of few rows share what a call costs (30 us),
# and they are read again before they have left the cache.
BATCH = 2**19
# Resampled rows that the calling thread reads itself: some 5 ms. Another thread would cost 1 ms,
# and what lasts no longer need not be interrupted.
INLINE = 2**22
# Resampled rows of one task on a thread of our own: some 50 ms.
TASK = 2**25
# Tasks of each thread that are submitted at a time. Not all: thousands take as long as some tasks,
# and an interrupt that falls into `submit` is a RuntimeError of the standard library's locks.
AHEAD = 8
# Executors get larger tasks, since the data may be sent along, but enough of them for many workers.
SENT_TASK = 2**27
LEAST_SENT, MOST_SENT = 16, 64
# Bytes that all threads together may take beyond what one of them takes: a block of a million rows
# is 32 MB, so 64 threads would take gigabytes. A batch is in memory up to four times (measured): as
# labels, which are twice as large, as the multiplicities of a class, and in order of the scores.
MORE_MEMORY, COPIES = 2**30, 4


class Problem:
    """A problem as it is, and sorted by score for estimators that need it."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample

    @cached_property
    def order(self) -> I32:
        """Rows in increasing order of the score."""
        return in_order(self.sample.s)[1].astype(np.int32)

    @cached_property
    def place(self) -> I32:
        """Position of each row in that order."""
        place = np.empty_like(self.order)
        place[self.order] = np.arange(place.size, dtype=np.int32)
        return place

    @cached_property
    def ordered(self) -> Sample:
        """Sample in that order."""
        return self.sample.where(self.order)


class PreparedStatistic(NamedTuple):
    """A statistic prepared on one problem, with its sample in the order of `order`.

    For draws in blocks the row at each position, for lists of rows the position of each row; None
    where that is the order of the draws. The sample is None where the plan is enough.
    """

    problem: int
    sample: Sample | None
    order: I32 | None
    statistic: Statistic
    plan: Any

    def values(self, drawn: NDArray[Any], kind: type, inside: slice) -> F64:
        """Compute the values (..., R) of the replicates `inside` some draws.

        They are the counts or labels (G, n, 32) of 32 G replicates, or the rows (R, size) of all.
        """
        is_whole = kind is Rows or kind in self.statistic.native
        if not is_whole:  # one block at a time
            drawn = drawn[:, :, inside]
        draws = Counts(drawn) if kind is Counts else kind(drawn, self.sample)
        values = np.asarray(self.statistic.values(self.plan, draws), np.float64)
        count = len(drawn) if kind is Rows else drawn.shape[0] * drawn.shape[2]
        if values.ndim == 0 or values.shape[-1] != count:
            name, shape = type(self.statistic).__name__, values.shape
            raise ValueError(f"{name}.values: must return {count} values, got shape {shape}")
        return values[..., inside] if is_whole else values


@dataclass(frozen=True)
class Replicates:
    """Draws and the members to evaluate on them, problem by problem."""

    draws: AnyDraws
    members: list[PreparedStatistic]

    @property
    def rows(self) -> int:
        """Number of rows that a member reads for one replicate."""
        return self.draws.size if isinstance(self.draws, RowDraws) else self.draws.n

    @property
    def cost(self) -> int:
        """Number of rows that all members read for one replicate.

        A pair of rows takes an eighth of the time of a row.
        """
        pairs = [member for member in self.members if member.statistic.reads_pairs]
        return self.rows * (len(self.members) + len(pairs) * self.rows // 8)

    @property
    def are_fast(self) -> bool:
        """Whether all statistics take many replicates at once.

        Batches of others are small, since nothing stops one that has begun.
        """
        return all(self.draws.kind in member.statistic.native for member in self.members)

    @property
    def batch(self) -> int:
        """Number of replicates drawn at once: whole blocks, unless draws are lists."""
        unit = self.draws.unit
        most = BATCH // (unit * self.draws.item * self.rows)
        return max(1, most) * unit if self.are_fast else REPLICATES

    def values(self, first: int, last: int, stop: Event | None = None) -> F64:
        """Compute the values (members, ..., last - first) of a range, in batches.

        `stop` is set when nobody waits for them any more.
        """
        parts = []
        for start, end in ranges(first, last, self.batch):
            part = []
            for value in self._values_of_members(start, end):
                if stop is not None and stop.is_set():
                    raise CancelledError
                part.append(value)
            parts.append(np.array(part))
        return np.concatenate(parts, axis=-1) if parts else np.empty((len(self.members), 0))

    def _values_of_members(self, first: int, last: int) -> Iterator[F64]:
        """Yield the values of each member on some replicates."""
        draws, unit = self.draws, self.draws.unit
        blocks = range(first // unit, -(-last // unit))
        inside = slice(first - unit * blocks.start, last - unit * blocks.start)
        drawn = draws.make(blocks.start, len(blocks))
        for problem, members in groupby(self.members, attrgetter("problem")):
            own = draws.of_problem(drawn, problem)
            by_score: Any = None  # shared by the members that need this order
            for member in members:
                order = member.order
                if order is not None and by_score is None:
                    is_list = draws.kind is Rows
                    by_score = np.take(order, own) if is_list else np.take(own, order, axis=1)
                yield member.values(own if order is None else by_score, draws.kind, inside)


def plan_replicates(
    statistics: Sequence[Statistic], problems: Sequence[Problem], draws: AnyDraws,
    size: int,
) -> Replicates:  # fmt: skip
    """Prepare every statistic on every problem, for draws of `size` of the rows.

    The members are those of the first problem, then those of the next.
    """
    members = []
    for k, problem in enumerate(problems):
        for statistic in statistics:
            sample, order = problem.sample, None
            if statistic.needs_sorted:
                sample = problem.ordered
                order = problem.place if isinstance(draws, RowDraws) else problem.order
            if not statistic.needs_vectors:
                sample = replace(sample, vectors=None)
            plan = statistic.prepare(sample, size)
            # What is sent to other processes has no class vectors that nobody looks at.
            is_read = draws.kind is not Counts and draws.kind not in statistic.native
            read = sample if is_read else None
            members.append(PreparedStatistic(k, read, order, statistic, plan))
    return Replicates(draws, members)


def ranges(first: int, last: int, step: int) -> list[tuple[int, int]]:
    """Cut a range of replicates at the multiples of `step`."""
    begin = first - first % step
    return [(max(a, first), min(a + step, last)) for a in range(begin, last, step)]


def evaluate(
    replicates: Replicates, first: int, last: int, jobs: int = 1, executor: Any = None
) -> F64:
    """Compute the values (members, ..., last - first) of a range of replicates.

    They are worked out on up to `jobs` threads or on an executor.
    """
    cost = replicates.cost * (last - first)
    if first == last or (executor is None and cost <= INLINE and replicates.are_fast):
        return replicates.values(first, last)
    if executor is not None:
        count = min(max(cost // SENT_TASK, LEAST_SENT), MOST_SENT)
        return run(replicates, first, last, cost // count, executor.submit)
    if not main_thread().is_alive():  # after whose end no thread can begin
        return replicates.values(first, last)
    from concurrent.futures import ThreadPoolExecutor

    from fastece.kernels.compiling import without_interrupts

    memory = COPIES * replicates.batch * replicates.draws.item * replicates.rows
    jobs = min(jobs, 1 + MORE_MEMORY // memory)
    stop, pool = Event(), ThreadPoolExecutor(jobs)
    # A thread whose beginning is interrupted may hold its lock, and wait for it, for ever.
    start = without_interrupts()(pool.submit)
    # This thread only waits, so that it can be interrupted at once, and tells the others to stop.
    try:
        task = min(TASK, cost // (4 * jobs))
        return run(replicates, first, last, task, partial(submit, start, stop), AHEAD * jobs)
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
    parts = ranges(first, last, step)
    todo, values = iter(parts), []
    futures: deque[Any] = deque()
    try:
        for done in range(1, len(parts) + 1):
            for part in islice(todo, None if ahead is None else ahead - len(futures)):
                futures.append(submit(Replicates.values, replicates, *part))
            values.append(futures.popleft().result())
            for callback in progress_callbacks:
                callback(done, len(parts))
        return np.concatenate(values, axis=-1)
    finally:
        for future in futures:
            future.cancel()
