"""What the README and the pages under docs/ say is so: their examples run, their numbers agree."""

import ast
import csv
import importlib
import json
import re
import runpy
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

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
OTHER_PROGRAMS = {"CONTRIBUTING.md", "asv_benchmarks/README.md"}
README = PAGES["README.md"]
QUICKSTART = "docs/tutorials/quickstart.md"
WHAT_TO_REPORT = "docs/how_to/what_to_report.md"
SAMPLE_SIZE = "docs/how_to/sample_size.md"
ESTIMATORS = "docs/reference/estimators.md"
COMMAND_LINE = "docs/reference/command_line.md"
COVERAGE = "docs/evidence/coverage.md"
SPEED = "docs/evidence/speed.md"
CODE = "docs/contributing/code.md"
PUBLISHED_BENCHMARK = "docs/evidence/published_benchmark.md"
# Their examples take a second or more.
SLOW_PAGES = {
    f"docs/{name}.md"
    for name in (
        "how_to/intervals_and_p_values",
        "how_to/sample_size",
        "how_to/compare",
        "how_to/correlated_rows",
        "how_to/report",
        "how_to/scikit_learn",
        "how_to/streams",
        "tutorials/gallery",
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
        exec(compile(block, page, "exec"), scope)
        printed = capsys.readouterr().out.splitlines()
        for line in re.findall(r"print\(.*?\)\s+# (.*)", block):
            assert line in printed


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


@pytest.mark.parametrize("page", ["README.md", ESTIMATORS])
def test_tables_name_every_estimator(page):
    for name in CALIBRATION_ERRORS:
        estimator = fastece.ESTIMATORS[name]
        (row,) = rows_of(page, f'`"{name}"`')
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
    page = PAGES[COMMAND_LINE] + PAGES["docs/evidence/study.md"]
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


def test_threshold_of_answers_on_its_page_is_what_the_command_prints(capsys, tmp_path, monkeypatch):
    page = "docs/tutorials/language_model.md"
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(PYTHON[page][0], scope)  # which makes the answers
    columns = zip(scope["question"], scope["correct"], scope["confidence"], strict=True)
    rows = [f"{question},{int(hit)},{100 * x:.0f}" for question, hit, x in columns]
    Path("answers.csv").write_text("\n".join(["question,correct,confidence", *rows]))
    (command,) = re.findall(r"^fastece (threshold answers.*)$", PAGES[page], re.MULTILINE)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGES[page], re.DOTALL)
    capsys.readouterr()
    assert main(command.split()) == 0
    assert capsys.readouterr().out.startswith(shown)
    assert main([*command.split(), "--accuracy", "0.99"]) == 1


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


def test_speed_that_the_readme_promises_is_in_the_table_of_replicates():
    (head,) = rows_of(SPEED, "replicate of")
    column = head.index("10 000 rows")
    of_estimator = {row[0]: row[column] for row in rows_of(SPEED, "`ece") if len(row) == len(head)}
    promise = re.search(r"less than a (fifth) .* less than a (thirtieth)", words_of("README.md"))
    for estimator, share in zip(("`ece`", "`ece_ac`"), promise.groups(), strict=True):
        ratio = float(of_estimator[estimator].rpartition(", ")[2].removesuffix("x"))
        assert ratio > {"fifth": 5, "thirtieth": 30}[share]


def coverage_of(scores, n):
    """The lines of both tables of intervals of `estimate`: of bins, and of the Bayesian curve."""
    lines = [row for row in rows_of(COVERAGE, scores) if row[1] == n]
    binned, posterior = lines
    assert (len(binned), len(posterior)) == (9, 6)
    return binned, posterior


def test_coverage_in_the_readme_is_that_of_the_tables():
    rows = [row for row in rows_of("README.md") if len(row) == 8 and row[2][0].isdecimal()]
    assert len(rows) == 4
    for scores, truth, *cells in rows:
        binned, posterior = coverage_of(scores, "1000")
        assert truth == binned[2]
        assert cells == [binned[3], binned[8], binned[4], binned[7], posterior[4], posterior[5]]


def test_widths_of_intervals_are_those_of_the_tables():
    rows = [row for row in rows_of(SAMPLE_SIZE) if row[0].isdecimal()]
    assert [row[0] for row in rows] == ["100", "1000", "5000"]
    for n, of_posterior, of_bins in rows:
        binned, posterior = coverage_of("Beta(5, 1.5), calibrated", n)
        assert [of_posterior, of_bins] == [posterior[5], binned[7]]


def words_of(page):
    """The text of a page in one line."""
    return " ".join(PAGES[page].split())


def printed_on(page, call):
    """Return the numbers in the comment beside a call of print on a page."""
    return re.findall(r"\d+\.\d+|\d+", re.search(rf"print\({call}.*\)\s+# (.*)", PAGES[page])[1])


def test_numbers_in_sentences_are_those_of_the_output_above():
    words = words_of(QUICKSTART)
    _, low, high = map(float, printed_on(QUICKSTART, r"round\(result.value, 3"))
    assert f"lies between {low:.3f} and {high:.3f} with 95 % confidence" in words
    observed, *_ = printed_on(QUICKSTART, r"round\(curve\(0.5\)")
    assert f"it is right in {float(observed):.0%}".removesuffix("%") + " of 100 cases" in words
    claimed, right = printed_on(QUICKSTART, r"round\(p.max")
    assert f"right {float(right):.1%}".replace("%", " % of the time") in words
    assert f"claims {float(claimed):.1%}".replace("%", " %") in words
    before, after = printed_on(QUICKSTART, r"np.round\(errors")
    assert f"from {before} to {after}" in words
    numbers = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    assert f"There are {numbers[len(METHODS) - 1]} other methods" in words


def test_numbers_of_the_validation_are_the_same_in_the_example_and_in_its_paragraph():
    page = PAGES["docs/tutorials/risk_model.md"]
    predicted, observed, *ratio = re.search(
        r"# (\S+) % predicted, (\S+) % observed \(O/E (\S+), 95 % CI (\S+) to (\S+)\)", page
    ).groups()
    quote = " ".join(page.replace("\n> ", " ").split())
    assert f"risk was {predicted} % and {observed} % were observed" in quote
    assert "(O/E {}, 95 % CI {} to {})".format(*ratio) in quote.partition("In 569 patients")[2]
    slope = re.search(r"# slope (\S+) \(95 % CI (\S+) to (\S+)\)", page).groups()
    assert "slope was {} ({} to {})".format(*slope) in quote


def test_times_in_sentences_are_those_of_the_tables():
    seconds = {row[0]: row[1] for row in rows_of(SPEED) if len(row) == 4}
    call, demo = seconds["`ece`"], seconds["`fastece demo`"]
    assert f"{call} s for `ece` and {demo} s for the demo" in words_of("README.md")
    # "In one or two minutes"
    assert 60 < float(seconds["`fastece warmup`"]) < 120


def test_sentences_on_the_published_benchmark_are_those_of_its_table():
    rows = [row for row in rows_of(PUBLISHED_BENCHMARK) if row[0].isdecimal()]
    errors = {(row[0], row[1]): [float(cell) for cell in row[3:]] for row in rows}
    ratios = {case: cells[5] / min(cells[:5]) for case, cells in errors.items()}
    near = sum(ratio <= 1.1 for ratio in ratios.values())
    farther = sum(1.1 < ratio <= 1.4 for ratio in ratios.values())
    twice = sum(1.9 < ratio < 2.2 for ratio in ratios.values())
    assert near + farther + twice == len(ratios) == 20
    assert (
        f"in {near} of the 20 rows, 1.1 to 1.4 times in {farther}, and about twice in {twice}"
        in words_of(PUBLISHED_BENCHMARK)
    )
    assert (
        f"in {near} of 20 rows, up to 1.4 times in {farther}, and about twice in {twice}"
        in words_of(WHAT_TO_REPORT)
    )
    of_calibrated = [f"{ratios[n, 'calibrated']:.2f}" for n in ("200", "800", "3000", "10000")]
    text = "{}, {}, {} and {} times as far off".format(*of_calibrated)
    assert text in words_of(PUBLISHED_BENCHMARK)
    values = [errors[n, "calibrated"][5] / 1000 for n in ("200", "800", "10000")]
    text = "{:.3f} with 200, {:.3f} with 800 and {:.3f} with 10 000".format(*values)
    assert text in words_of("docs/explanation/bayes.md")


def test_level_of_the_test_with_groups_is_that_of_the_table():
    rows = [row for row in rows_of(COVERAGE) if len(row) == 12 and "." in row[-1]]
    rates = [float(cell) for row in rows if "." not in row[1] for cell in row[9:]]
    text = (
        f"in {min(rates):g} to {max(rates):g} % of 60 simulations of each of {len(rates)} cases "
        f"there, {np.mean(rates):.1f} % on average"
    )
    assert text in words_of("docs/explanation/tests.md")


def test_values_of_calibrated_models_are_those_of_the_table():
    rows = [coverage_of("Beta(5, 1.5), calibrated", n)[1] for n in ("100", "1000", "5000")]
    values = [f"{float(row[3]):.3f}" for row in rows]
    text = "{} on average with 100 rows, {} with 1000 and {} with 5000".format(*values)
    assert text in words_of("docs/explanation/bayes.md")


def test_coverage_of_the_bootstrap_is_the_same_on_all_pages():
    rows = {tuple(row[:2]): row for row in rows_of(COVERAGE, "1000") + rows_of(COVERAGE, "200")}
    share = rows["1000", "0"][3].removesuffix("%")
    assert f"in {share} % of 5000 simulations" in words_of("docs/how_to/intervals_and_p_values.md")
    calibrated = [row[5] for row in rows_of("docs/evidence/library_intervals.md", "0.00")]
    low, high = min(map(int, calibrated)), max(map(int, calibrated))
    for page in (
        "how_to/intervals_and_p_values",
        "how_to/bootstrap_study",
        "evidence/library_intervals",
    ):
        assert f"in {low} to {high} %" in words_of(f"docs/{page}.md")


def test_one_sentence_says_what_the_package_is():
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in ("mkdocs.yml", "recipe/recipe.yaml"):
        assert about["description"] in (ROOT / name).read_text(encoding="utf-8"), name


@pytest.mark.slow
def test_sentence_for_a_paper_has_the_numbers_of_the_demo(capsys):
    quote = section_of(WHAT_TO_REPORT, "A sentence for a paper").replace("\n> ", " ")
    quote = " ".join(quote.split())
    n = re.search(r"(\d+) test rows", quote)[1]
    estimate = re.search(r"rows\) is (\S+) \(95 % interval (\S+) to (\S+)\);", quote).groups()
    binned = re.search(r"width\) is (\S+) \((\S+) to (\S+), by test", quote).groups()
    p_value = re.search(r"reject it: p = (\S+)\. ", quote)[1]
    assert main(["demo", "--model", "network"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f": {n} rows, " in printed
    assert " ece_bayes {} [{}, {}] ".format(*estimate) in printed
    assert " ece {} [{}, {}] ".format(*binned) in printed
    assert f" test of calibration: p = {p_value}." in printed


def recommendations(page):
    """Rows of a test set, setting, estimator as the study names it, and its error in percent."""
    for rows, *cells in rows_of(page):
        if not rows.isdecimal() or "too few rows" in cells:
            continue
        for setting, words, error in zip(
            ("confidence", "classwise"), cells[::2], cells[1::2], strict=True
        ):
            name, bins = re.fullmatch(r'`"(\w+)"`(?:, `n_bins="?(\w+?)"?`)?', words).groups()
            yield int(rows), setting, f"{name}_{bins or 'silverman'}", float(error.strip(" %"))


def test_recommendations_are_those_of_the_study():
    errors = {}
    path = ROOT / "notebooks" / "data" / "corrected.csv"
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            curve = errors.setdefault((row["setting"], row["estimator"]), {})
            curve[int(row["n"])] = 100 * float(row["p95_relative_error"])
    rows = [*recommendations(ESTIMATORS)]
    assert len(rows) == 4
    for n, setting, name, error in rows:
        curve = errors[setting, name]
        assert np.interp(np.log(n), np.log([*curve]), [*curve.values()]) == pytest.approx(
            error, abs=0.7
        )


@pytest.mark.parametrize(
    ("page", "setting"), [("README.md", "confidence"), ("docs/evidence/study.md", "classwise")]
)
def test_tables_of_arenas_have_the_bayesian_curve_and_the_best_of_the_others(page, setting):
    errors = {}
    path = ROOT / "notebooks" / "data" / "arenas.csv"
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["setting"] == setting:
                found = errors.setdefault((row["n"], row["arena"]), {})
                found[row["estimator"]] = 100 * float(row["p95_relative_error"])
    rows = [row for row in rows_of(page) if row[0].isdecimal() and "ece_bayes" in row[1]]
    assert [row[0] for row in rows] == ["100", "200", "500", "2000", "5000"]
    for n, *cells in rows:
        for arena, cell in zip(("paper", "other mixtures", "real networks"), cells, strict=True):
            shown = {name: float(x) for name, x in re.findall(r"`(\S+)` (\d+) %", cell)}
            found = errors.get((n, arena), {})
            others = [name for name in found if name != "ece_bayes"]
            best = [min(others, key=found.get), "ece_bayes"] if found else []
            assert list(shown) == sorted(best, key=found.get)
            for name, error in shown.items():
                assert error == pytest.approx(found[name], abs=0.51)


def test_table_of_recalibration_maps_is_that_of_the_file():
    code = runpy.run_path(str(ROOT / "scripts" / "evidence" / "recalibration_maps.py"))
    section = section_of("docs/evidence/recalibration_maps.md", "Accuracy of recalibration methods")
    written = [line for line in section.splitlines() if line.startswith("|")]
    path = ROOT / "notebooks" / "data" / "recalibration_maps.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{**row, "n": int(row["n"])} for row in csv.DictReader(file)]
    assert written == [*code["lines_of"](rows)]


def test_how_to_pages_quote_the_tables_of_evidence():
    table = rows_of("docs/evidence/recalibration_maps.md", "binary")
    distance = {row[1]: row[6].strip("*") for row in table}  # with 500 rows
    words = words_of("docs/how_to/recalibration.md")
    monotone = distance["Bayesian curve, monotone"]
    assert f"was {monotone} ({distance['Bayesian curve']} with `monotone=False`)" in words
    assert f"isotonic regression had {distance['isotonic']}, beta" in words
    assert f"beta calibration {distance['beta']} and the scores" in words
    assert f"themselves {distance['no recalibration']} (" in words

    decisions = section_of("docs/evidence/decisions.md", "Gates").splitlines()
    gates = rows_in(line for line in decisions if "| 95 % |" in line)
    words = words_of("docs/how_to/gate.md")
    passes, fails = ([float(row[column]) for row in gates] for column in (3, 6))
    assert f"up to {max(passes):.0f} % (passes) and {max(fails)} % (fails)" in words

    section = section_of("docs/evidence/decisions.md", "Thresholds")
    laws = rows_in([line for line in section.splitlines() if line.startswith("|")][2:])
    words = words_of("docs/how_to/selective_prediction.md")
    assert f"in at most {max(float(x) for row in laws[:-1] for x in row[2:7])} % of 2000" in words
    assert f"kept on average {float(laws[-1][8]):.0f} points less" in words
    assert f"Over {len(laws) - 1} laws" in words

    section = section_of(COVERAGE, "Soft labels and votes")
    votes = rows_in([line for line in section.splitlines() if line.startswith("|")][2:])
    cells = [int(x) for row in votes for x in row[2:8]]
    words = words_of("docs/how_to/soft_labels.md")
    assert f"in {min(cells)} to {max(cells)} % of samples" in words


def test_page_on_the_code_names_every_room():
    floors = [row for row in rows_of(CODE) if len(row) == 3 and "`" in row[1]]
    named = {room.rstrip("/") for row in floors for room in re.findall(r"`([\w./]+)`", row[1])}
    rooms = {path.name for path in (ROOT / "fastece").iterdir() if path.name[0] not in "_."}
    assert rooms - {"py.typed"} == named


def test_benchmarks_named_on_their_page_exist():
    folder = ROOT / "asv_benchmarks"
    page = (folder / "README.md").read_text(encoding="utf-8")
    files = {path.name: path for path in (folder / "benchmarks").glob("[a-z]*.py")}
    measured = page.partition("## What is measured")[2]
    shared = {"baselines.py", "common.py", "opponents.py"}
    assert set(re.findall(r"\| `(\w+\.py)` \|", measured)) == set(files) - shared
    for line in re.findall(r"\| `\w+\.py` \|.*", measured):
        name, *classes = re.findall(r"`(\w+\.py|[A-Z]\w+)`", line)
        defined = re.findall(r"^class (\w+)", files[name].read_text(encoding="utf-8"), re.MULTILINE)
        assert classes == defined


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Minutes, so that it runs before a release alone; its small run is a slow test.
LONG = ROOT / "notebooks" / "05_recalibration.ipynb"


def run_notebook(path, capsys):
    """The code cells of a notebook with what they print and their values, and what they define."""
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
    return done, scope


def printed_in(cell):
    """The text that a notebook shows as printed by a cell."""
    return "".join(
        "".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(x, id=x.stem, marks=[pytest.mark.slow, pytest.mark.long] if x == LONG else [])
        for x in NOTEBOOKS
    ],
)
def test_notebooks_show_what_their_code_gives(path, capsys):
    for cell, printed, value in run_notebook(path, capsys)[0]:
        assert printed_in(cell) == printed
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                assert "".join(output["data"]["text/plain"]) == repr(value)


def measured(text):
    """The words of the lines of an output, without intervals and what depends on them."""
    lines = [line for line in text.splitlines() if " sure " not in line]
    return [re.sub(r"\([^)]*\)|, surely .*", "", line).split() for line in lines]


@pytest.mark.slow
def test_the_long_notebook_runs_small_and_measures_what_it_shows(monkeypatch, capsys, tmp_path):
    """Its intervals and its noisy labels, which take minutes, are seen by the long test alone."""
    monkeypatch.setenv("FASTECE_NOTEBOOK", "small")
    cells, scope = run_notebook(LONG, capsys)
    compared = 0
    for cell, printed, _ in cells:
        if "grows" not in "".join(cell["source"]):
            assert measured(printed) == measured(printed_in(cell))
            compared += bool(printed)
    assert compared == 6
    kept = ROOT / "notebooks" / "data" / "recalibration_cifar10.csv"
    with kept.open(encoding="utf-8", newline="") as file:
        rows = [*csv.reader(file)][1:]
    figures = {tuple(row[:3]): tuple(map(float, row[3:])) for row in rows}
    assert list(figures) == list(scope["figures"]["digits, neural network"])
    code = runpy.run_path(str(ROOT / "scripts" / "evidence" / "recalibrate_cifar10.py"))
    assert "figures_of" in code["notebook_functions"]()
    code["write"](tmp_path / "again.csv", figures)
    assert (tmp_path / "again.csv").read_bytes() == kept.read_bytes()


def printed_by(name, *options):
    """The lines that a script prints."""
    command = [sys.executable, ROOT / "scripts" / "evidence" / name, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_table_of_coverage_is_what_the_script_prints():
    section = section_of(COVERAGE, "The bootstrap")
    table = [x for x in section.splitlines() if x.startswith("|")]
    options = ["--simulations", "4", "--replicates", "40", "--sizes", "200", "--threads", "1"]
    printed = printed_by("interval_coverage.py", *options)
    assert printed[:2] == table[:2]
    # one block of rows of the page: the same cases, other numbers
    cases = [[cell.strip() for cell in line.split("|")[1:3]] for line in printed[2:]]
    assert cases == [["200", "0"], ["200", "0.02"], ["200", "0.06"]]
    assert len(table) == 2 + 3 * 3
    assert {line.count("|") for line in [*table, *printed]} == {table[0].count("|")}


@pytest.mark.slow
def test_table_of_a_million_replicates_has_the_workers_of_the_script():
    page = PAGES["docs/how_to/bootstrap_study.md"]
    (written,) = re.findall(r"^\| workers \|.*\n(?:\|.*\n)+", page, re.MULTILINE)
    printed = printed_by("million_replicates.py", "2000")
    head, *rows = rows_in(written.splitlines())
    assert head == ["workers", "seconds", "µs a replicate"]
    assert [row[0] for row in rows[1:]] == [row[0] for row in rows_in(printed)[2:6]]
    for _, seconds, microseconds in rows[1:]:
        assert float(seconds) == pytest.approx(float(microseconds), abs=0.06)


def rows_in(lines):
    """The cells of the lines of a table."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


@pytest.fixture
def evidence(monkeypatch, capsys):
    """Import a script of `scripts/evidence`, and run it with smaller constants."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "evidence"))

    def printed(script, *options, **constants):
        for name, value in constants.items():
            monkeypatch.setattr(script, name, value)
        monkeypatch.setattr(sys, "argv", [script.__name__, *options])
        script.main()
        return capsys.readouterr().out.splitlines()

    return printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "heading", "name", "sizes"),
    [
        (
            COVERAGE,
            "Correlated rows",
            "group_coverage",
            ("GROUPS", "ROWS"),
        ),
        (COVERAGE, "Soft labels and votes", "soft_coverage", ("ROWS", "VOTES")),
    ],
)
def test_tables_of_groups_and_votes_have_the_cases_of_the_script(
    page, heading, name, sizes, evidence
):
    table = [x for x in section_of(page, heading).splitlines() if x.startswith("|")]
    script = importlib.import_module(name)
    cases = product(*(getattr(script, size) for size in sizes))
    assert [row[:2] for row in rows_in(table[2:])] == [[f"{a}", f"{b}"] for a, b in cases]
    smallest = {size: getattr(script, size)[:1] for size in sizes}
    options = ["--simulations", "1", "--resamples", "9", "--jobs", "1"]
    printed = evidence(script, *options, **smallest)
    assert printed[:2] == table[:2]
    (row,) = rows_in(printed[2:])
    assert row[:2] == rows_in(table)[2][:2]
    assert len(row) == len(rows_in(table)[2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "heading", "streams"),
    [
        ("alarms", "What is promised, and when", 20),
        ("days", "How soon it notices", 1),
        ("speed", "Batches", 1),
    ],
)
def test_tables_of_the_monitor_have_the_cases_of_the_script(table, heading, streams):
    section = section_of("docs/how_to/monitor.md", heading)
    written = [line for line in section.splitlines() if line.startswith("|")]
    options = [table, "--streams", str(streams), "--jobs", "1"]
    printed = printed_by("monitor_days.py", *options)
    assert printed[:2] == written[:2]
    assert [x.split("|")[1:3] for x in printed] == [x.split("|")[1:3] for x in written]
    if table == "alarms":
        *rows, total = [[int(x) for x in line.split("|")[3:5]] for line in written[2:]]
        assert total == [sum(column) for column in zip(*rows, strict=True)]
        assert total[1] <= 0.05 * total[0]


@pytest.mark.parametrize(
    ("script", "heading", "tables"),
    [
        ("estimate_coverage.py", "`estimate`", ["shapes", "shapes"]),
        ("estimate_coverage.py", "Comparisons of binned errors", ["pairs", "equal_pairs"]),
        ("compare_coverage.py", "`compare`", ["compared_pairs"]),
    ],
)
def test_tables_of_coverage_have_the_cases_of_the_script(script, heading, tables, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "evidence"))
    code = runpy.run_path(str(ROOT / "scripts" / "evidence" / script))
    section = section_of(COVERAGE, heading)
    written = re.findall(r"(?:^\|.*\n)+", section + "\n", re.MULTILINE)
    for lines, cases in zip(written, tables, strict=True):
        names = [line.split("|")[1].strip() for line in lines.splitlines()[2:]]
        assert list(dict.fromkeys(names)) == [case.name for case in code[cases]()]


