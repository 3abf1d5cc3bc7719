"""Translates scripts of `mngr demo`, which are for agents of the type `scripted`, into rules of the scripted model,
so that real agent programs do the same work with their own tools."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from mngr.programs.scripted.script import SEPARATOR, ScriptStep, parse
from mngr.system.process import quote
from mngr_testing.model_server.script import Rule

# The line of an agent's prompt that names its test.
_TEST = r"^Test: (\S+::{name})\b"
_END = "THE_END_OF_IT"


def rules(directory: str) -> tuple[Rule, ...]:
    """A rule for each test, by its script, and one for each conflict in the integrator's script."""
    found: list[Rule] = []
    about_conflicts: list[Rule] = []
    for file in sorted(os.listdir(directory)):
        name, _ = os.path.splitext(file)
        with open(os.path.join(directory, file), encoding="utf-8") as stream:
            steps = parse(stream.read())
        if name == "integrator":
            asked = (step for step in steps if step.verb == "if-message")
            about_conflicts += (Rule(step.text.replace("^", r"\A", 1), _turn(step.steps)) for step in asked)
        else:
            found.append(Rule(_TEST.format(name=re.escape(name)), _turn(steps)))
    return (*found, *about_conflicts)


def _turn(steps: Iterable[ScriptStep]) -> str:
    """One turn of the model. It ends where the script waits for an answer."""
    lines: list[str] = []
    for step in steps:
        if step.verb == "ask":
            break
        lines += _directives(step)
    return "\n".join(lines)


def _directives(step: ScriptStep) -> Iterator[str]:
    if step.verb in ("say", "think"):
        yield f"%% {step.verb} {step.text}"
    elif step.verb == "usage":
        yield "%% usage " + " ".join(word for word in step.text.split() if not word.startswith("cost="))
    elif step.verb == "write":
        yield f"%% write {step.text} <<{_END}\n{step.body}{_END}"
    elif shell := _shell(step):
        yield f"%% run <<{_END}\n{shell}\n{_END}"


def _shell(step: ScriptStep) -> str:
    """The step as shell commands; empty for a step that only the scripted kind understands."""
    path = quote(step.text)
    if step.verb in ("run", "run!"):
        return step.text
    if step.verb == "commit":
        return f"git add -A && git commit -q -m {quote(step.text)}"
    if step.verb == "append":
        return f"cat >>{path} <<'TEXT'\n{step.body}TEXT"
    if step.verb == "delete":
        return f"rm {path}"
    if step.verb == "artifact":
        return f'mkdir -p "$MNGR_ARTIFACTS_DIR" && cat >"$MNGR_ARTIFACTS_DIR"/{path} <<\'TEXT\'\n{step.body}TEXT'
    if step.verb == "replace":
        old, new = step.body.split(f"{SEPARATOR}\n")
        return (
            f"python3 - <<'PYTHON'\npath = {step.text!r}\ntext = open(path).read()\nold, new = {old!r}, {new!r}\n"
            "assert text.count(old) == 1, path\nopen(path, 'w').write(text.replace(old, new))\nPYTHON"
        )
    if step.verb == "outcome":
        values = {"{task}": "$MNGR_TASK", **{f"{{head{back}}}": f"$(git rev-parse HEAD{back})" for back in _BACK}}
        words = " ".join(f'-e "s|{name}|{value}|g"' for name, value in values.items() if name in step.body)
        return f"sed {words} >\"$MNGR_OUTCOME_FILE\" <<'TEXT'\n{step.body}TEXT"
    return ""


_BACK = ("", "~1", "~2", "~3")
