"""Canonical calibration errors in plain Python, from their definitions and from nothing else.

Data are lists: p of n rows with K probabilities each, y of classes, v of weights, c of
multiplicities, which may be 0; row i counts ``w_i = c_i v_i``. Rows i != j are rows of the data,
not copies of one. Nothing of fastece is imported, nor is numpy.

Sources: Popordanoska, Sayer and Blaschko (2022) for the error by kernel densities; Widmann,
Lindsten and Zachariah (2019) for the squared kernel calibration error (SKCE).

Logarithms of densities are sums of terms as large as 1e6 and have to be right within 1e-11. So they
are added up as decimal numbers.
"""

from decimal import Decimal, getcontext
from functools import lru_cache
from math import dist, exp, fsum, lgamma, nan
from statistics import median

getcontext().prec = 34
MIN_ENTRY = 1e-5  # a smaller entry counts as this in logarithms
BANDWIDTHS = [10 ** (-5 + 4 * m / 9) for m in range(10)]
MAX_ROWS_OF_MEDIAN = 1000  # the median distance is taken over so many rows


def weights_of(n, v=None, c=None):
    """w_i = c_i v_i."""
    v = [1.0] * n if v is None else v
    c = [1] * n if c is None else c
    return [float(ci) * float(vi) for ci, vi in zip(c, v, strict=True)]


def gaps_of(p, y):
    """e_{y_i} - p_i of every row."""
    return gaps_from(p, [unit_vector(label, len(row)) for row, label in zip(p, y, strict=True)])


def unit_vector(label, n_classes):
    """e_label: 1 for this class, 0 for the others."""
    return [1 if k == label else 0 for k in range(n_classes)]


def gaps_from(p, q):
    """q_i - p_i of every row."""
    return [[b - a for a, b in zip(*rows, strict=True)] for rows in zip(p, q, strict=True)]


@lru_cache(maxsize=100_000)
def log_gamma(alpha):
    """log Gamma(alpha) for alpha >= 1: Stirling's series where a float would lose digits."""
    if alpha < 1000:
        return Decimal(lgamma(alpha))
    half_log_of_two_pi = Decimal("0.91893853320467274178032973640561763986")
    series = 1 / (12 * alpha) - 1 / (360 * alpha**3) + 1 / (1260 * alpha**5)
    return (alpha - Decimal("0.5")) * alpha.ln() - alpha + half_log_of_two_pi + series


@lru_cache(maxsize=100_000)
def log_entry(x):
    """log max(x, MIN_ENTRY)."""
    return Decimal(max(x, MIN_ENTRY)).ln()


def log_densities(p, bandwidth):
    """logs[j][i]: log density at p_j of the Dirichlet law with alpha = p_i / bandwidth + 1."""
    h = Decimal(bandwidth)
    powers = [[Decimal(x) / h for x in row] for row in p]  # alpha - 1
    constants = [
        log_gamma(sum(row) + len(row)) - sum(log_gamma(x + 1) for x in row) for row in powers
    ]
    places = [[log_entry(x) for x in row] for row in p]
    return [
        [
            constant + sum(x * log for x, log in zip(row, place, strict=True) if x != 0)
            for constant, row in zip(constants, powers, strict=True)
        ]
        for place in places
    ]


def shares_of(logs, w, j):
    """w_i K(p_j; p_i) / sum_{i != j} w_i K(p_j; p_i) for every row i, 0 for i = j, and the log of
    the sum. The largest K is taken out of the sum. None without another row."""
    others = [i for i in range(len(w)) if i != j and w[i] > 0]
    if not others:
        return None, None
    largest = max(logs[j][i] for i in others)
    terms = [0.0] * len(w)
    for i in others:
        terms[i] = w[i] * exp(float(logs[j][i] - largest))
    total = fsum(terms)
    return [term / total for term in terms], largest + Decimal(total).ln()


def log_likelihood(p, bandwidth, v=None):
    """sum_j w_j log sum_{i != j} w_i K(p_j; p_i)."""
    w = weights_of(len(p), v)
    logs = log_densities(p, bandwidth)
    return float(sum(Decimal(w[j]) * shares_of(logs, w, j)[1] for j in range(len(p)) if w[j] > 0))


def likely_bandwidth(p, v=None):
    """The first of BANDWIDTHS with the largest log likelihood, and its lead over the next."""
    likelihoods = [log_likelihood(p, h, v) for h in BANDWIDTHS]
    largest, second, *_ = sorted(likelihoods, reverse=True)
    return BANDWIDTHS[likelihoods.index(largest)], largest - second


