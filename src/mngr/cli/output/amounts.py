"""Amounts in words, written the same way everywhere: counts, money, tokens. Pure."""


def amount(count: int, noun: str) -> str:
    """`1 file`, `3 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def money(usd: float) -> str:
    """`$1.56`."""
    return f"${usd:,.2f}"


def tokens(count: int) -> str:
    """`491 k tokens`, `1.2 M tokens`."""
    if count < 1000:
        return amount(count, "token")
    return f"{count / 1000:.0f} k tokens" if count < 999_500 else f"{count / 1e6:.1f} M tokens"
