"""The gate: verdicts follow from intervals, and other programs can read its files."""

import json
import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t

import fastece
from fastece import Accumulator, check, compare, estimate, slices
from helpers import strategies as cases
from helpers.bad_input import assert_refused
from helpers.probes import Mean

VERDICTS = {True: "passes", False: "fails", None: "cannot tell"}


def data(n=600, seed=0):
    """Labels, probabilities, and slices; slices b and c are over-confident."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    by = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    power = np.where(by == "a", 1.0, 2.5)
    return (rng.random(n) < p**power).astype(np.int64), p, by


def verdict_of(interval, bound):
    """Apply the definition of a verdict."""
    low, high = interval
    if high <= bound:
        return "passes"
    return "fails" if low > bound else "cannot tell"


# --- verdicts -------------------------------------------------------------------------------


@pytest.mark.parametrize(("estimator", "level"), [("ece_bayes", 0.95), ("ece", 0.9)])
def test_the_verdict_compares_the_interval_of_the_error_with_the_bound(estimator, level):
    y, p, _ = data()
    options = {"estimator": estimator, "confidence_level": level, "n_resamples": 199}
    expected = estimate(y, p, **options)
    low, high = expected.confidence_interval
    assert 0 < low < high < 0.5
    for bound in (low / 2, low, (low + high) / 2, high - 1e-6, high + 1e-12, 0.9):
        result = check(y, p, max_error=bound, **options)
        assert result.value == expected.value
        assert result.confidence_interval == pytest.approx((low, high), rel=1e-9)
        assert VERDICTS[result.passed] == verdict_of(result.confidence_interval, bound)
        assert (result.rows_needed is None) == (result.passed is not None)
        assert (result.n, result.setting, result.confidence_level) == (600, "binary", level)
    assert check(y, p, max_error=high + 1e-12, **options).passed
    assert check(y, p, max_error=low / 2, **options).passed is False


def test_an_upper_end_at_the_bound_passes_and_a_lower_one_cannot_tell():
    y, p, _ = data()
    low, high = check(y, p, max_error=0.5).confidence_interval
    assert check(y, p, max_error=high).passed is True
    assert check(y, p, max_error=math.nextafter(high, 0)).passed is None
    assert check(y, p, max_error=low).passed is None
    assert check(y, p, max_error=math.nextafter(low, 0)).passed is False


@pytest.mark.slow
@given(cases.binary(max_size=25), st.data())
@settings(max_examples=15)
def test_verdicts_grow_with_the_bound_and_ignore_the_scale_of_weights_and_the_order(rows, draw):
    y, p = rows
    weight = draw.draw(cases.integer_weights(len(y), 1))
    order = draw.draw(st.permutations(range(len(y))))
    bounds = (1e-6, 0.02, 0.2, 0.6, 1.0)
    options = {"sample_weight": weight, "min_rows": 1}
    results = [check(y, p, max_error=x, **options) for x in bounds]
    ranks = [["fails", "cannot tell", "passes"].index(VERDICTS[x.passed]) for x in results]
    assert ranks == sorted(ranks)  # with the bound
    assert ranks[-1] == 2
    bound = float(np.clip(draw.draw(st.floats(0.01, 0.99)), 0.01, 0.99))
    first = check(y, p, max_error=bound, **options)
    for other in (
        check(y, p, max_error=bound, sample_weight=7.0 * weight, min_rows=1),
        check(y[order], p[order], max_error=bound, sample_weight=weight[order], min_rows=1),
    ):
        assert other.value == pytest.approx(first.value, abs=1e-9)
        if min(abs(bound - x) for x in first.confidence_interval) > 1e-9:
            assert other.passed == first.passed


@pytest.mark.parametrize(
    ("y", "p"),
    [([1], [0.3]), ([0, 1], [0.0, 1.0]), ([0] * 50, [0.0] * 50), ([1] * 50, [0.0] * 50),
     ([0, 1] * 20, [0.5] * 40), ([1] * 30, np.linspace(0, 1, 30))],
)  # fmt: skip
@pytest.mark.parametrize("estimator", ["ece_bayes", "ece"])
def test_rows_of_any_kind_have_a_verdict(y, p, estimator):
    result = check(y, p, max_error=0.1, estimator=estimator, n_resamples=99)
    assert VERDICTS[result.passed] == verdict_of(result.confidence_interval, 0.1)
    assert (result.rows_needed is None) == (result.passed is not None)


def test_a_value_that_is_not_defined_cannot_tell():
    y, p, _ = data(50)
    result = check(y, p, max_error=0.1, estimator="ece", norm=math.inf, min_count=1e6)
    assert math.isnan(result.value)
    assert (result.passed, result.rows_needed) == (None, None)
    assert result.line == "cannot tell: calibration error - (95 % CI -), at most 0.1 allowed"


@pytest.mark.parametrize("estimator", ["ece_bayes", "ece_kde", "canonical"])
def test_class_vectors_weights_and_groups_are_judged_as_estimated(estimator):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 90)
    y = np.array([rng.choice(3, p=row) for row in p])
    options = {"estimator": estimator, "n_resamples": 99, "sample_weight": rng.integers(0, 3, 90),
               "groups": np.arange(90) // 3}  # fmt: skip
    result = check(y, p, max_error=0.2, **options)
    expected = estimate(y, p, **options)
    assert result.confidence_interval == pytest.approx(expected.confidence_interval, rel=1e-9)
    assert (result.n, result.n_groups, result.setting) == (
        expected.n,
        expected.n_groups,
        expected.setting,
    )
    assert f"{result.estimator}" == expected.estimator


def test_a_stream_is_judged_by_its_sums():
    y, p, _ = data(2000)
    rows = Accumulator().update(y, p)
    result = check(rows, max_error=0.5)
    assert result.confidence_interval == pytest.approx(estimate(rows).confidence_interval)
    assert result.passed
    with pytest.raises(ValueError, match="check needs every row by itself"):
        check(rows, max_error=0.5, by=y)
    with pytest.raises(TypeError, match="baseline: goes with arrays"):
        check(rows, max_error=0.5, baseline=p, max_increase=0.0)


# --- slices and a baseline ------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["ece_bayes", "ece"])
def test_intervals_of_all_parts_hold_at_the_same_time(estimator):
    y, p, by = data(800)
    options = {"estimator": estimator, "n_resamples": 999}
    q = p**1.3
    result = check(y, p, max_error=0.1, by=by, baseline=q, max_increase=0.02, **options)
    level = 1 - 0.05 / 5  # all rows, three slices, the increase
    all_rows, *parts, increase = result.rows
    assert all_rows.label == "all rows"
    assert all_rows.confidence_interval == pytest.approx(
        estimate(y, p, confidence_level=level, **options).confidence_interval, rel=1e-9
    )
    expected = {
        f"slice {x.label}": x for x in slices(y, p, by=by, confidence_level=1 - 0.03, **options)
    }
    assert {x.label for x in parts} == set(expected)
    for part in parts:
        row = expected[part.label]
        assert (part.n, part.value, part.bound) == (row.n, row.value, 0.1)
        assert part.confidence_interval == pytest.approx((row.low, row.high), rel=1e-9)
    pair = compare(y, p, q, confidence_level=level, **options)
    assert (increase.label, increase.bound) == ("increase over the baseline", 0.02)
    assert increase.value == pair.value
    assert increase.confidence_interval == pytest.approx(pair.confidence_interval, rel=1e-9)
    for row in result.rows:
        assert row.verdict == verdict_of(row.confidence_interval, row.bound)


def test_every_part_has_to_pass():
    y, p, by = data(3000)
    verdicts = {x.label: x.verdict for x in check(y, p, max_error=0.1, by=by).rows}
    assert verdicts["slice a"] == "passes"
    assert verdicts["slice b"] == "fails"
    assert check(y, p, max_error=0.1, by=by).passed is False
    result = check(y, p, max_error=0.1, by=by)
    assert result.line.startswith("fails: calibration error of slice ")
    assert "passes" in [x.verdict for x in result.rows]
    assert check(y, p, max_error=0.6, by=by).passed is True
    assert check(y, p, max_error=0.6, by=by, baseline=y, max_increase=0.0).passed is False
    result = check(y, p, max_error=0.6, baseline=p, max_increase=0.0)
    assert result.passed is True  # the same model
    assert result.rows[1].confidence_interval == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("off", [False, True])
def test_slices_together_err_as_rarely_as_one(off):
    """Eight slices, all calibrated and far below the bound, or one of them at it."""
    verdicts = []
    for k in range(60):
        rng = np.random.default_rng([3, k])
        p = rng.uniform(0.2, 0.8, 2400)
        by = np.arange(2400) % 8
        gap = np.where(by == 0, 0.1 if off else 0.0, 0.0)
        result = check(rng.random(2400) < p + gap, p, max_error=0.1, by=by)
        assert len(result.rows) == 9
        verdicts.append(result.passed)
    # If 5 % are wrong, more than 9 of 60 samples are in one of 1000 cases.
    if off:
        assert verdicts.count(True) <= 9
    assert verdicts.count(False) <= 9


def test_slices_of_few_rows_are_listed_and_not_judged():
    y, p, by = data(400)
    count = int((by == "c").sum())
    result = check(y, p, max_error=0.4, by={"site": by}, min_rows=count + 1)
    *judged, last = result.rows
    assert len(judged) == 3
    assert (last.label, last.n, last.verdict) == ("slice site c", count, "not judged")
    assert math.isnan(last.value)
    assert last.line == f"not judged: slice site c has {count} rows, fewer than {count + 1}"
    assert "not judged" in str(result)
    # The others share the risk.
    assert judged[0].confidence_interval == pytest.approx(
        estimate(y, p, confidence_level=1 - 0.05 / 3).confidence_interval, rel=1e-9
    )
    assert len(check(y, p, max_error=0.4, by=by, min_rows=count).rows) == 4
    alone = check(y, p, max_error=0.4, by=by, min_rows=len(y))
    assert [x.verdict for x in alone.rows] == ["passes", *["not judged"] * 3]
    assert alone.passed


@pytest.mark.parametrize("max_error", [0.001, 0.9])
def test_field_fewer_rows_than_asked_for_cannot_tell(max_error):
    y, p, _ = data(60)
    p = 1 - p  # surely miscalibrated
    result = check(y, p, max_error=max_error, min_rows=100)
    assert result.passed is None
    assert result.rows_needed >= 100
    assert result.line.startswith("cannot tell: ")
    assert result.line.endswith(f"about {result.rows_needed} rows would decide, and there are 60")
    assert check(y, p, max_error=max_error, min_rows=60).passed is (max_error == 0.9)


def test_labels_that_look_like_other_parts_are_slices():
    y, p, _ = data(300)
    by = np.where(np.arange(300) % 2, "all rows", "increase over the baseline")
    result = check(y, p, max_error=0.5, by=by)
    assert result.rows[0].n == 300
    assert {x.label for x in result.rows[1:]} == {
        "slice all rows",
        "slice increase over the baseline",
    }


# --- O/E ------------------------------------------------------------------------------------


def rare_events(n=20000, ratio=1.0, seed=0):
    """Labels, probabilities and slices of some 0.8 %; O/E is near a ratio."""
    rng = np.random.default_rng(seed)
    p = np.exp(rng.normal(-5.2, 0.8, n)).clip(0, 0.2)
    by = rng.choice(["a", "b"], n)
    return (rng.random(n) < ratio * p).astype(np.int64), p, by


def interval_of_oe(y, p, groups=None, level=0.95):
    """O/E and its interval on the log scale, by the formula."""
    ratio = y.sum() / p.sum()
    terms = (y - ratio * p) / y.sum()
    quantile = norm.ppf((1 + level) / 2)
    if groups is not None:
        n_groups = groups.max() + 1
        terms = np.bincount(groups, weights=terms) * math.sqrt(n_groups / (n_groups - 1))
        quantile = t.ppf((1 + level) / 2, n_groups - 1)
    reach = quantile * math.sqrt(terms @ terms)
    return ratio, (ratio * math.exp(-reach), ratio * math.exp(reach))


def ratio_verdict(interval, bound):
    """Apply the definition of a verdict on O/E."""
    low, high = interval
    if low >= 1 / bound and high <= bound:
        return "passes"
    return "fails" if low > bound or high < 1 / bound else "cannot tell"


@pytest.mark.parametrize("ratio", [0.5, 0.8, 1.0, 1.34, 2.0])
@pytest.mark.parametrize("has_groups", [False, True])
def test_a_bound_on_oe_is_compared_with_the_interval_of_its_logarithm(ratio, has_groups):
    y, p, _ = rare_events(ratio=ratio)
    groups = np.arange(y.size) // 50 if has_groups else None
    value, interval = interval_of_oe(y, p, groups)
    verdicts = set()
    for bound in (1.05, 1.25, 1.5, 3.0):
        result = check(y, p, max_ratio=bound, groups=groups)
        assert result.value == pytest.approx(value)
        assert result.confidence_interval == pytest.approx(interval)
        assert VERDICTS[result.passed] == ratio_verdict(interval, bound)
        assert (result.rows_needed is None) == (result.passed is not None)
        (row,) = result.rows
        assert (row.bound, row.least) == (bound, 1 / bound)
        verdicts.add(result.passed)
    assert len(verdicts) > 1


def test_an_error_that_passes_may_have_an_oe_that_fails():
    y, p, _ = rare_events(ratio=2.0)
    assert check(y, p, max_error=0.02).passed
    result = check(y, p, max_ratio=1.25)
    assert result.passed is False
    assert str(result) == result.line
    low, high = result.confidence_interval
    expected = (
        f"fails: O/E {result.value:.2f} (95 % CI {low:.2f} to {high:.2f}), 0.8 to 1.25 allowed"
    )
    assert result.line == expected
    assert result.to_dict()["rows"][0]["least"] == 0.8
    assert check(y, p, max_error=0.02).to_dict()["rows"][0]["least"] is None


@pytest.mark.slow
def test_slices_have_to_pass_a_bound_on_oe_too_at_the_same_time():
    y, p, by = rare_events()
    p = np.where(by == "b", p / 3, p)
    result = check(y, p, max_ratio=1.5, by=by)
    level = 1 - 0.05 / 3
    parts = {row.label: row for row in result.rows}
    for label in ("a", "b"):
        value, interval = interval_of_oe(y[by == label], p[by == label], level=level)
        assert parts[f"slice {label}"].confidence_interval == pytest.approx(interval)
        assert parts[f"slice {label}"].value == pytest.approx(value)
    assert parts["slice b"].verdict == "fails"
    assert result.passed is False
    assert result.line.startswith("fails: O/E of slice b ")
    assert str(result).splitlines()[1].split()[:3] == ["part", "rows", "O/E"]
    assert "0.6667 to 1.5" in str(result).splitlines()[2]
    assert result.to_frame()["verdict"].tolist() == [row.verdict for row in result.rows]
    few = check(y, p, max_ratio=1.5, by=np.arange(y.size) < 100, min_rows=200)
    assert [row.verdict for row in few.rows].count("not judged") == 1


def test_few_events_cannot_tell_and_none_where_many_are_expected_fails():
    y = np.zeros(2000, int)
    y[:9] = 1
    few = check(y, np.full(2000, 1e-5), max_ratio=1.25)
    assert few.confidence_interval.low > 1.25
    assert few.passed is None
    assert few.rows_needed >= 2200
    y[9] = 1
    assert check(y, np.full(2000, 1e-5), max_ratio=1.25).passed is False
    none = check(np.zeros(2000, int), np.full(2000, 0.01), max_ratio=1.25)
    assert none.passed is False  # the exact upper end is 3.7 events, and 20 are expected
    unknown = check(np.zeros(2000, int), np.full(2000, 0.001), max_ratio=1.25)
    assert (unknown.passed, unknown.rows_needed) == (None, None)
    assert unknown.line.endswith("without events it is not known how many rows would decide")


def test_events_that_had_no_probability_fail():
    y = np.arange(100) % 2
    result = check(y, np.zeros(100), max_ratio=2.0)
    assert result.passed is False
    assert result.to_dict()["value"] == "inf"


@pytest.mark.filterwarnings("ignore:.*so these are labels")
def test_counts_and_weights_are_those_of_the_rows():
    y, p, _ = rare_events(4000, ratio=2.0)
    count = np.random.default_rng(0).integers(1, 4, 4000)
    expanded = check(np.repeat(y, count), np.repeat(p, count), max_ratio=1.25)
    counted = check(y, p, max_ratio=1.25, counts=count)
    assert counted.confidence_interval == pytest.approx(expanded.confidence_interval)
    assert (counted.n, counted.passed) == (expanded.n, expanded.passed)
    weighted = check(y, p, max_ratio=1.25, sample_weight=np.full(4000, 7.0))
    plain = check(y, p, max_ratio=1.25)
    assert weighted.confidence_interval == pytest.approx(plain.confidence_interval)
    # One row that outweighs all others is one event.
    heavy = np.where(np.cumsum(y) * y == 1, 1e9, 1.0)
    assert check(y, p, max_ratio=1.25, sample_weight=heavy).passed is None


@pytest.mark.parametrize("side", [1.25, 1 / 1.25])
@pytest.mark.parametrize("expected_events", [0.1, 4, 20, 160])
def test_models_at_a_bound_on_oe_seldom_pass_or_fail(side, expected_events):
    """Each share of 600 is at most 0.08: at the level of 0.05, it is larger once in 2000 tests."""
    n = 10**6
    rng = np.random.default_rng(int(expected_events * 10 * side))
    rate = expected_events / n
    events = rng.binomial(n, side * rate, 600)
    verdict_of_count = {}
    for count in set(events.tolist()):
        table = {"counts": [count, n - count]} if 0 < count < n else {"counts": [n]}
        y = [1, 0] if 0 < count < n else [0]
        verdict_of_count[count] = check(y, [rate] * len(y), max_ratio=1.25, **table).passed
    verdicts = [verdict_of_count[count] for count in events.tolist()]
    assert np.mean([verdict is True for verdict in verdicts]) <= 0.08
    assert np.mean([verdict is False for verdict in verdicts]) <= 0.08


@pytest.mark.slow
def test_the_rows_needed_for_a_bound_on_oe_decide_in_most_samples():
    """With 0.5 as the true share of 16 samples that decide, 3 or fewer do once in 94 tests."""
    y, p, _ = rare_events(5000)
    needed = check(y, p, max_ratio=1.25).rows_needed
    assert 5000 < needed < 10**6
    decided = [
        check(*rare_events(needed, seed=seed)[:2], max_ratio=1.25).passed is not None
        for seed in range(1, 17)
    ]
    assert sum(decided) > 3


# --- how many rows --------------------------------------------------------------------------


def rows_by_hand(n, low, high, bound):
    """Twice the rows with which the interval leaves out the bound, to two digits."""
    if low == 0:
        factor = 1.0
        while high / math.sqrt(factor) > bound:
            factor *= 1.0001
    else:
        factor = 1.0
        middle = (low + high) / 2
        half = (high - low) / 2
        while half / math.sqrt(factor) > max(abs(bound - middle), half / 5):
            factor *= 1.0001
    return 2 * n * factor


@pytest.mark.parametrize("bound", [0.01, 0.03, 0.06, 0.08, 0.1, 0.12])
def test_rows_needed_are_twice_those_of_an_interval_so_short(bound):
    for seed, power in ((0, 1.0), (1, 1.3)):
        rng = np.random.default_rng(seed)
        p = rng.random(500)
        result = check(rng.random(500) < p**power, p, max_error=bound)
        if result.passed is None:
            want = rows_by_hand(500, *result.confidence_interval, bound)
            assert result.rows_needed == pytest.approx(want, rel=0.06)
            assert f"about {result.rows_needed} rows would decide, and there are 500" in result.line


def test_rows_needed_with_slices_are_of_the_whole_file():
    y, p, by = data(600, seed=3)
    result = check(y, p, max_error=0.2, by=by)
    assert result.passed is None
    unsure = [x for x in result.rows if x.verdict == "cannot tell"]
    largest = max(x.rows_needed / x.n for x in unsure)
    assert result.rows_needed == pytest.approx(600 * largest, rel=0.05)


def test_rows_needed_are_at_most_a_billion():
    result = check([0, 1], [0.1, 0.9], max_error=1e-6)
    assert result.rows_needed == 10**9


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "bound"), [(0.0, 0.05), (0.0, 0.02), (0.4, 0.03), (0.2, 0.06)])
def test_with_the_rows_needed_most_samples_decide(shift, bound):
    def draw(rng, n):
        p = rng.beta(5, 1.5, n)
        return rng.random(n) < 1 / (1 + (1 - p) / p * np.exp(shift)), p

    decided = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        result = check(*draw(rng, 1000), max_error=bound)
        if result.passed is None:
            decided.append(
                check(*draw(rng, result.rows_needed), max_error=bound).passed is not None
            )
    assert len(decided) > 10
    assert np.mean(decided) > 0.55  # 0.7 to 1 in the cases of docs/evidence/decisions.md


# --- output ---------------------------------------------------------------------------------


def test_a_line_on_a_slice_has_the_rows_of_all_slices():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p
    by = np.where(np.arange(500) < 400, "large", "small")
    result = check(y, p, max_error=0.08, by=by)
    assert "calibration error of slice small" in result.line
    needed = {row.label: row.rows_needed for row in result.rows}["slice small"]
    assert result.line.endswith(
        f"about {result.rows_needed} rows in total ({needed} in this slice) would decide, and "
        "there are 500 (100)"
    )
    table = result.to_frame().set_index("part")
    assert table.loc["slice small", ["rows_needed", "in_total"]].tolist() == [
        needed,
        result.rows_needed,
    ]
    (small,) = [row for row in result.rows if row.label == "slice small"]
    assert small.rows_needed == pytest.approx(result.rows_needed / 5, rel=0.1)


def test_one_error_is_one_line_and_several_have_a_table():
    y, p, by = data(3000)
    one = check(y, p, max_error=0.5)
    assert str(one) == one.line
    assert one.line.startswith("passes: calibration error 0.")
    assert one.line.endswith("at most 0.5 allowed")
    several = str(check(y, p, max_error=0.5, by=by)).splitlines()
    assert "(joint 95 % CI" in several[0]
    assert several[1].split()[:3] == ["part", "rows", "error"]
    assert "  joint 95 % CI  " in several[1]
    assert len(several) == 6
    rng = np.random.default_rng(0)
    grouped = check(rng.random(40) < 0.5, rng.random(40), max_error=0.5, groups=np.arange(40) // 8)
    assert "5 groups are few" in str(grouped)


def test_dictionaries_and_frames_have_every_part():
    y, p, by = data(300)
    result = check(y, p, max_error=0.1, by=by, min_rows=50)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["passed"] == result.passed
    assert [x["label"] for x in plain["rows"]] == [x.label for x in result.rows]
    assert plain["rows"][-1]["value"] is None
    frame = result.to_frame()
    assert frame["verdict"].tolist() == [x.verdict for x in result.rows]
    assert frame["low"][0] == result.rows[0].confidence_interval.low


def parse(text):
    """Test suite of a JUnit file, by an XML parser."""
    return ElementTree.fromstring(text.encode())


def test_a_junit_file_has_a_case_for_every_part():
    y, p, by = data(3000)
    result = check(y, p, max_error=0.1, by=by, min_rows=600)
    suite = parse(result.to_junit("a.csv"))
    assert suite.tag == "testsuite"
    counts = {"passes": 0, "fails": 0, "skipped": 0}
    for case, row in zip(suite, result.rows, strict=True):
        assert case.attrib == {"classname": "a.csv", "name": row.label}
        (child,) = case
        assert child.text == row.line
        kind = {"system-out": "passes", "failure": "fails"}.get(child.tag, child.tag)
        assert kind == {"passes": "passes", "fails": "fails"}.get(row.verdict, "skipped")
        counts[kind] += 1
    assert all(counts.values())
    numbers = {key: str(x) for key, x in {"tests": len(result.rows), "failures": counts["fails"],
               "errors": 0, "skipped": counts["skipped"]}.items()}  # fmt: skip
    assert suite.attrib == {"name": "a.csv", **numbers}


@pytest.mark.slow
@given(st.text(min_size=1, max_size=8).filter(str.strip), st.text(max_size=8))
@settings(max_examples=15)
def test_any_text_makes_valid_xml(label, title):
    title += "<&>\"'\x00\x1b\ud800\uffff]]>"
    y, p, _ = data(40)
    by = np.array([label, "other"], dtype=object)[np.arange(40) % 2]
    result = check(y, p, max_error=0.9, by=by, min_rows=30)
    suite = parse(result.to_junit(title))
    assert len(suite) == len(result.rows)
    names = [case.attrib["name"] for case in suite]
    if label.isascii() and label.isprintable():
        assert f"slice {label}" in names
    assert "<&>" in suite.attrib["name"]


def test_markdown_is_escaped():
    y, p, _ = data(100)
    by = np.where(np.arange(100) % 2, "a|b", "<b>*x*")
    text = check(y, p, max_error=0.9, by=by).to_markdown()
    assert "a\\|b" in text
    assert "\\<b\\>\\*x\\*" in text


# --- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error"),
    [({"max_error": 0}, ["max_error", "from 1e-06 to 1", "got 0"]),
     ({"max_error": 5}, ["max_error", "from 1e-06 to 1", "got 5"]),
     ({"max_error": "5 %"}, ["max_error", "must be a number", "5 %"]),
     ({"max_error": math.nan}, ["max_error", "nan"]),
     ({"max_increase": 0.1}, ["max_increase", "goes with baseline="]),
     ({"baseline": [0.5] * 8}, ["max_increase", "goes with baseline=, which needs it"]),
     ({"baseline": [0.5] * 8, "max_increase": 2}, ["max_increase", "from -1 to 1", "got 2"]),
     ({"baseline": [0.5] * 7, "max_increase": 0}, ["8 rows, but baseline has 7"]),
     ({"baseline": [0.5] * 7 + [1.5], "max_increase": 0}, [r"baseline\[7\] is 1.5"]),
     ({"baseline": np.full((8, 3), 1 / 3), "max_increase": 0},
      ["baseline: must have the classes and .* of y_prob, 2 .* got 3"]),
     ({"min_rows": 0}, ["min_rows", "got 0"]),
     ({"min_rows": 2.5}, ["min_rows", "2.5"]),
     ({"average": None}, ["average", "left out"]),
     ({"estimator": ["ece", "mce"]}, ["estimator", "not a list"]),
     ({"estimator": "brier_score"}, ["estimator", "no calibration error"]),
     ({"estimator": Mean(), "n_resamples": 0}, ["n_resamples", "got 0"]),
     ({"by": [1, 2]}, ["by"]),
     ({"by": [None] * 8}, ["by"]),
     ({"groups": [0] * 8}, ["groups", "at least 2"]),
     ({"nonsense": 3}, ["nonsense", "option of check"]),
     ({"max_error": None}, ["max_error", "must be given", "max_ratio= is a bound on O/E"]),
     ({"max_ratio": 1.5}, ["max_ratio", "goes without max_error="]),
     ({"max_error": None, "max_ratio": 1.0}, ["max_ratio", "greater than 1", "got 1.0"]),
     ({"max_error": None, "max_ratio": "2"}, ["max_ratio", "must be a number", "'2'"]),
     ({"max_error": None, "max_ratio": 2, "baseline": [0.5] * 8, "max_increase": 0},
      ["max_ratio", "goes without baseline="]),
     ({"max_error": None, "max_ratio": 2, "estimator": "ece"},
      ["estimator", "goes with max_error="]),
     ({"max_error": None, "max_ratio": 2, "setting": "classwise"}, ["setting", "of one event"]),
     ({"estimator": "oe"}, ["estimator", "O/E is no error", "pass max_ratio= in place of"]),
     ({"confidence_level": 95}, ["confidence_level", "95"])],
)  # fmt: skip
def test_bad_input_is_named(options, error):
    y = np.arange(8) % 2
    p = np.linspace(0.1, 0.9, 8)
    assert_refused(lambda: check(y, p, **{"max_error": 0.1, **options}), error)


def test_models_whose_classes_are_in_another_order_are_refused():
    pd = pytest.importorskip("pandas")
    a = pd.DataFrame({"cat": [0.2, 0.7], "dog": [0.8, 0.3]})
    with pytest.raises(fastece.InputError) as error:
        check(["dog", "cat"], a, max_error=0.5, baseline=a[["dog", "cat"]], max_increase=0.1)
    assert error.value.argument == "baseline"
    assert "of y_prob, ['cat', 'dog']" in str(error.value)
