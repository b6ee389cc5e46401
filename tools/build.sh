#!/bin/sh
# tools/build.sh PRESET [TARGET...]: configures where needed and builds, as one line that counts. What CMake and the
# compiler say is in build/PRESET/build.log, and shown when something fails; VERBOSE=1 shows all of it at once.
set -eu
cd "$(dirname "$0")/.."
preset=$1
folder=build/$preset
log=$folder/build.log
mkdir -p "$folder"

run() {
  [ -e "$folder/build.ninja" ] || cmake --preset "$preset" || return 1
  shift
  [ $# -eq 0 ] || set -- --target "$@"
  cmake --build --preset "$preset" "$@"
}

if [ -n "${VERBOSE:-}" ]; then
  run "$@"
  exit
fi

terminal=0
[ -t 1 ] && [ "${TERM:-dumb}" != dumb ] && terminal=1
# The status of run is that of the pipe's first part, which sh does not tell.
{ (unset NINJA_STATUS; run "$@" 2>&1) && status=0 || status=$?; echo "status $status"; } | awk -v log_file="$log" -v preset="$preset" -v terminal="$terminal" '
  /^status [0-9]+$/ { status = $2; next }
  { print > log_file }
  match($0, /^\[[0-9]+\/[0-9]+\]/) {
    split(substr($0, 2, RLENGTH - 2), count, "/")
    if (terminal) printf "\rbuilding %s: %d of %d", preset, count[1], count[2]
    else if (count[2] != told) { printf "building %s: %d files\n", preset, count[2]; told = count[2] }
    shown = 1
    fflush()
  }
  END { if (terminal && shown) printf "\n"; exit status }' || {
  status=$?
  grep -vE '^(\[[0-9]+/[0-9]+\]|--) ' "$log" >&2 || true
  echo "error: [build] the build failed; all of its output is in $log" >&2
  exit $status
}
