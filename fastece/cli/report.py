"""How well a classifier is calibrated, on one page."""

from argparse import Namespace

from fastece.cli.inputs import (
    columns_of,
    data_of,
    estimators_of,
    read_file,
    title_of,
)
from fastece.cli.page import Page
from fastece.cli.stream import is_stream, run_stream
from fastece.cli.targets import check_page, check_picture
from fastece.cli.terminal import progress
from fastece.files import expand_paths
from fastece.plot.pages import save_picture
from fastece.report.report import make_report

DEMO = "handwritten digits, a small neural network"


def run_report(options: Namespace) -> Page:
    """``fastece report FILE [FILE ...]``, and ``fastece demo``, which has no file."""
    paths = expand_paths(getattr(options, "files", []))
    if paths and is_stream(paths, options):
        return run_stream(paths, options)
    check_whole(options)
    picture = options.plot and check_picture(options.plot)
    html = options.html and check_page(options.html)
    file, by = next(iter(paths), None), getattr(options, "by", None)
    groups = getattr(options, "groups", None)
    title = DEMO if file is None else title_of(file)
    with progress() as say:
        say(f"reading {title}")
        predictions = read_file(file, options, columns_of(options, "by", "groups"))
        with predictions.located():
            report = make_report(
                data_of(predictions, options),
                estimators_of(predictions, options),
                title=title, by=None if by is None else predictions.others["by"],
                groups=None if groups is None else predictions.others["groups"],
                names=(by or "", groups or ""),
                pairs=predictions.pairs, n_classes=predictions.classes, note=predictions.note,
                progress=say, rng=options.seed, n_resamples=options.resamples,
                confidence_level=options.confidence_level, n_jobs=-1,
            )  # fmt: skip
        page = Page(str(report), report.to_dict())
        if html:
            say("the page")
            report.to_html(html)
            page = page.with_file("html", options.html)
        if picture:
            say("the picture")
            save_picture(picture, report._panels)
            page = page.with_file("plot", options.plot)
    return page


def check_whole(options: Namespace) -> None:
    """No option is given that is one of streams."""
    if getattr(options, "on_error", "stop") != "stop":
        raise ValueError("--on-error: skip goes with --stream, or with several files")
