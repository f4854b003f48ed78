"""Binned calibration errors in plain Python, written from the definitions and from nothing else.

Slow on purpose, so that every line can be held against the definition it quotes. Nothing of
fastece is imported. Data are lists of Python numbers; a class matrix is a list of rows. Sums are
`math.fsum`, and the one comparison that decides where a score goes (a cumulated weight against a
share of the total) is exact.
"""

from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import accumulate
from math import comb, cos, erf, exp, fsum, inf, isqrt, log, nan, pi, sqrt

# -- settings: (y_true, y_prob) -> problems --------------------------------------------------------


def sigmoid(z):
    """1 / (1 + exp(-z)), never overflowing; -inf is probability 0."""
    return 1 / (1 + exp(-z)) if z >= 0 else exp(z) / (1 + exp(z))


def softmax(row):
    """exp(z_k) / sum_j exp(z_j), the largest logit taken off first; -inf is probability 0."""
    powers = [exp(z - max(row)) for z in row]
    return [power / fsum(powers) for power in powers]


def is_matrix(y_prob):
    """Are there class columns, `(n, K)`, or a single probability per row, `(n,)`?"""
    return hasattr(y_prob[0], "__len__")


def probabilities(y_prob, from_logits=False):
    """Probabilities in the shape of the input; those a little outside [0, 1] are clipped."""
    if is_matrix(y_prob):
        rows = [softmax(row) if from_logits else row for row in y_prob]
        return [[min(max(p, 0.0), 1.0) for p in row] for row in rows]
    column = [sigmoid(z) if from_logits else z for z in y_prob]
    return [min(max(p, 0.0), 1.0) for p in column]


def class_rows(y_prob, from_logits=False):
    """Rows of K probabilities: a 1-d `y_prob` stands for the two columns (1 - p, p)."""
    prob = probabilities(y_prob, from_logits)
    return prob if is_matrix(y_prob) else [[1.0 - p, p] for p in prob]


def predictions(y_prob, from_logits=False):
    """The first largest column of each row; for logits of the logits, and label 1 where z > 0."""
    if from_logits and not is_matrix(y_prob):
        return [int(z > 0) for z in y_prob]
    rows = y_prob if from_logits else class_rows(y_prob)
    return [list(row).index(max(row)) for row in rows]


def problems(y_true, y_prob, setting="auto", labels=None, from_logits=False):
    """The binary problems `(scores, hits, low, high)` of a setting: K of them class-wise, else one.

    binary: s = p (column 1 of two), y = y_true, support [0, 1]. confidence: s = max_k p_k,
    y = [argmax = label], support [1/K, 1]. class k: s = p_k, y = [label = k], support [0, 1].
    """
    y_true = [labels.index(y) for y in y_true] if labels is not None else [int(y) for y in y_true]
    if setting == "auto":
        setting = "confidence" if is_matrix(y_prob) else "binary"
    rows = class_rows(y_prob, from_logits)
    if setting == "binary":
        return [([row[1] for row in rows], y_true, 0.0, 1.0)]
    if setting == "confidence":
        best = predictions(y_prob, from_logits)
        hits = [int(k == y) for k, y in zip(best, y_true, strict=True)]
        return [([max(row) for row in rows], hits, 1 / len(rows[0]), 1.0)]
    classes = range(len(rows[0])) if setting == "classwise" else [setting]
    return [([row[k] for row in rows], [int(y == k) for y in y_true], 0.0, 1.0) for k in classes]


# -- edges -----------------------------------------------------------------------------------------


def uniform_edges(n_bins, low=0.0, high=1.0):
    """e_j = low + (high - low) * (j / B), and e_B = high."""
    return [low + (high - low) * (j / n_bins) for j in range(n_bins)] + [high]


def between(a, b, closed):
    """A cut between two scores: their midpoint, unless it rounds onto the one it must exclude.

    closed=None: the edge itself, of which convex bins take their centres, and no cut.
    """
    middle = (a + b) / 2
    if closed is None:
        return middle
    if closed == "right":
        return middle if middle < b else a
    return middle if middle > a else b


