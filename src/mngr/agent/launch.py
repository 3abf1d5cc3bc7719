"""What window 0 of an agent runs: its launch script and environment file, as text. Pure."""

import os
import sys
from collections.abc import Mapping

from mngr.agent.events import FILE
from mngr.agent.record import Record
from mngr.errors import UsageError
from mngr.system.process import GIT_LOCATION, join, quote

# Of the caller's environment, what must not reach an agent: another agent's identity, the caller's terminal.
NOT_INHERITED = frozenset({"TMUX", "TMUX_PANE", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "_", *GIT_LOCATION})

ENV = "env"  # the file with an agent's variables, in its state directory
# Stands for the command of a `scripted` agent in its record: each machine has its own Python and its own copy of mngr.
SCRIPTED = "{scripted}"
_RUN_SCRIPTED = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "runpy.run_module('mngr.programs.scripted', run_name='__main__', alter_sys=True)"
)


def on_this_machine(command: str) -> str:
    """A command of a record as it is run here."""
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return command.replace(SCRIPTED, join([sys.executable, "-I", "-S", "-c", _RUN_SCRIPTED, ours]))


def task_place(record: Record, state_dir: str) -> tuple[str, str]:
    """Where outcome and artifacts go, as a directory and a path below it: inside the work dir, so that sandboxed agents
    may write there, in a directory that ignores itself in git; in the state directory for an agent that works in
    place. The agent writes there, so mngr goes through `system/inside.py`."""
    return (state_dir, "task") if record.workspace.transfer == "none" else (record.workspace.work_dir, ".mngr/task")


def task_dir(record: Record, state_dir: str) -> str:
    """The same as one path, for the agent and its program."""
    return os.path.join(*task_place(record, state_dir))


def identity(record: Record, state_dir: str, host_dir: str) -> dict[str, str]:
    """The variables that tell an agent who and where it is."""
    task = task_dir(record, state_dir)
    return {
        "MNGR_AGENT_ID": record.id,
        "MNGR_AGENT_NAME": record.name,
        "MNGR_AGENT_STATE_DIR": state_dir,
        "MNGR_AGENT_WORK_DIR": record.workspace.work_dir,
        "MNGR_HOST_DIR": host_dir,
        "MNGR_GIT_BASE_BRANCH": record.workspace.base_branch or "",
        "MNGR_AGENT_INDEX": str(record.life.number),
        "MNGR_OUTCOME_FILE": f"{task}/outcome.json",
        "MNGR_ARTIFACTS_DIR": f"{task}/artifacts",
    }


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """What an agent gets of the environment of whoever starts it."""
    return {
        name: value
        for name, value in environ.items()
        if name not in NOT_INHERITED and not name.startswith("MNGR_") and is_variable(name)
    }


def in_shell(command: str, state_dir: str) -> str:
    """The shell line that runs a command; an agent in a sandbox has another one."""
    return f"sh -c {quote(command)}"


def script(line: str, own: Mapping[str, str], state_dir: str) -> str:
    """Run a shell line in the work dir it is started in: who it is, then the variables its user gave it. Its exit code
    is written down by this script itself, since tmux was seen to lose it, more often under load."""
    return _SCRIPT.format(
        own=env_text(own),
        env=quote(f"{state_dir}/env"),
        line=line,
        drawn=WAIT_UNTIL_DRAWN,
        events=quote(f"{state_dir}/{FILE}"),
    )


def window_script(line: str, own: Mapping[str, str], state_dir: str) -> str:
    """What another window beside the agent's own runs, with the same variables."""
    return f"#!/bin/sh\n{env_text(own)}. {quote(f'{state_dir}/env')}\n{line}\n"


# Until tmux has drawn and recorded all that was written to the terminal. When the first process of a terminal ends,
# tmux closes the terminal, although the kernel may not have handed over the last bytes yet; these are lost, more often
# under load. tmux answers a question only after all that was written before it. The question begins with the end of
# an escape sequence that the program may have left open.
WAIT_UNTIL_DRAWN = """\
PATH=$PATH:/usr/bin:/bin
if stty -icanon -echo -ixon min 0 time 100; then
    printf '\\033\\\\\\033[5n'
    answer=
    while more=$(dd bs=99 count=1) && [ -n "$more" ]; do
        answer=$answer$more
        case $answer in *'[0n'*) break ;; esac
    done
fi 2>/dev/null
"""

# The trap lets Ctrl-C end the command and not this script; a trap, unlike ignoring, is not inherited.
_SCRIPT = """#!/bin/sh
{own}. {env}
trap : INT QUIT
{line}
code=$?
{drawn}id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
printf '{{"event_id": "evt-%s", "timestamp": "%s", "source": "launch", "type": "exited", "exit_code": %d}}\\n' \\
    "$id" "$now" "$code" >> {events}
exit "$code"
"""


def env_text(env: Mapping[str, str]) -> str:
    """Variables as a file that a POSIX shell can read."""
    return "".join(f"export {name}={quote(value)}\n" for name, value in env.items())


def parse_env(text: str) -> dict[str, str]:
    """The inverse. Raises ValueError for a text that has anything else in it, such as another command."""
    import shlex

    found: dict[str, str] = {}
    words = shlex.split(text)
    for at in range(0, len(words), 2):
        name, equals, value = "".join(words[at + 1 : at + 2]).partition("=")
        if words[at] != "export" or not equals or not name or not is_variable(name) or "\0" in value:
            raise ValueError(f"{' '.join(words[at : at + 2])[:100]!r} is not `export NAME=VALUE`")
        found[name] = value
    return found


def is_variable(name: str) -> bool:
    return name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()


def parse_variable(text: str) -> tuple[str, str]:
    """`KEY=VALUE` taken apart. What is not in this form may be a secret, so the error does not repeat it."""
    name, equals, value = text.partition("=")
    if not equals or not name or not is_variable(name):
        raise UsageError(
            "a variable that was given is not `KEY=VALUE` with a valid name; its text may be a secret and is not shown",
            hint="for example `--env PORT=8000`",
        )
    if "\0" in value:
        raise UsageError(f"the value of `{name}` holds a NUL byte, which no environment can")
    return name, value
