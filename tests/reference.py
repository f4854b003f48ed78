"""Binned calibration errors in plain Python, written from the definitions and from nothing else.

Slow on purpose, so that every line can be held against the definition it quotes. Nothing of
fastece is imported. Data are lists of Python numbers; a class matrix is a list of rows. Sums are
`math.fsum`, and the one comparison that decides where a score goes (a cumulated weight against a
share of the total) is exact.
"""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from math import ceil, comb, cos, erf, exp, fsum, inf, isqrt, log, nan, pi, sqrt

# -- settings: (y_true, y_prob) -> problems --------------------------------------------------------


def sigmoid(z):
    """1 / (1 + exp(-z)), never overflowing; -inf is probability 0."""
    return 1 / (1 + exp(-z)) if z >= 0 else exp(z) / (1 + exp(z))


def softmax(row):
    """exp(z_k) / sum_j exp(z_j), the largest logit taken off first; -inf is probability 0."""
    exponentials = [exp(z - max(row)) for z in row]
    return [x / fsum(exponentials) for x in exponentials]


def is_matrix(y_prob):
    """Are there class columns, `(n, K)`, or a single probability per row, `(n,)`?"""
    return hasattr(y_prob[0], "__len__")


def probabilities(y_prob, from_logits=False):
    """Probabilities in the shape of the input; values a little outside [0, 1] are clipped."""
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
    """The first largest column of each row. Logits are compared as logits; label 1 is z > 0."""
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
    """An edge between two scores: their midpoint, unless it rounds onto the one it must exclude.

    With closed=None, as for convex bins, the edge only serves to make centres, and is the midpoint.
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
    mass = {}
    for s, w in zip(scores, weights, strict=True):
        if w > 0:
            s = min(max(s, low), high)
            mass[s] = mass.get(s, 0) + Fraction(float(w))
    u = sorted(mass)
    cumulated = list(accumulate(mass[s] for s in u))
    total = cumulated[-1]
    tolerance = total / 10**12
    edges = [low]
    k = 0
    for j in range(1, n_bins):
        target = total * j / n_bins
        while cumulated[k] < target - tolerance:
            k += 1
        if cumulated[k] <= target + tolerance:
            edges.append(between(u[k], u[k + 1], closed))
        else:
            edges.append(u[k])
    return [*edges, high]


# -- which bin, and which share of it --------------------------------------------------------------


def which_bin(s, edges, closed="right"):
    """closed="right": (a, b] with low in the first bin; "left": [a, b) with high in the last.

    Scores outside the range are placed at its nearest end.
    """
    s = min(max(s, edges[0]), edges[-1])
    if closed == "right":
        edges_before = sum(edge < s for edge in edges)
    else:
        edges_before = sum(edge <= s for edge in edges)
    return min(max(edges_before - 1, 0), len(edges) - 2)


def centres(edges):
    """The sorted distinct centres `(c, b)` with b the first bin that has centre c."""
    distinct = []
    for b in range(len(edges) - 1):
        c = (edges[b] + edges[b + 1]) / 2
        if not distinct or c > distinct[-1][0]:
            distinct.append((c, b))
    return distinct


def convex_shares(s, centres_and_bins):
    """The shares `(b, a)` of one score by linear binning between the centres; they sum to 1.

    All in the first bin for s <= c_0, all in the last for s >= c_last; else, with j the largest
    index such that c_j <= s: a_j = (c_{j+1} - s) / (c_{j+1} - c_j) and a_{j+1} = 1 - a_j.
    """
    c = [centre for centre, _ in centres_and_bins]
    bins = [b for _, b in centres_and_bins]
    if s <= c[0]:
        return [(bins[0], 1.0)]
    if s >= c[-1]:
        return [(bins[-1], 1.0)]
    j = bisect_right(c, s) - 1
    share = (c[j + 1] - s) / (c[j + 1] - c[j])
    return [(bins[j], share), (bins[j + 1], 1.0 - share)]


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
    """The edges (None if no row is left), and the rows `(s, y, w_i a_ib)` of each bin.

    Rows of weight 0 are dropped first; "sqrt" is floor(sqrt(n)) of the rows left, before
    `threshold` drops the rows with s <= t.
    """
    scores, hits, low, high = problem
    rows = list(zip(scores, hits, weights or [1.0] * len(scores), strict=True))
    rows = [(s, y, w) for s, y, w in rows if w > 0]
    if not isinstance(edges, str):
        n_bins = len(edges) - 1
    elif n_bins == "sqrt":
        n_bins = max(1, isqrt(len(rows)))
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
            closed=closed if mapping == "hard" else None,
        )  # fmt: skip
    centres_of_bins = centres(cuts)
    rows_of_bins = [[] for _ in range(n_bins)]
    for s, y, w in rows:
        if mapping == "hard":
            shares = [(which_bin(s, cuts, closed), 1.0)]
        else:
            shares = convex_shares(s, centres_of_bins)
        for b, a in shares:
            rows_of_bins[b].append((s, y, w * a))
    return cuts, rows_of_bins


def cells(problem, weights=None, **fields):
    """The edges (None if no row is left) and one cell `(W_b, D_b, sum of w s, sum of w y)` per bin:
    W_b = sum_i w_i a_ib, D_b = sum_i w_i a_ib (y_i - s_i).
    """
    cuts, rows_of_bins = members(problem, weights, **fields)
    return cuts, [
        (
            fsum(w for _, _, w in rows),
            fsum(w * (y - s) for s, y, w in rows),
            fsum(w * s for s, _, w in rows),
            fsum(w * y for _, y, w in rows),
        )
        for rows in rows_of_bins
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
        terms = [(1 / len(cells), gap) for _, gap in solid]
    else:
        terms = [(w / total, gap) for w, gap in gaps]
    # The largest gap is taken out of the sum, so that no power underflows.
    largest = max(gap for _, gap in terms) or 1.0
    return largest * fsum(share * (gap / largest) ** norm for share, gap in terms) ** (1 / norm)


VALUE_FIELDS = {"norm", "min_count", "bin_weights"}


def error(problem, weights=None, **fields):
    """The calibration error of one binary problem; `fields` are the parameters of Binned."""
    fields = dict(fields)
    if fields.pop("debias", False):
        return debiased_error(problem, weights, **fields)
    value_fields = {name: fields.pop(name) for name in VALUE_FIELDS & set(fields)}
    return value(cells(problem, weights, **fields)[1], **value_fields)


def folded(mean, sd):
    """E |N(mean, sd^2)| = sd sqrt(2 / pi) exp(-z^2 / 2) + mean erf(z / sqrt(2)), z = mean / sd."""
    if sd == 0:
        return abs(mean)
    z = mean / sd
    beside_mean = sd * sqrt(2 / pi) * exp(-z * z / 2)
    return beside_mean + mean * erf(z / sqrt(2))


def debiased_error(problem, weights=None, *, norm=1.0, min_count=0, bin_weights="mass", **binning):
    """The error of bins without the bias that chance adds, Kumar, Liang and Ma (2019).

    With g_b = |D_b / W_b|, q_b the hit rate, n_b = W_b^2 / sum w^2, t_b^2 = q_b (1 - q_b) / n_b:
    norm 1: sum W_b/W (2 g_b - E|N(g_b, t_b^2)|), a folded normal variable's mean.
    norm 2: sqrt(max(0, sum W_b/W (g_b^2 - q_b (1 - q_b) / (n_b - 1)))), n_b < 2 counting 0.
    """
    assert min_count == 0
    rows_of_bins = members(problem, weights, **binning)[1]
    total = fsum(w for rows in rows_of_bins for _, _, w in rows)
    smallest_weight = 1e-9 * total if bin_weights == "equal" else 0.0
    terms = []
    for rows in rows_of_bins:
        weight = fsum(w for _, _, w in rows)
        if weight <= smallest_weight:
            continue
        g = abs(fsum(w * (y - s) for s, y, w in rows) / weight)
        q = fsum(w * y for _, y, w in rows) / weight
        n = weight / fsum(w * (w / weight) for _, _, w in rows)
        share = 1 / len(rows_of_bins) if bin_weights == "equal" else weight / total
        if norm == 1:
            t = sqrt(max(q * (1 - q), 0.0) / n)
            terms.append(share * (2 * g - folded(g, t)))
        elif n > 2 - 1e-9:
            terms.append(share * (g * g - q * (1 - q) / (n - 1)))
    return fsum(terms) if norm == 1 else sqrt(max(0.0, fsum(terms)))


# -- estimators of the literature ------------------------------------------------------------------


def sweep_bins(problem, weights=None):
    """The largest B, at most the number of rows, such that for each of 1, ..., B bins of equal
    weight the hit rates of the occupied ones do not decrease; in exact fractions."""
    n_rows = sum(w > 0 for w in weights or [1.0] * len(problem[0]))
    for n_bins in range(1, n_rows + 1):
        rates = []
        for rows in members(problem, weights, n_bins=n_bins, edges="quantile")[1]:
            if rows:
                hits = sum(Fraction(w) for _, y, w in rows if y)
                rates.append(hits / sum(Fraction(w) for _, _, w in rows))
        if rates != sorted(rates):
            return n_bins - 1
    return n_rows


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

    def bell(distance):
        return exp(-((distance / scale) ** 2) / 2)

    heights = []
    for j in range(points):
        t = (j + 0.5) / points
        total = 0.0
        for s, y, w in zip(scores, hits, weights, strict=True):
            for k in range(-reach, reach + 1):
                total += w * (y - s) * (bell(t - s - 2 * k) + bell(t + s - 2 * k))
        heights.append(abs(total))
    return fsum(heights) / points / scale / sqrt(2 * pi) / fsum(weights)


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
    errors = [
        error(problem, weights, **fields)
        for problem in problems(y_true, y_prob, setting, labels, from_logits)
    ]
    if setting != "classwise":
        return errors[0]
    return fsum(errors) / len(errors) if average == "macro" else errors


def parts(problem, weights=None, *, norm=1.0, min_count=0, bin_weights="mass", **fields):
    """`(over, under)`: the error by the negative gaps of bins alone, and by the positive ones."""
    _, all_cells = cells(problem, weights, **fields)
    value_fields = {"norm": norm, "min_count": min_count, "bin_weights": bin_weights}
    over = [(w, min(d, 0.0), *sums) for w, d, *sums in all_cells]
    under = [(w, max(d, 0.0), *sums) for w, d, *sums in all_cells]
    return value(over, **value_fields), value(under, **value_fields)


def mean_gap(scores, hits, weights=None):
    """sum w (y - s) / sum w."""
    w = weights or [1.0] * len(scores)
    return fsum(v * (y - s) for s, y, v in zip(scores, hits, w, strict=True)) / fsum(w)


def flip_variance(d, rows, n):
    """The variance of the gap sum a (y - s) over rows (s, a), where its mean is d.

    Outcomes follow the scores, and then the share t of the misses turns into hits, with
    d = t sum a (1 - s); for d < 0 the share t of the hits turns into misses, with d = -t sum a s.
    The rows are random too, and worth n rows of one weight.
    """
    room = fsum(a * (1 - s if d > 0 else s) for s, a in rows)
    t = abs(d) / room if room > 0 else 0.0
    calibrated = fsum(a * a * s * (1 - s) for s, a in rows)
    mean_weight = fsum(a * a for _, a in rows) / fsum(a for _, a in rows)
    return calibrated * (1 - 2 * t) + mean_weight * abs(d) - d * d / n


def is_possible_gap(d, scores, hits, weights, z):
    """Whether a true mean gap d is within z standard errors of the observed mean gap.

    The variance is `flip_variance`, plus the excess of the rows' squared deviations from the
    observed gap over the variance that such outcomes would have there.
    """
    w = weights or [1.0] * len(scores)
    total = fsum(w)
    rows = [(s, y, v / total) for s, y, v in zip(scores, hits, w, strict=True)]
    observed = fsum(v * (y - s) for s, y, v in rows)
    kish_rows = 1 / fsum(v * v for _, _, v in rows)

    def variance(gap):
        return flip_variance(gap, [(s, v) for s, _, v in rows], kish_rows)

    deviations = fsum(v * v * (y - s - observed) ** 2 for s, y, v in rows)
    excess = max(deviations - variance(observed), 0.0)
    return (observed - d) ** 2 <= z * z * (variance(d) + excess) + 1e-18


def diagram(problem, weights=None, **fields):
    """(edges, count, score, frequency, gap) per bin: W_b, the weighted means of s and y, and
    frequency - score; nan in empty bins."""
    cuts, all_cells = cells(problem, weights, **fields)
    count = [w for w, _, _, _ in all_cells]
    score = [s / w if w > 0 else nan for w, _, s, _ in all_cells]
    frequency = [y / w if w > 0 else nan for w, _, _, y in all_cells]
    gap = [d / w if w > 0 else nan for w, d, _, _ in all_cells]
    return cuts, count, score, frequency, gap


def effective_rows(problem, weights, **fields):
    """Kish's number of rows per bin, (sum w a)^2 / sum w^2 a, with the shares a of the rows."""
    weights = [w / max(weights) for w in weights]
    rows_of_bins = members(problem, weights, **fields)[1]
    if fields["mapping"] == "hard":
        squares = [fsum(w * w for _, _, w in rows) for rows in rows_of_bins]
    else:
        # Edges that do not depend on weights give the same shares a to the weights w^2.
        assert fields["edges"] == "uniform"
        rows_with_squares = members(problem, [w * w for w in weights], **fields)[1]
        squares = [fsum(w for _, _, w in rows) for rows in rows_with_squares]
    sums = [fsum(w for _, _, w in rows) for rows in rows_of_bins]
    return [w**2 / q if q > 0 else 0.0 for w, q in zip(sums, squares, strict=True)]


