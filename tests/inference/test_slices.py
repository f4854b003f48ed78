"""Groups of rows: each as if alone at the corrected level, and all of them together."""

import json
import math
import re
from datetime import date
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import fastece
from fastece import calibration_test, estimate, slices
from fastece.inference.joint import joint_p_values
from fastece.inference.slices import MAX_LINES, MIN_ROWS, TOO_FEW
from helpers.answer_cases import Stand
from helpers.bad_input import assert_refused
from helpers.chance import ALPHA
from helpers.probes import OneBin
from helpers.resample_cases import binary, classes

WAYS = ["ece_bayes", "ece", "ece_ac", "ece_kde"]
FIELDS = ["n", "value", "low", "high", "p_value", "raw_p_value"]


def data(n=300, groups=4, seed=0):
    """(y_true, y_prob, by): the larger the group's number, the more it is off."""
    rng = np.random.default_rng(seed)
    p, by = rng.random(n), rng.integers(0, groups, n)
    return (rng.random(n) < p ** (1 + 0.4 * by)).astype(np.int64), p, by


def numbers(table):
    """The numbers of each group by its label."""
    return {row.label: [getattr(row, name) for name in FIELDS] for row in table}


# A posterior, an error of cells, a user's own error and a user's own posterior.
@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["ece_bayes", "ece", OneBin(), Stand()])
def test_each_row_is_the_estimate_of_its_rows_alone(estimator):
    y, p, by = data()
    options = {"estimator": estimator, "rng": 3, "sample_weight": np.arange(300) % 3}
    table = slices(y, p, by=by, confidence_level=0.9, **options)
    kept = options.pop("sample_weight")
    assert table.n == (kept > 0).sum()
    for row in table:
        mine = by == row.label
        alone = estimate(
            y[mine], p[mine], sample_weight=kept[mine], confidence_level=1 - 0.1 / 4,
            n_resamples=table.n_resamples or 999, **options,
        )  # fmt: skip
        assert row.n == alone.n == (mine & (kept > 0)).sum()
        assert row.value == alone.value
        assert (row.low, row.high) == pytest.approx(alone.confidence_interval, rel=1e-9)
        assert table.method == alone.method
        if alone.p_value is None:  # a posterior
            options_of_test = {"sample_weight": kept[mine], "rng": 3, "n_resamples": 1999}
            test = calibration_test(y[mine], p[mine], **options_of_test)
            # The test has other draws: four standard deviations of both.
            noise = 4 * math.sqrt(2 * test.p_value * (1 - test.p_value) / 2000)
            assert row.raw_p_value == pytest.approx(test.p_value, abs=noise + 1e-3)
        else:
            assert row.raw_p_value == alone.p_value


@pytest.mark.parametrize("options", [{}, {"setting": "classwise"}])
def test_rows_that_come_first_have_the_draws_of_their_test_alone(options):
    true, prob = classes(300, 4) if options else binary(300)
    for n in (300, 100):
        table = slices(true, prob, by=np.arange(300) < n, rng=5, **options)
        (row,) = [row for row in table if row.label]
        test = calibration_test(true[:n], prob[:n], rng=5, **options)
        assert row.raw_p_value == test.p_value
    # Without others the joint p-value is the same.
    (row,) = slices(true, prob, by=np.zeros(300), rng=5, **options)
    assert row.p_value == row.raw_p_value


# Errors by a posterior, by density, by all pairs of rows, and of a user's own estimator.
@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["ece_bayes", "ece_kde", "mmce", OneBin()])
def test_slices_that_are_named_several_times_count_once(estimator):
    y, p, by = data()
    options = {"estimator": estimator, "n_resamples": 399}
    one = {str(row.label): row for row in slices(y, p, by=by, **options)}
    twice = slices(y, p, by={"a": by, "b": by}, **options)
    assert len(twice) == 8
    for row in twice:
        alone = one[row.label.split()[1]]
        assert (row.p_value, row.raw_p_value) == (alone.p_value, alone.raw_p_value)


