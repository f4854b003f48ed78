"""Which column of the probabilities each label stands for."""

from fractions import Fraction

import numpy as np
import pytest

import fastece
from fastece.recalibration import TemperatureScaling, load, save
from helpers.bad_input import CLASS_TRUE, PROB, ROWS, TRUE


def test_labels_name_the_classes_of_results():
    diagram = fastece.reliability_diagram(["ant", "bee"], [0.2, 0.6], setting=1, pos_label="bee")
    assert diagram.setting == "class 1 ('bee')"
    many = fastece.reliability_diagram(
        CLASS_TRUE, ROWS, setting="classwise", labels=[0, 1, Fraction(2)]
    )
    assert [d.setting for d in many] == ["class 0 (0)", "class 1 (1)", "class 2 (Fraction(2, 1))"]


def pandas_frame(rows, names):
    return pytest.importorskip("pandas").DataFrame(rows, columns=names)


def polars_frame(rows, names):
    return pytest.importorskip("polars").DataFrame(rows, schema=list(map(str, names)))


def pyarrow_table(rows, names):
    columns = dict(zip(map(str, names), np.asarray(rows).T, strict=True))
    return pytest.importorskip("pyarrow").table(columns)


FRAMES = [pandas_frame, polars_frame, pyarrow_table]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    "names", [["dog", "cat", "bird"], ["2", "0", "1"], ["1", "2", "3"], ["False", "True", "x"]]
)
def test_names_of_columns_are_the_order_of_the_classes(frame, names):
    value = fastece.ece(CLASS_TRUE, ROWS, setting="classwise", average=None)
    used = CLASS_TRUE % 2 if "x" in names else CLASS_TRUE
    for labels in ([names[k] for k in used], np.array(names, object)[used]):
        got = fastece.ece(labels, frame(ROWS, names), setting="classwise", average=None)
        want = fastece.ece(used, ROWS, setting="classwise", average=None)
        assert np.array_equal(got, want)
    assert not np.array_equal(value, fastece.ece(CLASS_TRUE, ROWS[:, ::-1], setting="classwise"))
    if "x" not in names and names[0].isdecimal():  # numbers are names as well
        got = fastece.ece(np.array(names, float)[used], frame(ROWS, names), setting=0)
        assert got == fastece.ece(CLASS_TRUE, ROWS, setting=0)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    "names", [["p_0", "p_1", "p_2"], [0, 1, 2], ["class 1", "class 2", "class 3"]]
)
def test_columns_that_are_only_counted_have_no_names(frame, names):
    strings = [["ant", "bee", "cow"][k] for k in CLASS_TRUE]
    with pytest.raises(ValueError, match=r"which of the 3 .* found 'ant', 'bee', 'cow'; .*pass la"):
        fastece.ece(strings, frame(ROWS, names))
    used = CLASS_TRUE + ("class 1" in names)
    assert fastece.ece(used, frame(ROWS, names)) == fastece.ece(CLASS_TRUE, ROWS)


