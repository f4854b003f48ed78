"""What the numbers of a report say, in sentences that are true as they stand."""

import math
from dataclasses import dataclass

from fastece.resampling.intervals import ConfidenceInterval

# Below so many rows the interval is as wide as what usual models are off by.
FEWEST_ROWS = 30
# An interval of this width tells a model that is off by 0.05 from one that is not.
USEFUL_WIDTH = 0.1
# A part of the error from which on it is said to be of one direction.
ONE_SIDED = 0.75
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
    if value in (0, 1) or math.isinf(value):
        return f"{value:.0f}"
    return f"{value:.{places}f}" if abs(value) >= 0.5 * 10**-places else f"{value:.0e}"


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
    whole = 100 if p_value >= 0.1 else 1000
    return f"in {max(1, round(whole * p_value))} of {whole} samples"


def side(setting: str, over: float, error: float) -> str:
    """In which direction a model is off, in words that "by 0.021" follows."""
    kind = "confidence" if setting == "confidence" else "class"
    share = over / error if error > 0 else 0.5
    if share >= ONE_SIDED:
        return SIDES[kind][0]
    return SIDES[kind][1] if share <= 1 - ONE_SIDED else BOTH_SIDES


def rows_needed(n: int, interval: ConfidenceInterval) -> int:
    """About how many rows make an interval as narrow as is useful, with two digits: widths fall
    with the square root of the rows."""
    needed = n * ((interval.high - interval.low) / USEFUL_WIDTH) ** 2
    unit = int(10 ** max(math.floor(math.log10(max(needed, 1.0))) - 1, 0))
    return int(math.ceil(needed / unit) * unit)


def judge(
    n: int, setting: str, error: float, interval: ConfidenceInterval, level: float,
    p_value: float | None, n_resamples: int, over: float, total: float,
) -> Judgement:  # fmt: skip
    """The judgement about an error of n rows.

    Parameters
    ----------
    error, interval, level
        The error, and its interval at a level.
    p_value, n_resamples
        Of the calibration test, from so many replicates; None without them.
    over, total
        Error of scores that are too high, and of all.
    """
    places = decimals(interval)
    span = (
        f"{100 * level:g} % interval {number(interval.low, places)} to "
        f"{number(interval.high, places)}"
    )
    by = f"by {number(error, places)} ({span})"
    if n < FEWEST_ROWS:
        return Judgement(TOO_FEW, (
            f"Too few rows to judge: {n} rows leave the error anywhere from "
            f"{number(interval.low, places)} to {number(interval.high, places)}; some "
            f"{max(rows_needed(n, interval), FEWEST_ROWS)} would tell it to within 0.05."
        ))  # fmt: skip
    direction = side(setting, over, total)
    leaves_zero_out = interval.low > 0
    fits = f"no sign of miscalibration: the error is {number(error, places)} ({span})"
    if p_value is None:
        if leaves_zero_out:
            return Judgement(SHOWN, sentence(f"{direction} {by}."))
        return Judgement(NO_SIGN, sentence(f"{fits}."))
    chance = f"chance alone would show as much {frequency(p_value, n_resamples)}"
    rejects = p_value < 1 - level
    if leaves_zero_out and rejects:
        return Judgement(SHOWN, sentence(f"{direction} {by}; {chance} of a calibrated model."))
    if not leaves_zero_out and not rejects:
        return Judgement(NO_SIGN, sentence(f"{fits}, and {chance} of a calibrated model."))
    if rejects:
        return Judgement(UNCLEAR, sentence(
            f"probably {direction} {by}: {chance} of a calibrated model, but the interval still "
            "holds 0, so that more rows are needed."
        ))  # fmt: skip
    return Judgement(UNCLEAR, sentence(
        f"probably {direction} {by}: the interval leaves out 0, but {chance} of a calibrated "
        "model in the bins of the test, so that more rows are needed."
    ))  # fmt: skip


def sentence(text: str) -> str:
    """A text that begins with a capital."""
    return text[0].upper() + text[1:]


def question(setting: str, pairs: bool) -> str:
    """A setting as results name it, and what is asked there; `pairs`: of predicted classes."""
    kind, _, label = setting.partition(" ")
    if kind == "binary" and label:  # the caller's, in brackets
        return f"{setting}: does {label[1:-1]} come as often as its probability says?"
    return f"{setting}: {QUESTIONS['pairs' if pairs else kind]}"
