"""The command `validate` prints the numbers of `fastece.validate`."""

import json
import re

import numpy as np
import pytest

import fastece
from fastece.cli import main
from fastece.display.axes import new_figure
from fastece.display.pages import picture_of


def test_a_validation_is_that_of_python(capsys, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.beta(2, 8, 200).round(3)
    y = (rng.random(200) < p).astype(int)
    w = 1 + np.arange(200) % 2
    g = np.arange(200) // 4
    path = tmp_path / "a.csv"
    rows = np.column_stack([y, p, w, g])
    np.savetxt(path, rows, "%g", ",", header="y_true,y_prob,w,g", comments="")
    options = ["--event", "fall", "--thresholds", "0.1,0.2", "--resamples", "99"]
    columns = ["--weights", "w", "--groups", "g"]
    assert main(["validate", str(path), *options, *columns, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    options = {"sample_weight": w, "groups": g, "thresholds": [0.1, 0.2], "n_resamples": 99}
    expected = fastece.validate(y, p, event="fall", **options).to_dict()
    assert printed["slope"] == expected["slope"]
    assert printed["net_benefit"] == expected["net_benefit"]
    soft = ["--y-true", "w", "--votes", "m", "--resamples", "0", "--json"]
    rows = np.column_stack([p, w, w + g % 2])
    np.savetxt(tmp_path / "b.csv", rows, "%g", ",", header="y_prob,w,m", comments="")
    assert main(["validate", str(tmp_path / "b.csv"), *soft]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = fastece.validate(w, p, votes=w + g % 2, n_resamples=0).to_dict()
    assert printed["slope"] == expected["slope"]
    assert main(["validate", str(path), "--event", "fall", "--resamples", "0"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "predicted probability of fall: 200 rows" in page
    assert "Treating nobody has the net benefit 0." in page
    for name in ("joint test", "Spiegelhalter z"):
        assert re.search(rf"{name} -?\d+\.\d\d - ", page), name


def test_a_validation_is_drawn_as_python_draws_it(capsys, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    p = rng.random(200).round(3)
    y = (rng.random(200) < p).astype(int)
    path = tmp_path / "a.csv"
    np.savetxt(path, np.column_stack([y, p]), "%g", ",", header="y_true,y_prob", comments="")
    figures = []

    def record_picture(path, figure):
        figures.append(figure)
        return picture_of(path, figure)

    monkeypatch.setattr("fastece.cli.validate.picture_of", record_picture)
    picture = tmp_path / "a.svg"
    options = ["--resamples", "99", "--event", "fall", "--plot", str(picture)]
    assert main(["validate", str(path), *options]) == 0
    assert str(picture) in capsys.readouterr().out
    assert "<svg" in picture.read_text(encoding="utf-8")
    (figure,) = figures
    drawn = fastece.validate(y, p, event="fall", n_resamples=99).plot(new_figure((4, 4)).subplots())
    lines, own_lines = (
        [line.get_ydata().tolist() for line in ax.get_lines()] for ax in (figure.axes[0], drawn)
    )
    assert lines == own_lines
