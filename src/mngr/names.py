"""Agent names, ids and addresses, slugs, and the nearest good word to a wrong one. Pure; knows no host."""

from __future__ import annotations

import os

from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple

LONGEST_NAME = 63
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_REST = _FIRST | frozenset("_-")


def is_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_NAME and text[0] in _FIRST and all(c in _REST for c in text)


def check_name(text: str, what: str = "agent name") -> str:
    """Return the name, or raise with what is wrong. tmux and git both mangle dots, so they are not allowed."""
    if is_name(text):
        return text
    what = ("an " if what[0] in "aeiou" else "a ") + what
    if not text:
        raise UsageError(f"{what} cannot be empty")
    if len(text) > LONGEST_NAME:
        raise UsageError(f"`{text[:20]}...` is too long for {what}: {len(text)} characters, at most {LONGEST_NAME}")
    raise UsageError(
        f"{text!r} is not {what}",
        hint="use letters, digits, `-` and `_`, beginning with a letter or digit",
    )


def new_id(prefix: str) -> str:
    return f"{prefix}-{os.urandom(16).hex()}"


def is_id(text: str) -> bool:
    head, _, rest = text.partition("-")
    return head == "agent" and len(rest) == 32 and all(c in "0123456789abcdef" for c in rest)


def slug(text: str, *, of: str, longest: int) -> str:
    """A file name, branch part or address part: `text` in letters, digits, `_` and `-`, cut to `longest`, and a digest
    of `of`, since different things may read the same."""
    import hashlib
    import re

    readable = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:longest].rstrip("-")
    digest = hashlib.sha256(of.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{readable}-{digest}" if readable else digest


class Address(NamedTuple):
    """`[NAME][@[HOST][.PROVIDER]][:PATH]`, taken apart. An absent part is None."""

    name: str | None
    host: str | None
    provider: str | None
    path: str | None

    @property
    def new_host(self) -> bool:
        """`foo@.modal`: a provider without a host asks for a new host."""
        return self.provider is not None and self.host is None

    def __str__(self) -> str:
        place = ""
        if self.host is not None or self.provider is not None:
            place = "@" + (self.host or "") + (f".{self.provider}" if self.provider else "")
        return (self.name or "") + place + (f":{self.path}" if self.path is not None else "")


def parse_address(text: str, providers: frozenset[str] = frozenset({"local"})) -> Address:
    """Take an address apart. The part after the last dot is a provider only if one of that name exists,
    so `foo@10.0.0.5` and `foo@build.example.com` are hosts."""
    head, colon, path = text.partition(":")
    name, at, place = head.partition("@")
    if name:
        check_name(name)
    host: str | None = None
    provider: str | None = None
    if at:
        if not place:
            raise UsageError(f"`{text}` names no host after `@`", hint="write `NAME@HOST` or `NAME@.PROVIDER`")
        before, dot, after = place.rpartition(".")
        if dot and (after in providers or not before):
            host, provider = before or None, after
        else:
            host = place
        if provider is not None and provider not in providers:
            raise no_provider(provider)
        if host is not None and (any(c.isspace() or c == "/" or not c.isprintable() for c in host) or host[0] in "-."):
            raise UsageError(f"{host!r} is not a host name")
    if colon and "\0" in path:
        raise UsageError("a path cannot hold a NUL byte")
    if not name and not at and not colon:
        raise UsageError("the address is empty", hint="write an agent's name; `mngr list` shows them")
    return Address(name or None, host, provider, path if colon else None)


def no_provider(name: str) -> UsageError:
    return UsageError(
        f"no provider is called `{name}`",
        hint="`mngr help providers` shows those that are built in, and how to make one",
    )


def nearest(word: str, candidates: list[str] | frozenset[str] | tuple[str, ...]) -> str | None:
    """The candidate a typo most likely meant, or None when nothing is close."""
    import difflib

    found = difflib.get_close_matches(word, sorted(candidates), n=1, cutoff=0.6)
    return found[0] if found else None


def suggest(word: str, candidates: list[str] | frozenset[str] | tuple[str, ...], what: str) -> str:
    """A hint sentence that names the nearest candidate, or some of a few, or nothing."""
    found = nearest(word, candidates)
    if found:
        return f"the closest {what} is `{found}`"
    known = sorted(set(candidates))
    return f"known: {_first_of(known)}" if known and len(known) <= 20 else ""


def _first_of(words: list[str]) -> str:
    """As many as fit into a few lines of a terminal, and how many more there are."""
    shown = [f"`{word}`" for word in words]
    while len(shown) > 1 and len(", ".join(shown)) > 240:
        shown.pop()
    more = len(words) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
