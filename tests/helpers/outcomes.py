"""What a call does: its value or its error, and its warnings."""

import warnings


def outcome_of(call):
    """The value or the error of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = call()
        except (ValueError, TypeError) as error:
            outcome = type(error), str(error)
    return outcome, [(w.category, str(w.message), w.filename) for w in caught]
