"""What the package says of itself to indexes, archives, workflows and programs is the same."""

import json
import os
import re
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece.cli import main

ROOT = Path(__file__).parents[1]
with (ROOT / "pyproject.toml").open("rb") as file:
    PYPROJECT = tomllib.load(file)
PROJECT = PYPROJECT["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
README, CI, PAPER, BIB, CITATION = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", ".ci/run", "paper.md", "paper.bib", "CITATION.cff")
)
SKILL = ROOT / "fastece" / ".agents" / "skills" / "fastece" / "SKILL.md"
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def read_yaml(name):
    return pytest.importorskip("yaml").safe_load((ROOT / name).read_text(encoding="utf-8"))


def read_json(name):
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def cited(key):
    """A field at the top of CITATION.cff."""
    return re.search(rf"^{key}: (.+)", CITATION, re.MULTILINE)[1]


def has_in_the_sdist(path):
    """Whether a file is in the sdist, by the patterns of pyproject.toml."""
    target = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]
    return any(
        fnmatch(f"/{path}", pattern) or f"/{path}".startswith(f"{pattern}/")
        for pattern in target["include"]
    ) and not any(f"/{path}".startswith(pattern) for pattern in target["exclude"])


def test_addresses_of_the_project_are_in_its_repository():
    assert cited("repository-code") == REPOSITORY
    assert {"Homepage", "Documentation", "Issues", "Changelog"} <= set(PROJECT["urls"])
    for url in PROJECT["urls"].values():
        assert url.startswith(REPOSITORY)
        path = re.sub(r"^/(blob|tree)/main/", "", url.removeprefix(REPOSITORY))
        assert path in ("", "/issues") or (ROOT / path).exists(), url


def test_classifiers_are_known_and_name_what_is_tested():
    found = PROJECT["classifiers"]
    assert len({*found}) == len(found)
    assert found == sorted(found, key=lambda name: [part.strip() for part in name.split("::")])
    assert not [name for name in found if name.startswith("License")]  # `license` says it
    trove = pytest.importorskip("trove_classifiers")
    assert {*found} <= trove.classifiers


# --- workflows ----------------------------------------------------------------------------------

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# Commands of the README, and the scripts that hold all others.
COMMANDS = {*re.findall(r"^python3 -m venv .*", README, re.MULTILINE)}
COMMANDS |= {".ci/run", ".ci/run dist", ".ci/wheel dist"}


@pytest.mark.parametrize("path", [pytest.param(x, id=x.stem) for x in WORKFLOWS])
def test_workflows_run_commands_of_the_readme_and_of_ci(path):
    flow = read_yaml(path.relative_to(ROOT))
    assert flow["permissions"] == {"contents": "read"}
    for job in flow["jobs"].values():
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert step.get("run", ".ci/run") in COMMANDS
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v1)", step.get("uses", "a/b@v1"))
    assert all(os.access(ROOT / ".ci" / name, os.X_OK) for name in ("run", "wheel"))


def test_quick_tests_run_on_every_version_of_python_that_is_named():
    flow = read_yaml(".github/workflows/tests.yml")
    assert flow["jobs"]["quick"]["strategy"]["matrix"]["python"] == PYTHONS


def test_what_is_published_is_what_was_tested_with_attestations():
    flow = read_yaml(".github/workflows/release.yml")
    build, publish = flow["jobs"]["build"], flow["jobs"]["publish"]
    assert [step["run"] for step in build["steps"] if "run" in step] == [".ci/run dist"]
    assert "dist=${1:-" in CI
    wheels = flow["jobs"]["wheels"]
    assert [step["run"] for step in wheels["steps"] if "run" in step] == [".ci/wheel dist"]
    assert set(wheels["strategy"]["matrix"]["python"]) <= set(PYTHONS)
    assert publish["needs"] == ["build", "wheels"]
    assert publish["permissions"] == {"attestations": "write", "id-token": "write"}
    assert not [step for step in publish["steps"] if "run" in step]
    assert publish["steps"][-1]["with"] == {"attestations": True}
    assert "secrets" not in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    actions = read_yaml(".github/dependabot.yml")
    assert {x["package-ecosystem"] for x in actions["updates"]} == {"github-actions", "pip"}


def test_hooks_before_commits_are_the_checks_of_ci():
    (local,) = read_yaml(".pre-commit-config.yaml")["repos"]
    checks = re.findall(r'^"\$bin/(ruff|mypy)"(.*)', CI, re.MULTILINE)
    assert [hook["entry"] for hook in local["hooks"]] == [program + x for program, x in checks]
    assert all(hook["language"] == "system" for hook in local["hooks"])


# --- metadata -----------------------------------------------------------------------------------


def test_the_recipe_of_conda_has_the_dependencies_of_the_project():
    recipe = read_yaml("recipe/recipe.yaml")
    least = PROJECT["requires-python"].removeprefix(">=")
    assert recipe["context"] == {"version": fastece.__version__, "python_min": least}
    assert recipe["package"]["name"] == PROJECT["name"]
    python, *others = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert [one.replace(" ", "") for one in others] == PROJECT["dependencies"]
    assert {*PYPROJECT["build-system"]["requires"]} <= {*recipe["requirements"]["host"]}
    entries = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == entries
    about = recipe["about"]
    assert about["summary"] == PROJECT["description"]
    assert [about["license_file"]] == PROJECT["license-files"]
    assert [about["license"], about["repository"]] == [PROJECT["license"], REPOSITORY]
    assert about["documentation"] == PROJECT["urls"]["Documentation"]


