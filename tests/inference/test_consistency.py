"""Numbers that seem to contradict each other have a remark in place, and others have none."""

from itertools import product

import numpy as np
import pytest

from fastece import bootstrap, compare, direction, estimate, slices
from fastece.cli import main

OUTSIDE = "Where a value lies outside its interval: "
DISAGREE = "Where p-value and interval disagree on a difference of 0: "
# Few rows of wrong models have warnings of their own.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SLACK = 1e-9
RNG = np.random.default_rng(2)


def lies_outside(value, interval):
    return value < interval.low - SLACK or value > interval.high + SLACK


def models(sizes=(12, 150, 600)):
    """Right and wrong models of one event and of classes, with few rows and more."""
    rng = np.random.default_rng(8)
    for n in sizes:
        for power in (1.0, 1.0, 1.5):
            p = rng.random(n)
            yield "binary", rng.random(n) < p**power, p
            vectors = rng.dirichlet(np.full(4, power), n)
            y = (rng.random((n, 1)) > vectors.cumsum(axis=1)).sum(axis=1).clip(0, 3)
            yield "classwise", y, vectors


def changed(p, size=0.1):
    """Probabilities of a second model, which is noisier."""
    q = (p + np.random.default_rng(9).normal(0, size, p.shape)).clip(1e-3, 1 - 1e-3)
    return q / q.sum(axis=1, keepdims=True) if p.ndim > 1 else q


def averaged(p):
    """Probabilities of a second model, nearly all the same."""
    return changed(np.full_like(p, p.mean()), 1e-3)


@pytest.mark.parametrize("method", ["basic", "percentile", "bca"])
def test_a_bootstrap_says_why_a_value_is_outside_its_interval(method):
    seen = set()
    for setting, y, p in models((12, 150)):
        options = {"setting": setting, "method": method, "n_resamples": 199, "rng": 0}
        for name, result in bootstrap(y, p, estimator=["ece", "brier_score"], **options).items():
            is_outside = lies_outside(result.value, result.confidence_interval)
            assert (OUTSIDE in str(result)) == is_outside
            assert (OUTSIDE in " ".join(result.notes)) == is_outside
            seen.add((name, is_outside))
    assert {("ece", False), ("brier_score", False)} <= seen
    assert method == "bca" or ("ece", True) in seen


def test_a_table_of_results_has_the_remark_once():
    _, y, p = list(models())[-1]
    y, p = RNG.permutation(y), np.full_like(p, 0.25) + RNG.normal(0, 1e-3, p.shape)
    p /= p.sum(axis=1, keepdims=True)
    options = {"setting": "classwise", "n_resamples": 199, "rng": 0}
    table = bootstrap(y, p, estimator=["ece", "ece_a", "ece_c"], n_bins=300, **options)
    assert str(table).count(OUTSIDE) == 1


@pytest.mark.slow
def test_an_estimate_says_why_a_value_is_outside_its_interval():
    seen = set()
    for setting, y, p in models((12, 150)):
        is_small = setting == "binary" and len(y) < 100
        for name in ("ece", "ece_bayes", "ece_sweep") if is_small else ("ece", "ece_bayes"):
            result = estimate(y, p, estimator=name, setting=setting, n_resamples=199)
            is_outside = lies_outside(result.value, result.confidence_interval)
            assert (OUTSIDE in str(result)) == is_outside
            seen.add((name, is_outside))
    assert {("ece_sweep", True), ("ece", False), ("ece_bayes", False)} <= seen
    assert ("ece_bayes", True) not in seen


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, "basic", "percentile", "bca"])
def test_a_comparison_explains_what_contradicts_itself(method):
    seen = set()
    for setting, y, p in models():
        for name, other in product(("ece", "brier_score"), (changed, averaged)):
            result = compare(
                y, p, other(p), estimator=name, setting=setting, method=method, n_resamples=199
            )
            interval = result.confidence_interval
            if np.isnan(interval.low):
                continue
            is_outside = lies_outside(result.value, interval)
            assert (OUTSIDE in str(result)) == is_outside
            excludes_zero = lies_outside(0.0, interval)
            disagree = (result.p_value < 0.05) != excludes_zero
            assert (DISAGREE in str(result)) == disagree
            seen |= {("outside", is_outside), ("disagree", disagree)}
    assert {("outside", False), ("disagree", False)} <= seen
    assert method == "bca" or ("outside", True) in seen


@pytest.mark.slow
def test_several_comparisons_explain_it_too():
    remarks = set()
    for setting, y, p in models():
        others = {"noisy": changed(p), "noisier": changed(changed(p))}
        results = compare(y, p, others, setting=setting, n_resamples=199)
        for result in results.values():
            disagree = (result.p_value < 0.05) != lies_outside(0.0, result.confidence_interval)
            assert (DISAGREE in " ".join(result.notes)) == disagree
            remarks.add(disagree)
    assert False in remarks


def test_a_slice_whose_size_is_uncertain_says_so():
    rng = np.random.default_rng(0)
    age, site = rng.integers(18, 91, 3000), rng.choice(["north", "south", "west"], 3000)
    p = rng.random(3000)
    y = rng.random(3000) < np.where(site == "west", p**1.5, p)
    seen = set()
    for power in (1.0, 1.1, 1.2):
        table = slices(y, p**power, by={"age": age, "site": site}, n_resamples=399)
        for row, line in zip(table, str(table).splitlines()[2:], strict=False):
            is_uncertain = row.p_value <= 0.05 and row.low <= 0
            assert ("size uncertain" in line) == is_uncertain
            seen.add(is_uncertain)
    assert seen == {True, False}


def test_a_slice_and_a_direction_say_what_noise_does():
    seen = set()
    for setting, y, p in models():
        if setting != "classwise" or len(y) < 100:
            continue
        by = np.arange(len(y)) % 2
        table = slices(y, p, by=by, estimator="ece", setting=setting, n_resamples=199)
        for row, line in zip(table, str(table).splitlines()[2:], strict=False):
            is_outside = lies_outside(row.value, row.confidence_interval)
            assert ("noise puts the value outside" in line) == is_outside
            seen.add(is_outside)
        parts = direction(y, p, setting=setting, n_resamples=199)
        lines = str(parts).splitlines()[2:5]
        pairs = [
            (parts.error, parts.error_interval),
            (parts.over, parts.over_interval),
            (parts.under, parts.under_interval),
        ]
        for line, pair in zip(lines, pairs, strict=True):
            assert ("noise puts the value outside" in line) == lies_outside(*pair)
    assert seen == {True, False}


@pytest.mark.slow
def test_a_page_says_how_many_of_all_slices_it_shows(tmp_path, capsys):
    """A headline of six miscalibrated slices does not stand above a table that lists three."""
    rng = np.random.default_rng(0)
    p, site = rng.random(6000), rng.choice(list("abcdef"), 6000)
    y = rng.random(6000) < p**2
    path = tmp_path / "sites.csv"
    rows = "".join(f"{a:d},{b:.6f},{c}\n" for a, b, c in zip(y, p, site, strict=True))
    path.write_text(f"y_true,y_prob,site\n{rows}")
    for options in ([], ["--full"]):
        main(["report", str(path), "--by", "site", "--resamples", "199", *options])
        page = capsys.readouterr().out
        assert options or "6 slices show miscalibration" in page
        _, _, table = page.partition("Slices by site")
        title, _, *lines = table.splitlines()
        n_shown = sum(line.lstrip()[:2].rstrip() in set("abcdef") for line in lines[:6])
        assert n_shown == (6 if options else 3)
        assert ("3 of 6" in title) == (n_shown == 3)
