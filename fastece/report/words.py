"""All sentences of reports and comparisons."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fastece.display import numbers

# Below so many rows the interval is as wide as the error of usual models.
FEWEST_ROWS = 30
# With so many rows the interval is 0.09 wide, for a model that is off by 0.07 (uniform and Beta(5,
# 1.5) scores, medians of 60 samples).
ENOUGH_ROWS = 400
# A part of the error from which on it is of one direction.
ONE_SIDED = 0.75
TOO_FEW, NO_SIGN, SHOWN, UNCLEAR = "too few rows", "no sign", "miscalibrated", "unclear"
TONES = {SHOWN: "bad", NO_SIGN: "good"}

QUESTIONS = {
    "binary": "does label 1 come as often as its probability?",
    "confidence": "is the most probable class right as often as its probability?",
    "class": "does this class come as often as its probability?",
    "classwise": "does each class come as often as its probability? (mean over classes)",
    "pairs": "is the predicted class right as often as its confidence?",
}
SCORES = {
    "brier_score": "mean squared distance of probabilities from outcomes",
    "log_loss": "mean of -log of the probability of the outcome",
    "accuracy": "how often the most probable class is right",
    "sharpness": "variance of the score",
    "entropy": "mean entropy of the probabilities",
}
ACCURACY_OF_SCORE = "how often a score above 1/2 is right"
CLASS_VECTORS = {
    "canonical": "distance of class vectors from their observed frequencies",
    "skce": "whether rows with similar class vectors are miscalibrated alike",
}
PARTS = {
    "too high": "error of probabilities above the observed frequency",
    "too low": "error of probabilities below the observed frequency",
    "mean gap": "observed frequency minus mean predicted probability",
}
OF_ERRORS = (
    "The intervals cover the true error; noise raises the estimates of binned errors, most of all "
    "of mce, even above their intervals. p-value: test of calibration with this error alone; "
    "the first sentence has that of the adaptive test, which also looks for slopes and curves."
)
OF_DIRECTION = "Parts of ece_bayes; the lower ends of their intervals come from the mean gap."
OF_CLASS_VECTORS = (
    "Class vectors may be off where top label and classes are not. Chance alone: mean of {} draws."
)
OF_SLICES = "{} of {} are miscalibrated by the {}, with joint p-values."
OF_THRESHOLDS = (
    "From each score on, the predicted class is right in at least that share of cases: a promise "
    "that holds after choosing, with {:g} % confidence for each row; - where none can be made."
)
OF_GROUPS = (
    "Rows of one group may depend on each other: intervals and p-values are those of whole groups."
)
OF_STREAM = (
    "Rows were added up in cells of their score, and are not kept. Errors of equal-width bins "
    "whose edges are ends of cells (10, 12, 15, 16, 18, 20, 25, 30, 50 or 100 on [0, 1]) are "
    "exact; ranks of edges of equal-mass bins are exact to 1e-4 and the share of rows in their "
    "cell; densities to 0.2 %. Labels of tests are drawn by cell, with normal noise. Log loss, "
    "intervals of densities and groups need every row, so they are absent."
)
STREAM = {"skipped": "rows skipped", "cut_files": "files cut off"}
# Of the first page: the errors that always come first, and what else there is.
ANSWER, USUAL = "best guess of the error", "the usual ECE, {} of {} bins used"
MORE = "--full: other errors, scores, class vectors, classes, bins; --html FILE: pictures; --json"
# Of a test that rejects beside an interval that reaches 0.
SURER = "The interval reaches 0: that there is an error is surer than its size."
INFINITE_LOSS = (
    "{}: the outcome had probability 0 in {}; --clip, or clip= of fastece.log_loss, limits "
    "probabilities."
)


class Judgement(NamedTuple):
    """The verdict of a report, and its headline: a sentence with the numbers.

    The verdict is "too few rows", "no sign" (of miscalibration), "miscalibrated" where the test
    rejects, or "unclear" where something else speaks against the test.
    """

    verdict: str
    headline: str


def judge(
    *, n: float, setting: str, level: float, error: float, interval: numbers.ConfidenceInterval,
    p_value: float | None, over: float, total: float, mean_gap: float,
    mean_gap_interval: numbers.ConfidenceInterval | None, off: dict[str, tuple[int, int]],
    others: Sequence[str] = (), rates: tuple[float, float] | None = None, event: str = "",
) -> Judgement:  # fmt: skip
    """Judge a model by the test, or by the interval where there is none.

    Parameters
    ----------
    n : float
        Effective number of rows.
    p_value : float or None
        Of the calibration test; None without one.
    over, total : float
        Error of scores that are too high, and of all.
    off : dict
        How many classes and slices are miscalibrated, and of how many, by name.
    others : sequence of str
        Other evidence of miscalibration.
    rates : tuple of float, optional
        Of one event, the predicted and the observed rate.
    event : str
        Its name, if it has one.
    """
    places = numbers.decimals(interval)
    low, high = (numbers.format_number(end, places) for end in interval)
    if n < FEWEST_ROWS:
        return Judgement(TOO_FEW, (
            f"Too few rows to judge: with {numbers.count_of(round(n), 'row')} the error may be "
            f"from {low} to {high}; some {ENOUGH_ROWS} rows are enough for most models."
        ))  # fmt: skip
    size = f"{numbers.format_number(error, places, False)} ({100 * level:g} % CI {low} to {high})"
    named, error_of = direction(over / total if total > 0 else 0.5, setting, event), "error"
    if rates is not None:
        predicted, observed = (f"{100 * rate:.1f} %" for rate in rates)
        error_of = f"{predicted} predicted, {observed} observed; calibration error"
    named = f"{named} by {size}" if rates is None else f"{named}: {error_of} {size}"
    test = "" if p_value is None else f"p = {numbers.format_p(p_value)}".replace("= <", "< ")
    shows = interval.low > 0
    rejects = shows if p_value is None else p_value < 1 - level
    if rejects:
        more = "" if shows else f" {SURER}"
        return Judgement(SHOWN, f"{sentence(named)}{test and '; '}{test}.{more}")
    if shows:
        text = f"the interval leaves out 0, but the test does not reject ({test})"
        return Judgement(UNCLEAR, f"Perhaps {named}; {text}.")
    evidence, gaps = [], mean_gap_interval
    if gaps is not None and (gaps.low > numbers.ROUNDING or gaps.high < -numbers.ROUNDING):
        gap = numbers.format_number(mean_gap, numbers.decimals(gaps), False)
        evidence.append(
            "the observed frequency differs from the mean predicted probability by "
            f"{gap} {numbers.format_interval(gaps)}"
        )
    evidence += [
        f"{x} of {count} {name} are miscalibrated" for name, (x, count) in off.items() if x
    ]
    evidence += others
    fits = f"{error_of} {size}{test and '; '}{test}"
    if evidence:
        return Judgement(UNCLEAR, f"Unclear: {fits}, but {' and '.join(evidence)}.")
    return Judgement(NO_SIGN, f"No sign of miscalibration: {fits}.")


def direction(share: float, setting: str, event: str = "") -> str:
    """Name the direction of an error of which a share is of scores that are too high."""
    is_both, side = 1 - ONE_SIDED < share < ONE_SIDED, "high" if share > 0.5 else "low"
    if setting not in ("confidence", "classwise"):
        side = "high for some rows and too low for others" if is_both else side
        return f"probabilities{event and ' of '}{event} are too {side}"
    if is_both:
        return "miscalibrated in both directions"
    if setting == "confidence":
        return "over-confident" if share > 0.5 else "under-confident"
    return f"miscalibrated: probabilities too {side}"


def judge_classes(off: int, count: int, level: float, mean: float) -> Judgement:
    """Judge the classes of a stream one by one, whose mean error has no interval."""
    known = f"{off} of {count} classes are miscalibrated" if off else "No class is miscalibrated"
    text = f"{known} (joint {100 * level:g} % CIs); mean error {numbers.format_number(mean)}."
    return Judgement(SHOWN if off else NO_SIGN, text)


def sentence(text: str) -> str:
    """Begin a text with a capital."""
    return text[0].upper() + text[1:]


def question(setting: str, pairs: bool) -> str:
    """Write a setting and its question; `pairs` means predicted classes."""
    kind, _, label = setting.partition(" ")
    if kind == "binary" and label:  # the caller's, in brackets
        return f"{setting}: does {label[1:-1]} come as often as its probability?"
    return f"{setting}: {QUESTIONS['pairs' if pairs else kind]}"


def event_of(setting: str) -> str:
    """Name the event of a setting of one problem."""
    kind, _, label = setting.partition(" ")
    if not label:
        return "the event"
    return setting if kind == "class" else f"label {label[1:-1]}"


def infinite_loss(name: str, rows: Sequence[int], row: Callable[[int], str]) -> str:
    """Write which rows make a loss infinite, and the remedy."""
    return INFINITE_LOSS.format(name, numbers.first_of(rows, row))
