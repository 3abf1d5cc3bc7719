# Completion of mngr for fish: mngr completion fish > ~/.config/fish/completions/mngr.fish
function __mngr_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path (string replace -r '^--[^=]*=' '' -- "$current")
            case :folders
                __fish_complete_directories (string replace -r '^--[^=]*=' '' -- "$current")
            case '*'
                echo $line
        end
    end
end
complete -c mngr -f -a '(__mngr_complete)'