def binomial_interval(hits, rows, level):
    """Clopper and Pearson's (1934) interval of a rate, by bisection of sums of the binomial law.

    It has the rates for which so many hits or more, and so many or fewer, both have at least the
    probability (1 - level) / 2.
    """

    def tail(rate, counts):
        return fsum(comb(rows, k) * rate**k * (1 - rate) ** (rows - k) for k in counts)

    def bisect(is_too_low):
        low = 0.0
        high = 1.0
        for _ in range(100):
            middle = (low + high) / 2
            if is_too_low(middle):
                low = middle
            else:
                high = middle
        return low

    half = (1 - level) / 2
    low = 0.0
    if hits > 0:
        low = bisect(lambda rate: tail(rate, range(hits, rows + 1)) < half)
    high = 1.0
    if hits < rows:
        high = bisect(lambda rate: tail(rate, range(hits + 1)) > half)
    return low, high


# -- test inversion --------------------------------------------------------------------------------


def gap_noise(problem, weights=None, **fields):
    """`(D_b, v_b, u_b, W_b)` per bin, with weights as shares of the total: the gap, its variance
    v_b = sum (w a)^2 s (1 - s), the mean weight of a row u_b = sum (w a)^2 / W_b, and the share."""
    rows_of_bins = members(problem, weights, **fields)[1]
    total = fsum(w for rows in rows_of_bins for _, _, w in rows)
    noise_of_bins = []
    for rows in rows_of_bins:
        share = fsum(w / total for _, _, w in rows)
        gap = fsum(w / total * (y - s) for s, y, w in rows)
        variance = fsum((w / total) ** 2 * s * (1 - s) for s, _, w in rows)
        squares = fsum((w / total) ** 2 for _, _, w in rows)
        mean_weight = squares / share if share > 0 else 0.0
        noise_of_bins.append((gap, variance, mean_weight, share))
    return noise_of_bins


