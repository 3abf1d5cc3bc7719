"""A host that is not what it says: `open` of a provider by settings. Answers each call with what a file holds.

Run as `hostile.py ANSWERS LINE`; ANSWERS is a Python file with `ready` (the header of its first frame), and a function
`answer(call, number)` that returns the bytes to send."""

import os
import re
import runpy
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src"))

from mngr.remote.frames import MessageReader, pack


def main() -> None:
    found = runpy.run_path(sys.argv[1], {"pack": pack})
    token = re.search(r"mngr-[0-9a-f]{16}", sys.argv[2])
    if token is None:  # git or rsync: whatever they ask for runs, as on any host
        os.execvp("sh", ["sh", "-c", sys.argv[2]])
    send(f"{token[0]} ready\n".encode() + pack(found.get("ready", {"ready": True, "now": 1e9})))
    messages = MessageReader()
    while data := os.read(0, 1 << 16):
        for message in messages.feed(data):
            if "call" in message.header:
                send(found["answer"](str(message.header["call"]), message.header["id"]))


def send(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
