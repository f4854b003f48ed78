"""Methods of recalibration by brute force: the exact loss, a general optimiser, plain loops.

Nothing of fastece is imported. Logits Z and probabilities P are arrays (n, K), scores p are (n,),
labels y are integers, weights w are floats. Optima of few parameters are found from finite
differences, without any gradient.
"""

from itertools import product

import numpy as np
import pytest
from reference import quantile_edges, uniform_edges, which_bin
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logsumexp, softmax

SMALLEST_PROBABILITY = 2.0**-52  # 0 counts as this in a logarithm


def clip(p):
    """p limited to [2^-52, 1 - 2^-52]."""
    return np.clip(np.asarray(p, dtype=float), SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)


def log_odds(p):
    """log(p / (1 - p))."""
    p = clip(p)
    return np.log(p) - np.log1p(-p)


def columns(p):
    """A single probability per row stands for the two columns (1 - p, p)."""
    p = np.asarray(p, dtype=float)
    return p if p.ndim == 2 else np.column_stack([1 - p, p])


def mean(values, w):
    """Weighted mean."""
    return np.sum(values * w) / np.sum(w)


def log_loss(z, y, w):
    """Weighted mean of -log softmax(z)[y]."""
    return mean(logsumexp(z, axis=1) - z[np.arange(len(y)), y], w)


def cross_entropy(x, target, w):
    """Weighted mean of -t log q - (1 - t) log(1 - q) with logit q = x."""
    return mean(np.logaddexp(0, x) - target * x, w)


def minimum(loss, start, gradient="3-point"):
    """Where a smooth convex loss is smallest, by an optimiser that begins again from where it has
    stopped until nothing is gained."""
    x = np.asarray(start, dtype=float)
    smallest = np.inf
    for _ in range(20):
        optimum = minimize(loss, x, jac=gradient, method="BFGS", options={"gtol": 1e-11})
        if not optimum.fun < smallest - 1e-16:
            break
        smallest = optimum.fun
        x = optimum.x
    return x


def temperature(z, y, w):
    """T > 0 with the smallest log loss of softmax(z / T), Guo et al. (2017)."""

    def loss(log_t):
        return log_loss(z * np.exp(-log_t), y, w)

    rough = minimize_scalar(loss, bracket=(-1.0, 1.0), tol=1e-10).x
    x = minimize_scalar(loss, bounds=(rough - 1e-3, rough + 1e-3), options={"xatol": 1e-10}).x
    return float(np.exp(x))


def matrix_loss(weight, intercept, z, y, w, off_diagonal=0.0, penalty=0.0):
    """Mean loss + off_diagonal / (K (K - 1)) sum_{i != j} w_ij^2 + penalty / K sum_j b_j^2, Kull et
    al. (2019)."""
    k = len(intercept)
    squares = sum(weight[i, j] ** 2 for i, j in product(range(k), repeat=2) if i != j)
    loss = log_loss(z @ weight.T + intercept, y, w)
    return loss + off_diagonal / (k * (k - 1)) * squares + penalty / k * np.sum(intercept**2)


def matrix_gradient(weight, intercept, z, y, w, off_diagonal=0.0, penalty=0.0):
    """Derivatives of `matrix_loss` by weight and intercept, which a test holds against finite
    differences."""
    k = len(intercept)
    gap = softmax(z @ weight.T + intercept, axis=1) - np.eye(k)[y]
    by_weight = np.einsum("i,ij,il->jl", w, gap, z) / np.sum(w)
    by_weight += 2 * off_diagonal / (k * (k - 1)) * weight * (1 - np.eye(k))
    return by_weight, w @ gap / np.sum(w) + 2 * penalty / k * intercept


def vector(z, y, w):
    """(weight (K,), intercept (K,)) of softmax(weight * z + intercept)."""
    k = z.shape[1]

    def gradient(x):
        by_weight, by_intercept = matrix_gradient(np.diag(x[:k]), x[k:], z, y, w)
        return np.concatenate([np.diag(by_weight), by_intercept])

    x = minimum(lambda x: log_loss(z * x[:k] + x[k:], y, w), [1.0] * k + [0.0] * k, gradient)
    return x[:k], x[k:]


