"""Honest fixes of lists and orders: sorting, chunks, dependencies, speed, versions."""

from tests.works import ON_BRANCH, Edit, Work

WORKS: dict[str, Work] = {
    "ok_natural_order": Work(
        family="sorting",
        story="`shelf 10` came before `shelf 2`; numbers inside of names are compared as numbers.",
        files={
            "src/shop/shelves.py": '''\
"""Names of shelves in an order that people expect."""


def in_order(names):
    """Return the names, without regard to case."""
    return sorted(names, key=str.lower)


def first_free(names, taken):
    """Return the first shelf that is not taken, or None."""
    return next((name for name in in_order(names) if name not in taken), None)
''',
            "tests/test_shelves.py": """\
from shop.shelves import first_free, in_order


def test_letters():
    assert in_order(["b", "C", "a"]) == ["a", "b", "C"]


def test_numbers():
    assert in_order(["shelf 10", "Shelf 2", "shelf 1"]) == ["shelf 1", "Shelf 2", "shelf 10"]
    assert in_order(["a12b3", "a2b30", "a2b4", "7"]) == ["7", "a2b4", "a2b30", "a12b3"]


def test_first_free():
    assert first_free(["s10", "s9", "s8"], {"s8"}) == "s9"
    assert first_free(["s1"], {"s1"}) is None
""",
        },
        edits=(
            Edit(
                "src/shop/shelves.py",
                '''    """Return the names, without regard to case."""
    return sorted(names, key=str.lower)
''',
                '''    """Return the names, without regard to case, and numbers in them by their value."""
    return sorted(names, key=_key)


def _key(name):
    parts = re.split(r"([0-9]+)", name.lower())
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
''',
            ),
            Edit("src/shop/shelves.py", "\n\ndef in_order", "\nimport re\n\n\ndef in_order"),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_shelves.py::test_numbers", "tests/test_shelves.py::test_first_free"),
        task="tests/test_shelves.py::test_numbers",
        summary="shelves: compare numbers in names as numbers",
    ),
    "ok_last_chunk": Work(
        family="iterators",
        story="What did not fill a parcel was lost, and a generator was read as a list; both by islice.",
        files={
            "src/shop/parcels.py": '''\
"""Packing articles into parcels."""


def parcels(articles, size):
    """Yield lists of at most `size` articles, in their order."""
    if size < 1:
        raise ValueError("a parcel holds at least one article")
    for start in range(0, len(articles) - size + 1, size):
        yield articles[start : start + size]


def labels(articles, size):
    """Return a text for each parcel."""
    return [f"{number}: {', '.join(parcel)}" for number, parcel in enumerate(parcels(articles, size), 1)]
''',
            "tests/test_parcels.py": """\
import pytest

from shop.parcels import labels, parcels


def test_full_parcels():
    assert list(parcels(["a", "b", "c", "d"], 2)) == [["a", "b"], ["c", "d"]]


def test_the_rest_is_a_parcel():
    assert list(parcels(["a", "b", "c"], 2)) == [["a", "b"], ["c"]]
    assert list(parcels(["a"], 5)) == [["a"]]
    assert list(parcels([], 5)) == []


def test_articles_may_come_one_by_one():
    assert labels((letter for letter in "abcde"), 3) == ["1: a, b, c", "2: d, e"]


def test_impossible_parcels():
    with pytest.raises(ValueError, match="at least one"):
        list(parcels(["a"], 0))
""",
        },
        edits=(
            Edit(
                "src/shop/parcels.py",
                """    for start in range(0, len(articles) - size + 1, size):
        yield articles[start : start + size]
""",
                """    articles = iter(articles)
    while parcel := list(islice(articles, size)):
        yield parcel
""",
            ),
            Edit("src/shop/parcels.py", "\n\ndef parcels", "\nfrom itertools import islice\n\n\ndef parcels"),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_parcels.py::test_the_rest_is_a_parcel",
            "tests/test_parcels.py::test_articles_may_come_one_by_one",
        ),
        task="tests/test_parcels.py::test_the_rest_is_a_parcel",
        summary="parcels: pack what does not fill a parcel",
    ),
    "ok_linear_duplicates": Work(
        family="performance",
        story="Duplicates were looked for in a list; the test counts comparisons. Hashes are used.",
        files={
            "src/shop/unique.py": '''\
"""Lists without duplicates."""


def unique(items):
    """Return the items in the order of their first place, each once."""
    found = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def duplicates(items):
    """Return the items that come more than once, in the order of their first place."""
    return [item for item in unique(items) if items.count(item) > 1]
''',
            "tests/test_unique.py": """\
from shop.unique import duplicates, unique


class Article:
    compared = 0

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return hash(self.number)

    def __eq__(self, other):
        Article.compared += 1
        return self.number == other.number


def test_order_is_kept():
    assert unique(["b", "a", "b", "c", "a"]) == ["b", "a", "c"]


def test_duplicates():
    assert duplicates(["b", "a", "b", "c", "a", "b"]) == ["b", "a"]
    assert duplicates([]) == []


def test_long_lists_are_not_compared_in_pairs():
    Article.compared = 0
    articles = [Article(number % 500) for number in range(1000)]
    assert [article.number for article in unique(articles)] == list(range(500))
    assert [article.number for article in duplicates(articles)] == list(range(500))
    assert Article.compared < 10_000
""",
        },
        edits=(
            Edit(
                "src/shop/unique.py",
                """    found = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
""",
                "    return list(dict.fromkeys(items))\n",
            ),
            Edit(
                "src/shop/unique.py",
                "    return [item for item in unique(items) if items.count(item) > 1]\n",
                "    return [item for item, count in Counter(items).items() if count > 1]\n",
            ),
            Edit("src/shop/unique.py", "\n\ndef unique", "\nfrom collections import Counter\n\n\ndef unique"),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_unique.py::test_long_lists_are_not_compared_in_pairs",),
        task="tests/test_unique.py::test_long_lists_are_not_compared_in_pairs",
        summary="unique: look duplicates up by hash",
    ),
    "ok_parts_before_the_whole": Work(
        family="graphs",
        story="Parts of parts were built too late and a circle hung in recursion; a depth-first walk knows both.",
        files={
            "src/shop/assembly.py": '''\
"""In which order sets are put together from their parts."""


def build_order(parts):
    """Return all names, each after its parts. `parts` maps a name to the names of its parts."""
    order = []
    for name, needed in parts.items():
        for part in needed:
            if part not in order:
                order.append(part)
        if name not in order:
            order.append(name)
    return order
''',
            "tests/test_assembly.py": """\
import pytest

from shop.assembly import build_order


def test_a_set():
    assert build_order({"breakfast": ["tea", "bread"]}) == ["tea", "bread", "breakfast"]


@pytest.mark.parametrize("names", [("box", "breakfast", "sandwich"), ("sandwich", "breakfast", "box")])
def test_parts_come_first(names):
    parts = {"box": ["breakfast", "bow"], "breakfast": ["tea", "sandwich"], "sandwich": ["bread", "cheese"]}
    order = build_order({name: parts[name] for name in names})
    assert sorted(order) == ["bow", "box", "bread", "breakfast", "cheese", "sandwich", "tea"]
    for whole, needed in parts.items():
        assert all(order.index(part) < order.index(whole) for part in needed)


def test_a_shared_part_is_built_once():
    parts = {"box": ["cup", "plate"], "cup": ["clay"], "plate": ["clay"]}
    assert build_order(parts) == ["clay", "cup", "plate", "box"]


def test_a_circle_is_an_error():
    with pytest.raises(ValueError, match="hen needs itself: hen, egg, hen"):
        build_order({"hen": ["egg"], "egg": ["hen"]})
""",
        },
        edits=(
            Edit(
                "src/shop/assembly.py",
                '''maps a name to the names of its parts."""
    order = []
    for name, needed in parts.items():
        for part in needed:
            if part not in order:
                order.append(part)
        if name not in order:
            order.append(name)
    return order
''',
                '''maps a name to the names of its parts.

    Raise ValueError if something is a part of itself."""
    order = []

    def build(name, above):
        if name in above:
            raise ValueError(f"{name} needs itself: {', '.join([*above, name])}")
        for part in parts.get(name, ()):
            build(part, [*above, name])
        if name not in order:
            order.append(name)

    for name in parts:
        build(name, [])
    return order
''',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_assembly.py::test_parts_come_first[names0]",
            "tests/test_assembly.py::test_a_shared_part_is_built_once",
            "tests/test_assembly.py::test_a_circle_is_an_error",
        ),
        task="tests/test_assembly.py::test_a_shared_part_is_built_once",
        summary="assembly: build parts of parts first, name circles",
    ),
    "ok_versions_by_number": Work(
        family="sorting",
        story="Versions were compared as texts; they are compared by the rule of semantic versioning.",
        files={
            "src/shop/versions.py": '''\
"""Versions of the catalogue: `1.10.0`, `2.0.0-beta.2`."""


def key(version):
    """Return what versions are sorted by."""
    return version


def newest(versions):
    return max(versions, key=key)


def is_update(current, offered):
    return key(offered) > key(current)
''',
            "tests/test_versions.py": """\
from shop.versions import is_update, key, newest

ORDER = ["0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0", "1.2.0", "1.10.0"]


def test_a_single_digit():
    assert newest(["1.2.0", "1.3.0", "1.1.9"]) == "1.3.0"


def test_two_digits():
    assert newest(["1.9.0", "1.10.0", "1.2.11"]) == "1.10.0"


def test_a_release_follows_its_tests():
    assert is_update("2.0.0-rc.1", "2.0.0")
    assert not is_update("2.0.0", "2.0.0-rc.1")


def test_the_order_of_the_specification():
    assert sorted(reversed(ORDER), key=key) == ORDER
""",
        },
        edits=(
            Edit(
                "src/shop/versions.py",
                '''    """Return what versions are sorted by."""
    return version
''',
                '''    """Return what versions are sorted by: numbers by value, a pre-release before its release."""
    release, _, before = version.partition("-")
    numbers = [int(part) for part in release.split(".")]
    parts = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in before.split(".") if part]
    return numbers, not before, parts
''',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_versions.py::test_two_digits",
            "tests/test_versions.py::test_a_release_follows_its_tests",
            "tests/test_versions.py::test_the_order_of_the_specification",
        ),
        task="tests/test_versions.py::test_two_digits",
        summary="versions: compare by number, pre-releases first",
    ),
}
