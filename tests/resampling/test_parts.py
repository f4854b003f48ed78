"""Groups of rows that are answered for by themselves: `by` in one call."""

import numpy as np
import pytest

import fastece
from fastece import Binned, InputError, InputTypeError, Predictions
from fastece.data.errors import RowsWarning

SIZES = [1, 2, 3, 4, 5, 31, 32, 33, 700, 1500]


def groups(rng):
    """Rows in mixed order, of groups of all sizes."""
    group = rng.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
    p = rng.random(group.size)
    y = (rng.random(group.size) < p).astype(np.int64)
    return y, p, group


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_bins": 200},
        {"edges": (0, 0.1, 0.5, 1)},
        {"closed": "left"},
        {"method": "percentile"},
        {"norm": 2},
        {"estimator": "ece_a"},
    ],
    ids=str,
)
def test_replicates_of_groups_have_the_bits_of_a_loop(options):
    y, p, group = groups(np.random.default_rng(3))
    call = {"n_resamples": 70, "by": group, "rng": 7, **options}
    kept = fastece.bootstrap(y, p, **call)
    others = [
        fastece.bootstrap(y, p, keep_distribution=False, **call),
        fastece.bootstrap(y, p, keep_distribution=False, n_jobs=2, **call),
    ]
    generator = np.random.default_rng(7)
    for k in range(len(SIZES)):
        rows = group == k
        loop = {"n_resamples": 70, "rng": generator, **options}
        alone = fastece.bootstrap(y[rows], p[rows], **loop)
        assert kept.value[k] == alone.value
        assert np.array_equal(kept.bootstrap_distribution[k], alone.bootstrap_distribution)
        for result in (kept, *others):
            ends = result.confidence_interval
            assert (ends.low[k], ends.high[k]) == tuple(alone.confidence_interval)
        for result in others:
            assert result.standard_error[k] == alone.standard_error
            assert result.bias[k] == alone.bias


def test_a_distribution_that_is_not_kept_has_one_interval():
    y, p, group = groups(np.random.default_rng(4))
    result = fastece.bootstrap(y, p, n_resamples=9, by=group, keep_distribution=False)
    assert result.bootstrap_distribution.shape == (len(SIZES), 0)
    assert "9 replicates" in str(result)
    with pytest.raises(InputError, match="confidence_level: must be that of the call"):
        result.interval(0.9)
    alone = fastece.bootstrap(y, p, n_resamples=9, keep_distribution=False, rng=0)
    assert alone.confidence_interval == fastece.bootstrap(y, p, n_resamples=9, rng=0).interval()
    stream = fastece.Accumulator(n_replicates=9, seed=0).update(y, p)
    of_stream = fastece.bootstrap(stream, keep_distribution=False)
    assert of_stream.bootstrap_distribution.size == 0
    assert of_stream.confidence_interval == fastece.bootstrap(stream).confidence_interval


def test_tables_name_the_groups_in_the_order_of_numbers():
    y = np.tile([0, 1], 30)
    p = np.linspace(0.1, 0.9, 60)
    by = np.repeat([10, 2, 1], 20)
    for result in (
        fastece.bootstrap(y, p, by=by, n_resamples=9),
        fastece.estimate(y, p, by=by),
        fastece.calibration_test(y, p, by=by, n_resamples=9),
    ):
        assert result.to_frame()["group"].tolist() == ["1", "2", "10"]
        assert "\n  group" in str(result)
    columns = {"site": np.where(by > 2, "north", "south"), "year": by % 2}
    frame = fastece.bootstrap(y, p, by=columns, n_resamples=9).to_frame()
    assert frame["group"].tolist() == ["north, 0", "south, 0", "south, 1"]


def test_groups_without_a_row_are_refused():
    y, p = [0, 1, 1, 0], [0.2, 0.6, 0.7, 0.4]
    with pytest.raises(InputError, match=r"^by: has no row of positive weight in the group 'b'"):
        fastece.ece(y, p, by=["a", "a", "b", "b"], sample_weight=[1, 1, 0, 0])
    with pytest.raises(InputError, match=r"^by: must have shape \(4,\)"):
        fastece.ece(y, p, by=["a", "a", "b"])
    with pytest.raises(InputError, match=r"^by: must not be missing"):
        fastece.ece(y, p, by=["a", "a", None, "b"])
    with pytest.raises(InputTypeError, match=r"^by: .* nor an option of reliability_diagram"):
        fastece.reliability_diagram(y, p, by=y)
    with pytest.raises(InputError, match=r"^n_resamples: must be an integer with by="):
        fastece.calibration_test(y, p, by=y, n_resamples="auto")


