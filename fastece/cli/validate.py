"""The command ``validate``: the validation of a risk model, on one page."""

from argparse import Namespace

from fastece.cli.inputs import read_data, read_file, title_of
from fastece.cli.output import Page, Progress
from fastece.inference.validation import check_thresholds, validation_of
from fastece.resampling.draws import new_key


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece validate FILE``."""
    title = title_of(options.file)
    progress(f"reading {title}")
    predictions = read_file(options.file, options)
    points = {str(point): point for point in check_thresholds(options.thresholds)}
    call = read_data(predictions, options, points)
    progress(f"validation, {options.resamples} replicates")
    found = validation_of(call, new_key(options.seed), options.event or "the event")
    return Page(found.document(), {"title": title, "note": predictions.note, **found.to_dict()})