@pytest.mark.parametrize("estimator", ["ece_bayes", "ece", "mmce"])
def test_joint_p_values_lie_between_the_p_value_alone_and_bonferroni(estimator):
    rng = np.random.default_rng(2)
    y, p, _ = data(600, seed=4)
    by = {f"c{k}": rng.integers(0, 4, 600) for k in range(5)}
    options = {"n_resamples": 399}
    if estimator == "ece":
        options["sample_weight"] = np.arange(600) % 3 + 1
    table = slices(y, p, by=by, estimator=estimator, **options)
    assert table.correction == "step-down min-p"
    joint = [row.p_value for row in table]
    assert joint == sorted(joint)
    for row in table:
        assert row.raw_p_value <= row.p_value
    bounds = joint_p_values(np.array([row.raw_p_value for row in table]))
    assert np.all(np.array(joint) <= bounds + 1e-12)
    assert np.any(np.array(joint) < 0.9 * bounds)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["ece", "canonical"])
def test_classes_and_slices_of_class_vectors_share_their_labels(estimator):
    true, prob = classes(120, 4)
    by_class = slices(true, prob, setting="classwise", estimator=estimator, n_resamples=99)
    by_prediction = slices(true, prob, by=prob.argmax(axis=1), estimator=estimator, n_resamples=99)
    for table in (by_class, by_prediction):
        assert table.correction == "step-down min-p"
        alone = np.array([row.raw_p_value for row in table])
        joint = np.array([row.p_value for row in table])
        assert np.all((alone <= joint) & (joint <= joint_p_values(alone)))
    doubled = slices(
        true, prob, by={"a": prob.argmax(axis=1), "b": prob.argmax(axis=1)},
        estimator=estimator, n_resamples=by_prediction.n_resamples,
    )  # fmt: skip
    for row in by_prediction:
        (copy,) = [x for x in doubled if x.label == f"b {row.label}"]
        assert copy.p_value == row.p_value


def test_an_impossible_outcome_has_the_smallest_p_value_in_each_of_its_slices():
    y, p, by = data()
    p[7] = 0.0
    y[7] = 1
    table = slices(y, p, by={"by": by, "odd": np.arange(300) % 2})
    for label in (f"by {by[7]}", "odd 1"):
        (row,) = [row for row in table if row.label == label]
        assert row.p_value == row.raw_p_value == 1 / 2000


def test_the_most_evidence_comes_first():
    table = slices(*data(2000)[:2], by=data(2000)[2])
    assert [row.label for row in table][:2] == [3, 2]
    p_values = [row.raw_p_value for row in table]
    assert p_values == sorted(p_values)
    # Of equal p-values, those of replicates, the one whose interval is further from 0.
    table = slices(*data(8000)[:2], by=data(8000)[2], estimator="ece", rng=0)
    assert table[0].raw_p_value == table[1].raw_p_value
    assert table[0].low > table[1].low


def test_evidence_is_told_apart_beyond_the_smallest_number():
    p, by = np.full(4000, 0.01), np.arange(4000) % 2
    table = slices(np.ones(4000), np.where(by == 1, p / 2, p), by=by)
    # Both have the smallest p-value of 2000, and draws of either slice are as small.
    assert [row.raw_p_value for row in table] == [0.0005, 0.0005]
    assert 0.0005 <= table[0].p_value <= 0.001
    assert [row.label for row in table] == [1, 0]


# Values of one bin and of few draws, where the question is what the slices are.
QUICK = {"estimator": "ece", "n_resamples": 9}
LABELS = [[3, 1, 2, 1], ["b", "a", "c", "a"], [True, False, True, False], [2.0, 1.0, 3.0, 1.0]]


def containers(labels):
    yield from (list(labels), np.array(labels), np.array(labels)[:, None], tuple(labels))
    yield from (pd.Series(labels), pd.Series(labels).astype("category"), pl.Series(labels))


@pytest.mark.slow
def test_labels_of_any_kind_and_in_any_container():
    y, p = binary(80)
    for labels in (kind * 20 for kind in LABELS):
        want = numbers(slices(y, p, by=labels, **QUICK))
        assert set(want) == set(labels)
        for by in containers(labels):
            table = slices(y, p, by=by, **QUICK)
            assert numbers(table) == want
            assert {type(row.label) for row in table} == {type(labels[0])}
    mixed = slices(y, p, by=[1, "a", (2, 3), "a"] * 20, **QUICK)
    assert {row.label for row in mixed} == {1, "a", (2, 3)}
    days = np.array(["2024-01-01", "2024-01-02"] * 40, "datetime64[ns]")
    for by in (days, pd.Series(days), [date(2024, 1, 1), date(2024, 1, 2)] * 40):
        found = {str(row.label)[:10] for row in slices(y, p, by=by, **QUICK)}
        assert found == {"2024-01-01", "2024-01-02"}


