"""The report on the calibration of one model, from its numbers to its sections.

`PARTS` in `report` is the list of parts: for each, a function that measures fields of `Report` and
one that describes them as sections. `judge` in `verdict` decides from the fields of all parts.

How to add a section: write a module like `scores`, list its two functions in `PARTS`, and give
`Report` in `result` the fields. A public field is a key of the JSON.

How to add an output format: nothing changes here. A report is a `Document`, and formats write
documents: see `fastece.display`.

Change here which parts a report has and their sentences, and never how a number is computed or how
a table looks. Begin with `PARTS` and `make_report` in `report`.
"""
