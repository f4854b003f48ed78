"""What a library does that nobody expects, and where `fastece.compat` differs on purpose."""

import numpy as np
import pytest

import fastece
from fastece.compat import netcal, relplot, sklearn
from fastece.compat import uncertainty_calibration as kumar
from fastece.compat.conventions import CONVENTIONS
from fastece.compat.hle import calib_err, calibration_error
from helpers.compat_cases import RANDOM_LABELS, library, quietly
from oracles import reference_compat as reference

pytestmark = RANDOM_LABELS


# --- netcal ---------------------------------------------------------------------------------


@pytest.fixture
def peer_of_netcal():
    library("netcal")
    return library("netcal.metrics")


def test_lists_of_arrays_need_batched_as_in_netcal():
    sets = [np.array([0.2, 0.7]), np.array([0.4, 0.9])]
    labels = [np.array([0, 1]), np.array([1, 1])]
    metric = netcal.ECE(10)
    with pytest.raises(TypeError, match=r"X: is a list of arrays.*batched=True averages"):
        metric.measure(sets, labels)
    with pytest.raises(TypeError, match="X: must be a list of arrays"):
        metric.measure(np.array(sets), labels, batched=True)
    with pytest.raises(TypeError, match="y: must be a list of arrays"):
        metric.measure(sets, np.array(labels), batched=True)
    assert metric.measure(sets, labels, batched=True) == pytest.approx((0.25 + 0.35) / 2)


@pytest.mark.parametrize("equal_intervals", [True, False])
@pytest.mark.parametrize("metric", ["ECE", "MCE", "ACE"])
def test_batched_data_give_the_mean(metric, equal_intervals):
    rng = np.random.default_rng(2)
    x = [rng.random(n) for n in (9, 30, 31)]
    y = [rng.integers(0, 2, n) for n in (9, 30, 31)]
    measure = getattr(netcal, metric)(4, equal_intervals).measure
    values = [measure(scores, hits) for scores, hits in zip(x, y, strict=True)]
    for lists in ((x, y), (tuple(x), tuple(y))):
        assert measure(*lists, batched=True) == pytest.approx(np.mean(values), abs=1e-14)
    with pytest.raises(ValueError, match=r"X|y"):
        measure(x, y[:2], batched=True)
    with pytest.raises(ValueError, match=r"X|y"):
        measure([], [], batched=True)


def test_bins_may_be_a_list_of_one():
    x = [0.2, 0.6, 0.9]
    y = [0, 1, 1]
    want = netcal.ECE(7).measure(x, y)
    assert netcal.ECE((7,)).measure(x, y) == netcal.ECE([7]).measure(x, y) == want
    with pytest.raises((ValueError, TypeError), match="bins"):
        netcal.ECE((7, 7)).measure(x, y)


def test_detection_takes_confidences_alone():
    x = np.array([0.2, 0.6, 0.9])
    y = np.array([0, 1, 1])
    want = netcal.ECE(10).measure(x, y)
    assert netcal.ECE(10, detection=True).measure(x, y) == want
    assert netcal.ECE(10, detection=True).measure(x[:, None], y) == want


def test_two_labels_of_three_classes_have_a_value(peer_of_netcal):
    """netcal refuses them."""
    x = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]])
    y = np.array([0, 1, 0, 1])
    with pytest.raises(RuntimeError, match="binary classification problem"):
        peer_of_netcal.ECE(10).measure(x, y)
    # 0.5 and 0.6 are in one bin: the edge of numpy is the float above 0.6.
    want = (abs(0.5 - 0.6) + 0.2 + 0.4) / 4
    assert netcal.ECE(10).measure(x, y) == pytest.approx(want)


def test_equal_quantiles_make_empty_bins(peer_of_netcal):
    """netcal refuses equal edges."""
    x = np.array([0.2, 0.2, 0.2, 0.2, 0.9])
    y = np.array([0, 1, 0, 1, 1])
    with pytest.raises(ValueError, match="smallest edge difference"):
        quietly(peer_of_netcal.ECE(3, equal_intervals=False).measure, x, y)
    options = {"bins": 3, "equal_intervals": False, "sample_threshold": 1}
    want = reference.netcal_error("ECE", x.tolist(), y.tolist(), **options, kind=np.float64)
    got = netcal.ECE(3, equal_intervals=False).measure(x, y)
    assert got == pytest.approx(want, abs=1e-14)
    assert got == pytest.approx(0.8 * 0.3 + 0.2 * 0.1)
    with pytest.raises(ValueError, match="smallest edge difference"):
        quietly(peer_of_netcal.ECE(3, equal_intervals=False).measure, x[:1], y[:1])
    assert netcal.ECE(3, equal_intervals=False).measure(x[:1], y[:1]) == pytest.approx(0.2)


