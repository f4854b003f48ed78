"""What is released: one version everywhere, the changelog, the metadata, the issue forms."""

import inspect
import re
import runpy
import tomllib
from datetime import date
from pathlib import Path

import pytest

import fastece

ROOT = Path(__file__).parents[1]
with (ROOT / "pyproject.toml").open("rb") as file:
    PYPROJECT = tomllib.load(file)
PROJECT = PYPROJECT["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^## (.*)", CHANGELOG, re.MULTILINE)
RELEASES = [heading.split(" - ") for heading in HEADINGS if heading != "Unreleased"]
# Of Keep a Changelog.
KINDS = {"Breaking changes", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def numbers(version):
    return tuple(map(int, version.split(".")))


def test_the_version_stands_in_one_place():
    assert "version" not in PROJECT
    assert "version" in PROJECT["dynamic"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "fastece/__init__.py"
    source = Path(fastece.__file__).read_text(encoding="utf-8")
    assert source.count(fastece.__version__) == 1
    for path in Path(fastece.__file__).parent.rglob("*.py"):
        if path.name != "__init__.py":
            assert f'"{fastece.__version__}"' not in path.read_text(encoding="utf-8"), path


def test_the_changelog_has_the_version_on_top():
    assert RELEASES[0][0] == fastece.__version__
    assert "Unreleased" not in HEADINGS[1:]


def test_versions_of_the_changelog_go_back_in_time():
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version, _ in RELEASES)
    assert [v for v, _ in RELEASES] == sorted((v for v, _ in RELEASES), key=numbers, reverse=True)
    days = [date.fromisoformat(day) for _, day in RELEASES]
    assert days == sorted(days, reverse=True)
    assert len({version for version, _ in RELEASES}) == len(RELEASES)


def test_the_changelog_says_something_of_each_version_by_kind():
    for section in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        heading, *parts = re.split(r"^### ", section, flags=re.MULTILINE)
        kinds = [part.partition("\n")[0] for part in parts]
        assert set(kinds) <= KINDS, heading
        assert len(set(kinds)) == len(kinds), heading
        assert parts or heading.startswith("Unreleased")
        for part in parts:
            assert re.search(r"^- \S", part, re.MULTILINE), part


def test_the_citation_is_of_the_latest_release():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    top = dict(re.findall(r"^([\w-]+): (.+)", citation, re.MULTILINE))
    assert [top["version"], top["date-released"]] == RELEASES[0]
    assert top["cff-version"] == "1.2.0"
    assert top["title"] == PROJECT["name"]
    assert top["license"] == PROJECT["license"]
    assert "Posocco" in citation


def test_versions_of_python_have_no_gap_and_begin_with_the_lowest_that_is_allowed():
    named = [
        int(name.rpartition(".")[2])
        for name in PROJECT["classifiers"]
        if name.startswith("Programming Language :: Python :: 3.")
    ]
    assert PROJECT["requires-python"] == f">=3.{named[0]}"
    assert named == [*range(named[0], named[-1] + 1)]
    assert PYPROJECT["tool"]["ruff"]["target-version"] == f"py3{named[0]}"


def test_every_dependency_has_a_lower_bound():
    extras = PROJECT["optional-dependencies"]
    lists = [PROJECT["dependencies"], *extras.values(), *PYPROJECT["dependency-groups"].values()]
    for wanted in [one for requirements in lists for one in requirements]:
        if isinstance(wanted, dict):
            assert wanted["include-group"] in PYPROJECT["dependency-groups"]
        elif wanted.startswith("fastece"):
            own = re.fullmatch(r"fastece\[([\w,]+)\]", wanted)
            assert set(own[1].split(",")) <= set(extras)
        else:
            assert re.match(r"[\w-]+(\[[\w,]+\])?[>=]=\d", wanted), wanted


def test_extras_that_messages_and_pages_name_exist():
    folders = [(ROOT / "fastece").rglob("*.py"), (ROOT / "docs").rglob("*.md"), ROOT.glob("*.md")]
    named = {
        extra
        for paths in folders
        for path in paths
        for found in re.findall(
            r"pip install (?:-e )?'?(?:fastece|\.)\[([\w,]+)\]", path.read_text(encoding="utf-8")
        )
        for extra in found.split(",")
    }
    assert {"plot", "report", "study", "all"} <= named <= set(PROJECT["optional-dependencies"])


def test_extras_are_for_users_and_tools_are_groups():
    groups = PYPROJECT["dependency-groups"]
    assert set(groups) == {"test", "docs", "dev", "peers", "opponents"}
    assert not set(groups) & set(PROJECT["optional-dependencies"])
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / ".ci" / "run"]
    pages += [*(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.yml")]
    texts = (path.read_text(encoding="utf-8") for path in pages)
    assert {name for text in texts for name in re.findall(r"--group (\w+)", text)} == set(groups)


def test_the_smoke_test_calls_every_public_function():
    functions = {name for name in fastece.__all__ if inspect.isfunction(getattr(fastece, name))}
    smoke = runpy.run_path(str(ROOT / "tests" / "smoke.py"))
    assert {*smoke["CALLS"], *smoke["PLOTS"]} == functions


FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
# Keys that each kind of entry needs.
ENTRIES = {
    "markdown": {"value"}, "textarea": {"label"}, "input": {"label"},
    "checkboxes": {"label", "options"}, "dropdown": {"label", "options"},
}  # fmt: skip


@pytest.mark.parametrize("path", [pytest.param(x, id=x.stem) for x in FORMS])
def test_issue_forms_are_valid(path):
    yaml = pytest.importorskip("yaml")
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(form) == {"name", "description", "title", "labels", "body"}
    asked = [entry for entry in form["body"] if entry["type"] != "markdown"]
    assert asked
    assert len({entry["id"] for entry in asked}) == len(asked)
    for entry in form["body"]:
        assert ENTRIES[entry["type"]] <= set(entry["attributes"])
        assert set(entry) <= {"type", "id", "attributes", "validations"}
