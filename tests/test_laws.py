"""Laws of every estimator of the table, and of bins, on data that hypothesis finds."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fastece
from fastece import ESTIMATORS, Accumulator
from fastece.data.options import ReadingOptions
from fastece.data.reading import read_problems
from helpers import strategies as cases
from helpers.bad_input import CLASS_TRUE, ROWS, assert_refused, put
from helpers.layouts import frozen, strided
from helpers.probes import Code, HitCode
from helpers.table import CASES, COUNT_ROWS, LOSSES, VECTORS, every_error, every_estimator, slack_of

# Labels that hypothesis draws may contradict their predictions.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*is it the probability of 1",
    "ignore:.*are labels and columns in the same order",
    "ignore:.*if they are counts of events",
)
SLACK = 1e-12
# The value of class vectors as a whole is not that of their top label.
CLASS_VECTORS = [name for name, estimator in ESTIMATORS.items() if estimator.needs_vectors]
norms = st.sampled_from([1.0, 2.0, 3.5, inf])
few = settings(max_examples=8)


def near(value, slack=SLACK):
    return pytest.approx(value, abs=slack, rel=slack, nan_ok=True)


def value_of(name, y, p, weight=None, **options):
    """Value of an estimator of the helpers' table."""
    return fastece.ece(y, p, estimator=CASES[name], sample_weight=weight, **options)


@st.composite
def problem(draw, name, smallest=0):
    """Labels, probabilities and integer weights for an estimator, at least two rows with any."""
    y, p = draw(cases.multiclass(max_size=12) if name in VECTORS else cases.binary(max_size=25))
    weight = draw(cases.integer_weights(len(y), smallest))
    if name in VECTORS:
        assume(np.count_nonzero(weight) > 1)
    return y, p, weight


