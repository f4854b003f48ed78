"""Pictures of reports, comparisons and curves, and the section with the diagrams of a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastece.display.axes import draw_on_page
from fastece.display.documents import Picture, Section, Table
from fastece.display.pages import MAX_PANELS, Panel, page_pictures, worst_text
from fastece.display.pictures import draw_cumulative
from fastece.estimators.binned import Binned
from fastece.estimators.table import ESTIMATORS
from fastece.reliability.cumulative import cumulative_of
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of
from fastece.report.inputs import TEST, ReportInput
from fastece.resampling.calibration_test import calibration_results
from fastece.resampling.call import Call

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIAGRAM_TITLE = "Reliability diagram"
HOW_TO_READ = (
    "A calibrated model lies on the dashed diagonal: above it outcomes are more frequent than "
    "predicted, below it less.",
    "Vertical lines are intervals of the observed frequency; the points of a calibrated model stay "
    "in the boxes.",
    "Grey areas show how many rows there are; points and curves that rest on few may be noise.",
)
# The error whose bins are drawn where one equal-width bin holds most rows.
EQUAL_MASS = "ece_a"
# The bins of the first page for a single event.
DECILES = Binned(10, edges="quantile")
# Rows of a path of gaps and of a validation, which takes 10 us and 100 bytes of memory a row.
MAX_ROWS_OF_PATHS = 2 * 10**5
# Characters of the name of a file in a legend.
MAX_FILE_NAME = 20


@dataclass(frozen=True, kw_only=True)
class ReportPictures:
    """The diagrams of a report, and the numbers of its pictures.

    Attributes
    ----------
    diagrams : list of ReliabilityDiagram
        The diagram of each problem.
    deciles : ReliabilityDiagram or None
        The diagram of ten equal-mass bins, where there is a single event: most predictions of
        risks lie in a few bins of equal width.
    curve : ReliabilityCurve or None
        The Bayesian curve, where there is one problem.
    panels : list of Panel
        The axes of the picture; empty where only the first page was asked for.
    cumulative : tuple or None
        The path of the cumulative gap, its deviation and its range, where every row is there.
    """

    diagrams: list[ReliabilityDiagram]
    deciles: ReliabilityDiagram | None
    curve: ReliabilityCurve | None
    panels: list[Panel]
    cumulative: Any


# --- numbers --------------------------------------------------------------------------------


def prepare_pictures(inputs: ReportInput) -> ReportPictures:
    """Compute the numbers of the pictures of a report, or its diagrams alone."""
    if not inputs.is_full:
        return ReportPictures(
            diagrams=inputs.diagrams,
            deciles=measure_deciles(inputs),
            curve=None,
            panels=[],
            cumulative=None,
        )
    panels = diagram_panels(inputs.call, [None], inputs.seed if inputs.has_test else None)
    if inputs.table.setting.per_class:
        return ReportPictures(
            diagrams=inputs.diagrams, deciles=None, curve=None, panels=panels, cumulative=None
        )
    (curve,) = curves_of(replace(inputs.lead, n_resamples=0), None)
    has_path = inputs.has_rows and inputs.n_rows <= MAX_ROWS_OF_PATHS
    return ReportPictures(
        diagrams=inputs.diagrams,
        deciles=measure_deciles(inputs),
        curve=curve,
        panels=[*panels, Panel({None: curve.drawing()})],
        cumulative=cumulative_of(inputs.table) if has_path else None,
    )


def measure_deciles(inputs: ReportInput) -> ReliabilityDiagram | None:
    """Measure ten equal-mass bins of a single event; None for other settings."""
    if inputs.is_top_label or inputs.table.setting.per_class:
        return None
    return diagrams_of(DECILES, inputs.table)[0]


def curve_panels(curves: Sequence[ReliabilityCurve]) -> list[Panel]:
    """Draw each curve; a single one with crowded scores over log odds too."""
    panels = [Panel({None: curve.drawing()}) for curve in curves]
    if len(panels) == 1 and panels[0].first.is_crowded:
        panels.append(panels[0]._replace(is_logit=True))
    return panels


def compare_panels(call: Call, paths: Mapping[str, str]) -> list[Panel]:
    """Draw all models on the same axes, for each class, with their names.

    Names of one letter have that of the file beside them.
    """
    names = []
    for name, path in paths.items():
        file_name = shorten(Path(path).name)
        names.append(f"{name}: {file_name}" if len(name) == 1 else shorten(name))
    return diagram_panels(call, names)


def shorten(name: str) -> str:
    """Leave the beginning of a long name out."""
    return name if len(name) <= MAX_FILE_NAME else f"…{name[1 - MAX_FILE_NAME :]}"


def diagram_panels(call: Call, names: Sequence[str | None], seed: int | None = None) -> list[Panel]:
    """Draw all models on the same axes, for each class; with a seed, their bands.

    A single problem with crowded scores has equal-mass bins over log odds too.
    """
    panels = bin_panels(call, TEST, names, seed)
    if len(panels) == 1 and any(x.is_crowded for x in panels[0].drawings.values()):
        for panel in bin_panels(call, EQUAL_MASS, names, seed):
            panels.append(panel._replace(is_logit=True))
    return panels


def bin_panels(
    call: Call, name: str, models: Sequence[str | None], seed: int | None
) -> list[Panel]:
    """Draw the bins of one error, for all models on the same axes, for each class."""
    estimator = call.estimators.get(name, ESTIMATORS[name])
    diagrams_by_model = [diagrams_of(estimator, table) for table in call.tables]
    diagrams_by_class = list(zip(*diagrams_by_model, strict=True))
    bands: Sequence[Any] = [True] * len(diagrams_by_class)
    if seed is not None:
        band = calibration_results(call.with_estimator(estimator), seed).band
        bands = band if isinstance(band, list) else [band]
    panels = []
    for diagrams, band in zip(diagrams_by_class, bands, strict=True):
        drawings = [diagram.drawing(band) for diagram in diagrams]
        panels.append(Panel(dict(zip(models, drawings, strict=True))))
    return panels


# --- section --------------------------------------------------------------------------------


def diagram_section(pictures: ReportPictures, title: str) -> Section:
    """Show the diagrams as a table of bins, and as pictures."""
    reading = list(HOW_TO_READ)
    if len(pictures.diagrams) > MAX_PANELS:
        reading.insert(0, f"The pictures show {worst_text(pictures.panels)}.")
    return Section(
        DIAGRAM_TITLE,
        table=table_of_bins(pictures.diagrams),
        pictures=list_pictures(pictures, title),
        reading=reading,
    )


def table_of_bins(diagrams: Sequence[ReliabilityDiagram]) -> Table:
    """Make the table of the bins of all classes."""
    tables = [diagram.table() for diagram in diagrams]
    if len(tables) == 1:
        return tables[0]
    rows = [
        [diagram.setting, *row]
        for diagram, table in zip(diagrams, tables, strict=True)
        for row in table.rows
    ]
    return Table(["class", *tables[0].head], rows)


def list_pictures(pictures: ReportPictures, title: str) -> list[Picture]:
    """List the pictures of a report: diagrams, the curve, and the cumulative gap."""
    drawn = page_pictures(pictures.panels, f"{title}: reliability diagram")
    if pictures.cumulative is None:
        return drawn

    def draw_path(ax: "Axes") -> None:
        path, deviation, value = pictures.cumulative
        draw_cumulative(ax, path, deviation, value)

    return [*drawn, Picture(f"{title}: cumulative gap", partial(draw_on_page, draw_path))]
