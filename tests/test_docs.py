"""Examples of the README and the pages under docs/ run, and links, names and tables are right."""

import ast
import json
import re
import runpy
import sys
import tomllib
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest

import fastece
from fastece import recalibration
from fastece.cli import main
from fastece.data.table import SETTINGS
from fastece.estimators.base import Estimator
from fastece.recalibration import METHODS
from fastece.report.result import MISCALIBRATED, NO_SIGN, TOO_FEW, UNCLEAR
from fastece.report.verdict import MIN_ROWS
from helpers.samples import CALIBRATION_ERRORS

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FILES += [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
FILES.append(ROOT / "CODE_OF_CONDUCT.md")
FILES.append(ROOT / "asv_benchmarks" / "README.md")
FILES.append(ROOT / "fastece" / ".agents" / "skills" / "fastece" / "SKILL.md")
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in FILES}
# Pages that name options of other programs.
OTHER_PROGRAMS = {
    "CONTRIBUTING.md",
    "asv_benchmarks/README.md",
    "docs/contributing/code.md",
    "docs/how_to/hosts.md",
}
README = PAGES["README.md"]
ESTIMATORS = "docs/reference/estimators.md"
COMMAND_LINE = "docs/reference/command_line.md"
CODE = "docs/contributing/code.md"
# Their examples take a second or more.
SLOW_PAGES = {
    f"docs/{name}.md"
    for name in (
        "how_to/curves",
        "how_to/hosts",
        "how_to/intervals_and_p_values",
        "how_to/report",
        "how_to/streams",
        "how_to/what_to_report",
        "tutorials/language_model",
        "tutorials/quickstart",
        "tutorials/risk_model",
    )
}
PYTHON = {page: re.findall(r"```python\n(.*?)```", text, re.DOTALL) for page, text in PAGES.items()}


def rows_of(page, *starts):
    """The cells of the lines of tables whose first cells begin so."""
    lines = [line for line in PAGES[page].splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in rows if all(map(str.startswith, row, starts))]


def section_of(page, heading):
    """What stands under a heading, up to the next one."""
    return re.split(r"\n#+ ", PAGES[page].partition(f"# {heading}\n")[2])[0]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] * (page in SLOW_PAGES))
        for page in PAGES
        if PYTHON[page]
    ],
)
def test_python_blocks_print_what_is_beside_them(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    scope = {"__name__": page}
    for block in PYTHON[page]:
        packages = re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)
        if not all(map(find_spec, packages)):
            continue  # a recipe for a tool that is not a dependency of tests
        exec(compile(block, page, "exec"), scope)
        printed = capsys.readouterr().out.splitlines()
        for lines in re.findall(r"print\(.*?\)\s+# (.*(?:\n# .*)*)", block):
            assert {*lines.split("\n# ")} <= {*printed}


# Pages for readers, without those of the API, whose text comes from docstrings.
READ = [page for page in PAGES if page.startswith("docs/") and not page.startswith("docs/api/")]
# Its tables list options with all that each accepts.
WIDE_TABLES = {"docs/reference/command_line.md"}
MAX_CELL_WORDS = 20
MAX_LINE = 110


@pytest.mark.parametrize("page", READ)
def test_pages_have_a_title_a_question_and_what_comes_next(page):
    title, blank, first, *_ = PAGES[page].splitlines()
    assert re.match(r"# \S", title)
    assert blank == ""
    assert re.match(r"[A-Z`]", first), "the first paragraph is about what the page answers"
    assert len(re.findall(r"^# ", re.sub(r"(?s)```.*?```", "", PAGES[page]), re.MULTILINE)) == 1
    last = PAGES[page].rpartition("\n## ")[2]
    assert re.match(r"Next\n\n(- .*\n(  .*\n)*)+$", last)


@pytest.mark.parametrize("page", READ)
def test_pages_have_short_lines_and_short_cells(page):
    text = re.sub(r"(?s)```.*?```", "", PAGES[page])
    for line in text.splitlines():
        is_free = line.startswith(("|", "<!--")) or "](" in line
        assert len(line) <= MAX_LINE or is_free, line
    if page not in WIDE_TABLES:
        for row in rows_of(page):
            for cell in row:
                words = re.sub(r"`[^`]*`", "code", cell).split()
                assert len(words) <= MAX_CELL_WORDS, cell


@pytest.mark.parametrize("page", PAGES)
def test_pictures_of_pages_are_there(page):
    for picture in re.findall(r"!\[[^]]*\]\(([^)]*)\)", PAGES[page]):
        assert (ROOT / page).parent.joinpath(picture).stat().st_size < 200_000


