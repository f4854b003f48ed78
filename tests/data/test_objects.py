"""Numbers that columns hold as objects, and hints on units that the data prove."""

import warnings
from decimal import Decimal

import numpy as np
import pytest

import fastece

pandas = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
N = 200
SCORE = RNG.random(N)
EVENT = (RNG.random(N) < SCORE).astype(int)
VECTORS = RNG.dirichlet([1, 1, 1], N)
LABEL = np.array([RNG.choice(3, p=row) for row in VECTORS])
BOOLS_AMONG_INTEGERS = np.where(EVENT == 1, True, EVENT.astype(object))

OBJECTS = {
    "bools": (EVENT.astype(bool).astype(object), SCORE),
    "a series of bools": (pandas.Series([*EVENT.astype(bool)], dtype=object), SCORE),
    "integers": (pandas.Series([*EVENT], dtype=object), SCORE),
    "bools among integers": (BOOLS_AMONG_INTEGERS, SCORE),
    "decimals": ([Decimal(int(label)) for label in EVENT], SCORE),
    "scores": (EVENT, SCORE.astype(object)),
    "decimal scores": (EVENT, pandas.Series([Decimal(score) for score in SCORE])),
}


@pytest.mark.parametrize(("y", "p"), OBJECTS.values(), ids=OBJECTS)
def test_objects_that_are_numbers_are_read(y, p):
    assert fastece.ece(y, p) == fastece.ece(EVENT, SCORE)


def test_a_frame_of_mixed_columns_is_read():
    rows = pandas.DataFrame({"name": ["a"] * N, "y": EVENT, "p": SCORE}).to_numpy()
    assert fastece.ece(rows[:, 1], rows[:, 2]) == fastece.ece(EVENT, SCORE)


@pytest.mark.parametrize(
    "bad",
    [None, "x", float("nan"), Decimal("NaN"), 10**400],
    ids=["None", "text", "nan", "decimal nan", "large"],
)
def test_objects_that_are_no_numbers_are_refused(bad):
    scores = [*SCORE[:-1], bad]
    with pytest.raises((TypeError, ValueError), match=rf"y_prob\[{N - 1}\] is"):
        fastece.ece(EVENT, np.array(scores, object))


def columns_of_lists():
    yield pandas.Series([*VECTORS])
    yield pandas.Series(VECTORS.tolist())
    polars = pytest.importorskip("polars")
    yield polars.Series(VECTORS.tolist())
    pyarrow = pytest.importorskip("pyarrow")
    yield pyarrow.array(VECTORS.tolist())
    yield pyarrow.chunked_array([VECTORS.tolist()])


def test_columns_of_lists_are_class_vectors():
    for column in columns_of_lists():
        assert fastece.ece(LABEL, column) == fastece.ece(LABEL, VECTORS)
    uneven = pandas.Series([*VECTORS[:-1], np.array([0.5, 0.5])])
    with pytest.raises(ValueError, match=rf"must be rows of 3 numbers.*y_prob\[{N - 1}\] is array"):
        fastece.ece(LABEL, uneven)


# --- units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "named", "left_out"),
    [
        (np.log(SCORE), "np.exp", "from_logits"),
        (2 * SCORE - 1, "[0, 1]", "from_logits"),
        (1 / SCORE.clip(0.05), "decimal odds", "from_logits"),
        (100 * SCORE, "percent=True", "odds"),
        (np.log(SCORE / (1 - SCORE)), "from_logits=True", "percent"),
    ],
)
def test_a_hint_names_an_option_where_the_data_prove_the_unit(numbers, named, left_out):
    with pytest.raises(ValueError, match="must lie in") as caught:
        fastece.ece(EVENT, numbers)
    assert named in str(caught.value)
    assert left_out not in str(caught.value)


def test_log_probabilities_are_no_logits():
    confidence = 0.5 + SCORE / 2
    with pytest.warns(UserWarning, match=r"no value is above 0.*np\.exp"):
        fastece.ece(EVENT, np.log(confidence), from_logits=True)
    rare = -2 - 4 * SCORE
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fastece.ece((RNG.random(N) < 0.02).astype(int), rare, from_logits=True)
