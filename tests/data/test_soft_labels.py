"""Soft labels: values in plain loops, hard labels as a special case, votes as rows of one group."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import fastece
from fastece import SKCE, InputError
from fastece.estimators.table import ESTIMATORS

# They leave out a row by itself.
REFUSED = {"canonical", "skce"}
KNOWN = [*(name for name in ESTIMATORS if name not in REFUSED), SKCE("biased")]
FEW = ("ece", "ece_a", "ece_c", "ece_kde", "smooth_ece", "brier_score", "c_statistic")


def binary(n=120, seed=0, votes=5):
    """Votes, numbers of votes, scores, weights and groups."""
    rng = np.random.default_rng(seed)
    s = np.round(rng.random(n), 2)
    m = rng.integers(1, votes + 1, n)
    k = rng.binomial(m, rng.beta(3 * s + 0.01, 3.01 - 3 * s))
    return k, m, s, rng.exponential(size=n), rng.integers(0, 40, n)


def classes(n=100, k=3, seed=0):
    """Shares of classes, some of them 0, and class vectors."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    q = rng.multinomial(6, p) / 6
    return q, p


# --- values ---------------------------------------------------------------------------------


def binned(q, s, w, n_bins):
    """Calibration error of equal-width bins, of soft outcomes."""
    gaps = dict.fromkeys(range(n_bins), 0.0)
    for y, x, v in zip(q, s, w, strict=True):
        inside = [b for b in range(n_bins) if b / n_bins < x <= (b + 1) / n_bins]
        gaps[inside[0] if inside else 0] += v * (y - x)
    return sum(map(abs, gaps.values())) / sum(w)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_means_over_shares(weighted):
    k, m, s, w, _ = binary()
    w = w if weighted else np.ones(s.size)
    q, options = k / m, {"sample_weight": w if weighted else None}
    for data in ({"y_true": q, "soft": True}, {"y_true": k, "votes": m}):
        data |= {"y_prob": s, **options}
        assert fastece.ece(**data, n_bins=10) == pytest.approx(binned(q, s, w, 10), abs=1e-14)
        brier = np.average((s - q) ** 2 + q * (1 - q), weights=w)  # with the votes' own variance
        assert fastece.brier_score(**data) == pytest.approx(brier, rel=1e-12)
        clipped = s.clip(1e-9, 1 - 1e-9)
        loss = -np.average(q * np.log(clipped) + (1 - q) * np.log(1 - clipped), weights=w)
        assert fastece.log_loss(**data, clip=1e-9) == pytest.approx(loss, rel=1e-12)
        diagram = fastece.reliability_diagram(**data, n_bins=1)
        assert diagram.frequency[0] == pytest.approx(np.average(q, weights=w), rel=1e-12)
        assert diagram.count[0] == pytest.approx(w.sum(), rel=1e-12)


def test_values_of_class_vectors():
    q, p = classes()
    n = len(q)
    top = q[range(n), p.argmax(1)]
    assert fastece.ece(q, p, soft=True) == pytest.approx(binned(top, p.max(1), np.ones(n), 15))
    each = [binned(q[:, k], p[:, k], np.ones(n), 15) for k in range(3)]
    got = fastece.ece(q, p, soft=True, setting="classwise", average=None)
    np.testing.assert_allclose(got, each, rtol=1e-12)
    assert fastece.ece(q, p, soft=True, setting=2) == pytest.approx(each[2])
    assert fastece.accuracy(q, p, soft=True) == pytest.approx(top.mean())
    brier = ((p - q) ** 2 + q * (1 - q)).sum(1).mean()
    assert fastece.brier_score(q, p, soft=True) == pytest.approx(brier)
    assert fastece.log_loss(q, p, soft=True) == pytest.approx(-(q * np.log(p)).sum(1).mean())
    votes = np.rint(6 * q)
    got = fastece.ece(votes, p, votes=np.full(n, 6))
    assert got == pytest.approx(fastece.ece(q, p, soft=True), rel=1e-12)
    z = np.log(p)
    assert fastece.ece(q, z, soft=True, from_logits=True) == pytest.approx(
        fastece.ece(q, p, soft=True)
    )