def test_the_recipe_of_conda_is_valid():
    rattler_build = pytest.importorskip("rattler_build")
    recipe = rattler_build.Stage0Recipe.from_file(str(ROOT / "recipe" / "recipe.yaml"))
    (rendered,) = recipe.render()
    assert rendered.recipe.package.version == fastece.__version__


def test_metadata_of_archives_are_those_of_the_project():
    code, zenodo = read_json("codemeta.json"), read_json(".zenodo.json")
    assert code["name"] == zenodo["title"] == cited("title") == PROJECT["name"]
    assert code["version"] == zenodo["version"] == fastece.__version__
    assert code["dateModified"] == cited("date-released")
    assert code["description"] == PROJECT["description"]
    abstract = re.search(r"abstract: >-\n((?:  .*\n)+)", CITATION)[1]
    assert zenodo["description"] == " ".join(abstract.split())
    assert code["keywords"] == zenodo["keywords"] == PROJECT["keywords"]
    assert code["softwareRequirements"] == PROJECT["dependencies"]
    assert code["runtimePlatform"] == f"Python {PROJECT['requires-python']}"
    assert [code["codeRepository"], code["issueTracker"]] == [
        REPOSITORY, PROJECT["urls"]["Issues"],
    ]  # fmt: skip
    assert code["license"].endswith(f"/{zenodo['license']}")
    assert zenodo["license"] == PROJECT["license"]
    authors = re.findall(r"^  - name: (.+)", CITATION, re.MULTILINE)
    assert [x["name"] for x in code["author"]] == [x["name"] for x in zenodo["creators"]] == authors
    assert re.search(r"^authors:\n  - name: (.+)", PAPER, re.MULTILINE)[1] == authors[0]
    doi = re.search(r"doi: (.+)", CITATION)[1]
    assert code["referencePublication"]["identifier"] == f"https://doi.org/{doi}"
    assert f"doi = {{{doi}}}" in BIB
    assert doi in [x["identifier"] for x in zenodo["related_identifiers"]]


def test_the_readme_cites_what_the_citation_file_has():
    (entry,) = re.findall(r"```bibtex\n@software\{fastece,\n(.*?)\n\}\n```", README, re.DOTALL)
    fields = dict(re.findall(r"^  (\w+) = \{(.*)\},?$", entry, re.MULTILINE))
    author = re.search(r"^  - name: (.+)", CITATION, re.MULTILINE)[1]
    assert fields == {
        "title": cited("title"),
        "author": author,
        "version": cited("version"),
        "year": cited("date-released")[:4],
        "url": cited("repository-code"),
    }
    doi = re.search(r"doi: (.+)", CITATION)[1]
    assert f"(https://doi.org/{doi})" in README


def test_the_paper_cites_what_its_bibliography_has():
    keys = re.findall(r"^@\w+\{(\w+),", BIB, re.MULTILINE)
    assert len({*keys}) == len(keys)
    assert {*keys} == {*re.findall(r"@(\w+)", PAPER.partition("# Summary")[2])}
    for entry in BIB.split("\n\n"):
        fields = dict(re.findall(r"^  (\w+) = \{(.*)\},?$", entry, re.MULTILINE))
        assert {"author", "title", "year"} <= set(fields), entry
        assert {"journal", "booktitle"} & set(fields), entry
    yaml = pytest.importorskip("yaml")
    head = yaml.safe_load(PAPER.split("---\n")[1])
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} == set(head)
    assert re.findall(r"^# (.*)", PAPER, re.MULTILINE)[:2] == ["Summary", "Statement of need"]
    assert "# References" in PAPER
    assert 250 <= len(PAPER.partition("# Summary")[2].split()) <= 1000


def test_links_of_the_readme_hold_on_an_index_and_in_the_sdist():
    links = re.findall(r"\]\((\S*?)\)", README)
    for link in links:
        path = link.partition("#")[0]
        assert link.startswith("https://") or has_in_the_sdist(path), link
    raw = REPOSITORY.replace("github.com", "raw.githubusercontent.com") + "/main/"
    pictures = re.findall(r"!\[[^]]*\]\((\S*?)\)", README)
    assert pictures
    for picture in pictures:  # an index shows no other
        assert (ROOT / picture.removeprefix(raw)).is_file(), picture
        assert picture.startswith(raw)


# --- the skill ----------------------------------------------------------------------------------


def test_the_skill_is_named_like_its_folder():
    head = dict(re.findall(r"^(\w+): (.+)", SKILL.read_text("utf-8").split("---\n")[1], re.M))
    assert head["name"] == SKILL.parent.name == PROJECT["name"]
    assert 50 < len(head["description"]) <= 1024
    assert head["license"] == PROJECT["license"]


@pytest.mark.slow
def test_commands_of_the_skill_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.beta(5, 1.5, size=300)
    y = rng.random(300) < p
    for name, scores in (("predictions", p), ("old", p), ("new", p**2)):
        rows = (f"{hit},{score}\n" for hit, score in zip(y.astype(int), scores, strict=True))
        Path(f"{name}.csv").write_text("y_true,y_prob\n" + "".join(rows), encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", SKILL.read_text("utf-8"), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    assert {shlex.split(line)[1] for line in commands} >= {"report", "compare", "check"}
    for line in commands:
        program, *arguments = shlex.split(line)
        assert program == "fastece"
        assert main(arguments) in ((0, 1, 3) if arguments[0] == "check" else (0,)), line
        assert capsys.readouterr().out, line
    assert Path("recalibrated.csv").stat().st_size


def test_a_wheel_takes_the_skill_along():
    files = [path for path in (ROOT / "fastece").rglob("*") if path.is_file()]
    assert SKILL in files
    assert "exclude" not in PYPROJECT["tool"]["hatch"]["build"]["targets"].get("wheel", {})
