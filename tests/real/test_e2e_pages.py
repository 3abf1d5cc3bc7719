"""`mngr e2e report` and `mngr e2e serve`, looked at with a real browser."""

import http.client
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.real.test_schemas import validator
from tests.support import e2e_runs
from tests.support.browser import BROWSER, Browser, browser, go
from tests.support.user import User, wait_for

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine"),
    pytest.mark.timeout(300),
]
START = e2e_runs.START
RUN = "2026-09-21-nightly"


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
    assert (
        requests
        and [url for url in requests if not url.startswith(("file:///", "http://127.0.0.1:", "about:blank"))] == []
    )
    assert complaints == []


def report(user: User, *words: str) -> str:
    path = user.mngr("e2e", "report", *words).ok().stdout.strip()
    return Path(path).as_uri()


@pytest.fixture
def sample(user: User) -> str:
    """The address of a report of two runs."""
    e2e_runs.make_sample(user.repo / ".mngr" / "e2e")
    return report(user)


def fits_schema(document: Any) -> None:
    validator("e2e")(document)


def visible_tests(page: Any) -> list[str]:
    names: list[str] = page.locator("table.tests tbody tr a").all_inner_texts()
    return names


def second(page: Any) -> float:
    return float(page.locator(".recordings").get_attribute("data-second") or 0)


def test_from_the_runs_to_a_test_to_a_moment_of_its_recording(sample: str, looking: Browser) -> None:
    page = looking.tab()
    go(page, sample)
    assert page.title() == "e2e runs"
    page.get_by_role("link", name=RUN).click()
    page.get_by_role("link", name="test_the_garden_reacts_to_keys").click()
    page.get_by_role("heading", name="test_the_garden_reacts_to_keys").wait_for()

    assert "sprout garden   # q leaves it" in page.locator(".block").inner_text()
    first = page.locator("#command-1")
    assert first.locator(".stdout").inner_text().splitlines()[:2] == ["NAME     STATE", "rose     blooming"]
    assert first.locator(".stderr").inner_text().strip() == "warning: the soil is dry"
    assert first.locator(".exit").inner_text() == "exit 0"
    assert page.locator("#command-4 .exit").inner_text() == "exit 3"
    assert page.locator("#command-1 .expect").all_inner_texts() == ["✓\nexit code is 0", "✓\nstdout contains 'rose'"]

    assert page.locator("#command-2 .expect").inner_text() == "✓\nscreen shows 'screen 3'", "it names no command"

    screen = page.locator(".ap-term")
    screen.wait_for()
    page.locator("#command-3 button.command").click()
    wait_for(lambda: abs(second(page) - 4.4) < 0.01, "the player at the second of the third command")
    wait_for(lambda: "screen 4" in screen.inner_text(), "the screen of that moment")
    page.locator("#command-3.now").wait_for()
    page.locator("#command-2 button.command").click()
    wait_for(lambda: second(page) < 0.01, "the player at the beginning")
    wait_for(lambda: "screen" not in screen.inner_text(), "the empty screen of that moment")

    page.locator(".ap-playback-button").click()
    wait_for(lambda: second(page) > 0.8, "the recording to play")
    # Which one is seen is a matter of when somebody looks; the last one says good bye.
    wait_for(lambda: re.search(r"screen \d|bye", screen.inner_text()), "a screen of it")


def test_a_command_after_the_first_recording_opens_the_one_that_shows_it(sample: str, looking: Browser) -> None:
    page = looking.tab()
    go(page, f"{sample}#run/{RUN}")
    page.get_by_role("link", name="test_the_garden_reacts_to_keys").click()
    page.locator(".ap-term").wait_for()
    page.locator("#command-4 button.command").click()
    page.get_by_role("tab", name="agent bed-2", selected=True).wait_for()
    wait_for(lambda: abs(second(page) - 0.4) < 0.01, "the player at the second of the fourth command")
    page.locator("#command-2 .keys").first.click()
    page.get_by_role("tab", name="sprout garden", selected=True).wait_for()
    wait_for(lambda: abs(second(page) - 2.2) < 0.01, "the player at the second of the keys")


