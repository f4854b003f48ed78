"""Problems as arrays, and as samples that estimators may do with what they like."""

import pickle

import numpy as np
import pytest
import reference

import fastece
from fastece.data.reading import read_problems
from fastece.data.sample import Sample
from fastece.data.source import SETTINGS, Problems, one_problem
from helpers import strategies as cases
from helpers.strategies import as_lists

TRUE, PROB = cases.class_matrix(cases.score_sets()["bell"])


@pytest.mark.parametrize("setting", ["confidence", "classwise", 0, 2])
def test_samples_are_the_problems_of_the_definition(setting):
    problems = read_problems(TRUE, PROB, setting=setting)
    expected = reference.problems(*as_lists(TRUE, PROB), setting)
    samples = problems.samples()
    assert len(samples) == len(expected) == problems.n_problems
    for sample, (scores, hits, low, high) in zip(samples, expected, strict=True):
        assert (sample.s.tolist(), sample.y.tolist()) == (scores, hits)
        assert (sample.low, sample.high) == (low, high)
        assert (sample.s.dtype, sample.y.dtype) == (np.float64, np.uint8)
        assert sample.rows.tolist() == list(range(len(TRUE)))
        assert sample.v is None
        assert sample.n == problems.n == len(TRUE)


@pytest.mark.parametrize("setting", ["binary", "confidence", "classwise", 1])
def test_an_estimator_cannot_write_into_the_callers_arrays(setting):
    class Careless:
        needs_sorted = False

        def prepare(self, sample, size):  # noqa: ARG002
            sample.s[:] = 0
            sample.y[:] = 9

        def evaluate(self, plan, c):  # noqa: ARG002
            return 0.0

    rng = np.random.default_rng(0)
    p = rng.random(10) if setting == "binary" else rng.dirichlet([1, 1, 1], 10)
    for y in (rng.integers(0, 2, 10), rng.integers(0, 2, 10).astype(np.uint8)):
        kept = y.copy(), p.copy()
        fastece.ece(y, p, setting=setting, estimator=Careless())
        assert np.array_equal(p, kept[1])
        assert np.array_equal(y, kept[0])


def test_rows_of_weight_0_are_gone_and_positions_stay():
    weight = np.arange(len(TRUE)) % 3 * 0.5
    kept = np.flatnonzero(weight)
    for setting in ("confidence", "classwise", 1):
        problems = read_problems(TRUE, PROB, setting=setting, sample_weight=weight)
        whole = read_problems(TRUE, PROB, setting=setting)
        assert problems.n == kept.size
        assert problems.positions.tolist() == kept.tolist()
        for k in range(problems.n_problems):
            sample, before = problems.sample(k), whole.sample(k)
            assert sample.s.tolist() == before.s[kept].tolist()
            assert sample.y.tolist() == before.y[kept].tolist()
            assert sample.v.tolist() == weight[kept].tolist()
            assert sample.rows is problems.positions


def test_problems_have_the_names_of_their_classes():
    names = ["ant", "bee", "cow"]
    true = [names[k] for k in TRUE]

    def names_of(setting, labels):
        problems = read_problems(true if labels else TRUE, PROB, setting=setting, labels=labels)
        return [problems.name(k) for k in range(problems.n_problems)]

    assert names_of("confidence", None) == names_of("confidence", names) == ["confidence"]
    assert names_of("classwise", None) == ["class 0", "class 1", "class 2"]
    assert names_of("classwise", names) == ["class 0 ('ant')", "class 1 ('bee')", "class 2 ('cow')"]
    assert names_of(2, None) == ["class 2"]
    assert names_of(2, names) == ["class 2 ('cow')"]
    binary = read_problems(["n", "y"], [0.2, 0.7], labels=["n", "y"])
    assert binary.name(0) == "binary ('y')"


def test_the_problem_of_a_sample_has_its_arrays():
    s, y, v = np.array([0.2, 0.7]), np.array([0, 1], np.uint8), np.array([1.0, 2.0])
    sample = Sample(s, y, v, 0.5, 1.0, np.array([3, 5]))
    problems = one_problem(sample)
    assert problems.prob is s
    assert problems.label is y
    assert problems.v is v
    assert (problems.low, problems.high, problems.n_problems) == (0.5, 1.0, 1)
    again = problems.sample(0)
    assert again.s.tolist() == s.tolist()
    assert again.s is not s
    assert again.rows.tolist() == [3, 5]


@pytest.mark.parametrize("setting", ["confidence", "classwise", 2])
def test_problems_can_be_sent_to_another_process(setting):
    problems = read_problems(TRUE, PROB, setting=setting)
    again = pickle.loads(pickle.dumps(problems))
    assert again.setting == problems.setting
    for a, b in zip(again.samples(), problems.samples(), strict=True):
        assert (a.s.tolist(), a.y.tolist()) == (b.s.tolist(), b.y.tolist())


def test_number_of_problems_is_that_of_the_columns():
    y = np.zeros(4, np.int64)
    rows = Problems(SETTINGS["classwise"], np.full((4, 5), 0.2), y, 0.0, 1.0, 5)
    assert (rows.n, rows.n_problems) == (4, 5)
