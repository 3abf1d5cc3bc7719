"""Writes docs/reference from what `mngr help` prints. With --check it writes nothing and names pages that differ."""

import argparse
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join("docs", "reference")
MNGR = os.path.join(os.path.dirname(sys.executable), "mngr")
NOTE = "<!-- Written by `make docs` from the command's own help. Change the help, not this page. -->\n"


def ask_mngr(home: str, *arguments: str) -> str:
    """What mngr prints in a plain environment, so that nobody's settings or terminal reach the pages."""
    env = {
        "HOME": home,
        "MNGR_HOST_DIR": os.path.join(home, ".mngr"),
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    result = subprocess.run(
        [MNGR, *arguments],
        cwd=home,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if result.returncode != 0:
        sys.exit(f"error: `mngr {' '.join(arguments)}` exited with {result.returncode}\n{result.stderr.rstrip()}")
    return result.stdout


def summary(help_text: str) -> str:
    """The first line that says what the command does: the one after the usage."""
    for paragraph in help_text.strip().split("\n\n"):
        if not paragraph.lower().startswith("usage:"):
            return paragraph.strip().splitlines()[0].strip()
    return ""


def command_page(name: str, help_text: str) -> str:
    return f"{NOTE}\n# mngr {name}\n\n```text\n{help_text.strip()}\n```\n"


def index_page(summaries: dict[str, str]) -> str:
    rows = [f"| [`{name}`]({name}.md) | {text.replace('|', chr(92) + '|')} |" for name, text in summaries.items()]
    return "\n".join([NOTE, "# Commands", "", "| command | what it does |", "| --- | --- |", *rows, ""])


def make_pages() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as home:
        helps = {name: ask_mngr(home, "help", name) for name in ask_mngr(home, "help", "--commands").split()}
    pages = {f"{name}.md": command_page(name, text) for name, text in helps.items()}
    pages["index.md"] = index_page({name: summary(text) for name, text in helps.items()})
    return pages


def stored_pages() -> dict[str, str]:
    folder = os.path.join(ROOT, FOLDER)
    pages = {}
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        if name.endswith(".md"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                pages[name] = file.read()
    return pages


def write_pages(pages: dict[str, str], names: list[str]) -> None:
    os.makedirs(os.path.join(ROOT, FOLDER), exist_ok=True)
    for name in names:
        path = os.path.join(ROOT, FOLDER, name)
        if name in pages:
            with open(path, "w", encoding="utf-8") as file:
                file.write(pages[name])
        else:
            os.unlink(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 naming the pages that differ")
    check = parser.parse_args().check
    pages, stored = make_pages(), stored_pages()
    differing = sorted(name for name in pages.keys() | stored.keys() if pages.get(name) != stored.get(name))
    if not check:
        write_pages(pages, differing)
        print(f"{len(differing)} of {len(pages)} pages in {FOLDER} changed")
        return 0
    for name in differing:
        print(f"error: {os.path.join(FOLDER, name)} differs from what `mngr help` says", file=sys.stderr)
    if differing:
        print("hint: `make docs`", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
