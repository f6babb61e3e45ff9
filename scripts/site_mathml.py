"""Formulas of the site as MathML, made while it is built: a reader's browser fetches nothing to show them."""

from typing import Any

from latex2mathml.converter import convert

NAME = "mathml"


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer(NAME, (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(visitor: Any, node: Any) -> None:
    visitor.body.append(convert(node.astext()))
    _skip()


def _block(visitor: Any, node: Any) -> None:
    visitor.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    _skip()


def _skip() -> None:
    from docutils.nodes import SkipNode

    raise SkipNode
