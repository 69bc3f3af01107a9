"""Keys such as [CP20 (24)] lead to their line in the index, from every page; names there to the reference."""

import re
from typing import Any

from sphinx.application import Sphinx

import convexkernels

KEY = re.compile(r"\[([A-Z]+\d{2}) ([^\]<>]*)\]")
ROW = re.compile(r"^\| ([A-Z]+\d{2}) ([^|]+?) \|", flags=re.MULTILINE)
SOURCE = re.compile(r"\[`(\w+)`\]\(\.\./([\w/]+\.py)\)")


def anchor(source: str, place: str) -> str:
    """The name of a formula in addresses."""
    return re.sub(r"[^a-z0-9]+", "-", f"{source} {place}".lower()).strip("-")


def index_of_formulas(app: Sphinx, name: str, text: list[str]) -> None:
    """Give every line of the index a name, and lead its names to the pages that there are."""
    if name != "formulas":
        return
    rows = ROW.sub(lambda m: f'| <span id="{anchor(*m.groups())}"></span>{m[1]} {m[2]} |', text[0])

    def led(m: re.Match[str]) -> str:
        if m[1] in convexkernels.__all__:
            return f"[`{m[1]}`](api/convexkernels.{m[1]}.rst)"
        return f"`{m[1]}` ({m[2].removeprefix('convexkernels/')})"

    text[0] = SOURCE.sub(led, rows)


def linked(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Make links of the keys in the text of a page."""
    if page == "formulas" or "body" not in context:
        return
    formulas = context["pathto"]("formulas")

    def link(m: re.Match[str]) -> str:
        places = [place.strip() for place in m[2].split(",")]
        links = [f'<a href="{formulas}#{anchor(m[1], place)}">{place}</a>' for place in places]
        known = {anchor(m[1], place) for place in places} <= app.config.formula_anchors
        return f"[{m[1]} {', '.join(links)}]" if known else m[0]

    context["body"] = KEY.sub(link, context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    text = (app.srcdir / "formulas.md").read_text(encoding="utf-8")
    app.add_config_value("formula_anchors", {anchor(*m.groups()) for m in ROW.finditer(text)}, "html")
    app.connect("source-read", index_of_formulas)
    app.connect("html-page-context", linked)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