def problems(seed=0, n=40, ties=False):
    """Labels, scores, class vectors and weights, for laws that need no search."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3)) * 2
    z = z.round(1) if ties else z
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    y = np.where(rng.random(n) < 0.6, p.argmax(axis=1), rng.integers(0, 3, n))
    return y, p, rng.integers(0, 3, n) + rng.random(n).round(2)


def data_of(name, **options):
    """The same as the estimator takes them in its own setting."""
    y, p, weight = problems(**options)
    return (y, p, weight) if name in VECTORS else (np.minimum(y, 1), p[:, 0], weight)


def rewritings(y, p, weight, order):
    """Other words for the same rows, and the law that says so."""
    yield "the order of the rows does not matter", y[order], p[order], weight[order]
    more = np.append(y, y[::-1]), np.concatenate([p, p[::-1]])
    yield "rows of weight 0 are dropped", *more, np.append(weight, 0 * weight)
    for scale in (3.0, 1e-150, 1e150, 1e-300, 1e300):
        yield f"weights times {scale} are the same", y, p, weight * scale


@every_estimator
@few
@given(st.data())
def test_other_words_for_the_same_rows_have_the_same_value(name, data):
    y, p, weight = data.draw(problem(name, smallest=1))
    order = data.draw(st.permutations(range(len(y))))
    value, slack = value_of(name, y, p, weight), slack_of(name)
    for law, *rows in rewritings(y, p, weight, order):
        assert value_of(name, *rows) == near(value, slack), law


@every_estimator
@few
@given(st.data())
def test_weights_and_counts_are_repetitions(name, data):
    y, p, counts = data.draw(problem(name, smallest=1))
    twice = np.repeat(y, counts), np.repeat(p, counts, axis=0)
    slack = slack_of(name)
    if name not in COUNT_ROWS:
        assert value_of(name, y, p, counts) == near(value_of(name, *twice), slack)
    if name in VECTORS:
        with pytest.raises(ValueError, match=r"^counts: must be left out .*np\.repeat"):
            value_of(name, y, p, counts=counts)
        return
    for weight in (None, np.linspace(0.5, 2, len(y))):
        value = value_of(name, *twice, None if weight is None else np.repeat(weight, counts))
        assert value_of(name, y, p, weight, counts=counts) == near(value, slack)


@every_estimator
def test_equal_weights_are_no_weights(name):
    for weight, ties in product([5e-324, 1e-310, 0.1, 1.7e308], [False, True]):
        y, p, _ = data_of(name, ties=ties)
        value = value_of(name, y, p, np.full(len(y), weight))
        assert value == near(value_of(name, y, p), slack_of(name)), (weight, ties)


@every_estimator
def test_class_by_class_values_are_those_of_each_class(name):
    y, p, weight = problems()
    each = value_of(name, y, p, weight, setting="classwise", average=None)
    slack = slack_of(name)
    assert each == near([value_of(name, y, p, weight, setting=k) for k in range(3)], slack)
    assert value_of(name, y, p, weight, setting="classwise") == near(each.mean(), slack)
    alone = [value_of(name, y == k, p[:, k], weight, setting="binary") for k in range(3)]
    if name not in LOSSES:
        assert each == near(alone, slack)


@every_error
def test_the_names_of_the_classes_do_not_matter(name):
    y, p, weight = problems()
    order = np.array([2, 0, 1])
    moved = np.argsort(order)[y], p[:, order]  # column j of the new matrix is column order[j]
    slack = slack_of(name)
    for setting in ("auto", "classwise"):
        value = value_of(name, y, p, weight, setting=setting)
        assert value_of(name, *moved, weight, setting=setting) == near(value, slack)
    by_label = value_of(name, y, p[:, order], weight, labels=order.tolist())
    assert by_label == near(value_of(name, *moved, weight), slack)


@every_estimator
def test_arrays_of_any_kind_have_the_same_value(name):
    y, p, weight = data_of(name)
    value, copies = value_of(name, y, p, weight), [a.copy() for a in (y, p, weight)]
    for array in (y, p, weight):
        array.flags.writeable = False
    assert value_of(name, y, p, weight) == value
    assert all(np.array_equal(a, b) for a, b in zip((y, p, weight), copies, strict=True))
    assert value_of(name, y.tolist(), p.tolist(), weight.tolist()) == value
    assert value_of(name, y.astype(float), np.asfortranarray(p), weight[::-1][::-1]) == value
    text = np.array(["a", "b", "c"])[y]
    assert value_of(name, text, p, weight, labels=list("abc")[: 1 + y.max()]) == value
    narrow = p.astype(np.float32)
    assert value_of(name, y, narrow) == near(value_of(name, y, narrow.astype(float)), 1e-6)


# Their plans have rows in the order of the scores, or counts as weights, and add up in this order:
# the last bits are not those of the rows as they come.
OTHER_ORDER = ["ece_a", "ece_ac", "ece_kde", "ece_debiased", "skce"]
WAYS = {
    "plain": {},
    "weights": {"weighted": True},
    "lists": {"lay": np.ndarray.tolist},
    "read-only": {"lay": frozen},
    "every third row": {"lay": strided},
    "float32": {"dtype": "f4", "digits": 2},
    "weights, ties": {"weighted": True, "digits": 1},
    "top label": {"setting": "confidence"},
    "class by class": {"setting": "classwise", "weighted": True},
    "class 1": {"setting": 1},
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_way_to_a_value_has_the_same_bits(name):
    """One number, whoever asks for it, and however the rows lie in memory."""
    for way in WAYS:
        check_ways_to_a_value(name, way)


def check_ways_to_a_value(name, way):
    value, y, p, options = value_and_data(name, **WAYS[way])
    as_lists = {k: v.tolist() if k == "sample_weight" else v for k, v in options.items()}
    assert fastece.ece(y.tolist(), p.tolist(), estimator=name, **as_lists) == value, way
    options["estimator"] = name
    assert fastece.bootstrap(y, p, n_resamples=2, rng=0, **options).value == value, way
    if ESTIMATORS[name].is_calibration_error:
        assert fastece.calibration_test(y, p, n_resamples=2, rng=0, **options).value == value, way
    by_protocol = value_by_protocol(y, p, **options)
    assert by_protocol == (near(value) if name in OTHER_ORDER else value), way


def value_and_data(
    name, setting="auto", weighted=False, lay=np.asarray, dtype="f8", digits=16, n=300
):
    """The value of rows in some layout, with the rows in numpy's, and the options."""
    rng = np.random.default_rng(len(name))
    p = rng.dirichlet(np.ones(3), n).round(digits)
    p[:, 0] += 1 - p.sum(axis=1)
    p = p.clip(0, 1).astype(dtype)
    y = np.where(rng.random(n) < 0.5, p.argmax(axis=1), rng.integers(0, 3, n))
    if setting == "auto" and name not in CLASS_VECTORS:
        p = p[:, 1].copy()
        y = (y == 1).astype(np.int64)
    options = {"setting": setting}
    if weighted:
        options["sample_weight"] = rng.random(n) + 0.1
    return fastece.ece(lay(y), lay(p), estimator=name, **options), y, p, options