def test_two_classes_in_all_forms():
    k, m, s, _, _ = binary()
    q, pair = k / m, np.column_stack([1 - s, s])
    for setting in ("confidence", 0, 1):
        values = {
            fastece.ece(y, p, soft=True, setting=setting)
            for y in (q, q[:, None], np.column_stack([1 - q, q]), list(q))
            for p in (s, pair)
        }
        assert max(values) - min(values) < 1e-15


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8))
def test_any_shares_have_values(rows):
    q, s = np.transpose(rows)
    value = fastece.ece(q, s, soft=True, n_bins=3)
    assert value == pytest.approx(binned(q, s, np.ones(len(q)), 3), abs=1e-12)
    order = np.random.default_rng(0).permutation(len(q))
    assert fastece.ece(q[order], s[order], soft=True, n_bins=3) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", KNOWN, ids=str)
def test_weights_scale_and_rows_of_weight_0_do_not_exist(name):
    k, m, s, w, _ = binary(60)
    options = {"estimator": name, "votes": m}
    value = fastece.ece(k, s, sample_weight=w, **options)
    assert fastece.ece(k, s, sample_weight=8 * w, **options) == pytest.approx(value, rel=1e-12)
    kept = np.arange(60) % 3 > 0
    some = fastece.ece(k[kept], s[kept], votes=m[kept], estimator=name)
    assert fastece.ece(k, s, sample_weight=kept, **options) == pytest.approx(some, rel=1e-9)
    none = fastece.ece(k * kept, s, votes=m * kept, estimator=name)
    assert none == pytest.approx(some, rel=1e-9)


# --- hard labels, and votes one by one ----------------------------------------------------------


@pytest.mark.parametrize("name", KNOWN, ids=str)
def test_shares_of_0_and_1_are_hard_labels(name):
    """To the bit, whatever the function."""
    _, _, s, w, _ = binary()
    y = (np.random.default_rng(1).random(s.size) < s).astype(int)
    for soft in (
        {"y_true": y.astype(float), "soft": True},
        {"y_true": y, "soft": True},
        {"y_true": 4 * y, "votes": np.full(s.size, 4)},
    ):
        for weight in (None, w):
            value = fastece.ece(y, s, estimator=name, sample_weight=weight)
            options = {"estimator": name, "sample_weight": weight}
            assert fastece.ece(y_prob=s, **soft, **options) == pytest.approx(value, rel=0, abs=0)


@pytest.mark.slow
def test_results_of_hard_labels_are_the_same():
    _, _, s, _, g = binary()
    y = (np.random.default_rng(1).random(s.size) < s).astype(int)
    soft, data = {"soft": True}, (y.astype(float), s)
    few = {"n_resamples": 99, "estimator": "ece"}
    for function in (fastece.estimate, fastece.calibration_test, fastece.direction):
        assert function(*data, **soft, **few).to_dict() == function(y, s, **few).to_dict()
    want = fastece.compare(y, s, s**2, n_resamples=99)
    assert fastece.compare(y.astype(float), s, s**2, soft=True, n_resamples=99).to_dict() == (
        want.to_dict()
    )
    want = fastece.calibration_report(y, s, n_resamples=19, groups=g, by=g % 3)
    got = fastece.calibration_report(*data, **soft, n_resamples=19, groups=g, by=g % 3)
    assert got.to_dict() == want.to_dict()


def one_by_one(k, m, s, *others):
    """A row for each vote, with the number of its row, and a weight of 1 for each row."""
    row = np.repeat(np.arange(k.size), m)
    place = np.concatenate([np.arange(x) for x in m])
    y = (place >= (m - k)[row]).astype(int)
    return y, s[row], row, 1 / m[row], *(x[row] for x in others)


@pytest.mark.slow
def test_votes_are_rows_of_one_group():
    k, m, s, _, g = binary()
    y, p, row, w, group = one_by_one(k, m, s, g)
    few = {"n_resamples": 199, "rng": 1}
    for name in FEW:
        if name == "ece_kde":  # whose bandwidth knows the number of rows
            continue
        got = fastece.bootstrap(k, s, votes=m, estimator=name, **few)
        want = fastece.bootstrap(y, p, groups=row, sample_weight=w, estimator=name, **few)
        assert got.value == pytest.approx(want.value, rel=1e-12)
        np.testing.assert_allclose(
            got.bootstrap_distribution, want.bootstrap_distribution, rtol=1e-9, atol=1e-12
        )
        assert (got.n, got.n_groups, want.n) == (s.size, None, row.size)
        got = fastece.bootstrap(k, s, votes=m, estimator=name, groups=g, **few)
        want = fastece.bootstrap(y, p, groups=group, sample_weight=w, estimator=name, **few)
        np.testing.assert_allclose(
            got.bootstrap_distribution, want.bootstrap_distribution, rtol=1e-9, atol=1e-12
        )
        assert (got.n, got.n_groups) == (s.size, np.unique(g).size)


