"""The density based calibration error by brute force, from its definitions and from nothing else.

With scores s_i placed into the range [low, high], weights w_i of sum W, hits y_i and a kernel of
standard deviation h:

    f(s) = 1/W sum_i w_i k_h(s, s_i)        g(s) = 1/W sum_i w_i y_i k_h(s, s_i)
    ECE_p = (int |g/f - s|^p f ds)^(1/p)    norm=inf: the largest |g/f - s| where f is not too small

Every grid point adds up all scores within its reach. numpy and scipy only make that affordable;
nothing of fastece is imported. Each cell of the grid, at most h / 20 wide, is integrated by
Simpson's rule, which puts a parabola through the two ends and the middle. Where g - s f changes its
sign within a cell, the power of the absolute value of the parabola is integrated.
"""

from math import ceil, fsum, inf, nan, pi, sqrt

import numpy as np
import reference
from scipy.special import gammaln

MIN_BANDWIDTH = 0.0003
KERNELS = ["gaussian", "triweight", "epanechnikov", "beta"]
# Distance, in bandwidths, beyond which a kernel counts as 0.
REACH = {"gaussian": 9.0, "triweight": 3.0, "epanechnikov": sqrt(5), "beta": 5.5}
# Grid points and scores of one matrix of kernel values.
POINTS_OF_MATRIX = 256
SCORES_OF_MATRIX = 1024
# Up to so many distinct scores, cells end where a kernel ends.
MAX_EXACT_SCORES = 2000
# Pieces of a cell in which g - s f changes its sign.
PIECES = 60


def silverman(scores, weights, n, low=0.0, high=1.0):
    """h = max(0.0003, min(sd, IQR/1.349) (3 n / 4)^(-1/5)), from all scores placed into the range.

    sd^2 = sum w (s - m)^2 / W * n / (n - 1); IQR = e_3 - e_1 of four equal-mass bins, left out when
    it is 0; all scores equal or n = 1: 0.0003. n is the number of rows, whatever their weights.
    Silverman (1986, section 3.4.2), with the factor (4 / 3)^(1/5) of a normal density.
    """
    weights = [1.0] * len(scores) if weights is None else [float(w) for w in weights]
    rows = [(min(max(float(s), low), high), w) for s, w in zip(scores, weights, strict=True)]
    rows = [(s, w) for s, w in rows if w > 0]
    if n == 1 or len({s for s, _ in rows}) == 1:
        return MIN_BANDWIDTH
    # Weights up to 1 can neither overflow nor vanish all together.
    largest = max(w for _, w in rows)
    s = [score for score, _ in rows]
    w = [weight / largest for _, weight in rows]
    total = fsum(w)
    mean = fsum(wi * si for si, wi in zip(s, w, strict=True)) / total
    squares = fsum(wi * (si - mean) ** 2 for si, wi in zip(s, w, strict=True))
    spread = sqrt(squares / total * n / (n - 1))
    edges = reference.quantile_edges(s, w, 4, low, high, closed=None)
    iqr = edges[3] - edges[1]
    if iqr > 0:
        spread = min(spread, iqr / 1.349)
    return max(MIN_BANDWIDTH, spread * (3 * n / 4) ** (-1 / 5))


def kernel(kind, u, h):
    """The symmetric kernels, densities of u with mean 0 and standard deviation h.

    The triweight is proportional to (1 - (u / 3h)^2)^3, the Epanechnikov kernel to
    1 - (u / (sqrt(5) h))^2; both are 0 where this is negative.
    """
    u = np.asarray(u, dtype=float)
    if kind == "gaussian":
        return np.exp(-((u / h) ** 2) / 2) / (h * sqrt(2 * pi))
    radius = REACH[kind] * h
    parabola = np.maximum(1 - (u / radius) ** 2, 0)
    if kind == "triweight":
        return 35 / (32 * radius) * parabola**3
    return 3 / (4 * radius) * parabola


def rho(x, b):
    """2 b^2 + 2.5 - sqrt(4 b^4 + 6 b^2 + 2.25 - x^2 - x / b) of Chen (1999)."""
    root = np.sqrt(4 * b**4 + 6 * b**2 + 2.25 - x**2 - x / b)
    return 2 * b**2 + 2.5 - root


def beta_shape(x, b):
    """x / b, but rho(x) where x < 2 b: the shape parameter at a point at the distance x from 0."""
    return np.where(x < 2 * b, rho(np.minimum(x, 2 * b), b), x / b)


