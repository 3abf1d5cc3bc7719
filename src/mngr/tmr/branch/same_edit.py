"""The same edit made by several agents, each in its own words: which hunks mean the same, and versions of their files
in which these are written alike, so that the branch has the edit once. `unify` and `near` read blobs; the rest is pure.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from mngr.tmr.branch.objects import Objects, PathChange, TreeEntry
from mngr.tmr.judge.changed_file import FUNCTIONS, parsed

_TEXT_MAX = 400_000
_NEAR_LINES = 2  # how far apart two agents may put the same lines
_NEAR_RATIO = 0.75
_WORDS = re.compile(r"\w+|[^\w\s]")
_TEST = re.compile(rb"(?m)^\s*(?:async )?def test")  # new tests look alike, and are different things


class Edit(NamedTuple):
    """This many lines of the base's file, after the first `start` lines, become `added`."""

    start: int
    removed: int
    added: bytes


def unify(objects: Objects, works: Sequence[Sequence[PathChange]], *, renamed: bool) -> list[tuple[PathChange, ...]]:
    """The changes of each work, with every edit that an earlier work made too written as there. With `renamed`, also
    where they differ in names that the edits themselves introduce, or in blanks: that is to be measured."""
    texts = _Texts(objects, works)
    made: dict[PathChange, PathChange] = {}
    for path, changes in texts.common.items():
        base = texts.of(changes[0].old)
        versions = written_alike(path, base, [texts.of(change.new) for change in changes], renamed=renamed)
        for change, text in zip(changes, versions, strict=True):
            if change.new and text != texts.of(change.new):
                same = next((one.new for one in changes if one.new and texts.of(one.new) == text), None)
                oid = same.oid if same else objects.new_blob(text, like=change.new.oid)
                made[change] = change._replace(new=TreeEntry(change.new.mode, oid))
    return [tuple(made.get(change, change) for change in changes) for changes in works]


class Alike(NamedTuple):
    """The works, by slug, that make nearly the same edit in one place of this file."""

    path: str
    slugs: tuple[str, ...]


def near(objects: Objects, works: Mapping[str, Sequence[PathChange]]) -> tuple[Alike, ...]:
    """What several works do in nearly the same words, by file."""
    count = Counter(change.path for changes in works.values() for change in changes)
    texts = _Texts(objects, [[one for one in changes if count[one.path] > 1] for changes in works.values()], least=1)
    makers: defaultdict[PathChange, list[str]] = defaultdict(list)
    for slug, changes in works.items():
        for change in changes:
            makers[change].append(slug)
    found = []
    for path, changes in texts.common.items():
        lines = _lines(texts.of(changes[0].old))
        groups: list[tuple[list[Edit], list[str]]] = []
        for change in changes:
            edits = [edit for edit in _edits(lines, _lines(texts.of(change.new))) if not _TEST.search(edit.added)]
            like = next((slugs for others, slugs in groups if _are_near(path, edits, others)), None)
            if like is None:
                groups.append((edits, [*makers[change]]))
            else:
                like += makers[change]
        found += [Alike(path, tuple(slugs)) for _, slugs in groups if len(slugs) > 1]
    return tuple(found)


def written_alike(path: str, base: bytes, versions: Sequence[bytes], *, renamed: bool) -> list[bytes]:
    """The versions of a file, with every edit that an earlier version has too written as there: only where that is the
    same program, unless it is `renamed`, and will be measured."""
    lines = _lines(base)
    known = set(_WORDS.findall(base.decode(errors="replace")))
    seen: defaultdict[tuple[str, ...], list[Edit]] = defaultdict(list)
    made = []
    for version in versions:
        edits: list[Edit] = []
        for edit in _edits(lines, _lines(version)):
            old = b"".join(lines[edit.start : edit.start + edit.removed])
            kind = (_shape(path, old, None), _shape(path, edit.added, known if renamed else None))
            like = next((one for one in seen[kind] if abs(one.start - edit.start) <= _NEAR_LINES), None)
            if like is None:
                seen[kind].append(edit)
            edits.append(like if like is not None and like not in edits else edit)
        text = _spliced(lines, edits)
        made.append(text if text is not None and _is_same(path, version, text, renamed=renamed) else version)
    return made


def _is_same(path: str, one: bytes, other: bytes, *, renamed: bool) -> bool:
    """Whether two versions of a file are the same program; with `renamed`, whether they say the same texts, so that the
    rest can be measured. What looks alike in a hunk may be inside of a text."""
    if one == other or not path.endswith(".py"):
        return one == other or renamed
    trees = [tree for text in (one, other) if (tree := parsed(text.decode(errors="replace")))]
    said = [_texts(tree) if renamed else [ast.dump(tree)] for tree in trees]
    return len(said) == 2 and said[0] == said[1]


def _texts(tree: ast.AST) -> list[str]:
    """The texts of a program but its docstrings."""
    remarks = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and _is_remark(node)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in remarks]
    return [repr(node.value) for node in constants]


