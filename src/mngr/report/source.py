"""What a site shows: documents by id, as the pages ask for them. Knows nothing of HTML, disk layout or HTTP."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from typing import Any, Protocol

from mngr.names import slug

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,150}")


class Source(Protocol):
    """The documents of one kind of report. An id is made of keys with `/` between them."""

    title: str
    home: str
    scripts: tuple[str, ...]

    def ids(self) -> Iterator[str]:
        """All documents, for a report on disk."""
        ...

    def load(self, id: str) -> Any:
        """The document, ready for JSON; None when there is none of that id."""
        ...

    def version(self, id: str) -> str | None:
        """Something that differs when the document does, and is cheap to ask for."""
        ...


def key(name: str) -> str:
    """A name as part of an address and of a file name: itself where that is safe, otherwise a slug."""
    return name if _KEY.fullmatch(name) else slug(name, of=name, longest=60)


def is_id(text: str) -> bool:
    return all(_KEY.fullmatch(part) for part in text.split("/"))


def script(id: str, value: Any) -> bytes:
    """The document as a script that registers itself. Plain ASCII without `<`: nothing in it can end a script, a line
    or a string before its time. The JSON is in a string, so that no key of it means anything to JavaScript."""
    inner = json.dumps(finite(value), separators=(",", ":"))
    outer = json.dumps(inner).replace("<", "\\u003c").replace(">", "\\u003e")
    return f"mngrData({json.dumps(id)}, {outer});\n".encode("ascii")


def digest(*parts: object) -> str:
    """Differs when one of the parts does."""
    return hashlib.sha256(repr(parts).encode(errors="replace")).hexdigest()[:16]


def picked(value: object, *names: str) -> dict[str, Any]:
    """These attributes of a record, by name."""
    return {name: getattr(value, name) for name in names}


def one_line(text: str, most: int = 300) -> str:
    """In one line, not without end."""
    one = " ".join(text.split())
    return one if len(one) <= most else one[: most - 1] + "…"


def cut(text: str, most: int = 4000) -> str:
    return text if len(text) <= most else text[:most] + "\n… (cut here)"


def finite(value: Any) -> Any:
    """The same without NaN and infinities, which JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
