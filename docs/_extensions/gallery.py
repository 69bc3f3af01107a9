"""The scripts of ``examples/`` and ``models/`` as pages: what they print and draw, at full size where that is quick."""

import ast
import os
import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx_gallery.scrapers import figure_rst
from unrolled import prose, unrolled

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "build" / "gallery-scripts"
FIGURES = ROOT / "build" / "gallery-figures"
HEADERS = {
    "examples": ("Examples", "Short programs that tell a story. Each runs as it is: ``python examples/NAME.py``."),
    "models": (
        "Models of the papers",
        "Each problem as its paper prints it, and its tables and figures again: ``python -m models.NAME``.",
    ),
}
# Scripts that take more than about a minute and a half: their pages show them with --quick, and say so.
LONG = {
    "13_half_a_million_rows",
    "14_on_a_cluster",
    "automated_spectral",
    "concatenated",
    "half_a_million_rows",
    "lanckriet_sdp",
    "simple_mkl",
    "tessellated_mkl",
    "voronoi_rates",
    "voronoi_svm",
}
SHORTENED = "This page shows it with ``--quick``, at reduced size: the whole takes minutes."


def titled(docstring: str) -> str:
    """The docstring of a script as reStructuredText: a title, prose, and whatever is indented as it stands."""
    first, _, rest = docstring.partition("\n\n")
    first = " ".join(first.split())
    title = first.rstrip(".")
    if len(title) > 75:
        title, mark, more = re.split(r"([.:?])\s", title, maxsplit=1)
        title, rest = title + mark.strip(".:"), f"{more[0].upper()}{more[1:]}.\n\n{rest}"
    parts = []
    for part in rest.strip("\n").split("\n\n"):
        if part.lstrip().startswith("python "):
            part = f"    {part.strip()}"
        literal = part.startswith("    ")
        parts.append(f"::\n\n{part}" if literal else prose(part))
    return "\n\n".join([f"{title}\n{'=' * len(title)}", *parts]).replace("\\", "\\\\")


def prepare() -> None:
    """Write the scripts with titles for Sphinx-gallery; files that are as they were keep their dates."""
    for folder, (title, words) in HEADERS.items():
        target = SCRIPTS / folder
        target.mkdir(parents=True, exist_ok=True)
        _write(target / "GALLERY_HEADER.rst", f"{title}\n{'=' * len(title)}\n\n{words}\n")
        paths = sorted((ROOT / folder).glob("[!_]*.py"))
        for path in paths:
            source = path.read_text(encoding="utf-8")
            text = titled(ast.get_docstring(ast.parse(source)) or "")
            text += f"\n\n{SHORTENED}" if path.stem in LONG else ""
            _write(target / path.name, f'"""\n{text}\n"""\n\n{unrolled(source)}')
        for stray in {p.name for p in target.glob("*.py")} - {path.name for path in paths}:
            (target / stray).unlink()


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def arguments(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """What a script is called with."""
    name = Path(script_vars["src_file"]).stem
    return [*(["--quick"] if name in LONG else []), "--out", str(FIGURES / name)]


def figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """The figures that a script has written, in the order of their making."""
    folder = FIGURES / Path(block_vars["src_file"]).stem
    shown = []
    for path in sorted(folder.glob("*.png"), key=lambda path: path.stat().st_mtime_ns):
        image = next(block_vars["image_path_iterator"])
        shutil.move(path, image)
        shown.append(figure_rst([image], gallery_conf["src_dir"], path.stem.replace("_", " ")))
    import matplotlib.pyplot as plt

    plt.close("all")
    return "".join(shown)


def setup(app: Sphinx) -> dict[str, Any]:
    os.environ.setdefault("MPLBACKEND", "Agg")
    prepare()
    return {"parallel_read_safe": True, "parallel_write_safe": True}
