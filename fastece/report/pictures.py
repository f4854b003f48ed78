"""Pictures of a report, of a comparison and of curves."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastece.data.source import ROWS
from fastece.estimators.table import ESTIMATORS
from fastece.plot.pages import Panel
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.reliability.diagram import diagrams_of
from fastece.report.measures import LEAD, TEST
from fastece.resampling.arguments import Call
from fastece.resampling.calibration_test import calibration_results

# Bins of pictures where one of the equal-width bins holds most rows.
EVEN = "ece_a"
# Characters of the name of a file in a legend.
LONGEST = 20


def report_panels(call: Call, seed: int) -> list[Panel]:
    """Draw the diagram with its band, and the curve; or the diagram of each class.

    Where scores are heaped there is a diagram over log odds too. Without resamples, and where rows
    are not kept, there is no band.
    """
    (source,) = call.sources
    has_band = call.n_resamples > 0 and ROWS in source.has
    panels = diagram_panels(call, [None], seed if has_band else None)
    if not source.setting.per_class:
        lead = replace(call.only(call.estimators[LEAD]), n_resamples=0)
        panels.append(Panel({None: curves_of(lead, None)[0].drawing()}))
    return panels


def curve_panels(curves: Sequence[ReliabilityCurve]) -> list[Panel]:
    """Draw each curve; a single one with heaped scores over log odds too."""
    panels = [Panel({None: curve.drawing()}) for curve in curves]
    if len(panels) == 1 and panels[0].first.is_heaped:
        panels.append(panels[0]._replace(is_logit=True))
    return panels


def compare_panels(call: Call, paths: Sequence[str]) -> list[Panel]:
    """Draw both models on the same axes, for each class."""
    names = [f"{letter}: {short(path)}" for letter, path in zip("ab", paths, strict=True)]
    return diagram_panels(call, names)


def diagram_panels(call: Call, names: Sequence[str | None], seed: int | None = None) -> list[Panel]:
    """Draw all models on the same axes, for each class; with a seed, their bands.

    Of a single problem with heaped scores, equal-mass bins over log odds are drawn too.
    """
    panels = bin_panels(call, TEST, names, seed)
    if len(panels) == 1 and any(x.is_heaped for x in panels[0].drawings.values()):
        panels += [panel._replace(is_logit=True) for panel in bin_panels(call, EVEN, names, seed)]
    return panels


def bin_panels(call: Call, bins: str, names: Sequence[str | None], seed: int | None) -> list[Panel]:
    """Draw the bins of all models of a call on the same axes, for each class."""
    estimator = call.estimators.get(bins, ESTIMATORS[bins])
    each = [*zip(*(diagrams_of(estimator, source) for source in call.sources), strict=True)]
    bands: Any = [True] * len(each)
    if seed is not None:
        found = calibration_results(call.only(estimator), seed).band
        bands = found if isinstance(found, list) else [found]
    return [
        Panel({name: x.drawing(band) for name, x in zip(names, models, strict=True)})
        for models, band in zip(each, bands, strict=True)
    ]


def short(path: str) -> str:
    """Shorten the name of a file at its beginning."""
    name = Path(path).name
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"
