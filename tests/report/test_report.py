"""A report has the numbers of the functions, and every format of it has all of its content."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import fastece
from fastece import calibration_report, datasets
from fastece.decisions.threshold import choose_threshold

QUICK = {"n_resamples": 99}
VERDICTS = {"too few rows", "no sign", "miscalibrated", "unclear"}


@pytest.fixture(scope="module")
def classes():
    """Labels, class vectors of an over-confident model, and labels of two slices."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet([0.6, 0.5, 0.4], 800)
    y = np.array([rng.choice(3, p=0.75 * row + 0.25 / 3) for row in p])
    return y, p, np.array(["a", "b"])[rng.integers(2, size=800)]


@pytest.fixture(scope="module")
def report(classes):
    y, p, by = classes
    return calibration_report(y, p, by=by, title="a model", **QUICK)


def lines_by_name(lines):
    return {line.name: line for line in lines}


# --- numbers --------------------------------------------------------------------------------


@pytest.mark.slow
def test_errors_equal_estimates(report, classes):
    y, p, _ = classes
    lines = lines_by_name(report.measures)
    assert list(lines) == ["ece_bayes", "ece", "ece_a", "ece_c", "ece_ac", "ece_kde", "mce"]
    for name in ("ece_bayes", "ece", "ece_kde"):
        assert lines[name].value == pytest.approx(fastece.ece(y, p, estimator=name), rel=1e-12)
        estimate = fastece.estimate(y, p, estimator=name, rng=0, **QUICK)
        assert (lines[name].low, lines[name].high) == estimate.confidence_interval
        assert lines[name].p_value == estimate.p_value
    assert lines["mce"].value == fastece.mce(y, p)
    assert report.value == lines["ece_bayes"].value
    assert report.curve.value == pytest.approx(report.value)


def test_scores_equal_the_functions(report, classes):
    y, p, _ = classes
    scores = lines_by_name(report.scores)
    assert scores["brier_score"].value == pytest.approx(fastece.brier_score(y, p), rel=1e-12)
    assert scores["log_loss"].value == pytest.approx(fastece.log_loss(y, p), rel=1e-12)
    assert report.accuracy == np.mean(p.argmax(1) == y) == scores["accuracy"].value
    assert report.mean_confidence == pytest.approx(p.max(1).mean(), rel=1e-12)
    decomposition = fastece.score_decomposition(y, p, setting="confidence")
    assert report.decomposition.to_dict() == decomposition.to_dict()


def test_test_direction_and_slices_equal_the_functions(report, classes):
    y, p, by = classes
    assert report.p_value == fastece.calibration_test(y, p, rng=0, **QUICK).p_value
    direction = fastece.direction(y, p, estimator="ece_bayes")
    assert report.direction.to_dict() == direction.to_dict()
    slices = fastece.slices(y, p, by=by, rng=0, **QUICK)
    assert [row.label for row in report.slices] == [row.label for row in slices]
    assert [row.low for row in report.slices] == [row.low for row in slices]
    by_class = fastece.slices(y, p, setting="classwise", rng=0, **QUICK)
    assert [row.value for row in report.classes] == [row.value for row in by_class]


def test_headline_has_verdict_direction_and_error(report):
    assert report.verdict == "miscalibrated"
    assert report.headline.startswith(f"Over-confident by {report.value:.3f} (95 % CI ")


@pytest.mark.slow
def test_thresholds_equal_those_of_the_predicted_class(report, classes):
    y, p, _ = classes
    for threshold, accuracy in zip(report.thresholds, (0.9, 0.95, 0.99), strict=True):
        assert threshold.to_dict() == choose_threshold(y, p, accuracy=accuracy).to_dict()
    assert "Which predictions may act alone" in str(report)
    groups = np.arange(800) // 4
    of_class = calibration_report(y, p, setting=1, groups=groups, n_resamples=0).thresholds[0]
    assert of_class.setting == "confidence"
    expected = choose_threshold(y, p, accuracy=0.9, groups=groups)
    assert of_class.to_dict() == expected.to_dict()


