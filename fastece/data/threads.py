"""Work in parts, on one thread or on several."""

from collections.abc import Callable, Iterable, Iterator
from threading import main_thread
from typing import Any, TypeVar

T = TypeVar("T")

# What `map` is, and the `map` of a pool of threads: a function of each part, results in order.
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


def with_threads(n_jobs: int, work: Callable[[Map], T]) -> T:
    """Call `work` with a `map` that runs on `n_jobs` threads."""
    # After the end of the main thread, no other thread can begin.
    if n_jobs == 1 or not main_thread().is_alive():
        return work(map)
    from concurrent.futures import ThreadPoolExecutor

    from fastece.kernels.compiling import without_interrupts

    with ThreadPoolExecutor(n_jobs) as pool:
        # An interrupt while the pool starts a thread would leave it half made.
        return work(without_interrupts()(pool.map))