@pytest.fixture
def write_pages(monkeypatch):
    """The function that writes what stands in the blocks of the pages of a folder."""
    main = runpy.run_path(str(ROOT / "scripts" / "write_pages.py"))["main"]

    def run(*options, root=ROOT):
        monkeypatch.setattr(sys, "argv", ["write_pages.py", *options])
        main(root)

    return run


def test_blocks_of_pages_are_what_their_files_give(write_pages):
    write_pages("--check")


def test_a_changed_cell_is_found_and_written_again(write_pages, tmp_path):
    (tmp_path / "docs" / "evidence" / "results").mkdir(parents=True)
    (tmp_path / "README.md").touch()
    kept = tmp_path / "docs" / "evidence" / "results" / "coverage.csv"
    kept.write_text('scores,rows,width\ncalibrated,100,0.15\n"a, b",100,0.2\n"a, b",900,0.1\n')
    page = tmp_path / "docs" / "page.md"
    comment = '<!-- table coverage scores="a, b" columns="scores|width" -->'
    table = "| scores | width |\n|---|---:|\n| a, b | 0.2 |\n| a, b | 0.1 |"
    written = f"{comment}\n\n{table}\n\n<!-- end -->"
    page.write_text(written.replace("0.2", "0.3"))
    with pytest.raises(SystemExit, match=r"docs/page.md: table coverage scores="):
        write_pages("--check", root=tmp_path)
    assert "0.3" in page.read_text()
    write_pages(root=tmp_path)
    assert page.read_text() == written
    write_pages("--check", root=tmp_path)
    page.write_text(written.replace("a, b", "other"))
    with pytest.raises(ValueError, match=r"coverage.csv: no scores is 'other'"):
        write_pages("--check", root=tmp_path)


def test_attributes_of_estimators_on_their_page_have_these_defaults():
    section = section_of("docs/how_to/write_an_estimator.md", "What it declares")
    rows = re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", section, re.MULTILINE)
    assert rows
    for name, default in rows:
        assert getattr(Estimator, name) == ast.literal_eval(default), name


def test_a_table_names_every_estimator():
    for name in CALIBRATION_ERRORS:
        estimator = fastece.ESTIMATORS[name]
        (row,) = rows_of(ESTIMATORS, f'`"{name}"`')
        (written,) = [cell for cell in row if cell.endswith(")`")]
        assert eval(f"fastece.{written.strip('`')}") == estimator


def test_page_on_recalibration_names_every_method_and_what_it_keeps():
    rows = [row for row in rows_of("docs/how_to/recalibration.md", '`"') if len(row) == 5]
    assert [row[0].strip('`"') for row in rows] == list(METHODS)
    for row, method in zip(rows, METHODS.values(), strict=True):
        options = [f.name for f in fields(method) if f.name != "from_logits"]
        assert re.findall(r"(\w+)=", row[1]) == options
        shown = eval(row[1].strip("`"), vars(recalibration))
        assert type(shown) is method
        assert shown.get_params() == method().get_params()
        assert (row[4] == "yes") == method.keeps_argmax


def test_tables_name_every_parameter():
    for estimator in (fastece.Sweep, fastece.SmoothECE, fastece.MMCE, fastece.CumulativeError):
        ((field,), default) = fields(estimator), repr(fields(estimator)[0].default)
        (row,) = rows_of(ESTIMATORS, f"`{estimator.__name__}`", f"`{field.name}`")
        assert row[2].strip("`").startswith(default.replace("'", '"').removesuffix(".0"))
    for estimator in (fastece.Binned, fastece.KDE, fastece.BayesCurve):
        named = section_of(ESTIMATORS, estimator.__name__)
        for field in fields(estimator):
            shown = repr(field.default).replace("'", '"').removesuffix(".0")
            row = rf"^\| `{field.name}` \| `?{re.escape(shown)}(?!\w)"
            assert re.search(row, named, re.MULTILINE), field.name


def test_every_setting_is_named():
    for name in SETTINGS:
        assert rows_of("docs/reference/input.md", f'`"{name}"`')
        assert f'`"{name}"`' in README


def anchors_of(path):
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page):
    for link in re.findall(r"\]\((?!http)(.*?)\)", PAGES[page]):
        target, _, anchor = link.partition("#")
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), link
        assert not anchor or anchor in anchors_of(path), link


@pytest.mark.parametrize("page", PAGES)
def test_paths_lead_to_files(page):
    text = re.sub(r"https://\S+", "", PAGES[page])
    for path in re.findall(r"\b(?:fastece|tests|scripts|notebooks)/[\w/.-]*\w", text):
        assert (ROOT / path).exists(), path


def help_of(capsys, *command):
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    return capsys.readouterr().out


