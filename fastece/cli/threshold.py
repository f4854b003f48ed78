"""The command ``threshold``: the score from which predictions may act alone."""

import math
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np

from fastece.cli.arguments import (
    Parser,
    add_columns,
    add_file,
    add_forms,
    add_groups,
    add_scale,
    add_setting,
)
from fastece.cli.inputs import read_data, read_file, title_of
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.data.errors import InputError
from fastece.data.labels import are_right_or_wrong, as_groups
from fastece.decisions.threshold import describe_support, rank_call, threshold_of_ranking
from fastece.estimators.losses import Accuracy
from fastece.estimators.risk import check_threshold
from fastece.files import write_file

DESCRIPTION = """Choose the lowest confidence from which predictions are right in a share of
cases, with a promise that holds after choosing. Exit codes: 0 a score is found,
1 no score can be promised (or none for a value of --by), 2 bad input."""
EXAMPLES = """
  fastece threshold predictions.csv --accuracy 0.98 --save threshold.json
"""
# Exit code where no score can be promised, or for a value of --by none.
NO_SCORE_CODE = 1


def make_parser() -> Parser:
    """Make the parser of ``fastece threshold FILE``."""
    parser = Parser("threshold", DESCRIPTION, "fastece threshold FILE [options]", EXAMPLES)
    add_file(parser)
    add_columns(parser)
    add_scale(parser)
    add_groups(parser)
    add = parser.input.add_argument
    add("--by", metavar="COLUMN", action="append", help="a threshold for each of its values")
    add = parser.measure.add_argument
    add("--accuracy", metavar="A", type=float, default=0.95, help="share to be right (0.95)")
    add_setting(parser)
    add("--confidence-level", metavar="L", type=float, default=0.95, dest="confidence",
        help="level of the promise (0.95)")  # fmt: skip
    parser.output.add_argument("--save", metavar="FILE", help="the threshold as JSON")
    add_forms(parser)
    return parser


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece threshold FILE``."""
    title = title_of(options.file)
    accuracy = check_threshold("accuracy", options.accuracy)
    confidence = check_threshold("confidence", options.confidence)
    options.confidence_level = confidence
    if len(options.by or []) > 1:
        raise InputError("by", "must be one column", value=options.by[1])
    progress(f"reading {title}")
    predictions = read_file(options.file, options)
    options.n_resamples = 0
    call = read_data(predictions, options, {"": Accuracy()})
    by = predictions.others.get("by")
    column = None if by is None else as_groups(by, len(by))
    ranking = rank_call(call, column)
    threshold = threshold_of_ranking(
        call, ranking, accuracy, confidence, from_logits=predictions.from_logits,
        is_of_hits=predictions.hits or are_right_or_wrong(predictions.y_true),
    )  # fmt: skip

    def save(path: Path) -> None:
        write_file(path, f"{threshold.to_json()}\n".encode())

    values = {
        "title": title,
        "note": predictions.note,
        "sentence": threshold.sentence,
        **threshold.to_dict(),
    }
    description = threshold.document()
    if column is None and math.isnan(threshold.value):
        (section,) = description.sections
        support = describe_support(ranking, accuracy, confidence)
        notes = [note for note in (support, *section.notes) if note]
        description = replace(description, sections=[replace(section, notes=notes)])
    is_missing = np.isnan(threshold.value)
    remark = ""
    if is_missing.any():
        rows = "" if is_missing.all() else " of values without a score"
        remark = f"(with it no row{rows} may act)"
    return Page(
        description, values, {"save": save}, {"save": remark},
        exit_code=NO_SCORE_CODE if is_missing.any() else 0,
    )  # fmt: skip