def binomial_noise(gap, step, count, chance, order):
    """The gap + step (k - E k) of each of R replicates, for a binomial number k of rows.

    Replicate order[j] has the (j + 1/2) / R quantile of these gaps; so it has this quantile of k,
    or for steps below 0 the 1 - (j + 1/2) / R quantile.
    """
    law = [comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]
    by_increasing_k = order if step > 0 else order[::-1]
    gaps = [0.0] * len(order)
    for j, r in enumerate(by_increasing_k):
        quantile = (j + 0.5) / len(order)
        k = 0
        while k < count and fsum(law[: k + 1]) < quantile * (1 - 1e-14):
            k += 1
        gaps[r] = gap + step * (k - count * chance)
    return gaps


def p_norm(gaps, norm):
    """(sum |d|^p)^(1/p), or the largest |d|."""
    top = max(abs(d) for d in gaps)
    if norm == inf or top == 0:
        return top
    return top * fsum((abs(d) / top) ** norm for d in gaps) ** (1 / norm)


def replicate_errors(gap, noise, null, rare, norm, side=0):
    """The error of each replicate: the mean over problems of the norm over cells of gap + noise x.

    `null[k][b]` has the x of cell b of problem k, one per replicate. `rare[k, b]` replaces the
    gaps of a cell. With side=1 only gaps above 0 count, with side=-1 only gaps below 0.
    """
    errors = []
    for r in range(len(null[0][0])):
        norms = []
        for k, x_of_cells in enumerate(null):
            gaps = [
                rare[k, b][r] if (k, b) in rare else gap[k][b] + noise[k][b] * x[r]
                for b, x in enumerate(x_of_cells)
            ]
            if side:
                gaps = [max(side * d, 0.0) for d in gaps]
            norms.append(p_norm(gaps, norm))
        errors.append(fsum(norms) / len(norms))
    return errors


