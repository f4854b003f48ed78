"""What calibration errors of six libraries compute, in plain loops.

Written from their definitions and from nothing of fastece or of them. Scores are lists of numbers;
`kind` is `numpy.float32` or `numpy.float64`, the type in which a library rounds its edges. Sums are
`math.fsum`.
"""

from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import pairwise
from math import exp, floor, fsum, sqrt

import numpy as np
from reference import folded

# -- what several of them share --------------------------------------------------------------------


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
    """`j * (1 / B)` and 1, as `numpy.linspace(0, 1, B + 1)` in float64."""
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
        low, high, t = order[k], order[k + 1], place - k
        step = float(kind(high) - kind(low))
        edges.append(high - step * (1 - t) if t >= 0.5 else low + step * t)
    return edges


# -- torchmetrics ----------------------------------------------------------------------------------


def torch_edges(n_bins, kind):
    """`torch.linspace(0, 1, B + 1)`: `j * step` below the middle, `1 - (B - j) * step` above it.

    The latter is rounded once, as by processors that multiply and add in one step.
    """
    step = kind(1) / kind(n_bins)
    half = (n_bins + 1) // 2
    low = [kind(j) * step for j in range(half)]
    exact = Fraction(float(step))
    high = [kind(float(1 - (n_bins - j) * exact)) for j in range(half, n_bins + 1)]
    return [float(edge) for edge in low + high]


def torch_error(scores, hits, n_bins, norm, kind):
    """Bins [e_j, e_j+1), and a bin of its own for 1.

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
    return [float(kind(1 / (1 + exp(-z)) if z >= 0 else exp(z) / (1 + exp(z)))) for z in preds]


def torch_binary(preds, target, n_bins, norm, ignore_index, kind):
    """Rows with the label `ignore_index` do not exist, not even for the look at the range."""
    rows = [(p, y) for p, y in zip(preds, target, strict=True) if y != ignore_index]
    scores = torch_scores([p for p, _ in rows], kind)
    return torch_error(scores, [y for _, y in rows], n_bins, norm, kind)


def torch_top(preds, target, ignore_index):
    """Top scores as float32, and hits; one entry outside [0, 1] makes all logits of a softmax."""
    rows = [(row, y) for row, y in zip(preds, target, strict=True) if y != ignore_index]
    matrix = [list(row) for row, _ in rows]
    if not all(0 <= p <= 1 for row in matrix for p in row):
        powers = [[exp(z - max(row)) for z in row] for row in matrix]
        matrix = [[p / fsum(row) for p in row] for row in powers]
    scores, hits = top_label(matrix, [y for _, y in rows])
    return [float(np.float32(s)) for s in scores], hits


def torch_multiclass(preds, target, n_bins, norm, ignore_index):
    """The top label, in bins of float32 whatever the type of the scores."""
    scores, hits = torch_top(preds, target, ignore_index)
    return torch_error(scores, hits, n_bins, norm, np.float32)


# -- netcal ----------------------------------------------------------------------------------------


def netcal_problem(x, y, tiny=0.0):
    """Labels of at most two values are hits of the one column, or of column 1 of two.

    Scores are moved into [tiny, 1 - tiny] first.
    """
    if hasattr(y[0], "__len__"):
        y = [row[-1] if len(row) <= 2 else list(row).index(max(row)) for row in y]
    rows = [list(row) if hasattr(row, "__len__") else [row] for row in x]
    rows = [[min(max(float(p), tiny), 1 - tiny) for p in row] for row in rows]
    if len(rows[0]) == 1 or (len(set(y)) <= 2 and len(rows[0]) == 2):
        return [row[-1] for row in rows], list(y)
    return top_label(rows, y)


def netcal_error(metric, x, y, bins, equal_intervals, sample_threshold, kind):
    """Bins [e_j, e_j+1), the last with 1; the gap of a bin of fewer rows than the threshold is 0.

    ECE: sum_b n_b/n gap_b. ACE: the mean gap of the bins that have rows. MCE: the largest gap.
    For equal masses scores within eps of 0 or 1 are one score each (netcal moves them to eps and
    1 - eps for equal intervals, too, where nothing depends on it but the last digits).
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
    """Middles in the type of the scores, and 1; equal ones once."""
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
    """Bins (u_j-1, u_j], 0 in the first.

    Plain: (sum_b n_b/n |a_b - c_b|^p)^(1/p). Debias, p = 2: the root of
    sum_b n_b/n ((a_b - c_b)^2 - a_b (1 - a_b) / (n_b - 1)), 0 if that is below 0, bins of one row
    left out. Debias, p = 1: sum_b n_b/n (2 |a_b - c_b| - E|N(a_b - c_b, a_b (1 - a_b) / n_b)|).
    """
    bins = cells(scores, hits, [min(bisect_left(upper, s), len(upper) - 1) for s in scores])
    n = len(scores)
    if not debias:
        return (fsum(m * abs(a - c) ** p for m, c, a in bins) / n) ** (1 / p)
    if p == 2:
        parts = [m * ((a - c) ** 2 - a * (1 - a) / (m - 1)) for m, c, a in bins if m > 1]
        return sqrt(max(0.0, fsum(parts) / n))
    parts = [m * (2 * abs(a - c) - folded(a - c, sqrt(a * (1 - a) / m))) for m, c, a in bins]
    return fsum(parts) / n


