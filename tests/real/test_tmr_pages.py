"""`mngr tmr report` and `mngr tmr serve`, looked at with a real browser."""

import json
import re
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mngr.mapreduce.run import Run
from mngr.report import tmr as pages
from mngr.tmr.judge import verdict
from tests.real.test_schemas import validator
from tests.support import tmr_runs
from tests.support.browser import BROWSER, Browser, browser, go
from tests.support.e2e_runs import HOSTILE
from tests.support.tmr_runs import Made
from tests.support.user import User, wait_for

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine"),
    pytest.mark.timeout(300),
]
KEY = "sk-" + "a1" * 20


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def looking(chromium: Browser) -> Iterator[Browser]:
    """The browser, and at the end: nothing left the files or this machine, and nothing was complained about."""
    chromium.forget()
    yield chromium
    requests, complaints = list(chromium.requests), list(chromium.complaints)
    chromium.forget()
    away = [url for url in requests if not url.startswith(("file:///", "http://127.0.0.1:", "about:blank"))]
    assert requests and away == []
    assert complaints == []


def report(user: User, *words: str) -> str:
    """Write the report of the latest run; gives its address."""
    return Path(user.mngr("tmr", "report", *words).ok().stdout.strip()).as_uri()


def fits_schema(document: Any) -> None:
    validator("tmr")(document)


def names(page: Any) -> list[str]:
    found: list[str] = page.locator("table.tasks tbody tr a").all_inner_texts()
    return found


def second(page: Any) -> float:
    return float(page.locator(".recordings").get_attribute("data-second") or 0)


def test_from_the_overview_to_a_task_to_a_moment_of_its_recording(user: User, looking: Browser) -> None:
    tmr_runs.begin_run(user, "night", tmr_runs.many(20))
    page = looking.tab()
    go(page, report(user))
    assert page.title() == "night"
    answer = page.locator(".headline").inner_text()
    assert answer.startswith("Branch tmr/made is ready: 12 commits, 10 → 19 tests pass, nothing got worse.")
    assert "3 tasks did not make it (1 refuted, 1 failed, 1 blocked), 1 set aside." in answer
    page.locator(".headline").get_by_text("git merge tmr/made", exact=True).wait_for()
    assert "12 on the branch, 1 set aside" in page.locator(".columns").inner_text()
    assert "10 of 20\npass at the base" in page.locator(".sides").inner_text()
    assert "19 of 20\npass on the branch" in page.locator(".sides").inner_text()
    assert page.locator(".ask .pill").all_inner_texts() == ["‖ blocked", "? raised by its agent", "⇤ set aside"]
    assert page.locator("svg.agents path.edge").count() == 1
    assert page.locator(".commit").count() == 12
    assert "tmr/made" in page.locator(".branch-head").inner_text()

    page.get_by_role("link", name="1 refuted").click()
    wait_for(lambda: names(page) == ["test_number_16"], "the refuted task alone")
    page.locator("table.tasks tbody a").click()
    page.get_by_role("heading", name="test_number_16").wait_for()
    row = page.locator(".versus tr.differs")
    assert [cell.strip() for cell in row.locator("td").all_inner_texts()] == ["pass", "fail"]
    assert page.locator(".aside .block").inner_text().strip() == "# Count plants\nsprout count 16"
    assert "PLANTS = 18" in page.locator(".patch .added").first.inner_text()

    page.get_by_role("tab", name="Conversation").click()
    page.locator(".ap-term").wait_for()
    page.locator(".said", has_text="pytest -q 3").get_by_role("button").click()
    wait_for(lambda: 3 < second(page) < 5, "the player at that step")
    page.get_by_role("tab", name="Verification log").click()
    assert "collected 1 item" in page.locator(".flow .term").first.inner_text()
    page.get_by_role("tab", name="Attempts").click()
    assert "it wrote its outcome" in page.locator(".flow").inner_text()
    page.keyboard.press("n")
    page.get_by_role("heading", name="test_number_17").wait_for()


def strength(word: str, before: int, after: int, **more: Any) -> dict[str, Any]:
    sides = {"before": [before, 120], "after": [after, 120], "gained": [], "lost": []}
    return {"word": word, **sides, "how": "output edits", "seconds": 1.0, **more}


