"""Pictures of reports, comparisons and curves, and the section with the diagrams of a report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from fastece.report.result import DIAGRAM_TITLE, Report
from fastece.resampling.calibration_test import calibration_results
from fastece.resampling.call import Call

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


# --- numbers --------------------------------------------------------------------------------


def measure_diagrams(inputs: ReportInput) -> dict[str, Any]:
    """Measure the diagrams, the Bayesian curve, and the numbers of other pictures.

    A first page needs the diagrams alone.
    """
    is_one_problem = not inputs.table.setting.per_class
    panels: list[Panel] = []
    curve = gaps = None
    if inputs.is_full:
        panels = diagram_panels(inputs.call, [None], inputs.seed if inputs.has_test else None)
    if inputs.is_full and is_one_problem:
        (curve,) = curves_of(replace(inputs.lead, n_resamples=0), None)
        panels.append(Panel({None: curve.drawing()}))
        if inputs.has_rows and inputs.n_rows <= MAX_ROWS_OF_PATHS:
            gaps = cumulative_of(inputs.table)
    return {
        "diagrams": inputs.diagrams,
        "curve": curve,
        "_panels": panels,
        "_deciles": measure_deciles(inputs),
        "_cumulative": gaps,
    }


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


def describe_diagrams(report: Report) -> list[Section]:
    """Show the diagrams as a table of bins, and as pictures."""
    reading = list(HOW_TO_READ)
    if len(report.diagrams) > MAX_PANELS:
        reading.insert(0, f"The pictures show {worst_text(report._panels)}.")
    section = Section(
        DIAGRAM_TITLE,
        table=table_of_bins(report.diagrams),
        pictures=list_pictures(report),
        reading=reading,
    )
    return [section]


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


def list_pictures(report: Report) -> list[Picture]:
    """List the pictures of a report: diagrams, the curve, and the cumulative gap."""
    drawn = page_pictures(report._panels, f"{report.title}: reliability diagram")
    gaps = report._cumulative
    if gaps is None:
        return drawn

    def draw_path(ax: "Axes") -> None:
        draw_cumulative(ax, gaps.path, gaps.deviation, gaps.value)

    return [*drawn, Picture(f"{report.title}: cumulative gap", partial(draw_on_page, draw_path))]
