"""The monitor against plain loops, and its promises."""

import copy
import json
import pickle
from itertools import pairwise, product
from math import inf, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastece import InputError, InputTypeError, Monitor
from fastece.recalibration import PlattScaling, TemperatureScaling
from oracles import reference_monitor

SCORES = st.floats(0, 1) | st.sampled_from([0.0, 1e-12, 0.5, 0.999, 1 - 1e-12, 1.0])


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def stream(seed, days=20, shift=0.0, since=0, rows=40):
    """Batches (y, p) whose log odds are shifted from some day on."""
    rng = np.random.default_rng(seed)
    for day in range(days):
        z = rng.normal(-0.5, 2, rows)
        shift_of_day = shift if day >= since else 0.0
        yield rng.random(rows) < sigmoid(z + shift_of_day), sigmoid(z)


def class_stream(seed, days=6, rows=30, n_classes=3, power=1.0):
    """Batches of class vectors, of which the true ones are powers."""
    rng = np.random.default_rng(seed)
    for _ in range(days):
        p = rng.dirichlet(np.ones(n_classes), rows)
        true = p**power / (p**power).sum(axis=1, keepdims=True)
        drawn = (true.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)
        yield drawn.clip(0, n_classes - 1), p


def follow(batches, **options):
    """The monitor of batches."""
    monitor = Monitor(**options)
    for y, p in batches:
        monitor.update(y, p)
    return monitor


def bits(monitor):
    """All that a monitor has."""
    return json.dumps(monitor.to_dict()), monitor.to_frame().to_numpy().tobytes()


def rows_of(batches):
    """The rows of binary batches for the oracle, with one problem."""
    return [[(s, hit)] for y, p in batches for s, hit in zip(p.tolist(), y.tolist(), strict=True)]


def rows_of_classes(batches):
    """The rows of class vectors for the oracle: the problem of the top label, and of each class."""
    return [
        [(row.max(), row.argmax() == label), *((s, k == label) for k, s in enumerate(row))]
        for y, p in batches
        for label, row in zip(y.tolist(), p, strict=True)
    ]


def check_looks(monitor, expected):
    """Compare all looks of a monitor, and the change that it estimates, with the oracle."""
    at, values, since = expected
    frame = monitor.to_frame()
    assert frame["n"].tolist() == at
    np.testing.assert_allclose(frame["e_value"], values, rtol=1e-10)
    assert monitor.e_value == pytest.approx(values[-1], rel=1e-10)
    assert monitor.log_e_value == pytest.approx(np.log(values[-1]), abs=1e-10)
    assert monitor.p_value == pytest.approx(min(1.0, 1 / max(values)), rel=1e-10)
    assert monitor.alarm == (max(values) >= 20)
    assert monitor.since == (since if monitor.alarm else None)


# --- the definition -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shift", "since", "forget"), [(0.0, 0, 20), (-2.5, 2, None), (2.5, 2, 50)]
)
def test_evidence_equals_the_sum_of_all_bets(shift, since, forget):
    batches = [*stream(3, days=4, shift=shift, since=since, rows=30)]
    expected = reference_monitor.monitor(rows_of(batches), forget=forget)
    monitor = follow(batches, forget=forget)
    check_looks(monitor, expected)
    assert (monitor.n, monitor.alarm) == (120, shift != 0)


@pytest.mark.slow
@pytest.mark.parametrize("power", [1.0, 4.0])
def test_evidence_of_class_vectors_is_a_mean_of_evidence(power):
    batches = [*class_stream(1, days=2, power=power)]
    weights = [1 / 2, 1 / 6, 1 / 6, 1 / 6]
    expected = reference_monitor.monitor(rows_of_classes(batches), weights)
    monitor = follow(batches, n_classes=3)
    check_looks(monitor, expected)
    assert monitor.alarm == (power > 1)


