"""Section "Taking their work" of the tutorial."""

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import create, follow, git, rest


def commit(e2e: E2eSession, name: str, path: str, text: str) -> None:
    """Something to take: one commit of the agent."""
    script = f'echo {text} > {path}; git add .; git commit --quiet -m "Write {path}"'
    expect(e2e.run(f"mngr exec {name} '{script}'")).to_succeed()


def test_what_it_did(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # what did it do? First let it do something
        mngr message blue -m 'run echo sky > blue.txt
        commit Paint it blue'
        mngr wait blue
        mngr diff blue --stat
    """)
    create(e2e, "blue")
    *_, diff = follow(e2e, block.commands)
    expect(diff.stdout).to_match(r"\A blue.txt \| 1 \+\n 1 file changed, 1 insertion\(\+\)\n\Z")


def test_merge(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # would it merge? Then merge it
        mngr merge blue --dry-run
        mngr merge blue
    """)
    create(e2e, "blue")
    commit(e2e, "blue", "blue.txt", "sky")
    before = git(e2e, "rev-parse main")
    look, take = block.commands
    expect(e2e.run(look).stdout).to_equal("would merge 1 commit of blue into main\n")
    assert git(e2e, "rev-parse main") == before
    expect(e2e.run(take)).to_succeed()
    expect(e2e.repo / "blue.txt").to_have_content("sky\n")
    assert git(e2e, "log -1 --format=%s") == "Write blue.txt"


def test_a_conflict_is_found_before_anything_is_touched(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # would it merge? Then merge it
        mngr merge blue --dry-run
        mngr merge blue
    """)
    create(e2e, "blue")
    commit(e2e, "blue", "shop.py", "sky")
    expect(e2e.run("echo sea > shop.py; git commit --quiet -am 'Mine'")).to_succeed()
    for command in ("mngr merge blue --dry-run", "mngr merge blue"):
        result = e2e.run(command)
        expect(result).to_have_exit_code(1)
        expect(result.stderr).to_contain("shop.py")
    assert git(e2e, "status --short") == ""
    expect(e2e.repo / "shop.py").to_have_content("sea\n")


def test_merge_as_one_commit(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # or take all its commits as one, with a message of yours
        mngr exec green 'echo grass > green.txt; git add .; git commit -qm wip; echo leaf >> green.txt; git commit -qam wip'
        mngr merge green --squash -m 'Paint it green'
    """)  # noqa: E501
    create(e2e, "green")
    before = git(e2e, "rev-parse HEAD")
    follow(e2e, block.commands)
    assert git(e2e, f"log --format=%s {before}..HEAD") == "Paint it green"
    expect(e2e.repo / "green.txt").to_have_content("grass\nleaf\n")


def test_commits_arrive_as_a_branch(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # the commits of an agent with a repository of its own arrive as a branch
        mngr exec apart 'echo 1 > one.txt; git add .; git commit --quiet -m "Add one"'
        mngr pull apart
        git log --oneline main..mngr/apart
    """)
    create(e2e, "apart", options="--transfer git-mirror")
    *_, log = follow(e2e, block.commands)
    expect(log.stdout).to_match(r"\A[0-9a-f]+ Add one\n\Z")
    assert git(e2e, "show mngr/apart:one.txt") == "1"
    expect(e2e.repo / "one.txt").not_to_exist()


def test_pull_moves_no_branch_that_went_elsewhere(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # the commits of an agent with a repository of its own arrive as a branch
        mngr exec apart 'echo 1 > one.txt; git add .; git commit --quiet -m "Add one"'
        mngr pull apart
        git log --oneline main..mngr/apart
    """)
    create(e2e, "apart", options="--transfer git-mirror")
    commit(e2e, "apart", "one.txt", "1")
    mine = "git checkout --quiet -b mngr/apart; git commit --quiet --allow-empty -m Mine; git checkout --quiet main"
    expect(e2e.run(mine, comment="the branch exists here, with other commits")).to_succeed()
    result = e2e.run("mngr pull apart")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("diverged")
    assert git(e2e, "log -1 --format=%s mngr/apart") == "Mine"


