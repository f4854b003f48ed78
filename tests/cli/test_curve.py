"""The curve: the numbers are those of `fastece.reliability_curve`."""

import numpy as np
import pytest

import fastece
from helpers.command_line import PAIRS, SMALL, as_json, failure, text

VECTORS = "y_true,p_0,p_1\n" + "".join(f"{i % 2},{i / 50},{1 - i / 50}\n" for i in range(50))


def test_curve_is_that_of_python(capsys, write):
    path = write(SMALL)
    options = ["--at", "0.8,0.25", "--resamples", 64, "--seed", 5, "--confidence-level", 0.9]
    options += ["--estimator", "ece_kde"]
    found = as_json(capsys, "curve", path, *options, "--bandwidth", 0.1, "--kernel", "triweight")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    curve = fastece.reliability_curve(
        rows[:, 0], rows[:, 1], estimator="ece_kde", bandwidth=0.1, kernel="triweight",
        n_resamples=64, rng=5, confidence_level=0.9,
    )  # fmt: skip
    assert (found["title"], found["n"], found["setting"]) == (str(path), 60, "binary")
    assert (found["n_resamples"], found["confidence_level"]) == (64, 0.9)
    (table,) = found["curves"]
    assert (table["value"], table["bandwidth"]) == pytest.approx((curve.value, 0.1))
    assert table["estimator"] == curve.estimator
    assert [point["score"] for point in table["points"]] == [0.8, 0.25]
    for point in table["points"]:
        assert point["probability"] == pytest.approx(curve(point["score"]))
        ends = curve.interval(point["score"])
        assert (point["low"], point["high"]) == pytest.approx(tuple(ends))
        assert point["supported"] is True
    out = text(capsys, "curve", path, *options, "--bandwidth", 0.1)
    for part in ("90 % CI", "64 replicates", "bandwidth 0.1", "0.2500", "comes true"):
        assert part in out
    assert text(capsys, "curve", path, *options, "--bandwidth", 0.1) == out


def test_curve_without_resamples_and_without_scores(capsys, write):
    path, options = write(SMALL), ["--estimator", "ece_kde", "--resamples", 0]
    points = as_json(capsys, "curve", path, *options)["curves"][0]["points"]
    assert [point["score"] for point in points] == pytest.approx(np.linspace(0, 1, 11))
    assert {(point["low"], point["high"]) for point in points} == {(None, None)}
    out = text(capsys, "curve", path, *options)
    assert "interval" not in out
    assert out.count("\n") == 3 + 1 + 2 + 11


def test_curve_of_top_labels(capsys, write):
    rows = "".join(f"{i % 4},{i % 4 if i % 3 else 9},{0.4 + i / 100}\n" for i in range(50))
    path = write(f"{PAIRS}{rows}")
    options = ["--estimator", "ece_kde", "--resamples", 0, "--classes", 4]
    points = as_json(capsys, "curve", path, *options)["curves"][0]["points"]
    assert [point["score"] for point in points] == pytest.approx(np.linspace(0.25, 1, 11))
    assert "is the predicted class right" in text(capsys, "curve", path, *options)
    (point,) = as_json(capsys, "curve", path, *options, "--at", 0.1)["curves"][0]["points"]
    assert point["supported"] is False  # there are no scores below 1/4
    assert (point["probability"], point["low"], point["rows"]) == (None, None, 0)
    last = text(capsys, "curve", path, *options, "--at", 0.1).splitlines()[-1]
    assert last.split() == ["0.1000", "-", "-", "0", "no", "scores"]
    assert "class vector" in failure(capsys, "curve", path, "--setting", "classwise")


def test_curves_of_classes(capsys, write):
    path = write(VECTORS)
    options = ["--resamples", 0, "--setting", "classwise"]
    found = as_json(capsys, "curve", path, *options, "--at", 0.5)
    assert found["setting"] == "classwise"
    assert [table["setting"] for table in found["curves"]] == ["class 0", "class 1"]
    assert text(capsys, "curve", path, *options).count("comes true") == 2


def test_picture_of_a_curve(capsys, write, tmp_path, figures):
    path, picture = write(VECTORS), tmp_path / "a.pdf"
    out = text(capsys, "curve", path, "--resamples", 16, "--plot", picture)
    assert out.endswith(f"\n  picture  {picture}\n")
    assert picture.read_bytes().startswith(b"%PDF")
    assert [ax.get_title() for ax in figures[0].axes] == ["BayesCurve(), confidence"]
    options = ["--resamples", 0, "--setting", "classwise"]
    found = as_json(capsys, "curve", path, *options, "--plot", picture)
    assert found["plot"] == str(picture)
    assert [ax.get_title().partition(",")[0] for ax in figures[1].axes] == ["class 0", "class 1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bandwidth", "-1"], "--bandwidth: must be"),
        (["--bandwidth", "nan"], "--bandwidth: must be"),
        (["--kernel", "box"], "--kernel: must be"),
        (["--setting", "confident"], "--setting: must be"),
        (["--resamples", "-1"], "--resamples: must be"),
        (["--classes", "3"], "--classes: goes with"),
    ],
)
def test_bad_options_of_a_curve(capsys, write, options, message):
    options = ["--estimator", "ece_kde", *options]
    assert message in failure(capsys, "curve", write(SMALL), *options)


def test_a_bayesian_curve_needs_no_resamples_and_says_where_no_scores_are(capsys, write):
    path = write("y_true,y_prob\n" + "1,1\n" * 19 + "0,1\n" + "1,0.5\n0,0.5\n" * 10)
    options = ("--at", "0.2,0.5,1")
    found = as_json(capsys, "curve", path, *options)
    (table,) = found["curves"]
    assert (found["n_resamples"], table["bandwidth"]) == (0, None)
    nothing, *points = table["points"]
    assert nothing["probability"] is nothing["low"] is nothing["high"] is None
    assert not nothing["supported"]
    for point in points:
        assert point["low"] < point["probability"] < point["high"]
        assert point["rows"] == 20
    out = text(capsys, "curve", path, *options)
    assert "no scores" in out
    assert "quantiles of the posterior" in out
    said = failure(capsys, "curve", path, *options, "--bandwidth", 0.1)
    assert "--bandwidth: goes with --estimator ece_kde" in said


def test_neither_kind_of_curve_has_numbers_where_no_scores_are(capsys, write):
    path = write("y_true,y_prob\n" + "1,0.9\n" * 30 + "0,0.3\n" * 10)
    for name in (["ece_bayes"], ["ece_kde", "--bandwidth", 0.02]):
        options = ["--at", "0.5,0.9", "--estimator", *name]
        silent, seen = as_json(capsys, "curve", path, *options)["curves"][0]["points"]
        assert [silent[k] for k in ("probability", "low", "high", "supported")] == [None] * 3 + [0]
        assert 0.5 < seen["low"] <= seen["probability"] <= seen["high"]
        line = next(x for x in text(capsys, "curve", path, *options).splitlines() if " 0.5000" in x)
        assert line.split()[1:3] == ["-", "-"]
        assert line.endswith("no scores")


def test_heaped_scores_are_also_drawn_over_log_odds(capsys, write, tmp_path, figures):
    path = write("y_true,y_prob\n" + "1,0.98\n" * 19 + "0,0.97\n" + "1,0.5\n0,0.5\n" * 5)
    text(capsys, "curve", path, "--estimator", "ece_bayes", "--plot", tmp_path / "a.svg")
    assert [ax.get_xscale() for ax in figures[0].axes] == ["linear", "logit"]