def test_thresholds_of_a_binary_problem_have_the_level_of_the_report(classes):
    y, p, _ = classes
    report = calibration_report(y == 1, p[:, 1], confidence_level=0.8, n_resamples=0)
    expected = choose_threshold(y == 1, p[:, 1], accuracy=0.9, confidence=0.8)
    assert report.thresholds[0].to_dict() == expected.to_dict()


def test_thresholds_of_confidences_below_one_half_are_those_of_hits():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.1, 0.95, 2000).round(2)
    correct = rng.random(2000) < confidence
    report = calibration_report(correct, confidence, n_resamples=0)
    threshold = report.thresholds[0]
    assert threshold.to_dict() == choose_threshold(correct, confidence, accuracy=0.9).to_dict()
    assert not threshold([0.1, 0.3]).any()
    assert "A row is right if its label is 1" in " ".join(str(report).split())


@pytest.mark.slow
def test_rows_without_a_promise_of_a_threshold_have_none(classes):
    y, p, _ = classes
    hits = p.argmax(1) == y
    weights = np.linspace(1, 2, 800)
    options = [
        {"groups": np.arange(800) // 4, "sample_weight": weights},
        {"votes": np.full(800, 3)},
        {"counts": np.full(800, 2)},
    ]
    for each in options:
        assert calibration_report(hits, p.max(1), n_resamples=0, **each).thresholds is None
    assert calibration_report(hits, p.max(1), n_resamples=0, sample_weight=weights).thresholds


@pytest.mark.slow
def test_slices_of_several_columns(classes):
    y, p, by = classes
    columns = {"age": np.arange(y.size) % 60, "site": by}
    report = calibration_report(y, p, by=columns, estimator=["ece"], **QUICK)
    slices = fastece.slices(y, p, by=columns, rng=0, **QUICK)
    assert [row.to_dict() for row in report.slices] == [row.to_dict() for row in slices]
    assert "age [0, 14]" in {row.label for row in report.slices}
    for text in (str(report), report.to_markdown(), report._repr_html_()):
        assert "confidence" in text
        assert "age \\[0, 14\\]" in text or "age [0, 14]" in text
    with pytest.raises(ValueError, match=r"^by: must have a column"):
        calibration_report(y, p, by={}, n_resamples=0)


@pytest.mark.slow
def test_rows_of_each_predicted_class_are_measured(classes):
    y, p, _ = classes
    names = np.array(["cat", "dog", "owl"])
    weight = np.arange(y.size) % 3.0  # some rows have none
    options = {"sample_weight": weight, "labels": [*names], **QUICK}
    report = calibration_report(names[y], p, estimator=["ece"], **options)
    by = names[p.argmax(axis=1)]
    slices = fastece.slices(names[y], p, by=by, setting="confidence", rng=0, **options)
    assert [row.to_dict() for row in report.predicted_classes] == [x.to_dict() for x in slices]


@pytest.mark.slow
def test_classes_against_the_rest_are_shown_only_if_some_are_miscalibrated(report, classes):
    y, p, _ = classes
    assert "Predicted classes, most evidence first" in str(report)
    assert ("\nClasses against the rest" in str(report)) == (report.classes.off > 0)
    uniform = np.random.default_rng(2).random((800, 1))
    calibrated = calibration_report((p.cumsum(1) > uniform).argmax(1), p, **QUICK)
    assert calibrated.classes.off == 0
    assert "Classes against the rest" not in str(calibrated)
    classwise = calibration_report(y, p, setting="classwise", n_resamples=0)
    assert classwise.predicted_classes is None
    assert "\nClasses, most evidence first" in str(classwise)
    assert calibration_report(y == 1, p[:, 1], n_resamples=0).predicted_classes is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "kind"), [("auto", "plain"), ("classwise", "groups"), (1, "weights")]
)
def test_intervals_of_scores_are_near_those_of_a_bootstrap(classes, setting, kind):
    y, p, _ = classes
    options = {"setting": setting}
    if kind == "weights":
        options["sample_weight"] = np.tile([1.0, 2.0], 400)
    if kind == "groups":
        options["groups"] = np.repeat(np.arange(100), 8)
    names = ["brier_score", "log_loss", "accuracy", "sharpness", "entropy"]
    draws = fastece.bootstrap(
        y, p, estimator=names, method="percentile", rng=0, n_resamples=999, **options
    )
    for line in calibration_report(y, p, n_resamples=0, **options).scores:
        low, high = draws[line.name].confidence_interval
        # Ends of 999 draws are known to 3 % of the width, and laws are a little skewed.
        ends = pytest.approx([low, high], abs=0.12 * (high - low))
        assert [line.low, line.high] == ends, line


