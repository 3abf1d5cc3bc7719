"""Section "Its copy of the code" of the tutorial."""

from pathlib import Path

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import agent, agents, create, follow, git


def work_dir(e2e: E2eSession, name: str) -> Path:
    return Path(agent(e2e, name)["work_dir"])


def test_where_each_one_works(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # where does each one work, and on which branch?
        mngr list --fields name,initial_branch,work_dir
    """)
    create(e2e, "red", "green")
    result = e2e.run("mngr list --fields name,initial_branch,work_dir")
    expect(result).to_succeed()
    for name in ("red", "green"):
        expect(result.stdout).to_match(rf"^{name} +mngr/{name} +{work_dir(e2e, name)}$")


def test_a_field_that_does_not_exist_is_answered_with_the_nearest(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # where does each one work, and on which branch?
        mngr list --fields name,initial_branch,work_dir
    """)
    create(e2e, "red")
    for wrong, right in (("workdir", "work_dir"), ("branch", "initial_branch")):
        result = e2e.run(f"mngr list --fields name,{wrong}")
        expect(result).to_have_exit_code(2)
        expect(result.stderr).to_contain(f"`{right}`")


def test_another_commit_to_begin_at(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # begin at some other commit, and choose the name of the branch
        git tag v1.0
        mngr create hotfix --no-connect --branch v1.0:hotfix-1.0
    """)
    tag, make = block.commands
    follow(e2e, [tag, "git commit --quiet --allow-empty -m 'After the release'", make])
    expect(e2e.run("mngr exec hotfix 'git branch --show-current'").stdout).to_equal("hotfix-1.0\n")
    assert git(e2e, "rev-parse hotfix-1.0") == git(e2e, "rev-parse v1.0") != git(e2e, "rev-parse HEAD")


def test_a_branch_that_does_not_exist_makes_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # begin at some other commit, and choose the name of the branch
        git tag v1.0
        mngr create hotfix --no-connect --branch v1.0:hotfix-1.0
    """)
    result = e2e.run("mngr create hotfix --no-connect --branch v1.0:hotfix-1.0", comment="without the tag")
    expect(result).to_fail()
    expect(result.stderr).to_contain("v1.0")
    assert agents(e2e) == {}


def test_a_repository_of_its_own(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a repository of its own instead of a worktree: it shares no refs, stashes or hooks with yours
        mngr create apart --no-connect --transfer git-mirror
    """)
    expect(e2e.run("mngr create apart --no-connect --transfer git-mirror")).to_succeed()
    expect(work_dir(e2e, "apart") / ".git" / "HEAD").to_exist()
    expect(e2e.run("mngr exec apart 'git tag only-there; git log -1 --format=%s'").stdout).to_equal("Open the shop\n")
    assert git(e2e, "tag --list") == ""
    assert git(e2e, "branch --list 'mngr/*'") == ""


def test_no_copy_at_all(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # no copy at all: this one works in your directory
        mngr create here --no-connect --transfer none
    """)
    expect(e2e.run("mngr create here --no-connect --transfer none")).to_succeed()
    expect(e2e.run("mngr exec here 'echo me > was-here.txt'")).to_succeed()
    expect(e2e.repo / "was-here.txt").to_have_content("me\n")
    expect(e2e.run("mngr destroy here")).to_succeed()
    expect(e2e.repo / "was-here.txt").to_exist()


def test_a_directory_without_git(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # a directory without git is copied as it is
        mkdir ~/letters && echo 'Dear all,' > ~/letters/draft.txt
        mngr create writer --no-connect --from ~/letters
    """)
    follow(e2e, block.commands)
    expect(e2e.run("mngr exec writer 'cat draft.txt; echo hello >> draft.txt'").stdout).to_equal("Dear all,\n")
    expect(e2e.home / "letters" / "draft.txt").to_have_content("Dear all,\n")


def test_a_repository_from_elsewhere(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # a repository from elsewhere is cloned first
        git clone --quiet --bare . ~/shop.git
        mngr create abroad --no-connect --from "file://$HOME/shop.git"
    """)
    follow(e2e, block.commands)
    expect(e2e.run("mngr exec abroad 'git log -1 --format=%s'").stdout).to_equal("Open the shop\n")
    assert git(e2e, "branch --list 'mngr/*'") == "", "this repository is not the one"


def test_an_address_without_a_repository_makes_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a repository from elsewhere is cloned first
        git clone --quiet --bare . ~/shop.git
        mngr create abroad --no-connect --from "file://$HOME/shop.git"
    """)
    result = e2e.run('mngr create abroad --no-connect --from "file://$HOME/shop.git"', comment="nothing is there")
    expect(result).to_fail()
    expect(result.stderr).to_contain("shop.git")
    assert agents(e2e) == {}


def test_uncommitted_changes_are_carried_or_left_out(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # changes that you have not committed are never left behind in silence: carry them along, or leave them out
        echo 'print("half an idea")' > idea.py
        mngr create with-idea --no-connect --include-unclean
        mngr create without-idea --no-connect --exclude-unclean
        rm idea.py
    """)
    follow(e2e, block.commands)
    expect(work_dir(e2e, "with-idea") / "idea.py").to_have_content('print("half an idea")\n')
    expect(work_dir(e2e, "without-idea") / "idea.py").not_to_exist()
    expect(e2e.run("mngr exec with-idea 'git status --short'").stdout).to_be_empty()


def test_uncommitted_changes_need_a_decision(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # changes that you have not committed are never left behind in silence: carry them along, or leave them out
        echo 'print("half an idea")' > idea.py
        mngr create with-idea --no-connect --include-unclean
        mngr create without-idea --no-connect --exclude-unclean
        rm idea.py
    """)
    (e2e.repo / "idea.py").write_text("x = 1\n")
    result = e2e.run("mngr create with-idea --no-connect")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("`idea.py`").to_contain("--include-unclean").to_contain("--exclude-unclean")
    assert agents(e2e) == {}


def test_a_copy_that_is_prepared(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # bring files that git does not know, and prepare the copy before the agent starts
        mngr create ready --no-connect --upload-file ~/web.env:.env --extra-provision-command 'mkdir -p build'
    """)
    (e2e.home / "web.env").write_text("REGION=eu\n")
    follow(e2e, block.commands)
    expect(work_dir(e2e, "ready") / ".env").to_have_content("REGION=eu\n")
    expect(work_dir(e2e, "ready") / "build").to_exist()


def test_a_preparation_that_fails_makes_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # bring files that git does not know, and prepare the copy before the agent starts
        mngr create ready --no-connect --upload-file ~/web.env:.env --extra-provision-command 'mkdir -p build'
    """)
    result = e2e.run("mngr create ready --no-connect --extra-provision-command 'echo no space >&2; exit 7'")
    expect(result).to_fail()
    expect(result.stderr).to_contain("no space")
    assert agents(e2e) == {}
    assert git(e2e, "branch --list 'mngr/*'") == ""
