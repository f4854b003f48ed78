"""Labels and columns in different orders: prefixes, warnings, and names that are only shown."""

import warnings

import numpy as np
import pytest

import fastece
from fastece.decisions import choose_threshold
from fastece.recalibration import recalibrate

pandas = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
N = 400
PROB = RNG.dirichlet([0.5] * 3, N)
Y = np.array([RNG.choice(3, p=row) for row in PROB])
NAMES = np.array(["cat", "dog", "owl"])
MEASURES = {
    "ece": fastece.ece,
    "mce": fastece.mce,
    "Brier score": fastece.brier_score,
    "diagram": fastece.reliability_diagram,
    "accumulator": lambda y, p, labels=None: fastece.Accumulator(
        None if np.ndim(p) == 1 else 3
    ).update(y if labels is None else [labels.index(x) for x in y], p),
    "bootstrap": lambda *data, **options: fastece.bootstrap(*data, n_resamples=9, **options),
    "estimate": lambda *data, **options: fastece.estimate(*data, n_resamples=9, **options),
    "report": lambda *data, **options: fastece.calibration_report(*data, n_resamples=0, **options),
}


@pytest.mark.parametrize("prefix", ["", "p_", "prob_", "prob.class.", "P:", "model 1 "])
def test_a_prefix_that_all_columns_share_is_no_part_of_the_labels(prefix):
    order = [2, 0, 1]
    frame = pandas.DataFrame(PROB[:, order], columns=[prefix + NAMES[k] for k in order])
    assert fastece.ece(NAMES[Y], frame, setting="classwise") == pytest.approx(
        fastece.ece(Y, PROB, setting="classwise"), abs=1e-15
    )


def test_a_prefix_ends_at_a_separator():
    frame = pandas.DataFrame(PROB, columns=["cat", "cow", "crab"])
    labels = np.array(["at", "ow", "rab"])[Y]
    with pytest.raises(ValueError, match=r"must be names of y_prob's columns"):
        fastece.ece(labels, frame)


