"""The command ``demo``: a report on predictions that ship with fastece, and their recalibration."""

from argparse import Namespace
from dataclasses import replace
from typing import NamedTuple

import fastece
from fastece import datasets
from fastece.cli.arguments import Parser, add_report
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.cli.report import make_page, report_of_rows
from fastece.data.errors import InputError
from fastece.display.documents import Section, Table
from fastece.display.numbers import Number
from fastece.files import FilePredictions
from fastece.recalibration import METHODS, recalibrate
from fastece.report.first_page import brief_diagram, main_errors
from fastece.report.inputs import LEAD, TEST
from fastece.report.result import Report

DESCRIPTION = """Report on predictions that ship with fastece, and on what recalibration makes
of them: a random forest that reads handwritten digits, cross-validated."""
EXAMPLES = """
  fastece demo
  fastece demo --binary --full --html demo.html
"""
FOREST = "forest"
METHOD = "temperature"
NEXT = (
    "Your predictions: fastece report FILE, then fastece recalibrate FILE --out NEW",
    "More of this demo: --full; pictures: --html FILE; other models: --model network, --binary",
)


class Demonstration(NamedTuple):
    """A data set of `fastece.datasets`, and the title of its page."""

    dataset: str
    title: str


MODELS = {
    FOREST: Demonstration(
        "digits_random_forest", "Random forest, handwritten digits: 1797 rows, 10 classes"
    ),
    "network": Demonstration(
        "digits_network", "Small neural network, handwritten digits: 1797 rows, 10 classes"
    ),
}
RISK = Demonstration(
    "breast_cancer", "Naive Bayes, probability that a tumour is malignant: 569 rows"
)


def make_parser() -> Parser:
    """Make the parser of ``fastece demo``."""
    parser = Parser("demo", DESCRIPTION, "fastece demo [options]", EXAMPLES)
    add = parser.input.add_argument
    add(
        "--model",
        choices=[*MODELS],
        default=FOREST,
        metavar="NAME",
        help="forest (default), or network",
    )
    add("--binary", action="store_true", help="a risk model instead: breast cancer")
    add_report(parser)
    return parser


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece demo``."""
    if options.binary and options.model != FOREST:
        raise InputError("binary", "goes without {model}")
    demonstration = RISK if options.binary else MODELS[options.model]
    y_true, y_prob = datasets.load(demonstration.dataset)
    rows = FilePredictions(y_true, y_prob, y_true)
    report = report_of_rows(rows, demonstration.title, options, progress)
    page = make_page(report, options)
    if options.json:
        return page
    progress("recalibration")
    recalibrated = describe_recalibration(rows, report, options.setting)
    if options.full:
        sections = [*page.description.sections, recalibrated]
    else:
        sections = [*first_sections(report, options), recalibrated, Section(notes=NEXT)]
    return replace(page, description=replace(page.description, sections=sections))


def first_sections(report: Report, options: Namespace) -> list[Section]:
    """Describe the main errors and the diagram."""
    return [main_errors(report, [LEAD, TEST, *options.estimator]), *brief_diagram(report)]


def describe_recalibration(rows: FilePredictions, report: Report, setting: str | int) -> Section:
    """Recalibrate rows out of fold, and describe errors before and after."""
    y_true = rows.y_true
    y_prob = recalibrate(y_true, rows.y_prob, method=METHOD)
    lead = fastece.estimate(y_true, y_prob, setting=setting)
    lead_before, usual_before = report.measures[:2]
    interval = lead.confidence_interval
    usual = fastece.ece(y_true, y_prob, setting=setting)
    loss_before, loss = (fastece.log_loss(y_true, p) for p in (rows.y_prob, y_prob))
    table = Table(
        ["", "before", "after", "95 % CI"],
        [
            [LEAD, Number(lead_before.value, interval), Number(lead.value, interval), interval],
            [TEST, Number(usual_before.value, interval), Number(usual, interval), None],
            ["log_loss", Number(loss_before, interval), Number(loss, interval), None],
        ],
    )
    return Section(f"After {METHODS[METHOD].title}, fitted out of fold", table=table)
