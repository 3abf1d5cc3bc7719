#!/usr/bin/env bash
# A tour of mngr. Read it from top to bottom and type along, block by block.
# Every block is run by the tests below tests/sessions, and `mngr tutorial check` says so.

# ==============================================================================
# Getting started
# ==============================================================================

# everything here happens inside a git repository; this makes a small one to play in
git init --quiet --initial-branch main shop && cd shop
echo 'print("welcome to the shop")' > shop.py
git add shop.py && git commit --quiet --message 'Open the shop'

# is this machine ready?
mngr doctor

# what should an agent be? `scripted` comes with mngr, needs no model, and does what it is told;
# if you have claude, codex or opencode, leave this out and talk to your agents in plain words
mngr config set --scope user commands.create.type scripted

# start an agent: it gets a branch and a copy of the code of its own, and you sit at its terminal; C-b d leaves
mngr create hello

# who is there, and what is each one doing?
mngr list

# tell it what to do; the lines of one message arrive together
mngr message hello --message 'run echo "hello, you" > hello.txt
commit Say hello'

# wait until its turn is over, then look at what it changed
mngr wait hello
mngr diff hello

# take its work into your branch; when nothing of it is left to lose, the agent may go
mngr merge hello
mngr destroy hello

# that was all there is to it. Every verb explains itself, with examples
mngr help create

# and so do the ideas behind them
mngr help --topics
mngr help states

# or see the other commands--list, destroy, message, connect, push, pull, clone, and more! These other commands are covered in their own sections below.
mngr --help

# to see it all at once, let an agent work on each test of a sample project (some lie); it takes a minute
mngr demo --dir ~/mngr-demo

# ==============================================================================
# Starting agents
# ==============================================================================
# An agent is a process in a terminal of its own. What it runs, you say here.

# stay where you are: the agent works in the background
mngr create fix-login --no-connect

# give it something to do from the start
mngr create add-tests --no-connect --message 'say I will look at the tests first.'

# a longer message comes from a file
cat > ~/prompt.md <<'END'
say First I read the code.
think 0.1
say Then I change it.
END
mngr create rewrite --no-connect --message-file ~/prompt.md

# or write it in your editor
mngr create essay --no-connect --edit-message

# an agent can be any command line
mngr create build --no-connect --command 'echo building; sleep 1; echo built'

# or any program, with its exact arguments; without a name it gets a generated one
mngr create --no-connect --type command -- sleep 600

# see first what would be created
mngr create big-rewrite --dry-run

# three at once: try-1, try-2 and try-3
mngr create try --count 3 --no-connect

# or one for each line of a list
printf '%s\n' red green blue | mngr create - --no-connect

# in a script it may be there already: then it is used, and started if need be
mngr create fix-login --reuse --no-connect

# give it variables: new ones, and some of yours
export GREETING=hello
mngr create web --no-connect --env PORT=8080 --pass-env GREETING --command 'echo "$GREETING on $PORT"; sleep 60'

# a file of variables keeps the command short
printf 'REGION=eu\nDEBUG=1\n' > ~/web.env
mngr create worker --no-connect --env-file ~/web.env --command 'echo "region $REGION"; sleep 600'

# labels and a project help to find it again
mngr create cart --no-connect --label team=web --label urgent=yes --project checkout

# open more windows beside it: a server, a log, whatever you like to look at
mngr create dev --no-connect -w clock='while date; do sleep 1; done' -w shell='sh'

# ==============================================================================
# Its copy of the code
# ==============================================================================
# Agents never work in each other's files, nor in yours, unless you want them to.

# where does each one work, and on which branch?
mngr list --fields name,initial_branch,work_dir

# begin at some other commit, and choose the name of the branch
git tag v1.0
mngr create hotfix --no-connect --branch v1.0:hotfix-1.0

# a repository of its own instead of a worktree: it shares no refs, stashes or hooks with yours
mngr create apart --no-connect --transfer git-mirror

# no copy at all: this one works in your directory
mngr create here --no-connect --transfer none

# a directory without git is copied as it is
mkdir ~/letters && echo 'Dear all,' > ~/letters/draft.txt
mngr create writer --no-connect --from ~/letters

# a repository from elsewhere is cloned first
git clone --quiet --bare . ~/shop.git
mngr create abroad --no-connect --from "file://$HOME/shop.git"

# changes that you have not committed are never left behind in silence: carry them along, or leave them out
echo 'print("half an idea")' > idea.py
mngr create with-idea --no-connect --include-unclean
mngr create without-idea --no-connect --exclude-unclean
rm idea.py

# bring files that git does not know, and prepare the copy before the agent starts
mngr create ready --no-connect --upload-file ~/web.env:.env --extra-provision-command 'mkdir -p build'