@pytest.mark.parametrize("estimator", ["ece_bayes", "ece"])
def test_other_names_and_another_order_of_rows_change_nothing(estimator):
    y, p, by = data()
    one = numbers(slices(y, p, by=by, estimator=estimator, rng=0))
    names = np.array(["x9", "x10", "a", "b"])
    other = numbers(slices(y, p, by=names[by], estimator=estimator, rng=0))
    assert [other[name] for name in names] == [one[k] for k in range(4)]
    order = np.argsort(by, kind="stable")  # groups are moved, their rows keep their order
    moved = numbers(slices(y[order], p[order], by=by[order], estimator=estimator, rng=0))
    for label, row in moved.items():
        # Joint tests draw the outcomes of all rows in their order.
        assert row[:4] == one[label][:4]
        assert estimator != "ece" or row[5] == one[label][5]
        assert row[4:] == pytest.approx(one[label][4:], abs=0.06)


def test_weights_scale_and_groups_without_any_do_not_exist():
    y, p, by = data()
    w = np.where(by == 2, 0.0, 1 + np.arange(300) % 3)
    table = slices(y, p, by=by, sample_weight=w)
    assert sorted(row.label for row in table) == [0, 1, 3]
    other = slices(y, p, by=by, sample_weight=7 * w)
    for label, row in numbers(other).items():
        assert row == pytest.approx(numbers(table)[label], rel=1e-9)
    without = slices(y[by != 2], p[by != 2], by=by[by != 2], sample_weight=w[by != 2])
    assert numbers(without) == numbers(table)


def test_slices_of_few_groups_have_a_note():
    y, p, _ = data(1200)
    site = np.arange(1200) % 3
    patient = np.arange(1200) // 2

    def notes(groups):
        table = slices(y, p, by=site, groups=groups)
        found = {note for row in table for note in row.note.split("; ")} - {TOO_FEW}
        return found, "may be too sure" in str(table)

    assert notes(None) == ({""}, False)
    assert notes(patient) == ({""}, False)
    # Each slice has nine of 27 groups, one of three, or all of 19.
    assert notes(patient % 9 + 9 * site) == ({"few groups"}, True)
    assert notes(site) == ({"few groups"}, True)
    assert notes(patient % 19) == ({"few groups"}, True)
    few = slices(y[:40], p[:40], by=site[:40], groups=patient[:40])
    assert {row.note for row in few} == {"too few rows; few groups"}


def test_class_vectors_have_a_value_for_each_group():
    true, prob = classes(60)
    by = np.arange(60) % 2
    for setting in ("auto", "classwise", 1):
        table = slices(true, prob, by=by, setting=setting)
        for row in table:
            mine = by == row.label
            assert row.value == pytest.approx(
                fastece.ece(true[mine], prob[mine], setting=setting, estimator="ece_bayes"),
                rel=1e-9,
            )


@pytest.mark.parametrize("estimator", ["ece_bayes", "ece"])
def test_without_labels_classes_are_the_groups(estimator):
    true, prob = classes(200, 4)
    names = ["ant", "bee", "cow", "dog"]
    options = {"estimator": estimator, "rng": 1}
    table = slices(np.array(names)[true], prob, labels=names, setting="classwise", **options)
    assert {row.label for row in table} == set(names)
    for row in table:
        k = names.index(row.label)
        alone = estimate(
            true, prob, setting=k, confidence_level=1 - 0.05 / 4,
            n_resamples=table.n_resamples or 999, **options,
        )  # fmt: skip
        assert row.n == (true == k).sum()
        assert row.value == pytest.approx(alone.value, rel=1e-9)
        assert (row.low, row.high) == pytest.approx(alone.confidence_interval, rel=1e-9)
    plain = slices(true, prob, setting="classwise", **options)
    assert sorted(row.label for row in plain) == [0, 1, 2, 3]
    never = slices(np.zeros(50, int), np.full((50, 3), 1 / 3), setting="classwise")
    assert sorted(row.n for row in never) == [0, 0, 50]
    assert {row.n: row.note for row in never} == {0: "never the label", 50: ""}
    assert {row.n_effective for row in never} == {50}
    few = slices(np.arange(60) < 55, np.full((60, 2), 0.5), setting="classwise")
    assert {row.n: row.note for row in few} == {5: "", 55: ""}