def merged(scores, hits, weights, low, high):
    """Distinct scores in the range, and shares (m, 2) of the weight: of all rows, of hits."""
    s = np.clip(np.asarray(scores, dtype=float), low, high)
    y = np.asarray(hits, dtype=float)
    w = np.ones(len(s)) if weights is None else np.asarray(weights, dtype=float)
    has_weight = w > 0
    s = s[has_weight]
    y = y[has_weight]
    w = w[has_weight] / w.max()
    distinct, index = np.unique(s, return_inverse=True)
    of_rows = np.bincount(index, w, len(distinct))
    of_hits = np.bincount(index, w * y, len(distinct))
    return distinct, np.stack([of_rows, of_hits], axis=1) / fsum(w)


def images(s, shares, low, high, reach):
    """Scores with all their reflections at both ends that reach into the range, sorted.

    They are 2 m (high - low) + s and 2 m (high - low) + 2 low - s for all integers m.
    """
    width = high - low
    max_m = ceil(reach / (2 * width)) + 1
    shifts = 2 * width * np.arange(-max_m, max_m + 1)[:, None]
    places = np.concatenate([(shifts + s).ravel(), (shifts + (2 * low - s)).ravel()])
    index = np.tile(np.arange(len(s)), 2 * len(shifts))
    order = np.argsort(places, kind="stable")
    order = order[(places[order] >= low - reach) & (places[order] <= high + reach)]
    return places[order], shares[index[order]]


def sums(x, s, shares, reach, values):
    """sum_i shares_i k(x, s_i) at each of the sorted x, from the sorted s within reach.

    `values(i, j)` is the matrix of k at the points `x[i]` and the scores `s[j]`, two slices.
    """
    result = np.zeros((len(x), shares.shape[1]))
    for start in range(0, len(x), POINTS_OF_MATRIX):
        points = slice(start, min(start + POINTS_OF_MATRIX, len(x)))
        first = np.searchsorted(s, x[points][0] - reach, "left")
        last = np.searchsorted(s, x[points][-1] + reach, "right")
        for j in range(first, last, SCORES_OF_MATRIX):
            scores = slice(j, min(j + SCORES_OF_MATRIX, last))
            result[points] += values(points, scores) @ shares[scores]
    return result


def symmetric_densities(x, s, shares, h, kind, low, high):
    """(len(x), 2): f and g at sorted points by a reflected kernel, for distinct scores."""
    reach = REACH[kind] * h
    s, shares = images(s, shares, low, high, reach)
    return sums(x, s, shares, reach, lambda i, j: kernel(kind, x[i, None] - s[None, j], h))


def beta_densities(angle, s, shares, h, low, high):
    """(len(angle), 2): f and g at the points low + (high - low) sin(angle)^2, angles sorted.

    At x in [0, 1] the kernel is the density of Beta(a, c) at the scaled score. An angle keeps both
    x and 1 - x exact, and kernels are nowhere wider than h in it: further away than REACH, they
    are below 1e-16 of their peak. Scores at 0 and 1 give 0 at every x except the end itself.
    """
    width = high - low
    is_interior = (s > low) & (s < high)
    from_low = (s[is_interior] - low) / width
    from_high = (high - s[is_interior]) / width
    angle_of_score = np.arctan2(np.sqrt(from_low), np.sqrt(from_high))
    log_score = precise_log(from_low, from_high)
    log_rest = precise_log(from_high, from_low)
    a = beta_shape(np.sin(angle) ** 2, h**2)
    c = beta_shape(np.cos(angle) ** 2, h**2)
    log_constant = gammaln(a + c) - gammaln(a) - gammaln(c)

    def densities_of_beta(i, j):
        powers = np.outer(a[i] - 1, log_score[j]) + np.outer(c[i] - 1, log_rest[j])
        return np.exp(powers + log_constant[i, None])

    reach = REACH["beta"] * h
    return sums(angle, angle_of_score, shares[is_interior], reach, densities_of_beta) / width


def precise_log(x, complement):
    """log(x) for x = 1 - complement, from the smaller of both."""
    return np.where(x < 0.5, np.log(x), np.log1p(-np.minimum(complement, 0.5)))


def densities(x, scores, hits, weights, h, kind, low, high):
    """f(x) and g(x) at any points of the range."""
    x = np.asarray(x, dtype=float)
    s, shares = merged(scores, hits, weights, low, high)
    order = np.argsort(x)
    if kind == "beta":
        angle = np.arctan2(np.sqrt(x - low), np.sqrt(high - x))
        at_sorted = beta_densities(angle[order], s, shares, h, low, high)
    else:
        at_sorted = symmetric_densities(x[order], s, shares, h, kind, low=low, high=high)
    result = np.empty_like(at_sorted)
    result[order] = at_sorted
    return result[:, 0], result[:, 1]


def with_middles(edges):
    """The ends of cells with the middle of each between them: 2 N + 1 points."""
    points = np.empty(2 * len(edges) - 1)
    points[::2] = edges
    points[1::2] = (edges[:-1] + edges[1:]) / 2
    return points


