"""The recipes of docs/how_to/streams.md that are scripts, run as a reader would run them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.processes import run_two

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how_to/streams.md").read_text(encoding="utf-8")
SCRIPTS = dict(re.findall(r"```py\n# (\w+)\.py[^\n]*\n(.*?)```", PAGE, re.DOTALL))


def run(*command, folder):
    """The lines that a script prints; its warnings are errors."""
    command = [sys.executable, "-W", "error::UserWarning", *map(str, command)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, timeout=200, env=env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def written(name, folder):
    """A script of the page, as a file."""
    path = folder / f"{name}.py"
    path.write_text(SCRIPTS[name], encoding="utf-8")
    return path


def test_scripts_are_those_that_are_run_here():
    assert set(SCRIPTS) == {"dask_cluster", "all_reduce", "training_loop"}
    assert PAGE.count("```py\n") == len(SCRIPTS)


@pytest.mark.slow
def test_recipe_of_a_cluster(tmp_path):
    pytest.importorskip("distributed")
    assert run(written("dask_cluster", tmp_path), folder=tmp_path) == ["1000000"]


@pytest.mark.slow
def test_recipe_of_an_all_reduce(tmp_path):
    pytest.importorskip("torch")
    assert run_two(SCRIPTS["all_reduce"], tmp_path) == ["2000", "2000"]


@pytest.mark.slow
def test_recipe_of_a_training_loop(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    *epochs, held_out = run(written("training_loop", tmp_path), folder=tmp_path)[:6]
    errors = []
    for i, line in enumerate(epochs):
        match = re.fullmatch(r"epoch (\d): ECE of (\d+) rows in training (0\.\d{3})", line)
        assert match, line
        assert match.group(1, 2) == (str(i), "1200")
        errors.append(float(match.group(3)))
    assert min(errors) > 0
    assert 0 < float(held_out.removeprefix("held out: ")) < 0.15


@pytest.mark.slow
def test_speed_of_two_workers_is_measured(tmp_path):
    pytest.importorskip("distributed")
    script = ROOT / "scripts" / "evidence" / "dask_speed.py"
    (line,) = run(script, "--rows", "4e6", "--rounds", "1", folder=tmp_path)
    assert re.fullmatch(r"4000000 rows: one worker .* s, two .* s, ratio \d+\.\d\d", line)
