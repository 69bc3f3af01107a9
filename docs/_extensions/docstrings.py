"""Docstrings as they are written, read as reStructuredText: norms are no substitutions, and ``lam_`` is no link."""

import re
from typing import Any

from sphinx.application import Sphinx

# Labels that other projects define.
FOREIGN = re.compile(r":ref:`([^`<]*?)(\s*<[^>]*>)?`")
LITERAL = re.compile(r"(``.*?``|:[a-z:]+:`.*?`|`[^`]+`_{0,2})")
SECTION = re.compile(r"^(Parameters|Attributes|Returns|Raises|Notes|Examples|See Also|References|Methods|Yields)$")


def plain(line: str) -> str:
    """A line of prose whose signs mean themselves."""
    parts = LITERAL.split(line)
    for k in range(0, len(parts), 2):
        text = parts[k].replace("|", r"\|")
        text = re.sub(r"(?<!\\)\*", r"\\*", text)
        parts[k] = re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)
    # A summary is the first sentence, and three dots within a formula would end it.
    parts[1::2] = [part.replace("... ", "\N{HORIZONTAL ELLIPSIS} ") for part in parts[1::2]]
    return "".join(parts)


def escaped(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape what numpydoc is about to read; code and literal blocks stay as they are."""
    lines[:] = [FOREIGN.sub(r"\1", line) for line in lines]
    literal, before = None, ""
    for k, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        if line.lstrip().startswith((">>>", "...")) or before.lstrip().startswith((">>>", "...")):
            before = line
            continue
        # A formula set off by its indent in prose is a literal block.
        if literal is None and not SECTION.match(line.strip()) and not set(line.strip()) <= {"-"}:
            lines[k] = plain(line)
        if line.rstrip().endswith("::"):
            literal = indent
        before = line


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", escaped, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