@pytest.mark.slow
def test_statistics_go_by_the_rows_and_not_by_votes():
    k, m, s, _, _ = binary(400)
    y, p, *_ = one_by_one(k, m, s)
    assert fastece.ece(k, s, votes=m, n_bins="sqrt") == fastece.ece(k, s, votes=m, n_bins=20)
    curve = fastece.reliability_curve(k, s, votes=m, estimator="ece_kde")
    hard = fastece.reliability_curve(s > 0.5, s, estimator="ece_kde")
    assert curve.bandwidth == pytest.approx(hard.bandwidth, rel=1e-12)
    rows = fastece.reliability_curve(k, s, votes=m).rows
    assert rows.max() < 0.2 * 400
    many = fastece.ece(5 * y, p, votes=np.full(y.size, 5), estimator="ece_bayes")  # all agree
    assert many == fastece.ece(y, p, estimator="ece_bayes")
    noisy = fastece.ece(k, s, votes=m, estimator="ece_bayes")
    assert noisy < 0.06  # and not what votes that are as good as rows would say
    report = fastece.calibration_report(k, s, votes=m, n_resamples=19)
    assert report.n == 400
    assert "(votes, Kish)" in str(report)
    assert report.n_effective > 400


@pytest.mark.slow
def test_slices_count_rows():
    k, m, s, _, g = binary()
    found = fastece.slices(k, s, votes=m, by=g % 2, n_resamples=19)
    assert sorted(x.n for x in found) == sorted(np.bincount(g % 2).tolist())
    sizes = fastece.slices(k, s, votes=m, by=np.arange(s.size), bins=4, n_resamples=19)
    assert max(abs(x.n - 30) for x in sizes) < 2
    q, p = classes()
    found = fastece.slices(q, p, soft=True, setting="classwise", n_resamples=19)
    assert {x.label: x.n for x in found} == dict(enumerate((q > 0).sum(0).tolist()))


@pytest.mark.slow
def test_every_function_takes_soft_labels():
    """With class vectors too, and with the same weight for all as without."""
    k, m, s, w, g = binary()
    q, p = classes()
    few = {"n_resamples": 19}
    for data in ({"y_true": k, "y_prob": s, "votes": m}, {"y_true": q, "y_prob": p, "soft": True}):
        n = len(data["y_prob"])
        for options in ({}, {"sample_weight": w[:n]}, {"groups": g[:n]}):
            for function in (
                fastece.estimate, fastece.calibration_test, fastece.direction, fastece.bootstrap,
                fastece.calibration_report,
            ):  # fmt: skip
                assert function(**data, **options, **few).n == n
            prob = data["y_prob"]
            rest = {x: y for x, y in data.items() if x != "y_prob"}
            compared = fastece.compare(y_prob_a=prob, y_prob_b=prob, **rest, **options, **few)
            assert compared.method == "mover"
        assert fastece.brier_decomposition(**data).n == n
        assert fastece.score_decomposition(**data).n == n
        assert fastece.ece(**data, estimator=SKCE("biased")) > 0
        assert fastece.KDE().bandwidth_sweep(**data, bandwidths=[0.1]).shape == (1,)
    fastece.cumulative_plot(k, s, votes=m, ax=Figure().subplots())
    valid = fastece.validate(k, s, votes=m, **few)
    assert valid.n == s.size
    assert valid.observed_rate.value == pytest.approx(np.mean(k / m))
    weighted = fastece.validate(k, s, votes=m, sample_weight=np.full(s.size, 3.0), **few)
    assert weighted.slope.confidence_interval == pytest.approx(valid.slope.confidence_interval)


# --- refusals -----------------------------------------------------------------------------------


