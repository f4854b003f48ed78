"""What the package says of itself to indexes, archives, workflows and programs is the same."""

import json
import os
import re
import shlex
import subprocess
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
PAGES = PROJECT["urls"]["Documentation"]
README, CI, CITATION = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", ".ci/run", "CITATION.cff")
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


def addresses_in(text):
    """All addresses of the project, of whichever owner: of its repository and of its pages."""
    return re.findall(
        r"https?://[\w.-]*git(?:hub)?[\w.-]*/(?:[\w.-]+/)?fastece\b[^\s\"')>}\]]*", text
    )


def test_every_address_of_the_project_is_that_of_pyproject():
    folders = [ROOT / x for x in (".github", "docs", "fastece", "notebooks", "recipe", "scripts")]
    paths = [path for path in ROOT.iterdir() if path.suffix in (".md", ".cff", ".json", ".yml")]
    paths += [path for folder in folders for path in folder.rglob("*")]
    kinds = {".md", ".cff", ".json", ".yml", ".yaml", ".py", ".html", ".ipynb", ".toml"}
    named = set()
    for path in [*paths, ROOT / "pyproject.toml"]:
        if path.suffix in kinds:
            for address in addresses_in(path.read_text(encoding="utf-8")):
                assert address.startswith((REPOSITORY, PAGES)), (path, address)
                named.add(path.name)
    assert {"README.md", "SECURITY.md", "CITATION.cff", "recipe.yaml", "mkdocs.yml"} <= named


def test_addresses_of_an_index_are_in_the_repository_or_its_pages():
    urls = PROJECT["urls"]
    assert set(urls) == {"Homepage", "Documentation", "Repository", "Issues", "Changelog"}
    owner = REPOSITORY.removeprefix("https://github.com/").removesuffix("/fastece")
    assert urls["Documentation"] == f"https://{owner}.github.io/fastece/"
    for url in {*urls.values()} - {urls["Documentation"]}:
        assert url.startswith(REPOSITORY)
        path = url.removeprefix(REPOSITORY).removeprefix("/blob/main/")
        assert path in ("", "/issues") or (ROOT / path).is_file(), url


def test_private_reports_go_to_the_form_of_the_host():
    form = f"{REPOSITORY}/security/advisories/new"
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", ".github/ISSUE_TEMPLATE/config.yml"):
        assert form in (ROOT / name).read_text(encoding="utf-8"), name


def test_the_site_knows_where_it_is_and_where_its_pages_are_edited():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    top = dict(re.findall(r"^(\w+): (.+)", text, re.MULTILINE))
    assert [top["site_url"], top["repo_url"]] == [PAGES, REPOSITORY]
    assert top["edit_uri"] == f"edit/main/{top['docs_dir']}/"


def test_classifiers_are_known_and_name_what_is_tested():
    found = PROJECT["classifiers"]
    assert len({*found}) == len(found)
    assert found == sorted(found, key=lambda name: [part.strip() for part in name.split("::")])
    assert not [name for name in found if name.startswith("License")]  # `license` says it
    trove = pytest.importorskip("trove_classifiers")
    assert {*found} <= trove.classifiers


# --- workflows ----------------------------------------------------------------------------------

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CODE = (ROOT / "docs" / "contributing" / "code.md").read_text(encoding="utf-8")
# Commands of pages, which begin with a new environment, and the scripts that hold all others.
COMMANDS = {*re.findall(r"^python3 -m venv .*", README + CODE, re.MULTILINE)}
COMMANDS |= {x.replace("python3", "python").replace("/bin/", "/Scripts/") for x in COMMANDS}
COMMANDS |= {".ci/run", ".ci/run dist", ".ci/wheel dist", '.ci/tag "$GITHUB_REF_NAME"'}
# A commit with the version that it is of, which dependabot moves together.
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
BY_VERSION = re.compile(r"actions/[\w-]*pages[\w-]*@v\d+  # zizmor: ignore\[unpinned-uses\]")