def value_by_protocol(y, p, estimator, setting, sample_weight=None):
    """The value of samples that are prepared, and evaluated with counts of 1."""
    found = ESTIMATORS[estimator]
    problems = read_problems(
        y,
        p,
        ReadingOptions(setting=setting, sample_weight=sample_weight),
        vectors=found.needs_vectors,
    )
    samples = problems.samples()
    if found.needs_sorted:
        samples = [sample.sorted() for sample in samples]
    plans = [found.prepare(sample, sample.n) for sample in samples]
    values = [found.evaluate(plan, np.ones(problems.n, np.uint8)) for plan in plans]
    return float(np.mean(values)) if len(values) > 1 else values[0]


@every_estimator
def test_logits_are_their_probabilities(name):
    z = np.random.default_rng(3).normal(size=(50, 3)) * 3
    y, e = np.random.default_rng(4).integers(0, 3, 50), np.exp(z)
    p, slack = e / e.sum(axis=1, keepdims=True), max(slack_of(name), 1e-9)
    assert value_of(name, y, z, from_logits=True) == near(value_of(name, y, p), slack)
    scores = 1 / (1 + np.exp(-z[:, 0]))
    value = value_of(name, y > 0, z[:, 0], from_logits=True)
    assert value == near(value_of(name, y > 0, scores), slack)


BAD = {
    "y_prob.*5, 1": lambda call: call(CLASS_TRUE, put(ROWS, ((5, 1), np.nan))),
    "y_prob.*1.5": lambda call: call(CLASS_TRUE, put(ROWS, ((2, 0), 1.5))),
    "y_true.*7": lambda call: call(put(CLASS_TRUE, (7, 7)), ROWS),
    "sample_weight": lambda call: call(CLASS_TRUE, ROWS, -np.ones(8)),
    "y_true|y_prob": lambda call: call(CLASS_TRUE[:5], ROWS),
    "n_jobs": lambda call: call(CLASS_TRUE, ROWS, n_jobs="two"),
    "anything: is not a parameter": lambda call: call(CLASS_TRUE, ROWS, anything=3),
}


@every_estimator
def test_bad_data_are_refused(name):
    def call(*arguments, **options):
        return value_of(name, *arguments, **options)

    for message, bad in BAD.items():
        assert_refused(lambda bad=bad: bad(call), [message])
    with pytest.warns(UserWarning, match="y_prob"):
        call(CLASS_TRUE, ROWS * 0.9)


def replicates(name, y, p, n_resamples=70, rng=5, **options):
    """Estimate and values of the replicates."""
    result = fastece.bootstrap(
        y, p, estimator=CASES[name], n_resamples=n_resamples, rng=rng, **options
    )
    return result.value, result.bootstrap_distribution