def test_the_page_of_a_task_shows_all_that_was_measured_and_the_verified_run(user: User, looking: Browser) -> None:
    marks = dict(zip(("t0p0", "t0p1", "t1p0", "t1p1"), ("failed", "failed", "passed", "passed"), strict=True))
    change = {"path": "tests/t.py", "line": 9, "before": "assert f() == 5", "after": "assert f() == 7"}
    stronger = strength("stronger", 60, 104, gained=["exit code 0 → 1"])
    task = Made(
        "tests/t.py::test_number_0",
        "expectation changed",
        measured={"marks": marks, "expectations": [change], "strength": stronger},
        e2e=True,
    )
    linked = Made("tests/t.py::test_number_1", verdict.FIXED, e2e=True)
    made = tmr_runs.begin_run(user, "night", [task, linked])
    wide = made / "tasks" / task.slug / "1" / "agent.cast"
    wide.write_text(wide.read_text().replace('"width": 80, "height": 24', '"width": 200, "height": 50', 1))
    secret = user.root / "elsewhere.txt"
    secret.write_text("not for this page")
    (next((made / "jobs" / f"verify-{linked.slug}" / "e2e").glob("*/tests/*")) / "more.cast").symlink_to(secret)
    page = looking.tab(viewport={"width": 1400, "height": 900})
    url = report(user)
    go(page, f"{url}#task/{task.slug}")
    four = page.locator(".four tbody tr").all_inner_texts()
    assert [row.split("\t") for row in four] == [["the old tests", "fail", "fail"], ["the new tests", "pass", "pass"]]
    assert "Only the test changed its mind" in page.locator(".measured").first.inner_text()
    assert page.locator(".strength-row .number").all_inner_texts() == ["60 of 120", "104 of 120"]
    assert "exit code 0 → 1" in page.locator(".edits.gained").inner_text()
    assert page.locator(".measured .added").inner_text() == "+assert f() == 7"
    assert "mngr tmr review night --drop" in page.locator(".box.warn .command-line").first.inner_text()
    page.get_by_role("tab", name="Verified run").click()
    page.locator(".ap-term").wait_for()
    page.locator(".card", has_text="sprout count").get_by_role("button", name="▸").click()
    wait_for(lambda: 0.9 < second(page) < 1.5, "the verified recording at that command")
    for size, name in ((1400, "agent: terminal"), (390, "verified: commands")):
        page.set_viewport_size({"width": size, "height": 900})
        page.get_by_role("tab", name=name).click()
        wait_for(lambda: page.locator(".ap-term").count() == 1, "the player")
        pixels = float(page.locator(".ap-term").evaluate("(one) => getComputedStyle(one).fontSize").removesuffix("px"))
        assert pixels >= 10 and page.evaluate("document.documentElement.scrollWidth") <= size
    go(page, f"{url}#task/{linked.slug}?tab=verified")
    page.get_by_text("they hold links or too many files").wait_for()
    assert "not for this page" not in (made / "report" / "data" / "task" / f"{linked.slug}.js").read_text()


