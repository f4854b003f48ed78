"""The density based calibration error by brute force, from its definitions and from nothing else.

With scores s_i placed into the range [low, high], weights w_i of sum W, hits y_i and a kernel of
standard deviation h:

    f(s) = 1/W sum_i w_i k_h(s, s_i)        g(s) = 1/W sum_i w_i y_i k_h(s, s_i)
    ECE_p = (int |g/f - s|^p f ds)^(1/p)    norm=inf: the largest |g/f - s| where f is not too small

Every score is looked at from every grid point within its reach. numpy and scipy only make that
affordable; nothing of fastece is imported. Integrals are those of parabolas through the two ends
and the middle of each cell (Simpson's rule), and where g - s f changes its sign within a cell, of
the power of the absolute value of the parabola. Cells are a twentieth of h and less.
"""

from math import ceil, fsum, inf, nan, pi, sqrt

import numpy as np
import reference
from scipy.special import gammaln

SMALLEST = 0.0003
KERNELS = ["gaussian", "triweight", "epanechnikov", "beta"]
REACH = {"gaussian": 9.0, "triweight": 3.0, "epanechnikov": sqrt(5), "beta": 5.5}  # times h
BLOCK, CHUNK = 256, 1024  # grid points and scores of one matrix of kernel values
EXACT = 2000  # up to so many distinct scores, cells end where a kernel does
PARTS = 60  # of a cell in which g - s f changes its sign


def silverman(scores, weights, n, low=0.0, high=1.0):
    """h = max(0.0003, min(sd, IQR/1.349) (3 n / 4)^(-1/5)), from all scores placed into the range.

    sd^2 = sum w (s - m)^2 / W * n / (n - 1); IQR = e_3 - e_1 of four equal-mass bins, left out when
    it is 0; all scores equal or n = 1: 0.0003. n is the number of rows, whatever their weights.
    """
    weights = [1.0] * len(scores) if weights is None else [float(w) for w in weights]
    rows = [(min(max(float(s), low), high), w) for s, w in zip(scores, weights, strict=True)]
    rows = [(s, w) for s, w in rows if w > 0]
    if n == 1 or len({s for s, _ in rows}) == 1:
        return SMALLEST
    top = max(w for _, w in rows)
    rows = [(s, w / top) for s, w in rows]
    total = fsum(w for _, w in rows)
    mean = fsum(w * s for s, w in rows) / total
    spread = sqrt(fsum(w * (s - mean) ** 2 for s, w in rows) / total * n / (n - 1))
    columns = [s for s, _ in rows], [w for _, w in rows]
    edges = reference.quantile_edges(*columns, 4, low, high, closed=None)
    iqr = edges[3] - edges[1]
    if iqr > 0:
        spread = min(spread, iqr / 1.349)
    return max(SMALLEST, spread * (3 * n / 4) ** (-1 / 5))


def kernel(kind, u, h):
    """The symmetric kernels, densities of u with mean 0 and standard deviation h.

    The triweight is (1 - (u / 3h)^2)^3, the Epanechnikov kernel 1 - (u / (sqrt(5) h))^2, each times
    what makes its integral 1, and 0 where that is negative.
    """
    u = np.asarray(u, dtype=float)
    if kind == "gaussian":
        z = u / h
        z *= z
        z *= -0.5
        np.exp(z, out=z)
        z *= 1 / (h * sqrt(2 * pi))
        return z
    radius = REACH[kind] * h
    inside = np.maximum(1 - (u / radius) ** 2, 0)
    if kind == "triweight":
        return 35 / (32 * radius) * inside**3
    return 3 / (4 * radius) * inside


def rho(x, b):
    """2 b^2 + 2.5 - sqrt(4 b^4 + 6 b^2 + 2.25 - x^2 - x / b), of Chen's second beta kernel."""
    return 2 * b**2 + 2.5 - np.sqrt(4 * b**4 + 6 * b**2 + 2.25 - x**2 - x / b)


def beta_shapes(x, rest, b):
    """(a, c) at the point x = 1 - rest: a = x / b, but rho(x) where x < 2 b; c likewise of rest."""

    def shape(x):
        return np.where(x < 2 * b, rho(np.minimum(x, 2 * b), b), x / b)

    return shape(x), shape(rest)


def merged(scores, hits, weights, low, high):
    """Distinct scores in the range, and their weights (m, 2), of all rows and of hits: shares."""
    s = np.clip(np.asarray(scores, dtype=float), low, high)
    y = np.asarray(hits, dtype=float)
    w = np.ones(len(s)) if weights is None else np.asarray(weights, dtype=float)
    s, y, w = s[w > 0], y[w > 0], w[w > 0]
    w = w / w.max()
    distinct, which = np.unique(s, return_inverse=True)
    both = [np.bincount(which, x, len(distinct)) for x in (w, w * y)]
    return distinct, np.stack(both, axis=1) / fsum(w)


def images(s, shares, low, high, reach):
    """Scores with all their reflections at both ends that can be felt in the range, sorted.

    They are 2 m (high - low) + s and 2 m (high - low) + 2 low - s for all integers m.
    """
    width = high - low
    most = ceil(reach / (2 * width)) + 1
    shifts = 2 * width * np.arange(-most, most + 1)[:, None]
    places = np.concatenate([(shifts + s).ravel(), (shifts + (2 * low - s)).ravel()])
    which = np.tile(np.arange(len(s)), 2 * len(shifts))
    felt = (places >= low - reach) & (places <= high + reach)
    places, which = places[felt], which[felt]
    order = np.argsort(places, kind="stable")
    return places[order], shares[which[order]]