@every_estimator
def test_replicates_are_values_of_the_drawn_rows(name):
    y, p, weight = problems(n=12)
    weight += 0.1
    code = Code(14)
    for size, setting in product([None, 4], ["auto", "classwise", 1]):
        draw = {"n_resamples": 33, "size": size}
        codes = fastece.bootstrap(y, p, estimator=code, rng=5, **draw).bootstrap_distribution
        value, values = replicates(name, y, p, sample_weight=weight, setting=setting, **draw)
        assert value == value_of(name, y, p, weight, setting=setting)
        for r in (0, 31, 32) if name not in VECTORS else ():  # of these, copies count as one row
            rows = np.repeat(np.arange(12), code.counts(codes[r], 12))
            want = value_of(name, y[rows], p[rows], weight[rows], setting=setting)
            assert values[r] == near(want, slack_of(name))


@every_estimator
def test_replicates_have_the_same_bits_in_any_company(name):
    y, p, weight = data_of(name, n=60)
    options = {"sample_weight": weight}
    _, values = replicates(name, y, p, n_jobs=1, **options)
    with ThreadPoolExecutor(2) as pool:
        for how in ({"n_jobs": 2}, {"executor": pool}, {"groups": np.arange(60)}):
            assert np.array_equal(replicates(name, y, p, **options, **how)[1], values, True), how
    _, first = replicates(name, y, p, n_resamples=3, **options)
    assert np.array_equal(first, values[:3], equal_nan=True)
    together = fastece.bootstrap(
        y, p, estimator=[CASES[name], "ece_a"], n_resamples=3, rng=5, **options
    )
    assert np.array_equal(next(iter(together.values())).bootstrap_distribution, first, True)


@every_estimator
def test_models_are_compared_on_the_same_draws(name):
    y, p, weight = data_of(name)
    q = p[::-1]
    options = {"sample_weight": weight, "n_resamples": 20, "rng": 5}
    a, b = (replicates(name, y, x, **options) for x in (p, q))
    options |= {"estimator": CASES[name], "method": "basic"}
    result, mirrored = (fastece.compare(y, *pair, **options) for pair in ((p, q), (q, p)))
    assert (result.a, result.b) == (a[0], b[0])
    assert np.array_equal(result.bootstrap_distribution, a[1] - b[1], equal_nan=True)
    assert result.value == -mirrored.value
    assert result.p_value == near(mirrored.p_value)


@every_error
def test_replicates_of_the_null_are_values_of_drawn_labels(name):
    y, p, weight = data_of(name, n=15)
    options = {"n_resamples": 33, "rng": 5, "sample_weight": weight + 0.1}
    result = fastece.calibration_test(y, p, estimator=CASES[name], **options)
    assert result.value == near(value_of(name, y, p, weight + 0.1), slack_of(name))
    if name in VECTORS:
        return  # labels of all classes: their own oracles
    drawn = fastece.calibration_test(y, p, estimator=HitCode(), **options).null_distribution
    for r in (0, 32):
        labels = drawn[r].astype(np.int64) >> np.arange(15) & 1
        want = value_of(name, labels, p, weight + 0.1)
        assert result.null_distribution[r] == near(want, slack_of(name))


@every_error
def test_estimates_have_the_value_and_an_interval_that_grows_with_the_level(name):
    y, p, weight = data_of(name)
    result = fastece.estimate(
        y, p, estimator=CASES[name], n_resamples=99, rng=0, sample_weight=weight
    )
    assert result.value == near(value_of(name, y, p, weight), slack_of(name))
    if np.isnan(result.value):
        return
    assert result.p_value is None or 0 < result.p_value <= 1  # a posterior has none
    narrow, wide = result.interval(0.5), result.interval(0.9)
    assert 0 <= wide.low <= narrow.low <= narrow.high <= wide.high


