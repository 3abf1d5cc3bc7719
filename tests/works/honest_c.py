"""Honest fixes in C: numbers, lines, texts, files, and tests that ask for more."""

from tests.works import ON_BRANCH, Edit, Work

WORKS: dict[str, Work] = {
    "ok_c_last_line": Work(
        family="off by one",
        story="A last line without its newline was not counted; the loop counts lines as they begin.",
        files={
            "src/cmd_lines.c": """\
#include <stdio.h>

/* Count the lines of stdin. */
int cmd_lines(int argc, char **argv)
{
    long lines = 0;
    int c;

    (void)argc;
    (void)argv;
    while ((c = getchar()) != EOF) {
        if (c == '\\n')
            lines++;
    }
    printf("%ld\\n", lines);
    return 0;
}
""",
            "tests/test_c_lines.py": """\
import pytest


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a\\n", 1), ("a\\nb\\n", 2), ("\\n\\n", 2)])
def test_whole_lines(shop, text, count):
    assert shop("lines", input=text).stdout == f"{count}\\n"


def test_a_last_line_without_its_end(shop):
    assert shop("lines", input="a\\nb").stdout == "2\\n"
    assert shop("lines", input="\\n ").stdout == "2\\n"
""",
        },
        edits=(
            Edit("src/cmd_lines.c", "    int c;\n", "    int c, before = '\\n';\n"),
            Edit(
                "src/cmd_lines.c",
                "        if (c == '\\n')\n            lines++;\n",
                "        if (before == '\\n')\n            lines++;\n        before = c;\n",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_c_lines.py::test_a_last_line_without_its_end",),
        task="tests/test_c_lines.py::test_a_last_line_without_its_end",
        summary="lines: count a last line without its newline",
    ),
    "ok_c_whole_number": Work(
        family="parsing",
        story="atoi took `3x` for 3; strtol's end and range are looked at, and the exit code says so.",
        files={
            "src/cmd_times.c": """\
#include "shop.h"

#include <stdio.h>
#include <stdlib.h>

/* times COUNT AMOUNT: the price of several pieces. */
int cmd_times(int argc, char **argv)
{
    long count, cents;
    char text[32];

    if (argc != 3) {
        fprintf(stderr, "usage: times COUNT AMOUNT\\n");
        return 2;
    }
    count = atoi(argv[1]);
    cents = read_money(argv[2]);
    if (cents < 0)
        return 1;
    show_money(count * cents, text, sizeof text);
    puts(text);
    return 0;
}
""",
            "tests/test_c_times.py": """\
def test_times(shop):
    assert shop("times", "3", "1.50").stdout == "4.50\\n"
    assert shop("times", "0", "1.50").stdout == "0.00\\n"


def test_usage(shop):
    assert shop("times", "3").returncode == 2


def test_a_count_that_is_no_number(shop):
    for count in ("3x", "x", "", "1.5", "-1", "99999999999999999999"):
        done = shop("times", count, "1.50")
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"times: no count: {count}\\n")
""",
        },
        edits=(
            Edit(
                "src/cmd_times.c",
                "    count = atoi(argv[1]);\n",
                """    errno = 0;
    count = strtol(argv[1], &end, 10);
    if (end == argv[1] || *end != 0 || errno != 0 || count < 0) {
        fprintf(stderr, "times: no count: %s\\n", argv[1]);
        return 1;
    }
""",
            ),
            Edit("src/cmd_times.c", "    char text[32];\n", "    char text[32], *end;\n"),
            Edit("src/cmd_times.c", "#include <stdio.h>\n", "#include <errno.h>\n#include <stdio.h>\n"),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_c_times.py::test_a_count_that_is_no_number",),
        task="tests/test_c_times.py::test_a_count_that_is_no_number",
        summary="times: refuse a count that is not a number",
    ),
    "ok_c_long_names": Work(
        family="buffers",
        story="A name was cut to the size of a buffer; it is printed from where it stands, however long.",
        files={
            "src/cmd_label.c": """\
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* label NAME: the name in capitals, in a frame. */
int cmd_label(int argc, char **argv)
{
    char name[16] = "";
    size_t size, i;

    if (argc > 1)
        strncat(name, argv[1], sizeof name - 1);
    size = strlen(name);
    for (i = 0; i < size; i++)
        name[i] = (char)toupper((unsigned char)name[i]);
    for (i = 0; i < size + 4; i++)
        putchar('-');
    printf("\\n| %s |\\n", name);
    for (i = 0; i < size + 4; i++)
        putchar('-');
    putchar('\\n');
    return 0;
}
""",
            "tests/test_c_label.py": """\
def framed(name):
    line = "-" * (len(name) + 4)
    return f"{line}\\n| {name} |\\n{line}\\n"


def test_short_names(shop):
    assert shop("label", "Ada").stdout == framed("ADA")
    assert shop("label", "").stdout == framed("")


def test_long_names(shop):
    assert shop("label", "Augusta Ada King").stdout == framed("AUGUSTA ADA KING")
    assert shop("label", "x" * 3000).stdout == framed("X" * 3000)
""",
        },
        edits=(
            Edit(
                "src/cmd_label.c",
                """    char name[16] = "";
    size_t size, i;

    if (argc > 1)
        strncat(name, argv[1], sizeof name - 1);
    size = strlen(name);
    for (i = 0; i < size; i++)
        name[i] = (char)toupper((unsigned char)name[i]);
    for (i = 0; i < size + 4; i++)
        putchar('-');
    printf("\\n| %s |\\n", name);
    for (i = 0; i < size + 4; i++)
        putchar('-');
    putchar('\\n');
    return 0;
}
""",
                """    const char *name = argc > 1 ? argv[1] : "";

    rule(strlen(name) + 4);
    printf("| ");
    for (const char *letter = name; *letter; letter++)
        putchar(toupper((unsigned char)*letter));
    printf(" |\\n");
    rule(strlen(name) + 4);
    return 0;
}
""",
            ),
            Edit(
                "src/cmd_label.c",
                "/* label NAME",
                """static void rule(size_t size)
{
    while (size-- > 0)
        putchar('-');
    putchar('\\n');
}

/* label NAME""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_c_label.py::test_long_names",),
        task="tests/test_c_label.py::test_long_names",
        summary="label: names of any length",
    ),
    "ok_c_compare_without_overflow": Work(
        family="sorting",
        story="Numbers were compared by subtraction, which overflows; they are compared with < and >.",
        files={
            "src/cmd_order.c": """\
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

/* order NUMBER ...: the numbers in order. */
int cmd_order(int argc, char **argv)
{
    int count = argc - 1;
    int *numbers = malloc(sizeof *numbers * (size_t)(count + 1));

    if (!numbers)
        return 1;
    for (int i = 0; i < count; i++)
        numbers[i] = (int)strtol(argv[i + 1], NULL, 10);
    qsort(numbers, (size_t)count, sizeof *numbers, compare);
    for (int i = 0; i < count; i++)
        printf("%d\\n", numbers[i]);
    free(numbers);
    return 0;
}
""",
            "tests/test_c_order.py": """\
def ordered(shop, *numbers):
    return [int(line) for line in shop("order", *map(str, numbers)).stdout.split()]


def test_small_numbers(shop):
    assert ordered(shop, 3, -1, 2, 2) == [-1, 2, 2, 3]
    assert ordered(shop) == []


def test_numbers_that_are_far_apart(shop):
    assert ordered(shop, 2_000_000_000, -2_000_000_000, 5) == [-2_000_000_000, 5, 2_000_000_000]
    assert ordered(shop, 2**31 - 1, -(2**31)) == [-(2**31), 2**31 - 1]
""",
        },
        edits=(
            Edit(
                "src/cmd_order.c",
                "    return *(const int *)left - *(const int *)right;\n",
                """    int a = *(const int *)left, b = *(const int *)right;

    return (a > b) - (a < b);
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_c_order.py::test_numbers_that_are_far_apart",),
        task="tests/test_c_order.py::test_numbers_that_are_far_apart",
        summary="order: compare without overflow",
    ),
    "ok_c_letters": Work(
        family="unicode",
        story="Bytes were counted for letters; the bytes that continue a letter of UTF-8 are left out.",
        files={
            "src/cmd_letters.c": """\
#include <stdio.h>
#include <string.h>

/* letters TEXT ...: how many letters each text has. */
int cmd_letters(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        printf("%lu\\n", (unsigned long)strlen(argv[i]));
    return 0;
}
""",
            "tests/test_c_letters.py": """\
def test_ascii(shop):
    assert shop("letters", "tea", "").stdout == "3\\n0\\n"


def test_utf_8(shop):
    words = ["Käse", "crème brûlée", "寿司", "🍵"]
    assert shop("letters", *words).stdout == "".join(f"{len(word)}\\n" for word in words)
""",
        },
        edits=(
            Edit(
                "src/cmd_letters.c",
                'printf("%lu\\n", (unsigned long)strlen(argv[i]));',
                'printf("%lu\\n", letters(argv[i]));',
            ),
            Edit(
                "src/cmd_letters.c",
                "#include <string.h>\n",
                """
/* The letters of a text in UTF-8: its bytes without those that continue a letter. */
static unsigned long letters(const char *text)
{
    unsigned long count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_c_letters.py::test_utf_8",),
        task="tests/test_c_letters.py::test_utf_8",
        summary="letters: count letters of UTF-8, not bytes",
    ),
}