def test_commands_and_options_that_pages_name_exist(capsys):
    commands = set(re.findall(r"^    (\w+)", help_of(capsys), re.MULTILINE))
    options = {"--help", "--version"}
    for command in commands:
        options |= set(re.findall(r"--[a-z][a-z-]+", help_of(capsys, command)))
    page = PAGES[COMMAND_LINE] + PAGES["docs/evidence/accuracy.md"]
    names = [*options, *(f"fastece {command}" for command in commands)]
    assert [name for name in names if f"`{name}" not in page] == []
    for page, text in PAGES.items():
        named = set(re.findall(r"`fastece ([a-z]+)", text))
        for shell in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            named |= set(re.findall(r"^fastece ([a-z]+)", shell, re.MULTILINE))
        if page == "CHANGELOG.md":  # which also names what is gone
            continue
        assert named <= commands, page
        if page not in OTHER_PROGRAMS:
            others = (
                r"^python3 -m venv .*|^dask .*|uvx --from|`(python [^`]*\.py|pip install)[^`]*`"
            )
            ours = re.sub(others, "", text, flags=re.MULTILINE)
            assert set(re.findall(r"--[a-z][a-z-]+", ours)) <= options, page


def test_output_on_the_page_of_the_command_line_is_what_is_printed(capsys):
    (shown,) = re.findall(r"```text\n(Random forest.*?)```", PAGES[COMMAND_LINE], re.DOTALL)
    assert main(["demo"]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report", "compare", "curve", "recalibrate"])
def test_page_of_the_command_line_names_the_keys_of_json(command, capsys):
    table = section_of(COMMAND_LINE, "JSON")
    (named,) = re.findall(rf"^\| `fastece {command}`.*?\|(.*)\|$", table, re.MULTILINE)
    demo = ROOT / "fastece" / "data" / "digits_neural_network.npz"
    files = [str(demo)] * (2 if command == "compare" else 1)
    assert main([command, *files, "--resamples", "20", "--json"]) == 0
    keys = set(json.loads(capsys.readouterr().out))
    assert keys == set(re.findall(r"`(\w+)`", named)) - {"points"}


def test_page_of_the_report_has_every_verdict():
    verdicts = {TOO_FEW, NO_SIGN, MISCALIBRATED, UNCLEAR}
    assert {row[0].strip('`"') for row in rows_of("docs/how_to/report.md", '`"')} == verdicts
    few = section_of("docs/how_to/report.md", "The headline")
    assert f"fewer than {MIN_ROWS} rows" in few


def test_one_sentence_says_what_the_package_is():
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in ("mkdocs.yml", "recipe/recipe.yaml"):
        assert about["description"] in (ROOT / name).read_text(encoding="utf-8"), name


def test_page_on_the_code_names_every_room():
    table = section_of(CODE, "How the code is arranged")
    floors = [line.split("|") for line in table.splitlines() if line.startswith("|")]
    named = {room.rstrip("/") for row in floors for room in re.findall(r"`([\w./]+)`", row[2])}
    rooms = {path.name for path in (ROOT / "fastece").iterdir() if path.name[0] not in "_."}
    assert rooms - {"py.typed"} == named


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Minutes, so that only a small run of it is tested.
LONG = ROOT / "notebooks" / "05_recalibration.ipynb"


def run_notebook(path, capsys):
    """The code cells of a notebook, with what they print and their values."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    done, scope = [], {"__name__": "notebook"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), scope)
        value = last and eval(compile(ast.Expression(last.value), path.name, "eval"), scope)
        done.append((cell, capsys.readouterr().out, value))
    matplotlib.pyplot.close("all")
    return done


def printed_in(cell):
    """The text that a notebook shows as printed by a cell."""
    return "".join(
        "".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream"
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", [x for x in NOTEBOOKS if x != LONG], ids=lambda path: path.stem)
def test_notebooks_show_what_their_code_gives(path, capsys):
    for cell, printed, value in run_notebook(path, capsys):
        assert printed_in(cell) == printed
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                assert "".join(output["data"]["text/plain"]) == repr(value)


def measured(text):
    """The words of the lines of an output, without intervals and what depends on them."""
    lines = [line for line in text.splitlines() if " sure " not in line]
    return [re.sub(r"\([^)]*\)|, surely .*", "", line).split() for line in lines]


@pytest.mark.slow
def test_the_long_notebook_runs_small_and_measures_what_it_shows(monkeypatch, capsys):
    """Its intervals and its noisy labels, which take minutes, are left out."""
    monkeypatch.setenv("FASTECE_NOTEBOOK", "small")
    compared = 0
    for cell, printed, _ in run_notebook(LONG, capsys):
        if "grows" not in "".join(cell["source"]):
            assert measured(printed) == measured(printed_in(cell))
            compared += bool(printed)
    assert compared == 6
