# Completion of tokamak's commands, options and their values for bash, by `tokamak completions bash`.
_tokamak() {
  local line=${COMP_LINE:0:COMP_POINT} program word before
  local -a words
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  program=${words[0]/#\~/$HOME}
  word=${words[-1]}
  mapfile -t COMPREPLY < <("$program" complete -- "${words[@]:1}" 2> /dev/null | cut -f 1)
  # For readline a word begins behind "=" and ":".
  before=${word%"${word##*[=:]}"}
  [[ $before == *= && $COMP_WORDBREAKS != *=* ]] && before=
  COMPREPLY=("${COMPREPLY[@]#"$before"}")
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2> /dev/null
  return 0
}
complete -o default -F _tokamak tokamak