def test_the_current_branch_moves_forward(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # or move the branch you are on forward to them
        mngr create ahead --no-connect --transfer git-mirror
        mngr exec ahead 'echo 2 > two.txt; git add .; git commit --quiet -m "Add two"'
        mngr pull ahead --into current
    """)
    follow(e2e, block.commands)
    assert git(e2e, "log -1 --format=%s main") == "Add two"
    expect(e2e.repo / "two.txt").to_have_content("2\n")


def test_files_without_a_commit(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # files come without a commit
        mngr exec blue 'echo "all fine" > report.txt'
        mngr pull blue:report.txt ~/reports/
    """)
    create(e2e, "blue")
    follow(e2e, block.commands)
    expect(e2e.home / "reports" / "report.txt").to_have_content("all fine\n")


def test_a_file_that_is_replaced_is_saved(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # files come without a commit
        mngr exec blue 'echo "all fine" > report.txt'
        mngr pull blue:report.txt ~/reports/
    """)
    create(e2e, "blue")
    (e2e.home / "reports").mkdir()
    (e2e.home / "reports" / "report.txt").write_text("precious\n")
    follow(e2e, block.commands)
    expect(e2e.home / "reports" / "report.txt").to_have_content("all fine\n")
    saved = e2e.run("mngr saved list --format '{id}'").stdout.split()
    assert len(saved) == 1
    expect(e2e.run(f"mngr saved restore {saved[0]} --to ~/back && cat ~/back/report.txt").stdout).to_contain("precious")


def test_artifacts(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # what an agent puts into $MNGR_ARTIFACTS_DIR is meant for you
        mngr exec blue 'echo 42 > $MNGR_ARTIFACTS_DIR/answer.txt'
        mngr pull blue --artifacts ~/answers
    """)
    create(e2e, "blue")
    follow(e2e, block.commands)
    expect(e2e.home / "answers" / "answer.txt").to_have_content("42\n")


def test_push_commits(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # give an agent your new commits
        git commit --quiet --allow-empty --message 'A new week'
        mngr push try-1
    """)
    create(e2e, "try-1")
    follow(e2e, block.commands)
    expect(e2e.run("mngr exec try-1 'git log -1 --format=%s'").stdout).to_equal("A new week\n")


def test_push_does_not_overrun_commits_of_the_agent(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # give an agent your new commits
        git commit --quiet --allow-empty --message 'A new week'
        mngr push try-1
    """)
    create(e2e, "try-1")
    commit(e2e, "try-1", "mine.txt", "1")
    make, push = block.commands
    expect(e2e.run(make)).to_succeed()
    result = e2e.run(push)
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("nothing was changed")
    expect(e2e.run("mngr exec try-1 'git log -1 --format=%s'").stdout).to_equal("Write mine.txt\n")


def test_push_files(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # or files
        mkdir ~/samples && echo '1,2,3' > ~/samples/numbers.csv
        mngr push try-1:data/ ~/samples/
    """)
    again = e2e.write_tutorial_block("""
        # `git push`, `git pull` and `rsync` work too, with an agent on one side
        mngr git push try-1
        mngr rsync ~/samples try-1:data
    """)
    create(e2e, "try-1")
    follow(e2e, block.commands)
    expect(e2e.run("mngr exec try-1 'cat data/numbers.csv'").stdout).to_equal("1,2,3\n")
    git(e2e, "commit --quiet --allow-empty --message Next")
    expect(e2e.run("echo 4,5,6 > ~/samples/more.csv")).to_succeed()
    follow(e2e, again.commands)
    expect(e2e.run("mngr exec try-1 'git log -1 --format=%s; cat data/more.csv'").stdout).to_equal("Next\n4,5,6\n")
    rest(e2e, "try-1")
