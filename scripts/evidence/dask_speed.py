"""How much faster two worker processes of Dask count a stream than one.

Workers make the rows, block by block, so that they send states only. Prints the seconds of the
fastest round with one worker and with two, and their ratio. 1e8 rows take a few minutes.
"""

import argparse
import time
from functools import partial

import dask.array as da
import numpy as np
from dask.distributed import Client
from numpy.typing import NDArray

from fastece import Accumulator
from fastece.streams.distributed import from_dask

BLOCK = 2_000_000


def rows(block: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return labels and probabilities (2, BLOCK) of a somewhat over-confident model."""
    rng = np.random.default_rng(int(block[0]))
    p = rng.random(BLOCK, np.float32)
    return np.stack([(rng.random(BLOCK, np.float32) < 0.1 + 0.8 * p).astype(np.float32), p])


def stream(n_blocks: int) -> tuple[da.Array, da.Array]:
    """Return lazy arrays of all labels and probabilities."""
    numbers = da.arange(n_blocks, chunks=1)
    both = da.map_blocks(
        rows, numbers, dtype=np.float32, new_axis=0, chunks=((2,), (BLOCK,) * n_blocks)
    )
    return both[0], both[1]


def seconds_of(n_workers: int, n_blocks: int, rounds: int) -> tuple[float, Accumulator]:
    """Return the time of the fastest round, and the state."""
    options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with Client(**options, host="127.0.0.1"):
        count = partial(from_dask, *stream(n_blocks))
        from_dask(*stream(2 * n_workers))  # workers import, and load kernels
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            state = count()
            times.append(time.perf_counter() - begin)
    return min(times), state


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e8, help="a multiple of two million")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    n_blocks = max(2, int(options.rows) // BLOCK)
    seconds_one, state = seconds_of(1, n_blocks, options.rounds)
    seconds_two, state_of_two = seconds_of(2, n_blocks, options.rounds)
    if state != state_of_two or state.n != n_blocks * BLOCK:
        raise SystemExit("the states differ")
    ratio = seconds_one / seconds_two
    print(f"{state.n} rows: one worker {seconds_one:.2f} s, two {seconds_two:.2f} s, "
          f"ratio {ratio:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
