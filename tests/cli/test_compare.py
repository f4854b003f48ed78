"""The command `compare` prints the values of `fastece.compare`."""

import io
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece.report.inputs import ERRORS
from fastece.report.words import SCORES
from helpers.command_line import DIGITS, FOREST, PAIRS, as_json, text
from helpers.prediction_files import packed

BINARY = "y_true,y_prob\n0,0.1\n1,0.4\n1,0.9\n"
KEYS = ("name", "difference", "low", "high", "p_value", "method", "estimator", "a", "b")


def check_lines(found, *models, **options):
    """Check every difference but of mce, which is no name of the table."""
    assert [line["name"] for line in found["differences"]] == [*ERRORS]
    for line in [*found["differences"], *found["scores"]]:
        if line["name"] != "mce":
            x = fastece.compare(*models, estimator=line["name"], **options)
            low, high = x.confidence_interval
            assert tuple(line) == ("name", "a", "b", *KEYS[1:7])
            assert [line[key] for key in KEYS] == [
                line["name"], x.value, low, high, x.p_value, x.method, x.estimator, x.a, x.b
            ]  # fmt: skip


@pytest.mark.slow
def test_two_models_of_the_digits(capsys, tmp_path, figures):
    a = np.load(DIGITS)
    b = np.load(FOREST)
    picture = tmp_path / "a.svg"
    n_resamples = 19
    options = ["--resamples", n_resamples, "--seed", 3, "--plot", picture]
    printed = as_json(capsys, "compare", DIGITS, FOREST, *options)
    assert [printed[x] for x in ("a", "b", "n", "n_resamples", "confidence_level", "plot")] == [
        str(DIGITS), str(FOREST), 1797, n_resamples, 0.95, str(picture)
    ]  # fmt: skip
    assert [line["name"] for line in printed["scores"]] == [*SCORES]
    models = (a["y_true"], a["y_prob"], b["y_prob"])
    check_lines(printed, *models, n_resamples=n_resamples, rng=3)
    better = "Model digits_neural_network is better calibrated by ece_bayes"
    assert printed["verdict"].startswith(better)
    (figure,) = figures
    assert " ".join(figure.get_suptitle().split()).endswith(printed["verdict"])
    ax = figure.axes[0]
    names = [entry.get_text() for entry in ax.get_legend().get_texts()]
    models_drawn = {name.partition(",")[0] for name in names}
    assert {"…gits_neural_network", "digits_random_forest"} <= models_drawn
    colours = {
        x.get_color() for x in ax.get_lines() if x.get_label() in names if len(x.get_xdata())
    }
    assert len(colours) == 3  # two models and the diagonal
    assert len(figure.axes) == 2


@pytest.mark.slow
def test_the_page_has_a_column_for_each_value(capsys):
    options = ["--resamples", 32, "--confidence-level", 0.9]
    out = text(capsys, "compare", DIGITS, FOREST, *options)
    assert "sharpness and entropy do not rate a model" in " ".join(out.split())
    lines = [line.split() for line in out.splitlines()]
    assert ["digits_neural_network", str(DIGITS)] in lines
    names = ["digits_neural_network", "digits_random_forest"]
    assert ["error", *names, "difference", "90", "%", "CI", "p-value", "estimator"] in lines
    assert [line[0] for line in lines if line and line[-1].endswith(")")][: len(ERRORS)]


@pytest.mark.slow
def test_a_difference_outside_its_interval_has_a_word_beside_it(capsys):
    out = text(capsys, "compare", DIGITS, FOREST)
    remarks = [line.split()[0] for line in out.splitlines() if "outside its interval" in line]
    printed = as_json(capsys, "compare", DIGITS, FOREST)
    outside = [
        x["name"] for x in printed["differences"] if not x["low"] <= x["difference"] <= x["high"]
    ]
    assert [name for name in remarks if name in ERRORS] == outside != []


@pytest.mark.parametrize(
    ("files", "columns", "names"),
    [
        (["x/old.csv", "y/new.csv.gz"], [], ["old", "new"]),
        (["x/old.csv", "y/new.csv.gz"], ["p", "p"], ["old", "new"]),
        (["x/same.csv", "y/same.csv"], [], ["a", "b"]),
        (["p.csv"], ["p", "q"], ["p", "q"]),
        ([f"{'long' * 9}.csv", "b.csv"], [], ["a", "b"]),
        (["-", "b.csv"], [], ["standard input", "b"]),
        (["a, b.csv", "a, c.csv"], [], ["a, b", "a, c"]),
        (["a.csv", "b.csv", "b.csv"], ["p", "p", "q"], ["a p", "b p", "b q"]),
    ],
)
def test_models_have_the_names_of_their_files_where_these_tell_them_apart(
    capsys, tmp_path, monkeypatch, files, columns, names
):
    monkeypatch.chdir(tmp_path)
    content = b"y_true,y_prob,p,q\n0,0.1,0.2,0.3\n1,0.4,0.5,0.6\n1,0.9,0.8,0.7\n"
    for file in files:
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_bytes(packed(content) if file.endswith(".gz") else content)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    options = [word for column in columns for word in ("--y-prob", column)]
    page = text(capsys, "compare", *files, *options, "--resamples", 9, "--markdown")
    headers = [line.strip("| ").split(" | ") for line in page.splitlines() if "| error" in line]
    found = [name for header in headers for name in header[1:3]]
    assert list(dict.fromkeys(found)) == names


def test_a_model_differs_from_itself_by_nothing(capsys, write):
    path = write(BINARY)
    printed = as_json(capsys, "compare", path, path, "--resamples", 64)
    for line in printed["differences"]:
        assert (line["difference"], line["p_value"]) == (0, 1)
    assert printed["verdict"].startswith("No clear difference in ece_bayes (95 % CI of")