def test_tests_are_searched_filtered_sorted_and_opened_by_keyboard(sample: str, looking: Browser) -> None:
    page = looking.tab()
    go(page, f"{sample}#run/{RUN}")
    wait_for(lambda: len(visible_tests(page)) == 7, "all tests")
    assert visible_tests(page)[0] == "test_start_reports_ready", "what failed comes first"

    page.keyboard.press("/")
    page.keyboard.type("garden keys")
    wait_for(lambda: visible_tests(page) == ["test_the_garden_reacts_to_keys"], "the one that fits")
    page.keyboard.press("Escape")
    wait_for(lambda: len(visible_tests(page)) == 7, "all tests again")
    page.get_by_role("button", name="failed 1", exact=True).click()
    wait_for(lambda: visible_tests(page) == ["test_start_reports_ready"], "those that failed")
    page.reload()
    wait_for(lambda: visible_tests(page) == ["test_start_reports_ready"], "the same after a reload")
    page.get_by_role("button", name="failed 1", exact=True).click()
    page.get_by_role("button", name="Duration").click()
    wait_for(
        lambda: visible_tests(page)[:2] == ["test_start_reports_ready", "test_the_garden_reacts_to_keys"], "slow first"
    )

    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="test_the_garden_reacts_to_keys").wait_for()
    page.keyboard.press("u")
    wait_for(lambda: len(visible_tests(page)) == 7, "the list")

    odd = "50%41 a+b&c?d#e ü%"
    page.get_by_role("searchbox").fill(odd)
    page.reload()
    wait_for(lambda: page.get_by_role("searchbox").input_value() == odd, "what was searched, after a reload")


def test_a_failure_shows_what_was_expected_and_seen(sample: str, looking: Browser) -> None:
    page = looking.tab()
    go(page, f"{sample}#run/{RUN}")
    page.get_by_role("link", name="test_start_reports_ready").click()
    assert "expected stdout to contain 'ready'" in page.locator(".failure").inner_text()
    assert page.locator(".expect.not-ok").inner_text().endswith("stdout contains 'ready'")
    page.locator(".failure summary").click()
    assert "to_contain('ready')" in page.locator(".failure details pre").inner_text()
    assert page.locator("button.command").count() == 0, "nothing to jump to without a recording"


def test_hostile_text_is_shown_and_never_obeyed(user: User, looking: Browser) -> None:
    run = e2e_runs.make_sample(user.repo / ".mngr" / "e2e")
    hostile = e2e_runs.make_test(run, f"tests/{e2e_runs.HOSTILE}.py::test_{e2e_runs.HOSTILE}")
    title = e2e_runs.HOSTILE
    events = [[0, "o", e2e_runs.HOSTILE], [1, "r", "99999999x9"], ["x"], [float("inf"), "o", ""], [2, "o", "end"]]
    e2e_runs.make_cast(hostile, "a<b>.cast", events, started_at=START, title=title)
    page = looking.tab()
    go(page, report(user))
    for name in ("test_hostile", "test_<script>"):
        go(page, f"{page.url.partition('#')[0]}#run/{RUN}")
        wait_for(lambda: len(visible_tests(page)) == 8, "all tests")
        page.get_by_role("link", name=re.compile(re.escape(name))).click()
        page.locator("h1.mono", has_text=name).wait_for()
        assert page.evaluate("window.hacked") is None
        assert page.locator("main script, main img, bar script").count() == 0
    page.locator(".ap-term").wait_for()
    for wrong in ("#test/../../x", "#run/%2e%2e%2fsite", "#nothing", "#test", "#__proto__/x"):
        go(page, page.url.partition("#")[0] + wrong)
        page.get_by_role("heading", name="Nothing to show").wait_for()
    looking.complaints[:] = [text for text in looking.complaints if "ERR_FILE_NOT_FOUND" not in text]


ANSI = [
    ("plain", "plain"),
    ("\x1b[31mred\x1b[0m no", "<t-f1>red</> no"),
    ("\x1b[1;4;92mx\x1b[22my\x1b[mz", "<t-bold t-underline t-f10>x</><t-underline t-f10>y</>z"),
    ("\x1b[38;5;196mx\x1b[48;2;1;2;3my", "<rgb(255, 0, 0)>x</><rgb(255, 0, 0) rgb(1, 2, 3)>y</>"),
    ("\x1b[38:2::9:8:7mx", "<rgb(9, 8, 7)>x</>"),
    ("\x1b[7mx\x1b[27my", "<t-reverse t-fr t-br>x</>y"),
    ("10 %\r100 %", "100 %"),
    ("abc\r\x1b[Kd", "d"),
    ("ab\bc", "ac"),
    ("a\x1b]8;;http://x\x07link\x1b]8;;\x1b\\b", "alinkb"),
    ("a\x1b]0;never ended", "a0;never ended"),
    ("a\x1b[2J\x1b[?25lb\x1b(Bc", "abc"),
    ("a\x1b[", "a"),
    ("a\x00b\u202ec", "a\\x00b\\u202ec"),
    ("a\x1b[99999999Cb", "a" + " " * 499 + "b"),
    ("\x1b[38;5;999mx\x1b[38mx", "xx"),
]


