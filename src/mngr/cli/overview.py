"""The texts of `mngr` and `mngr --help`. On the fastest path: imports only the catalog and the terminal."""

from mngr.cli import catalog
from mngr.cli.output.terminal import paint

SHORT = """\
mngr runs coding agents side by side, each in its own copy of your code.

  mngr create fix-login           start an agent and connect to it
  mngr create fix-login@box       the same on another machine: `mngr help providers`
  mngr list                       which agents work, wait for you or are blocked
  mngr message fix-login -m TEXT  send it a message
  mngr connect fix-login          attach to its terminal
  mngr diff fix-login             see what it changed
  mngr merge fix-login            merge its work into this branch
  mngr destroy fix-login          remove it; its work is saved first

`mngr demo` shows everything on a sample project.
`mngr doctor` checks that this machine is ready.
`mngr --help` lists all verbs.
"""


def full(colour: bool, added: tuple[catalog.Verb, ...] = ()) -> str:
    """What `mngr --help` prints. `added` are the verbs of plugins."""
    lines = [
        "Usage: mngr [OPTIONS] VERB [ARGS]",
        "",
        "Run coding agents side by side, each in its own copy of your code",
        "",
    ]
    for group in (*catalog.GROUPS, *((catalog.PLUGINS,) if added else ())):
        lines.append(_title(group, colour))
        for entry in (*catalog.VERBS, *added):
            if entry.group == group:
                lines.append(f"  {', '.join((entry.name, *entry.aliases)):<15} {entry.summary}")
        lines.append("")
    lines.append(_title("Options, before or after the verb", colour))
    for option, value, text in catalog.OPTIONS:
        lines.append(f"  {f'{option} {value}'.rstrip():<25} {text}")
    lines += [
        "",
        "`mngr help VERB` shows what a verb takes, `mngr help TOPIC` explains one of:",
        *(f"  {', '.join(name for name, _ in part)}" for part in (catalog.TOPICS[:4], catalog.TOPICS[4:])),
        "",
    ]
    return "\n".join(lines)


def _title(text: str, colour: bool) -> str:
    return paint(f"{text}:", "bold") if colour else f"{text}:"
