"""Check the pages that ``make docs`` has built: every link, and with ``--browser`` what a reader sees.

    python docs/check_site.py [build/site] [--browser] [--only PATTERN] [--shots FOLDER]

Without a browser: links, anchors and images of all pages lead somewhere, and nothing is loaded from the network. With
one (Chromium and the package playwright): no errors on the console, images are drawn, nothing is wider than the page of
a phone, the dark theme is dark, and the search finds what it should.
"""

import argparse
import shutil
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
SEARCHES = {"tessellated": "guide/tessellated", "TessellatedSVC": "api/convexkernels.TessellatedSVC", "memory": ""}


class Page(HTMLParser):
    """Names of places of a page, where it leads, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = {"", "top"}
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "img" or (tag == "script" and "src" in found):
            self.loads.append(found.get("src", ""))
        if tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(found.get("href", ""))


def pages_of(site: Path) -> list[Path]:
    """All pages; templates that the theme leaves among its files are none."""
    return [path for path in sorted(site.resolve().rglob("*.html")) if "_static" not in path.parts]


def broken(site: Path) -> Iterator[str]:
    """What leads nowhere, and what needs the network, line by line."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in pages_of(site)}
    for path, page in pages.items():
        shown = path.relative_to(site.resolve())
        for target in {*page.links, *page.loads}:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loads and parts.scheme != "data":
                    yield f"{shown} loads {target}"
                continue
            other = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            other = other / "index.html" if other.is_dir() else other
            if not other.exists():
                yield f"{shown} leads to {target}, which is not there"
            elif other in pages and unquote(parts.fragment) not in pages[other].places:
                yield f"{shown} leads to {target}, a place that {other.name} does not have"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and does not talk about it."""

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


def served(site: Path) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def seen(site: Path, only: str, shots: Path | None) -> Iterator[str]:
    """What is wrong with the pages in a browser, line by line."""
    from playwright.sync_api import sync_playwright

    server = served(site)
    root = f"http://127.0.0.1:{server.server_port}"
    names = [path.relative_to(site).as_posix() for path in pages_of(site) if path.match(only)]
    names = [name for name in names if not name.startswith("_modules")]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme, size in (("light", DESK), ("light", PHONE), ("dark", DESK)):
            view = browser.new_context(viewport=size, color_scheme=scheme).new_page()
            said: list[str] = []
            view.on("pageerror", lambda error, said=said: said.append(str(error)))
            view.on("requestfailed", lambda request, said=said: said.append(f"not loaded: {request.url}"))
            for name in names:
                said.clear()
                view.goto(f"{root}/{name}")
                yield from (f"{name} ({scheme}, {size['width']}): {fault}" for fault in [*said, *faults(view, scheme)])
                if shots is not None and name.count("/") < 2 and "/" not in name.removeprefix("guide/"):
                    view.screenshot(path=shots / f"{name.replace('/', '-')}-{scheme}-{size['width']}.png")
        yield from unfound(browser.new_page(), root)
        browser.close()
    server.shutdown()


def faults(view: object, scheme: str) -> Iterator[str]:
    """What can be measured on an open page."""
    images = "() => [...document.images].filter(i => i.loading != 'lazy' && !i.naturalWidth).map(i => i.src)"
    yield from (f"no picture {source}" for source in view.evaluate(images))
    wide = view.evaluate("() => document.scrollingElement.scrollWidth - innerWidth")
    if wide > 1:
        yield f"{wide} pixels wider than the window"
    background, text = view.evaluate(
        "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    dark, light = (sum(map(float, color[color.index("(") + 1 : -1].split(",")[:3])) for color in (background, text))
    if (dark < light) != (scheme == "dark"):
        yield f"text {text} on {background}"


def unfound(view: object, root: str) -> Iterator[str]:
    """Searches that do not find their page among the first results."""
    for words, wanted in SEARCHES.items():
        view.goto(f"{root}/search.html?q={words}")
        view.wait_for_selector("#search-results li a", timeout=20_000)
        view.wait_for_timeout(1000)
        found = view.eval_on_selector_all("#search-results li a", "links => links.slice(0, 10).map(link => link.href)")
        if not any(wanted in link for link in found):
            yield f"searching {words!r} does not find {wanted}: {found[:3]}"
    view.goto(f"{root}/index.html")
    view.keyboard.press("Control+k")
    if not view.wait_for_selector("input[type=search]:visible", timeout=5000):
        yield "Ctrl+K opens no search"


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", nargs="?", type=Path, default=Path("build/site"))
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--only", default="*.html", help="pages to look at in the browser, for example 'guide/*.html'")
    parser.add_argument("--shots", type=Path, help="folder for pictures of some pages")
    options = parser.parse_args(argv)
    if options.shots is not None:
        options.shots.mkdir(parents=True, exist_ok=True)
    found = [
        *broken(options.site),
        *(seen(options.site.resolve(), options.only, options.shots) if options.browser else []),
    ]
    pages = len(pages_of(options.site))
    print("\n".join([*found, f"{pages} pages, {len(found)} faults"]))
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
