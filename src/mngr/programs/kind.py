"""Kinds of agents: what to run, and how its states and messages are known. Built-in ones are a static table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from mngr.agent.launch import SCRIPTED
from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import suggest
from mngr.settings.layers import Settings
from mngr.system.process import find_program, join

# Coding agents that `create` takes by default when no kind is named, in this order.
KNOWN_AGENTS = ("claude", "codex", "opencode")
# What a coding agent may do without asking: nothing; edit files; that, run tests and commit, with the rest denied; all.
ASK, EDITS, TESTS, BYPASS = PERMISSIONS = ("ask", "edits", "tests", "bypass")

# What settings say about an agent program that no driver of its own knows.
READY, BUSY, BLOCKED, REFUSED = PATTERNS = ("ready", "busy", "blocked", "refused")
FIRST_PROMPT, RESUME, ONE_SHOT = "first_prompt", "resume", "one_shot"
HOME_ENV, HOME_LINKS, RECORD = "home_env", "home_links", "record"
RULES = (*PATTERNS, FIRST_PROMPT, RESUME, ONE_SHOT, HOME_ENV, HOME_LINKS, RECORD)


class Kind(NamedTuple):
    """`command` is a shell command line; empty means that the user gives it. `reports` says that the program writes
    its states and received prompts to the agent's events; without, a live process is RUNNING and a message counts
    as delivered when the terminal took it. `driver` names what knows this program (`mngr.programs.driver`), and
    `permissions` what it may do without asking: empty is as the program itself is set up."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    reports: bool = False
    driver: str = ""
    permissions: str = ""
    rules: Mapping[str, str] = {}

    def command_line(self, rest: Sequence[str]) -> str:
        """The shell command that starts an agent of this kind with the user's own arguments."""
        if self.command:
            return " ".join(word for word in (self.command, join(self.args), join(rest)) if word)
        if not rest:
            raise UsageError(
                f"an agent of type `{self.name}` needs a command",
                hint="`mngr create NAME --command 'sleep 100'` or `mngr create NAME --type command -- sleep 100`",
            )
        # One word is a command line for the shell, several are an exact argument list.
        return " ".join((rest[0] if len(rest) == 1 else join(rest), join(self.args))).strip()


def builtin(name: str) -> Kind | None:
    if name == "command":
        return Kind(name="command")
    if name == "scripted":
        rules = {"one_shot": f"{SCRIPTED} --one-shot {{prompt_file}}"}
        return Kind(name="scripted", command=SCRIPTED, reports=True, rules=rules)
    if name in KNOWN_AGENTS:
        return Kind(name=name, command=name, reports=True, driver=name)
    return None


BUILTIN = ("command", "scripted", *KNOWN_AGENTS)


def _ignore(text: str) -> None:
    pass


def resolve(name: str, settings: Settings, warn: Callable[[str], None] = _ignore) -> Kind:
    """The kind of that name: from settings, built in, of a plugin, or any program on PATH. `warn` is told what is wrong
    with a plugin."""
    return _resolve(name, settings, (), warn)


def of_plugins(settings: Settings, warn: Callable[[str], None] = _ignore) -> dict[str, Kind]:
    """The kinds that active plugins add. Without plugins this costs one look at what is installed."""
    from mngr import installed

    active = installed.active(settings)
    if not active:
        return {}
    from mngr import plugins

    found: dict[str, Kind] = {}
    for loaded in plugins.load(active):
        for problem in loaded.warnings():
            warn(problem)
        for name, command, args, env, reports in loaded.kinds:
            if name not in BUILTIN:
                found[name] = Kind(name, command, tuple(args), dict(env), reports)
    return found


def default_name(settings: Settings) -> str:
    """The kind when none is named: a known coding agent that is installed, or of which settings say where it is."""
    for name in KNOWN_AGENTS:
        if "command" in settings.table(("agent_types", name)) or find_program(name):
            return name
    raise UsageError(
        "no agent type was named, and none of " + ", ".join(f"`{name}`" for name in KNOWN_AGENTS) + " is installed",
        hint="run any program: `--command 'CMD'` or `--type command -- CMD`; `mngr doctor` shows what is installed",
    )


def _resolve(name: str, settings: Settings, seen: tuple[str, ...], warn: Callable[[str], None]) -> Kind:
    if name in seen:
        raise UsageError(
            f"agent type `{name}` is its own parent: {' -> '.join((*seen, name))}",
            hint="fix `parent_type` in the settings",
        )
    own = settings.table(("agent_types", name)) if name in settings.names("agent_types") else None
    found = builtin(name)
    added = {} if found else of_plugins(settings, warn)
    found = found or added.get(name) or (Kind(name=name, command=name) if find_program(name) else None)
    if own is None:
        if found is None:
            names = (*BUILTIN, *added, *settings.names("agent_types"), *filter(find_program, KNOWN_AGENTS))
            raise UsageError(
                f"no agent type and no program on PATH is called `{name}`", hint=suggest(name, names, "type")
            )
        return found
    values = {key: item.value for key, item in own.items()}
    parent_name = values.get("parent_type")
    parent = _resolve(str(parent_name), settings, (*seen, name), warn) if parent_name else found or Kind(name=name)
    cli_args = values.get("cli_args") or ()
    if isinstance(cli_args, str):
        import shlex

        cli_args = shlex.split(cli_args)
    env = values.get("env") or {}
    assert isinstance(env, dict) and isinstance(cli_args, list | tuple)
    own_rules = _read_rules(name, values, parent.rules)
    driver = parent.driver or ("screen" if own_rules and not parent.reports else "")
    return Kind(
        name=name,
        command=str(values.get("command") or parent.command),
        args=(*parent.args, *map(str, cli_args)),
        env={**parent.env, **{str(key): str(value) for key, value in env.items()}},
        reports=parent.reports or (driver == "screen" and READY in own_rules),
        driver=driver,
        permissions=str(values.get("permissions") or parent.permissions),
        rules=own_rules,
    )


def _read_rules(name: str, values: Mapping[str, object], inherited: Mapping[str, str]) -> dict[str, str]:
    """The rules of a type: its own over those of its parent; an empty one takes a parent's away. Raises UsageError."""
    own = {key: values[key] for key in RULES if key in values}
    words = {key: join([*map(str, one)]) if isinstance(one, list | tuple) else str(one) for key, one in own.items()}
    found = {key: value for key, value in {**inherited, **words}.items() if value}
    _check_rules(name, found)
    return found


def _check_rules(name: str, found: Mapping[str, str]) -> None:
    for key in PATTERNS:
        try:
            re.compile(found.get(key, ""), re.MULTILINE)
        except re.error as error:
            raise UsageError(
                f"invalid regular expression in `agent_types.{name}.{key}`: {error}",
                hint="in TOML, write it in single quotes, which leave backslashes alone",
            ) from None
    for key in (BUSY, BLOCKED):
        if key in found and READY not in found:
            raise UsageError(
                f"`agent_types.{name}` has `{key}` but no `ready`",
                hint=f"`agent_types.{name}.ready` is a regular expression for its screen while it waits for a prompt",
            )
    for key in (FIRST_PROMPT, ONE_SHOT):
        if key in found and "{prompt}" not in found[key] and "{prompt_file}" not in found[key]:
            raise UsageError(
                f"`agent_types.{name}.{key}` does not say where the prompt goes",
                hint='such as "{command} {prompt}": `{prompt}` is one quoted word, `{prompt_file}` a file with it',
            )