@given(st.lists(st.tuples(SCORES, st.booleans()), min_size=1, max_size=6))
def test_evidence_of_any_rows_equals_plain_loops(rows):
    p, y = map(np.array, zip(*rows, strict=True))
    monitor = Monitor().update(y, p)
    if any(s == 1 - hit for s, hit in rows):
        assert monitor.e_value == inf
    else:
        _, values, _ = reference_monitor.monitor([[row] for row in rows])
        # A score beside the end of a cell may be on the other side of it.
        assert monitor.e_value == pytest.approx(values[-1], rel=1e-9 if len(rows) < 3 else 0.3)


# --- the promise ----------------------------------------------------------------------------


@pytest.mark.slow
@given(st.lists(SCORES, min_size=2, max_size=7), st.integers(1, 6), st.none() | st.integers(1, 5))
def test_no_labels_of_a_calibrated_model_gain_on_average(scores, cut, forget):
    """The mean over all labels, each with its probability, exactly."""
    p = np.array(scores)
    mean = 0.0
    for y in product([0, 1], repeat=p.size):
        chance = prod(s if hit else 1 - s for s, hit in zip(scores, y, strict=True))
        if chance == 0:
            continue
        monitor = Monitor(forget=forget)
        for rows in (slice(cut), slice(cut, None)):
            monitor.update(y[rows], p[rows])
        mean += chance * monitor.e_value
    assert mean <= 1 + 1e-12
    assert mean >= 0.9  # the cost of the tangents


@pytest.mark.slow
@given(st.lists(st.tuples(*[st.integers(1, 9)] * 3), min_size=1, max_size=4))
def test_no_classes_of_a_calibrated_model_gain_on_average(counts):
    p = np.array(counts) / np.sum(counts, axis=1, keepdims=True)
    mean = 0.0
    for y in product(range(3), repeat=len(p)):
        chance = np.prod(p[np.arange(len(p)), y])
        mean += chance * Monitor(n_classes=3).update(y, p).e_value
    assert 0.9 <= mean <= 1 + 1e-12


@pytest.mark.slow
def test_calibrated_streams_hardly_ever_alarm():
    # Of 20 000 streams of 5000 rows, 0.5 % do: scripts/evidence/monitor_days.py.
    alarms = [follow(stream(seed, days=25, rows=200)).alarm for seed in range(100)]
    assert sum(alarms) <= 5


def test_a_monitor_of_one_of_k_segments_alarms_at_k_times_the_e_value():
    rows = [*stream(0, 12, 0.4)]
    one, of_four = follow(rows), follow(rows, level=0.05 / 4)
    largest = one.to_frame()["e_value"].max()
    assert of_four.e_value == one.e_value
    assert (one.alarm, of_four.alarm) == (largest >= 20, largest >= 80)
    assert 20 <= largest < 80


def test_a_shift_of_the_log_odds_is_found_in_ten_days():
    days = []
    for seed in range(11):
        monitor = Monitor()
        batches = stream(seed, 60, 0.3, 20, rows=200)
        days.append(next(day for day, row in enumerate(batches) if monitor.update(*row).alarm) - 19)
    assert np.median(days) <= 10


# --- batches --------------------------------------------------------------------------------


CUTS = st.lists(st.integers(0, 400), max_size=12)


@given(st.integers(0, 100), CUTS, st.none() | st.integers(50, 300), st.sampled_from([None, 3]))
def test_any_cut_into_batches_has_the_same_bits(seed, cuts, forget, n_classes):
    batch_of_all = stream(seed, 1, shift=0.5, rows=400)
    if n_classes:
        batch_of_all = class_stream(seed, 1, rows=400)
    ((y, p),) = batch_of_all
    options = {"forget": forget, "n_classes": n_classes}
    pieces = [slice(*ends) for ends in pairwise([0, *sorted(cuts), 400])]
    one = Monitor(**options).update(y, p)
    assert bits(one) == bits(follow(((y[rows], p[rows]) for rows in pieces), **options))


def test_batches_of_one_row_have_the_bits_of_one_batch():
    ((y, p),) = stream(1, 1, shift=0.7, rows=1500)
    one = Monitor().update(y, p)
    assert bits(one) == bits(follow((y[i : i + 1], p[i : i + 1]) for i in range(y.size)))


