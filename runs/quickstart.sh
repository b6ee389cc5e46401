#!/usr/bin/env bash
# From raw text to a trained model, a sample and the speed ladder. Called by `make quickstart`; TEXT=path trains on that
# text instead of the King James Bible. A second run continues or repeats only what is missing. STEPS=number: a short try.
set -euo pipefail
cd "$(dirname "$0")/.."
tokamak=build/release/bin/tokamak
text=${TEXT:-}
out=out/quickstart
settings=()
ladder_steps=20

if [ -n "$text" ]; then
  [ -e "$text" ] || { echo "quickstart: TEXT=$text does not exist; give a text file or a folder of them" >&2; exit 1; }
  # Every text has a folder of its own, so that two of them never mix.
  out=out/quickstart-$(basename "$text" | tr -c 'A-Za-z0-9\n' '_')-$(realpath "$text" | cksum | cut -d' ' -f1)
  settings=(--data.path="$out/data" --train.out="$out/run")
fi
if [ -n "${STEPS:-}" ]; then
  settings+=(--train.steps="$STEPS")
  ladder_steps=2
fi
mkdir -p "$out"

if [ -z "$text" ]; then
  text=$out/kjv.txt
  if [ ! -s "$text" ]; then
    command -v bible >/dev/null || {
      echo "quickstart: the packages bible-kjv and bible-kjv-text are not to be had here; train on a text of your own:" >&2
      echo "  make quickstart TEXT=path/to/text.txt" >&2
      exit 1
    }
    bible -f gen1:1-rev22:21 | sed 's/^[^ ]* //' > "$text.tmp"
    mv "$text.tmp" "$text"
  fi
fi

echo "== 1. data: $text"
[ -e "$out/data/index.json" ] || "$tokamak" prepare "$text" --out="$out/data" --vocab-size=2048

echo "== 2. training (Ctrl-C is safe: run the same command again to go on)"
"$tokamak" train runs/quickstart.toml "${settings[@]}"

echo "== 3. a sample"
"$tokamak" generate "$out/run" --prompt="And it came to pass" --tokens=120 --temperature=0.7

echo "== 4. the speed ladder of this model on this machine"
"$tokamak" ladder runs/quickstart.toml "${settings[@]}" --steps="$ladder_steps" --out="$out"
echo
echo "the run is in $out, with the ladder as a page: $out/ladder.html"
echo "more text: $tokamak generate $out/run --prompt=\"...\""
