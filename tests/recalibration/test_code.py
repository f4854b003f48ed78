"""Maps as code: what Python, SQLite and Node compute is what `transform` gives."""

import json
import shutil
import sqlite3
import subprocess

import numpy as np
import pytest

from fastece.recalibration import (
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    PriorShift,
    ScalingBinning,
    TemperatureScaling,
)
from helpers.bad_input import assert_refused
from helpers.recalibration_cases import METHODS, VARIANTS, classes, data_of, fitted

NEAR = {"rtol": 0, "atol": 1e-12}
# Maps of more than two classes that have code.
WITH_CODE_OF_CLASSES = ("none", "temperature", "ets", "vector", "svs")
# Variants with every form of input.
CASES = [(variant, "one column", is_logit) for variant in VARIANTS for is_logit in (False, True)]
CASES += [
    (name, "three classes", is_logit) for name in WITH_CODE_OF_CLASSES for is_logit in (False, True)
]
every_case = pytest.mark.parametrize(("variant", "problem", "from_logits"), CASES)


def rows_of(variant, problem, from_logits):
    """A fitted map, rows of every kind as lists of Python's numbers, and what they become."""
    model = fitted(variant, problem, from_logits)
    x, new = data_of(problem).inputs(from_logits)
    rows = np.concatenate([x, new, extremes(model)])
    return model, rows.tolist(), model.transform(rows)


def extremes(model):
    """Ends of the range, ends of pieces and the clip, with the numbers next to each."""
    if model.n_classes_ > 2:
        if model.from_logits:
            return np.array([[0, 0, 0], [700, -700, 0], [-1e9, 1e9, 0], [1e-9, 0, -1e-9]])
        return np.array([[0, 0, 1], [1e-300, 1 - 1e-9, 1e-9], [0.5, 0.5, 0]])
    if model.from_logits:
        return np.array([0, 1e-9, -36.5, 36.5, 50, -50, 700, -700, 1e9, -1e9, 1e100, -1e100])
    points = [0.0, 1.0, 0.5, 1e-16, 1e-300, getattr(model, "clip_", 0.1)]
    points += [1 - points[-1], *getattr(model, "cut_", []), *getattr(model, "score_", [])]
    near = np.concatenate([np.nextafter(points, -1), points, np.nextafter(points, 2)])
    return near.clip(0, 1)


def run_python(code, rows):
    scope = {}
    exec(code, scope)
    return [scope["recalibrate"](row) for row in rows]


def run_sql(code, rows, names):
    """The columns of the query by their names, in the order of `id`."""
    base = sqlite3.connect(":memory:")
    base.create_function("exp", 1, np.exp)  # Python's SQLite may lack functions of mathematics.
    base.create_function("ln", 1, np.log)
    base.execute(f"CREATE TABLE predictions (id, s, line, {', '.join(names)})")
    marks = ", ".join(["?"] * (3 + len(names)))
    values = [(i, "s", "line", *np.atleast_1d(row).tolist()) for i, row in enumerate(rows)]
    base.executemany(f"INSERT INTO predictions VALUES ({marks})", values)
    answer = base.execute(code)
    columns = [column[0] for column in answer.description]
    return dict(zip(columns, zip(*sorted(answer.fetchall()), strict=True), strict=True))


@every_case
def test_python_equals_transform(variant, problem, from_logits):
    model, rows, expected = rows_of(variant, problem, from_logits)
    answer = run_python(model.to_code("python"), rows)
    assert isinstance(answer[0], float if problem == "one column" else list)
    np.testing.assert_allclose(answer, expected, **NEAR)


@every_case
def test_sql_equals_transform_and_keeps_columns(variant, problem, from_logits):
    model, rows, expected = rows_of(variant, problem, from_logits)
    name = "z" if from_logits else "p"
    is_binary = problem == "one column"
    names = [name] if is_binary else [f"{name}{k}" for k in range(3)]
    table = run_sql(model.to_code("sql"), rows, names)
    assert list(table)[: 3 + len(names)] == ["id", "s", "line", *names]
    assert [table["id"][-1], table["s"][0], table["line"][0]] == [len(rows) - 1, "s", "line"]
    if is_binary:
        answer = table["recalibrated"]
    else:
        answer = np.column_stack([table[f"recalibrated{k}"] for k in range(3)])
    np.testing.assert_allclose(np.array(answer, float), expected, **NEAR)


