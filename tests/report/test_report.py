"""The report has the numbers of the functions, and every form of it has all that it says."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import fastece
from fastece import calibration_report
from fastece.decisions import choose_threshold

QUICK = {"n_resamples": 99}


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(3)
    p = rng.dirichlet([0.6, 0.5, 0.4], 800)
    y = np.array([rng.choice(3, p=0.75 * row + 0.25 / 3) for row in p])
    return y, p, np.array(["a", "b"])[rng.integers(2, size=800)]


@pytest.fixture(scope="module")
def report(classes):
    y, p, by = classes
    return calibration_report(y, p, by=by, title="a model", **QUICK)


def test_its_numbers_are_those_of_the_functions(report, classes):
    y, p, by = classes
    lines = {line["name"]: line for line in report.measures}
    assert list(lines) == ["ece_bayes", "ece", "ece_a", "ece_c", "ece_ac", "ece_kde", "mce"]
    for name in ("ece_bayes", "ece", "ece_kde"):
        assert lines[name]["value"] == pytest.approx(fastece.ece(y, p, estimator=name), rel=1e-12)
        answer = fastece.estimate(y, p, estimator=name, rng=0, **QUICK)
        assert (lines[name]["low"], lines[name]["high"]) == answer.confidence_interval
        assert lines[name]["p_value"] == answer.p_value
    assert lines["mce"]["value"] == fastece.mce(y, p)
    assert report.p_value == fastece.calibration_test(y, p, rng=0, **QUICK).p_value
    scores = {line["name"]: line for line in report.scores}
    assert scores["brier_score"]["value"] == pytest.approx(fastece.brier_score(y, p), rel=1e-12)
    assert scores["log_loss"]["value"] == pytest.approx(fastece.log_loss(y, p), rel=1e-12)
    first = report.measures[0]["value"]
    assert report.verdict == "miscalibrated"
    assert report.headline.startswith(f"Over-confident by {first:.3f} (95 % CI ")
    assert report.accuracy == np.mean(p.argmax(1) == y) == scores["accuracy"]["value"]
    assert report.mean_confidence == pytest.approx(p.max(1).mean(), rel=1e-12)
    top = fastece.score_decomposition(y, p, setting="confidence")
    assert report.decomposition.to_dict() == top.to_dict()
    direction = fastece.direction(y, p, estimator="ece_bayes")
    assert report.direction.to_dict() == direction.to_dict()
    groups = fastece.slices(y, p, by=by, rng=0)
    assert [row.label for row in report.slices] == [row.label for row in groups]
    assert [row.low for row in report.slices] == [row.low for row in groups]
    table = fastece.slices(y, p, setting="classwise", rng=0)
    assert [row.value for row in report.classes] == [row.value for row in table]
    assert report.curve.value == pytest.approx(lines["ece_bayes"]["value"])


def test_thresholds_are_those_of_the_predicted_class(report, classes):
    y, p, _ = classes
    for found, accuracy in zip(report.thresholds, (0.9, 0.95, 0.99), strict=True):
        assert found.to_dict() == choose_threshold(y, p, accuracy=accuracy).to_dict()
    assert "Which predictions may act alone" in str(report)
    one = calibration_report(y, p, setting=1, groups=np.arange(800) // 4, n_resamples=0)
    assert one.thresholds[0].setting == "confidence"
    known = choose_threshold(y, p, accuracy=0.9, groups=np.arange(800) // 4)
    assert one.thresholds[0].to_dict() == known.to_dict()
    level = calibration_report(y == 1, p[:, 1], confidence_level=0.8, n_resamples=0)
    known = choose_threshold(y == 1, p[:, 1], setting="confidence", accuracy=0.9, confidence=0.8)
    assert level.thresholds[0].to_dict() == known.to_dict()
    stream = fastece.Accumulator(3).update(y, p)
    assert calibration_report(stream, n_resamples=0).thresholds is None


def test_slices_of_several_columns(classes):
    y, p, by = classes
    columns = {"age": np.arange(y.size) % 60, "site": by}
    found = calibration_report(y, p, by=columns, n_resamples=99, estimator=["ece"])
    alone = fastece.slices(y, p, by=columns, n_resamples=99, rng=0)
    assert [row.to_dict() for row in found.slices] == [row.to_dict() for row in alone]
    assert "age [0, 14]" in {row.label for row in found.slices}
    for text in (str(found), found.to_markdown(), found._repr_html_()):
        assert "confidence" in text
        assert "age \\[0, 14\\]" in text or "age [0, 14]" in text
    with pytest.raises(ValueError, match=r"^by: must have a column"):
        calibration_report(y, p, by={}, n_resamples=0)


def test_rows_of_each_predicted_class_are_measured(report, classes):
    y, p, _ = classes
    names = np.array(["cat", "dog", "owl"])
    weight = np.arange(y.size) % 3.0  # some rows have none
    options = {"sample_weight": weight, "labels": [*names], "n_resamples": 99}
    found = calibration_report(names[y], p, estimator=["ece"], **options)
    by = names[p.argmax(axis=1)]
    alone = fastece.slices(names[y], p, by=by, setting="confidence", rng=0, **options)
    assert [x.to_dict() for x in found.predicted_classes] == [x.to_dict() for x in alone]
    text = str(report)
    assert "Predicted classes, most evidence first" in text
    # The answers to another question are shown if there is something to see.
    assert ("\nClasses against the rest" in text) == (report.classes.off > 0)
    right = calibration_report(
        (p.cumsum(1) > np.random.default_rng(2).random((800, 1))).argmax(1), p
    )
    assert right.classes.off == 0
    assert "Classes against the rest" not in str(right)
    own = calibration_report(y, p, setting="classwise", n_resamples=0)
    assert own.predicted_classes is None
    assert "\nClasses, most evidence first" in str(own)
    assert calibration_report(y == 1, p[:, 1], n_resamples=0).predicted_classes is None


def test_a_report_is_plain_values(report):
    values = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert values["headline"] == report.headline
    assert len(values["classes"]["rows"]) == 3
    assert values["direction"]["over"] == report.direction.over


def test_the_same_seed_gives_the_same_report(classes, report):
    y, p, by = classes
    again = calibration_report(y, p, by=by, title="a model", n_jobs=2, **QUICK)
    assert str(again) == str(report)


def test_text_and_markdown_say_the_same(report):
    text, markdown = str(report), report.to_markdown()
    for part in ("a model", "Calibration errors", "Direction", "Scores", "Classes", "Slices"):
        assert part in text
        assert part in markdown
    assert report.headline in " ".join(text.split())
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len({line.count("|") - line.count("\\|") for line in lines[:9]}) == 1


def test_every_slice_is_shown_and_groups_are_a_part_of_every_form(classes):
    y, p, _ = classes
    many = np.arange(y.size) % 6
    options = {"by": many, "groups": many, "n_resamples": 19, "estimator": ["ece"]}
    found = calibration_report(y, p, **options)
    grouped = fastece.estimate(y, p, groups=many)
    assert found.value == grouped.value
    assert found.confidence_interval == grouped.confidence_interval
    test = fastece.calibration_test(y, p, groups=many, n_resamples=19, rng=0)
    assert found.p_value == test.p_value
    assert found.to_dict()["n_groups"] == 6
    assert found.to_dict()["notes"] == found.notes
    for text in (str(found), found.to_markdown(), found._repr_html_()):
        assert all(note in " ".join(text.split()) for note in found.notes)
        assert all(re.search(rf"(^|\W){k}\W", text) for k in range(6))
        assert "less evidence" not in text
    for name, wrong in (("groups", [1]), ("by", [1]), ("groups", np.zeros(y.size))):
        with pytest.raises(ValueError, match=f"^{name}: "):
            calibration_report(y, p, **{**options, name: wrong})


@pytest.mark.parametrize("seed", [np.int64(7), np.uint8(7)])
def test_seeds_of_numpy_are_seeds(classes, seed):
    y, p, _ = classes
    options = {"n_resamples": 9, "estimator": ["ece"]}
    one, other = (calibration_report(y, p, rng=rng, **options) for rng in (7, seed))
    assert one.to_dict() == other.to_dict()


def test_a_stream_has_what_its_sums_tell(classes):
    y, p, _ = classes
    options = {"n_resamples": 0, "estimator": ["ece", "ece_a"]}
    two = fastece.Accumulator(2, setting="classwise").update(
        y % 2, p[:, :2] / p[:, :2].sum(1)[:, None]
    )
    assert len(calibration_report(two, **options).classes) == 2
    for setting in ("confidence", "classwise", 1):
        whole = calibration_report(y, p, setting=setting, **options)
        acc = fastece.Accumulator(3, setting=setting).update(y[:300], p[:300])
        found = calibration_report(acc.update(y[300:], p[300:]), **options)
        assert found.verdict == whole.verdict or setting == "classwise"
        for one, other in zip(whole.measures, found.measures, strict=True):
            assert other["value"] == pytest.approx(one["value"], rel=1e-2)
        if setting != "classwise":
            close = pytest.approx(whole.confidence_interval, abs=4e-3)
            assert tuple(found.confidence_interval) == close
            assert found.direction.over == pytest.approx(whole.direction.over, abs=1e-3)
        else:
            lows = sorted(row.low for row in whole.classes)
            assert sorted(row.low for row in found.classes) == pytest.approx(lows, abs=1e-3)
        scores = {line["name"]: line["value"] for line in whole.scores}
        brier = found.scores[0]
        assert (brier["name"], brier["value"]) == ("brier_score", pytest.approx(brier["value"]))
        assert {line["name"] for line in found.scores} < set(scores)
        assert (found.p_value, found.slices, found.vectors) == (None, None, None)
        assert "every row" in str(found)
        json.dumps(found.to_dict(), allow_nan=False)
        for name in ("by", "groups"):
            with pytest.raises(ValueError, match=f"^{name}: .* needs every row"):
                calibration_report(acc, **{name: y})


def test_weights_settings_and_labels(classes):
    y, p, _ = classes
    w = np.linspace(0.1, 2, y.size)
    names = np.array(["ant", "bee", "cow"])
    found = calibration_report(
        names[y], p, labels=list(names), sample_weight=w, setting="classwise", n_resamples=19
    )
    assert found.setting == "classwise"
    assert found.n_effective == pytest.approx(w.sum() ** 2 / (w @ w))
    assert "effective rows" in str(found)
    assert {row.label for row in found.classes} == set(names)
    assert len(found.diagrams) == 3
    assert found.curve is None
    value = fastece.ece(y, p, sample_weight=w, setting="classwise")
    assert found.measures[1]["value"] == pytest.approx(value, rel=1e-12)
    one = calibration_report(y, p, setting=1, n_resamples=0, estimator=["ece_ac"], n_bins=5)
    assert (one.setting, one.classes, one.p_value) == ("class 1", None, None)
    assert [line["name"] for line in one.measures] == ["ece_bayes", "ece", "ece_ac"]
    assert one.measures[2]["n_bins"] == 5
    lows = [line["low"] for line in one.measures]
    assert lows[0] >= 0
    assert lows[1:] == [None, None]


@pytest.mark.filterwarnings("ignore:.*is it the probability of 1")
@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([0, 1], [0.0, 1.0]),
        ([1, 1, 1], [0.5, 0.5, 0.5]),
        ([0, 0, 1, 1] * 20, [0.1, 0.1, 0.9, 0.9] * 20),
        ([1, 0] * 40, [0.0, 1.0] * 40),
        ([0], [0.3]),
    ],
)
def test_odd_data_have_defined_values_or_a_word(y, p):
    found = calibration_report(y, p, n_resamples=19)
    assert found.verdict in ("too few rows", "no sign", "miscalibrated", "unclear")
    assert "nan" not in str(found)
    assert "nan" not in found.to_markdown()


@pytest.mark.filterwarnings("ignore:.*is it the probability of 1")
def test_infinite_log_loss_is_said():
    found = calibration_report([1, 0] * 40, [0.0, 1.0] * 40, n_resamples=19)
    assert "log_loss: the outcome had probability 0 in y_prob[0] and 79 more rows" in str(found)
    scores = {line["name"]: line["value"] for line in found.to_dict()["scores"]}
    assert scores["log_loss"] == "inf"
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("setting", ["auto", "classwise", 1])
@pytest.mark.parametrize("more", ["", "weights", "groups"])
def test_intervals_of_scores_are_near_those_of_a_bootstrap(classes, setting, more):
    y, p, _ = classes
    options = {"setting": setting}
    if more == "weights":
        options["sample_weight"] = np.tile([1.0, 2.0], 400)
    if more == "groups":
        options["groups"] = np.repeat(np.arange(100), 8)
    names = ["brier_score", "log_loss", "accuracy", "sharpness", "entropy"]
    drawn = fastece.bootstrap(
        y, p, estimator=names, method="percentile", rng=0, n_resamples=1999, **options
    )
    for line in calibration_report(y, p, n_resamples=19, **options).scores:
        low, high = drawn[line["name"]].confidence_interval
        # Ends of 1999 draws are known to some 2 % of the width, and laws are a little skewed.
        ends = pytest.approx([low, high], abs=0.12 * (high - low))
        assert [line["low"], line["high"]] == ends, line


def test_few_effective_rows_are_few_rows():
    rng = np.random.default_rng(0)
    p, w = rng.random(400), np.ones(400)
    w[0] = 1e12
    found = calibration_report(rng.random(400) < p, p, sample_weight=w, n_resamples=19)
    assert found.verdict == "too few rows"


def test_what_else_speaks_against_calibration_is_not_passed_over():
    rng = np.random.default_rng(1)
    p = np.column_stack([rng.uniform(0.4, 0.5, 400)] * 2)
    p = np.column_stack([p[:, 0], 0.9 - p[:, 0], np.full(400, 0.1)])
    y = (rng.random(400) < 0.5).astype(int)  # never the third class
    found = calibration_report(y, p, **QUICK)
    off = [row.label for row in found.classes if row.low > 0]
    assert 2 in off
    assert found.verdict in ("unclear", "miscalibrated")
    assert (
        found.verdict == "miscalibrated"
        or f"{len(off)} of 3 classes are miscalibrated" in found.headline
    )


def test_a_notebook_shows_the_tables(report):
    page = Page()
    page.feed(report._repr_html_())
    assert page.open == []
    assert report.headline in "".join(page.words)


class Page(HTMLParser):
    """Tags that are open, and what a page would load."""

    VOID = frozenset(["meta", "br", "hr", "img", "link", "input"])

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.words, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.loads += [(tag, name, value) for name, value in attrs
                       if name in ("src", "srcset", "data", "action", "poster", "background")
                       or (name.endswith("href") and not (value or "").startswith("#"))
                       or name.startswith("on")]  # fmt: skip
        self.loads += [(tag, None, None)] if tag in ("script", "link", "iframe", "object") else []

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


HOSTILE = ['<script>alert("x")</script>', "a & b", "'\"><img src=x onerror=y>", "$x^2$ ü ]]>"]


def test_the_page_is_whole_and_loads_nothing(classes, tmp_path):
    pytest.importorskip("matplotlib")
    y, p, _ = classes
    names = ["<b>", "&amp;", "c]]>"]
    path = tmp_path / "report.html"
    found = calibration_report(
        np.array(names)[y], p, labels=names, by=np.array(HOSTILE)[np.arange(y.size) % 4],
        title=HOSTILE[0], n_resamples=19,
    )  # fmt: skip
    text = found.to_html(path)
    assert path.read_text(encoding="utf-8") == text
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert page.loads == []
    assert len(set(page.ids)) == len(page.ids)
    words = "".join(page.words)
    for hostile in (*HOSTILE, *names):
        assert hostile in words
    assert found.headline in words
    headings = re.findall(r"<h2[^>]*>([^<]*)", text)
    assert headings[:2] == ["Reliability diagram", "Sample"]
    assert "url(http" not in text
    assert "@import" not in text
    assert text.count("<svg") >= 1


def test_bad_input_names_the_argument(classes):
    y, p, _ = classes
    with pytest.raises(ValueError, match="by: must have shape"):
        calibration_report(y, p, by=[1, 2], n_resamples=0)
    with pytest.raises(ValueError, match="estimator: must be a known name, got 'nothing'"):
        calibration_report(y, p, estimator=["nothing"])
    with pytest.raises(ValueError, match=r"estimator: .* is no calibration error"):
        calibration_report(y, p, estimator="brier_score")
    for name in ("average", "size", "bandwidth"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            calibration_report(y, p, **{name: None})
