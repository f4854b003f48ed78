"""Random numbers that are the same in every call: values depend on rows alone."""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from fastece.kernels.types import F64, I64

# Draws from the posterior: the value's own noise is then a thirtieth of its standard error.
DRAWS = 128
SEED = 5
SEED_OF_CHAINS = 7
SEED_OF_LEVELS = 11


@lru_cache(maxsize=8)
def normal_quantiles(draws: int) -> F64:
    """Return standard normal quantiles (S,) of ``(q + 1/2) / S``, in increasing order."""
    return np.array([NormalDist().inv_cdf((q + 0.5) / draws) for q in range(draws)])


@lru_cache(maxsize=8)
def draw_order(draws: int = DRAWS) -> F64:
    """Return a normal number (S,) for each draw, in an order unrelated to the draws."""
    golden = np.arange(draws) * ((math.sqrt(5) - 1) / 2) % 1
    return normal_quantiles(draws)[golden.argsort().argsort()]


@lru_cache(maxsize=64)
def process_normals(n_cells: int, k: int, draws: int = DRAWS) -> F64:
    """Return normal numbers (C + 2, S) for curves of the process in problem k.

    Each line has the quantiles of (q + 1/2) / S in random order (McKay, Beckman and Conover 1979: a
    Latin hypercube). For another problem each line is turned by a number of places of its own.
    """
    rng = np.random.RandomState(SEED)  # whose stream never changes
    quantiles = normal_quantiles(draws)
    order = rng.random_sample((n_cells + 2, draws)).argsort(axis=1, kind="stable")
    turn = k * rng.randint(1, draws, (n_cells + 2, 1))
    return quantiles[np.take_along_axis(order, (np.arange(draws) + turn) % draws, axis=1)]


@lru_cache(maxsize=64)
def chain_numbers(n_cells: int, draws: int) -> tuple[F64, F64]:
    """Return uniform and normal numbers (S, C), a Latin hypercube of each."""
    rng = np.random.RandomState(SEED_OF_CHAINS)  # whose stream never changes
    shape = n_cells, draws
    place = rng.random_sample(shape).argsort(axis=1, kind="stable").T
    order = rng.random_sample(shape).argsort(axis=1, kind="stable").T
    uniform = (place + rng.random_sample((draws, n_cells))) / draws
    return uniform, normal_quantiles(draws)[order]


@lru_cache(maxsize=64)
def shuffled_positions(k: int, sizes: tuple[int, ...], ordered: int) -> I64:
    """Return positions in groups, group by group, in an order of problem k.

    Groups have some sizes. The group with the number `ordered` keeps its order. The others are
    shuffled, for each problem in another way.
    """
    rng = np.random.RandomState(SEED + 1 + k)
    groups = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    return np.concatenate(
        [group if j == ordered else rng.permutation(group) for j, group in enumerate(groups)]
    )


@lru_cache(maxsize=256)
def shuffled_levels(k: int, draws: int = DRAWS) -> F64:
    """Return the levels (q + 1/2) / S between 0 and 1, in an order of problem k."""
    rng = np.random.RandomState([SEED_OF_LEVELS, k])  # whose stream never changes
    return (rng.permutation(draws) + 0.5) / draws
