"""Secrets in text: values of variables, and what has the shape of a key, found and hidden. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any

MASK = "***"
# Shorter values (`8000`, `true`, `debug`) are part of ordinary text, which would become unreadable.
SHORTEST = 6
_LONGEST_WORD = 12
# By the letters each begins with: most text has none of them, and the pattern is then never compiled.
_KEYS = {
    "sk-": (r"sk-[A-Za-z0-9_-]{16,}", "an API key"),
    "gh": (r"gh[opsur]_[A-Za-z0-9]{20,}", "a GitHub token"),
    "github_pat_": (r"github_pat_[A-Za-z0-9_]{20,}", "a GitHub token"),
    "glpat-": (r"glpat-[A-Za-z0-9_-]{16,}", "a GitLab token"),
    "xox": (r"xox[abeprs]-[A-Za-z0-9-]{10,}", "a Slack token"),
    "AKIA": (r"AKIA[A-Z0-9]{16}", "an AWS access key"),
    "eyJ": (r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+", "a JSON web token"),
}
_PRIVATE_KEY = "PRIVATE KEY-----"


def find(text: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The secrets in a text, each with its kind in words: keys by their shape, the first line of private keys, and the
    values of these variables, ordinary words left out."""
    found: dict[str, str] = {}
    if any(start in text for start in _KEYS):
        for match in _keys().finditer(text):
            found[match.group()] = next(kind for start, (_, kind) in _KEYS.items() if match.group().startswith(start))
    if _PRIVATE_KEY in text:
        found |= dict.fromkeys(_private_keys().findall(text), "a private key")
    for name, value in variables.items():
        pieces = () if _is_ordinary(value) else forms((value,))
        found |= {piece: f"the value of `{name}`" for piece in pieces if piece in text}
    return found


def mask(text: str, values: Iterable[str] = (), *, shortest: int = SHORTEST) -> str:
    """The text with each of the values, in all `forms`, and each key by its shape, replaced by `***`. Values shorter
    than `shortest` stay."""
    for form in forms(tuple(values), shortest):
        text = text.replace(form, MASK)
    if any(start in text for start in _KEYS):
        text = _keys().sub(MASK, text)
    return text


def mask_fields(fields: Mapping[str, Any], values: Iterable[str] = (), *, keep: Collection[str] = ()) -> dict[str, Any]:
    """The same for every text in a JSON object, at any depth; the names of fields stay, and so does what is in the
    fields to `keep`."""
    known = tuple(values)
    return {name: value if name in keep else _masked(value, known, keep) for name, value in fields.items()}


@lru_cache(maxsize=32)
def forms(values: tuple[str, ...], shortest: int = SHORTEST) -> tuple[str, ...]:
    """The values as they may stand in a text, longest first: whole and line by line, since a terminal shows lines; as
    they are, in JSON (twice, too), Python, a shell, a URL, HTML, hexadecimal, and base64, alone or inside of a longer
    text, such as `user:password`. What was compressed, cut up or encrypted is none."""
    pieces = {piece for value in values for piece in (value, *value.splitlines()) if len(piece.strip()) >= shortest}
    return tuple(sorted({form for piece in pieces for form in _forms(piece)}, key=len, reverse=True))


def _forms(text: str) -> Iterator[str]:
    import base64
    import html
    import json
    import shlex
    from urllib.parse import quote, quote_plus

    data = text.encode(errors="surrogateescape")
    for once in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield from (once, json.dumps(once)[1:-1])
    yield from (text, repr(text)[1:-1], shlex.quote(text), html.escape(text), data.hex(), data.hex().upper())
    yield from (quote(data), quote(data, safe=""), quote_plus(data))
    for before in range(3):  # the bytes before it in a group of three; only what they do not change
        encoded = base64.b64encode(b"\0" * before + data).decode()
        sure = encoded[(0, 2, 3)[before] : (before + len(data)) * 8 // 6]
        yield from (sure, sure.replace("+", "-").replace("/", "_"))


def unusual(values: Iterable[str]) -> tuple[str, ...]:
    """Those of the values that may be secret: not short, a path, a number or an ordinary word."""
    return tuple(value for value in values if not _is_ordinary(value))


def env_values(text: str) -> tuple[str, ...]:
    """The values in an agent's `env` file, which holds `export NAME=VALUE` lines quoted for a shell. Those of our own
    variables (`MNGR_TASK`) are no secrets, and what an agent says is full of them."""
    if not text.strip():
        return ()
    import shlex

    words = (word for word in shlex.split(text) if word != "export" and not word.startswith("MNGR_"))
    return tuple(word.partition("=")[2] for word in words)


def named_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables whose names say that they are secret (`SHOP_API_KEY`, `PGPASSWORD`). Paths, short numbers
    and ordinary words are left out: text that has them would become unreadable."""
    named = _secret_names().search
    return unusual(value for name, value in environ.items() if named(name))


def _is_ordinary(value: str) -> bool:
    word = value.isdecimal() or (value.isalpha() and value.islower())
    return len(value) < SHORTEST or value.startswith("/") or (word and len(value) < _LONGEST_WORD)


@cache
def _secret_names() -> re.Pattern[str]:
    import re

    return re.compile(r"PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL|APIKEY|(?:^|_)(?:KEY|AUTH)(?:_|$)", re.I)


def _masked(value: Any, values: tuple[str, ...], keep: Collection[str]) -> Any:
    if isinstance(value, str):
        return mask(value, values)
    if isinstance(value, dict):
        return mask_fields(value, values, keep=keep)
    if isinstance(value, list | tuple):
        return [_masked(item, values, keep) for item in value]
    return value


@cache
def _private_keys() -> re.Pattern[str]:
    import re

    return re.compile(rf"-----BEGIN [A-Z ]*{_PRIVATE_KEY}(?:\s|\\n)+([A-Za-z0-9+/=:-]{{16,}})")


@cache
def _keys() -> re.Pattern[str]:
    import re

    return re.compile("|".join(rf"\b{shape}" for shape, _ in _KEYS.values()))