def test_the_commands_of_the_overview_can_be_copied_and_every_test_is_seen(user: User, looking: Browser) -> None:
    tmr_runs.begin_run(user, "night", tmr_runs.many(20))
    page = looking.tab()
    go(page, report(user))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy: git merge tmr/made").click()
    page.locator(".headline .copy", has_text="copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "git merge tmr/made"
    page.get_by_role("link", name="Tests", exact=True).click()
    page.locator(".matrix").wait_for()
    assert page.locator(".matrix .cell").count() == 20 and page.locator(".matrix .cell.is-bad").count() == 0
    assert "9 better" in page.locator(".legend").inner_text()
    page.get_by_label("test_number_16: fail → fail").first.click()
    page.get_by_role("heading", name="test_number_16").wait_for()


def test_what_programs_read_lies_in_the_directory_of_the_run(user: User) -> None:
    made = tmr_runs.begin_run(user, "night", [*tmr_runs.many(20), Made("a.py::b", verdict.FIXED, f"{HOSTILE} {KEY}")])
    done = user.mngr("tmr", "report", "--output", "pages", "--format", "json").ok().json
    assert done["path"] == str(user.repo / "pages" / "index.html") and Path(done["path"]).is_file()
    assert (done["run"], done["tasks"]) == ("night", 21)
    fits_schema(done)
    document = json.loads((made / "report.json").read_text())
    assert document["verdicts"]["fixed"] == 7 and len(document["rows"]) == 21
    assert document["rows"][0]["before"] == "fail" and document["tests"]["after"] == {"pass": 20, "fail": 1}
    suite = ET.parse(made / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("21", "3", "1")
    assert "| Test | Verdict |" in (made / "pr.md").read_text()
    written = [path for path in [*made.iterdir(), *(user.repo / "pages").rglob("*")] if path.is_file()]
    texts = {
        path: path.read_text(errors="replace")
        for path in written
        if path.name not in ("ledger.jsonl", "collect.json", "baseline.json")
    }
    assert [str(path) for path, text in texts.items() if KEY in text] == [], "keys are hidden"

    failed = user.mngr("tmr", "report", "--output", ".").failed()
    assert "holds other files" in failed.stderr and (user.repo / "README.md").exists()


def test_a_run_is_held_against_the_one_before(user: User, looking: Browser) -> None:
    tasks = tmr_runs.many(20)
    before = [
        task._replace(before="pass" if task.before == "fail" and at == 0 else "fail") for at, task in enumerate(tasks)
    ]
    tmr_runs.begin_run(user, "first", before, started_at=tmr_runs.START - 1e6)
    tmr_runs.begin_run(user, "second", tasks)
    page = looking.tab()
    go(page, report(user))
    told = page.locator(".lines").inner_text()
    assert "against run first: " in told
    assert all(words in told for words in ("1 newly failing", "9 still failing", "10 no longer failing"))
    page.get_by_role("link", name="1 newly failing").click()
    wait_for(lambda: names(page) == ["test_number_0"], "the test that fails anew")


def test_hostile_text_is_shown_and_never_obeyed(user: User, looking: Browser) -> None:
    flags = [{"kind": "skip", "path": HOSTILE, "text": HOSTILE}]
    asks = [{"kind": HOSTILE, "summary": HOSTILE, "locations": [["../../etc/passwd", 1]], "evidence": HOSTILE}]
    test = f"tests/{HOSTILE}.py::test_{HOSTILE}".replace("\x00", "").replace("\n", "")
    hostile = [
        Made(test, word, HOSTILE, claimed=HOSTILE, flags=flags, escalations=asks, signature=HOSTILE, after=HOSTILE)
        for word in (verdict.BLOCKED,)
    ]
    hostile += [
        Made(f"tests/test_x.py::test_{word}", word, HOSTILE, flags=flags, escalations=asks)
        for word in (verdict.FIXED, verdict.HELD)
    ]
    made = tmr_runs.begin_run(user, "bad", [task._replace(test=task.test.replace("/<", "/-")) for task in hostile])
    page = looking.tab()
    go(page, report(user))
    for kind in ("run", "tasks", "tests", "failures", "log"):
        go(page, f"{page.url.partition('#')[0]}#{kind}")
        page.locator("nav.pages").wait_for()
        assert page.evaluate("window.hacked") is None
    slugs = sorted(path.name for path in (made / "tasks").iterdir())
    for slug in slugs:
        for tab in ("changes", "talk", "verification", "attempts"):
            go(page, f"{page.url.partition('#')[0]}#task/{slug}?tab={tab}")
            page.get_by_role("tab", selected=True).first.wait_for()
            for fold in page.locator("main summary").all():
                fold.click()
            assert page.evaluate("window.hacked") is None
            assert page.locator("main script, main img, main iframe").count() == 0
            assert [
                link
                for link in page.evaluate("[...document.links].map((a) => a.getAttribute('href'))")
                if link[0] != "#"
            ] == []
    for wrong in ("#task/../../x", "#task/%2e%2e%2fsite", "#nothing", "#task", "#__proto__/x"):
        go(page, page.url.partition("#")[0] + wrong)
        page.get_by_role("heading", name="Nothing to show").wait_for()
    forged = "diff --git a/a.py b/a.py\n@@ -1 +1,2 @@\n+x = 1\rdiff --git a/README b/README\n+evil()\n"
    assert page.evaluate("(text) => mngrTmr.patch({ text, note: '' })[1].length", forged) == 1, (
        "a line is no other file"
    )
    looking.complaints[:] = [text for text in looking.complaints if "ERR_FILE_NOT_FOUND" not in text]


def test_links_of_agents_lead_nowhere_and_floods_are_cut(user: User, looking: Browser) -> None:
    task = Made("tests/test_a.py::test_b", verdict.FIXED)
    made = tmr_runs.begin_run(user, "links", [task])
    secret = user.root / "elsewhere.txt"
    secret.write_text("not for this page")
    place = made / "tasks" / task.slug / "1"
    for path in (
        place / "transcript.jsonl",
        place / "screen.txt",
        place / "agent.cast",
        place / "artifacts" / "notes.txt",
    ):
        path.unlink()
        path.symlink_to(secret)
    (place / "artifacts" / "folder").symlink_to(user.root)
    job = made / "jobs" / f"verify-{task.slug}"
    (job / "gate.log").symlink_to(secret)
    (job / "test.log").write_text("begin of it\n" + "x" * 99 + "\n" * 5000 + ("flood\n" * 100_000) + "end of it\n")
    url = report(user)
    data = (made / "report" / "data" / "task" / f"{task.slug}.js").read_text()
    assert "not for this page" not in data and "begin of it" not in data and "end of it" in data
    page = looking.tab()
    go(page, f"{url}#task/{task.slug}?tab=verification")
    assert "Only the last 200 kB are shown" in page.locator(".cut").inner_text()


@pytest.mark.soak  # thousands of files to make; the same pages with a few tasks are seen above
@pytest.mark.timeout(600)
def test_a_thousand_tasks_are_written_and_seen_within_the_budget(user: User, looking: Browser) -> None:
    made = tmr_runs.begin_run(user, "many", tmr_runs.many(1000))
    before = resource.getrusage(resource.RUSAGE_SELF)
    path = pages.write(Run(str(made)))
    after = resource.getrusage(resource.RUSAGE_SELF)
    # Work done, not time passed: other tests run at the same time.
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 10, f"{spent:.1f} s of work for the report"

    page = looking.tab()
    for kind, shown in (("run", ".headline"), ("tests", ".matrix"), ("tasks", "tbody tr")):
        times = []
        for _ in range(3):  # the best of three
            page.goto("about:blank")
            go(page, f"{Path(path).as_uri()}#{kind}")
            page.locator(shown).first.wait_for()
            times.append(page.evaluate("performance.getEntriesByName('mngr-shown')[0].startTime"))
        assert min(times) < 1500, f"{min(times):.0f} ms until {kind} was seen"
    wait_for(lambda: page.locator("tbody tr").count() == 1000, "all rows")
    assert page.locator("tbody tr").first.locator(".pill").inner_text() == "‖ blocked", "what needs somebody is first"
    page.keyboard.press("/")
    page.keyboard.type("number_777")
    wait_for(lambda: names(page) == ["test_number_777"], "the one that fits")
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("held 50")).click()
    wait_for(lambda: page.locator("tbody tr").count() == 50, "those that are held")
    page.get_by_role("button", name=re.compile("held 50")).click()
    page.get_by_role("button", name="Tries").click()
    wait_for(lambda: page.locator("tbody tr td.tries").first.inner_text() == "2", "those tried twice first")


@contextmanager
def serving(user: User, *words: str) -> Iterator[str]:
    """`mngr tmr serve`; gives its address, and ends it as Ctrl-C does."""
    server = user.popen("tmr", "serve", *words)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().decode().strip()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.communicate()


def test_serve_shows_a_run_while_it_goes_on_with_the_terminals_of_its_agents(user: User, looking: Browser) -> None:
    tasks = tmr_runs.many(3)
    made = tmr_runs.begin_run(user, "now", tasks, over=False)
    user.mngr("create", "worker", "--no-connect", "--command", "echo at-work-here; sleep 600").ok()
    agent = user.mngr("list", "--format", "json").ok().json["agents"][0]["id"]
    run = Run(str(made))
    run.note("task", task="tests/test_z.py::test_late", slug="late-1", data={})
    with run.locked(), serving(user) as url:
        page = looking.tab()
        go(page, url)
        page.locator(".titles .pill", has_text="running").wait_for()
        page.get_by_role("link", name="Tasks").click()
        page.locator("tr", has_text="test_late").locator(".pill", has_text="not started").wait_for()
        run.note("attempt", task="tests/test_z.py::test_late", number=1, agent="worker")
        run.note("started", task="tests/test_z.py::test_late", number=1, agent_id=agent)
        page.locator("tr", has_text="test_late").locator(".pill", has_text="running").wait_for()
        page.get_by_role("link", name="Terminals 1").click()
        page.locator(".terminal .term", has_text="at-work-here").wait_for()
        page.locator(".terminal a").click()
        page.locator(".now-on .term", has_text="at-work-here").wait_for()
        run.note("ended", task="tests/test_z.py::test_late", number=1, reason="crash", because="it fell over")
        page.get_by_role("tab", name="Attempts").click()
        page.get_by_text("it fell over").wait_for()
        wait_for(lambda: page.locator(".now-on").count() == 0, "its terminal to be gone")
        assert looking.complaints == []
    page.locator(".live.lost").wait_for()
    looking.complaints.clear()  # about the server that is gone
    user.mngr("destroy", "worker", "--force").ok()
    with serving(user, "--format", "jsonl") as said:
        fits_schema(json.loads(said))
    assert "invalid port `70000`" in user.mngr("tmr", "serve", "--port", "70000").failed(2).stderr


def test_a_run_that_broke_off_has_a_report_too(user: User, looking: Browser) -> None:
    made = tmr_runs.begin_run(user, "broken", tmr_runs.many(4), over=False)
    for name in ("baseline.json", "collect.json"):
        (made / name).unlink()
    with (made / "ledger.jsonl").open("a") as file:
        file.write('{"at": "2026-')
    page = looking.tab()
    go(page, report(user))
    page.locator(".titles .pill", has_text="broken off").wait_for()
    page.get_by_text("Nothing was integrated.").wait_for()
    page.get_by_text("no baseline").wait_for()
