"""How far a verb goes through our files; see `bench/path.py`. Lower a number when a way gets shorter."""

from bench import path

# The most files that a verb may enter, and changes of file.
MOST = {
    "create": (38, 470),
    "list": (31, 250),
    "message": (33, 265),
    "exec": (28, 185),
    "pull": (32, 330),
    "destroy": (57, 620),
}
MOST_FORWARDERS = 139


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
