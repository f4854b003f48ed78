"""The command `curve` prints the values of `fastece.reliability_curve`."""

import re

import numpy as np
import pytest

import fastece
from fastece.cli import main
from helpers.command_line import PAIRS, SMALL, as_json, text

VECTORS = "y_true,p_0,p_1\n" + "".join(f"{i % 2},{i / 50},{1 - i / 50}\n" for i in range(50))
KDE = ["--estimator", "ece_kde"]


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([*KDE, "--bandwidth", 0.1, "--kernel", "triweight", "--resamples", 64, "--seed", 5],
         {"estimator": "ece_kde", "bandwidth": 0.1, "kernel": "triweight", "n_resamples": 64,
          "rng": 5}),
        ([*KDE, "--resamples", 0], {"estimator": "ece_kde", "n_resamples": 0}),
        ([], {"estimator": "ece_bayes"}),
    ],
)  # fmt: skip
def test_a_curve_is_that_of_python(capsys, write, options, arguments):
    path = write(SMALL)
    options = [*options, "--confidence-level", 0.9]
    printed = as_json(capsys, "curve", path, *options, "--at", "0.8,0.25")
    y, p = np.loadtxt(path, delimiter=",", skiprows=1).T
    curve = fastece.reliability_curve(y, p, confidence_level=0.9, **arguments)
    assert [printed[x] for x in ("title", "n", "setting", "n_resamples", "confidence_level")] == [
        str(path), 60, "binary", arguments.get("n_resamples", 0), 0.9
    ]  # fmt: skip
    (table,) = printed["curves"]
    assert (table["value"], table["bandwidth"]) == pytest.approx((curve.value, curve.bandwidth))
    assert table["estimator"] == curve.estimator
    assert [point["score"] for point in table["points"]] == [0.8, 0.25]
    for point in table["points"]:
        assert point["probability"] == pytest.approx(curve(point["score"]))
        ends = (None, None) if curve.low is None else curve.interval(point["score"])
        assert (point["low"], point["high"]) == pytest.approx(tuple(ends))
        assert point["rows"] == pytest.approx(np.interp(point["score"], curve.score, curve.rows))
        assert point["supported"] is True
    points = as_json(capsys, "curve", path, *options)["curves"][0]["points"]
    quantiles = np.quantile(p, (0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1), method="nearest")
    marks = sorted({*quantiles, *(x for x in (0.9, 0.95, 0.99) if p.min() < x < p.max())})
    assert [point["score"] for point in points] == marks
    with pytest.raises(SystemExit):
        main(["curve", "--help"])
    shown_help = " ".join(capsys.readouterr().out.split())
    assert f"{len(quantiles)} quantiles, 0.9, 0.95, 0.99" in shown_help
    out = text(capsys, "curve", path, *options)
    assert ("90 % CI" in out) == (curve.low is not None)
    assert len(re.findall(r"^ +[01]\.?\d* ", out, re.M)) == len(marks)


def test_a_curve_of_top_labels_is_over_their_range(capsys, write):
    rows = "".join(f"{i % 4},{i % 4 if i % 3 else 9},{0.4 + i / 100}\n" for i in range(50))
    options = [write(f"{PAIRS}{rows}"), *KDE, "--resamples", 0, "--classes", 4]
    points = as_json(capsys, "curve", *options)["curves"][0]["points"]
    assert [points[0]["score"], points[-1]["score"]] == [0.4, 0.89]
    (point,) = as_json(capsys, "curve", *options, "--at", 0.1)["curves"][0]["points"]
    assert point == {
        "score": 0.1, "probability": None, "low": None, "high": None, "rows": 0, "supported": False
    }  # fmt: skip


@pytest.mark.parametrize("options", [["--estimator", "ece_bayes"], [*KDE, "--bandwidth", 0.02]])
def test_there_are_no_values_where_no_scores_are(capsys, write, options):
    path = write("y_true,y_prob\n" + "1,0.9\n" * 30 + "0,0.3\n" * 10)
    options = [path, "--at", "0.5,0.9", *options]
    silent, seen = as_json(capsys, "curve", *options)["curves"][0]["points"]
    assert [silent[k] for k in ("probability", "low", "high", "supported")] == [None] * 3 + [0]
    assert 0.5 < seen["low"] <= seen["probability"] <= seen["high"]
    line = next(x for x in text(capsys, "curve", *options).splitlines() if " 0.500 " in x)
    assert line.split()[1:3] == ["-", "-"]


@pytest.mark.slow
def test_picture_of_curves(capsys, write, tmp_path, figures):
    path = write(VECTORS)
    picture = tmp_path / "a.pdf"
    options = ["--resamples", 16, "--plot", picture]
    assert as_json(capsys, "curve", path, *options)["plot"] == str(picture)
    assert picture.read_bytes().startswith(b"%PDF")
    printed = as_json(capsys, "curve", path, "--setting", "classwise", "--at", 0.5, *options)
    assert printed["setting"] == "classwise"
    assert [table["setting"] for table in printed["curves"]] == ["class 0", "class 1"]
    heaped = write("y_true,y_prob\n" + "1,0.98\n" * 19 + "0,0.97\n" + "1,0.5\n0,0.5\n" * 5)
    as_json(capsys, "curve", heaped, "--plot", picture)
    one, each, odds = figures
    assert [ax.get_title() for ax in one.axes] == ["Reliability curve"]
    assert [ax.get_title().partition(",")[0] for ax in each.axes] == ["class 0", "class 1"]
    assert [ax.get_xscale() for ax in odds.axes] == ["linear", "logit"]


def test_a_curve_allows_for_groups_of_rows(capsys, write):
    rng = np.random.default_rng(0)
    p = rng.random(60)
    lines = [
        f"{y},{s},{k // 3}" for k, (y, s) in enumerate(zip(rng.integers(0, 2, 60), p, strict=True))
    ]
    path = write("y_true,y_prob,patient\n" + "\n".join(lines) + "\n")
    printed = as_json(capsys, "curve", path, "--groups", "patient", "--at", "0.5")
    y, s, g = np.loadtxt(path, delimiter=",", skiprows=1).T
    low, high = fastece.reliability_curve(y, s, groups=g).interval(0.5)
    (point,) = printed["curves"][0]["points"]
    assert (point["low"], point["high"]) == pytest.approx((low, high))
    assert "in 20 groups" in text(capsys, "curve", path, "--groups", "patient")