def p_values(errors, null, seen, lucky):
    """`(above, below)`: p-values of one hypothesis against errors that are too large (the error
    `seen`), and too small (`lucky`), from its replicates and the replicates of a calibrated model.

    Errors that are too small get the share h/2 of the risk, h = (power - 5 %) / 95 %, with the
    power under the hypothesis of the test of calibration at 5 %. Ties within 1e-12.
    """
    tie = 1e-12
    rank = min(len(null), ceil(Fraction(95 * (len(null) + 1), 100)))
    critical = sorted(null)[rank - 1]
    power = sum(x > critical + tie for x in errors) / len(errors)
    half = min(max((power - 0.05) / 0.95, 0.0), 1.0) / 2
    above = (1 + sum(x >= seen - tie for x in errors)) / (len(errors) + 1)
    below = (1 + sum(x <= lucky + tie for x in errors)) / (len(errors) + 1)
    return above / (1 - half), below / half if half > 0 else inf


# -- scores ----------------------------------------------------------------------------------------


def minus_log(p):
    """-log p, infinite for 0."""
    return inf if p == 0 else -log(p)


def squared_distance(p, y):
    """(p - y)^2, or sum_k (p_k - [k = y])^2 over the classes."""
    if hasattr(p, "__len__"):
        return fsum((q - 1) ** 2 if k == y else q**2 for k, q in enumerate(p))
    return (p - y) ** 2


