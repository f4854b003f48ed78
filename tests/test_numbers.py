"""Every number is that of single rows in plain loops, whatever the data, the bins and the options.

First any data and any bins, against `reference`. Then every combination of a setting, of what rows
mean and of what is computed: it is the number of the single rows (`oracles.reference_rows`), or it
is refused with a sentence that says why. `REFUSED` names what goes without what.
"""

from collections import Counter
from contextlib import contextmanager
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr, ndtri

import fastece
from fastece import Binned
from helpers import strategies as cases
from helpers.chance import ALPHA, chi_square_p
from helpers.drawn_rows import (
    N_BINS,
    drawn_labels,
    drawn_weights,
    errors_of,
    errors_of_labels,
    mean_errors,
    merged_rows,
    single_rows,
)
from helpers.probes import Spy
from helpers.row_options import OPTIONS, SETTINGS, arguments, parts
from oracles import reference_rows

SLACK = 1e-12
FALSE_ALARM = 1e-6  # of each test of chance; seeds are fixed, so what passes once passes always
ERROR = Binned(n_bins=N_BINS)
DRAWS = {"n_resamples": 50, "rng": 1}
SIZE = 15

RESAMPLING = ["bootstrap", "bca", "size", "test", "estimate"]
FUNCTIONS = ["value", *RESAMPLING]
MOST_OPTIONS = 4  # of a cell: more of them say less when one is wrong
MORE_THAN_PAIRS = [
    ("weights", "counts", "groups"),
    ("weights", "votes", "groups"),
    ("weights", "counts", "groups", "by"),
    ("ignored", "class axis", "groups", "by", "percent", "labels"),
]

# What goes without what, and the words of the error that say so.
REFUSED = {
    ("value", "groups"): "^groups: is not a parameter of the estimator",
    ("counts", "soft"): "^counts: goes without soft=True and votes=, as counts are of labels",
    ("counts", "votes"): "^counts: goes without soft=True and votes=, as counts are of labels",
    ("events", "soft"): "^counts: goes without soft=True and votes=, as counts are of labels",
    ("events", "votes"): "^counts: goes without soft=True and votes=, as counts are of labels",
    ("events", "ignored"): "^y_true: labels must be from 0 to 1|^y_true: must add up to counts=",
    ("events", "labels"): "^y_true: must be among the labels",
    ("events", "tasks"): "^(counts: goes without the setting 'tasks'|y_true: )",
    ("soft", "ignored"): "^ignore_label: goes with hard labels, not soft=True ones",
    ("votes", "ignored"): "^ignore_label: goes with hard labels, not soft=True ones",
    ("soft", "labels"): "^labels: names hard labels, as pos_label= does, not soft=True ones",
    ("votes", "labels"): "^labels: names hard labels, as pos_label= does, not soft=True ones",
    ("soft", "class axis"): "^class_axis: goes without soft=True and votes=",
    ("votes", "class axis"): "^class_axis: goes without soft=True and votes=",
    ("percent", "logits"): "^percent: goes without from_logits=True",
    ("soft", "tasks"): "^soft: goes without the setting 'tasks'",
    ("votes", "tasks"): "^(soft|votes): goes without the setting 'tasks'",
    # An array of labels that has the shape of the rows has no room for several tasks, nor for the
    # counts of several classes.
    ("class axis", "tasks"): "^y_true: must have shape .* with class_axis=",
    **{
        ("class axis", "events", setting): "^y_true: must have shape .* with class_axis="
        for setting in SETTINGS
        if setting != "binary"
    },
}


@pytest.mark.filterwarnings("ignore:.*is it the probability of 1")
@given(cases.binary(), cases.binned_fields(), st.data())
def test_any_data_equal_the_reference(data, fields, draw):
    weight = draw.draw(st.none() | cases.integer_weights(len(data[0])))
    norm = draw.draw(st.sampled_from(cases.NORMS))
    want = reference.ece(*cases.as_lists(*data, weight), norm=norm, **fields)
    assert fastece.ece(*data, sample_weight=weight, norm=norm, **fields) == pytest.approx(
        want, abs=SLACK
    )


@pytest.mark.filterwarnings("ignore:.*are labels and columns in the same order")
@given(cases.multiclass(), cases.binned_fields(), st.sampled_from(["confidence", "classwise", 0]))
def test_any_class_vectors_equal_the_reference(data, fields, setting):
    want = reference.ece(*cases.as_lists(*data), setting=setting, **fields)
    assert fastece.ece(*data, setting=setting, **fields) == pytest.approx(want, abs=SLACK)


