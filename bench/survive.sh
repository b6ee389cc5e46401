#!/bin/bash
# What a run on two GPUs survives, within a time that is given; a short table last, long logs in OUT.
#   bench/survive.sh TOKAMAK OUT SECONDS     DEVICE=cpu MODEL="--model.preset=tiny ...": tried without GPUs
# A soak with a fault every EVERY seconds (30), from checkpoints and memory (bench/soak.py), takes six tenths of the time, kills at
# random moments (bench/moments.py) the rest. PARTS: which ("soak moments"); one alone takes all of the time.
set -u
tokamak=${1:?usage: bench/survive.sh TOKAMAK OUT SECONDS}
out=${2:?a folder for logs}
seconds=${3:?seconds that it may take}
cd "$(dirname "$0")/.." || exit 1
mkdir -p "$out"
parts=${PARTS:-soak moments}
device=${DEVICE:-cuda}
start=40  # seconds of a soak's first start, end and tables, at most

model_of() { if [ -n "${MODEL:-}" ]; then printf -- '--model=%s' "$MODEL"; else printf -- '--device=%s' "$device"; fi; }

soak() {
  local undisturbed=$(($1 / 8))
  python3 bench/soak.py "$tokamak" "$out/soak" --device="$device" "$(model_of)" --every="${EVERY:-30}" \
    --undisturbed=$undisturbed --seconds=$(($1 - undisturbed - 2 * start)) --save-every="${SAVE_EVERY:-200}" \
    --memory-every="${MEMORY_EVERY:-20}" > "$out/soak.log" 2>&1 || echo "soak: exit status $?" >> "$out/soak.log"
}

moments() {
  python3 bench/moments.py "$tokamak" "$out/moments" --device="$device" "$(model_of)" --seconds=$(($1 - start)) \
    --moments="${MOMENTS:-30}" > "$out/moments.log" 2>&1 || echo "moments: exit status $?" >> "$out/moments.log"
}

case $parts in
  soak | moments) $parts "$seconds" ;;
  *)
    soak $((seconds * 6 / 10))
    moments $((seconds * 4 / 10))
    ;;
esac
for part in $parts; do
  echo "== $part"
  tail -30 "$out/$part.log"
done
