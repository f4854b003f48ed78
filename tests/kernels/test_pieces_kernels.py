"""The chains' loops, against matrices."""

import numpy as np
import pytest

from fastece.estimators.bayes.pieces import chain_numbers, chain_states
from fastece.kernels import pieces
from fastece.kernels.pieces import LEVEL_SHARE, SHIFT_SCALES
from oracles import reference_bayes as reference

LAWS = [(0.2, 0.0, 0.7, 0.0), (0.1, 0.6, 0.3, 1.0), (0.4, 0.0, 0.05, 1.0)]


def example(n_cells=5, n=30.0):
    """Cells, one of which is empty and in one of which none hit, their logits, and the states."""
    weight = np.full(n_cells, n / n_cells)
    weight[1] = 0.0
    score = np.linspace(0.2, 0.9, n_cells)
    hits = weight * np.array([0.0, 0.5, 0.8, 0.4, 0.9])[:n_cells]
    x, _ = reference.logits(list(zip(weight, hits, score, strict=True)), -5.0, 5.0)
    return np.array([weight, hits, score]), np.array(x), chain_states(60, n_cells)


def all_filtered(cells, x, states, laws):
    """The arrays of filtered chains, and their log evidence."""
    law = np.array(laws)
    *arrays, largest = pieces.weigh_states(cells, x, states.table, states.moves, len(law))
    prior, log_sums, likelihood, filtered, total = arrays
    log_evidence = pieces.filter_chains(
        law, prior, likelihood, filtered, total, states.moves, states.drift, largest
    )
    return (law, prior, log_sums, filtered, total), log_evidence


def expected_of(cells, x, states, prior, law):
    value = states.table[pieces.VALUE]
    n_shifts = states.moves - 2
    n_levels = value.size - n_shifts - 2
    rows_of_cells = list(zip(*cells, strict=True))
    return reference.chain(
        rows_of_cells, x.tolist(), law[:3], value.tolist(), prior[int(law[3])],
        n_shifts, n_levels, states.drift,
    )  # fmt: skip


def test_priors_of_states_equal_the_definition():
    cells, x, states = example()
    value = states.table[pieces.VALUE]
    moves = states.moves
    assert value.size % 8 == 0
    chains, _ = all_filtered(cells, x, states, LAWS)
    prior = chains[1].reshape(len(SHIFT_SCALES), x.size, -1)
    assert prior.sum(2) == pytest.approx(np.ones(prior.shape[:2]))
    for line, scale in zip(prior, SHIFT_SCALES, strict=True):
        for c, middle in enumerate(x):
            density = (1 + ((value - middle) / scale) ** 2 / 3) ** -2
            density = density[moves:] / density[moves:].sum()
            assert line[c, moves:] == pytest.approx(LEVEL_SHARE * density)


@pytest.mark.parametrize("heavy", [1.0, 3e4])
def test_evidence_equals_the_matrices(heavy):
    """With heavy cells too, where a product of the totals of all cells would soon be 0."""
    cells, x, states = example(n=30.0 * heavy)
    chains, log_evidence = all_filtered(cells, x, states, LAWS)
    prior = chains[1].reshape(len(SHIFT_SCALES), x.size, -1)
    for i, law in enumerate(LAWS):
        evidence, _ = expected_of(cells, x, states, prior, law)
        assert log_evidence[i] == pytest.approx(evidence, rel=1e-10)


@pytest.mark.slow
def test_draws_have_the_probabilities_of_the_matrices():
    """Frequencies of calibrated cells, and mean logits, of 2000 draws from each chain.

    These are 30 numbers, and with random draws the probability that any of them is off by 4.5
    standard errors is 1 in 5000.
    """
    cells, x, states = example()
    chains, _ = all_filtered(cells, x, states, LAWS)
    prior = chains[1].reshape(len(SHIFT_SCALES), x.size, -1)
    value = states.table[pieces.VALUE]
    moves = states.moves
    draws = 2000
    rng = np.random.default_rng(3)
    ends = draws * np.arange(1, len(LAWS) + 1)
    uniform = rng.random((ends[-1], x.size))
    normal = rng.normal(size=(ends[-1], x.size))
    logits = pieces.draw_chains(x, *states, *chains, ends, uniform, normal).T
    for law, logit in zip(LAWS, np.split(logits, len(LAWS)), strict=True):
        _, chance = expected_of(cells, x, states, prior, law)
        calibrated = chance[:, moves - 2 : moves].sum(1)
        error = np.sqrt(calibrated * (1 - calibrated) / draws)
        assert (np.abs((logit == x).mean(0) - calibrated) < 4.5 * error + 1e-9).all()
        logit_of_state = value + np.where(np.arange(value.size) < moves, x[:, None], 0.0)
        mean = (chance * logit_of_state).sum(1)
        error = logit.std(0) / np.sqrt(draws)
        assert (np.abs(logit.mean(0) - mean) < 4.5 * error + 0.03).all()


@pytest.mark.slow
def test_a_piece_has_the_normal_law_of_its_likelihood():
    """All cells have one state: the logits are normal around the maximum of the likelihood."""
    weight = np.full(4, 2000.0)
    cells = np.array([weight, 0.83 * weight, np.full(4, 0.5)])
    x = np.zeros(4)
    states = chain_states(400, 4)
    chains, _ = all_filtered(cells, x, states, [(1e-9, 0.0, 0.01, 1.0)])
    rng = np.random.default_rng(0)
    uniform = rng.random((1000, 4))
    normal = rng.normal(size=(1000, 4))
    logit = pieces.draw_chains(x, *states, *chains, np.array([1000]), uniform, normal)
    assert (logit == logit[:1]).all()
    top = np.log(0.83 / 0.17)
    deviation = 1 / np.sqrt(8000 * 0.83 * 0.17)
    assert logit.mean() == pytest.approx(top, abs=2 * deviation)
    assert logit.std() == pytest.approx(deviation, rel=0.4)


def test_numbers_are_stratified():
    uniform, normal = chain_numbers(7, 32)
    assert (np.sort(np.floor(uniform * 32), axis=0) == np.arange(32)[:, None]).all()
    assert normal.mean(0) == pytest.approx(np.zeros(7), abs=1e-9)
    assert np.allclose(np.sort(normal, axis=0)[:, :1], np.sort(normal, axis=0))
