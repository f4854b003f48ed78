"""Write tests/fixtures/accumulator.npz: states of accumulators, with their values.

It is written anew only where states get other arrays.
"""

from pathlib import Path
from typing import Any

import numpy as np

import fastece
from fastece import Accumulator

TARGET = Path(__file__).parents[2] / "tests" / "fixtures" / "accumulator.npz"
ROWS = 96
CLASSES = 3
CASES: dict[str, dict[str, Any]] = {
    "binary": {},
    "confidence": {"n_classes": CLASSES},
    "classwise": {"n_classes": CLASSES, "setting": "classwise"},
    "replicates": {"n_replicates": 4, "seed": 20261122},
    "groups": {"n_replicates": 4, "seed": 20261122},
}
ESTIMATORS = ("ece", "ece_c", "ece_a", "ece_ac", "ece_kde")


def data(case: str) -> tuple[Any, Any, Any, Any]:
    """Return labels, probabilities in steps of 1/64, weights in steps of 1/4, and groups of five
    rows."""
    i = np.arange(ROWS)
    first = i * 7 % 65
    second = (65 - first) * (i * 13 % 16) // 16
    second = np.minimum(second, 64 - first)
    prob = np.column_stack([first, second, 64 - first - second]) / 64
    weight = (i * 5 % 9 + 1) / 4
    groups = i // 5 if case == "groups" else None
    if "n_classes" in CASES[case]:
        return i * i % 7 % CLASSES, prob, weight, groups
    return i * i % 7 % 2, prob[:, 0], weight, groups


def state_of(case: str) -> Accumulator:
    """Return the state of all rows of a case."""
    y, p, weight, groups = data(case)
    return Accumulator(**CASES[case]).update(y, p, sample_weight=weight, groups=groups)


def answers(case: str, state: Accumulator) -> Any:
    """Return the values of all estimators, the Brier score and, in cases with replicates, those."""
    values = [fastece.ece(state, estimator=name) for name in ESTIMATORS]
    values.append(fastece.brier_score(state))
    if "n_replicates" in CASES[case]:
        values.extend(fastece.bootstrap(state).bootstrap_distribution)
    return np.array(values, dtype=np.float64)


def packed(array: Any) -> dict[str, Any]:
    """Return positions and values of an array's nonzero elements, and its shape.

    Most cells of a state are empty.
    """
    rows = np.flatnonzero(array)
    return {"rows": rows, "values": array.ravel()[rows], "shape": np.array(array.shape)}


def content() -> dict[str, Any]:
    """Return arrays named "case/state/name/part" and "case/answers"."""
    arrays = {}
    for case in CASES:
        state = state_of(case)
        for name, array in state.state_dict().items():
            for part, values in packed(array).items():
                arrays[f"{case}/state/{name}/{part}"] = values
        arrays[f"{case}/answers"] = answers(case, state)
    return arrays


if __name__ == "__main__":
    np.savez_compressed(TARGET, **content())
