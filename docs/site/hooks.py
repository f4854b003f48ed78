"""What mkdocs has to be told about these pages, which are made to be read on a code host too.

Files outside docs/ become pages of the site: both READMEs, and the notebooks with the outputs that
are stored in them. Links to other files of the repository, except files of results, become their
names, as code, and links that are called by the name of a page's file get its title. Programs that
read text get the same pages as text: llms.txt names them, llms-full.txt holds them.
"""

import base64
import inspect
import json
import posixpath
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Files of the repository that are not in docs/ -> pages of the site.
PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "asv_benchmarks/README.md": "how_to/track_performance.md",
} | {f"notebooks/{path.name}": f"notebooks/{path.stem}.md" for path in NOTEBOOKS}
ORIGINS = {page: path for path, page in PLACES.items()}

# Texts of pages as they are on the site, by the names of their files, and the navigation.
TEXTS: dict[str, str] = {}
ORDER: list[Any] = []
# A name on a page of the API, with its options.
NAME = re.compile(r"(?m)^::: (\S+)\n(?:    .*\n?)*")

# A block of code, a link or a picture, or code in a line: only the second is of interest.
LINKS = re.compile(r"(?s)^```.*?^```|(!?\[[^]]*\])\((?!\w+:)([^)\s]*)\)|`[^`]+`", re.MULTILINE)

# A block of code, code in a line, or a formula, which code hosts render too.
FORMULAS = re.compile(r"(?s)^```.*?^```|`[^`]+`|\$([^$\n]+)\$", re.MULTILINE)