# --- options --------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report(classes, report):
    y, p, by = classes
    again = calibration_report(y, p, by=by, title="a model", n_jobs=2, **QUICK)
    assert str(again) == str(report)


@pytest.mark.slow
def test_seeds_of_numpy_are_seeds(classes):
    y, p, _ = classes
    options = {"n_resamples": 9, "estimator": ["ece"], "setting": 1}
    report = calibration_report(y, p, rng=7, **options)
    assert calibration_report(y, p, rng=np.int64(7), **options).to_dict() == report.to_dict()


@pytest.mark.slow
def test_groups_are_in_the_numbers_and_in_every_format(classes):
    y, p, _ = classes
    groups = np.arange(y.size) % 6
    report = calibration_report(y, p, by=groups, groups=groups, n_resamples=19, estimator=["ece"])
    estimate = fastece.estimate(y, p, groups=groups)
    assert report.value == estimate.value
    assert report.confidence_interval == estimate.confidence_interval
    test = fastece.calibration_test(y, p, groups=groups, n_resamples=19, rng=0)
    assert report.p_value == test.p_value
    assert report.to_dict()["n_groups"] == 6
    assert report.to_dict()["notes"] == report.notes
    for text in (str(report), report.to_markdown(), report._repr_html_()):
        assert all(note in " ".join(text.split()) for note in report.notes)
        assert all(re.search(rf"(^|\W){k}\W", text) for k in range(6))  # every slice
        assert "less evidence" not in text


@pytest.mark.slow
def test_weights_labels_and_setting(classes):
    y, p, _ = classes
    weight = np.linspace(0.1, 2, y.size)
    names = ["ant", "bee", "cow"]
    options = {"sample_weight": weight, "setting": "classwise"}
    report = calibration_report(np.array(names)[y], p, labels=names, n_resamples=19, **options)
    assert report.setting == "classwise"
    assert report.n_effective == pytest.approx(weight.sum() ** 2 / (weight @ weight))
    assert "effective rows" in str(report)
    assert {row.label for row in report.classes} == set(names)
    assert len(report.diagrams) == 3
    assert report.curve is None
    assert report.measures[1].value == pytest.approx(fastece.ece(y, p, **options), rel=1e-12)


def test_one_class_without_resamples_has_an_interval_by_its_posterior_alone(classes):
    y, p, _ = classes
    report = calibration_report(y, p, setting=1, n_resamples=0, estimator=["ece_ac"], n_bins=5)
    assert (report.setting, report.classes, report.p_value) == ("class 1", None, None)
    assert [line.name for line in report.measures] == ["ece_bayes", "ece", "ece_ac"]
    assert report.measures[2].n_bins == 5
    lows = [line.low for line in report.measures]
    assert lows[0] >= 0
    assert lows[1:] == [None, None]


