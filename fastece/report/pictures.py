"""What the pictures of a report, of a comparison and of curves show."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastece.data.source import ROWS
from fastece.estimators.table import ESTIMATORS
from fastece.plot.pages import Panel
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of
from fastece.report.measures import LEAD, TEST
from fastece.resampling.arguments import Call
from fastece.resampling.calibration_test import calibration_results

# Bins that pictures have where those of equal width hold most rows in one.
EVEN = "ece_a"
# Characters of the name of a file in a legend.
LONGEST = 20


def report_panels(call: Call, seed: int) -> list[Panel]:
    """Draw the diagram with the band of the test, and the curve; or the diagram of each class.

    Where scores are heaped there is a diagram over log odds too. Without resamples, and where rows
    are not kept, there is no band.
    """
    (source,) = call.sources
    diagrams = diagrams_of(bins_of(call, TEST), source)
    spread = diagrams_of(bins_of(call, EVEN), source) if is_spread(diagrams) else []
    bands: dict[str, Any] = {TEST: True, EVEN: True}
    has_band = call.n_resamples and ROWS in source.has
    if has_band:
        chosen = {name: bins_of(call, name) for name in ([TEST, EVEN] if spread else [TEST])}
        tests = calibration_results(replace(call, estimators=chosen), seed)
        bands |= {name: test.band for name, test in tests.items()}
    if source.setting.per_class:
        each = bands[TEST] if has_band else [True] * len(diagrams)
        return [Panel({None: x.drawing(band)}) for x, band in zip(diagrams, each, strict=True)]
    panels = [Panel({None: diagrams[0].drawing(bands[TEST])})]
    panels += [Panel({None: x.drawing(bands[EVEN])}, is_logit=True) for x in spread]
    (curve,) = curves_of(replace(call.only(call.estimators[LEAD]), n_resamples=0), None)
    return [*panels, Panel({None: curve.drawing()})]


def is_spread(diagrams: Sequence[ReliabilityDiagram]) -> bool:
    """Whether there is one diagram, whose scores need axes of log odds to be told apart."""
    return len(diagrams) == 1 and diagrams[0].drawing().is_heaped


def curve_panels(curves: Sequence[ReliabilityCurve]) -> list[Panel]:
    """Draw the curve, and over log odds too where scores are heaped; or that of each class."""
    panels = [Panel({None: curve.drawing()}) for curve in curves]
    if len(panels) == 1 and panels[0].first.is_heaped:
        panels.append(panels[0]._replace(is_logit=True))
    return panels


def compare_panels(call: Call, paths: Sequence[str]) -> list[Panel]:
    """Draw both models on the same axes, for each class; over log odds too if scores are heaped."""
    names = [f"{letter}: {short(path)}" for letter, path in zip("ab", paths, strict=True)]
    return diagram_panels(call, names)


def diagram_panels(call: Call, names: Sequence[str | None]) -> list[Panel]:
    """Draw all models of a call on the same axes, for each class.

    Of a single problem with heaped scores, equal-mass bins over log odds are drawn too.
    """

    def panels_of(name: str, is_logit: bool) -> list[Panel]:
        of_models = [diagrams_of(bins_of(call, name), model) for model in call.models]
        return [
            Panel({key: x.drawing() for key, x in zip(names, one, strict=True)}, is_logit)
            for one in zip(*of_models, strict=True)
        ]

    panels = panels_of(TEST, is_logit=False)
    if len(panels) == 1 and any(x.is_heaped for x in panels[0].drawings.values()):
        panels += panels_of(EVEN, is_logit=True)
    return panels


def bins_of(call: Call, name: str) -> Any:
    """Find the bins of a call by name, or those of the table."""
    return call.estimators.get(name, ESTIMATORS[name])


def short(path: str) -> str:
    """Shorten the name of a file at its beginning, which tells less than its end."""
    name = Path(path).name
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"
