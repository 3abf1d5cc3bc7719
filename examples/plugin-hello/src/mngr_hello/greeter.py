"""What an agent of type `greeter` runs: it answers every line with a greeting."""

import sys


def main() -> None:
    print("Who is there?", flush=True)
    for line in sys.stdin:
        print(f"Nice to meet you, {line.strip()}!", flush=True)


if __name__ == "__main__":
    main()
