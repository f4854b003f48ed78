"""How often a monitor alarms where nothing changes, and after how many days where something does.

The log odds of scores follow a distribution in `LAWS`. Outcomes come from a calibrated model; from
a certain day on, the true log odds may become the linear function of the score's log odds that is
in `CHANGES`. Class vectors are the softmax of ten normal numbers with standard deviation 2.

Writes one of three tables:

- ``alarms``, ``monitor_alarms.csv``: how many calibrated streams of 5000 rows alarm.
- ``days``, ``monitor_days.csv``: days until the alarm, at 200 rows a day: medians, in brackets 90 %
  quantiles, and the median distance of the estimated change from a change after 25 days.
- ``speed``, ``monitor_speed.csv``: rows a second.

Every stream has its own seed, and is read by a `fastece.Monitor`.
"""

import time
import timeit
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from results import new_parser, write_table

from fastece import Monitor
from fastece.kernels.types import F64

SEED = 20250601
# Rows of a stream without a change.
ROWS = 5000
# Rows of a day.
DAY = 200
CLASSES = 10
LAWS: dict[str, Callable[[np.random.Generator, int], F64]] = {
    "spread": lambda rng, n: rng.normal(0, 1.5, n),
    "rare events": lambda rng, n: rng.normal(-3.1, 1.2, n),
    "sure": lambda rng, n: np.abs(rng.normal(3, 3, n)),
}
# Scores, rows of a batch, and the share of all calibrated streams, in units of 1/20.
STREAMS = (
    ("spread", 200, 8), ("rare events", 200, 4), ("sure", 200, 4), ("spread", 1000, 2),
    ("spread", 20, 1), ("ten classes", 200, 1),
)  # fmt: skip
CHANGES: dict[str, tuple[float, float]] = {  # shift and slope of the log odds
    "shift 0.1": (0.1, 1), "shift 0.2": (0.2, 1), "shift 0.3": (0.3, 1), "shift 0.5": (0.5, 1),
    "shift 1": (1.0, 1), "slope 0.7": (0.0, 0.7),
}  # fmt: skip
# Days before the change, and rows of a period; the estimated change is compared with the second.
BEFORE: tuple[tuple[int, int | None], ...] = ((0, None), (25, None), (250, None), (250, 50_000))
# Days after the change until a stream without an alarm ends.
MAX_DAYS = 200
HEADS = {
    "alarms": ("scores", "rows of a batch", "streams", "alarms", "percent"),
    "days": (
        "scores", "change", "from day 1", "after 25 days", "after 250 days",
        "after 250 days, forget=50_000", "since off by days",
    ),
    "speed": ("predictions", "rows of a batch", "rows a second"),
}  # fmt: skip


def sigmoid(z: F64) -> F64:
    """Return the probabilities of log odds."""
    return 1 / (1 + np.exp(-z))


def has_alarm(law: str, batch: int, number: int) -> bool:
    """Return whether the monitor of a calibrated stream ever alarms."""
    rng = np.random.default_rng([SEED, batch, number])
    monitor = Monitor(n_classes=CLASSES if law not in LAWS else None)
    for _ in range(ROWS // batch):
        if law in LAWS:
            p = sigmoid(LAWS[law](rng, batch))
            monitor.update(rng.random(batch) < p, p)
        else:
            p = np.exp(rng.normal(0, 2, (batch, CLASSES)))
            p /= p.sum(axis=1, keepdims=True)
            y = (p.cumsum(axis=1) < rng.random((batch, 1))).sum(axis=1)
            monitor.update(y.clip(0, CLASSES - 1), p)
    return monitor.alarm


def days_until_alarm(
    law: str, change: str, before: int, forget: int | None, number: int
) -> tuple[float, float]:
    """Return the days from the change to the alarm, and from the change to `since`.

    Both are nan for a stream with a false alarm.
    """
    rng = np.random.default_rng([SEED, number])
    monitor = Monitor(forget=forget)
    shift, slope = CHANGES[change]
    for day in range(before + MAX_DAYS):
        z = LAWS[law](rng, DAY)
        true_z = z if day < before else shift + slope * z
        monitor.update(rng.random(DAY) < sigmoid(true_z), sigmoid(z))
        if monitor.since is not None:
            if day < before:
                return np.nan, np.nan
            return day - before + 1, abs(monitor.since / DAY - before)
    return np.inf, np.nan


def alarm_rows(run: Any, streams: int) -> Iterator[list[str]]:
    """Yield how many calibrated streams alarm, and the sums last."""
    total = 0
    for law, batch, twentieths in STREAMS:
        n = streams * twentieths // 20
        alarms = sum(run(partial(has_alarm, law, batch), range(n)))
        total += alarms
        yield [law, f"{batch}", f"{n}", f"{alarms}", f"{100 * alarms / n:.1f}"]
    yield ["all", "", f"{streams}", f"{total}", f"{100 * total / streams:.1f}"]


def day_rows(run: Any, streams: int) -> Iterator[list[str]]:
    """Yield median days until the alarm with the 90 % quantile, and the median error of `since`."""
    for law in [*LAWS][:2]:
        for change in CHANGES:
            cells = []
            off = np.nan
            for before, forget in BEFORE:
                one = partial(days_until_alarm, law, change, before, forget)
                days, off_by = np.transpose([*run(one, range(streams))])
                days = days[~np.isnan(days)]
                middle, upper = np.quantile(days, [0.5, 0.9], method="inverted_cdf")
                cells.append(f"{days_as_text(middle)} ({days_as_text(upper)})")
                if (before, forget) == BEFORE[1]:
                    off = float(np.nanmedian(off_by))
            yield [law, change, *cells, f"{off:.0f}"]


def days_as_text(days: float) -> str:
    """Return a number of days as text, also where the stream ended without an alarm."""
    return f"{days:.0f}" if days < np.inf else f">{MAX_DAYS}"


def speed_rows(calls: int) -> Iterator[list[str]]:
    """Yield how many rows `update` adds per processor second, in the fastest call."""
    rng = np.random.default_rng(SEED)
    for classes, batch in product((None, CLASSES), (200, 1000, 10_000, 1_000_000 // CLASSES)):
        p = rng.random(batch) if classes is None else rng.dirichlet(np.ones(CLASSES), batch)
        y = rng.integers(0, classes or 2, batch)
        monitor = Monitor(n_classes=classes)
        call = partial(monitor.update, y, p)
        seconds = min(timeit.repeat(call, timer=time.process_time, number=1, repeat=calls))
        kind = "P(positive)" if classes is None else f"{classes} classes"
        yield [kind, f"{batch}", f"{batch / seconds:.1g}"]


def main() -> None:
    """Write a table."""
    parser = new_parser(__doc__)
    parser.add_argument("table", choices=HEADS)
    parser.add_argument(
        "--streams", type=int, help="default: 8000 (alarms), 200 (days), or 20 calls (speed)"
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    streams = options.streams or {"alarms": 8000, "days": 200, "speed": 20}[options.table]
    with ProcessPoolExecutor(options.jobs) as pool:
        if options.table == "alarms":
            rows = alarm_rows(partial(pool.map, chunksize=20), streams)
        elif options.table == "days":
            rows = day_rows(partial(pool.map, chunksize=5), streams)
        else:
            rows = speed_rows(streams)
        write_table(options.out, f"monitor_{options.table}", HEADS[options.table], rows)


if __name__ == "__main__":
    main()
