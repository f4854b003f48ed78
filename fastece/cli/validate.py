"""The command ``validate``: the validation of a risk model, on one page."""

from argparse import Namespace
from pathlib import Path

from fastece.cli.arguments import (
    Parser,
    add_columns,
    add_event,
    add_file,
    add_forms,
    add_groups,
    add_intervals,
    add_picture,
    add_scale,
    add_setting,
    add_soft_labels,
    scores,
)
from fastece.cli.inputs import read_data, read_file, title_of
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.display.axes import RESULT_HEIGHT, RESULT_WIDTH, new_figure
from fastece.display.pages import picture_of
from fastece.files import write_file
from fastece.resampling.draws import new_key
from fastece.risk.validation import check_thresholds, validation_of

DESCRIPTION = """Validate predicted probabilities of one event: rates, recalibration, curve,
discrimination and net benefit, with intervals and an explanation of each."""
EXAMPLES = """
  fastece validate trial.csv --y-true died --y-prob risk --event death
"""


def make_parser() -> Parser:
    """Make the parser of ``fastece validate FILE``."""
    parser = Parser("validate", DESCRIPTION, "fastece validate FILE [options]", EXAMPLES)
    add_file(parser)
    add_columns(parser)
    add_soft_labels(parser)
    add_scale(parser)
    add_groups(parser)
    add_event(parser)
    parser.measure.add_argument(
        "--thresholds", metavar="P,P,...", type=scores, help="of the net benefit (nine to 0.5)"
    )
    add_setting(parser)
    add_intervals(parser)
    add_picture(parser)
    add_forms(parser)
    return parser


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece validate FILE``."""
    title = title_of(options.file)
    progress(f"reading {title}")
    predictions = read_file(options.file, options)
    points = {str(point): point for point in check_thresholds(options.thresholds)}
    call = read_data(predictions, options, points)
    progress(f"validation, {options.n_resamples} replicates")
    validation = validation_of(call, new_key(options.rng), options.event or "the event")
    values = {"title": title, "note": predictions.note, **validation.to_dict()}

    def draw(path: Path) -> None:
        figure = new_figure((RESULT_WIDTH, RESULT_HEIGHT))
        validation.plot(figure.subplots())
        write_file(path, picture_of(path, figure))

    return Page(validation.document(), values, {"plot": draw})