def test_rows_sorted_by_their_labels_are_refused():
    ((y, p),) = stream(0, 1, rows=200)
    order = np.argsort(y, kind="stable")
    monitor = Monitor()
    for rows in (order, order[::-1]):
        with pytest.raises(InputError) as error:
            monitor.update(y[rows], p[rows])
        assert error.value.argument == "y_true"
        assert "sorted" in error.value.rule
    ((labels, vectors),) = class_stream(0, 1, rows=200)
    order = np.argsort(labels, kind="stable")
    with pytest.raises(InputError):
        Monitor(n_classes=3).update(labels[order], vectors[order])
    assert monitor.n == 0
    # Rows sorted by their scores have sorted labels if the model is perfect.
    hits = np.arange(100) > 50
    assert monitor.update(hits, np.where(hits, 0.9, 0.1)).n == 100


def test_a_batch_may_have_any_form():
    y, p = next(stream(0))
    expected = bits(Monitor().update(y, p))
    assert bits(Monitor().update([*y.tolist()], [*p.tolist()])) == expected
    assert bits(Monitor().update(y.astype(float), p)) == expected
    names = np.where(y, "yes", "no")
    assert bits(Monitor().update(names, p, pos_label="yes")) == expected
    assert bits(Monitor().update(names, p, labels=["no", "yes"])) == expected
    logits = Monitor().update(y, np.log(p / (1 - p)), from_logits=True)
    assert logits.e_value == pytest.approx(Monitor().update(y, p).e_value)
    y, p = next(class_stream(0))
    expected = bits(Monitor(n_classes=3).update(y, p))
    assert bits(Monitor(n_classes=3).update(y, np.asfortranarray(p))) == expected


def test_a_batch_without_rows_changes_nothing():
    monitor = follow(stream(0, 3))
    before = bits(monitor)
    assert bits(monitor.update([], [])) == before
    assert bits(follow(class_stream(0), n_classes=3).update([], np.empty((0, 3)))) == bits(
        follow(class_stream(0), n_classes=3)
    )


def test_a_batch_with_a_bad_row_changes_nothing():
    monitor = follow(stream(0, 3))
    before = bits(monitor)
    with pytest.raises(InputError):
        monitor.update([0, 1], [0.5, 1.5])
    assert bits(monitor) == before


# --- outcomes that cannot be ----------------------------------------------------------------


@pytest.mark.parametrize(("y", "p"), [(1, 0.0), (0, 1.0), (1, -1e-7), (0, 1 + 1e-7)])
def test_an_outcome_that_had_the_probability_0_makes_the_e_value_infinite(y, p):
    monitor = follow(stream(0, 3)).update([1, y], [0.7, p])
    assert (monitor.e_value, monitor.log_e_value, monitor.p_value) == (inf, inf, 0.0)
    assert (monitor.alarm, monitor.since) == (True, 121)
    assert monitor.change == "an outcome whose predicted probability was 0"
    assert monitor.to_dict()["e_value"] == "inf"
    for row in stream(1, 3):
        monitor.update(*row)
    assert (monitor.e_value, monitor.since, monitor.n) == (inf, 121, 242)


def test_sure_predictions_that_are_right_are_no_evidence():
    monitor = Monitor().update([0, 1] * 50, [0.0, 1.0] * 50)
    assert 0 < monitor.e_value <= 1
    vectors = Monitor(n_classes=3).update([0, 1, 2], np.eye(3))
    assert 0 < vectors.e_value <= 1
    assert Monitor(n_classes=3).update([0, 1, 1], np.eye(3)).e_value == inf


def test_misses_of_nearly_sure_predictions_are_strong_evidence():
    hits = np.arange(300) % 100 != 0  # 99 % of rows whose score is 1 - 1e-9
    assert Monitor().update(hits, np.full(300, 1 - 1e-9)).e_value > 1e3


# --- evidence over time ---------------------------------------------------------------------


