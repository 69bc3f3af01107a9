"""What notebooks show, and where the documentation is."""

import sys
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path


def html_table(title: str, rows: Mapping[str, str]) -> str:
    """A small table with a line for each entry; the title leads to the documentation where there is any."""
    page, head = page_about(title), escape(title)
    if page:
        head = f'<a href="{escape(page)}">{head}</a>'
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows.items())
    return f'<table class="convexkernels"><caption>{head}</caption>{cells}</table>'


def page_about(name: str) -> str:
    """The page of a public name in the documentation; empty where there is none."""
    site = documentation_site() if name in sys.modules["convexkernels"].__all__ else ""
    return f"{site}/api/convexkernels.{name}.html" if site else ""


@cache
def documentation_site() -> str:
    """The address in the metadata of the installed package, else the pages built in a clone, else nothing."""
    try:
        addresses = metadata("convexkernels").get_all("Project-URL") or []
    except PackageNotFoundError:
        addresses = []
    for entry in addresses:
        label, _, address = entry.partition(", ")
        if label == "Documentation":
            return address.rstrip("/")
    built = Path(__file__).resolve().parents[1] / "build" / "site"
    return built.as_uri() if (built / "index.html").exists() else ""
