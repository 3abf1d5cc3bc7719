"""Fixes that are made for their test alone: the product's new lines contain what only the test knows. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from mngr.records import NamedTuple
from mngr.tmr import product_literals, tested_literals
from mngr.tmr.changed_file import File, Flag
from mngr.tmr.paths import BUILD, matches
from mngr.tmr.product_literals import Literal
from mngr.tmr.tested_literals import TestedLiterals

# A person must accept work with the first; an honest fix may well have one of the others.
ECHO, TEXT, VALUE, NAMES = "echo", "expected-text", "test-value", "names-the-test"
_TOOLS = re.compile(
    r"\bPYTEST_\w*|\bMNGR_\w+|\b_?pytest\b|\bconftest\b|\bunittest\b|\bsys\.modules\b|\b_getframe\b|\bf_(?:back|locals)\b"
    r"|\binspect\.(?:stack|currentframe)\b|\bgc\.get_(?:objects|referrers)\b"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_COMMON = frozenset({"0", "1", "-1", "0.0", "1.0"})
_SHORT = 2


class Places(NamedTuple):
    """Whether the base has a text in its product, and in any other file than that of the test."""

    product: bool = False
    beside: bool = False


def find(
    changed: Sequence[File], *, test: str, test_file: str | None, where: Callable[[str], Places]
) -> Iterator[Flag]:
    """The flags of a change that was made for one test. `test_file` is the text of the test's file at the base; `where`
    says where the base has a text, as a word of its own."""
    path = test.partition("::")[0]
    new = next((file.after for file in changed if file.path == path), None)

    @cache
    def asked(text: str) -> Places:
        found = [where(line.strip()) for line in text.splitlines() if line.strip()]
        return Places(all(one.product for one in found), all(one.beside or one.product for one in found))

    known = tested_literals.find(test, [test_file, *([new] if new and new != test_file else [])]) if test else None
    for file in changed:
        if file.implementation and file.after is not None and not matches(file.name, BUILD):
            yield from _names(file, test, asked)
            if known is not None:
                yield from _echoes(file, known, asked)


def _names(file: File, test: str, where: Callable[[str], Places]) -> Iterator[Flag]:
    """Lines that name the test, or a tool that runs tests, also put together from pieces. Tools that the product names
    at the base are part of what it is about."""
    name = test.rpartition("::")[2].partition("[")[0]
    stem = test.partition("::")[0].rpartition("/")[2].removesuffix(".py")
    own = [re.escape(word) for word in (name, stem) if word]
    pattern = re.compile("|".join([*(rf"(?<!\w){word}(?!\w)" for word in own), _TOOLS.pattern]))
    made = {literal.line: "" for literal in product_literals.find(file)}
    for literal in product_literals.find(file):
        made[literal.line] += f" {literal.text}"
    seen: set[str] = set()
    for number, code, comment in product_literals.code_lines(file):
        for kind, text in ((ECHO, f"{code} {made.get(number, '')}"), (NAMES, comment)):
            for word in (found[0] for found in pattern.finditer(text)):
                if word not in seen and (word in (name, stem) or not where(word).product):
                    seen.add(word)
                    told = "names" if kind == ECHO else "has a comment that names"
                    about = "its test" if word in (name, stem) else "a tool that runs tests"
                    yield Flag(kind, file.path, f"`{file.path}` line {number} {told} `{word}`, {about}")


def _echoes(file: File, known: TestedLiterals, where: Callable[[str], Places]) -> Iterator[Flag]:
    seen: set[str] = set()
    literals = product_literals.find(file)
    for literal in literals:
        text = literal.text.strip()
        if text in seen:
            continue
        compared = _compared(literal, literals, known, where) if literal.compared else None
        if found := compared or _expected(text, known, where):
            seen.add(text)
            kind, why = found
            does = "compares with" if compared else "contains"
            yield Flag(kind, file.path, f"`{file.path}` line {literal.line} {does} `{_cut(text)}`, {why}")


def _compared(
    literal: Literal, literals: Sequence[Literal], known: TestedLiterals, where: Callable[[str], Places]
) -> tuple[str, str] | None:
    """The kind of flag for a comparison with a value of the test, and why; None for any other."""
    text = literal.text if literal.text in known.given else literal.text.strip()
    given = text in known.given
    near = [one.text.strip() for one in literals if one.compared and one.condition == literal.condition]
    if given and _NUMBER.fullmatch(text) and text not in _COMMON:
        others = [one for one in near if one != text and one in known.given - _COMMON and _NUMBER.fullmatch(one)]
        if others:
            return ECHO, f"together with `{others[0]}`; the test gives both to the product"
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
    return VALUE, "which the test gives to the product"


def _elsewhere(text: str, known: TestedLiterals, where: Callable[[str], Places]) -> bool:
    """Whether the base has a text in other places than the test."""
    if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", known.others):
        return True
    places = where(text)
    return places.product or places.beside


def _expected(text: str, known: TestedLiterals, where: Callable[[str], Places]) -> tuple[str, str] | None:
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
        return ECHO, "a value that the test expects and nothing else in the base contains"
    return TEXT, "which the test expects"


def _cut(text: str) -> str:
    line = text.replace("\n", "\\n")
    return line if len(line) <= 60 else f"{line[:57]}..."
