"""Amounts in words, written the same way everywhere: counts, money, tokens, how long something took. Pure."""


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


def took(seconds: float) -> str:
    """`4.2 s`, `48 s`, `1 min 30 s`, `2 h 05 min`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
