"""Letters as Word documents (.docx, by python-docx), which the sender can still edit, sign or print."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from tdce._core import require_extra
from tdce.report.letters.blocks import Block

STYLES = {"heading": "Heading 1", "subheading": "Heading 2", "paragraph": "Normal", "bullet": "List Bullet"}
FONT, SIZE = "Georgia", 11
EPOCH = (1980, 1, 1, 0, 0, 0)  # of all files in the archive, so that the same letter has the same bytes


def write_document(blocks: list[Block], title: str, language: str) -> bytes:
    """The bytes of a .docx file; the same blocks give the same bytes."""
    require_extra("a letter as .docx", "letters", "docx")
    import docx
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.shared import Cm, Pt, RGBColor

    document: Any = docx.Document()
    section = document.sections[0]
    section.page_width, section.page_height = Cm(21), Cm(29.7)
    section.left_margin = section.right_margin = section.top_margin = Cm(2.5)
    for name, size in (("Normal", SIZE), ("Heading 1", SIZE + 2), ("Heading 2", SIZE)):
        font = document.styles[name].font
        font.name, font.size, font.color.rgb = FONT, Pt(size), RGBColor(0, 0, 0)
        _set_typeface(document.styles[name])
    for block in blocks:
        paragraph = document.add_paragraph(style=STYLES.get(block.kind, "Normal"))
        if block.kind == "number":  # numbered as text: Word would continue counting across lists
            paragraph.add_run(f"{block.number}. ")
        if block.right:
            paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
        for run in block.runs:
            added = paragraph.add_run(run.text)  # turns \n into a line break
            added.bold, added.italic = run.bold or None, run.italic or None
    properties = document.core_properties
    properties.title, properties.language, properties.author, properties.comments = title, language, "", ""
    _set_language(document, language)
    buffer = io.BytesIO()
    document.save(buffer)
    return _timeless(buffer.getvalue())


def _set_typeface(style: Any) -> None:
    """The font for all scripts; a theme's font would take precedence."""
    from docx.oxml.ns import qn

    fonts = style.element.get_or_add_rPr().get_or_add_rFonts()
    for kind in ("ascii", "hAnsi", "cs", "eastAsia"):
        fonts.set(qn(f"w:{kind}"), FONT)
        fonts.attrib.pop(qn(f"w:{kind}Theme"), None)


def _set_language(document: Any, language: str) -> None:
    """The language for hyphenation, spelling and screen readers."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    properties = document.styles["Normal"].element.get_or_add_rPr()
    mark = OxmlElement("w:lang")
    mark.set(qn("w:val"), language.replace("_", "-"))
    properties.append(mark)


def _timeless(archive: bytes) -> bytes:
    """Rewrite an archive without its creation time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name, EPOCH), old.read(name), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
