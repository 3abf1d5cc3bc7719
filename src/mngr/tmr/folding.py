"""Text that Python source puts together from constants: sums, joins, f-strings, codes of characters. Pure."""

from __future__ import annotations

import ast
import base64
import codecs
from collections.abc import Callable, Mapping, Sequence

_LENGTH_MAX = 10_000
_DECODERS: Mapping[str, Callable[[str], str]] = {
    "chr": lambda text: chr(int(text)),
    "str": lambda text: text,
    "decode": lambda text: text,
    "encode": lambda text: text,
    "lower": str.lower,
    "upper": str.upper,
    "strip": str.strip,
    "title": str.title,
    "fromhex": lambda text: bytes.fromhex(text).decode("latin-1"),
    "unhexlify": lambda text: bytes.fromhex(text).decode("latin-1"),
    "b64decode": lambda text: base64.b64decode(text).decode("latin-1"),
    "urlsafe_b64decode": lambda text: base64.urlsafe_b64decode(text).decode("latin-1"),
}


def constants(tree: ast.AST) -> dict[str, ast.expr]:
    """What names are set to, where that happens once."""
    found: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            twice |= {name} & found.keys()
            found[name] = node.value
    return {name: value for name, value in found.items() if name not in twice}


def folded(node: ast.AST | None, known: Mapping[str, ast.expr], depth: int = 0) -> str | None:
    """The text that an expression makes of constants alone; None if it needs anything else. A date is written as in
    ISO 8601."""
    if depth > 20 or node is None:
        return None
    try:
        text = _folded(node, lambda part: folded(part, known, depth + 1), known)
    except (ValueError, TypeError, OverflowError, IndexError, LookupError):
        return None
    return text if text is None or len(text) <= _LENGTH_MAX else None


def _folded(node: ast.AST, fold: Callable[[ast.AST], str | None], known: Mapping[str, ast.expr]) -> str | None:
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, ast.Name):
        return fold(known[node.id]) if node.id in known else None
    if isinstance(node, ast.FormattedValue):
        return fold(node.value)
    if isinstance(node, ast.JoinedStr):
        return _joined(node.values, fold)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        numbers = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
        if len(numbers) == 2 and all(type(one) is int for one in numbers):
            return str(sum(numbers))  # type: ignore[arg-type]  # both are integers
        return _joined([node.left, node.right], fold)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _sliced(fold(node.value), node.slice)
    return _called(node, fold) if isinstance(node, ast.Call) else None


def _constant(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _joined(nodes: Sequence[ast.AST], fold: Callable[[ast.AST], str | None], between: str = "") -> str | None:
    parts = [fold(node) for node in nodes]
    return None if None in parts else between.join(part for part in parts if part is not None)


def _sliced(text: str | None, cut: ast.Slice) -> str | None:
    ends = [ast.literal_eval(part) if part is not None else None for part in (cut.lower, cut.upper, cut.step)]
    return text[slice(*ends)] if text is not None else None


def _called(node: ast.Call, fold: Callable[[ast.AST], str | None]) -> str | None:
    of = node.func.value if isinstance(node.func, ast.Attribute) else None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    first = node.args[0] if node.args else None
    if name in ("date", "datetime") and len(node.args) >= 3:
        year, month, day = (ast.literal_eval(part) for part in node.args[:3])
        return f"{year:04d}-{month:02d}-{day:02d}"
    if name == "fromisoformat" and first is not None:
        return fold(first)
    if name == "join" and isinstance(first, ast.List | ast.Tuple) and of is not None:
        between = fold(of)
        return None if between is None else _joined(first.elts, fold, between)
    if name in ("bytes", "bytearray") and isinstance(first, ast.List | ast.Tuple):
        return bytes(ast.literal_eval(part) for part in first.elts).decode("latin-1")
    if name == "decode" and getattr(of, "id", "") == "codecs" and first is not None and len(node.args) == 2:
        text, how = fold(first), fold(node.args[1]) or ""
        return codecs.decode(text, "rot13") if text is not None and how.startswith("rot") else text
    if name not in _DECODERS:
        return None
    given = first if name in ("chr", "str", "fromhex", "unhexlify") or name.endswith("b64decode") else of
    text = fold(given) if given is not None else None
    return _DECODERS[name](text) if text is not None else None