def test_an_alarm_stays_and_the_p_value_never_rises():
    monitor = Monitor()
    p_values = [1.0]
    alarms = []
    batches = [*stream(0, 20, 1.0), *stream(1, 20, -1.0), *stream(2, 100)]
    for y, p in batches:
        monitor.update(y, p)
        p_values.append(monitor.p_value)
        alarms.append(monitor.alarm)
        assert (monitor.since is None) == (monitor.change is None) == (not monitor.alarm)
    assert p_values == sorted(p_values, reverse=True)
    assert alarms == sorted(alarms)
    assert alarms[-1]
    assert monitor.e_value < 1 / monitor.p_value
    assert monitor.p_value == pytest.approx(1 / monitor.to_frame()["e_value"].max())


@pytest.mark.parametrize(
    ("true", "change"),
    [
        (lambda z: z + 0.8, "predictions too low by 0.8 in the log odds"),
        (lambda z: z - 0.4, "predictions too high by 0.4 in the log odds"),
        (lambda z: 0.65 * z, "slope 0.65 of the log odds"),
        (lambda z: 1.35 * z - 1.2, "slope 1.35 of the log odds, shift -1.2"),
        (
            lambda z: z + 0.9 * ((z > 1) & (z < 2)),
            "predictions from 0.731 to 0.881 too low by 0.9 in the log odds",
        ),
    ],
)
def test_the_change_is_described(true, change):
    rng = np.random.default_rng(1)
    monitor = Monitor()
    for day in range(30):
        z = rng.normal(0, 1.5, 1000)
        monitor.update(rng.random(1000) < sigmoid(true(z) if day >= 15 else z), sigmoid(z))
    assert monitor.change == change
    assert abs(monitor.since - 15_000) <= 1000


def test_the_class_of_a_change_is_named():
    rng = np.random.default_rng(0)
    monitor = Monitor(n_classes=4)
    for _ in range(20):
        p = rng.dirichlet(np.ones(4), 500)
        true = p * [1, 1, 1, 3]
        true /= true.sum(axis=1, keepdims=True)
        monitor.update((true.cumsum(axis=1) < rng.random((500, 1))).sum(axis=1).clip(0, 3), p)
    assert monitor.change == "class 3: slope 1.15 of the log odds, shift +1.2"
    assert monitor.log_e_value > 709 < np.log(monitor.e_value) + 1e-9
    p = np.tile([0.9, 0.1], (300, 1))
    assert Monitor(n_classes=2).update(np.arange(300) % 2, p).change.startswith("top label: ")


def test_at_most_2000_looks_are_kept_with_the_first_and_the_last():
    ((y, p),) = stream(0, 1, rows=400_000)
    frame = Monitor().update(y, p).to_frame()
    expected = reference_monitor.looks(400_000)
    assert len(expected) > 2000
    assert 1000 <= len(frame) <= 2000
    assert frame["n"].iloc[[0, -1]].tolist() == [0, expected[-1]]
    assert set(frame["n"]) < set(expected)


def test_a_long_calibrated_past_delays_an_alarm_less_with_forget():
    def rows_until_alarm(seed, forget):
        monitor = follow(stream(seed, days=1, rows=40_000), forget=forget)
        for number, row in enumerate(stream(1000 + seed, days=60, shift=0.3, rows=100)):
            if monitor.update(*row).alarm:
                return number
        return 60

    delays = {
        forget: np.mean([rows_until_alarm(seed, forget) for seed in range(8)])
        for forget in (None, 40_000)
    }
    assert delays[40_000] < delays[None]


# --- pages and files ------------------------------------------------------------------------


def test_a_page_has_the_alarm_and_the_change():
    quiet = follow(stream(0, 3))
    loud = follow(stream(0, 20, 1.5))
    assert str(quiet).splitlines()[:2] == [
        "Monitor: 120 rows",
        "No alarm: these rows do not show that the predictions are miscalibrated.",
    ]
    assert "change" not in str(quiet)
    assert "Alarm: the predictions are not calibrated, or no longer." in str(loud)
    assert "roughly after 0 rows" in str(loud)
    assert "e-value" in loud._repr_html_()
    assert json.loads(json.dumps(loud.to_dict()))["since"] == 0
    assert str(Monitor()).startswith("Monitor: 0 rows")