def marginal_or_top(probs, labels, edges, p, debias, mode):
    """One column: that problem. Marginal: (mean_k CE_k^p)^(1/p). Top label: of the top scores."""
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
    """Upper edges j / B."""
    upper = [j / num_bins for j in range(1, num_bins + 1)]
    return marginal_or_top(probs, labels, lambda _: upper, 1, debias, mode)


def get_ece_em(probs, labels, debias, num_bins, mode, kind):
    """Edges of equal mass."""
    edges = lambda scores: mass_edges(scores, num_bins, kind)  # noqa: E731
    return marginal_or_top(probs, labels, edges, 1, debias, mode)


def is_discrete(probs):
    """Has every column fewer distinct scores than a quarter of the rows?"""
    columns = zip(*probs, strict=True) if hasattr(probs[0], "__len__") else [probs]
    return all(len(set(column)) < len(probs) / 4 for column in columns)


def get_calibration_error(probs, labels, p, debias, mode, kind):
    """A bin for each distinct score if scores are discrete, else 15 of equal mass."""
    if is_discrete(probs):
        edges = lambda scores: discrete_edges(scores, kind)  # noqa: E731
    else:
        edges = lambda scores: mass_edges(scores, 15, kind)  # noqa: E731
    return marginal_or_top(probs, labels, edges, p, debias, mode)


# -- scikit-learn ----------------------------------------------------------------------------------


def calibration_curve(y_true, y_prob, pos_label, n_bins, strategy, kind):
    """Share of positives and mean score of the bins (e_j, e_j+1] that have rows."""
    if strategy == "uniform":
        inner = even_edges(n_bins)[1:-1]
    else:  # shares make the way to per cent and back
        inner = quantile_edges(y_prob, [q * 100 / 100 for q in even_edges(n_bins)[1:-1]], kind)
    hits = [int(y == (1 if pos_label is None else pos_label)) for y in y_true]
    bins = cells(y_prob, hits, [bisect_left(inner, s) for s in y_prob])
    return [a for _, _, a in bins], [c for _, c, _ in bins]


# -- relplot ---------------------------------------------------------------------------------------


def binned_ece(f, y, nbins, kind):
    """sum_b |D_b| / n; the bin of f is the whole part of f / (1 / B), in the type of the scores."""
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
    labels, probs, scheme, max_prob, class_conditional, norm, num_bins, threshold, per_bin, kind
):
    """Scores above the threshold, all classes together or the mean of their sums; l2: its root.

    `per_bin` rows in each of n // per_bin adaptive bins (none: one bin), whatever `num_bins`.
    """
    rows = [list(p) if hasattr(p, "__len__") else [p] for p in probs]
    if len(rows[0]) == 1:
        rows = [[float(kind(1) - kind(p)), p] for (p,) in rows]
    n_bins = num_bins if per_bin is None else int(len(rows) / per_bin)
    groups = {}
    for row, label in zip(rows, labels, strict=True):
        best = row.index(max(row))
        for k in [best] if max_prob else range(len(row)):
            if row[k] > threshold:
                group = groups.setdefault(k if class_conditional else 0, ([], []))
                group[0].append(row[k])
                group[1].append(int(label == k))
    parts = [inner_sum(s, h, scheme, norm, n_bins) for s, h in groups.values()]
    value = fsum(parts) / (len(rows[0]) if class_conditional else 1)
    return sqrt(value) if norm == "l2" else value


def calib_err(scores, hits, p, beta):
    """Runs of `beta` rows in order, of which the last has the rest and is left out."""
    order = sorted(range(len(scores)), key=lambda i: scores[i])
    total, largest = 0.0, 0.0
    for b in range(len(scores) // beta - 1):
        run = order[b * beta : (b + 1) * beta]
        gap = abs(sum(scores[i] for i in run) - sum(hits[i] for i in run)) / beta
        largest = max(largest, gap)
        total += beta / len(scores) * gap ** (p if p != "infty" else 1)
    return largest if p == "infty" else total ** (1 / p)


def browse_comp(scores, hits, n_bins):
    """Bins of equal width, closed at the right, and mean absolute gaps."""
    edges = even_edges(n_bins)
    index = [max(1, sum(edge < s for edge in edges)) - 1 for s in scores]
    total = 0.0
    for b in set(index):
        rows = [i for i in range(len(scores)) if index[i] == b]
        total += abs(sum(scores[i] - hits[i] for i in rows))
    return total / len(scores)
