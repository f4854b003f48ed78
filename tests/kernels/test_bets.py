"""Loops of bets: the cells of scores, and money beyond the range of floats."""

import numpy as np
import pytest

from fastece.decisions.bets import Evidence, make_wagers
from fastece.kernels import bets


def test_cell_of_counts_the_edges_that_are_at_most_the_score():
    wagers = make_wagers(None)
    scores = np.concatenate([
        np.random.default_rng(0).random(500), wagers.edges, np.nextafter(wagers.edges, 0),
        [0.0, 1.0, 5e-324, 1e-300, 1 - 2**-53],
    ])  # fmt: skip
    expected = np.searchsorted(wagers.edges, scores, side="right")
    places = wagers.edges, wagers.lowest_cell
    assert [bets.cell_of(s, *places) for s in scores] == expected.tolist()


@pytest.mark.parametrize("forget", [0.0, 1.0, 300.0])
def test_money_left_falls_to_0_from_the_share_that_is_not_bet_at_the_start(forget):
    rows = np.append(np.arange(2000.0), [1e6, 1e9, 1e15])
    left = np.array([bets.money_left(n, forget) for n in rows])
    assert left[0] == (0.9 if forget else 0.5)
    assert (np.diff(left) < 0).all()
    assert 0 < left[-1] < 1e-3


def test_money_beyond_floats_is_kept_on_a_common_scale():
    evidence = Evidence.of_no_rows(np.ones(1), None)
    n = 2000
    scores = np.full((1, n), 1e-3)
    steps = []
    for _ in range(5):
        evidence = evidence.after_rows(scores, np.ones((1, n), np.uint8))
        steps.append(evidence.log_e_value)
    assert steps[0] > 709
    # The best bet gains the same for each row, except those that wait for a look.
    wagers = make_wagers(None)
    cell = bets.cell_of(1e-3, wagers.edges, wagers.lowest_cell)
    distance = 1e-3 - wagers.middles[cell]
    gains = wagers.gains[cell]
    of_a_hit = gains[0] + gains[1] + distance * gains[2]
    growth = np.diff(steps) / n
    assert growth == pytest.approx(of_a_hit.max(), rel=0.1)
    assert np.isfinite(evidence.bets.money).all()


def test_follow_rows_finds_the_first_impossible_outcome_before_a_look():
    evidence = Evidence.of_no_rows(np.ones(1), None)
    scores = np.full((1, 1000), 0.5)
    evidence = evidence.after_rows(scores, np.tile([0, 1], 500)[np.newaxis].astype(np.uint8))
    copied = bets.Bets(*(array.copy() for array in evidence.bets))
    batch = np.array([[0.5, 1.0, 0.0]])
    outcomes = np.array([[1, 0, 1]], np.uint8)
    fields = tuple(make_wagers(None)), tuple(copied)
    assert bets.follow_rows(batch, outcomes, *fields, np.empty((3, 4))) == 0
    assert copied.values[bets.LOG_E_VALUE] == np.inf
    assert copied.numbers[bets.SINCE] == 1001
    assert copied.numbers[bets.BEST] == bets.NO_BET


def test_a_later_impossible_outcome_changes_nothing_and_looks_go_on():
    evidence = Evidence.of_no_rows(np.ones(1), None)
    for _ in range(2):
        batch = np.full((1, 200), 0.5)
        batch[0, 3] = 1.0
        evidence = evidence.after_rows(batch, np.zeros((1, 200), np.uint8))
    assert evidence.since == 3
    assert evidence.log_e_value == evidence.max_log_e_value == np.inf
    assert evidence.bets.numbers[bets.N_AT_LOOK] > 200
