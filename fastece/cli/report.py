"""How well a classifier is calibrated, on one page."""

from argparse import Namespace
from pathlib import Path

from fastece.cli.inputs import data_of, estimators_of, read_file, title_of, words_of
from fastece.cli.page import Page
from fastece.cli.stream import is_stream, run_stream
from fastece.cli.terminal import progress
from fastece.inputs.files import expand_paths
from fastece.plot.files import check_picture, check_writable, save_picture
from fastece.report.report import make_report
from fastece.report.writers import check_packages

DEMO = "handwritten digits, a small neural network"


def run_report(options: Namespace) -> Page:
    """``fastece report FILE [FILE ...]``, and ``fastece demo``, which has no file."""
    paths = expand_paths(getattr(options, "files", []))
    if paths and is_stream(paths, options):
        return run_stream(paths, options)
    check_whole(options)
    picture = options.plot and check_picture(options.plot)
    html = options.html and check_html(options.html)
    file, by = next(iter(paths), None), getattr(options, "by", None)
    title = DEMO if file is None else title_of(file)
    with progress() as say:
        say(f"reading {title}")
        predictions = read_file(file, options, () if by is None else (by,))
        with words_of(predictions):
            report = make_report(
                data_of(predictions, options),
                estimators_of(predictions, options),
                title=title, by=None if by is None else predictions.others[by],
                pairs=predictions.pairs, n_classes=predictions.classes, note=predictions.note,
                say=say, rng=options.seed, n_resamples=options.resamples,
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


def check_html(path: str) -> Path:
    """A file that a page can be written to, or an error before anything is computed."""
    if not path.lower().endswith((".html", ".htm")):
        raise ValueError(f"--html: {path} must end in .html")
    check_packages()
    return check_writable("--html", path)