def test_bad_input_names_the_argument(classes):
    y, p, _ = classes
    with pytest.raises(ValueError, match="estimator: must be a known name, got 'nothing'"):
        calibration_report(y, p, estimator=["nothing"])
    with pytest.raises(ValueError, match=r"estimator: .* is no calibration error"):
        calibration_report(y, p, estimator="brier_score")
    with pytest.raises(ValueError, match="by: must have shape"):
        calibration_report(y, p, by=[1, 2], n_resamples=0)
    for name, value in (("groups", [1]), ("by", [1]), ("groups", np.zeros(y.size))):
        with pytest.raises(ValueError, match=f"^{name}: "):
            calibration_report(y, p, n_resamples=0, **{name: value})
    for name in ("average", "size", "bandwidth"):
        with pytest.raises(TypeError, match=f"^{name}: is not an option of calibration_report"):
            calibration_report(y, p, **{name: None})


# --- streams --------------------------------------------------------------------------------

STREAM = {"n_resamples": 0, "estimator": ["ece", "ece_a"]}


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["confidence", "classwise", 1])
def test_a_stream_has_nearly_the_numbers_of_its_rows_and_lacks_all_that_needs_rows(
    classes, setting
):
    y, p, _ = classes
    rows = calibration_report(y, p, setting=setting, **STREAM)
    sums = fastece.Accumulator(3, setting=setting).update(y[:300], p[:300])
    stream = calibration_report(sums.update(y[300:], p[300:]), **STREAM)
    for exact, summed in zip(rows.measures, stream.measures, strict=True):
        assert summed.value == pytest.approx(exact.value, rel=1e-2)
    if setting == "classwise":
        lows = sorted(row.low for row in rows.classes)
        assert sorted(row.low for row in stream.classes) == pytest.approx(lows, abs=1e-3)
    else:
        assert stream.verdict == rows.verdict
        ends = pytest.approx(rows.confidence_interval, abs=4e-3)
        assert tuple(stream.confidence_interval) == ends
        assert stream.direction.over == pytest.approx(rows.direction.over, abs=1e-3)
    assert stream.scores[0].name == "brier_score"
    scores = lines_by_name(rows.scores)
    assert {line.name for line in stream.scores} < set(scores)
    assert stream.scores[0].value == pytest.approx(scores["brier_score"].value, rel=1e-2)
    absent = (stream.p_value, stream.slices, stream.vectors, stream.thresholds)
    assert absent == (None, None, None, None)
    assert "every row" in str(stream)
    json.dumps(stream.to_dict(), allow_nan=False)
    for name in ("by", "groups"):
        with pytest.raises(ValueError, match=f"^{name}: .* needs every row"):
            calibration_report(sums, **{name: y})


def test_a_stream_of_two_classes_has_both(classes):
    y, p, _ = classes
    two = p[:, :2] / p[:, :2].sum(1)[:, None]
    sums = fastece.Accumulator(2, setting="classwise").update(y % 2, two)
    assert len(calibration_report(sums, **STREAM).classes) == 2


# --- few and odd rows -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is it the probability of 1")
@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([0, 1], [0.0, 1.0]),
        ([1, 1, 1], [0.5, 0.5, 0.5]),
        ([1, 0] * 40, [0.0, 1.0] * 40),
        ([0], [0.3]),
    ],
)
def test_odd_rows_have_defined_values(y, p):
    report = calibration_report(y, p, n_resamples=9)
    assert report.verdict in VERDICTS
    assert "nan" not in str(report)
    assert "nan" not in report.to_markdown()


@pytest.mark.filterwarnings("ignore:.*is it the probability of 1")
def test_an_infinite_log_loss_names_its_first_row():
    report = calibration_report([1, 0] * 40, [0.0, 1.0] * 40, n_resamples=0)
    note = "log_loss: the outcome had probability 0 in y_prob[0] and 79 more rows"
    assert note in str(report)
    lines = {line["name"]: line for line in report.to_dict()["scores"]}
    assert lines["log_loss"]["value"] == "inf"
    assert lines["log_loss"]["note"].startswith(note)
    assert "note" not in lines["brier_score"]
    json.dumps(report.to_dict(), allow_nan=False)


