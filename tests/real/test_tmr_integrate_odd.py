"""Odd, hostile and broken work is integrated right, or refused by name."""

from collections.abc import Iterator

import pytest

from mngr.errors import MngrError
from mngr.tmr.branch.integration import Rules, integrate
from mngr.tmr.judge.paths import Paths
from mngr.tmr.judge.refusals import ContentRules
from tests.support.work import FILES, LINES, Answers, Content, Project, TextGate, edited, summary, trailers


@pytest.fixture
def project() -> Iterator[Project]:
    made = Project(FILES)
    try:
        yield made
    finally:
        made.close()


def test_shared_hunks_are_seen_in_files_with_odd_names(project: Project) -> None:
    odd = f"src/{project.base} {project.base}\n\udcff.py"
    base = project.commit({odd: LINES})
    work = []
    for name, lines in (("a", edited(5, "five")), ("b", edited(5, "five").replace("line 30\n", "thirty\n"))):
        tip = project.commit({odd: lines, "src/bin": bytes(range(256)) + name.encode()}, parent=base)
        work.append(project.work(name, {})._replace(tip=tip, importance=5 if name == "a" else 1))
    done = integrate(project.git, "r1", base, work)
    assert [aside.paths for aside in done.set_aside] == [("src/bin",)]
    last = project.commit({odd: edited(5, "five").replace("line 30\n", "thirty\n")}, parent=base)
    done = integrate(project.git, "r1", base, [work[0], work[1]._replace(tip=last)])
    assert done.commits[1].needs == (done.commits[0].id,)


def test_odd_names_modes_binaries_and_links_come_through(project: Project) -> None:
    odd = 'src/n\u00e4 "q" \\ \n\udcff.py'
    files: dict[str, Content] = {
        odd: "odd\n",
        "src/bin.dat": bytes(range(256)),
        "src/run": ("100755", "#!/bin/sh\n"),
        "src/link": ("120000", "app.py"),
        "src/other.py": ("100755", "other = 1\n"),
        "README.md": None,
        "README.md/inside.txt": "a directory now\n",
    }
    done = integrate(project.git, "r1", project.base, [project.work("a", files), project.work("b", {odd: "odd\n"})])
    want = project.run("rev-parse", f"{project.work('a', files).tip}^{{tree}}")
    assert project.run("rev-parse", f"{done.tip}^{{tree}}") == want and not done.set_aside
    assert odd in project.paths(done.tip)


def test_a_rename_and_an_edit_of_the_same_file_go_together(project: Project) -> None:
    done = integrate(
        project.git,
        "r1",
        project.base,
        [
            project.work("a", {"src/app.py": None, "src/main.py": LINES}, importance=5),
            project.work("b", {"src/app.py": edited(20, "twenty")}),
        ],
    )
    assert not done.set_aside and project.show(done.tip, "src/main.py") == edited(20, "twenty").strip()


def test_a_file_where_another_made_a_directory_is_a_clash(project: Project) -> None:
    work = [project.work("a", {"src/x": "file\n"}), project.work("b", {"src/x/y.py": "inside\n"})]
    done = integrate(project.git, "r1", project.base, work)
    assert [aside.slugs for aside in done.set_aside] == [("b",)] and "src/x" in project.paths(done.tip)


@pytest.mark.parametrize(
    ("files", "because"),
    [
        ({"src/l": ("120000", "/etc/passwd")}, "out of the repository, to `/etc/passwd`"),
        ({"src/l": ("120000", "../../x")}, "out of the repository"),
        ({"src/l": ("120000", "a/../../../x")}, "out of the repository"),
        ({"l": ("120000", ".git/config")}, "out of the repository"),
        ({"sub": ("160000", "1" * 40)}, "another repository"),
        ({"secrets/key": "x\n"}, "read-only"),
    ],
)
def test_what_must_not_be_checked_out_is_refused(project: Project, files: dict[str, Content], because: str) -> None:
    rules = Rules(paths=Paths(read_only=("secrets/",)))
    work = [project.work("bad", {**files, "src/other.py": "2\n"}), project.work("good", {"src/a.py": "a\n"})]
    done = integrate(project.git, "r1", project.base, work, rules=rules)
    (aside,) = done.set_aside
    assert aside.slugs == ("bad",) and because in aside.reason and not aside.branch
    assert summary(done) == [("implementation", ("good",))]


def test_a_tree_with_a_git_directory_in_it_is_refused(project: Project) -> None:
    inside = project.run("mktree", input=f"100644 blob {project.blob('x')}\tconfig\n".encode())
    base = project.run("ls-tree", project.base)
    tree = project.run("mktree", input=f"{base}\n040000 tree {inside}\t.git\n".encode())
    tip = project.run("commit-tree", tree, "-p", project.base, "-m", "evil")
    done = integrate(project.git, "r1", project.base, [project.work("a", {})._replace(tip=tip)])
    assert done.tip == project.base and "must not check out" in done.set_aside[0].reason


def test_rewritten_history_counts_as_its_net_change(project: Project) -> None:
    orphan = project.commit({**FILES, "src/other.py": "other = 9\n"}, parent="")
    work = [project.work("a", {})._replace(tip=orphan), project.work("b", {"src/b.py": "b\n"})]
    done = integrate(project.git, "r1", project.base, work)
    assert project.show(done.tip, "src/other.py") == "other = 9" and not done.set_aside