@pytest.mark.slow
def test_replicates_are_as_many_as_groups_need():
    y, p, by = data(4000, 40)
    options = {"estimator": "ece", "n_resamples": 99, "confidence_level": 0.9, "rng": 0}
    table = slices(y, p, by=by, bins=None, **options)
    assert table.n_resamples == pytest.approx(4 * 40 / 0.1, abs=1)
    # So that no end is the largest error there is only because replicates are few.
    assert max(row.high for row in table) < 0.7
    assert slices(y, p, by=by > 20, estimator="ece", n_resamples=999).n_resamples == 999
    assert slices(y, p, by=by).n_resamples == 1999


def test_where_draws_would_take_too_long_bayes_factors_are_the_evidence(monkeypatch):
    y, p, by = data(2000)
    monkeypatch.setattr("fastece.inference.slices.MAX_DRAWN_ROWS", 10**6)
    table = slices(y, p, by=by)
    assert (table.n_resamples, table.test) == (0, "Bayes factor")
    for row in table:
        factor = estimate(y[by == row.label], p[by == row.label])._parts[0].log_bayes_factor
        assert row.raw_p_value == pytest.approx(min(1, math.exp(-factor)))
        # Of slices that are left, Holm asks for less than the intervals.
        assert row.p_value <= 0.05 or row.low == 0
    assert table.correction == "Holm"
    assert table.off >= sum(row.low > 0 for row in table)
    assert slices(y, p, by=by, estimator="ece").test == "test of this error"


def test_few_rows_are_kept_and_said_to_be_few():
    y, p = binary(60)
    by = np.where(np.arange(60) < MIN_ROWS - 1, "few", "many")
    by[59] = "one"
    table = slices(y, p, by=by)
    notes = {row.label: row.note for row in table}
    assert notes == {"few": "too few rows", "many": "", "one": "too few rows"}
    assert str(table).count("too few rows") == 2


@pytest.mark.parametrize("unit", [1.0, 1e300, 1e-300])
def test_rows_without_much_weight_are_few(unit):
    y, p = binary(100)
    by, weight = np.arange(100) % 2, np.ones(100)
    weight[0] = 20  # the others of its group add up to 49
    notes, counts = {0: TOO_FEW, 1: ""}, {0: 69**2 / 449, 1: 50}
    for row in slices(y, p, by=by, sample_weight=unit * weight, **QUICK):
        assert (row.note, row.n) == (notes[row.label], 50)
        assert row.n_effective == pytest.approx(counts[row.label])