def squared_cumulative_distance(p, y):
    """(p - y)^2, or sum_k (p_0 + ... + p_k - [y <= k])^2 over the classes except the last."""
    if hasattr(p, "__len__"):
        return fsum((fsum(p[: k + 1]) - (y <= k)) ** 2 for k in range(len(p) - 1))
    return (p - y) ** 2


def minus_log_likelihood(p, y, clip=None):
    """-log of the probability of the observed label, limited to [clip, 1 - clip]."""
    of_labels = p if hasattr(p, "__len__") else [1 - p, p]
    q = of_labels[y]
    return minus_log(q if clip is None else min(max(q, clip), 1 - clip))


def entropy(p, y):  # noqa: ARG001
    """- sum p log p over the classes, or over hit and miss."""
    of_labels = p if hasattr(p, "__len__") else [1 - p, p]
    return fsum(q * minus_log(q) for q in of_labels if q > 0)


def is_right(p, y):
    """1 if the first largest probability belongs to the label y; for a single p, label 1 is
    predicted above 1/2."""
    predicted = p.index(max(p)) if hasattr(p, "__len__") else int(p > 0.5)
    return float(predicted == y)


LOSSES = {
    "brier_score": squared_distance,
    "ranked_probability_score": squared_cumulative_distance,
    "log_loss": minus_log_likelihood,
    "entropy": entropy,
    "accuracy": is_right,
}