def test_colours_and_controls_of_a_terminal_become_text_and_styles(sample: str, looking: Browser) -> None:
    page = looking.tab()
    go(page, sample)
    page.locator("table").wait_for()
    show = """(text) => mngrAnsi.lines(text)[0].map((node) => {
        if (!node.classList) return node.textContent;
        const marks = [...node.classList, node.style.color, node.style.backgroundColor].filter(Boolean);
        return "<" + marks.join(" ") + ">" + node.textContent + "</>";
    }).join("")"""
    assert [(text, page.evaluate(show, text)) for text, _ in ANSI] == ANSI
    flood = page.evaluate("mngrAnsi.pre('x\\n'.repeat(5000)).textContent")
    assert "show 4600 more lines" in flood and flood.count("x") == 400


def test_what_is_too_much_is_cut_with_a_note(user: User, looking: Browser) -> None:
    run = e2e_runs.make_run(user.repo / "runs", "big")
    flood = e2e_runs.command(1, "yes", 0.1, stdout="y" * 1_500_000)
    test = e2e_runs.make_test(run, "tests/test_a.py::test_flood", events=flood)
    line = [0.1, "o", "x" * 1000]
    e2e_runs.make_cast(test, "flood.cast", [[at / 100, *line[1:]] for at in range(6000)], started_at=START)
    page = looking.tab()
    go(page, report(user, "runs/big"))
    page.get_by_role("link", name="test_flood").click()
    assert "500,000 more characters of output are not on this page" in page.locator(".cut").inner_text()
    page.locator(".ap-term").wait_for()
    assert "Only the first 4.0 MB of 6.1 MB are shown." in page.locator(".recordings .note").inner_text()


def test_without_the_player_all_else_is_there_and_says_how_to_get_it(user: User, looking: Browser) -> None:
    e2e_runs.make_sample(user.repo / ".mngr" / "e2e")
    hidden = user.root / "site" / "mkdocs_asciinema_player"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("")
    user.env["PYTHONPATH"] = str(hidden.parent)
    done = user.mngr("e2e", "report").ok()
    assert "pip install 'mngr[pages]'" in done.stderr
    page = looking.tab()
    go(page, Path(done.stdout.strip()).as_uri() + f"#run/{RUN}")
    page.get_by_role("link", name="test_the_garden_reacts_to_keys").click()
    assert "pip install 'mngr[pages]'" in page.locator(".stage").inner_text()
    assert page.locator("button.command").count() == 0
    assert page.locator("#command-1 .stdout").count() == 1


@pytest.mark.soak  # thousands of files to make; the same pages with a few tests are seen above
@pytest.mark.timeout(300)
def test_a_thousand_tests_are_seen_at_once(user: User, looking: Browser) -> None:
    run = e2e_runs.make_run(user.repo / ".mngr" / "e2e", "many")
    for number in range(1000):
        outcome = "failed" if number % 50 == 0 else "passed"
        events = e2e_runs.command(1, f"sprout {number}", 0.1, stdout="x\n")
        e2e_runs.make_test(run, f"tests/test_{number % 20}.py::test_number_{number}", outcome=outcome, events=events)
    url = report(user, ".mngr/e2e/many")
    page = looking.tab()
    times = []
    for _ in range(3):  # the best of three: other tests run at the same time
        page.goto("about:blank")
        go(page, url)
        page.locator("tbody tr").first.wait_for()
        times.append(page.evaluate("performance.getEntriesByName('mngr-shown')[0].startTime"))
    assert min(times) < 1500, f"{min(times):.0f} ms until the tests were seen"
    wait_for(lambda: page.locator("tbody tr").count() == 1000, "all rows")
    page.keyboard.press("/")
    page.keyboard.type("number_777")
    wait_for(lambda: page.locator("tbody tr").count() == 1, "the one that fits")
    assert visible_tests(page) == ["test_number_777"]


def test_the_report_is_replaced_and_other_files_are_not(user: User) -> None:
    e2e_runs.make_sample(user.repo / ".mngr" / "e2e")
    first = user.mngr("e2e", "report", "--format", "json").ok().json
    fits_schema(first)
    assert first["path"] == str(user.repo / ".mngr/e2e/report/index.html")
    assert (first["runs"], first["tests"]) == (2, 8) and first["player"].startswith("mkdocs-asciinema-player ")
    (user.repo / ".mngr/e2e/report/data/stale.js").write_text("")
    assert user.mngr("e2e", "report", "--format", "json").ok().json == first, "the report itself is no run"
    assert not (user.repo / ".mngr/e2e/report/data/stale.js").exists()
    assert sorted(path.name for path in (user.repo / ".mngr/e2e").iterdir()) == ["2026-09-20-monday", RUN, "report"]

    failed = user.mngr("e2e", "report", "--output", ".").failed()
    assert "holds other files" in failed.stderr and (user.repo / "README.md").exists()
    assert "there is no directory" in user.mngr("e2e", "report", "nowhere").failed().stderr
    assert "no test run was found" in user.mngr("e2e", "report", ".").failed().stderr


