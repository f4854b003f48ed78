"""The density based error: against brute force, its laws, and the protocol of estimators."""

from dataclasses import FrozenInstanceError, replace
from itertools import pairwise
from math import inf, isfinite, isnan, pi, sqrt

import kde_cases
import numpy as np
import pytest
import reference
import reference_kde as oracle
import strategies as cases
from kde_cases import KERNELS
from probes import Spy
from strategies import as_lists

import fastece
from fastece import KDE, bootstrap, calibration_test, compare, ece, mce
from fastece.estimators import ESTIMATORS
from fastece.protocol import Sample

SYMMETRIC = KERNELS[:3]
ROUNDS = 8
KDE_NAME = {"estimator": "ece_kde"}


def close(value, rel=1e-3):
    """Within what "auto" may be off."""
    return pytest.approx(value, rel=rel, abs=1e-6)


def same(value, rel=1e-12):
    return pytest.approx(value, rel=rel, abs=1e-15, nan_ok=True)


def kde(y, p, weight=None, **fields):
    return ece(y, p, estimator="ece_kde", sample_weight=weight, **fields)


def exact(y, p, weight=None, **fields):
    return oracle.kde_error((p, y, 0.0, 1.0), weight, **fields)


def smooth(n, seed=0, a=2.0, b=2.0):
    """(y_true, y_prob): scores without a pile, and hits that are not calibrated."""
    rng = np.random.default_rng(seed)
    s = rng.beta(a, b, n)
    return (rng.random(n) < s**1.3).astype(np.int64), s