def mean_of(values, weights):
    """Weighted mean."""
    pairs = [(w, x) for w, x in zip(weights, values, strict=True) if w > 0]
    return fsum(w * x for w, x in pairs) / fsum(w for w, _ in pairs)


def variance(scores, weights):
    """Weighted variance."""
    centre = mean_of(scores, weights)
    return mean_of([(s - centre) ** 2 for s in scores], weights)


def score(name, y_true, y_prob, setting="auto", weights=None, **fields):
    """A score by its name: with "auto" the mean loss of the class vectors, else the mean over the
    setting's binary problems."""
    weights = [1] * len(y_true) if weights is None else weights

    def mean_loss(predicted, outcomes):
        rows = zip(predicted, outcomes, strict=True)
        return mean_of([LOSSES[name](p, y, **fields) for p, y in rows], weights)

    if name == "sharpness":
        values = [variance(s, weights) for s, *_ in problems(y_true, y_prob, setting)]
    elif setting == "auto" or (name == "accuracy" and setting == "confidence"):
        values = [mean_loss(y_prob, y_true)]
    else:
        values = [mean_loss(s, y) for s, y, *_ in problems(y_true, y_prob, setting)]
    return fsum(values) / len(values)


def brier_parts(problem, weights=None, **fields):
    """Reliability, resolution, uncertainty, variance and twice the covariance within bins, Murphy
    (1973) and Stephenson, Coelho and Jolliffe (2008)."""
    scores, hits, *_ = problem
    weights = [1] * len(scores) if weights is None else weights
    total = fsum(weights)
    base_rate = mean_of(hits, weights)
    reliability = []
    resolution = []
    variances = []
    covariances = []
    for rows in members(problem, weights, **fields)[1]:
        if not rows:
            continue
        share = fsum(w for _, _, w in rows) / total
        score = mean_of([s for s, _, _ in rows], [w for _, _, w in rows])
        frequency = mean_of([y for _, y, _ in rows], [w for _, _, w in rows])
        reliability.append(share * (score - frequency) ** 2)
        resolution.append(share * (frequency - base_rate) ** 2)
        variances.append(fsum(w * (s - score) ** 2 for s, _, w in rows) / total)
        products = fsum(w * (s - score) * (y - frequency) for s, y, w in rows)
        covariances.append(products / total)
    return [
        fsum(reliability),
        fsum(resolution),
        base_rate * (1 - base_rate),
        fsum(variances),
        2 * fsum(covariances),
    ]


def isotonic(scores, hits, weights):
    """Pool adjacent violators: exact (hits, weight) of each block, in the order of the scores.

    Rows with the same score begin as one block; neighbours are pooled while hit rates fall.
    """
    blocks = []
    for score in sorted({s for s, w in zip(scores, weights, strict=True) if w > 0}):
        rows = [(y, w) for s, y, w in zip(scores, hits, weights, strict=True) if s == score]
        blocks.append((sum(Fraction(w) * y for y, w in rows), sum(Fraction(w) for _, w in rows)))
        while len(blocks) > 1 and rate_of(blocks[-2]) >= rate_of(blocks[-1]):
            upper_hits, upper_weight = blocks.pop()
            lower_hits, lower_weight = blocks.pop()
            blocks.append((lower_hits + upper_hits, lower_weight + upper_weight))
    return blocks


