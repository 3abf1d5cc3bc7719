# Run by a hook of Claude Code before each shell command of an agent with `--permissions tests`. Its rules for permissions
# do not take a line with a variable, or with what looks like JSON in it: this allows a few of those, and says nothing
# about any other. The first file lists what is allowed, as lines of `run TEXT`, `file TEXT` and `dir TEXT`; the second is
# what the hook was told. Both are in the form of a JSON string, and so is all that is compared here: \n is two characters.
BEGIN {
    plain = "[A-Za-z0-9_@%+=:,./{}\\[\\]-]+"
    literal = "(" plain "|'[^']*'|\\\\\"([^\"\\\\$`]|\\\\\\\\\\\\\"|\\\\n)*\\\\\")"
    target = "[^ '`;&|<>()]+"
    word = "('[A-Za-z_]+'|\\\\\"[A-Za-z_]+\\\\\"|[A-Za-z_]+)"
}
NR == FNR {
    texts[++count] = substr($0, index($0, " ") + 1)
    kinds[count] = $1
    next
}
{
    at = index($0, "\"command\":\"")
    if (!at) exit
    rest = substr($0, at + 11)
    match(rest, /^([^"\\]|\\.)*/)
    command = substr(rest, 1, RLENGTH)
    if (command !~ /\\u/ && (runs(command) || writes(command)))
        print "{\"hookSpecificOutput\": {\"hookEventName\": \"PreToolUse\", \"permissionDecision\": \"allow\"}}"
    exit
}

# The tests, with more arguments, and perhaps the end of their output only.
function runs(command,    number, more) {
    for (number = 1; number <= count; number++)
        if (kinds[number] == "run" && index(command, texts[number]) == 1) {
            more = substr(command, length(texts[number]) + 1)
            if (more ~ ("^( +" literal ")*( +2>&1)?( *[|] *(tail|head)( +-(n *)?[0-9]+)?)?$")) return 1
        }
    return 0
}

# Something literal into the outcome file or the directory for artifacts.
function writes(command,    head) {
    if (command ~ ("^(echo|printf)( +" literal ")+ *>>? *" target "$")) {
        match(command, />>? *[^ ]+$/)
        return known(substr(command, RSTART))
    }
    if (command ~ ("^(mkdir( +-p)?|cp( +-[a-zA-Z]+)*( +" literal ")+) +" target "$")) {
        match(command, / [^ ]+$/)
        return known(substr(command, RSTART))
    }
    if (match(command, "^cat *>>? *" target " *<< *" word "\\\\n")) {
        head = substr(command, 1, RLENGTH)
        match(head, />>? *[^ <]+/)
    } else if (match(command, "^cat *<< *" word " *>>? *" target "\\\\n")) {
        head = substr(command, 1, RLENGTH)
        match(head, />>? *[^ ]+\\n$/)
        RLENGTH -= 2
    } else return 0
    return known(substr(head, RSTART, RLENGTH)) && ends(head, substr(command, length(head) - 1))
}

function known(place,    number, more) {
    gsub(/^[> ]+|\\"/, "", place)
    for (number = 1; number <= count; number++) {
        if (kinds[number] == "file" && place == texts[number]) return 1
        if (kinds[number] != "dir" || index(place, texts[number]) != 1) continue
        more = substr(place, length(texts[number]) + 1)
        if (more ~ /^(\/[A-Za-z0-9_.\/-]*)?$/ && more !~ /\.\./) return 1
    }
    return 0
}

# Whether the text that `<<` begins goes on up to the end of the command, and nothing in it is replaced.
function ends(head, body,    end, quoted, at, after) {
    match(head, /<< *['\\"]*[A-Za-z_]+/)
    end = substr(head, RSTART, RLENGTH)
    quoted = end ~ /['"]/
    gsub(/[^A-Za-z_]/, "", end)
    if (!quoted && body ~ /[$`]/) return 0
    while ((at = index(body, "\\n" end)) > 0) {
        after = substr(body, at + 2 + length(end))
        if (after == "" || after == "\\n") return 1
        if (substr(after, 1, 2) == "\\n") return 0
        body = substr(body, at + 2)
    }
    return 0
}
