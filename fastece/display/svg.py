"""Figures as SVG elements that stand in a page of HTML, with tooltips. Needs matplotlib."""

import io
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from fastece.data.errors import InputError
from fastece.display.marks import TOOLTIPS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Names of the elements and of links; nothing is loaded from these addresses.
SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
HREF = f"{{{XLINK}}}href"
# The ids of artists with tooltips begin with this word.
TOOLTIP_ID = "tooltips-"
SVG_BLACK = "#000000"
# Attributes of the element itself, beside its size. Black parts take the colour of the text around.
ATTRIBUTES = {
    "role": "img",
    "fill": "currentColor",
    "stroke-linejoin": "round",
    "stroke-linecap": "butt",
    "style": "max-width: 100%; height: auto",
}
SIZE_ATTRIBUTES = ("width", "height", "viewBox")


def to_svg(figure: "Figure", title: str, key: str) -> str:
    """Write a figure as one SVG element that can stand in a page of HTML.

    It refers to nothing outside itself, has no background, and black parts take the colour of
    the text around it, so it can be read on dark pages. On narrow pages it shrinks. Browsers show
    the numbers of a bin under the pointer.

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
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", key):
        raise InputError("key", "must be letters, digits and hyphens, a letter first", value=key)
    tooltips = name_tooltips(figure)
    drawing = ElementTree.fromstring(save_svg(figure, key))
    remove_style(drawing)
    for group in drawing.iter(f"{{{SVG}}}g"):
        add_tooltips(group, tooltips.get(group.get("id", ""), []))
    for node in drawing.iter():
        own_attributes(node, key)
    size = {name: drawing.attrib[name] for name in SIZE_ATTRIBUTES if name in drawing.attrib}
    element = ElementTree.Element(f"{{{SVG}}}svg", size | ATTRIBUTES)
    element.set("aria-labelledby", f"{key}-title")
    element.text = "\n"
    heading = ElementTree.SubElement(element, f"{{{SVG}}}title", id=f"{key}-title")
    heading.text = title
    heading.tail = "\n"
    element.extend(drawing)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return ElementTree.tostring(element, encoding="unicode")


def name_tooltips(figure: "Figure") -> dict[str, Sequence[str]]:
    """Give each artist with tooltips an id, and return the tooltips by id."""
    tooltips: dict[str, Sequence[str]] = {}
    for k, artist in enumerate(figure.findobj(lambda artist: TOOLTIPS in vars(artist))):
        artist.set_gid(f"{TOOLTIP_ID}{k}")
        tooltips[f"{TOOLTIP_ID}{k}"] = vars(artist)[TOOLTIPS]
    return tooltips


def save_svg(figure: "Figure", key: str) -> str:
    """Write a figure as matplotlib does, with letters as text and no background.

    Ids depend on the drawing and the key alone.
    """
    from matplotlib import rc_context

    page = io.StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": key}):
        figure.savefig(page, format="svg", transparent=True, metadata=no_metadata)
    return page.getvalue()


def remove_style(drawing: ElementTree.Element) -> None:
    """Remove the style sheet of matplotlib, which would hold for the whole page."""
    for definitions in drawing.findall(f"{{{SVG}}}defs"):
        if definitions.find(f"{{{SVG}}}style") is not None:
            drawing.remove(definitions)


def add_tooltips(group: ElementTree.Element, tooltips: Sequence[str]) -> None:
    """Give each shape of a group its tooltip, which browsers show under the pointer."""
    for shape, text in zip(shapes_of(group), tooltips, strict=False):
        ElementTree.SubElement(shape, f"{{{SVG}}}title").text = text


def shapes_of(group: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Yield the shapes of a group; a shape with an id is a definition that others use."""
    for node in group.iter():
        if node.tag in (f"{{{SVG}}}path", f"{{{SVG}}}use") and "id" not in node.attrib:
            yield node


def own_attributes(node: ElementTree.Element, key: str) -> None:
    """Prefix the ids and references of an element, and give black the colour of text."""
    for name, value in node.attrib.items():
        if name == "id":
            node.set(name, f"{key}-{value}")
        elif name == HREF:
            node.set(name, value.replace("#", f"#{key}-", 1))
        else:
            text = value.replace("url(#", f"url(#{key}-")
            node.set(name, text.replace(SVG_BLACK, "currentColor"))
