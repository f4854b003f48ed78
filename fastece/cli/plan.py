"""The command ``plan``: how many rows a test set needs, by a pilot."""

from argparse import Namespace

from fastece.cli.arguments import (
    Parser,
    add_columns,
    add_file,
    add_forms,
    add_scale,
    add_seed,
    add_setting,
)
from fastece.cli.inputs import read_data, read_independent, title_of
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.estimators.table import find_estimator
from fastece.inference.rows_needed import INTERVAL_RESAMPLES, check_targets, rows_needed_of
from fastece.resampling.draws import new_key

DESCRIPTION = """Find how many rows a test set needs, by simulation on the scores of a pilot:
for a mean width of the interval, or for a test that finds an error."""
EXAMPLES = """
  fastece plan pilot.csv --width 0.05
  fastece plan pilot.csv --detect 0.05 --power 0.9
"""


def make_parser() -> Parser:
    """Make the parser of ``fastece plan FILE``."""
    parser = Parser("plan", DESCRIPTION, "fastece plan FILE --width W [options]", EXAMPLES)
    add_file(parser)
    add_columns(parser)
    add_scale(parser)
    add = parser.measure.add_argument
    add("--width", metavar="W", type=float, help="mean width of the interval")
    add("--detect", metavar="E", type=float, help="calibration error that the test is to find")
    add("--power", metavar="P", type=float, default=0.8, help="how often it finds it (0.8)")
    add("--level", metavar="L", type=float, default=0.95,
        help="of the interval; 1 minus the test's size (0.95)")  # fmt: skip
    add("--estimator", metavar="NAME", default="ece_bayes", help="of the interval (ece_bayes)")
    add_setting(parser)
    add_seed(parser)
    add_forms(parser)
    return parser


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece plan FILE``."""
    title = title_of(options.file)
    targets = (options.width, options.detect, options.power)
    check_targets(*targets, options.level)
    options.confidence_level = options.level
    options.n_resamples = INTERVAL_RESAMPLES
    progress(f"reading {title}")
    predictions = read_independent(options.file, options)
    call = read_data(predictions, options, {"": find_estimator(options.estimator, {})})
    progress("simulating samples")
    rows_needed = rows_needed_of(call, *targets, new_key(options.rng))
    values = {"title": title, "note": predictions.note, **rows_needed.to_dict()}
    return Page(rows_needed.document(), values)