@pytest.mark.slow
def test_a_table_is_a_sequence_that_prints_and_is_written_as_json():
    y, p, by = data(2000)
    table = slices(y, p, by=by, n_resamples=199)
    assert len(table) == 4
    assert table[0] is next(iter(table)) is table.rows[0]
    assert table[1:] == table.rows[1:]
    head, columns, first, *_ = str(table).splitlines()
    assert "setting binary: 2000 rows" in head
    assert re.split("  +", columns.strip()) == [
        "group", "rows", "observed", "predicted", "value", "joint 95 % CI", "p-value"
    ]  # fmt: skip
    assert first.split()[0] == "3"
    assert first.split()[-1].startswith("<=0.0")
    note = "Joint intervals by posterior (Bonferroni), p-values by adaptive test (step-down min-p)."
    assert note in str(table)
    found = json.loads(json.dumps(table.to_dict()))
    assert found["correction"] == "step-down min-p"
    assert found["rows"][0] == {**table[0].to_dict()}
    assert {"label", "note", "n_effective", "events", "predicted", *FIELDS} == set(found["rows"][0])
    many = slices(np.zeros(90), np.full(90, 0.1), by=np.arange(90) // 2, bins=None, **QUICK)
    assert "and 5 groups with less evidence" in str(many)
    assert len(many.to_frame()) == 45
    assert str(many).count("\n") == MAX_LINES + 3


def test_threads_change_nothing():
    y, p, by = data()
    for estimator in ("ece_bayes", "ece"):
        one = slices(y, p, by=by, estimator=estimator, rng=0)
        assert numbers(slices(y, p, by=by, estimator=estimator, rng=0, n_jobs=3)) == numbers(one)


def test_what_is_no_number_comes_last():
    y, p, by = data()
    table = slices(
        y, p, by=by, estimator="ece", norm=math.inf, min_count=75, n_resamples=99, n_bins=1
    )
    is_nan = [math.isnan(row.value) for row in table]
    assert is_nan == sorted(is_nan)
    assert 0 < sum(is_nan) < 4
    last = table[-1]
    assert np.isnan([last.low, last.high, last.p_value, last.raw_p_value]).all()


# --- numbers and several columns ---------------------------------------------------------------


def people(n=2000, seed=0):
    """(y_true, y_prob, columns): a whole number, a real one and a name."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    columns = {
        "age": rng.integers(18, 91, n), "dose": rng.gamma(2, 1, n), "sex": rng.choice(["f", "m"], n)
    }  # fmt: skip
    return (rng.random(n) < p).astype(int), p, columns


def rows_in(column, label):
    """Which rows lie in the interval that a label writes."""
    low, high = (float(x) for x in label[1:-1].split(", "))
    return (column >= low if label[0] == "[" else column > low) & (column <= high)


def test_numbers_are_cut_at_their_quartiles():
    y, p, columns = people()
    age = columns["age"]
    table = slices(y, p, by=age, **QUICK)
    edges = np.sort(age)[[0, 499, 999, 1499, 1999]]  # the least number that a quarter reaches
    wanted = {f"{'(['[k == 0]}{low}, {high}]"
              for k, (low, high) in enumerate(pairwise(edges))}  # fmt: skip
    assert {row.label for row in table} == wanted
    for row in table:
        mine = rows_in(age, row.label)
        alone = slices(y, p, by=mine, **QUICK)
        assert row.n == mine.sum()
        assert row.value == next(x.value for x in alone if x.label)
    for column in (age.tolist(), [*age], age.astype(float), age[:, None], pd.Series(age),
                   pd.Series(age, dtype="Int64"), pl.Series(age)):  # fmt: skip
        assert numbers(slices(y, p, by=column, **QUICK)) == numbers(table)
    found = slices(y, p, by=columns["dose"], **QUICK)
    assert [row.n for row in found] == [500] * 4


@pytest.mark.slow
def test_few_numbers_categories_and_numbers_without_bins_stay_labels():
    y, p, columns = people()
    age = columns["age"] // 3  # 25 values
    assert len(slices(y, p, by=age % 20, **QUICK)) == 20
    assert len(slices(y, p, by=age % 21, **QUICK)) == 4
    for by, bins in ((age, None), (pd.Series(age).astype("category"), 4), (age.astype(str), 4)):
        table = slices(y, p, by=by, bins=bins, **QUICK)
        assert {int(row.label) for row in table} == {*age.tolist()}


def test_edges_cut_numbers_however_few():
    y, p, columns = people()
    age = columns["age"]
    for edges in ([18, 40, 90], (18.0, 40.0, 90.0), np.array([18, 40, 90])):
        table = slices(y, p, by=age, bins=edges, **QUICK)
        assert {row.label: row.n for row in table} == {
            "[18, 40]": (age <= 40).sum(), "(40, 90]": (age > 40).sum()
        }  # fmt: skip
    table = slices(y, p, by=age % 3, bins=[-math.inf, 0.5, 1, math.inf], **QUICK)
    assert {row.label for row in table} == {"[-inf, 0.5]", "(0.5, 1]", "(1, inf]"}
    tenths = (age % 11 / 10).astype(np.float32)  # whose 0.3 is above that of float64
    assert {row.n for row in slices(y, p, by=tenths, bins=[0, 0.3, 1], **QUICK)} == {
        (age % 11 <= 3).sum(), (age % 11 > 3).sum()
    }  # fmt: skip
    table = slices(y, p, by=age, bins=[18, 90, 200], **QUICK)  # nobody is older
    assert [row.label for row in table] == ["[18, 90]"]


def test_equal_numbers_are_in_one_interval_and_edges_are_told_apart():
    y, p, columns = people()
    heap = np.where(columns["age"] < 60, 0, columns["age"])
    table = slices(y, p, by=heap, **QUICK)
    assert sum(row.n for row in table) == 2000
    assert {row.label: row.n for row in table}["[0, 0]"] == (heap == 0).sum()
    late = 1.7e9 + columns["dose"]  # times in seconds
    assert len({row.label for row in slices(y, p, by=late, **QUICK)}) == 4


def test_intervals_have_equal_weight_and_rows_without_any_do_not_count():
    y, p, columns = people()
    dose, w = columns["dose"], np.random.default_rng(1).integers(0, 4, 2000)
    table = slices(y, p, by=dose, sample_weight=w, bins=3)
    kept = w > 0
    only = slices(y[kept], p[kept], by=dose[kept], sample_weight=w[kept], bins=3)
    assert numbers(only) == numbers(table)
    for row in table:
        low, high = (float(x) for x in row.label[1:-1].split(", "))
        mine = kept & (dose > low - 1e-5) & (dose < high + 1e-5)
        assert w[mine].sum() == pytest.approx(w.sum() / 3, abs=7)
    assert len(slices(y, p, by=dose, bins=1)) == 1


def test_intervals_of_pandas_are_labels():
    y, p, columns = people()
    age = columns["age"]
    cut = pd.cut(age, [0, 40, 100])
    for by in (cut, pd.Series(cut), pd.Series(cut).astype("interval"), pd.IntervalIndex(cut)):
        table = slices(y, p, by=by, **QUICK)
        assert {row.label: row.n for row in table} == {
            "(0, 40]": (age <= 40).sum(), "(40, 100]": (age > 40).sum()
        }  # fmt: skip
    assert json.dumps(slices(y, p, by=pd.qcut(columns["dose"], 4), **QUICK).to_dict())
    gaps = pd.cut(np.where(np.arange(2000) == 7, 200, age), [0, 40, 100])  # of none of them
    assert_refused(lambda: slices(y, p, by=gaps), ["^by: must not be missing", r"by\[7\] is nan"])


@pytest.mark.slow
def test_columns_are_in_one_table_that_holds_jointly():
    y, p, columns = people(800)
    table = slices(y, p, by=columns)
    assert len(table) == 4 + 4 + 2
    found = numbers(table)
    for name, column in columns.items():
        alone = slices(
            y, p, by=column, confidence_level=1 - 0.05 * len({*slices(y, p, by=column)}) / 10
        )
        for row in alone:
            n, value, low, high, _, raw = found[f"{name} {row.label}"]
            assert (n, value, low, high, raw) == (
                row.n, row.value, pytest.approx(row.low), pytest.approx(row.high), row.raw_p_value
            )  # fmt: skip
    for frame in (
        pd.DataFrame(columns),
        pl.DataFrame(columns),
        pd.DataFrame(columns).astype({"sex": "category"}),
    ):
        assert numbers(slices(y, p, by=frame, **QUICK)) == numbers(
            slices(y, p, by=columns, **QUICK)
        )
    one = slices(y, p, by={"sex": columns["sex"]}, **QUICK)
    assert {row.label for row in one} == {"sex f", "sex m"}


def test_columns_are_crossed():
    y, p, columns = people()
    columns["sex"][columns["age"] > 60] = "m"
    table = slices(y, p, by=columns, bins=[0, 60, 100], cross=True, **QUICK)
    wanted = {}
    for age, dose, sex in zip(*columns.values(), strict=True):
        assert dose <= 60
        label = f"age {'(60, 100]' if age > 60 else '[0, 60]'}, dose [0, 60], sex {sex}"
        wanted[label] = wanted.get(label, 0) + 1
    assert {row.label: row.n for row in table} == wanted
    assert len(wanted) == 3  # of four that there could be
    plain = slices(y, p, by=columns["age"] % 3, **QUICK)
    assert numbers(slices(y, p, by=columns["age"] % 3, cross=True, **QUICK)) == numbers(plain)


def test_a_group_shows_events_and_scores():
    y, p, columns = people()
    sex, w = columns["sex"], 1 + np.arange(2000) % 3
    for row in slices(y, p, by=sex, sample_weight=w, **QUICK):
        mine = sex == row.label
        assert row.events == pytest.approx(np.average(y[mine], weights=w[mine]))
        assert row.predicted == pytest.approx(np.average(p[mine], weights=w[mine]))
    true, prob = classes(200, 4)
    by = np.arange(200) % 2
    table = slices(true, prob, by=by, **QUICK)
    assert "accuracy" in str(table)
    for row in table:
        mine = by == row.label
        top = prob[mine].max(1)
        assert row.events == pytest.approx(np.mean(prob[mine].argmax(1) == true[mine]))
        assert row.predicted == pytest.approx(top.mean())
    for row in slices(true, prob, setting="classwise", **QUICK):
        assert row.events == pytest.approx(np.mean(true == row.label))
        assert row.predicted == pytest.approx(prob[:, row.label].mean())
    table = slices(true, prob, by=by, setting="classwise", **QUICK)  # a mean over classes
    assert np.isnan([(row.events, row.predicted) for row in table]).all()
    assert table.to_dict()["rows"][0]["events"] is None


def test_bad_columns_and_bins_are_refused_by_name():
    y, p, columns = people(40)
    age = columns["age"].astype(float)
    age[3] = math.nan
    for by in ({**columns, "age": age}, pd.DataFrame({"age": age})):
        where = [r"^by\['age'\]: must not be missing", r"by\['age'\]\[3\] is nan"]
        assert_refused(lambda by=by: slices(y, p, by=by), where)
    for by in ({}, pd.DataFrame()):
        assert_refused(lambda by=by: slices(y, p, by=by), ["^by: must have a column"])
    assert_refused(lambda: slices(y, p, by={"x": [1]}), [r"^by\['x'\]: must have shape \(40,\)"])
    for bins in (
        0,
        1001,
        "four",
        2.5,
        True,
        [1],
        [[1, 2]],
        [2, 1],
        [1, 1],
        [0, math.nan],
        ["a", "b"],
    ):
        assert_refused(lambda bins=bins: slices(y, p, by=y, bins=bins), ["^bins: "])
    whole = columns["age"]
    bad = int(np.flatnonzero(whole > 40)[0])
    where = ["^by: must lie in bins=", rf"by\[{bad}\] is {whole[bad]}"]
    assert_refused(lambda: slices(y, p, by=whole, bins=[0, 40]), where)
    assert_refused(lambda: slices(y, p, by=y, cross="yes"), ["^cross: "])


MISSING = [
    ([1.0, math.nan], r"by\[1\] is nan"), (["a", None], r"by\[1\] is None"),
    (["a", " "], r"by\[1\] is ' '"), (pd.Series([1, None], dtype="Int64"), r"by\[1\]"),
    (np.array(["2024-01-01", "NaT"], "datetime64[D]"), r"by\[1\] is None"),
    (pl.Series(["a", None]), r"by\[1\] is None"),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "where"), MISSING)
def test_missing_labels_are_refused(labels, where):
    assert_refused(
        lambda: slices([0, 1], [0.2, 0.7], by=labels), ["^by: must not be missing", where]
    )


def test_bad_calls_are_refused():
    y, p, by = data(20)
    for bad in (by[:-1], by.reshape(2, 10), np.column_stack([by, by]), []):
        assert_refused(lambda bad=bad: slices(y, p, by=bad), [r"^by: must have shape \(20,\)"])
    assert_refused(lambda: slices(y, p, by="site"), ["^by: must be an array"])
    assert_refused(lambda: slices(y, p, by=[[1], [2, 3]] * 10), ["^by: "])
    assert_refused(lambda: slices(y, p), ["^by: is needed", "classwise", "'binary'"])
    assert_refused(lambda: slices(y, p, by=by, average=None), ["^average: "])
    assert_refused(lambda: slices(y, p, by=by, estimator=["ece"]), ["^estimator: ", "list"])
    assert_refused(lambda: slices(y, p, by=by, n_resamples=0), ["^n_resamples: "])
    assert_refused(lambda: slices(y, p, by=by, confidence_level=1), ["^confidence_level: "])


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["ece_bayes", "ece"])
def test_some_calibrated_slice_is_flagged_in_5_of_100_samples_at_most(estimator):
    """Slices overlap. If 5 % have one, the test fails by chance once in a thousand runs."""
    half = np.arange(220) // 20
    by = {"even": half // 2, "odd": (half + 1) // 2}
    flagged = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        p = rng.beta(5, 1.5, 220)
        options = {"estimator": estimator, "rng": seed, "n_resamples": 319}
        flagged += slices(rng.random(220) < p, p, by=by, **options).off > 0
    assert flagged <= stats.binom.isf(ALPHA, 80, 0.05)


@pytest.mark.slow
def test_a_picture_has_the_intervals_of_the_table_from_the_top():
    figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
    rng = np.random.default_rng(0)
    prob = rng.random(1200)
    site = rng.choice(["north", "south", "west_$1"], 1200)
    events = rng.random(1200) < np.where(site == "west_$1", prob**2, prob)
    table = fastece.slices(events, prob, by=site, n_resamples=199)
    ax = table.plot(figure.subplots())
    figure.draw_without_rendering()
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [f"{row.label} ({row.n} rows)" for row in table]
    assert np.all(np.diff(ax.get_yticks()) < 0)
    (lines,) = ax.collections
    ends = [segment[:, 0].tolist() for segment in lines.get_segments()]
    assert ends == [[row.low, row.high] for row in table]
    filled, hollow = (line.get_xdata().tolist() for line in ax.get_lines())
    assert filled == [row.value for row in table if row.p_value <= 0.05]
    assert hollow == [row.value for row in table if row.p_value > 0.05]
    assert len(filled) == table.off > 0
    many = fastece.slices(events, prob, by=np.arange(1200) % 45, bins=None, **QUICK)
    drawn = many.plot(figure.subplots())
    assert len(drawn.get_yticks()) == 40
    assert "40 of 45 groups" in " ".join(drawn.get_title().split())


# --- dates ----------------------------------------------------------------------------------


def days_from(first, n):
    """Rows on n days one after the other, three on each, and the same days as texts."""
    days = np.datetime64(first) + np.arange(n).repeat(3)
    return days, days.astype(str)


DATE_FORMS = {
    "days": lambda days: days,
    "nanoseconds": lambda days: days.astype("M8[ns]") + np.timedelta64(90, "m"),
    "series": lambda days: pd.Series(days.astype("M8[ns]")),
    "time zones": lambda days: pd.Series(days.astype("M8[ns]")).dt.tz_localize("Europe/Berlin"),
    "dates": lambda days: days.tolist(),
    "periods": lambda days: pd.Series(pd.PeriodIndex(days.astype(str), freq="D")),
    "texts": lambda days: days.astype(str).tolist(),
    "texts with times": lambda days: [f"{day} 23:59:59" for day in days.astype(str)],
    "slashes": lambda days: [day.replace("-", "/") for day in days.astype(str)],
}


@pytest.mark.parametrize("form", DATE_FORMS)
def test_many_dates_are_months_in_the_order_of_time(form):
    days, texts = days_from("2023-11-20", 100)
    y, p = binary(days.size)
    shuffled = np.random.default_rng(0).permutation(days.size)
    by = DATE_FORMS[form](days[shuffled])
    table = slices(y, p, by=by, **QUICK)
    months = [text[:7] for text in texts[shuffled]]
    assert [row.label for row in table] == sorted(set(months))
    same = slices(y, p, by=np.array(months), **QUICK)
    assert numbers(table) == numbers(same)
    assert "2023-11" in str(table)


@pytest.mark.parametrize(
    ("first", "n", "labels"),
    [
        ("2024-02-20", 21, ["2024-02-20", "2024-02-21"]),
        ("2024-02-10", 15, ["2024-02-10", "2024-02-11"]),
        ("2024-02-01", 28, ["2024-02-01", "2024-02-02"]),
        ("2022-01-01", 730, ["2022-01", "2022-02"]),
        ("2022-01-01", 800, ["2022-Q1", "2022-Q2"]),
        ("2015-01-01", 2500, ["2015", "2016"]),
    ],
)
def test_dates_are_put_into_the_finest_periods_that_are_few(first, n, labels):
    days, _ = days_from(first, n)
    y, p = binary(days.size)
    table = slices(y, p, by=days.tolist(), **QUICK)
    assert [row.label for row in table][:2] == labels
    assert [row.label for row in table] == sorted(row.label for row in table)
    assert sum(row.n for row in table) == days.size


@pytest.mark.slow
def test_dates_stay_slices_where_the_caller_says_so():
    days, texts = days_from("2024-01-20", 40)
    y, p = binary(days.size)
    for options in ({"by": texts, "bins": None}, {"by": pd.Series(texts, dtype="category")}):
        table = slices(y, p, **QUICK, **options)
        assert [row.label for row in table] == sorted(set(texts))
    two = slices(y, p, by={"day": texts, "even": days.astype(int) % 2}, **QUICK)
    assert {row.label for row in two} == {
        "day 2024-01", "day 2024-02", "even 0", "even 1",
    }  # fmt: skip
    codes = [f"{1000 + k}-{k % 12 + 20}" for k in range(24)] * 5
    assert len(slices(y, p, by=codes, **QUICK)) == 24


def test_a_gate_has_its_dates_in_the_order_of_time():
    days, texts = days_from("2023-11-20", 100)
    y, p = binary(days.size)
    verdict = fastece.check(y, p, max_error=0.9, by=days[::-1], n_resamples=9)
    labels = [row.label for row in verdict.rows]
    assert labels[1:] == [f"slice {month}" for month in sorted({x[:7] for x in texts})]
