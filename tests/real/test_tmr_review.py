"""What a person sees of a fix before they keep or drop it."""

from io import BytesIO, TextIOWrapper
from types import SimpleNamespace
from typing import cast

from mngr.cli.app import App
from mngr.cli.output import Output
from mngr.cli.tmr import review
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import RunState
from tests.support.work import FILES, Project


def test_a_review_shows_a_fix_without_obeying_it() -> None:
    project = Project(FILES)
    try:
        fix = project.commit({"src/app.py": "quit()  # \x1b[1A\x1b[2K hidden\n"})
        told = TextIOWrapper(BytesIO(), encoding="utf-8")
        app = cast(App, SimpleNamespace(out=Output("human", told, told, colour=True)))
        commit = {"id": fix, "title": "t", "agents": ["a"], "rank": 1, "because": "b", "slugs": [], "needed_by": ()}
        review._show(app, cast(Run, SimpleNamespace(state=RunState())), project.git, commit, "1 of 1")
        told.seek(0)
        shown = told.read()
        assert "\x1b[32m+quit()" in shown and "\x1b[1A" not in shown and "\x1b[2K" not in shown
    finally:
        project.close()
