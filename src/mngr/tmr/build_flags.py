"""Changes of what the product is built from: dependencies and build files. A person must accept them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mngr.tmr.changed_file import File, Flag
from mngr.tmr.paths import BUILD, matches

KINDS = frozenset({"dependency", "build"})
# All of such a file is about dependencies.
_LISTS = (
    *("requirements*.txt", "constraints*.txt", "Pipfile", "environment.yml", "go.mod", "go.sum", "Gemfile"),
    *("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "*.lock"),
)
# In these, only some tables are; each is a path of keys.
_TABLES: Mapping[str, tuple[str, ...]] = {
    "pyproject.toml": (
        *("project.dependencies", "project.optional-dependencies", "project.requires-python", "dependency-groups"),
        *("build-system.requires", "tool.poetry.dependencies", "tool.poetry.dev-dependencies", "tool.poetry.group"),
        *("tool.uv", "tool.pdm.dev-dependencies"),
    ),
    "Cargo.toml": ("dependencies", "dev-dependencies", "build-dependencies", "target", "workspace", "patch"),
    "package.json": (
        *("dependencies", "devDependencies", "peerDependencies", "optionalDependencies", "overrides", "resolutions"),
    ),
}
_BUILD_TABLES: Mapping[str, tuple[str, ...]] = {
    "pyproject.toml": (
        *("build-system.build-backend", "build-system.backend-path", "tool.setuptools", "tool.hatch", "tool.flit"),
        *("tool.pdm.build", "tool.poetry.build", "tool.poetry.packages", "tool.maturin", "tool.scikit-build"),
        *("tool.cython", "tool.cibuildwheel", "project.dynamic"),
    ),
    "Cargo.toml": ("package.build", "package.links", "profile", "features", "lib", "bin"),
    "package.json": ("scripts", "main", "bin", "exports"),
}
_SETUP_CFG = {
    "dependency": (("options", "install_requires"), ("options", "setup_requires"), ("options.extras_require", "")),
    "build": (("options", "packages"), ("options", "package_dir"), ("options", "cmdclass"), ("build_ext", "")),
}


def find(file: File) -> Iterator[Flag]:
    """The flags of one file."""
    if matches(file.name, _LISTS):
        yield _dependency(file)
    elif file.name in _TABLES:
        yield from _by_tables(file, _toml_or_json(file, file.before), _toml_or_json(file, file.after))
    elif file.name == "setup.cfg":
        yield from _of_setup_cfg(file)
    elif file.name in ("tox.ini", "noxfile.py"):
        return
    elif file.build or matches(file.name, BUILD):
        yield _build(file)


def _dependency(file: File) -> Flag:
    return Flag("dependency", file.path, f"`{file.path}` changes what the product depends on")


def _build(file: File) -> Flag:
    return Flag("build", file.path, f"`{file.path}` changes how the product is built")


def _by_tables(file: File, old: Any, new: Any) -> Iterator[Flag]:
    """Everything counts when a side cannot be read."""
    unread = old is None or new is None
    if unread or _some(old, new, _TABLES[file.name]):
        yield _dependency(file)
    if unread or _some(old, new, _BUILD_TABLES[file.name]):
        yield _build(file)


def _some(old: Any, new: Any, paths: tuple[str, ...]) -> bool:
    return any(_at(old, path) != _at(new, path) for path in paths)


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _toml_or_json(file: File, text: str | None) -> Any:
    import json
    import tomllib

    try:
        return json.loads(text or "{}") if file.name.endswith(".json") else tomllib.loads(text or "")
    except (ValueError, RecursionError):
        return None


def _of_setup_cfg(file: File) -> Iterator[Flag]:
    import configparser

    sides = []
    for text in (file.before, file.after):
        reader = configparser.RawConfigParser(strict=False)
        try:
            reader.read_string(text or "")
        except configparser.Error:
            yield _dependency(file)
            return
        sides.append({section: dict(reader[section]) for section in reader.sections()})
    for kind, places in _SETUP_CFG.items():
        parts = [[side.get(one, {}).get(key) if key else side.get(one) for one, key in places] for side in sides]
        if parts[0] != parts[1]:
            yield _dependency(file) if kind == "dependency" else _build(file)