def test_float32_does_not_lose_rows(peer_of_netcal):
    """In netcal 0.9 in float32 is below the edge for counts, and on the edge for means."""
    x = np.array([0.2, 0.6, 0.9], dtype=np.float32)
    y = np.array([0, 1, 1])
    assert quietly(peer_of_netcal.ECE(10).measure, x, y) == pytest.approx(0.2, abs=1e-6)
    assert netcal.ECE(10).measure(x, y) == pytest.approx(0.7 / 3, abs=1e-7)


# --- uncertainty-calibration ----------------------------------------------------------------


@pytest.fixture
def peer_of_kumar():
    return library("calibration")


def test_discrete_scores_have_a_bin_each():
    """Fewer distinct scores than a quarter of the rows in every column, else 15 equal masses."""
    p = np.repeat([0.2, 0.7], 5)
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 0])
    got = kumar.get_calibration_error(p, y, p=1, debias=False)
    assert got == pytest.approx(0.05)
    # 2 is not below 8 / 4, so there are equal masses, with equal edges.
    shorter = np.repeat([0.2, 0.7], 4)
    got = kumar.get_calibration_error(shorter, y[:8], p=1, debias=False)
    want = reference.get_calibration_error(
        shorter.tolist(), y[:8].tolist(), 1, False, "marginal", np.float64
    )
    assert got == pytest.approx(want, abs=1e-14)


def test_debias_of_the_first_power_is_the_expectation(peer_of_kumar):
    """The library takes the mean of 1000 draws, another number each time; ours is exact."""
    rng = np.random.default_rng(6)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    np.random.seed(7)  # noqa: NPY002
    for function in ("get_ece", "get_ece_em"):
        draws = [getattr(peer_of_kumar, function)(p, y, debias=True, num_bins=5) for _ in range(30)]
        assert np.std(draws) > 1e-6
        got = getattr(kumar, function)(p, y, debias=True, num_bins=5)
        assert got == getattr(kumar, function)(p, y, debias=True, num_bins=5)
        assert abs(np.mean(draws) - got) < 5 * np.std(draws, ddof=1) / np.sqrt(30)
    draws = [peer_of_kumar.get_calibration_error(p, y, p=1) for _ in range(30)]
    got = kumar.get_calibration_error(p, y, p=1)
    assert abs(np.mean(draws) - got) < 5 * np.std(draws, ddof=1) / np.sqrt(30)


def test_debias_with_small_bins(peer_of_kumar):
    """The library refuses a bin of one row or none; ours adds nothing for it."""
    p = np.array([0.2, 0.6, 0.9])
    y = np.array([0, 1, 1])
    for function in ("get_ece", "get_ece_em"):
        with pytest.raises(ValueError, match="at least 2 points"):
            getattr(peer_of_kumar, function)(p, y, debias=True)
        got = getattr(kumar, function)(p, y, debias=True)
        assert got == pytest.approx((0.2 + 0.4 + 0.1) / 3)


# --- scikit-learn ---------------------------------------------------------------------------


def compare_curves(got, want):
    """Both arrays agree."""
    for array, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(array, expected, rtol=0, atol=1e-12)


def test_defaults_and_lists():
    y = [0, 0, 0, 0, 1, 1, 1, 1, 1]
    p = [0.1, 0.2, 0.3, 0.4, 0.65, 0.7, 0.8, 0.9, 1.0]
    true, pred = sklearn.calibration_curve(y, p, n_bins=3)
    np.testing.assert_allclose(true, [0, 0.5, 1], atol=1e-12)
    np.testing.assert_allclose(pred, [0.2, 0.525, 0.85], atol=1e-12)
    five = sklearn.calibration_curve(y, p, n_bins=5, strategy="uniform", pos_label=1)
    compare_curves(sklearn.calibration_curve(y, p), five)
    column = sklearn.calibration_curve(np.array(y)[:, None], np.array(p)[:, None])
    compare_curves(column, five)


def test_labels_are_taken_and_refused_like_by_the_library():
    peer = library("sklearn.calibration").calibration_curve
    p = [0.2, 0.6, 0.9]
    for y in ([1, 1, 1], [0, 0, 0], [-1, -1, -1], [True, False, True], [0.0, 1.0, 1.0]):
        compare_curves(sklearn.calibration_curve(y, p), peer(y, p))
    for y, options in (
        (["a", "b", "b"], {}),
        ([1, 2, 2], {}),
        ([0, 1, 2], {}),
        ([0, 1, 2], {"pos_label": 1}),
        ([0.5, 1, 1], {}),
    ):
        for function in (peer, sklearn.calibration_curve):
            with pytest.raises(ValueError, match=r"y_true|binary|label"):
                function(y, p, **options)


# --- relplot --------------------------------------------------------------------------------


@pytest.fixture
def peer_of_relplot():
    return library("relplot.metrics")