def rate_of(block):
    """hits / weight of a block."""
    hits, weight = block
    return hits / weight


def score_parts(name, problem, weights=None):
    """Miscalibration, discrimination and uncertainty of "brier_score" or "log_loss", Dimitriadis,
    Gneiting and Jordan (2021): mean losses of the scores, of isotonic rates, of the base rate."""
    scores, hits, *_ = problem
    weights = [1] * len(scores) if weights is None else weights
    loss = LOSSES[name]

    def loss_of_rates(blocks):
        total = float(sum(w for _, w in blocks))
        terms = []
        for hits, weight in blocks:
            rate = float(hits / weight)
            misses = weight - hits
            if hits > 0:
                terms.append(float(hits) * loss(rate, 1) / total)
            if misses > 0:
                terms.append(float(misses) * loss(rate, 0) / total)
        return fsum(terms)

    blocks = isotonic(scores, hits, weights)
    one_block = [(sum(h for h, _ in blocks), sum(w for _, w in blocks))]
    of_scores = mean_of([loss(s, y) for s, y in zip(scores, hits, strict=True)], weights)
    of_isotonic = loss_of_rates(blocks)
    of_base_rate = loss_of_rates(one_block)
    return [of_scores - of_isotonic, of_base_rate - of_isotonic, of_base_rate]


def score_statistics(scores, hits, weights=None):
    """Statistics "slope" and "smooth" of the adaptive test, with every distinct score a cell.

    With variances v_c of the cells' gaps d_c: Gram and Schmidt make the shapes orthonormal in the
    product sum_c v_c a_c b_c, and the statistics add up the squares of q_k = sum_c a_kc d_c.
    "slope" is q_1^2 + q_2^2, "smooth" is sum_k q_k^2 / k^0.75.
    """
    n = len(scores)
    weights = [1.0] * n if weights is None else weights
    cells = sorted(set(scores))
    rows = {cell: [i for i in range(n) if scores[i] == cell] for cell in cells}
    variance = [fsum(weights[i] ** 2 * s * (1 - s) for i in rows[s]) for s in cells]
    gap = [fsum(weights[i] * (hits[i] - s) for i in rows[s]) for s in cells]

    def product(a, b):
        return fsum(a_c * b_c * v for a_c, b_c, v in zip(a, b, variance, strict=True))

    basis = []
    squares = []
    for shape in shapes_of_test(cells, variance, n):
        orthogonal = list(shape)
        for _ in range(2):  # the second pass removes the rounding of the first
            for unit in basis:
                dot = product(orthogonal, unit)
                orthogonal = [a - dot * b for a, b in zip(orthogonal, unit, strict=True)]
        length = sqrt(product(orthogonal, orthogonal))
        if length <= 1e-6 * sqrt(product(shape, shape)):
            squares.append(0.0)
            continue
        unit = [a / length if v > 0 else 0.0 for a, v in zip(orthogonal, variance, strict=True)]
        basis.append(unit)
        squares.append(fsum(a * d for a, d in zip(unit, gap, strict=True)) ** 2)
    return squares[0] + squares[1], fsum(q / k**0.75 for k, q in enumerate(squares, 1))


def shapes_of_test(cells, variance, n):
    """1, x - m and (x - m)^2 of the logits x with mean m, and cos(pi k u), k = 1, ..., 13, where u
    is the share of the variance below the middle of a cell."""
    total = fsum(variance)
    nearest_to_end = 1 / (2 * n + 2)
    clipped = [min(max(s, nearest_to_end), 1 - nearest_to_end) for s in cells]
    x = [log(s / (1 - s)) for s in clipped]
    mean = fsum(a * v for a, v in zip(x, variance, strict=True)) / total
    u = [(fsum(variance[:c]) + variance[c] / 2) / total for c in range(len(cells))]
    powers = [[1.0 for _ in x], [a - mean for a in x], [(a - mean) ** 2 for a in x]]
    return powers + [[cos(pi * k * share) for share in u] for k in range(1, 14)]