def test_wide_comparisons_are_those_that_the_table_shows_as_wide():
    lines = [x for x in section_of(COVERAGE, "`compare`").splitlines() if x.startswith("|")]
    sizes = ("300", "1000", "3000")
    wide = [
        (row[0], n)
        for row in rows_in(lines[2:])
        for n, width in zip(sizes, row[4::3], strict=True)
        if float(width) > 2.1
    ]
    section = section_of(COVERAGE, "Comparisons with wide intervals")
    table = rows_in([x for x in section.splitlines() if x.startswith("|")][2:])
    assert [(row[0], row[1]) for row in table] == wide
    stretched = [float(row[5]) for row in table]
    n_below = sum(x < 2.1 for x in stretched)
    assert f"In this unit {n_below} of the {len(table)} cells are below 2.1" in section
    means = [sum(float(row[k]) for row in table) / len(table) for k in (4, 5)]
    assert "falls from {:.2f} to {:.2f}".format(*means) in section


@pytest.mark.slow
def test_table_of_promises_has_the_laws_of_the_script(evidence):
    section = section_of("docs/evidence/decisions.md", "Thresholds")
    table = [x for x in section.splitlines() if x.startswith("|")]
    script = importlib.import_module("threshold_promises")
    # The best coverage is that of two million rows, to which twenty thousand come close.
    small = {"POPULATION": 20_000, "ProcessPoolExecutor": ThreadPoolExecutor}
    printed = evidence(script, "--simulations", "1", "--jobs", "1", **small)
    assert printed[:2] == table[:2]
    found, written = rows_in(printed[2:-1]), rows_in(table[2:-1])
    assert [row[0] for row in found] == [row[0] for row in written]
    coverages = [int(row[1]) for row in written]
    assert [int(row[1]) for row in found] == pytest.approx(coverages, abs=5)
    assert rows_in(printed[-1:])[0][0] == rows_in(table[-1:])[0][0] == "mean"


