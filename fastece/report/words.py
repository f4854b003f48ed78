"""What the numbers of a report say, in sentences that are true as they stand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fastece.resampling.intervals import ConfidenceInterval

# Below so many rows the interval is as wide as what usual models are off by.
FEWEST_ROWS = 30
# With so many rows the interval is 0.09 wide, for a model that is off by 0.07 (uniform and Beta(5,
# 1.5) scores, medians of 60 samples).
ENOUGH_ROWS = 400
# A part of the error from which on it is said to be of one direction.
ONE_SIDED = 0.75
# Smaller numbers are rounding, and shown as 0.
LEAST_GAP = 1e-9
# A smaller p-value is said to be below.
LEAST_P = 1e-4
# No more digits are shown, however sure a number is.
MOST_DECIMALS = 5

TOO_FEW, NO_SIGN, SHOWN, UNCLEAR = "too few rows", "no sign", "miscalibrated", "unclear"
# What a model is that says too much, or too little.
SIDES = {
    "confidence": ("over-confident", "under-confident"),
    "class": ("off, its probabilities too high,", "off, its probabilities too low,"),
}
BOTH_SIDES = "off in both directions,"


# What is measured in each setting; of one class, "class"; of predicted classes alone, "pairs".
QUESTIONS = {
    "binary": "does label 1 come as often as its probability says?",
    "confidence": "is the most probable class right as often as its probability says?",
    "class": "does this class come as often as its probability says?",
    "classwise": "does each class come as often as its probability says? (mean over classes)",
    "pairs": "is the predicted class right as often as its confidence says?",
}


@dataclass(frozen=True)
class Judgement:
    """What a report comes down to.

    Attributes
    ----------
    verdict : str
        "too few rows", "no sign" (calibrated, as far as these rows tell), "miscalibrated", or
        "unclear" where the interval and the test do not agree.
    headline : str
        One sentence with the error, its interval, its direction and the p-value.
    """

    verdict: str
    headline: str


def decimals(interval: ConfidenceInterval) -> int:
    """How many decimals a number is worth: so many that the interval's width has two digits."""
    width = interval.high - interval.low
    if not 0 < width < math.inf:
        return MOST_DECIMALS - 1
    return min(max(1 - math.floor(math.log10(width)), 2), MOST_DECIMALS)


def number(value: float | None, places: int = MOST_DECIMALS) -> str:
    """A number with so many decimals, or the first digit of one that they would make 0; 0 and 1 as
    they are, "-" for one that there is not."""
    if value is None or math.isnan(value):
        return "-"
    if abs(value) < LEAST_GAP:
        return "0"
    if value == 1 or math.isinf(value):
        return f"{value:.0f}"
    first_digit = -math.floor(math.log10(abs(value)))
    return f"{value:.{max(places, first_digit)}f}"


def ends(interval: ConfidenceInterval | None, places: int | None = None) -> str:
    """An interval in brackets, with as many digits as it is worth."""
    if interval is None or math.isnan(interval.low):
        return "-"
    places = decimals(interval) if places is None else places
    return f"[{number(interval.low, places)}, {number(interval.high, places)}]"


def p_text(p_value: float | None, least: float = LEAST_P) -> str:
    """A p-value; "below 0.001" where that is the `least` there can be."""
    if p_value is None or math.isnan(p_value):
        return "-"
    if p_value <= least:
        return f"below {least:.1g}"
    return f"{p_value:.2g}" if p_value < 0.0995 else f"{p_value:.2f}"


def floor_of(n_resamples: int) -> float:
    """The p-value where no replicate is as far off."""
    return 1 / max(n_resamples, 1)


def frequency(p_value: float, n_resamples: int) -> str:
    """How often chance alone would show as much, in whole samples."""
    if p_value <= floor_of(n_resamples):
        return f"in fewer than 1 of {n_resamples} samples"
    if p_value > 0.995:
        return "in more than 99 of 100 samples"
    whole = 100 if p_value >= 0.1 else 1000
    return f"in {max(1, round(whole * p_value))} of {whole} samples"


