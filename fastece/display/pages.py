"""Pages of panels: small multiples, and pictures in files or as parts of a page."""

import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_integer
from fastece.display import axes
from fastece.display.marks import PLAIN, TIPS, Drawing, Style, draw_square, logit_range, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = (".png", ".svg", ".pdf")
DPI = 150
# Of more classes than can be read, small multiples show the worst.
MOST_PANELS = 12
# Inches of a panel with its title, and of the margins around all panels.
PANEL, AROUND = (1.9, 2.05), (0.6, 0.9)
# Inches of an entry of the legend of all panels.
ENTRY = 1.9
# Characters of a title to an inch.
FIT = 11
# Begin of the ids of marks with texts for the pointer.
TIP = "tips-"
# Names of the elements, not addresses that anything is loaded from.
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


class Panel(NamedTuple):
    """Axes to be drawn: drawings by the names of their models, over log odds or not."""

    drawings: Mapping[str | None, Drawing]
    is_logit: bool = False

    @property
    def first(self) -> Drawing:
        """The drawing that names the axes."""
        return next(iter(self.drawings.values()))


def plot_classes(
    results: Sequence[axes.Drawable] | Mapping[str, Sequence[axes.Drawable]], *, band: Any = True,
    columns: int | None = None, figure: "Figure | None" = None,
) -> "Figure":  # fmt: skip
    """Draw a panel for each class, all with the same axes and one legend.

    Parameters
    ----------
    results : list of ReliabilityDiagram or of ReliabilityCurve
        Results with ``setting="classwise"``; of several models, a dict of such lists by the names
        of the models. Of more than twelve classes, the twelve with the largest errors are shown,
        the largest first, as the title states.
    band : bool, or list of ConsistencyBand, default True
        As in `ReliabilityDiagram.plot`; of one model also the band of each class, as
        `fastece.calibration_test` gives them.
    columns : int, optional
        Panels side by side; without it, as many as fill the rows best.
    figure : matplotlib Figure, optional
        Where to draw: an empty one with ``layout="constrained"``; without it, a new one.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ValueError, TypeError
        Without results, or without columns; for models, or a band, of other classes or bins.
    """
    models = results if isinstance(results, Mapping) else {None: results}
    counts = sorted({len(classes) for classes in models.values()})
    if not counts or not counts[-1]:
        raise InputError("results", "must be diagrams or curves, of which there are none")
    bands = band if isinstance(band, Sequence) else [band] * counts[-1]
    if len({*counts, len(bands)}) > 1:
        rule = "must have the same classes for each model, as many as bands"
        raise InputError("results", rule, value=[*counts, len(bands)])
    panels = []
    for *of_class, one in zip(*models.values(), bands, strict=True):
        # The band is that of the first model.
        shown = [one, *[bool(one)] * (len(of_class) - 1)]
        drawings = [x.drawing(band) for x, band in zip(of_class, shown, strict=True)]
        panels.append(Panel(dict(zip(models, drawings, strict=True))))
    return draw_classes(panels, columns, figure)