@pytest.mark.slow
def test_table_of_the_published_benchmark_has_the_cases_of_the_script():
    text = (ROOT / PUBLISHED_BENCHMARK).read_text(encoding="utf-8")
    table = [x for x in text.splitlines() if x.startswith("|")][7:]
    printed = printed_by("published_benchmark.py", "--samples", "1", "--jobs", "1")
    assert printed[:2] == table[:2]
    assert [x.split("|")[1:4] for x in printed] == [x.split("|")[1:4] for x in table]


def test_table_of_other_libraries_has_the_cases_of_the_script():
    code = runpy.run_path(str(ROOT / "scripts" / "evidence" / "library_intervals.py"))
    text = (ROOT / "docs/evidence/library_intervals.md").read_text(encoding="utf-8")
    table = [[x.strip() for x in y.split("|")[1:-1]] for y in text.splitlines() if y[:1] == "|"]
    cases = product(code["ERRORS"], code["LAWS"], code["SIZES"])
    assert [row[:3] for row in table[2:]] == [[f"{e:.2f}", law, f"{n}"] for e, law, n in cases]
    assert table[0][3:] == [*code["HEAD"]]


@pytest.mark.slow
def test_the_script_of_coverage_prints_tables():
    tables = {
        "estimate": 10,
        "posterior": 10,
        "compare": 20,
        "alarms": 6,
        "direction": 10,
        "slices": 2,
    }
    for table, lines in tables.items():
        options = [table, "--simulations", "1", "--replicates", "9", "--sizes", "50"]
        assert len(printed_by("estimate_coverage.py", *options)) == 2 + lines


