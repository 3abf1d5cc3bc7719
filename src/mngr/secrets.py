"""Secrets in text: values of variables, and what has the shape of a key, found and hidden. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

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
        pieces = () if _is_ordinary(value) else _pieces([value], SHORTEST)
        found |= {piece: f"the value of `{name}`" for piece in pieces if piece in text}
    return found


def mask(text: str, values: Iterable[str] = (), *, shortest: int = SHORTEST) -> str:
    """The text with each of the values, and each key by its shape, replaced by `***`. Values shorter than `shortest`
    stay. A value of several lines is hidden whole and line by line, since a terminal shows it in lines."""
    for value in sorted(_pieces(values, shortest), key=len, reverse=True):
        text = text.replace(value, MASK)
    if any(start in text for start in _KEYS):
        text = _keys().sub(MASK, text)
    return text


def mask_fields(fields: Mapping[str, Any], values: Iterable[str] = ()) -> dict[str, Any]:
    """The same for every text in a JSON object, at any depth; the names of fields stay."""
    known = tuple(values)
    return {name: _masked(value, known) for name, value in fields.items()}


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
    return tuple(value for name, value in environ.items() if named(name) and not _is_ordinary(value))


def _is_ordinary(value: str) -> bool:
    word = value.isdecimal() or (value.isalpha() and value.islower())
    return len(value) < SHORTEST or value.startswith("/") or (word and len(value) < _LONGEST_WORD)


@cache
def _secret_names() -> re.Pattern[str]:
    import re

    return re.compile(r"PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL|APIKEY|(?:^|_)(?:KEY|AUTH)(?:_|$)", re.I)


def _masked(value: Any, values: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return mask(value, values)
    if isinstance(value, dict):
        return mask_fields(value, values)
    if isinstance(value, list | tuple):
        return [_masked(item, values) for item in value]
    return value


def _pieces(values: Iterable[str], shortest: int) -> set[str]:
    return {piece for value in values for piece in (value, *value.split("\n")) if len(piece.strip()) >= shortest}


@cache
def _private_keys() -> re.Pattern[str]:
    import re

    return re.compile(rf"-----BEGIN [A-Z ]*{_PRIVATE_KEY}(?:\s|\\n)+([A-Za-z0-9+/=:-]{{16,}})")


@cache
def _keys() -> re.Pattern[str]:
    import re

    return re.compile("|".join(rf"\b{shape}" for shape, _ in _KEYS.values()))
