"""The HTML of a letter as a sequence of paragraphs, the source of its text and its document.

Headings, paragraphs, lists, line breaks, bold and italics are kept; styles, pictures and scripts are not.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Literal

Kind = Literal["heading", "subheading", "paragraph", "bullet", "number"]

WIDTH = 78  # of a line of text
KINDS: dict[str, Kind] = {"h1": "heading", "h2": "subheading", "h3": "subheading", "h4": "subheading"}
BREAKS = frozenset(
    ("p", "div", "section", "article", "header", "footer", "main", "address", "blockquote", "table", "tr", "ul", "ol",
     "li", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "body", "dl", "dt", "dd", "pre")
)  # fmt: skip
UNSEEN = frozenset(("head", "style", "script", "template", "title"))
BOLD, ITALIC = frozenset(("b", "strong")), frozenset(("i", "em"))
RIGHT = "date"  # the class of a paragraph that is aligned right


@dataclass(frozen=True)
class Run:
    """Text in one style; a line break is `\\n`."""

    text: str
    bold: bool = False
    italic: bool = False


@dataclass
class Block:
    """A paragraph."""

    kind: Kind
    right: bool = False
    number: int = 0  # of an item in its list
    runs: list[Run] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs)


def read_blocks(html: str) -> list[Block]:
    """The non-empty paragraphs of a page, with white space as a browser shows it."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    blocks = []
    for block in reader.blocks:
        block.runs = _squeeze(block.runs)
        if block.text:
            blocks.append(block)
    return blocks


def write_text(blocks: list[Block]) -> str:
    """Write plain text: paragraphs separated by an empty line, in lines of at most 78 characters."""
    parts: list[str] = []
    for before, block in zip([None, *blocks], blocks, strict=False):
        in_list = before is not None and block.kind == before.kind and block.kind in ("bullet", "number")
        after_heading = before is not None and before.kind == "subheading"
        if before is not None and not in_list and not after_heading:
            parts.append("")
        parts.append(_paragraph(block))
    return "\n".join(parts) + "\n"


def _paragraph(block: Block) -> str:
    mark = {"bullet": "- ", "number": f"{block.number}. "}.get(block.kind, "")
    lines = []
    for i, line in enumerate(block.text.split("\n")):
        first = mark if i == 0 else " " * len(mark)
        lines += textwrap.wrap(
            line, WIDTH, initial_indent=first, subsequent_indent=" " * len(mark), break_long_words=False,
            break_on_hyphens=False,
        ) or [""]  # fmt: skip
    if block.right:
        lines = [line.rjust(WIDTH) for line in lines]
    if block.kind == "heading":
        lines.append("=" * max(map(len, lines)))
    elif block.kind == "subheading":
        lines.append("-" * max(map(len, lines)))
    return "\n".join(lines)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = [Block("paragraph")]
        self.unseen = 0
        self.bold = self.italic = 0
        self.lists: list[list[int]] = []  # of each open list: 1 if numbered, and the number of its items

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNSEEN:
            self.unseen += 1
        self.bold += tag in BOLD
        self.italic += tag in ITALIC
        if tag in ("ul", "ol"):
            self.lists.append([int(tag == "ol"), 0])
        if tag == "br":
            self._add("\n")
        elif tag in BREAKS:
            self._begin(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag in UNSEEN:
            self.unseen = max(self.unseen - 1, 0)
        self.bold = max(self.bold - (tag in BOLD), 0)
        self.italic = max(self.italic - (tag in ITALIC), 0)
        if tag in ("ul", "ol") and self.lists:
            self.lists.pop()
        if tag in BREAKS:
            self.blocks.append(Block("paragraph"))

    def handle_data(self, data: str) -> None:
        self._add(" ".join(data.replace("\n", " ").split(" ")))

    def _begin(self, tag: str, attributes: dict[str, str | None]) -> None:
        inside_item = tag == "p" and self.blocks[-1].kind in ("bullet", "number") and not self.blocks[-1].text.strip()
        if inside_item:
            return
        block = Block(KINDS.get(tag, "paragraph"), right=RIGHT in (attributes.get("class") or "").split())
        if tag == "li" and self.lists:
            numbered = self.lists[-1]
            numbered[1] += 1
            block.kind, block.number = ("number" if numbered[0] else "bullet"), numbered[1]
        self.blocks.append(block)

    def _add(self, text: str) -> None:
        if not self.unseen:
            self.blocks[-1].runs.append(Run(text, self.bold > 0, self.italic > 0))


def _squeeze(runs: list[Run]) -> list[Run]:
    """Collapse white space to single spaces, with none at the ends of a line."""
    squeezed: list[Run] = []
    before = "\n"
    for run in runs:
        text = ""
        for character in run.text:
            space = character in " \t\r\f"
            if space and before in " \n":
                continue
            if character == "\n" and before == " ":
                if text:
                    text = text.rstrip(" ")
                elif squeezed:
                    squeezed[-1] = Run(squeezed[-1].text.rstrip(" "), squeezed[-1].bold, squeezed[-1].italic)
            text += " " if space else character
            before = text[-1]
        if text:
            squeezed.append(Run(text, run.bold, run.italic))
    while squeezed and not squeezed[-1].text.rstrip():
        squeezed.pop()
    if squeezed:
        last = squeezed[-1]
        squeezed[-1] = Run(last.text.rstrip(), last.bold, last.italic)
    return squeezed
