"""Write letters in the forms in which they are sent, and a folder of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast, get_args

from tdce._core import InputError, check_choice, listing, require_extra, show
from tdce.datasets import whole_folder
from tdce.report.letters.blocks import read_blocks, write_text
from tdce.report.letters.content import Letter
from tdce.report.letters.document import write_document
from tdce.report.letters.template import Template
from tdce.report.people import file_names

Form = Literal["html", "txt", "docx"]


def check_forms(forms: Sequence[str]) -> tuple[Form, ...]:
    """Check the forms: known, each once, and with their requirements installed."""
    if isinstance(forms, str) or not isinstance(forms, Sequence) or not forms:
        raise InputError(f"forms is {show(forms)}; it must be a list of some of {listing(get_args(Form))}")
    checked = [check_choice("form", form, get_args(Form)) for form in forms]
    if len(set(checked)) < len(checked):
        raise InputError(f"forms is {show(list(forms))}; name each form once")
    if "docx" in checked:
        require_extra("a letter as .docx", "letters", "docx")
    return cast(tuple[Form, ...], tuple(checked))


def write_letter(letter: Letter, template: Template, form: Form) -> bytes:
    """Write one letter; text and document are made from the HTML, so that one template is enough."""
    html = template.render(letter)
    if form == "html":
        return html.encode()
    blocks = read_blocks(html)
    if form == "txt":
        return write_text(blocks).encode()
    return write_document(blocks, letter.subject, letter.language)


def write_letters(folder: Path, letters: Sequence[Letter], template: Template, forms: Sequence[Form]) -> list[Path]:
    """Write a new folder with a file per person and form, named by the person's id: all files, or none."""
    names = file_names([letter.id for letter in letters])
    files = [f"{name}.{form}" for name in names for form in forms]
    with whole_folder(folder) as draft:
        for letter, name in zip(letters, names, strict=True):
            for form in forms:
                (draft / f"{name}.{form}").write_bytes(write_letter(letter, template, form))
    return [folder / file for file in files]
