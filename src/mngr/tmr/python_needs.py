"""What a Python project's tests need beside the package itself, from wherever the project says so. Pure."""

from __future__ import annotations

import ast
import configparser
import itertools
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from mngr.json_values import table

READ = ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py")
_TESTS, _DEV = ("test", "tests", "testing", "hatch-test"), ("dev", "develop", "default")
_FILES = (
    "requirements/{}.txt",
    "requirements-{}.txt",
    "{}-requirements.txt",
    "{}_requirements.txt",
    "{}/requirements.txt",
)
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


class Needs(NamedTuple):
    """`extras` of the package, dependency `groups`, what else pip is given (`words`: what groups hold too), and where
    all of that was found."""

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    found_in: tuple[str, ...] = ()


def needs(names: Collection[str], texts: Mapping[str, str]) -> Needs:
    """Of the tests; of developers, who have more than that, where nothing is said of tests."""
    stated = [*_stated(names, texts, _TESTS)]
    stated = stated or [*_tox(texts.get("tox.ini", "")), *_nox(texts.get("noxfile.py", ""))]
    stated = stated or [*_stated(names, texts, _DEV)]
    files = [Needs(words=("-r requirements.txt",), found_in=("requirements.txt",))] * ("requirements.txt" in names)
    return Needs(*(tuple(dict.fromkeys(word for one in (*files, *stated) for word in one[at])) for at in range(4)))


def toml(texts: Mapping[str, str]) -> Mapping[str, Any]:
    """`pyproject.toml`; empty if there is none that can be read."""
    try:
        return tomllib.loads(texts.get("pyproject.toml", ""))
    except tomllib.TOMLDecodeError:
        return {}


def _stated(names: Collection[str], texts: Mapping[str, str], wanted: Collection[str]) -> Iterator[Needs]:
    facts, source = toml(texts), "pyproject.toml"
    tool = table(facts.get("tool"))
    yield from (
        _extra(name, source)
        for name in table(table(facts.get("project")).get("optional-dependencies"))
        if name in wanted
    )
    groups = table(facts.get("dependency-groups"))
    for name in (name for name in groups if name in wanted):
        yield Needs((), (name,), _expanded(groups, name), (f"{source} (group {name})",))
    for name, one in table(table(tool.get("hatch")).get("envs")).items():
        if name in wanted:
            words = [*table(one).get("dependencies", ()), *table(one).get("extra-dependencies", ())]
            yield Needs(tuple(table(one).get("features", ())), (), _quoted(words), (f"{source} (hatch {name})",))
    for name, one in table(table(tool.get("pdm")).get("dev-dependencies")).items():
        if name in wanted:
            yield Needs(words=_quoted(one), found_in=(f"{source} (pdm {name})",))
    for name, one in table(table(tool.get("poetry")).get("group")).items():
        if name in wanted:
            yield Needs(words=_quoted(table(table(one).get("dependencies"))), found_in=(f"{source} (poetry {name})",))
    yield from (
        _extra(name, "setup.cfg")
        for name in _section(texts.get("setup.cfg", ""), "options.extras_require")
        if name in wanted
    )
    yield from (_extra(name, "setup.py") for name in _extras_of_script(texts.get("setup.py", "")) if name in wanted)
    found = next((path for kind in wanted for form in _FILES if (path := form.format(kind)) in names), "")
    if found:
        yield Needs(words=(f"-r {found}",), found_in=(found,))


def _extra(name: str, source: str) -> Needs:
    return Needs((name,), (), (), (f"{source} (extra {name})",))


def _quoted(words: Collection[Any]) -> tuple[str, ...]:
    plain = (word for word in words if isinstance(word, str) and "{" not in word)
    return tuple(word if _NAME.fullmatch(word) else "'" + word.replace("'", '"') + "'" for word in plain)


def _expanded(groups: Mapping[str, Any], name: str, seen: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What a dependency group holds, those that it includes too."""
    found: list[str] = []
    for one in groups.get(name, ()) if name not in seen else ():
        inner = table(one).get("include-group")
        found += _expanded(groups, str(inner), (*seen, name)) if inner else _quoted([one])
    return tuple(found)


def _section(text: str, name: str) -> Mapping[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    return dict(parser[name]) if parser.has_section(name) else {}


def _extras_of_script(text: str) -> list[str]:
    given = [keyword for call in _calls(text, "setup") for keyword in call.keywords]
    found = [keyword.value for keyword in given if keyword.arg == "extras_require"]
    keys = [key for value in found if isinstance(value, ast.Dict) for key in value.keys]
    return [str(key.value) for key in keys if isinstance(key, ast.Constant)]


def _tox(text: str) -> Iterator[Needs]:
    env = _section(text, "testenv")
    lines = [line.strip() for line in env.get("deps", "").splitlines()]
    words = [line.rpartition(": ")[2] for line in lines if "test" in line.rpartition(": ")[0] or ": " not in line]
    files = tuple(word for word in words if word.startswith("-r ") and "{" not in word)
    plain = _quoted([word for word in words if word and not word.startswith("-")])
    extras = tuple(re.findall(r"[\w-]+", env.get("extras", "")))
    if files or plain or extras:
        yield Needs(extras, (), (*files, *plain), ("tox.ini",))


def _nox(text: str) -> Iterator[Needs]:
    for function in (node for node in _parsed(text) if isinstance(node, ast.FunctionDef) and "test" in node.name):
        args = [arg for call in _calls(ast.unparse(function), "install") for arg in call.args]
        words = [arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        extras = [found for word in words if word.startswith(".[") for found in re.findall(r"[\w-]+", word)]
        files = [word for before, word in itertools.pairwise(words) if before == "-r"]
        plain = [word for word in words if not word.startswith(("-", ".")) and word not in files]
        packages = _quoted(plain)
        if extras or files or plain:
            yield Needs(tuple(extras), (), (*(f"-r {file}" for file in files), *packages), ("noxfile.py",))


def _parsed(text: str) -> Iterator[ast.AST]:
    try:
        yield from ast.walk(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError):
        return


def _calls(text: str, name: str) -> Iterator[ast.Call]:
    for node in _parsed(text):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == name:
                yield node
