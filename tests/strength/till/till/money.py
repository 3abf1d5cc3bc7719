"""Amounts in cents."""

from __future__ import annotations


class BadAmount(ValueError):
    """The text is not an amount."""


def parse(text: str) -> int:
    """Cents of `12`, `12.5`, `12.50` or `12,50`; a minus sign is for money that came back."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    whole, _, part = digits.replace(",", ".").partition(".")
    if not whole.isdigit() or len(part) > 2 or (part and not part.isdigit()):
        raise BadAmount(f"not an amount: {text}")
    return sign * (int(whole) * 100 + int(part.ljust(2, "0")))


def show(cents: int) -> str:
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"


def share(cents: int, people: int) -> list[int]:
    """Equal parts that add up exactly: the first ones are a cent larger."""
    if people < 1:
        raise ValueError("nobody to share with")
    each, rest = divmod(cents, people)
    return [each + 1] * rest + [each] * (people - rest)