def test_table_of_means_over_classes_has_the_cases_of_the_script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "evidence"))
    code = runpy.run_path(str(ROOT / "scripts" / "evidence" / "class_coverage.py"))
    section = section_of(COVERAGE, "Means over classes")
    head, _, *rows = rows_in([x for x in section.splitlines() if x.startswith("|")])
    assert head == [*code["HEAD"]]
    cases = product(code["SIZES"], code["MODELS"])
    assert [row[:4] for row in rows] == [[model, *map(str, size)] for size, model in cases]
    coverages = [float(row[6]) for row in rows]
    assert f"{np.mean(coverages):.1f} % of the samples" in " ".join(section.split())
    assert f"and in {min(coverages):.1f} % in the lowest cell" in " ".join(section.split())


@pytest.mark.slow
def test_script_of_means_over_classes_prints_its_table(evidence):
    script = importlib.import_module("class_coverage")
    printed = evidence(script, SIZES=(script.Size(3, 100, 2),), REFERENCE=2000)
    assert len(printed) == 2 + len(script.MODELS)


POSSIBLE = "docs/evidence/how_far_from_possible.md"


@pytest.mark.parametrize(
    ("heading", "script", "cases", "sizes"),
    [
        ("Intervals", "possible_widths", "models", "SIZES"),
        ("Tests", "best_power", "alternatives", None),
    ],
)
def test_tables_of_the_possible_have_the_cases_of_the_scripts(
    heading, script, cases, sizes, monkeypatch
):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "evidence"))
    code = runpy.run_path(str(ROOT / "scripts" / "evidence" / f"{script}.py"))
    table = [x for x in section_of(POSSIBLE, heading).splitlines() if x.startswith("| ")]
    head, _, *rows = rows_in(table)
    assert head == [*code["HEAD"]]
    names = [model.name for model in code[cases]()]
    if sizes is None:
        assert [row[0] for row in rows] == names
    else:
        assert [row[:2] for row in rows] == [[a, f"{n}"] for a, n in product(names, code[sizes])]