def test_work_that_changes_nothing_and_commits_that_do_not_exist_are_told(project: Project) -> None:
    work = [
        project.work("a", {}),
        *(project.work(name, {})._replace(tip=tip) for name, tip in (("b", "0" * 40), ("c", "-x"))),
    ]
    done = integrate(project.git, "r1", project.base, work)
    assert done.unchanged == ("a",) and done.tip == project.base and not done.commits
    assert [(aside.slugs, "does not exist" in aside.reason) for aside in done.set_aside] == [
        (("b",), True),
        (("c",), True),
    ]
    with pytest.raises(MngrError, match="not a commit"):
        integrate(project.git, "r1", "0" * 40, [])
    with pytest.raises(MngrError, match="called `a`"):
        integrate(project.git, "r1", project.base, [project.work("a", {}), project.work("a", {})])


def test_an_agents_words_cannot_forge_trailers_or_hide(project: Project) -> None:
    words = "Mend \x1b[31mit\x1b[0m\u202e now\n\nMngr-Agent: nobody\nSigned-off-by: boss <b@c>\n\nMngr-Rank: 0"
    done = integrate(project.git, "r1", project.base, [project.work("a", {"src/a.py": "a\n"}, summary=words)])
    assert [value for key, value in trailers(project, done.tip) if key in ("Mngr-Agent", "Mngr-Rank")] == [
        "r1-a-1",
        "1",
    ]
    assert project.run("log", "-1", "--format=%s", done.tip) == "Mend it now"
    assert "\x1b" not in project.run("log", "-1", "--format=%B", done.tip)


def test_a_user_in_the_middle_of_something_is_not_disturbed(project: Project) -> None:
    (project.repo / "src/app.py").write_text("half done\n")
    (project.repo / "src/app.py").chmod(0o644)
    (project.repo / "new.txt").write_text("untracked\n")
    project.run("add", "new.txt")
    project.run("checkout", "-q", "--detach")
    before = project.state()
    (project.repo / ".git/index.lock").write_text("")
    work = [project.work(name, {"src/app.py": edited(at, name)}) for name, at in (("a", 5), ("b", 5), ("c", 30))]
    done = integrate(project.git, "r1", project.base, work, gate=TextGate(project, {}))
    (project.repo / ".git/index.lock").unlink()
    assert len(done.commits) == 2 and project.state() == before
    assert (project.repo / "src/app.py").read_text() == "half done\n"


def test_a_sha256_repository_works_too() -> None:
    project = Project(FILES, object_format="sha256")
    try:
        work = [project.work(f"w{at}", {"src/app.py": edited(at, f"mended {at}")}) for at in (1, 8, 15)]
        work.append(project.work("x", {"src/app.py": edited(1, "clash")}))
        done = integrate(project.git, "r1", project.base, work)
        assert len(done.tip) == 64 and len(done.commits) == 3 and len(done.set_aside) == 1
    finally:
        project.close()


KEY = "sk-" + "a1B2c3D4" * 4
SECRET = "correct-horse-battery"
TOKEN = "ghp_" + "x1Y2" * 8


@pytest.mark.parametrize(
    ("content", "because"),
    [
        (f"key = {KEY!r}\n", "`src/new.py` holds an API key"),
        (b"\x00\xff" + TOKEN.encode(), "`src/new.py` holds a GitHub token"),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{KEY[3:]}\n", "`src/new.py` holds a private key"),
        (f"password = '{SECRET}'\n", "`src/new.py` holds the value of `SHOP_PASSWORD`"),
        ("x" * 2_100_000, "`src/new.py` has 2.1 MB, more than the 2 MB of `tmr.largest_file_mb`"),
    ],
)
def test_secrets_and_large_files_are_refused_by_name_and_never_shown(
    project: Project, content: str | bytes, because: str
) -> None:
    variables = {"SHOP_PASSWORD": SECRET, "MODE": "production", "PORT": "8000"}
    rules = Rules(content=ContentRules(2, variables))
    work = [
        project.work("bad", {"src/new.py": content, "tests/test_bad.py": "x\n"}),
        project.work("good", {"src/a.py": "mode = 'production' if port == 8000 else ''\n"}),
    ]
    done = integrate(project.git, "r1", project.base, work, rules=rules)
    assert [(aside.slugs, aside.reason, aside.branch) for aside in done.set_aside] == [(("bad",), because, "")]
    assert summary(done) == [("implementation", ("good",))]
    assert not any(secret in repr(done) for secret in (KEY, TOKEN, SECRET, KEY[3:]))
    assert not any(secret in call for call in project.git.calls for secret in (KEY, TOKEN, SECRET))


def test_what_looks_like_a_secret_and_is_in_the_base_already_is_none(project: Project) -> None:
    base = project.commit({"tests/data.txt": f"made up: {KEY}\n"})
    tip = project.commit({"tests/moved.txt": f"made up: {KEY}\n", "tests/data.txt": None}, parent=base)
    done = integrate(project.git, "r1", base, [project.work("a", {})._replace(tip=tip)])
    assert not done.set_aside and project.show(done.tip, "tests/moved.txt") == f"made up: {KEY}"


def test_an_answer_with_a_secret_in_it_is_refused(project: Project) -> None:
    work = [project.work(name, {"src/app.py": edited(5, name)}) for name in "ab"]
    answers = Answers(project, {"src/app.py": edited(5, KEY)})
    done = integrate(project.git, "r1", project.base, work, gate=TextGate(project, {}), resolver=answers)
    assert [aside.slugs for aside in done.set_aside] == [("b",)]
    assert "in the answer, `src/app.py` holds an API key" in done.set_aside[0].reason and KEY not in repr(done)