@pytest.mark.slow
def test_few_effective_rows_are_few_rows():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    weight = np.ones(400)
    weight[0] = 1e12
    report = calibration_report(rng.random(400) < p, p, sample_weight=weight, n_resamples=0)
    assert report.verdict == "too few rows"


@pytest.mark.slow
def test_a_miscalibrated_class_is_in_the_verdict():
    rng = np.random.default_rng(1)
    p = np.column_stack([rng.uniform(0.4, 0.5, 400)] * 2)
    p = np.column_stack([p[:, 0], 0.9 - p[:, 0], np.full(400, 0.1)])
    y = (rng.random(400) < 0.5).astype(int)  # never the third class
    report = calibration_report(y, p, **QUICK)
    off = [row.label for row in report.classes if row.low > 0]
    assert 2 in off
    assert report.verdict in ("unclear", "miscalibrated")
    if report.verdict == "unclear":
        assert f"class {report.classes[0].label}, p " in report.headline
        assert "adjusted for all 3" in report.headline


@pytest.mark.slow
def test_errors_that_are_noise_are_left_out_of_texts_and_stay_in_numbers():
    y, p = datasets.load("digits_network")
    report = calibration_report(y, p, n_resamples=99)
    noise = [line.name for line in report.measures if line.is_noise]
    assert "ece_kde" in noise
    for line in report.measures:
        assert line.is_noise == (line.floor > line.high and line.floor >= 0.8 * line.value)
    assert f"Omitted as noise: {', '.join(noise)}. " in str(report)
    assert not [line for line in str(report).splitlines() if line.startswith("  ece_kde ")]
    assert "ece_kde" in [line["name"] for line in report.to_dict()["measures"]]


# --- formats --------------------------------------------------------------------------------


def test_json_has_plain_values(report):
    values = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert values["headline"] == report.headline
    assert len(values["classes"]["rows"]) == 3
    assert values["direction"]["over"] == report.direction.over
    keys = ["name", "value", "low", "high", "p_value", "floor", "estimator"]
    assert list(values["measures"][0]) == [*keys, "n_bins", "occupied", "bandwidth"]


def test_a_data_frame_has_a_row_for_each_error(report):
    pytest.importorskip("pandas")
    frame = report.to_frame()
    assert frame["name"].tolist() == [line.name for line in report.measures]
    assert list(frame) == list(report.measures[0].to_dict())


def test_text_and_markdown_have_all_sections(report):
    text = str(report)
    markdown = report.to_markdown()
    for title in ("a model", "Calibration errors", "Direction", "Scores", "Classes", "Slices"):
        assert title in text
        assert title in markdown
    assert report.headline in " ".join(text.split())
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len({line.count("|") - line.count("\\|") for line in lines[:9]}) == 1


def test_a_notebook_shows_the_tables(report):
    page = Page()
    page.feed(report._repr_html_())
    assert page.open == []
    assert report.headline in "".join(page.words)


class Page(HTMLParser):
    """Tags that are open, texts, ids, and the attributes that would load something."""

    VOID = frozenset(["meta", "br", "hr", "img", "link", "input"])
    LOADING_TAGS = frozenset(["script", "link", "iframe", "object"])
    LOADING_ATTRIBUTES = frozenset(["src", "srcset", "data", "action", "poster", "background"])

    def __init__(self):
        super().__init__()
        self.open = []
        self.loads = []
        self.words = []
        self.ids = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in self.LOADING_TAGS:
            self.loads.append((tag, None, None))
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            is_link = name.endswith("href") and not (value or "").startswith("#")
            is_inside = (value or "").startswith("data:image/svg+xml;base64,")
            is_source = name in self.LOADING_ATTRIBUTES and not is_inside
            if is_source or is_link or name.startswith("on"):
                self.loads.append((tag, name, value))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


