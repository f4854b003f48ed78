"""What a report says of all classes at once."""

import numpy as np
import pytest

import fastece
from fastece.report import report as maker


def vectors(n, n_classes=3, seed=0, twisted=False):
    """Labels and class vectors that are right, or right for every class by itself alone."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_classes), n)
    q = p * (1 + np.roll(p, -1, axis=1) - np.roll(p, -2, axis=1)) if twisted else p
    return (rng.random((n, 1)) < q.cumsum(axis=1)).argmax(axis=1), p


def report(y, p, n_resamples=99, **options):
    return fastece.calibration_report(y, p, n_resamples=n_resamples, **options)


def test_errors_and_tests_are_those_of_the_functions():
    y, p = vectors(400)
    weight = np.random.default_rng(1).random(400) + 0.5
    found = report(y, p, sample_weight=weight, rng=3).vectors
    names = ["canonical", "skce"]
    options = {"estimator": names, "sample_weight": weight, "n_resamples": 99, "rng": 3}
    tests = fastece.calibration_test(y, p, **options)
    assert [line["name"] for line in found.lines] == names
    for line, test in zip(found.lines, tests.values(), strict=True):
        assert line["value"] == pytest.approx(test.value, abs=1e-12)
        assert line["if_calibrated"] == pytest.approx(test.null_distribution.mean(), abs=1e-12)
        assert line["p_value"] == test.p_value
    assert (found.n_resamples, found.note) == (99, "")
    assert found.evidence(1 - tests["skce"].p_value) == []
    (text,) = found.evidence(1 - tests["skce"].p_value - 0.001)
    assert text.startswith("class vectors are miscalibrated (skce, p = ")


def test_a_verdict_knows_what_no_class_shows_by_itself():
    y, p = vectors(1000, twisted=True)
    found = report(y, p)
    assert found.verdict == "unclear"
    options = {"title": "", "rng": 0, "n_resamples": 99, "is_full": False}
    first = maker.make_report({"y_true": y, "y_prob": p}, maker.choose_errors([]), **options)
    assert first.headline == found.headline
    assert [line["name"] for line in first.vectors.lines] == ["skce"]
    assert "class vectors are miscalibrated (skce, p = 0.01)" in found.headline
    assert "Class vectors\n  error" in str(found)
    assert "## Class vectors" in found.to_markdown()
    right = report(*vectors(1000))
    assert right.verdict == "no sign"
    assert right.to_dict()["vectors"]["lines"][1]["p_value"] > 0.05


def test_without_resamples_there_are_values_alone():
    y, p = vectors(100)
    found = report(y, p, n_resamples=0).vectors
    assert found.lines[0]["value"] == pytest.approx(fastece.canonical_error(y, p), abs=1e-12)
    assert {line[key] for line in found.lines for key in ("if_calibrated", "p_value")} == {None}
    assert found.evidence(0.5) == []


def test_many_rows_have_fewer_replicates(monkeypatch):
    monkeypatch.setattr(maker, "MOST_PAIRS", 100**2 * 50)
    assert report(*vectors(100)).vectors.n_resamples == 50
    assert report(*vectors(200)).vectors.n_resamples == maker.LEAST_REPLICATES


def test_what_is_left_out_is_said(monkeypatch):
    found = report(*vectors(60, 21))
    assert found.vectors.lines == []
    assert "Left out: 21 classes, of at most 20" in str(found)
    monkeypatch.setattr(maker, "MOST_ROWS", 59)
    assert "Left out: 60 rows, of at most 59" in str(report(*vectors(60)))


def test_where_all_classes_are_not_asked_about_there_is_no_section():
    y, p = vectors(50)
    assert report(y, p, setting=1).vectors is None
    assert report(y == 1, p[:, 1]).vectors is None
    assert report(y % 2, np.column_stack([p[:, 0], 1 - p[:, 0]])).vectors is None
    assert report(y, p, setting="classwise").vectors is not None
    assert "Class vectors" not in str(report(y == 1, p[:, 1]))


def test_one_row_has_no_pairs():
    found = report([1], [[0.2, 0.5, 0.3]])
    assert (found.vectors.lines, found.vectors.n_resamples) == ([], 0)
    assert "Left out: one row has no pairs." in str(found)
    assert found.verdict == "too few rows"
