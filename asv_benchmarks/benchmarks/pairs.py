"""Errors of all classes at once, which look at every pair of rows, on one thread, beside numpy that
has all pairs in one matrix: matrix products on one thread, and the rest in place."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

import fastece
from benchmarks import baselines
from benchmarks.common import Beside, Replicated

CLASSES, BATCH = 10, 32
# What the package chooses from by default, and the smallest probability in logarithms.
BANDWIDTHS, FLOOR = np.logspace(-5, -1, 10), 1e-5
# Of the bootstrap and the test.
BANDWIDTH, WIDTH = 0.02, 0.5

on_one_thread = ThreadpoolController().wrap(limits=1, user_api="blas")


# --- what a user writes without fastece -----------------------------------------------------


def log_factor(p: Any, h: float) -> Any:
    """Logarithm of the factor of the density of Dirichlet(p / h + 1)."""
    from scipy.special import gammaln

    alpha = p / h + 1
    return gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)


def add_factor(exponents: Any, p: Any, h: float) -> Any:
    """The exponents (n, n) with their factors, less the largest of the line, and that (n, 1)."""
    exponents += log_factor(p, h)
    np.fill_diagonal(exponents, -np.inf)
    top = exponents.max(axis=1, keepdims=True)
    exponents -= top
    return top


def likeliest(p: Any) -> float:
    """The bandwidth with the largest leave-one-out likelihood."""
    products = np.log(np.maximum(p, FLOOR)) @ p.T
    e, likelihood = np.empty_like(products), []
    for h in BANDWIDTHS:
        np.multiply(products, 1 / h, out=e)
        top = add_factor(e, p, h)
        np.exp(e, out=e)
        likelihood.append((top[:, 0] + np.log(e.sum(axis=1))).sum())
    return float(BANDWIDTHS[np.argmax(likelihood)])


def dirichlet(p: Any, h: float) -> Any:
    """Densities (n, n) of the kernels of all other rows at each row, over the largest of them."""
    e = np.log(np.maximum(p, FLOOR)) @ (p.T / h)
    add_factor(e, p, h)
    return np.exp(e, out=e)


@on_one_thread
def canonical(y: Any, p: Any, bandwidth: Any) -> float:
    """`fastece.canonical_error`."""
    h = likeliest(p) if bandwidth == "likelihood" else bandwidth
    share = dirichlet(p, h) @ np.eye(p.shape[1])[y]
    share /= share.sum(axis=1, keepdims=True)
    share -= p
    return float(np.abs(share).sum() / y.size)


def distances(p: Any) -> Any:
    """Distances (n, n), from a matrix product: it loses half of the digits of small ones."""
    d = p @ p.T
    squares = d.diagonal().copy()
    d *= -2
    d += squares
    d += squares[:, None]
    np.maximum(d, 0, out=d)
    return np.sqrt(d, out=d)


def near(p: Any, width: float) -> Any:
    """Values (n, n) of the exponential kernel of all pairs of two rows."""
    k = distances(p)
    k *= -1 / width
    np.exp(k, out=k)
    np.fill_diagonal(k, 0.0)
    return k


@on_one_thread
def skce(y: Any, p: Any) -> float:
    """`fastece.kernel_calibration_error`, with the median of the distances of 1000 rows."""
    few = distances(p[:1000])
    k = near(p, float(np.median(few[np.tril_indices(len(few), -1)])))
    gap = np.eye(p.shape[1])[y] - p
    k *= gap @ gap.T
    return float(k.sum() / (y.size * (y.size - 1)))


# --- the loops a user writes without fastece ------------------------------------------------


@on_one_thread
def in_batches(draw: Callable[..., Any], values: Callable[[Any], Any], replicates: int) -> Any:
    """The values (replicates,) of what is drawn, for which one matrix is multiplied by another."""
    rng = np.random.default_rng(0)
    sizes = [min(BATCH, replicates - first) for first in range(0, replicates, BATCH)]
    return np.concatenate([values(draw(rng, size)) for size in sizes])


def draw_rows(n: int, rng: Any, size: int) -> Any:
    """How often each of n rows is drawn (n, size)."""
    draws = rng.integers(0, n, (size, n))
    return np.stack([np.bincount(draw, minlength=n) for draw in draws], axis=1).astype(np.float64)


def draw_labels(p: Any, rng: Any, size: int) -> Any:
    """Unit vectors (n, K, size) of labels with the probabilities (n, K)."""
    below = p.cumsum(axis=1)[:, None, :-1]
    label = (rng.random((len(p), size, 1)) >= below).sum(axis=2)
    return (label[:, None] == np.arange(p.shape[1])[:, None]).astype(np.float64)


def canonical_of_rows(y: Any, p: Any) -> Callable[[Any], Any]:
    """The canonical errors of drawn rows (n, size)."""
    order = np.argsort(y, kind="stable")
    p = p[order]
    e, ends = dirichlet(p, BANDWIDTH), np.searchsorted(y[order], np.arange(p.shape[1] + 1))

    def values(c: Any) -> Any:
        c = c[order]
        share = np.stack([e[:, a:b] @ c[a:b] for a, b in pairwise(ends)])
        share /= share.sum(axis=0)
        share -= p.T[:, :, None]
        return (c * np.abs(share, out=share).sum(axis=0)).sum(axis=0) / y.size

    return values


def skce_of_rows(y: Any, p: Any) -> Callable[[Any], Any]:
    """The unbiased kernel calibration errors of drawn rows (n, size)."""
    gap = np.eye(p.shape[1])[y] - p
    k = near(p, WIDTH)
    k *= gap @ gap.T
    return lambda c: (c * (k @ c)).sum(axis=0) / (y.size**2 - (c * c).sum(axis=0))


def canonical_of_labels(p: Any) -> Callable[[Any], Any]:
    """The canonical errors of drawn labels (n, K, size)."""
    e = dirichlet(p, BANDWIDTH)
    e /= e.sum(axis=1, keepdims=True)

    def values(unit: Any) -> Any:
        share = (e @ unit.reshape(len(p), -1)).reshape(unit.shape)
        share -= p[:, :, None]
        return np.abs(share, out=share).sum(axis=(0, 1)) / len(p)

    return values


def skce_of_labels(p: Any) -> Callable[[Any], Any]:
    """The unbiased kernel calibration errors of drawn labels (n, K, size)."""
    k = near(p, WIDTH)

    def values(unit: Any) -> Any:
        unit -= p[:, :, None]
        product = (k @ unit.reshape(len(p), -1)).reshape(unit.shape)
        product *= unit
        return product.sum(axis=(0, 1)) / (len(p) * (len(p) - 1))

    return values


# --- benchmarks -----------------------------------------------------------------------------


def rows_and_estimator(function: str, error: str, n: int) -> tuple[Any, Any, Any]:
    """Labels, class vectors and an estimator, if the measured version has it and the function."""
    if not (hasattr(fastece, "canonical_error") and hasattr(fastece, function)):
        raise NotImplementedError
    estimators = {
        "canonical": fastece.DirichletKDE(BANDWIDTH),
        "skce": fastece.SKCE("unbiased", width=WIDTH),
    }
    return *baselines.class_vectors(n, CLASSES), estimators[error]


class CanonicalError(Beside):
    """`canonical_error`, with a bandwidth and with the likeliest of ten."""

    params = ([0.01, "likelihood"], [500, 5000])
    param_names = ("bandwidth", "n")

    def setup(self, bandwidth: Any, n: int) -> None:
        """Make the data."""
        y, p, _ = rows_and_estimator("canonical_error", "canonical", n)
        self.call = partial(fastece.canonical_error, y, p, bandwidth=bandwidth)
        self.other = partial(canonical, y, p, bandwidth)


class KernelError(Beside):
    """`kernel_calibration_error`, unbiased."""

    params = ([500, 5000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Make the data."""
        y, p, _ = rows_and_estimator("kernel_calibration_error", "skce", n)
        self.call = partial(fastece.kernel_calibration_error, y, p)
        self.other = partial(skce, y, p)


class PairsBootstrap(Replicated):
    """Both under resampling; numpy's loop draws 32 replicates at a time."""

    params = (["canonical", "skce"], [2000])
    param_names = ("error", "n")

    def setup(self, error: str, n: int) -> None:
        """Make the data."""
        y, p, estimator = rows_and_estimator("bootstrap", error, n)
        values = {"canonical": canonical_of_rows, "skce": skce_of_rows}[error](y, p)
        call = partial(fastece.bootstrap, y, p, estimator=estimator)
        self.make(call, partial(in_batches, partial(draw_rows, n), values), n, n * n)


class PairsTest(Replicated):
    """Both with labels drawn as the vectors say; numpy's loop draws 32 replicates at a time."""

    params = (["canonical", "skce"], [500])
    param_names = ("error", "n")

    def setup(self, error: str, n: int) -> None:
        """Make the data."""
        y, p, estimator = rows_and_estimator("calibration_test", error, n)
        values = {"canonical": canonical_of_labels, "skce": skce_of_labels}[error](p)
        call = partial(fastece.calibration_test, y, p, estimator=estimator)
        self.make(call, partial(in_batches, partial(draw_labels, p), values), n, n * n)