@pytest.mark.slow
def test_each_of_several_models_is_compared_with_the_first(capsys, write, tmp_path, figures):
    rows = "".join(
        f"{i % 3 > 0:d},{(i % 7 + 1) / 10},{(i % 5 + 2) / 10},0.{i % 9}\n" for i in range(60)
    )
    path = write(f"y_true,one,two,three\n{rows}")
    page = tmp_path / "all.html"
    columns = [x for name in ("one", "two", "three") for x in ("--y-prob", name)]
    quick = ["--resamples", 64]
    picture = ["--plot", tmp_path / "all.png"]
    printed = as_json(capsys, "compare", path, *columns, *quick, "--html", page, *picture)
    assert [printed[x] for x in "abc"] == [f"{path}, {name}" for name in ("one", "two", "three")]
    assert [*printed["p_values"]] == [*"abc"]
    for name, got in zip(("two", "three"), printed["comparisons"], strict=True):
        pair = as_json(capsys, "compare", path, *columns[:2], "--y-prob", name, *quick)
        for table in ("differences", "scores"):
            for line, own_line in zip(got[table], pair[table], strict=True):
                assert [*line.values()][:4] == [*own_line.values()][:4]
                assert line["raw_p_value"] == own_line["p_value"] <= line["p_value"]
                assert line["p_value"] <= 2 * line["raw_p_value"]
                assert line["low"] <= own_line["low"] <= own_line["high"] <= line["high"]
    for figure in figures:  # of the page and of the file
        names = [x.get_text().partition(",")[0] for x in figure.axes[0].get_legend().get_texts()]
        assert {"one", "two", "three"} <= {*names}
    printed_page = text(capsys, "compare", path, *columns, *quick)
    content = page.read_text(encoding="utf-8")
    for title in ("Calibration errors: one and two", "Scores: one and three"):
        assert title in printed_page
        assert title in content
    assert "<img" in content
    assert "joint 95 % CI" in printed_page
    words = " ".join(printed_page.split())  # lines are wrapped
    assert words.count("hold for all 2 comparisons together") == 1
    assert "p-value of an error is below 0.05" not in printed_page
    three = [path] * 3
    assert as_json(capsys, "compare", *three, "--y-prob", "one", *quick)["comparisons"][1]["scores"]


@pytest.mark.slow
def test_top_labels_have_the_hits_of_each_model(capsys, write):
    a = write(f"{PAIRS}3,3,0.9\n1,2,0.5\n0,0,0.8\n2,2,0.6\n", "a.csv")
    b = write(f"{PAIRS}3,1,0.7\n1,1,0.6\n0,0,0.9\n2,2,0.3\n", "b.csv")
    printed = as_json(capsys, "compare", a, b, "--resamples", 64, "--n-bins", 4)
    (line,) = (x for x in printed["differences"] if x["name"] == "ece")
    assert line["a"] == fastece.ece([1, 0, 1, 1], [0.9, 0.5, 0.8, 0.6], n_bins=4)
    assert line["b"] == fastece.ece([0, 1, 1, 1], [0.7, 0.6, 0.9, 0.3], n_bins=4)
    assert printed["setting"] == "binary"
    # The same from class vectors whose largest entries these are.
    p = np.full((2, 4, 4), 0.0)
    for k, rows in enumerate(([(3, 0.9), (2, 0.5), (0, 0.8), (2, 0.6)],
                              [(1, 0.7), (1, 0.6), (0, 0.9), (2, 0.3)])):  # fmt: skip
        for i, (label, confidence) in enumerate(rows):
            p[k, i] = (1 - confidence) / 3
            p[k, i, label] = confidence
    result = fastece.compare(
        [3, 1, 0, 2], *p, n_resamples=64, estimator="ece", n_bins=4, rng=0, method="mover"
    )
    assert (line["low"], line["high"]) == pytest.approx(result.confidence_interval)
    printed = as_json(capsys, "compare", a, b, "--classes", 4, "--resamples", 9)
    value = fastece.ece([1, 0, 1, 1], [0.9, 0.5, 0.8, 0.6], score_range=(0.25, 1.0))
    assert [x["a"] for x in printed["differences"] if x["name"] == "ece"] == [value]


@pytest.mark.slow
def test_groups_and_weights_are_columns(capsys, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    weight = rng.integers(1, 4, 200)
    y = rng.random(200) < p
    passage = rng.integers(0, 25, 200)
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file, q in zip(files, (p, p**2), strict=True):
        columns = zip(y.astype(int), q.tolist(), passage, weight, strict=True)
        rows = [f"{a},{b!r},text {c},{w}" for a, b, c, w in columns]
        file.write_text("\n".join(["y_true,y_prob,passage,w", *rows]))
    options = ["--groups", "passage", "--weights", "w", "--resamples", 19, "--seed", 3]
    printed = as_json(capsys, "compare", *files, *options)
    assert (printed["n"], printed["n_groups"]) == (200, 25)
    tested = {"n_resamples": 19, "rng": 3, "groups": passage, "sample_weight": weight}
    expected = [fastece.calibration_test(y, x, **tested).p_value for x in (p, p**2)]
    assert [*printed["p_values"].values()] == expected
    check_lines(printed, y, p, p**2, n_resamples=19, rng=3, groups=passage, sample_weight=weight)
    page = text(capsys, "compare", *files, *options)
    assert "  200 in 25 groups\n" in page
    assert "scores are drawn by group." in " ".join(page.split())
