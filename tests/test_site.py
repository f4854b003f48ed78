"""The documentation site: built strictly, without dead links, and without a word from elsewhere."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
API = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs/api").glob("*.md")}
DOCUMENTED = [name for page in API.values() for name in re.findall(r"^::: (\S+)$", page, re.M)]
ELSEWHERE = re.compile(r"(?i)\s*(https?:)?//")


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"^ +- (?:.*: )?([\w/]+\.md)$", text, re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    made = {"index.md", "changelog.md", "contributing/index.md", "how_to/track_performance.md"}
    made |= {f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert pages | made <= named


class Html(HTMLParser):
    """Of a page: its anchors, its links, and what a browser loads to show it."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given.get("id"), given.get("name")}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(given["href"])
        self.loaded += [given[name] for name in ("src", "srcset", "poster") if given.get(name)]
        self.loaded += re.findall(r"url\((.*?)\)", given.get("style") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, and its pages."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path: Html(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    return folder, pages


@pytest.mark.slow
def test_links_of_the_site_lead_somewhere(site):
    folder, pages = site
    for path, page in pages.items():
        if path.name == "404.html":  # whose links are from the root of a server
            continue
        for link in page.links + page.loaded:
            if re.match(r"\w+:", link):
                continue
            target, _, anchor = unquote(link).partition("#")
            there = (path.parent / target).resolve() if target else path
            there = there / "index.html" if there.is_dir() else there
            assert there.is_relative_to(folder.resolve()), (path.name, link)
            assert there.is_file(), (path.name, link)
            assert not anchor or anchor in pages[there].anchors, (path.name, link)


@pytest.mark.slow
def test_pages_load_nothing_from_another_host(site):
    folder, pages = site
    for path, page in pages.items():
        assert not [link for link in page.loaded if ELSEWHERE.match(link)], path.name
        # The theme's script would ask the code host for stars and forks of what is marked so.
        assert 'data-md-component="source"' not in path.read_text(encoding="utf-8"), path.name
    for path in folder.rglob("*.css"):
        loaded = re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')]+)", path.read_text("utf-8"))
        assert not [link for link in loaded if ELSEWHERE.match(link)], path.name


@pytest.mark.slow
def test_pages_are_edited_where_they_are(site):
    _, pages = site
    links = [link for page in pages.values() for link in page.links if "/edit/main/" in link]
    assert len(links) > 20
    for link in links:
        assert (ROOT / link.partition("/edit/main/")[2]).is_file(), link


@pytest.mark.slow
def test_search_finds_names_of_the_api_and_words_of_notebooks(site):
    folder, _ = site
    index = json.loads((folder / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {page["location"]: page["title"] + page["text"] for page in index["docs"]}
    for name in DOCUMENTED:
        word = name.rpartition(".")[2]
        assert any(x.startswith("api/") and word in found[x] for x in found), name
    assert "handwritten digits" in found["notebooks/01_quickstart.html"]


@pytest.mark.slow
def test_formulas_are_drawn_and_programs_get_them_as_they_are_written(site):
    folder, _ = site
    for page in ("reference/estimators", "explanation/bayes"):
        html = (folder / f"{page}.html").read_text(encoding="utf-8")
        assert "<math" in html
        assert not re.search(r"\\(sum|int|frac|tau|text)\b", html)
    assert r"$\sum_b |D_b| / W$" in (folder / "llms-full.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_programs_get_all_pages_as_text(site):
    folder, pages = site
    short, whole = ((folder / x).read_text("utf-8") for x in ("llms.txt", "llms-full.txt"))
    start = r"# fastece\n\n> .*\n\n"
    assert re.match(start, short)
    assert re.match(start, whole)
    links = re.findall(r"^- \[[^]]+\]\((.*?)\)", short, re.MULTILINE)
    there = {x.relative_to(folder).as_posix() for x in pages if x.name != "404.html"}
    assert {*links} == there
    assert ":::" not in whole
    for name in DOCUMENTED:
        assert f"\n{name}(" in whole or f"\n{name}\n" in whole, name
    for path in (ROOT / "docs").rglob("*.md"):
        title = path.read_text("utf-8").partition("\n")[0]
        assert f"\n{title}\n" in whole, title


@pytest.mark.slow
def test_pages_have_pictures_of_notebooks_and_names_of_files(site):
    folder, _ = site
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        page = (folder / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
        assert page.count("<img") >= path.read_text(encoding="utf-8").count('"image/png"')
    accuracy = (folder / "evidence/accuracy.html").read_text(encoding="utf-8")
    assert "study_arenas.py" in accuracy


@pytest.mark.slow
def test_pictures_are_those_that_the_script_draws(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    for name in ("draw_pictures.py", "draw_gallery.py"):
        script = ROOT / "scripts" / "pictures" / name
        subprocess.run([sys.executable, str(script), "--out", str(tmp_path)], check=True)
    for path in tmp_path.iterdir():
        kept = ROOT / "docs" / "pictures" / path.name
        assert kept.stat().st_size < 60_000
        assert image.imread(kept).shape == image.imread(path).shape
