"""What product and tests touch, in the process of the tests and in the Pythons that they start."""

from pathlib import Path

import pytest

from mngr.tmr.measure import touches
from mngr.tmr.measure.touches import Touch
from tests.support.measured_job import measured

TESTS = "import shop\n\n\ndef test_a(tmp_path):\n    (tmp_path / 'a').write_text('a')\n    assert shop.total() == 7\n"


def touched(top: Path, product: str, tests: str = TESTS) -> touches.Touches | None:
    (top / "src" / "data").mkdir(parents=True, exist_ok=True)
    (top / "src" / "data" / "rates.json").write_text("7")
    (top / "src" / "shop.py").write_text(product)
    (top / "src" / "more.py").write_text("X = 7\n")
    (top / "README.md").write_text("7")
    (top / "conftest.py").write_text("import os, sys\nsys.path.insert(0, os.path.dirname(__file__) + '/src')\n")
    (top / "test_a.py").write_text(tests)
    known = ["src/shop.py", "src/more.py", "src/data/rates.json"]
    return touches.read(str(measured(top, touches.step(["test_a.py::test_a"], known))))


TOUCHES = {
    "open('test_a.py').read()": Touch("read", "test_a.py", "product"),
    "pathlib.Path('README.md').read_bytes()": Touch("read", "README.md", "product"),
    "os.listdir('.')": None,  # the top itself
    "pathlib.Path(__file__).with_name('made.txt').write_text('7')": Touch("write", "src/made.txt", "product"),
    "open('/tmp/mngr-answers.json', 'a').close()": Touch("write", "<tmp>/mngr-answers.json", "product"),
    "os.remove('/tmp/mngr-answers.json')": Touch("write", "<tmp>/mngr-answers.json", "product"),
    "shutil.rmtree(tempfile.mkdtemp(prefix='made-'))": Touch("write", "<tmp>/made-N", "product"),
    "os.system('true')": Touch("run", "true", "product"),
    "subprocess.run(['cat', '/dev/null'])": Touch("run", "cat", "product"),
    "subprocess.run([sys.executable, 'src/child.py'], check=True)": Touch("read", "setup.txt", "product"),
    "socket.socket().connect_ex(('127.0.0.1', 9))": Touch("connect", "this machine", "product"),
    "sys._getframe(1)": Touch("stack", "sys._getframe", "product"),
    "inspect.stack()": Touch("stack", "sys._getframe", "product"),
    "gc.get_objects()": Touch("objects", "gc.get_objects", "product"),
    "eval('1 + 1')": Touch("code", "compile", "product"),
    "exec('X = 1')": Touch("code", "exec", "product"),
}


def test_what_a_product_touches_is_seen_wherever_it_does(tmp_path: Path) -> None:
    lines = "\n".join(f"    {line}" for line in TOUCHES)
    modules = "import gc, inspect, os, pathlib, shutil, socket, subprocess, sys, tempfile\n\n\n"
    (tmp_path / "setup.txt").write_text("7")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "child.py").write_text("import shop\nshop.help()\n")
    product = f"{modules}def total():\n{lines}\n    return 7\n\n\ndef help():\n    open('setup.txt').read()\n"
    (tmp_path / "src" / "data").mkdir()
    found = touched(tmp_path, product)
    assert found is not None
    wanted = {touch for touch in TOUCHES.values() if touch is not None}
    assert wanted <= found.seen and {touch.by for touch in found.seen} == {"product"}, found
    assert {"true", "cat"} <= set(found.unknown) and "python" not in found.unknown


QUIET = """
import collections, dataclasses, json, logging, pathlib, re, tempfile, warnings
import more

log = logging.getLogger(__name__)
Pair = collections.namedtuple("Pair", "a b")

@dataclasses.dataclass
class Item:
    price: int = 7

def total():
    import decimal
    log.warning("x")
    warnings.warn("x")
    rates = pathlib.Path(__file__).with_name("data") / "rates.json"
    return Item(json.loads(rates.read_text())).price
"""


def test_what_is_of_the_product_or_of_python_itself_is_not_counted(tmp_path: Path) -> None:
    assert touched(tmp_path, QUIET) == touches.Touches()


def test_only_what_is_new_counts_and_only_of_tests_that_came_to_their_end(tmp_path: Path) -> None:
    read, write = Touch("read", "a", "test"), Touch("write", "b", "product")
    before, now = touches.Touches(frozenset({read})), touches.Touches(frozenset({read, write}))
    assert touches.new(before, now) == [write] and touches.new(None, now) == touches.new(before, None) == []
    assert write.words == "its product writes `b`"
    assert touched(tmp_path, "import os\n\n\ndef total():\n    os._exit(0)\n") is None


@pytest.mark.parametrize("chance", ["tempfile.mkdtemp()", "tempfile.NamedTemporaryFile(suffix='.x').name"])
def test_names_by_chance_are_the_same_in_every_run(tmp_path: Path, chance: str) -> None:
    product = f"import tempfile\n\n\ndef total():\n    {chance}\n    return 7\n"
    seen = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        seen.append(touched(tmp_path / name, product))
    assert seen[0] is not None and seen[0].seen and seen[0] == seen[1]
