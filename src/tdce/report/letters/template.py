"""The template of letters: ours, or the user's own file, in Jinja's sandbox.

A template can read the parts of a letter and nothing else; table contents are escaped.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tdce._core import InputError, show, suggest
from tdce.report.letters.content import Letter

if TYPE_CHECKING:
    import jinja2

OWN = "letter.html"
MAX_BYTES = 1 << 20
PARTS = tuple(each.name for each in fields(Letter))


@dataclass(frozen=True, eq=False)
class Template:
    """A checked template."""

    name: str  # of its file, for errors
    compiled: jinja2.Template

    @classmethod
    def read(cls, path: Path | None = None) -> Self:
        """Read the template in a file; None: ours."""
        if path is None:
            return cls.parse(files("tdce.report.letters").joinpath(OWN).read_text(encoding="utf-8"), OWN)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"the template {path} cannot be read: {error.strerror}") from None
        if len(content) > MAX_BYTES:
            raise InputError(f"the template {path} has {len(content):,} bytes; at most {MAX_BYTES:,} are read")
        try:
            return cls.parse(content.decode("utf-8-sig"), str(path))
        except UnicodeDecodeError:
            raise InputError(f"the template {path} is not in UTF-8; save it as UTF-8") from None

    @classmethod
    def parse(cls, text: str, name: str) -> Self:
        """Parse a template; errors name the line."""
        import jinja2  # slow to import, and only letters and pages need it
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        try:
            _check_names(environment.parse(text, filename=name), name)
            code = environment.compile(text, filename=name)
        except jinja2.TemplateSyntaxError as error:
            raise _error(name, error.lineno, str(error.message)) from None
        except RecursionError:
            raise InputError(f"the template {name} is nested too deeply") from None
        return cls(name, environment.template_class.from_code(environment, code, environment.make_globals(None)))

    def render(self, letter: Letter) -> str:
        """Render a letter as HTML; errors name the line of the template."""
        try:
            return self.compiled.render({part: getattr(letter, part) for part in PARTS})
        except Exception as error:  # any error of its expressions: the message names the line
            raise _error(self.name, _line_of(error, self.name), str(error) or type(error).__name__) from None


def _check_names(tree: jinja2.nodes.Template, name: str) -> None:
    """Raise an error for names in a template that are neither parts of a letter nor defined in the template."""
    from jinja2 import meta, nodes
    from jinja2.defaults import DEFAULT_NAMESPACE

    names = list(tree.find_all(nodes.Name))
    own = {each.name for each in names if each.ctx != "load"} | {each.name for each in tree.find_all(nodes.Macro)}
    for unknown in sorted(meta.find_undeclared_variables(tree) - {*PARTS, *DEFAULT_NAMESPACE, *own}):
        line = min(each.lineno for each in names if each.name == unknown)
        raise _error(name, line, f"there is no {show(unknown)}; {suggest(unknown, PARTS)}known: {', '.join(PARTS)}")


def _line_of(error: BaseException, name: str) -> int | None:
    """The line of the template in which an error was raised: the innermost one."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _error(name: str, line: Any, reason: str) -> InputError:
    where = "" if line is None else f", line {line}"
    return InputError(f"the template {name}{where}: {show(reason, 400, str)}")
