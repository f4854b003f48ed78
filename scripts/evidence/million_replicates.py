"""Measure a bootstrap study of a million replicates, by the workers that share it.

``python scripts/evidence/million_replicates.py [REPLICATES]`` resamples 10 000 rows a million times
and evaluates three estimators on the same draws: on one thread, on two, in two processes, and on a
Dask cluster of two local workers. It writes ``million_replicates.csv`` and stops with an error if
the distributions differ in a single bit. Seed 0; a minute on two cores.
"""

import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from results import new_parser, write_table

from fastece import bootstrap

ROWS = 10_000
ESTIMATORS = ["ece", "ece_ac", "brier_score"]


def predictions() -> tuple[np.ndarray, np.ndarray]:
    """Return the labels and probabilities of a model that is too sure of the positive class."""
    rng = np.random.default_rng(0)
    p = rng.beta(5, 1.5, size=ROWS)
    return rng.random(ROWS) < p**1.2, p


@contextmanager
def threads(count: int) -> Iterator[dict[str, Any]]:
    """Give the argument for a number of threads."""
    yield {"n_jobs": count}


@contextmanager
def processes() -> Iterator[dict[str, Any]]:
    """Give the argument for two processes."""
    with ProcessPoolExecutor(2) as pool:
        yield {"executor": pool}


@contextmanager
def dask_cluster() -> Iterator[dict[str, Any]]:
    """Give the argument for a cluster of two local workers."""
    from dask.distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
        yield {"executor": client}


WORKERS: dict[str, Callable[[], AbstractContextManager[dict[str, Any]]]] = {
    "one thread": lambda: threads(1),
    "two threads": lambda: threads(2),
    "two processes": processes,
    "Dask, two local workers": dask_cluster,
}


def table_rows(n_resamples: int) -> Iterator[list[str]]:
    """Yield the time of each kind of workers, and check that results are the same bits."""
    y, p = predictions()
    expected = None
    for name, workers in WORKERS.items():
        with workers() as options:
            # The first call of each worker loads its kernels.
            bootstrap(y, p, estimator=ESTIMATORS, n_resamples=10_000, rng=1, **options)
            start = time.perf_counter()
            found = bootstrap(y, p, estimator=ESTIMATORS, n_resamples=n_resamples, rng=0, **options)
            seconds = time.perf_counter() - start
        distributions = [result.bootstrap_distribution for result in found.values()]
        expected = distributions if expected is None else expected
        if not np.array_equal(expected, distributions):
            raise SystemExit(f"{name}: other values")
        yield [name, f"{seconds:.1f}", f"{1e6 * seconds / n_resamples:.1f}"]


def main() -> None:
    """Write the table, and print the peak of memory."""
    parser = new_parser(__doc__)
    parser.add_argument("replicates", type=int, nargs="?", default=1_000_000)
    options = parser.parse_args()
    head = ["workers", "seconds", "µs a replicate"]
    write_table(options.out, "million_replicates", head, table_rows(options.replicates))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"Peak memory of the process: {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
