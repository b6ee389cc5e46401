#!/bin/bash
# What a run on two GPUs survives, within a time that is given. What happens is told as it does, a short table comes last, also where
# the time runs out or SIGTERM comes first; long logs are in OUT.
#   bench/survive.sh TOKAMAK OUT SECONDS     DEVICE=cpu MODEL="--model.preset=small ...": tried without GPUs
# A soak with a fault every EVERY seconds (30), from checkpoints and memory (bench/soak.py), takes six tenths of the time, kills at
# random moments (bench/moments.py) what is left. PARTS: which ("soak moments"); one alone takes all of the time.
set -u
tokamak=$(realpath "${1:?usage: bench/survive.sh TOKAMAK OUT SECONDS}")
out=$(realpath -m "${2:?a folder for logs}")
seconds=${3:?seconds that it may take}
cd "$(dirname "$0")/.." || exit 1
mkdir -p "$out"
rm -f "$out"/*.log
parts=${PARTS:-soak moments}
device=${DEVICE:-cuda}
margin=15  # seconds in which a part that has been told to end has ended
part_id=

options() { printf '%s\n' "--device=$device" "${MODEL:+--model=$MODEL}" | sed '/^$/d'; }

# part NAME SECONDS OPTIONS...: told to end (SIGTERM) when it has not by then; it prints what it has.
part() {
  local name=$1 time=$2
  shift 2
  local common
  mapfile -t common < <(options)
  : > "$out/$name.log"
  timeout --signal=TERM --kill-after=$margin $((time - margin)) \
    python3 "bench/$name.py" "$tokamak" "$out/$name" "${common[@]}" "$@" > "$out/$name.log" 2>&1 &
  part_id=$!
  tail -f -n +1 --pid=$part_id "$out/$name.log" &
  wait $part_id
  local status=$?
  [ $status = 0 ] || echo "$name: exit status $status" >> "$out/$name.log"
}

# Where other GPUs are free (BESIDE=0,1, of those that are visible) the undisturbed run has them, and its bits are compared to the end.
soak() {
  local undisturbed=$(($1 / 8))
  [ -n "${BESIDE:-}" ] && undisturbed=0
  part soak "$1" --every="${EVERY:-30}" --undisturbed=$undisturbed --beside="${BESIDE:-}" --seconds=$(($1 - undisturbed)) --within=$(($1 - 2 * margin)) \
    --save-every="${SAVE_EVERY:-200}" --memory-every="${MEMORY_EVERY:-20}"
}

moments() { part moments "$1" --seconds=$(($1 - 2 * margin)) --moments="${MOMENTS:-30}"; }

tables() {
  for name in $parts; do
    echo "== $name"
    { [ -e "$out/$name.log" ] && tail -20 "$out/$name.log"; } || echo "it did not begin"
  done
}

stop() {
  [ -n "$part_id" ] && kill "$part_id" && wait "$part_id"  # which ends the part
  tables
  exit 1
}
trap stop TERM INT

case $parts in
  soak | moments) $parts "$seconds" ;;
  *)
    soak $((seconds * 6 / 10))
    moments $((seconds - SECONDS))
    ;;
esac
tables
