"""The command ``plan``: how many rows a test set needs, by a pilot."""

from argparse import Namespace

from fastece.cli.inputs import read_data, read_independent, title_of
from fastece.cli.output import Page, Progress
from fastece.estimators.table import find_estimator
from fastece.inference.rows_needed import (
    INTERVAL_RESAMPLES,
    check_targets,
    rows_needed_of,
)
from fastece.resampling.draws import new_key


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece plan FILE``."""
    title, goals = title_of(options.file), (options.width, options.detect, options.power)
    check_targets(*goals, options.level)
    options.confidence_level, options.resamples = options.level, INTERVAL_RESAMPLES
    progress(f"reading {title}")
    predictions = read_independent(options.file, options)
    call = read_data(predictions, options, {"": find_estimator(options.estimator, {})})
    progress("simulating samples")
    found = rows_needed_of(call, *goals, new_key(options.seed))
    return Page(found.document(), {"title": title, "note": predictions.note, **found.to_dict()})
