"""A small program with a prompt in its terminal, as an agent is: told what to do by `%%` directives, on a screen that
it draws itself. `prompter.py [--resume] [--print] [TEXT]`. It keeps its conversation in $PROMPTER_HOME, if set."""

import json
import os
import re
import select
import subprocess
import sys
import time
import tty
from typing import Any


def note(role: str, text: str, **more: Any) -> None:
    folder = os.environ.get("PROMPTER_HOME")
    if folder:
        line = {"role": role, "content": text, "timestamp": time.time() * 1000, **more}
        with open(os.path.join(folder, "chat.jsonl"), "a") as file:
            file.write(json.dumps(line) + "\n")


def draw(*rows: str) -> None:
    os.write(1, ("\x1b[2J\x1b[H" + "\r\n".join(rows)).encode())


def turn(text: str, said: list[str]) -> None:
    note("user", text)
    answer = "you said: " + text.partition("\n")[0]
    for word, rest in re.findall(r"^%% (\w+) ?(.*)$", text, re.MULTILINE):
        if word == "run":
            subprocess.run(["sh", "-c", rest], check=False, stdin=subprocess.DEVNULL)
        elif word == "ask":
            draw(*said, f"Allow {rest}? (y/n)")
            while os.read(0, 100)[:1] != b"y":
                pass
            draw(*said, "* working")
        elif word == "exit":
            sys.exit(int(rest))
        elif word == "say":
            answer = rest
    note("assistant", answer, usage={"input": 7, "output": 3})
    said.append(answer)


def received(data: bytearray) -> str | None:
    """The first message in what was typed: a bracketed paste, and Enter."""
    found = re.match(rb"(?s)(?:\x1b\[200~(.*?)\x1b\[201~)?([^\x1b\r]*)\r", data)
    if not found:
        return None
    text = bytes(found[1] or found[2])
    del data[: found.end()]
    return text.decode()


def main(words: list[str]) -> None:
    said = ["resumed"] if "--resume" in words else []
    texts = [word for word in words if not word.startswith("--")]
    if "--print" in words:
        turn(texts[0], said)
        print(said[-1])
        return
    tty.setraw(0)
    os.write(1, b"\x1b[?2004h")
    data = bytearray()
    while True:
        if not texts:
            draw(*said, "> type something")
            data += os.read(0, 65536)
        while select.select([0], [], [], 0)[0]:
            data += os.read(0, 65536)
        text = texts.pop() if texts else received(data)
        if text:
            draw(*said, "\x1b[1m* working\x1b[0m", "> ")
            turn(text, said)


if __name__ == "__main__":
    main(sys.argv[1:])
