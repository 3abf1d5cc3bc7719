"""How far a verb goes through our files; see `bench/path.py`. Lower a number when a way gets shorter."""

from bench import path

# The most files that a verb may enter, and changes of file.
MOST = {
    "create": (40, 500),
    "list": (32, 270),
    "message": (36, 300),
    "exec": (30, 200),
    "pull": (35, 360),
    "destroy": (61, 680),
}
MOST_FORWARDERS = 150


def test_a_verb_enters_few_files_and_changes_between_them_seldom():
    for verb, way in path.ways().items():
        files, changes = MOST[verb]
        assert len(way.entered) <= files, f"`mngr {verb}` enters {len(way.entered)} files: {' '.join(way.entered)}"
        assert len(way.changes) <= changes, f"`mngr {verb}`: {len(way.changes)} changes of file; `python bench/path.py`"


def test_few_functions_only_forward_a_call():
    found = path.forwarders()
    assert len(found) <= MOST_FORWARDERS, (
        f"{len(found)} functions only forward a call: `python bench/path.py forwarders`"
    )
