"""Legends that cover nothing, at any size of a figure. Needs matplotlib."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastece.display import marks
from fastece.display.axes import LETTER_WIDTH, QUANTITIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from matplotlib.transforms import Bbox

# The place of axes that is at least so many times as wide as high has room for a legend beside
# their square.
MIN_ASPECT_FOR_BESIDE = 1.4
# Width of an entry beside its text, as a multiple of the height of its font.
HANDLE_WIDTH = 2.8
# Width of a legend below the axes, as a multiple of theirs: it may lie below their ticks too.
MAX_WIDTH_BELOW = 1.18
# Points from axes to the far side of their label, except the letters, which are 1.2 high.
PADDING = 12.0
LINE_HEIGHT = 1.2
# Characters of an entry.
MAX_ENTRY = 44

Entry = tuple[Any, str]


def entries_of(*axes: "Axes") -> list[Entry]:
    """List the entries of a legend: artists with names, each once, models together.

    Models that have an error and no name are numbered.
    """
    entries = list(distinct_entries(*axes))
    are_models = [marks.is_model(artist) for artist, _ in entries]
    first = are_models.index(True) if True in are_models else 0
    models = [entry for entry in entries if marks.is_model(entry[0])]
    others = [entry for entry in entries[first:] if not marks.is_model(entry[0])]
    return [*entries[:first], *models, *others]


def distinct_entries(*axes: "Axes") -> Iterator[Entry]:
    """Yield artists with names: each name once, and each model of single axes."""
    pairs = [pair for ax in axes for pair in zip(*ax.get_legend_handles_labels(), strict=True)]
    models = [artist for artist, _ in pairs if marks.is_model(artist)]
    names: set[str] = set()
    for artist, label in pairs:
        name = label
        # Panels share the entry of each model, as they have the same models.
        has_entry = marks.is_model(artist) and len(axes) == 1
        is_unnamed = label.startswith(("ECE ", *QUANTITIES.values()))
        if has_entry and is_unnamed and len(models) > 1:
            name = f"model {models.index(artist) + 1}, {label}"
        if has_entry or name not in names:
            names.add(name)
            yield artist, name


def draw_legend(ax: "Axes") -> "Legend":
    """Draw a legend beside axes that have room there, or else below their labels.

    The layout of a figure makes room for it. In a figure without a layout, the axes and the legend
    share the place of the axes.
    """
    from matplotlib.font_manager import FontProperties

    entries = entries_of(ax)
    names = [x if len(x) <= MAX_ENTRY else f"{x[: MAX_ENTRY - 1]}…" for _, x in entries]
    width, height = marks.size_of(ax)
    is_beside = width > MIN_ASPECT_FOR_BESIDE * height
    size = FontProperties(size="small").get_size_in_points()
    depth = depth_of_labels(ax)
    if is_beside:
        place: dict[str, Any] = {
            "loc": "upper left",
            "bbox_to_anchor": (1, 1),
            "borderaxespad": 0.5,
        }
    else:
        widest_entry = size * (LETTER_WIDTH * max(map(len, names)) + HANDLE_WIDTH)
        columns = 2 if 2 * widest_entry < MAX_WIDTH_BELOW * width else 1
        place = place_below(ax, depth) | {"ncols": columns}
    legend: Legend = ax.legend(
        [artist for artist, _ in entries],
        names,
        frameon=False,
        fontsize=size,
        handlelength=1.5,
        handletextpad=0.5,
        columnspacing=0.8,
        borderpad=0,
        **place,
    )
    show_dollars(legend)
    if ax.figure.get_layout_engine() is None:
        ax.set_axes_locator(SharedPlace(legend, depth, is_beside))
    return legend


def depth_of_labels(ax: "Axes") -> float:
    """Measure the points from axes to the far side of their label below them."""
    labels = [ax.xaxis.label, *ax.get_xticklabels()[:1]]
    return PADDING + LINE_HEIGHT * sum(float(label.get_fontsize()) for label in labels)


def place_below(ax: "Axes", depth: float) -> dict[str, Any]:
    """Return the options of a legend whose top lies some points below axes."""
    from matplotlib.transforms import ScaledTranslation

    shift = ScaledTranslation(0, -depth / 72, ax.figure.dpi_scale_trans)
    return {
        "loc": "upper center",
        "bbox_to_anchor": (0.5, 0),
        "borderaxespad": 0,
        "bbox_transform": ax.transAxes + shift,
    }


def show_dollars(legend: "Legend") -> None:
    """Show dollars in a legend as they are: names are the caller's, and no formulas."""
    for text in legend.get_texts():
        text.set_parse_math(False)


@dataclass(frozen=True)
class SharedPlace:
    """A place of axes that leaves a part of it to their legend, at any size.

    It also leaves room for labels that the figure would cut off. Only the lowest axes may have
    their labels below their place.

    Attributes
    ----------
    legend : matplotlib Legend
    depth : float
        Points from the axes to the far side of their label below them.
    is_beside : bool
        Whether the legend is beside the axes, and not below them.
    """

    legend: Any
    depth: float
    is_beside: bool

    def __call__(self, ax: Any, renderer: Any) -> "Bbox":
        """Return the place in parts of the figure, which matplotlib needs to draw."""
        from matplotlib.transforms import Bbox

        place = ax.get_position(original=True)
        figure = ax.figure.bbox
        legend = self.legend.get_window_extent(renderer)
        right = place.x1
        bottom = place.y0
        if self.is_beside:
            right -= legend.width / figure.width
        else:
            bottom += legend.height / figure.height
        depth = self.depth / 72 * ax.figure.dpi / figure.height + 0.01
        if place.y0 <= min(x.get_position(original=True).y0 for x in ax.figure.axes):
            bottom = max(place.y0, depth + bottom - place.y0)
        elif not self.is_beside:
            bottom += depth
        return Bbox.from_extents(place.x0, min(bottom, place.y1), max(right, place.x0), place.y1)
