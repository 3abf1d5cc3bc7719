"""Where results go: stdout, as a table, JSON, lines of JSON or the user's template. Everything else goes to stderr."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from mngr.cli.output.terminal import STATE_STYLES, paint, visible, visible_coloured, visible_lines
from mngr.errors import MngrError, UsageError
from mngr.json_values import plain
from mngr.named_tuples import TypedDict
from mngr.names import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NotRequired, Protocol, TextIO

    from mngr.cli.output.table import Column
    from mngr.cli.output.template import Template

    class NamedResult(Protocol):
        """A NamedTuple that a verb prints."""

        def _asdict(self) -> dict[str, Any]: ...

    Fields = Mapping[str, Any] | NamedResult

# The mark of an object that may have more keys than its type names: `Annotated[EventFields, OPEN]`.
OPEN = "open"
FORMATS = ("human", "json", "jsonl")
# JSON leaves these as they are; a terminal may obey those that control it or turn text around, and UTF-8 cannot carry
# the last ones.
_NOT_PLAIN = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"


class Problem(TypedDict):
    """One thing that could not be read, beside what could."""

    error: str
    hint: str


class ErrorDocument(Problem):
    """What a verb that fails prints in place of its result."""

    exit_code: int
    details: NotRequired[str]


class DryRun(TypedDict):
    dry_run: bool


class Output:
    """One format, chosen once. Every method does the right thing for it, so that a command need not ask."""

    def __init__(
        self,
        format: str,
        stdout: TextIO,
        stderr: TextIO,
        *,
        quiet: bool = False,
        colour: bool = False,
        columns: int | None = None,
    ) -> None:
        self.format = format
        self.stdout = stdout
        self.stderr = stderr
        self.quiet = quiet
        self.colour = colour and format == "human"
        self.columns = columns
        self.emitted = False
        self._template: Template | None = None
        if format not in FORMATS:
            if "{" not in format:
                raise _not_a_format(format)
            from mngr.cli.output.template import Template

            self._template = Template(format)
            self.format = "template"

    @property
    def human(self) -> bool:
        return self.format == "human"

    def check_fields(self, known: Sequence[str]) -> None:
        """Raise for a template with a field that no result has, before anything is changed."""
        if self._template is not None:
            self._template.check(known)

    def emit_object(self, value: Fields, human: str | None = None, known: Sequence[str] = ()) -> None:
        """One result. `human` is what a person reads instead of the fields; empty prints nothing."""
        value = as_mapping(value)
        if self._template is not None:
            self._emit_template(self._template, [value], known)
        elif not self.human:
            self._write(to_json(value, indent=self.format == "json") + "\n")
        elif human is None:
            from mngr.cli.output.template import plain_text

            lines = [f"{name}: {visible(plain_text(item))}\n" for name, item in value.items()]
            self._write("".join(lines))
        elif human:
            self._write(visible_lines(human) + "\n")

    def emit_rows(
        self,
        results: Sequence[Fields],
        columns: Sequence[Column],
        *,
        envelope: Mapping[str, Any] | None = None,
        known: Sequence[str] = (),
        empty: str = "",
    ) -> None:
        """Many results. `envelope` is the document that `json` prints instead of the bare list, `known` the fields a
        template may name (else those of the rows), `empty` what a person reads when there are none."""
        rows = [as_mapping(result) for result in results]
        if self._template is not None:
            self._emit_template(self._template, rows, known)
        elif self.format == "json":
            self._write(to_json(rows if envelope is None else plain(envelope), indent=True) + "\n")
        elif self.format == "jsonl":
            self._write("".join(to_json(row) + "\n" for row in rows))
        elif rows:
            from mngr.cli.output.table import table

            self._write(table(rows, columns, colour=self.colour, fit=self.columns))
        elif empty:
            self._write(empty + "\n")

    def line(self, text: str, style: str = "") -> None:
        """A line of the result for a person; the other formats have it in their fields."""
        if self.human:
            shown = visible_lines(text)
            self._write((paint(shown, style) if self.colour else shown) + "\n")

    def foreign(self, data: bytes) -> None:
        """What another program or machine printed. On a terminal everything but text and colours is spelled out; a file
        gets it unchanged."""
        if self.columns is not None:
            shown = visible_coloured if self.colour else visible_lines
            data = shown(data.decode("utf-8", "surrogateescape")).encode("utf-8", "backslashreplace")
        self.raw(data)

    def raw(self, data: bytes) -> None:
        """What the user asked to get unchanged, also on a terminal."""
        self.stdout.flush()
        self.stdout.buffer.write(data)
        self.stdout.flush()
        self.emitted = True

    def note(self, text: str) -> None:
        """Something worth knowing that is no result."""
        if not self.quiet:
            self.stdout.flush()
            self.stderr.write(visible_lines(text) + "\n")
            self.stderr.flush()

    def warn(self, text: str) -> None:
        """Something that went wrong beside the result; said also when quiet."""
        self.stdout.flush()
        self.stderr.write(f"warning: {visible_lines(text)}\n")
        self.stderr.flush()

    def warn_of(self, errors: Iterable[MngrError]) -> None:
        """Warn of what could not be read, for a person; the other formats have it in their `errors`."""
        for error in errors if self.human else ():
            self.warn(error.explained())

    def flush(self) -> None:
        """Hand over what was written so far: for commands that go on, such as those that follow."""
        self.stdout.flush()

    def _emit_template(self, template: Template, rows: Sequence[Mapping[str, Any]], known: Sequence[str]) -> None:
        from mngr.cli.output.template import fields_of

        if names := known or fields_of(rows):
            template.check(names)
        shown: Callable[[str], str] = visible_lines if self.columns is not None else str
        self._write("".join(shown(template.render(row)) + "\n" for row in rows))

    def _write(self, text: str) -> None:
        self.emitted = True
        try:
            self.stdout.write(text)
        except UnicodeEncodeError:
            encoding = self.stdout.encoding or "utf-8"
            self.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def as_mapping(value: Fields) -> Mapping[str, Any]:
    """A result as JSON has it: each NamedTuple in it is an object."""
    found: Mapping[str, Any] = value if isinstance(value, Mapping) else plain(value)
    return found


def state_style(row: Mapping[str, Any]) -> str:
    """For a column that shows a state."""
    return STATE_STYLES.get(str(row.get("state")), "")


def to_json(value: Any, indent: bool = False) -> str:
    """JSON in one line, or indented by two. Text stays readable, except what could steer a terminal."""
    import json

    form: dict[str, Any] = {"indent": 2} if indent else {"separators": (",", ":")}
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, **form)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, **form)
    if text.isascii() and "\x7f" not in text:
        return text
    return re.sub(_NOT_PLAIN, lambda found: f"\\u{ord(found[0]):04x}", text)


def _finite(value: Any) -> Any:
    """The value with null for each number that JSON does not have."""
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and value - value != 0 else value  # of an infinite one that is not 0


def _not_a_format(text: str) -> UsageError:
    close = nearest(text, FORMATS)
    start = f"the closest is `{close}`; " if close else ""
    return UsageError(
        f"`{visible(text)}` is not a format",
        hint=f"{start}it takes `human`, `json`, `jsonl` or a template such as '{{name}}\\t{{state}}'",
    )
