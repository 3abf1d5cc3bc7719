# Completion of mngr for bash: eval "$(mngr completion bash)"
_mngr() {
    local words=() last=-1 at gap word prefix= rest=$COMP_LINE line=${COMP_LINE:0:COMP_POINT}
    # Bash takes `--type=x` and `agent:path` apart: pieces without a blank between them are one word.
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        gap=${rest%%"$word"*}
        rest=${rest#*"$word"}
        if ((at > 1)) && [[ -z $gap && ($word == [=:]* || ${words[last]} == *[=:]) ]]; then
            words[last]+=$word
        else
            words[++last]=$word
        fi
    done
    # What is behind the cursor is no part of the word to complete.
    while [[ -n ${words[last]} && $line != *"${words[last]}" ]]; do words[last]=${words[last]%?}; done
    if [[ ${words[last]} == *[=:]* && $COMP_WORDBREAKS == *=* ]]; then
        prefix=${words[last]%"${words[last]##*[=:]}"}
    fi
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        case $word in
            '') ;;
            :files) _mngr_paths -f "${words[last]#"$prefix"}" ;;
            :folders) _mngr_paths -d "${words[last]#"$prefix"}" ;;
            *) COMPREPLY+=("$(printf %q "${word#"$prefix"}")") ;;
        esac
    done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:] ]]; then
        type compopt >/dev/null 2>&1 && compopt -o nospace
    fi
}
_mngr_paths() {
    local path
    type compopt >/dev/null 2>&1 && compopt -o filenames
    while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen "$1" -- "$2")
}
complete -F _mngr mngr
