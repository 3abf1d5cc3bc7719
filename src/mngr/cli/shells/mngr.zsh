#compdef mngr
# Completion of mngr for zsh: eval "$(mngr completion zsh)", after compinit
_mngr() {
    local word text line
    local -a plain shown
    for line in "${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        word=${line%%$'\t'*} text=${line#*$'\t'}
        case $word in
            '') ;;
            :files) _files ;;
            :folders) _files -/ ;;
            *) plain+=("$word") shown+=("$word${text:+  -- $text}") ;;
        esac
    done
    (( $#plain )) && compadd -l -d shown -a plain
}
(( $+functions[compdef] )) && compdef _mngr mngr
