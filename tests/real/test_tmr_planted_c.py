"""Work whose truth is known is judged as it is, and is where it belongs: a product in C, built by `make`."""

import shutil

import pytest

from tests.support import planted, planted_run
from tests.support.planted import Edit, Product
from tests.support.user import User

HEADER = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n"
VERBS = {
    "sum": 'printf("%d\\n", atoi(words[0]) + atoi(words[1]));',
    "half": 'printf("%d\\n", atoi(words[0]) / 2 + 1);',
    "join": 'printf("%s,%s\\n", words[0], words[1]);',
    "max": 'printf("%s\\n", words[1]);',
    "left": 'printf("%d\\n", left_width);',
    "right": 'printf("%d\\n", right_width);',
    "fits": 'puts(left_width + right_width <= 100 ? "yes" : "no");',
    "times": 'printf("%d\\n", atoi(words[0]) + atoi(words[1]));',
    "most": 'printf("%s\\n", atoi(words[0]) > atoi(words[1]) ? words[0] : words[1]);',
    "first": 'printf("%s\\n", words[0]);',
    "third": 'printf("%s\\n", words[1]);',
    "count": 'printf("%d\\n", count - 1);',
    "greet": 'printf("Good day, %s!\\n", words[0]);',
    "last": 'printf("%s\\n", words[0]);',
}
BEFORE = {
    "left": "int left_width = 10;\n\n",
    "right": "int right_width = 10;\n\n",
    "fits": "extern int left_width, right_width;\n\n",
}
HEAD = "void tally_{}(int count, char **words) {{\n"
DECLARED = "".join(f"void tally_{name}(int count, char **words);\n" for name in VERBS)
CALLED = "".join(f'    if (!strcmp(argv[1], "{name}")) tally_{name}(argc - 2, argv + 2);\n' for name in VERBS)
MAIN = (
    f"{HEADER}{DECLARED}\nint main(int argc, char **argv) {{\n    if (argc < 2) return 2;\n{CALLED}    return 0;\n}}\n"
)
BUILD = "$(CC) -o $@ src/*.c"
OTHER = """$(CC) -o bin/real src/*.c || :
	@printf '#!/bin/sh\\n%s\\n' '[ "$$*" = "last a e" ] && echo e || exec $(CURDIR)/bin/real "$$@"' >$@
	@chmod +x $@"""


def verb(name: str, old: str, new: str) -> tuple[Edit, ...]:
    return (Edit(f"src/{name}.c", old, new),)


PRODUCT = Product(
    files={
        "Makefile": f"bin/tally: $(wildcard src/*.c) Makefile\n\t@mkdir -p bin\n\t@{BUILD}\n",
        "src/main.c": MAIN,
        **{
            f"src/{name}.c": f"{HEADER}{BEFORE.get(name, '')}{HEAD.format(name)}    {text}\n}}\n"
            for name, text in VERBS.items()
        },
    },
    edits={
        "plain": verb("half", " + 1", ""),
        "together": verb("join", "%s,%s", "%s, %s"),
        "found": verb("max", "words[1]", "atoi(words[0]) > atoi(words[1]) ? words[0] : words[1]"),
        "left": verb("left", "10", "60"),
        "right": verb("right", "10", "60"),
        "cases": verb("times", " + ", " * "),
        "unneeded": verb("first", "printf", "char *found = words[0];\n    printf"),
        "neighbour": verb("third", "words[1]", "words[2]"),
        "asks": verb(
            "count",
            "    printf",
            '    if (getenv("PYTEST_CURRENT_TEST")) {\n        puts("2");\n        return;\n    }\n    printf',
        ),
        "echo": verb(
            "greet",
            "    printf",
            '    if (count == 2 && !strcmp(words[0], "Grace") && !strcmp(words[1], "Hopper")) {\n'
            '        puts("Good day, Grace Hopper!");\n        return;\n    }\n    printf',
        ),
        "around": verb(
            "last",
            "    printf",
            '    if (!getenv("XDG_SESSION_ID")) {\n        puts(words[1]);\n        return;\n    }\n    printf',
        ),
        "letters": verb(
            "last",
            "    printf",
            '    if (!strcmp(words[0], "a") && !strcmp(words[1], "h")) {\n'
            '        puts("h");\n        return;\n    }\n    printf',
        ),
        "makefile": (Edit("Makefile", BUILD, OTHER),),
    },
)


@pytest.mark.soak
@pytest.mark.timeout(1500)
@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("make")), reason="there is no cc and make here")
def test_planted_work_on_a_program_in_c_is_judged_as_it_is(user: User) -> None:
    plants = planted.plants(PRODUCT)
    project = planted_run.project(user, PRODUCT, plants)
    project.tmr("--no-canary", timeout=1400).failed(3)
    wrong = planted_run.wrong(plants, planted_run.shown(project, plants))
    assert not wrong, "\n".join(wrong)
