"""How a verb's help looks: usage, what it does, examples, then options. Makes text, prints nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mngr.cli.output.terminal import paint, width
from mngr.cli.parser.parser import Option

if TYPE_CHECKING:
    from mngr.cli.parser.parser import Parser

_LEFT = 30  # beyond this an option's text begins on its own line


def usage_line(parser: Parser) -> str:
    """`mngr create [OPTIONS] [ADDRESS] [-- ARGS...]`"""
    parts = [parser.prog]
    if any(option.names for option in parser.options) or len(parser.chain()) > 1:
        parts.append("[OPTIONS]")
    if parser.subcommands:
        names = "|".join(parser.subcommands)
        parts.append(f"[{names}]" if parser.default_subcommand else names)
        parts.append("...")
    parts += [_positional(option) for option in parser.options if not option.names]
    if parser.rest is not None:
        parts.append(f"[-- {parser.rest[0]}...]")
    return " ".join(parts)


def help_text(parser: Parser, columns: int, colour: bool) -> str:
    """The whole help, ending in a newline."""

    def title(text: str) -> str:
        return paint(f"{text}:", "bold") if colour else f"{text}:"

    blocks = [f"Usage: {usage_line(parser)}"]
    if parser.summary:
        blocks.append(parser.summary)
    blocks += [_wrap(part, columns) for part in _paragraphs(parser.description or "")]
    if parser.examples:
        blocks.append(f"{title('Examples')}\n{_examples(parser.examples, columns)}")
    if parser.subcommands:
        rows = [(name, child.summary) for name, child in parser.subcommands.items()]
        blocks.append(f"{title('Parts')}\n{_rows(rows, columns)}")
    blocks += [f"{title(name)}\n{_rows(rows, columns)}" for name, rows in sections(parser)]
    root = parser.chain()[-1]
    if root.everywhere:
        blocks.append(f"{title('Everywhere')}\n{_wrap(EVERYWHERE, columns, '  ')}")
    if parser.aliases:
        blocks.append(f"{title('Also called')} {', '.join(f'mngr {alias}' for alias in parser.aliases)}")
    return "\n\n".join(blocks) + "\n"


EVERYWHERE = "--format FORMAT, -q, -v, --headless, -S KEY=VALUE, -h: see `mngr --help`"


def sections(parser: Parser) -> list[tuple[str, list[tuple[str, str]]]]:
    """Arguments, then options by group, those of the verb before those of its part."""
    sections: list[tuple[str, list[tuple[str, str]]]] = []
    arguments = [(_positional(option), option.help) for option in parser.options if not option.names and option.help]
    if parser.rest is not None and parser.rest[1]:
        arguments.append((f"-- {parser.rest[0]}...", parser.rest[1]))
    sections.append(("Arguments", arguments))
    for member in reversed(parser.chain()):
        titled = [group for group in member.groups if group.title]
        grouped = {id(option) for group in titled for option in group.options}
        plain = [
            option for option in member.options if id(option) not in grouped and option.dest not in member.everywhere
        ]
        title = "Options" if member is parser else f"Options of {member.prog}"
        for name, options in [(title, plain), *((group.title, group.options) for group in titled)]:
            sections.append(
                (
                    name[:1].upper() + name[1:],
                    [(_invocation(option), option.help) for option in options if option.names and not option.hidden],
                )
            )
    return [(name, rows) for name, rows in sections if rows]


def _invocation(option: Option) -> str:
    """`--name, -n NAME`, `--[no-]connect`."""
    text = ", ".join(option.names)
    if option.negative:
        if option.negative == tuple(f"--no-{name[2:]}" for name in option.names):
            return text.replace("--", "--[no-]", 1)
        return f"{text} / {', '.join(option.negative)}"
    return text if option.nargs == 0 else f"{text} {_value_name(option)}"


def _value_name(option: Option) -> str:
    return "|".join(option.choices) if option.metavar is None and option.choices else option.shown_name


def _positional(option: Option) -> str:
    name = _value_name(option)
    return {"?": f"[{name}]", "*": f"[{name}...]", "+": f"{name}..."}.get(str(option.nargs), name)


def _paragraphs(text: str) -> list[str]:
    return [part.strip("\n") for part in text.split("\n\n") if part.strip()]


def _examples(examples: Iterable[tuple[str, str]], columns: int) -> str:
    """Commands with what they do beside them, or above them where they are long."""
    examples = list(examples)
    left = max(width(command) for command, _ in examples)
    if left + 4 + max(width(text) for _, text in examples) + 4 <= columns:
        return "\n".join(
            f"  {command}{' ' * (left - width(command))}  # {text}".rstrip(" #") for command, text in examples
        )
    return "\n".join(f"  # {text}\n  {command}" if text else f"  {command}" for command, text in examples)


def _rows(rows: list[tuple[str, str]], columns: int) -> str:
    left = max((width(name) for name, _ in rows if width(name) <= _LEFT), default=_LEFT // 2)
    indent = " " * (left + 4)
    lines = []
    for name, text in rows:
        wrapped = _wrap(text, columns, indent) if text else ""
        if width(name) > left and wrapped:
            lines += [f"  {name}", wrapped]
        else:
            lines.append(f"  {name}{' ' * (left - width(name))}  {wrapped.lstrip()}".rstrip())
    return "\n".join(lines)


def _wrap(text: str, columns: int, indent: str = "") -> str:
    """Filled text; indented lines of it stay as they are."""
    import textwrap

    if any(line.startswith((" ", "- ")) for line in text.split("\n")):
        return "\n".join(f"{indent}{line}".rstrip() for line in text.split("\n"))
    return textwrap.fill(
        " ".join(text.split()),
        columns,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