def test_columns_groups_and_sums_of_soft_labels_are_checked():
    shares = [[0.2, 0.3, 0.5], [0.1, 0.2, 0.7]]
    columns = ["cat", "cow", "dog"]
    p = pd.DataFrame(shares, columns=columns)
    q = pd.DataFrame(shares, columns=columns)
    assert fastece.ece(q, p, soft=True) == fastece.ece(shares, shares, soft=True)
    with pytest.raises(InputError, match="must have y_prob's columns, \\['cat', 'cow', 'dog'\\]"):
        fastece.ece(q[columns[::-1]], p, soft=True)
    with pytest.raises(InputError, match="at least 2 soft labels"):
        fastece.estimate([0.5, 0.2], [0.2, 0.4], soft=True, sample_weight=[1, 0])
    short = np.array([[0.5, 0.3, 0.1], [0.1, 0.2, 0.7]])
    with pytest.warns(UserWarning, match="1 of 2 rows do not sum to 1") as caught:
        fastece.ece(shares, short, soft=True)
    assert len(caught) == 1


@pytest.mark.slow
def test_what_cannot_take_soft_labels_says_so():
    k, m, s, _, _ = binary()
    q, p = classes()
    for estimator in ("canonical", SKCE(form="unbiased")):
        for function in (fastece.ece, fastece.bootstrap, fastece.calibration_test):
            with pytest.raises(InputError, match="y_true: must not be soft for the"):
                function(q, p, soft=True, estimator=estimator)
    with pytest.raises(InputError, match="rows_needed simulates rows of one label"):
        fastece.rows_needed(k, s, votes=m, width=0.1)
    report = fastece.calibration_report(q, p, soft=True, n_resamples=19)
    assert [x.name for x in report.vectors.lines] == ["skce"]


# --- guarantees -------------------------------------------------------------------------------


def opinions(law, rng, c):
    """Shares (n,) of a calibrated model's rows, or of one whose outcomes have the means c."""
    if law == "none":
        return c
    if law == "sure":  # labels that are nearly hard
        return np.where(rng.random(c.size) < (c - 0.03) / 0.94, 0.97, 0.03)
    if law == "few":  # nearly all the same, and a few that are open
        return np.where(rng.random(c.size) < (c - 0.02) / 0.48, 0.5, 0.02)
    return rng.beta(law * c, law * (1 - c))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "votes", "low", "high"),
    [
        (0.2, 5, 0.0, 1.0), ("few", None, 0.03, 0.3),
        ("sure", None, 0.05, 0.95),
    ],
)  # fmt: skip
def test_calibrated_models_are_rejected_as_often_as_they_may(law, votes, low, high):
    """In 60 samples, 5 %: more than 15 % by chance alone once in 1000 such tests."""
    rejected = []
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        s = rng.uniform(low, high, 120)
        q = opinions(law, rng, s)
        data = {"soft": True} if votes is None else {"votes": np.full(120, votes)}
        y = q if votes is None else rng.binomial(votes, q)
        found = fastece.calibration_test(y, s, n_resamples=99, rng=seed, **data)
        rejected.append(found.p_value <= 0.05)
    assert np.mean(rejected) <= 0.15


@pytest.mark.slow
@pytest.mark.parametrize(("law", "votes"), [(0.05, 5), (3.0, None)])
def test_intervals_of_soft_labels_cover(law, votes):
    """Intervals of 40 calibrated models and of 40 that are off: 72 or more cover the error.

    If 96 % do, fewer come by chance once in 200 such tests.
    """
    held = {"ece_bayes": [], "ece": []}
    for seed in range(80):
        rng = np.random.default_rng([seed, 6])
        s = rng.beta(5, 1.5, 150)
        c = s - 0.3 * s * (1 - s) * (seed % 2)
        truth = 0.3 * (5 * 1.5) / (6.5 * 7.5) * (seed % 2)  # the mean of s (1 - s)
        q = opinions(law, rng, c)
        data = {"soft": True} if votes is None else {"votes": np.full(150, votes)}
        y = q if votes is None else rng.binomial(votes, q)
        found = fastece.estimate(y, s, estimator=[*held], n_resamples=199, **data)
        for name, result in found.items():
            low, high = result.confidence_interval
            held[name].append(low <= truth <= high)
    for name, covered in held.items():
        assert np.sum(covered) >= 72, name
