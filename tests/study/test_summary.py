"""Tables of a study equal plain loops."""

import csv
import math
import statistics
from dataclasses import replace
from math import fsum, inf, nan

import numpy as np
import pyarrow as pa
import pytest

from fastece.study.folder import write_table
from fastece.study.simulated import Distribution
from fastece.study.summary import distribution_table, ranking_of, summarise
from fastece.study.truth import Truth
from helpers.study_cases import SINGLE

NAMES = ("a", "b", "c", "zero")
THREE = replace(SINGLE, mixtures=5, n_sizes=3)
# The truth of each setting, where a test does not depend on it.
TWO_TRUTHS = [Truth(0.1, 0.1, 0.1)] * 2


@pytest.fixture(scope="module")
def made_up():
    """Made-up estimates and truths of five distributions, and the table of their values."""
    rng = np.random.default_rng(0)
    shape = (2, len(NAMES), len(THREE.sizes), 7)
    outcomes = []
    tables = []
    for which in THREE.distributions:
        estimates = rng.gamma(2, 0.05, shape)
        estimates[:, 1] *= 0.3
        estimates[:, -1] = 0
        truths = [Truth(*row) for row in rng.uniform(0.02, 0.2, (2, 3)).tolist()]
        outcomes.append((estimates, truths))
        tables.append(distribution_table(THREE, which, NAMES, estimates, truths))
    return outcomes, pa.concat_tables(tables)


def quantile(values, q):
    """Linear between the order statistics."""
    values = sorted(values)
    place = q * (len(values) - 1)
    below = min(math.floor(place), len(values) - 2)
    if values[below] == values[below + 1]:
        return values[below]
    return values[below] + (place - below) * (values[below + 1] - values[below])


def measures_of(estimates, truth):
    """The measures of one estimator at one size, over its draws."""
    ratios = [inf if e == 0 else abs(math.log(e / truth)) for e in estimates]
    return {
        "p95_relative_error": quantile([abs(e - truth) / truth for e in estimates], 0.95),
        "p95_absolute_error": quantile([abs(e - truth) for e in estimates], 0.95),
        "median_abs_log_ratio": statistics.median(ratios),
        "bias": fsum(e - truth for e in estimates) / len(estimates),
        "relative_bias": fsum(e / truth - 1 for e in estimates) / len(estimates),
        "sd": statistics.stdev(estimates),
    }


def all_measures(outcomes, which_truth):
    """(setting, estimator, n) -> measures of each distribution."""
    return {
        (setting, name, n): [
            measures_of(estimates[s, e, i].tolist(), truths[s][which_truth])
            for estimates, truths in outcomes
        ]
        for s, setting in enumerate(THREE.settings)
        for e, name in enumerate(NAMES)
        for i, n in enumerate(THREE.sizes)
    }


def test_values_of_each_distribution_are_those_of_plain_loops(made_up):
    outcomes, values = made_up
    assert values.num_rows == 5 * 2 * len(NAMES) * 3
    kinds = ["n_classes", "n_features", "mixture", "model", "training"]
    assert values.column_names == [
        *kinds, "setting", "estimator", "n", "truth", "truth_labels", "truth_se", "mean",
        "sd",
        "p95_relative_error", "median_abs_log_ratio", "p95_relative_error_labels",
        "median_abs_log_ratio_labels",
    ]  # fmt: skip
    exact = all_measures(outcomes, 0)
    labels = all_measures(outcomes, 1)
    for row in values.to_pylist():
        d = THREE.distributions.index(Distribution(*(row[kind] for kind in kinds)))
        key = row["setting"], row["estimator"], row["n"]
        s = THREE.settings.index(row["setting"])
        _, truths = outcomes[d]
        assert (row["truth"], row["truth_labels"], row["truth_se"]) == truths[s]
        for suffix, measures in (("", exact[key][d]), ("_labels", labels[key][d])):
            for name in ("p95_relative_error", "median_abs_log_ratio"):
                assert row[name + suffix] == pytest.approx(measures[name], rel=1e-12)
        assert row["sd"] == pytest.approx(exact[key][d]["sd"], rel=1e-12, abs=1e-15)
        assert row["mean"] - row["truth"] == pytest.approx(exact[key][d]["bias"], abs=1e-15)


@pytest.mark.parametrize("truth", ["posterior", "labels"])
def test_the_summary_is_that_of_plain_loops(made_up, truth):
    outcomes, values = made_up
    table = summarise(values, THREE, truth)
    rows = {(row["setting"], row["estimator"], row["n"]): row for row in table.to_pylist()}
    assert len(rows) == table.num_rows == 2 * len(NAMES) * 3
    required = ["setting", "estimator", "n", "p95_relative_error", "median_abs_log_ratio", "bias"]
    assert set(required) <= set(table.column_names)
    every = all_measures(outcomes, ["posterior", "labels"].index(truth))
    assert list(rows) == list(every)
    for key, of_each in every.items():
        for name in of_each[0]:
            want = statistics.median(one[name] for one in of_each)
            assert rows[key][name] == pytest.approx(want, rel=1e-11, abs=1e-15), (key, name)


