"""How results look: documents, numbers as text, writers of formats, and pictures.

A result describes itself as a `Document` of facts, tables and sentences (`documents`), and every
output format is one function that writes such a document (`writers`), a method of `Readable`
(`results`) and a row in the command line's list of forms. Change here how numbers, tables, axes and
legends look, and never which numbers there are. Begin with `documents`, then read `writers` and
`results`; for pictures begin with `marks`, whose drawings `pictures` and `pages` put on axes.
"""

from fastece.display.pages import plot_classes

__all__ = ["plot_classes"]
