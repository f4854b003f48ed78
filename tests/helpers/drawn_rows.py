"""Binary problems as arrays, and what a spy among the estimators saw of the draws of their rows."""

from typing import NamedTuple

import numpy as np
import reference

N_BINS = 5


class Rows(NamedTuple):
    """Cases of a problem as arrays. Cases that are copies or votes of one row may be one entry."""

    score: np.ndarray
    hit: np.ndarray
    cell: np.ndarray  # the bin
    weight: np.ndarray  # of all copies or votes
    row_weight: np.ndarray  # of one row
    place: np.ndarray  # the caller's row
    unit: np.ndarray  # what is drawn together

    @property
    def key(self):
        """Sorted, and none twice, where copies and votes are one entry."""
        return 2 * self.hit + self.score


def single_rows(cases, options):
    """Every case by itself."""
    return as_arrays([[case] for case in cases], options)


def merged_rows(cases, options):
    """One entry for all copies or votes of one row with one outcome."""
    merged = {}
    for case in cases:
        merged.setdefault((case.hit, case.score), []).append(case)
    return as_arrays([merged[key] for key in sorted(merged)], options)


def as_arrays(entries, options):
    """One entry for each list of cases."""
    edges = reference.uniform_edges(N_BINS)
    rows = []
    for cases in entries:
        first = cases[0]
        rows.append(
            (
                first.score,
                first.hit,
                reference.which_bin(first.score, edges),
                sum(case.weight for case in cases),
                first.row.weight,
                first.row.place,
                unit_of(first.row, options),
            )
        )
    return Rows(*map(np.array, zip(*rows, strict=True)))


def unit_of(row, options):
    """What is drawn or left out as a whole: a group, a row with all its votes, or a copy."""
    if "groups" in options:
        return row.group
    return row.place if {"soft", "votes"} & set(options) else row.number


def drawn_weights(rows, spy, numbers):
    """The weight (R, rows) of each row in each draw, from what a spy among the estimators saw."""
    weights = np.zeros((len(numbers), len(rows.key)))
    for weight_of_row, number in zip(weights, numbers, strict=True):
        if np.isnan(number):
            continue  # no row was drawn
        sample, _, c = spy.evaluations[number]
        seen = c > 0
        key = (2 * sample.y + sample.s)[seen]
        i = np.searchsorted(rows.key, key - 1e-9)
        assert np.abs(rows.key[i] - key).max() < 1e-9
        weight_of_row += np.bincount(i, weights_of_draw(sample, c)[seen], len(rows.key))
    return weights


def weights_of_draw(sample, c):
    return np.asarray(c, np.float64) if sample.v is None else c * sample.v


def errors_of(rows, weights):
    """sum_b |sum_i w_i (y_i - s_i)| / sum_i w_i of each line of weights; nan without any weight."""
    members = rows.cell[:, None] == np.arange(N_BINS)
    gaps = weights @ (members * (rows.hit - rows.score)[:, None])
    total = weights.sum(axis=1)
    return np.divide(
        np.abs(gaps).sum(axis=1), total, out=np.full(len(total), np.nan), where=total > 0
    )


def mean_errors(errors, weights, setting):
    """Mean (R,) over problems (K, R); predicted classes of no row have the share 0."""
    if setting != "top-label":
        return errors.mean(axis=0)
    totals = np.array([w.sum(axis=1) for w in weights])
    return np.where(totals > 0, errors * totals, 0).sum(axis=0) / totals.sum(axis=0)


def drawn_labels(rows, draws):
    """The scores, the drawn weight (R, places) of hits, and the weight (places,) of all."""
    scores, index = np.unique(rows.score, return_inverse=True)
    totals = np.bincount(index, rows.weight)
    hits = np.zeros((len(draws), len(scores)))
    for hits_of_draw, (sample, _, c) in zip(hits, draws, strict=True):
        i = np.searchsorted(scores, sample.s - 1e-9)
        assert np.abs(scores[i] - sample.s).max() < 1e-9
        weight = weights_of_draw(sample, c)
        np.testing.assert_allclose(np.bincount(i, weight), totals, rtol=1e-12)
        hits_of_draw += np.bincount(i, weight * sample.y)
    return scores, hits, totals


def errors_of_labels(scores, hits, totals):
    edges = reference.uniform_edges(N_BINS)
    cell = np.array([reference.which_bin(s, edges) for s in scores])
    gaps = (hits - totals * scores) @ (cell[:, None] == np.arange(N_BINS))
    return np.abs(gaps).sum(axis=1) / totals.sum()
