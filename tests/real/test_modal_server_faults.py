"""The local Modal server fails on purpose; what the real `modal` client makes of it."""

import json
import re
from collections.abc import Iterator

import pytest

from mngr.errors import MngrError
from mngr_testing.modal_server import ModalServer
from tests.support.modal import CANNOT_RUN, client, started

pytestmark = pytest.mark.skipif(bool(CANNOT_RUN), reason=CANNOT_RUN)


@pytest.fixture(scope="module")
def shared() -> Iterator[ModalServer]:
    with ModalServer() as running:
        yield running


@pytest.fixture
def server(shared: ModalServer) -> Iterator[ModalServer]:
    yield shared
    shared.clear_faults()


def test_a_sandbox_over_the_quota_is_refused_and_not_created(server: ModalServer) -> None:
    server.fail("SandboxCreate*", "RESOURCE_EXHAUSTED", "the quota of this workspace is used up")
    before = len(server.sandboxes())
    [kind, text, worked] = client(
        server,
        """
        try:
            sandbox()
        except modal.exception.Error as error:
            answer(type(error).__name__)
            answer(str(error))
        box = sandbox()
        answer(run(box, "true")[2])
        box.terminate(wait=True)
        """,
    )
    assert kind == "ResourceExhaustedError" and "quota of this workspace" in text and worked == 0
    assert len(server.sandboxes()) == before + 1


def test_a_workspace_runs_no_more_sandboxes_than_it_may() -> None:
    with ModalServer(max_sandboxes=2) as server:
        [refused, again] = client(
            server,
            """
            boxes = [sandbox(), sandbox()]
            try:
                sandbox()
            except modal.exception.ResourceExhaustedError as error:
                answer(str(error))
            boxes.pop().terminate(wait=True)
            boxes.append(sandbox())
            answer(len(list(modal.Sandbox.list(app_id=app.app_id))))
            """,
        )
    assert "2 sandboxes" in refused and again == 2


def test_a_command_waits_for_a_sandbox_that_starts_slowly(server: ModalServer) -> None:
    server.slow_start(2.0)
    [seconds, output] = client(
        server,
        """
        import time
        began = time.monotonic()
        box = sandbox()
        created = time.monotonic() - began
        output = run(box, "echo", "there")[0]
        answer([created, time.monotonic() - began])
        answer(output)
        box.terminate(wait=True)
        """,
    )
    assert output == "there\n" and seconds[1] >= 2.0 > seconds[0] / 10
    assert len(server.calls("SandboxGetTaskIdV2")) >= 2


def test_a_call_that_waits_is_answered_later(server: ModalServer) -> None:
    server.delay("AppGetOrCreate", 1.0)
    client(server, "")
    assert server.calls("AppGetOrCreate")[-1].seconds >= 1.0


def test_a_sandbox_is_preempted_in_the_middle_of_a_command(server: ModalServer) -> None:
    program = """
box = sandbox()
process = box.exec("sh", "-c", "echo up; sleep 7654325")
lines = iter(process.stdout)
answer([box.object_id, next(lines)])
answer([list(lines), process.wait()])
box.wait(raise_on_termination=False)
answer([box.returncode, len(list(modal.Sandbox.list(app_id=app.app_id)))])
try:
    box.exec("true")
except modal.exception.NotFoundError as error:
    answer(str(error))
"""
    with started(server, program) as running:
        assert running.stdout is not None
        id, first = json.loads(running.stdout.readline())
        assert first == "up\n"
        server.preempt(id)
        rest, _ = running.communicate(timeout=120)
    [command, sandbox, refused] = [json.loads(line) for line in rest.splitlines()]
    assert (command, sandbox) == ([[], 137], [137, 0]) and id in refused


def test_output_is_complete_although_its_stream_is_dropped(server: ModalServer) -> None:
    server.drop("TaskExecStdioRead", after=200_000, times=3)
    [same] = client(
        server,
        """
        import hashlib
        box = sandbox()
        process = box.exec("sh", "-c", "seq 300000 | tee /root/all", text=False)
        output = process.stdout.read()
        said = run(box, "sha256sum", "/root/all")[0].split()[0]
        answer(hashlib.sha256(output).hexdigest() == said)
        box.terminate(wait=True)
        """,
    )
    assert same
    dropped = [call for call in server.calls("TaskExecStdioRead") if "on purpose" in call.message]
    assert len(dropped) == 3


def test_input_is_written_once_although_an_answer_is_lost(server: ModalServer) -> None:
    server.drop("TaskExecStdinWrite", times=2)
    [output] = client(
        server,
        """
        box = sandbox()
        process = box.exec("cat")
        for part in ("one\\n", "two\\n"):
            process.stdin.write(part)
            process.stdin.drain()
        process.stdin.write_eof()
        process.stdin.drain()
        answer(process.stdout.read())
        box.terminate(wait=True)
        """,
    )
    assert output == "one\ntwo\n"


def test_one_sandbox_is_created_although_the_answer_is_lost(server: ModalServer) -> None:
    server.drop("SandboxCreateV2")
    before = len(server.sandboxes())
    client(server, "sandbox().terminate(wait=True)")
    assert len(server.sandboxes()) == before + 1


def test_a_call_that_the_server_does_not_have_is_refused_and_logged(server: ModalServer) -> None:
    [text] = client(
        server,
        """
        try:
            modal.Dict.from_name("any", create_if_missing=True).hydrate()
        except modal.exception.Error as error:
            answer(str(error))
        """,
    )
    assert "DictGetOrCreate" in text
    assert [call.status for call in server.calls("DictGetOrCreate")] == ["UNIMPLEMENTED"]


def test_a_wrong_token_is_refused(server: ModalServer) -> None:
    with pytest.raises(AssertionError) as failed:
        client(server, "", MODAL_TOKEN_SECRET="as-wrong")
    assert re.search(r"AuthError: token ID and secret", str(failed.value))
    server.fail("SandboxList*", "UNAUTHENTICATED", "this login has expired")
    with pytest.raises(AssertionError, match="this login has expired"):
        client(server, "list(modal.Sandbox.list(app_id=app.app_id))")


def test_an_unknown_status_is_refused(server: ModalServer) -> None:
    with pytest.raises(MngrError, match="NO_SUCH_STATUS"):
        server.fail("SandboxList*", "NO_SUCH_STATUS")