def test_scores_of_one_have_a_bin_of_their_own(peer_of_relplot):
    """A quirk that stays; only rounding of the width can put 1 into the last bin."""
    y = np.array([1, 0])
    for kind, n_bins, share in (
        (np.float64, 10, 0.525),
        (np.float32, 10, 0.525),
        (np.float32, 7, 0.475),  # 1 / (1 / 7) is 6.9999995 in float32
        (np.float64, 93, None),
    ):
        f = np.array([0.95 if n_bins < 93 else 0.999, 1.0], dtype=kind)
        got = relplot.binnedECE(f, y, n_bins)
        assert got == pytest.approx(peer_of_relplot.binnedECE(f, y, n_bins), abs=1e-7)
        assert share is None or got == pytest.approx(share, abs=1e-6)


def test_scores_beyond_the_last_bin_have_a_value(peer_of_relplot):
    """For some numbers of bins the library has no place for 1 in float32."""
    f = np.array([1.0, 0.5], dtype=np.float32)
    y = np.array([0, 0])
    for n_bins in (93, 99, 123, 186, 198):
        with pytest.raises(IndexError):
            peer_of_relplot.binnedECE(f, y, n_bins)
        assert relplot.binnedECE(f, y, n_bins) == pytest.approx(0.75)


# --- benchmarks of language models ----------------------------------------------------------


def answers(seed, n, levels=None):
    """Confidences, all different or with ties, and whether answers are right."""
    rng = np.random.default_rng(seed)
    s = rng.random(n) if levels is None else rng.integers(0, levels + 1, n) / levels
    return s, rng.random(n) < s**2


@pytest.mark.parametrize(("p", "power"), [("1", 1), ("2", 2), ("infty", "infty")])
@pytest.mark.parametrize(
    ("n", "beta"), [(1, 1), (5, 2), (99, 100), (250, 100), (830, 100), (40, 7)]
)
def test_runs_equal_the_reference(n, beta, p, power):
    s, y = answers(n, n)
    want = reference.calib_err(s.tolist(), y.tolist(), power, beta)
    got = calib_err(s, y, p, beta)
    assert isinstance(got, np.float64)
    assert got == pytest.approx(want, abs=1e-12)


def test_the_run_of_the_highest_confidences_is_left_out():
    s, y = answers(3, 300)
    surest = np.argsort(s)[200:]
    changed = y.copy()
    changed[surest] = ~y[surest]
    assert calib_err(s, y) == calib_err(s, changed)
    assert calib_err(*answers(4, 199)) == 0


def test_equal_confidences_are_in_the_order_of_the_sort_of_numpy():
    s, y = answers(5, 500, levels=4)
    order = np.argsort(s)
    apart = np.arange(500) * 1e-9  # no two are equal, in the same order
    spread = np.empty(500)
    spread[order] = s[order] * (1 - 1e-6) + apart
    assert calib_err(s, y) == pytest.approx(calib_err(spread, y), abs=1e-5)


def test_the_convention_has_the_last_run_too():
    s, y = answers(6, 730)
    binned = CONVENTIONS["hle"].binned(100, s, norm=2)
    assert len(binned.edges) == 8
    diagram = fastece.reliability_diagram(y, s, estimator=binned)
    assert diagram.count.tolist() == [100] * 6 + [130]
    last = np.argsort(s)[600:]
    square_of_last = 130 / 730 * (s[last].mean() - y[last].mean()) ** 2
    value = fastece.ece(y, s, estimator=binned)
    assert value**2 == pytest.approx(calib_err(s, y) ** 2 + square_of_last, abs=1e-12)
    assert len(CONVENTIONS["hle"].binned(100, s[:150]).edges) == 2


@pytest.mark.parametrize("n_bins", [1, 7, 10, 15])
def test_browse_comp_equals_the_reference(n_bins):
    for seed in range(20):
        s, y = answers(seed, 60, levels=[None, 10, 100][seed % 3])
        want = reference.browse_comp(s.tolist(), y.tolist(), n_bins)
        assert calibration_error(y, s, n_bins) == pytest.approx(want, abs=1e-12)


def test_browse_comp_of_whole_percents_is_the_usual_error():
    s = np.arange(101) / 100
    y = np.random.default_rng(7).random(101) < s
    assert calibration_error(y, s) == pytest.approx(fastece.ece(y, s, n_bins=10), abs=1e-12)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: calib_err([0.5, 1.5], [0, 1]), "confidence"),
        (lambda: calib_err([50, 95], [0, 1]), "confidence"),
        (lambda: calib_err([0.5, np.nan], [0, 1]), "confidence"),
        (lambda: calib_err([0.5, 0.9], [0, 2]), "correct"),
        (lambda: calib_err([0.5, 0.9], [0, 1], p="3"), "p"),
        (lambda: calib_err([0.5, 0.9], [0, 1], beta=0), "beta"),
        (lambda: calib_err([[0.5, 0.5]], [0]), "confidence"),
        (lambda: calibration_error([0, 1], [0.5, 0.9], num_bins=0.5), "num_bins"),
        (lambda: calibration_error([0, 1, 1], [0.5, 0.9]), "correct"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_argument(call, argument):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert caught.value.argument == argument