@every_estimator
def test_a_stream_has_the_value_of_its_rows(name):
    # No cell has two scores, of which it would know the mean alone.
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 300), rng.integers(0, 201, 300) / 200
    thirds = np.array_split(rng.permutation(300), 3)
    for weight in (np.ones(300), rng.random(300)):
        whole = Accumulator().update(y, p, sample_weight=weight)
        if getattr(CASES[name], "needs", "ranks") == "rows":
            with pytest.raises(ValueError, match=r"estimator: .* needs every row"):
                fastece.ece(whole, estimator=CASES[name])
            continue
        value = fastece.ece(whole, estimator=CASES[name])
        assert value == near(value_of(name, y, p, weight), 1e-8)
        parts = [Accumulator().update(y[i], p[i], sample_weight=weight[i]) for i in thirds]
        assert fastece.ece(sum(parts), estimator=CASES[name]) == value


@given(
    cases.binary(cases.dyadic()),
    cases.binned_fields(("hard",)),
    norms,
    st.sampled_from(["mass", "equal"]),
)
def test_exchanging_the_two_labels_mirrors_the_bins(data, fields, norm, bin_weights):
    true, prob = data
    other = {**fields, "closed": "left" if fields["closed"] == "right" else "right"}
    options = {"norm": norm, "bin_weights": bin_weights}
    value = fastece.ece(true, prob, **fields, **options)
    assert fastece.ece(1 - true, 1 - prob, **other, **options) == near(value)


@given(cases.binary(cases.dyadic()), st.sampled_from(["uniform", "quantile"]), st.integers(1, 12))
def test_exchanging_the_two_labels_mirrors_convex_shares(data, edges, n_bins):
    # A centre and its mirror image differ by a rounding error, hence norm 1, which is continuous.
    true, prob = data
    fields = {"edges": edges, "n_bins": n_bins, "mapping": "convex"}
    value = fastece.ece(true, prob, **fields)
    assert fastece.ece(1 - true, 1 - prob, **fields) == near(value)


@given(cases.binary(), cases.binned_fields(("hard",)), st.data())
def test_errors_grow_with_the_norm(data, fields, draw):
    # Jensen, for bins of at least one part in a thousand: the maximum leaves none of them out.
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    fields = {**fields, "sample_weight": weight}
    values = [fastece.ece(*data, norm=p, **fields) for p in (1, 1.5, 2, 7, inf)]
    assert all(a <= b + SLACK for a, b in pairwise(values)), values


@given(
    cases.binary(),
    st.sampled_from([b for b in cases.BINNINGS if b[1] == "hard"]),
    st.sampled_from([1, 2, 3, 5, 10, 15, 49]),
    st.sampled_from([2, 3, 7]),
    st.data(),
)
def test_merging_neighbouring_bins_never_raises_the_error(data, binning, n_bins, finer, draw):
    # j / B and (2 j) / (2 B) are the same float, and so are j W / B and 2 j W / 2 B: bins nest.
    fields = cases.fields_of(binning)
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    for score_range in ("unit", (0.2, 0.7)):
        options = {**fields, "sample_weight": weight, "score_range": score_range}
        coarse = fastece.ece(*data, n_bins=n_bins, **options)
        assert coarse <= fastece.ece(*data, n_bins=finer * n_bins, **options) + SLACK


@given(cases.binary(), cases.binned_fields(), st.data())
def test_the_error_is_at_least_the_gap_between_the_means(data, fields, draw):
    # One bin is the coarsest merging of all; shares sum to 1, so this holds for convex ones too.
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    true, prob = data
    gap = abs(np.average(true - prob, weights=weight))
    assert fastece.ece(*data, sample_weight=weight, **fields) >= gap - SLACK
    one = {**fields, "n_bins": 1}
    assert fastece.ece(*data, sample_weight=weight, **one) == near(gap)


@given(cases.binary(), cases.binned_fields())
def test_a_classifier_that_is_always_right_and_sure_has_no_error(data, fields):
    true, _ = data
    assert fastece.ece(true, true.astype(float), **fields) == 0.0
    assert fastece.ece(true, 1.0 - true, n_bins=1, mapping="convex") == near(
        abs(np.mean(2 * true - 1))
    )
