# The beginning of every measurement, in a fresh copy of the code: a clean environment, and what its steps call. Above it
# are set: `kept`, the names of variables that tests get; `linked`, the paths below the user's home that tests get;
# `home_of_tests`, which is `empty` or `user`; and `elsewhere`, directories outside that `prepare` is not to write to.
starts_max=50 # of one pytest that tests keep ending
kept_min=2 # seconds that `prepare` takes, at least, where what it makes is kept

out=$MNGR_ARTIFACTS_DIR
MNGR_TMR_TOP=$(pwd -P)
task=$MNGR_TMR_TOP/.mngr/task
if [ -z "${MNGR_TMR_STARTED:-}" ]; then
    # Nothing of the user's reaches what agents wrote: no keys, no credentials, no home, no remote.
    for remote in $(git remote 2>/dev/null); do git remote remove "$remote"; done
    token=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
    mkdir -p "$task/job/sentinels"
    sentinels=$task/job/sentinels/test_$token.py
    printf 'def test_passes():\n    assert 1\n\n\ndef test_fails():\n    assert 0\n' >"$sentinels"
    set --
    for name in $kept; do
        eval "value=\${$name-}"
        case $value in *://*@*) continue ;; esac
        eval "[ -z \"\${$name+x}\" ]" || set -- "$@" "$name=$value"
    done
    home=${HOME:-/nonexistent}
    if [ "$home_of_tests" = empty ]; then
        real=$home home=$task/home
        for name in $linked; do
            [ -e "$real/$name" ] || continue
            mkdir -p "$(dirname "$home/$name")" && ln -s "$real/$name" "$home/$name"
        done
        mkdir -p "$home"
        printf '[user]\n\tname = mngr\n\temail = mngr@localhost\n' >"$home/.gitconfig"
    fi
    exec env -i "$@" HOME="$home" MNGR_TMR_STARTED=1 MNGR_ARTIFACTS_DIR="$out" \
        MNGR_TMR_SENTINELS="$sentinels" sh "$0"
fi
unset MNGR_TMR_STARTED
export MNGR_TMR_TOP
probe=$task/job/probe
export PYTHONPATH="$probe${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONDONTWRITEBYTECODE=1
export MNGR_E2E_DIR="$out/e2e"

# step NAME: what was defined as the function `run`, its output and exit code beside the artifacts
step() {
    step=$1
    (run) >"$out/$step.log" 2>&1 </dev/null
    code=$?
    echo "$code" >"$out/$step.exit"
    return "$code"
}

# tests NAME: the same with pytest in `run`, started again when a test ended it; each start gets one test further
tests() {
    [ -e "$task/job/mark" ] || : >"$task/job/mark"
    rows=$out/$1.rows
    : >"$out/$1.log"
    tracked=$(git diff HEAD 2>/dev/null | cksum)
    starts=0
    began=0
    while :; do
        before=$began
        (MNGR_TMR_ROWS=$rows; export MNGR_TMR_ROWS; run) >>"$out/$1.log" 2>&1 </dev/null
        code=$?
        starts=$((starts + 1))
        case $(tail -n 1 "$rows" 2>/dev/null) in *'"type": "finished"'*) break ;; esac
        began=$(grep -c '"type": "began"' "$rows" 2>/dev/null)
        [ "${began:-0}" -gt "$before" ] && [ "$starts" -lt "$starts_max" ] || break
    done
    echo "$code" >"$out/$1.exit"
    if [ "$tracked" != "$(git diff HEAD 2>/dev/null | cksum)" ]; then git diff HEAD --name-only >"$out/$1.changed"; fi
}

# untouched: whether tests have left this copy as it was, but for caches: then more can be measured in it
untouched() {
    [ -z "$(find . .git/config .git/hooks \
        \( -path ./.mngr/task/artifacts -o -name .git -o -name '.*_cache' -o -name .hypothesis \) -prune \
        -o ! -type d -cnewer "$task/job/mark" -print 2>/dev/null | head -n 1)" ]
}

