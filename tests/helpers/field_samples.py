"""Predictions like the ones in public reports, and the calibration error in plain loops."""

import json

import numpy as np


def plain_ece(outcomes, scores, n_bins=15):
    """Compute the error over bins (a, b] of equal width."""
    outcomes = np.asarray(outcomes, float)
    scores = np.asarray(scores, float)
    bins = np.clip(np.ceil(scores * n_bins).astype(int) - 1, 0, n_bins - 1)
    gaps = [abs((outcomes - scores)[bins == k].sum()) for k in range(n_bins)]
    return sum(gaps) / len(scores)


def draw_risks(n=300, seed=1):
    """Draw outcomes and slightly over-confident probabilities of 1."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-1, 1.5, n)
    outcomes = (rng.random(n) < 1 / (1 + np.exp(-0.7 * z))).astype(int)
    return outcomes, (1 / (1 + np.exp(-z))).round(6)


def as_csv(columns):
    """Write columns by name as CSV."""
    lists = (np.asarray(column).tolist() for column in columns.values())
    rows = [columns, *zip(*lists, strict=True)]
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def as_rows(columns):
    """Turn columns by name into a list of objects."""
    lists = (np.asarray(column).tolist() for column in columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def as_json_lines(rows):
    """Write objects as JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)
