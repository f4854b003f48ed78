"""The part of a report on direction: how much error lies above and below the frequencies."""

from fastece.display.documents import Section, Table
from fastece.display.numbers import ConfidenceInterval
from fastece.inference.direction import Direction
from fastece.report.errors import interval_name, with_interval

# Names and meanings of the parts in a report, where scores are probabilities of anything.
MEANINGS = {
    "too high": "error of probabilities above the observed frequency",
    "too low": "error of probabilities below the observed frequency",
    "mean gap": "observed frequency minus mean predicted probability",
}
NOTE = "Parts of ece_bayes; the lower ends of their intervals come from the mean gap."


def direction_section(direction: Direction | None) -> Section | None:
    """Describe how much of the error is of scores that are too high, and too low."""
    if direction is None:
        return None
    parts = {
        "too high": (direction.over, direction.over_interval),
        "too low": (direction.under, direction.under_interval),
        "mean gap": (direction.mean_gap, direction.mean_gap_interval),
    }
    rows = []
    for name, (value, interval) in parts.items():
        low, high = interval or ConfidenceInterval(None, None)
        rows.append([name, *with_interval(value, low, high), MEANINGS[name]])
    head = ["part", "value", interval_name(direction.confidence_level), ""]
    return Section("Direction", table=Table(head, rows), notes=[NOTE])
