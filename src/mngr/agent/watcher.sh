# Sleeps until a limit of an agent can be reached, then runs our program once. What it asks of tmux and of the events only
# decides when to run the program, which looks again and decides itself. Above it are set: `agent`, `events`, `idle`,
# `mode`, `ends`, `started`, `says` and the function `enforce`.
fields='#{@mngr_agent} #{pane_dead} #{window_activity} #{session_activity}'

# When the last event of such a type happened, in seconds; 0 when there is none. Programs of others write events too,
# with or without blanks.
moment() {
    stamp=$(tail -c 1000000 "$events" | grep -E "\"type\": *\"($1)\"" | tail -n 1 |
        sed -n 's/.*"timestamp": *"\([0-9T:-]*\).*/\1/p')
    since=0
    [ -n "$stamp" ] || return 0
    IFS=-T:
    set -- $stamp
    unset IFS
    month=${2#0} year=$(($1 - (${2#0} < 3)))
    days=$((365 * year + year / 4 - year / 100 + year / 400 + (153 * ((month + 9) % 12) + 2) / 5 + ${3#0} - 719469))
    since=$((days * 86400 + ${4#0} * 3600 + ${5#0} * 60 + ${6#0}))
}

# Since when it may be idle. An agent that said it is working may have stopped without a word: an interrupted or failed
# turn is not an event in every program. So one without news for the idle time is looked at, whatever it said last.
look() {
    case $mode in
    output)
        since=$1
        ;;
    user)
        moment message_delivered
        [ "$since" -ge "$2" ] || since=$2
        ;;
    agent)
        moment 'state|started'
        ;;
    esac
    [ "$since" -ge "$started" ] || since=$started
}

# Our program cannot be run, and so says nothing itself: perhaps its Python went with an upgrade. It is noted as an event
# and on our pane, for `mngr limit` and `mngr list --explain`; `mngr start` then starts a watcher with the new one.
not_enforced() {
    [ -z "$failed" ] || return 0
    failed=1
    id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    printf '{"event_id": "evt-%s", "timestamp": "%s", "source": "limits", "type": "limit_failed", "reason": "%s"}\n' \
        "$id" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1" >>"$events"
    tmux set-option -p -t "$TMUX_PANE" @mngr_limits_failed "$1"
}

failed=
echo "$says"
while :; do
    now=$(date +%s)
    # This window goes with the session: a tmux that does not answer says nothing about the agent.
    panes=$(tmux list-panes -s -t "$TMUX_PANE" -F "$fields") || {
        sleep 60
        continue
    }
    pane=$(echo "$panes" | grep -e "^$agent 0 ") || exit 0
    set -- $pane
    left=86400
    if [ -n "$idle" ]; then
        look "$3" "$4"
        left=$((since + 1 + idle - now))
    fi
    if [ -n "$ends" ] && [ $((ends - now)) -lt "$left" ]; then
        left=$((ends - now))
    fi
    if [ "$left" -le 0 ]; then
        size=$(wc -c <"$events")
        if left=$(enforce); then
            [ -n "$left" ] || exit 0
            [ -z "$failed" ] || tmux set-option -pu -t "$TMUX_PANE" @mngr_limits_failed
            failed=
        else
            code=$? left=60
            [ "$(wc -c <"$events")" != "$size" ] || not_enforced "mngr cannot be run (exit code $code)"
        fi
    fi
    sleep "$left"
    # A machine that was asleep did not let its agents work: they get their time again.
    if [ -n "$idle" ] && [ $(($(date +%s) - now - left)) -gt 60 ]; then
        sleep "$idle"
    fi
done