def test_ratios_to_the_bounds_are_those_of_their_table():
    for _, _, _, *figures, _ in rows_of(POSSIBLE, "")[2:17]:
        smooth, blocks, width, over_smooth, over_blocks = map(float, figures)
        assert smooth <= blocks
        assert over_smooth == pytest.approx(width / smooth, rel=0.02)
        assert over_blocks == pytest.approx(width / blocks, rel=0.02)


@pytest.mark.slow
def test_scripts_of_the_possible_print_their_tables(evidence):
    widths = importlib.import_module("possible_widths")
    small = {"DRAWS": 200, "DRAWS_TO_CHOOSE": 100, "PLACES": 3, "SAMPLES": 1, "SIZES": (200,)}
    assert len(evidence(widths, **small)) == 2 + len(widths.models())
    power = importlib.import_module("best_power")
    assert len(evidence(power, DRAWS=200, SAMPLES=1)) == 2 + len(power.alternatives())


def test_best_power_is_the_power_of_the_exact_test(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "evidence"))
    script = importlib.import_module("possible_widths")
    n, null, drawn = 60, 0.5, 0.65
    hits = np.random.default_rng(0).binomial(n, drawn, 100_000)
    ratio = (null / drawn) ** hits * ((1 - null) / (1 - drawn)) ** (n - hits)
    # The exact test rejects many hits, and at the last number some of the samples.
    first = binom.ppf(0.95, n, null)
    share = (0.05 - binom.sf(first, n, null)) / binom.pmf(first, n, null)
    exact = binom.sf(first, n, drawn) + share * binom.pmf(first, n, drawn)
    assert script.best_power(ratio) == pytest.approx(exact, abs=0.005)


@pytest.mark.parametrize("error", [0.01, 0.03, 0.08])
def test_curves_of_a_bound_have_its_error(error, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "evidence"))
    script = importlib.import_module("possible_widths")
    score = script.quantile_scores()
    for model in script.models():
        problem = script.Problem(score, model.curve(score) - score, 1000)
        *_, largest_mixture = script.smooth_mixtures(problem, error)
        gaps = [*largest_mixture.args[0]]
        for mixture in script.block_mixtures(problem, error):
            gaps += mixture.args[:2]
        for gap in gaps:
            assert np.abs(gap).mean() == pytest.approx(error, rel=1e-6)
            assert 0 < (score + gap).min() < (score + gap).max() < 1