# Positions of the columns whose names end in these numbers, and the class of each number.
NUMBERED = {
    "p_1 p_2 p_3": ([0, 1, 2], [1, 2, 3]),
    "prob_2 prob_0 prob_1": ([2, 0, 1], [0, 1, 2]),
    "class7 class05 class10": ([1, 0, 2], [5, 7, 10]),
    "3 1 2": ([2, 0, 1], [1, 2, 3]),
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("names", NUMBERED)
@pytest.mark.parametrize("dtype", [int, float])
def test_numbers_that_end_all_names_are_the_classes(frame, names, dtype):
    order, classes = NUMBERED[names]
    # The last class has no row, which would show that labels are no positions.
    rows = np.flatnonzero(CLASS_TRUE < 2)
    labels = np.array(classes, dtype)[CLASS_TRUE[rows]]
    prob = frame(ROWS[rows][:, order], names.split())
    for options in ({}, {"estimator": "canonical"}, {"setting": "classwise"}):
        got = fastece.ece(labels, prob, **options)
        assert got == pytest.approx(fastece.ece(CLASS_TRUE[rows], ROWS[rows], **options), abs=1e-15)
    if frame is not pandas_frame:
        return
    for call in (
        lambda y, p: fastece.estimate(y, p).value,
        lambda y, p: fastece.calibration_test(y, p, n_resamples=9, rng=0).p_value,
        lambda y, p: fastece.compare(y, p, p, n_resamples=9, rng=0).a,
        lambda y, p: fastece.brier_score(y, p),
    ):
        assert call(labels, prob) == pytest.approx(call(CLASS_TRUE[rows], ROWS[rows]), abs=1e-12)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_label_beside_the_numbers_of_the_columns_is_refused(frame):
    prob = frame(ROWS, ["p_1", "p_2", "p_3"])
    with pytest.raises(ValueError, match=r"'p_1', .*; y_true\[\d\] is 0.*; pass labels="):
        fastece.ece(CLASS_TRUE, prob)
    assert fastece.ece(CLASS_TRUE, prob, labels=[0, 1, 2]) == fastece.ece(CLASS_TRUE, ROWS)
    with pytest.raises(ValueError, match="y_prob: two columns have one number"):
        fastece.ece(CLASS_TRUE, frame(ROWS, ["p_1", "p_01", "p_2"]))


def test_streams_and_matrices_of_labels_need_columns_in_the_order_of_their_numbers():
    order = [2, 0, 1]
    prob = pandas_frame(ROWS[:, order], ["prob_2", "prob_0", "prob_1"])
    shares = np.eye(3)[CLASS_TRUE]
    with pytest.raises(ValueError, match="y_true: must hold class numbers in a stream"):
        fastece.Accumulator(3).update(CLASS_TRUE, prob)
    for names in (["prob_2", "prob_0", "prob_1"], ["prob_1", "prob_2", "prob_3"]):
        with pytest.raises(ValueError, match="y_prob: must have columns that are numbered from 0"):
            fastece.Monitor(n_classes=3).update(CLASS_TRUE, pandas_frame(ROWS, names))
    matrices = [
        (shares, {"soft": True}),
        (pandas_frame(shares, ["y_0", "y_1", "y_2"]), {"soft": True}),
        (shares, {"counts": np.ones(len(shares))}),
        (pandas_frame(shares, ["y_0", "y_1", "y_2"]), {"setting": "tasks"}),
    ]
    for labels, options in matrices:
        with pytest.raises(ValueError, match="y_true: must have its columns in the order of y_pro"):
            fastece.ece(labels, prob, **options)
    same = pandas_frame(shares[:, order], prob.columns)
    assert fastece.ece(same, prob, soft=True) == fastece.ece(CLASS_TRUE, ROWS)


def test_a_map_takes_columns_in_the_order_that_it_was_fitted_to(tmp_path):
    prob = pandas_frame(ROWS[:, [2, 0, 1]], ["prob_2", "prob_0", "prob_1"])
    path = tmp_path / "map.json"
    save(TemperatureScaling(clip=1e-6).fit(prob, CLASS_TRUE), path)
    model = load(path)
    assert model.classes_ == [2, 0, 1]
    assert np.array_equal(model.transform(prob), model.transform(np.asarray(prob)))
    with pytest.raises(ValueError, match="X: must have its columns in the order of those"):
        model.transform(pandas_frame(ROWS, ["prob_0", "prob_1", "prob_2"]))


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    "names", [["dog", "cat", "owl"], ["p_cat", "dog", "p_bird"], ["p_cat", "p_dog", "p_owl"]]
)
def test_strings_that_are_no_names_of_columns_need_labels(frame, names):
    order = ["bird", "cat", "dog"]
    strings, prob = [order[k] for k in CLASS_TRUE], frame(ROWS, names)
    with pytest.raises(ValueError, match=r"y_prob's columns, \['.*; y_true\[0\] is 'bird'; pass l"):
        fastece.ece(strings, prob)
    assert fastece.ece(strings, prob, labels=order) == fastece.ece(CLASS_TRUE, ROWS)
    assert fastece.ece(CLASS_TRUE, prob) == fastece.ece(CLASS_TRUE, ROWS)  # indices