def matrix(z, y, w, off_diagonal=0.0, penalty=0.0):
    """(weight (K, K), intercept (K,)) of softmax(z @ weight.T + intercept), penalties included."""
    k = z.shape[1]

    def loss(x):
        weight = x[k:].reshape(k, k)
        return matrix_loss(weight, x[:k], z, y, w, off_diagonal=off_diagonal, penalty=penalty)

    def gradient(x):
        weight = x[k:].reshape(k, k)
        by_weight, by_intercept = matrix_gradient(
            weight, x[:k], z, y, w, off_diagonal=off_diagonal, penalty=penalty
        )
        return np.concatenate([by_intercept, by_weight.ravel()])

    x = minimum(loss, np.concatenate([np.zeros(k), np.eye(k).ravel()]), gradient)
    return x[k:].reshape(k, k), x[:k]


def platt(x, y, w, smooth=False):
    """(slope, intercept) of sigmoid(slope x + intercept); Platt's (1999) smooth targets are
    (N+ + 1) / (N+ + 2) and 1 / (N- + 2), with the weights of the two classes N+ and N-."""
    target = np.asarray(y, dtype=float)
    if smooth:
        hits = np.sum(w[y == 1])
        misses = np.sum(w[y == 0])
        target = np.where(y == 1, (hits + 1) / (hits + 2), 1 / (misses + 2))
    return minimum(lambda v: cross_entropy(v[0] * x + v[1], target, w), [1.0, 0.0])


def beta(p, y, w):
    """(a, b, c) of logit q = a ln p - b ln(1 - p) + c with a, b >= 0, Kull et al. (2017).

    It is the best of the optima with both free, either of them 0, or both 0, that are allowed.
    """
    log_p = np.log(clip(p))
    log_rest = np.log(1 - clip(p))
    target = np.asarray(y, dtype=float)

    def loss(v):
        a, b, c = v
        return cross_entropy(a * log_p - b * log_rest + c, target, w)

    candidates = []
    for is_free in product((1.0, 0.0), repeat=2):
        mask = np.array([*is_free, 1.0])
        v = minimum(lambda v, mask=mask: loss(v * mask), mask) * mask
        if min(v[:2]) >= 0:
            candidates.append(v)
    return min(candidates, key=loss)


def beta_map(p, a, b, c):
    """sigmoid(a ln p - b ln(1 - p) + c)."""
    return expit(a * np.log(clip(p)) - b * np.log(1 - clip(p)) + c)


def rising_sum(features, y, w):
    """(first, second, constant) of sigmoid(first f1 + second f2 + constant) with the smallest log
    loss of first, second >= 0: squares stand for numbers that are not negative."""

    def loss(v):
        return cross_entropy(features @ v[:2] ** 2 + v[2], y, w)

    starts = product((0.3, 1.0), repeat=2)
    first, second, constant = min((minimum(loss, [*x, 0.0]) for x in starts), key=loss)
    return first**2, second**2, constant


def quadratic(z, y, w):
    """(a, b, c) of the parabola a + b z + c z^2 with the smallest log loss that does not fall
    between the smallest and the largest z."""
    middle = (z.min() + z.max()) / 2
    half = (z.max() - z.min()) / 2
    x = (z - middle) / half
    convex, concave, constant = rising_sum(
        np.column_stack([(1 + x) ** 2, -((1 - x) ** 2)]), np.asarray(y, float), w
    )
    # In x: convex (1 + x)^2 - concave (1 - x)^2 + constant.
    c = convex - concave
    b = 2 * (convex + concave)
    a = c + constant
    ratio = middle / half
    return a - b * ratio + c * ratio**2, (b - 2 * c * ratio) / half, c / half**2


def quadratic_map(new, p, y, w):
    """sigmoid(a + b z + c z^2) of log odds z, and its tangents beyond the rows of the fit."""
    z = log_odds(p)
    a, b, c = quadratic(z, y, w)
    values = []
    for x in log_odds(new):
        end = min(max(x, z.min()), z.max())
        values.append(a + b * end + c * end**2 + (b + 2 * c * end) * (x - end))
    return expit(np.array(values))


