"""The Bayesian calibration curve, written from its definition: dense matrices, a prior made of
cosines, Newton's method with halved steps.

Nothing of fastece is imported. Data are lists of Python numbers; only matrices are arrays. A cell
is a triple (weight, hits, mean score).
"""

from math import cos, exp, fsum, inf, log, log1p, pi

import numpy as np
from reference import sigmoid


def effective_count(weights):
    """Kish: (sum w)^2 / sum w^2."""
    return fsum(weights) ** 2 / fsum(w * w for w in weights)


def cells(rows, n_cells, count):
    """(weight, hits, mean score) of each cell, from rows (score, hit, weight): equal scores are in
    the cell of their mid-rank, and all weights are scaled to add up to `count`."""
    total = fsum(w for _, _, w in rows)
    members = [[] for _ in range(n_cells)]
    for x in {s for s, _, _ in rows}:
        same = [row for row in rows if row[0] == x]
        below = fsum(w for s, _, w in rows if s < x)
        middle = (below + fsum(w for _, _, w in same) / 2) / total
        members[min(int(middle * n_cells + 1e-7), n_cells - 1)] += same
    triples = []
    for cell in members:
        weight = fsum(w for _, _, w in cell)
        score = fsum(s * w for s, _, w in cell) / weight if weight else 0.0
        hits = fsum(w for _, y, w in cell if y)
        triples.append((weight * count / total, hits * count / total, score))
    return triples


def logit(s):
    """log(s / (1 - s)), infinite at 0 and 1."""
    if s <= 0:
        return -inf
    if s >= 1:
        return inf
    return log(s) - log1p(-s)


def logits(cells, low, high):
    """Logits of the mean scores, limited to [low, high], and their distances from the mean.

    An empty cell has the logit of the cell before, or of the first filled cell without one.
    """
    x = [min(max(logit(s), low), high) if weight else None for weight, _, s in cells]
    first_filled = next(z for z in x if z is not None)
    for c in range(len(x)):
        if x[c] is None:
            x[c] = x[c - 1] if c else first_filled
    total = fsum(weight for weight, _, _ in cells)
    mean = fsum(weight * z for (weight, _, _), z in zip(cells, x, strict=True)) / total
    return x, [z - mean for z in x]


def logit_range(cells, near, far):
    """The limits of logits at each end: `far`, unless the hits of the rows beyond `near` are
    likelier with `near`, given that chances are the scores."""
    filled = [cell for cell in cells if cell[0]]

    def limit(cells_of_side):
        z = [logit(s) for _, _, s in cells_of_side]
        with_near = log_likelihood(cells_of_side, [min(max(v, -near), near) for v in z])
        with_far = log_likelihood(cells_of_side, [min(max(v, -far), far) for v in z])
        return far if with_far > with_near else near

    left = limit([cell for cell in filled if logit(cell[2]) <= 0])
    right = limit([cell for cell in filled if logit(cell[2]) > 0])
    return -left, right


def variances(n_cells, tau, rho, decay):
    """Prior variances v_k of the coefficients of cos(pi k u), k = 0, ..., C - 1.

    They are proportional to 1 / (1 + (k' / rho)^decay), k = 0 counting half, with the frequency of
    cells k' = (C / pi) sqrt(2 - 2 cos(pi k / C)), and v_1 + v_2 + ... = 2 tau^2.
    """
    k2 = [(n_cells / pi) ** 2 * (2 - 2 * cos(pi * k / n_cells)) for k in range(n_cells)]
    v = [1 / (1 + (k / rho**2) ** (decay / 2)) for k in k2]
    z = fsum(v[1:]) / (2 * tau**2)
    return [0.5 * v[0] / z] + [x / z for x in v[1:]]


def precision_of_f(n_cells, tau, rho, decay):
    """The inverse of sum_k v_k cos(pi k u_c) cos(pi k u_d), u = (c + 1/2) / C: cosines are its
    eigenvectors, of square length C, or C / 2 from k = 1 on."""
    v = np.array(variances(n_cells, tau, rho, decay))
    k = np.arange(n_cells)
    wave = np.cos(pi * k[:, None] * (k + 0.5) / n_cells)  # a line for each k
    length = np.where(k == 0, n_cells, n_cells / 2)
    return ((wave.T / (v * length**2)) @ wave).tolist()


def prior_precision(n_cells, tau, rho, decay, slope=0.5):
    """The precision of (f, b_0, b_1): b_0 has the variance tau^2 - v_0, as f varies by the constant
    v_0 already, and b_1 has (slope tau)^2."""
    constant = variances(n_cells, tau, rho, decay)[0]
    rows = [[*row, 0.0, 0.0] for row in precision_of_f(n_cells, tau, rho, decay)]
    zeros = [0.0] * n_cells
    line = [[*zeros, 1 / (tau**2 - constant), 0.0], [*zeros, 0.0, 1 / (slope * tau) ** 2]]
    return rows + line


def solve_up(r, b):
    """x with R' x = b."""
    return np.linalg.solve(np.transpose(r), b).tolist()


def curve(x, t, theta):
    """Logits of the curve with the coefficients (f, b_0, b_1)."""
    *f, b0, b1 = theta
    return [x[c] + b0 + b1 * t[c] + f[c] for c in range(len(x))]


def log_likelihood(cells, z):
    """sum_c hits_c z_c - weight_c log(1 + exp(z_c))"""
    return fsum(
        hits * q - weight * (max(q, 0.0) + log1p(exp(-abs(q))))
        for (weight, hits, _), q in zip(cells, z, strict=True)
    )


