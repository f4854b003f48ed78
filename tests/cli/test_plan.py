"""The command `plan` prints the numbers of `fastece.rows_needed`."""

import json

import numpy as np
import pytest

import fastece
from fastece.cli import main
from fastece.resampling import engine


@pytest.mark.slow
def test_a_plan_is_that_of_python(capsys, write, monkeypatch):
    counts = []
    monkeypatch.setattr(engine, "progress_callbacks", [lambda *pair: counts.append(pair)])
    rng = np.random.default_rng(0)
    p = rng.random(100).round(3)
    y = (rng.random(100) < p).astype(int)
    rows = "".join(f"{a},{b}\n" for a, b in zip(y, p, strict=True))
    path = str(write(f"y_true,y_prob\n{rows}"))
    options = {"detect": 0.15, "power": 0.7, "level": 0.9}
    texts = [text for name, x in options.items() for text in (f"--{name}", str(x))]
    assert main(["plan", path, *texts, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = fastece.rows_needed(y, p, **options).to_dict()
    assert {name: printed[name] for name in expected} == expected
    assert counts[-1] == (900, 900)
    assert main(["plan", path, "--width", "0.3"]) == 0
    page = capsys.readouterr().out
    words = " ".join(page.split())
    assert "a mean width of 0.3 of the 95 % CI of ece_bayes. " in words
    assert page.count("\n") < 20
