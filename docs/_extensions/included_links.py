"""Links of included pages to files that the site does not have are shown as the names of these files."""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

LINK = re.compile(r"\[([^\]]+)\]\(((?:notes|results|tabular)/[^)\s]+)\)")


def named(app: Sphinx, path: Path, page: str, text: list[str]) -> None:
    """The words of a link, and where the file is in the repository."""
    folder = "benchmarks"
    if path.parent.name == folder:
        text[0] = LINK.sub(rf"\1 (`{folder}/\2`)", text[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("include-read", named)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
