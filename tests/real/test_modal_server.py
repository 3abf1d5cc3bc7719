"""The local Modal server, used by the real `modal` client: sandboxes, commands, snapshots, and the end of it all."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.system.waiting import wait_until
from mngr_testing.modal_server import ModalServer
from tests.support.modal import CANNOT_RUN, client, mounts

pytestmark = pytest.mark.skipif(bool(CANNOT_RUN), reason=CANNOT_RUN)


@pytest.fixture(scope="module")
def server() -> Iterator[ModalServer]:
    with ModalServer() as running:
        yield running
        pids = [sandbox["pid"] for sandbox in running.sandboxes()]
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}/root/dev/.ready")]
    assert mounts() == []


def test_a_command_has_its_own_input_output_environment_and_directory(server: ModalServer) -> None:
    [made, first, second] = client(
        server,
        """
        secret = modal.Secret.from_dict({"TOKEN": "of the sandbox", "BOTH": "sandbox"})
        box = sandbox(env={"PLACE": "there"}, secrets=[secret], cpu=0.5, memory=256)
        answer(box.object_id)
        process = box.exec("sh", "-c", "pwd; echo $PLACE; echo $TOKEN; echo $BOTH; cat; echo bad >&2; exit 7",
                           workdir="/etc", secrets=[modal.Secret.from_dict({"BOTH": "command"})])
        for part in (b"one\\n", b"two\\n"):
            process.stdin.write(part)
            process.stdin.drain()
        process.stdin.write_eof()
        process.stdin.drain()
        answer([process.stdout.read(), process.stderr.read(), process.wait()])
        answer(run(box, "no-such-program")[2])
        box.terminate(wait=True)
        """,
    )
    assert first == ["/etc\nthere\nof the sandbox\ncommand\none\ntwo\n", "bad\n", 7]
    assert second == 127
    [seen] = [sandbox for sandbox in server.sandboxes() if sandbox["id"] == made]
    assert (seen["cpu"], seen["memory"], seen["running"]) == (0.5, 256, False)


def test_a_command_carries_any_bytes_both_ways_while_it_runs(server: ModalServer) -> None:
    [echoed, same] = client(
        server,
        """
        import os
        box = sandbox()
        data = os.urandom(3 << 20)
        process = box.exec("cat", text=False)
        back = iter(process.stdout)
        process.stdin.write(b"\\x00\\xff\\n")
        process.stdin.drain()
        answer(list(next(back)))
        for start in range(0, len(data), 1 << 20):
            process.stdin.write(data[start : start + (1 << 20)])
            process.stdin.drain()
        process.stdin.write_eof()
        process.stdin.drain()
        answer(b"".join(back) == data and process.wait() == 0)
        box.terminate(wait=True)
        """,
    )
    assert echoed == [0, 255, 10] and same


def test_a_command_with_a_terminal_is_interactive(server: ModalServer) -> None:
    [[output, code], [again, _], nested] = client(
        server,
        """
        box = sandbox()
        process = box.exec("sh", "-c", "tty; stty size; read name; echo hello $name", pty=True)
        process.stdin.write(b"you\\n")
        process.stdin.drain()
        answer([process.stdout.read(), process.wait()])
        process = box.exec("cat", pty=True)
        process.stdin.write_eof()
        process.stdin.drain()
        answer([process.stdout.read(), process.wait()])
        run(box, "tmux", "new-session", "-d", "-s", "work", "sh")
        process = box.exec("tmux", "attach", "-t", "work", pty=True)
        screen, output = "", iter(process.stdout)
        process.stdin.write(b"echo in$((40 + 2))tmux\\n")
        process.stdin.drain()
        while "in42tmux" not in screen:
            screen += next(output)
        process.stdin.write(b"exit\\n")
        process.stdin.drain()
        answer(screen + "".join(output))
        box.terminate(wait=True)
        """,
    )
    assert code == 0 and "/dev/pts/" in output and "24 80" in output and "hello you" in output
    assert again == ""
    assert "in42tmux" in nested and "[exited]" in nested


def test_sandboxes_are_found_by_tags_name_and_id(server: ModalServer) -> None:
    found = client(
        server,
        """
        one, two = sandbox(name="one", tags={"mngr": "fleet-1", "host": "a"}), sandbox(tags={"mngr": "fleet-1"})
        other = sandbox(tags={"mngr": "fleet-2"})
        def listed(**tags): return {each.object_id for each in modal.Sandbox.list(app_id=app.app_id, tags=tags)}
        answer(listed(mngr="fleet-1") == {one.object_id, two.object_id})
        answer(listed(mngr="fleet-1", host="a") == {one.object_id})
        answer(modal.Sandbox.from_name("mngr", "one").object_id == one.object_id)
        answer(modal.Sandbox.from_id(two.object_id).get_tags() == {"mngr": "fleet-1"})
        two.set_tags({"mngr": "fleet-3"})
        answer(listed(mngr="fleet-3") == {two.object_id})
        try:
            sandbox(name="one")
        except modal.exception.AlreadyExistsError as error:
            answer("already running" in str(error))
        for box in (one, two, other):
            box.terminate(wait=True)
        answer(listed(mngr="fleet-1") == set())
        try:
            modal.Sandbox.from_name("mngr", "one")
        except modal.exception.NotFoundError:
            answer(True)
        """,
    )
    assert found == [True] * 8


def test_a_sandbox_starts_from_a_snapshot_with_what_was_changed_and_removed(server: ModalServer) -> None:
    [files, later, deeper, missing] = client(
        server,
        """
        box = sandbox(image=modal.Image.debian_slim())
        run(box, "sh", "-c", "echo kept > /root/file; mkdir /srv/x; rm /etc/hostname")
        run(box, "sh", "-c", "rm -r /usr/share/doc; mkdir /usr/share/doc")
        image = box.snapshot_filesystem()
        run(box, "sh", "-c", "echo later > /root/file")
        box.terminate(wait=True)
        two = sandbox(image=modal.Image.from_id(image.object_id))
        show = "cat /root/file; ls -d /srv/x /etc/hostname; ls /usr/share/doc | wc -l"
        answer(run(two, "sh", "-c", show)[0])
        run(two, "sh", "-c", "echo second > /root/file; touch /etc/hostname")
        three = sandbox(image=two.snapshot_filesystem())
        answer(run(two, "sh", "-c", show)[0])
        answer(run(three, "sh", "-c", show)[0])
        try:
            sandbox(image=modal.Image.from_id("im-0000"))
        except modal.exception.NotFoundError as error:
            answer(str(error))
        """,
    )
    assert files == "kept\n/srv/x\n0\n"
    assert later == deeper == "second\n/etc/hostname\n/srv/x\n0\n"
    assert "im-0000" in missing


def test_a_sandbox_sees_nothing_of_the_machine_or_of_other_sandboxes(server: ModalServer, tmp_path: Path) -> None:
    mark = f"/usr/share/mngr-modal-mark-{os.getpid()}"
    Path("/tmp", f"mngr-modal-{os.getpid()}").touch()
    try:
        [first, second, network] = client(
            server,
            f"""
            one, two = sandbox(), sandbox()
            answer(run(one, "sh", "-c", "touch {mark}; cat /proc/1/comm; ls -A /tmp /root; hostname")[0] )
            answer(run(two, "sh", "-c", "ls {mark}; pgrep -c . ; hostname")[0])
            cut = sandbox(block_network=True)
            answer(run(cut, "sh", "-c", "cut -d: -f1 /proc/net/dev | tail -n +3")[0].split())
            for box in (one, two, cut):
                box.terminate(wait=True)
            """,
        )
    finally:
        Path("/tmp", f"mngr-modal-{os.getpid()}").unlink()
    assert first.startswith("sh\n/root:\n\n/tmp:\nsb-") and not os.path.exists(mark)
    assert second.split()[1].startswith("sb-") and int(second.split()[0]) <= 5
    assert network == ["lo"]


def test_the_end_of_a_sandbox_ends_all_that_runs_in_it(server: ModalServer) -> None:
    [code, reason, exits] = client(
        server,
        """
        box = sandbox()
        run(box, "tmux", "new-session", "-d", "sleep 7654321")
        process = box.exec("sleep", "7654321")
        box.terminate(wait=True)
        answer(box.poll())
        try:
            box.exec("true")
        except (modal.exception.NotFoundError, modal.exception.ConflictError) as error:
            answer(str(error))
        answer(process.wait())
        """,
    )
    assert code == exits == 137 and reason
    running = [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"7654321" in _content(path)]
    assert running == []


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_the_command_of_a_sandbox_has_output_input_and_an_exit_code(server: ModalServer) -> None:
    [output, errors, code, failed] = client(
        server,
        """
        box = sandbox("sh", "-c", "read line; echo got $line; echo bad >&2; exit 5")
        box.stdin.write(b"this\\n")
        box.stdin.drain()
        box.wait(raise_on_termination=False)
        answer(box.stdout.read())
        answer(box.stderr.read())
        answer(box.returncode)
        box = sandbox("no-such-program")
        box.wait()
        answer(box.returncode)
        """,
    )
    assert (output, errors, code, failed) == ("got this\n", "bad\n", 5, 127)


def test_a_sandbox_ends_after_its_time_and_when_nothing_runs_in_it(server: ModalServer) -> None:
    [timed_out, busy, idle] = client(
        server,
        """
        box = sandbox(timeout=1)
        try:
            box.wait()
        except modal.exception.SandboxTimeoutError:
            answer(box.returncode)
        for attempt in range(20):  # a busy machine may need longer than the idle time to start the first command
            box = sandbox(idle_timeout=2)
            try:
                answer(box.exec("sleep", "4").wait())
                break
            except modal.exception.NotFoundError:
                continue
        box.wait(raise_on_termination=False)
        answer(box.returncode)
        """,
    )
    assert timed_out == 124 and busy == 0 and idle == 137


def test_a_command_ends_after_its_time(server: ModalServer) -> None:
    [code, left] = client(
        server,
        """
        box = sandbox()
        process = box.exec("sh", "-c", "sleep 7654322; true", timeout=1)
        answer(process.wait())
        wait = "for try in $(seq 600); do pgrep -f '[s]leep 7654322' || exit 0; sleep 0.1; done; exit 1"
        answer(run(box, "sh", "-c", wait)[2])
        box.terminate(wait=True)
        """,
    )
    assert code in (-1, 137)  # the client's own deadline, or the server's
    assert left == 0


def test_a_volume_is_shared_and_a_port_is_reachable(server: ModalServer) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    [seen, tunnel, text] = client(
        server,
        f"""
        import time, urllib.request
        volume = modal.Volume.from_name("cache", create_if_missing=True)
        one = sandbox(volumes={{"/cache": volume}})
        run(one, "sh", "-c", "echo shared > /cache/file")
        two = sandbox("python3", "-m", "http.server", "{port}", "--bind", "127.0.0.1", "--directory", "/cache",
                      volumes={{"/cache": volume}}, unencrypted_ports=[{port}])
        answer(run(two, "cat", "/cache/file")[0])
        host, port = two.tunnels()[{port}].tcp_socket
        answer([host, port])
        for attempt in range(600):
            try:
                answer(urllib.request.urlopen(f"http://{{host}}:{{port}}/file").read().decode())
                break
            except OSError:
                time.sleep(0.1)
        for box in (one, two):
            box.terminate(wait=True)
        """,
    )
    assert seen == text == "shared\n" and tunnel == ["127.0.0.1", port]


def test_a_sandbox_with_a_gpu_uses_the_calls_of_the_first_generation(server: ModalServer) -> None:
    [id, output] = client(
        server,
        """
        box = sandbox(gpu="T4", name="with-gpu")
        answer(box.object_id)
        answer(run(modal.Sandbox.from_id(box.object_id), "echo", "there")[0])
        box.terminate(wait=True)
        """,
    )
    assert output == "there\n"
    assert [sandbox["gpu"] for sandbox in server.sandboxes() if sandbox["id"] == id] == ["T4"]


def test_ten_sandboxes_run_at_once(server: ModalServer) -> None:
    [names] = client(
        server,
        """
        from concurrent.futures import ThreadPoolExecutor
        def work(number):
            box = sandbox(name=f"many-{number}", tags={"many": "yes"})
            output = run(box, "sh", "-c", f"echo {number} > /root/number; sleep 1; cat /root/number")[0]
            box.terminate(wait=True)
            return output
        with ThreadPoolExecutor(10) as pool:
            answer(list(pool.map(work, range(10))))
        """,
    )
    assert names == [f"{number}\n" for number in range(10)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_server_ends(number: signal.Signals) -> None:
    with ModalServer() as server:
        client(server, "box = sandbox(); run(box, 'tmux', 'new-session', '-d', 'sleep 7654323'); box.detach()")
        [sandbox] = server.sandboxes()
        words = Path(f"/proc/{sandbox['pid']}/cmdline").read_text().split("\0")
        [state] = [word for word in words if "/mngr-modal-" in word and " " not in word and ":" not in word][:1]
        assert os.path.isdir(state)
        os.kill(server.pid, number)
        gone = wait_until(lambda: not os.path.exists(state) or None, timeout=60)
        assert gone, f"{state} is still there"

    def running() -> list[Path]:
        return [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"7654323" in _content(path)]

    assert wait_until(lambda: not running() or None, timeout=60), running()
    assert mounts() == []


def test_a_sandbox_ends_while_commands_are_started_in_it(server: ModalServer) -> None:
    [ended, codes] = client(
        server,
        """
        import threading, time
        codes = set()
        def work(box):
            try:
                for _ in range(1000):
                    codes.add(box.exec("true").wait())
            except (modal.exception.NotFoundError, modal.exception.ConflictError):
                pass
        ended = []
        for _ in range(5):
            box = sandbox()
            threads = [threading.Thread(target=work, args=(box,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            time.sleep(0.5)
            box.terminate(wait=True)
            ended.append(box.poll())
            for thread in threads:
                thread.join()
        answer(ended)
        answer(sorted(codes))
        """,
    )
    assert ended == [137] * 5 and set(codes) <= {0, 137}
