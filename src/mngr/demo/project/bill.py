"""Split a restaurant bill. All amounts are whole cents, so that nothing is lost to rounding."""

import argparse


def parse_money(text: str) -> int:
    """Cents from an amount such as `12`, `12.5` or `12.50`."""
    whole, _, part = text.partition(".")
    return int(whole) * 100 + int(part.ljust(2, "0"))


def format_money(cents: int) -> str:
    """The amount as people write it: `12.50`."""
    return f"{cents // 100}.{cents % 100:02d}"


def tip(cents: int, percent: int) -> int:
    """The tip on an amount."""
    return cents * percent // 100


def share(cents: int, people: int) -> list[int]:
    """What each person pays."""
    each = cents // people
    return [each] * people


def main() -> None:
    parser = argparse.ArgumentParser(description="Split a bill.")
    parser.add_argument("amount", type=parse_money, help="what is on the bill, such as 45.50")
    parser.add_argument("--people", type=int, default=2, help="how many share it (default: 2)")
    parser.add_argument("--tip", type=int, default=0, metavar="PERCENT", help="what to add (default: 0)")
    args = parser.parse_args()
    total = args.amount + tip(args.amount, args.tip)
    shares = share(total, args.people)
    for number, cents in enumerate(shares, 1):
        print(f"person {number} pays {format_money(cents)}")


if __name__ == "__main__":
    main()