def test_labels_that_contradict_predictions_in_a_group_have_its_value():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = np.append(p[:200] < 0.5, p[200:] > 0.5).astype(np.int64)
    by = np.repeat([0, 1], 200)
    with pytest.warns(RowsWarning):
        alone = fastece.ece(y[:200], p[:200])
    assert fastece.ece(y, p, by=by)[0] == alone


# --- rows that are read once ------------------------------------------------------------------


@pytest.mark.slow
def test_every_function_takes_rows_that_were_read_before():
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = np.where(rng.random(200) < p, "yes", "no")
    options = {"pos_label": "yes", "sample_weight": rng.random(200), "percent": True}
    table = Predictions(y, 100 * p, **options)
    for function in (fastece.ece, fastece.brier_score, fastece.mce):
        assert function(table) == function(y, 100 * p, **options)
    for function in (fastece.bootstrap, fastece.estimate, fastece.calibration_test):
        call = {"n_resamples": 19, "rng": 0, "groups": np.arange(200) // 4}
        result = function(table, **call).to_dict()
        assert result == function(y, 100 * p, **options, **call).to_dict()
    assert fastece.reliability_diagram(table).value == fastece.ece(table)
    report = fastece.calibration_report(table, n_resamples=0)
    assert (
        report.to_dict()
        == fastece.calibration_report(y, 100 * p, n_resamples=0, **options).to_dict()
    )
    vectors = rng.dirichlet(np.ones(3), 50)
    labels = rng.integers(0, 3, 50)
    for estimator in ("brier_score", "skce", "ece"):
        alone = fastece.ece(labels, vectors, estimator=estimator)
        assert fastece.ece(Predictions(labels, vectors), estimator=estimator) == alone


@pytest.mark.parametrize("option", ["sample_weight", "counts"])
def test_a_table_stands_for_the_first_of_two_models(option):
    rng = np.random.default_rng(2)
    p, y = rng.random(100), rng.integers(0, 2, 100)
    others = {"same": 100 * p, "squared": 100 * p**2}
    options = {option: rng.integers(1, 5, 100), "percent": True}
    table = Predictions(y, 100 * p, **options)
    for second in (others["squared"], others):
        call = {"y_prob_b": second, "n_resamples": 19, "rng": 0, "method": "basic"}
        result = fastece.compare(table, **call)
        assert str(result) == str(fastece.compare(y, 100 * p, **options, **call))
    with pytest.raises(InputTypeError, match=r"^y_prob_a: goes with arrays, and here is"):
        fastece.compare(table, 100 * p, others["squared"])
    with pytest.raises(InputTypeError, match=r"^labels: goes with arrays, and here is"):
        fastece.compare(table, y_prob_b=others["squared"], labels=[0, 1])
    with pytest.raises(InputError, match=r"^by: goes with ece "):
        fastece.compare(Predictions(y, p, by=y), y_prob_b=p)


def test_a_table_tells_what_was_read():
    y = [0, 1, 1, 2, 0, 1]
    p = np.full((6, 3), 1 / 3)
    assert str(Predictions(y, p)) == "6 rows, setting confidence, 3 classes"
    table = Predictions(y, p, setting="classwise", ignore_label=0, by=list("aabbab"))
    assert str(table) == (
        "4 rows, setting classwise, 3 classes, in 2 groups: a, b, "
        "2 left out, without a weight or a label"
    )
    assert (table.n, table.n_problems, table.parts, table.part_names) == (4, 3, 2, ["a", "b"])
    counted = Predictions([0, 1], [0.2, 0.7], counts=[3, 4])
    assert str(counted) == "7 rows, setting binary, with counts in 2 rows"
    assert counted.n == 7


def test_options_go_with_arrays_and_not_with_a_table():
    table = Predictions([0, 1, 1], [0.2, 0.6, 0.7], by=[0, 1, 1])
    assert fastece.ece(table, estimator=Binned(3)).shape == (2,)
    with pytest.raises(InputTypeError, match=r"^percent: goes with arrays, and here is"):
        fastece.ece(table, percent=True)
    assert fastece.ece(table, setting=1).tolist() == fastece.ece(table).tolist()
    named = Predictions([0, 1, 1], [0.2, 0.6, 0.7], setting="binary")
    with pytest.raises(InputError, match=r"^setting: must be 'binary'"):
        fastece.ece(named, setting="classwise")
    with pytest.raises(InputError, match=r"^by: goes with ece "):
        fastece.slices(table)