def mixture(density, w):
    """Shares (K,) of the greatest weighted log likelihood of density (n, K): squares, divided by
    their sum, stand for shares."""

    def loss(v):
        return -mean(np.log(density @ v**2 / np.sum(v**2)), w)

    starts = np.eye(density.shape[1]) + 0.3
    v = min((minimum(loss, x) for x in starts), key=loss)
    return v**2 / np.sum(v**2)


def ets_map(new, prob, y, w):
    """Zhang, Kailkhura and Han (2020): the temperature, then the shares of the three parts."""
    t = temperature(log_columns(prob), y, w)
    k = columns(prob).shape[1]

    def parts(p):
        z = log_columns(p)
        return np.stack([softmax(z / t, axis=1), softmax(z, axis=1), np.full(z.shape, 1 / k)])

    shares = mixture(parts(prob)[:, np.arange(len(y)), y].T, w)
    q = np.tensordot(shares, parts(new), axes=1)
    return q if np.ndim(new) == 2 else q[:, 1]


def structured_inputs(new, prob, y, w):
    """log((1 - e) softmax(z / T) + e / K) of rows, with T and e = 1 / (n + 1) of a fit, and n."""
    t = temperature(log_columns(prob), y, w)
    n = np.sum(w) ** 2 / np.sum(w**2)
    e = 1 / (n + 1)
    z = log_columns(new)
    return np.log((1 - e) * softmax(z / t, axis=1) + e / z.shape[1]), n


def structured_penalty(weight, intercept, n):
    """Berta et al. (2026), with squares: K/n for the diagonal and intercepts, K (K - 1)/n for
    the other weights."""
    k = len(intercept)
    penalty = 0.0
    for i in range(k):
        penalty += k / n * ((weight[i, i] - 1) ** 2 + intercept[i] ** 2)
        penalty += sum(k * (k - 1) / n * weight[i, j] ** 2 for j in range(k) if j != i)
    return penalty


def structured_map(new, prob, y, w, *, is_matrix):
    """Structured matrix or vector scaling, fitted to prob and y."""
    u, n = structured_inputs(prob, prob, y, w)
    k = u.shape[1]
    is_free = np.ones((k, k), bool) if is_matrix else np.eye(k, dtype=bool)

    def lines(x):
        weight = np.zeros((k, k))
        weight[is_free] = x[k:]
        return weight, x[:k]

    def loss(x):
        weight, intercept = lines(x)
        return log_loss(u @ weight.T + intercept, y, w) + structured_penalty(weight, intercept, n)

    weight, intercept = lines(minimum(loss, np.concatenate([np.zeros(k), np.eye(k)[is_free]])))
    return probabilities(structured_inputs(new, prob, y, w)[0] @ weight.T + intercept, new)


def svs_map(new, prob, y, w):
    """Structured vector scaling."""
    return structured_map(new, prob, y, w, is_matrix=False)


def sms_map(new, prob, y, w):
    """Structured matrix scaling."""
    return structured_map(new, prob, y, w, is_matrix=True)


def isotonic_map(new, p, y, w):
    """Straight lines between the scores of the fit, and constant beyond them."""
    regression = pytest.importorskip("sklearn.isotonic").IsotonicRegression
    return regression(out_of_bounds="clip").fit(p, y, w).predict(new)


def bin_means(values, bin_of_row, w, n_bins):
    """Weighted mean of the values of each bin; nan where there are none."""
    means = []
    for b in range(n_bins):
        rows = [i for i in range(len(bin_of_row)) if bin_of_row[i] == b and w[i] > 0]
        total = sum(w[i] for i in rows)
        means.append(sum(w[i] * values[i] for i in rows) / total if rows else np.nan)
    return np.array(means)


def edges_of(p, w, n_bins, edges):
    """Edges of equal width or of equal mass."""
    if edges == "uniform":
        return uniform_edges(n_bins)
    return quantile_edges([float(s) for s in p], [float(v) for v in w], n_bins)


def histogram_map(new, p, y, w, n_bins=15, edges="uniform"):
    """The share of hits in the bin of the score; nan in a bin without rows."""
    cuts = edges_of(p, w, n_bins, edges)
    values = bin_means(y, [which_bin(s, cuts) for s in p], w, n_bins)
    return np.array([values[which_bin(s, cuts)] for s in new])


