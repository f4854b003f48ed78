"""The engine: values of many replicates, on threads, processes or clusters.

It knows draws and the protocol, not the estimators. Problems and estimators of one call share each
draw. Work is cut into ranges of replicates, and since a draw depends on its number alone, the
values have the same bits however it is cut.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.inputs.arrays import contiguous
from fastece.kernels import REPLICATES as BLOCK
from fastece.protocol import Sample, increasing
from fastece.resampling.draws import BlockDraws, RowDraws

__all__ = ["Problem", "Replicates", "Work", "drawn_values", "evaluate", "plan_replicates"]

F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]
Progress = Callable[[str], None]

# Multiplicities made at once: many replicates of few rows share what a call costs (30 us), and they
# are read again before they have left the cache.
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


class Member(NamedTuple):
    """One estimator on one problem."""

    problem: int
    sample: Sample
    # For multiplicities, which drawn row each row of the sample is; for lists of rows, where in the
    # sample each of them is; None where the sample has the order of the draw.
    order: I32 | None
    estimator: Any
    plan: Any


@dataclass(frozen=True)
class Replicates:
    """Estimators on problems, prepared, and what is drawn for them.

    Attributes
    ----------
    draws : BlockDraws or RowDraws
    members : list of Member
        Those of one sample follow one another.
    size : int
        Rows per draw.
    """

    draws: BlockDraws | RowDraws
    members: list[Member]
    size: int

    @property
    def cost(self) -> int:
        """Rows that the members read for one replicate."""
        rows = self.size if isinstance(self.draws, RowDraws) else self.draws.n
        return rows * len(self.members)

    def values(self, first: int, last: int, stop: Event | None = None) -> F64:
        """The values (members, last - first) of a range of replicates."""
        batches = self._row_batches if isinstance(self.draws, RowDraws) else self._block_batches
        parts = list(batches(first, last, stop or Event()))
        return np.concatenate(parts, axis=-1) if parts else np.empty((len(self.members), 0))

    @property
    def are_fast(self) -> bool:
        """Whether all estimators take many replicates at once. Batches of others are small, since
        nothing stops one that has begun."""
        method = "subsets" if isinstance(self.draws, RowDraws) else "blocks"
        return all(hasattr(member.estimator, method) for member in self.members)

    def _block_batches(self, first: int, last: int, stop: Event) -> Iterator[F64]:
        """Values of some blocks at a time, and only those asked for."""
        draws: Any = self.draws
        step = max(1, BATCH // (draws.n * BLOCK)) if self.are_fast else 1
        for block in range(first // BLOCK, -(-last // BLOCK), step):
            blocks = min(step, -(-last // BLOCK) - block)
            start = block * BLOCK
            asked = slice(max(first - start, 0), min(last - start, blocks * BLOCK))
            drawn = draws.make(block, blocks)
            values = []
            problem = -1
            ordered: dict[int, U8] = {}
            for member in self.members:
                if stop.is_set():
                    return
                if member.problem != problem:
                    problem, ordered = member.problem, {}
                    shared = draws.multiplicities(drawn, problem)
                order = member.order
                if id(order) not in ordered:  # estimators that want the same order share it
                    ordered[id(order)] = shared if order is None else gathered(shared, order)
                values.append(block_values(member, ordered[id(order)], asked))
            yield np.array(values)

    def _row_batches(self, first: int, last: int, stop: Event) -> Iterator[F64]:
        """Values of some replicates at a time."""
        draws: Any = self.draws
        step = max(1, BATCH // (4 * self.size)) if self.are_fast else BLOCK
        for start in range(first, last, step):
            rows = draws.rows(start, min(step, last - start))
            values = []
            for member in self.members:
                if stop.is_set():
                    return
                values.append(row_values(member, rows, self.size))
            yield np.array(values)


def gathered(c: U8, order: I32) -> U8:
    """Multiplicities (G, n, 32) of the rows in another order."""
    out = np.empty((len(c), order.size, BLOCK), np.uint8)
    kernels.resampling.gather_rows(c, contiguous(order, np.int32), out)
    return out


def block_values(member: Member, c: U8, asked: slice) -> F64:
    """The values of one member for the replicates asked for among 32 G, by the fastest of the
    methods that its estimator has; more than one value of each replicate are (..., R)."""
    estimator, plan = member.estimator, member.plan
    if hasattr(estimator, "blocks"):
        values = checked(estimator, "blocks", estimator.blocks(plan, c), BLOCK * len(c))
        return values[..., asked]
    if hasattr(estimator, "block"):
        parts = [checked(estimator, "block", estimator.block(plan, block), BLOCK) for block in c]
        return np.concatenate(parts, axis=-1)[..., asked]
    columns = np.ascontiguousarray(c.swapaxes(1, 2)).reshape(-1, c.shape[1])
    return np.array([float(estimator.evaluate(plan, column)) for column in columns[asked]])


def checked(estimator: Any, method: str, values: Any, count: int) -> F64:
    """Values of an estimator's method, one for each replicate."""
    found = np.asarray(values, np.float64)
    if found.ndim == 0 or found.shape[-1] != count:
        kind = type(estimator).__name__
        raise ValueError(f"{kind}.{method}: must return {count} values, got shape {found.shape}")
    return found


