"""The report: the numbers are those of the functions, and the page says what they are."""

import re
import sys

import numpy as np
import pytest

import fastece
from helpers.command_line import BINNED, DATA, DIGITS, SMALL, as_json, failure, run, text, values


@pytest.fixture(scope="module")
def digits():
    with np.load(DIGITS) as archive:
        return archive["y_true"], archive["y_prob"]


def test_demo_reports_on_the_digits(capsys, digits):
    out = text(capsys, "demo")
    for part in ("rows             1797", "classes          10", "accuracy", "mean confidence",
                 "setting          confidence: is the most probable class right", "ece_ac", "mce",
                 "(0.933, 1.000]", "No sign of miscalibration", "Direction", "brier_score",
                 "and 7 with less evidence", "0 of 10 are miscalibrated"):  # fmt: skip
        assert part in out
    report = as_json(capsys, "demo")
    for name in BINNED:
        value = fastece.ece(*digits, estimator=name)
        assert values(report)[name] == value
    assert values(report)["mce"] == fastece.mce(*digits)
    y, p = digits
    assert report["accuracy"] == np.mean(p.argmax(1) == y)
    assert report["mean_confidence"] == pytest.approx(p.max(1).mean(), abs=1e-6)


def test_demo_fits_on_a_screen(capsys):
    lines = text(capsys, "demo", quick=False).splitlines()
    assert len(lines) <= 72
    assert max(map(len, lines)) <= 110


def test_json_has_the_same_keys_with_and_without_resamples(capsys):
    with_intervals = as_json(capsys, "demo", "--resamples", 9)
    assert list(with_intervals) == list(as_json(capsys, "demo")) == [
        "title", "n", "n_effective", "n_classes", "accuracy",
        "mean_confidence", "setting", "n_resamples", "confidence_level", "seed", "p_value",
        "measures", "direction", "scores", "decomposition", "classes", "slices", "groups",
        "vectors", "diagrams", "curve", "pairs", "note", "by", "stream", "headline",
        "verdict", "value", "confidence_interval",
    ]  # fmt: skip
    keys = {
        "name", "value", "low", "high", "p_value", "estimator", "n_bins", "occupied", "bandwidth",
        "rows_behind", "smoothing",
    }  # fmt: skip
    assert all(set(line) == keys for line in with_intervals["measures"])


def test_shipped_files_are_small_and_whole():
    for name in ("digits_neural_network.npz", "digits_random_forest.npz"):
        with np.load(DATA / name) as found:
            assert found["y_prob"].shape == (1797, 10)
            assert np.allclose(found["y_prob"].sum(1), 1, atol=1e-5)
            assert np.bincount(found["y_true"]).min() > 150
        assert (DATA / name).stat().st_size < 300_000


def test_class_vectors_in_any_column_order_with_string_labels(capsys, write):
    path = write('p_1,y_true,"p_0",p_2\n0.2,"ant",0.7,0.1\n0.8,bee,0.1,0.1\n0.3,cow,0.3,0.4\n')
    p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    options = ["--labels", "ant,bee,cow"]
    assert values(as_json(capsys, "report", path, *options))["ece"] == fastece.ece([0, 1, 2], p)
    report = as_json(capsys, "report", path, *options, "--setting", "classwise", "--n-bins", 5)
    assert report["setting"] == "classwise"
    assert values(report)["ece"] == fastece.sce([0, 1, 2], p, n_bins=5)
    assert [d["setting"] for d in report["diagrams"]] == [
        "class 0 ('ant')", "class 1 ('bee')", "class 2 ('cow')"
    ]  # fmt: skip
    line = report["measures"][1]
    assert (line["n_bins"], line["occupied"]) == (15, sum(
        np.count_nonzero(d["count"]) for d in report["diagrams"]
    ))  # fmt: skip
    report = as_json(capsys, "report", path, *options, "--setting", "1", "--n-bins", "sqrt")
    assert values(report)["ece"] == fastece.ece([0, 1, 2], p, setting=1, n_bins="sqrt")