def side(setting: str, over: float, error: float) -> str:
    """In which direction a model is off, in words that "by 0.021" follows."""
    kind = "confidence" if setting == "confidence" else "class"
    share = over / error if error > 0 else 0.5
    if share >= ONE_SIDED:
        return SIDES[kind][0]
    return SIDES[kind][1] if share <= 1 - ONE_SIDED else BOTH_SIDES


@dataclass(frozen=True)
class Findings:
    """What a judgement rests on.

    Attributes
    ----------
    n : float
        Effective number of rows.
    setting : str
    level : float
        Of the intervals.
    error, interval
        The error, and its interval.
    p_value, n_resamples
        Of the calibration test, from so many replicates; None without them.
    over, total : float
        Error of scores that are too high, and of all.
    mean_gap, mean_gap_interval
        Hit rate less mean score.
    off : dict
        How many classes and groups are off for sure, and of how many, by what they are called.
    others : sequence of str
        What else speaks against it.
    """

    n: float
    setting: str
    level: float
    error: float
    interval: ConfidenceInterval
    p_value: float | None
    n_resamples: int
    over: float
    total: float
    mean_gap: float
    mean_gap_interval: ConfidenceInterval
    off: dict[str, tuple[int, int]]
    others: Sequence[str] = ()

    @property
    def objections(self) -> list[str]:
        """What speaks against a calibrated model beside the error and the test."""
        found = []
        low, high = self.mean_gap_interval
        if low > LEAST_GAP or high < -LEAST_GAP:
            places = decimals(self.mean_gap_interval)
            found.append(
                f"the hit rate differs from the mean score by {number(self.mean_gap, places)} "
                f"{ends(self.mean_gap_interval)}"
            )
        found += [
            f"{off} of {count} {what} are off" for what, (off, count) in self.off.items() if off
        ]
        return [*found, *self.others]


def judge(found: Findings) -> Judgement:
    """The judgement: about the error if its interval and the test agree, "unclear" if they do not,
    or if neither shows anything but something else does."""
    places = decimals(found.interval)
    low, high = (number(end, places) for end in found.interval)
    error = f"{number(found.error, places)} ({100 * found.level:g} % interval {low} to {high})"
    if found.n < FEWEST_ROWS:
        rows = f"{found.n:.0f} row{'' if round(found.n) == 1 else 's'}"
        return Judgement(TOO_FEW, (
            f"Too few rows to judge: {rows} may have an error from {low} to {high}; some "
            f"{ENOUGH_ROWS} tell that of most models to within 0.05."
        ))  # fmt: skip
    direction = side(found.setting, found.over, found.total)
    shows = found.interval.low > 0
    rejects = shows if found.p_value is None else found.p_value < 1 - found.level
    chance = ""
    if found.p_value is not None:
        often = frequency(found.p_value, found.n_resamples)
        chance = f"chance alone would show as large an ECE {often} of a calibrated model"
    if shows and rejects:
        return Judgement(SHOWN, sentence(f"{direction} by {error}{chance and '; '}{chance}."))
    if shows:
        text = f"probably {direction} by {error}: the interval leaves out 0, but {chance}."
        return Judgement(UNCLEAR, sentence(text))
    if rejects:
        text = f"probably {direction} by {error}: {chance}, but the interval still holds 0."
        return Judgement(UNCLEAR, sentence(text))
    fits = f"the error is {error}{chance and ', and '}{chance}"
    if found.objections:
        return Judgement(UNCLEAR, f"Not clear: {fits}; but {' and '.join(found.objections)}.")
    return Judgement(NO_SIGN, f"No sign of miscalibration: {fits}.")


def sentence(text: str) -> str:
    """A text that begins with a capital."""
    return text[0].upper() + text[1:]


def question(setting: str, pairs: bool) -> str:
    """A setting as results name it, and what is asked there; `pairs`: of predicted classes."""
    kind, _, label = setting.partition(" ")
    if kind == "binary" and label:  # the caller's, in brackets
        return f"{setting}: does {label[1:-1]} come as often as its probability says?"
    return f"{setting}: {QUESTIONS['pairs' if pairs else kind]}"
