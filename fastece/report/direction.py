"""The part of a report on direction: how much error lies above and below the frequencies."""

from fastece.display.documents import Section, Table
from fastece.inference.direction import Direction

# Parts in the table of a `Direction`, with their names and meanings in a report, whose readers
# know scores as probabilities. The error as a whole is in the table of errors.
DIRECTION_WORDS = {
    "over": ("too high", "error of probabilities above the observed frequency"),
    "under": ("too low", "error of probabilities below the observed frequency"),
    "mean gap": ("mean gap", "observed frequency minus mean predicted probability"),
}
DIRECTION_NOTE = "Parts of ece_bayes; the lower ends of their intervals come from the mean gap."


def direction_section(direction: Direction | None) -> Section | None:
    """Describe how much of the error is of scores that are too high, and too low."""
    if direction is None:
        return None
    table = direction.document().sections[0].table
    assert table is not None
    rows = []
    for part, value, interval, _ in table.rows:
        if part in DIRECTION_WORDS:
            name, meaning = DIRECTION_WORDS[part]
            rows.append([name, value, interval, meaning])
    return Section("Direction", table=Table(table.head, rows), notes=[DIRECTION_NOTE])
