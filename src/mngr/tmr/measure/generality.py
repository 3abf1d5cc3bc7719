"""Was a product fixed for what a test gives it, or for this input alone? The same test with other literals, on the old
product and on the new one: what they answer is compared and not judged."""

from __future__ import annotations

import io
import os
import re
import tokenize
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from mngr.system import files
from mngr.tmr.branch.objects import Objects
from mngr.tmr.judge.paths import PathKind
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.measurement import PluginStep

STEP = "generality"
GENERAL, KEYED, ONLY_THIS = "general", "only with some of its literals", "only for this input"
NOT_MEASURED = "not measured"
_ENOUGH = 3  # variants on which both products do the same, before anything follows
_EXAMPLES = 5
_WORD = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?")
_SHOWN = 120
_YES_OR_NO = ("True", "False", "None", "nothing")
_FILE_MAX, _FILES_MAX = 200_000, 2000


class Variant(NamedTuple):
    """One run of a test with other literals. `values` are what its assertions compared, `error` is how it ended, if
    not by itself, in the function `place`. `changed` are the old literals, and `whole` is whether that is all that may
    be changed; without a `text` it is the test as it is."""

    text: str = ""
    changed: tuple[str, ...] = ()
    whole: bool = False
    values: tuple[str, ...] = ()
    error: str = ""
    place: str = ""

    @property
    def record(self) -> tuple[str, ...]:
        return (*self.values, f"raises {self.error}") if self.error else self.values


class Variants(NamedTuple):
    """All runs of a test on one product, by their number; -1 and 0 are the test as it is. `why` says why there are no
    variants."""

    runs: Mapping[int, Variant] = {}
    why: str = ""


class Generality(NamedTuple):
    """`tried` variants say something, and on `differ` of them the new product did something else than the old one.
    `examples` show what was changed and what both did. `keys` are literals of the test without which the new product
    was never seen to do anything new, while it does with others changed: the product knows them, or they are what was
    wrong."""

    test: str
    word: str
    tried: int = 0
    differ: int = 0
    examples: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    why: str = ""


def step(base: BaseCommit, tests: Sequence[str]) -> PluginStep:
    """A step that runs variants of these tests. To be taken at two commits that have the same tests, and both
    products."""
    objects = Objects(base.git)
    there = objects.files(base.commit)
    product = {path: entry.oid for path, entry in there.items() if base.paths.kind(path) == PathKind.IMPLEMENTATION}
    sizes = objects.sizes(product.values())
    small = [path for path, oid in product.items() if sizes.get(oid, 0) <= _FILE_MAX]
    texts = objects.blobs([product[path] for path in small[:_FILES_MAX]])
    known = vocabulary({path: texts.get(oid, b"").decode(errors="replace") for path, oid in product.items()})
    return PluginStep(STEP, "mngr_generality", list(tests), {"known": sorted(known)})


def vocabulary(product: Mapping[str, str]) -> frozenset[str]:
    """The words and numbers that occur in the product, in names, texts or paths: they mean something to it. Its
    comments and documentation are not read."""
    return frozenset().union(*(_words(path, text) for path, text in product.items()))


@lru_cache(maxsize=2 * _FILES_MAX)
def _words(path: str, text: str) -> frozenset[str]:
    parts = (path, *(_code(text) if path.endswith(".py") else [text]))
    return frozenset(word.casefold() for part in parts for word in _WORD.findall(part))


def _code(text: str) -> list[str]:
    """The parts of Python that are neither comments nor documentation."""
    found: list[str] = []
    try:
        before = tokenize.NEWLINE
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            documents = token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
            if token.type in (tokenize.NAME, tokenize.NUMBER) or (token.type == tokenize.STRING and not documents):
                found.append(token.string)
            if token.type not in (tokenize.NL, tokenize.COMMENT):
                before = token.type
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return [text]
    return found


def read(directory: str) -> dict[str, Variants]:
    """What a measurement with that step left in its directory, by test."""
    found: dict[str, Variants] = {}
    for row in files.read_lines(files.content(os.path.join(directory, f"{STEP}.rows"))):
        try:
            one = found.get(row["id"], Variants())
            if row["type"] == "measured":
                found[row["id"]] = one._replace(why=str(row["why"]))
            elif row["type"] == "variant":
                run = Variant(
                    row["text"], tuple(row["changed"]), row["whole"], tuple(row["values"]), row["error"], row["place"]
                )
                found[row["id"]] = one._replace(runs={**one.runs, int(row["number"]): run})
        except (KeyError, TypeError, ValueError):
            continue
    return found


