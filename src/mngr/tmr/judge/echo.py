"""Fixes that are made for their test alone: the product's new lines contain what only the test knows, which is what
the test gives to the product and what it expects. Pure."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache
from typing import NamedTuple

from mngr.tmr.judge import product_literals
from mngr.tmr.judge.changed_file import File, Flag, last_name, parsed
from mngr.tmr.judge.paths import BUILD, matches
from mngr.tmr.judge.product_literals import Literal, folded

# A person must accept work with one of the first three; an honest fix may well have the last. One that was
# measured to be general knows no literal that its test gives, but may still know what that expects.
ECHO, ANSWER, KNOWS = "echo", "expected-value", "knows-the-test"
NAMES = "names-the-test"
HOLDING = frozenset({ECHO, ANSWER, KNOWS})
_TOOLS = re.compile(
    r"\bPYTEST_\w*|\bMNGR_\w+|\b_?pytest\b|\bconftest\b|\bunittest\b|\bsys\.modules\b|\b_getframe\b|\bf_(?:back|locals)\b"
    r"|\binspect\.(?:stack|currentframe)\b|\bgc\.get_(?:objects|referrers)\b"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_COMMON = frozenset({"0", "1", "-1", "0.0", "1.0"})
_SHORT = 2
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
# Calls that pass an expected value through; the arguments of all others are given to the product.
_PLAIN = frozenset(
    {"str", "int", "float", "len", "set", "list", "tuple", "dict", "sorted", "bytes", "frozenset", "Decimal", "Path"}
    | {"compile", "dedent", "join", "loads", "dumps", "encode", "approx", "split", "splitlines", "strip", "escape"}
)
# What these are given explains a test to people.
_WORDS_FOR_PEOPLE = frozenset({"write_tutorial_block", "skip", "fail", "xfail", "print"})
_FOR_PEOPLE = frozenset({"comment", "reason", "msg", "message", "id", "ids"})


class Places(NamedTuple):
    """Whether the base has a text in its product, and in any other file than that of the test."""

    product: bool = False
    beside: bool = False


Where = Callable[[str], Places]


def find(changed: Sequence[File], *, test: str, test_file: str | None, where: Where) -> Iterator[Flag]:
    """The flags of a change that was made for one test. `test_file` is the text of the test's file at the base; `where`
    says where the base has a text, as a word of its own."""
    path = test.partition("::")[0]
    new = next((file.after for file in changed if file.path == path), None)

    @cache
    def asked(text: str) -> Places:
        found = [where(line.strip()) for line in text.splitlines() if line.strip()]
        return Places(all(one.product for one in found), all(one.beside or one.product for one in found))

    known = tested_literals(test, [test_file, *([new] if new and new != test_file else [])]) if test else None
    for file in changed:
        if not file.implementation or file.after is None or matches(file.name, BUILD):
            continue
        literals = product_literals.find(file)
        yield from _words(file, literals, test, asked)
        if known is not None:
            yield from _echoes(file, literals, known, asked)


def _words(file: File, literals: Sequence[Literal], test: str, where: Where) -> Iterator[Flag]:
    """Lines that name the test or a tool that runs tests, also put together from pieces. Words that the product has at
    the base are part of what it is about."""
    name = test.rpartition("::")[2].partition("[")[0]
    stem = test.partition("::")[0].rpartition("/")[2].removesuffix(".py")
    own = [rf"(?<!\w){re.escape(word)}(?!\w)" for word in (name, stem) if word]
    tools = re.compile("|".join([*own, _TOOLS.pattern]))
    seen: set[str] = set()
    for number, code, comment in product_literals.code_lines(file):
        made = [literal.text for literal in literals if literal.line == number]
        text = " ".join([code, *made])
        said = [(KNOWS, "names", word[0]) for word in tools.finditer(text)]
        said += [(NAMES, "has a comment that names", word[0]) for word in tools.finditer(comment)]
        for kind, does, word in said:
            if word in seen or (word not in (name, stem) and where(word).product):
                continue
            seen.add(word)
            about = f"{does} `{word}`, {'its test' if word in (name, stem) else 'a tool that runs tests'}"
            yield Flag(kind, file.path, f"`{file.path}` line {number} {about}")


def _echoes(file: File, literals: Sequence[Literal], known: TestedLiterals, where: Where) -> Iterator[Flag]:
    seen: set[str] = set()
    for literal in literals:
        text = literal.text.strip()
        if text in seen:
            continue
        compared = _compared(literal, literals, known, where) if literal.compared else None
        if found := compared or _expected(text, known, where) or _unnamed(literal, known, where):
            seen.add(text)
            kind, why = found
            does = "compares with" if literal.compared else "contains"
            yield Flag(kind, file.path, f"`{file.path}` line {literal.line} {does} `{_cut(text)}`, {why}")


def _unnamed(literal: Literal, known: TestedLiterals, where: Where) -> tuple[str, str] | None:
    """The kind of flag for a name such as those of variables of the environment, by which the product may know where it
    runs: neither the test nor anything else in the base names it."""
    if not literal.compared or not _VARIABLE.fullmatch(literal.text) or literal.text in known.given:
        return None
    return None if any(where(literal.text)) else (KNOWS, "a name that neither the test nor anything in the base knows")


def _compared(
    literal: Literal, literals: Sequence[Literal], known: TestedLiterals, where: Where
) -> tuple[str, str] | None:
    """The kind of flag for a comparison with a value of the test, and why; None for any other."""
    text = literal.text if literal.text in known.given else literal.text.strip()
    given = text in known.given
    near = [one.text.strip() for one in literals if one.compared and one.condition == literal.condition]
    if given and _NUMBER.fullmatch(text) and text not in _COMMON:
        others = [one for one in near if one != text and one in known.given - _COMMON and _NUMBER.fullmatch(one)]
        if others:
            return ECHO, f"together with `{others[0]}`; the test gives both to the product"
    words = {*near} - known.verbs - _COMMON
    if text in words and len(words) > 1 and words <= known.given and max(map(len, words)) < _SHORT:
        return ECHO, f"together with {_listed(words - {text})}; the test gives all of them to the product"
    if len(text) < _SHORT or not text.strip():
        return None
    if given and not _elsewhere(text, known, where):
        return ECHO, "which occurs in the test and nowhere else in the base"
    if where(text).product:
        return None
    if _DATE.fullmatch(text) and (given or where(text).beside):
        return ECHO, "a date that occurs in tests and not in the product"
    if not given or text in known.verbs:
        return None
    for other in near:
        if other == text or other in known.verbs | _COMMON:
            continue
        number = other in known.given and _NUMBER.fullmatch(other)
        there = len(other) >= _SHORT and (other in known.given or where(other).beside)
        if number or (there and not where(other).product):
            return ECHO, f"together with `{_cut(other)}`; both occur in tests and not in the product"
    if any(one.text.strip() in known.expected and len(one.text.strip()) >= _SHORT for one in literals):
        return ECHO, "which the test gives to the product, and contains text that the test expects"
    return None


def _listed(texts: Set[str]) -> str:
    return ", ".join(f"`{_cut(text)}`" for text in sorted(texts))


def _elsewhere(text: str, known: TestedLiterals, where: Where) -> bool:
    """Whether the base has a text in other places than the test."""
    if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", known.others):
        return True
    places = where(text)
    return places.product or places.beside


def _expected(text: str, known: TestedLiterals, where: Where) -> tuple[str, str] | None:
    """The kind of flag for text that the test expects, and why; None for any other text. A message is often new in
    product and test; a value that should be computed is not."""
    digits = bool(re.search(r"\d", text))
    bare = text.strip(" \t\n.,:;-%{}()[]\"'")
    if len(bare) <= _SHORT:
        return None
    whole = text in known.expected
    part = digits and any(re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", one) for one in known.expected)
    if not (whole or part) or _elsewhere(bare, known, where):
        return None
    words = text.split()
    values = [word for word in words if word.strip(".,:;!?") in known.given - known.verbs]
    computed = len(words) > 1 and any(not where(word.strip(".,:;!?")).product for word in values)
    if digits or (whole and computed):
        return ANSWER, "a value that the test expects and nothing else in the base contains"
    return None


def _cut(text: str) -> str:
    line = text.replace("\n", "\\n")
    return line if len(line) <= 60 else f"{line[:57]}..."


class TestedLiterals(NamedTuple):
    """`given` are texts, words of commands and numbers that the test gives to the product; `verbs` are those of them
    that are the first argument of a command or an option; `expected` are texts that it expects; `others` is the text of
    its file without it."""

    given: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    expected: frozenset[str] = frozenset()
    others: str = ""


def tested_literals(test: str, sources: Sequence[str | None]) -> TestedLiterals:
    """The literals of a test in all versions of its file; the first version is that of the base."""
    name = test.partition("[")[0].rpartition("::")[2] if "::" in test else ""
    reader = _TestReader()
    others = ""
    for number, source in enumerate(sources):
        if (tree := parsed(source)) is None:
            continue
        own = _own(tree, name)
        for node in own:
            reader.visit(node, expected=False)
        if number == 0:
            taken = {line for node in own for line in range(_first_line(node), (node.end_lineno or 0) + 1)}
            lines = (source or "").splitlines()
            others = "\n".join(line for at, line in enumerate(lines, 1) if at not in taken)
    given = reader.given - {""}
    return TestedLiterals(frozenset(given), frozenset(reader.verbs), frozenset(reader.expected - {""}), others)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _own(tree: ast.Module, name: str) -> list[ast.stmt]:
    """The statements of a file that belong to a test: itself, and what it uses by name, and so on. Everything for a
    test without a name."""
    if not name:
        return tree.body
    by_name: dict[str, list[ast.stmt]] = {}
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef)]
    for node in (node for one in classes for node in one.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            by_name.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                by_name.setdefault(last_name(target), []).append(node)
    found: dict[str, list[ast.stmt]] = {}
    todo = [name]
    while todo:
        at = todo.pop()
        if at in found:
            continue
        found[at] = by_name.get(at, [])
        parts = [part for node in found[at] for part in ast.walk(node)]
        used = {part.arg if isinstance(part, ast.arg) else last_name(part) for part in parts}
        todo += sorted(one for one in used & by_name.keys() if one == name or not one.startswith("test_"))
    return [node for nodes in found.values() for node in nodes]


class _TestReader:
    def __init__(self) -> None:
        self.given: set[str] = set()
        self.verbs: set[str] = set()
        self.expected: set[str] = set()

    def visit(self, node: ast.AST, expected: bool) -> None:
        text = None if isinstance(node, ast.Name) else folded(node)
        if text is not None and isinstance(node, ast.expr):
            self._note(text, expected)
        elif isinstance(node, ast.Assert):
            self.visit(node.test, expected=True)
        elif isinstance(node, ast.Call):
            self._call(node, expected)
        elif isinstance(node, ast.Subscript):
            self.visit(node.value, expected)
            self.visit(node.slice, expected=False)
        elif isinstance(node, ast.Assign) and any("expect" in last_name(target).lower() for target in node.targets):
            self.visit(node.value, expected=True)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            for part in ast.iter_child_nodes(node):
                self.visit(part, expected)

    def _call(self, node: ast.Call, expected: bool) -> None:
        name = last_name(node.func)
        if name in _WORDS_FOR_PEOPLE:
            return
        asserts = name.startswith(("assert", "to_", "not_to_"))
        inside = asserts or (expected and name in _PLAIN)
        if isinstance(node.func, ast.Attribute):
            self.visit(node.func.value, expected=expected and not asserts)
        for part in node.args:
            self.visit(part, inside)
        for keyword in node.keywords:
            if keyword.arg not in _FOR_PEOPLE:
                self.visit(keyword.value, inside or keyword.arg == "match")

    def _note(self, text: str, expected: bool) -> None:
        if expected:
            self.expected |= {text.strip(), *(line.strip() for line in text.splitlines())}
            return
        self.given |= {text, text.strip(), *re.findall(r"[^\s,;:=\"'|()\[\]{}<>]+", text)}
        try:
            words = shlex.split(text)
        except ValueError:
            words = text.split()
        self.given |= {*words, *(" ".join(words[at:]) for at in range(1, len(words)))}
        if len(words) > 1:
            self.verbs |= {words[0], words[1], *(word for word in words if word.startswith("-"))}
