"""Honest fixes in C that touch files, the environment and several sources; stronger tests; and what looks odd."""

from tests.works import ASKED, ON_BRANCH, Edit, Work

WORKS: dict[str, Work] = {
    "ok_c_missing_file": Work(
        family="error messages",
        story="A file that cannot be opened ended as success; the reason goes to stderr and the exit code is 1.",
        files={
            "src/cmd_sumfile.c": """\
#include <stdio.h>

/* sumfile FILE: the sum of the whole numbers in a file. */
int cmd_sumfile(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    long sum = 0, number;

    while (file && fscanf(file, "%ld", &number) == 1)
        sum += number;
    if (file)
        fclose(file);
    printf("%ld\\n", sum);
    return 0;
}
""",
            "tests/test_c_sumfile.py": """\
def test_numbers(shop, tmp_path):
    (tmp_path / "numbers").write_text("1 2\\n39\\n")
    assert shop("sumfile", "numbers").stdout == "42\\n"


def test_an_empty_file(shop, tmp_path):
    (tmp_path / "numbers").touch()
    assert shop("sumfile", "numbers").stdout == "0\\n"


def test_no_file(shop):
    done = shop("sumfile", "none")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "sumfile: none: No such file or directory\\n"


def test_what_is_no_number(shop, tmp_path):
    (tmp_path / "numbers").write_text("1 two\\n")
    done = shop("sumfile", "numbers")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "sumfile: numbers: not a number\\n")
""",
        },
        edits=(
            Edit(
                "src/cmd_sumfile.c",
                "",
                """\
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Add the numbers of a file. Return 0 unless it holds something else. */
static int add_numbers(FILE *file, long *sum)
{
    long number;
    int found;

    while ((found = fscanf(file, "%ld", &number)) == 1)
        *sum += number;
    return found == EOF && !ferror(file) ? 0 : -1;
}

/* sumfile FILE: the sum of the whole numbers in a file. */
int cmd_sumfile(int argc, char **argv)
{
    FILE *file;
    long sum = 0;
    int failed;

    if (argc != 2) {
        fprintf(stderr, "usage: sumfile FILE\\n");
        return 2;
    }
    file = fopen(argv[1], "r");
    if (!file) {
        fprintf(stderr, "sumfile: %s: %s\\n", argv[1], strerror(errno));
        return 1;
    }
    failed = add_numbers(file, &sum);
    fclose(file);
    if (failed) {
        fprintf(stderr, "sumfile: %s: not a number\\n", argv[1]);
        return 1;
    }
    printf("%ld\\n", sum);
    return 0;
}
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_c_sumfile.py::test_no_file", "tests/test_c_sumfile.py::test_what_is_no_number"),
        task="tests/test_c_sumfile.py::test_no_file",
        summary="sumfile: report a file that cannot be read",
    ),
    "ok_c_month_lengths": Work(
        family="leap years",
        story="February had 28 days in every year; the table of another file learns the rule of leap years.",
        files={
            "src/months.c": """\
/* The days of a month, 1 to 12; 0 for any other. */
int days_of_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    (void)year;
    return month >= 1 && month <= 12 ? days[month - 1] : 0;
}
""",
            "src/cmd_lastday.c": """\
#include <stdio.h>

int days_of_month(int year, int month);

/* lastday YEAR-MONTH: the last day of a month. */
int cmd_lastday(int argc, char **argv)
{
    int year, month;

    if (argc != 2 || sscanf(argv[1], "%d-%d", &year, &month) != 2)
        return 2;
    printf("%04d-%02d-%02d\\n", year, month, days_of_month(year, month));
    return 0;
}
""",
            "tests/test_c_lastday.py": """\
import pytest


@pytest.mark.parametrize(("month", "day"), [("2025-01", 31), ("2025-02", 28), ("2025-11", 30), ("2025-12", 31)])
def test_usual_years(shop, month, day):
    assert shop("lastday", month).stdout == f"{month}-{day}\\n"


def test_leap_years(shop):
    assert shop("lastday", "2024-02").stdout == "2024-02-29\\n"
    assert shop("lastday", "2000-02").stdout == "2000-02-29\\n"
    assert shop("lastday", "1900-02").stdout == "1900-02-28\\n"


def test_no_month(shop):
    done = shop("lastday", "2025-13")
    assert (done.returncode, done.stdout) == (1, "")
    assert shop("lastday", "May").returncode == 2
""",
        },
        edits=(
            Edit(
                "src/months.c",
                """    (void)year;
    return month >= 1 && month <= 12 ? days[month - 1] : 0;
""",
                """    if (month < 1 || month > 12)
        return 0;
    return days[month - 1] + (month == 2 && is_leap(year));
""",
            ),
            Edit(
                "src/months.c",
                "/* The days",
                """static int is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* The days""",
            ),
            Edit(
                "src/cmd_lastday.c",
                '    printf("',
                """    if (!days_of_month(year, month)) {
        fprintf(stderr, "lastday: no month: %s\\n", argv[1]);
        return 1;
    }
    printf(\"""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_c_lastday.py::test_leap_years", "tests/test_c_lastday.py::test_no_month"),
        task="tests/test_c_lastday.py::test_leap_years",
        summary="lastday: leap years, and months that do not exist",
    ),
    "ok_c_quoted_fields": Work(
        family="parsing",
        story="A comma inside of quotes began a new field; the reader keeps track of quotes, doubled ones too.",
        files={
            "src/cmd_field.c": """\
#include <stdio.h>
#include <stdlib.h>

/* field N: the Nth field of each line of stdin, which is CSV. */
int cmd_field(int argc, char **argv)
{
    long wanted = argc > 1 ? strtol(argv[1], NULL, 10) : 1, field = 1;
    int c;

    while ((c = getchar()) != EOF) {
        if (c == '\\n') {
            putchar(c);
            field = 1;
        } else if (c == ',') {
            field++;
        } else if (field == wanted) {
            putchar(c);
        }
    }
    return 0;
}
""",
            "tests/test_c_field.py": """\
def test_plain_fields(shop):
    assert shop("field", "2", input="a,b,c\\n1,,3\\nx\\n").stdout == "b\\n\\n\\n"


def test_quoted_fields(shop):
    text = 'Ada,"King, Countess",3\\n"a ""b"" c","",z\\n'
    assert shop("field", "1", input=text).stdout == 'Ada\\na "b" c\\n'
    assert shop("field", "2", input=text).stdout == "King, Countess\\n\\n"
    assert shop("field", "3", input=text).stdout == "3\\nz\\n"
""",
        },
        edits=(
            Edit("src/cmd_field.c", "    int c;\n", "    int c, quoted = 0, before = 0;\n"),
            Edit(
                "src/cmd_field.c",
                "        if (c == '\\n') {\n",
                """        if (c == '"') {
            quoted = !quoted;
            if (quoted && before == '"' && field == wanted)
                putchar(c); /* the second of two quotes stands for one */
        } else if (c == '\\n' && !quoted) {
""",
            ),
            Edit("src/cmd_field.c", "} else if (c == ',') {", "} else if (c == ',' && !quoted) {"),
            Edit(
                "src/cmd_field.c",
                "            putchar(c);\n        }\n    }\n",
                "            putchar(c);\n        }\n        before = c;\n    }\n",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_c_field.py::test_quoted_fields",),
        task="tests/test_c_field.py::test_quoted_fields",
        summary="field: commas and quotes inside of quoted fields",
    ),
    "ok_c_home": Work(
        family="environment",
        story="The path of the settings was below /root for everybody; HOME is read, and its absence is an error.",
        files={
            "src/cmd_settings.c": """\
#include <stdio.h>

/* settings: the path of the user's settings. */
int cmd_settings(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("%s/.config/shop\\n", "/root");
    return 0;
}
""",
            "tests/test_c_settings.py": """\
def test_below_the_home(shop):
    for home in ("/home/ada", "/srv/my shop"):
        assert shop("settings", env={"HOME": home}).stdout == f"{home}/.config/shop\\n"


def test_without_a_home(shop):
    for env in ({}, {"HOME": ""}):
        done = shop("settings", env=env)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", "settings: HOME is not set\\n")
""",
        },
        edits=(
            Edit("src/cmd_settings.c", "#include <stdio.h>\n", "#include <stdio.h>\n#include <stdlib.h>\n"),
            Edit(
                "src/cmd_settings.c", "    (void)argc;\n", '    const char *home = getenv("HOME");\n\n    (void)argc;\n'
            ),
            Edit(
                "src/cmd_settings.c",
                '    printf("%s/.config/shop\\n", "/root");\n',
                """    if (!home || !*home) {
        fprintf(stderr, "settings: HOME is not set\\n");
        return 1;
    }
    printf("%s/.config/shop\\n", home);
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_c_settings.py::test_below_the_home", "tests/test_c_settings.py::test_without_a_home"),
        task="tests/test_c_settings.py::test_below_the_home",
        summary="settings: below HOME",
    ),
    "ok_c_stronger": Work(
        family="stronger test",
        story="The test asked for exit code 0 only; it compares what is printed, for several amounts.",
        files={
            "src/cmd_net.c": """\
#include "shop.h"

#include <stdio.h>

/* net AMOUNT: without the tax of 19 percent that is in it, rounded half up. */
int cmd_net(int argc, char **argv)
{
    long gross = argc > 1 ? read_money(argv[1]) : -1;
    char text[32];

    if (gross < 0) {
        fprintf(stderr, "net: no amount\\n");
        return 1;
    }
    show_money((gross * 200 + 119) / 238, text, sizeof text);
    puts(text);
    return 0;
}
""",
            "tests/test_c_net.py": """\
def test_net(shop):
    assert shop("net", "119.00").returncode == 0
    assert shop("net", "much").returncode != 0
""",
        },
        edits=(
            Edit(
                "tests/test_c_net.py",
                """    assert shop("net", "119.00").returncode == 0
    assert shop("net", "much").returncode != 0
""",
                """    for gross, net in (("119.00", "100.00"), ("0.00", "0.00"), ("0.01", "0.01"), ("9.99", "8.39")):
        assert shop("net", gross).stdout == f"{net}\\n"
    done = shop("net", "much")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "net: no amount\\n")
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        task="tests/test_c_net.py::test_net",
        summary="test_net: compare what is printed",
    ),
    "odd_c_constant": Work(
        family="constants",
        story="The limit of the test is the one in the comment; the code had another. The number is the whole fix.",
        files={
            "src/cmd_limit.c": """\
#include "shop.h"

#include <stdio.h>

/* Cash is taken up to 9999.99 by law. */
#define LIMIT 99999

/* limit AMOUNT: may so much be paid in cash? */
int cmd_limit(int argc, char **argv)
{
    long cents = argc > 1 ? read_money(argv[1]) : -1;

    if (cents < 0)
        return 2;
    puts(cents <= LIMIT ? "cash" : "no cash");
    return 0;
}
""",
            "tests/test_c_limit.py": """\
def test_little_and_much(shop):
    assert shop("limit", "5.00").stdout == "cash\\n"
    assert shop("limit", "10000.00").stdout == "no cash\\n"


def test_the_limit(shop):
    assert shop("limit", "9999.99").stdout == "cash\\n"
""",
        },
        edits=(Edit("src/cmd_limit.c", "#define LIMIT 99999\n", "#define LIMIT 999999\n"),),
        ends=frozenset({ON_BRANCH, ASKED}),
        base=("tests/test_c_limit.py::test_the_limit",),
        task="tests/test_c_limit.py::test_the_limit",
        summary="limit: 9999.99, as the comment says",
    ),
}