HOSTILE = ['<script>alert("x")</script>', "a & b", "'\"><img src=x onerror=y>", "$x^2$ ü ]]>"]


@pytest.mark.slow
def test_the_page_escapes_texts_and_loads_nothing(classes, tmp_path):
    pytest.importorskip("matplotlib")
    y, p, _ = classes
    names = ["<b>", "&amp;", "c]]>"]
    by = np.array(HOSTILE)[np.arange(y.size) % 4]
    options = {"labels": names, "by": by, "title": HOSTILE[0], "n_resamples": 19}
    report = calibration_report(np.array(names)[y], p, **options)
    path = tmp_path / "report.html"
    text = report.to_html(path)
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
    assert report.headline in words
    headings = re.findall(r"<h2[^>]*>([^<]*)", text)
    assert headings[:2] == ["Reliability diagram", "Sample"]
    assert "url(http" not in text
    assert "@import" not in text
    # Above the first pictures stands how they are read.
    reading = text.index('<ul class="reading">')
    assert text.count('<ul class="reading">') == 1
    assert text[reading : text.index("</ul>")].count("<li>") == 3
    assert text.index("Reliability diagram</h2>") < reading < text.index("<figure>")


@pytest.mark.slow
def test_the_test_of_a_report_draws_until_its_p_value_is_known():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p**2
    report = fastece.calibration_report(y, p, n_resamples="auto")
    test = fastece.calibration_test(y, p, n_resamples="auto")
    assert report.p_value == test.p_value < 1 / 2000
    assert report.n_resamples == test.null_distribution.size
    plain = fastece.calibration_report(y, p)
    intervals, plain_intervals = ([(x.low, x.high) for x in r.measures] for r in (report, plain))
    assert intervals == plain_intervals
    with pytest.raises(TypeError, match="n_resamples"):
        fastece.calibration_report(y, p, n_resamples="many")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "options"),
    [(400, {}), (400, {"counts": np.ones(60, int)}), (40, {"setting": "classwise"})],
)
def test_classes_without_a_row_are_counted_and_not_judged(n_classes, options):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(n_classes, 0.02), 60) * (np.arange(n_classes) % 3 > 0)
    p /= p.sum(axis=1, keepdims=True)
    y = np.where(rng.random(60) < 0.5, p.argmax(axis=1), rng.integers(30, 33, 60))
    has_row = np.zeros(n_classes, bool)
    has_row[y] = has_row[p.argmax(axis=1)] = True
    judged = np.flatnonzero(has_row | (p.sum(axis=0) >= 1)).tolist()
    assert {30, 33} & {*judged}
    n_left = n_classes - len(judged)
    assert n_left > n_classes / 4
    report = calibration_report(y, p, n_resamples=0, **options)
    assert sorted(row.label for row in report.classes) == judged
    sentence = f"Not judged: {n_left} of {n_classes} classes, which no row has"
    assert sum(note.startswith(sentence) for note in report.to_dict()["notes"]) == 1
    assert str(report).count(sentence) == 1
    values = {line.name: line.value for line in report.measures}
    expected = fastece.ece(y, p, setting=options.get("setting", "auto"))
    assert values["ece"] == pytest.approx(expected, rel=1e-12)


def test_a_class_that_rows_are_expected_of_is_judged_without_any():
    rng = np.random.default_rng(0)
    p = np.column_stack([np.full(300, 0.6), np.full(300, 0.35), np.full(300, 0.05)])
    report = calibration_report((rng.random(300) < 0.4).astype(int), p, n_resamples=0)
    assert {row.label: row.note for row in report.classes} == {0: "", 1: "", 2: "never the label"}
    assert not any("Not judged" in note for note in report.notes)
    assert next(row for row in report.classes if row.label == 2).low > 0
