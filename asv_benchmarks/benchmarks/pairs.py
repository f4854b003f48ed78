"""Errors that read every pair of rows, beside numpy, on one thread.

The numpy code has all pairs in one matrix. It multiplies matrices on one thread, and changes them
in place where it can.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

import fastece
from benchmarks import baselines
from benchmarks.baselines import N_CLASSES
from benchmarks.common import Beside, Replicated, require

# Replicates that the numpy loops draw at a time, to multiply one matrix by another.
REPLICATES_PER_BATCH = 32
# Bandwidths from which `canonical_error` chooses by default.
BANDWIDTHS = np.logspace(-5, -1, 10)
# Smaller probabilities are raised to this before their logarithm, as in `canonical_error`.
MIN_PROBABILITY = 1e-5
# Bandwidth of the canonical error under resampling, in units of the probability.
BANDWIDTH = 0.02
# Width of the kernel of the kernel calibration error under resampling, as a distance of vectors.
WIDTH = 0.5
# Rows whose distances give the width of the kernel, as in `kernel_calibration_error`.
ROWS_FOR_WIDTH = 1000

on_one_thread = ThreadpoolController().wrap(limits=1, user_api="blas")


# --- numpy code for one value ---------------------------------------------------------------


def compute_log_factors(p: Any, h: float) -> Any:
    """Compute the logarithms (n,) of the factors of Dirichlet(p / h + 1) densities."""
    from scipy.special import gammaln

    alpha = p / h + 1
    return gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)


def scale_exponents(exponents: Any, p: Any, h: float) -> Any:
    """Add factors to exponents (n, n), subtract the largest (n, 1) and return it.

    The array changes in place. The largest exponent of a row is taken over all other rows, as the
    kernel of a row does not count at the row itself.
    """
    exponents += compute_log_factors(p, h)
    np.fill_diagonal(exponents, -np.inf)
    largest = exponents.max(axis=1, keepdims=True)
    exponents -= largest
    return largest


def choose_bandwidth(p: Any) -> float:
    """Choose the bandwidth with the largest leave-one-out likelihood."""
    products = np.log(np.maximum(p, MIN_PROBABILITY)) @ p.T
    densities = np.empty_like(products)
    log_likelihoods = []
    for h in BANDWIDTHS:
        np.multiply(products, 1 / h, out=densities)
        largest = scale_exponents(densities, p, h)
        np.exp(densities, out=densities)
        log_likelihoods.append((largest[:, 0] + np.log(densities.sum(axis=1))).sum())
    return float(BANDWIDTHS[np.argmax(log_likelihoods)])


def compute_densities(p: Any, h: float) -> Any:
    """Compute densities (n, n) of kernels at each row, over the largest of the row.

    Kernels stand at all other rows, so that the diagonal is 0.
    """
    exponents = np.log(np.maximum(p, MIN_PROBABILITY)) @ (p.T / h)
    scale_exponents(exponents, p, h)
    return np.exp(exponents, out=exponents)


@on_one_thread
def canonical(y: Any, p: Any, bandwidth: Any) -> float:
    """Compute the value of `fastece.canonical_error`."""
    h = choose_bandwidth(p) if bandwidth == "likelihood" else bandwidth
    frequencies = compute_densities(p, h) @ np.eye(p.shape[1])[y]
    frequencies /= frequencies.sum(axis=1, keepdims=True)
    frequencies -= p
    return float(np.abs(frequencies).sum() / y.size)


def compute_distances(p: Any) -> Any:
    """Compute the distances (n, n) of all pairs of rows from a matrix product.

    The product loses half of the digits of small distances.
    """
    distances = p @ p.T
    squares = distances.diagonal().copy()
    distances *= -2
    distances += squares
    distances += squares[:, None]
    np.maximum(distances, 0, out=distances)
    return np.sqrt(distances, out=distances)


def compute_kernel(p: Any, width: float) -> Any:
    """Compute the exponential kernel (n, n) of all pairs of two different rows."""
    kernel = compute_distances(p)
    kernel *= -1 / width
    np.exp(kernel, out=kernel)
    np.fill_diagonal(kernel, 0.0)
    return kernel


@on_one_thread
def skce(y: Any, p: Any) -> float:
    """Compute the value of `fastece.kernel_calibration_error`.

    The width of the kernel is the median distance of the first rows.
    """
    distances = compute_distances(p[:ROWS_FOR_WIDTH])
    width = float(np.median(distances[np.tril_indices(len(distances), -1)]))
    products = compute_kernel(p, width)
    gaps = np.eye(p.shape[1])[y] - p
    products *= gaps @ gaps.T
    return float(products.sum() / (y.size * (y.size - 1)))


# --- numpy loops for replicates -------------------------------------------------------------


@on_one_thread
def resample_in_batches(
    draw: Callable[..., Any], values: Callable[[Any], Any], replicates: int
) -> Any:
    """Draw batches with `draw(rng, size)`, and compute values (replicates,)."""
    rng = np.random.default_rng(0)
    batches = []
    for first in range(0, replicates, REPLICATES_PER_BATCH):
        size = min(REPLICATES_PER_BATCH, replicates - first)
        batches.append(values(draw(rng, size)))
    return np.concatenate(batches)


def draw_counts(n: int, rng: Any, size: int) -> Any:
    """Draw rows, and return how often each of n rows counts, as (n, size)."""
    draws = rng.integers(0, n, (size, n))
    counts = np.stack([np.bincount(rows, minlength=n) for rows in draws], axis=1)
    return counts.astype(np.float64)


def draw_labels(p: Any, rng: Any, size: int) -> Any:
    """Draw labels with probabilities (n, K), as unit vectors (n, K, size)."""
    upper_ends = p.cumsum(axis=1)[:, None, :-1]
    labels = (rng.random((len(p), size, 1)) >= upper_ends).sum(axis=2)
    return (labels[:, None] == np.arange(p.shape[1])[:, None]).astype(np.float64)


def prepare_canonical_of_counts(y: Any, p: Any) -> Callable[[Any], Any]:
    """Return the canonical errors (size,) as a function of counts (n, size)."""
    order = np.argsort(y, kind="stable")
    p = p[order]
    densities = compute_densities(p, BANDWIDTH)
    ends_of_classes = np.searchsorted(y[order], np.arange(p.shape[1] + 1))

    def values(counts: Any) -> Any:
        counts = counts[order]
        frequencies = np.stack(
            [
                densities[:, first:end] @ counts[first:end]
                for first, end in pairwise(ends_of_classes)
            ]
        )
        frequencies /= frequencies.sum(axis=0)
        frequencies -= p.T[:, :, None]
        errors = np.abs(frequencies, out=frequencies).sum(axis=0)
        return (counts * errors).sum(axis=0) / y.size

    return values


def prepare_skce_of_counts(y: Any, p: Any) -> Callable[[Any], Any]:
    """Return the unbiased kernel errors (size,) as a function of counts (n, size)."""
    gaps = np.eye(p.shape[1])[y] - p
    products = compute_kernel(p, WIDTH)
    products *= gaps @ gaps.T

    def values(counts: Any) -> Any:
        n_pairs = y.size**2 - (counts * counts).sum(axis=0)
        return (counts * (products @ counts)).sum(axis=0) / n_pairs

    return values


def prepare_canonical_of_labels(p: Any) -> Callable[[Any], Any]:
    """Return the canonical errors (size,) as a function of labels (n, K, size)."""
    weights = compute_densities(p, BANDWIDTH)
    weights /= weights.sum(axis=1, keepdims=True)

    def values(labels: Any) -> Any:
        frequencies = (weights @ labels.reshape(len(p), -1)).reshape(labels.shape)
        frequencies -= p[:, :, None]
        return np.abs(frequencies, out=frequencies).sum(axis=(0, 1)) / len(p)

    return values


def prepare_skce_of_labels(p: Any) -> Callable[[Any], Any]:
    """Return the unbiased kernel errors (size,) as a function of labels (n, K, size)."""
    kernel = compute_kernel(p, WIDTH)

    def values(labels: Any) -> Any:
        gaps = labels
        gaps -= p[:, :, None]
        products = (kernel @ gaps.reshape(len(p), -1)).reshape(gaps.shape)
        products *= gaps
        return products.sum(axis=(0, 1)) / (len(p) * (len(p) - 1))

    return values


# --- benchmarks -----------------------------------------------------------------------------


def make_estimator(error: str) -> Any:
    """Make the estimator of an error, with the parameter of its numpy loop."""
    if error == "canonical":
        return fastece.DirichletKDE(BANDWIDTH)
    return fastece.SKCE("unbiased", width=WIDTH)


class CanonicalError(Beside):
    """Measure `canonical_error`, with a bandwidth and with the likeliest of ten."""

    params = ([0.01, "likelihood"], [500, 5000])
    param_names = ("bandwidth", "n")

    def setup(self, bandwidth: Any, n: int) -> None:
        """Draw the data."""
        require("canonical_error")
        y, p = baselines.draw_class_vectors(n, N_CLASSES)
        self.call = partial(fastece.canonical_error, y, p, bandwidth=bandwidth)
        self.other = partial(canonical, y, p, bandwidth)


class KernelError(Beside):
    """Measure `kernel_calibration_error`, which is unbiased."""

    params = ([500, 5000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        """Draw the data."""
        require("kernel_calibration_error")
        y, p = baselines.draw_class_vectors(n, N_CLASSES)
        self.call = partial(fastece.kernel_calibration_error, y, p)
        self.other = partial(skce, y, p)


class PairsBootstrap(Replicated):
    """Measure both errors under resampling of rows."""

    params = (["canonical", "skce"], [2000])
    param_names = ("error", "n")

    def setup(self, error: str, n: int) -> None:
        """Draw the data."""
        require("canonical_error", "bootstrap")
        y, p = baselines.draw_class_vectors(n, N_CLASSES)
        prepare_values = {"canonical": prepare_canonical_of_counts, "skce": prepare_skce_of_counts}
        call = partial(fastece.bootstrap, y, p, estimator=make_estimator(error))
        loop = partial(resample_in_batches, partial(draw_counts, n), prepare_values[error](y, p))
        self.prepare(call, loop, size=n, summands=n * n)


class PairsTest(Replicated):
    """Measure both errors of labels that are drawn with the predicted probabilities."""

    params = (["canonical", "skce"], [500])
    param_names = ("error", "n")

    def setup(self, error: str, n: int) -> None:
        """Draw the data."""
        require("canonical_error", "calibration_test")
        y, p = baselines.draw_class_vectors(n, N_CLASSES)
        prepare_values = {"canonical": prepare_canonical_of_labels, "skce": prepare_skce_of_labels}
        call = partial(fastece.calibration_test, y, p, estimator=make_estimator(error))
        loop = partial(resample_in_batches, partial(draw_labels, p), prepare_values[error](p))
        self.prepare(call, loop, size=n, summands=n * n)
