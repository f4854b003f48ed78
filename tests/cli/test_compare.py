"""Two models: the numbers are those of `fastece.compare`."""

import re

import numpy as np
import pytest

import fastece
from fastece.report.report import ERRORS, SCORES
from helpers.command_line import DIGITS, FOREST, PAIRS, as_json, failure, text


def differences(comparison):
    return {line["name"]: line for line in comparison["differences"]}


@pytest.mark.parametrize("setting", ["auto", "classwise"])
def test_compare_two_models_of_the_digits(capsys, setting):
    a, b = np.load(DIGITS), np.load(FOREST)
    options = ["--resamples", 32, "--seed", 3, "--setting", setting]
    found = as_json(capsys, "compare", DIGITS, FOREST, *options)
    assert (found["a"], found["b"], found["n"]) == (str(DIGITS), str(FOREST), 1797)
    assert (found["n_resamples"], found["confidence_level"]) == (32, 0.95)
    assert [*differences(found)] == [*ERRORS]
    assert [line["name"] for line in found["scores"]] == [*SCORES]
    for line in found["differences"][:4]:
        result = fastece.compare(
            a["y_true"], a["y_prob"], b["y_prob"], estimator=line["name"], n_resamples=32, rng=3,
            setting=setting, method="mover",
        )  # fmt: skip
        assert line["method"] == "mover"
        assert (line["a"], line["b"]) == (result.a, result.b)
        assert line["difference"] == result.value
        assert (line["low"], line["high"]) == result.confidence_interval
        assert line["p_value"] == result.p_value


def test_a_comparison_has_a_verdict_and_scores(capsys):
    found = as_json(capsys, "compare", DIGITS, FOREST, "--resamples", 99)
    start = "Model a is better calibrated by ece_bayes (95 % interval of a - b [-0.2"
    assert found["verdict"].startswith(start)
    assert "; model a is better in all by the Brier score (95 % interval" in found["verdict"]
    same = as_json(capsys, "compare", DIGITS, DIGITS, "--resamples", 99)
    assert same["verdict"].startswith(
        "Neither is shown to be better calibrated by ece_bayes (95 % "
    )
    a, b = np.load(DIGITS), np.load(FOREST)
    brier = found["scores"][0]
    assert brier["a"] == pytest.approx(fastece.brier_score(a["y_true"], a["y_prob"]), rel=1e-12)
    assert brier["b"] == pytest.approx(fastece.brier_score(b["y_true"], b["y_prob"]), rel=1e-12)


def test_comparison_in_words(capsys):
    options = ["--resamples", 32, "--confidence-level", 0.9]
    out = text(capsys, "compare", DIGITS, FOREST, *options)
    for part in (f"a        {DIGITS}\n", "setting  confidence", "90 % CI",
                 "ece_ac", "mce", "p-value of an error: below", "a - b above 0: b"):  # fmt: skip
        assert part in out
    head, *rows = [x for x in out.splitlines() if re.match("  (error|ece|mce)", x)]
    assert all(x.index("Binned") == head.index("estimator") for x in rows if "Binned" in x)


@pytest.mark.parametrize("setting", ["auto", "classwise"])
def test_picture_of_a_comparison_has_both_models(capsys, tmp_path, figures, setting):
    picture = tmp_path / "a.svg"
    options = ["--resamples", 32, "--setting", setting, "--plot", picture]
    found = as_json(capsys, "compare", DIGITS, FOREST, *options)
    assert found["plot"] == str(picture)
    (figure,) = figures
    assert " ".join(figure.get_suptitle().split()).endswith(found["verdict"])
    ax = figure.axes[0]
    legend = ax.get_legend() if setting == "auto" else figure.legends[0]
    names = [entry.get_text() for entry in legend.get_texts()]
    assert [name[:4] for name in names if name[1] == ":"] == ["a: …", "b: …"]
    colours = {
        x.get_color() for x in ax.get_lines() if x.get_label() in names if len(x.get_xdata())
    }
    assert len(colours) == 3  # those of the models, and of the diagonal
    assert len(figure.axes) == (2 if setting == "auto" else 10)


def test_comparison_says_where_its_picture_is(capsys, tmp_path, write, figures):
    path, picture = write(BINARY), tmp_path / "a.svg"
    out = text(capsys, "compare", path, path, "--resamples", 9, "--plot", picture)
    assert out.endswith(f"\n  picture  {picture}\n")
    assert len(figures) == 1


def test_compare_a_model_with_itself(capsys, write):
    path = write(BINARY)
    for line in as_json(capsys, "compare", path, path, "--resamples", 64)["differences"]:
        assert (line["difference"], line["p_value"]) == (0, 1)