# ==============================================================================
# Looking at them
# ==============================================================================
# Who works, who waits for you, who failed: one look, or a lasting one.

# stay and watch every change; C-c leaves
mngr list --watch

# the same for a script: every change as a line of JSON; C-c leaves
mngr observe

# who needs me?
mngr list --blocked --waiting

# only those of one team, or of one project
mngr list --label team=web
mngr list --project checkout

# any question about agents is a filter; `mngr help filters` names the fields
mngr list --include 'name.startsWith("try-") && state == "WAITING"'

# why does it say so? This names the evidence
mngr list --explain build

# wait for a command to end well; when it fails instead, so does this
mngr wait build DONE --timeout 1m

# or continue as soon as the first of several is ready
mngr wait try-1 try-2 try-3 --any --timeout 1m

# what is on its screen?
mngr capture build

# record a terminal from its first byte to its last, for `asciinema play` and web pages
mngr create movie --no-connect --record --command 'echo action; sleep 1; echo cut'
mngr wait movie DONE --timeout 1m
mngr capture movie --cast ~/movie.cast

# what happened to it, in order
mngr event add-tests --tail 5

# and what happens from now on, one line of JSON each; C-c leaves
mngr event add-tests --follow --format jsonl

# the conversation, or only the last thing it said
mngr transcript add-tests
mngr transcript add-tests --role assistant --tail 1

# what did it cost? Programs say what they use, and models have prices; this one is told what to say
mngr message add-tests -m 'usage input=52000 output=1800 cache_read=120000 model=claude-sonnet-4-5'
mngr wait add-tests
mngr usage

# the same by model, project, type or day; agents that were destroyed meanwhile are counted too
mngr usage --by model --since 7d

# ==============================================================================
# Talking to them
# ==============================================================================
# Messages, commands beside them, and your own hands on their keyboard.

# a message is delivered once and confirmed
mngr message fix-login --message 'say I am on it.'

# the same to several; short names do too
mngr msg red green blue -m 'say Good morning.'

# what you pipe in is the message
git log --max-count 1 --patch | mngr message fix-login

# an agent that has a question is BLOCKED until somebody answers
mngr message red -m 'ask Which colour shall it be?'
mngr wait red BLOCKED --timeout 1m
mngr message red -m 'a dark one'

# reach all that match a filter
mngr message --include 'labels.team == "web"' -m 'say Lunch!'

# a stopped one can be started for it
mngr stop green
mngr message green --start -m 'say I am back.'

# run something beside an agent, where it works
mngr exec fix-login 'git status --short --branch'

# in all of them at once; after -- every word is passed on as it is
mngr exec red green blue -- git log --oneline --max-count 1

# in a directory below, and not for longer than a minute
mngr exec ready --cwd build --timeout 1m 'pwd'

# sit down at its terminal; C-b d leaves, and it works on
mngr connect fix-login

# or let something else open the terminal: a new window, a recorder, a browser
mngr connect fix-login --connect-command 'echo "the tmux session is $MNGR_SESSION_NAME"'

# ==============================================================================
# Taking their work
# ==============================================================================
# Nothing of theirs reaches your branch before you say so.

# what did it do? First let it do something
mngr message blue -m 'run echo sky > blue.txt
commit Paint it blue'
mngr wait blue
mngr diff blue --stat

# would it merge? Then merge it
mngr merge blue --dry-run
mngr merge blue

# or take all its commits as one, with a message of yours
mngr exec green 'echo grass > green.txt; git add .; git commit -qm wip; echo leaf >> green.txt; git commit -qam wip'
mngr merge green --squash -m 'Paint it green'

# the commits of an agent with a repository of its own arrive as a branch
mngr exec apart 'echo 1 > one.txt; git add .; git commit --quiet -m "Add one"'
mngr pull apart
git log --oneline main..mngr/apart

# or move the branch you are on forward to them
mngr create ahead --no-connect --transfer git-mirror
mngr exec ahead 'echo 2 > two.txt; git add .; git commit --quiet -m "Add two"'
mngr pull ahead --into current

# files come without a commit
mngr exec blue 'echo "all fine" > report.txt'
mngr pull blue:report.txt ~/reports/

# what an agent puts into $MNGR_ARTIFACTS_DIR is meant for you
mngr exec blue 'echo 42 > $MNGR_ARTIFACTS_DIR/answer.txt'
mngr pull blue --artifacts ~/answers

# give an agent your new commits
git commit --quiet --allow-empty --message 'A new week'
mngr push try-1

# or files
mkdir ~/samples && echo '1,2,3' > ~/samples/numbers.csv
mngr push try-1:data/ ~/samples/