def matrix(n, n_classes, seed=0):
    """(y_true, y_prob) of several classes."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, 0.6), n)
    return np.where(rng.random(n) < 0.7, p.argmax(1), rng.integers(0, n_classes, n)), p


# -- the estimator ---------------------------------------------------------------------------------


def test_the_table_holds_it_and_its_fields_have_defaults():
    assert ESTIMATORS["ece_kde"] == KDE()
    assert KDE() == KDE("silverman", "gaussian", 1.0, "support", "auto")
    assert KDE(bandwidth=0.1).bandwidth == 0.1
    assert len({KDE(bandwidth=0.1), KDE(), KDE()}) == 2
    assert "0.125" in repr(KDE(bandwidth=0.125))
    with pytest.raises(FrozenInstanceError):
        KDE().kernel = "beta"


def test_fields_replace_those_of_the_name_or_the_object():
    y, p = smooth(50)
    value = ece(y, p, estimator=KDE(bandwidth=0.05, kernel="triweight"))
    assert kde(y, p, bandwidth=0.05, kernel="triweight") == value
    assert ece(y, p, estimator=KDE(kernel="triweight"), bandwidth=0.05) == value
    assert isinstance(value, float)
    with pytest.raises(TypeError, match="n_bins"):
        kde(y, p, n_bins=3)


REFUSED = [
    *(("bandwidth", value) for value in (0, 0.0, -0.1, np.nan, inf, True, "scott", None, [0.1])),
    *(("kernel", value) for value in ("box", "", None, 3)),
    *(("norm", value) for value in (0.5, -1, np.nan, True, "two")),
    *(("grid_step", value) for value in (0, -0.01, np.nan, inf, True, "fine", None)),
    *(
        ("score_range", value)
        for value in ((0.5, 0.5), (0.7, 0.2), (-0.1, 1.0), (0.0, np.nan), "all", 3, (0.1, 0.2, 0.3))
    ),
]


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=repr)
def test_a_bad_field_is_refused_by_name(name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        kde([0, 1, 1], [0.2, 0.6, 0.9], **{name: value})


@pytest.mark.parametrize("value", ["scott", "box"])
def test_the_message_lists_what_is_known(value):
    name, known = {"scott": ("bandwidth", "silverman"), "box": ("kernel", "epanechnikov")}[value]
    with pytest.raises(ValueError, match=known):
        kde([0, 1], [0.2, 0.6], **{name: value})


# -- against brute force ---------------------------------------------------------------------------


@pytest.mark.parametrize("batch", range(ROUNDS))
@pytest.mark.parametrize("kernel", KERNELS)
def test_auto_is_within_a_thousandth_of_brute_force(kernel, batch):
    bad = []
    for seed in range(3):
        rng = np.random.default_rng([20, batch, seed])
        (y, s, w), fields = kde_cases.random_case(rng, kernel, 3000)
        got, want = kde(y, s, w, **fields), exact(y, s, w, **fields)
        if got != close(want):
            bad.append(((batch, seed), len(s), fields, got, want))
    assert not bad, bad


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_the_step_of_the_paper_is_fine_enough_for_wide_kernels(kernel, norm):
    y, s = smooth(800)
    for h in (0.02, 0.1, 0.4) if kernel != "beta" else (0.1, 0.4):
        fields = {"bandwidth": h, "kernel": kernel, "norm": norm}
        got = kde(y, s, grid_step=0.0003, **fields)
        assert got == pytest.approx(exact(y, s, **fields), rel=5e-3, abs=1e-6), h


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", ["silverman", 0.05])
def test_every_setting_is_brute_force_on_its_problems(kernel, bandwidth):
    fields = {"bandwidth": bandwidth, "kernel": kernel}
    weight = np.random.default_rng(3).random(150)
    for n_classes in (2, 3, 6):
        y, p = matrix(150, n_classes, n_classes)
        for w in (None, weight):
            for setting in ("confidence", 0, n_classes - 1, "auto", "classwise"):
                problems = reference.problems(*as_lists(y, p), setting)
                wanted = [oracle.kde_error(problem, w, **fields) for problem in problems]
                options = {**KDE_NAME, "setting": setting, "sample_weight": w, **fields}
                if setting == "classwise":
                    values = ece(y, p, average=None, **options)
                    assert values.shape == (n_classes,)
                    assert values.tolist() == close(wanted)
                    assert ece(y, p, **options) == same(values.mean())
                else:
                    assert ece(y, p, **options) == close(wanted[0]), (n_classes, setting)


def test_two_columns_are_a_binary_problem_too():
    y, s = smooth(90)
    value = kde(y, s)
    two = np.stack([1 - s, s], axis=1)
    assert kde(y, two, setting="binary") == same(value)
    assert kde(y, s, setting="binary") == same(value)
    assert kde(y, two, setting=1) == same(value)
    z = np.log(s) - np.log1p(-s)
    assert kde(y, z, from_logits=True) == same(value, 1e-9)
    single = s.astype(np.float32)
    assert kde(y, single) == same(kde(y, single.astype(np.float64)))
    assert kde(y.astype(bool), s.tolist()) == same(value)


def test_the_support_of_the_top_label_begins_at_one_class_in_k():
    y, p = matrix(120, 4)
    options = {**KDE_NAME, "setting": "confidence", "bandwidth": 0.1}
    value = ece(y, p, **options)
    assert ece(y, p, score_range="support", **options) == same(value)
    assert ece(y, p, score_range=(0.25, 1.0), **options) == same(value)
    problem = reference.problems(*as_lists(y, p), "confidence")[0]
    unit = oracle.kde_error(problem, bandwidth=0.1, score_range="unit")
    assert ece(y, p, score_range="unit", **options) == close(unit)
    assert abs(unit - value) > 2e-3 * value


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_outside_the_range_are_placed_at_its_end(kernel):
    y, s = smooth(200)
    fields = {"kernel": kernel, "score_range": (0.3, 0.8)}
    for h in (0.05, 0.3, "silverman"):
        value = kde(y, s, bandwidth=h, **fields)
        assert value == close(exact(y, s, bandwidth=h, **fields))
        assert kde(y, np.clip(s, 0.3, 0.8), bandwidth=h, **fields) == same(value)


@pytest.mark.parametrize("h", [1e-4, 0.003, 0.1])
def test_integrals_known_by_hand(h):
    assert kde([1, 1], [1.0, 1.0], bandwidth=h) == close(sqrt(2 / pi) * h)
    assert kde([0, 0], [0.0, 0.0], bandwidth=h) == close(sqrt(2 / pi) * h)
    assert kde([1], [1.0], bandwidth=h, norm=2) == close(h)
    assert kde([1], [1.0], bandwidth=h, kernel="triweight") == close(3 * h * 35 / 128)
    assert kde([1], [1.0], bandwidth=h, kernel="epanechnikov") == close(sqrt(5) * h * 3 / 8)
    assert kde([0], [0.5], bandwidth=h) == close(0.5)
    assert kde([0, 1], [0.5, 0.5], bandwidth=h) == close(sqrt(2 / pi) * h)


def test_many_rows_give_the_true_error():
    rng = np.random.default_rng(6)
    s = rng.beta(5, 1.5, 100_000)
    y = rng.random(len(s)) < s - 0.4 * s * (1 - s) * 0.5
    true = 0.2 * 5 * 1.5 / (6.5 * 7.5)
    for kernel in KERNELS:
        assert kde(y, s, kernel=kernel) == pytest.approx(true, abs=0.004)


# -- the largest gap -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("score_range", ["unit", (0.2, 0.9)])
def test_the_largest_gap_is_that_where_there_is_density(kernel, score_range):
    # On any grid the edge of "where f >= 0.01" is met but roughly: a smaller and a larger place.
    for seed in range(4):
        y, s = smooth(300, seed)
        for h in (0.02, 0.1):
            fields = {"bandwidth": h, "kernel": kernel, "score_range": score_range}
            for step, part in ((0.0003, 1.2), ("auto", 2.0)):
                got = kde(y, s, norm=inf, grid_step=step, **fields)
                least, most = (
                    exact(y, s, norm=inf, floor=floor, **fields)
                    for floor in (0.01 * part, 0.01 / part)
                )
                # Beta kernels change within h**2 of the ends, which even points do not see.
                slack = 2e-2 if kernel == "beta" and step != "auto" else 5e-3
                assert least - slack <= got <= most + slack, (seed, h, step)
            assert mce(y, s, grid_step=step, **KDE_NAME, **fields) == got


def test_the_largest_gap_may_be_at_an_end():
    for kernel in KERNELS:
        for y in (0, 1):
            # A kernel that is level all over: P(y = 1 | s) = y.
            assert mce([y], [0.5], bandwidth=10.0, kernel=kernel, **KDE_NAME) == pytest.approx(1)


def test_the_largest_gap_does_not_look_where_nothing_is():
    # Far from both heaps g / f is 0 or 1 and means nothing.
    s = np.repeat([0.3, 0.7], 50)
    y = np.tile([0, 0, 0, 1, 0, 1, 1, 1, 0, 1], 10)
    value = kde(y, s, bandwidth=0.01, norm=inf)
    assert value == pytest.approx(exact(y, s, bandwidth=0.01, norm=inf), abs=0.02)
    assert value < 0.35


# -- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", ["silverman", 0.03])
def test_scaling_all_weights_changes_nothing(kernel, bandwidth):
    y, s = smooth(120)
    fields = {"kernel": kernel, "bandwidth": bandwidth}
    weight = np.random.default_rng(1).random(120) + 0.1
    for norm in (1, 2):
        value = kde(y, s, weight, norm=norm, **fields)
        for scale in (0.1, 3.0, 1e-9, 1e9, 1e-150, 1e150, 1e-300, 1e300):
            assert kde(y, s, weight * scale, norm=norm, **fields) == same(value, 1e-9), scale
        once = kde(y, s, norm=norm, **fields)
        for scale in (0.1, 7.0, 1e-310, 1.7e308):
            assert kde(y, s, np.full(120, scale), norm=norm, **fields) == same(once, 1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("norm", [1.0, 2.0, inf])
def test_integer_weights_are_repetitions_for_a_fixed_bandwidth(kernel, norm):
    for seed in range(5):
        y, s = smooth(80, seed)
        s = s if seed % 2 else s.round(1)
        weight = np.random.default_rng(seed).integers(0, 5, 80)
        fields = {"kernel": kernel, "norm": norm, "bandwidth": (0.005, 0.05, 0.5)[seed % 3]}
        value = kde(y, s, weight, **fields)
        assert kde(np.repeat(y, weight), np.repeat(s, weight), **fields) == same(value, 1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", ["silverman", 0.03])
def test_rows_of_weight_zero_are_dropped(kernel, bandwidth):
    y, s = smooth(100)
    weight = np.random.default_rng(2).integers(0, 3, 100) * 0.7
    kept = weight > 0
    fields = {"kernel": kernel, "bandwidth": bandwidth}
    value = kde(y, s, weight, **fields)
    assert kde(y[kept], s[kept], weight[kept], **fields) == same(value)


def test_silverman_counts_rows_and_not_weights():
    y, s = smooth(60)
    rng = np.random.default_rng(4)
    for weight in (None, np.full(60, 9.0), rng.integers(0, 4, 60), 10 ** rng.uniform(-3, 3, 60)):
        n = 60 if weight is None else int((weight > 0).sum())
        h = oracle.silverman(s, weight, n)
        value = kde(y, s, weight)
        assert value == same(kde(y, s, weight, bandwidth=h), 1e-9)
        assert value == close(exact(y, s, weight))
    # hits and misses in two places: the posterior is 1/2 and the error grows with the bandwidth
    y, s = np.array([0, 0, 1, 1]), np.array([0.45, 0.55, 0.45, 0.55])
    twice = kde(np.repeat(y, 2), np.repeat(s, 2))
    assert kde(y, s, np.full(4, 2)) == same(kde(y, s), 1e-9)
    assert kde(y, s, np.full(4, 2)) > 1.02 * twice


@pytest.mark.parametrize(
    "s",
    [
        [0.2, 0.2, 0.2, 0.2, 0.8],  # IQR 0: left out
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],  # cuts between two scores
        [0.0, 0.45, 0.5, 0.55, 1.0, 0.52, 0.47],  # the IQR is the smaller one
        [0.5, 0.5 + 1e-9],  # the least bandwidth
        [0.05, 0.1, 0.6, 0.61, 0.99],
    ],
)
def test_silverman_by_the_rule(s):
    y = np.arange(len(s)) % 2
    for low, high in ((0.0, 1.0), (0.15, 0.58)):
        h = oracle.silverman(s, None, len(s), low, high)
        value = kde(y, s, score_range=(low, high))
        assert value == same(kde(y, s, score_range=(low, high), bandwidth=h), 1e-9)


# -- degenerate data -------------------------------------------------------------------------------

DEGENERATE = {
    "one hit": ([1], [0.3]),
    "one miss at 0": ([0], [0.0]),
    "one hit at 1": ([1], [1.0]),
    "no hits": (np.zeros(30, int), np.linspace(0, 1, 30)),
    "only hits": (np.ones(30, int), np.linspace(0, 1, 30)),
    "all equal": (np.arange(20) % 2, np.full(20, 0.37)),
    "all 0": (np.arange(20) % 2, np.zeros(20)),
    "all 1": (np.arange(20) % 2, np.ones(20)),
    "0 and 1": (np.arange(20) % 2, np.arange(20) // 10 * 1.0),
    "tiny": (np.arange(20) % 2, np.full(20, 5e-324)),
    "two neighbours": ([0, 1], [0.5, np.nextafter(0.5, 1)]),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("kernel", KERNELS)
def test_degenerate_data_have_an_error(name, kernel):
    # pytest makes errors of warnings
    y, s = DEGENERATE[name]
    for bandwidth in ("silverman", 0.003, 0.5, 3.0):
        for norm in (1, 2):
            fields = {"kernel": kernel, "bandwidth": bandwidth, "norm": norm}
            value = kde(y, s, **fields)
            assert isinstance(value, float)
            assert 0 <= value <= (1.5 if kernel == "beta" else 1 + 1e-9), fields
            assert value == close(exact(y, s, **fields)), fields
        worst = kde(y, s, kernel=kernel, bandwidth=bandwidth, norm=inf)
        assert 0 <= worst <= 1 or (kernel == "beta" and isnan(worst))


def test_beta_kernels_of_scores_at_the_ends_are_nothing():
    for s in ([0.0, 0.0], [1.0, 1.0], [0.0, 1.0]):
        assert kde([0, 1], s, kernel="beta", bandwidth=0.1) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_classes_that_are_absent_have_an_error(kernel):
    y, p = matrix(60, 3)
    never = np.append(p, np.zeros((60, 1)), axis=1)
    values = kde(y, never, setting="classwise", average=None, kernel=kernel)
    assert all(isfinite(value) for value in values)
    assert values[:3] == same(kde(y, p, setting="classwise", average=None, kernel=kernel))
    # all scores 0 without a hit: half a kernel of the least bandwidth
    if kernel == "gaussian":
        assert values[3] == close(sqrt(2 / pi) * 0.0003)
    without = kde(np.minimum(y, 1), p, setting="classwise", average=None, kernel=kernel)
    problem = reference.problems(*as_lists(np.minimum(y, 1), p), 2)[0]
    assert without[2] == close(oracle.kde_error(problem, kernel=kernel))


# -- laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_order_of_the_rows_does_not_matter(kernel):
    y, s = smooth(150)
    for scores in (s, s.round(1)):
        w = np.random.default_rng(5).random(150)
        order = np.random.default_rng(6).permutation(150)
        for bandwidth in ("silverman", 0.02):
            fields = {"kernel": kernel, "bandwidth": bandwidth}
            value = kde(y, scores, w, **fields)
            assert kde(y[order], scores[order], w[order], **fields) == same(value, 1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_exchanging_the_two_labels_mirrors_the_densities(kernel):
    rng = np.random.default_rng(7)
    s = rng.integers(0, 2**20, 90) / 2**20
    y = (rng.random(90) < s**2).astype(int)
    for bandwidth in ("silverman", 0.004, 0.2):
        fields = {"kernel": kernel, "bandwidth": bandwidth}
        assert kde(1 - y, 1 - s, **fields) == close(kde(y, s, **fields), 2.1e-3)


@pytest.mark.parametrize("kernel", SYMMETRIC)
def test_errors_grow_with_the_norm(kernel):
    for seed in range(5):
        y, s = smooth(60, seed, 0.7, 0.5)
        for bandwidth in ("silverman", 0.003, 0.3):
            fields = {"kernel": kernel, "bandwidth": bandwidth}
            values = [kde(y, s, norm=p, **fields) for p in (1, 1.5, 2, 4)]
            assert all(a <= b * 1.0021 + 2e-6 for a, b in pairwise(values)), values
            assert values[-1] <= 1.001


def test_inputs_are_not_modified():
    y, s = smooth(50)
    w = np.random.default_rng(8).random(50)
    copies = y.copy(), s.copy(), w.copy()
    for array in (y, s, w):
        array.flags.writeable = False
    value = kde(y, s, w)
    for array, copy in zip((y, s, w), copies, strict=True):
        assert np.array_equal(array, copy)
    assert kde(y, s, w) == value


# -- prepare, evaluate, block ----------------------------------------------------------------------

VARIANTS = {
    **{kernel: KDE(kernel=kernel) for kernel in KERNELS},
    **{f"{kernel}, narrow": KDE(0.004, kernel) for kernel in KERNELS},
    **{f"{kernel}, wide": KDE(0.3, kernel) for kernel in KERNELS},
    "norm 2": KDE(norm=2.0),
    "norm 1.5, narrow": KDE(0.01, norm=1.5),
    "mce": KDE(norm=inf),
    "mce, fixed": KDE(0.05, norm=inf),
    "unit": KDE(0.05, score_range="unit"),
    "range": KDE(score_range=(0.25, 0.6)),
    "range, beta": KDE(0.1, "beta", score_range=(0.25, 0.6)),
    "coarse": KDE(0.05, grid_step=0.01),
    "coarse, silverman": KDE(grid_step=0.01),
    "step of the paper": KDE(0.02, "triweight", grid_step=0.0003),
}


def samples():
    """name, Sample, sorted by score: ties, ends, one row, with and without weights."""
    rng = np.random.default_rng(30)
    sets = cases.score_sets()
    scores = {name: sets[name] for name in ("bell", "80 % zeros", "constant 0.3", "one row")}
    scores["hundredths"] = rng.beta(3, 1, 90).round(2)
    scores["spread"] = rng.random(200)
    for name, s in scores.items():
        n, low = len(s), 1 / 3 if name == "bell" else 0.0
        for kind, v in (("", None), (", weights", rng.random(n) + 0.01)):
            y, rows = cases.labels_for(s).astype(np.uint8), np.arange(n, dtype=np.int64)
            s = np.array(s, dtype=np.float64)
            yield name + kind, Sample(s, y, v, low, 1.0, rows).sorted()


def multiplicities(n, size, replicates=32, seed=0):
    """(n, replicates) uint8, each column a draw of `size` rows."""
    rng = np.random.default_rng(seed)
    c = rng.multinomial(size, np.full(n, 1 / n), size=replicates).T
    return np.ascontiguousarray(c.astype(np.uint8))


def sizes(n):
    return sorted({n, max(1, n // 3), min(2 * n + 1, 200)})


def rows_of(sample, c):
    """Hits, scores and weights of the drawn rows, each as often as it was drawn."""
    columns = sample.y, sample.s, sample.v
    return tuple(None if x is None else np.repeat(x, c) for x in columns)


@pytest.mark.parametrize("name", VARIANTS)
def test_evaluate_is_the_value_of_the_repeated_rows(name):
    estimator = VARIANTS[name]
    for case, sample in samples_for(estimator):
        whole = estimator
        if estimator.score_range == "support":
            whole = replace(estimator, score_range=(sample.low, sample.high))
        for size in sizes(sample.n):
            plan = estimator.prepare(sample, size)
            for c in multiplicities(sample.n, size, 3).T.copy():
                y, s, w = rows_of(sample, c)
                got = estimator.evaluate(plan, c)
                want = ece(y, s, sample_weight=w, estimator=whole)
                # Which scores have nodes of their own depends on their neighbours.
                slack = 1e-4 if estimator.kernel == "beta" else 1e-9
                assert got == same(want, slack), (case, size)


@pytest.mark.parametrize("name", [n for n, e in VARIANTS.items() if e.grid_step == "auto"])
def test_evaluate_is_brute_force_on_the_repeated_rows(name):
    estimator = VARIANTS[name]
    if estimator.norm == inf:
        pytest.skip("a maximum is not an integral")
    fields = {f: getattr(estimator, f) for f in ("bandwidth", "kernel", "norm", "score_range")}
    for case, sample in samples():
        for size in sizes(sample.n):
            c = multiplicities(sample.n, size, 1, seed=1)[:, 0].copy()
            y, s, w = rows_of(sample, c)
            want = oracle.kde_error((s, y, sample.low, sample.high), w, **fields)
            got = estimator.evaluate(estimator.prepare(sample, size), c)
            assert got == close(want), (case, size)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64])
def test_multiplicities_of_any_integers(dtype):
    sample = dict(samples())["spread, weights"]
    c = multiplicities(sample.n, sample.n, 1)[:, 0]
    for estimator in (KDE(), KDE(0.02, "epanechnikov")):
        plan = estimator.prepare(sample, sample.n)
        value = estimator.evaluate(plan, c.copy())
        assert estimator.evaluate(plan, c.astype(dtype)) == same(value)


def test_a_draw_may_hold_one_row_very_often():
    sample = dict(samples())["spread"]
    c = np.zeros(sample.n, np.int64)
    c[7] = 1000
    for estimator in (KDE(), KDE(0.02)):
        value = estimator.evaluate(estimator.prepare(sample, 1000), c)
        want = kde(sample.y[7:8], sample.s[7:8], bandwidth=estimator.bandwidth)
        assert value == same(want, 1e-9)


def slack_of(estimator):
    """Ratios of small densities are not as exact as integrals."""
    return 1e-9 if estimator.norm == inf else 1e-12


def lanes_of(estimator, count):
    """Some of the lanes, the first and the last of blocks among them; a maximum takes long."""
    some = [0, 17, 31] if estimator.norm == inf else [0, 1, 5, 16, 26, 31]
    return sorted({*some, *(r for r in (32, 50, 63, 64, 95) if r < count)})


def samples_for(estimator):
    """`samples`; of the least bandwidth the grids for a maximum are so fine that it takes long."""
    slow = estimator.norm == inf and estimator.bandwidth == "silverman"
    return [x for x in samples() if not (slow and x[0].startswith(("constant", "one", "80")))]


def method_of(estimator, name):
    method = getattr(estimator, name, None)
    if method is None:
        pytest.skip(f"{name} is optional, and there is none")
    return method


@pytest.mark.parametrize("name", VARIANTS)
def test_block_is_thirty_two_evaluations(name):
    estimator = VARIANTS[name]
    block = method_of(estimator, "block")
    for case, sample in samples_for(estimator):
        for size in sizes(sample.n):
            plan = estimator.prepare(sample, size)
            c = multiplicities(sample.n, size)
            values = np.asarray(block(plan, c))
            assert values.shape == (32,)
            lanes = lanes_of(estimator, 32)
            alone = [estimator.evaluate(plan, c[:, r].copy()) for r in lanes]
            assert values[lanes].tolist() == same(alone, slack_of(estimator)), (case, size)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("blocks_", [1, 3])
def test_blocks_are_evaluations(name, blocks_):
    estimator = VARIANTS[name]
    blocks = method_of(estimator, "blocks")
    for case, sample in samples_for(estimator):
        for size in sizes(sample.n)[-2:]:
            plan = estimator.prepare(sample, size)
            c = np.array([multiplicities(sample.n, size, 32, g) for g in range(blocks_)])
            values = np.asarray(blocks(plan, c))
            assert values.shape == (32 * blocks_,)
            lanes = lanes_of(estimator, 32 * blocks_)
            alone = [estimator.evaluate(plan, c[r // 32, :, r % 32].copy()) for r in lanes]
            assert values[lanes].tolist() == same(alone, slack_of(estimator)), (case, size)


@pytest.mark.parametrize("name", VARIANTS)
def test_subsets_are_evaluations(name):
    estimator = VARIANTS[name]
    subsets = method_of(estimator, "subsets")
    for case, sample in samples_for(estimator):
        for size in {1, 2, max(1, sample.n // 5)}:
            rng = np.random.default_rng(size)
            rows = rng.integers(0, sample.n, (7, size)).astype(np.int32)
            plan = estimator.prepare(sample, size)
            values = np.asarray(subsets(plan, rows.copy()))
            assert values.shape == (7,)
            alone = [
                estimator.evaluate(plan, np.bincount(line, minlength=sample.n)) for line in rows
            ]
            assert values.tolist() == same(alone, slack_of(estimator)), (case, size)


@pytest.mark.parametrize("kernel", KERNELS)
def test_tiny_weights_are_weights(kernel):
    s = np.random.default_rng(3).random(40)
    y = (s > 0.4).astype(np.int64)
    weight = np.where(np.arange(40) < 39, 1e-310, 1.0)
    for size in (None, 2):
        found = bootstrap(
            y, s, **KDE_NAME, kernel=kernel, sample_weight=weight, n_resamples=64, rng=0, size=size
        )
        assert np.isfinite(found.bootstrap_distribution).all()


def test_silverman_in_a_draw_counts_the_rows_drawn():
    sample = dict(samples())["spread, weights"]
    fixed = replace(KDE(), bandwidth=0.1)
    for size in (5, 50, 200):
        c = multiplicities(sample.n, size, 1)[:, 0].copy()
        _, s, w = rows_of(sample, c)
        h = oracle.silverman(s, w, size)
        fixed = KDE(bandwidth=h)
        value = KDE().evaluate(KDE().prepare(sample, size), c)
        assert value == same(fixed.evaluate(fixed.prepare(sample, size), c), 1e-9)


@pytest.mark.parametrize("name", VARIANTS)
def test_evaluate_leaves_plan_and_sample_as_they_were(name):
    estimator, sample = VARIANTS[name], dict(samples())["hundredths, weights"]
    copies = [np.array(x) for x in (sample.s, sample.y, sample.v, sample.rows)]
    plan = estimator.prepare(sample, sample.n)
    c = multiplicities(sample.n, sample.n, 5).T.copy()
    first = [estimator.evaluate(plan, column) for column in c]
    assert [estimator.evaluate(plan, column) for column in c] == same(first, 1e-15)
    for x, copy in zip((sample.s, sample.y, sample.v, sample.rows), copies, strict=True):
        assert np.array_equal(x, copy)


# -- resampling ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{}, {"bandwidth": 0.05}, {"kernel": "beta"}, {"norm": 2}])
@pytest.mark.parametrize("weighted", [False, True])
def test_replicates_are_values_of_the_drawn_rows(fields, weighted):
    for n, size in ((120, None), (120, 45), (900, 20)):
        y, s = smooth(n)
        w = np.random.default_rng(9).random(n) + 0.1 if weighted else None
        options = {"sample_weight": w, "size": size, "n_resamples": 40, "rng": 11}
        result = bootstrap(y, s, **KDE_NAME, **options, **fields)
        spy = Spy()
        drawn = spy.rows(bootstrap(y, s, estimator=spy, **options).bootstrap_distribution)
        assert result.estimate == kde(y, s, w, **fields)
        for value, rows in list(zip(result.bootstrap_distribution, drawn, strict=True))[::7]:
            again = kde(y[rows], s[rows], None if w is None else w[rows], **fields)
            # Which scores have nodes of their own depends on their neighbours.
            assert value == same(again, 1e-4 if "kernel" in fields else 1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("setting", ["binary", "classwise"])
def test_replicates_do_not_depend_on_the_threads(kernel, setting):
    y, p = smooth(300) if setting == "binary" else matrix(300, 3)
    options = {**KDE_NAME, "kernel": kernel, "setting": setting, "n_resamples": 100, "rng": 3}
    one, two = (bootstrap(y, p, n_jobs=jobs, **options) for jobs in (1, 2))
    assert one.bootstrap_distribution.shape == (100,)
    assert two.bootstrap_distribution.tolist() == same(one.bootstrap_distribution.tolist())
    more = bootstrap(y, p, **{**options, "rng": None, "n_resamples": 30}, bootstrap_result=one)
    whole = bootstrap(y, p, **{**options, "n_resamples": 130})
    assert more.bootstrap_distribution.tolist() == same(whole.bootstrap_distribution.tolist())
    low, high = one.confidence_interval
    assert 0 <= low <= high


def test_all_estimators_and_models_share_the_draws():
    y, s = smooth(200)
    other = np.clip(s + 0.1, 0, 1)
    options = {"n_resamples": 50, "rng": 4}
    both = bootstrap(y, s, estimator=["ece", "ece_kde"], **options)
    alone = bootstrap(y, s, **KDE_NAME, **options)
    distribution = both["ece_kde"].bootstrap_distribution
    assert distribution.tolist() == same(alone.bootstrap_distribution.tolist())
    result = compare(y, s, other, **KDE_NAME, **options)
    assert result.a == kde(y, s)
    assert result.b == kde(y, other)
    assert result.difference == same(result.a - result.b)
    second = bootstrap(y, other, **KDE_NAME, **options).bootstrap_distribution
    gaps = alone.bootstrap_distribution - second
    assert result.bootstrap_distribution == pytest.approx(gaps, abs=1e-12)
    nothing = compare(y, s, s, **KDE_NAME, **options)
    assert nothing.difference == 0
    assert nothing.p_value == 1


def test_methods_of_intervals():
    y, s = smooth(150)
    result = bootstrap(y, s, **KDE_NAME, n_resamples=99, rng=1)
    for method in ("basic", "percentile", "bca"):
        low, high = result.interval(0.9, method)
        assert 0 <= low <= high, method
    assert result.standard_error == same(result.bootstrap_distribution.std(ddof=1))
    assert "KDE" in str(result) or "ece_kde" in str(result)


@pytest.mark.parametrize("kernel", ["gaussian", "beta"])
def test_the_test_of_calibration_tells_calibrated_from_not(kernel):
    rng = np.random.default_rng(12)
    s = rng.beta(2, 2, 400)
    good, bad = rng.random(400) < s, rng.random(400) < s**2
    options = {**KDE_NAME, "kernel": kernel, "n_resamples": 199, "rng": 2}
    calibrated, off = (calibration_test(y, s, **options) for y in (good, bad))
    assert calibrated.statistic == kde(good, s, kernel=kernel)
    assert calibrated.null_distribution.shape == (199,)
    assert calibrated.p_value > 0.01
    assert off.p_value == pytest.approx(1 / 200)
    again = calibration_test(bad, s, n_jobs=2, **options)
    assert again.null_distribution.tolist() == same(off.null_distribution.tolist())


def test_labels_under_the_null_do_not_move_the_scores():
    # The bandwidth is one of the scores, which the null keeps: the same null for fixed and rule.
    y, s = smooth(100)
    h = oracle.silverman(s, None, 100)
    options = {**KDE_NAME, "n_resamples": 64, "rng": 2}
    rule, fixed = (calibration_test(y, s, bandwidth=b, **options) for b in ("silverman", h))
    assert rule.null_distribution.tolist() == same(fixed.null_distribution.tolist(), 1e-9)


# -- another package -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["gaussian", "triweight"])
@pytest.mark.parametrize("h", [0.02, 0.08])
def test_densities_are_those_of_another_package(kernel, h):
    # bw of KDEpy is the standard deviation, too; the mirrored data have three times the mass.
    kdepy = pytest.importorskip("KDEpy")
    y, s = smooth(1000)
    curve = fastece.reliability_curve(
        y, s, **KDE_NAME, bandwidth=h, kernel=kernel, grid_step=0.0003
    )
    grid = np.linspace(-1.5, 2.5, 2**15)

    def mirrored(part):
        fitted = kdepy.FFTKDE(kernel=kernel, bw=h).fit(np.concatenate([part, -part, 2 - part]))
        return 3 * np.interp(curve.score, grid, fitted.evaluate(grid))

    f, g = mirrored(s), mirrored(s[y == 1]) * y.mean()
    inner = (curve.score > 0.02) & (curve.score < 0.98)
    assert curve.density[inner] == pytest.approx(f[inner], abs=1e-3 * f.max())
    product = (curve.posterior * curve.density)[inner & curve.supported]
    assert product == pytest.approx(g[inner & curve.supported], abs=1e-3 * f.max())