@pytest.mark.slow
def test_intervals_are_those_of_resampled_distributions(made_up):
    outcomes, values = made_up
    rng = THREE.rng(5)
    draws = [rng.integers(5, size=5).tolist() for _ in range(400)]
    every = all_measures(outcomes, 0)
    for row in summarise(values, THREE).to_pylist():
        of_each = every[row["setting"], row["estimator"], row["n"]]
        for measure in of_each[0]:
            medians = [statistics.median(of_each[d][measure] for d in draw) for draw in draws]
            ends = sorted(medians)[9], sorted(medians)[-10]
            interval = row[f"{measure}_low"], row[f"{measure}_high"]
            assert interval == pytest.approx(ends, rel=1e-11, abs=1e-15), measure
            assert interval[0] <= row[measure] <= interval[1]


def test_best_is_who_has_the_smallest_error(made_up):
    outcomes, values = made_up
    every = all_measures(outcomes, 0)
    for row in summarise(values, THREE).to_pylist():
        wins = 0
        for d in range(5):
            errors = {
                name: every[row["setting"], name, row["n"]][d]["p95_relative_error"]
                for name in NAMES[:-1]
            }
            wins += min(errors, key=errors.get) == row["estimator"]
        assert row["best"] == pytest.approx(wins / 5)


def test_those_who_are_equally_good_share_the_first_place():
    which = SINGLE.distributions[0]
    estimates = np.random.default_rng(0).random((2, 1, 3, 5)).repeat(3, axis=1)
    values = distribution_table(SINGLE, which, ("a", "b", "zero"), estimates, TWO_TRUTHS)
    table = summarise(values, SINGLE)
    for row in table.to_pylist():
        assert row["best"] == (0 if row["estimator"] == "zero" else 0.5)


@pytest.mark.parametrize("measure", ["p95_relative_error", "p95_absolute_error"])
def test_the_ranking_is_that_of_plain_loops(made_up, measure):
    summary = summarise(made_up[1], THREE)
    rows = {(row["setting"], row["estimator"], row["n"]): row for row in summary.to_pylist()}
    ranking = ranking_of(summary, measure).to_pylist()
    assert len(ranking) == 8
    assert list(ranking[0]) == [
        "setting", "rank", "estimator", "mean_rank", "error_at_10", "error_at_20", "error_at_40",
        "best", "relative_bias",
    ]  # fmt: skip
    for setting in THREE.settings:
        mine = [row for row in ranking if row["setting"] == setting]
        assert [row["rank"] for row in mine] == [1, 2, 3, 0]
        assert mine[-1]["estimator"] == "zero"
        assert math.isnan(mine[-1]["mean_rank"])
        assert mine[0]["mean_rank"] <= mine[1]["mean_rank"] <= mine[2]["mean_rank"]
        for row in mine:
            name = row["estimator"]
            ranks = []
            for n in THREE.sizes:
                errors = [rows[setting, other, n][measure] for other in NAMES[:-1]]
                ranks.append(1 + sum(e < rows[setting, name, n][measure] for e in errors))
                assert row[f"error_at_{n}"] == rows[setting, name, n][measure]
            if name != "zero":
                assert row["mean_rank"] == pytest.approx(np.mean(ranks))
            for column in ("best", "relative_bias"):
                want = np.mean([rows[setting, name, n][column] for n in THREE.sizes])
                assert row[column] == pytest.approx(want)


def test_an_estimator_without_a_value_is_never_best_and_comes_last():
    # As the published bins of equal mass with fewer rows than bins.
    which = SINGLE.distributions[0]
    estimates = np.random.default_rng(0).random((2, 3, 3, 5))
    estimates[:, 0, 0] = nan
    table = distribution_table(SINGLE, which, ("a", "b", "zero"), estimates, TWO_TRUTHS)
    summary = summarise(table, SINGLE)
    first = summary.to_pylist()[0]
    assert (first["estimator"], first["n"], first["best"]) == ("a", 10, 0)
    assert math.isnan(first["p95_relative_error"])
    ranking = ranking_of(summary).to_pylist()
    assert ranking[0]["setting"] == "confidence"
    assert {row["rank"] for row in ranking} == {0, 1, 2}


def test_a_negative_estimate_is_as_far_off_as_zero():
    # As debiased estimators have, without a warning of a logarithm.
    which = SINGLE.distributions[0]
    estimates = np.random.default_rng(0).random((2, 2, 3, 5)) - 0.5
    table = distribution_table(SINGLE, which, ("a", "zero"), estimates, TWO_TRUTHS)
    rows = iter(table.to_pylist())
    for of_setting in estimates.tolist():
        for of_estimator in of_setting:
            for draws in of_estimator:
                logs = [abs(math.log(e / 0.1)) if e > 0 else inf for e in draws]
                row = next(rows)
                assert row["median_abs_log_ratio"] == pytest.approx(statistics.median(logs))
                errors = [abs(e - 0.1) / 0.1 for e in draws]
                assert row["p95_relative_error"] == pytest.approx(quantile(errors, 0.95))


def test_a_csv_has_the_table(tmp_path, made_up):
    table = summarise(made_up[1], THREE)
    write_table(tmp_path / "summary.csv", table)
    with open(tmp_path / "summary.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row, want in zip(rows, table.to_pylist(), strict=True):
        assert {name: type(value)(row[name]) for name, value in want.items()} == want
