"""What is released: one version, one set of addresses, tested files, and what archives are told."""

import inspect
import json
import os
import re
import runpy
import shlex
import subprocess
import tomllib
from datetime import date
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
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^## (.*)", CHANGELOG, re.MULTILINE)
RELEASES = [heading.split(" - ") for heading in HEADINGS if heading != "Unreleased"]
# Of Keep a Changelog.
KINDS = {"Breaking changes", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def read_yaml(name):
    return pytest.importorskip("yaml").safe_load((ROOT / name).read_text(encoding="utf-8"))


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


def test_the_version_stands_in_one_place():
    assert "version" not in PROJECT
    assert "version" in PROJECT["dynamic"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "fastece/__init__.py"
    source = Path(fastece.__file__).read_text(encoding="utf-8")
    assert source.count(fastece.__version__) == 1
    for path in Path(fastece.__file__).parent.rglob("*.py"):
        if path.name != "__init__.py":
            assert f'"{fastece.__version__}"' not in path.read_text(encoding="utf-8"), path


def test_the_changelog_has_the_version_on_top_and_goes_back_in_time():
    assert RELEASES[0][0] == fastece.__version__
    assert "Unreleased" not in HEADINGS[1:]
    versions = [tuple(map(int, version.split("."))) for version, _ in RELEASES]
    days = [date.fromisoformat(day) for _, day in RELEASES]
    assert versions == sorted({*versions}, reverse=True)
    assert days == sorted(days, reverse=True)
    kinds = re.findall(r"^### (.*)", CHANGELOG, re.MULTILINE)
    assert {*kinds} <= KINDS


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


# --- addresses ----------------------------------------------------------------------------------


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


def test_workflows_run_commands_of_pages_and_of_ci():
    for path in WORKFLOWS:
        flow = read_yaml(path.relative_to(ROOT))
        assert flow["permissions"] == {"contents": "read"}, path
        # A newer push does not end the tests of what is already on main.
        cancels = flow["concurrency"]["cancel-in-progress"]
        assert cancels in (False, "${{ github.ref != 'refs/heads/main' }}"), path
        for job in flow["jobs"].values():
            assert {*scripts_of(job)} <= COMMANDS, path
    assert all(os.access(ROOT / ".ci" / name, os.X_OK) for name in ("run", "tag", "wheel"))


def test_actions_are_pinned_by_commit_and_have_one_version_in_all_workflows():
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    actions = {*re.findall(r"uses: (.*)", text)}
    for action in actions:
        assert PINNED.fullmatch(action) or BY_VERSION.fullmatch(action), action
    assert len({action.partition("@")[0] for action in actions}) == len(actions)


def test_quick_tests_run_on_every_version_of_python_that_is_named_and_on_windows():
    flow = read_yaml(".github/workflows/tests.yml")
    quick, windows = flow["jobs"]["quick"], flow["jobs"]["windows"]
    assert quick["strategy"]["matrix"]["python"] == PYTHONS
    assert windows["runs-on"].startswith("windows")
    assert ".ci/wheel dist" in scripts_of(windows)
    assert "pytest" in scripts_of(windows)[-1]


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


def test_archives_citations_and_pages_describe_one_project():
    """The version is in the changelog's first heading and in one line of the package."""
    zenodo = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    abstract = re.search(r"abstract: >-\n((?:  .*\n)+)", CITATION)[1]
    authors = re.findall(r"^  - name: (.+)", CITATION, re.MULTILINE)
    assert [cited("version"), cited("date-released")] == RELEASES[0]
    assert cited("title") == zenodo["title"] == PROJECT["name"]
    assert cited("license") == zenodo["license"] == PROJECT["license"]
    assert zenodo["description"] == " ".join(abstract.split())
    assert zenodo["keywords"] == PROJECT["keywords"]
    assert [creator["name"] for creator in zenodo["creators"]] == authors
    assert "Posocco" in CITATION
    doi = re.search(r"doi: (.+)", CITATION)[1]
    assert doi in [related["identifier"] for related in zenodo["related_identifiers"]]
    assert f"(https://doi.org/{doi})" in README
    (entry,) = re.findall(r"```bibtex\n@software\{fastece,\n(.*?)\n\}\n```", README, re.DOTALL)
    assert dict(re.findall(r"^  (\w+) = \{(.*)\},?$", entry, re.MULTILINE)) == {
        "title": cited("title"),
        "author": authors[0],
        "version": cited("version"),
        "year": cited("date-released")[:4],
        "url": cited("repository-code"),
    }
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    top = dict(re.findall(r"^(\w+): (.+)", site, re.MULTILINE))
    assert [top["site_url"], top["repo_url"]] == [PAGES, REPOSITORY]
    head = dict(re.findall(r"^(\w+): (.+)", SKILL.read_text("utf-8").split("---\n")[1], re.M))
    assert head["name"] == SKILL.parent.name == PROJECT["name"]
    assert head["license"] == PROJECT["license"]


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