def scripts_of(job):
    return [step["run"] for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("path", [pytest.param(x, id=x.stem) for x in WORKFLOWS])
def test_workflows_run_commands_of_pages_and_of_ci(path):
    flow = read_yaml(path.relative_to(ROOT))
    assert flow["permissions"] == {"contents": "read"}
    for job in flow["jobs"].values():
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
        assert {*scripts_of(job)} <= COMMANDS
    assert all(os.access(ROOT / ".ci" / name, os.X_OK) for name in ("run", "tag", "wheel"))


@pytest.mark.parametrize("path", [pytest.param(x, id=x.stem) for x in WORKFLOWS])
def test_actions_are_pinned_by_commit(path):
    actions = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert actions
    for action in actions:
        assert PINNED.fullmatch(action) or BY_VERSION.fullmatch(action), action


def test_every_workflow_has_the_same_version_of_an_action():
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    actions = {*re.findall(r"uses: (.*)", text)}
    assert len({action.partition("@")[0] for action in actions}) == len(actions)


def test_quick_tests_run_on_every_version_of_python_that_is_named_and_on_windows():
    flow = read_yaml(".github/workflows/tests.yml")
    quick, windows = flow["jobs"]["quick"], flow["jobs"]["windows"]
    assert quick["strategy"]["matrix"]["python"] == PYTHONS
    assert windows["runs-on"].startswith("windows")
    assert ".ci/wheel dist" in scripts_of(windows)
    assert "pytest" in scripts_of(windows)[-1]


def test_runs_of_main_are_not_cancelled():
    for path in WORKFLOWS:
        cancels = read_yaml(path.relative_to(ROOT))["concurrency"]["cancel-in-progress"]
        assert cancels in (False, "${{ github.ref != 'refs/heads/main' }}"), path


def test_what_is_published_is_what_was_tested_with_attestations():
    flow = read_yaml(".github/workflows/release.yml")
    jobs = flow["jobs"]
    assert scripts_of(jobs["build"])[-1] == ".ci/run dist"
    assert "dist=${1:-" in CI
    assert scripts_of(jobs["wheels"]) == [".ci/wheel dist"]
    assert jobs["wheels"]["strategy"]["matrix"]["python"] == PYTHONS
    assert jobs["wheels"]["strategy"]["fail-fast"] is False
    assert jobs["rehearse"]["needs"] == ["build", "wheels"]
    assert "test.pypi.org" in jobs["rehearse"]["steps"][-1]["with"]["repository-url"]
    publish = jobs["publish"]
    assert publish["needs"] == "rehearse"
    assert publish["permissions"] == {
        "attestations": "write",
        "contents": "read",
        "id-token": "write",
    }
    assert not scripts_of(publish)
    assert publish["steps"][-1]["with"] == {"attestations": True}
    assert "secrets" not in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    actions = read_yaml(".github/dependabot.yml")
    assert {x["package-ecosystem"] for x in actions["updates"]} == {"github-actions", "pip"}


def test_a_tag_that_is_not_the_version_publishes_nothing():
    jobs = read_yaml(".github/workflows/release.yml")["jobs"]
    (check,) = [step for step in jobs["build"]["steps"] if ".ci/tag" in step.get("run", "")]
    # Only a pushed tag is checked, and only a pushed tag publishes.
    assert check["if"] == jobs["publish"]["if"] == "github.event_name == 'push'"
    version = fastece.__version__
    for tag, code in (
        (f"v{version}", 0),
        (version, 1),
        (f"v{version}1", 1),
        ("v0.0.1", 1),
        ("", 1),
    ):
        done = subprocess.run([ROOT / ".ci" / "tag", tag], capture_output=True, check=False)
        assert done.returncode == code, tag


def test_hooks_before_commits_are_the_checks_of_ci():
    (local,) = read_yaml(".pre-commit-config.yaml")["repos"]
    checks = re.findall(r'^"\$bin/(ruff|mypy)"(.*)', CI, re.MULTILINE)
    assert [hook["entry"] for hook in local["hooks"]] == [program + x for program, x in checks]
    assert all(hook["language"] == "system" for hook in local["hooks"])


# --- metadata -----------------------------------------------------------------------------------


def test_the_recipe_of_conda_has_the_dependencies_of_the_project():
    recipe = read_yaml("recipe/recipe.yaml")
    least = PROJECT["requires-python"].removeprefix(">=")
    assert recipe["context"] == {
        "version": fastece.__version__,
        "python_min": least,
        "repository": REPOSITORY,
    }
    assert recipe["package"]["name"] == PROJECT["name"]
    python, *others = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert [one.replace(" ", "") for one in others] == PROJECT["dependencies"]
    build = PYPROJECT["build-system"]["requires"]
    assert {*build} <= {one.replace(" ", "") for one in recipe["requirements"]["host"]}
    # A wheel with kernels is built without isolation, and so these are named there too.
    names = " ".join(name.partition(">")[0] for name in build)
    assert f" install -q {names} .\n" in (ROOT / ".ci" / "wheel").read_text(encoding="utf-8")
    assert not [one for one in build if one not in PYPROJECT["dependency-groups"]["dev"]]
    entries = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == entries
    about = recipe["about"]
    assert about["summary"] == PROJECT["description"]
    assert [about["license_file"]] == PROJECT["license-files"]
    assert [about["license"], about["documentation"]] == [PROJECT["license"], PAGES]
    assert about["repository"] == about["homepage"] == "${{ repository }}"


def test_the_recipe_of_conda_is_valid():
    rattler_build = pytest.importorskip("rattler_build")
    recipe = rattler_build.Stage0Recipe.from_file(str(ROOT / "recipe" / "recipe.yaml"))
    (rendered,) = recipe.render()
    assert rendered.recipe.package.version == fastece.__version__


def test_metadata_of_archives_are_those_of_the_project():
    zenodo = read_json(".zenodo.json")
    assert zenodo["title"] == cited("title") == PROJECT["name"]
    abstract = re.search(r"abstract: >-\n((?:  .*\n)+)", CITATION)[1]
    assert zenodo["description"] == " ".join(abstract.split())
    assert zenodo["keywords"] == PROJECT["keywords"]
    assert zenodo["license"] == PROJECT["license"]
    authors = re.findall(r"^  - name: (.+)", CITATION, re.MULTILINE)
    assert [x["name"] for x in zenodo["creators"]] == authors
    doi = re.search(r"doi: (.+)", CITATION)[1]
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


def links_in(text):
    """What stands behind each text in brackets: links and pictures."""
    return re.findall(r"\]\((\S*?)\)", text)


def test_links_of_the_readme_are_relative_in_a_checkout():
    for link in links_in(README):
        path = link.partition("#")[0]
        assert link.startswith("https://") or has_in_the_sdist(path), link
    assert not [x for x in re.findall(r"!\[[^]]*\]\((\S*?)\)", README) if ":" in x]


def test_links_of_the_readme_are_addresses_on_a_package_index():
    """An index has the text alone. Its links lead to the files of this version."""
    pytest.importorskip("hatch_fancy_pypi_readme")
    core = pytest.importorskip("hatchling.metadata.core")
    manager = pytest.importorskip("hatchling.plugin.manager").PluginManager()
    metadata = core.ProjectMetadata(str(ROOT), manager).core
    assert metadata.readme_content_type == "text/markdown"
    shown = metadata.readme
    links = links_in(shown)
    assert all(link.startswith(("https://", "#")) for link in links)
    made = re.compile(rf"{REPOSITORY}/(blob|raw)/v{re.escape(fastece.__version__)}/([^#]+)(#.*)?")
    paths = [match[2] for match in map(made.fullmatch, links) if match]
    relative = [link for link in links_in(README) if not link.startswith(("https://", "#"))]
    assert paths == [link.partition("#")[0] for link in relative]
    assert all((ROOT / path).exists() for path in paths)
    # An index shows no picture that is a page of the host.
    assert {*re.findall(r"!\[[^]]*\]\((\S*?)\)", shown)} == {
        link for link in links if "/raw/" in link
    }


# --- files --------------------------------------------------------------------------------------


def test_text_has_the_same_line_ends_in_every_checkout():
    done = subprocess.run(["git", "ls-files", "--eol"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a checkout of git")
    for line in done.stdout.splitlines():
        kept, _, attributes = line.partition("\t")[0].split(maxsplit=2)
        is_binary = line.endswith((".eval", ".npz", ".png"))
        assert ("-text" in attributes) == is_binary, line
        assert kept in (("i/-text",) if is_binary else ("i/lf", "i/none")), line


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
