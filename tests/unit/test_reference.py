"""The pages that `make docs` and the wheel build from the help of the commands."""

import re

import pytest

from mngr.cli import catalog
from mngr.cli.dispatch import command_parser
from mngr.cli.parser import helptext
from scripts import reference


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference.man_pages()


def test_every_command_has_a_man_page_and_the_main_one_names_them_all(pages: dict[str, str]) -> None:
    assert set(pages) == {"mngr.1", *(f"mngr-{verb.name}.1" for verb in catalog.VERBS)}
    main = _plain(pages["mngr.1"])
    assert not [verb.name for verb in catalog.VERBS if f"mngr-{verb.name}(1)" not in main]


@pytest.mark.parametrize("verb", catalog.VERBS, ids=lambda verb: verb.name)
def test_a_man_page_says_what_the_help_says(pages: dict[str, str], verb: catalog.Verb) -> None:
    page = _plain(pages[f"mngr-{verb.name}.1"])
    for member in command_parser(verb).family():
        for _, rows in helptext.sections(member):
            for left, right in rows:
                assert left.replace("`", "") in page
                assert right.replace("`", "") in page


def test_a_written_folder_holds_the_pages_and_nothing_old(tmp_path, pages: dict[str, str]) -> None:
    (tmp_path / "mngr-gone.1").write_text("of a verb that is gone")
    assert reference.write_files(str(tmp_path), pages) == len(pages) + 1
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == pages
    assert reference.write_files(str(tmp_path), pages) == 0


def _plain(page: str) -> str:
    """The text of a page without what roff needs."""
    return re.sub(r"\\f[BR]|\\&", "", page).replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")