def compare(test: str, old: Variants | None, new: Variants | None) -> Generality:
    """One test on the old and on the new product. Not measured where the two do the same with the test as it is, or
    where its variants crash in both."""
    if old is None or new is None or not {-1, 0} <= old.runs.keys() & new.runs.keys():
        why = next((one.why for one in (old, new) if one is not None and one.why), "it was not run")
        return Generality(test, NOT_MEASURED, why=why)
    plain = (old.runs[0], new.runs[0])
    chance = {at for runs in (old.runs, new.runs) for at in _differing(runs[-1], runs[0])}
    if not set(_differing(*plain)) - chance:
        return Generality(test, NOT_MEASURED, why="both products answer the same to the test as it is")
    answers = [
        _Answer(old.runs[number], new.runs[number], plain, chance)
        for number in sorted(old.runs.keys() & new.runs.keys())
        if number > 0 and old.runs[number].text == new.runs[number].text
    ]
    general = [one for one in answers if one.is_general]
    alike = [one for one in answers if one.says_alike]
    keys = () if any(one.new.whole for one in general) else _keys(general, alike)
    word = KEYED if keys and general else GENERAL if general else ONLY_THIS if len(alike) >= _ENOUGH else NOT_MEASURED
    examples = tuple(one.words for one in (alike if keys else general or alike)[:_EXAMPLES])
    why = ""
    if word == NOT_MEASURED:
        same = any(one.differing for one in answers)
        why = "the new product answers the same to other literals" if same else f"{len(alike)} variants are too few"
    return Generality(test, word, len(general) + len(alike), len(general), examples, keys if general else (), why)


def _keys(general: Sequence[_Answer], alike: Sequence[_Answer]) -> tuple[str, ...]:
    """Literals that were changed often enough, and never on a variant on which the products differ. A digit is too
    short to know a test by, and says how much of something, as a rule."""
    free = {literal for one in general for literal in one.new.changed}
    counts = Counter(literal for one in alike for literal in one.new.changed)
    return tuple(
        literal for literal, count in counts.items() if count >= _ENOUGH and literal not in free and literal[1:]
    )


class _Answer(NamedTuple):
    """What the two products did with one variant."""

    old: Variant
    new: Variant
    plain: tuple[Variant, Variant]
    chance: set[int]

    @property
    def differing(self) -> list[int]:
        return [at for at in _differing(self.old, self.new) if at not in self.chance]

    @property
    def is_general(self) -> bool:
        """Whether the new product does something else than the old one, and answers to what it is given: not always
        the same, unless it says no more than yes or no. Where some literals are as in the test, both have to answer
        to the others: the new one may know the test by what was left."""
        plain_old, plain_new = (one.record for one in self.plain)
        answers = [at for at in self.differing if _at(self.new.record, at) != _at(plain_new, at)]
        if self.new.whole:
            says_yes = all(_at(self.new.record, at) in _YES_OR_NO for at in self.differing)
            return bool(answers or (self.differing and says_yes))
        return any(_at(self.old.record, at) != _at(plain_old, at) for at in answers)

    @property
    def says_alike(self) -> bool:
        """Whether both do the same, and that means something: a variant that no product can do anything with does
        not, unless that is what was wrong with the old one."""
        if self.differing:
            return False
        known = self.plain[0]
        return not self.old.error or (known.error[:20], known.place) == (self.old.error[:20], self.old.place)

    @property
    def words(self) -> str:
        at = next(iter(self.differing), 0)
        old, new = (_at(one.record, at)[:_SHOWN] for one in (self.old, self.new))
        return f"{self.new.text}: {old} before and now" if old == new else f"{self.new.text}: {old} before, {new} now"


def _at(record: Sequence[str], at: int) -> str:
    return record[at] if 0 <= at < len(record) else "nothing"


def _differing(one: Variant, other: Variant) -> list[int]:
    pairs = zip_longest(one.record, other.record)
    return [at for at, (before, after) in enumerate(pairs) if before != after]
