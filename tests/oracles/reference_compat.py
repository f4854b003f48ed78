"""Calibration errors as other libraries define them, in plain loops.

Written from the definitions, without code of fastece or of these libraries. Scores are lists of
numbers; `kind` is `numpy.float32` or `numpy.float64`, the type in which a library rounds its edges.
Sums are `math.fsum`.
"""

from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import pairwise
from math import floor, fsum, sqrt

import numpy as np
from reference import folded, sigmoid, softmax

# -- shared by several libraries -------------------------------------------------------------------


def cells(scores, hits, index):
    """`(number of rows, mean score, share of hits)` of each bin that has rows, in order."""
    rows = {}
    for s, y, b in zip(scores, hits, index, strict=True):
        rows.setdefault(b, []).append((float(s), float(y)))
    means = []
    for _, pairs in sorted(rows.items()):
        n = len(pairs)
        means.append((n, fsum(s for s, _ in pairs) / n, fsum(y for _, y in pairs) / n))
    return means


def top_label(rows, labels):
    """The largest entry of each row, and whether the first one of that size is the label."""
    best = [list(row).index(max(row)) for row in rows]
    return [max(row) for row in rows], [int(k == y) for k, y in zip(best, labels, strict=True)]


def even_edges(n_bins):
    """`j * (1 / B)` and 1, equal to `numpy.linspace(0, 1, B + 1)` in float64."""
    step = 1.0 / n_bins
    return [j * step for j in range(n_bins)] + [1.0]


def quantile_edges(scores, shares, kind):
    """`numpy.quantile`, linear: a share q of n sorted scores is at place (n - 1) q.

    The difference of two neighbours is rounded in the type of the scores, all else in float64.
    """
    order = sorted(scores)
    edges = []
    for q in shares:
        place = (len(order) - 1) * q
        k = floor(place)
        if place >= len(order) - 1:
            edges.append(float(order[-1]))
            continue
        t = place - k
        step = float(kind(order[k + 1]) - kind(order[k]))
        edges.append(order[k] + step * t if t < 0.5 else order[k + 1] - step * (1 - t))
    return edges


# -- torchmetrics ----------------------------------------------------------------------------------


def torch_edges(n_bins, kind):
    """`torch.linspace(0, 1, B + 1)`: `j * step` below the middle, `1 - (B - j) * step` above it.

    The latter is rounded once, because processors multiply and add in one step.
    """
    step = kind(1) / kind(n_bins)
    exact_step = Fraction(float(step))
    half = (n_bins + 1) // 2
    below_middle = [kind(j) * step for j in range(half)]
    above_middle = [kind(float(1 - (n_bins - j) * exact_step)) for j in range(half, n_bins + 1)]
    return [float(edge) for edge in below_middle + above_middle]


def torch_error(scores, hits, n_bins, norm, kind):
    """The error with bins [e_j, e_j+1), and a bin of its own for 1.

    l1: sum_b n_b/n |a_b - c_b|. l2: the root of sum_b n_b/n (a_b - c_b)^2. max: the largest.
    """
    edges = torch_edges(n_bins, kind)
    bins = cells(scores, hits, [bisect_right(edges, s) - 1 for s in scores])
    if norm == "max":
        return max(abs(a - c) for _, c, a in bins)
    power = {"l1": 1, "l2": 2}[norm]
    mean = fsum(n * abs(a - c) ** power for n, c, a in bins) / len(scores)
    return mean ** (1 / power)


def torch_scores(preds, kind):
    """Probabilities as they are; if any is outside [0, 1] all are logits of a sigmoid."""
    if all(0 <= p <= 1 for p in preds):
        return [float(p) for p in preds]
    return [float(kind(sigmoid(z))) for z in preds]


