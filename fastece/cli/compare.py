"""Two models on the same rows, on one page."""

from argparse import Namespace
from dataclasses import replace
from typing import Any

from fastece.answer.compare import comparison_results
from fastece.cli.inputs import LEAD, estimators_of, read_data, read_file
from fastece.cli.page import Page, ends_of, facts, level_of, question, table
from fastece.cli.pictures import PLAIN, compare_panels
from fastece.cli.terminal import progress
from fastece.inputs.files import Predictions
from fastece.plot.files import check_picture, save_picture
from fastece.resampling.results import HONEST, ComparisonResult


def run_compare(options: Namespace) -> Page:
    """``fastece compare A B``. Each model is read by itself: whether the predicted class is right
    is another question for each. Draws are shared."""
    picture = options.plot and check_picture(options.plot)
    with progress() as say:
        say(f"reading {options.a} and {options.b}")
        models = [read_file(path, options) for path in (options.a, options.b)]
        check_same_rows(models[0], models[1], options)
        say(f"intervals of both, {options.resamples} replicates of a calibrated model")
        found = estimators_of(models[0], options.n_bins)
        estimators = {LEAD: found.pop(LEAD), **found}
        a, b = (
            read_data(model, options, estimators, f"{path}: y_prob", least=1)
            for path, model in zip((options.a, options.b), models, strict=True)
        )
        call = replace(a, models=[*a.models, *b.models])
        results = comparison_results(call, method=HONEST, rng=options.seed)
    values = {
        "a": options.a,
        "b": options.b,
        "n": call.n,
        "setting": call.setting,
        "n_resamples": call.n_resamples,
        "confidence_level": call.level,
        "differences": [values_of(name, result) for name, result in results.items()],
    }
    page = Page(text_of(values, models[0].pairs), values)
    if not picture:
        return page
    save_picture(picture, compare_panels(call, [options.a, options.b]), note_of(values))
    return page.with_picture(options.plot)


def note_of(values: dict[str, Any]) -> str:
    """What is above the picture: the difference of the errors that it shows."""
    line = next(line for line in values["differences"] if line["name"] == PLAIN)
    return (
        f"a - b: {line['difference']:+.4f}, {100 * values['confidence_level']:g} % interval "
        f"{ends_of(line, '+.4f')}; above 0: b is better calibrated"
    )


def check_same_rows(a: Predictions, b: Predictions, options: Namespace) -> None:
    """Both have the same labels, row by row."""
    if a.pairs != b.pairs:
        raise ValueError(
            f"{options.b}: must have the kind of columns that {options.a} has: only one of them "
            "has labels and confidences of the predicted class"
        )
    one, other = a.label.ravel().tolist(), b.label.ravel().tolist()
    if len(one) != len(other):
        raise ValueError(
            f"{options.b}: must have the rows of {options.a}, which has {len(one)}; "
            f"got {len(other)}"
        )
    for row, (label, got) in enumerate(zip(one, other, strict=True), 1):
        if label != got:
            raise ValueError(
                f"{options.b}: must have the labels of {options.a}, which has {label!r} in row "
                f"{row}; got {got!r}"
            )


def values_of(name: str, result: ComparisonResult) -> dict[str, Any]:
    """One line of the table: above 0 the second model is better calibrated."""
    low, high = result.confidence_interval
    return {
        "name": name, "a": result.a, "b": result.b, "difference": result.difference,
        "low": low, "high": high, "p_value": result.p_value, "method": result.method,
        "estimator": result.estimator,
    }  # fmt: skip


def text_of(values: dict[str, Any], pairs: bool) -> str:
    """The page as text."""
    title = f"a: {values['a']}\nb: {values['b']}"
    rows = [
        [
            line["name"], f"{line['a']:.5f}", f"{line['b']:.5f}", f"{line['difference']:+.5f}",
            ends_of(line, "+.5f"), f"{line['p_value']:.4f}", line["estimator"],
        ]
        for line in values["differences"]
    ]  # fmt: skip
    lines = [
        *facts(title, rows=values["n"], setting=question(values["setting"], pairs)),
        "",
        *table(["error", "a", "b", "a - b", *level_of(values), "p-value", "estimator"], rows),
        "",
        "  a - b above 0: b is better calibrated",
        "  p-value: below 0.05 exactly where the 95 % interval leaves out 0, and so at any level",
        f"  intervals: joined from those of both models, {LEAD} by its posterior, others by test "
        "inversion;",
        "  noise lifts values, so a - b itself may lie outside",
    ]
    return "\n".join(lines)
