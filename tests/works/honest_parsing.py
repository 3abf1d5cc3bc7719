"""Honest fixes of how structured text is read and written: headers, templates, links, tables, options."""

from tests.works import ON_BRANCH, Edit, Work

WORKS: dict[str, Work] = {
    "ok_http_headers": Work(
        family="http parsing",
        story="Header names are compared without case, values keep their colons, repeated ones are joined: RFC 9110.",
        files={
            "src/shop/headers.py": '''\
"""The head of an HTTP response."""


def parse_head(text):
    """Return the status and the headers."""
    lines = text.split("\\r\\n")
    status = int(lines[0].split()[1])
    headers = {}
    for line in lines[1:]:
        if not line:
            break
        name, value = line.split(":")
        headers[name] = value.strip()
    return status, headers


def content_type(headers):
    """Return the media type without its parameters."""
    return headers.get("Content-Type", "application/octet-stream").split(";")[0].strip()
''',
            "tests/test_headers.py": """\
from shop.headers import content_type, parse_head


def head(*lines):
    return "\\r\\n".join(("HTTP/1.1 200 OK", *lines, "", "body: none"))


def test_the_status():
    assert parse_head("HTTP/1.1 404 Not Found\\r\\n\\r\\n")[0] == 404


def test_names_have_no_case():
    _, headers = parse_head(head("content-type: text/html; charset=utf-8"))
    assert content_type(headers) == "text/html"


def test_a_value_may_hold_colons():
    _, headers = parse_head(head("Location: http://localhost:8080/cart"))
    assert headers["location"] == "http://localhost:8080/cart"


def test_a_name_that_comes_twice_is_a_list():
    _, headers = parse_head(head("Vary: Accept", "VARY: Cookie"))
    assert headers["vary"] == "Accept, Cookie"


def test_unknown_content():
    assert content_type({}) == "application/octet-stream"
""",
        },
        edits=(
            Edit(
                "src/shop/headers.py",
                """        name, value = line.split(":")
        headers[name] = value.strip()
""",
                """        name, _, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
""",
            ),
            Edit(
                "src/shop/headers.py",
                'Return the status and the headers."""',
                'Return the status and the headers, whose names are in lower case."""',
            ),
            Edit("src/shop/headers.py", 'headers.get("Content-Type", ', 'headers.get("content-type", '),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_headers.py::test_names_have_no_case",
            "tests/test_headers.py::test_a_value_may_hold_colons",
            "tests/test_headers.py::test_a_name_that_comes_twice_is_a_list",
        ),
        task="tests/test_headers.py::test_names_have_no_case",
        summary="headers: compare names without case, keep colons, join repeated headers",
    ),
    "ok_greedy_template": Work(
        family="regex",
        story="A greedy pattern swallowed everything between the first and the last brace; it is made lazy by class.",
        files={
            "src/shop/template.py": '''\
"""Mails with fields in braces: `Dear {name}`."""

import re

_FIELD = re.compile(r"\\{(.+)\\}")


def fields(template):
    """Return the names of the fields in their order."""
    return _FIELD.findall(template)


def fill(template, values):
    """Return the mail. A field without a value stays as it is."""
    return _FIELD.sub(lambda found: str(values.get(found[1], found[0])), template)
''',
            "tests/test_template.py": """\
from shop.template import fields, fill


def test_one_field():
    assert fill("Dear {name},", {"name": "Ada"}) == "Dear Ada,"


def test_two_fields_on_a_line():
    assert fill("{count} of {article}", {"count": 3, "article": "tea"}) == "3 of tea"


def test_fields_are_listed():
    assert fields("{a} {b}\\n{c}") == ["a", "b", "c"]


def test_unknown_fields_stay():
    assert fill("{x} and {y}", {"y": 1}) == "{x} and 1"
""",
        },
        edits=(Edit("src/shop/template.py", r"\{(.+)\}", r"\{([^{}]+)\}"),),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_template.py::test_two_fields_on_a_line",
            "tests/test_template.py::test_fields_are_listed",
            "tests/test_template.py::test_unknown_fields_stay",
        ),
        task="tests/test_template.py::test_two_fields_on_a_line",
        summary="template: a field ends at its own brace",
    ),
    "ok_query_string": Work(
        family="parsing",
        story="Values of a link were not quoted, so that `&` broke the link; the standard function is used.",
        files={
            "src/shop/links.py": '''\
"""Links to searches."""

BASE = "https://shop.example/search"


def search_link(terms, page=1):
    """Return the link for these terms; the first page is not named."""
    pairs = list(terms.items())
    if page > 1:
        pairs.append(("page", page))
    return BASE + "?" + "&".join(f"{key}={value}" for key, value in pairs)
''',
            "tests/test_links.py": """\
from urllib.parse import parse_qs, urlsplit

from shop.links import search_link


def asked(link):
    return parse_qs(urlsplit(link).query)


def test_plain_words():
    assert search_link({"q": "tea"}) == "https://shop.example/search?q=tea"


def test_values_survive_the_link():
    assert asked(search_link({"q": "salt & pepper", "max": "10%"})) == {"q": ["salt & pepper"], "max": ["10%"]}


def test_pages():
    assert asked(search_link({"q": "tea"}, page=3)) == {"q": ["tea"], "page": ["3"]}
    assert "page" not in asked(search_link({"q": "tea"}, page=1))
""",
        },
        edits=(
            Edit(
                "src/shop/links.py",
                'BASE = "https://shop.example/search"\n',
                'from urllib.parse import urlencode\n\nBASE = "https://shop.example/search"\n',
            ),
            Edit(
                "src/shop/links.py",
                """return BASE + "?" + "&".join(f"{key}={value}" for key, value in pairs)""",
                'return f"{BASE}?{urlencode(pairs)}"',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_links.py::test_values_survive_the_link",),
        task="tests/test_links.py::test_values_survive_the_link",
        summary="search_link: quote the values",
    ),
    "ok_csv_fields_with_commas": Work(
        family="parsing",
        story="Lines were split at commas, quoted or not; the csv module reads and writes them.",
        files={
            "src/shop/customers.py": '''\
"""Customers in a file of commas: name, town, note."""


def load(text):
    """Return a list of (name, town, note)."""
    return [tuple(line.split(",")) for line in text.splitlines() if line]


def dump(customers):
    """Return the text that `load` reads."""
    return "".join(",".join(customer) + "\\n" for customer in customers)


def towns(text):
    """Return the towns, each once, in order."""
    return sorted({town for _, town, _ in load(text)})
''',
            "tests/test_customers.py": """\
from shop.customers import dump, load, towns

ADA = ("Ada", "London", "")
BOB = ("Smith, Bob", "New York", 'likes "green" tea,\\nand cake')


def test_plain():
    assert load("Ada,London,\\n") == [ADA]
    assert dump([ADA]) == "Ada,London,\\n"


def test_commas_quotes_and_lines_survive():
    assert load(dump([ADA, BOB])) == [ADA, BOB]


def test_what_a_spreadsheet_writes():
    assert load('"Smith, Bob",New York,"a ""b"" c"\\r\\n') == [("Smith, Bob", "New York", 'a "b" c')]


def test_towns():
    assert towns("a,Rome,\\nb,Oslo,\\nc,Rome,\\n") == ["Oslo", "Rome"]
""",
        },
        edits=(
            Edit(
                "src/shop/customers.py",
                "\n\ndef load(text):",
                "\nimport csv\nimport io\n\n\ndef load(text):",
            ),
            Edit(
                "src/shop/customers.py",
                """[tuple(line.split(",")) for line in text.splitlines() if line]""",
                """[tuple(row) for row in csv.reader(io.StringIO(text, newline="")) if row]""",
            ),
            Edit(
                "src/shop/customers.py",
                """    return "".join(",".join(customer) + "\\n" for customer in customers)
""",
                """    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\\n").writerows(customers)
    return file.getvalue()
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_customers.py::test_commas_quotes_and_lines_survive",
            "tests/test_customers.py::test_what_a_spreadsheet_writes",
        ),
        task="tests/test_customers.py::test_commas_quotes_and_lines_survive",
        summary="customers: read and write quoted fields",
    ),
    "ok_option_that_is_zero": Work(
        family="argparse",
        story="`--limit 0` was taken for no limit, because 0 is false; None is asked for instead.",
        files={
            "src/shop/listing.py": '''\
"""`python -m shop.listing`: list articles from stdin."""

import argparse
import sys


def parser():
    parser = argparse.ArgumentParser(prog="shop list")
    parser.add_argument("--limit", type=int, help="list at most this many articles")
    parser.add_argument("--reverse", action="store_true", help="last article first")
    return parser


def articles(lines, limit=None, reverse=False):
    """Return the articles in order, without empty lines."""
    found = sorted((line.strip() for line in lines if line.strip()), reverse=reverse)
    return found[:limit] if limit else found


def main(argv):
    options = parser().parse_args(argv)
    for article in articles(sys.stdin, options.limit, options.reverse):
        print(article)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
''',
            "tests/test_listing.py": """\
from checks import assert_lines

LINES = "tea\\n\\nbread\\ncoffee\\n"


def test_all(shop):
    assert_lines(shop(module="shop.listing", input=LINES).stdout, "bread", "coffee", "tea")


def test_some_from_the_end(shop):
    done = shop("--reverse", "--limit", "2", module="shop.listing", input=LINES)
    assert_lines(done.stdout, "tea", "coffee")


def test_limit_of_zero(shop):
    done = shop("--limit", "0", module="shop.listing", input=LINES)
    assert done.returncode == 0
    assert_lines(done.stdout)


def test_a_limit_below_zero_is_refused(shop):
    done = shop("--limit", "-1", module="shop.listing", input=LINES)
    assert done.returncode == 2
    assert "--limit: must not be negative: -1" in done.stderr
""",
        },
        edits=(
            Edit(
                "src/shop/listing.py",
                "def parser():\n",
                """def count(text):
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative: {number}")
    return number


def parser():
""",
            ),
            Edit("src/shop/listing.py", "type=int, ", "type=count, "),
            Edit("src/shop/listing.py", "return found[:limit] if limit else found", "return found[:limit]"),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_listing.py::test_limit_of_zero",
            "tests/test_listing.py::test_a_limit_below_zero_is_refused",
        ),
        task="tests/test_listing.py::test_limit_of_zero",
        summary="listing: --limit 0 lists nothing, negative limits are refused",
    ),
}
