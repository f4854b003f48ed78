"""The command ``curve``: how often scores come true, as a table."""

from argparse import Namespace

from fastece.cli.inputs import describe_data, read_data, read_file, score_range, title_of
from fastece.cli.output import Page, Progress, save_picture
from fastece.data.errors import InputError
from fastece.display.documents import Document, Section
from fastece.estimators.table import find_estimator
from fastece.reliability.curve import curves_of
from fastece.report.pictures import curve_panels


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece curve FILE``."""
    is_kde, title = options.estimator == "ece_kde", title_of(options.file)
    fields = {x: getattr(options, x) for x in ("bandwidth", "kernel")}
    fields = {name: value for name, value in fields.items() if value is not None}
    if fields and not is_kde:
        raise InputError(min(fields), "goes with --estimator ece_kde")
    progress(f"reading {title}")
    predictions = read_file(options.file, options)
    progress("curve and its band" + (f", {options.resamples} replicates" if is_kde else ""))
    fields |= score_range(predictions) if is_kde else {}
    call = read_data(predictions, options, {"": find_estimator(options.estimator, fields)})
    curves = curves_of(call, options.seed)
    first, facts = curves[0], describe_data(call, predictions)
    if first.n_resamples:
        facts["intervals"] = f"percentile bootstrap, {first.n_resamples} replicates"
    elif first.bandwidth is None:
        facts["intervals"] = "quantiles of the posterior"
    tables = [
        {"setting": curve.setting, "value": curve.value, "estimator": curve.estimator,
         "bandwidth": curve.bandwidth, "points": curve.points(options.at)}
        for curve in curves
    ]  # fmt: skip
    values = {
        "title": title, "n": call.n, "note": predictions.note, "setting": call.setting,
        "n_resamples": first.n_resamples, "confidence_level": call.level, "curves": tables,
    }  # fmt: skip
    sections = [curve.section(options.at) for curve in curves]
    description = Document(title, "", [Section(facts=facts), *sections])
    return Page(description, values, {"plot": lambda x: save_picture(x, curve_panels(curves))})
