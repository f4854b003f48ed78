"""The engine: values of many replicates, on threads, processes or clusters.

It knows draws and the protocol, not the estimators. Problems and estimators of one call share each
draw. Work is cut into ranges of replicates, and since a draw depends on its number alone, the
values have the same bits however it is cut.
"""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.protocol import Sample
from fastece.resampling import BLOCK, BlockDraws, RowDraws

__all__ = ["Replicates", "evaluate", "plan_replicates"]

F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]

# Multiplicities made at once: many replicates of few rows share what a call costs (30 us), and they
# are read again before they have left the cache.
BATCH = 2**21
# Resampled rows of one task on a thread of our own: some 50 ms, after which an interruption or the
# end of another task is noticed. Executors get larger tasks, since each may be sent elsewhere.
TASK, SENT_TASK = 2**25, 2**28
MOST_SENT = 64


class Member(NamedTuple):
    """One estimator on one problem."""

    problem: int
    sample: Sample
    # For multiplicities, which drawn row each row of the sample is; for lists of rows, where in the
    # sample each of them is; None where the sample has the order of the draw.
    order: NDArray[np.int64] | None
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
        parts = []
        for part in batches(first, last):
            if stop is not None and stop.is_set():
                break
            parts.append(part)
        return np.concatenate(parts, axis=-1) if parts else np.empty((len(self.members), 0))

    def _are_fast(self, method: str) -> bool:
        """Whether all estimators take many replicates at once; batches of others are small, since
        nothing stops one that has begun."""
        return all(hasattr(member.estimator, method) for member in self.members)

    def _block_batches(self, first: int, last: int) -> Iterator[F64]:
        """Values of some blocks at a time, and only those asked for."""
        draws: Any = self.draws
        step = max(1, BATCH // (draws.n * BLOCK)) if self._are_fast("blocks") else 1
        for block in range(first // BLOCK, -(-last // BLOCK), step):
            blocks = min(step, -(-last // BLOCK) - block)
            drawn = draws.make(block, blocks)
            values = []
            problem = -1
            ordered: dict[int, U8] = {}
            for member in self.members:
                if member.problem != problem:
                    problem, ordered = member.problem, {}
                    shared = draws.multiplicities(drawn, problem)
                key = id(member.order)  # estimators that want the same order share it
                if key not in ordered:
                    ordered[key] = (
                        shared if member.order is None else gathered(shared, member.order)
                    )
                values.append(block_values(member, ordered[key]))
            start = block * BLOCK
            yield np.array(values)[..., max(first - start, 0) : last - start]

    def _row_batches(self, first: int, last: int) -> Iterator[F64]:
        """Values of some replicates at a time."""
        draws: Any = self.draws
        step = max(1, BATCH // (8 * self.size)) if self._are_fast("subsets") else BLOCK
        for start in range(first, last, step):
            rows = draws.rows(start, min(step, last - start))
            yield np.array([row_values(member, rows, self.size) for member in self.members])


def gathered(c: U8, order: NDArray[np.int64]) -> U8:
    """Multiplicities (G, n, 32) of the rows in another order."""
    out = np.empty((len(c), order.size, BLOCK), np.uint8)
    kernels.resampling.gather_rows(c, order, out)
    return out


def block_values(member: Member, c: U8) -> F64:
    """The values (32 G,) of one member, by the fastest of the methods that its estimator has; more
    than one value of each replicate are (..., 32 G)."""
    estimator, plan = member.estimator, member.plan
    if hasattr(estimator, "blocks"):
        return np.asarray(estimator.blocks(plan, c), np.float64)
    if hasattr(estimator, "block"):
        return np.concatenate([estimator.block(plan, block) for block in c], dtype=np.float64)
    columns = np.ascontiguousarray(c.swapaxes(1, 2)).reshape(-1, c.shape[1])
    return np.array([float(estimator.evaluate(plan, column)) for column in columns])


def row_values(member: Member, rows: NDArray[np.int64], size: int) -> F64:
    """The values (R,) of one member on draws that are lists of rows."""
    estimator, plan = member.estimator, member.plan
    places = rows if member.order is None else member.order[rows]
    if hasattr(estimator, "subsets"):
        return np.asarray(estimator.subsets(plan, places), np.float64)
    once = np.ones(size, np.uint8)

    def value(row: NDArray[np.int64]) -> float:
        drawn = member.sample.where(np.sort(row))
        return float(estimator.evaluate(estimator.prepare(drawn, size), once))

    return np.array([value(row) for row in places])


# --- preparing ------------------------------------------------------------------------------


def plan_replicates(
    estimators: Sequence[Any],
    samples: Sequence[Sample],
    draws: BlockDraws | RowDraws,
    size: int,
) -> Replicates:
    """Prepare every estimator on every sample, in draws of `size` of the rows.

    The members are those of the first sample, then those of the next. The rows of a sample are the
    rows that are drawn, in this order.
    """
    members = []
    for problem, sample in enumerate(samples):
        in_order = sample
        order: NDArray[np.int64] | None = None
        if any(getattr(estimator, "needs_sorted", True) for estimator in estimators):
            order = np.argsort(sample.s, kind="stable")
            in_order = sample.where(order)
            if isinstance(draws, RowDraws):
                order[order.copy()] = np.arange(order.size)
        for estimator in estimators:
            is_sorted = getattr(estimator, "needs_sorted", True)
            chosen = in_order if is_sorted else sample
            plan = estimator.prepare(chosen, size)
            members.append(Member(problem, chosen, order if is_sorted else None, estimator, plan))
    return Replicates(draws, members, size)


# --- running --------------------------------------------------------------------------------


def evaluate(replicates: Replicates, first: int, last: int, jobs: int, executor: Any) -> F64:
    """The values (members, last - first) of a range of replicates, on `jobs` threads or on an
    executor."""
    if executor is not None:
        per = max(SENT_TASK, replicates.cost * (last - first) // MOST_SENT)
        ranges = tasks(first, last, replicates.cost, per, 1)
        return collected([executor.submit(replicates.values, *task) for task in ranges])
    stop = Event()
    pool = ThreadPoolExecutor(jobs)
    ranges = tasks(first, last, replicates.cost, TASK, 4 * jobs if jobs > 1 else 1)
    # This thread only waits, so that it can be interrupted at once, and tells the others to stop.
    try:
        futures = [pool.submit(replicates.values, *task, stop) for task in ranges]
        return collected(futures)
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


def collected(futures: Sequence[Any]) -> F64:
    """The values of all tasks in their order; what has not begun is cancelled if one fails."""
    try:
        return np.concatenate([future.result() for future in futures], axis=-1)
    finally:
        for future in futures:
            future.cancel()


def tasks(first: int, last: int, cost: int, most: int, least_tasks: int) -> list[tuple[int, int]]:
    """Ranges of replicates, whole blocks, of about `most` rows, and not fewer ranges than asked."""
    step = min(most // max(cost, 1), math.ceil((last - first) / least_tasks))
    step = max(1, step // BLOCK) * BLOCK
    begin = first - first % BLOCK
    return [(max(a, first), min(a + step, last)) for a in range(begin, last, step)]