def torch_binary(preds, target, n_bins, norm, ignore_index, kind):
    """The error of column 1. Rows with the label `ignore_index` are dropped before the range of the
    scores decides whether they are logits."""
    rows = [(p, y) for p, y in zip(preds, target, strict=True) if y != ignore_index]
    scores = torch_scores([p for p, _ in rows], kind)
    return torch_error(scores, [y for _, y in rows], n_bins, norm, kind)


def torch_top(preds, target, ignore_index):
    """Top scores as float32, and hits; one entry outside [0, 1] makes all logits of a softmax."""
    rows = [(row, y) for row, y in zip(preds, target, strict=True) if y != ignore_index]
    matrix = [list(row) for row, _ in rows]
    if not all(0 <= p <= 1 for row in matrix for p in row):
        matrix = [softmax(row) for row in matrix]
    scores, hits = top_label(matrix, [y for _, y in rows])
    return [float(np.float32(s)) for s in scores], hits


def torch_multiclass(preds, target, n_bins, norm, ignore_index):
    """The error of the top label, with edges in float32 for scores of any type."""
    scores, hits = torch_top(preds, target, ignore_index)
    return torch_error(scores, hits, n_bins, norm, np.float32)


# -- netcal ----------------------------------------------------------------------------------------


def netcal_problem(x, y, tiny=0.0):
    """Scores and hits: of the one column, of column 1 of two, else of the top label.

    Two columns need labels of at most two values. Scores are limited to [tiny, 1 - tiny] first.
    """
    if hasattr(y[0], "__len__"):
        y = [row[-1] if len(row) <= 2 else list(row).index(max(row)) for row in y]
    rows = [list(row) if hasattr(row, "__len__") else [row] for row in x]
    rows = [[min(max(float(p), tiny), 1 - tiny) for p in row] for row in rows]
    if len(rows[0]) == 1 or (len(set(y)) <= 2 and len(rows[0]) == 2):
        return [row[-1] for row in rows], list(y)
    return top_label(rows, y)


def netcal_error(metric, x, y, *, bins, equal_intervals, sample_threshold, kind):
    """The error with bins [e_j, e_j+1), the last with 1; bins with too few rows have a gap of 0.

    ECE: sum_b n_b/n gap_b. ACE: the mean gap of the bins that have rows. MCE: the largest gap.
    For equal masses scores are limited to [eps, 1 - eps], which merges scores nearer to 0 or 1.
    netcal does so for equal intervals, too, where only the last digits depend on it.
    """
    edges = even_edges(bins)
    if equal_intervals:
        scores, hits = netcal_problem(x, y)
    else:
        scores, hits = netcal_problem(x, y, float(np.finfo(kind).eps))
        edges = [0.0, *quantile_edges(scores, edges[1:-1], kind), 1.0]
    index = [min(bisect_right(edges, s), bins) - 1 for s in scores]
    means = cells(scores, hits, index)
    gaps = [(n, abs(a - c) if n >= sample_threshold else 0.0) for n, c, a in means]
    if metric == "MCE":
        return max(gap for _, gap in gaps)
    if metric == "ACE":
        return fsum(gap for _, gap in gaps) / len(gaps)
    return fsum(n * gap for n, gap in gaps) / len(scores)


# -- uncertainty-calibration -----------------------------------------------------------------------


def midpoints(neighbours, kind):
    """Distinct middles of pairs of scores, in the type of the scores, and 1."""
    return sorted({float((kind(a) + kind(b)) / kind(2)) for a, b in neighbours} | {1.0})


def mass_edges(scores, n_bins, kind):
    """Upper edges between groups of n // B or n // B + 1 sorted scores, the larger groups first."""
    n_bins = min(n_bins, len(scores))
    size, larger = divmod(len(scores), n_bins)
    cuts = [b * size + min(b, larger) for b in range(1, n_bins)]
    order = sorted(scores)
    return midpoints([(order[c - 1], order[c]) for c in cuts], kind)


def discrete_edges(scores, kind):
    """Upper edges between the distinct scores."""
    return midpoints(list(pairwise(sorted(set(scores)))), kind)