@contextmanager
def serving(user: User, *words: str) -> Iterator[str]:
    """`mngr e2e serve`; gives its address, and ends it as Ctrl-C does."""
    server = user.popen("e2e", "serve", *words)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().decode().strip()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.communicate()


def test_serve_shows_a_run_while_it_goes_on(user: User, looking: Browser) -> None:
    base = user.repo / ".mngr" / "e2e"
    with serving(user) as url:
        page = looking.tab()
        go(page, url)
        page.get_by_text("No runs yet").wait_for()
        run = e2e_runs.make_run(base, "now", ended=False)
        page.get_by_role("link", name="now").click()
        page.get_by_text("holds no e2e tests").wait_for()
        test = e2e_runs.make_test(
            run, "tests/test_a.py::test_live", outcome=None, events=e2e_runs.command(1, "ls", 0.1)
        )
        page.get_by_role("link", name="test_live").click()
        page.locator("#command-1").wait_for()
        with (test / "transcript.jsonl").open("a") as file:
            file.writelines(json.dumps(event) + "\n" for event in e2e_runs.command(2, "pwd", 1.0, stdout="/repo\n"))
        page.locator("#command-2 .stdout", has_text="/repo").wait_for()
        e2e_runs.make_cast(test, "late.cast", e2e_runs.screens(3), started_at=START)
        page.locator(".ap-term").wait_for()
        page.locator("#command-2 button.command").click()
        wait_for(lambda: abs(second(page) - 1.0) < 0.01, "the player at the second of the command")
        e2e_runs.make_test(run, "tests/test_a.py::test_live", events=e2e_runs.command(1, "ls", 0.1))
        page.locator(".pill", has_text="passed").wait_for()
        assert looking.complaints == []
    page.locator(".live.lost").wait_for()
    looking.complaints.clear()  # about the server that is gone


def asked(url: str, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """What the server at this address says to a path below it."""
    address, _, token = url.removeprefix("http://").rstrip("/").partition("/")
    return asked_at(address, f"/{token}{path}", method, **{"Host": address, **headers})


def asked_at(address: str, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_serve_answers_its_own_pages_on_this_machine_only(user: User) -> None:
    e2e_runs.make_sample(user.repo / ".mngr" / "e2e")
    (user.repo / ".mngr" / "secret.js").write_text("secret")
    with serving(user) as url:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", url)
        assert asked(url, "/")[0] == asked(url, "/data/runs.js?v=1")[0] == asked(url, f"/version/run/{RUN}")[0] == 200
        address, token = url.removeprefix("http://").rstrip("/").split("/")
        port = address.rpartition(":")[2]
        for path in ("/", "/index.html", "/data/runs.js", "/assets/shell.js", f"/version/run/{RUN}", "/favicon.ico"):
            for prefix in ("", f"/{token[:-1]}", f"/{token}x", f"/%{ord(token[0]):x}{token[1:]}", "/%e4"):
                assert asked_at(address, prefix + path, Host=address)[0] == 403, (prefix, path)
        assert asked(url, "/", Host=f"localhost:{port}")[0] == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", ""):
            assert asked(url, "/data/runs.js", Host=host)[0] == 403, host
        assert asked(url, "/data/runs.js", Sec_Fetch_Site="cross-site")[0] == 403
        assert asked(url, "/data/runs.js", Sec_Fetch_Site="same-site")[0] == 403
        for path in (
            *(
                "/../secret.js",
                "/data/../../secret.js",
                "/data/..%2f..%2fsecret.js",
                "/assets/../../site.py",
                "/etc/passwd",
            ),
            *(
                "//etc/passwd",
                "/data//etc/passwd.js",
                "/data/run/../../secret.js",
                f"/data/run/{RUN}/../x.js",
                "/assets/",
            ),
            *("/data/.js", "/version/", "/version/..", "/data/run/%80.js", "/data/run.js", "/data/cast/a/b.js"),
        ):
            status, text = asked(url, path)
            assert status == 404 and "secret" not in text and "root:" not in text, path
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PROPFIND"):
            assert asked(url, "/", method)[0] == 501, method
        taken = user.mngr("e2e", "serve", "--port", port).failed()
        assert f"cannot listen on port {port}" in taken.stderr and "in use" in taken.stderr
    for wrong in ("x", "70000", "-1"):
        user.mngr("e2e", "serve", f"--port={wrong}").failed(2)


def test_serve_says_its_address_as_json(user: User) -> None:
    server = user.popen("e2e", "serve", "--format", "jsonl")
    try:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())
        fits_schema(said)
        assert said["directory"] == str(user.repo / ".mngr/e2e") and asked(said["url"], "/")[0] == 200
    finally:
        server.send_signal(signal.SIGINT)
        try:
            assert server.wait(60) == 0
        except subprocess.TimeoutExpired:
            server.kill()
            raise
        finally:
            server.communicate()
