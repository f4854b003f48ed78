"""The command `check` has the verdicts of `fastece.check` as exit codes, lines and files."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import fastece
from helpers.command_line import PAIRS, run

PAGE = (Path(__file__).parents[2] / "docs/how_to/gate.md").read_text(encoding="utf-8")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A file of labels, scores and sites, and these columns."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(800).round(4)
    site = rng.choice(["north", "south", "west"], 800, p=[0.5, 0.4, 0.1])
    y = (rng.random(800) < np.where(site == "south", p**2.5, p)).astype(int)
    lines = [f"{a},{b},{c}\n" for a, b, c in zip(y, p, site, strict=True)]
    Path("new.csv").write_text(f"y_true,y_prob,site\n{''.join(lines)}")
    return y, p, site


CODES = {True: 0, False: 1, None: 3}


@pytest.mark.slow
def test_files_for_machines_and_for_a_page(capsys, files):
    y, p, site = files
    expected = fastece.check(y, p, max_error=0.1, by=site)
    options = ["--max-error", "0.1", "--by", "site", "--junit", "j.xml", "--summary", "s.md"]
    Path("s.md").write_text("old")
    code, out, _ = run(capsys, "check", "new.csv", *options)
    assert code == 1
    assert out.splitlines()[0] == expected.line
    assert "j.xml" in out
    assert Path("j.xml").read_text() == expected.to_junit("new.csv")
    suite = ElementTree.parse("j.xml").getroot()
    assert [case.attrib["name"] for case in suite] == [row.label for row in expected.rows]
    summary = Path("s.md").read_text()
    assert summary.startswith("# new.csv\n\n**fails: ")
    assert "- rows: 800\n" in summary
    assert summary.count("\n| ") == 2 + len(expected.rows)
    printed = json.loads(run(capsys, "check", "new.csv", *options, "--json")[1])
    assert (printed["junit"], printed["summary"]) == ("j.xml", "s.md")


@pytest.mark.usefixtures("files")
def test_top_labels_of_two_models_have_outcomes_of_their_own(capsys, tmp_path):
    rng = np.random.default_rng(0)
    true, a, b = rng.integers(0, 3, (3, 300))
    score = rng.random((2, 300)).clip(0.4).round(3)
    for name, pred, p in (("a.csv", a, score[0]), ("b.csv", b, score[1])):
        rows = zip(true, pred, p, strict=True)
        (tmp_path / name).write_text(PAIRS + "".join(f"{x},{y},{z}\n" for x, y, z in rows))
    options = ["--max-error", "0.5", "--baseline", "b.csv", "--max-increase", "0.5", "--json"]
    code, out, _ = run(capsys, "check", "a.csv", *options)
    printed = json.loads(out)
    errors = [
        fastece.ece(true == x, p, estimator="ece_bayes") for x, p in ((a, score[0]), (b, score[1]))
    ]
    assert printed["rows"][0]["value"] == pytest.approx(errors[0])
    assert printed["rows"][1]["value"] == pytest.approx(errors[0] - errors[1])
    assert code == CODES[printed["passed"]]


@pytest.mark.slow
@pytest.mark.usefixtures("files")
def test_a_page_that_nobody_reads_to_the_end_has_the_code_of_the_verdict():
    code = (
        "import os, sys\nfrom fastece.cli import main\nos.close(1)\n"
        "reading, writing = os.pipe()\nos.close(reading)\n"
        "sys.exit(main(['check', 'new.csv', '--max-error', '0.02']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


# --- the page of the documentation ----------------------------------------------------------


@pytest.mark.slow
def test_the_workflow_of_the_page_runs(tmp_path, monkeypatch):
    """Its commands, with a pip that has nothing to do, as a runner runs them: `bash -e`."""
    yaml = pytest.importorskip("yaml")
    monkeypatch.chdir(tmp_path)
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (job,) = yaml.safe_load(text)["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert sum("fastece check" in command for command in commands) == 1
    (evaluate,) = re.findall(r"```python\n(# evaluate\.py\n.*?)```", PAGE, re.DOTALL)
    Path("evaluate.py").write_text(evaluate)
    tools = tmp_path / "bin"
    tools.mkdir()
    python = f'#!/bin/sh\nexec "{sys.executable}"'
    for name, content in {"pip": "#!/bin/sh\n", "python": f'{python} "$@"\n',
                          "fastece": f'{python} -m fastece "$@"\n'}.items():  # fmt: skip
        path = tools / name
        path.write_text(content)
        path.chmod(path.stat().st_mode | stat.S_IEXEC)
    package = os.path.dirname(os.path.dirname(fastece.__file__))
    summary = tmp_path / "step_summary.md"
    summary.touch()
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": package,
           "GITHUB_STEP_SUMMARY": str(summary)}  # fmt: skip
    for command in commands:
        done = subprocess.run(
            ["bash", "-e", "-c", command], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert summary.read_text().startswith("# ")
    assert ElementTree.parse("calibration.xml").getroot().tag == "testsuite"
    (uploaded,) = [
        step["with"]["path"] for step in job["steps"] if "with" in step and "path" in step["with"]
    ]
    assert Path(uploaded).exists()
