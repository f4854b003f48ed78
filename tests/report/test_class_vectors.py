"""The part of a report on whole class vectors, and how it enters the verdict."""

import numpy as np
import pytest

import fastece
from fastece.report import class_vectors
from fastece.report.inputs import ReportRequest, choose_errors
from fastece.report.report import make_report

QUICK = {"n_resamples": 99}


def draw_vectors(n, n_classes=3, is_twisted=False):
    """Labels and class vectors that are right, or right for every class by itself alone."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(n_classes), n)
    chances = p
    if is_twisted:
        chances = p * (1 + np.roll(p, -1, axis=1) - np.roll(p, -2, axis=1))
    return (rng.random((n, 1)) < chances.cumsum(axis=1)).argmax(axis=1), p


@pytest.mark.slow
def test_errors_and_tests_equal_the_functions():
    y, p = draw_vectors(400)
    weight = np.random.default_rng(1).random(400) + 0.5
    vectors = fastece.calibration_report(y, p, sample_weight=weight, rng=3, **QUICK).vectors
    names = ["canonical", "skce"]
    options = {"estimator": names, "sample_weight": weight, "rng": 3, **QUICK}
    tests = fastece.calibration_test(y, p, **options)
    assert [line.name for line in vectors.lines] == names
    for line, test in zip(vectors.lines, tests.values(), strict=True):
        assert line.value == pytest.approx(test.value, abs=1e-12)
        assert line.if_calibrated == pytest.approx(test.null_distribution.mean(), abs=1e-12)
        assert line.p_value == test.p_value
    assert (vectors.n_resamples, vectors.note) == (99, "")


@pytest.mark.slow
def test_vectors_make_a_verdict_unclear_where_no_class_is_off():
    y, p = draw_vectors(1000, is_twisted=True)
    report = fastece.calibration_report(y, p, **QUICK)
    assert report.verdict == "unclear"
    assert "the test of class vectors rejects (skce, p <= 0.01)" in report.headline
    assert "Class vectors\n  error" in str(report)
    assert "## Class vectors" in report.to_markdown()


@pytest.mark.slow
def test_calibrated_vectors_leave_the_verdict_alone():
    report = fastece.calibration_report(*draw_vectors(1000), **QUICK)
    assert report.verdict == "no sign"
    assert report.to_dict()["vectors"]["lines"][1]["p_value"] > 0.05


def first_page_report(y, p, **options):
    """The report of a first page, which measures no more than it shows."""
    request = ReportRequest(
        y_true=y, y_prob=p, title="", errors=choose_errors([]), is_full=False, **options
    )
    return make_report(request)


@pytest.mark.slow
def test_the_first_page_measures_only_the_error_that_may_decide():
    y, p = draw_vectors(1000, is_twisted=True)
    first = first_page_report(y, p, **QUICK)
    assert first.headline == fastece.calibration_report(y, p, **QUICK).headline
    assert [line.name for line in first.vectors.lines] == ["skce"]


@pytest.mark.slow
def test_the_first_page_measures_no_class_vectors_where_they_decide_nothing():
    y, p = draw_vectors(400)
    over_confident = p**2 / (p**2).sum(axis=1, keepdims=True)
    assert first_page_report(y, over_confident, **QUICK).vectors is None
    assert first_page_report(y, p, n_resamples=0).vectors is None


def test_without_resamples_there_are_values_alone():
    y, p = draw_vectors(100)
    vectors = fastece.calibration_report(y, p, n_resamples=0).vectors
    assert vectors.lines[0].value == pytest.approx(fastece.canonical_error(y, p), abs=1e-12)
    assert {(line.if_calibrated, line.p_value) for line in vectors.lines} == {(None, None)}


@pytest.mark.slow
def test_many_rows_have_fewer_replicates(monkeypatch):
    monkeypatch.setattr(class_vectors, "MAX_PAIRS", 100**2 * 50)
    counts = [
        fastece.calibration_report(*draw_vectors(n), **QUICK).vectors.n_resamples
        for n in (100, 200)
    ]
    assert counts == [50, class_vectors.MIN_VECTOR_REPLICATES]


@pytest.mark.slow
def test_the_reason_is_given_where_vectors_are_left_out(monkeypatch):
    report = fastece.calibration_report(*draw_vectors(60, 21), **QUICK)
    assert report.vectors.lines == []
    assert "Left out: 21 classes, of at most 20" in str(report)
    monkeypatch.setattr(class_vectors, "MAX_VECTOR_ROWS", 59)
    report = fastece.calibration_report(*draw_vectors(60), **QUICK)
    assert "Left out: 60 rows, of at most 59" in str(report)


@pytest.mark.slow
def test_one_row_has_no_pairs():
    report = fastece.calibration_report([1], [[0.2, 0.5, 0.3]], **QUICK)
    assert (report.vectors.lines, report.vectors.n_resamples) == ([], 0)
    assert "Left out: one row has no pairs." in str(report)
    assert report.verdict == "too few rows"


@pytest.mark.slow
def test_questions_on_single_classes_have_no_class_vectors():
    y, p = draw_vectors(50)
    two_columns = np.column_stack([p[:, 0], 1 - p[:, 0]])
    binary = fastece.calibration_report(y == 1, p[:, 1], **QUICK)
    assert binary.vectors is None
    assert "Class vectors" not in str(binary)
    assert fastece.calibration_report(y, p, setting=1, **QUICK).vectors is None
    assert fastece.calibration_report(y % 2, two_columns, **QUICK).vectors is None
    assert fastece.calibration_report(y, p, setting="classwise", **QUICK).vectors is not None