def test_integers_beside_named_columns_are_indices_and_names_are_shown():
    frame = pandas.DataFrame(PROB, columns=["p_" + name for name in NAMES])
    assert fastece.ece(Y, frame) == fastece.ece(Y, PROB)
    found = fastece.reliability_diagram(Y, frame, setting="classwise")
    assert [x.setting for x in found] == ["class 0 ('cat')", "class 1 ('dog')", "class 2 ('owl')"]
    slices = fastece.slices(Y, frame, setting="classwise")
    assert {x.label for x in slices} == {*NAMES}
    plain = fastece.reliability_diagram(Y, pandas.DataFrame(PROB), setting="classwise")
    assert [x.setting for x in plain] == ["class 0", "class 1", "class 2"]


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_columns_in_another_order_are_a_warning(measure):
    with pytest.warns(UserWarning, match="are labels and columns in the same order"):
        measure(NAMES[Y], PROB[:, [1, 2, 0]], labels=[*NAMES])
    with pytest.warns(UserWarning, match="is it the probability of 1"):
        measure(Y == 1, 1 - PROB[:, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure(Y, PROB)
        measure(Y == 1, PROB[:, 1])


@pytest.mark.parametrize("seed", range(20))
def test_there_is_no_warning_of_models_that_know_little(seed):
    """Of 20 rows nobody knows; scores that say nothing, of rare events too, are no mistake."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 500)
    noise = rng.dirichlet([0.3] * 3, 500)
    rare = (rng.random(500) < 0.02).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fastece.bootstrap(Y[:20], PROB[:20, [1, 2, 0]], n_resamples=9)
        fastece.bootstrap(y, noise, n_resamples=9)
        fastece.bootstrap(rare, rng.uniform(0, 0.9, 500), n_resamples=9)
        share = rng.random(500).clip(0.05, 0.95)
        fastece.bootstrap(share, 1 - share, soft=True, n_resamples=9)  # nor of soft labels


def test_an_index_in_another_order_is_a_warning():
    index = RNG.permutation(N)
    true = pandas.Series(Y, index=range(N))
    for kind, data in (("y_prob", PROB), ("y_prob", PROB[:, 0])):
        make = pandas.DataFrame if data.ndim == 2 else pandas.Series
        y = true if data.ndim == 2 else (true == 0).astype(int)
        with pytest.warns(UserWarning, match=f"{kind}: has the index of the labels in another"):
            fastece.ece(y, make(data, index=index))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fastece.ece(y, make(data, index=range(N)))
            fastece.ece(y, make(data, index=range(N, 2 * N)))  # of other rows, or numbered anew
            fastece.ece(np.asarray(y), make(data, index=index))
    with pytest.warns(UserWarning, match="sample_weight: has the index of the labels"):
        fastece.ece(true, PROB, sample_weight=pandas.Series(np.ones(N), index=index))


def test_masked_arrays_without_a_masked_entry_are_read():
    masked = np.ma.MaskedArray
    assert fastece.ece(masked(Y), masked(PROB)) == fastece.ece(Y, PROB)
    hidden = masked(PROB, np.arange(3 * N).reshape(N, 3) == 3 * 7 + 1)
    with pytest.raises(TypeError, match=r"y_prob: masked entries are refused; y_prob\[7, 1\]"):
        fastece.ece(Y, hidden)


# --- indexes of pandas ------------------------------------------------------------------------

SCORE = RNG.random(N)
EVENT = (RNG.random(N) < SCORE).astype(int)
SITE = np.arange(N) % 4
VISITS = pandas.MultiIndex.from_arrays([np.arange(N) // 4, np.arange(N) % 4])
LEVELS = pandas.MultiIndex.from_arrays([np.arange(N) // 4, np.arange(N) % 4, np.arange(N)])


@pytest.mark.parametrize("index", [pandas.RangeIndex(N), VISITS, LEVELS])
def test_labels_of_several_levels_are_read_by_position(index):
    labels = pandas.Series(EVENT, VISITS)
    expected = fastece.ece(EVENT, SCORE)
    assert fastece.ece(labels, pandas.Series(SCORE, index)) == expected
    assert fastece.ece(pandas.Series(EVENT, index), pandas.Series(SCORE, VISITS)) == expected
    assert fastece.ece(labels, SCORE, sample_weight=pandas.Series(np.ones(N), index)) == expected
    table = pandas.DataFrame({0: 1 - SCORE, 1: SCORE}, index)
    assert fastece.ece(labels, table, setting="binary") == pytest.approx(expected, abs=1e-12)
    same = pandas.Series(SCORE, index)
    assert fastece.compare(labels, same, same, n_resamples=9).value == 0


TAKE_COLUMN = {
    "slices": lambda y, p, column: fastece.slices(y, p, by=column),
    "slices of a mapping": lambda y, p, column: fastece.slices(y, p, by={"site": column}),
    "report": lambda y, p, column: fastece.calibration_report(y, p, by=column, n_resamples=0),
    "threshold": lambda y, p, column: choose_threshold(y, p, accuracy=0.5, by=column),
    "estimate": lambda y, p, column: fastece.estimate(y, p, groups=column),
    "bootstrap": lambda y, p, column: fastece.bootstrap(y, p, groups=column, n_resamples=9),
    "compare": lambda y, p, column: fastece.compare(y, p, p, groups=column, n_resamples=9),
    "test": lambda y, p, column: fastece.calibration_test(y, p, groups=column, n_resamples=9),
    "validate": lambda y, p, column: fastece.validate(y, p, groups=column, n_resamples=9),
    "check": lambda y, p, column: fastece.check(y, p, max_error=1, groups=column, n_resamples=9),
    "recalibrate": lambda y, p, column: recalibrate(y, p, method="platt", cv=2, groups=column),
    "stream": lambda y, p, column: fastece.Accumulator(n_replicates=9, seed=1).update(
        y, p, groups=column
    ),
    "counts": lambda y, p, column: fastece.ece(y, p, counts=column + 1),
    "votes": lambda y, p, column: fastece.ece(y, p, votes=column + 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("take", TAKE_COLUMN.values(), ids=TAKE_COLUMN)
def test_a_column_of_another_table_is_a_warning(take):
    labels = pandas.Series(EVENT * (SITE > 0))
    site = pandas.Series(SITE)
    moved = np.roll(site.index, 5)
    with pytest.warns(UserWarning, match="the index of the labels in another order"):
        take(labels, SCORE, site.set_axis(moved))
    with pytest.warns(UserWarning, match=r"an index that shares 99 % of its labels"):
        take(labels, SCORE, site.set_axis(site.index + 4))
    half = site.index + N // 2
    for column in (site, site.set_axis(half), site.set_axis(VISITS), SITE):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*index")
            take(labels, SCORE, column)
