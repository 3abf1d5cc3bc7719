#compdef mngr
# Completion of mngr for zsh: eval "$(mngr completion zsh)", after compinit
_mngr() {
    local line word
    local -a described
    for line in "${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        word=${line%%$'\t'*}
        case $word in
            '') ;;
            :files) _mngr_paths ;;
            :folders) _mngr_paths -/ ;;
            $line) described+=("${word//:/\\:}") ;;
            *) described+=("${word//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    (( $#described )) && _describe mngr described
}
_mngr_paths() {
    [[ $PREFIX == --*=* ]] && compset -P '*='
    _files "$@"
}
(( $+functions[compdef] )) && compdef _mngr mngr
