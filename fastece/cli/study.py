"""The command ``study``: which estimator is best, on simulated models or on your own files."""

import os
import sys
from argparse import Namespace
from typing import Any

from fastece import study
from fastece.cli.cluster import connect_to_cluster
from fastece.cli.options import (
    INPUT,
    MEASURE,
    MISSING,
    OUTPUT,
    PERCENT,
    SEED,
    Y_PROB,
    Y_TRUE,
    Command,
    Option,
    repeated,
    value,
)
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.data.errors import InputError

# Options that belong to simulated models, and those that belong to files.
OF_SIMULATED_MODELS = ("preset", "holdout", "largest")
OF_FILES = ("sizes", "y_true", "y_prob", "percent", "missing")
# Values of these that mean that an option is not given.
DEFAULTS = {"percent": False, "missing": MISSING.keywords["default"]}
# Options that are part of the name of the folder, in its order.
OF_DESIGN = ("convention", *OF_SIMULATED_MODELS, *OF_FILES, "draws")
# Characters that the text of a tuple has beside its numbers, and names of folders do not have.
FOLDER_CHARACTERS = str.maketrans(",", "-", "() ")


def describe() -> Command:
    """Describe ``fastece study``."""
    predictions = {
        "nargs": "+", "default": [], "metavar": "FILE",
        "help": "compare on these files, in place of simulated models",
    }  # fmt: skip
    return Command(
        "Compare estimators on distributions of scores whose calibration error is known: of "
        "simulated models (Posocco and Bonnefoy, 2021), or of large files of predictions. An "
        "interrupted study goes on where it was.",
        run,
        (),
        (
            Option("--predictions", INPUT, predictions), Y_TRUE, Y_PROB, PERCENT, MISSING,
            value("--preset", MEASURE, "quick (default: less than a minute) or paper (69 million "
                  "values)"),
            value("--sizes", MEASURE, "evaluation sets (default: 50 to a tenth of the rows)",
                  metavar="N[,N...]", read=sizes),
            value("--convention", MEASURE, "corrected (default), or published: with that code's "
                  "slips", metavar="NAME"),
            repeated("--estimator", MEASURE, "an additional estimator, as MODULE:NAME, with the "
                     "methods prepare and evaluate; repeatable", metavar="NAME", default=[],
                     dest="estimators"),
            value("--holdout", MEASURE, "rows to draw from (200000)", metavar="N", read=int),
            value("--largest", MEASURE, "largest evaluation set (500)", metavar="N", read=int),
            value("--draws", MEASURE, "evaluation sets of each size (200)", metavar="N", read=int),
            SEED,
            value("--out", OUTPUT, "folder of the results", metavar="PATH"),
            value("--jobs", OUTPUT, "processes (default -1: one per core)", metavar="N", read=int),
            value("--scheduler", OUTPUT, "a Dask cluster in place of processes: the address of its "
                  "scheduler, as tcp://HOST:8786", metavar="ADDRESS"),
        ),
    )  # fmt: skip


def sizes(text: str) -> tuple[int, ...]:
    """Read numbers and commas."""
    return tuple(map(int, text.split(",")))


def run(options: Namespace, progress: Progress) -> Page:  # noqa: ARG001
    """Run ``fastece study``, which shows its progress itself."""
    if options.estimators and os.getcwd() not in sys.path:
        # Their modules may be in the working folder.
        sys.path.append(os.getcwd())
    fields = {name: getattr(options, name) for name in OF_DESIGN}
    # Options that are not given are no part of the name of the folder.
    fields = {name: x for name, x in fields.items() if x != DEFAULTS.get(name)}
    if options.seed:
        # 0 is the usual one, and no part of the name of the folder.
        fields["seed"] = options.seed
    check_kind(fields, bool(options.predictions))
    title = "predictions" if options.predictions else fields.pop("preset", "quick")
    folder = options.out or name_folder(title, fields, options.estimators)
    fields["estimators"] = tuple(options.estimators)
    if options.predictions:
        design: Any = study.Predictions(tuple(options.predictions), **fields)
    else:
        design = study.preset(title, **fields)
    result = run_by_workers(design, folder, options)
    return Page(result.document(), result.to_dict())


def run_by_workers(design: Any, folder: str, options: Namespace) -> study.StudyResult:
    """Run a study in processes of this machine, or on a cluster."""
    if options.scheduler is None:
        n_jobs = -1 if options.jobs is None else options.jobs
        return study.run_study(design, folder, n_jobs=n_jobs)
    if options.jobs is not None:
        raise InputError("jobs", "goes without --scheduler, whose cluster has workers of its own")
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
