"""The command ``threshold``: the score from which predictions may act alone."""

from argparse import Namespace

from fastece.cli.inputs import read_data, read_file, title_of
from fastece.cli.output import Page, Progress
from fastece.data.errors import InputError
from fastece.data.labels import as_groups
from fastece.decisions.promises import check_promise
from fastece.decisions.threshold import threshold_of
from fastece.estimators.losses import Accuracy
from fastece.files import write_file


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece threshold FILE``."""
    title, options.resamples = title_of(options.file), 0
    promise = check_promise(options.accuracy, options.cost, options.confidence_level)
    if len(options.by or []) > 1:
        raise InputError("by", "must be one column", value=options.by[1])
    progress(f"reading {title}")
    predictions = read_file(options.file, options)
    if options.setting == "auto" and not predictions.pairs:  # of either label
        options.setting = "confidence"
    call, by = read_data(predictions, options, {"": Accuracy()}), predictions.others.get("by")
    values = None if by is None else as_groups(by, len(by))
    found = threshold_of(call, promise, values, predictions.from_logits)
    facts = {"title": title, "note": predictions.note, "sentence": found.sentence}
    content = f"{found.to_json()}\n".encode()
    write = {"save": lambda path: write_file(path, content)}
    return Page(found.document(), {**facts, **found.to_dict()}, write)