# -- every combination of a setting and options ----------------------------------------------------


class Cell(NamedTuple):
    """A combination."""

    function: str
    setting: str | int
    options: tuple[str, ...]

    def __str__(self):
        return f"{self.function}-{self.setting}-{'+'.join(self.options) or 'none'}"

    def among(self, table):
        """The entries of a table of which the combination has everything."""
        parts = {self.function, self.setting, *self.options}
        return [entry for entry in table if parts.issuperset(entry)]

    @property
    def arguments(self):
        return arguments(self.setting, self.options)


def goes_together(function, setting, options):
    return not Cell(function, setting, options).among(REFUSED)


def covering_cells(function, setting):
    """Few cells in which all options come, and all pairs of them that go together.

    Values have every pair in every setting. Of what draws, each pair comes in one of the settings.
    """
    pairs = [frozenset(pair) for pair in [*combinations(OPTIONS, 2), *MORE_THAN_PAIRS]]
    pairs.remove({"counts", "events"})  # one argument
    missing = [frozenset({x}) for x in OPTIONS if goes_together(function, setting, {x})]
    for number, pair in enumerate(pairs):
        places = [place for place in SETTINGS if goes_together(function, place, pair)]
        if function != "value":
            places = places[number % max(1, len(places)) :][:1]
        if setting in places:
            missing.append(pair)
    cells = [Cell(function, setting, ())]
    while missing:
        options = max(missing, key=len)
        for other in OPTIONS:
            wider = options | {other}
            gain = [pair for pair in missing if pair <= wider and not pair <= options]
            is_gain = len(wider) <= MOST_OPTIONS and any(is_covered(x, wider) for x in gain)
            is_allowed = is_covered(options, wider) and goes_together(function, setting, wider)
            if is_gain and is_allowed:
                options = wider
        cells.append(Cell(function, setting, tuple(x for x in OPTIONS if x in options)))
        missing = [pair for pair in missing if not is_covered(pair, options)]
    return cells


def is_covered(pair, options):
    """Whether a pair is looked at in a cell as closely as in a cell of its own.

    Parts of `by` are calls of their own, and some options change what is drawn.
    """
    if {"counts", "events"} <= options:
        return False
    is_as_close = has_other_draws(pair) == has_other_draws(options)
    return pair <= options and is_as_close and ("by" in pair) == ("by" in options)


def has_other_draws(options):
    """Whether draws of labels are not those of the single rows, bit by bit.

    Those of copies have the same law alone. The dependence of votes is estimated from votes.
    """
    return bool({"counts", "events", "soft", "votes"} & set(options))


@pytest.mark.filterwarnings("ignore:.*are labels and columns in the same order")
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_combination_is_that_of_single_rows(function, setting):
    for cell in covering_cells(function, setting):
        with named_by(cell):
            check_parts(cell) if "by" in cell.options else CHECKS[function](cell)


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_goes_without_another_is_refused_with_the_reason(setting):
    pairs = {tuple(x for x in entry if x in OPTIONS) for entry in REFUSED}
    cells = [Cell(*names) for names in product(FUNCTIONS, [setting], sorted(pairs))]
    for cell in cells:
        if reasons := [REFUSED[entry] for entry in cell.among(REFUSED)]:
            with named_by(cell), pytest.raises((ValueError, TypeError), match="|".join(reasons)):
                CALLS[cell.function](*cell.arguments)


