"""Pictures as parts of a page of HTML. Needs matplotlib."""

import io
import re
from html import escape
from typing import TYPE_CHECKING

from fastece.checks.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Names of the elements, not addresses that anything is loaded from.
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


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
    size = " ".join(re.findall(r'\b(?:width|height|viewBox)="[^"]*"', head))
    return (
        f'<svg xmlns="{SVG}" xmlns:xlink="{XLINK}" {size} role="img" '
        f'aria-labelledby="{key}-title" fill="currentColor" stroke-linejoin="round" '
        f'stroke-linecap="butt" style="max-width: 100%; height: auto">\n'
        f'<title id="{key}-title">{escape(title)}</title>\n{body}</svg>'
    )


def own_tag(tag: str, key: str) -> str:
    """Prefix the ids and references of a tag, and make its black that of text."""
    tag = re.sub(r'\bid="', f'id="{key}-', tag)
    tag = re.sub(r'(url\(|href=")#', rf"\1#{key}-", tag)
    return tag.replace("#000000", "currentColor")