def test_more_errors_are_in_the_report_if_they_are_asked_for(capsys, monkeypatch):
    class Squared:
        def prepare(self, sample, size):  # noqa: ARG002
            return (sample.y - sample.s) ** 2

        def evaluate(self, plan, c):
            return float(np.average(plan, weights=c))

    monkeypatch.setitem(fastece.ESTIMATORS, "squared", Squared())
    options = ["--n-bins", 20, "--resamples", 5, "--estimator", "squared", "--estimator", "mmce"]
    report = as_json(capsys, "demo", *options)
    line = {m["name"]: m for m in report["measures"]}
    assert [*line][-2:] == ["squared", "mmce"]
    assert 0 < line["squared"]["value"] < 0.1
    assert line["squared"]["low"] < line["squared"]["high"]
    assert line["squared"]["n_bins"] is None
    assert line["ece"]["n_bins"] == 20
    assert "squared" in text(capsys, "demo", *options)
    assert "estimator: must be a known name, got 'nothing'" in failure(
        capsys, "demo", "--estimator", "nothing"
    )
    assert "is no calibration error" in failure(capsys, "demo", "--estimator", "brier_score")


def test_report_says_how_sure_it_is(capsys, digits):
    report = as_json(capsys, "demo", quick=False)
    assert (report["n_resamples"], report["confidence_level"]) == (1999, 0.95)
    lines = {m["name"]: m for m in report["measures"]}
    for name in BINNED:
        result = fastece.estimate(*digits, estimator=name, n_resamples=1999, rng=0)
        assert (lines[name]["low"], lines[name]["high"]) == result.confidence_interval
    assert 0 <= lines["mce"]["low"] < lines["mce"]["high"]
    first = fastece.estimate(*digits)
    line = report["measures"][0]
    assert line["name"] == "ece_bayes"
    assert line["value"] == pytest.approx(first.value, rel=1e-9)
    assert (line["low"], line["high"]) == first.confidence_interval
    test = fastece.calibration_test(*digits, n_resamples=1999, rng=0)
    assert report["p_value"] == test.p_value
    out = text(capsys, "demo", quick=False)
    assert "95 % CI" in out
    assert f"{lines['ece']['high']:.4f}]" in out
    assert f"{report['p_value']:.2f}" in out


def test_options_of_the_intervals(capsys, digits):
    fast = ["--resamples", 32]
    report = as_json(capsys, "demo", *fast, "--confidence-level", 0.5)
    other = as_json(capsys, "demo", *fast, "--confidence-level", 0.5, "--seed", 7)
    for seed, found in ((0, report), (7, other)):
        options = {"n_resamples": 32, "confidence_level": 0.5, "rng": seed}
        result = fastece.estimate(*digits, estimator="ece", **options)
        line = found["measures"][1]
        assert (line["low"], line["high"]) == result.confidence_interval
    assert "50 % CI" in text(capsys, "demo", *fast, "--confidence-level", 0.5)
    without = as_json(capsys, "demo", "--resamples", 0)
    assert without["p_value"] is None
    assert without["measures"][0]["low"] == 0  # of the posterior
    assert all(line["low"] is line["high"] is None for line in without["measures"][1:])
    assert values(without) == values(report)


@pytest.mark.parametrize("setting", ["classwise", "3"])
def test_intervals_in_other_settings(capsys, digits, setting):
    report = as_json(capsys, "demo", "--resamples", 32, "--setting", setting)
    result = fastece.estimate(
        *digits, estimator="ece_ac", n_resamples=32, rng=0,
        setting=int(setting) if setting.isdecimal() else setting,
    )  # fmt: skip
    (line,) = (line for line in report["measures"] if line["name"] == "ece_ac")
    assert (line["low"], line["high"]) == result.confidence_interval


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--resamples", "-1"], "--resamples: must be"),
        (["--resamples", "32", "--seed", "-1"], "--seed: a seed must not be negative"),
    ],
)
def test_bad_options_of_the_intervals(capsys, options, message):
    assert message in failure(capsys, "demo", *options)


