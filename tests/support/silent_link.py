"""A connection that falls silent: run as `silent_link.py FLAG ARGV...`, it is a relay for a program's input and output,
and hands on nothing that the program says once the file FLAG exists. It ends with its input or with the program."""

import os
import subprocess
import sys
import threading


def main() -> None:
    flag, argv = sys.argv[1], sys.argv[2:]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None and program.stdout is not None
        source, sink = program.stdout.fileno(), program.stdin

        def forward() -> None:
            while data := os.read(0, 1 << 16):
                sink.write(data)
                sink.flush()
            sink.close()

        threading.Thread(target=forward, daemon=True).start()
        while data := os.read(source, 1 << 16):
            if not os.path.exists(flag):
                os.write(1, data)


if __name__ == "__main__":
    main()
