# The beginning of every measurement, in a fresh copy of the code: a clean environment, and what its steps call. Above it
# are set: `kept`, the names of variables that tests get; `linked`, the paths below the user's home that tests get; and
# `home_of_tests`, which is `empty` or `user`.
starts_max=50 # of one pytest that tests keep ending

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
