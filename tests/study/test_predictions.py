"""Studies of files: their draws, truths, texts, refusals, and how they are resumed."""

import json
import math
import re
from math import fsum

import numpy as np
import pytest
import reference

from fastece.cli import main
from fastece.study import Predictions, run_study
from fastece.study.candidates import candidates_of
from fastece.study.estimation import run_distribution
from fastece.study.prediction_files import PredictionFile
from helpers import study_cases as cases
from helpers.study_cases import FIFTEEN, SIXTEEN

ROWS = 600


def drawn(n, seed=0, power=2.0):
    """Scores (n,), and hits that come true with the probability score**power."""
    rng = np.random.default_rng(seed)
    s = rng.random(n).round(3)
    return s, (rng.random(n) < s**power).astype(int)


def drawn_classes(n, seed=0):
    """Labels and probabilities of three classes, of a model that is too sure."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.6, 0.5, 0.4], n)
    y = (rng.random(n)[:, None] > np.cumsum(0.6 * p + 0.4 / 3, axis=1)).sum(axis=1)
    return y.clip(0, 2), p


def write_csv(path, names, *columns):
    rows = zip(*(column.tolist() for column in columns), strict=True)
    text = "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)])
    path.write_text(text + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths of a file of each layout, and of a calibrated model."""
    folder = tmp_path_factory.mktemp("files")
    s, y = drawn(ROWS)
    labels, prob = drawn_classes(800)
    np.savez(folder / "classes.npz", y_true=labels, y_prob=prob)
    pairs = drawn(2100, 1)
    predicted = np.where(pairs[1] == 1, 7, 8)
    calibrated = drawn(1000, 2, power=1.0)
    return {
        "probabilities": write_csv(folder / "binary.csv", ["y_true", "y_prob"], y, s),
        "class vectors": str(folder / "classes.npz"),
        "predictions": write_csv(
            folder / "pairs.csv", ["true_label", "pred_label", "confidence"],
            np.full(2100, 7), predicted, pairs[0],
        ),
        "calibrated": write_csv(
            folder / "calibrated.csv", ["y_true", "y_prob"], *reversed(calibrated)
        ),
    }  # fmt: skip


@pytest.fixture(scope="module")
def three(files):
    """A study of a file of each layout."""
    names = ("probabilities", "class vectors", "predictions")
    return Predictions(tuple(files[name] for name in names), draws=4)


@pytest.fixture(scope="module")
def whole(three, tmp_path_factory):
    """Its folder and what was returned, at one go by one process."""
    folder = tmp_path_factory.mktemp("study") / "whole"
    return folder, run_study(three, folder, pictures=False)


def test_settings_and_sizes_are_those_that_fit_a_file(three):
    settings = {which.holds: three.settings_of(which) for which in three.distributions}
    assert settings == {
        "probabilities": ("binary",),
        "class vectors": ("confidence", "classwise"),
        "predictions": ("confidence",),
    }
    assert [which.n_rows for which in three.distributions] == [600, 800, 2100]
    sizes = [three.sizes_of(which) for which in three.distributions]
    assert sizes == [(50,), (50,), (50, 100, 200)]
    for rows, sizes in ((500, (50,)), (1999, (50, 100)), (50_000, 7), (10**7, 7), (499, ())):
        default = three.sizes_of(PredictionFile(0, "a.csv", rows, "probabilities"))
        assert sizes in (default, len(default)), rows


def test_no_row_needs_scores_twice_and_draws_have_numbers_of_their_own(three):
    which = three.distributions[2]
    for size in (50, 200, 2100):
        rows = three.rows(which, size)
        assert rows.shape == (4, size)
        assert rows.dtype == np.int32
        assert all(len(set(row)) == size for row in rows.tolist())
        assert rows.min() >= 0
        assert rows.max() < 2100
        assert np.array_equal(rows, three.rows(which, size))
    assert not np.array_equal(three.rows(which, 50), three.rows(which, 200)[:, :50])
    other = which._replace(number=0)
    assert not np.array_equal(three.rows(which, 50), three.rows(other, 50))
    seeded = Predictions(three.files[2:], draws=4, seed=1)
    assert not np.array_equal(seeded.rows(other, 50), three.rows(other, 50))


