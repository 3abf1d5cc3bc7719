"""The script of a scripted agent, parsed whole before anything is done. Pure: reads no file, runs nothing."""

import json
import math
import re
from collections.abc import Callable
from functools import partial

from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import nearest

LARGEST_NUMBER = 1_000_000_000
SEPARATOR = "===="
TEXT, SCRIPT = "text", "script"
USAGE_KEYS = ("input", "output", "cache_read", "cache_write", "cost", "model")
SIGNALS = ("ABRT", "ALRM", "BUS", "FPE", "HUP", "ILL", "INT", "KILL", "PIPE", "QUIT", "SEGV", "TERM", "USR1", "USR2")
_HERE = re.compile(r"(?:(.*)\s)?<<([A-Za-z_][A-Za-z0-9_]*)", re.DOTALL)
_LINE = re.compile("[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_PLACEHOLDER = re.compile(r"\{(task|head(?:~[1-9])?|message)\}")


class ScriptError(UsageError):
    """An invalid script; the message begins with the line."""


class ScriptStep(NamedTuple):
    """One directive. `text` is the rest of its line, `body` its here-document; the others, what those mean."""

    line: int
    verb: str
    text: str = ""
    body: str = ""
    number: float = 0
    words: tuple[str, ...] = ()
    steps: tuple["ScriptStep", ...] = ()


class Form(NamedTuple):
    """How a directive is written: its argument (in brackets: may be left out), whether a here-document follows (`TEXT`
    or `SCRIPT`), and what reads the rest of its meaning."""

    argument: str = ""
    body: str = ""
    read: Callable[[ScriptStep], ScriptStep] = lambda step: step

    def usage(self, verb: str) -> str:
        return " ".join(part for part in (verb, self.argument, "<<END" if self.body else "") if part)


def parse(text: str, first_line: int = 1) -> tuple[ScriptStep, ...]:
    """All steps in their order, or `ScriptError` for the first line that is wrong."""
    lines = _LINE.findall(text)
    steps = []
    at = 0
    while at < len(lines):
        line, number = lines[at].strip(), first_line + at
        at += 1
        if not line or line.startswith("#"):
            continue
        verb, argument = (*line.split(maxsplit=1), "")[:2]
        step = ScriptStep(number, verb, argument)
        form = _form(step)
        if form.body:
            here = _HERE.fullmatch(argument)
            if not here:
                raise _wrong(step, f"`{verb}` needs a text after it")
            end, start = here[2], at
            while at < len(lines) and lines[at].rstrip("\r\n") != end:
                at += 1
            if at == len(lines):
                raise ScriptError(f"line {number}: the text of `{verb}` has no end", hint=f"end it by a line `{end}`")
            step = step._replace(text=(here[1] or "").strip(), body="".join(lines[start:at]))
            at += 1
        _check_argument(step, form.argument)
        if form.body == SCRIPT:
            step = step._replace(steps=parse(step.body, number + 1))
        steps.append(form.read(step))
    return tuple(steps)


def expand(text: str, value_of: Callable[[str], str]) -> str:
    """Put values in place of `{task}`, `{head}`, `{head~1}` and so on, and `{message}`; other braces stay."""
    return _PLACEHOLDER.sub(lambda found: value_of(found[1]), text)


def inside_json(text: str) -> str:
    """The text as it is written between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _form(step: ScriptStep) -> Form:
    if step.verb in FORMS:
        return FORMS[step.verb]
    shown = step.verb if len(step.verb) <= 30 else step.verb[:30] + "..."
    found = nearest(shown, tuple(FORMS))
    hint = f"the nearest is `{FORMS[found].usage(found)}`" if found else f"known: {', '.join(FORMS)}"
    raise ScriptError(f"line {step.line}: no directive is called `{shown}`", hint=hint)


def _check_argument(step: ScriptStep, wanted: str) -> None:
    if step.text and not wanted:
        raise _wrong(step, f"`{step.verb}` takes nothing after it")
    if not step.text and wanted and not wanted.startswith("["):
        raise _wrong(step, f"`{step.verb}` needs {wanted}")
    if "\0" in step.text:
        raise _wrong(step, f"a NUL character cannot be given to `{step.verb}`")


def _wrong(step: ScriptStep, what: str) -> ScriptError:
    return ScriptError(f"line {step.line}: {what}", hint=f"write `{FORMS[step.verb].usage(step.verb)}`")


def _number(step: ScriptStep, text: str, *, whole: bool, most: float = LARGEST_NUMBER) -> float:
    pattern = r"[0-9]{1,12}" if whole else r"[0-9]{1,12}(\.[0-9]{1,9})?|\.[0-9]{1,9}"
    value = float(text) if re.fullmatch(pattern, text) else math.inf
    if value > most:
        kind = "a whole number" if whole else "a number"
        raise _wrong(step, f"`{text[:30]}` is not {kind} from 0 to {most:g}")
    return value


def _numbered(step: ScriptStep, *, whole: bool = True, most: float = LARGEST_NUMBER, default: str = "") -> ScriptStep:
    return step._replace(number=_number(step, step.text or default, whole=whole, most=most))


def _crash(step: ScriptStep) -> ScriptStep:
    """Either `number`, an exit code, or one word, the signal's name without `SIG`."""
    name = step.text.upper().removeprefix("SIG")
    if name in SIGNALS:
        return step._replace(words=(name,))
    if step.text and not step.text.isdigit():
        raise _wrong(step, f"`{step.text[:30]}` is no exit code and no signal of {', '.join(SIGNALS)}")
    return _numbered(step, most=255, default="1")


def _usage(step: ScriptStep) -> ScriptStep:
    """`words` are the values in the order of `USAGE_KEYS`; a cost and a model that were not given are empty."""
    given: dict[str, str] = {}
    for pair in step.text.split():
        key, _, value = pair.partition("=")
        if key not in USAGE_KEYS or key in given:
            raise _wrong(step, f"`{pair[:30]}` is not one of {', '.join(USAGE_KEYS)}, each once, with its value")
        if key != "model":
            _number(step, value, whole=key != "cost")
        given[key] = value
    return step._replace(words=tuple(given.get(key, "" if key in ("cost", "model") else "0") for key in USAGE_KEYS))


def _replacement(step: ScriptStep) -> ScriptStep:
    """`words` are the old and the new text, without their last newline."""
    lines = _LINE.findall(step.body)
    cuts = [at for at, line in enumerate(lines) if line.rstrip("\r\n") == SEPARATOR]
    if len(cuts) != 1:
        raise _wrong(step, f"`replace` needs one line `{SEPARATOR}` between the old and the new text")
    parts = ("".join(part) for part in (lines[: cuts[0]], lines[cuts[0] + 1 :]))
    old, new = (part.removesuffix("\n").removesuffix("\r") for part in parts)
    if not old:
        raise _wrong(step, "the old text of `replace` is empty")
    return step._replace(words=(old, new))


def _outcome(step: ScriptStep) -> ScriptStep:
    try:
        json.loads(expand(step.body, lambda name: name))
    except (ValueError, RecursionError) as error:
        reason = str(error)[:200]
        raise ScriptError(
            f"line {step.line}: the text of `outcome` is not JSON: {reason}",
            hint="`outcome-raw <<END` writes any text as it is",
        ) from None
    return step


def _artifact(step: ScriptStep) -> ScriptStep:
    parts = step.text.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise _wrong(step, f"`{step.text[:60]}` is not a name inside the directory of artifacts")
    return step


def _if_message(step: ScriptStep) -> ScriptStep:
    try:
        re.compile(step.text)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        raise _wrong(step, f"`{step.text[:60]}` is not a regular expression: {error}") from None
    return step


_SECONDS = partial(_numbered, whole=False)
FORMS = {
    "say": Form("TEXT"),
    "think": Form("SECONDS", read=_SECONDS),
    "title": Form("TEXT"),
    "write": Form("PATH", body=TEXT),
    "append": Form("PATH", body=TEXT),
    "replace": Form("PATH", body=TEXT, read=_replacement),
    "delete": Form("PATH"),
    "run": Form("COMMAND"),
    "run!": Form("COMMAND"),
    "spawn": Form("COMMAND"),
    "commit": Form("MESSAGE"),
    "wait": Form("[TEXT]"),
    "ask": Form("QUESTION"),
    "permission": Form("TEXT"),
    "block": Form("REASON"),
    "rate-limit": Form("SECONDS", read=_SECONDS),
    "if-message": Form("REGEX", body=SCRIPT, read=_if_message),
    "repeat": Form("N", body=SCRIPT, read=_numbered),
    "usage": Form("[input=N output=N cache_read=N cache_write=N cost=USD model=NAME]", read=_usage),
    "outcome": Form(body=TEXT, read=_outcome),
    "outcome-raw": Form(body=TEXT),
    "artifact": Form("NAME", body=TEXT, read=_artifact),
    "exit": Form("[CODE]", read=partial(_numbered, most=255, default="0")),
    "crash": Form("[CODE or SIGNAL]", read=_crash),
    "hang": Form(),
    "hang-ignoring-signals": Form(),
}
