"""Rows that count several times: how counts are read, and what is refused."""

import numpy as np
import pytest

import fastece

P = [0.2, 0.6, 0.9]
Y = [0, 1, 1]
THREE = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]


def refused(message, y=Y, p=P, **options):
    """Assert that the error of rows is refused with a message."""
    with pytest.raises(ValueError, match=message):
        fastece.ece(y, p, **options)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, 2], r"^counts: must have shape \(3,\)"),
        ([1, 0, 2], r"^counts: must be at least 1; counts\[1\] is 0; leave such rows out"),
        ([1, -1, 2], r"^counts: must be at least 1; counts\[1\] is -1"),
        (
            [1, 1.5, 2],
            r"^counts: must be whole numbers; counts\[1\] is 1.5; weights go to sample_w",
        ),
        ([1, np.nan, 2], r"^counts: must be finite"),
        ([2.0**53, 2.0**53, 1], r"^counts: must add up to at most"),
    ],
)
def test_counts_that_are_no_counts_are_refused(counts, message):
    refused(message, counts=counts)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([3, 1, 1], r"^y_true: must not exceed counts=, which is 2 there; y_true\[0\] is 3"),
        ([2, 0.5, 1], r"^y_true: must be whole numbers; y_true\[1\] is 0.5"),
        ([2, -1, 1], r"^y_true: must not be negative; y_true\[1\] is -1"),
        ([[1, 1], [1, 1], [0, 1]], r"^y_true: must add up to counts= in each row, and row 2 has 2"),
        ([[1, 1, 0]] * 3, r"^y_true: must have shape \(3, 2\) as counts of classes"),
    ],
)
def test_counts_of_events_that_do_not_fit_are_refused(y, message):
    refused(message, y, counts=[2, 2, 2])


@pytest.mark.parametrize("options", [{"soft": True}, {"votes": [2, 2, 2]}])
def test_counts_go_without_soft_labels(options):
    refused(r"^counts: goes without soft=True and votes=", counts=[2, 2, 2], **options)


def test_counts_go_with_arrays_alone():
    rows = fastece.Accumulator().update(Y, P)
    with pytest.raises(TypeError, match=r"^counts: goes with arrays"):
        fastece.ece(rows, counts=[1, 1, 1])


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


def test_errors_name_the_rows_of_the_caller():
    message = r"y_prob\[2\] is 1.5"
    refused(message, [1, 2, 3], [0.2, 0.6, 1.5], counts=[4, 4, 4])
    with pytest.raises(ValueError, match=message):
        fastece.Accumulator().update([1, 2, 3], [0.2, 0.6, 1.5], counts=[4, 4, 4])


def test_percents_and_logits_have_counts():
    value = fastece.ece(Y, P, counts=[3, 4, 5])
    percents = [f"{100 * p:g}%" for p in P]
    logits = np.log(P) - np.log1p(np.negative(P))
    assert fastece.ece(Y, percents, percent=True, counts=[3, 4, 5]) == pytest.approx(value)
    assert fastece.ece(Y, logits, from_logits=True, counts=[3, 4, 5]) == pytest.approx(value)


CALLS = {
    "rows_needed": lambda **k: fastece.rows_needed(Y, P, width=0.1, **k),
    "risk_coverage": lambda **k: fastece.decisions.risk_coverage(Y, P, **k),
    "choose_threshold": lambda **k: fastece.decisions.choose_threshold(Y, P, accuracy=0.9, **k),
    "a test of class vectors": lambda **k: fastece.calibration_test(
        Y, [[0.7, 0.2, 0.1]] * 3, estimator="skce", **k
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_that_need_single_rows_refuse_counts_with_the_remedy(name):
    message = r"^counts: must be left out for .*; repeat the rows, as in np.repeat"
    with pytest.raises(ValueError, match=message):
        CALLS[name](counts=[2, 3, 4])