@pytest.mark.slow
def test_a_picture_has_the_alarm_the_change_and_its_direction():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = follow(stream(0, 20, 1.5)).plot()
    assert ax.get_yscale() == "log"
    line, path = ax.get_lines()
    assert set(line.get_ydata()) == {20}
    assert path.get_xdata().tolist() == follow(stream(0, 20, 1.5)).to_frame()["n"].tolist()
    assert ax.texts[0].get_text() == "alarm from 20"
    title = " ".join(ax.get_title().split())
    assert title.startswith("ALARM, since about row 0: predictions too low by 1.6")
    (below,) = ax.child_axes
    gaps = [bar.get_height() for bar in below.patches if bar.get_height() != 1]
    assert 10 < len(gaps) <= 31
    assert np.mean(np.array(gaps) > 0) > 0.8
    quiet = follow(stream(0, 3)).plot()
    assert quiet.get_title().startswith("No alarm in")
    ax.figure.draw_without_rendering()
    _, ax = pyplot.subplots()
    monitor = Monitor(0.01).update([1], [0.0])
    assert monitor.plot(ax) is ax
    ax.figure.draw_without_rendering()
    pyplot.close("all")


@pytest.mark.parametrize(("n_classes", "forget"), [(None, 50), (3, None)])
def test_a_saved_monitor_goes_on_with_the_same_bits(tmp_path, n_classes, forget):
    batches = [*(stream(5, 6, 0.8) if n_classes is None else class_stream(5, 6, power=2))]
    path = tmp_path / "monitor.json"
    uninterrupted = follow(batches, n_classes=n_classes, forget=forget)
    reloaded = Monitor(n_classes=n_classes, forget=forget)
    for batch in batches:
        reloaded.update(*batch).save(path)
        reloaded = Monitor.load(path)
    assert bits(reloaded) == bits(uninterrupted)
    assert reloaded.forget == forget
    assert path.read_text().startswith('{"format": "fastece.monitor 1", "level": 0.05')
    impossible = [0.0] if n_classes is None else [[1.0, 0.0, 0.0]]
    uninterrupted.update([1], impossible).save(path)
    assert bits(Monitor.load(path)) == bits(uninterrupted)


def test_pickled_and_copied_monitors_have_the_same_bits():
    monitor = follow(stream(5, 4))
    assert bits(pickle.loads(pickle.dumps(monitor))) == bits(monitor)
    copied = copy.copy(monitor).update([1], [0.5])
    assert copied.n == monitor.n + 1


def test_a_reference_is_tested_in_place_of_the_predictions(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "monitor.json"
    z = rng.normal(0, 1, 20_000)
    model = PlattScaling().fit(sigmoid(2 * z), rng.random(z.size) < sigmoid(z))
    batches = [(y, p**2 / (p**2 + (1 - p) ** 2)) for y, p in stream(0, 20)]
    assert follow(batches).alarm
    monitor = follow(batches, reference=model)
    assert not monitor.alarm
    assert bits(monitor) == bits(follow((y, model.transform(p)) for y, p in batches))
    monitor.save(path)
    assert bits(Monitor.load(path, model)) == bits(monitor)
    other = PlattScaling().fit([0.1, 0.2, 0.6, 0.8], [0, 1, 0, 1])
    for wrong in (None, other):
        with pytest.raises(InputError) as error:
            Monitor.load(path, wrong)
        assert error.value.argument == "reference"
    Monitor().save(path)
    with pytest.raises(InputError):
        Monitor.load(path, model)
    y, p = next(class_stream(0))
    vectors = Monitor(n_classes=3, reference=TemperatureScaling().fit(p, y))
    vectors.update(y, p).save(path)
    assert bits(Monitor.load(path, vectors.reference)) == bits(vectors)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"format": "fastece.monitor 2"},
        {"level": 0},
        {"n_classes": 3},
        {"state": {}},
        {"state": None},
        {"forget": 0},
        {"money": [[0.0]]},
        {"log_ratio": [["a"]]},
        {"numbers": [0, 0, 0, 10**6, 0]},
        {"numbers": [-1, 0, 0, 0, 0]},
        {"numbers": [9, 8, 0, 0, 0]},
        {"values": [None] * 6},
        {"looks": [1]},
    ],
)
def test_a_file_that_is_no_monitor_is_refused(tmp_path, change):
    path = tmp_path / "monitor.json"
    follow(stream(0, 2)).save(path)
    content = json.loads(path.read_text())
    content |= {name: x for name, x in change.items() if name in content}
    if isinstance(content["state"], dict) and content["state"]:
        content["state"] |= {name: x for name, x in change.items() if name in content["state"]}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as error:
        Monitor.load(path)
    assert (error.value.argument, error.value.place) == ("path", str(path))


