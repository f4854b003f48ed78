"""Risk-coverage curves and their areas, against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastece
from fastece import Accumulator, SelectiveRisk
from fastece.decisions import risk_coverage
from helpers import strategies as cases
from helpers.bad_input import assert_refused
from oracles import reference_selective as reference

AREAS = ("aurc", "e_aurc", "augrc")


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.random(n).round(1)
    return (rng.random(n) < s).astype(int), s, rng.random(n) + 0.1


def near(value):
    return pytest.approx(value, abs=1e-12)


def expected(s, loss, w):
    aurc, augrc = reference.areas(s, loss, w)
    return aurc, reference.excess(s, loss, w), augrc


@pytest.mark.slow
@given(cases.binary(max_size=25), st.data())
def test_areas_equal_plain_loops(data, draw):
    y, p = data
    w = draw.draw(cases.integer_weights(len(y), 0))
    want = expected(p.tolist(), (1.0 - y).tolist(), w.tolist())
    values = [fastece.ece(y, p, estimator=name, sample_weight=w) for name in AREAS]
    assert values == near(want)
    curve = risk_coverage(y, p, sample_weight=w)
    assert [getattr(curve, name) for name in AREAS] == near(want)
    parts = np.cumsum(reference.blocks(p.tolist(), (1.0 - y).tolist(), w.tolist()), axis=0)
    assert curve.coverage == near(parts[:, 0])
    assert curve.risk == near(parts[:, 1] / parts[:, 0])
    assert curve.threshold.tolist() == sorted(set(p[w > 0].tolist()), reverse=True)


@pytest.mark.slow
def test_the_closed_form_is_the_integral():
    y, s, _ = rows(20)
    aurc = fastece.ece(y, s, estimator="aurc")
    assert aurc == pytest.approx(reference.stepwise_aurc(s.tolist(), (1 - y).tolist()), abs=1e-4)


def test_the_best_order_has_no_excess_and_a_constant_score_has_the_mean():
    y = np.repeat([0, 1], [3, 7])
    assert fastece.ece(y, np.linspace(0, 1, 10), estimator="e_aurc") == near(0.0)
    assert fastece.ece(y, np.full(10, 0.4), estimator="aurc") == near(0.3)
    assert fastece.ece(y, np.full(10, 0.4), estimator="augrc") == near(0.15)
    assert fastece.ece(1 - y * 0, np.full(10, 0.4), estimator="aurc") == 0.0
    assert fastece.ece(y * 0, np.linspace(0, 1, 10), estimator="aurc") == near(1.0)


@settings(max_examples=20)
@given(st.integers(2, 30), st.integers(0, 10**6), st.booleans())
def test_areas_of_any_score_and_loss_equal_plain_loops(n, seed, ties):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    p = rng.random(n)
    w = rng.random(n) + 0.01
    score = rng.normal(size=n) * 5
    loss = rng.exponential(size=n)
    if ties:
        score = score.round()
        loss = loss.round(1)
    curve = risk_coverage(y, p, score=score, loss=loss, sample_weight=w)
    want = expected(score.tolist(), loss.tolist(), w.tolist())
    assert [getattr(curve, name) for name in AREAS] == near(want)
    assert curve.threshold.tolist() == np.unique(score)[::-1].tolist()


def test_class_vectors_count_by_their_top_labels():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4), 50)
    y = rng.integers(0, 4, 50)
    curve = risk_coverage(y, p, n_resamples=19)
    same = risk_coverage(p.argmax(1) == y, p.max(1), n_resamples=19)
    assert (curve.aurc, curve.intervals) == (same.aurc, same.intervals)
    assert curve.setting == "confidence"
    is_high = (y > 1).astype(int)
    either = risk_coverage(is_high, p[:, 0], setting="confidence")
    right = (p[:, 0] > 0.5) == is_high
    assert either.aurc == near(risk_coverage(right, np.maximum(p[:, 0], 1 - p[:, 0])).aurc)


def test_intervals_are_quantiles_of_the_bootstrap_on_the_log_scale():
    y, s, w = rows()
    loss = np.abs(y - s)
    drawn = fastece.bootstrap(y, s, estimator=[*AREAS], n_resamples=49, rng=3)
    curve = risk_coverage(y, s, n_resamples=49, rng=3)
    for name in AREAS:
        low, high = np.quantile(drawn[name].bootstrap_distribution, [0.025, 0.975])
        value = getattr(curve, name)
        assert curve.intervals[name] == near([value**2 / high, value**2 / low])
    assert curve.confidence_interval == curve.intervals["aurc"]
    same = risk_coverage(y, s, loss=1.0 - y, n_resamples=49, rng=3)
    assert [same.aurc, same.e_aurc] == near([curve.aurc, curve.e_aurc])
    assert same.intervals["e_aurc"] == near(curve.intervals["e_aurc"])
    for options in ({"groups": np.arange(60) // 3}, {"sample_weight": w}, {"loss": loss - 1}):
        first = risk_coverage(y, s, n_resamples=49, rng=3, **options)
        assert first.intervals["aurc"].low < first.aurc < first.intervals["aurc"].high
        again = risk_coverage(y, s, n_resamples=49, rng=3, **options)
        assert first.intervals == again.intervals


def test_compare_finds_the_better_order():
    y, s, _ = rows(400, 2)
    noise = np.random.default_rng(0).random(400)
    difference = fastece.compare(y, s, noise, estimator="aurc", n_resamples=199)
    assert difference.value < 0
    assert difference.confidence_interval.high < 0


def test_a_curve_prints_tabulates_and_draws():
    y, s, _ = rows()
    curve = risk_coverage(y, s, n_resamples=9)
    assert "e_aurc" in str(curve)
    assert "threshold" in str(curve)
    assert curve.to_dict()["intervals"]["aurc"] == list(curve.confidence_interval)
    assert list(curve.to_frame().columns) == ["threshold", "coverage", "risk"]
    figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
    ax = curve.plot(figure.subplots(), label="one $")
    assert risk_coverage(y, s[::-1]).plot(ax) is ax
    figure.canvas.draw()
    first, second = (line.get_xydata() for line in ax.get_lines())
    assert first.tolist() == np.column_stack([curve.coverage, curve.risk]).tolist()
    assert len(second) == curve.coverage.size
    assert ax.get_legend().get_texts()[0].get_text() == f"one $, AURC {curve.aurc:.4f}"


def test_there_is_no_interval_unless_one_is_asked_for():
    y, s, _ = rows()
    curve = risk_coverage(y, s)
    assert (curve.intervals, curve.confidence_interval, curve.n_resamples) == ({}, None, 0)
    assert "% CI" not in str(curve)
    assert curve.to_dict()["intervals"] == {}
    asked = risk_coverage(y, s, n_resamples=9)
    assert "95 % CI" in str(asked)
    assert (asked.aurc, asked.risk.tolist()) == (curve.aurc, curve.risk.tolist())


def test_bad_input_is_refused():
    y, s, _ = rows(5)
    stream = Accumulator().update(y, s)
    assert fastece.ece(stream, estimator="aurc") == near(fastece.ece(y, s, estimator="aurc"))
    bad = {
        r"score: must have shape \(5,\)": lambda: risk_coverage(y, s, score=[1.0, 2.0]),
        r"score: must be finite.*score\[1\]": lambda: risk_coverage(
            y, s, score=[1, np.nan, 2, 3, 4]
        ),
        r"loss: must be finite": lambda: risk_coverage(y, s, loss=[1, np.inf, 2, 3, 4]),
        r"loss: must be real": lambda: risk_coverage(y, s, loss=list("abcde")),
        r"risk_coverage needs every row": lambda: risk_coverage(stream),
        r"setting: must be one problem": lambda: risk_coverage(y, s, setting="classwise"),
        r"area: must be a known name": lambda: SelectiveRisk("auc"),
        r"bins: is not a parameter": lambda: risk_coverage(y, s, bins=3),
        r"n_resamples": lambda: risk_coverage(y, s, n_resamples=-1),
    }
    for message, call in bad.items():
        assert_refused(call, [message])
