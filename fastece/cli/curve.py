"""The command ``curve``: how often scores come true, as a table."""

from argparse import Namespace

from fastece.cli.arguments import (
    Parser,
    add_columns,
    add_file,
    add_forms,
    add_groups,
    add_level,
    add_picture,
    add_scale,
    add_seed,
    add_setting,
    add_soft_labels,
    number_or_text,
    scores,
)
from fastece.cli.inputs import describe_data, read_data, read_file, score_range, title_of
from fastece.cli.output import Page, save_picture
from fastece.cli.progress import Progress
from fastece.data.errors import InputError
from fastece.display.documents import Document, Section
from fastece.estimators.table import find_estimator
from fastece.reliability.curve import TABLE_QUANTILES, TABLE_SCORES, curves_of
from fastece.report.pictures import curve_panels

# Resamples of a density's band, as each takes longer than one of bins.
RESAMPLES = 500
DEFAULT_SCORES = f"{len(TABLE_QUANTILES)} quantiles, {', '.join(map(str, TABLE_SCORES))}"
DESCRIPTION = """Observed frequency at each score of a file, as a Bayesian curve or from
densities, with intervals. With --resamples 0 densities have none."""
EXAMPLES = """
  fastece curve predictions.csv --at 0.5,0.9,0.99
  fastece curve predictions.csv --estimator ece_kde --plot curve.png
"""


def make_parser() -> Parser:
    """Make the parser of ``fastece curve FILE``."""
    parser = Parser("curve", DESCRIPTION, "fastece curve FILE [options]", EXAMPLES)
    add_file(parser)
    add_columns(parser)
    add_soft_labels(parser)
    add_scale(parser)
    add_groups(parser)
    add = parser.measure.add_argument
    add_setting(parser)
    add("--estimator", choices=["ece_bayes", "ece_kde"], default="ece_bayes",
        metavar="NAME",        help="ece_bayes (a Bayesian curve), or ece_kde")  # fmt: skip
    add("--at", metavar="P,P,...", type=scores, help=f"scores ({DEFAULT_SCORES})")
    add("--bandwidth", metavar="H", type=number_or_text(float), help="of densities (silverman)")
    add("--kernel", metavar="NAME", help="of densities (gaussian)")
    add("--resamples", metavar="N", type=int, default=RESAMPLES, dest="n_resamples",
        help=f"resamples behind a density's band ({RESAMPLES})")  # fmt: skip
    add_level(parser)
    add_seed(parser)
    add_picture(parser)
    add_forms(parser)
    return parser


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
        step += f", {options.n_resamples} replicates"
        fields |= score_range(predictions)
    progress(step)
    call = read_data(predictions, options, {"": find_estimator(options.estimator, fields)})
    curves = curves_of(call, options.rng)

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