DASH = "\N{EN DASH}"
# A parameter or a value on a page of the API: its name, if it has one, its type and what it is.
ITEM = re.compile(
    rf'(?s)<li class="doc-section-item field-body">\s*(<b>.*?</b>)?(.*?){DASH}\s*'
    r'<div class="doc-md-description">(.*?)</div>\s*</li>\s*'
)
ANY = re.compile(r"\(<code>(<[^>]*>)*Any(<[^>]*>)*</code>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of the site: those of docs/, and pages from outside of it."""
    for path, page in PLACES.items():
        if path.endswith(".ipynb"):
            for uri, content in pages_of(ROOT / path, page):
                files.append(File.generated(config, uri, content=content))
        else:
            text = (ROOT / path).read_text(encoding="utf-8")
            files.append(File.generated(config, page, content=text))
    return files


def on_pre_page(page: Page, config: MkDocsConfig, **_: Any) -> Page:
    """A page from outside docs/ is edited where it is."""
    origin = ORIGINS.get(page.file.src_uri)
    if origin:
        page.edit_url = f"{config.repo_url}/edit/main/{origin}"
    return page


def on_post_page(output: str, **_: Any) -> str:
    """A page that asks the code host for nothing."""
    return remove_source_mark(output)


def on_post_template(output_content: str, **_: Any) -> str:
    """The page of errors, which is made of a template, likewise."""
    return remove_source_mark(output_content)


def remove_source_mark(html: str) -> str:
    """A page without the mark by which the theme asks for stars and forks."""
    return html.replace('data-md-component="source"', "")


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """The text of a page with links that hold on the site."""
    uri = page.file.src_uri
    folder = posixpath.dirname(ORIGINS.get(uri, f"docs/{uri}"))

    def link_on_site(match: re.Match[str]) -> str:
        text, link = match[1], match[2]
        if not link or link.startswith("#"):
            return match[0]
        path, _, anchor = link.partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        target = PLACES.get(path, path.removeprefix("docs/"))
        file = files.get_file_from_path(target)
        is_shown = text.startswith("!") or target.endswith(".csv")
        if file is None or not (file.is_documentation_page() or is_shown):
            name = text.strip("[]").replace("`", "")
            return f"`{path}`" if path.endswith(name) else f"{name} (`{path}`)"
        if text.endswith((".md]", ".ipynb]")):
            text = f"[{title_of(file)}]"
        target = posixpath.relpath(target, posixpath.dirname(uri) or ".")
        return f"{text}({target}{anchor and '#' + anchor})"

    TEXTS[uri] = LINKS.sub(link_on_site, re.sub(r"(?m)^\|.*", row_on_site, markdown))
    return FORMULAS.sub(lambda x: convert(x[1]) if x[1] else x[0], TEXTS[uri])


def row_on_site(row: re.Match[str]) -> str:
    """A row of a table without backslashes before strokes in code, which only code hosts want."""
    return re.sub(r"`[^`]+`", lambda code: code[0].replace(r"\|", "|"), row[0])


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    """The pages of the API: parameters that a docstring has on one line are one entry again, and
    pages that it names are links."""
    if not page.file.src_uri.startswith("api/"):
        return html

    def link_to(match: re.Match[str]) -> str:
        file = files.get_file_from_path(f"{match[1]}.md")
        return f'<a href="../{match[1]}.html">{title_of(file)}</a>' if file else match[0]

    entries: list[tuple[str, list[str], str, str]] = []
    end = 0
    for item in ITEM.finditer(html):
        name, kind, what = item[1] or "", item[2].replace("`", ""), item[3].strip()
        kind = "" if ANY.search(kind) else kind
        between = html[end : item.start()]
        end = item.end()
        if name and not between and entries[-1][2:] == (kind, what):
            entries[-1][1].append(name)
        else:
            entries.append((between, [name], kind, what))
    start = '<li class="doc-section-item field-body">'
    tidy = (
        f"{between}{start}{', '.join(names)}{kind}{what and f' {DASH} {what}'}</li>\n"
        for between, names, kind, what in entries
    )
    return re.sub(r"<code>docs/([\w/]+)\.md</code>", link_to, "".join(tidy) + html[end:])


def on_nav(nav: Navigation, **_: Any) -> None:
    """Keep the pages in their order, which `on_post_build` writes as text."""
    ORDER[:] = nav.items


def on_post_build(config: MkDocsConfig) -> None:
    """The pages as text: a list of links with a first sentence each, and all pages in one file."""
    start = f"# {config.site_name}\n\n> {config.site_description}"
    note = "The text of all pages is in [llms-full.txt](llms-full.txt)."
    groups = {"Pages": [item for item in ORDER if isinstance(item, Page)]}
    groups |= {item.title: pages_below(item) for item in ORDER if isinstance(item, Section)}
    lists = [f"## {name}\n\n" + "\n".join(map(line_on, pages)) for name, pages in groups.items()]
    pages = [page for item in ORDER for page in pages_below(item)]
    texts = [NAME.sub(docstring, TEXTS[page.file.src_uri]).strip() for page in pages]
    for name, parts in (("llms.txt", [start, note, *lists]), ("llms-full.txt", [start, *texts])):
        path = Path(config.site_dir) / name
        path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def line_on(page: Page) -> str:
    """The line of llms.txt on a page."""
    return f"- [{title_of(page.file)}]({page.url}){first_sentence(TEXTS[page.file.src_uri])}"


def pages_below(item: Any) -> list[Page]:
    """The pages of an entry of the navigation, in their order."""
    found = [item] if isinstance(item, Page) else []
    return found + [page for child in item.children or () for page in pages_below(child)]


def first_sentence(text: str) -> str:
    """The first sentence of a page below its title, after a colon, if it begins with one."""
    start = text.partition("\n\n")[2].partition("\n\n")[0].replace("\n", " ")
    found = re.match(r"[A-Z].*?[.?](?= |$)", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", start))
    return f": {found[0]}" if found else ""


def docstring(name: re.Match[str]) -> str:
    """A name of the API with its signature and its docstring."""
    there: Any = pydoc.locate(name[1])
    try:
        arguments = str(inspect.signature(there))
    except (TypeError, ValueError):
        arguments = ""
    return f"{fence('text', f'{name[1]}{arguments}')}\n\n{inspect.getdoc(there) or ''}\n"


def title_of(file: File) -> str:
    """The first heading of a page, which is a better name than that of its file."""
    return file.content_string.partition("# ")[2].partition("\n")[0]


def pages_of(path: Path, page: str) -> Iterator[tuple[str, str | bytes]]:
    """A notebook as a page of Markdown, and the pictures on it: names on the site and contents."""
    text = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        text.append(source if cell["cell_type"] == "markdown" else fence("python", source))
        for output in cell.get("outputs", []):
            shown = output.get("data", {})
            if "image/png" in shown:
                name = f"{path.stem}_{number}.png"
                yield f"notebooks/{name}", base64.b64decode("".join(shown["image/png"]))
                text.append(f"![Output of the cell above]({name})")
            else:
                text.append(fence("text", "".join(output.get("text") or shown["text/plain"])))
    yield page, "\n\n".join(text) + "\n"


def fence(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"