def draw_classes(
    panels: Sequence[Panel], columns: int | None = None, figure: "Figure | None" = None
) -> "Figure":
    """Draw small multiples."""

    def error_of(panel: Panel) -> float:  # the largest; one without a value comes last
        return max(float(np.nan_to_num(x.value, nan=-1.0)) for x in panel.drawings.values())

    count, worst = len(panels), list(panels)
    if count > MOST_PANELS:
        worst = sorted(panels, key=error_of, reverse=True)[:MOST_PANELS]
    n = len(worst)
    across = best_columns(n) if columns is None else check_integer("columns", columns, 1, 2**31)
    across = min(across, n)
    if figure is None:
        figure = axes.open_figure(panels_size(n, across))
    if n < count:
        figure.suptitle(f"the {n} of {count} classes with the largest errors")
    grid = figure.subplots(-(-n // across), across, sharex=True, sharey=True, squeeze=False)
    for ax in grid.flat[n:]:
        ax.remove()
    filled = list(grid.flat[:n])
    for panel, ax in zip(worst, filled, strict=True):
        draw_panel(panel, ax)
    names = axes.axis_labels(worst[0].first.setting)
    for ax in filled[-across:]:  # the lowest of each column
        ax.set_xlabel(names[0], fontsize="small")
        ax.tick_params(labelbottom=True)
    for ax in filled[::across]:
        ax.set_ylabel(names[1], fontsize="small")
    marks, names = zip(*axes.entries_of(*filled), strict=True)
    legend = figure.legend(
        marks, names, loc="outside lower center", frameon=False, fontsize="small",
        ncols=max(2, int(figure.get_figwidth() // ENTRY)),
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def best_columns(n: int) -> int:
    """Choose columns that leave few gaps: up to four, else three to five."""
    return n if n <= 4 else min((4, 3, 5), key=lambda columns: -n % columns)


def panels_size(n: int, columns: int | None = None) -> tuple[float, float]:
    """Return the size in inches of a figure of `n` panels without empty room."""
    n = min(n, MOST_PANELS)
    across = min(columns or best_columns(n), n)
    return AROUND[0] + PANEL[0] * across, AROUND[1] + PANEL[1] * -(-n // across)


def draw_panel(panel: Panel, ax: "Axes") -> None:
    """Draw one of the small multiples."""
    errors = ", ".join(f"{drawing.value:.4f}" for drawing in panel.drawings.values())
    name = axes.shorten(panel.first.setting)
    is_short = len(f"{name}, {errors}") <= axes.LONGEST_NAME / 2 + len(", 0.0000")
    title = f"{name}, {errors}" if is_short else f"{name}\n{errors}"
    ax.set_title(title, fontsize="small", parse_math=False)
    ax.tick_params(labelsize="small")
    draw_square(ax, PLAIN)
    for place, (label, drawing) in enumerate(panel.drawings.items()):
        up = axes.axis_labels(drawing.setting)[1]
        name = up if label is None else axes.shorten(label)
        drawing.draw(ax, Style(None, name, place, PLAIN, scale_of(ax), is_panel=True))


def draw_page(panels: Sequence[Panel], note: str = "") -> "Figure":
    """Draw panels of one setting side by side, or small multiples of classes.

    The note is drawn above them.
    """
    count = len(panels)
    if len({panel.first.setting for panel in panels}) == 1:
        figure = axes.new_figure((axes.WIDTH * count, axes.HEIGHT))
        for ax, panel in zip(figure.subplots(1, count, squeeze=False).flat, panels, strict=True):
            span = logit_range(panel.drawings.values()) if panel.is_logit else PLAIN
            for name, drawing in panel.drawings.items():
                axes.draw_model(drawing, ax, label=name, span=span)
    else:
        width, height = panels_size(count)
        figure = draw_classes(panels, figure=axes.new_figure((width, height + 0.4)))
        note = "\n".join(filter(None, [figure.get_suptitle(), note]))
    if note:
        note = "\n".join(fill(line, int(FIT * figure.get_figwidth())) for line in note.splitlines())
        figure.suptitle(note, fontsize="medium", parse_math=False)
    return figure


def draw_picture(path: Path, panels: Sequence[Panel], note: str = "") -> bytes:
    """Draw a page of panels as the content of a file, in the format that its name has."""
    figure = draw_page(panels, note)
    figure.draw_without_rendering()  # the layout takes two turns to settle with square axes
    return picture_of(path, figure)


def picture_of(path: Path, figure: "Figure") -> bytes:
    """Write a figure as the content of a file, in the format that its name has."""
    figure.savefig(content := io.BytesIO(), format=path.suffix[1:].lower(), dpi=DPI)
    return content.getvalue()


def require_matplotlib(argument: str) -> None:
    """Refuse an argument that needs pictures where matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        rule = "needs matplotlib: pip install matplotlib"
        raise InputError(argument, rule) from error


def to_svg(figure: "Figure", title: str, key: str) -> str:
    """Write a figure as one SVG element that can stand in a page of HTML.

    It refers to nothing outside itself, has no background, and black parts take the colour of
    the text around it, so it can be read on dark pages. On narrow pages it shrinks.

    Parameters
    ----------
    figure : matplotlib Figure
    title : str
        Description of the picture, for readers who cannot see it.
    key : str
        A word of letters, digits and hyphens with which all ids begin, different for each picture
        of a page.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        For any other key.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> to_svg(Figure(), "nothing & more", "a").splitlines()[1]
    '<title id="a-title">nothing &amp; more</title>'
    """
    from matplotlib import rc_context

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", key):
        raise InputError("key", "must be letters, digits and hyphens, a letter first", value=key)
    page = io.StringIO()
    marks = figure.findobj(lambda mark: TIPS in vars(mark))
    for k, mark in enumerate(marks):
        mark.set_gid(f"{TIP}{k}")
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    # Letters stay text, and ids depend on the drawing alone.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": key}):
        figure.savefig(page, format="svg", transparent=True, metadata=nothing)
    found = re.search(r"<svg\b([^>]*)>(.*)</svg>", page.getvalue(), re.DOTALL)
    assert found is not None
    head, body = found.groups()
    # This style would be that of the whole page.
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r"<[^>]*>", lambda tag: own_tag(tag[0], key), body)
    body = re.sub(
        rf'<g id="{key}-{TIP}(\d+)">.*?</g>',
        lambda found: with_tips(found[0], vars(marks[int(found[1])])[TIPS]),
        body, flags=re.DOTALL,
    )  # fmt: skip
    size = " ".join(re.findall(r'\b(?:width|height|viewBox)="[^"]*"', head))
    return (
        f'<svg xmlns="{SVG}" xmlns:xlink="{XLINK}" {size} role="img" '
        f'aria-labelledby="{key}-title" fill="currentColor" stroke-linejoin="round" '
        f'stroke-linecap="butt" style="max-width: 100%; height: auto">\n'
        f'<title id="{key}-title">{escape(title)}</title>\n{body}</svg>'
    )


def with_tips(group: str, tips: Sequence[str]) -> str:
    """Give each shape of a group its text, which browsers show under the pointer."""
    left = iter(tips)
    return re.sub(
        r"<(path|use)\b((?:(?!\bid=)[^>])*)/>",  # what has an id is only a model of shapes
        lambda shape: f"<{shape[1]}{shape[2]}><title>{escape(next(left, ''))}</title></{shape[1]}>",
        group,
    )


def own_tag(tag: str, key: str) -> str:
    """Prefix the ids and references of a tag, and make its black that of text."""
    tag = re.sub(r'\bid="', f'id="{key}-', tag)
    tag = re.sub(r'(url\(|href=")#', rf"\1#{key}-", tag)
    return tag.replace("#000000", "currentColor")
