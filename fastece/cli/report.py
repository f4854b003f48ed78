"""How well a classifier is calibrated, on one page."""

from argparse import Namespace

from fastece.cli.inputs import (
    columns_of,
    data_of,
    estimators_of,
    read_data,
    read_file,
    title_of,
    with_groups_of,
)
from fastece.cli.page import Page
from fastece.cli.stream import is_stream, run_stream
from fastece.cli.targets import check_page, check_picture
from fastece.cli.terminal import progress
from fastece.files import Predictions, expand_paths
from fastece.plot.pages import save_picture
from fastece.report.measures import TEST
from fastece.report.report import make_report
from fastece.report.words import decimals, ends, floor_of, number, p_text
from fastece.resampling.arguments import Call
from fastece.resampling.bootstrap import bootstrap_results
from fastece.resampling.calibration_test import calibration_results

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
                pairs=predictions.pairs, n_classes=predictions.classes, note=predictions.note,
                say=say, rng=options.seed, n_resamples=options.resamples,
                confidence_level=options.confidence_level, n_jobs=-1,
            )  # fmt: skip
        page = Page(str(report), report.to_dict())
        if groups is not None:
            say(f"{TEST}, {options.resamples} resamples of groups")
            page = with_groups(page, group_call(predictions, options), options)
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


def group_call(predictions: Predictions, options: Namespace) -> Call:
    """The call of one error, of which groups of rows are drawn."""
    estimators = {TEST: estimators_of(predictions, options)[TEST]}
    call = read_data(predictions, options, estimators, least=1)
    return with_groups_of(call, predictions)


def with_groups(page: Page, call: Call, options: Namespace) -> Page:
    """The page with what is known of an error where groups of rows, not rows, are independent."""
    result = bootstrap_results(call, rng=options.seed)[TEST]
    test = calibration_results(call, options.seed)[TEST]
    low, high = result.confidence_interval
    values = {
        "column": options.groups, "n_groups": call.n_groups, "name": TEST,
        "value": result.value, "low": low, "high": high, "p_value": test.p_value,
    }  # fmt: skip
    places, interval = decimals(result.confidence_interval), ends(result.confidence_interval)
    lines = [
        f"{call.n_groups} groups of rows, by {options.groups}",
        f"  {TEST} {number(result.value, places)}, {100 * call.level:g} % interval by "
        f"bootstrap of whole groups {interval}",
        f"  p-value of calibration {p_text(test.p_value, floor_of(call.n_resamples))}, by the gaps "
        "of whole groups",
        "  all other intervals and p-values of this page take rows as independent",
    ]
    return Page("\n".join([page.text, "", *lines]), {**page.values, "groups": values})
