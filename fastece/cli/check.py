"""The command ``check``: a gate for builds, which passes, fails, or cannot tell."""

from argparse import Namespace
from dataclasses import replace
from functools import partial

from fastece.cli.compare import check_same_rows
from fastece.cli.inputs import describe_data, read_data, read_file, slice_columns, title_of
from fastece.cli.output import Page, Progress
from fastece.decisions.gate import check_bounds, check_of
from fastece.display.documents import Document, Section
from fastece.display.writers import to_markdown
from fastece.estimators.table import find_estimator
from fastece.files import write_file
from fastece.inference.selections import select_by_columns


def run(options: Namespace, progress: Progress) -> Page:
    """Run ``fastece check FILE``."""
    title, other = title_of(options.file), options.baseline
    bounds = check_bounds(options.max_error, options.max_increase, other is not None)
    estimators = {"": find_estimator(options.estimator, {})}
    progress(f"reading {title}")
    rows, slices = read_file(options.file, options), []
    call = read_data(rows, options, estimators, least=1)
    if options.by:
        columns = {name: rows.others[key] for key, name in slice_columns(options).items()}
        with rows.located():
            slices = select_by_columns(call, rows.others.get("by", columns), rows.y_prob)
    if other is not None:
        baseline = read_file(other, Namespace(**{**vars(options), "groups": None, "by": None}))
        check_same_rows(rows, baseline)
        models = read_data(baseline, options, estimators, least=1).models
        call = replace(call, sources=[*call.sources, *models])
    found = check_of(call, slices, bounds, options.min_rows, options.seed)
    sections = [Section(facts=describe_data(call, rows)), *found.document().sections]
    page = to_markdown(Document(title, found.line, sections))
    texts = {"junit": found.to_junit(title), "summary": page}
    files = {name: partial(write_file, content=x.encode()) for name, x in texts.items()}
    values = {"title": title, "note": rows.note, **found.to_dict()}
    return Page(
        found.document(), values, files, exit_code={True: 0, False: 1, None: 3}[found.passed]
    )
