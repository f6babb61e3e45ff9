"""Check the built site: every link, picture and anchor leads somewhere, nothing is fetched from elsewhere, and no page
names the folder in which it was built.

python scripts/site_links.py site
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
FETCHED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """The anchors of a page, and what it links to or fetches."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.anchors: set[str] = set()
        self.links: list[tuple[str, bool]] = []  # the address, and whether a browser fetches it by itself
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.append((value, (tag, name) in FETCHED))


def problems(site: Path) -> list[str]:
    """What is wrong, one line each."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }
    found = []
    for path, page in pages.items():
        if str(ROOT) in page.text:
            found.append(f"{path.relative_to(site)}: {ROOT}: a folder of this machine is named in the text")
        for link, fetched in page.links:
            wrong = _wrong(site, path, link, fetched, pages)
            if wrong:
                found.append(f"{path.relative_to(site)}: {link}: {wrong}")
    return found


def _wrong(site: Path, path: Path, link: str, fetched: bool, pages: dict[Path, Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme in ("http", "https") or parts.netloc:
        return "it is fetched from another place" if fetched else ""
    if parts.scheme in ("data", "mailto", "javascript"):
        return ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return "there is no such file"
    if not target.is_relative_to(site.resolve()):
        return "it is outside the site"
    page = pages.get(target)
    if parts.fragment and page is not None and unquote(parts.fragment) not in page.anchors:
        return "there is no such anchor"
    return ""


def main() -> int:
    site = Path(sys.argv[1]).resolve()
    found = problems(site)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(list(site.rglob('*.html')))} pages, {len(found)} problems", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