def test_empty_bins_are_null_in_json_and_one_line_in_text(capsys, write):
    path = write("y_true,y_prob\n1,0.9\n")
    diagram = as_json(capsys, "report", path)["diagrams"][0]
    assert diagram["score"][0] is None
    assert diagram["count"][13] == 1
    out = text(capsys, "report", path)
    assert "  [0.000, 0.867]     0       -          -        -\n" in out
    assert out.count("\n  (") == 2


@pytest.mark.parametrize(
    ("setting", "said"), [("confidence", "bandwidth"), ("classwise", "mean bandwidth")]
)
def test_report_shows_the_bandwidth_that_was_used(capsys, digits, setting, said):
    report = as_json(capsys, "demo", "--setting", setting)
    line = {m["name"]: m for m in report["measures"]}
    curves = fastece.reliability_curve(*digits, setting=setting, estimator="ece_kde")
    curves = curves if setting == "classwise" else [curves]
    used = np.mean([curve.bandwidth for curve in curves])
    assert line["ece_kde"]["bandwidth"] == pytest.approx(used)
    assert line["ece"]["bandwidth"] is line["mce"]["bandwidth"] is None
    out = text(capsys, "demo", "--setting", setting)
    assert f", {said} {used:.4g}\n" in out
    assert out.count("bandwidth ") == 1


# --- pictures --------------------------------------------------------------------------------