def precision_at(cells, t, prior, p):
    """Prior precision plus T' W T, where T has a line (.., 1, .., 1, t) for each cell."""
    m = len(t)
    w = [weight * q * (1 - q) for (weight, _, _), q in zip(cells, p, strict=True)]
    lines = np.column_stack([np.eye(m), np.ones(m), t])
    return prior + lines.T @ np.diag(w) @ lines


def laplace(cells, x, t, prior):
    """(mode, Cholesky factor of the precision there, log evidence), by Newton's method.

    A step that lowers the log posterior is halved until it does not.
    """

    def log_posterior(theta):
        return log_likelihood(cells, curve(x, t, theta)) - float(theta @ np.dot(prior, theta)) / 2

    theta = np.zeros(len(x) + 2)
    while True:
        p = [sigmoid(z) for z in curve(x, t, theta)]
        r = [hits - weight * q for (weight, hits, _), q in zip(cells, p, strict=True)]
        gradient = [*r, fsum(r), fsum(a * b for a, b in zip(r, t, strict=True))]
        precision = precision_at(cells, t, prior, p)
        step = np.linalg.solve(precision, gradient - np.dot(prior, theta))
        if abs(step).max() < 1e-10:
            break
        before = log_posterior(theta)
        while log_posterior(theta + step) < before - 1e-12 * abs(before):
            step = step / 2
        theta = theta + step
    log_determinants = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(precision)[1]
    log_evidence = log_posterior(theta) + log_determinants / 2
    return theta.tolist(), np.linalg.cholesky(precision), log_evidence


def norm_of_gaps(cells, p, norm):
    """(sum_c w_c / W |p_c - s_c|^norm)^(1 / norm), or the largest gap."""
    gaps = [(weight, abs(q - s)) for (weight, _, s), q in zip(cells, p, strict=True) if weight]
    if norm == inf:
        return max(gap for _, gap in gaps)
    total = fsum(weight for weight, _ in gaps)
    return (fsum(weight * gap**norm for weight, gap in gaps) / total) ** (1 / norm)


def posterior_mean(cells, x, t, hyperparameters, normals, norm=1.0):
    """The mean of the error over draws. `hyperparameters`: (prior probability, tau, rho, decay), in
    the order in which draws take them; `normals`: for each draw C + 2 numbers.

    Draw q of Q takes the hyperparameters at the (q + 1/2) / Q quantile of their posterior.
    """
    fits = [laplace(cells, x, t, prior_precision(len(x), *h)) for _, *h in hyperparameters]
    largest = max(evidence for _, _, evidence in fits)
    joint = [
        probability * exp(evidence - largest)
        for (probability, *_), (_, _, evidence) in zip(hyperparameters, fits, strict=True)
    ]
    total = fsum(joint)
    errors = []
    for q, z in enumerate(normals):
        g = 0
        cumulated = joint[0] / total
        while cumulated < (q + 0.5) / len(normals):
            g += 1
            cumulated += joint[g] / total
        mode, factor, _ = fits[g]
        theta = [a + b for a, b in zip(mode, solve_up(factor, z), strict=True)]
        errors.append(norm_of_gaps(cells, [sigmoid(v) for v in curve(x, t, theta)], norm))
    return fsum(errors) / len(errors)


def chain(cells, x, law, value, prior, n_shifts, n_levels, drift):
    """(log evidence, probability (C, N) of each state given all cells) of a hidden Markov chain, by
    its transition matrices, given that not every cell is calibrated.

    The states, in order: shifts, which add `value` to the logit x; calibrated after another state;
    calibrated from the first cell on; levels, whose logit is `value`. `law` has the probabilities
    of a jump, of a step by `drift` to the next shifts, and of a jump to a calibrated state; any
    other jump leads to the states by their `prior` (C, N).
    """
    jump, step, spike = law
    calibrated_again = n_shifts
    always_calibrated = n_shifts + 1
    n = len(value)
    assert n == n_shifts + 2 + n_levels

    log_of_state = np.empty((len(x), n))
    for c, cell in enumerate(cells):
        for k in range(n):
            z = x[c] + value[k] if k <= always_calibrated else value[k]
            log_of_state[c, k] = log_likelihood([cell], [z])
    # Likelihoods of many rows are too small for a float64, unless they are over the largest.
    largest = log_of_state.max(axis=1, keepdims=True)
    likelihood = np.exp(log_of_state - largest)

    transitions = []
    for c in range(1, len(x)):
        to = np.outer(np.ones(n), jump * (1 - spike) * np.array(prior[c]))
        for k in range(n):
            to[k, always_calibrated if k == always_calibrated else calibrated_again] += jump * spike
            if k >= n_shifts:
                to[k, k] += 1 - jump
                continue
            to[k, k] += (1 - jump) * (1 - step)
            for neighbour in (k - drift, k + drift):
                goes_to = neighbour if 0 <= neighbour < n_shifts else k
                to[k, goes_to] += (1 - jump) * step / 2
        transitions.append(to)

    start = (1 - spike) * np.array(prior[0])
    start[always_calibrated] = spike
    forward = [start * likelihood[0]]
    for c in range(1, len(x)):
        forward.append(forward[-1] @ transitions[c - 1] * likelihood[c])

    end = np.ones(n)
    end[always_calibrated] = 0.0
    backward = [end]
    for c in range(len(x) - 1, 0, -1):
        backward.insert(0, transitions[c - 1] @ (likelihood[c] * backward[0]))

    joint = np.array(forward) * np.array(backward)
    not_always_calibrated = 1 - spike * (1 - jump + jump * spike) ** (len(x) - 1)
    log_evidence = log(joint[0].sum() / not_always_calibrated) + largest.sum()
    return log_evidence, joint / joint.sum(1, keepdims=True)
