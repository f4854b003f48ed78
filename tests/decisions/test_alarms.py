"""How often the gate errs at the bound, and the table of docs/evidence/decisions.md."""

import sys
from pathlib import Path

import numpy as np
import pytest

from fastece import check

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/evidence/decisions.md").read_text(encoding="utf-8")


@pytest.fixture
def script(monkeypatch):
    """The module that makes the table."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "evidence"))
    import gate_alarms

    yield gate_alarms
    for name in ("gate_alarms", "bayes_shapes"):
        sys.modules.pop(name, None)


def table():
    return [line for line in PAGE.splitlines() if line.startswith(("| rows |", "|---:", "| 100 |",
            "| 500 |", "| 2000 |"))]  # fmt: skip


def test_the_table_is_one_that_the_script_prints(script, monkeypatch):
    monkeypatch.setattr(script, "POPULATION", 2000)
    kinds = [*script.cells()]
    assert f"of {len(kinds)} |" in table()[-1]
    assert f"{len(kinds)}\nkinds of models" in PAGE
    alarms = np.zeros((3, len(kinds), 3, 2))
    alarms[0, 0] = script.alarms(*kinds[0], 100, 2)
    printed = [*script.lines_of(alarms)]
    assert printed[:2] == table()[:2]
    starts = [line.split("|")[1:3] for line in printed[2:]]
    assert starts == [line.split("|")[1:3] for line in table()[2:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scores", "n"),
    [("too high", "uniform", 500), ("too sure", "top label", 2000),
     ("a heap at 1, .95 come true", "top label", 500)],
)  # fmt: skip
def test_either_mistake_at_the_bound_is_rare(script, name, scores, n):
    (truth,) = (x for *kind, x in script.cells() if kind == [name, scores])
    verdicts = []
    for k in range(200):
        rng = np.random.default_rng([11, n, k])
        s, chance = script.draw_rows(script.SHAPES[name], scores, rng, n)
        verdicts.append(check(rng.random(n) < chance, s, max_error=truth).passed)
    # If 5 % are wrong, more than 21 of 200 samples are in one of 1000 cases.
    assert verdicts.count(True) <= 21
    assert verdicts.count(False) <= 21


@pytest.mark.slow
def test_shapes_that_the_page_names_are_as_bad_as_it_says(script):
    kinds = {tuple(kind): x for *kind, x in script.cells()}
    for kind, n, side, percent in (
        (("ten steps of .05", "uniform"), 2000, 0, 13.0),
        (("calibrated, above .85 moved up", "uniform"), 500, 1, 9.7),
    ):
        assert f"({percent:g} %)" in PAGE
        name, scores = kind
        share = 100 * script.alarms(name, scores, kinds[kind], n, 300)[:, side]
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