def smoothed_error(p, gap, bandwidth, norm, w):
    """(1/W) sum_j w_j sum_k |sum_{i != j} w_i K(p_j; p_i) gap_jik / sum_{i != j} w_i K|^norm."""
    logs = log_densities(p, bandwidth)
    terms = []
    for j in range(len(p)):
        if w[j] > 0:
            shares, _ = shares_of(logs, w, j)
            if shares is None:
                return nan
            for k in range(len(p[j])):
                mean = fsum(share * gap(j, i, k) for i, share in enumerate(shares) if share > 0)
                terms.append(w[j] * abs(mean) ** norm)
    return fsum(terms) / fsum(w)


def canonical_error(p, y, bandwidth="likelihood", norm=1.0, v=None, c=None):
    """(1/W) sum_j w_j sum_k |r_jk - p_jk|^norm with
    r_j = sum_{i != j} w_i K(p_j; p_i) e_{y_i} / sum_{i != j} w_i K(p_j; p_i)."""
    h = likely_bandwidth(p, v)[0] if bandwidth == "likelihood" else bandwidth
    w = weights_of(len(p), v, c)
    e = [unit_vector(label, len(row)) for row, label in zip(p, y, strict=True)]
    return smoothed_error(p, lambda j, i, k: e[i][k] - p[j][k], h, norm, w)


def canonical_truth(p, q, bandwidth="likelihood", norm=1.0, v=None):
    """The canonical error where labels of row i have the true probabilities q_i:
    (1/V) sum_j v_j sum_k |sum_{i != j} v_i K(p_j; p_i) (q_ik - p_ik) / sum_{i != j} v_i K|^norm."""
    h = likely_bandwidth(p, v)[0] if bandwidth == "likelihood" else bandwidth
    w = weights_of(len(p), v)
    return smoothed_error(p, lambda _, i, k: q[i][k] - p[i][k], h, norm, w)


def median_width(p, v=None):
    """Median of |p_i - p_j| over i < j of the first rows of positive weight; 0 for a single row."""
    rows = [row for row, w in zip(p, weights_of(len(p), v), strict=True) if w > 0]
    rows = rows[:MAX_ROWS_OF_MEDIAN]
    distances = [dist(a, b) for i, b in enumerate(rows) for a in rows[:i]]
    return median(distances) if distances else 0.0


def similarity(a, b, kernel, width):
    """exp(-|a - b| / width) or exp(-|a - b|^2 / (2 width^2)); for width 0: are they equal?"""
    if width == 0:
        return float(a == b)
    distance = dist(a, b) / width
    if kernel == "exponential":
        return exp(-distance)
    return exp(-(distance**2) / 2)


def pair_terms(p, gaps, kernel, width):
    """terms[i][j] = k(p_i, p_j) gap_i . gap_j."""
    n = len(p)
    return [
        [
            similarity(p[i], p[j], kernel, width)
            * fsum(a * b for a, b in zip(gaps[i], gaps[j], strict=True))
            for j in range(n)
        ]
        for i in range(n)
    ]


def mean_of_pairs(terms, w, rows):
    """sum_{i != j} w_i w_j t_ij / sum_{i != j} w_i w_j over these rows; None without a pair."""
    pairs = [(i, j) for i in rows for j in rows if i != j and w[i] * w[j] > 0]
    if not pairs:
        return None
    total = fsum(w[i] * w[j] for i, j in pairs)
    return fsum(w[i] * w[j] * terms[i][j] for i, j in pairs) / total


def skce(p, y, form="unbiased", kernel="exponential", width="median", v=None, c=None):
    """h_ij = k(p_i, p_j) (e_{y_i} - p_i) . (e_{y_j} - p_j); biased: sum_ij w_i w_j h_ij / W^2;
    unbiased: sum_{i != j} w_i w_j h_ij / sum_{i != j} w_i w_j."""
    width = median_width(p, v) if width == "median" else width
    w = weights_of(len(p), v, c)
    terms = pair_terms(p, gaps_of(p, y), kernel, width)
    if form == "biased":
        return mean_of_all(terms, w)
    value = mean_of_pairs(terms, w, range(len(p)))
    return nan if value is None else value


def mean_of_all(terms, w):
    """sum_ij w_i w_j t_ij / W^2."""
    rows = range(len(w))
    return fsum(w[i] * w[j] * terms[i][j] for i in rows for j in rows) / fsum(w) ** 2


def skce_truth(p, q, kernel="exponential", width="median", v=None):
    """The squared kernel error where labels of row i have the true probabilities q_i:
    sum_ij v_i v_j k(p_i, p_j) (q_i - p_i) . (q_j - p_j) / V^2."""
    width = median_width(p, v) if width == "median" else width
    terms = pair_terms(p, gaps_from(p, q), kernel, width)
    return mean_of_all(terms, weights_of(len(p), v))
