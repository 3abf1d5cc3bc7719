"""`mngr completion`: print the completion script of a shell."""

from __future__ import annotations

import os

from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Parser

# Shells run it at every start, and no setting changes what it prints.
READS_SETTINGS = False

SHELLS = ("bash", "zsh", "fish")
DESCRIPTION = """\
Complete verbs, options, agents, types, templates, states and ids with the Tab key. To install:

    bash: echo 'eval "$(mngr completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(mngr completion zsh)"' >> ~/.zshrc
    fish: mngr completion fish > ~/.config/fish/completions/mngr.fish

In zsh, put the line after `autoload -U compinit && compinit`.
"""
EXAMPLES = (
    ("mngr completion bash", "print the script for bash"),
    ('eval "$(mngr completion bash)"', "enable completion in this shell"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="your shell")


def run(args: Args, app: App) -> int:
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "shells", f"mngr.{args.shell}")
    with open(path, "rb") as file:
        app.out.raw(file.read())
    return 0