def sums(x, s, shares, reach, values):
    """sum_i shares_i k(x, s_i) at each of the sorted x, from the sorted s within reach.

    `values(i, j)` is the matrix of k at the points `x[i]` and the scores `s[j]`, two slices.
    """
    result = np.zeros((len(x), shares.shape[1]))
    if len(x) == 0:
        return result
    starts = np.arange(0, len(x), BLOCK)
    ends = np.minimum(starts + BLOCK, len(x))
    first = np.searchsorted(s, x[starts] - reach, "left")
    last = np.searchsorted(s, x[ends - 1] + reach, "right")
    for k in np.flatnonzero(last > first):
        points = slice(starts[k], ends[k])
        for j in range(first[k], last[k], CHUNK):
            some = slice(j, min(j + CHUNK, last[k]))
            result[points] += values(points, some) @ shares[some]
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
    are below 1e-16 of their peak. Scores at 0 and 1 give 0 at every x but the end itself.
    """
    width, b = high - low, h**2
    left, right = (s - low) / width, (high - s) / width
    inside = (left > 0) & (right > 0)
    left, right, shares = left[inside], right[inside], shares[inside]
    where = np.arctan2(np.sqrt(left), np.sqrt(right))
    logs = np.array([log_of(left, right), log_of(right, left), np.ones(len(left))])
    a, c = beta_shapes(np.sin(angle) ** 2, np.cos(angle) ** 2, b)
    powers = np.array([a - 1, c - 1, gammaln(a + c) - gammaln(a) - gammaln(c)]).T
    return sums(
        angle, where, shares, REACH["beta"] * h, lambda i, j: np.exp(powers[i] @ logs[:, j])
    ) / width  # fmt: skip


def log_of(x, rest):
    """log(x) for x = 1 - rest."""
    return np.where(x < 0.5, np.log(x), np.log1p(-np.minimum(rest, 0.5)))


def densities(x, scores, hits, weights, h, kind, low, high):
    """f(x) and g(x) at any points of the range."""
    x = np.asarray(x, dtype=float)
    s, shares = merged(scores, hits, weights, low, high)
    order = np.argsort(x)
    if kind == "beta":
        angle = np.arctan2(np.sqrt(x - low), np.sqrt(high - x))
        both = beta_densities(angle[order], s, shares, h, low, high)
    else:
        both = symmetric_densities(x[order], s, shares, h, kind, low, high)
    result = np.empty_like(both)
    result[order] = both
    return result[:, 0], result[:, 1]


def with_middles(edges):
    """The ends of cells with the middle of each between them: 2 N + 1 points."""
    points = np.empty(2 * len(edges) - 1)
    points[::2] = edges
    points[1::2] = (edges[:-1] + edges[1:]) / 2
    return points


def cells_of_range(s, h, kind, low, high, per_h):
    """Ends of cells of the range, at most h / per_h wide; where a kernel ends, so does a cell, or
    cells are narrower for the kernel that has a kink there."""
    if kind == "epanechnikov" and len(s) > EXACT:
        per_h = 4 * per_h
    n = max(64, ceil((high - low) / h * per_h))
    edges = low + (high - low) * np.arange(n + 1) / n
    edges[-1] = high
    if kind == "gaussian" or len(s) > EXACT:
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
    nodes = [(values[:-2:2], values[1::2], values[2::2]) for values in (f, d)]
    a, b, c = (power(f, d, norm) for f, d in zip(*nodes, strict=True))
    total = width / 6 * (a + 4 * b + c)
    low, high = (extreme.reduce(nodes[1]) for extreme in (np.minimum, np.maximum))
    mixed = np.flatnonzero((low < 0) & (high > 0))
    t = (np.arange(PARTS) + 0.5) / PARTS
    shapes = np.array([(1 - t) * (1 - 2 * t), 4 * t * (1 - t), t * (2 * t - 1)])
    for some in np.array_split(mixed, 1 + len(mixed) // 20_000):
        parts = [np.stack([x[some] for x in three], axis=1) @ shapes for three in nodes]
        total[some] = width[some] * power(*parts, norm).mean(axis=1)
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
    """The calibration error of one binary problem `(scores, hits, low, high)`; fields as of KDE.

    norm=inf: the largest |g / f - s| where f >= floor / (high - low), nan if that is nowhere.
    `points`: how many points of the grid lie in one h, at least.
    """
    scores, hits, *support = problem
    low, high = reference.score_range_of(score_range, *support)
    h = bandwidth_of(problem, weights, bandwidth, low, high)
    s, shares = merged(scores, hits, weights, low, high)
    if kernel == "beta":
        x = with_middles(cells_of_angles(h, points / 2))
        f, g = beta_densities(x, s, shares, h, low, high).T
        place = low + (high - low) * np.sin(x) ** 2
        scale = (high - low) * np.sin(2 * x).clip(0)  # d place / d x
    else:
        x = with_middles(cells_of_range(s, h, kernel, low, high, points / 2))
        f, g = symmetric_densities(x, s, shares, h, kernel, low, high).T
        place, scale = x, 1.0
    d = g - place * f
    if norm == inf:
        solid = f >= floor / (high - low)
        return float(np.max(np.abs(d[solid] / f[solid]), initial=-inf)) if solid.any() else nan
    return integral(x, f * scale, d * scale, norm) ** (1 / norm)
