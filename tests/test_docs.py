"""What the README shows is what happens."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_every_python_block_runs(block, capsys):
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    shown = re.findall(r"print\(.*?\)\s+# (.*)", block)
    printed = capsys.readouterr().out.splitlines()
    for line in shown:
        assert line in printed


def test_worked_example_of_an_estimator_is_short():
    example = [block for block in BLOCKS if "def evaluate" in block]
    assert len(example) == 1
    assert example[0].count("\n") < 40


def test_every_estimator_is_in_the_table():
    from fastece import ESTIMATORS

    for name in ESTIMATORS:
        assert f'`"{name}"`' in README


@pytest.mark.parametrize("page", ["README.md", "asv_benchmarks/README.md"])
def test_links_lead_to_files(page):
    path = ROOT / page
    for target in re.findall(r"\]\((?!http|#)(.*?)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_table_of_speeds_has_every_estimator():
    from fastece import ESTIMATORS

    speeds = README.partition("## Speed")[2].partition("## Gotchas")[0]
    for setting in ("binary", "confidence", "classwise"):
        for name in ESTIMATORS:
            assert f"| {setting} | `{name}`" in speeds


def test_benchmarks_named_on_their_page_exist():
    folder = ROOT / "asv_benchmarks"
    page = (folder / "README.md").read_text(encoding="utf-8")
    files = {path.name: path for path in (folder / "benchmarks").glob("[a-z]*.py")}
    measured = page.partition("## What is measured")[2]
    assert set(re.findall(r"\| `(\w+\.py)` \|", measured)) == set(files) - {"common.py"}
    for line in re.findall(r"\| `\w+\.py` \|.*", measured):
        name, *classes = re.findall(r"`(\w+\.py|[A-Z]\w+)`", line)
        defined = re.findall(r"^class (\w+)", files[name].read_text(encoding="utf-8"), re.MULTILINE)
        assert classes == defined


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebooks_show_what_their_code_gives(path, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    scope = {"__name__": "notebook"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), scope)
        value = last and eval(compile(ast.Expression(last.value), path.name, "eval"), scope)
        printed = capsys.readouterr().out
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                assert "".join(output["text"]) == printed
            elif output["output_type"] == "execute_result":
                assert "".join(output["data"]["text/plain"]) == repr(value)
    matplotlib.pyplot.close("all")


def test_digits_script_is_kept_with_its_output():
    done = subprocess.run(
        [sys.executable, "-m", "py_compile", str(ROOT / "scripts" / "make_digits.py")], check=False
    )
    assert done.returncode == 0