# `git push`, `git pull` and `rsync` work too, with an agent on one side
mngr git push try-1
mngr rsync ~/samples try-1:data

# ==============================================================================
# Nothing is lost
# ==============================================================================
# What exists only in an agent is saved before it goes.

# an agent with work that exists nowhere else is destroyed only with --force; this shows what would be saved
mngr exec try-2 'echo "half an idea" > idea.txt'
mngr destroy try-2 --force --dry-run

# then it goes, and its work is safe
mngr destroy try-2 --force

# what is kept, and what is in it?
mngr saved list
mngr saved show try-2-1 --patch

# have it all back: a stopped agent, as it was
mngr saved restore try-2-1

# or its files alone, in a directory of your choice
mngr saved restore try-2-1 --to ~/recovered

# ==============================================================================
# Managing snapshots
# ==============================================================================
# A point to go back to, and a second way to continue from here.

# keep an agent as it is before something risky; it may work on meanwhile
mngr snapshot create try-1 before-rewrite

# which ones are there?
mngr snapshot list

# whatever happens then, go back; what that replaces is saved
mngr exec try-1 'rm shop.py'
mngr snapshot restore before-rewrite

# or continue from there with a second agent
mngr snapshot restore before-rewrite --as second-try

# forget it
mngr snapshot destroy before-rewrite

# a clone is a copy of an agent as it is now: commits, uncommitted files, conversation
mngr clone add-tests other-way --no-connect

# tell the copy what to do differently
mngr clone add-tests third-way --no-connect -m 'say I try it without the cache.'

# ==============================================================================
# Other machines
# ==============================================================================
# The same verbs, on any machine that ssh reaches, in containers and in the cloud. `box` is a host of `~/.ssh/config`.

# start an agent on another machine; nothing has to be installed there but Python, tmux and git
mngr create far-away@box --no-connect

# it is in the same list, and everything works as it does here
mngr list
mngr message far-away -m 'write far.txt <<END
hello from far away
END
commit Say hello'
mngr wait far-away WAITING
mngr merge far-away

# move an agent of this machine there, with its conversation, and home again
mngr migrate add-tests @box
mngr migrate add-tests @local

# which machines are known, and what runs there
mngr host list

# ==============================================================================
# Putting them in order
# ==============================================================================
# Stop, start, put away, name, limit, clean up.

# stop one; its work stays, and it can continue later
mngr stop fix-login
mngr start fix-login

# give them ten seconds to finish what they do
mngr stop web worker --graceful

# run everything again that is stopped, for instance after a restart of the machine
mngr start --include 'state == "STOPPED"'

# put one away: stopped, hidden from the list, and complete
mngr archive hotfix
mngr list --archived

# and fetch it back
mngr archive hotfix --undo

# a better name
mngr rename second-try plan-b

# labels come and go
mngr label plan-b team=web urgent=yes
mngr label plan-b --remove urgent

# none that runs for ever: stop it after half an hour without output, or after eight hours in any case
mngr create night --no-connect --idle-timeout 30m --timeout 8h

# limits can be changed at any time
mngr limit night --idle-timeout 2h --timeout off
mngr limit night

# which of those that are done could go? And which of them hold work?
mngr cleanup --destroy --state DONE --dry-run

# let them go
mngr cleanup --destroy --state DONE --yes

# broken-off commands and deleted directories leave things behind: look, then remove
mngr gc --dry-run
mngr gc

# forget work that was saved long ago
mngr gc --saved --older-than 30d

# ==============================================================================
# Settings
# ==============================================================================
# Yours are in ~/.mngr/settings.toml, those of a project in its .mngr/settings.toml.

# all values, each with its source; a mistake is found, and the nearest good key named
mngr config list

# any option of a verb can have a default; `--scope user` sets it for all your projects
mngr config set --scope user commands.create.connect false
mngr config get commands.create.connect

# for everybody in this project; git takes it along
mngr config set commands.create.project shop

# who sets a value, and who wins?
mngr config explain commands.create.project

# without it again
mngr config unset commands.create.project

# for one command only
mngr -S commands.create.project=other create quick --no-connect

# the price of a model that nobody knows, in USD per million tokens
mngr config set --scope user prices.house-model.input 3
mngr config set --scope user prices.house-model.output 15

# in your editor, checked when you leave it
mngr config edit

# options that go together are a template
cat >> ~/.mngr/settings.toml <<'END'
[create_templates.review]
transfer = "git-mirror"
label = ["task=review"]
END
mngr create look-at-it --no-connect --template review

# a program that you start often becomes a type of its own
mngr config set --scope user agent_types.ticker.command 'while date; do sleep 1; done'
mngr create tick ticker --no-connect

