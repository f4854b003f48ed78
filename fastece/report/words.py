"""Sentences that reports share with comparisons and the other commands."""

from collections.abc import Callable, Sequence

from fastece.display.numbers import first_of

# The question that each setting answers.
QUESTIONS = {
    "binary": "does label 1 come as often as its probability?",
    "confidence": "is the most probable class right as often as its probability?",
    "class": "does this class come as often as its probability?",
    "classwise": "does each class come as often as its probability? (mean over classes)",
    "pairs": "is the predicted class right as often as its confidence?",
}
# Scores by name, with their meanings.
SCORES = {
    "brier_score": "mean squared distance of probabilities from outcomes",
    "log_loss": "mean of -log of the probability of the outcome",
    "accuracy": "how often the most probable class is right",
    "sharpness": "variance of the score",
    "entropy": "mean entropy of the probabilities",
}


def sentence(text: str) -> str:
    """Begin a text with a capital."""
    return text[0].upper() + text[1:]


def question(setting: str, pairs: bool) -> str:
    """Write a setting and its question; `pairs` means hits and confidences."""
    kind, _, label = setting.partition(" ")
    if kind == "binary" and label:  # the label of the caller, in brackets
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
    return (
        f"{name}: the outcome had probability 0 in {first_of(rows, row)}; --clip, or clip= of "
        "fastece.log_loss, limits probabilities."
    )