def one_problem_error(scores, hits, upper, p, debias):
    """The error of one problem, with bins (u_j-1, u_j], 0 in the first.

    Plain: (sum_b n_b/n |a_b - c_b|^p)^(1/p). Debias, p = 2: the root of
    sum_b n_b/n ((a_b - c_b)^2 - a_b (1 - a_b) / (n_b - 1)), 0 if that is below 0, without bins of
    one row. Debias, p = 1: sum_b n_b/n (2 |a_b - c_b| - E|N(a_b - c_b, a_b (1 - a_b) / n_b)|).
    """
    bins = cells(scores, hits, [min(bisect_left(upper, s), len(upper) - 1) for s in scores])
    n = len(scores)
    if not debias:
        return (fsum(m * abs(a - c) ** p for m, c, a in bins) / n) ** (1 / p)
    if p == 2:
        terms = [m * ((a - c) ** 2 - a * (1 - a) / (m - 1)) for m, c, a in bins if m > 1]
        return sqrt(max(0.0, fsum(terms) / n))
    terms = [m * (2 * abs(a - c) - folded(a - c, sqrt(a * (1 - a) / m))) for m, c, a in bins]
    return fsum(terms) / n


def marginal_or_top(probs, labels, edges, p, debias, mode):
    """The error of one column, of the top label, or marginal: (mean_k CE_k^p)^(1/p)."""
    if not hasattr(probs[0], "__len__"):
        return one_problem_error(probs, labels, edges(probs), p, debias)
    if mode == "top-label":
        scores, hits = top_label(probs, labels)
        return one_problem_error(scores, hits, edges(scores), p, debias)
    errors = []
    for k in range(len(probs[0])):
        column = [row[k] for row in probs]
        hits = [int(y == k) for y in labels]
        errors.append(one_problem_error(column, hits, edges(column), p, debias) ** p)
    return (fsum(errors) / len(errors)) ** (1 / p)


def get_ece(probs, labels, debias, num_bins, mode):
    """The error with upper edges j / B."""
    upper = [j / num_bins for j in range(1, num_bins + 1)]
    return marginal_or_top(probs, labels, lambda _: upper, 1, debias, mode)


def get_ece_em(probs, labels, debias, num_bins, mode, kind):
    """The error with bins of equal mass."""

    def edges(scores):
        return mass_edges(scores, num_bins, kind)

    return marginal_or_top(probs, labels, edges, 1, debias, mode)


def is_discrete(probs):
    """Has every column fewer distinct scores than a quarter of the rows?"""
    columns = zip(*probs, strict=True) if hasattr(probs[0], "__len__") else [probs]
    return all(len(set(column)) < len(probs) / 4 for column in columns)


def get_calibration_error(probs, labels, p, debias, mode, kind):
    """The error with a bin for each distinct score if these are few, else 15 of equal mass."""

    def edges(scores):
        return discrete_edges(scores, kind) if is_discrete(probs) else mass_edges(scores, 15, kind)

    return marginal_or_top(probs, labels, edges, p, debias, mode)


# -- scikit-learn ----------------------------------------------------------------------------------


def calibration_curve(y_true, y_prob, pos_label, n_bins, strategy, kind):
    """Share of positives and mean score of the bins (e_j, e_j+1] that have rows."""
    inner_edges = even_edges(n_bins)[1:-1]
    if strategy == "quantile":
        # scikit-learn asks for percentiles, and numpy turns them into shares again.
        shares = [edge * 100 / 100 for edge in inner_edges]
        inner_edges = quantile_edges(y_prob, shares, kind)
    positive = 1 if pos_label is None else pos_label
    hits = [int(y == positive) for y in y_true]
    bins = cells(y_prob, hits, [bisect_left(inner_edges, s) for s in y_prob])
    return [a for _, _, a in bins], [c for _, c, _ in bins]


