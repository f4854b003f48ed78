"""Lines of estimators in the pictures of a study.

Estimators differ in grey too: families by their markers, variants by dashes and filling. Beside
estimators of the user's own, which stand out, all others are grey.
"""

from collections.abc import Sequence
from itertools import cycle
from typing import Any, NamedTuple

from fastece.study.candidates import BANDWIDTHS, BAYES, BIN_NUMBERS


class Family(NamedTuple):
    """Estimators of one kind.

    Parameters
    ----------
    title : str
    color, marker : str
        As in matplotlib.
    variants : tuple
        Endings of their names, after "_"; empty for a family of one.
    """

    title: str
    color: str
    marker: str
    variants: tuple[Any, ...]

    def names(self, prefix: str) -> list[str]:
        """List the names of all estimators of the family."""
        if not self.variants:
            return [prefix]
        return [f"{prefix}_{variant}" for variant in self.variants]


class Dashes(NamedTuple):
    """Dashes of a line as in matplotlib, and whether its markers are filled."""

    linestyle: Any
    is_filled: bool


# Families by the beginning of their names. The colours are Okabe and Ito's: blues are hard bins,
# oranges convex ones, the light ones adaptive; their yellow is too pale for a line, so that the
# last colour is another.
FAMILIES = {
    "ece": Family("equal width", "#0072B2", "o", BIN_NUMBERS),
    "ece_a": Family("equal mass", "#56B4E9", "s", BIN_NUMBERS),
    "ece_c": Family("equal width, convex", "#D55E00", "^", BIN_NUMBERS),
    "ece_ac": Family("equal mass, convex", "#E69F00", "v", BIN_NUMBERS),
    "ece_kde": Family("kernel density", "#009E73", "D", BANDWIDTHS),
    BAYES: Family("Bayesian curve", "#882255", "p", ()),
}
# The first, second and third variant of a family.
VARIANTS = (Dashes("-", True), Dashes((0, (5, 1.5)), False), Dashes((0, (1.2, 1.3)), True))
# The user's own estimators.
TITLE_OF_USER = "own"
COLOR_OF_USER = "#C2185B"
MARKERS_OF_USER = "*PXh<>d"
# Colour of the others beside them.
PALE = "0.62"
# Points: widths of lines, and sizes of markers, of which a star looks smaller than others.
LINE_WIDTH = 1.4
BOLD_LINE_WIDTH = 2.4
MARKER_SIZE = 4.5
STAR_SIZE = 7

# Settings of a line, as in matplotlib; lines by the title of their family and by their name.
Line = dict[str, Any]
LinesByFamily = dict[str, dict[str, Line]]


def choose_lines(names: Sequence[str]) -> LinesByFamily:
    """Choose the lines of estimators by family; unknown estimators are the user's."""
    lines: LinesByFamily = {}
    names_of_families: set[str] = set()
    for prefix, family in FAMILIES.items():
        every_name = family.names(prefix)
        names_of_families.update(every_name)
        lines[family.title] = {
            name: line_of(family.color, family.marker, *VARIANTS[every_name.index(name)])
            for name in names
            if name in every_name
        }
    names_of_user = [name for name in names if name not in names_of_families]
    if names_of_user:
        lines = {
            title: {name: make_pale(line) for name, line in of_family.items()}
            for title, of_family in lines.items()
        }
        lines[TITLE_OF_USER] = user_lines(names_of_user)
    return {title: of_family for title, of_family in lines.items() if of_family}


def user_lines(names: Sequence[str]) -> dict[str, Line]:
    """Choose bold lines for the user's estimators, in turn."""
    styles = zip(names, cycle(MARKERS_OF_USER), cycle(VARIANTS), strict=False)
    return {
        name: line_of(COLOR_OF_USER, marker, *dashes) | {"linewidth": BOLD_LINE_WIDTH}
        for name, marker, dashes in styles
    }


def line_of(color: str, marker: str, dashes: Any, is_filled: bool) -> Line:
    """Return the settings of a line."""
    return {
        "color": color, "linestyle": dashes, "linewidth": LINE_WIDTH, "marker": marker,
        "markersize": STAR_SIZE if marker == "*" else MARKER_SIZE, "markeredgewidth": 1,
        "markerfacecolor": color if is_filled else "white",
    }  # fmt: skip


def make_pale(line: Line) -> Line:
    """Return the settings of a line in grey."""
    is_filled = line["markerfacecolor"] != "white"
    return line | {"color": PALE, "markerfacecolor": PALE if is_filled else "white"}