def test_names_that_are_there_twice_are_refused():
    prob = pandas_frame(ROWS, ["cat", "dog", "dog"])
    with pytest.raises(
        ValueError, match=r"y_prob: two columns have one name, \['cat', 'dog', 'dog'"
    ):
        fastece.ece(["cat", "dog"] * 4, prob)


def test_two_models_must_have_their_columns_in_one_order():
    names = ["dog", "cat", "bird"]
    strings, options = [names[k] for k in CLASS_TRUE], {"n_resamples": 9, "rng": 0}
    a, b = pandas_frame(ROWS, names), pandas_frame(ROWS[:, ::-1], names[::-1])
    with pytest.raises(
        ValueError, match="y_prob_b: must have its classes in the order of y_prob_a"
    ):
        fastece.compare(strings, a, b, **options)
    assert fastece.compare(strings, a, b[names], **options).value == 0


@pytest.mark.parametrize(
    ("negative", "positive"), [("stay", "churn"), (-1, 1), (2, 1), (0, 1), (1, 0), (False, True)]
)
def test_pos_label_is_the_class_of_the_probability(negative, positive):
    true = [positive if y else negative for y in TRUE]
    columns = np.column_stack([1 - PROB, PROB])
    for labels in (true, np.array(true), np.array(true, object)):
        for prob in (PROB, columns):
            got = fastece.ece(labels, prob, pos_label=positive, setting="binary")
            assert got == fastece.ece(TRUE, PROB)
    both = {"pos_label": positive, "labels": [negative, positive]}
    assert fastece.ece(true, PROB, **both) == fastece.ece(TRUE, PROB)
    result = fastece.bootstrap(true, PROB, pos_label=positive, n_resamples=9, rng=0)
    assert result.setting == f"binary ({positive!r})"


def test_data_of_one_class_need_no_other_label():
    assert fastece.ece(["churn"] * 8, PROB, pos_label="churn") == fastece.ece([1] * 8, PROB)
    assert fastece.ece(["stay"] * 8, PROB, pos_label="churn") == fastece.ece([0] * 8, PROB)


def test_pos_label_agrees_with_the_names_of_columns():
    prob = pandas_frame(np.column_stack([PROB, 1 - PROB]), ["churn", "stay"])
    true = np.where(TRUE, "churn", "stay")
    assert fastece.ece(true, prob, setting=0) == fastece.ece(TRUE, PROB)
    with pytest.raises(ValueError, match="pos_label: must be class 1, 'stay', got 'churn'"):
        fastece.ece(true, prob, pos_label="churn")


HITS = np.array([True, False, True, False])
CONFIDENCE = np.array([0.9, 0.6, 0.3, 0.1])


def test_right_and_wrong_are_read_where_no_score_would_be_folded():
    expected = fastece.ece(HITS.astype(int), CONFIDENCE, setting="confidence")
    assert expected != fastece.ece(HITS, CONFIDENCE)
    assert fastece.ece([1, 0, 1, 0], CONFIDENCE, setting="confidence") == expected
    above = np.maximum(CONFIDENCE, 0.5)
    assert fastece.ece(HITS, above, setting="confidence") == fastece.ece(
        HITS.astype(int), above, setting="confidence"
    )
    vectors = np.column_stack([1 - CONFIDENCE, CONFIDENCE])
    assert fastece.ece(HITS, vectors, setting="confidence") == expected


def test_right_and_wrong_are_no_classes_of_streams():
    with pytest.raises(ValueError, match=r"^y_prob: must be at least 0.5 .*; y_prob\[2\] is 0.3;"):
        fastece.Accumulator(setting="confidence").update(HITS, CONFIDENCE)
