"""Write tests/fixtures/bootstrap.json: draws and replicates that must not change by a single bit.

Run it after a change that is meant to change them.
"""

import hashlib
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import fastece
from fastece.resampling.draws import (
    LabelDraws,
    LeaveOutDraws,
    RowDraws,
    RowLists,
    Units,
    new_key,
)

TARGET = Path(__file__).parents[2] / "tests" / "fixtures" / "bootstrap.json"
ROWS = 66
CLASSES = 3
REPLICATES = 8
SEED = 20240229
ESTIMATORS = ("ece", "ece_a", "ece_c", "ece_ac")
SETTINGS = ("auto", "classwise", 1)
SIZES = (None, 40, 3)


def data() -> tuple[Any, Any, Any, Any]:
    """Return labels, probabilities of two models, and weights: all are multiples of 1/64."""
    i = np.arange(ROWS)
    models = []
    for step in (7, 11):
        first = i * step % 65
        second = (65 - first) * (i * 13 % 16) // 16
        second = np.minimum(second, 64 - first)
        models.append(np.column_stack([first, second, 64 - first - second]) / 64)
    return i * i % 7 % CLASSES, *models, (i * 5 % 9 + 1) / 4


def exact(values: Any) -> Any:
    """Return floats as hexadecimal text, in nested lists."""
    if isinstance(values, np.ndarray | list):
        return [exact(value) for value in values]
    return float(values).hex()


def digest(counts: Any) -> str:
    """Return the hash of counts as 64-bit integers."""
    return hashlib.sha256(np.ascontiguousarray(counts, "<i8").tobytes()).hexdigest()


def draws() -> dict[str, Any]:
    """Return the hash and the first eight counts of some draws of each kind."""
    key = new_key(SEED)
    prob = data()[1]
    # How to draw, the number of the first draw, and the number of draws.
    cases = {
        "all of 66 rows": (RowDraws(key, Units(ROWS), ROWS), 0, 3),
        "40 of 66 rows": (RowDraws(key, Units(ROWS), 40), 1, 2),
        "1000 rows": (RowDraws(key, Units(1000), 1000), 2, 2),
        "rows in lists": (RowLists(key, ROWS, 3), 5, 40),
        "left out": (LeaveOutDraws(Units(ROWS), 20, 3, 19), 0, 1),
        "hits": (LabelDraws(key, prob[:, 0].copy()), 0, 2),
        "classes": (LabelDraws(key, prob), 0, 2),
    }
    golden: dict[str, Any] = {"key": str(key)}
    for name, (kind, first, n_draws) in cases.items():
        counts = kind.make(first, n_draws)
        golden[name] = [digest(counts), counts.ravel()[:8].tolist()]
    return golden


def replicates() -> dict[str, Any]:
    """Return distributions of all public functions that resample.

    The input has class vectors or, in the setting "binary", the scores of one class.
    """
    y, a, b, v = data()
    golden = {}
    inputs = [((y, a, b), setting) for setting in SETTINGS]
    inputs.append(((y == 0, a[:, 0], b[:, 0]), "binary"))
    for ((y_true, prob_a, prob_b), setting), name, weight in product(inputs, ESTIMATORS, (None, v)):
        options: dict[str, Any] = {
            "estimator": name, "setting": setting, "average": None, "sample_weight": weight,
            "n_resamples": REPLICATES, "rng": SEED,
        }  # fmt: skip
        title = f"{setting}, {name}{', weights' if weight is not None else ''}"
        for size in SIZES:
            result = fastece.bootstrap(y_true, prob_a, size=size, **options)
            golden[f"bootstrap, {title}, size {size}"] = exact(result.bootstrap_distribution)
        result = fastece.compare(y_true, prob_a, prob_b, method="basic", **options)
        golden[f"compare, {title}"] = exact(result.bootstrap_distribution)
        result = fastece.calibration_test(y_true, prob_a, **options)
        golden[f"test, {title}"] = exact(result.null_distribution)
    return golden


def make() -> dict[str, Any]:
    """Return the content of the file."""
    return {"draws": draws(), "replicates": replicates()}


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(make(), indent=1) + "\n", encoding="utf-8")
