"""How a verb's help looks: usage, what it does, examples, then options. Makes text, prints nothing."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from mngr.cli.binding import is_repeatable, shown_name
from mngr.cli.terminal import paint, width
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from mngr.cli.parser import Parser

_LEFT = 30  # beyond this an option's text begins on its own line


def usage_line(parser: Parser) -> str:
    """`mngr create [OPTIONS] [ADDRESS] [-- ARGS...]`"""
    parts = [parser.prog]
    optional = [a for a in parser.own_actions() if a.option_strings and not a.required]
    if optional or len(parser.chain()) > 1:
        parts.append("[OPTIONS]")
    parts += [_invocation(a, short=True) for a in parser.own_actions() if a.option_strings and a.required]
    if parser.subcommands:
        names = "|".join(parser.subcommands)
        parts.append(f"[{names}]" if parser.default_subcommand else names)
        parts.append("...")
    parts += [_positional(a) for a in parser.own_actions() if not a.option_strings]
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
    blocks += [f"{title(name)}\n{_rows(rows, columns)}" for name, rows in _sections(parser)]
    root = parser.chain()[-1]
    if root.everywhere:
        blocks.append(f"{title('Everywhere')}\n{_wrap(EVERYWHERE, columns, '  ')}")
    if parser.aliases:
        blocks.append(f"{title('Also called')} {', '.join(f'mngr {alias}' for alias in parser.aliases)}")
    return "\n\n".join(blocks) + "\n"


EVERYWHERE = "--format FORMAT, -q, -v, --headless, -S KEY=VALUE, -h: see `mngr --help`"


def _sections(parser: Parser) -> list[tuple[str, list[tuple[str, str]]]]:
    sections: list[tuple[str, list[tuple[str, str]]]] = []
    named = [a for a in parser.own_actions() if not a.option_strings and a.help and a.help is not argparse.SUPPRESS]
    arguments = [(_positional(a), _help(a)) for a in named]
    if parser.rest is not None and parser.rest[1]:
        arguments.append((f"-- {parser.rest[0]}...", parser.rest[1]))
    if arguments:
        sections.append(("Arguments", arguments))
    for member in reversed(parser.chain()):
        for group in member._action_groups:
            rows = [
                (_invocation(a), _help(a))
                for a in group._group_actions
                if a.option_strings and a.help is not argparse.SUPPRESS and a.dest not in member.everywhere
            ]
            standard = group is member._optionals
            name = "Options" if standard else (group.title or "Options")
            if rows and len(member.chain()) < len(parser.chain()) and standard:
                name = f"Options of {member.prog}"
            if rows:
                sections.append((name, rows))
    return sections


def _invocation(action: argparse.Action, short: bool = False) -> str:
    """`-n, --name NAME`, `--[no-]connect`."""
    options = list(action.option_strings)
    positive = getattr(action, "positive", None)
    if positive is not None:
        first = positive[-1] if short else ", ".join(positive)
        negative = getattr(action, "negative", ())
        if negative == tuple(f"--no-{o[2:]}" for o in positive if o.startswith("--")) and len(negative) == 1:
            return first.replace("--", "--[no-]", 1)
        return first if short else f"{first} / {', '.join(negative)}"
    text = options[-1] if short else ", ".join(options)
    if action.nargs == 0:
        return text
    value = _metavar(action)
    if action.nargs == "?":
        return f"{text}[={value}]"
    if action.nargs in ("*", "+"):
        return f"{text} {value}..."
    return f"{text} {value}"


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar is None and action.choices is not None:
        return "|".join(str(choice) for choice in action.choices)
    return shown_name(action)


def _positional(action: argparse.Action) -> str:
    name = _metavar(action)
    if action.nargs == "?":
        return f"[{name}]"
    if action.nargs == "*":
        return f"[{name}...]"
    if action.nargs == "+":
        return f"{name}..."
    return " ".join([name] * (action.nargs if isinstance(action.nargs, int) else 1))


def _help(action: argparse.Action) -> str:
    text = action.help or ""
    if is_repeatable(action) and action.nargs != 0 and "repeated" not in text:
        text = f"{text} (can be repeated)"
    return text


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
