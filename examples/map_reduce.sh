#!/bin/sh
# A map-reduce on the verbs of mngr alone: one agent for each test, then every piece of work that holds on one branch.
#   examples/map_reduce.sh TYPE [ARGS...]     e.g. `claude`, or `scripted my.script`; PYTEST and MAX_AGENTS may be set
set -eu
type=$1
shift
if ! git diff --quiet HEAD; then
    echo "commit or stash your changes first: the branch is put together in this work tree" >&2
    exit 1
fi
pytest=${PYTEST:-python3 -m pytest}
run=mr-$$
base=$(git rev-parse HEAD)
of_run() { mngr list --label run="$run" "$@"; }
working() { of_run --include 'state in ["STARTING", "RUNNING"]' --ids; }

# Map: at most MAX_AGENTS at a time, each in a repository of its own.
$pytest --collect-only -q </dev/null | grep :: | while read -r test; do
    while [ "$(working | wc -l)" -ge "${MAX_AGENTS:-10}" ]; do
        working | mngr wait - --any >/dev/null 2>&1 || true # none may be left by now
    done
    number=$((${number:-0} + 1))
    mngr create "$run-$number" --no-connect --transfer git-mirror --label run="$run" --label test="$test" \
        --env MNGR_TASK="$test" --type "$type" </dev/null \
        --message "Run the test $test. Fix it if it fails, improve it if it passes, and commit your work." -- "$@"
done
of_run --ids | mngr wait - >/dev/null || true # one that failed is seen below

# Reduce: a branch of its own; work that clashes, or whose test does not pass, stays with its agent.
git switch --quiet --create "$run"
of_run --sort create_time --format '{name} {state} {labels.test}' | while read -r name state test; do
    before=$(git rev-parse HEAD)
    if [ "$state" = FAILED ] || [ "$state" = BLOCKED ]; then
        echo "$test: $name is $state"
    elif ! mngr merge "$name" >/dev/null 2>&1 </dev/null; then
        echo "$test: the work of $name clashes with what is merged"
    elif ! $pytest -q "$test" >/dev/null 2>&1 </dev/null; then
        git reset --quiet --hard "$before"
        echo "$test: does not pass with the work of $name"
    else
        echo "$test: passes with $(git rev-list --count "$before"..HEAD) commits of $name"
        mngr stop "$name" --quiet >/dev/null </dev/null
    fi
done
echo "branch $run: $(git rev-list --count "$base"..HEAD) commits"
