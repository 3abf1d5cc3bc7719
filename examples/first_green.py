"""Start one agent per command, keep the first whose work is done, and merge it.

    python examples/first_green.py 'sh try-one.sh' 'sh try-two.sh'

Run it inside a git repository. Every command works in its own copy and is expected to commit what it made.
"""

import sys

import mngr


def main(commands: list[str]) -> int:
    fleet = mngr.Fleet()
    agents = [
        fleet.create(f"try-{number}", command=command, labels={"job": "first-green"})
        for number, command in enumerate(commands, 1)
    ]
    waiting = list(agents)
    found = False
    while waiting and not found:
        ended = fleet.wait(waiting, ("DONE", "FAILED"), any_of=True, timeout=3600)
        for agent in ended:
            print(f"{agent.name} is {agent.state}: {agent.status.reason or agent.record.spec.command}")
            if agent.state == "DONE" and agent.pull().commits:
                merged = agent.merge()
                print(f"merged {merged.commits} commit(s) of {agent.name} into {merged.into}")
                found = True
                break
            waiting = [other for other in waiting if other.id != agent.id]
    for agent in agents:
        done = agent.destroy(force=True)
        if done.entry:
            print(f"the work of {agent.name} is kept: mngr saved restore {done.entry.id}")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
