"""What the quick verbs may load. Every module costs time at each start, so one is added here only on purpose."""

import sys
from collections.abc import Iterator

import pytest

from tests.support.user import User

# Public modules of the standard library, by their first name, that any quick verb may load.
STDLIB = frozenset(
    {
        *("collections", "copyreg", "encodings", "enum", "errno", "fcntl", "functools", "itertools", "json", "keyword"),
        *("operator", "re", "reprlib", "select", "signal", "types", "typing", "contextlib", "abc", "warnings", "zlib"),
    }
)

# Ours, each by its full name.
FRAME = """
    mngr mngr.config mngr.errors mngr.files mngr.interrupts mngr.json_values mngr.names mngr.process
    mngr.settings_schema
    mngr.settings_values
    mngr.cli mngr.cli.app mngr.cli.catalog mngr.cli.commands mngr.cli.dispatch mngr.cli.main
    mngr.cli.output mngr.cli.parser mngr.cli.scan mngr.cli.terminal
    mngr.actions mngr.actions.site mngr.fleet mngr.fleet.fleet mngr.agents mngr.agents.events mngr.agents.record
    mngr.agents.store mngr.hosts mngr.hosts.host mngr.tools mngr.tools.tmux
"""
SEEING = "mngr.actions.agent mngr.actions.find mngr.agents.state"
MAKING = """
    mngr.actions.agent_process mngr.actions.create mngr.agents.kinds mngr.agents.kinds.kind mngr.agents.launch
    mngr.tools.git mngr.workspaces mngr.workspaces.workspace mngr.workspaces.plan
"""
VERBS = {
    "create": f"mngr.cli.commands.create {MAKING} mngr.cli.create_agents mngr.cli.create_hosts mngr.cli.option_values "
    "mngr.actions.agent mngr.hosts.processes",
    "list": f"mngr.cli.commands.list_ {SEEING} mngr.actions.agent_fields mngr.cli.durations mngr.cli.table "
    "mngr.cli.targets mngr.cli.template",
    "message": f"mngr.cli.commands.message {SEEING} mngr.actions.message mngr.cli.durations mngr.cli.option_values "
    "mngr.cli.targets mngr.secrets mngr.waiting",
    "exec": f"mngr.cli.commands.exec_ {SEEING} mngr.actions.execute mngr.agents.launch mngr.cli.durations "
    "mngr.cli.targets",
    "capture": f"mngr.cli.commands.capture {SEEING} mngr.actions.screen",
    "stop": f"mngr.cli.commands.stop {SEEING} mngr.actions.agent_process mngr.actions.lifecycle mngr.agents.launch "
    "mngr.cli.durations mngr.cli.targets mngr.hosts.processes mngr.waiting",
}

# The first word is where to write the answer: standard output belongs to the verb.
PROGRAM = """
import sys
before = set(sys.modules)
from mngr.cli.main import main
code = main(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write("\\n".join(set(sys.modules) - before))
sys.exit(code)
"""


@pytest.fixture(scope="module")
def loaded() -> Iterator[dict[str, set[str]]]:
    """The modules that each verb loads beyond those of `python -c pass`, all run on one real agent."""
    user = User()
    answer = user.root / "modules"
    found = {}
    try:
        for words in (
            ["create", "foo", "--no-connect", "--command", "cat"],
            ["list"],
            ["message", "foo", "-m", "hello"],
            ["exec", "foo", "true"],
            ["capture", "foo"],
            ["stop", "foo"],
        ):
            user.run([sys.executable, "-c", PROGRAM, str(answer), *words]).ok()
            found[words[0]] = set(answer.read_text().split())
        yield found
    finally:
        user.close()


@pytest.mark.parametrize("verb", VERBS)
def test_a_quick_verb_loads_only_modules_on_its_list(loaded, verb):
    allowed = {*FRAME.split(), *VERBS[verb].split()}
    surprises = sorted(name for name in loaded[verb] if not _is_allowed(name, allowed))
    assert not surprises, (
        f"`mngr {verb}` now loads {', '.join(surprises)}: import it inside the function that needs it, "
        f"or, if every `mngr {verb}` does, add it to the lists in {__name__}"
    )


def test_a_third_party_module_is_never_allowed():
    assert not _is_allowed("rich.console", {*FRAME.split()})
    assert not _is_allowed("tomlkit", {*FRAME.split()})


def _is_allowed(name: str, ours: set[str]) -> bool:
    """A private module of the standard library comes with a public one, which is the one to judge."""
    first = name.partition(".")[0]
    if first == "mngr":
        return name in ours
    return first in sys.stdlib_module_names and (first.startswith("_") or first in STDLIB)
