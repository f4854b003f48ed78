"""How often the gate errs at the bound."""

import csv
from pathlib import Path

import gate_alarms
import numpy as np
import pytest

from fastece import check

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scores", "n"),
    [("too high", "uniform", 500), ("too sure", "top label", 2000),
     ("a heap at 1, .95 come true", "top label", 500)],
)  # fmt: skip
def test_either_mistake_at_the_bound_is_rare(name, scores, n):
    (truth,) = (x for *kind, x in gate_alarms.cells() if kind == [name, scores])
    verdicts = []
    for k in range(200):
        rng = np.random.default_rng([11, n, k])
        s, chance = gate_alarms.draw_rows(gate_alarms.SHAPES[name], scores, rng, n)
        verdicts.append(check(rng.random(n) < chance, s, max_error=truth).passed)
    # If 5 % are wrong, more than 21 of 200 samples are in one of 1000 cases.
    assert verdicts.count(True) <= 21
    assert verdicts.count(False) <= 21


@pytest.mark.slow
def test_the_worst_shapes_are_as_bad_as_the_published_table_has_them():
    path = ROOT / "docs" / "evidence" / "results" / "gate_alarms.csv"
    with path.open(encoding="utf-8", newline="") as file:
        published = {(row["rows"], row["level"]): row for row in csv.DictReader(file)}
    kinds = {tuple(kind): x for *kind, x in gate_alarms.cells()}
    for kind, n, side, verdict in (
        (("ten steps of .05", "uniform"), 2000, 0, "passes"),
        (("calibrated, above .85 moved up", "uniform"), 500, 1, "fails"),
    ):
        percent = float(published[str(n), "95"][f"{verdict}: largest"])
        name, scores = kind
        share = 100 * gate_alarms.alarms(name, scores, kinds[kind], n, 300)[:, side]
        assert share[1] == pytest.approx(percent, abs=6)
        assert share[2] <= 7.5  # with 0.98


@pytest.mark.slow
@pytest.mark.parametrize("off", [False, True])
def test_slices_together_err_as_rarely_as_one(off):
    """Eight slices, all calibrated and far below the bound, or one of them at it."""
    verdicts = []
    for k in range(60):
        rng = np.random.default_rng([3, k])
        p = rng.uniform(0.2, 0.8, 2400)
        by = np.arange(2400) % 8
        gap = np.where(by == 0, 0.1 if off else 0.0, 0.0)
        result = check(rng.random(2400) < p + gap, p, max_error=0.1, by=by)
        assert len(result.rows) == 9
        verdicts.append(result.passed)
    # If 5 % are wrong, more than 9 of 60 samples are in one of 1000 cases.
    if off:
        assert verdicts.count(True) <= 9
    assert verdicts.count(False) <= 9