class _Texts:
    """The texts of plain files of which the works make at least this many things."""

    def __init__(self, objects: Objects, works: Sequence[Sequence[PathChange]], least: int = 2) -> None:
        paths: defaultdict[str, list[PathChange]] = defaultdict(list)
        for change in (change for changes in works for change in changes):
            if change not in paths[change.path] and change.new and change.new.mode.startswith("100"):
                paths[change.path].append(change)
        common = {path: changes for path, changes in paths.items() if len(changes) >= least}
        entries = [entry for changes in common.values() for one in changes for entry in (one.old, one.new) if entry]
        sizes = objects.sizes(entry.oid for entry in entries) if entries else {}
        small = [oid for oid, size in sizes.items() if size <= _TEXT_MAX]
        blobs = {oid: data for oid, data in objects.blobs(small).items() if b"\0" not in data} if small else {}
        self._blobs = blobs
        self.common = {
            path: changes
            for path, changes in common.items()
            if all(entry.oid in blobs for one in changes for entry in (one.old, one.new) if entry)
        }

    def of(self, entry: TreeEntry | None) -> bytes:
        return self._blobs[entry.oid] if entry else b""


def _lines(text: bytes) -> list[bytes]:
    return text.splitlines(keepends=True)


def _edits(old: list[bytes], new: list[bytes]) -> list[Edit]:
    """The hunks between two versions; those with nothing but blank lines between them are one."""
    least = min(len(old), len(new))
    head = next((at for at in range(least) if old[at] != new[at]), least)
    tail = next((at for at in range(least - head) if old[-1 - at] != new[-1 - at]), least - head)
    middle = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail])
    spans: list[list[int]] = []
    for what, *span in middle.get_opcodes():
        if what == "equal":
            continue
        start, end, begin, stop = (at + head for at in span)
        if spans and not b"".join(old[spans[-1][1] : start]).strip():
            start, _, begin, _ = spans.pop()
        spans.append([start, end, begin, stop])
    return [Edit(start, end - start, b"".join(new[begin:stop])) for start, end, begin, stop in spans]


def _spliced(lines: Sequence[bytes], edits: Iterable[Edit]) -> bytes | None:
    """The lines with the edits in them; None where two of them overlap."""
    done: list[bytes] = []
    end = 0
    for edit in sorted(edits):
        if edit.start < end:
            return None
        done += [*lines[end : edit.start], edit.added]
        end = edit.start + edit.removed
    return b"".join([*done, *lines[end:]])


def _shape(path: str, text: bytes, known: set[str] | None) -> str:
    """What an edit says, whatever its blank lines, comments and, with the words `known` at the base, the names that it
    introduces: Python by its syntax tree, everything else by its lines."""
    plain = text.decode(errors="replace")
    if not path.endswith(".py"):
        return "\n".join(re.sub(r"(?<=\S)\s+", " ", line).rstrip() for line in plain.splitlines() if line.strip())
    code = [line for line in plain.expandtabs().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    indent = str(len(code[0]) - len(code[0].lstrip())) if code else ""
    tree = parsed(textwrap.dedent("\n".join(code)))
    if tree is None:
        return "\n".join([indent, *(" ".join(line.split()) for line in code)])
    if known is not None:
        _Neutral(_bound(tree) - known).visit(tree)
    return f"{indent}\n{ast.unparse(tree)}"


def _bound(tree: ast.AST) -> set[str]:
    """The names that a piece of code introduces."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return names | {node.name for node in ast.walk(tree) if isinstance(node, (*FUNCTIONS, ast.ClassDef))}


def _is_remark(node: ast.AST) -> bool:
    """Whether this is a docstring, which cites no block of the tutorial."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return is_text and "utorial" not in ast.unparse(node)


class _Neutral(ast.NodeTransformer):
    """Gives names numbers, in the order in which they come up, and leaves docstrings out."""

    def __init__(self, names: set[str]) -> None:
        self._names = names
        self._numbers: dict[str, str] = {}

    def visit(self, node: ast.AST) -> ast.AST | None:
        if _is_remark(node):
            return None
        for field in ("id", "arg", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str) and name in self._names and not isinstance(node, ast.keyword):
                setattr(node, field, self._numbers.setdefault(name, f"name{len(self._numbers)}"))
        self.generic_visit(node)
        return node


def _are_near(path: str, some: Sequence[Edit], others: Sequence[Edit]) -> bool:
    """Whether one of these edits is nearly one of the others."""
    return any(_is_near(path, one, other) for one in some for other in others)


def _is_near(path: str, one: Edit, other: Edit) -> bool:
    if abs(one.start - other.start) > _NEAR_LINES:
        return False
    some, others = (_WORDS.findall(_shape(path, edit.added, None)) for edit in (one, other))
    return SequenceMatcher(None, some, others, autojunk=False).ratio() >= _NEAR_RATIO
