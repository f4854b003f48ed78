"""What the pictures of a report, of a comparison and of curves show."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastece.estimators.table import ESTIMATORS
from fastece.plot.marks import is_heaped
from fastece.plot.results import Panel
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.reliability.diagram import diagrams_of
from fastece.report.measures import LEAD, TEST
from fastece.resampling.arguments import Call
from fastece.resampling.calibration_test import calibration_results

# Bins that pictures have where those of equal width hold most rows in one.
EVEN = "ece_a"
# Characters of the name of a file in a legend.
LONGEST = 20


def report_panels(call: Call, seed: int) -> list[Panel]:
    """The diagram with the band of the test, its neighbour over log odds where scores are heaped,
    and the curve; or the diagram of each class. Without resamples there is no band."""
    panels = diagram_panels(call, [None])
    if call.n_resamples:
        names = [EVEN if panel.is_logit else TEST for panel in panels]
        chosen = {name: bins_of(call, name) for name in names}
        tests = calibration_results(replace(call, estimators=chosen), seed)
        per_class = call.models[0].setting.per_class
        bands = tests[TEST].band if per_class else [tests[name].band for name in names]
        panels = [panel._replace(band=band) for panel, band in zip(panels, bands, strict=True)]
    if not call.models[0].setting.per_class:
        (curve,) = curves_of(call.only(call.estimators[LEAD]), None)
        panels.append(Panel({None: curve}))
    return panels


def curve_panels(curves: Sequence[ReliabilityCurve]) -> list[Panel]:
    """The curve, with one over log odds where scores are heaped; or that of each class."""
    panels = [Panel({None: curve}) for curve in curves]
    if len(curves) == 1 and is_heaped(curves[0]):
        panels.append(panels[0]._replace(is_logit=True))
    return panels


def compare_panels(call: Call, paths: Sequence[str]) -> list[Panel]:
    """The diagrams of both models on the same axes, of each class if there are classes; and those
    over log odds where scores are heaped."""
    names = [f"{letter}: {short(path)}" for letter, path in zip("ab", paths, strict=True)]
    return diagram_panels(call, names)


def diagram_panels(call: Call, names: Sequence[str | None]) -> list[Panel]:
    """Diagrams of all models of a call on the same axes, for each class; of a single problem with
    heaped scores also those of bins of equal weight over log odds."""

    def panels_of(name: str, is_logit: bool) -> list[Panel]:
        of_models = [diagrams_of(bins_of(call, name), model) for model in call.models]
        by_problem = zip(*of_models, strict=True)
        return [Panel(dict(zip(names, x, strict=True)), is_logit=is_logit) for x in by_problem]

    panels = panels_of(TEST, is_logit=False)
    if len(panels) == 1 and any(map(is_heaped, panels[0].results.values())):
        panels += panels_of(EVEN, is_logit=True)
    return panels


def bins_of(call: Call, name: str) -> Any:
    """The bins of the call by that name, or those of the table."""
    return call.estimators.get(name, ESTIMATORS[name])


def short(path: str) -> str:
    """The name of a file; the end of it says more than its beginning."""
    name = Path(path).name
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"
