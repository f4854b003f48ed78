"""Rows of a monitor that wait until all labels of their day have come."""

import json
from datetime import date, timedelta

import numpy as np
import pytest

import fastece
from fastece import Monitor
from fastece.decisions import late_rows
from helpers.bad_input import assert_refused

HORIZON = 5


def rows_of_days(n_days=30, n=40, seed=0, shift=0.0):
    """Days, outcomes and scores of a stream, scores rounded so that many are equal."""
    rng = np.random.default_rng(seed)
    day = np.repeat(np.arange(n_days), n)
    z = rng.normal(-1, 1.5, day.size).round(1)
    y = rng.random(day.size) < 1 / (1 + np.exp(-z - shift))
    return day, y.astype(int), 1 / (1 + np.exp(-z))


def lags(day, y, p):  # noqa: ARG001
    """Days until each label comes: at once for outcome 1, at the horizon for outcome 0."""
    return np.where(y == 1, 0, HORIZON)


def follow(day, y, p, come, **options):
    """Give a monitor the rows whose labels come on each day."""
    monitor = Monitor(horizon=HORIZON, **options)
    for today in range(come.max() + 1):
        now = come == today
        monitor.update(y[now], p[now], day=day[now])
    return monitor


def numbers(monitor):
    values = monitor.to_dict()
    return [values[name] for name in ("n", "log_e_value", "p_value", "since", "change")]


def test_any_order_of_labels_within_the_horizon_has_the_same_bits():
    day, y, p = rows_of_days(shift=0.5)
    rng = np.random.default_rng(1)
    last = np.array([30 + HORIZON])  # a row that closes all days
    whole = Monitor(horizon=HORIZON).update(y, p, day=day).update([1], [0.5], day=last)
    for lag in (lags(day, y, p), 0 * day, rng.integers(0, HORIZON + 1, day.size)):
        monitor = follow(day, y, p, day + lag).update([1], [0.5], day=last)
        assert numbers(monitor) == numbers(whole)
        assert (monitor.n, monitor.n_waiting, monitor.n_too_late) == (1200, 1, 0)
    order = rng.permutation(day.size)
    shuffled = Monitor(horizon=HORIZON).update(y[order], p[order], day=day[order])
    assert numbers(shuffled.update([1], [0.5], day=last)) == numbers(whole)
    assert whole.alarm


def test_labels_that_come_earlier_for_one_outcome_alarm_only_without_a_horizon():
    alarms = {"late": 0, "as they come": 0}
    for seed in range(40):
        day, y, p = rows_of_days(seed=seed)
        come = day + lags(day, y, p)
        alarms["late"] += follow(day, y, p, come).alarm
        order = np.argsort(come, kind="stable")
        monitor = Monitor()
        # A row at a time, as a batch sorted by its labels is refused.
        for row in order[: day.size // 2]:
            monitor.update(y[[row]], p[[row]])
        alarms["as they come"] += monitor.alarm
    assert alarms["late"] <= 6
    assert alarms["as they come"] == 40


def test_a_row_is_counted_when_its_day_is_longer_ago_than_the_horizon():
    monitor = Monitor(horizon=3).update([1, 0], [0.5, 0.4], day=[10, 11])
    assert (monitor.n, monitor.n_waiting) == (0, 2)
    monitor.update([1], [0.5], day=[13])
    assert (monitor.n, monitor.n_waiting) == (0, 3)
    monitor.update([1], [0.5], day=[14])  # day 10 is closed
    assert (monitor.n, monitor.n_waiting, monitor.n_too_late) == (1, 3, 0)
    monitor.update([1, 1], [0.5, 0.5], day=[10, 11])
    assert (monitor.n, monitor.n_waiting, monitor.n_too_late) == (1, 4, 1)
    printed = str(monitor).splitlines()
    assert printed[0] == "Monitor: 1 row"
    assert [line.split() for line in printed[-2:]] == [
        ["waiting", "4", "rows"], ["too", "late", "1", "row"],
    ]  # fmt: skip
    expected = {"horizon": 3, "n_waiting": 4, "n_too_late": 1}
    assert {name: monitor.to_dict()[name] for name in expected} == expected


def test_with_no_order_to_hide_late_rows_are_the_rows_of_a_plain_monitor():
    # Rows of one score and one outcome a day are the same in any order.
    day = np.repeat(np.arange(60), 5)
    y = (np.arange(60) % 3 == 0).astype(int)[day]
    p = np.full(300, 0.2)
    late = Monitor(horizon=0).update(y, p, day=day)
    plain = Monitor()
    for k in range(59):
        plain.update(y[day == k], p[day == k])
    assert numbers(late) == numbers(plain)
    assert late.n_waiting == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda days: [date(2025, 6, 14) + timedelta(x) for x in days.tolist()],
        lambda days: [f"{date(2025, 6, 14) + timedelta(x)} 08:30" for x in days.tolist()],
        lambda days: np.datetime64("2025-06-14T23:00") + days.astype("timedelta64[D]"),
        lambda days: days + 0.75,
        lambda days: [f"{x}" for x in days.tolist()],
    ],
)
def test_days_are_dates_texts_or_numbers(make):
    day, y, p = rows_of_days(10)
    as_numbers = Monitor(horizon=2).update(y, p, day=day)
    given = Monitor(horizon=2).update(y, p, day=make(day))
    assert numbers(given) == numbers(as_numbers)
    assert given.n == 7 * 40


