"""What README.md tells a reader to type works: its Python runs, its files and commands exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import convexkernels

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"]
README = PAGES[0].read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def test_readme_opens_with_the_two_commands():
    first = blocks(README, "sh")[0]
    assert "make demo" in first
    assert "make test" in first
    assert README.index("```sh") < README.index("```python")


def test_python_of_the_readme_runs_from_top_to_bottom(tmp_path):
    """One program, as somebody would paste it; every block may use what the blocks above defined."""
    code = blocks(README, "python")
    assert len(code) >= 2
    script = tmp_path / "readme.py"
    script.write_text("\n".join(code))
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    # Without a license for MOSEK the conic solvers say which one they fall back to, as they should.
    command = [sys.executable, "-W", "error::UserWarning", "-W", "ignore:MOSEK is installed", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_links_lead_somewhere_from_a_package_index_too(monkeypatch):
    import runpy
    import types

    interface = types.ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = type("MetadataHookInterface", (), {"root": str(ROOT)})
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))["ProjectAddresses"]()
    for name in ("PROJECT_URL", "DOCUMENTATION_URL"):
        monkeypatch.delenv(name, raising=False)
    at_home: dict = {}
    hook.update(at_home)
    assert at_home == {"readme": {"content-type": "text/markdown", "text": README}}, "no address is invented"
    monkeypatch.setenv("PROJECT_URL", "https://host.example/owner/name")
    monkeypatch.setenv("DOCUMENTATION_URL", "https://owner.example/name")
    released: dict = {}
    hook.update(released)
    assert released["urls"]["Documentation"] == "https://owner.example/name"
    links = re.findall(r"\]\(([^)]+)\)", released["readme"]["text"])
    assert links
    assert all(link.startswith("https://host.example/owner/name/blob/main/") for link in links)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_exist(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"`?make ([a-z]+)\b`", page.read_text()))
    assert named <= targets


def test_commands_and_options_exist():
    from convexkernels.cli import main

    for command, rest in re.findall(r"^convexkernels (\w+)(.*)$", "\n".join(blocks(README, "sh")), flags=re.MULTILINE):
        help_text = subprocess.run(
            [sys.executable, "-m", "convexkernels", command, "--help"], capture_output=True, text=True, check=True
        ).stdout
        for option in re.findall(r"--[\w-]+", rest):
            assert option in help_text
    assert callable(main)


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {convexkernels.__version__}\n" in citation
    assert f'\nversion = "{convexkernels.__version__}"\n' in (ROOT / "pyproject.toml").read_text()