# plugins bring more types and verbs; this is what is installed
mngr plugin list

# complete verbs, options and the names of your agents with the Tab key
eval "$(mngr completion bash)"

# ==============================================================================
# In scripts
# ==============================================================================
# Results go to standard output, everything else to standard error, and nothing asks where nobody is.

# everything that mngr prints for people, it prints as JSON too
mngr list --format json

# or in any form of yours
mngr list --format '{name}\t{state}\t{initial_branch}'

# names and ids go from one verb to the next
mngr list --label team=web --ids | mngr stop -

# exit codes tell what happened: 4 is a time that was over
mngr create slow --no-connect --command 'sleep 600'
mngr wait slow DONE --timeout 0.2 || echo "exit code $?"

# three agents, one branch: start them, let them work, merge what they made
mngr create part --count 3 --no-connect --message 'run echo done > $MNGR_AGENT_NAME.txt
commit Write a part'
mngr wait part-1 part-2 part-3
for name in part-1 part-2 part-3; do
  mngr merge "$name" || break
done

# ==============================================================================
# Tutorials and tests
# ==============================================================================
# This tour is tested by the tools that come with mngr. They serve any program with a command line.

# a tutorial is a shell script; what stands between its empty lines is an example
cat > tutorial.sh <<'END'
# who is there?
mngr list
END
mngr tutorial blocks

# a test cites an example, runs it and says what it expects; `pip install 'mngr[e2e]'` brings what it needs
cat > test_tour.py <<'END'
from mngr.e2e import expect
def test_list(e2e):
    e2e.write_tutorial_block("""
    # who is there?
    mngr list
    """)
    expect(e2e.run("mngr list").stdout).to_contain("No agents found")
END
pytest test_tour.py

# is every example cited by a test, and was it really run?
mngr tutorial check --tests test_tour.py

# a coding agent can bring the tests in line with the tutorial; with --dry-run you see what it would be told
mngr tutorial sync --tests test_tour.py --dry-run

# or write the examples below a heading that has none
printf '\n# Managing snapshots\n' >> tutorial.sh
mngr tutorial fill --reference 'mngr help snapshot' --dry-run

# agents that know skills learn to do it by themselves
mngr tutorial install-skill

# see what the tests did, command by command, on pages that open from disk
mngr e2e report

# or live in the browser, while they run; C-c leaves
mngr e2e serve

# ==============================================================================
# An agent for each test
# ==============================================================================
# `mngr tmr` lets agents fix and improve tests, measures what comes back, and gives you one branch to read.

# a till that charges too much, and two tests, one of which says so
cat > till.py <<'END'
def total(prices):
    return sum(prices) + 1
END
cat > test_till.py <<'END'
from till import total
def test_nothing_costs_nothing():
    assert total([]) == 0
def test_more_costs_more():
    assert total([3, 4]) > total([3])
END
git add till.py test_till.py && git commit --message 'A till'

# how are the tests of this project run? without --dry-run it is written to its settings
mngr tmr init --dry-run

# which tests would get an agent, and what may that cost?
mngr tmr test_till.py --dry-run

# what agents do follows a script here: one fixes the till, the other finds nothing to do
cat > $HOME/till.script <<'END'
wait
if-message Test: .*nothing_costs <<FIX
  replace till.py <<TEXT
sum(prices) + 1
====
sum(prices)
TEXT
  commit Charge what things cost
  outcome <<JSON
{"schema": 1, "task": "{task}", "status": "done", "summary": "It was one too much.",
 "changes": [{"kind": "implementation", "commit": "{head}", "summary": "Charge what things cost"}]}
JSON
FIX
if-message Test: .*more_costs <<LEAVE
  outcome <<JSON
{"schema": 1, "task": "{task}", "status": "done", "changes": [], "summary": "It is good as it is."}
JSON
LEAVE
END
mngr tmr test_till.py --name till --type scripted -- $HOME/till.script

# what came of each test, as measured and not as claimed
mngr tmr status

# the branch that came out of it; your own is as it was
git log --oneline main..tmr/till

# pages with everything: claims beside measurements, transcripts, recordings
mngr tmr report

# the same in the browser while a run is under way; C-c leaves
mngr tmr serve

# a fix that you do not want leaves the branch, which is measured again
mngr tmr review --drop nothing_costs_nothing

# and comes back
mngr tmr integrate --accept nothing_costs_nothing

# talk to the agent of a test
mngr tmr connect more_costs_more

# let it try once more
mngr tmr retry --task more_costs_more

# a run can be stopped, killed or cut off at any moment; it resumes where it was
mngr tmr stop
mngr tmr resume

# the end: everything goes, and what was not merged is saved
mngr destroy --all --force
