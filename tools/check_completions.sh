#!/bin/bash
# tools/check_completions.sh PROGRAM: completes command lines as bash, zsh and fish would. CTest runs it as e2e.completions.
# Shells that are not installed are left out, and told.
set -u
program=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
ln -s "$program" "$folder/tokamak"
export PATH="$folder:$PATH" HOME="$folder"
status=0

# expect SHELL LINE WANTED GOT: all candidates, with blanks between them.
expect() {
  [ "$3" = "$4" ] && return
  echo "$1: \"$2\": expected \"$3\", got \"$4\"" >&2
  status=1
}

source <(tokamak completions bash)
in_bash() {
  COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
  _tokamak
  expect bash "$1" "$2" "${COMPREPLY[*]-}"
}
in_bash "tokamak tra" "train"
in_bash "tokamak checkpoint " "list verify diff prune"
in_bash "tokamak help pla" "plan"
in_bash "tokamak train --mesh.zer" "--mesh.zero="
in_bash "tokamak train --data.token_type=uint3" "uint32"
in_bash "tokamak train --data.token_type uint3" "uint32"
in_bash "$folder/tokamak prepare --format=web" "webdataset"
in_bash "tokamak train run.to" ""  # files, which readline completes itself
[ "$(complete -p tokamak)" = "complete -o default -F _tokamak tokamak" ] || expect bash complete yes no

if command -v zsh > /dev/null; then
  # Widgets work in an interactive shell alone, which needs a terminal of its own.
  cat > "$folder/in_zsh.zsh" <<'ZSH'
autoload -Uz compinit && compinit -u -D
source <(tokamak completions zsh)
compadd() { [[ $1 == -S ]] && shift 2; local name=${@[-1]}; print -r -- "${(P)name}"; }
words=("${(@s: :)LINE}") CURRENT=${#words}
_tokamak
ZSH
  in_zsh() { expect zsh "$1" "$2" "$(LINE="$1" zsh -f "$folder/in_zsh.zsh" 2>&1 | xargs)"; }
  in_zsh "tokamak tra" "train"
  in_zsh "tokamak train --mesh.zer" "--mesh.zero="
else
  echo "zsh: SKIPPED, it is not installed"
fi

if command -v fish > /dev/null; then
  in_fish() {
    expect fish "$1" "$2" "$(fish --no-config -c "tokamak completions fish | source; complete -C '$1'" | cut -f 1 | xargs)"
  }
  in_fish "tokamak tra" "train"
  in_fish "tokamak train --data.token_type=uint3" "--data.token_type=uint32"
else
  echo "fish: SKIPPED, it is not installed"
fi

if command -v man > /dev/null && command -v groff > /dev/null; then
  for page in tokamak tokamak-train tokamak-prepare tokamak-config; do
    complaints=$(tokamak man "$page" | groff -man -Tutf8 -ww -z 2>&1)
    [ -z "$complaints" ] || expect man "$page" "no complaints" "$complaints"
  done
else
  echo "man: SKIPPED, groff is not installed"
fi
exit $status
