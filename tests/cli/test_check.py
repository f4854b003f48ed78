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
from helpers.command_line import PAIRS, failure, run

PAGE = (Path(__file__).parents[2] / "docs/how_to/gate.md").read_text(encoding="utf-8")


def columns(n=800, seed=0):
    """Labels, two models, sites and groups."""
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(4)
    site = rng.choice(["north", "south", "west"], n, p=[0.5, 0.4, 0.1])
    y = (rng.random(n) < np.where(site == "south", p**2.5, p)).astype(int)
    return y, p, p**1.5, site, np.arange(n) // 4


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A file with all columns, and one of another model."""
    monkeypatch.chdir(tmp_path)
    y, p, q, site, group = columns()
    for name, prob in (("new.csv", p), ("old.csv", q)):
        rows = zip(y, prob, site, group, 1 + group % 2, strict=True)
        lines = [f"{a},{b:.17g},{c},{d},{e}\n" for a, b, c, d, e in rows]
        Path(name).write_text(f"y_true,y_prob,site,g,w\n{''.join(lines)}")
    return y, p, q, site, group


CODES = {True: 0, False: 1, None: 3}


@pytest.mark.parametrize(
    ("options", "arguments"),
    [(["--max-error", "0.3"], {"max_error": 0.3}),
     (["--max-error", "0.02"], {"max_error": 0.02}),
     (["--max-error", "0.1", "--confidence-level", "0.999"],
      {"max_error": 0.1, "confidence_level": 0.999}),
     (["--max-error", "0.2", "--estimator", "ece", "--resamples", "199", "--seed", "4"],
      {"max_error": 0.2, "estimator": "ece", "n_resamples": 199, "rng": 4}),
     (["--max-ratio", "1.25"], {"max_ratio": 1.25}),
     (["--max-ratio", "1.01", "--groups", "g"],
      {"max_ratio": 1.01, "groups": np.arange(800) // 4}),
     (["--max-error", "0.2", "--setting", "binary", "--weights", "w", "--groups", "g"],
      {"max_error": 0.2, "sample_weight": 1 + np.arange(800) // 4 % 2,
       "groups": np.arange(800) // 4})],
)  # fmt: skip
def test_one_line_and_an_exit_code(capsys, files, options, arguments):
    y, p, *_ = files
    expected = fastece.check(y, p, **arguments)
    code, out, err = run(capsys, "check", "new.csv", *options)
    assert (code, err) == (CODES[expected.passed], "")
    assert out == f"{expected.line}\n"
    code, out, _ = run(capsys, "check", "new.csv", *options, "--json")
    assert code == CODES[expected.passed]
    printed = json.loads(out)
    assert {name: printed[name] for name in expected.to_dict()} == expected.to_dict()
    assert (printed["title"], printed["note"]) == ("new.csv", "")


def test_all_three_verdicts_occur(files):
    y, p, *_ = files
    verdicts = [fastece.check(y, p, max_error=x).passed for x in (0.3, 0.02, 0.08)]
    assert verdicts == [True, False, None]


def test_slices_and_a_baseline_are_those_of_python(capsys, files):
    y, p, q, site, group = files
    options = ["--max-error", "0.1", "--by", "site", "--min-rows", "100", "--baseline", "old.csv",
               "--max-increase", "0.05"]  # fmt: skip
    expected = fastece.check(
        y, p, max_error=0.1, by=site, min_rows=100, baseline=q, max_increase=0.05
    )
    code, out, _ = run(capsys, "check", "new.csv", *options)
    assert (code, out) == (1, f"{expected}\n")
    assert "not judged" in out
    code, out, _ = run(capsys, "check", "new.csv", *options, "--json")
    assert json.loads(out)["rows"] == expected.to_dict()["rows"]
    code, out, _ = run(
        capsys, "check", "new.csv", "--max-error", "0.1", "--by", "site", "--by", "g"
    )
    labels = {
        row.label for row in fastece.check(y, p, max_error=0.1, by={"site": site, "g": group}).rows
    }
    assert labels == {x for x in labels if x in out}
    assert "slice site south" in labels


def test_files_for_machines_and_for_a_page(capsys, files):
    y, p, _, site, _ = files
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


@pytest.mark.usefixtures("files")
def test_a_bound_on_the_error_or_on_oe_is_needed(capsys):
    assert "--max-ratio is a bound on O/E" in failure(capsys, "check", "new.csv")
    options = ["--max-error", "0.1", "--estimator", "oe"]
    assert "pass --max-ratio in place of --max-error" in failure(
        capsys, "check", "new.csv", *options
    )
    options = ["--max-ratio", "1.2", "--baseline", "old.csv", "--max-increase", "0"]
    assert "goes without --baseline" in failure(capsys, "check", "new.csv", *options)


@pytest.mark.usefixtures("files")
def test_bad_input_of_the_baseline_has_its_place(capsys):
    Path("bad.csv").write_text(Path("old.csv").read_text().replace("0,", "7,", 1))
    options = ["--max-error", "0.1", "--max-increase", "0"]
    assert "bad.csv: line" in failure(capsys, "check", "new.csv", *options, "--baseline", "bad.csv")
    assert not any(Path().glob("*.xml"))


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
