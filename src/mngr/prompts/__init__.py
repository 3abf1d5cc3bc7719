"""The words that agents are given: packaged templates, each replaceable by a file."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from mngr.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Environment

_PLACE = os.path.dirname(__file__)
_UNSENDABLE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


@cache
def _environment(places: tuple[str, ...]) -> Environment:
    """Kept, since compiling a template takes longer than most of what is done for an agent; a file that changes
    meanwhile is read again."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(places),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(name: str, own: str | None = None, **values: Any) -> str:
    """The text of a packaged template, or of the file `own` instead, which may extend or include packaged ones. What a
    terminal would act on is left out of it."""
    import jinja2

    places = (os.path.dirname(os.path.abspath(own)), _PLACE) if own else (_PLACE,)
    try:
        text = _environment(places).get_template(os.path.basename(own) if own else name).render(**values)
    except jinja2.TemplateNotFound as error:
        raise UsageError(f"the prompt `{own or name}` cannot be used: there is no template `{error.name}`") from None
    except (jinja2.TemplateError, UnicodeDecodeError) as error:
        line = f", line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
        raise UsageError(f"the prompt `{own or name}` cannot be used{line}: {error}") from None
    return _UNSENDABLE.sub("", text.replace("\r\n", "\n")).strip() + "\n"
