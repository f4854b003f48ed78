"""States in a file: the same rows make the same integers, which have the same answers."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece import Accumulator

ROOT = Path(__file__).parents[2]
MAKER = runpy.run_path(str(ROOT / "scripts" / "data" / "make_accumulator_state.py"))
CASES = MAKER["CASES"]


def saved(case):
    """The state dict of a case, and the answers that it had when it was written."""
    with np.load(ROOT / "tests" / "fixtures" / "accumulator.npz") as file:
        start = f"{case}/state/"
        names = {key[len(start) :].rpartition("/")[0] for key in file if key.startswith(start)}
        state = {}
        for name in names:
            rows, values, shape = (
                file[f"{start}{name}/{part}"] for part in ("rows", "values", "shape")
            )
            array = np.zeros(tuple(shape), dtype=np.int64)
            array.ravel()[rows] = values
            state[name] = array
        return state, file[f"{case}/answers"]


@pytest.mark.parametrize("case", CASES)
def test_a_saved_state_answers_as_it_did(case):
    arrays, expected = saved(case)
    state = Accumulator(**CASES[case]).load_state_dict(arrays)
    assert MAKER["answers"](case, state) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert state.n == MAKER["ROWS"]
    assert fastece.ece(state) == pytest.approx(expected[0], abs=1e-15)


@pytest.mark.parametrize("case", CASES)
def test_the_same_rows_make_the_same_state(case):
    arrays, _ = saved(case)
    state = MAKER["state_of"](case)
    now = state.state_dict()
    assert arrays.keys() == now.keys()
    for name, array in arrays.items():
        assert np.array_equal(array, now[name]), name
    assert Accumulator(**CASES[case]).load_state_dict(arrays) == state