@pytest.mark.slow
def test_estimates_of_files_equal_plain_loops(three):
    assert [candidate.name for candidate in candidates_of(three)] == [*SIXTEEN, "zero"]
    labels, prob = drawn_classes(800)
    which = three.distributions[1]
    estimates, _, _ = run_distribution(three, which)
    assert estimates.shape == (2, 17, 1, 4)
    for k, setting in enumerate(("confidence", "classwise")):
        for j, row in enumerate(three.rows(which, 50)):
            row = np.sort(row)
            problems = reference.problems(labels[row].tolist(), prob[row].tolist(), setting)
            for e, name in enumerate(FIFTEEN):
                want = cases.corrected(name, problems, points=12)
                rel = 1e-3 if "kde" in name else 1e-10
                assert estimates[k, e, 0, j] == pytest.approx(want, rel=rel, abs=1e-6)


def truth_of_plain_loops(problems, n_bins):
    """The mean over the problems, and its standard error."""
    pairs = [cases.truth(s, y, n_bins) for s, y, _, _ in problems]
    value = fsum(value for value, _ in pairs) / len(pairs)
    rows = zip(*(influence for _, influence in pairs), strict=True)
    influence = [fsum(row) / len(pairs) for row in rows]
    return value, math.sqrt(fsum(x * x for x in influence)) / len(influence)


def test_the_truth_of_files_equals_plain_loops(three):
    labels, prob = drawn_classes(800)
    s, y = drawn(ROWS)
    want = {("binary.csv", "binary"): [(s.tolist(), y.tolist(), 0.0, 1.0)]}
    for setting in ("confidence", "classwise"):
        want["classes.npz", setting] = reference.problems(labels.tolist(), prob.tolist(), setting)
    for which in three.distributions[:2]:
        _, truths, _ = run_distribution(three, which)
        for setting, truth in zip(three.settings_of(which), truths, strict=True):
            problems = want[which.file.rpartition("/")[2], setting]
            value_of_loops, error_of_loops = truth_of_plain_loops(problems, 40)
            assert truth.debiased == pytest.approx(value_of_loops, rel=1e-10)
            assert truth.standard_error == pytest.approx(error_of_loops, rel=1e-10)


def test_large_files_have_a_hundred_bins(tmp_path):
    s, y = drawn(10_000)
    path = write_csv(tmp_path / "large.csv", ["y_true", "y_prob"], y, s)
    for n, n_bins in ((10_000, 100), (9999, 40)):
        write_csv(tmp_path / "large.csv", ["y_true", "y_prob"], y[:n], s[:n])
        design = Predictions((path,), sizes=(10,), draws=2)
        _, (truth,), _ = run_distribution(design, design.distributions[0])
        want = truth_of_plain_loops([(s[:n].tolist(), y[:n].tolist(), 0.0, 1.0)], n_bins)
        assert (truth.debiased, truth.standard_error) == pytest.approx(want, rel=1e-10)


@pytest.mark.slow
def test_the_summary_is_over_the_files_that_have_a_setting_and_a_size(whole):
    _, result = whole
    summary = result.summary.to_pylist()
    sizes = {}
    for row in summary:
        sizes.setdefault(row["setting"], set()).add(row["n"])
    assert sizes == {"binary": {50}, "confidence": {50, 100, 200}, "classwise": {50}}
    values = {
        (row["file"], row["setting"], row["estimator"], row["n"]): row
        for row in result.values.to_pylist()
    }
    for row in summary:
        key = row["setting"], row["estimator"], row["n"]
        of_files = [value for name, value in values.items() if name[1:] == key]
        assert len(of_files) == (2 if key[0] == "confidence" and key[2] == 50 else 1)
        for name in ("p95_relative_error", "sd"):
            assert row[name] == pytest.approx(np.median([value[name] for value in of_files]))
    assert result.ranking.column_names[4:7] == ["error_at_50", "error_at_100", "error_at_200"]
    missing = {
        row["setting"] for row in result.ranking.to_pylist() if math.isnan(row["error_at_200"])
    }
    assert missing == {"binary", "classwise"}


def test_the_text_has_every_truth_and_its_standard_error(whole, three):
    text = str(whole[1])
    assert text.startswith("3 files of predictions, 3 sizes from 50 to 200, 4 draws, ")
    assert "nan" not in text
    assert len(whole[1].truths) == 4
    for row in whole[1].truths:
        assert row["distribution"] in three.files
        assert not row["is_noise"]
        numbers = rf"{row['truth']:.4f} +{row['truth_se']:.4f}"
        assert re.search(rf"{re.escape(row['distribution'])} +{row['setting']} +{numbers}", text)
    assert whole[1].to_dict()["truths"] == whole[1].truths