def test_compare_top_labels_by_the_hits_of_each_model(capsys, write):
    a = write(f"{PAIRS}3,3,0.9\n1,2,0.5\n0,0,0.8\n2,2,0.6\n", "a.csv")
    b = write(f"{PAIRS}3,1,0.7\n1,1,0.6\n0,0,0.9\n2,2,0.3\n", "b.csv")
    found = as_json(capsys, "compare", a, b, "--resamples", 64, "--n-bins", 4)
    line = differences(found)["ece"]
    assert line["a"] == fastece.ece([1, 0, 1, 1], [0.9, 0.5, 0.8, 0.6], n_bins=4)
    assert line["b"] == fastece.ece([0, 1, 1, 1], [0.7, 0.6, 0.9, 0.3], n_bins=4)
    assert found["setting"] == "binary"
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
    found = as_json(capsys, "compare", a, b, "--classes", 4, "--resamples", 9)
    value = fastece.ece([1, 0, 1, 1], [0.9, 0.5, 0.8, 0.6], score_range=(0.25, 1.0))
    assert differences(found)["ece"]["a"] == value


BINARY = "y_true,y_prob\n0,0.1\n1,0.4\n1,0.9\n"


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("y_true,y_prob\n0,0.1\n0,0.4\n0,0.9\n", [], "b.csv: line 3: must have the labels of "
         ".*a.csv, which has 1 in line 3, got 0"),
        ("y_true,y_prob\n0,0.1\n1,0.4\n", [], "which has 3, got 2"),
        ("y_true,y_prob\n0,0.1\n1,0.4\n1,1.9\n", [], "b.csv: line 4, column y_prob: .*, got 1.9"),
        (f"{PAIRS}0,0,0.5\n", [], "kind of columns"),
        ("y_true,p_0,p_1\n0,0.5,0.5\n1,0.5,0.5\n1,0.5,0.5\n", ["--setting", "5"], "class index"),
        ("y_true,p_0,p_1,p_2\n0,1,0,0\n1,1,0,0\n1,0,0,1\n", ["--setting", "classwise"],
         "must have the classes"),
        (BINARY, ["--resamples", "0"], "--resamples: must be"),
        (BINARY, ["--n-bins", "0"], "--n-bins: must be"),
        (BINARY, ["--classes", "3"], "--classes: goes with"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_compared(capsys, write, content, options, message):
    a, b = write(BINARY, "a.csv"), write(content, "b.csv")
    assert re.search(message, failure(capsys, "compare", a, b, *options))


def test_top_labels_have_no_other_setting(capsys, write):
    path = write(f"{PAIRS}0,0,0.5\n")
    assert "class vector" in failure(capsys, "compare", path, path, "--setting", "classwise")


def test_groups_of_rows_are_drawn(capsys, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y, passage = rng.random(200) < p, rng.integers(0, 25, 200)
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file, q in zip(files, (p, p**2), strict=True):
        rows = [f"{int(a)},{b!r},text {c}" for a, b, c in zip(y, q.tolist(), passage, strict=True)]
        file.write_text("\n".join(["y_true,y_prob,passage", *rows]))
    options = ["--groups", "passage", "--resamples", 19, "--seed", 3]
    found = as_json(capsys, "compare", *files, *options)
    assert (found["n"], found["n_groups"]) == (200, 25)
    for name, line in {**differences(found), "score": found["scores"][0]}.items():
        if name in ("mce", "ece_bayes"):
            continue
        result = fastece.compare(
            y, p, p**2, estimator=line["name"], n_resamples=19, rng=3, groups=passage
        )
        assert line["method"] == "basic"
        assert (line["low"], line["high"]) == result.confidence_interval
        assert line["p_value"] == result.p_value
    out = text(capsys, "compare", *files, *options)
    assert "  200 in 25 groups\n" in out
    assert "basic bootstrap of whole groups" in out
    assert "test inversion" not in out
    message = failure(capsys, "compare", *files, "--groups", "page")
    assert "a.csv: no column 'page'" in message
    assert "--groups takes the name of a column" in message
    lines = files[0].read_text().splitlines()
    files[0].write_text("\n".join([*lines[:2], lines[2].rpartition(",")[0] + ",", *lines[3:]]))
    message = failure(capsys, "compare", *files, "--groups", "passage")
    assert "line 3, column passage: must not be missing" in message
    files[0].write_text("\n".join(line.rpartition(",")[0] + ",one" for line in lines))
    message = failure(capsys, "compare", *files, "--groups", "one")
    assert "--groups: must be at least 2" in message
