"""The command ``study``: which estimator is best, on simulated models or on your own files."""

import os
import sys
from argparse import Namespace
from typing import Any

from fastece import study
from fastece.cli.arguments import (
    Parser,
    add_forms,
    add_labels,
    add_missing,
    add_percent,
    add_probabilities,
    add_seed,
)
from fastece.cli.cluster import connect_to_cluster
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.data.errors import InputError

DESCRIPTION = """Compare estimators on distributions of scores whose calibration error is known:
of simulated models (Posocco and Bonnefoy, 2021), or of large files of
predictions. An interrupted study goes on where it was."""
EXAMPLES = """
  fastece study --preset quick
  fastece study --predictions network.npz --sizes 100,1000
"""
# Options that belong to simulated models, and those that belong to files.
OF_SIMULATED_MODELS = ("preset", "holdout", "largest")
OF_FILES = ("sizes", "y_true", "y_prob", "percent", "missing")
# Values of these that mean that an option is not given.
DEFAULTS = {"percent": None, "missing": "stop"}
# Options that are part of the name of the folder, in its order.
OF_DESIGN = ("convention", *OF_SIMULATED_MODELS, *OF_FILES, "draws")
# Characters that the text of a tuple has beside its numbers, and names of folders do not have.
FOLDER_CHARACTERS = str.maketrans(",", "-", "() ")


def make_parser() -> Parser:
    """Make the parser of ``fastece study``."""
    parser = Parser("study", DESCRIPTION, "fastece study [options]", EXAMPLES)
    add = parser.input.add_argument
    add("--predictions", metavar="FILE", nargs="+", default=[],
        help="on these files, not on simulated models")  # fmt: skip
    add_labels(parser)
    add_probabilities(parser)
    add_percent(parser)
    add_missing(parser, "stop")
    add = parser.measure.add_argument
    add("--preset", metavar="NAME", help="quick (a minute), or paper (69 million values)")
    add("--sizes", metavar="N,N,...", type=sizes, help="of files (50 to a tenth of the rows)")
    add("--convention", metavar="NAME", help="corrected, or published: with its slips")
    add("--estimator", metavar="NAME", action="append", default=[],
        help="one more estimator, as MODULE:NAME; repeatable")  # fmt: skip
    add("--holdout", metavar="N", type=int, help="rows to draw from (200000)")
    add("--largest", metavar="N", type=int, help="largest evaluation set (500)")
    add("--draws", metavar="N", type=int, help="evaluation sets of each size (200)")
    add_seed(parser)
    add = parser.output.add_argument
    add("--out", metavar="FOLDER", dest="folder", help="folder of the results")
    add("--jobs", metavar="N", type=int, dest="n_jobs", help="processes (-1: one per core)")
    add("--scheduler", metavar="ADDRESS", help="a Dask cluster: tcp://HOST:8786")
    add_forms(parser)
    return parser


def sizes(text: str) -> tuple[int, ...]:
    """Read numbers and commas."""
    return tuple(map(int, text.split(",")))


def run(options: Namespace, progress: Progress) -> Page:  # noqa: ARG001
    """Run ``fastece study``, which shows its progress itself."""
    if options.estimator and os.getcwd() not in sys.path:
        # Their modules may be in the working folder.
        sys.path.append(os.getcwd())
    fields = {name: getattr(options, name) for name in OF_DESIGN}
    # Options that are not given are no part of the name of the folder.
    fields = {name: x for name, x in fields.items() if x != DEFAULTS.get(name)}
    if options.rng:
        # 0 is the usual one, and no part of the name of the folder.
        fields["seed"] = options.rng
    check_kind(fields, bool(options.predictions))
    title = "predictions" if options.predictions else fields.pop("preset", "quick")
    folder = options.folder or name_folder(title, fields, options.estimator)
    fields["estimators"] = tuple(options.estimator)
    if options.predictions:
        design: Any = study.Predictions(tuple(options.predictions), **fields)
    else:
        design = study.preset(title, **fields)
    result = run_by_workers(design, folder, options)
    return Page(result.document(), result.to_dict())


def run_by_workers(design: Any, folder: str, options: Namespace) -> study.StudyResult:
    """Run a study in processes of this machine, or on a cluster."""
    if options.scheduler is None:
        n_jobs = -1 if options.n_jobs is None else options.n_jobs
        return study.run_study(design, folder, n_jobs=n_jobs)
    if options.n_jobs is not None:
        raise InputError("n_jobs", "goes without --scheduler, whose cluster has workers of its own")
    with connect_to_cluster(options.scheduler) as client:
        return study.run_study(design, folder, executor=client)


def check_kind(fields: dict[str, Any], has_files: bool) -> None:
    """Refuse options of simulated models with files, and the other way round."""
    for name in OF_SIMULATED_MODELS if has_files else OF_FILES:
        if name in fields:
            verb = "does not go with" if has_files else "goes with"
            raise InputError(name, f"{verb} --predictions")


def name_folder(title: str, fields: dict[str, Any], estimators: list[str]) -> str:
    """Name the folder of a study by its design."""
    parts = [f"{name}-{x}".translate(FOLDER_CHARACTERS) for name, x in fields.items()]
    parts += [path.rpartition(":")[2] for path in estimators]
    return "-".join(["fastece-study", title, *parts])