@pytest.mark.slow
def test_javascript_equals_transform(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    script, expected = [], []
    for case in CASES:
        model, rows, of_case = rows_of(*case)
        lines = [model.to_code("js"), f"return {json.dumps(rows)}.map(recalibrate);"]
        script.append(f"(() => {{{''.join(lines)}}})()")
        expected.append(of_case)
    file = tmp_path / "maps.js"
    file.write_text(f"console.log(JSON.stringify([{','.join(script)}]));", encoding="utf-8")
    answer = subprocess.run([node, str(file)], capture_output=True, text=True, check=True)
    for case, of_case, of_node in zip(CASES, expected, json.loads(answer.stdout), strict=True):
        np.testing.assert_allclose(of_node, of_case, **NEAR, err_msg=str(case))


def test_a_training_row_stays_in_its_bin():
    """Edges of bins of equal mass are training rows, so the last bit of a score decides."""
    rng = np.random.default_rng(4)
    z = rng.normal(size=1000)
    y = rng.random(1000) < 1 / (1 + np.exp(-z))
    for labels in (y, ~y):  # The second map decreases.
        for from_logits in (False, True):
            x = z if from_logits else 1 / (1 + np.exp(-z))
            model = ScalingBinning(n_bins=50, from_logits=from_logits).fit(x, labels)
            expected = model.transform(x)
            answer = run_python(model.to_code("python"), x.tolist())
            np.testing.assert_array_equal(answer, expected)
            table = run_sql(model.to_code("sql"), x, ["z" if from_logits else "p"])
            np.testing.assert_allclose(table["recalibrated"], expected, **NEAR)


def test_an_edge_at_the_largest_score():
    """The bin beyond it has no rows and no scores."""
    x = [0.1, 0.2, 0.3, 1.0, 1.0, 1.0, 1.0, 1.0]
    model = HistogramBinning(n_bins=4, edges="quantile").fit(x, [0, 1, 0, 1, 1, 0, 1, 1])
    assert model.cut_.max() == 1
    answer = run_python(model.to_code("python"), x)
    np.testing.assert_array_equal(answer, model.transform(x))


@pytest.mark.parametrize("new", [0.0, 0.1, 1.0])
def test_base_rates_at_the_ends(new):
    model = PriorShift(old=0.3, new=new).fit([0.5])
    rows = [0.0, 1e-9, 0.5, 1.0]
    answer = run_python(model.to_code("python"), rows)
    np.testing.assert_allclose(answer, model.transform(rows), **NEAR)


def test_more_points_than_sqlite_nests_run_in_sqlite():
    """SQLite refuses expressions of a depth above 1000."""
    pairs = np.arange(1200) // 2 / 600 + np.tile([0, 1e-4], 600)
    rng = np.random.default_rng(5)
    y = rng.random(1200) < pairs
    model = IsotonicCalibration().fit(pairs, y)
    model.score_, model.value_ = pairs, np.sort(rng.random(1200))
    answer = run_sql(model.to_code("sql"), pairs[::50], ["p"])["recalibrated"]
    np.testing.assert_allclose(answer, model.transform(pairs[::50]), **NEAR)


def test_rows_without_a_prediction_stay_without():
    code = fitted("histogram", "one column").to_code("sql")
    assert run_sql(code, [np.nan, 0.5], ["p"])["recalibrated"][0] is None


def test_the_first_line_names_the_method_and_the_input():
    line = fitted("platt", "one column").to_code("python").splitlines()[0]
    assert line.startswith("# Platt scaling by fastece ")
    assert line.endswith(", from the probability p of class 1.")
    line = fitted("vector", "three classes", from_logits=True).to_code("sql").splitlines()[0]
    assert line.endswith(", from the logits z0, z1, ... of 3 classes.")


@pytest.mark.parametrize("name", [name for name in METHODS if name not in WITH_CODE_OF_CLASSES])
def test_other_maps_of_more_classes_are_refused(name):
    model = fitted(name, "three classes")
    assert_refused(lambda: model.to_code("python"), ["language", "3 classes", "save", "JSON"])


def test_a_language_must_be_known_and_a_map_fitted():
    assert_refused(lambda: fitted("platt", "one column").to_code("r"), ["language", "'r'", "'js'"])
    assert_refused(lambda: PlattScaling().to_code("js"), ["language", "PlattScaling", "fitted"])


def test_many_classes_stay_short():
    data = classes(k=6)
    model = TemperatureScaling().fit(data.X, data.y)
    assert len(model.to_code("python").splitlines()) < 20
    assert len(model.to_code("js").splitlines()) < 20
