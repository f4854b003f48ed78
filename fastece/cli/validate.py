"""The command ``validate``: the validation of a risk model, on one page."""

from argparse import Namespace
from pathlib import Path

from fastece.cli.inputs import read_data, read_file, title_of
from fastece.cli.options import (
    EVENT,
    FILE,
    GROUPS,
    INTERVALS,
    MEASURE,
    PLOT,
    ROWS,
    Command,
    scores,
    value,
)
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.display.axes import RESULT_HEIGHT, RESULT_WIDTH, new_figure
from fastece.display.pages import picture_of
from fastece.files import write_file
from fastece.inference.validation import check_thresholds, validation_of
from fastece.resampling.draws import new_key


def describe() -> Command:
    """Describe ``fastece validate FILE``."""
    return Command(
        "Validate predicted probabilities of one event: rates, recalibration, calibration curve, "
        "discrimination and net benefit, with intervals and a line of explanation each.",
        run,
        (FILE,),
        (
            *ROWS, GROUPS, EVENT,
            value("--thresholds", MEASURE, "thresholds of the net benefit (default: nine from "
                  "0.01 to 0.5)",
                  metavar="SCORE[,SCORE...]", read=scores),
            *INTERVALS, PLOT,
        ),
    )  # fmt: skip


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece validate FILE``."""
    title = title_of(options.file)
    progress(f"reading {title}")
    predictions = read_file(options.file, options)
    points = {str(point): point for point in check_thresholds(options.thresholds)}
    call = read_data(predictions, options, points)
    progress(f"validation, {options.resamples} replicates")
    validation = validation_of(call, new_key(options.seed), options.event or "the event")
    values = {"title": title, "note": predictions.note, **validation.to_dict()}

    def draw(path: Path) -> None:
        figure = new_figure((RESULT_WIDTH, RESULT_HEIGHT))
        validation.plot(figure.subplots())
        write_file(path, picture_of(path, figure))

    return Page(validation.document(), values, {"plot": draw})