def test_report_draws_a_picture(capsys, write, tmp_path, figures):
    path, picture = write(SMALL), tmp_path / "a.png"
    alone = text(capsys, "report", path)
    assert (
        text(capsys, "report", path, "--plot", picture) == f"{alone}\nFiles\n  picture  {picture}\n"
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    report = as_json(capsys, "report", path, "--plot", picture)
    assert report.pop("plot") == str(picture)
    assert report == as_json(capsys, "report", path)
    assert len(figures) == 2


@pytest.mark.parametrize("count", [0, 32])
def test_picture_of_a_report_has_the_diagram_and_the_curve(capsys, write, tmp_path, figures, count):
    options = ["--resamples", count, "--confidence-level", "0.9", "--plot", tmp_path / "a.svg"]
    as_json(capsys, "report", write(SMALL), *options)
    left, right = figures[-1].axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("observed frequency", "observed frequency")
    assert [ax.get_title() for ax in (left, right)] == [
        "Binned(n_bins=15), binary", "BayesCurve(), binary"
    ]  # fmt: skip
    assert figures[-1].get_suptitle() == ""  # not the path
    legends = [[entry.get_text() for entry in ax.get_legend().get_texts()] for ax in (left, right)]
    known = "90 % if calibrated" in legends[0]
    assert known == bool(count)
    assert [name for name in legends[1] if "%" in name] == ["90 % CI (posterior)"]


def test_heaped_scores_are_drawn_in_equal_bins_over_log_odds(capsys, tmp_path, figures):
    options = ["--resamples", 32, "--plot", tmp_path / "a.svg"]
    assert run(capsys, "demo", *options)[0] == 0
    plain, odds, _ = figures[0].axes
    assert odds.get_xscale() == "logit"
    assert "edges='quantile'" in odds.get_title()
    data = np.load(DIGITS)
    band = fastece.calibration_test(
        data["y_true"], data["y_prob"], estimator="ece", n_resamples=32, rng=0
    ).band
    bars = [bar for bar in plain.patches if bar.get_alpha() is None][: np.isfinite(band.low).sum()]
    assert [bar.get_y() for bar in bars] == band.low[np.isfinite(band.low)].tolist()


def test_picture_of_classes_has_their_diagrams(capsys, tmp_path, figures):
    options = ["--setting", "classwise", "--plot", tmp_path / "a.svg"]
    assert run(capsys, "demo", *options)[0] == 0
    titles = [ax.get_title().partition(",")[0] for ax in figures[0].axes]
    assert titles == [f"class {k}" for k in range(10)]
    assert figures[0].get_suptitle() == "Binned(n_bins=15)"


def test_a_density_that_few_rows_carry_is_not_to_be_read(capsys):
    note = "ece_kde is not to be read: it rests on few rows, as where scores are heaped."
    assert note in text(capsys, "demo")
    rows = {m["name"]: m["rows_behind"] for m in as_json(capsys, "demo")["measures"]}
    assert rows["ece_kde"] < 20
    assert rows["ece"] is rows["ece_bayes"] is None


def report_on(capsys, write, p, seed=0):
    """The report on calibrated scores."""
    y = np.random.default_rng(seed).random(len(p)) < p
    lines = "".join(f"{int(hit)},{score}\n" for hit, score in zip(y, p, strict=True))
    return text(capsys, "report", write(f"y_true,y_prob\n{lines}"))


@pytest.mark.parametrize("n", [1000, 5000])
def test_densities_of_scores_of_exactly_0_and_1_are_not_to_be_read(capsys, write, n):
    # A wide kernel brings the rows at the ends to scores where there are none.
    rng = np.random.default_rng(1)
    spread = rng.random(n)
    ends = np.where(rng.random(n) < 0.8, rng.integers(0, 2, n), spread)
    said = report_on(capsys, write, ends)
    assert re.search("read: (smoothing alone makes 0.0[0-9]+|it rests on few rows), as where", said)
    for scores in (spread, spread.round(2), rng.beta(5, 1.5, n)):
        assert "not to be read" not in report_on(capsys, write, scores)


def test_densities_of_few_rows_are_not_to_be_read(capsys, write):
    said = report_on(capsys, write, np.linspace(0.1, 0.9, 19))
    assert "ece_kde is not to be read: there are fewer than 20 rows" in said


@pytest.mark.parametrize("command", ["report", "curve", "compare"])
def test_pictures_that_cannot_be_written_are_refused_before_anything_is_read(
    capsys, monkeypatch, tmp_path, command
):
    missing = [tmp_path / "nothing.csv"] * (1 + (command == "compare"))
    assert "--plot: " in failure(capsys, command, *missing, "--plot", tmp_path / "a.gif")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    err = failure(capsys, command, *missing, "--plot", tmp_path / "a.png")
    assert "pip install matplotlib" in err


def test_a_report_has_groups_and_a_page(capsys, write, tmp_path):
    rows = [f"{i % 2},{0.2 + 0.6 * (i % 2)},{'north' if i % 3 else 'south'}\n" for i in range(90)]
    path, page = write("y_true,y_prob,site\n" + "".join(rows)), tmp_path / "a.html"
    out = text(capsys, "report", path, "--by", "site", "--html", page, "--resamples", 9)
    assert "Slices by site, most evidence first" in out
    assert "north" in out
    assert out.endswith(f"  page  {page}\n")
    assert page.read_text(encoding="utf-8").endswith("</html>\n")
    said = failure(capsys, "report", path, "--html", tmp_path / "a.txt")
    assert "--html: " in said
    assert "must end in .html" in said
    missing = failure(capsys, "report", path, "--html", tmp_path / "none" / "a.html")
    assert "in a folder that exists" in missing


def test_groups_of_rows_are_drawn_below_the_report(capsys, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y, passage = rng.random(200) < p, rng.integers(0, 25, 200)
    file = tmp_path / "a.csv"
    rows = [f"{int(a)},{b!r},text {c}" for a, b, c in zip(y, p.tolist(), passage, strict=True)]
    file.write_text("\n".join(["y_true,y_prob,passage", *rows]))
    options = ["--groups", "passage", "--by", "passage", "--resamples", 99, "--seed", 3]
    found = as_json(capsys, "report", file, *options)["groups"]
    result = fastece.bootstrap(y, p, groups=passage, n_resamples=99, rng=3)
    test = fastece.calibration_test(y, p, groups=passage, n_resamples=99, rng=3)
    assert found == {
        "column": "passage", "n_groups": 25, "name": "ece", "value": result.value,
        "confidence_interval": list(result.confidence_interval), "p_value": test.p_value,
    }  # fmt: skip
    out = text(capsys, "report", file, *options)
    assert "25 groups of rows by passage\n" in out
    assert "take rows as independent" in " ".join(out.split())
    message = failure(capsys, "report", file, "--groups", "page")
    assert "no column 'page'" in message
    assert "--groups takes the name of a column" in message
