"""The language of filters: the part of CEL (Common Expression Language) that `mngr help filters` describes. A name or a
comparison that cannot be right is an error before anything is looked at."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import suggest

Fields = Mapping[str, Any]
_EXAMPLE = 'for example `state == "DONE" && idle_seconds > 600`; `mngr help filters` explains them'
_TOKEN = re.compile(
    r"""(?P<space>\s+) | (?P<number>-?(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?) | (?P<name>[A-Za-z_]\w*)
    | (?P<text>"(?:[^"\\\n]|\\[abfnrtv"'\\]|\\u[0-9a-fA-F]{4})*" | '(?:[^'\\\n]|\\[abfnrtv"'\\]|\\u[0-9a-fA-F]{4})*')
    | (?P<sign>==|!=|<=|>=|&&|\|\||[<>!()\[\].,]) | (?P<other>.)""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_UNREADABLE = {sign: f"`{sign}` is not an operator, but `{sign * 2}` is" for sign in "=&|"}
_UNREADABLE |= dict.fromkeys("'\"", "a text has no closing quote, or a `\\` that means nothing")
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_METHODS: dict[str, Callable[[str, str], bool]] = {"startsWith": str.startswith, "endsWith": str.endswith}
_METHODS |= {"contains": operator.contains, "matches": lambda text, pattern: re.search(pattern, text) is not None}
# What an expression is known to be before it is evaluated. ANY: a field that may be null, a number, a list, ...
ANY, TEXT, NUMBER, TRUTH, NULL, LIST, TEXTS = "a value", "text", "a number", "true or false", "null", "a list", "texts"
_CONSTANTS = {"true": (TRUTH, True), "false": (TRUTH, False), "null": (NULL, None)}
_SURROGATE = re.compile("[\ud800-\udfff]")


class NoValue(Exception):
    """A field is missing, or a value is not of the type that an operation needs."""


NO_VALUE = NoValue, re.error  # what evaluation raises


class Expression(NamedTuple):
    """`present` is set for what `has()` can ask about."""

    kind: str
    value: Callable[[Fields], Any]
    present: Callable[[Fields], bool] | None = None


def parse(expression: str, kinds: Mapping[str, str]) -> Expression:
    """An expression that is true or false, over fields with these names, each ANY, TEXT or TEXTS. Raises UsageError,
    with the position, for what cannot be right."""
    try:
        return _Parser(expression, kinds).whole()
    except RecursionError:
        raise UsageError("the filter is nested too deeply", hint=_EXAMPLE) from None


class _Parser:
    """One method for each level of the grammar: `||` and `&&`, a comparison, `!`, `.` and `[`, a value."""

    def __init__(self, expression: str, kinds: Mapping[str, str]) -> None:
        self._source, self._kinds, self._next = expression, kinds, 0
        self._tokens: list[tuple[str, str, int]] = []
        for match in _TOKEN.finditer(expression):
            if match.lastgroup == "other":
                self._refuse(_UNREADABLE.get(match[0], f"`{match[0]}` is not an operator"), match.start())
            if match.lastgroup != "space":
                self._tokens.append((match.lastgroup or "", match[0], match.start()))
        self._tokens.append(("end", "", len(expression)))

    def whole(self) -> Expression:
        found = self._either()
        if self._tokens[self._next][0] != "end":
            self._refuse(f"{self._named()} is not expected here")
        if found.kind not in (TRUTH, ANY):
            what = f"`{self._source}` is not a yes-or-no question, but {found.kind}"
            raise UsageError(f"the filter {what}", hint='for example `state == "RUNNING"`')
        return found

    def _either(self) -> Expression:
        return self._combined("||", lambda: self._combined("&&", self._comparison))

    def _combined(self, sign: str, part: Callable[[], Expression]) -> Expression:
        parts = [part()]
        while self._accept(sign):
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        for one in parts:
            self._require_truth(one, sign)
        return Expression(TRUTH, lambda of: _decided(sign == "||", parts, of))

    def _comparison(self) -> Expression:
        left, at = self._negation(), self._tokens[self._next][2]
        sign = self._accept("==", "!=", "in", *_ORDER)
        if not sign:
            return left
        right = self._negation()
        kinds = {left.kind, right.kind} - {ANY}
        if sign == "in":
            if right.kind not in (LIST, TEXTS, ANY):
                self._refuse(f"`in` needs a list, not {right.kind}", at, 'for example `state in ["DONE", "FAILED"]`')
            return Expression(TRUTH, lambda of: _is_in(left.value(of), right.value(of)))
        if len(kinds) > 1 or (sign in _ORDER and kinds - {TEXT, NUMBER}):
            self._refuse(f"`{sign}` cannot compare {left.kind} with {right.kind}", at)
        if sign in _ORDER:
            return Expression(TRUTH, lambda of: _ordered(_ORDER[sign], left.value(of), right.value(of)))
        return Expression(TRUTH, lambda of: _equal(left.value(of), right.value(of)) is (sign == "=="))

    def _negation(self) -> Expression:
        count = 0
        while self._accept("!"):
            count += 1
        found = self._member()
        if not count:
            return found
        self._require_truth(found, "!")
        return Expression(TRUTH, lambda of: _need(found.value(of), bool) is (count % 2 == 0))

    def _member(self) -> Expression:
        found = self._value()
        while sign := self._accept(".", "["):
            kind, word, at = self._tokens[self._next]
            if sign == "[":
                found = _part(found, self._either().value)
                self._expect("]")
            elif kind != "name" or found.kind not in (TEXT, TEXTS, ANY):
                self._refuse(f"{self._named()} is not a part of {found.kind}")
            else:
                self._next += 1
                found = self._called(found, word, at) if self._accept("(") else _part(found, _constant(word))
        return found

    def _called(self, of: Expression, name: str, at: int) -> Expression:
        arguments, method = self._listed(")"), _METHODS.get(name)
        if method is None:
            self._refuse(f"`{name}()` is unknown; there are {', '.join(_METHODS)}", at)
        if len(arguments) != 1 or {of.kind, arguments[0].kind} - {TEXT, ANY}:
            self._refuse(f"`{name}` compares a text with one text", at, f'for example `name.{name}("try")`')
        word = arguments[0].value
        return Expression(TRUTH, lambda at: method(_need(of.value(at), str), _need(word(at), str)))

    def _listed(self, end: str) -> list[Expression]:
        found: list[Expression] = []
        while not self._accept(end):
            if found:
                self._expect(",")
            found.append(self._either())
        return found

    def _value(self) -> Expression:
        kind, word, at = self._tokens[self._next]
        self._next += 1
        if kind == "text":
            # What is no UTF-8, as a name may be on disk, is written as escapes: Python reads no source with it.
            return Expression(
                TEXT, _constant(ast.literal_eval(_SURROGATE.sub(lambda one: f"\\u{ord(one[0]):04x}", word)))
            )
        if kind == "number":
            return Expression(NUMBER, _constant(int(word) if word.lstrip("-").isdigit() else float(word)))
        if word in _CONSTANTS:
            return Expression(_CONSTANTS[word][0], _constant(_CONSTANTS[word][1]))
        if word == "(":
            found = self._either()
            self._expect(")")
            return found
        if word == "[":
            items = self._listed("]")
            return Expression(LIST, lambda of: [item.value(of) for item in items])
        if kind != "name":
            self._next -= 1
            self._refuse(f"a field or a value is expected, not {self._named()}")
        if self._accept("("):
            arguments = self._listed(")")
            if word != "has" or len(arguments) != 1 or arguments[0].present is None:
                self._refuse(f"`{word}(...)` is unknown; there is `has(labels.NAME)`", at)
            return Expression(TRUTH, arguments[0].present)
        if word not in self._kinds:
            quoted = f'a text is in quotes: `"{word}"`' if word.isupper() else ""
            self._refuse(f"there is no field `{word}`", at, quoted or suggest(word, tuple(self._kinds), "field"))
        return Expression(self._kinds[word], lambda of: _item(of, word))

    def _named(self) -> str:
        return f"`{self._tokens[self._next][1]}`" if self._tokens[self._next][1] else "the end"

    def _accept(self, *words: str) -> str:
        kind, word, _ = self._tokens[self._next]
        if word not in words or kind == "text":
            return ""
        self._next += 1
        return word

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            self._refuse(f"`{word}` is expected, not {self._named()}")

    def _require_truth(self, found: Expression, sign: str) -> None:
        if found.kind not in (TRUTH, ANY):
            self._refuse(f"`{sign}` needs {TRUTH}, not {found.kind}")

    def _refuse(self, what: str, at: int | None = None, hint: str = "") -> NoReturn:
        at = self._tokens[self._next][2] if at is None else at
        what = f"the filter `{self._source}` cannot be read: {what} (position {at + 1})"
        raise UsageError(what, hint=hint or _EXAMPLE)


def _constant(value: Any) -> Callable[[Fields], Any]:
    return lambda of: value


def _part(of: Expression, key: Callable[[Fields], Any]) -> Expression:
    """One value of a field that has several, such as `labels.team` or `labels["team"]`."""
    kind = TEXT if of.kind == TEXTS else ANY
    return Expression(kind, lambda at: _item(of.value(at), key(at)), lambda at: _is_in(key(at), of.value(at)))


def _need(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise NoValue
    return value


def _item(whole: Any, key: Any) -> Any:
    try:
        return _need(whole, dict)[key]
    except (KeyError, TypeError):
        raise NoValue from None


def _ordered(order: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    kinds = (str,) if isinstance(left, str) else (int, float)
    return bool(order(_need(left, *kinds), _need(right, *kinds)))


def _equal(left: Any, right: Any) -> bool:
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def _is_in(item: Any, whole: Any) -> bool:
    return any(_equal(item, other) for other in _need(whole, dict, list, tuple))


def _decided(any_of: bool, parts: Sequence[Expression], fields: Fields) -> bool:
    """One part that decides is enough, also where another one has no value."""
    missing = False
    for part in parts:
        try:
            if bool(_need(part.value(fields), bool)) is any_of:
                return any_of
        except NO_VALUE:
            missing = True
    if missing:
        raise NoValue
    return not any_of