def row_values(member: Member, rows: I32, size: int) -> F64:
    """The values (R,) of one member on draws that are lists of rows."""
    estimator, plan = member.estimator, member.plan
    places = rows if member.order is None else np.take(member.order, rows)
    if hasattr(estimator, "subsets"):
        return checked(estimator, "subsets", estimator.subsets(plan, places), len(rows))

    def value(row: I32) -> float:
        drawn = member.sample.where(np.sort(row))
        once = np.ones(size, np.uint8)
        return float(estimator.evaluate(estimator.prepare(drawn, size), once))

    return np.array([value(row) for row in places])


def drawn_values(estimator: Any, sample: Sample, rows: I32) -> F64:
    """The values (R,) of draws that are lists of rows (R, size) of a sorted sample."""
    size = rows.shape[1]
    plan = estimator.prepare(sample, size)
    return row_values(Member(0, sample, None, estimator, plan), rows, size)


# --- preparing ------------------------------------------------------------------------------


class Problem:
    """One problem as a whole, and in increasing order of the score, for estimators that ask."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample

    @cached_property
    def order(self) -> I32:
        """The rows in increasing order of the score."""
        return increasing(self.sample.s).astype(np.int32)

    @cached_property
    def place(self) -> I32:
        """Where in that order each row is."""
        place = np.empty_like(self.order)
        place[self.order] = np.arange(place.size, dtype=np.int32)
        return place

    @cached_property
    def ordered(self) -> Sample:
        """The sample in that order."""
        return self.sample.where(self.order)


def plan_replicates(
    estimators: Sequence[Any],
    problems: Sequence[Problem],
    draws: BlockDraws | RowDraws,
    size: int,
) -> Replicates:
    """Prepare every estimator on every problem, in draws of `size` of the rows.

    The members are those of the first problem, then those of the next. The rows of a problem are
    the rows that are drawn, in this order.
    """
    members = []
    for k, problem in enumerate(problems):
        for estimator in estimators:
            sample, order = problem.sample, None
            if getattr(estimator, "needs_sorted", True):
                sample = problem.ordered
                order = problem.place if isinstance(draws, RowDraws) else problem.order
            plan = estimator.prepare(sample, size)
            members.append(Member(k, sample, order, estimator, plan))
    return Replicates(draws, members, size)


# --- running --------------------------------------------------------------------------------


class Work(NamedTuple):
    """A range of replicates to be evaluated."""

    replicates: Replicates
    first: int
    last: int

    @property
    def cost(self) -> int:
        """Rows that are read for it."""
        return self.replicates.cost * (self.last - self.first)


def evaluate(
    works: Sequence[Work], jobs: int, executor: Any, progress: Progress | None = None
) -> list[F64]:
    """The values (members, last - first) of some ranges of replicates, on `jobs` threads or on an
    executor; `progress` is told how many tasks are done."""
    if executor is not None:
        sizes = [work.cost // sent_tasks(work) for work in works]
        return run(works, executor.submit, sizes, progress, None)
    total = sum(work.cost for work in works)
    if total <= INLINE and all(work.replicates.are_fast for work in works):
        return [work.replicates.values(work.first, work.last) for work in works]
    stop = Event()
    pool = ThreadPoolExecutor(jobs)
    # This thread only waits, so that it can be interrupted at once, and tells the others to stop.
    try:
        submit = partial(pool.submit, stop=stop)
        sizes = [min(TASK, total // (4 * jobs))] * len(works)
        return run(works, submit, sizes, progress, AHEAD * jobs)
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


def sent_tasks(work: Work) -> int:
    """Into how many tasks work for an executor is cut."""
    return min(max(work.cost // SENT_TASK, LEAST_SENT), MOST_SENT)


def run(
    works: Sequence[Work],
    submit: Any,
    sizes: Sequence[int],
    progress: Progress | None,
    ahead: int | None,
) -> list[F64]:
    """Cut every range into tasks of about so many rows, submit at most `ahead` of them at a time,
    and collect their values in order; what has not begun is cancelled if one fails."""
    calls = [
        (k, first, last)
        for k, (work, size) in enumerate(zip(works, sizes, strict=True))
        for first, last in tasks(work, size)
    ]
    todo = iter(calls)
    futures: deque[Any] = deque()
    parts: list[list[F64]] = [[] for _ in works]
    try:
        for done, (k, _, _) in enumerate(calls, 1):
            room = None if ahead is None else ahead - len(futures)
            for i, first, last in islice(todo, room):
                futures.append(submit(Replicates.values, works[i].replicates, first, last))
            parts[k].append(futures.popleft().result())
            if progress is not None:
                progress(f"resampling: {done}/{len(calls)}")
        return [np.concatenate(part, axis=-1) for part in parts]
    finally:
        for future in futures:
            future.cancel()


def tasks(work: Work, most: int) -> list[tuple[int, int]]:
    """Ranges of whole blocks of replicates, of about `most` rows."""
    _, first, last = work
    if first == last:
        return [(first, last)]
    step = max(1, most // (work.replicates.cost * BLOCK)) * BLOCK
    begin = first - first % BLOCK
    return [(max(a, first), min(a + step, last)) for a in range(begin, last, step)]