def cells_of_range(s, h, kind, low, high, per_h):
    """Ends of cells of the range, at most h / per_h wide.

    A cell ends where a kernel ends. With too many scores for this, cells are narrower for the
    kernel that has a kink at its end.
    """
    if kind == "epanechnikov" and len(s) > MAX_EXACT_SCORES:
        per_h = 4 * per_h
    n = max(64, ceil((high - low) / h * per_h))
    edges = low + (high - low) * np.arange(n + 1) / n
    edges[-1] = high
    if kind == "gaussian" or len(s) > MAX_EXACT_SCORES:
        return edges
    radius = REACH[kind] * h
    centres, _ = images(s, np.zeros((len(s), 1)), low, high, radius)
    ends = np.concatenate([centres - radius, centres + radius])
    return np.unique(np.concatenate([edges, ends[(ends > low) & (ends < high)]]))


def cells_of_angles(h, per_h):
    """Ends of cells of [0, pi/2], at most h / per_h wide and much finer at both ends, where the
    kernel at a score s varies on the scale sqrt(3 / log(1 / s)) h, however small s is."""
    n = max(64, ceil(pi / 2 / h * per_h))
    uniform = np.linspace(0, pi / 2, n + 1)
    ratio = 1 + 2 / per_h
    fine = h * ratio ** -np.arange(ceil(np.log(200) / np.log(ratio)))
    joint = np.arcsin(min(1.0, sqrt(2) * h))
    fine = np.append(fine, joint)
    fine = fine[fine < pi / 2]
    return np.unique(np.concatenate([uniform, fine, pi / 2 - fine]))


def power(f, d, norm):
    """|d / f|^p f, and 0 where f is 0."""
    if norm == 1:
        return np.abs(d)
    ratio = np.abs(np.divide(d, f, out=np.zeros_like(d), where=f > 0))
    return ratio**norm * np.maximum(f, 0)


def integral(points, f, d, norm):
    """int |d / f|^p f over cells, given f and d at the ends and the middle of each cell."""
    width = points[2::2] - points[:-2:2]
    value = power(f, d, norm)
    total = width / 6 * (value[:-2:2] + 4 * value[1::2] + value[2::2])
    # Lagrange's parabolas through the ends and the middle, at the middles of the pieces.
    t = (np.arange(PIECES) + 0.5) / PIECES
    parabolas = np.array([(1 - t) * (1 - 2 * t), 4 * t * (1 - t), t * (2 * t - 1)])
    f_of_cell = np.stack([f[:-2:2], f[1::2], f[2::2]], axis=1)
    d_of_cell = np.stack([d[:-2:2], d[1::2], d[2::2]], axis=1)
    for cell in np.flatnonzero((d_of_cell.min(axis=1) < 0) & (d_of_cell.max(axis=1) > 0)):
        of_pieces = power(f_of_cell[cell] @ parabolas, d_of_cell[cell] @ parabolas, norm)
        total[cell] = width[cell] * of_pieces.mean()
    return fsum(total)


def bandwidth_of(problem, weights, bandwidth, low, high):
    """A number as it is, or Silverman's from the rows of positive weight."""
    if bandwidth != "silverman":
        return float(bandwidth)
    n = len(problem[0]) if weights is None else int(np.count_nonzero(np.asarray(weights) > 0))
    return silverman(problem[0], weights, n, low, high)


def kde_error(
    problem,
    weights=None,
    *,
    bandwidth="silverman",
    kernel="gaussian",
    norm=1.0,
    score_range="support",
    points=40,
    floor=0.01,
):
    """The calibration error of one binary problem `(scores, hits, low, high)`.

    The parameters have the meaning that they have for the estimator KDE.
    norm=inf: the largest |g / f - s| where f >= floor / (high - low), nan if that is nowhere.
    `points`: how many points of the grid lie in one h, at least.
    """
    scores, hits, *support = problem
    low, high = reference.score_range_of(score_range, *support)
    h = bandwidth_of(problem, weights, bandwidth, low, high)
    s, shares = merged(scores, hits, weights, low, high)
    if kernel == "beta":
        angle = with_middles(cells_of_angles(h, points / 2))
        f, g = beta_densities(angle, s, shares, h, low, high).T
        variable = angle
        x = low + (high - low) * np.sin(angle) ** 2
        derivative = (high - low) * np.sin(2 * angle).clip(0)  # dx / d angle
    else:
        x = with_middles(cells_of_range(s, h, kernel, low, high, points / 2))
        f, g = symmetric_densities(x, s, shares, h, kernel, low=low, high=high).T
        variable = x
        derivative = 1.0
    d = g - x * f
    if norm == inf:
        is_dense = f >= floor / (high - low)
        return float(np.max(np.abs(d[is_dense] / f[is_dense]))) if is_dense.any() else nan
    return integral(variable, f * derivative, d * derivative, norm) ** (1 / norm)
