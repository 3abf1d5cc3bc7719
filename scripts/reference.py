"""Writes docs/reference (Markdown, JSON schemas) and docs/man (man pages) from the commands' own declarations.

With --check it writes nothing and names the files that differ.
"""

import argparse
import json
import os
import sys

from mngr import __version__
from mngr.cli import catalog
from mngr.cli.dispatch import command_parser
from mngr.cli.output.schemas import schema
from mngr.cli.parser import helptext
from mngr.cli.parser.helptext import usage_line
from mngr.cli.parser.parser import Parser

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("docs/reference", "docs/reference/schemas", "docs/man")
NOTE = "Written by `make docs` from the command's own help. Change the help, not this page."
EXIT_CODES = (
    ("0", "done"),
    ("1", "failed"),
    ("2", "the command line or a settings file is wrong"),
    ("3", "part of the work failed"),
    ("4", "timed out"),
    ("5", "a decision is needed and nobody can be asked"),
    ("7", "delivered, but the agent is blocked"),
    ("70", "a bug in mngr"),
    ("130", "interrupted"),
)


def entries() -> list[catalog.Verb]:
    return list(catalog.VERBS)


def command_page(entry: catalog.Verb, parser: Parser) -> str:
    parts = [f"<!-- {NOTE} -->\n\n# mngr {entry.name}\n"]
    for member in parser.family():
        title = "" if member is parser else f"## {member.prog}\n\n"
        parts.append(f"{title}```text\n{member.help_text(100).strip()}\n```\n")
    if schema(entry):
        parts.append(f"JSON: [schemas/{entry.name}.json](schemas/{entry.name}.json)\n")
    return "\n".join(parts)


def index_page() -> str:
    rows = [f"| [`{entry.name}`]({entry.name}.md) | {entry.summary} |" for entry in entries()]
    return "\n".join(
        [f"<!-- {NOTE} -->", "", "# Commands", "", "| command | what it does |", "| --- | --- |", *rows, ""]
    )


def roff(text: str) -> str:
    """Text as roff shows it: backslashes, dashes that are dashes, no line that looks like a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in text.split("\n"))


def man_page(entry: catalog.Verb, parser: Parser) -> str:
    lines = [
        f'.\\" {NOTE}',
        f'.TH "MNGR\\-{entry.name.upper()}" "1" "" "mngr {__version__}" "mngr"',
        ".SH NAME",
        f"mngr\\-{roff(entry.name)} \\- {roff(entry.summary)}",
        ".SH SYNOPSIS",
    ]
    for member in parser.family():
        lines += [".P", f"\\fB{roff(usage_line(member))}\\fR"]
    if parser.description:
        lines += [".SH DESCRIPTION", roff(parser.description)]
    if parser.examples:
        lines.append(".SH EXAMPLES")
        for command, text in parser.examples:
            lines += [".TP", f"\\fB{roff(command)}\\fR", roff(text)]
    for member in parser.family():
        for title, rows in helptext.sections(member):
            if member is not parser and title.startswith("Options of"):
                continue
            name = title if member is parser else f"{title} of {member.prog}"
            lines.append(f".SH {roff(name).upper()}")
            for left, right in rows:
                lines += [".TP", f"\\fB{roff(left)}\\fR", roff(right)]
    lines.append(".SH OPTIONS OF EVERY COMMAND")
    for option, value, text in catalog.OPTIONS:
        lines += [".TP", f"\\fB{roff(f'{option} {value}'.strip())}\\fR", roff(text)]
    lines.append(".SH EXIT STATUS")
    for code, text in EXIT_CODES:
        lines += [".TP", f"\\fB{code}\\fR", roff(text)]
    others = [other.name for other in entries() if other.group == entry.group and other is not entry]
    lines += [".SH SEE ALSO", ", ".join(f"\\fBmngr\\-{roff(name)}\\fR(1)" for name in ("", *others) if name)]
    if entry.aliases:
        lines += [".SH ALSO CALLED", ", ".join(f"\\fBmngr {alias}\\fR" for alias in entry.aliases)]
    return "\n".join(lines) + "\n"


def main_man_page() -> str:
    lines = [
        f'.\\" {NOTE}',
        f'.TH "MNGR" "1" "" "mngr {__version__}" "mngr"',
        ".SH NAME",
        "mngr \\- run coding agents side by side, each in its own copy of your code",
        ".SH SYNOPSIS",
        "\\fBmngr\\fR [OPTIONS] VERB [ARGS]",
    ]
    for group in catalog.GROUPS:
        lines.append(f".SH {roff(group).upper()}")
        for entry in entries():
            if entry.group == group:
                lines += [".TP", f"\\fBmngr\\-{roff(entry.name)}\\fR(1)", roff(entry.summary)]
    return "\n".join(lines) + "\n"


def make_files() -> dict[str, str]:
    files = {"docs/reference/index.md": index_page(), "docs/man/mngr.1": main_man_page()}
    for entry in entries():
        parser = command_parser(entry)
        files[f"docs/reference/{entry.name}.md"] = command_page(entry, parser)
        files[f"docs/man/mngr-{entry.name}.1"] = man_page(entry, parser)
        if found := schema(entry):
            files[f"docs/reference/schemas/{entry.name}.json"] = json.dumps(found, indent=2) + "\n"
    return files


def stored_files() -> dict[str, str]:
    files = {}
    for folder in FOLDERS:
        full = os.path.join(ROOT, folder)
        for name in os.listdir(full) if os.path.isdir(full) else []:
            if os.path.isfile(os.path.join(full, name)):
                with open(os.path.join(full, name), encoding="utf-8") as file:
                    files[f"{folder}/{name}"] = file.read()
    return files


def write_files(files: dict[str, str], names: list[str]) -> None:
    for folder in FOLDERS:
        os.makedirs(os.path.join(ROOT, folder), exist_ok=True)
    for name in names:
        path = os.path.join(ROOT, name)
        if name in files:
            with open(path, "w", encoding="utf-8") as file:
                file.write(files[name])
        else:
            os.unlink(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 naming the files that differ")
    check = parser.parse_args().check
    files, stored = make_files(), stored_files()
    differing = sorted(name for name in files.keys() | stored.keys() if files.get(name) != stored.get(name))
    if not check:
        write_files(files, differing)
        print(f"{len(differing)} of {len(files)} files of the reference changed")
        return 0
    for name in differing:
        print(f"error: {name} differs from what the commands declare", file=sys.stderr)
    if differing:
        print("hint: `make docs`", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