@pytest.mark.parametrize("text", ["", "[]", "null", "{" * 10_000, '{"format": 1, "format": 2}'])
def test_other_text_is_refused(tmp_path, text):
    path = tmp_path / "monitor.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is no monitor that fastece has saved"):
        Monitor.load(path)


# --- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "argument"),
    [
        ({"level": 0}, InputError, "level"),
        ({"level": 1}, InputError, "level"),
        ({"level": "low"}, InputTypeError, "level"),
        ({"level": float("nan")}, InputError, "level"),
        ({"n_classes": 1}, InputError, "n_classes"),
        ({"n_classes": 2.0}, InputTypeError, "n_classes"),
        ({"reference": sigmoid}, InputTypeError, "reference"),
        ({"forget": 0}, InputError, "forget"),
        ({"forget": 10.5}, InputTypeError, "forget"),
    ],
)
def test_bad_options_are_refused(options, error, argument):
    with pytest.raises(error) as raised:
        Monitor(**options)
    assert raised.value.argument == argument
    assert raised.value.value is options[argument] or raised.value.value == options[argument]


@pytest.mark.parametrize(
    ("y", "p", "options", "argument", "index"),
    [
        ([0, 2], [0.5, 0.5], {}, "y_true", (1,)),
        ([0, 1], [0.5, 1.5], {}, "y_prob", (1,)),
        ([0, 1], [0.5, np.nan], {}, "y_prob", (1,)),
        ([0, 1], [[0.5, 0.5]] * 2, {}, "y_prob", None),
        ([0, 1], [0.5, 0.5], {"n_classes": 2}, "y_prob", None),
        ([0, 1], [[0.5, 0.5]] * 2, {"n_classes": 3}, "y_prob", None),
        ([0, 3], [[0.5, 0.5, 0]] * 2, {"n_classes": 3}, "y_true", (1,)),
        ([0], [0.5, 0.5], {}, "y_true", None),
        ([], [0.5, 0.5], {}, "y_true", None),
        (np.array(1), np.array(0.5), {}, "y_prob", None),
    ],
)
def test_bad_rows_are_refused(y, p, options, argument, index):
    with pytest.raises(InputError) as error:
        Monitor(**options).update(y, p)
    assert (error.value.argument, error.value.index) == (argument, index)


def test_a_reference_without_transform_is_refused_before_the_file(tmp_path):
    path = tmp_path / "monitor.json"
    Monitor().save(path)
    with pytest.raises(InputTypeError, match=r"^reference: must have a method transform"):
        Monitor.load(path, reference=3)


def test_a_reference_that_takes_something_else_is_refused():
    model = PlattScaling().fit([0.1, 0.2, 0.6, 0.8], [0, 1, 0, 1])
    monitor = Monitor(reference=model)
    with pytest.raises(InputError) as error:
        monitor.update([0, 1], [0.5, 1.5])
    assert (error.value.argument, error.value.index) == ("y_prob", (1,))
    with pytest.raises(InputError) as error:
        monitor.update([0, 1], [0.5, 0.5], from_logits=True)
    assert error.value.argument == "from_logits"
    assert monitor.n == 0