@contextmanager
def named_by(cell):
    """What fails inside says of which cell."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the cell {cell}")
        raise


# -- calls -----------------------------------------------------------------------------------------


def call_value(y_true, y_prob, call, **options):
    return fastece.ece(y_true, y_prob, estimator=ERROR, **call, **options)


def call_bootstrap(y_true, y_prob, call, **options):
    return fastece.bootstrap(y_true, y_prob, **{"estimator": ERROR, **DRAWS, **call, **options})


def call_bca(y_true, y_prob, call, **options):
    return call_bootstrap(y_true, y_prob, call, method="bca", **options)


def call_size(y_true, y_prob, call, **options):
    return call_bootstrap(y_true, y_prob, call, size=SIZE, **options)


def call_test(y_true, y_prob, call, **options):
    options = {"estimator": ERROR, **DRAWS, **call, **options}
    return fastece.calibration_test(y_true, y_prob, **options)


def call_estimate(y_true, y_prob, call, **options):
    return fastece.estimate(y_true, y_prob, **{"estimator": ERROR, **DRAWS, **call, **options})


CALLS = {
    "value": call_value,
    "bootstrap": call_bootstrap,
    "bca": call_bca,
    "size": call_size,
    "test": call_test,
    "estimate": call_estimate,
}


# -- values ----------------------------------------------------------------------------------------


def assert_near(got, want):
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=SLACK, atol=SLACK)


def problems_of(cell):
    """The binary problems of all single rows."""
    y_true, y_prob, call = cell.arguments
    rows = reference_rows.expanded(y_true, y_prob, **call)
    return reference_rows.problems(reference_rows.repeated(rows), cell.setting)


def check_value(cell):
    problems = problems_of(cell)
    y_true, y_prob, call = cell.arguments
    for fields in (
        {"n_bins": N_BINS},
        {"n_bins": "sqrt"},
        {"n_bins": 4, "edges": "quantile"},
        {"estimator": "brier_score"},
    ):
        want = [reference_rows.value(cases, **fields) for cases in problems]
        each = fastece.ece(y_true, y_prob, average=None, **call, **fields)
        assert_near(np.ravel(each), want)
        mean = fastece.ece(y_true, y_prob, **call, **fields)
        assert_near(mean, reference_rows.mean(want, problems, cell.setting))


# -- draws of rows ---------------------------------------------------------------------------------


def check_bootstrap(cell, size=None):
    """Each replicate is the error of the drawn rows, and rows are drawn with one law."""
    problems = [merged_rows(cases, cell.options) for cases in problems_of(cell)]
    call = cell.arguments
    spy = Spy()
    options = {"average": None, "size": size, "estimator": [ERROR, spy]}
    each, numbers = call_bootstrap(*call, **options).values()
    numbers = np.atleast_2d(numbers.bootstrap_distribution)
    weights = [drawn_weights(r, spy, of_r) for r, of_r in zip(problems, numbers, strict=True)]
    errors = np.array([errors_of(r, w) for r, w in zip(problems, weights, strict=True)])
    assert_near(np.atleast_2d(each.bootstrap_distribution), errors)
    check_draws(cell, problems, weights, size)
    mean = call_bootstrap(*call, size=size)
    assert_near(mean.bootstrap_distribution, mean_errors(errors, weights, cell.setting))
    assert_near(mean.value, call_value(*without_groups(call)))
    if size is None:
        assert_near(mean.confidence_interval, basic_interval(mean))
    else:
        assert np.isnan(mean.confidence_interval).all()


def without_groups(call):
    """The call of a value, which does not depend on groups."""
    y_true, y_prob, options = call
    return y_true, y_prob, {name: x for name, x in options.items() if name != "groups"}


def basic_interval(result):
    values = result.bootstrap_distribution
    low, high = np.quantile(values[~np.isnan(values)], [0.025, 0.975])
    return tuple(np.clip([2 * result.value - high, 2 * result.value - low], 0, 1))


def check_draws(cell, problems, weights, size):
    """Rows, or groups, are drawn as often as there are, all with one probability.

    The votes of a row, its labels of several tasks and its classes are drawn together, and so are
    all rows of a group. Copies are rows of their own.
    """
    times = {}  # of each of the caller's rows, in each problem that has it
    copies = {}
    unit_of_place = {}
    for rows, drawn in zip(problems, weights, strict=True):
        for place in np.unique(rows.place):
            here = rows.place == place
            row_weight = rows.row_weight[here][0]
            times.setdefault(place, []).append(drawn[:, here].sum(axis=1) / row_weight)
            copies[place] = rows.weight[here].sum() / row_weight
            unit_of_place[place] = rows.unit[here][0]
    drawn = firsts_of_equals(times)
    law = np.array([*copies.values()])
    if {"groups", "soft", "votes"} & set(cell.options):
        of_unit = {}
        for place, times_of_place, count in zip(times, drawn, law, strict=True):
            of_unit.setdefault(unit_of_place[place], []).append(times_of_place / count)
        drawn = firsts_of_equals(of_unit)
        law = np.ones(len(of_unit))
    assert_near(drawn, np.rint(drawn))
    assert_near(drawn.sum(axis=0), np.full(DRAWS["n_resamples"], float(size or law.sum())))
    expected = law / law.sum() * drawn.sum()
    chi_square = np.sum((drawn.sum(axis=1) - expected) ** 2 / expected)
    assert stats.chi2.sf(chi_square, len(law) - 1) > FALSE_ALARM


def firsts_of_equals(lists):
    """The first of each list of arrays, which are all equal."""
    firsts = [arrays[0] for arrays in lists.values() for _ in arrays]
    assert_near([array for arrays in lists.values() for array in arrays], firsts)
    return np.array([arrays[0] for arrays in lists.values()])


def check_size(cell):
    check_bootstrap(cell, SIZE)


def check_bca(cell):
    """The interval follows from the errors without each row, or each group (Efron 1987)."""
    result = call_bca(*cell.arguments)
    without = errors_without_each_unit(cell)
    z0 = ndtri(np.mean(result.bootstrap_distribution < result.value))
    d = without.mean() - without
    acceleration = np.sum(d**3) / (6 * np.sum(d**2) ** 1.5)
    z = z0 + ndtri([0.025, 0.975])
    want = np.nan, np.nan  # where all replicates are on one side of the value
    if np.isfinite(z0):
        levels = ndtr(z0 + z / (1 - acceleration * z))
        want = np.quantile(result.bootstrap_distribution, levels)
    assert_near(result.confidence_interval, want)


def errors_without_each_unit(cell):
    problems = [single_rows(cases, cell.options) for cases in problems_of(cell)]
    units = sorted({unit for rows in problems for unit in rows.unit.tolist()})
    weights = [rows.weight * (rows.unit != np.array(units)[:, None]) for rows in problems]
    errors = np.array([errors_of(r, w) for r, w in zip(problems, weights, strict=True)])
    return mean_errors(errors, weights, cell.setting)


# -- draws of labels -------------------------------------------------------------------------------


def check_test(cell):
    """Labels are drawn with the predicted probabilities, and the p-value counts errors as large."""
    problems = [merged_rows(cases, cell.options) for cases in problems_of(cell)]
    call = cell.arguments
    spy = Spy()
    each, numbers = call_test(*call, average=None, estimator=[ERROR, spy]).values()
    null = np.atleast_2d(each.null_distribution)
    for k, numbers_of_problem in enumerate(np.atleast_2d(numbers.null_distribution)):
        scores, hits, totals = drawn_labels(problems[k], spy.draws(numbers_of_problem))
        assert_near(null[k], errors_of_labels(scores, hits, totals))
        check_labels(scores, hits, totals)
    assert_near(each.value, call_value(*without_groups(call), average=None))
    p_values = map(p_value, np.ravel(each.value), null)
    assert_near(np.ravel(each.p_value), [*p_values])
    mean = call_test(*call)
    assert_near(mean.value, call_value(*without_groups(call)))
    assert mean.p_value == p_value(mean.value, mean.null_distribution)
    if cell.setting == "classwise":
        assert_near(mean.null_distribution, null.mean(axis=0))
    if not has_other_draws(cell.options):
        alone = call_test(*single_rows_call(cell))
        assert_near(mean.null_distribution, alone.null_distribution)


def p_value(value, null):
    return (1 + np.sum(null >= value - SLACK)) / (len(null) + 1)


def check_labels(scores, hits, totals):
    """Hits are as frequent as the scores say, for large and small scores alike."""
    gaps = hits - totals * scores
    for shape in (np.ones_like(scores), scores - scores.mean()):
        sums = gaps @ shape
        z = sums.mean() / (sums.std(ddof=1) / np.sqrt(len(sums)))
        assert abs(z) < stats.t.isf(FALSE_ALARM / 2, len(sums) - 1)


def single_rows_call(cell):
    """The call of the single rows, with no other options than weights and groups."""
    y_true, y_prob, call = cell.arguments
    rows = reference_rows.repeated(reference_rows.expanded(y_true, y_prob, **call))
    y_true = np.array([row.label for row in rows], float if cell.setting == "tasks" else int)
    of_rows = {"setting": cell.setting}
    if "weights" in cell.options:
        of_rows["sample_weight"] = [row.weight for row in rows]
    if "groups" in cell.options:
        of_rows["groups"] = [row.group for row in rows]
    return y_true, np.array([row.prob for row in rows]), of_rows


# -- estimates -------------------------------------------------------------------------------------


def check_estimate(cell):
    """Estimates are those of the single rows."""
    has_mean = cell.setting not in ("binary", "confidence", 1)
    for average in [None, "macro"] if has_mean else [None]:
        result = call_estimate(*cell.arguments, average=average)
        assert_near(result.value, call_value(*without_groups(cell.arguments), average=average))
        if not has_other_draws(cell.options):
            alone = call_estimate(*single_rows_call(cell), average=average)
            assert_near(result.confidence_interval, alone.confidence_interval)
            assert_near(result.p_value, alone.p_value)
            assert_near(result.floor.mean, alone.floor.mean)
            assert_near(result.floor.high, alone.floor.high)
        elif average is None:
            assert_near(result.p_value, call_test(*cell.arguments, average=None).p_value)
    if not {"soft", "votes"} & set(cell.options):
        check_posterior(cell)


def check_posterior(cell):
    """An estimate without draws is that of the single rows, copies among them."""
    options = {"estimator": "ece_bayes", "average": None}
    names = {*cell.options}
    result = call_estimate(*cell.arguments, **options)
    alone = call_estimate(*single_rows_call(cell), **options)
    assert np.array_equal(result.n, alone.n)
    # How much rows of a group depend on each other is estimated by draws, and those of counts are
    # not those of the single rows.
    has_other_draws = {"counts", "groups"} <= names or {"events", "groups"} <= names
    tolerance = 0.1 if has_other_draws else SLACK
    np.testing.assert_allclose(result.value, alone.value, rtol=tolerance)
    ends = result.confidence_interval, alone.confidence_interval
    np.testing.assert_allclose(*ends, rtol=tolerance, atol=0.1 * tolerance)


CHECKS = {
    "value": check_value,
    "bootstrap": check_bootstrap,
    "bca": check_bca,
    "size": check_size,
    "test": check_test,
    "estimate": check_estimate,
}


# -- groups that are looked at by themselves -------------------------------------------------------

RESULTS = {
    "bootstrap": ("value", "bootstrap_distribution", "confidence_interval"),
    "test": ("value", "null_distribution", "p_value"),
    "estimate": ("value", "confidence_interval", "p_value"),
}
RESULTS |= {"bca": RESULTS["bootstrap"], "size": RESULTS["bootstrap"]}


def check_parts(cell):
    """`by` is a loop over the sorted labels, whose calls take their seeds from one generator."""
    averages = ["macro", None] if cell.setting in ("classwise", "tasks") else ["macro"]
    function = CALLS[cell.function]
    for average in averages:
        result = function(*cell.arguments, average=average)
        generator = {} if cell.function == "value" else {"rng": np.random.default_rng(1)}
        alone = [function(*part, average=average, **generator) for part in parts(*cell.arguments)]
        if cell.function == "value":
            assert np.array_equal(np.asarray(result), alone)
            continue
        for name in RESULTS[cell.function]:
            want = np.array([getattr(x, name) for x in alone])
            got = np.asarray(getattr(result, name))
            if name == "confidence_interval":
                want = np.swapaxes(want, 0, 1)
            # Each class of each group is a line of a result.
            assert np.array_equal(got, want.reshape(got.shape), equal_nan=True)


# -- laws ------------------------------------------------------------------------------------------


def numbers_of(function, *call, **options):
    """Replicates, and the interval or p-value that follows from them."""
    result = CALLS[function](*call, **options)
    if function == "test":
        return np.append(result.null_distribution, result.p_value)
    if function == "estimate":
        return np.append(result.confidence_interval, result.p_value)
    return np.append(result.bootstrap_distribution, result.confidence_interval)


@pytest.mark.parametrize("function", RESAMPLING)
def test_groups_of_one_row_change_nothing(function):
    for setting in SETTINGS:
        y_true, y_prob, call = arguments(setting, ())
        alone = call | {"groups": np.arange(len(y_true))}
        got, want = (numbers_of(function, y_true, y_prob, x) for x in (alone, call))
        assert np.array_equal(got, want, equal_nan=True), setting


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_part_is_the_call_without(function):
    for setting in SETTINGS:
        y_true, y_prob, call = arguments(setting, ())
        alone = CALLS[function](y_true, y_prob, call)
        result = CALLS[function](y_true, y_prob, call | {"by": ["all"] * len(y_true)})
        if function == "value":
            assert np.array_equal(np.asarray(result), [alone]), setting
            continue
        for name in RESULTS[function]:
            got = np.asarray(getattr(result, name))
            want = np.reshape(getattr(alone, name), got.shape)
            assert np.array_equal(got, want, equal_nan=True), (setting, name)


def test_parts_come_in_the_order_of_numbers():
    y_true, y_prob, call = arguments("binary", ())
    call["by"] = np.resize([10, -2, 9, 100], len(y_true))
    want = [call_value(*part) for part in parts(y_true, y_prob, call)]
    assert np.array_equal(np.asarray(call_value(y_true, y_prob, call)), want)


@pytest.mark.parametrize("counts", [(1, 1, 1, 1), (2, 1, 3)])
def test_draws_of_copies_have_the_law_of_all_draws(counts):
    """The multinomial law of all rows; the false-alarm rate is that of `ALPHA`."""
    rows = sum(counts)
    score = np.linspace(0.1, 0.9, len(counts))
    spy = Spy()
    result = fastece.bootstrap(
        score > 0.5, score, counts=counts, estimator=spy, n_resamples=4000, rng=1
    )
    seen = Counter(tuple(c.tolist()) for _, _, c in spy.draws(result.bootstrap_distribution))
    every = [c for c in product(range(rows + 1), repeat=len(counts)) if sum(c) == rows]
    expected = 4000 * stats.multinomial.pmf(every, rows, np.divide(counts, rows))
    assert set(seen) <= set(every)
    assert chi_square_p([seen[c] for c in every], expected) > ALPHA


def replicates(function, *call, **options):
    result = CALLS[function](*call, n_resamples=999, **options)
    return result.null_distribution if function == "test" else result.bootstrap_distribution


@pytest.mark.parametrize("function", ["bootstrap", "test"])
def test_copies_have_the_law_of_repeated_rows(function):
    for setting, options in product(SETTINGS, [("counts",), ("weights", "counts", "groups")]):
        cell = Cell(function, setting, options)
        got = replicates(function, *cell.arguments)
        want = replicates(function, *single_rows_call(cell), rng=2)
        assert stats.ks_2samp(got, want).pvalue > FALSE_ALARM, cell


@pytest.mark.parametrize("setting", ["binary", "tasks"])
def test_copies_have_the_intervals_of_repeated_rows(setting):
    cell = Cell("estimate", setting, ("counts",))
    ends = []
    for seed in range(20):
        copies = call_estimate(*cell.arguments, rng=seed)
        repeated = call_estimate(*single_rows_call(cell), rng=1000 + seed)
        ends.append(np.subtract(copies.confidence_interval, repeated.confidence_interval))
    difference = np.mean(ends, axis=0)
    noise = np.std(ends, axis=0, ddof=1) / np.sqrt(len(ends))
    assert (np.abs(difference) <= stats.t.isf(FALSE_ALARM / 4, len(ends) - 1) * noise).all()


@pytest.mark.parametrize("setting", SETTINGS)
def test_rows_twice_are_counts_of_two_with_groups(setting):
    y_true, y_prob, call = arguments(setting, ("groups",))
    twice = {"setting": setting, "groups": np.repeat(call["groups"], 2)}
    counts = call | {"counts": np.full(len(y_true), 2)}
    got = replicates("bootstrap", y_true, y_prob, counts)
    want = replicates("bootstrap", y_true.repeat(2, axis=0), y_prob.repeat(2, axis=0), twice)
    assert_near(got, want)


@pytest.mark.parametrize("options", [(), ("groups",), ("votes",), ("soft",), ("counts",)])
def test_the_spread_falls_with_the_root_of_the_size(options):
    spread = {}
    for size in (40, 640):
        of_size = {"estimator": "brier_score", "size": size, "n_resamples": 999}
        result = call_bootstrap(*arguments("binary", options), **of_size)
        spread[size] = result.bootstrap_distribution.std()
    # A standard deviation of 999 replicates is known to 2.3 %, and that of means of unequal groups
    # is not quite that of a mean: the false-alarm rate is below that of 5 standard errors, 1e-6.
    assert spread[40] / spread[640] == pytest.approx(4, rel=0.2)


@pytest.mark.parametrize("function", ["test", "estimate"])
@pytest.mark.parametrize("setting", [s for s in SETTINGS if s not in ("binary", "classwise")])
def test_a_setting_is_its_binary_problems(function, setting):
    """A problem alone has the results of a call of its own."""
    cell = Cell("value", setting, ())
    result = CALLS[function](*cell.arguments, average=None)
    alone = []
    for rows in problems_of(cell):
        hits, scores = [row.hit for row in rows], [row.score for row in rows]
        alone.append(CALLS[function](hits, scores, {"setting": "binary"}))
    assert_near(np.ravel(result.p_value), [x.p_value for x in alone])
    if function == "estimate":
        want = np.transpose([x.confidence_interval for x in alone])
        assert_near(np.reshape(result.confidence_interval, (2, -1)), want)
