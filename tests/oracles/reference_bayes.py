"""The Bayesian calibration curve, written from its definition: dense matrices, a prior made of
cosines, Newton's method with halved steps.

Nothing of fastece is imported. Data are lists of Python numbers, but for matrices.
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
    found = []
    for cell in members:
        weight = fsum(w for _, _, w in cell)
        score = fsum(s * w for s, _, w in cell) / weight if weight else 0.0
        hits = fsum(w for _, y, w in cell if y)
        found.append((weight * count / total, hits * count / total, score))
    return found


def logits(found, low, high):
    """Cut logits of the mean scores, and their distances from the mean. Empty cells have those of
    the cell before; the first ones those of the first that is not empty."""

    def cut(s):
        z = -inf if s <= 0 else inf if s >= 1 else log(s) - log1p(-s)
        return min(max(z, low), high)

    x = [cut(s) if weight else None for weight, _, s in found]
    first = next(z for z in x if z is not None)
    for c in range(len(x)):
        if x[c] is None:
            x[c] = x[c - 1] if c else first
    total = fsum(weight for weight, _, _ in found)
    mean = fsum(weight * z for (weight, _, _), z in zip(found, x, strict=True)) / total
    return x, [z - mean for z in x]


def logit_range(found, near, far):
    """Where logits are cut at each end: `far`, unless the hits of the rows beyond `near` are
    likelier with `near`, given that chances are the scores."""
    ends = []
    for right in (False, True):
        found_there = {near: 0.0, far: 0.0}
        for weight, hits, score in found:
            if not weight:
                continue
            z = logits([(weight, hits, score)], -inf, inf)[0][0]
            for cut in found_there if (z > 0) == right else ():
                found_there[cut] += log_likelihood(
                    [(weight, hits, score)], [min(max(z, -cut), cut)]
                )
        ends.append(far if found_there[far] > found_there[near] else near)
    return -ends[0], ends[1]


def variances(n_cells, tau, rho, decay):
    """Of the coefficients of cos(pi k u), k = 0, 1, ...; those from k = 1 on add up to 2 tau^2. k
    is that of cells: (C / pi) sqrt(2 - 2 cos(pi k / C))."""
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
    """Of (f, b_0, b_1): b_0 has what variance f's own constant leaves of tau^2."""
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


def log_likelihood(found, z):
    """sum hits z - weight log(1 + exp(z))"""
    return fsum(
        hits * q - weight * (max(q, 0.0) + log1p(exp(-abs(q))))
        for (weight, hits, _), q in zip(found, z, strict=True)
    )


def precision_at(found, t, prior, p):
    """Prior precision plus T' W T, where T has a line (.., 1, .., 1, t) for each cell."""
    m = len(t)
    w = [weight * q * (1 - q) for (weight, _, _), q in zip(found, p, strict=True)]
    lines = np.column_stack([np.eye(m), np.ones(m), t])
    return prior + lines.T @ np.diag(w) @ lines


def laplace(found, x, t, prior):
    """(top, Cholesky factor of the precision there, log evidence): Newton's method, whose steps are
    halved as long as they make it worse."""
    m = len(x)

    def objective(theta):
        return log_likelihood(found, curve(x, t, theta)) - float(theta @ np.dot(prior, theta)) / 2

    theta = np.zeros(m + 2)
    while True:
        p = [sigmoid(z) for z in curve(x, t, theta)]
        r = [hits - weight * q for (weight, hits, _), q in zip(found, p, strict=True)]
        gradient = [*r, fsum(r), fsum(a * b for a, b in zip(r, t, strict=True))]
        precision = precision_at(found, t, prior, p)
        step = np.linalg.solve(precision, gradient - np.dot(prior, theta))
        if abs(step).max() < 1e-10:
            break
        part, before = 1.0, objective(theta)
        while part > 1e-6:
            after = theta + part * step
            if objective(after) >= before - 1e-12 * abs(before):
                break
            part /= 2
        theta = after
    logs = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(precision)[1]
    return theta.tolist(), np.linalg.cholesky(precision), objective(theta) + logs / 2


def norm_of_gaps(found, p, norm):
    """(sum_c w_c / W |p_c - s_c|^norm)^(1 / norm), or the largest gap."""
    gaps = [(weight, abs(q - s)) for (weight, _, s), q in zip(found, p, strict=True) if weight]
    if norm == inf:
        return max(gap for _, gap in gaps)
    total = fsum(weight for weight, _ in gaps)
    return (fsum(weight * gap**norm for weight, gap in gaps) / total) ** (1 / norm)


def posterior_mean(found, x, t, hyperparameters, normals, norm=1.0):
    """The mean of the error over draws. `hyperparameters`: (prior probability, tau, rho, decay), in
    the order in which draws take them; `normals`: for each draw C + 2 numbers."""
    fits = [laplace(found, x, t, prior_precision(len(x), *h)) for _, *h in hyperparameters]
    top = max(evidence for _, _, evidence in fits)
    joint = [p * exp(fit[2] - top) for (p, *_), fit in zip(hyperparameters, fits, strict=True)]
    errors, total = [], fsum(joint)
    for q, z in enumerate(normals):
        passed, g = joint[0] / total, 0
        while passed < (q + 0.5) / len(normals):
            g += 1
            passed += joint[g] / total
        theta = [a + b for a, b in zip(fits[g][0], solve_up(fits[g][1], z), strict=True)]
        errors.append(norm_of_gaps(found, [sigmoid(v) for v in curve(x, t, theta)], norm))
    return fsum(errors) / len(errors)


def chain(found, x, law, value, prior, n_shifts, n_levels, drift):
    """(log evidence, probability (C, N) of each state given all cells) of a hidden Markov chain, of
    curves of which some cell is not calibrated, by its matrix.

    States: shifts, calibrated after another state, calibrated from the first cell on, levels, whose
    `prior` (C, N) is that of a jump that leads to none calibrated; `value` is what is added to the
    logit x, or the logit of a level.
    """
    jump, step, spike = law
    n, ever = len(value), n_shifts + 1
    likelihood = np.array([
        [exp(log_likelihood([cell], [z + (middle if k <= ever else 0.0)]))
         for k, z in enumerate(value)]
        for cell, middle in zip(found, x, strict=True)
    ])  # fmt: skip
    matrices = []
    for c in range(1, len(x)):
        to = np.outer(np.ones(n), jump * (1 - spike) * np.array(prior[c]))
        to[:, ever - 1] += jump * spike
        to[ever, ever - 1] -= jump * spike
        to[ever, ever] += jump * spike
        for k in range(n):
            walk = step if k < n_shifts else 0.0
            to[k, k] += (1 - jump) * (1 - walk)
            for other in (k - drift, k + drift):
                to[k, other if 0 <= other < n_shifts else k] += (1 - jump) * walk / 2
        matrices.append(to)
    start = (1 - spike) * np.array(prior[0])
    start[ever] = spike
    forward, backward = [start * likelihood[0]], [np.where(np.arange(n) == ever, 0.0, 1.0)]
    for to, like in zip(matrices, likelihood[1:], strict=True):
        forward.append(forward[-1] @ to * like)
    for to, like in zip(matrices[::-1], likelihood[:0:-1], strict=True):
        backward.append(to @ (like * backward[-1]))
    assert n_levels == n - ever - 1
    chance = np.array(forward) * np.array(backward[::-1])
    never = 1 - spike * (1 - jump + jump * spike) ** (len(x) - 1)
    return log(chance[0].sum() / never), chance / chance.sum(1, keepdims=True)
