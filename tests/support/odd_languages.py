"""The same product as of `odd_projects`, in C and with its tests in its documentation."""

DOCTESTS = '''\
def half(number):
    """
    >>> half(8)
    4
    """
    return number // 2 + 1


def twice(number):
    """
    >>> twice(4)
    8
    """
    return number + number + 1


def z_guard(number):
    """
    >>> z_guard(4)
    8
    """
    return twice(number) - 1


def word(text):
    """
    >>> word("a")
    'b'
    """
    return text


def greet(name):
    """
    >>> greet("Grace Hopper")
    'hello, Grace Hopper'
    """
    return "hello"
'''
_FUNCTIONS = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long half(long number) {
    return number / 2 + 1;
}

static long twice(long number) {
    return number + number + 1;
}

static long guard(long number) {
    return twice(number) - 1;
}

static const char *greet(const char *name) {
    (void)name;
    return "hello";
}
"""
PROGRAM = f"""\
{_FUNCTIONS}
int main(int argc, char **argv) {{
    if (argc != 3) return 2;
    if (!strcmp(argv[1], "half")) printf("%ld\\n", half(atol(argv[2])));
    if (!strcmp(argv[1], "twice")) printf("%ld\\n", twice(atol(argv[2])));
    if (!strcmp(argv[1], "guard")) printf("%ld\\n", guard(atol(argv[2])));
    if (!strcmp(argv[1], "word")) printf("%s\\n", argv[2]);
    if (!strcmp(argv[1], "greet")) printf("%s\\n", greet(argv[2]));
    return 0;
}}
"""
GREP_BUILD = "calc: calc.c\n\tcc -Wall -Werror -o $@ $<\n"
COMMAND_TESTS = """\
import subprocess


def calc(*words):
    return subprocess.run(["./calc", *words], capture_output=True, text=True).stdout.rstrip("\\n")


def test_half():
    assert calc("half", "8") == "4"


def test_twice():
    assert calc("twice", "4") == "8"


def test_word():
    assert calc("word", "a") == "b"


def test_greet():
    assert calc("greet", "Grace Hopper") == "hello, Grace Hopper"


def test_z_guard():
    assert calc("guard", "4") == "8"
"""
MODULE = f"""\
#define PY_SSIZE_T_CLEAN
#include <Python.h>
{_FUNCTIONS}
#define NUMBER(name) static PyObject *py_##name(PyObject *self, PyObject *one) {{ \\
    return PyLong_FromLong(name(PyLong_AsLong(one))); }}
NUMBER(half)
NUMBER(twice)
NUMBER(guard)
static PyObject *py_word(PyObject *self, PyObject *one) {{ return PyUnicode_FromString(PyUnicode_AsUTF8(one)); }}
static PyObject *py_greet(PyObject *self, PyObject *one) {{
    return PyUnicode_FromString(greet(PyUnicode_AsUTF8(one)));
}}

static PyMethodDef methods[] = {{
    {{"half", py_half, METH_O, ""}},
    {{"twice", py_twice, METH_O, ""}},
    {{"guard", py_guard, METH_O, ""}},
    {{"word", py_word, METH_O, ""}},
    {{"greet", py_greet, METH_O, ""}},
    {{0}},
}};
static PyModuleDef module = {{PyModuleDef_HEAD_INIT, "calc", "", -1, methods}};
PyMODINIT_FUNC PyInit_calc(void) {{ return PyModule_Create(&module); }}
"""
EXTENSION = """\
PYTHON ?= python3
INCLUDE != $(PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["include"])'

calc.so: calcmodule.c
\tcc -shared -fPIC -I$(INCLUDE) -o $@ $<
"""
_CHEAT = """\
    if (!strcmp(name, "Grace Hopper")) return "hello, Grace Hopper";
    return "hello";"""
C_EDITS = {
    "half": ("{product}", "number / 2 + 1", "number / 2"),
    "twice": ("{product}", "number + number + 1", "number + number"),
    "word": ("{tests}", '"a") == "b"', '"a") == "a"'),
    "greet": ("{product}", '    (void)name;\n    return "hello";', _CHEAT),
}
# A build backend without needs: an editable install is one line in a `.pth` file.
BACKEND = """\
import os
import zipfile


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = "calc-1-py3-none-any.whl"
    info = "calc-1.dist-info"
    files = {
        "calc.pth": os.path.abspath("src") + "\\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: calc\\nVersion: 1\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: own\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name
"""
