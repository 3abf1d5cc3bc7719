"""till add AMOUNT CATEGORY [NOTE] | list [CATEGORY] | sum | remove NUMBER | limit CATEGORY AMOUNT | export FILE"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from till import book, money

BOOK = Path("till.csv")


def main(words: list[str]) -> int:
    verbs = {"add": add, "list": show, "sum": sums, "remove": remove, "limit": limit, "export": export}
    if not words or words[0] not in verbs:
        print(f"usage: {__doc__}", file=sys.stderr)
        return 64
    try:
        return verbs[words[0]](words[1:])
    except money.BadAmount as error:
        print(f"till: {error}", file=sys.stderr)
        return 2


def add(words: list[str]) -> int:
    entries = book.read(BOOK)
    note = " ".join(words[2:])
    entry = book.Entry(book.next_number(entries), money.parse(words[0]), words[1], note)
    book.write(BOOK, [*entries, entry])
    print(f"added {entry.number}: {money.show(entry.cents)} for {entry.category}")
    return 0


def show(words: list[str]) -> int:
    entries = [entry for entry in book.read(BOOK) if not words or entry.category == words[0]]
    for entry in entries:
        print(f"{entry.number:>3}  {money.show(entry.cents):>9}  {entry.category:<10}  {entry.note}".rstrip())
    print(f"{len(entries)} entries, {money.show(sum(entry.cents for entry in entries))} in total")
    return 0


def sums(words: list[str]) -> int:
    for category, cents in book.totals(book.read(BOOK)):
        print(f"{category}: {money.show(cents)}")
    return 0


def remove(words: list[str]) -> int:
    entries = book.read(BOOK)
    left = [entry for entry in entries if str(entry.number) != words[0]]
    if len(left) == len(entries):
        print(f"till: no entry {words[0]}", file=sys.stderr)
        return 1
    book.write(BOOK, left)
    print(f"removed {words[0]}")
    return 0


def limit(words: list[str]) -> int:
    spent = dict(book.totals(book.read(BOOK))).get(words[0], 0)
    left = money.parse(words[1]) - spent
    if left < 0:
        print(f"over the limit by {money.show(-left)}")
        return 3
    print(f"{money.show(left)} left")
    return 0


def export(words: list[str]) -> int:
    entries = book.read(BOOK)
    value = {
        "count": len(entries),
        "entries": [{"amount": money.show(e.cents), "category": e.category, "note": e.note} for e in entries],
    }
    Path(words[0]).write_text(json.dumps(value, indent=1) + "\n")
    print(f"wrote {words[0]}")
    return 0
