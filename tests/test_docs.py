"""The pages of the documentation: their Python runs, and nothing public is missing from them."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import convexkernels
from convexkernels import plotting

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"api", "gallery"} & set(path.relative_to(DOCS).parts))
WITH_CODE = [path for path in PAGES if "```python" in path.read_text(encoding="utf-8")]
REFERENCE = (DOCS / "reference.rst").read_text(encoding="utf-8")


def name(path):
    return path.relative_to(DOCS).with_suffix("").as_posix()


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_python_of_a_page_runs_from_top_to_bottom(page, tmp_path):
    """One program, as somebody would paste it; every block may use what the blocks above defined."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    paths = os.pathsep.join(filter(None, [str(DOCS.parent), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": paths}
    # Without a license for MOSEK the conic solvers say which one they fall back to, as they should.
    command = [sys.executable, "-W", "error::UserWarning", "-W", "ignore:MOSEK is installed", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_public_name_is_in_the_reference():
    listed = re.findall(r"^   (\w+)$", REFERENCE, flags=re.MULTILINE)
    wanted = [*convexkernels._HOME, *plotting.__all__]
    assert not set(wanted) - set(listed), "public, but not in docs/reference.rst"
    assert len(listed) == len(set(listed)), "listed twice"


def test_every_page_is_in_a_toctree():
    listed = {"index"}
    for page in PAGES:
        for body in re.findall(
            r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            entries = (line.strip() for line in body.splitlines() if line.strip() and not line.startswith(":"))
            listed |= {(page.parent / entry).relative_to(DOCS).as_posix() for entry in entries}
    assert not {name(page) for page in PAGES} - listed


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#`\s]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), f"{name(page)} links to {target}"
    for target in re.findall(r"\{py:obj\}`~convexkernels\.([\w.]+)`", text):
        owner, _, member = target.rpartition(".")
        assert not owner or owner == "plotting", f"{name(page)} names convexkernels.{target}"
        assert hasattr(plotting if owner else convexkernels, member), f"{name(page)} names convexkernels.{target}"


def test_figures_come_from_scripts_that_there_are():
    scripts = {path.stem for folder in ("examples", "models") for path in (DOCS.parent / folder).glob("*.py")}
    for page in PAGES:
        for script in re.findall(r"sphx_glr_(\w+)_\d{3}\.png", page.read_text(encoding="utf-8")):
            assert script in scripts, f"{name(page)} shows a figure of {script}"


@pytest.mark.parametrize("script", sorted((DOCS.parent / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_a_page_of_a_script_does_what_the_script_does(script, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_extensions"))
    from unrolled import unrolled

    source = script.read_text(encoding="utf-8")
    page, main = (
        ast.parse(unrolled(source)),
        next(n for n in ast.parse(source).body if getattr(n, "name", "") == "main"),
    )
    done = [ast.dump(node) for node in page.body]
    assert all(ast.dump(node) in done for node in main.body if not isinstance(node, ast.Return))
    if "# %%" in unrolled(source):
        comments = re.findall(r"^    # (.*)$", source, flags=re.MULTILINE)
        assert re.sub(r"[`\\]", "", unrolled(source)).count("\n# %%\n# ") <= len(comments)


def test_a_script_that_may_end_in_the_middle_stays_whole(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_extensions"))
    from unrolled import unrolled

    text = '"""Title."""\n\ndef main(argv=None):\n    if argv:\n        return 1\n\n'
    text += "    # Some `code`, a_ and |b|.\n    print(argv)\n"
    assert "def main(argv=None):" in unrolled(text)
    text = text.replace("return 1", "argv = None")
    assert "# %%\n# Some ``code``, a\\_ and \\|b\\|.\nprint(argv)" in unrolled(text)


def test_the_check_of_the_site_finds_what_leads_nowhere(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(DOCS))
    import check_site

    (tmp_path / "index.html").write_text('<a href="other.html#here">x</a><a href="https://example.org">y</a>')
    (tmp_path / "other.html").write_text('<h1 id="here">z</h1><img src="index.html"><a href="#top">t</a>')
    assert check_site.main([str(tmp_path)]) == 0
    (tmp_path / "index.html").write_text('<a href="other.html#there">x</a><a href="none.html">y</a>')
    (tmp_path / "other.html").write_text('<script src="https://example.org/a.js"></script>')
    assert check_site.main([str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "other.html#there, a place that" in said
    assert "none.html, which is not there" in said
    assert "loads https://example.org/a.js" in said
    assert "2 pages, 3 faults" in said


def test_pages_need_no_network():
    sources = [*PAGES, *DOCS.rglob("_static/*"), DOCS / "conf.py"]
    for path in sources:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(src|@import|url\()\s*[=(]?\s*[\"']?https?://", text), path.name
