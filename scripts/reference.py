"""Writes docs/reference (Markdown, JSON schemas) and docs/man (man pages) from the commands' own declarations.

Only the Markdown pages are in git. With --check it writes nothing and names those that differ.
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

DOCS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs")
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
        parts.append(f"The JSON Schema of what it prints with `--format json`: `mngr {entry.name} --schema`.\n")
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


def man_pages() -> dict[str, str]:
    """The text of each man page by its file name."""
    pages = {f"mngr-{entry.name}.1": man_page(entry, command_parser(entry)) for entry in entries()}
    return {"mngr.1": main_man_page(), **pages}


def markdown_pages() -> dict[str, str]:
    """The text of each page of docs/reference by its file name."""
    return {"index.md": index_page()} | {f"{e.name}.md": command_page(e, command_parser(e)) for e in entries()}


def json_schemas() -> dict[str, str]:
    """The text of the JSON Schema of each verb that prints JSON, by its file name."""
    found = {f"{entry.name}.json": schema(entry) for entry in entries()}
    return {name: json.dumps(value, indent=2) + "\n" for name, value in found.items() if value}


def differing(folder: str, files: dict[str, str]) -> list[str]:
    """The names of files that the folder lacks, has with another text, or has too many."""
    stored = {}
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        if os.path.isfile(os.path.join(folder, name)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                stored[name] = file.read()
    return sorted(name for name in files.keys() | stored.keys() if files.get(name) != stored.get(name))


def write_files(folder: str, files: dict[str, str]) -> int:
    """Make the folder hold these files and no others; return how many changed."""
    os.makedirs(folder, exist_ok=True)
    changed = differing(folder, files)
    for name in changed:
        path = os.path.join(folder, name)
        if name in files:
            with open(path, "w", encoding="utf-8") as file:
                file.write(files[name])
        else:
            os.unlink(path)
    return len(changed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 naming the files that differ")
    if not parser.parse_args().check:
        folders = {"reference": markdown_pages(), "reference/schemas": json_schemas(), "man": man_pages()}
        changed = sum(write_files(os.path.join(DOCS, folder), files) for folder, files in folders.items())
        print(f"{changed} of {sum(map(len, folders.values()))} files of the reference changed")
        return 0
    wrong = differing(os.path.join(DOCS, "reference"), markdown_pages())
    for name in wrong:
        print(f"error: docs/reference/{name} differs from what the commands declare", file=sys.stderr)
    if wrong:
        print("hint: `make docs`", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
