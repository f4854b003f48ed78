"""The report on the calibration of one model, from its numbers to its sections.

Where the verdict comes from: `judge` in `verdict` decides from a `ReportEvidence`, which
`Report._verdict` in `result` gathers from the numbers of the other parts.

How to add a section: write a module like `scores`, with a function that measures its numbers from a
`ReportInput` and one that makes a `Section` of them; give `Report` a field for the numbers and list
the section in `Report.sections` (`result`); fill the field in `make_report` (`report`). A name in
`REPORT_KEYS` makes it a key of the JSON.

How to add an output format: nothing changes here. A report is a `Document`, and formats write
documents: see `fastece.display`.

Change here which parts a report has and their sentences, and never how a number is computed or how
a table looks. Begin with `make_report` in `report`, then read `Report.sections` in `result`.
"""
