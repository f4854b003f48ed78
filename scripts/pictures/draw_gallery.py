"""Draw the pictures of the page of diagrams by running its code.

``python scripts/pictures/draw_gallery.py [--out FOLDER]`` runs the Python blocks of
``docs/how_to/curves.md`` in order. Wherever a picture follows a block, the variable `figure` is
saved under the picture's name, by default in docs/pictures. Takes five seconds.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from draw_pictures import save

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how_to" / "curves.md"
# A block of Python, and the picture after it if there is one.
BLOCK = re.compile(r"```python\n(.*?)```\n+(?:!\[[^]]*\]\(([^)]+)\))?", re.DOTALL)


def figures() -> Iterator[tuple[str, Any]]:
    """Run the page, and give the name of each picture with its figure."""
    scope: dict[str, Any] = {"__name__": PAGE.name}
    for code, picture in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        exec(compile(code, PAGE.name, "exec"), scope)
        if picture:
            yield Path(picture).name, scope["figure"]


def main() -> None:
    """Save all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    folder = parser.parse_args().out
    for name, figure in figures():
        save(figure, folder / name)


if __name__ == "__main__":
    main()
