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
    ClassDraws,
    LeaveOutDraws,
    MultinomialDraws,
    OutcomeDraws,
    RowDraws,
    new_key,
)

TARGET = Path(__file__).parents[2] / "tests" / "fixtures" / "bootstrap.json"
ROWS, CLASSES, REPLICATES, SEED = 66, 3, 8, 20240229
ESTIMATORS = ("ece", "ece_a", "ece_c", "ece_ac")
SETTINGS = ("auto", "classwise", 1)
SIZES = (None, 40, 3)


def data() -> tuple[Any, Any, Any, Any]:
    """Labels, the probabilities of two models, and weights, all of them multiples of 1/64."""
    i = np.arange(ROWS)
    models = []
    for step in (7, 11):
        first = i * step % 65
        second = (65 - first) * (i * 13 % 16) // 16
        second = np.minimum(second, 64 - first)
        models.append(np.column_stack([first, second, 64 - first - second]) / 64)
    return i * i % 7 % CLASSES, *models, (i * 5 % 9 + 1) / 4


def exact(values: Any) -> Any:
    """Floats as hexadecimal text, in lists."""
    if isinstance(values, np.ndarray | list):
        return [exact(value) for value in values]
    return float(values).hex()


def digest(counts: Any) -> str:
    """Hash of counts, whatever their type."""
    return hashlib.sha256(np.ascontiguousarray(counts, "<i8").tobytes()).hexdigest()


def draws() -> dict[str, Any]:
    """Hashes of draws, and the first of their counts."""
    key = new_key(SEED)
    prob = data()[1]
    made = {
        "all of 66 rows": MultinomialDraws(key, ROWS, ROWS).make(0, 3),
        "40 of 66 rows": MultinomialDraws(key, ROWS, 40).make(1, 2),
        "1000 rows": MultinomialDraws(key, 1000, 1000).make(2, 2),
        "rows in lists": RowDraws(key, ROWS, 3).make(5, 40),
        "left out": LeaveOutDraws(ROWS, 20, 3, 19).make(0, 1),
        "hits": OutcomeDraws(key, prob[:, 0].copy()).make(0, 2),
        "classes": ClassDraws(key, prob).make(0, 2),
    }
    return {
        "key": str(key),
        **{name: [digest(c), c.ravel()[:8].tolist()] for name, c in made.items()},
    }


def replicates() -> dict[str, Any]:
    """Distributions of every public function that resamples, for one class vector and for one
    column."""
    y, a, b, v = data()
    found = {}
    inputs = [((y, a, b), setting) for setting in SETTINGS]
    inputs.append(((y == 0, a[:, 0], b[:, 0]), "binary"))
    for ((true, one, two), setting), name, weight in product(inputs, ESTIMATORS, (None, v)):
        options: dict[str, Any] = {
            "estimator": name, "setting": setting, "average": None, "sample_weight": weight,
            "n_resamples": REPLICATES, "rng": SEED,
        }  # fmt: skip
        title = f"{setting}, {name}{', weights' if weight is not None else ''}"
        for size in SIZES:
            result = fastece.bootstrap(true, one, size=size, **options)
            found[f"bootstrap, {title}, size {size}"] = exact(result.bootstrap_distribution)
        result = fastece.compare(true, one, two, method="basic", **options)
        found[f"compare, {title}"] = exact(result.bootstrap_distribution)
        result = fastece.calibration_test(true, one, **options)
        found[f"test, {title}"] = exact(result.null_distribution)
    return found


def make() -> dict[str, Any]:
    """All that is kept."""
    return {"draws": draws(), "replicates": replicates()}


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(make(), indent=1) + "\n", encoding="utf-8")
