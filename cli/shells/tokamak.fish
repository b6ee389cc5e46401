# Completion of tokamak's commands, options and their values for fish, by `tokamak completions fish`.
function __tokamak_words
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l found ($words[1] complete -- $words[2..-1] $word 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else if string match -q -- '*=*' $word
        set -l before (string replace -r -- '=.*' '=' $word)
        __fish_complete_path (string replace -r -- '^[^=]*=' '' $word) | string replace -r -- '^' $before
    else
        __fish_complete_path $word
    end
end
complete -c tokamak -f -a '(__tokamak_words)'
