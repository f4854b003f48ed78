"""The command ``demo``: the report on predictions that ship with fastece."""

from argparse import Namespace
from importlib.resources import as_file, files

from fastece.cli.inputs import read_file
from fastece.cli.options import ERRORS, FULL, HTML, Command
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.cli.report import N_KERNELS, choose_extent, make_page, report_of_rows

PREDICTIONS = "digits_neural_network.npz"
TITLE = "handwritten digits, a small neural network"


def describe() -> Command:
    """Describe ``fastece demo``."""
    return Command(
        "Report on a small neural network that reads handwritten digits (1797 rows, 10 classes, "
        "cross-validated).",
        run,
        (),
        (*ERRORS, FULL, HTML),
        n_kernels=N_KERNELS,
    )


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece demo``."""
    options.event = None
    extent = choose_extent(options)
    with as_file(files("fastece").joinpath("data", PREDICTIONS)) as path:
        rows = read_file(str(path), options)
    return make_page(report_of_rows(rows, TITLE, extent, options, progress), extent, options)