# -- relplot ---------------------------------------------------------------------------------------


def binned_ece(f, y, nbins, kind):
    """sum_b |D_b| / n; the bin is the integer part of f / (1 / B), in the type of the scores."""
    width = kind(1.0 / nbins)
    sums = {}
    for s, hit in zip(f, y, strict=True):
        sums.setdefault(int(kind(s) / width), []).append(float(s) - float(hit))
    return fsum(abs(fsum(gaps)) for gaps in sums.values()) / len(f)


# -- general calibration error ---------------------------------------------------------------------


def adaptive_uppers(scores, n_bins):
    """Sorted scores at the places round(i n / B), i = 1, ..., B - 1, half to even."""
    order = sorted(scores)
    step = len(order) / n_bins if n_bins else 0.0
    return [order[min(round(i * step), len(order) - 1)] for i in range(1, n_bins)]


def inner_sum(scores, hits, scheme, norm, n_bins):
    """sum_b |D_b / n|^power in bins [u_j-1, u_j), 1 in a bin of its own where bins are even."""
    if not scores:
        return 0.0
    upper = even_edges(n_bins)[1:] if scheme == "even" else adaptive_uppers(scores, n_bins)
    bins = cells(scores, hits, [bisect_right(upper, s) for s in scores])
    power = {"l1": 1, "l2": 2}[norm]
    return fsum(abs(m * (a - c) / len(scores)) ** power for m, c, a in bins)


def gce(
    labels,
    probs,
    *,
    binning_scheme,
    max_prob,
    class_conditional,
    norm,
    num_bins,
    threshold,
    datapoints_per_bin,
    kind,
):
    """The error of scores above the threshold, all classes together or the mean of their sums.

    l2: the root of this. With m datapoints per bin there are n // m adaptive bins, or one, whatever
    `num_bins` is.
    """
    rows = [list(p) if hasattr(p, "__len__") else [p] for p in probs]
    if len(rows[0]) == 1:
        rows = [[float(kind(1) - kind(p)), p] for (p,) in rows]
    n_bins = num_bins if datapoints_per_bin is None else len(rows) // datapoints_per_bin
    groups = {}
    for row, label in zip(rows, labels, strict=True):
        best = row.index(max(row))
        for k in [best] if max_prob else range(len(row)):
            if row[k] > threshold:
                group = groups.setdefault(k if class_conditional else 0, ([], []))
                group[0].append(row[k])
                group[1].append(int(label == k))
    sums = [inner_sum(s, h, binning_scheme, norm, n_bins) for s, h in groups.values()]
    value = fsum(sums) / (len(rows[0]) if class_conditional else 1)
    return sqrt(value) if norm == "l2" else value


# -- Humanity's Last Exam and BrowseComp -----------------------------------------------------------


def calib_err(scores, hits, p, beta):
    """The error with runs of `beta` rows in the order of scores.

    The last run, which has all remaining rows, is left out, as in the published code. p = "infty":
    the largest gap, else (sum_b beta/n gap_b^p)^(1/p).
    """
    order = sorted(range(len(scores)), key=lambda i: scores[i])
    gaps = []
    for b in range(len(scores) // beta - 1):
        run = order[b * beta : (b + 1) * beta]
        gaps.append(abs(sum(scores[i] for i in run) - sum(hits[i] for i in run)) / beta)
    if p == "infty":
        return max(gaps, default=0.0)
    return sum(beta / len(scores) * gap**p for gap in gaps) ** (1 / p)


def browse_comp(scores, hits, n_bins):
    """The mean absolute gap with bins of equal width, closed at the right."""
    edges = even_edges(n_bins)
    index = [max(1, sum(edge < s for edge in edges)) - 1 for s in scores]
    total = 0.0
    for b in set(index):
        rows = [i for i in range(len(scores)) if index[i] == b]
        total += abs(sum(scores[i] - hits[i] for i in rows))
    return total / len(scores)