@pytest.mark.slow
def test_a_truth_that_is_mostly_noise_is_named_and_not_counted(files, tmp_path):
    design = Predictions((files["probabilities"], files["calibrated"]), draws=3)
    result = run_study(design, tmp_path / "a", pictures=False)
    of, calibrated = result.truths
    assert of["truth"] > 3 * of["truth_se"]
    assert calibrated["truth"] < 3 * calibrated["truth_se"]
    assert (of["is_noise"], calibrated["is_noise"]) == (False, True)
    (line,) = [line for line in str(result).splitlines() if "noise" in line]
    assert line.split()[:2] == [files["calibrated"], "binary"]
    assert line.endswith("  mostly noise: not counted")
    assert set(result.values["file"].to_pylist()) == {*design.files}
    alone = run_study(
        Predictions((files["probabilities"],), draws=3), tmp_path / "b", pictures=False
    )
    assert result.summary.filter(result.summary["n"].to_numpy() == 50).equals(alone.summary)


def test_nothing_is_ranked_by_noise_alone(files, tmp_path):
    design = Predictions((files["calibrated"],), draws=2)
    with pytest.raises(ValueError, match=r"truth: is mostly noise.*calibrated"):
        run_study(design, tmp_path / "a", pictures=False)


def test_sizes_above_a_tenth_are_warned_about_once_for_each_file(files):
    both = files["probabilities"], files["predictions"]
    with pytest.warns(UserWarning, match="more than a tenth") as caught:
        Predictions(both, sizes=(400, 100, 20))
    assert [str(one.message) for one in caught] == [
        f"{both[0]}: evaluation sets of 100, 400 rows are more than a tenth of its 600: errors "
        "look smaller than they are",
        f"{both[1]}: evaluation sets of 400 rows are more than a tenth of its 2100: errors look "
        "smaller than they are",
    ]
    assert caught[0].filename == __file__
    assert Predictions(both[1:], sizes=(210, 20)).sizes == (20, 210)  # without a warning


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"sizes": (601,)}, ValueError, r"sizes: 601 rows, but .*binary.csv has 600"),
        ({"sizes": ()}, ValueError, r"sizes: must be a list of some, got \(\)"),
        ({"sizes": (1,)}, ValueError, "sizes: must be an integer from 2"),
        ({"sizes": (20, 20)}, ValueError, "sizes: has 20 twice"),
        ({"sizes": 20}, TypeError, "sizes: must be a list of some, got 20"),
        ({"sizes": (2.5,)}, TypeError, "sizes: must be an integer, got 2.5"),
        ({"files": ()}, ValueError, r"files: must be a list of some, got \(\)"),
        ({"files": "a.csv"}, ValueError, "files: must be a list of some, got 'a.csv'"),
        ({"files": ("a.csv", "a.csv")}, ValueError, "files: has 'a.csv' twice"),
        ({"files": ("nowhere.csv",)}, OSError, "nowhere.csv"),
        ({"y_prob": "q"}, ValueError, "binary.csv: no column 'q'"),
        ({"missing": "leave"}, ValueError, "missing: "),
        ({"percent": 1}, TypeError, "percent: must be True or False"),
    ],
)
def test_wrong_studies_of_files_are_refused(files, changes, error, message):
    with pytest.raises(error, match=message):
        Predictions(**{"files": (files["probabilities"],), **changes})


def test_bad_files_are_named(tmp_path):
    short = write_csv(tmp_path / "short.csv", ["y_true", "y_prob"], *reversed(drawn(499)))
    with pytest.raises(
        ValueError, match=r"files: .*short.csv has 499 rows, too few to draw from; it takes 500"
    ):
        Predictions((short,))
    assert Predictions((short,), sizes=(20,)).distributions[0].n_rows == 499
    s, y = drawn(600)
    wrong = write_csv(tmp_path / "wrong.csv", ["y_true", "y_prob"], y, s + 0.5)
    with pytest.raises(ValueError, match=r"^wrong.csv: probabilities"):
        Predictions((wrong,))


def test_results_of_a_file_that_has_changed_are_refused(tmp_path):
    s, y = drawn(600)
    path = write_csv(tmp_path / "a.csv", ["y_true", "y_prob"], y, s)
    run_study(Predictions((path,), draws=2), tmp_path / "a", pictures=False)
    write_csv(tmp_path / "a.csv", ["y_true", "y_prob"], 1 - y, s)
    with pytest.raises(ValueError, match=r"holds a study with content of .*a\.csv '"):
        run_study(Predictions((path,), draws=2), tmp_path / "a", pictures=False)


