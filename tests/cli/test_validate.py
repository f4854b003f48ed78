"""The command `validate`: the numbers are those of `fastece.validate`."""

import json

import numpy as np

import fastece
from fastece.cli import main


def test_a_validation_is_that_of_python(capsys, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.beta(2, 8, 200).round(3)
    y, w, g = (rng.random(200) < p).astype(int), 1 + np.arange(200) % 2, np.arange(200) // 4
    path = tmp_path / "a.csv"
    rows = np.column_stack([y, p, w, g])
    np.savetxt(path, rows, "%g", ",", header="y_true,y_prob,w,g", comments="")
    options = ["--event", "fall", "--thresholds", "0.1,0.2", "--resamples", "99"]
    columns = ["--weights", "w", "--groups", "g"]
    assert main(["validate", str(path), *options, *columns, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    options = {"sample_weight": w, "groups": g, "thresholds": [0.1, 0.2], "n_resamples": 99}
    known = fastece.validate(y, p, event="fall", **options).to_dict()
    assert found["slope"] == known["slope"]
    assert found["net_benefit"] == known["net_benefit"]
    soft = ["--y-true", "w", "--votes", "m", "--resamples", "0", "--json"]
    rows = np.column_stack([p, w, w + g % 2])
    np.savetxt(tmp_path / "b.csv", rows, "%g", ",", header="y_prob,w,m", comments="")
    assert main(["validate", str(tmp_path / "b.csv"), *soft]) == 0
    found = json.loads(capsys.readouterr().out)
    known = fastece.validate(w, p, votes=w + g % 2, n_resamples=0).to_dict()
    assert found["slope"] == known["slope"]
    assert main(["validate", str(path), "--event", "fall", "--resamples", "0"]) == 0
    assert "predicted probability of fall: 200 rows" in capsys.readouterr().out
