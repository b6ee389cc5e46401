#compdef tokamak
# Completion of tokamak's commands, options and their values for zsh, by `tokamak completions zsh`.
_tokamak() {
  local line word tab=$'\t'
  local -a full full_shown open open_shown
  for line in ${(f)"$(${(Q)words[1]} complete -- "${(@Q)words[2,CURRENT]}" 2> /dev/null)"}; do
    word=${line%%$tab*}
    if [[ $word == *= ]]; then
      open+=($word)
      open_shown+=("$word  ${line#*$tab}")
    else
      full+=($word)
      full_shown+=("$word  ${line#*$tab}")
    fi
  done
  if (( $#full + $#open )); then
    compadd -l -d full_shown -a full
    compadd -S '' -l -d open_shown -a open
  else
    compset -P '*='
    _files
  fi
}
if [[ ${funcstack[1]} == _tokamak ]]; then
  _tokamak "$@"
else
  compdef _tokamak tokamak
fi
