"""The command ``curve``: how often scores come true, as a table."""

from argparse import Namespace

from fastece.cli.inputs import describe_data, read_data, read_file, score_range, title_of
from fastece.cli.options import (
    CONFIDENCE_LEVEL,
    FILE,
    FROM_LOGITS,
    GROUPS,
    MEASURE,
    PLOT,
    ROWS,
    SEED,
    SETTING,
    Command,
    choice,
    number_or_text,
    scores,
    value,
)
from fastece.cli.output import Page, save_picture
from fastece.cli.progress import Progress
from fastece.data.errors import InputError
from fastece.display.documents import Document, Section
from fastece.estimators.table import find_estimator
from fastece.reliability.curve import TABLE_QUANTILES, TABLE_SCORES, curves_of
from fastece.report.pictures import curve_panels

# Resamples of a density's band, as each takes longer than one of bins.
RESAMPLES = 500
DEFAULT_SCORES = (
    f"{len(TABLE_QUANTILES)} quantiles of the scores, and {', '.join(map(str, TABLE_SCORES))}"
)


def describe() -> Command:
    """Describe ``fastece curve FILE``."""
    return Command(
        "Observed frequency at each score of a file, as a Bayesian curve or from densities, with "
        "intervals. With --resamples 0 densities have none.",
        run,
        (FILE,),
        (
            *ROWS, GROUPS, SETTING, FROM_LOGITS,
            choice("--estimator", MEASURE, "a Bayesian curve (default), which needs no resamples, "
                   "or densities", ["ece_bayes", "ece_kde"], "ece_bayes"),
            value("--at", MEASURE, f"scores of the table, in [0, 1] (default: {DEFAULT_SCORES})",
                  metavar="SCORE[,SCORE...]", read=scores),
            value("--bandwidth", MEASURE, 'bandwidth of the kernel, or "silverman" (default)',
                  metavar="H", read=number_or_text(float)),
            value("--kernel", MEASURE, "kernel of densities (default gaussian)"),
            value("--resamples", MEASURE, f"resamples behind the band of densities ({RESAMPLES})",
                  metavar="N", read=int, default=RESAMPLES),
            CONFIDENCE_LEVEL, SEED, PLOT,
        ),
    )  # fmt: skip


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece curve FILE``."""
    title = title_of(options.file)
    is_kde = options.estimator == "ece_kde"
    options_of_kde = {"bandwidth": options.bandwidth, "kernel": options.kernel}
    fields = {name: value for name, value in options_of_kde.items() if value is not None}
    if fields and not is_kde:
        raise InputError(min(fields), "goes with --estimator ece_kde")
    progress(f"reading {title}")
    predictions = read_file(options.file, options)
    step = "curve and its band"
    if is_kde:
        step += f", {options.resamples} replicates"
        fields |= score_range(predictions)
    progress(step)
    call = read_data(predictions, options, {"": find_estimator(options.estimator, fields)})
    curves = curves_of(call, options.seed)

    first = curves[0]
    description = describe_data(call, predictions)
    if first.n_resamples:
        description["intervals"] = f"percentile bootstrap, {first.n_resamples} replicates"
    elif not is_kde:
        description["intervals"] = "quantiles of the posterior"
    sections = [Section(facts=description), *(curve.section(options.at) for curve in curves)]
    values = {
        "title": title,
        "n": call.n,
        "note": predictions.note,
        "setting": call.setting,
        "n_resamples": first.n_resamples,
        "confidence_level": call.level,
        "curves": [
            {
                "setting": curve.setting,
                "value": curve.value,
                "estimator": curve.estimator,
                "bandwidth": curve.bandwidth,
                "points": curve.points(options.at),
            }
            for curve in curves
        ],
    }
    writers = {"plot": lambda path: save_picture(path, curve_panels(curves))}
    return Page(Document(title, "", sections), values, writers)
