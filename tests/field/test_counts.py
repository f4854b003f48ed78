"""Rows that stand for many: a table of scores with events and rows equals the rows themselves."""

import json
import warnings

import numpy as np
import pytest

import fastece
from helpers.command_line import failure, run
from helpers.field_samples import as_csv

SCORES = np.array([0.1, 0.3, 0.6])
EVENTS = np.array([150, 280, 560])
ROWS = np.array([1000, 900, 1000])
# The same table as rows with labels.
P = np.tile(SCORES, 2)
Y = np.repeat([1, 0], 3)
COUNTS = np.concatenate([EVENTS, ROWS - EVENTS])
TABLES = {
    "events": ((EVENTS, SCORES), {"counts": ROWS}),
    "classes": ((np.column_stack([ROWS - EVENTS, EVENTS]), SCORES), {"counts": ROWS}),
    "labels": ((Y, P), {"counts": COUNTS}),
}
every_table = pytest.mark.parametrize("table", TABLES)
REPEATED = np.repeat(Y, COUNTS), np.repeat(P, COUNTS)


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


def test_a_file_with_counts_is_the_file_with_repeated_rows(capsys, write):
    columns = {"grade": SCORES, "defaults": EVENTS, "loans": ROWS}
    path = write(as_csv(columns))
    options = ("--y-true", "defaults", "--y-prob", "grade", "--counts", "loans")
    for stream in ((), ("--stream",)):
        code, out, err = run(capsys, "report", path, *options, "--json", *stream)
        assert code == 0, err
        report = json.loads(out)
        assert report["n"] == 2900
        low, high = (report["measures"][0][end] for end in ("low", "high"))
        assert (round(low, 3), round(high, 3)) == (0.013, 0.049)
    code, out, err = run(capsys, "validate", path, *options, "--resamples", "0", "--json")
    assert code == 0, err
    assert np.round(json.loads(out)["oe"]["confidence_interval"], 2).tolist() == [0.97, 1.07]


def test_a_report_of_whole_weights_names_the_option_for_counts():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = str(fastece.calibration_report(Y, P, sample_weight=COUNTS, n_resamples=0))
        other = str(fastece.calibration_report(Y, P, sample_weight=COUNTS / 3, n_resamples=0))
    assert "2900 in 6 rows; if these are counts, use --counts" in text
    assert "counts" not in other


def test_counts_in_a_file_that_are_no_counts_are_refused_at_their_place(capsys, write):
    columns = {"y_true": [0, 1, 1], "y_prob": [0.2, 0.6, 0.9], "n": [3, 0, 2]}
    message = failure(capsys, "report", write(as_csv(columns)), "--counts", "n")
    assert "line 3, column n: must be at least 1" in message


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