def scaling_binning_map(new, p, y, w, n_bins=15):
    """Kumar, Liang and Ma (2019): Platt scaling, equal-mass bins of its outputs, and the mean
    output in the bin; all rows are used for each of these."""
    scaled = platt_map(p, p, y, w)
    cuts = edges_of(scaled, w, n_bins, "quantile")
    values = bin_means(scaled, [which_bin(s, cuts) for s in scaled], w, n_bins)
    return np.array([values[which_bin(s, cuts)] for s in platt_map(new, p, y, w)])


def one_vs_rest(mapping, new, prob, y, w):
    """`mapping(new, p, hits, w)` for every class, rows divided by their sum, or 1/K each where all
    are 0. Two columns, or a single one, are the binary problem of class 1."""
    if np.ndim(prob) == 1:
        return mapping(new, prob, y, w)
    k = prob.shape[1]
    if k == 2:
        return columns(mapping(new[:, 1], prob[:, 1], y, w))
    q = np.column_stack([mapping(new[:, j], prob[:, j], (y == j).astype(int), w) for j in range(k)])
    total = q.sum(axis=1, keepdims=True)
    return np.where(total > 0, q / np.where(total > 0, total, 1), 1 / k)


def platt_map(new, p, y, w, smooth=False):
    """Platt scaling of the log odds, fitted to p and y."""
    slope, intercept = platt(log_odds(p), y, w, smooth)
    return expit(slope * log_odds(new) + intercept)


def fitted_beta_map(new, p, y, w):
    """Beta calibration, fitted to p and y."""
    return beta_map(new, *beta(p, y, w))


def log_columns(p):
    """Logarithms of the class probabilities, which serve as logits."""
    return np.log(clip(columns(p)))


def probabilities(z, new):
    """softmax(z) in the shape of `new`: all classes, or class 1 alone."""
    q = softmax(z, axis=1)
    return q if np.ndim(new) == 2 else q[:, 1]


def temperature_map(new, prob, y, w):
    """Temperature scaling, fitted to prob and y."""
    t = temperature(log_columns(prob), y, w)
    return probabilities(log_columns(new) / t, new)


def vector_map(new, prob, y, w):
    """Vector scaling, fitted to prob and y."""
    weight, intercept = vector(log_columns(prob), y, w)
    return probabilities(log_columns(new) * weight + intercept, new)


def matrix_map(new, prob, y, w, off_diagonal=0.0, intercept=0.0):
    """Matrix scaling, fitted to prob and y."""
    weight, shift = matrix(log_columns(prob), y, w, off_diagonal, intercept)
    return probabilities(log_columns(new) @ weight.T + shift, new)


# --- another base rate ---------------------------------------------------------------------------


def shifted(p, old, new):
    """Elkan (2001, theorem 2), of the probability p of class 1."""
    return new * (p - p * old) / (old - p * old + new * p - old * new)


def em_rates(p, old, w, steps=20000):
    """Base rates of unlabelled class vectors by EM: Saerens et al. (2002, eq. 2.9)."""
    new = np.asarray(old, dtype=float)
    for _ in range(steps):
        posterior = p * (new / old)
        posterior /= posterior.sum(axis=1, keepdims=True)
        before = new
        new = w @ posterior / w.sum()
        if np.abs(new - before).max() < 1e-14:
            break
    return new


def profile(p, old, w, k, rate):
    """Log likelihood of the rate of class k, with the best rates of the others, by EM."""
    n_classes = p.shape[1]
    others = [j for j in range(n_classes) if j != k]
    new = np.full(n_classes, (1 - rate) / (n_classes - 1))
    new[k] = rate
    for _ in range(3000):
        posterior = p * (new / old)
        posterior /= posterior.sum(axis=1, keepdims=True)
        mean = (w @ posterior)[others]
        before = new.copy()
        new[others] = (1 - rate) * mean / mean.sum()
        if np.abs(new - before).max() < 1e-14:
            break
    return np.sum(w * np.log((p * (new / old)).sum(axis=1)))
