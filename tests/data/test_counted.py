"""Rows that count several times: a table of counts is the table of the repeated rows."""

import warnings

import numpy as np
import pytest

import fastece

P = [0.2, 0.6, 0.9]
Y = [0, 1, 1]
THREE = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]
SCORES = np.array([0.1, 0.3, 0.6])
EVENTS = np.array([150, 280, 560])
ROWS = np.array([1000, 900, 1000])
# The same table as rows with labels.
SPREAD = np.tile(SCORES, 2)
HITS = np.repeat([1, 0], 3)
COUNTS = np.concatenate([EVENTS, ROWS - EVENTS])
TABLES = {
    "events": ((EVENTS, SCORES), {"counts": ROWS}),
    "classes": ((np.column_stack([ROWS - EVENTS, EVENTS]), SCORES), {"counts": ROWS}),
    "labels": ((HITS, SPREAD), {"counts": COUNTS}),
}
every_table = pytest.mark.parametrize("table", TABLES)
REPEATED = np.repeat(HITS, COUNTS), np.repeat(SPREAD, COUNTS)


@every_table
def test_counts_give_the_intervals_and_the_test_of_the_repeated_rows(table):
    arguments, options = TABLES[table]
    validation = fastece.validate(*arguments, n_resamples=0, **options)
    assert validation.n == 2900
    assert np.round(validation.oe.confidence_interval, 2).tolist() == [0.97, 1.07]
    estimate = fastece.estimate(*arguments, **options)
    assert np.round(estimate.confidence_interval, 3).tolist() == [0.013, 0.049]
    assert fastece.calibration_test(*arguments, **options).p_value == 0.0005


@every_table
def test_a_validation_of_counts_is_the_validation_of_the_repeated_rows(table):
    arguments, options = TABLES[table]
    of_table = fastece.validate(*arguments, n_resamples=0, **options).to_dict()
    of_rows = fastece.validate(*REPEATED, n_resamples=0).to_dict()
    # Newton's method for the coefficients stops where the likelihood no longer rises.
    assert numbers(of_table) == pytest.approx(numbers(of_rows), abs=1e-7, nan_ok=True)


def numbers(value):
    """List all numbers of a result in its order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [number for x in value for number in numbers(x)]
    return [float(value)] if isinstance(value, int | float) else []


def test_labels_with_names_are_no_counts_of_events():
    value = fastece.ece([1, 2, 2], P, labels=[1, 2], counts=[4, 4, 4])
    assert value == pytest.approx(fastece.ece(Y, P))


def test_classes_above_one_are_labels_where_there_are_more_than_two():
    y = [2, 1]
    value = fastece.ece(y, THREE, counts=[3, 5])
    assert value == pytest.approx(
        fastece.ece(np.repeat(y, [3, 5]), np.repeat(THREE, [3, 5], axis=0))
    )
    assert value == fastece.ece([[0, 0, 3], [0, 5, 0]], THREE, counts=[3, 5])


def test_few_events_that_are_read_as_labels_are_a_warning():
    p = np.linspace(0.001, 0.02, 20)
    events = np.zeros(20, int)
    events[[3, 11, 17]] = 1
    with pytest.warns(UserWarning, match=r"if they are counts of events, pass np.column_stack"):
        fastece.ece(events, p, counts=np.full(20, 15))


def test_ignored_labels_and_weights_of_zero_leave_counts_with_their_rows():
    y = [0, 255, 1, 1]
    p = [0.2, 0.5, 0.6, 0.9]
    counts = [3, 9, 2, 4]
    value = fastece.ece(y, p, counts=counts, ignore_label=255, sample_weight=[1, 1, 0, 2])
    assert value == pytest.approx(fastece.ece([0, 1], [0.2, 0.9], sample_weight=[3, 8]))


def test_percents_and_logits_have_counts():
    value = fastece.ece(Y, P, counts=[3, 4, 5])
    percents = [f"{100 * p:g}%" for p in P]
    logits = np.log(P) - np.log1p(np.negative(P))
    assert fastece.ece(Y, percents, percent=True, counts=[3, 4, 5]) == pytest.approx(value)
    assert fastece.ece(Y, logits, from_logits=True, counts=[3, 4, 5]) == pytest.approx(value)


def test_a_report_of_whole_weights_names_the_option_for_counts():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = str(fastece.calibration_report(HITS, SPREAD, sample_weight=COUNTS, n_resamples=0))
        other = str(
            fastece.calibration_report(HITS, SPREAD, sample_weight=COUNTS / 3, n_resamples=0)
        )
    assert "2900 in 6 rows; if these are counts, use --counts" in text
    assert "counts" not in other


def test_a_hundred_million_loans_in_twenty_grades_are_not_repeated():
    rng = np.random.default_rng(0)
    score = np.linspace(0.001, 0.3, 20)
    loans = np.full(20, 5_000_000)
    defaults = rng.binomial(loans, score)
    estimate = fastece.estimate(defaults, score, counts=loans)
    assert estimate.n == 10**8
    assert estimate.confidence_interval.high < 1e-3
    assert fastece.calibration_test(defaults, score, counts=loans, n_resamples=199).p_value > 0.01
    bootstrap = fastece.bootstrap(defaults, score, counts=loans, n_resamples=99, rng=0)
    assert bootstrap.standard_error < 1e-4


def test_functions_that_need_single_rows_refuse_counts_with_the_remedy():
    replicates = fastece.Accumulator(n_replicates=10, seed=0)
    for call in (
        lambda **x: fastece.rows_needed(Y, P, width=0.1, **x),
        lambda **x: fastece.calibration_test(Y, [THREE[0]] * 3, estimator="skce", **x),
        lambda **x: replicates.update(Y, P, **x),
    ):
        with pytest.raises(ValueError, match=r"^counts: must be left out .*repeat the rows"):
            call(counts=[2, 3, 4])