@pytest.mark.parametrize("n_classes", [None, 3])
@pytest.mark.parametrize("has_segments", [False, True])
def test_a_saved_monitor_goes_on_with_its_waiting_rows(tmp_path, n_classes, has_segments):
    rng = np.random.default_rng(2)
    path = tmp_path / "monitor.json"
    one = Monitor(horizon=3, n_classes=n_classes)
    other = Monitor(horizon=3, n_classes=n_classes)
    for today in range(12):
        day = today - rng.integers(0, 4, 30)
        p = rng.random(30) if n_classes is None else rng.dirichlet(np.ones(3), 30)
        y = rng.integers(0, n_classes or 2, 30)
        by = rng.choice(["a", "b"], 30) if has_segments else None
        one.update(y, p, day=day, by=by)
        other.update(y, p, day=day, by=by).save(path)
        other = Monitor.load(path)
    assert numbers(one) == numbers(other)
    assert (one.n, one.n_waiting, one.n_too_late) == (other.n, other.n_waiting, other.n_too_late)
    assert one.n_waiting > 0
    assert [*map(tuple, one.segments)] == [*map(tuple, other.segments)]


@pytest.mark.parametrize(
    ("name", "value"),
    [("days", [0.5]), ("days", [1, 2]), ("scores", [[2.0]]), ("outcomes", [[2]]), ("names", [3])],
)
def test_a_damaged_file_is_refused(tmp_path, name, value):
    path = tmp_path / "monitor.json"
    Monitor(horizon=3).update([1], [0.5], day=[1]).save(path)
    content = json.loads(path.read_text())
    content["late"][name] = value
    path.write_text(json.dumps(content))
    assert_refused(lambda: Monitor.load(path), ["is no monitor that fastece has saved"])


@pytest.mark.parametrize(
    ("day", "patterns"),
    [
        (None, ["day", "is needed with horizon"]),
        ([1, 2], ["day", r"shape \(3,\)"]),
        ([1, 2, np.nan], ["day", "missing", r"day\[2\]"]),
        ([1, 2, np.inf], ["day", "must be a date", r"day\[2\]", "inf"]),
        (["2025-06-14", "2025-06-31", "soon"], ["day", "must be a date", r"day\[1\]"]),
        (["2025-06-14", "7", "2025-06-15"], ["day", "dates or numbers", r"day\[1\]", "7"]),
        (["2025-06-14"] * 3, ["day", "must be numbers, as in the batches before"]),
    ],
)
def test_bad_days_are_refused_and_change_nothing(day, patterns):
    monitor = Monitor(horizon=3).update([1, 0], [0.5, 0.4], day=[10, 20])
    before = monitor.to_dict()
    assert_refused(lambda: monitor.update([1, 0, 1], [0.5, 0.4, 0.3], day=day), patterns)
    assert monitor.to_dict() == before


def test_other_misuse_is_refused(monkeypatch):
    assert_refused(lambda: Monitor().update([1], [0.5], day=[1]), ["day", "needs horizon"])
    assert_refused(lambda: Monitor(horizon=-1), ["horizon", "-1"])
    monitor = Monitor(horizon=3).update([1], [0.5], day=[1], by=["a"])
    assert_refused(lambda: monitor.update([1], [0.5], day=[1]), ["by", "with segments"])
    monkeypatch.setattr(late_rows, "MAX_WAITING_SCORES", 4)
    waiting = Monitor(horizon=3)
    assert_refused(
        lambda: waiting.update([1] * 5, [0.5] * 5, day=[1] * 5), ["horizon", "at most 4 rows", "3"]
    )
    # Rows of closed days do not wait.
    assert waiting.update([1] * 5, [0.5] * 5, day=[1, 1, 1, 9, 9]).n == 3


def test_labels_that_are_ignored_leave_their_days_out():
    monitor = Monitor(horizon=0).update([1, -1, 0], [0.5, 0.4, 0.3], day=[1, 9, 2], ignore_label=-1)
    assert (monitor.n, monitor.n_waiting) == (1, 1)


def test_axes_of_rows_are_days_too():
    y = np.arange(6).reshape(2, 3) % 3
    p = np.full((2, 3, 3), 1 / 3)
    day = np.arange(6).reshape(2, 3)
    monitor = Monitor(horizon=1, n_classes=3).update(y, p, day=day, class_axis=1)
    assert (monitor.n, monitor.n_waiting) == (4, 2)
    assert isinstance(fastece.Monitor(horizon=1).to_dict()["n_waiting"], int)