# Of `prepare`, what it read of the code and what it made: see docs/design/031-measuring-once.md
code() { find . \( -path ./.git -o -path ./.mngr/task \) -prune -o "$@"; }
watch_prepare() {
    watched=$task/prepared
    mkdir -p "$watched"
    : >"$watched/control"
    # Whoever reads a file gives it a later date of access, where that is older than its change.
    code -type f -exec touch -c -a -t 200001010000 {} +
    touch -a -t 200001010000 "$watched/control" .git/HEAD
    touch -t 200006010000 "$watched/old"
    cp --reflink=auto "$watched/control" "$watched/copy" 2>/dev/null || cp "$watched/control" "$watched/copy"
    touch -t 203701010000 .git/index # so that git need not read what it knows
    stamp=$(date -u +%Y%m%d%H%M.%S)
    started=$(date +%s)
    : >"$watched/begun"
    until touch "$watched/later" && [ -n "$(find "$watched/later" -newer "$watched/begun")" ]; do :; done
}
made() {
    code ! -path . -cnewer "$watched/begun" "$@"
    [ ! -d "$task/home" ] || find ./.mngr/task/home -cnewer "$watched/begun" "$@"
}
# not_kept: why the next copy has to be prepared by itself; empty if what this one has is all there is
not_kept() {
    if [ $(($(date +%s) - started)) -lt $kept_min ]; then echo "it takes less than $kept_min s"; fi
    if [ -z "$(made ! -type d -print | head -n 1)" ]; then echo 'it makes no files in its copy'; fi
    if [ -n "$(git ls-files -d | head -n 1)" ]; then echo 'it deletes files of the code'; fi
    set -- .git/HEAD .git/config .git/hooks .git/info .git/modules .git/packed-refs .git/refs
    if [ -n "$(find "$@" -cnewer "$watched/begun" 2>/dev/null)" ] || ! git diff --cached --quiet; then
        echo 'it changes the repository'
    fi
    if [ ! -r /proc/self/environ ]; then
        echo 'the processes that it left cannot be listed here'
    elif (unset MNGR_TMR_TOP; cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -qxF "MNGR_TMR_TOP=$(pwd -P)"); then
        echo 'it leaves a process'
    fi
    (
        IFS=: places=$elsewhere:$PATH:$HOME/.local/bin
        for place in $places; do
            case $place in '' | "$MNGR_TMR_TOP"/*) continue ;; esac
            for name in "$place" "$place"/../lib*/python3*/*-packages "$place"/../lib/node_modules; do
                find "$name/" -mindepth 1 -maxdepth 1 ! -name __pycache__ -cnewer "$watched/begun" 2>/dev/null |
                    sed -n '1s/^/it writes /p'
            done
        done
    )
}
# asked_git_little: whether `prepare` asked git for no content of files, which it would have read unseen
asked_git_little() {
    [ -n "$(find .git/HEAD -anewer "$watched/old")" ] || return 0
    [ -s "$watched/git" ] || return 1
    set -- 'check-ignore|config|describe|diff-index|for-each-ref|log|ls-files|merge-base|name-rev|remote|rev-list|rev-parse|status'
    ! sed -n 's/.* trace: built-in: git \([^ ]*\).*/\1/p' "$watched/git" | grep -qvxE "$1|symbolic-ref|tag|update-index|version"
}
keep_prepared() {
    if [ -n "$(find "$watched/control" -anewer "$watched/old")" ] && asked_git_little; then : >"$out/prepared.sees"; fi
    touch .git/index
    not_kept >"$out/prepared.not"
    [ ! -s "$out/prepared.not" ] || return 0
    code -type f -anewer "$watched/old" -print0 >"$out/prepared.read"
    made -print0 >"$out/prepared.made"
    tar --null --no-recursion -T "$out/prepared.made" -cf "$out/prepared.tar" || return 0
    echo "$(git hash-object --no-filters "$out/prepared.tar") $stamp" >"$out/prepared.is"
}
# use_prepared DIGEST STAMP: put there what `prepare` made in an earlier copy, later than the code as it was there
use_prepared() {
    [ "$(git hash-object --no-filters "$task/job/prepared.tar")" = "$1" ] || return 1
    TZ=UTC0 code -type f -exec touch -c -m -t "$2" {} +
    tar -xpf "$task/job/prepared.tar" || exit 1
    rm -f "$task/job/prepared.tar"
    git update-index -q --refresh >/dev/null 2>&1
    echo 'as it was made at the base: nothing that `prepare` reads is changed' >"$out/prepare.log"
    echo 0 >"$out/prepare.exit"
}