def quantile_edges(scores, weights, n_bins, low=0.0, high=1.0, closed="right"):
    """Equal-mass edges, e_0 = low and e_B = high.

    u_1 < u_2 < ... are the distinct scores of positive weight, C_k the weight of all scores <= u_k,
    m_j = j W / B. With k the first index where C_k >= m_j: e_j = u_k, or the midpoint of u_k and
    u_{k+1} where C_k = m_j; both comparisons within 1e-12 W.
    """
    # A float is an integer over a power of two: so many of the smallest such share is each weight.
    ratios = [float(w).as_integer_ratio() for w in weights]
    unit = max(denominator for _, denominator in ratios)
    mass = {}
    for s, (numerator, denominator) in zip(scores, ratios, strict=True):
        if numerator > 0:
            s = min(max(s, low), high)
            mass[s] = mass.get(s, 0) + numerator * (unit // denominator)
    u = sorted(mass)
    cumulated = list(accumulate(mass[s] for s in u))
    total = cumulated[-1]
    edges, k = [low], 0
    for j in range(1, n_bins):
        # (C_k - m_j) / W in parts of 10^12 B, of which the tolerance is B.
        while (excess := (cumulated[k] * n_bins - total * j) * 10**12) < -total * n_bins:
            k += 1
        tie = abs(excess) <= total * n_bins
        edges.append(between(u[k], u[k + 1], closed) if tie else u[k])
    return [*edges, high]


# -- which bin, and which share of it --------------------------------------------------------------


def which_bin(s, edges, closed="right"):
    """closed="right": (a, b] with low in the first bin; "left": [a, b) with high in the last.

    Scores outside the range are placed at its nearest end. `passed` counts the edges below s (or
    up to s).
    """
    s = min(max(s, edges[0]), edges[-1])
    passed = bisect_left(edges, s) if closed == "right" else bisect_right(edges, s)
    return min(max(passed - 1, 0), len(edges) - 2)


def centres(edges):
    """The sorted distinct centres `(c, b)` with b the first bin that has centre c."""
    found = []
    for b in range(len(edges) - 1):
        c = (edges[b] + edges[b + 1]) / 2
        if not found or c > found[-1][0]:
            found.append((c, b))
    return found


def convex_shares(s, found):
    """The shares `(b, a)` of one score by linear binning between the centres; they sum to 1.

    All in the first bin for s <= c_0, all in the last for s >= c_last; else, with j the largest
    index such that c_j <= s: a_j = (c_{j+1} - s) / (c_{j+1} - c_j) and a_{j+1} = 1 - a_j.
    """
    if s <= found[0][0]:
        return [(found[0][1], 1.0)]
    if s >= found[-1][0]:
        return [(found[-1][1], 1.0)]
    j = bisect_right(found, s, key=lambda centre: centre[0]) - 1
    (left, a), (right, b) = found[j], found[j + 1]
    share = (right - s) / (right - left)
    return [(a, share), (b, 1.0 - share)]


# -- cells and values ------------------------------------------------------------------------------


def score_range_of(score_range, low, high):
    """(low, high) of "unit", "support" or a pair, for a problem with that support."""
    if score_range == "unit":
        return 0.0, 1.0
    return (low, high) if score_range == "support" else score_range


def members(
    problem,
    weights=None,
    *,
    n_bins=15,
    edges="uniform",
    mapping="hard",
    closed="right",
    score_range="unit",
    threshold=None,
):
    """The edges (none if no row is left), and the rows `(s, y, w_i a_ib)` of each bin.

    Rows of weight 0 are dropped first; "sqrt" is floor(sqrt(n)) of the rows left, before
    `threshold` keeps only those with s > t.
    """
    scores, hits, low, high = problem
    rows = list(zip(scores, hits, weights or [1.0] * len(scores), strict=True))
    rows = [(s, y, w) for s, y, w in rows if w > 0]
    n_bins = max(1, isqrt(len(rows))) if n_bins == "sqrt" else n_bins
    n_bins = n_bins if isinstance(edges, str) else len(edges) - 1
    rows = [(s, y, w) for s, y, w in rows if threshold is None or s > threshold]
    if not rows:
        return None, [[]] * n_bins
    low, high = score_range_of(score_range, low, high)
    if not isinstance(edges, str):
        cuts = list(edges)
    elif edges == "uniform":
        cuts = uniform_edges(n_bins, low, high)
    else:
        cuts = quantile_edges(
            [s for s, _, _ in rows], [w for _, _, w in rows], n_bins, low, high,
            closed if mapping == "hard" else None,
        )  # fmt: skip
    found = centres(cuts)
    inside = [[] for _ in range(n_bins)]
    for s, y, w in rows:
        hard = mapping == "hard"
        for b, a in [(which_bin(s, cuts, closed), 1.0)] if hard else convex_shares(s, found):
            inside[b].append((s, y, w * a))
    return cuts, inside


def cells(problem, weights=None, **fields):
    """The edges (none if no row is left) and one cell `(W_b, D_b, sum of w s, sum of w y)` per bin:
    W_b = sum_i w_i a_ib, D_b = sum_i w_i a_ib (y_i - s_i).
    """
    cuts, inside = members(problem, weights, **fields)
    return cuts, [
        (
            fsum(w for _, _, w in cell),
            fsum(w * (y - s) for s, y, w in cell),
            fsum(w * s for s, _, w in cell),
            fsum(w * y for _, y, w in cell),
        )
        for cell in inside
    ]


def value(cells, *, norm=1.0, min_count=0, bin_weights="mass"):
    """(sum_b W_b / W * |D_b / W_b|^p)^(1/p), empty bins contributing nothing.

    bin_weights="equal": 1 / B instead of W_b / W, and bins with W_b <= 1e-9 W count 0.
    norm=inf: the largest |D_b / W_b| over bins with W_b >= min_count and W_b > 1e-9 W, else nan.
    No row at all (`threshold`): 0.
    """
    total = fsum(cell[0] for cell in cells)
    if total == 0:
        return 0.0
    gaps = [(w, abs(d / w)) for w, d, _, _ in cells if w > 0]
    solid = [(w, gap) for w, gap in gaps if w > 1e-9 * total]
    if norm == inf:
        return max((gap for w, gap in solid if w >= min_count), default=nan)
    if bin_weights == "equal":
        parts = [(1 / len(cells), gap) for _, gap in solid]
    else:
        parts = [(w / total, gap) for w, gap in gaps]
    top = max(gap for _, gap in parts) or 1.0  # taken out, so that no power underflows
    return top * fsum(share * (gap / top) ** norm for share, gap in parts) ** (1 / norm)


VALUE_FIELDS = {"norm", "min_count", "bin_weights"}


def error(problem, weights=None, **fields):
    """The calibration error of one binary problem; fields as those of Binned."""
    fields = dict(fields)
    if fields.pop("debias", False):
        return debiased_error(problem, weights, **fields)
    binning = {name: given for name, given in fields.items() if name not in VALUE_FIELDS}
    rest = {name: given for name, given in fields.items() if name in VALUE_FIELDS}
    return value(cells(problem, weights, **binning)[1], **rest)


def folded(mean, sd):
    """E |N(mean, sd^2)|."""
    if sd == 0:
        return abs(mean)
    z = mean / sd
    return sd * sqrt(2 / pi) * exp(-z * z / 2) + mean * erf(z / sqrt(2))


def debiased_error(problem, weights=None, *, norm=1.0, min_count=0, bin_weights="mass", **binning):
    """The error of bins without what chance adds, Kumar, Liang and Ma (2019).

    With g_b = |D_b / W_b|, q_b the hit rate, n_b = W_b^2 / sum w^2, t_b^2 = q_b (1 - q_b) / n_b:
    norm 1: sum W_b/W (2 g_b - E|N(g_b, t_b^2)|), a folded normal variable's mean.
    norm 2: sqrt(max(0, sum W_b/W (g_b^2 - q_b (1 - q_b) / (n_b - 1)))), n_b < 2 counting 0.
    """
    assert min_count == 0
    inside = members(problem, weights, **binning)[1]
    total = fsum(w for cell in inside for _, _, w in cell)
    parts = []
    for cell in inside:
        weight = fsum(w for _, _, w in cell)
        if weight <= (1e-9 * total if bin_weights == "equal" else 0):
            continue
        g = abs(fsum(w * (y - s) for s, y, w in cell) / weight)
        q = fsum(w * y for _, y, w in cell) / weight
        n = weight / fsum(w * (w / weight) for _, _, w in cell)
        share = 1 / len(inside) if bin_weights == "equal" else weight / total
        if norm == 2:
            parts.append(share * (g * g - q * (1 - q) / (n - 1)) if n > 2 - 1e-9 else 0.0)
            continue
        t = sqrt(max(q * (1 - q), 0.0) / n)
        parts.append(share * (2 * g - folded(g, t)))
    return fsum(parts) if norm == 1 else sqrt(max(0.0, fsum(parts)))


# -- estimators of the literature ------------------------------------------------------------------


def sweep_bins(problem, weights=None):
    """The largest B, at most the number of rows, such that for each of 1, ..., B bins of equal
    weight the hit rates of the occupied ones do not decrease; in exact fractions."""
    rows = len([s for i, s in enumerate(problem[0]) if weights is None or weights[i] > 0])
    for n_bins in range(1, rows + 1):
        before = Fraction(0)
        for cell in members(problem, weights, n_bins=n_bins, edges="quantile")[1]:
            if cell:
                hits = sum(Fraction(w) for _, y, w in cell if y)
                rate = hits / sum(Fraction(w) for _, _, w in cell)
                if rate < before:
                    return n_bins - 1
                before = rate
    return rows


def sweep_error(problem, weights=None, norm=1.0):
    """The error of the bins of the monotone sweep, Roelofs et al. (2022)."""
    n_bins = sweep_bins(problem, weights)
    return error(problem, weights, n_bins=n_bins, edges="quantile", norm=norm)


def smooth_error(problem, weights=None, scale=0.1, points=4000):
    """int |sum w_i (y_i - s_i) K_h(t, s_i)| dt / W, Blasiok and Nakkiran (2023): the Gaussian of
    standard deviation h with all its images beyond 0 and 1, by the midpoint rule."""
    scores, hits, _, _ = problem
    weights = weights or [1.0] * len(scores)
    reach = 1 + int(5 * scale)  # 10 standard deviations
    parts = []
    for j in range(points):
        t, total = (j + 0.5) / points, 0.0
        for s, y, w in zip(scores, hits, weights, strict=True):
            for k in range(-reach, reach + 1):
                near = exp(-(((t - s - 2 * k) / scale) ** 2) / 2)
                total += w * (y - s) * (near + exp(-(((t + s - 2 * k) / scale) ** 2) / 2))
        parts.append(abs(total))
    return fsum(parts) / points / scale / sqrt(2 * pi) / fsum(weights)


def mmce(problem, weights=None, width=0.4):
    """sqrt(sum_ij w_i w_j (y_i - s_i)(y_j - s_j) exp(-|s_i - s_j| / width)) / W, Kumar, Sarawagi
    and Jain (2018): over all pairs."""
    scores, hits, _, _ = problem
    weights = weights or [1.0] * len(scores)
    rows = [(s, w * (y - s)) for s, y, w in zip(scores, hits, weights, strict=True)]
    pairs = [a * b * exp(-abs(s - t) / width) for s, a in rows for t, b in rows]
    return sqrt(max(fsum(pairs), 0.0)) / fsum(weights)


def cumulative_error(problem, weights=None, statistic="range"):
    """max C - min C or max |C| of C_0 = 0, C_k = sum_{s_i <= u_k} w_i (y_i - s_i) / W over the
    distinct scores u_1 < u_2 < ..., Arrieta-Ibarra et al. (2022)."""
    scores, hits, _, _ = problem
    weights = weights or [1.0] * len(scores)
    rows = list(zip(scores, hits, weights, strict=True))
    sums = [fsum(w * (y - s) for s, y, w in rows if s <= u) for u in sorted(set(scores))]
    path = [0.0, *(x / fsum(weights) for x in sums)]
    return max(path) - min(path) if statistic == "range" else max(map(abs, path))


def ece(
    y_true,
    y_prob,
    weights=None,
    *,
    setting="auto",
    average="macro",
    labels=None,
    from_logits=False,
    **fields,
):
    """The error of the setting's problem; class-wise the mean of K errors, or the list of them."""
    found = [
        error(problem, weights, **fields)
        for problem in problems(y_true, y_prob, setting, labels, from_logits)
    ]
    if setting != "classwise":
        return found[0]
    return fsum(found) / len(found) if average == "macro" else found


def parts(problem, weights=None, *, norm=1.0, min_count=0, bin_weights="mass", **fields):
    """`(over, under)`: the error with the gaps of bins below 0 alone, and with those above."""
    _, found = cells(problem, weights, **fields)
    rule = {"norm": norm, "min_count": min_count, "bin_weights": bin_weights}
    over = [(w, min(d, 0.0), *others) for w, d, *others in found]
    under = [(w, max(d, 0.0), *others) for w, d, *others in found]
    return value(over, **rule), value(under, **rule)


def mean_gap(scores, hits, weights=None):
    """sum w (y - s) / sum w."""
    w = weights or [1.0] * len(scores)
    return fsum(v * (y - s) for s, y, v in zip(scores, hits, w, strict=True)) / fsum(w)


def flip_variance(d, rows, n):
    """The variance of a gap whose mean is d, of rows (s, a) that add a (y - s): of a model for
    which the part t of the misses come true, d = t sum a (1 - s), or, below 0, of the hits do not;
    with rows that are random too, as many as n of one weight."""
    room = fsum(a * (1 - s if d > 0 else s) for s, a in rows)
    t = abs(d) / room if room > 0 else 0.0
    model, row = fsum(a * a * s * (1 - s) for s, a in rows), fsum(a * a for _, a in rows)
    return model * (1 - 2 * t) + row / fsum(a for _, a in rows) * abs(d) - d * d / n


def is_possible_gap(d, scores, hits, weights, z):
    """Whether a true mean gap d is within z standard errors of the one that is seen: those of
    labels as of `flip_variance`, with what the rows vary more around their mean gap than such
    labels would."""
    w = weights or [1.0] * len(scores)
    total = fsum(w)
    rows = [(s, y, v / total) for s, y, v in zip(scores, hits, w, strict=True)]
    seen, per_row = fsum(v * (y - s) for s, y, v in rows), fsum(v * v for _, _, v in rows)

    def variance(gap):
        return flip_variance(gap, [(s, v) for s, _, v in rows], 1 / per_row)

    more = fsum(v * v * (y - s - seen) ** 2 for s, y, v in rows) - variance(seen)
    return (seen - d) ** 2 <= z * z * (variance(d) + max(more, 0.0)) + 1e-18


def diagram(problem, weights=None, **fields):
    """(edges, count, score, frequency, gap) per bin: W_b, the weighted means of s and y, and
    frequency - score; nan in empty bins."""
    cuts, found = cells(problem, weights, **fields)
    count = [w for w, _, _, _ in found]
    score = [s / w if w > 0 else nan for w, _, s, _ in found]
    frequency = [y / w if w > 0 else nan for w, _, _, y in found]
    gap = [d / w if w > 0 else nan for w, d, _, _ in found]
    return cuts, count, score, frequency, gap


def effective_rows(problem, weights, **fields):
    """Kish's number of rows per bin: (sum w a)^2 / sum w^2 a, with the shares a of the rows, which
    do not depend on weights where edges do not."""
    weights = [w / max(weights) for w in weights]
    cells = [[w for _, _, w in cell] for cell in members(problem, weights, **fields)[1]]
    squares = [fsum(w * w for w in cell) for cell in cells]
    if fields["mapping"] == "convex":
        assert fields["edges"] == "uniform"
        squared = members(problem, [w * w for w in weights], **fields)[1]
        squares = [fsum(w for _, _, w in cell) for cell in squared]
    return [fsum(w) ** 2 / q if q > 0 else 0.0 for w, q in zip(cells, squares, strict=True)]


def binomial_interval(hits, rows, level):
    """Clopper and Pearson's interval of a rate: the rates under which so many hits, or so few, have
    at least half of the probability 1 - level. By bisection of sums of the binomial law."""

    def tail(rate, counts):
        return fsum(comb(rows, k) * rate**k * (1 - rate) ** (rows - k) for k in counts)

    def bisect(is_low):
        low, high = 0.0, 1.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if is_low(middle) else (low, middle)
        return low

    half = (1 - level) / 2
    more, fewer = range(hits, rows + 1), range(hits + 1)
    low = bisect(lambda rate: tail(rate, more) < half) if hits > 0 else 0.0
    high = bisect(lambda rate: tail(rate, fewer) > half) if hits < rows else 1.0
    return low, high


# -- test inversion --------------------------------------------------------------------------------


def gap_noise(problem, weights=None, **fields):
    """`(D_b, v_b, u_b, W_b)` per bin, as shares of the whole weight: a gap, its variance
    v_b = sum (w a)^2 s (1 - s), what a row adds, u_b = sum (w a)^2 / W_b, and the share."""
    inside = members(problem, weights, **fields)[1]
    total = fsum(w for cell in inside for _, _, w in cell)
    found = []
    for cell in inside:
        share = fsum(w / total for _, _, w in cell)
        gap = fsum(w / total * (y - s) for s, y, w in cell)
        variance = fsum((w / total) ** 2 * s * (1 - s) for s, _, w in cell)
        squares = fsum((w / total) ** 2 for _, _, w in cell)
        found.append((gap, variance, squares / share if share > 0 else 0.0, share))
    return found


def binomial_noise(gap, step, count, chance, order):
    """Each replicate's gap, where a binomial number k of rows makes it, and each adds a step: of
    the gaps in increasing order replicate order[j] has the (j + 1/2) / R quantile of k, or for
    steps below 0 the 1 - (j + 1/2) / R quantile."""
    mean, out, size = count * chance, [0.0] * len(order), len(order)
    law = [comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]
    for j, r in enumerate(order if step > 0 else order[::-1]):
        k = 0
        while k < count and fsum(law[: k + 1]) < (j + 0.5) / size * (1 - 1e-14):
            k += 1
        out[r] = gap + step * (k - mean)
    return out


def p_norm(gaps, norm):
    """(sum |d|^p)^(1/p), or the largest |d|."""
    top = max(abs(d) for d in gaps)
    if norm == inf or top == 0:
        return top
    return top * fsum((abs(d) / top) ** norm for d in gaps) ** (1 / norm)


def replicate_errors(gap, noise, null, rare, norm, side=0):
    """The errors of replicates: of each problem the norm of d + f x over its cells, on the average.
    `rare` has, of cells with such noise, the replicates' gaps. With a
    side, 1 or -1, only what is above 0, or below, counts."""
    count = len(null[0][0])
    errors = []
    for r in range(count):
        norms = []
        for k, problem in enumerate(null):
            x = [
                rare[k, b][r] if (k, b) in rare else gap[k][b] + noise[k][b] * cell[r]
                for b, cell in enumerate(problem)
            ]
            x = [max(side * d, 0.0) for d in x] if side else x
            norms.append(p_norm(x, norm))
        errors.append(fsum(norms) / len(norms))
    return errors


def p_values(errors, null, seen, lucky):
    """`(above, below)`: the p-values of one hypothesis against errors that are too large, and too
    small, from the errors of its replicates and those of a calibrated model.

    The share h/2 of the risk goes to errors that are too small, with h the power of the test of
    calibration at 5 %, of which 5 % are taken off, over the rest. Ties within 1e-12.
    """
    count, slack = len(errors), 1e-12
    rank = min(len(null), -(-95 * (len(null) + 1) // 100))
    critical = sorted(null)[rank - 1]
    power = sum(x > critical + slack for x in errors) / count
    half = min(max((power - 0.05) / 0.95, 0.0), 1.0) / 2
    above = (1 + sum(x >= seen - slack for x in errors)) / (count + 1)
    below = (1 + sum(x <= lucky + slack for x in errors)) / (count + 1)
    return above / (1 - half), below / half if half > 0 else inf


# -- scores ----------------------------------------------------------------------------------------


def minus_log(p):
    """-log p, infinite for 0."""
    return inf if p == 0 else -log(p)


def squares(p, y):
    """The squared distance of a probability, or of those of all classes, from what came true."""
    if hasattr(p, "__len__"):
        return fsum((q - (k == y)) ** 2 for k, q in enumerate(p))
    return (p - y) ** 2


def surprise(p, y, clip=None):
    """-log of the probability of what came true, limited to [clip, 1 - clip]."""
    p = p[y] if hasattr(p, "__len__") else p if y == 1 else 1 - p
    return minus_log(p if clip is None else min(max(p, clip), 1 - clip))


def unsureness(p, y):  # noqa: ARG001
    """- sum p log p over the classes, or over hit and miss."""
    parts = p if hasattr(p, "__len__") else [p, 1 - p]
    return fsum(q * minus_log(q) for q in parts if q > 0)


def rightness(p, y):
    """Is the first of the largest probabilities that of the class, or is a hit more than even?"""
    return float(p.index(max(p)) == y if hasattr(p, "__len__") else (p > 0.5) == y)


LOSSES = {
    "brier_score": squares, "log_loss": surprise, "entropy": unsureness, "accuracy": rightness,
}  # fmt: skip


def mean_of(values, weights):
    """Weighted mean."""
    pairs = [(w, x) for w, x in zip(weights, values, strict=True) if w > 0]
    return fsum(w * x for w, x in pairs) / fsum(w for w, _ in pairs)


def variance(scores, weights):
    """Weighted variance."""
    centre = mean_of(scores, weights)
    return mean_of([(s - centre) ** 2 for s in scores], weights)


def score(name, y_true, y_prob, setting="auto", weights=None, **fields):
    """A score by its name: of class vectors as they are with "auto", else of binary problems."""
    weights = [1] * len(y_true) if weights is None else weights
    found = problems(y_true, y_prob, setting)
    if name == "sharpness":
        values = [variance(s, weights) for s, *_ in found]
    elif setting == "auto" or (name == "accuracy" and setting == "confidence"):
        rows = zip(y_prob, y_true, strict=True)
        return mean_of([LOSSES[name](p, y, **fields) for p, y in rows], weights)
    else:
        values = [
            mean_of([LOSSES[name](p, h, **fields) for p, h in zip(s, y, strict=True)], weights)
            for s, y, *_ in found
        ]
    return fsum(values) / len(values)


def brier_parts(problem, weights=None, **fields):
    """Reliability, resolution, uncertainty, variance and twice the covariance within bins."""
    scores, hits, *_ = problem
    weights = [1] * len(scores) if weights is None else weights
    whole, base = fsum(weights), mean_of(hits, weights)
    parts = [[0.0], [0.0], [base * (1 - base)], [0.0], [0.0]]
    for rows in filter(None, members(problem, weights, **fields)[1]):
        s, y, w = zip(*rows, strict=True)
        f, o = mean_of(s, w), mean_of(y, w)
        parts[0].append(fsum(w) * (f - o) ** 2 / whole)
        parts[1].append(fsum(w) * (o - base) ** 2 / whole)
        parts[3].append(fsum(a * (x - f) ** 2 for a, x in zip(w, s, strict=True)) / whole)
        both = fsum(a * (x - f) * (z - o) for a, x, z in zip(w, s, y, strict=True))
        parts[4].append(2 * both / whole)
    return [fsum(part) for part in parts]


def isotonic(scores, hits, weights):
    """Pool adjacent violators: (hits, weight) of each block, scores in increasing order; equal
    scores are one from the beginning."""
    mass = {}
    for s, y, w in zip(scores, hits, weights, strict=True):
        if w > 0:
            h, total = mass.get(s, (0, 0))
            mass[s] = h + Fraction(w) * y, total + Fraction(w)
    blocks = []
    for s in sorted(mass):
        blocks.append(mass[s])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            (h, w), (g, v) = blocks.pop(), blocks.pop()
            blocks.append((h + g, w + v))
    return blocks


def score_parts(name, problem, weights=None):
    """Miscalibration, discrimination and uncertainty of "brier_score" or "log_loss"."""
    scores, hits, *_ = problem
    weights = [1] * len(scores) if weights is None else weights

    def of_rates(blocks):
        whole = float(sum(w for _, w in blocks))
        terms = []
        for h, w in blocks:
            rate = float(h / w)
            hit, miss = (LOSSES[name](rate, y) if part else 0.0 for y, part in ((1, h), (0, w - h)))
            terms.append((float(h) * hit + float(w - h) * miss) / whole)
        return fsum(terms)

    seen = mean_of([LOSSES[name](s, y) for s, y in zip(scores, hits, strict=True)], weights)
    blocks = isotonic(scores, hits, weights)
    best = of_rates(blocks)
    base = of_rates([(sum(h for h, _ in blocks), sum(w for _, w in blocks))])
    return [seen - best, base - best, base]


def score_statistics(scores, hits, weights=None):
    """Statistics "slope" and "smooth" of the adaptive test, with every distinct score a cell."""
    n = len(scores)
    weights = [1.0] * n if weights is None else weights
    cells = sorted(set(scores))
    rows = {cell: [i for i in range(n) if scores[i] == cell] for cell in cells}
    variance = [fsum(weights[i] ** 2 * s * (1 - s) for i in rows[s]) for s in cells]
    gap = [fsum(weights[i] * (hits[i] - s) for i in rows[s]) for s in cells]
    whole = fsum(variance)
    clipped = [min(max(s, 1 / (2 * n + 2)), 1 - 1 / (2 * n + 2)) for s in cells]
    x = [log(s / (1 - s)) for s in clipped]
    middle = fsum(a * v for a, v in zip(x, variance, strict=True)) / whole
    below = [(fsum(variance[:b]) + variance[b] / 2) / whole for b in range(len(cells))]
    shapes = [[1.0] * len(cells), [a - middle for a in x], [(a - middle) ** 2 for a in x]]
    shapes += [[cos(pi * k * u) for u in below] for k in range(1, 14)]
    basis, parts = [], []
    for shape in shapes:
        left = list(shape)
        for _ in range(2):
            for one in basis:
                dot = fsum(a * b * v for a, b, v in zip(left, one, variance, strict=True))
                left = [a - dot * b for a, b in zip(left, one, strict=True)]
        size, length = (
            fsum(a * a * v for a, v in zip(q, variance, strict=True)) ** 0.5 for q in (shape, left)
        )
        if length <= 1e-6 * size:
            parts.append(0.0)
            continue
        unit = [a / length if v > 0 else 0.0 for a, v in zip(left, variance, strict=True)]
        basis.append(unit)
        parts.append(fsum(a * g for a, g in zip(unit, gap, strict=True)))
    squares = [part**2 for part in parts]
    return squares[0] + squares[1], fsum(q / k**0.75 for k, q in enumerate(squares, 1))
