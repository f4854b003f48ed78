"""The command ``plan``: how many rows a test set needs, by a pilot."""

from argparse import Namespace

from fastece.cli.inputs import read_data, read_independent, title_of
from fastece.cli.options import COLUMNS, FILE, FROM_LOGITS, MEASURE, SEED, SETTING, Command, value
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.estimators.table import find_estimator
from fastece.inference.rows_needed import INTERVAL_RESAMPLES, check_targets, rows_needed_of
from fastece.resampling.draws import new_key


def describe() -> Command:
    """Describe ``fastece plan FILE``."""
    return Command(
        "Find how many rows a test set needs, by simulation on the scores of a pilot: for a mean "
        "width of the interval, or for a test that finds an error. It takes some seconds.",
        run,
        (FILE,),
        (
            *COLUMNS,
            value("--width", MEASURE, "mean width of the interval", metavar="W", read=float),
            value("--detect", MEASURE, "calibration error that the test is to find", metavar="E",
                  read=float),
            value("--power", MEASURE, "power: how often the test finds that error (default 0.8)",
                  metavar="P", read=float,
                  default=0.8),
            value("--level", MEASURE, "level of the interval; 1 minus the size of the test "
                  "(default 0.95)",
                  metavar="LEVEL", read=float, default=0.95),
            value("--estimator", MEASURE, "calibration error of the interval (default ece_bayes)",
                  metavar="NAME",
                  default="ece_bayes"),
            SETTING, FROM_LOGITS, SEED,
        ),
    )  # fmt: skip


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece plan FILE``."""
    title = title_of(options.file)
    targets = (options.width, options.detect, options.power)
    check_targets(*targets, options.level)
    options.confidence_level = options.level
    options.resamples = INTERVAL_RESAMPLES
    progress(f"reading {title}")
    predictions = read_independent(options.file, options)
    call = read_data(predictions, options, {"": find_estimator(options.estimator, {})})
    progress("simulating samples")
    rows_needed = rows_needed_of(call, *targets, new_key(options.seed))
    values = {"title": title, "note": predictions.note, **rows_needed.to_dict()}
    return Page(rows_needed.document(), values)