def test_percents_and_rows_without_a_label_are_the_rows_that_they_stand_for(tmp_path):
    s, y = drawn(700)
    plain = write_csv(tmp_path / "plain.csv", ["y_true", "y_prob"], y[100:], s[100:])
    labels = y.astype(object)
    labels[:100] = ""
    percents = (100 * s).round(1)
    path = write_csv(tmp_path / "percents.csv", ["y_true", "y_prob"], labels, percents)
    with pytest.raises(ValueError, match=r"percents\.csv"):
        Predictions((path,), percent=True)
    (problems,) = Predictions((path,), percent=True, missing="skip").read(path).problems
    (expected,) = Predictions((plain,)).read(plain).problems
    assert problems.label.tolist() == expected.label.tolist()
    assert problems.prob == pytest.approx(expected.prob, abs=1e-12)


@pytest.mark.slow
def test_the_command_reads_percents_and_missing_labels(capsys, tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    s, y = drawn(600)
    labels = y.astype(object)
    labels[:5] = ""
    path = write_csv(tmp_path / "percents.csv", ["y_true", "y_prob"], labels, (100 * s).round(1))
    out = tmp_path / "out"
    options = ["--predictions", path, "--draws", 2, "--sizes", 20, "--out", out]
    code, _, error = run(capsys, [*options, "--percent", "--missing", "skip"])
    assert code == 0, error
    code, _, error = run(capsys, options)
    assert code == 2


def test_a_log_of_logits_is_studied_as_its_probabilities(tmp_path):
    y, p = drawn_classes(ROWS)
    rows = [
        {"target": int(label), "filtered_resps": [[str(x), "False"] for x in np.log(row)]}
        for label, row in zip(y, p, strict=True)
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    np.savez(tmp_path / "same.npz", y_true=y, y_prob=p)
    of_log, of_vectors = (
        Predictions((str(tmp_path / name),)).read(str(tmp_path / name)).problems
        for name in ("log.jsonl", "same.npz")
    )
    for first, second in zip(of_log, of_vectors, strict=True):
        assert first.setting == second.setting
        assert np.allclose(first.sample(0).s, second.sample(0).s, atol=1e-12)
        assert np.array_equal(first.sample(0).y, second.sample(0).y)


def run(capsys, arguments):
    code = main([str(a) for a in ("study", "--jobs", 1, *arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.slow
def test_the_command_studies_files(files, capsys, tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    monkeypatch.chdir(tmp_path)
    both = files["probabilities"], files["class vectors"]
    code, out, err = run(capsys, ["--draws", 2, "--predictions", *both])
    assert (code, err) == (0, "")
    assert out.startswith("2 files of predictions, 1 sizes from 50 to 50, 2 draws")
    assert (tmp_path / "fastece-study-predictions-draws-2" / "figure2.svg").exists()
    options = ["--sizes", "20,80", "--draws", 2, "--json"]
    code, out, err = run(capsys, ["--predictions", *both, *options])
    assert code == 0
    assert err.count("\n") == err.count("fastece: warning: ") == 1
    assert f"{both[0]}: evaluation sets of 80 rows are more than a tenth of its 600" in err
    answer = json.loads(out)
    assert Predictions(**{**answer["design"], "sizes": (20,)}).files == both
    assert answer["folder"] == "fastece-study-predictions-sizes-20-80-draws-2"
    assert len(answer["truths"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--predictions", "nowhere.csv"], "nowhere.csv"),
        (["--predictions", "bad.csv"], "bad.csv: no column 'y_true'"),
        (["--predictions", "empty.csv"], "empty.csv: "),
        (["--predictions", "short.csv"], "files: short.csv has 3 rows"),
        (["--predictions", "short.csv", "--sizes", "4"], "sizes: 4 rows, but short.csv has 3"),
        (["--predictions", "short.csv", "--preset", "quick"], "--preset: does not go with --pred"),
        (["--sizes", "50"], "--sizes: goes with --predictions"),
        (["--y-true", "a"], "--y-true: goes with --predictions"),
    ],
)
def test_bad_files_and_options_are_answered_in_one_line(
    capsys, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("y_true,y_prob\n")
    (tmp_path / "short.csv").write_text("y_true,y_prob\n1,0.5\n0,0.5\n1,0.25\n")
    code, out, err = run(capsys, arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("fastece: error: ")
    assert message in err
    assert not list(tmp_path.glob("fastece-study*"))
